"""Select-a-size: a basket shows some of its own items, and others that it does not hold.

Of a basket with s items, j are kept with chance select[s][j], all subsets of j items alike; the
rest are dropped, and each item that it does not hold is inserted with chance ρ.

How many are kept is decided by b bits against ⌊2ᵇ·(select[s][0] + … + select[s][j])⌋; b is 128, or
more where chances are small, so that each is off by less than 2⁻⁶³ of itself. `select` and `insert`
of a sampler are the chances as they are drawn, for promises to be computed from. Which ones: the
items are gone through in order, and an item is kept with chance (still to keep)/(still to come),
which gives all subsets the same chance; the numbers below `still to come` are exact by rejection.
Insertions are 128-bit coins, at most ρ and off by less than 2⁻¹²⁸.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from voile.noise.kernels import DIGITS, perturb_baskets
from voile.noise.keyed import Stream

Bits = npt.NDArray[np.uint8]
HalfWords = npt.NDArray[np.uint32]

BATCH_WORDS = 2**15
SPARE_BITS = 64
"""So many more bits than the smallest chance needs."""


def bound_of(chance: Fraction, many: int) -> int:
    """⌊chance·2ᵇ⌋ for so many half words of b bits in all; at most 2ᵇ − 1."""
    limit = 1 << 32 * many
    return min(int(chance * limit), limit - 1)


def digits(chance: Fraction, many: int = DIGITS) -> list[int]:
    """The bound as half words, the highest first."""
    number = bound_of(chance, many)
    return [number >> 32 * (many - 1 - digit) & 0xFFFFFFFF for digit in range(many)]


def digits_for(select: Sequence[Sequence[Fraction]]) -> int:
    """Half words that distinguish the smallest chance from 0, with bits to spare."""
    smallest = min(chance for row in select for chance in row if chance)
    bits = SPARE_BITS + smallest.denominator.bit_length() - smallest.numerator.bit_length() + 1
    return max(DIGITS, -(-bits // 32))


def drawn_chances(chances: Sequence[Fraction], many: int) -> tuple[Fraction, ...]:
    """The chances that the bounds give: what is rounded off goes to the last that is not 0."""
    last = last_possible(chances)
    limit = 1 << 32 * many
    bounds = [bound_of(total, many) for total in accumulate(chances)]
    bounds[last:] = [limit] * (len(chances) - last)
    return tuple(Fraction(high - low, limit) for low, high in pairwise([0, *bounds]))


def last_possible(chances: Sequence[Fraction]) -> int:
    """The largest number of kept items that has a chance."""
    return max(j for j, chance in enumerate(chances) if chance)


class BasketSampler:
    """Draws what is shown of baskets, by select[s][j] and ρ, as near as bits come to them."""

    select: tuple[tuple[Fraction, ...], ...]
    insert: Fraction

    def __init__(self, select: Sequence[Sequence[Fraction]], insert: Fraction) -> None:
        """select[s] has the chances to keep 0, …, s items, and sums to 1."""
        many = digits_for(select)
        self._last = np.array(list(map(last_possible, select)), dtype=np.int64)
        self._bounds = np.zeros((len(select), len(select), many), dtype=np.uint32)
        for size, row in enumerate(select):
            self._bounds[size, : size + 1] = [digits(total, many) for total in accumulate(row)]
        self._insert = np.array(digits(insert), dtype=np.uint32)
        self.select = tuple(drawn_chances(row, many) for row in select)
        self.insert = Fraction(bound_of(insert, DIGITS), 1 << 32 * DIGITS)

    def draw(self, baskets: Bits, stream: Stream) -> Bits:
        """`baskets` has a row for each basket, with 1 for the items that it holds."""
        baskets = np.ascontiguousarray(baskets)
        out = np.empty_like(baskets)
        row, words = 0, np.empty(0, dtype=np.uint32)
        while row < len(baskets):
            words = np.concatenate([words, stream.words(BATCH_WORDS // 2).view(np.uint32)])
            row, used = perturb_baskets(
                baskets, out, row, self._bounds, self._last, self._insert, words
            )
            words = words[used:]
        return out
