"""OpenSSH's files: private keys, also encrypted ones, and lines of public keys.

The format of private keys is in OpenSSH's PROTOCOL.key, that of public keys in RFC 8709.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass

ED25519 = "ssh-ed25519"
MAGIC = b"openssh-key-v1\0"
BEGIN, END = b"-----BEGIN OPENSSH PRIVATE KEY-----", b"-----END OPENSSH PRIVATE KEY-----"
CIPHERS = {"aes256-ctr": 32, "aes192-ctr": 24, "aes128-ctr": 16}
"""Ciphers by the bytes of their keys; OpenSSH writes the first unless another is asked for."""
MOST_ROUNDS = 10_000
"""Of deriving a key; OpenSSH uses 16 or 24, and so many take some minutes."""


class KeyFormatError(ValueError):
    """Bytes that are no key of this kind; the message says why."""


class WrongPassphraseError(ValueError):
    """The passphrase does not decrypt the key."""


# ----------------------------------------------------------------------
# public keys


def public_blob(raw: bytes) -> bytes:
    """A public key of 32 bytes as OpenSSH writes it, before base64."""
    return packed(ED25519.encode()) + packed(raw)


def raw_public(text: str) -> bytes:
    """The 32 bytes of a public key from its base64."""
    reader = WireReader(unbase64(text))
    kind, raw = reader.text(), reader.string()
    if kind != ED25519 or reader.left:
        raise KeyFormatError("the key is not an Ed25519 key")
    check_point(raw)
    return raw


PRIME = 2**255 - 19
CURVE = -121665 * pow(121666, -1, PRIME) % PRIME
"""d in -x² + y² = 1 + d·x²·y², the curve of Ed25519."""


def check_point(raw: bytes) -> None:
    """Refuse points under which anybody can sign, and second spellings of a point.

    A point is its y, and in the highest bit the sign of its x. Eight points have an order that
    divides 8: y = ±1 (orders 1 and 2), y = 0 (order 4), and those whose double has y = 0 (order 8),
    which is d·y⁴ + 2y² = 1. A signature under such a key may hold for any message.
    """
    if len(raw) != 32:
        raise KeyFormatError("the key is not an Ed25519 key")
    y = int.from_bytes(raw, "little") % 2**255
    if y >= PRIME:
        raise KeyFormatError("the key is not spelt as Ed25519 keys are")
    square = y * y % PRIME
    if not y * (square - 1) * (CURVE * square * square + 2 * square - 1) % PRIME:
        raise KeyFormatError("the key has a small order: anybody could sign with it")


def unbase64(text: str) -> bytes:
    """Bytes from base64 in its one spelling."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise KeyFormatError("it is not base64") from None
    if base64.b64encode(found).decode() != text:
        raise KeyFormatError("it is not base64 as one writes it")
    return found


KEY_TYPE = re.compile(r"(ssh|ecdsa|sk-ssh|sk-ecdsa|rsa)-[A-Za-z0-9@.-]+")
WORD = re.compile(r'(?:[^\s"]|"(?:\\.|[^"\\])*")+')
"""A word of a line; spaces between quotes belong to it."""


@dataclass(frozen=True)
class KeyLine:
    """A line of a file of public keys."""

    before: tuple[str, ...]
    """What stands in front: names and options."""
    kind: str
    key: str
    comment: str


def read_line(line: str) -> KeyLine | None:
    """A line of .pub, authorized_keys or allowed_signers; None if it is no such line."""
    found = list(WORD.finditer(line))
    for place, word in enumerate(found[:3]):
        if KEY_TYPE.fullmatch(word[0]) and place + 1 < len(found):
            key = found[place + 1]
            before = tuple(each[0] for each in found[:place])
            return KeyLine(before, word[0], key[0], line[key.end() :].strip())
    return None


def option_values(words: tuple[str, ...]) -> dict[str, str]:
    """The options among what stands in front of a key, by name, without their quotes."""
    parts = [part for word in words for part in re.findall(r'(?:[^,"]|"(?:\\.|[^"\\])*")+', word)]
    pairs = [part.partition("=") for part in parts]
    return {name.lower(): value.strip('"') for name, _, value in pairs}


# ----------------------------------------------------------------------
# private keys


