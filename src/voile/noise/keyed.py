"""Secret, restartable randomness: every coin is a keyed function of a purpose and an index.

One 256-bit key per release comes from the operating system and is forgotten when the release is
written. A stream for (purpose, index) is the AES-256-CTR key stream under a key derived from the
three, so that work may be cut, retried and spread over threads and still toss the same coins.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

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
        """The words of a purpose and an index: the same whenever they are read."""
        return Stream(self.derived(purpose, index))

    def derived(self, purpose: str, index: int = 0) -> bytes:
        """32 secret bytes for a purpose and an index."""
        label = f"{purpose}/{index}".encode()
        return hmac.new(self._secret, label, hashlib.sha256).digest()

    def __repr__(self) -> str:
        return f"Key({'simulated' if self.simulated else 'secret'})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a key is not to be stored")


class Stream:
    """An endless sequence of uniform 64-bit words."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import (  # noqa: PLC0415  (only to draw)
            Cipher,
            algorithms,
            modes,
        )

        self._cipher = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
        self._zeros = memoryview(b"")

    def words(self, count: int) -> Words:
        """The next words of the stream."""
        if len(self._zeros) < 8 * count:
            self._zeros = memoryview(bytes(8 * count))
        out = np.empty(count, dtype="<u8")
        self._cipher.update_into(self._zeros[: 8 * count], out.view(np.uint8).data)
        return out.astype(np.uint64, copy=False)


# ---------------------------------------------------------------------- secret halves
# Secret halves of rows: which rows are on which side nobody learns, only counts of both sides.


Rows = npt.NDArray[np.int64]


def first_side(key: Key, half: int, rows: int) -> Rows:
    """The rows of the first side of a half: ⌈n/2⌉ of them, any such set equally likely.

    They are those with the smallest of n random words; that two words are the same, where the
    order would decide, has a chance of n²·2⁻⁶⁵.
    """
    words = key.stream("half", half).words(rows)
    count = -(-rows // 2)
    if count == rows:
        return np.arange(rows)
    return np.argpartition(words, count)[:count]


# ---------------------------------------------------------------------- public halves
# Public pseudo-random halves of rows: who is in one follows from a public seed and a row's id.
#
# A half is known to everybody: it hides nothing, and lets several servers that hold different
# columns of the same people answer about the same people. An id is hashed once (`row_hashes`); a
# seed becomes a mask of 64 bits; a row is in the half if an odd number of its hash's bits are
# under the mask. Over random masks the memberships of any two rows are independent, and of any
# four but for those whose hashes cancel, which random hashes do with chance 2⁻⁶⁴.


Hashes = npt.NDArray[np.uint64]


def id_hash(text: str) -> int:
    """Of one id, written as text: 64 bits of SHA-256. As a row's number, it is 0, 1, 2, …"""
    return int.from_bytes(hashlib.sha256(f"voile row {text}".encode()).digest()[:8], "big")


def row_hashes(ids: Iterable[object]) -> Hashes:
    """Hashes of ids as text; made once, when a table is taken in."""
    return np.fromiter((id_hash(str(one)) for one in ids), dtype=np.uint64)


def half_mask(seed: str) -> int:
    """The mask of the half that a public seed names."""
    return int.from_bytes(hashlib.sha256(f"voile half {seed}".encode()).digest()[:8], "big")


def members(hashes: Hashes, seed: str) -> npt.NDArray[np.bool_]:
    """Which rows are in the half."""
    under = np.bitwise_count(hashes & np.uint64(half_mask(seed)))
    return np.asarray(under & 1, dtype=np.bool_)


# ---------------------------------------------------------------------- coins of values


def value_words(key: Key, purpose: str, values: Iterable[bytes]) -> Words:
    """One uniform word for each value: HMAC of the purpose and the value, under the key."""
    derived = key.derived(purpose)
    found = b"".join(hmac.digest(derived, value, "sha256")[:8] for value in values)
    return np.frombuffer(found, dtype="<u8").astype(np.uint64)
