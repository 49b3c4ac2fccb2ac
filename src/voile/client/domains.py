"""Public domains: the numbering of a column's values, in arithmetic that every language has.

Numbers are IEEE doubles; a date is the number of days since 1970-01-01. `encode` numbers the
values of an array and gives −1 to those outside; `decode` is its inverse on codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

LARGEST = 2**50
"""Bound of a grid's whole numbers. Up to it, encoding the value of a code gives the code back:
the operations of `Grid.encode` are together off by less than ½ (docs/mathematics, §22)."""


@dataclass(frozen=True)
class Grid:
    """The points (low + i·step)/per for i = 0, …, count − 1, of whole numbers low, step, per.

    A number between the first and the last point belongs to the nearest one, and half-way to
    the upper one, both by the arithmetic of doubles.
    """

    low: int
    step: int
    per: int
    count: int

    @property
    def high(self) -> int:
        return self.low + self.step * (self.count - 1)

    def encode(self, numbers: Numbers) -> Codes:
        inside = (numbers >= self.low / self.per) & (numbers <= self.high / self.per)
        with np.errstate(over="ignore"):
            place = numbers * self.per if self.per != 1 else numbers
            place = place - self.low
        if self.step != 1:
            place /= self.step
        place += 0.5
        np.floor(place, out=place)
        if not inside.all():
            place[~inside] = -1
        return place.astype(np.int64)

    def decode(self, codes: Codes) -> Numbers:
        return (self.low + codes * self.step) / np.float64(self.per)


@dataclass(frozen=True)
class Listed:
    """A list of different numbers, in the order of their codes."""

    numbers: tuple[float, ...]

    @property
    def count(self) -> int:
        return len(self.numbers)

    @cached_property
    def _table(self) -> Numbers:
        return np.array(self.numbers, dtype=np.float64)

    @cached_property
    def _order(self) -> npt.NDArray[np.intp]:
        return np.argsort(self._table)

    def encode(self, numbers: Numbers) -> Codes:
        places = np.searchsorted(self._table, numbers, sorter=self._order)
        codes = self._order[np.minimum(places, self.count - 1)].astype(np.int64)
        codes[self._table[codes] != numbers] = -1
        return codes

    def decode(self, codes: Codes) -> Numbers:
        return self._table[codes]


@dataclass(frozen=True)
class Edges:
    """Bins [e₀,e₁), [e₁,e₂), …, the last one closed; the value of a bin is (a + b)/2."""

    edges: tuple[float, ...]

    @property
    def count(self) -> int:
        return len(self.edges) - 1

    @cached_property
    def _table(self) -> Numbers:
        return np.array(self.edges, dtype=np.float64)

    def encode(self, numbers: Numbers) -> Codes:
        codes = np.searchsorted(self._table, numbers, side="right").astype(np.int64) - 1
        codes[numbers == self._table[-1]] = self.count - 1
        codes[~(numbers <= self._table[-1])] = -1
        return codes

    @cached_property
    def middles(self) -> Numbers:
        with np.errstate(over="ignore"):
            return (self._table[:-1] + self._table[1:]) / 2

    def decode(self, codes: Codes) -> Numbers:
        return self.middles[codes]


@dataclass(frozen=True)
class Texts:
    """A list of different texts; equal means the same Unicode characters."""

    texts: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.texts)

    @cached_property
    def places(self) -> Mapping[str, int]:
        return {text: code for code, text in enumerate(self.texts)}

    @cached_property
    def _table(self) -> npt.NDArray[Any]:
        return np.array(self.texts, dtype=object)

    def decode(self, codes: Codes) -> npt.NDArray[Any]:
        return self._table[codes]


Domain = Grid | Listed | Edges | Texts
"""The public values of a column, as a client needs them."""
