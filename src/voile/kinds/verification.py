"""Checking a release: its files, what it states, and whether its rows can be what it says.

How a release was made cannot be seen from it. What can be seen is that its files are whole, that
what it promises follows from what it states, and that its rows are plausible under the mechanism
that it names. A signature says who vouches for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from voile.errors import ReleaseError
from voile.kinds.footers import checked_metadata
from voile.kinds.manifest import MANIFEST, SIGNATURE
from voile.kinds.opening import MISFITS, check_hashes
from voile.kinds.release import Release
from voile.kinds.signatures import SignatureCheck, SignatureReport, Trust, signatures_of
from voile.records import Record
from voile.signing import SignerSource


@dataclass(frozen=True)
class Verification(Record):
    """What was seen of a release. None: it does not apply, or could not be looked at."""

    json_keys: ClassVar[tuple[str, ...]] = (
        "release", "ok", "files", "rows", "whole", "terms", "rows_plausible", "signed_by",
        "signatures", "simulated", "unprotected", "problems",
    )  # fmt: skip

    release: str
    files: int | None = None
    rows: int | None = None
    whole: bool = False
    terms: bool | None = None
    rows_plausible: bool | None = None
    signed_by: str | bool | None = None
    """The fingerprint of a key; False: a signature is broken, revoked or not there as it should."""
    signatures: tuple[SignatureReport, ...] = ()
    simulated: bool | None = None
    unprotected: tuple[str, ...] = ()
    errors: tuple[ReleaseError, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in words."""
        return tuple(error.message for error in self.errors)

    @property
    def ok(self) -> bool:
        """Whether nothing that was looked at is wrong."""
        return not self.errors


def verify(
    path: str | Path | Release,
    *,
    signer: SignerSource | Iterable[SignerSource] | None = None,
    revoked: SignerSource | Iterable[SignerSource] | None = None,
) -> Release:
    """Check files, terms, rows and signatures; raises ReleaseError naming what is wrong.

    `signer` names keys that you trust, of which one must have signed the release: files of public
    keys, lines of such files, or fingerprints. `revoked` names those that are not trusted any more.
    """
    trust = Trust(signer, revoked)
    release = path if isinstance(path, Release) else Release.open(path, check=False)
    check(release)
    if errors := trust.check(release).errors:
        raise errors[0]
    return release


def check(release: Release, *, plausible: bool = True) -> None:
    """All checks, also of a folder that is still being written."""
    check_whole(release)
    signatures_of(release)
    with refusing_misfits():
        release.check_terms()
        if plausible:
            release.check_plausible()


def check_whole(release: Release) -> None:
    """Every byte is as it was sealed, and the files hold what they state."""
    check_files(release)
    with refusing_misfits():
        check_rows(release)


@contextmanager
def refusing_misfits() -> Iterator[None]:
    """Data of others in which one thing does not fit another are refused, and not our fault."""
    try:
        yield
    except (*MISFITS, pa.ArrowException) as error:
        raise ReleaseError(
            f"what the release states does not fit together: {type(error).__name__}: {error}"
        ) from error


def examine(
    path: str | Path,
    *,
    signer: SignerSource | Iterable[SignerSource] | None = None,
    revoked: SignerSource | Iterable[SignerSource] | None = None,
) -> Verification:
    """The same as a report: what was seen, one thing after the other, and what is wrong."""
    trust = Trust(signer, revoked)
    unsigned = None if trust.signers is None else False
    problems: list[ReleaseError] = []

    def passes(step: Callable[[], object]) -> bool:
        try:
            with refusing_misfits():
                step()
        except ReleaseError as error:
            problems.append(error)
            return False
        return True

    try:
        release = Release.open(path, check=False)
    except ReleaseError as error:
        return Verification(str(path), signed_by=unsigned, errors=(error,))
    whole = passes(lambda: check_whole(release))
    terms = plausible = None
    signed = SignatureCheck()
    if whole:  # else there is nothing that the rest could be about
        signed = trust.check(release)
        problems += signed.errors
        terms = passes(release.check_terms)
    if terms:
        looked_at: list[bool] = []
        plausible = passes(lambda: looked_at.append(release.check_plausible()))
        plausible = None if looked_at == [False] else plausible
    return Verification(
        release=str(path),
        files=len(release.manifest.files) + 1,
        rows=release.manifest.rows,
        whole=whole,
        terms=terms,
        rows_plausible=plausible,
        signed_by=signed.signed_by if whole else unsigned,
        signatures=signed.signatures,
        simulated=release.manifest.simulated,
        unprotected=tuple(release.unprotected),
        errors=tuple(problems),
    )


def check_files(release: Release) -> None:
    """Every file is named once and hashes as it should, and no other but signatures is there."""
    files = release.manifest.files
    named = {file.path for file in files}
    if len(named) < len(files):
        raise ReleaseError("manifest.json names a file twice")
    if SIGNATURE in named:
        raise ReleaseError(f"manifest.json names {SIGNATURE}, which is about the manifest")
    for file in files:
        if file.path.endswith(".parquet") != (file.rows is not None):
            raise ReleaseError(f"manifest.json: {file.path} must state its rows")
    check_hashes(release.path, files, trust=False)
    folders = {parent for path in named for parent in map(str, Path(path).parents)}
    for found in sorted(release.path.rglob("*")):
        relative = found.relative_to(release.path).as_posix()
        known = relative in folders if found.is_dir() else relative in named | {MANIFEST, SIGNATURE}
        if not known or found.is_symlink():
            raise ReleaseError(f"{relative} does not belong to the release")


def check_rows(release: Release) -> None:
    """The rows are as many as stated, have the schema's columns, and lie in its domain."""
    total = 0
    for file in release.manifest.files:
        if file.rows is None:
            continue
        wanted = release.columns_of(file.path)
        path = release.path / file.path
        metadata = checked_metadata(path, file.path, file.rows, pages=False)
        columns = metadata.schema.to_arrow_schema()
        if columns.names != wanted.names or columns.types != wanted.types:
            raise ReleaseError(f"{file.path} does not have the columns of the schema")
        total += file.rows if release.counts_rows(file.path) else 0
    if total != release.manifest.rows:
        raise ReleaseError(f"the release has {total} rows, not {release.manifest.rows}")
    if outside := release.foreign_attribute():
        raise ReleaseError(f"column {outside!r} has values outside the domain of the schema")
    release.check_contents()
