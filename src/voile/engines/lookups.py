"""Rows as codes, and sums over them of what is looked up by these codes.

What a row adds is a table over the domain of the few columns that it depends on, computed
beforehand; a row is looked up there by its codes. So no expression is ever computed on a row: the
same few steps are taken for each, whatever it holds, and nothing can fail or take longer on some.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from voile.arrays import Bools, Floats, Ints
from voile.noise.keyed import Hashes
from voile.query.predicate import And, Or, folded
from voile.schema import Schema

BLOCK = 2**17
"""Rows that are looked up at a time."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """A function of some columns, by its value on each tuple of their domain, row-major."""

    attributes: tuple[str, ...]
    table: npt.NDArray[Any]


Tree = Union[Lookup, "And[Tree]", "Or[Tree]"]
"""A condition by what it is true of."""


@dataclass(frozen=True, eq=False)
class Summand:
    """What a row adds: 1, or the product of factors in whole steps; nothing where one is NaN."""

    only: Tree | None = None
    factors: tuple[Lookup, ...] = ()
    scale: float = 1.0
    low: int = 1
    high: int = 1


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the rows that pass, of each summand in each group."""

    summands: tuple[Summand, ...]
    where: Tree | None = None
    mask: int | None = None
    """Only rows of the public half with this mask."""
    keys: tuple[Lookup, ...] = ()
    """What groups are made by: numbers from 0 on."""
    sizes: tuple[int, ...] = ()
    """How many numbers each key has."""
    cells: Ints | None = None
    """The group of each combination of keys, row-major; −1 for none."""
    groups: int = 1


class CodedRows:
    """Rows by the codes of their values; read by any number of threads."""

    def __init__(
        self, schema: Schema, columns: Mapping[str, npt.NDArray[Any]], hashes: Hashes
    ) -> None:
        self._sizes = {attribute.name: attribute.size for attribute in schema}
        self._columns = columns
        self.hashes = hashes

    def __len__(self) -> int:
        return len(self.hashes)

    def totals(self, request: Sums) -> Ints:
        """(groups, summands), exact where no total reaches 2⁵³."""
        found = np.zeros((request.groups, len(request.summands)), dtype=np.int64)
        for block in self._blocks():
            passing = self._passing(request, block)
            cells = self._cells(request, block)
            if cells is not None:
                passing &= cells >= 0
            for place, summand in enumerate(request.summands):
                parts = self._parts(summand, passing, block)
                if cells is None:
                    found[0, place] += parts.sum()
                else:
                    here = np.where(passing, cells, 0)
                    sums = np.bincount(here, weights=parts, minlength=request.groups)
                    found[:, place] += sums.astype(np.int64)
        return found

    def _blocks(self) -> Iterator[slice]:
        return (slice(start, start + BLOCK) for start in range(0, len(self), BLOCK))

    def _passing(self, request: Sums, block: slice) -> Bools:
        passing = np.ones(len(self.hashes[block]), dtype=np.bool_)
        if request.where is not None:
            passing &= self._holds(request.where, block)
        if request.mask is not None:
            under = np.bitwise_count(self.hashes[block] & np.uint64(request.mask))
            passing &= (under & 1).astype(np.bool_)
        return passing

    def _holds(self, tree: Tree, block: slice) -> Bools:
        def holds(lookup: Lookup) -> Bools:
            return np.asarray(self._at(lookup, block), dtype=np.bool_)

        every, some = np.logical_and.reduce, np.logical_or.reduce
        return np.asarray(folded(tree, holds, every, some))

    def _at(self, lookup: Lookup, block: slice) -> npt.NDArray[Any]:
        return lookup.table[self._places(lookup.attributes, block)]

    def _places(self, attributes: tuple[str, ...], block: slice) -> Ints:
        """Of the rows' tuples among those of the columns' domain."""
        places = np.zeros(len(self.hashes[block]), dtype=np.int64)
        for name in attributes:
            places *= self._sizes[name]
            places += self._columns[name][block]
        return places

    def _cells(self, request: Sums, block: slice) -> Ints | None:
        if request.cells is None:
            return None
        places = np.zeros(len(self.hashes[block]), dtype=np.int64)
        for key, size in zip(request.keys, request.sizes, strict=True):
            places *= size
            places += self._at(key, block)
        return request.cells[places]

    def _parts(self, summand: Summand, passing: Bools, block: slice) -> Ints:
        """In steps, 0 for a row that does not count."""
        if summand.only is not None:
            passing = passing & self._holds(summand.only, block)
        if not summand.factors:
            return passing.astype(np.int64)
        product = np.ones(len(passing))
        for factor in summand.factors:
            product *= self._at(factor, block)
        counts = passing & ~np.isnan(product)
        steps = half_away(np.where(counts, product, 0.0) * summand.scale)
        return np.where(counts, np.clip(steps, summand.low, summand.high), 0)


def half_away(x: Floats) -> Ints:
    """To the nearest whole number, halves away from zero, as SQL rounds."""
    return np.asarray(np.copysign(np.floor(np.abs(x) + 0.5), x), dtype=np.int64)


def cells_of(sizes: tuple[int, ...], codes: tuple[Ints, ...]) -> Ints:
    """Which group each combination of keys is in, for groups that are listed by their codes."""
    found = np.full(math.prod(sizes), -1, dtype=np.int64)
    found[np.ravel_multi_index(codes, sizes)] = np.arange(len(codes[0]))
    return found
