"""Spark: the engine for tables that outgrow one machine, by Spark Connect alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.errors import UsageError

if TYPE_CHECKING:
    from voile.engines.rows import ReleaseRows
    from voile.engines.spark.table import SparkTable
    from voile.schema import Schema


SECRETS = re.compile(
    r"(?i)(?<=[?&;])([\w.-]*(?:password|passwd|pwd|secret|token|key|authorization))=[^&;,\s\"']+"
)
"""Settings of addresses that nobody may see."""


def without_secrets(text: str) -> str:
    """What a caller or a server says, without the passwords and tokens of its addresses."""
    return SECRETS.sub(r"\1=…", re.sub(r"(?<=://)[^/\s]*@", "…@", text))


@dataclass(frozen=True)
class SparkSource:
    """A table or path that a cluster reads, and the address of the cluster."""

    address: str
    what: str

    def __repr__(self) -> str:
        return f"SparkSource({without_secrets(self.address)!r}, {without_secrets(self.what)!r})"


class Spark:
    """Reads data frames of Spark Connect, and what `SparkSource` names."""

    name = "spark"

    def reads(self, source: object) -> bool:
        """Frames and sources of Spark; its library is not loaded to tell."""
        home = type(source).__module__
        return isinstance(source, SparkSource) or home.startswith("pyspark.sql")

    def table_type(self) -> type[SparkTable]:
        """The class of its tables."""
        from voile.engines.spark.table import SparkTable  # noqa: PLC0415

        return SparkTable

    def files_of(self, source: str) -> list[Path]:  # noqa: ARG002
        """None that this machine reads."""
        return []

    def opens(self, parts: Sequence[Path]) -> bool:  # noqa: ARG002
        """None by itself: a release is counted on a cluster where the caller says so."""
        return False

    def open_rows(
        self,
        parts: Sequence[Path],  # noqa: ARG002
        schema: Schema,  # noqa: ARG002
        *,
        scores: Any = None,  # noqa: ARG002
        beside: Any = None,  # noqa: ARG002
    ) -> ReleaseRows:
        """Refused: rows are opened on a cluster, which must be named."""
        raise UsageError("no cluster was named", hint="give the release an engine")


ENGINE = Spark()
