"""Rows as codes, and sums over them of what is looked up by these codes.

What a row adds is a table over the domain of the few columns that it depends on, computed
beforehand; a row is looked up there by its codes. So no expression is ever computed on a row: the
same few steps are taken for each, whatever it holds, and nothing can fail or take longer on some.

Where the columns that a request reads have few tuples together, rows are counted by tuple once, in
a cube that is kept; sums are over its cells then. The sums are the same: a row's part is a whole
number that its tuple decides.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from voile.arrays import Bools, Floats, Ints
from voile.noise.keyed import Hashes
from voile.query.predicate import And, Or, folded
from voile.schema import Schema

BLOCK = 2**17
"""Rows that are looked up at a time."""
CELLS = 2**16
"""Of a cube at most."""
CUBES = 2**26
"""Bytes of the cubes that are kept."""


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
        self._cubes: OrderedDict[tuple[str, ...], Ints] = OrderedDict()
        self._kept = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.hashes)

    def totals(self, request: Sums) -> Ints:
        """(groups, summands), exact where no total reaches 2⁵³."""
        cube = self._cube(request)
        return self._by_row(request) if cube is None else cube.totals(request)

    def is_at_hand(self, request: Sums) -> bool:
        """Whether its totals take no look at the rows, only at a cube that is there."""
        with self._lock:
            return request.mask is None and self._columns_of(request) in self._cubes

    def _columns_of(self, request: Sums) -> tuple[str, ...]:
        return tuple(name for name in self._sizes if name in read_by(request))

    def _cube(self, request: Sums) -> Cube | None:
        """The rows by the columns that a request reads; None where these have many tuples."""
        columns = self._columns_of(request)
        sizes = tuple(self._sizes[name] for name in columns)
        if request.mask is not None or math.prod(sizes) > CELLS:
            return None
        with self._lock:
            if (found := self._cubes.get(columns)) is not None:
                self._cubes.move_to_end(columns)
                return Cube(columns, sizes, found)
        counts = np.zeros(math.prod(sizes), dtype=np.int64)
        for block in self._blocks():
            counts += np.bincount(self._places(columns, block), minlength=len(counts))
        with self._lock:
            self._keep(columns, counts)
        return Cube(columns, sizes, counts)

    def _keep(self, columns: tuple[str, ...], counts: Ints) -> None:
        """Keep a cube, and drop those that were not used for longest where there are too many."""
        self._kept += 0 if columns in self._cubes else counts.nbytes
        self._cubes[columns] = counts
        while self._kept > CUBES:
            _, dropped = self._cubes.popitem(last=False)
            self._kept -= dropped.nbytes

    def _by_row(self, request: Sums) -> Ints:
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
        return in_steps(summand, passing, [self._at(factor, block) for factor in summand.factors])


def in_steps(summand: Summand, passing: Bools, factors: Sequence[npt.NDArray[Any]]) -> Ints:
    """The product of factors in whole steps; 0 where it does not count."""
    product = np.ones(len(passing))
    for factor in factors:
        product *= factor
    counts = passing & ~np.isnan(product)
    steps = half_away(np.where(counts, product, 0.0) * summand.scale)
    return np.where(counts, np.clip(steps, summand.low, summand.high), 0)


@dataclass(frozen=True, eq=False)
class Cube:
    """How many rows have each tuple of some columns."""

    columns: tuple[str, ...]
    sizes: tuple[int, ...]
    counts: Ints
    """Row-major."""

    def totals(self, request: Sums) -> Ints:
        """What `CodedRows.totals` gives, from the tuples: each adds its part as often as it is."""
        found = np.zeros((request.groups, len(request.summands)), dtype=np.int64)
        passing = np.ones(len(self.counts), dtype=np.bool_)
        if request.where is not None:
            passing &= self._holds(request.where)
        cells = self._cells(request)
        for place, summand in enumerate(request.summands):
            parts = self.counts * self._parts(summand, passing)
            if cells is None:
                found[0, place] = parts.sum()
            else:
                np.add.at(found[:, place], cells[cells >= 0], parts[cells >= 0])
        return found

    def _cells(self, request: Sums) -> Ints | None:
        """The group of each tuple; −1 for none."""
        if request.cells is None:
            return None
        places = np.zeros(len(self.counts), dtype=np.int64)
        for key, size in zip(request.keys, request.sizes, strict=True):
            places *= size
            places += self._at(key)
        return request.cells[places]

    def _parts(self, summand: Summand, passing: Bools) -> Ints:
        if summand.only is not None:
            passing = passing & self._holds(summand.only)
        if not summand.factors:
            return passing.astype(np.int64)
        return in_steps(summand, passing, [self._at(factor) for factor in summand.factors])

    def _holds(self, tree: Tree) -> Bools:
        def holds(lookup: Lookup) -> Bools:
            return np.asarray(self._spread(lookup), dtype=np.bool_)

        every, some = partial(reduce, np.logical_and), partial(reduce, np.logical_or)
        held = folded(tree, holds, every, some)
        return np.broadcast_to(held, self.sizes).reshape(-1)

    def _at(self, lookup: Lookup) -> npt.NDArray[Any]:
        return np.broadcast_to(self._spread(lookup), self.sizes).reshape(-1)

    def _spread(self, lookup: Lookup) -> npt.NDArray[Any]:
        """A table with an axis for each column, 1 long where it does not depend on one."""
        own = (size if name in lookup.attributes else 1
               for name, size in zip(self.columns, self.sizes, strict=True))  # fmt: skip
        return lookup.table.reshape(tuple(own))


def read_by(request: Sums) -> set[str]:
    """The columns that a request reads."""
    trees = [request.where, *(summand.only for summand in request.summands)]
    found = {name for tree in trees if tree is not None for name in attributes_of(tree)}
    for lookups in (request.keys, *(summand.factors for summand in request.summands)):
        found.update(name for lookup in lookups for name in lookup.attributes)
    return found


def attributes_of(tree: Tree) -> Iterator[str]:
    """The columns that a condition reads, as often as it does."""
    if isinstance(tree, Lookup):
        yield from tree.attributes
    else:
        for part in tree.parts:
            yield from attributes_of(part)


def half_away(x: Floats) -> Ints:
    """To the nearest whole number, halves away from zero, as SQL rounds."""
    return np.asarray(np.copysign(np.floor(np.abs(x) + 0.5), x), dtype=np.int64)


def cells_of(sizes: tuple[int, ...], codes: tuple[Ints, ...]) -> Ints:
    """Which group each combination of keys is in, for groups that are listed by their codes."""
    found = np.full(math.prod(sizes), -1, dtype=np.int64)
    found[np.ravel_multi_index(codes, sizes)] = np.arange(len(codes[0]))
    return found
