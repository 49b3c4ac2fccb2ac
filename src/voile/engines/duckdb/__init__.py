"""DuckDB, embedded: the engine for one machine, and the only package that imports duckdb."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voile.engines.duckdb.rows import DuckRows
    from voile.engines.duckdb.table import DuckTable
    from voile.schema import Schema


class DuckDb:
    """Reads every source that no other engine claims. Loads DuckDB when it is used."""

    name = "duckdb"

    def reads(self, source: object) -> bool:  # noqa: ARG002
        """Any: its messages say what cannot be read."""
        return True

    def table_type(self) -> type[DuckTable]:
        """The class of its tables."""
        from voile.engines.duckdb.table import DuckTable  # noqa: PLC0415

        return DuckTable

    def files_of(self, source: str) -> list[Path]:
        """The files that a table's name stands for; none if it is not made of files."""
        from voile.engines.duckdb.sources.files import files_of  # noqa: PLC0415

        return files_of(source)

    def opens(self, parts: Sequence[Path]) -> bool:  # noqa: ARG002
        """Any files of this machine."""
        return True

    def open_rows(
        self,
        parts: Sequence[Path],
        schema: Schema,
        *,
        scores: Any = None,
        beside: Any = None,
    ) -> DuckRows:
        """A release's rows."""
        from voile.engines.duckdb.rows import DuckRows  # noqa: PLC0415

        return DuckRows(parts, schema, scores, beside)


ENGINE = DuckDb()
