"""Rounded normal noise: round(σ·Z), Z standard normal, exactly, from uniform words.

x + round(σ·Z) = round(x + σ·Z) for a whole x. So adding this noise to whole figures is the Gaussian
mechanism on real numbers, rounded afterwards, and the exact account of that mechanism holds for
what is drawn.

|Z| is found by inversion of a uniform V = Pr[|Z| > z], of which 63 bits are drawn at first and one
more is the sign. The largest and the smallest V with these bits are inverted in floats; where both
round to the same whole number, with a margin for the floats, that is the draw. Otherwise V is
compared with Pr[|Z| > (k + ½)/σ] in decimals, with as many further bits as the comparison needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from functools import lru_cache, partial

import numpy as np

from voile.arrays import Floats, Ints, Words
from voile.noise.whole import WordSource

LARGEST_SCALE = 2.0**40
"""Beyond this, floats would decide too little, and figures come near to what 64 bits hold."""
MARGIN = 2e-14
"""What floats may err by, in parts of σ and of the value: 20 times what ndtri is known to err."""
BATCH = 2**20
"""Draws that are made at once."""
FARTHEST = 40.0
"""Where the search begins if all first bits of V are 0; it goes on from there if it must."""


def rounded_normal(scale: float, count: int, source: WordSource) -> Ints:
    """Independent draws of round(σ·Z); σ is the float itself, exactly."""
    check_scale(scale)
    found = [
        _drawn(scale, source.words(min(BATCH, count - start)), source)
        for start in range(0, count, BATCH)
    ]
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def check_scale(scale: float) -> None:
    """Refuse what no noise has as its scale."""
    if not 0 < scale <= LARGEST_SCALE:
        raise ValueError(f"a scale of noise is above 0 and at most 2⁴⁰, not {scale:g}")


def rounded_variance(scale: float) -> float:
    """The variance of round(σ·Z): Σ (2k + 1)·Pr[|Z| > (k + ½)/σ].

    From σ = 3 on it is σ² + 1/12, to a part of exp(−2π²σ²).
    """
    if scale >= 3:
        return scale * scale + 1 / 12
    return math.fsum((2 * k + 1) * math.erfc((k + 0.5) / scale / math.sqrt(2)) for k in range(128))


# ---------------------------------------------------------------------- decided in floats


def _drawn(scale: float, words: Words, source: WordSource) -> Ints:
    """One draw for each word."""
    first = words >> np.uint64(1)
    low, high = _bounds(scale, first)
    for i in np.flatnonzero((low < high) | (first == 0)):  # of V = 0, nothing bounds |Z| above
        uniform = Uniform(int(first[i]), 63, source)
        low[i] = searched(partial(_exceeds, scale, uniform), int(low[i]), int(high[i]))
    return np.where(words & np.uint64(1), -low, low)


def _bounds(scale: float, first: Words) -> tuple[Ints, Ints]:
    """Between which whole numbers |round(σ·Z)| lies, both included, given the first bits of V."""
    near = scale * _deviation(first + np.uint64(1)) + 0.5
    far = scale * _deviation(first) + 0.5
    low = np.maximum(near - MARGIN * (scale + near), 0)
    return (
        np.floor(low).astype(np.int64),
        np.floor(far + MARGIN * (scale + far)).astype(np.int64),
    )


def _deviation(first: Words) -> Floats:
    """z with Pr[|Z| > z] = V."""
    from scipy.special import ndtri  # noqa: PLC0415  (slow to import)

    z = -ndtri(np.minimum(first.astype(np.float64) * 2.0**-64, 0.5))
    return np.asarray(np.minimum(z, FARTHEST))


# ---------------------------------------------------------------------- decided in decimals


class Uniform:
    """A uniform number in (0, 1) of which more bits are drawn when they are needed."""

    def __init__(self, first: int, bits: int, source: WordSource) -> None:
        self.first, self.bits = first, bits
        self._source = source

    def extend(self) -> None:
        """64 further bits."""
        self.first = (self.first << 64) | int(self._source.words(1)[0])
        self.bits += 64

    def below(self, bound: Decimal, error: Decimal) -> bool | None:
        """Whether it is below a bound that may be off by `error`; None: its bits leave it open."""
        unit = Decimal(2) ** self.bits
        if (self.first + 1) / unit <= bound - error:
            return True
        return False if self.first / unit >= bound + error else None


def searched(exceeds: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number that the draw does not exceed; it is at least `low`."""
    while exceeds(high):
        low, high = high + 1, 2 * high + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if exceeds(middle) else (low, middle)
    return low


def _exceeds(scale: float, uniform: Uniform, k: int) -> bool:
    """Whether |σ·Z| > k + ½."""
    found = _compared(scale, uniform, k)
    while found is None:
        uniform.extend()
        found = _compared(scale, uniform, k)
    return found


def _compared(scale: float, uniform: Uniform, k: int) -> bool | None:
    """The same by the bits that are there; None where they leave it open."""
    rough = (k + 0.5) / scale
    if rough * rough / 2 > uniform.bits * math.log(2) + 2:  # the tail is below the last bit
        return False if uniform.first else None
    digits = decimals_for(uniform.bits)
    with localcontext(Context(prec=digits)):
        bound = 1 - _within(Decimal(2 * k + 1) / (2 * Decimal(scale)), digits)
        return uniform.below(bound, Decimal(10) ** (8 - digits))


def decimals_for(bits: int) -> int:
    """Digits that tell numbers apart that differ in the last of these bits."""
    return math.ceil(bits * math.log10(2)) + 14


def _within(b: Decimal, digits: int) -> Decimal:
    """Pr[|Z| ≤ b] = √(2/π)·b·exp(−b²/2)·Σ b²ⁿ/(2n + 1)!!, off by less than 10^(7 − digits).

    All terms are positive, so that each of the operations adds a relative 10^−digits at most; there
    are fewer than 10⁴. The sum ends where what is left is below the last term.
    """
    square = b * b
    term = total = Decimal(1)
    least = Decimal(10) ** -(digits + 1)
    odd = 1
    while odd <= 2 * square or term > total * least:
        odd += 2
        term = term * square / odd
        total += term
    density: Decimal = (2 / _pi(digits)).sqrt() * (-square / 2).exp()
    return density * b * total


@lru_cache(maxsize=16)
def _pi(digits: int) -> Decimal:
    """By Machin's formula, in whole numbers with ten digits to spare."""
    one: int = 10 ** (digits + 10)
    return Decimal(16 * _arctan(5, one) - 4 * _arctan(239, one)) / one


def _arctan(inverse: int, one: int) -> int:
    """arctan(1/x) in units of 1/one."""
    power, total, odd = one // inverse, 0, 1
    while power:
        total += power // odd if odd % 4 == 1 else -(power // odd)
        power //= inverse * inverse
        odd += 2
    return total
