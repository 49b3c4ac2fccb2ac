"""Select-a-size: a basket shows some of its own items, and others that it does not hold.

Of a basket with s items, j are kept with chance select[s][j], all subsets of j items alike; the
rest are dropped, and each item that it does not hold is inserted with chance ρ.

How many are kept is decided by 128 bits against ⌊2¹²⁸·(select[s][0] + … + select[s][j])⌋, so that
each chance is off by less than 2⁻¹²⁷. Which ones: the items are gone through in order, and an item
is kept with chance (still to keep)/(still to come), which gives all subsets the same chance; the
numbers below `still to come` are exact by rejection. Insertions are 128-bit coins, at most ρ and
off by less than 2⁻¹²⁸.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from voile.noise.basket_kernels import DIGITS, perturb_baskets
from voile.noise.keyed import Stream

Bits = npt.NDArray[np.uint8]
HalfWords = npt.NDArray[np.uint32]

BATCH_WORDS = 2**15


def digits(chance: Fraction) -> list[int]:
    """⌊chance·2¹²⁸⌋ as half words, the highest first; at most 2¹²⁸ − 1."""
    number = min(int(chance * (1 << 128)), (1 << 128) - 1)
    return [number >> 32 * (DIGITS - 1 - digit) & 0xFFFFFFFF for digit in range(DIGITS)]


class BasketSampler:
    """Draws what is shown of baskets, by select[s][j] and ρ."""

    def __init__(self, select: Sequence[Sequence[Fraction]], insert: Fraction) -> None:
        """select[s] has the chances to keep 0, …, s items; what they lack of 1 is the last's."""
        self._last = np.array(
            [max(j for j, chance in enumerate(row) if chance) for row in select], dtype=np.int64
        )
        self._bounds = np.zeros((len(select), len(select), DIGITS), dtype=np.uint32)
        for size, row in enumerate(select):
            self._bounds[size, : size + 1] = [digits(total) for total in accumulate(row)]
        self._insert = np.array(digits(insert), dtype=np.uint32)

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
