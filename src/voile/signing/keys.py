"""Keys that sign releases: Ed25519, from files of ours (PKCS 8) or of OpenSSH."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from voile.errors import UsageError, spelled
from voile.files import sync
from voile.signing.openssh import (
    BEGIN,
    ED25519,
    KeyFormatError,
    WrongPassphraseError,
    check_point,
    option_values,
    public_blob,
    raw_public,
    read_line,
    read_private,
)
from voile.system import here as system

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

LARGEST_KEY = 2**16
"""Bytes of a private key's file; ours have a few hundred."""
LARGEST_LIST = 2**20
"""Bytes of a file of public keys: some ten thousand of them."""
LONGEST_NAME = 200
FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
NAMESPACE = "voile"
"""What `namespaces=` in an allowed_signers file must allow."""
PASSPHRASE, PASSPHRASE_FD = "VOILE_KEY_PASSPHRASE", "VOILE_KEY_PASSPHRASE_FD"
MAKE_ONE = "voile keygen KEY makes one that fits"
NAME_SIGNER = "give KEY.pub, an allowed_signers file, or SHA256:… as ssh-keygen -l shows it"
NAME_LIST = "give a file of revoked keys, such as SHA256:… on a line each; it may be empty"

Ask = Callable[[str], str]
"""Asks somebody for a passphrase; the argument is the question."""


# ----------------------------------------------------------------------
# public keys


