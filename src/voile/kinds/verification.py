"""Checking a release: every byte, every row count, and the promise."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from voile.errors import ReleaseError
from voile.files import sha256
from voile.kinds.manifest import MANIFEST
from voile.kinds.release import Release


def verify(path: str | Path | Release) -> Release:
    """Check every byte and the promise again; raises ReleaseError naming what is wrong."""
    release = path if isinstance(path, Release) else Release.open(path)
    check(release)
    return release


def check(release: Release) -> None:
    """All checks, also of a folder that is still being written."""
    check_files(release)
    check_rows(release)
    release.check_terms()


def check_files(release: Release) -> None:
    """Every file is named once and hashes as it should, and nothing else is there."""
    files = release.manifest.files
    named = {file.path for file in files}
    if len(named) < len(files):
        raise ReleaseError("manifest.json names a file twice")
    for file in files:
        if file.path.endswith(".parquet") != (file.rows is not None):
            raise ReleaseError(f"manifest.json: {file.path} must state its rows")
        if sha256(release.path / file.path) != file.sha256:
            raise ReleaseError(f"{file.path} was changed after the release was written")
    folders = {parent for path in named for parent in map(str, Path(path).parents)}
    for found in sorted(release.path.rglob("*")):
        relative = found.relative_to(release.path).as_posix()
        known = relative in folders if found.is_dir() else relative in named | {MANIFEST}
        if not known or found.is_symlink():
            raise ReleaseError(f"{relative} does not belong to the release")


def check_rows(release: Release) -> None:
    """The rows are as many as stated, have the schema's columns, and lie in its domain."""
    total = 0
    for file in release.manifest.files:
        if file.rows is None:
            continue
        wanted = release.columns_of(file.path)
        metadata = pq.read_metadata(release.path / file.path)
        columns = metadata.schema.to_arrow_schema()
        if columns.names != wanted.names or columns.types != wanted.types:
            raise ReleaseError(f"{file.path} does not have the columns of the schema")
        if metadata.num_rows != file.rows:
            raise ReleaseError(f"{file.path} has {metadata.num_rows} rows, not {file.rows}")
        total += file.rows if release.counts_rows(file.path) else 0
    if total != release.manifest.rows:
        raise ReleaseError(f"the release has {total} rows, not {release.manifest.rows}")
    if outside := release.foreign_attribute():
        raise ReleaseError(f"column {outside!r} has values outside the domain of the schema")
    release.check_contents()
