"""A product distribution over the domain: one distribution per attribute."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError

Codes = npt.NDArray[np.int64]

PARTS = 2**32
"""Chances of a value are whole parts of this, so that they are exact, and half a word decides."""


@dataclass(frozen=True)
class Product:
    """For each attribute, the chances of its values as parts of 2³²; None where all are alike."""

    parts: tuple[tuple[int, ...] | None, ...]

    def __post_init__(self) -> None:
        for parts in self.parts:
            if parts is not None and (min(parts) < 0 or sum(parts) != PARTS):
                raise UsageError("the parts of a distribution do not add up to 2³²")

    def chances(self, sizes: Sequence[int]) -> list[Floats]:
        """p_j of every value; a single number where all are alike."""
        return [
            np.array([1 / size]) if parts is None else np.array(parts) / PARTS
            for parts, size in zip(self.parts, sizes, strict=True)
        ]

    def least(self, sizes: Sequence[int]) -> Fraction:
        """The smallest s(t)."""
        return self._extreme(sizes, min)

    def most(self, sizes: Sequence[int]) -> Fraction:
        return self._extreme(sizes, max)

    def _extreme(self, sizes: Sequence[int], choose: Callable[[Iterable[int]], int]) -> Fraction:
        chosen = [
            Fraction(1, size) if parts is None else Fraction(choose(parts), PARTS)
            for parts, size in zip(self.parts, sizes, strict=True)
        ]
        return math.prod(chosen, start=Fraction(1))

    def above(self, sizes: Sequence[int], least: float, limit: int) -> list[Codes] | None:
        """The codes of the tuples with s(t) > least; None if there are more than `limit`.

        Attributes whose values are all alike come last and are not searched: either all of a
        tuple's values there will do, or none.
        """
        listed = [j for j, parts in enumerate(self.parts) if parts is not None]
        alike = [j for j, parts in enumerate(self.parts) if parts is None]
        chances = self.chances(sizes)
        rest = float(np.prod([chances[j].max() for j in range(len(sizes))], initial=1.0))
        product, found = np.ones(1), dict[int, Codes]()
        for j in listed:
            rest /= float(chances[j].max())
            before, value = products_above(product, chances[j], least / rest, limit)
            if len(value) > limit:
                return None
            found = {i: code[before] for i, code in found.items()}
            found[j] = value
            product = product[before] * chances[j][value]
        if not (product * rest > least).any():
            return [np.empty(0, np.int64) for _ in sizes]
        if len(product) * math.prod(sizes[j] for j in alike) > limit:
            return None
        for j in alike:
            repeated = np.repeat(np.arange(len(product)), sizes[j])
            found = {i: code[repeated] for i, code in found.items()}
            found[j] = np.tile(np.arange(sizes[j]), len(product))
            product = product[repeated]
        return [found[j] for j in range(len(sizes))]


def products_above(left: Floats, right: Floats, least: float, limit: int) -> tuple[Codes, Codes]:
    """The pairs whose product exceeds `least`; not all of them where there are more than `limit`.

    The right ones are taken from the largest down, so that only pairs that count are made.
    """
    order = np.argsort(-right, kind="stable")
    with np.errstate(divide="ignore"):
        counts = np.searchsorted(-right[order], -(least / left), side="left")
    upto = int(np.searchsorted(np.cumsum(counts), limit, side="right")) + 1
    counts = counts[:upto]
    before = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return before, order[np.arange(len(before)) - np.repeat(starts, counts)]


def whole_parts(weights: Sequence[float]) -> tuple[int, ...]:
    """Weights as parts of 2³² that add up: rounded down, the rest to the largest remainders."""
    numbers = np.asarray(weights, dtype=np.float64)
    exact = numbers / numbers.sum() * PARTS
    parts = np.floor(exact).astype(np.int64)
    missing = int(PARTS - parts.sum())
    parts[np.argsort(parts - exact, kind="stable")[:missing]] += 1
    return tuple(parts.tolist())