@dataclass(frozen=True)
class PublicKey:
    """A public key, with the name of whoever has the private one."""

    raw: bytes
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        check_point(self.raw)

    @property
    def fingerprint(self) -> str:
        """As `ssh-keygen -l` shows it."""
        digest = hashlib.sha256(public_blob(self.raw)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def text(self) -> str:
        """The key as OpenSSH writes it, without a comment."""
        return f"{ED25519} {base64.b64encode(public_blob(self.raw)).decode()}"

    @property
    def line(self) -> str:
        """The line of a .pub file."""
        return f"{self.text} {self.name}".rstrip()

    @classmethod
    def parse(cls, text: str) -> PublicKey:
        """A key from `text`; KeyFormatError if it is none."""
        kind, _, key = text.partition(" ")
        if kind != ED25519:
            raise KeyFormatError(f"it is a key of type {kind}")
        return cls(raw_public(key))

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether the private key has signed this message."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  (only if signed)
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


# ----------------------------------------------------------------------
# keys that are trusted, or that are not any more


Signers = dict[str, str]
"""Names by fingerprints."""
SignerSource = str | Path | PublicKey
"""A file of public keys, a line of one, a fingerprint, or a key."""


def read_signers(
    given: SignerSource | Iterable[SignerSource], option: str = "signer", *, empty: bool = False
) -> Signers:
    """All keys that are given, by fingerprint. `empty` allows a file that names none."""
    sources = [given] if isinstance(given, str | Path | PublicKey) else list(given)
    found: Signers = {}
    for source in sources:
        found |= signers_in(source, option, empty=empty)
    if not (found or empty):
        raise UsageError(f"{spelled(option)} names no key", hint="give a file of public keys")
    return found


def signers_in(source: SignerSource, option: str, *, empty: bool) -> Signers:
    """The keys of one source."""
    if isinstance(source, PublicKey):
        return {source.fingerprint: source.name}
    text = str(source)
    if text.startswith(("SHA256:", "MD5:", f"{ED25519} ")):
        return signer_in_line(text, f"{spelled(option)} {text[:80]!r}", everywhere=empty)
    hint = NAME_LIST if empty else NAME_SIGNER
    if not text:
        raise UsageError(f"{spelled(option)} is empty", hint=hint)
    content = read_limited(Path(source), LARGEST_LIST, hint)
    if b"PRIVATE KEY-----" in content:
        raise UsageError(
            f"{text!r} is a private key",
            hint="give the public one, which is in KEY.pub; never hand out the private one",
        )
    if content.lstrip().startswith(b"-----BEGIN"):
        key = pem_public(content, text)
        return {key.fingerprint: key.name}
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise not_keys(text, "it is not text") from None
    return signers_in_lines(lines, text, empty=empty)


def signers_in_lines(lines: Sequence[str], file: str, *, empty: bool) -> Signers:
    """The Ed25519 keys of a file; others in it are passed over, unless there is nothing else."""
    found: Signers = {}
    other: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parsed = read_line(line)
        if parsed is not None and parsed.kind != ED25519:
            other.append(parsed.kind)
            continue
        found |= signer_in_line(line.strip(), f"line {number} of {file!r}", everywhere=empty)
    if other and not found and not empty:
        raise not_keys(file, f"it holds a key of type {other[0]}, and signatures are Ed25519")
    if not found and not empty:
        raise not_keys(file, "it names no key")
    return found


def signer_in_line(line: str, where: str, *, everywhere: bool) -> Signers:
    """The key or the fingerprint of a line; none where it is for another purpose."""
    first, _, rest = line.partition(" ")
    if FINGERPRINT.fullmatch(first):
        return {first: printable(rest.strip())}
    parsed = read_line(line)
    if parsed is None or parsed.kind != ED25519:
        raise UsageError(
            f"{where} is no Ed25519 public key and no fingerprint",
            hint="such as the line of KEY.pub, or SHA256:… as ssh-keygen -l shows it",
        )
    if parsed.before and parsed.before[0].startswith("@"):
        raise UsageError(
            f"{where} begins with {parsed.before[0]}, which Voile does not apply",
            hint="give the lines of keys that you trust, or that are revoked, and no others",
        )
    options = option_values(parsed.before)
    for refused in ("cert-authority", "valid-after", "valid-before"):
        if refused in options:
            raise UsageError(
                f"{where} has the option {refused}, which Voile does not apply",
                hint="give the key without it, if you trust the key for all releases",
            )
    restricted = "namespaces" in options and not everywhere  # a key is revoked for all purposes
    if restricted and not in_namespace(options["namespaces"]):
        return {}
    try:
        key = raw_public(parsed.key)
    except KeyFormatError as error:
        raise not_keys(where, str(error)) from None
    name = parsed.comment or " ".join(word for word in parsed.before if '"' not in word)
    return {PublicKey(key).fingerprint: printable(name)}


def in_namespace(patterns: str) -> bool:
    """Whether a list of patterns allows signatures of releases; `!` excludes, as in OpenSSH."""
    listed = [each.strip() for each in patterns.split(",")]
    if any(matches(each[1:]) for each in listed if each.startswith("!")):
        return False
    return any(matches(each) for each in listed)


def matches(pattern: str) -> bool:
    """Whether a pattern of OpenSSH, which knows * and ? only, is one of our namespace."""
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.fullmatch("".join(parts), NAMESPACE) is not None


def pem_public(content: bytes, file: str) -> PublicKey:
    """A public key in PEM, as OpenSSL writes it."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  (only to verify)
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    try:
        key = serialization.load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        raise not_keys(file, "its PEM cannot be read") from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise not_keys(file, f"it is a key of type {type_of(key)}, and signatures are Ed25519")
    try:
        return PublicKey(key.public_bytes_raw())
    except KeyFormatError as error:
        raise not_keys(file, str(error)) from None


def not_keys(file: str, reason: str) -> UsageError:
    """The error of a file without a public key."""
    shown = file if file.startswith(("line ", "--")) else repr(file)
    return UsageError(
        f"{shown} is not a public key that can be used: {reason}",
        hint=f"give KEY.pub, an allowed_signers file or SHA256:…; {MAKE_ONE}",
    )


# ----------------------------------------------------------------------
# private keys


@dataclass(frozen=True, repr=False, eq=False)
class SigningKey:
    """A private key that signs releases. Its text says which one it is, and nothing secret."""

    _private: Ed25519PrivateKey
    name: str

    @classmethod
    def new(cls, name: str = "") -> SigningKey:
        """A new key, from the operating system's randomness."""
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

        return cls(ed25519.Ed25519PrivateKey.generate(), checked_name(name))

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        passphrase: str | None = None,
        name: str | None = None,
        ask: Ask | None = None,
    ) -> SigningKey:
        """The key of a file, of ours or OpenSSH's.

        An encrypted one takes `passphrase`, or that of VOILE_KEY_PASSPHRASE, or of the file
        descriptor VOILE_KEY_PASSPHRASE_FD, or what `ask` returns. `name` is what signatures call
        the signer; else it is the comment of the key or of its .pub file.
        """
        file = Path(path)
        content = read_limited(file, LARGEST_KEY, MAKE_ONE)
        check_mode(file)
        private, comment = read_key(content, str(path), passphrase, ask)
        return cls(private, checked_name(name or printable(comment) or comment_beside(file)))

    @property
    def public(self) -> PublicKey:
        """The public key, which verifies what this one signs."""
        return PublicKey(self._private.public_key().public_bytes_raw(), self.name)

    @property
    def fingerprint(self) -> str:
        """Of the public key."""
        return self.public.fingerprint

    def sign(self, message: bytes) -> bytes:
        """64 bytes that only this key makes of the message."""
        return self._private.sign(message)

    def pem(self, passphrase: str | None = None) -> bytes:
        """The private key as PKCS 8 in PEM, encrypted where there is a passphrase."""
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

        return self._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(passphrase.encode())
            if passphrase
            else serialization.NoEncryption(),
        )

    def save(self, path: str | Path, *, passphrase: str | None = None) -> Path:
        """Write the key (0600) and its public half, `path`.pub; never over what exists."""
        file = Path(path)
        public = file.with_name(f"{file.name}.pub")
        for each in (file, public):
            if each.exists() or each.is_symlink():
                raise UsageError(
                    f"{str(each)!r} exists already, and a key is never overwritten",
                    hint="choose another name",
                )
        place_new(file, self.pem(passphrase), 0o600)
        try:
            place_new(public, f"{self.public.line}\n".encode(), 0o644)
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        return file

    def __repr__(self) -> str:
        return f"SigningKey({self.fingerprint}, {self.name!r})"

    def __reduce__(self) -> str:
        raise TypeError("a signing key is not pickled: it would lie in files and in messages")


