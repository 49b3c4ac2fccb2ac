"""Select-a-size for baskets: perturbed at home, supports of itemsets estimated without bias.

A basket shows how many items it holds. Of these it keeps j with chance select[s][j], any j of them
alike, and each item that it does not hold is inserted with chance ρ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import TableError, UsageError
from voile.noise.keyed import Stream
from voile.noise.select_a_size import BasketSampler
from voile.privacy.local import epsilon_of
from voile.reconstruct.baskets import amplification, support

Chance = float | Fraction
Bits = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.int64]

ROUNDING = 1e-12
"""By how much chances given as floats may miss 1; what is missing is shared in proportion."""


@dataclass(frozen=True)
class SelectASize:
    """`items` in all; select[s][j]: the chance that a basket of s items keeps j; `insert`: ρ.

    `select` goes as far as baskets are large: select[0] = (1,) up to at most select[items].
    """

    items: int
    select: tuple[tuple[Chance, ...], ...]
    insert: Chance

    def __post_init__(self) -> None:
        if not 1 <= len(self.select) <= self.items + 1:
            raise UsageError(
                f"select has {len(self.select)} sizes for baskets of {self.items} items",
                hint=f"give select[0] to at most select[{self.items}]",
            )
        for size, chances in enumerate(self.select):
            check_chances(size, chances)
        check_insert(self.insert)
        if self.insert and not self._sampler.insert:
            raise UsageError(
                f"items are inserted with chance {float(self.insert):g}, which 128 bits round to 0",
                hint="give 0, or at least 2⁻¹²⁸, about 3e-39; below it nothing would be promised",
            )

    @classmethod
    def cut_and_paste(cls, items: int, most: int, cutoff: int, insert: Chance) -> SelectASize:
        """For baskets of at most `most` items: keep j of them, j uniform in 0 … cutoff (or all
        of them, if there are fewer), then insert every other item, theirs too, with chance ρ.
        """
        if cutoff < 0 or most < 0:
            raise UsageError(
                f"a cutoff of {cutoff} items in baskets of at most {most}",
                hint="both are whole numbers that are not negative",
            )
        check_insert(insert)
        exact = Fraction(insert)
        rows = (cut_and_paste_chances(size, cutoff, exact) for size in range(most + 1))
        return cls(items, tuple(rows), insert)

    def perturb(self, baskets: npt.NDArray[Any], stream: Stream) -> Bits:
        """What the baskets show; a row for each, with 1 for the items that it holds."""
        bits = self._bits(baskets)
        self._check_sizes(bits.sum(axis=1, dtype=np.int64))
        return self._sampler.draw(bits, stream)

    def support(
        self, shown: npt.NDArray[Any], sizes: Codes, itemset: Sequence[int]
    ) -> tuple[float, float]:
        """How many baskets hold the itemset, without bias, and the variance of that estimate.

        `sizes`: how many items each basket holds, as it shows.
        """
        bits = self._bits(shown)
        self._check_sizes(sizes)
        if len(sizes) != len(bits):
            raise UsageError(
                f"{len(sizes)} sizes for {len(bits)} baskets", hint="one size for each basket"
            )
        wanted = sorted(set(itemset))
        if len(wanted) < len(itemset) or not set(wanted) <= set(range(self.items)):
            raise UsageError(
                f"{list(itemset)} is not an itemset",
                hint=f"give different numbers from 0 to {self.items - 1}",
            )
        seen = bits[:, wanted].sum(axis=1, dtype=np.int64)
        chances = [[float(chance) for chance in row] for row in self._sampler.select]
        insert = float(self._sampler.insert)
        return support(seen, sizes, len(wanted), self.items, chances, insert)

    def epsilon(self) -> float:
        """ln of how much likelier one basket makes what is seen than another of the same size.

        From the chances that are drawn, to the last bit, and rounded up. Sizes themselves are
        published, and nothing is promised about them.
        """
        return max(
            epsilon_of(amplification(row, self._sampler.insert, size, self.items))
            for size, row in enumerate(self._sampler.select)
        )

    @cached_property
    def _sampler(self) -> BasketSampler:
        return BasketSampler([summing_to_1(row) for row in self.select], Fraction(self.insert))

    def _bits(self, baskets: npt.NDArray[Any]) -> Bits:
        """The baskets as they are read here, or a refusal."""
        if baskets.ndim != 2 or baskets.shape[1] != self.items:
            raise TableError(
                f"baskets of shape {baskets.shape}, where there are {self.items} items",
                hint="one row for each basket and one column for each item",
            )
        bits = baskets.astype(np.uint8)
        wrong = np.flatnonzero(((bits != baskets) | (bits > 1)).any(axis=1))
        if len(wrong):
            row = baskets[wrong[0]]
            raise TableError(
                f"basket {wrong[0]} holds an item {row[(row != 0) & (row != 1)][0]} times",
                hint="1 where a basket holds an item, else 0",
            )
        return bits

    def _check_sizes(self, sizes: Codes) -> None:
        most = min(len(self.select) - 1, self.items)
        wrong = np.flatnonzero((sizes < 0) | (sizes > most))
        if len(wrong):
            raise TableError(
                f"basket {wrong[0]} holds {sizes[wrong[0]]} items; chances are given up to {most}",
                hint="give select for larger baskets, or leave items out of them",
            )


def check_insert(insert: Chance) -> None:
    """Refuse a chance to insert that is none."""
    if not 0 <= insert < 1:
        raise UsageError(
            f"items are inserted with chance {float(insert):g}",
            hint="a chance of at least 0 and below 1; 1 would show every item in every basket",
        )


def check_chances(size: int, chances: Sequence[Chance]) -> None:
    """A basket of s items keeps 0, …, s of them."""
    if len(chances) != size + 1:
        raise UsageError(
            f"select[{size}] has {len(chances)} chances",
            hint=f"a basket of {size} keeps 0 to {size} items: give {size + 1}",
        )
    total, least = float(sum(chances)), float(min(chances))
    if not (least >= 0 and abs(total - 1) <= ROUNDING):
        raise UsageError(
            f"select[{size}] sums to {total:.12g}, and its least chance is {least:g}",
            hint="chances are not negative and sum to 1",
        )


def summing_to_1(chances: Sequence[Chance]) -> list[Fraction]:
    """The same proportions, without what floats miss of 1."""
    exact = [Fraction(chance) for chance in chances]
    total = sum(exact)
    return [chance / total for chance in exact]


def cut_and_paste_chances(size: int, cutoff: int, insert: Fraction) -> tuple[Fraction, ...]:
    """That j of s items are kept in the end: i are cut, and j − i of the others come back."""
    return tuple(
        sum(
            (
                cut_chance(size, cutoff, cut)
                * comb(size - cut, kept - cut)
                * insert ** (kept - cut)
                * (1 - insert) ** (size - kept)
                for cut in range(min(cutoff, kept) + 1)
            ),
            Fraction(0),
        )
        for kept in range(size + 1)
    )


def cut_chance(size: int, cutoff: int, cut: int) -> Fraction:
    """That `cut` items are cut: numbers above the size count as the size."""
    ways = cutoff + 1 - size if cut == size else 1
    return Fraction(ways, cutoff + 1)
