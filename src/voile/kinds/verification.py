"""Checking a release: its files, what it states, and whether its rows can be what it says.

How a release was made cannot be seen from it. What can be seen is that its files are whole, that
what it promises follows from what it states, and that its rows are plausible under the mechanism
that it names. A signature says who vouches for the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from voile.errors import ReleaseError
from voile.kinds.manifest import DATA_PACKAGE, MANIFEST, README, SIGNATURE
from voile.kinds.opening import MISFITS, check_hashes, check_json
from voile.kinds.release import Release
from voile.kinds.signatures import SignatureCheck, SignatureReport, Trust, signatures_of
from voile.records import Record
from voile.signing import SignerSource

PACKAGE_KEYS = {"name", "title", "description", "resources"}
RESOURCE_KEYS = {"name", "title", "path", "format", "mediatype", "schema"}


@dataclass(frozen=True)
class Verification(Record):
    """What was seen of a release. None: it does not apply, or could not be looked at."""

    json_keys: ClassVar[tuple[str, ...]] = (
        "release", "ok", "files", "rows", "whole", "terms", "rows_plausible", "rows_unseen",
        "signed_by", "signatures", "simulated", "unprotected", "problems",
    )  # fmt: skip

    release: str
    files: int | None = None
    rows: int | None = None
    whole: bool = False
    terms: bool | None = None
    rows_plausible: bool | None = None
    rows_unseen: str | None = None
    """Why the rows were not looked at, where they could have been and were not."""
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
    engine: object = None,
) -> Release:
    """Check files, terms, rows and signatures; raises ReleaseError naming what is wrong.

    `signer` names keys that you trust, of which one must have signed the release: files of public
    keys, lines of such files, or fingerprints. `revoked` names those that are not trusted any more.
    `engine` counts the rows, and looks at files where they lie: see `Release.open`.
    """
    trust = Trust(signer, revoked)
    if isinstance(path, Release):
        release = path if engine is None else path.counted_by(engine)
    else:
        release = Release.open(path, check=False, engine=engine)
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
    engine: object = None,
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
        release = Release.open(path, check=False, engine=engine)
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
        seen: list[bool] = []
        plausible = passes(lambda: seen.append(release.check_plausible()))
        plausible = None if seen == [False] else plausible
    return Verification(
        release=str(path),
        files=len(release.manifest.files) + 1,
        rows=release.manifest.rows,
        whole=whole,
        terms=terms,
        rows_plausible=plausible,
        rows_unseen=release.unseen if terms and plausible is None else None,
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
    if not {README, DATA_PACKAGE} <= named:
        raise ReleaseError(f"manifest.json does not name {README} and {DATA_PACKAGE}")
    check_hashes(release.path, release.manifest, trust=False, but=release.left)
    check_package(release)
    known = named | {MANIFEST, SIGNATURE}
    if release.mirror is not None:
        from voile.kinds.stored import check_stored  # noqa: PLC0415  (most releases are folders)

        check_stored(release, known)
        return
    folders = {parent for path in named for parent in map(str, Path(path).parents)}
    for found in sorted(release.path.rglob("*")):
        relative = found.relative_to(release.path).as_posix()
        expected = relative in (folders if found.is_dir() else known)
        if not expected or found.is_symlink():
            raise ReleaseError(f"{relative} does not belong to the release")


def check_rows(release: Release) -> None:
    """The rows are as many as stated, have the schema's columns, and lie in its domain."""
    from voile.kinds.parts import check_part, part_terms  # noqa: PLC0415  (for verifying)

    total = 0
    for file in release.manifest.files:
        if file.rows is None:
            continue
        if file.path not in release.left:  # of those it was seen where they lie
            terms = part_terms(release, file, 0, thorough=True)
            check_part(release.path / file.path, terms, pages=False)
        total += file.rows if release.counts_rows(file.path) else 0
    if total != release.manifest.rows:
        raise ReleaseError(f"the release has {total} rows, not {release.manifest.rows}")
    if outside := release.foreign_attribute():
        raise ReleaseError(f"column {outside!r} has values outside the domain of the schema")
    release.check_contents()


def check_package(release: Release) -> None:
    """datapackage.json is about the release's own files, and holds no rows itself."""
    raw = (release.path / DATA_PACKAGE).read_bytes()
    check_json(raw, DATA_PACKAGE)
    try:
        package = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ReleaseError(f"{DATA_PACKAGE} is not JSON that can be read: {error}") from None
    listed = package.get("resources") if isinstance(package, dict) else None
    if not isinstance(listed, list) or not set(package) <= PACKAGE_KEYS:
        raise ReleaseError(f"{DATA_PACKAGE} is not the data package of a Voile release")
    paths: list[object] = []
    for resource in listed:
        if not isinstance(resource, dict) or not set(resource) <= RESOURCE_KEYS:
            raise ReleaseError(f"{DATA_PACKAGE} has a resource with more than Voile writes")
        named = resource.get("path")
        paths += named if isinstance(named, list) else [named]
    own = [file.path for file in release.manifest.files if file.rows is not None]
    if sorted(map(str, paths)) != sorted(own):
        other = next((p for p in paths if p not in own), "not all of them")
        raise ReleaseError(f"{DATA_PACKAGE} names other files than the release's: {other!r}")