KeySource = SigningKey | str | Path
"""A key, or the file that it is in."""


def signing_key(given: KeySource, *, ask: Ask | None = None) -> SigningKey:
    """The key itself."""
    return given if isinstance(given, SigningKey) else SigningKey.read(given, ask=ask)


def read_key(
    content: bytes, file: str, passphrase: str | None, ask: Ask | None
) -> tuple[Ed25519PrivateKey, str]:
    """The private key that a file holds, and its comment."""
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415  (only to sign)

    def secret() -> bytes:
        return passphrase_for(file, passphrase, ask)

    try:
        if content.lstrip().startswith(BEGIN):
            found = read_private(content, secret)
            private = ed25519.Ed25519PrivateKey.from_private_bytes(found.seed)
            if private.public_key().public_bytes_raw() != found.public:
                raise KeyFormatError("its halves do not belong together")
            return private, found.comment
        return pem_private(content, secret), ""
    except WrongPassphraseError:
        raise UsageError(
            f"the passphrase does not open {file!r}", hint="try again; nothing was signed"
        ) from None
    except KeyFormatError as error:
        raise UsageError(
            f"{file!r} is not a key that can sign: {error}",
            hint=f"an Ed25519 key is needed, in PEM or of OpenSSH; {MAKE_ONE}",
        ) from None


