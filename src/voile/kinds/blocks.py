"""What a release shows of its rows, as blocks of rows that are spread over values.

A block has so many rows of each sensitive value, and for each quasi-identifier it says which share
of them lies in a set of values, independently of the other columns. All estimates are sums over
blocks of rows × shares:

generalized    a class, spread evenly over its box
bucketized     the rows of a class that show the same values, with its sensitive values
perturbed      rows that show the same values, each share inverting the perturbation
a noisy view   rows that show the same values, and one block of minus the expected noise
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.privacy.divergence import shares
from voile.recoding.grouping import Shown
from voile.recoding.units import Codes
from voile.schema import Schema, TupleIndex

Orders = Sequence[Codes]
"""For each quasi-identifier the code at each position of its order."""
Sets = npt.NDArray[np.bool_]
"""(sets, codes): which values each set has."""
TOGETHER = 2**12
"""Blocks that are worked on at a time."""


class Blocks(Protocol):
    """Blocks of rows."""

    @property
    def counts(self) -> Floats:
        """(blocks, sensitive values): rows."""
        ...

    def shares(self, j: int, sets: Sets) -> Floats:
        """(sets, blocks): the share of each block's rows whose value of column j is in the set."""
        ...

    def by_value(self, j: int, size: int) -> Floats:
        """(codes, sensitive values): the rows that have each value of column j."""
        ...

    def merged(self, kind_of: Sequence[Codes]) -> Self:
        """Fewer blocks, with the same shares for all sets that do not part values of one kind."""
        ...

    def part(self, which: slice) -> Self:
        """Some of the blocks."""
        ...


RowBlocks = Sequence[Blocks]
"""All that a release shows of its rows: the sum of these."""
Told = RowBlocks
"""Its earlier name."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Rows spread evenly over intervals of positions."""

    counts: Floats
    low: Codes
    """(blocks, quasi-identifiers)"""
    high: Codes
    orders: Orders

    def shares(self, j: int, sets: Sets) -> Floats:
        """The share of each box's values that lie in each set."""
        before = np.zeros((len(sets), sets.shape[1] + 1), dtype=np.int32)
        np.cumsum(sets[:, self.orders[j]], axis=1, out=before[:, 1:])
        low, high = self.low[:, j], self.high[:, j] + 1
        found: Floats = (before[:, high] - before[:, low]) / (high - low)
        return found

    def by_value(self, j: int, size: int) -> Floats:
        """The rows of each value, where a box gives each of its values the same."""
        low, high = self.low[:, j], self.high[:, j]
        each = self.counts / (high - low + 1)[:, None]
        change = summed(low, each, size + 1) - summed(high + 1, each, size + 1)
        found = np.empty((size, each.shape[1]))
        found[self.orders[j]] = np.cumsum(change, axis=0)[:-1]
        return found

    def merged(self, kind_of: Sequence[Codes]) -> Boxes:  # noqa: ARG002  (boxes are few)
        """The same boxes."""
        return self

    def part(self, which: slice) -> Boxes:
        """Some of the boxes."""
        return replace(self, counts=self.counts[which], low=self.low[which], high=self.high[which])


@dataclass(frozen=True, eq=False)
class Inversion:
    """How the perturbation of a column is inverted: a row that shows v counts in a set Y for
    (1[v ∈ Y] − (1−p)·m(Y))/p, p the retention and m the replacing distribution."""

    retention: float
    masses: Floats


