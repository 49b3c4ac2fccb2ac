"""Exact whole-number noise, from the operating system's secret bits.

Nothing here is rounded: a binomial is a count of fair bits (of very many, `many_coins`); discrete
Gaussian and geometric noise are OpenDP's. With a key, which is for simulation only, all are drawn
from the key's stream, the last two by inverting their distribution in floats.
"""

from __future__ import annotations

import math
import os
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from voile.arrays import Floats, Ints, Words
from voile.errors import UsageError
from voile.noise.keyed import Key, Stream
from voile.noise.many_coins import Source, many_coins

BATCH = 2**18
"""Words of random bits that are counted at once."""
MANY = 2**16
"""From so many coins on, they are not tossed one by one."""
WIDE = 2**16
"""From this σ on, simulation rounds a normal draw, which errs by less than 1/σ²."""


class Law(Protocol):
    """What is read of a law of noise (voile.privacy.interactive.laws.NoiseLaw)."""

    @property
    def kind(self) -> str: ...

    @property
    def parameter(self) -> int | float: ...

    def log_pmf(self, values: npt.ArrayLike) -> Floats: ...


class System:
    """The operating system's own secret bits."""

    def words(self, count: int) -> Words:
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def draw(law: Law, count: int, key: Key | None = None) -> list[int]:
    """Independent draws. Without a key they are secret; a key is for simulation alone."""
    found: list[int] = drawn(law, count, key).tolist()
    return found


def drawn(law: Law, count: int, key: Key | None = None) -> Ints:
    """The same as an array."""
    stream = key.stream("whole noise") if key else None
    if law.kind == "binomial":
        return coin_tosses(law, count, stream or System())
    return simulated(law, count, stream) if stream else by_opendp(law, count)


def coin_tosses(law: Law, count: int, source: Source) -> Ints:
    """Heads of R fair coins less R/2."""
    coins = int(law.parameter)
    if coins >= MANY:
        return many_coins(coins, law.log_pmf, count, source)
    each, spare = -(-coins // 64), -coins % 64
    out = np.empty(count, dtype=np.int64)
    rows = max(1, BATCH // each)
    for start in range(0, count, rows):
        some = min(rows, count - start)
        words = source.words(some * each).reshape(some, each).copy()
        words[:, 0] >>= np.uint64(spare)
        out[start : start + some] = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return out - coins // 2


def by_opendp(law: Law, count: int) -> Ints:
    """OpenDP's exact samplers, added to zeros: 64 bits hold a thousand standard deviations."""
    noise = _measurement(law.kind, float(law.parameter))
    return np.array(noise([0] * count), dtype=np.int64)


@cache
def _measurement(kind: str, scale: float) -> Any:
    """OpenDP's noise on vectors of whole numbers; made once for every scale."""
    try:
        import opendp.prelude as dp  # noqa: PLC0415  (large, and an extra)
    except ImportError:
        raise UsageError(
            f"{kind} noise is drawn by OpenDP, which is not installed",
            hint="pip install 'voile[dp]', or take --noise binomial",
        ) from None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "gaussian":
        return dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=scale)
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)


def simulated(law: Law, count: int, stream: Stream) -> Ints:
    """Discrete Gaussian or geometric draws that anyone with the seed can repeat."""
    scale = float(law.parameter)
    if law.kind == "geometric":
        one, other = (np.floor(-scale * np.log(_uniform(stream, count))) for _ in range(2))
        return np.asarray(one - other, dtype=np.int64)
    if scale >= WIDE:
        return np.asarray(np.rint(scale * ndtri(_uniform(stream, count))), dtype=np.int64)
    far = math.ceil(12 * scale) + 2
    return inverted(np.exp(law.log_pmf(np.arange(-far, far + 1))), count, stream) - far


def inverted(masses: Floats, count: int, stream: Stream) -> Ints:
    """Places 0, 1, … drawn by their masses, from 53 bits each: for simulation."""
    below = np.cumsum(masses)
    return np.searchsorted(below[:-1] / below[-1], _uniform(stream, count), side="right")


def _uniform(stream: Stream, count: int) -> Floats:
    """In (0, 1): the middles of 2⁵² equal pieces."""
    middles = (stream.words(count) >> np.uint64(12)).astype(np.float64) + 0.5
    return np.asarray(middles * 2.0**-52)
