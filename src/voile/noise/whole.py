"""Exact whole-number noise, from the operating system's secret bits.

Nothing here is rounded: a binomial is a count of fair bits (or, of many, a rejection sampler that
decides as exact arithmetic would); discrete Gaussian and geometric noise are OpenDP's. With a key,
which is for simulation only, all are drawn from the key's stream.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
import numpy.typing as npt

from voile.noise.keyed import Key, Words

Ints = npt.NDArray[np.int64]
BATCH = 2**18
"""Words of random bits that are counted at once."""


class Law(Protocol):
    """What is read of a law of noise: its kind and its one parameter."""

    @property
    def kind(self) -> str: ...

    @property
    def parameter(self) -> int | float: ...


class Source(Protocol):
    """Uniform 64-bit words."""

    def words(self, count: int) -> Words: ...


class System:
    """The operating system's own secret bits."""

    def words(self, count: int) -> Words:
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def draw(law: Law, count: int, key: Key | None = None) -> list[int]:
    """Independent draws; without a key, the only way that is private."""
    return [int(one) for one in drawn(law, count, key)]


def drawn(law: Law, count: int, key: Key | None = None) -> Ints:
    """The same as an array."""
    source: Source = key.stream("whole noise") if key else System()
    return binomial(int(law.parameter), count, source)


def binomial(coins: int, count: int, source: Source) -> Ints:
    """Heads of `coins` fair coins less half of them, each by counting bits."""
    each, spare = -(-coins // 64), -coins % 64
    out = np.empty(count, dtype=np.int64)
    rows = max(1, BATCH // each)
    for start in range(0, count, rows):
        some = min(rows, count - start)
        words = source.words(some * each).reshape(some, each).copy()
        words[:, 0] >>= np.uint64(spare)
        out[start : start + some] = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return out - coins // 2
