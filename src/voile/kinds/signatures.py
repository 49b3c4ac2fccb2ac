"""Signatures of a release: added without changing it, and checked.

They are in signature.json, which the manifest does not list: it is about the manifest's digest.
"""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from voile.errors import ReleaseError, UsageError, VoileError, spelled
from voile.files import sync
from voile.kinds.manifest import PARTIAL, SIGNATURE
from voile.kinds.registration import PENDING
from voile.kinds.release import Release
from voile.records import Record
from voile.signing import KeySource, Signature, SignerSource, SigningKey
from voile.signing.keys import Signers, read_signers
from voile.signing.statements import (
    LARGEST_FILE,
    MOST_SIGNATURES,
    SignatureFile,
    SignatureFileError,
    statement,
)
from voile.system import here as system

READABLE = 0o644
"""The rights of signature.json: all may read it."""
ASK = "ask whoever should vouch for it to sign it: voile sign RELEASE KEY"
BROKEN = (
    f"get the release anew from whoever published it; without {SIGNATURE} nobody vouches for it"
)


# ----------------------------------------------------------------------
# what is there


def signatures_of(release: Release) -> list[Signature]:
    """The signatures in a release, none if nobody has signed it; ReleaseError if one is broken."""
    found = stated_in(release)
    for one in found:
        if fault := fault_of(release, one):
            raise ReleaseError(fault, hint=BROKEN)
    return found


def stated_in(release: Release) -> list[Signature]:
    """What signature.json holds, whether or not it is true."""
    raw = read(release.path / SIGNATURE)
    if raw is None:
        return []
    try:
        return SignatureFile.parse(raw).signatures
    except SignatureFileError as error:
        raise ReleaseError(f"{SIGNATURE} is broken: {error}", hint=BROKEN) from None


def lost_signatures(target: Path, sign: SigningKey | None) -> tuple[str, ...]:
    """A note for whoever replaces a signed release by one that nobody has signed."""
    if sign is not None or not (target / SIGNATURE).exists():
        return ()
    try:
        names = ", ".join(one.signer for one in stated_in(Release.open(target, check=False)))
    except VoileError:
        names = "a key that cannot be read"
    return (
        f"the release that was replaced was signed by {names}; this one is not signed, and fails "
        f"where a signer is asked for: voile sign {shlex.quote(str(target))} KEY",
    )


def read(path: Path) -> bytes | None:
    """A file of at most so many bytes, None if there is none; never a link, a pipe or a folder."""
    try:
        state = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(state.st_mode):
        raise ReleaseError(f"{SIGNATURE} is not a file")
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ReleaseError(f"{SIGNATURE} cannot be read: {error.strerror}") from None


def fault_of(release: Release, signature: Signature) -> str:
    """Why this is no signature of this release; empty if it is one."""
    manifest = release.manifest
    if signature.digest != manifest.digest:
        return f"the signature of {signature.fingerprint} is of another release"
    if (signature.release_version, signature.simulated) != (manifest.version, manifest.simulated):
        return f"the signature of {signature.fingerprint} says other things than the manifest"
    fault = signature.fault()
    return fault and f"the signature of {signature.fingerprint} is broken: {fault}"


# ----------------------------------------------------------------------
# whose they are


@dataclass(frozen=True)
class SignatureReport(Record):
    """What is known of one signature."""

    fingerprint: str
    name: str
    when: str
    """By the signer's own clock."""
    valid: bool
    trusted: bool | None
    """Whether it is of one of the signers that were named; None: nobody was."""
    revoked: bool
    fault: str = ""

    @property
    def counts(self) -> bool:
        """Whether it says something to whoever verifies."""
        return self.valid and not self.revoked and self.trusted is not False


@dataclass(frozen=True)
class SignatureCheck:
    """All signatures of a release, and what is wrong with them."""

    signatures: tuple[SignatureReport, ...] = ()
    errors: tuple[ReleaseError, ...] = ()

    @property
    def signed_by(self) -> str | bool | None:
        """A key that vouches for the release; False: what should be there is not; None: nobody."""
        if self.errors:
            return False
        return next((one.fingerprint for one in self.signatures if one.counts), None)


class Trust:
    """Which signers are trusted, if that was said, and which keys are revoked."""

    def __init__(
        self,
        signer: SignerSource | Iterable[SignerSource] | None = None,
        revoked: SignerSource | Iterable[SignerSource] | None = None,
    ) -> None:
        self.signers: Signers | None = None if signer is None else read_signers(signer)
        self.revoked: Signers = (
            {} if revoked is None else read_signers(revoked, "revoked", empty=True)
        )

    def report(self, release: Release, signature: Signature) -> SignatureReport:
        """What is to be said of one signature."""
        fault = fault_of(release, signature)
        print_ = signature.fingerprint
        return SignatureReport(
            fingerprint=print_,
            name=signature.name,
            when=signature.when,
            valid=not fault,
            trusted=None if self.signers is None else print_ in self.signers,
            revoked=print_ in self.revoked,
            fault=fault,
        )

    def check(self, release: Release) -> SignatureCheck:
        """Every signature of a release, and what is wrong."""
        try:
            found = tuple(self.report(release, one) for one in stated_in(release))
        except ReleaseError as error:
            return SignatureCheck(errors=(error,))
        broken = [ReleaseError(one.fault, hint=BROKEN) for one in found if one.fault]
        return SignatureCheck(found, tuple(broken or self.missing(found)))

    def missing(self, found: tuple[SignatureReport, ...]) -> list[ReleaseError]:
        """What is wrong where every signature is sound."""
        if any(one.counts for one in found):
            return []
        expected = found if self.signers is None else [one for one in found if one.trusted]
        if revoked := [one.fingerprint for one in expected if one.revoked]:
            return [
                ReleaseError(
                    f"the key of the signature is revoked: {revoked[0]}",
                    hint="ask its owner to sign the release with another key",
                )
            ]
        if self.signers is None:
            return []
        if not found:
            return [ReleaseError("the release is not signed", hint=ASK)]
        others = ", ".join(one.fingerprint for one in found)
        return [
            ReleaseError(
                f"the release is not signed by {spelled('signer')}, but by {others}", hint=ASK
            )
        ]


