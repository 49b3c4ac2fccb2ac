"""A forger: a release's files changed at will, and everything sealed again as if they were true."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from voile.kinds.manifest import MANIFEST, file_entry
from voile.kinds.registry import kind_of
from voile.release import Release

Change = Callable[[Any], Any]


def forged(
    release: Release,
    to: Path,
    change: Change,
    where: str = "data/",
    *,
    statistics: bool = False,
    **stated: Any,
) -> Path:
    """A copy of which `change` has changed the rows of each file in `where`; hashes are right.

    `stated` are keys of the manifest that are stated otherwise.
    """
    shutil.copytree(release.path, to)
    for path in sorted((to / where).glob("*.parquet")):
        table = change(pq.read_table(path, partitioning=None))
        pq.write_table(
            table, path, compression="zstd", store_schema=False, write_statistics=statistics
        )
    return sealed(to, where, **stated)


def sealed(folder: Path, where: str = "data/", **stated: Any) -> Path:
    """State every file as it is now, and the rows that the files of `where` have."""
    data = json.loads((folder / MANIFEST).read_bytes()) | stated
    manifest = kind_of(data["method"]).manifest.model_validate(data)
    files = []
    for entry in manifest.files:
        path = folder / entry.path
        rows = pq.read_metadata(path).num_rows if entry.rows is not None else None
        files.append(file_entry(folder, path, rows))
    changed: dict[str, Any] = {"files": files}
    if where == "data/" and "rows" not in stated:
        changed["rows"] = sum(f.rows or 0 for f in files if f.path.startswith("data/"))
    text = manifest.model_copy(update=changed).sealed().text()
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return folder
