"""Secret, restartable randomness: every coin is a keyed function of a purpose and an index.

One 256-bit key per release comes from the operating system and is forgotten when the release is
written. A stream for (purpose, index) is the AES-256-CTR key stream under a key derived from the
three, so that work may be cut, retried and spread over threads and still toss the same coins.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from voile.arrays import Words


class Key:
    """The secret of one release. Never printed, never written."""

    __slots__ = ("_secret", "simulated")

    def __init__(self, secret: bytes, *, simulated: bool) -> None:
        if len(secret) != 32:
            raise ValueError(f"a key has 32 bytes, not {len(secret)}")
        self._secret = secret
        self.simulated = simulated

    @classmethod
    def fresh(cls) -> Key:
        """A new secret key from the operating system."""
        return cls(secrets.token_bytes(32), simulated=False)

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """A key that anyone who knows the seed can rebuild: for simulation only."""
        return cls(hashlib.sha256(f"voile simulation {seed}".encode()).digest(), simulated=True)

    def stream(self, purpose: str, index: int = 0) -> Stream:
        label = f"{purpose}/{index}".encode()
        return Stream(hmac.new(self._secret, label, hashlib.sha256).digest())

    def __repr__(self) -> str:
        return f"Key({'simulated' if self.simulated else 'secret'})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a key is not to be stored")


class Stream:
    """An endless sequence of uniform 64-bit words."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
        self._zeros = memoryview(b"")

    def words(self, count: int) -> Words:
        if len(self._zeros) < 8 * count:
            self._zeros = memoryview(bytes(8 * count))
        out = np.empty(count, dtype="<u8")
        self._cipher.update_into(self._zeros[: 8 * count], out.view(np.uint8).data)
        return out.astype(np.uint64, copy=False)
