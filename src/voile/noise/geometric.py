"""Two-sided geometric noise, Pr[X = k] in proportion to exp(−|k|/b), exactly, from uniform words.

X is the difference of two geometric draws G = ⌊−b·ln V⌋, so that Pr[G ≥ k] = exp(−k/b) exactly. G
is decided in floats where both ends of V's interval give the same whole number with a margin, else
in decimals with further bits of V.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from functools import partial

import numpy as np

from voile.arrays import Floats, Ints, Words
from voile.noise.normal import BATCH, MARGIN, Uniform, check_scale, decimals_for, searched
from voile.noise.whole import WordSource


def two_sided_geometric(scale: float, count: int, source: WordSource) -> Ints:
    """Independent draws; b is the float itself, exactly."""
    check_scale(scale)
    found: list[Ints] = []
    for start in range(0, count, BATCH):
        some = min(BATCH, count - start)
        one, other = (_drawn(scale, source.words(some), source) for _ in range(2))
        found.append(one - other)
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def geometric_variance(scale: float) -> float:
    """1/(2·sinh²(1/(2b)))."""
    half = 0.5 / scale
    return 0.0 if half > 350 else 1 / (2 * math.sinh(half) ** 2)


def _drawn(scale: float, first: Words, source: WordSource) -> Ints:
    """One geometric draw for each word."""
    low = np.floor(np.maximum(_lengths(scale, first, 1) * (1 - MARGIN) - MARGIN * (scale + 1), 0))
    high = np.floor(_lengths(scale, first, 0) * (1 + MARGIN) + MARGIN * (scale + 1))
    found = low.astype(np.int64)
    for i in np.flatnonzero((low < high) | (first == 0)):  # of V = 0, nothing bounds G above
        uniform = Uniform(int(first[i]), 64, source)
        found[i] = searched(partial(_exceeds, scale, uniform), int(low[i]), int(high[i]))
    return found


def _lengths(scale: float, first: Words, end: int) -> Floats:
    """−b·ln V at an end of V's interval; of V = 0 that of the least V which is not."""
    v = np.maximum(first.astype(np.float64) + end, 1.0)
    return np.asarray(scale * (64 * math.log(2) - np.log(v)))


def _exceeds(scale: float, uniform: Uniform, k: int) -> bool:
    """Whether G > k, which is G ≥ k + 1: V < exp(−(k + 1)/b)."""
    found = _compared(scale, uniform, k)
    while found is None:
        uniform.extend()
        found = _compared(scale, uniform, k)
    return found


def _compared(scale: float, uniform: Uniform, k: int) -> bool | None:
    """The same by the bits that are there; None where they leave it open."""
    if (k + 1) / scale > uniform.bits * math.log(2) + 2:  # the chance is below the last bit
        return False if uniform.first else None
    digits = decimals_for(uniform.bits)
    with localcontext(Context(prec=digits)):
        bound = (-Decimal(k + 1) / Decimal(scale)).exp()
        return uniform.below(bound, Decimal(10) ** (8 - digits))
