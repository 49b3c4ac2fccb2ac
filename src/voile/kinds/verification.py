"""Checking a release: every byte, every row count, and the promise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from voile.engines.parquet import sha256
from voile.errors import ReleaseError
from voile.kinds.manifest import MANIFEST
from voile.kinds.release import Release
from voile.kinds.views.histories import Histories
from voile.kinds.views.release import ViewRelease
from voile.mechanisms.alphabeta import distinct


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
    if isinstance(release, ViewRelease) and release.histories is not None:
        check_histories(release, release.histories)


def check_histories(release: ViewRelease, histories: Histories) -> None:
    """Each tuple stands there once, in the order of D, and the last counts are this view's."""
    history = histories.history
    if not np.array_equal(distinct(np.sort(history.keys)), history.keys):
        raise ReleaseError("history/ is not in the order of the domain, or has a tuple twice")
    seen = int(history.counts[:, :-1].any(axis=1).sum())
    series = release.manifest.parameters.series
    if series is None or seen != series.seen_tuples:
        raise ReleaseError(f"history/ has {seen:,} tuples that were seen before this view")
    shown = history.keys[history.counts[:, -1] > 0]
    if int(history.counts[:, -1].sum(dtype=np.int64)) != release.manifest.rows:
        raise ReleaseError("history/ does not agree with the rows in data/")
    rows = np.repeat(shown, history.counts[history.counts[:, -1] > 0, -1])
    if not np.array_equal(rows, release.keys()):
        raise ReleaseError("history/ does not agree with the rows in data/")