def pem_private(content: bytes, secret: Callable[[], bytes]) -> Ed25519PrivateKey:
    """A private key in PEM, as we and OpenSSL write it."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  (only to sign)
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    if b"PRIVATE KEY-----" not in content:
        kind = "a public key" if is_public(content) else "no key"
        raise KeyFormatError(f"it is {kind}")
    encrypted = b"ENCRYPTED" in content
    try:
        key = serialization.load_pem_private_key(content, secret() if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if encrypted and isinstance(error, ValueError):
            raise WrongPassphraseError from None
        raise KeyFormatError("its PEM cannot be read") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise KeyFormatError(f"it is a key of type {type_of(key)}")
    return key


def is_public(content: bytes) -> bool:
    """Whether somebody has given the public half by mistake."""
    line = content.decode("utf-8", "replace").strip()
    return b"PUBLIC KEY-----" in content or read_line(line.partition("\n")[0]) is not None


def type_of(key: object) -> str:
    """RSA, EC, …: what kind of key an object of `cryptography` is."""
    return re.sub("(Private|Public)Key$", "", type(key).__name__.lstrip("_"))


def passphrase_for(file: str, given: str | None, ask: Ask | None) -> bytes:
    """What opens an encrypted key, from whoever may say it."""
    if given is not None:
        return given.encode()
    if PASSPHRASE in os.environ:
        return os.environb[PASSPHRASE.encode()]
    if PASSPHRASE_FD in os.environ:
        return from_descriptor(os.environ[PASSPHRASE_FD])
    if ask is not None:
        return ask(f"Passphrase of {file}: ").encode()
    raise UsageError(
        f"there is no terminal to ask for the passphrase of {file}",
        hint=f"set {PASSPHRASE}, or {PASSPHRASE_FD} to the number of a file descriptor",
    )


def new_passphrase(ask: Ask | None) -> str:
    """A passphrase for a new key: from the environment, or asked for twice."""
    found = passphrase_for("the new key", None, ask).decode("utf-8", "surrogateescape")
    if not found:
        raise UsageError("an empty passphrase encrypts nothing", hint="choose another one")
    named = PASSPHRASE in os.environ or PASSPHRASE_FD in os.environ
    if not named and ask is not None and ask("The same again: ") != found:
        raise UsageError("the two passphrases differ", hint="try again; no key was made")
    return found


def from_descriptor(number: str) -> bytes:
    """The first line that a file descriptor gives."""
    try:
        with os.fdopen(int(number), "rb", closefd=False) as file:
            return file.readline(LARGEST_KEY).rstrip(b"\r\n")
    except (ValueError, OSError):
        raise UsageError(
            f"{PASSPHRASE_FD}={number!r} is no file descriptor that can be read",
            hint=f"{PASSPHRASE_FD}=3 voile sign R KEY 3< FILE",
        ) from None


# ----------------------------------------------------------------------
# files


def read_limited(path: Path, most: int, hint: str) -> bytes:
    """A file's bytes, if it is one of a size that makes sense."""
    try:
        content = read_regular(path, most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot read the key file {str(path)!r}: {reason}", hint=hint) from None
    if len(content) > most:
        raise UsageError(f"{str(path)!r} is too large to be a key", hint=hint)
    return content


def read_regular(path: Path, most: int) -> bytes:
    """The first bytes of a file; nothing else is waited for, such as a pipe or a terminal."""
    # A pipe without a writer opens at once, and is not read.
    handle = system.open_file(path)
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise ValueError("it is a folder" if stat.S_ISDIR(mode) else "it is no regular file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(handle)


def check_mode(path: Path) -> None:
    """Refuse a private key that others may read, as ssh does."""
    state = path.stat()
    if stat.S_ISREG(state.st_mode) and system.is_ours(state) and not system.is_private(state):
        raise UsageError(
            f"others may read {str(path)!r}: its permissions are {stat.S_IMODE(state.st_mode):04o}",
            hint=f"chmod 600 {path}; if others could read it, make a new key",
        )


def comment_beside(path: Path) -> str:
    """The comment in KEY.pub, where there is one."""
    with suppress(OSError, ValueError):
        content = read_regular(path.with_name(f"{path.name}.pub"), LARGEST_KEY)
        parsed = read_line(content.decode("utf-8").partition("\n")[0].strip())
        return printable(parsed.comment) if parsed else ""
    return ""


def printable(text: str) -> str:
    """A comment without what a terminal would take for a command, and not too long."""
    return "".join(c for c in text if c.isprintable())[:LONGEST_NAME].strip()


def checked_name(name: str) -> str:
    """A name as it may stand in a signature."""
    if printable(name) != name:
        raise UsageError(
            f"{name[:80]!r} cannot be the name of a signer",
            hint=f"use at most {LONGEST_NAME} printable characters",
        )
    return name


def place_new(path: Path, content: bytes, mode: int) -> None:
    """Write beside, then give it its name; fails where something has that name by then."""
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.absolute().parent)
        try:
            with os.fdopen(handle, "wb") as file:
                system.set_rights(file.fileno(), mode)
                file.write(content)
                file.flush()
                system.flush(file.fileno())
            system.place_new(Path(beside), path)
        finally:
            Path(beside).unlink(missing_ok=True)
        sync(path.absolute().parent)
    except OSError as error:
        raise UsageError(
            f"cannot write {str(path)!r}: {error.strerror}", hint="choose another place"
        ) from None