@dataclass(frozen=True, repr=False)
class PrivateKeyFile:
    """What a file of OpenSSH holds: 32 secret bytes, the public key, and a comment."""

    seed: bytes
    public: bytes
    comment: str


def read_private(content: bytes, passphrase: Callable[[], bytes]) -> PrivateKeyFile:
    """Read a private key; `passphrase` is called only if it is encrypted."""
    reader = WireReader(armoured(content))
    reader.expect(MAGIC)
    cipher, derivation, options = reader.text(), reader.text(), reader.string()
    if reader.number() != 1:
        raise KeyFormatError("it holds several keys")
    public, sealed = reader.string(), reader.string()
    kind = WireReader(public).text()
    if kind != ED25519:
        raise KeyFormatError(f"it is a key of type {kind}")
    if cipher == "none":
        return opened(sealed, public)
    if cipher not in CIPHERS or derivation != "bcrypt":
        raise KeyFormatError(f"it is encrypted by {cipher}, not by {next(iter(CIPHERS))}")
    return opened(decrypted(sealed, cipher, options, passphrase()), public)


def armoured(content: bytes) -> bytes:
    """The bytes between BEGIN and END."""
    body = content.strip()
    if not (body.startswith(BEGIN) and body.endswith(END)):
        raise KeyFormatError("it does not end as it should")
    try:
        return base64.b64decode(b"".join(body[len(BEGIN) : -len(END)].split()), validate=True)
    except (binascii.Error, ValueError):
        raise KeyFormatError("it is not base64") from None


def decrypted(sealed: bytes, cipher: str, options: bytes, passphrase: bytes) -> bytes:
    """The private part, by a key that is derived from the passphrase."""
    import bcrypt  # noqa: PLC0415  (only to sign)
    from cryptography.hazmat.primitives.ciphers import (  # noqa: PLC0415
        Cipher,
        algorithms,
        modes,
    )

    reader = WireReader(options)
    salt, rounds = reader.string(), reader.number()
    if not 1 <= rounds <= MOST_ROUNDS:
        raise KeyFormatError(f"it asks for {rounds:,} rounds")
    size = CIPHERS[cipher]
    key = bcrypt.kdf(passphrase, salt, size + 16, rounds, ignore_few_rounds=True)
    stream = Cipher(algorithms.AES(key[:size]), modes.CTR(key[size:])).decryptor()
    found = stream.update(sealed) + stream.finalize()
    if found[:4] != found[4:8]:
        raise WrongPassphraseError
    return found


def opened(private: bytes, public: bytes) -> PrivateKeyFile:
    """The private part, whose two first numbers agree if it was decrypted rightly."""
    reader = WireReader(private)
    if reader.number() != reader.number():
        raise KeyFormatError("its check numbers differ")
    kind, raw, secret, comment = reader.text(), reader.string(), reader.string(), reader.string()
    padding = bytes(range(1, 1 + len(reader.left)))
    if kind != ED25519 or public_blob(raw) != public or secret[32:] != raw or len(secret) != 64:
        raise KeyFormatError("its halves do not belong together")
    if reader.left != padding:
        raise KeyFormatError("it does not end as it should")
    return PrivateKeyFile(secret[:32], raw, comment.decode("utf-8", "replace"))


# ----------------------------------------------------------------------
# strings with their lengths


def packed(data: bytes) -> bytes:
    """A string with its length in front."""
    return len(data).to_bytes(4, "big") + data


class WireReader:
    """Reads numbers and strings off bytes, which may be anything."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def take(self, count: int) -> bytes:
        """So many bytes."""
        if count > len(self.left):
            raise KeyFormatError("it is cut off")
        found, self.left = self.left[:count], self.left[count:]
        return found

    def expect(self, wanted: bytes) -> None:
        """These bytes."""
        if self.take(len(wanted)) != wanted:
            raise KeyFormatError("it does not begin as it should")

    def number(self) -> int:
        """A number of 32 bits."""
        return int.from_bytes(self.take(4), "big")

    def string(self) -> bytes:
        """Bytes with their length in front."""
        return self.take(self.number())

    def text(self) -> str:
        """The same, as ASCII."""
        return self.string().decode("ascii", "replace")
