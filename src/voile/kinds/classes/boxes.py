"""Sums over rows whose values lie somewhere in the box of their class.

Rows are independent, and within a row columns are: a value is drawn from its box. A unit is what
rows of one class and one shown cell have in common; the chances of its open cells are the product
of those of its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from voile.answering.columns import Flags
from voile.arrays import Floats, Ints
from voile.errors import QueryError
from voile.kinds.classes.cells import (
    CellQuery,
    ClassFigures,
    Extremes,
    Moments,
    OpenSums,
    Pairs,
    ratio_ends,
)

CHUNK = 2**21
"""Units times open cells at a time."""
MOST_WORK = 2**32
"""Units times open cells of one query."""
KEPT = 2**24
"""Units times open cells that are kept from one use to the next."""
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Block:
    """Units of one shown cell: the cells that count there, ordered by their groups."""

    line: int
    rows: Floats
    """(units,)"""
    chances: Floats
    """(units, open cells that count)"""
    possible: Ints
    """(units,): how many open cells a unit may be in, whether they count or not."""
    columns: Ints
    starts: Ints
    groups: Ints
    """Of each start."""


class ClassBoxes(OpenSums):
    """Totals of rows that lie somewhere in the box of their class."""

    def __init__(self, query: CellQuery, source: ClassFigures) -> None:
        self.query = query
        width = query.payoffs[0].shape[0] if query.payoffs else 1
        key = source.of_row.astype(np.int64) + query.shown * source.classes
        found, rows = counted(key, source.weights)
        self.line, self.of_class = np.divmod(found, source.classes)
        self.rows = rows.astype(np.float64)
        self.starts = np.searchsorted(self.line, np.arange(width + 1))
        self.open_cells = query.number.shape[1]
        if len(found) * self.open_cells > MOST_WORK:
            raise QueryError(
                f"{len(found):,} kinds of rows and {self.open_cells:,} combinations of values that "
                "the query distinguishes are too much",
                hint="read fewer columns at once, or group by coarser ones, as in floor(age / 10)",
            )

    def moments(self, pairs: Pairs) -> Moments:
        """Means and covariances, where each value of a box has its chance."""
        query = self.query
        means = np.zeros((len(query.groups), len(query.payoffs)))
        counted = np.zeros(means.shape)
        covariances, squares, sizes = (
            {pair: np.zeros(len(query.groups)) for pair in pairs} for _ in range(3)
        )
        for block in self.blocks():
            payoffs = [w[block.line, block.columns] for w in query.payoffs]
            each = [self._sums(block, w) for w in payoffs]
            for t, mean in enumerate(each):
                means[block.groups, t] += block.rows @ mean
                some = (payoffs[t] != 0).astype(np.float64)
                counted[block.groups, t] += block.rows @ self._sums(block, some)
            for t, u in pairs:
                square = self._sums(block, payoffs[t] * payoffs[u])
                found = block.rows @ (square - each[t] * each[u])
                covariances[t, u][block.groups] += found
                squares[t, u][block.groups] += block.rows @ square
                sizes[t, u][block.groups] += block.rows @ np.abs(square)
        for pair, found in covariances.items():
            found[np.abs(found) <= ROUNDING * sizes[pair]] = 0.0
        return Moments(means, covariances, squares, counted)

    def extremes(self, slope: Floats, *, terms: bool = False) -> Extremes:
        """The least and the most: each row takes the cell of its box that pays least, or most."""
        query = self.query
        ends = [np.zeros(slope.shape) for _ in range(2)]
        used = range(slope.shape[1]) if terms else np.flatnonzero(slope.any(axis=0))
        for block in self.blocks():
            weight = self._weight(block, slope)
            for side, sign in enumerate((1.0, -1.0)):
                at, taken = self._lowest(block, sign * weight)
                for t in used:
                    payoff = query.payoffs[t][block.line, block.columns]
                    ends[side][block.groups, t] += block.rows @ np.where(taken, payoff[at], 0.0)
        low, high = ((slope * end).sum(axis=1) for end in ends)
        return Extremes(low, high, ends[0], ends[1])

    def row_ratios(self, top: Floats, bottom: Floats) -> tuple[Floats, Floats]:
        """The lowest and highest ratio over all cells that a row may be in."""
        count = len(self.query.groups)
        low, high = np.full(count, np.inf), np.full(count, -np.inf)
        for block in self.blocks():
            seen = (block.chances > 0).any(axis=0)
            above, below = (self._weight(block, slope)[seen] for slope in (top, bottom))
            group = np.repeat(block.groups, lengths(block))[seen]
            least, most = ratio_ends(above, below, group, count)
            low, high = np.minimum(low, least), np.maximum(high, most)
        return low, high

    def _weight(self, block: Block, slope: Floats) -> Floats:
        """Σ slope·payoff at every cell of a block."""
        found = np.zeros(len(block.columns))
        for t in np.flatnonzero(slope.any(axis=0)):
            by_column = np.repeat(slope[block.groups, t], lengths(block))
            found += by_column * self.query.payoffs[t][block.line, block.columns]
        return found

    # ------------------------------------------------------------------ units

    def blocks(self) -> Iterator[Block]:
        """All units, a block at a time."""
        if self._kept is not None:
            yield from self._kept
        else:
            yield from self._made()

    @cached_property
    def _kept(self) -> list[Block] | None:
        small = len(self.rows) * self.open_cells <= KEPT
        return list(self._made()) if small else None

    def _made(self) -> Iterator[Block]:
        step = max(1, CHUNK // max(1, self.open_cells))
        for line in range(len(self.starts) - 1):
            number = self.query.number[line]
            columns = np.argsort(number, kind="stable")
            columns = columns[np.searchsorted(number[columns], 0) :]
            if not len(columns):
                continue
            groups, starts = np.unique(number[columns], return_index=True)
            for first in range(self.starts[line], self.starts[line + 1], step):
                units = slice(first, min(first + step, self.starts[line + 1]))
                chances = self._chances(units)
                possible = (chances > 0).sum(axis=1)
                yield Block(line, self.rows[units], chances[:, columns], possible, columns, starts,
                            groups)  # fmt: skip

    def _chances(self, units: slice) -> Floats:
        """The product of the columns' chances: (units, open cells)."""
        of_class = self.of_class[units]
        found = np.ones((len(of_class), 1))
        for weights in self.query.weights:
            found = (found[:, :, None] * weights[of_class][:, None, :]).reshape(len(of_class), -1)
        return found

    # ------------------------------------------------------------------ in a block

    @staticmethod
    def _sums(block: Block, payoff: Floats) -> Floats:
        """(units, groups of the block): the mean of a payoff."""
        return np.asarray(np.add.reduceat(block.chances * payoff, block.starts, axis=1))

    @staticmethod
    def _lowest(block: Block, weight: Floats) -> tuple[Ints, Flags]:
        """(units, groups): the possible cell of least weight, and whether it is to be taken.

        It is where its weight is below 0, which is what a row outside of the group adds, or where
        the unit is in the group for sure.
        """
        group = np.repeat(np.arange(len(block.groups)), lengths(block))
        order = np.lexsort((weight, group))
        possible = block.chances[:, order] > 0
        last = len(order) - 1
        places = np.where(possible, np.arange(last + 1), last + 1)
        first = np.minimum.reduceat(places, block.starts, axis=1)
        at = order[np.minimum(first, last)]
        inside = np.add.reduceat(possible.astype(np.int64), block.starts, axis=1)
        sure = inside == block.possible[:, None]
        return at, sure | ((first <= last) & (inside > 0) & (weight[at] < 0))


def counted(key: Ints, weights: Ints | None) -> tuple[Ints, Ints]:
    """The different keys, and how many rows have each."""
    if weights is None:
        return np.unique(key, return_counts=True)
    found, which = np.unique(key, return_inverse=True)
    return found, np.bincount(which, weights).astype(np.int64)


def lengths(block: Block) -> Ints:
    """How many cells of a block each of its groups has."""
    return np.diff(np.append(block.starts, len(block.columns)))