@dataclass(frozen=True, eq=False)
class Points:
    """Rows that show their values."""

    counts: Floats
    codes: Codes
    """(quasi-identifiers, blocks)"""
    inversions: tuple[Inversion | None, ...] = ()
    """For each quasi-identifier; none where all are shown as they are."""

    def shares(self, j: int, sets: Sets) -> Floats:
        """1 where the value lies in the set, else 0; inverted where it was perturbed."""
        inside = sets[:, self.codes[j]].astype(np.float64)
        inversion = self.inversions[j] if self.inversions else None
        if inversion is None:
            return inside
        drawn = (1 - inversion.retention) * (sets @ inversion.masses)
        found: Floats = (inside - drawn[:, None]) / inversion.retention
        return found

    def by_value(self, j: int, size: int) -> Floats:
        """The rows that show each value; inverted where they were perturbed."""
        found = summed(self.codes[j], self.counts, size)
        inversion = self.inversions[j] if self.inversions else None
        if inversion is None:
            return found
        drawn = (1 - inversion.retention) * np.outer(inversion.masses, self.counts.sum(axis=0))
        return (found - drawn) / inversion.retention

    def merged(self, kind_of: Sequence[Codes]) -> Points:
        """One block for all rows that show values of the same kinds."""
        kinds = [kind[codes] for kind, codes in zip(kind_of, self.codes, strict=True)]
        index = TupleIndex([int(kind.max()) + 1 for kind in kind_of])
        _, first, where = np.unique(index.encode(kinds), return_index=True, return_inverse=True)
        return replace(self, counts=summed(where, self.counts, len(first)),
                       codes=self.codes[:, first])  # fmt: skip

    def part(self, which: slice) -> Points:
        """Some of the blocks."""
        return replace(self, counts=self.counts[which], codes=self.codes[:, which])


@dataclass(frozen=True, eq=False)
class Products:
    """One block that is spread over each column by a distribution, None where evenly."""

    counts: Floats
    masses: tuple[Floats | None, ...]

    def shares(self, j: int, sets: Sets) -> Floats:
        """The mass of each set."""
        masses = self.masses[j]
        found: Floats = sets.mean(axis=1) if masses is None else sets @ masses
        return found[:, None]

    def by_value(self, j: int, size: int) -> Floats:
        """The rows of the block, spread over the values by their masses."""
        masses = self.masses[j]
        return np.outer(np.full(size, 1 / size) if masses is None else masses, self.counts)

    def merged(self, kind_of: Sequence[Codes]) -> Products:  # noqa: ARG002  (it is one)
        """The same block."""
        return self

    def part(self, which: slice) -> Products:  # noqa: ARG002
        """The same block."""
        return self


def class_blocks(shown: Shown, orders: Orders | None = None, attribute: int = 0) -> RowBlocks:
    """The blocks of classes; `orders` lead from the positions in `shown` to codes."""
    counts = shown.histograms.counts[attribute]
    in_order = orders or [np.arange(size, dtype=np.int32) for size in shown.sizes]
    if shown.recode == "generalize":
        return (Boxes(counts.astype(np.float64), shown.low, shown.high, in_order),)
    assert shown.cells is not None  # noqa: S101
    assert shown.cell_class is not None and shown.cell_rows is not None  # noqa: S101
    codes = np.stack([order[cells] for order, cells in zip(in_order, shown.cells, strict=True)])
    return (Points(shares(counts)[shown.cell_class] * shown.cell_rows[:, None], codes),)


told_by = class_blocks
"""Its earlier name."""


def summed(where: npt.NDArray[np.signedinteger], values: Floats, number: int) -> Floats:
    """(rows, any) → (number, any): the sums of the rows by where they belong."""
    return np.stack([np.bincount(where.ravel(), of, number) for of in values.T], axis=1)


def in_parts(blocks: Blocks) -> Sequence[Blocks]:
    """A few blocks at a time, so that what is computed for each stays small."""
    starts = range(0, len(blocks.counts), TOGETHER)
    return [blocks.part(slice(start, start + TOGETHER)) for start in starts]


def columns_of(schema: Schema, codes: Sequence[npt.NDArray[Any]], names: Sequence[str]) -> Codes:
    """The codes of some of a schema's columns, (columns, rows)."""
    by_name = dict(zip(schema.names, codes, strict=True))
    return np.stack([by_name[name].astype(np.int32) for name in names])


def points(rows: Codes, size: int, score: Floats) -> Points:
    """Rows by (quasi-identifiers and the sensitive column, rows), each worth its score."""
    index = TupleIndex([int(codes.max(initial=0)) + 1 for codes in rows[:-1]])
    _, first, cell = np.unique(
        index.encode(list(rows[:-1])), return_index=True, return_inverse=True
    )
    counts = np.bincount(cell * size + rows[-1], score, len(first) * size).astype(np.float64)
    return Points(counts.reshape(len(first), size), rows[:-1, first])


def evenly(amount: float, schema: Schema, qi: Sequence[str], sensitive: str) -> Products:
    """So many rows, spread evenly over the whole domain."""
    size = schema[sensitive].size
    return Products(np.full((1, size), amount / size), (None,) * len(qi))
