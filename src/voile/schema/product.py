"""A product distribution over the domain: one distribution per attribute."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

BLOCK = 2**22
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

    def above(self, sizes: Sequence[int], least: float) -> list[Codes]:
        """The codes of the tuples with s(t) > least, in the order of D; fewer than 1/least."""
        chances = self.chances(sizes)
        rest = np.cumprod([1.0, *(float(p.max()) for p in reversed(chances))])[::-1]
        found: list[Codes] = []
        product = np.ones(1)
        for p, size, most in zip(chances, sizes, rest[1:], strict=True):
            before, value = products_above(product, np.broadcast_to(p, (size,)), least / most)
            found = [*(code[before] for code in found), value]
            product = product[before] * (p if len(p) == 1 else p[value])
        return found


def products_above(left: Floats, right: Floats, least: float) -> tuple[Codes, Codes]:
    """The pairs whose product exceeds `least`, a block of the left at a time."""
    rows = max(1, BLOCK // len(right))
    blocks = [
        np.nonzero(left[start : start + rows, None] * right > least)
        for start in range(0, len(left), rows)
    ]
    before = [i + start * rows for start, (i, _) in enumerate(blocks)]
    none = np.empty(0, dtype=np.int64)
    return np.concatenate([none, *before]), np.concatenate([none, *(v for _, v in blocks)])


def whole_parts(weights: Sequence[float]) -> tuple[int, ...]:
    """Weights as parts of 2³² that add up: rounded down, the rest to the largest remainders."""
    numbers = np.asarray(weights, dtype=np.float64)
    exact = numbers / numbers.sum() * PARTS
    parts = np.floor(exact).astype(np.int64)
    missing = int(PARTS - parts.sum())
    parts[np.argsort(parts - exact, kind="stable")[:missing]] += 1
    return tuple(parts.tolist())
