"""Mondrian's first cuts, from counts alone: for tables that are counted where they lie.

Which column of a node is cut where depends on how many rows lie at each position of each column,
with which sensitive values, and on nothing else. So the first nodes of the tree are cut by such
counts, one level after the other, until what is left of the table is small enough to be cut by
`mondrian.cut_further`. The cuts are the same: the counts of a column are lines that stand for many
rows, and the code that chooses is that of `growing`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from voile.compiled import compiled
from voile.privacy.requirements import Histograms, Requirement
from voile.privacy.requirements.rules import Rules, rules_of
from voile.recoding.grouping import check_one_class
from voile.recoding.growing import CutTree, all_meet, by_width, cuts_of
from voile.recoding.mondrian import least_rows, widen
from voile.recoding.nodes import Lines, extent, tally, workspace_for
from voile.recoding.units import Codes, Counts


class ColumnCounts(NamedTuple):
    """How many rows of a node lie at each position of one column, by their sensitive values."""

    positions: Codes
    sensitive: Codes
    """(sensitive attributes, positions); without lines where nothing reads them."""
    rows: Counts


NodeCounting = Callable[[CutTree, Mapping[int, int]], list[list[ColumnCounts]]]
"""Counts each column of some leaves of a tree, which are known by their nodes and rows."""


class CutBox(NamedTuple):
    """First and last positions, one of each column."""

    low: Counts
    high: Counts


@dataclass(frozen=True, eq=False)
class Leaf:
    """What the first cuts leave: a region that is still to be cut, or a class."""

    node: int
    rows: int
    box: CutBox
    """Of a region, what the cuts leave; of a class, the least that holds its rows."""
    counts: Counts | None = None
    """Of a class, how many rows have each sensitive value, one attribute after the other."""


@dataclass(frozen=True, eq=False)
class FirstCuts:
    """The first cuts of a table, and what they leave, from left to right."""

    tree: CutTree
    leaves: list[Leaf]
    rules: Rules
    overall: tuple[Counts, ...]
    """For each sensitive attribute that is read, how many rows have each value."""


def first_cuts(
    count: NodeCounting,
    rows: int,
    sizes: Sequence[int],
    sensitive_sizes: Sequence[int],
    requirements: Sequence[Requirement],
    breaks: Codes,
    fits: Callable[[int, CutBox], bool],
) -> FirstCuts:
    """Cut the table where Mondrian does, until every part fits or cannot be divided.

    `fits` says it of a region by its rows and its box. The whole table is counted in any case.

    Raises PromiseError if the class of all rows does not meet the requirements.
    """
    growth = Growth(np.array(sizes, dtype=np.int64), fits, rows)
    counted = count(growth.tree, growth.open)
    starts = np.cumsum([0, *sensitive_sizes], dtype=np.int64)
    whole = np.split(histogram(counted[0][0], starts), starts[1:-1]) if len(starts) > 1 else []
    overall = tuple(whole)
    each = tuple(counts[None] for counts in overall)
    check_one_class(Histograms(np.array([rows]), each, overall), requirements)
    rules, least = rules_of(requirements, overall), least_rows(requirements)
    while True:
        here, growth.open = growth.open, {}
        for node, columns in zip(here, counted, strict=True):
            column, cuts = chosen(columns, growth.sizes, starts, rules, least, breaks)
            if column < 0:
                growth.close(node, columns, histogram(columns[0], starts), breaks)
            else:
                growth.cut(node, column, cuts, columns[column])
        if not growth.open:
            return FirstCuts(growth.tree, growth.from_left(), rules, overall)
        counted = count(growth.tree, growth.open)


@dataclass(eq=False)
class Growth:
    """The tree while it grows."""

    sizes: Counts
    fits: Callable[[int, CutBox], bool]
    rows: int
    open: dict[int, int] = field(init=False)
    """Nodes that are to be counted next, with their rows."""

    def __post_init__(self) -> None:
        self.open = {0: self.rows}
        self._nodes = [(-1, -1, -1)]
        self._boxes = [CutBox(np.zeros_like(self.sizes), self.sizes - 1)]
        self._leaves: dict[int, Leaf] = {}

    @property
    def tree(self) -> CutTree:
        """The cuts so far."""
        return CutTree(*np.array(self._nodes, dtype=np.int32).T)

    def close(self, node: int, columns: list[ColumnCounts], counts: Counts, breaks: Codes) -> None:
        """No cut divides the node: it is a class."""
        low, high = (
            np.array([[end(of.positions) for of in columns]], dtype=np.int32)
            for end in (np.min, np.max)
        )
        widen(low, high, breaks)
        rows = int(columns[0].rows.sum())
        self._leaves[node] = Leaf(node, rows, CutBox(low[0], high[0]), counts)

    def cut(self, node: int, column: int, cuts: Counts, of: ColumnCounts) -> None:
        """Cut the node into one part more than there are cuts."""
        parts = []
        for place in cuts.tolist():
            left = len(self._nodes)
            self._nodes[node] = (column, place, left)
            low, high = self._boxes[node]
            below, above = high.copy(), low.copy()
            below[column], above[column] = place, place + 1
            self._nodes += [(-1, -1, -1)] * 2
            self._boxes += [CutBox(low, below), CutBox(above, high)]
            parts.append(left)
            node = left + 1
        for part in (*parts, node):
            box = self._boxes[part]
            inside = (of.positions >= box.low[column]) & (of.positions <= box.high[column])
            rows = int(of.rows[inside].sum())
            if self.fits(rows, box):
                self._leaves[part] = Leaf(part, rows, box)
            else:
                self.open[part] = rows

    def from_left(self) -> list[Leaf]:
        """All leaves, in the order in which Mondrian numbers classes."""
        found, stack = [], [0]
        while stack:
            node = stack.pop()
            column, _, child = self._nodes[node]
            if column < 0:
                found.append(self._leaves[node])
            else:
                stack += [child + 1, child]
        return found


def chosen(
    columns: Sequence[ColumnCounts],
    sizes: Counts,
    starts: Counts,
    rules: Rules,
    least: int,
    breaks: Codes,
) -> tuple[int, Counts]:
    """Which column Mondrian cuts, and where; −1 if no cut is allowed."""
    rows = int(columns[0].rows.sum())
    low, high = (
        np.array([end(of.positions) for of in columns], dtype=np.int64) for end in (np.min, np.max)
    )
    order = np.empty_like(sizes)
    tried = by_width(sizes, low, high, order) if rows >= 2 * least else 0
    for column in order[:tried].tolist():
        lines = lines_of(columns[column], int(sizes[column]), starts)
        cuts = allowed_cuts(lines, rows, np.ascontiguousarray(breaks[column : column + 1]), rules)
        if len(cuts):
            return column, cuts
    return -1, np.empty(0, np.int64)


def lines_of(of: ColumnCounts, size: int, starts: Counts) -> Lines:
    """Counts of one column as lines that stand for many rows."""
    return Lines(
        np.vstack([of.positions[None], of.sensitive]).astype(np.int32),
        np.arange(len(of.rows), dtype=np.int32),
        of.rows,
        np.zeros(0, dtype=np.int64),
        np.array([size], dtype=np.int64),
        starts,
    )


@compiled
def allowed_cuts(lines: Lines, rows: int, breaks: Codes, rules: Rules) -> Counts:
    """The cuts of the only column, if all parts meet the requirements; else none."""
    work, stop = workspace_for(lines), lines.unit.size
    tally(lines, 0, stop, work.node)
    extent(lines, 0, stop, True, work.low, work.high)
    number = cuts_of(lines, 0, stop, 0, rows, breaks, work)
    if not all_meet(lines, 0, stop, 0, number, rows, 0, rules, work):
        number = 0
    return work.cuts[:number].copy()


def histogram(of: ColumnCounts, starts: Counts) -> Counts:
    """How many rows have each sensitive value, one attribute after the other."""
    found = [
        np.bincount(codes, of.rows, last - first).astype(np.int64)
        for codes, (first, last) in zip(of.sensitive, pairwise(starts.tolist()), strict=True)
    ]
    return np.concatenate([*found, np.empty(0, np.int64)])
