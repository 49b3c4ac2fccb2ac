"""Keys of all kinds in files, as people have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from voile.signing import SigningKey
from voile.signing.openssh import BEGIN, END, MAGIC, packed, public_blob

PASSPHRASE = "correct horse"  # noqa: S105  (of keys that sign nothing)


def own(path: Path, name: str = "", passphrase: str | None = None) -> SigningKey:
    """A key of `voile keygen`, with its .pub."""
    key = SigningKey.new(name)
    key.save(path, passphrase=passphrase)
    return key


def openssh(path: Path) -> Path:
    """A key of OpenSSH without a passphrase, as `cryptography` writes it."""
    return written(path, ed25519.Ed25519PrivateKey.generate(), serialization.PrivateFormat.OpenSSH)


def of_type(path: Path, kind: str, form: str = "PKCS8") -> Path:
    """A key that is not Ed25519."""
    key = (
        rsa.generate_private_key(65537, 2048)
        if kind == "rsa"
        else ec.generate_private_key(ec.SECP256R1())
    )
    return written(path, key, getattr(serialization.PrivateFormat, form))


def written(path: Path, key: Any, form: serialization.PrivateFormat) -> Path:
    """The private key and, in .pub, the public one."""
    content = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    path.write_bytes(content)
    path.chmod(0o600)
    line = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    path.with_name(f"{path.name}.pub").write_bytes(line + b" a comment\n")
    return path


def container(cipher: str, derivation: str, options: bytes, raw: bytes, sealed: bytes) -> bytes:
    """A private key of OpenSSH, put together by hand."""
    import base64

    body = MAGIC + packed(cipher.encode()) + packed(derivation.encode()) + packed(options)
    body += (1).to_bytes(4, "big") + packed(public_blob(raw)) + packed(sealed)
    return BEGIN + b"\n" + base64.encodebytes(body) + END + b"\n"
