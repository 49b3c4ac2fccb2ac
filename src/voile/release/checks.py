"""Checking a release: every byte, every row count, and the promise."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from voile.engines.parquet import arrow_schema, sha256
from voile.errors import ReleaseError
from voile.release.manifest import MANIFEST, Manifest
from voile.release.opened import Release


def verify(path: str | Path) -> Release:
    """Check every byte and the promise again; raises ReleaseError naming what is wrong."""
    release = Release.open(path)
    check(release)
    return release


def check(release: Release) -> None:
    """All checks, also of a folder that is still being written."""
    check_files(release)
    check_rows(release)
    check_promise(release.manifest)


def check_files(release: Release) -> None:
    named = {file.path: file for file in release.manifest.files}
    for file in named.values():
        if sha256(release.path / file.path) != file.sha256:
            raise ReleaseError(f"{file.path} was changed after the release was written")
    for found in sorted(release.path.rglob("*")):
        relative = found.relative_to(release.path).as_posix()
        if found.is_file() and relative != MANIFEST and relative not in named:
            raise ReleaseError(f"{relative} does not belong to the release")


def check_rows(release: Release) -> None:
    wanted = arrow_schema(release.schema)
    total = 0
    for file in release.manifest.files:
        if file.rows is None:
            continue
        metadata = pq.read_metadata(release.path / file.path)
        columns = metadata.schema.to_arrow_schema()
        if columns.names != wanted.names or columns.types != wanted.types:
            raise ReleaseError(f"{file.path} does not have the columns of the schema")
        if metadata.num_rows != file.rows:
            raise ReleaseError(f"{file.path} has {metadata.num_rows} rows, not {file.rows}")
        total += file.rows
    if total != release.manifest.rows:
        raise ReleaseError(f"the release has {total} rows, not {release.manifest.rows}")


def check_promise(manifest: Manifest) -> None:
    """Ask the mechanism, as it is written down, whether it keeps what is promised."""
    if not manifest.promise.kept_by(manifest.mechanism.likelihood_ratio()):
        raise ReleaseError(
            f"retention {manifest.parameters.retention} and noise {manifest.parameters.noise} do "
            f"not keep d = {manifest.guarantee.prior:.6g}, γ = {manifest.guarantee.posterior:.6g}",
            hint="nothing should be published with these parameters",
        )
