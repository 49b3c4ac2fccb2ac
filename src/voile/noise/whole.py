"""Exact whole-number noise, from the operating system's secret bits.

Nothing here is rounded: a binomial is a count of fair bits (of very many, `many_coins`); discrete
Gaussian and geometric noise are OpenDP's. With a key, which is for simulation only, all are drawn
from the key's stream, the last two by inverting their distribution in floats.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from voile.arrays import Bools, Floats, Ints, Words
from voile.errors import UsageError, spelled
from voile.noise.keyed import Key, Stream

# ---------------------------------------------------------------------- very many coins
# The number of heads of very many fair coins, exactly and without tossing each.
#
# A proposal is a sign, a block i with chance 2⁻⁽ⁱ⁺¹⁾ and a place j in it, uniform among m > √R; it
# stands for x = i·m + j or for −1 − i·m − j. It is taken with chance 2ⁱ·C(R, R/2 + x)/C(R, R/2),
# which is at most 2ⁱ·exp(−i²) ≤ 1. So what is taken has the binomial law, but for what lies beyond
# i = 63, which is 128 standard deviations away. Whether a uniform u is below that chance is decided
# in floats where they suffice, else in decimals of 90 digits with 256 further bits of u.


MARGIN = 1e-9
"""Floats distinguish logarithms that differ by more; they err by less than 10⁻¹⁰."""
FURTHER = 256
"""Bits of u beyond the first 64, for the few that floats cannot decide."""
BERNOULLI = ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510),
             (43867, 798), (-174611, 330))  # fmt: skip
"""B₂, B₄, …, B₂₀, for Stirling's series."""


class WordSource(Protocol):
    """Uniform 64-bit words."""

    def words(self, count: int) -> Words:
        """So many words, independent of all before."""


def many_coins(
    coins: int, log_pmf: Callable[[Ints], Floats], count: int, source: WordSource
) -> Ints:
    """Heads less half the coins, for an even number of at least 2¹⁶ coins.

    `log_pmf` is the law's own, good to MARGIN/4 as far as its centre is 100 above.
    """
    found: list[Ints] = []
    missing = count
    while missing > 0:
        taken = _taken(coins, log_pmf, 4 * missing + 16, source)[:missing]
        found.append(taken)
        missing -= len(taken)
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def _taken(coins: int, log_pmf: Callable[[Ints], Floats], tries: int, source: WordSource) -> Ints:
    """Those of so many proposals that are taken."""
    x, block = _proposed(math.isqrt(coins) + 1, source.words(2 * tries))
    u = source.words(len(x))
    chance = block * math.log(2) + log_pmf(x) - log_pmf(np.zeros(1, dtype=np.int64))
    taken, unsure = _decided(chance, u)
    for i in np.flatnonzero(unsure):
        further = int.from_bytes(source.words(FURTHER // 64).tobytes(), "little")
        taken[i] = below((int(u[i]) << FURTHER) | further, int(block[i]), coins // 2, int(x[i]))
    return x[taken]


def _proposed(width: int, words: Words) -> tuple[Ints, Ints]:
    """Values, and their blocks. A word's first bit is the sign; its next zeros count blocks."""
    first, second = words.reshape(2, -1)
    signed = (first & np.uint64(1)).astype(np.bool_)
    zeros = first >> np.uint64(1)
    block = np.bitwise_count((zeros & (~zeros + np.uint64(1))) - np.uint64(1)).astype(np.int64)
    place = second & np.uint64((1 << width.bit_length()) - 1)
    here = (place < np.uint64(width)) & (zeros != 0)
    x = block * width + place.astype(np.int64)
    return np.where(signed, -1 - x, x)[here], block[here]


def _decided(chance: Floats, u: Words) -> tuple[Bools, Bools]:
    """Which of these u/2⁶⁴ are surely below e^chance, and for which floats do not suffice."""
    whole = u.astype(np.float64)
    with np.errstate(divide="ignore"):
        low = np.log(whole) - 64 * math.log(2)
    high = np.log(whole + 2) - 64 * math.log(2)
    sure = high + MARGIN < chance
    return sure, ~sure & (low - MARGIN < chance)


def below(u: int, block: int, half: int, x: int) -> bool:
    """Whether u/2³²⁰ < 2^block · C(2·half, half + x)/C(2·half, half), in decimals of 90 digits."""
    if abs(x) > half // 2:
        return False  # the chance is below 2⁻³²⁰, and u as good as never is
    with localcontext(Context(prec=90)):
        chance = 2 * _log_factorial(half) - _log_factorial(half + x) - _log_factorial(half - x)
        return u == 0 or Decimal(u).ln() - (64 + FURTHER) * Decimal(2).ln() < (
            block * Decimal(2).ln() + chance
        )


def _log_factorial(n: int) -> Decimal:
    """ln n! less ln √(2π), by Stirling's series; for n ≥ 2¹⁴ good to 10⁻⁷⁰."""
    z = Decimal(n)
    series = sum(
        (Decimal(top) / (bottom * 2 * k * (2 * k - 1)) / z ** (2 * k - 1)
         for k, (top, bottom) in enumerate(BERNOULLI, 1)),
        Decimal(0),
    )  # fmt: skip
    return z * z.ln() - z + z.ln() / 2 + series


# ---------------------------------------------------------------------- draws


BATCH = 2**18
"""Words of random bits that are counted at once."""
MANY = 2**16
"""From so many coins on, they are not tossed one by one."""
WIDE = 2**16
"""From this σ on, simulation rounds a normal draw, which errs by less than 1/σ²."""


class WholeNoiseLaw(Protocol):
    """What is read of a law of noise (voile.privacy.interactive.laws.NoiseLaw)."""

    @property
    def kind(self) -> str:
        """binomial, gaussian or geometric."""

    @property
    def parameter(self) -> int | float:
        """The number of coins, or the scale."""

    def log_pmf(self, values: npt.ArrayLike) -> Floats:
        """ln Pr[N = k] for each value."""


class SystemSource:
    """The operating system's own secret bits."""

    def words(self, count: int) -> Words:
        """So many words from `os.urandom`."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def draw(law: WholeNoiseLaw, count: int, key: Key | None = None) -> list[int]:
    """Independent draws. Without a key they are secret; a key is for simulation alone."""
    found: list[int] = drawn(law, count, key).tolist()
    return found


def drawn(law: WholeNoiseLaw, count: int, key: Key | None = None) -> Ints:
    """The same as an array."""
    stream = key.stream("whole noise") if key else None
    if law.kind == "binomial":
        return coin_tosses(law, count, stream or SystemSource())
    return simulated(law, count, stream) if stream else by_opendp(law, count)


def coin_tosses(law: WholeNoiseLaw, count: int, source: WordSource) -> Ints:
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


def by_opendp(law: WholeNoiseLaw, count: int) -> Ints:
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
            hint=f"pip install 'voile[dp]', or take {spelled('noise', 'binomial')}",
        ) from None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if kind == "gaussian":
        return dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), scale=scale)
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)


def simulated(law: WholeNoiseLaw, count: int, stream: Stream) -> Ints:
    """Discrete Gaussian or geometric draws that anyone with the seed can repeat."""
    scale = float(law.parameter)
    if law.kind == "geometric":
        one, other = (np.floor(-scale * np.log(_uniform(stream, count))) for _ in range(2))
        return np.asarray(one - other, dtype=np.int64)
    if scale >= WIDE:
        from scipy.special import ndtri  # noqa: PLC0415  (slow to import)

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
