"""The rows that a release shows, as a table whose risk can be measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from voile.errors import UsageError
from voile.kinds.classes.release import ClassRelease
from voile.kinds.manifest import MANIFEST


def shown_rows(
    source: Any, qi: Sequence[str] | None, sensitive: Sequence[str]
) -> tuple[Any, Sequence[str] | None, Sequence[str]]:
    """The table and its columns; of a release of classes what it shows, and says they are."""
    if not isinstance(source, str | Path) or not (Path(source) / MANIFEST).is_file():
        return source, qi, sensitive
    release = ClassRelease.open(source)
    if release.hidden is not None:
        raise UsageError(
            f"{str(source)!r} is bucketized: everybody's quasi-identifiers are shown as they are",
            hint="`voile verify` measures its buckets; `voile loss` what they tell",
        )
    return release.to_arrow(), qi or release.qi, sensitive or release.sensitive
