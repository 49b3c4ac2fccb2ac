"""Public pseudo-random halves of rows: who is in one follows from a public seed and a row's id.

A half is known to everybody: it hides nothing, and lets several servers that hold different columns
of the same people ask about the same people. An id is hashed once (`row_hashes`); a seed becomes a
mask of 64 bits; a row is in the half if an odd number of its hash's bits are under the mask. Over
random masks the memberships of any two rows are independent, and of any four but for those whose
hashes cancel, which random hashes do with chance 2⁻⁶⁴.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

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