# ----------------------------------------------------------------------
# signing


@dataclass(frozen=True)
class SignedRelease(Record):
    """A release that somebody has signed."""

    json_keys = (
        "release=release.path", "digest=release.manifest.digest", "signed_by", "name", "when",
        "simulated=release.manifest.simulated", "added", "signatures",
    )  # fmt: skip

    release: Release
    signed_by: str
    name: str
    when: str
    added: bool
    """False: this key had signed the release before, and nothing was done."""
    signatures: int
    """How many there are now."""


def sign(
    release: str | Path | Release, key: KeySource, *, passphrase: str | None = None
) -> SignedRelease:
    """Sign a release, which must verify; its digest and its files stay as they are.

    `key` is a file with an Ed25519 key, of ours or of OpenSSH, or a `SigningKey`. Signatures that
    are there stay there. A simulated release may be signed: the signature says that it is one.
    """
    from voile.kinds.verification import verify  # noqa: PLC0415  (it checks signatures)

    made = key if isinstance(key, SigningKey) else SigningKey.read(key, passphrase=passphrase)
    if isinstance(release, Release) and PENDING.of(release).registration is not None:
        raise UsageError(
            "a temporary release has another digest when it is saved and registered",
            hint=f"save it and sign what `save` returns, or publish it with {spelled('sign')}",
        )
    place = release.path if isinstance(release, Release) else Path(release)
    found = verify(place)
    with locked(found.path):
        kept = signatures_of(found)  # somebody may have signed meanwhile
        before = next((one for one in kept if one.fingerprint == made.fingerprint), None)
        if before is None:
            content = with_signature(found, kept, made)
            put_beside(found, content.content())
            kept, before = content.signatures, content.signatures[-1]
            added = True
        else:
            added = False
    return SignedRelease(found, before.fingerprint, before.name, before.when, added, len(kept))


def sign_written(release: Release, key: SigningKey) -> None:
    """Sign a release that is not in its place yet, and has been verified."""
    kept = signatures_of(release)
    if any(one.fingerprint == key.fingerprint for one in kept):
        return
    file = release.path / SIGNATURE
    file.write_bytes(with_signature(release, kept, key).content())
    file.chmod(READABLE)
    signatures_of(release)


def with_signature(release: Release, kept: list[Signature], key: SigningKey) -> SignatureFile:
    """The signatures that are there, and one more, read back as a stranger would."""
    if len(kept) == MOST_SIGNATURES:
        raise UsageError(
            f"the release has {MOST_SIGNATURES} signatures, and cannot have more",
            hint=f"delete {SIGNATURE}, and have those sign again who should",
        )
    manifest = release.manifest
    one = statement(
        key, digest=manifest.digest, version=manifest.version, simulated=manifest.simulated
    )
    made = SignatureFile.parse(SignatureFile(signatures=[*kept, one]).content())
    for each in made.signatures:
        if fault := fault_of(release, each):
            raise ReleaseError(fault, hint="nothing was signed; please report this")
    return made


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One signs at a time: each adds to what the others have written."""
    with system.folder_lock(folder) as same:
        if not same:
            raise UsageError(f"{str(folder)!r} was replaced meanwhile", hint="sign it again")
        yield


def put_beside(release: Release, content: bytes) -> None:
    """Write beside the release, then rename into it: in the release there is all of it or nothing.

    A killed run may leave `.NAME.partial-…` beside the release, as publishing does.
    """
    folder = release.path.resolve()
    target, beside = folder / SIGNATURE, None
    try:
        handle, beside = tempfile.mkstemp(
            prefix=f".{folder.name[:100]}{PARTIAL}", dir=folder.parent
        )
        with os.fdopen(handle, "wb") as file:
            system.set_rights(file.fileno(), READABLE)
            file.write(content)
            file.flush()
            system.flush(file.fileno())
        system.replace(Path(beside), target)
        sync(folder)
    except OSError as error:
        raise UsageError(
            f"cannot write {str(target)!r}: {error.strerror}",
            hint="copy the release to a folder of your own, and sign the copy",
        ) from None
    finally:
        if beside is not None:
            with suppress(OSError):
                Path(beside).unlink(missing_ok=True)
