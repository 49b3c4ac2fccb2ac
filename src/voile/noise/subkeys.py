"""Keys for some purposes alone, sealed for the way to whoever tosses their coins.

Work that is spread over machines needs coins there, and not the key of the release. What travels
are the keys of single purposes and indexes, encrypted; what opens them travels on another way, so
that a copy that is left behind on either way tells nothing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from typing import Protocol

from voile.noise.keyed import Key, Stream

NONCE = 12
"""Bytes of AES-GCM's nonce; a key seals once, so that any will do."""


class Streams(Protocol):
    """Where coins come from: the key itself, or the keys of the purposes that are needed."""

    def stream(self, purpose: str, index: int = 0) -> Stream:
        """The words of a purpose and an index."""
        ...


class Subkeys:
    """The keys of some purposes and indexes. Never printed."""

    __slots__ = ("_found",)

    def __init__(self, found: Mapping[str, bytes]) -> None:
        self._found = dict(found)

    @classmethod
    def of(cls, key: Key, purposes: Iterable[tuple[str, int]]) -> Subkeys:
        """Those of a release's key."""
        return cls({f"{name}/{index}": key.derived(name, index) for name, index in purposes})

    def stream(self, purpose: str, index: int = 0) -> Stream:
        """The words of a purpose and an index: those that the key itself gives."""
        return Stream(self._found[f"{purpose}/{index}"])

    def secret(self, label: str) -> bytes:
        """What goes by a label, and is no key of coins."""
        return self._found[label]

    def sealed(self) -> tuple[bytes, bytes]:
        """Encrypted, and what opens them."""
        from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415  (only to seal)
            AESGCM,
        )

        opener, nonce = AESGCM.generate_key(256), secrets.token_bytes(NONCE)
        text = json.dumps({label: found.hex() for label, found in self._found.items()}).encode()
        return nonce + AESGCM(opener).encrypt(nonce, text, None), opener

    @classmethod
    def opened(cls, sealed: bytes, opener: bytes) -> Subkeys:
        """What was sealed."""
        from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415  (only to open)
            AESGCM,
        )

        text = AESGCM(opener).decrypt(sealed[:NONCE], sealed[NONCE:], None)
        return cls({label: bytes.fromhex(found) for label, found in json.loads(text).items()})

    def __repr__(self) -> str:
        return f"Subkeys({len(self._found)} purposes)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("keys are not to be stored: they travel sealed")
