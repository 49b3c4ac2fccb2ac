"""Counting the classes of full-domain generalization from those of a finer one.

At chosen levels a class is all rows with the same nodes. Its counts are sums of the counts of any
finer levels, so that rows are looked at only once.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, get_args

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError, did_you_mean
from voile.options import choices
from voile.privacy.requirements import AlphaK, Histograms, K, L, Presence, Requirement
from voile.recoding.units import Codes, Counts, Units
from voile.schema.hierarchy import Levels

Numbers = npt.NDArray[np.int64]
Node = tuple[int, ...]
"""The level of each quasi-identifier."""

LARGEST_KEY = 2**62
KEPT_NUMBERS = 2**24
"""How many numbers of finer counts are kept to sum up from."""


@dataclass(frozen=True, eq=False)
class LevelCells:
    """The classes at some levels: their nodes and what they count."""

    levels: Node
    nodes: Codes
    """(quasi-identifiers, classes): the number of the node at its level."""
    rows: Counts
    population: Counts | None
    counts: tuple[Counts, ...]
    """For each sensitive attribute (classes, values)."""

    @property
    def number(self) -> int:
        """How many classes there are."""
        return len(self.rows)

    @property
    def numbers(self) -> int:
        """How many numbers are stored."""
        return self.nodes.size + sum(counts.size for counts in self.counts)


class RollUp:
    """Counts at any levels, from the smallest finer ones that were kept."""

    def __init__(self, units: Units, levels: Sequence[Levels]) -> None:
        self._units = units
        self._levels = levels
        heights = [found.height for found in levels]
        self._parents = [
            [parents(found, fine) for fine in range(height + 1)]
            for found, height in zip(levels, heights, strict=True)
        ]
        nodes, self.cell_of_unit = distinct(units.codes, units.sizes)
        self._cells = nodes
        self._kept: list[LevelCells] = []
        self._capacity = KEPT_NUMBERS

    def cells(self, levels: Node) -> LevelCells:
        """The classes at these levels."""
        finer = [kept for kept in self._kept if all(map(int.__le__, kept.levels, levels))]
        source = min(finer, key=lambda kept: kept.number, default=None)
        found = self._from_units(levels) if source is None else self._summed(source, levels)
        if source is not found and found.numbers <= self._capacity:
            self._kept.append(found)
            self._capacity -= found.numbers
        return found

    def class_of_unit(self, levels: Node) -> tuple[Codes, Codes]:
        """The nodes of each class at these levels, and the class of each unit."""
        nodes, of_cell = distinct(self._generalized(self._cells, None, levels), self._sizes(levels))
        return nodes, of_cell[self.cell_of_unit]

    def _from_units(self, levels: Node) -> LevelCells:
        nodes, classes = self.class_of_unit(levels)
        found = self._units.histograms(classes, nodes.shape[1])
        return LevelCells(levels, nodes, found.rows, found.population, found.counts)

    def _summed(self, source: LevelCells, levels: Node) -> LevelCells:
        if source.levels == levels:
            return source
        coarser = self._generalized(source.nodes, source.levels, levels)
        nodes, classes = distinct(coarser, self._sizes(levels))
        order = np.argsort(classes, kind="stable")
        starts = np.searchsorted(classes[order], np.arange(nodes.shape[1]))
        population = source.population

        def summed(counts: Counts) -> Counts:
            return np.add.reduceat(counts[order], starts, axis=0)

        return LevelCells(
            levels,
            nodes,
            summed(source.rows),
            None if population is None else summed(population),
            tuple(summed(counts) for counts in source.counts),
        )

    def _generalized(self, nodes: Codes, from_levels: Node | None, levels: Node) -> Codes:
        fine = from_levels or (0,) * len(levels)
        return np.array(
            [
                self._parents[j][fine[j]][coarse][line]
                for j, (line, coarse) in enumerate(zip(nodes, levels, strict=True))
            ],
            dtype=np.int32,
        ).reshape(nodes.shape)

    def _sizes(self, levels: Node) -> list[int]:
        return [len(f.labels[level]) for f, level in zip(self._levels, levels, strict=True)]


def parents(levels: Levels, fine: int) -> dict[int, Codes]:
    """For each coarser level, the node there of every node of the fine level."""
    _, member = np.unique(levels.nodes[fine], return_index=True)
    return {level: levels.nodes[level][member] for level in range(fine, levels.height + 1)}


def distinct(columns: Codes, sizes: Sequence[int]) -> tuple[Codes, Codes]:
    """The different combinations in columns of numbers, and for each place which one it has."""
    number = columns.shape[1]
    keys, span = np.zeros(number, dtype=np.int64), 1
    for codes, size in zip(columns, sizes, strict=True):
        if span * size > LARGEST_KEY:
            found, keys = np.unique(keys, return_inverse=True)
            span = len(found)
        keys = keys * size + codes
        span *= size
    if span <= 4 * number:
        first = np.full(span, -1, dtype=np.int64)
        first[keys[::-1]] = np.arange(number - 1, -1, -1)
        present = first >= 0
        which = (np.cumsum(present) - 1)[keys]
        return np.ascontiguousarray(columns[:, first[present]]), which.astype(np.int32)
    _, index, which = np.unique(keys, return_index=True, return_inverse=True)
    return np.ascontiguousarray(columns[:, index]), which.astype(np.int32)


# ---------------------------------------------------------------------- which levels may be shown
# Whether classes at some levels may be shown, and which rows must be suppressed for it.


Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Verdict:
    """Whether classes at some levels may be shown, and which of them."""

    kept: Truths
    """(classes,): those that are shown."""
    feasible: bool
    hopeless: bool
    """Whether finer levels are known to be infeasible too."""


class Judge:
    """Decides whether classes may be shown, by the requirements and the limit of suppression."""

    def __init__(
        self, units: Units, requirements: Sequence[Requirement], suppression: float, *, shown: bool
    ) -> None:
        self._overall = units.overall
        self._presence = [r for r in requirements if isinstance(r, Presence)]
        self._others = [r for r in requirements if not isinstance(r, Presence)]
        self._limit = int(np.floor(suppression * units.rows + 1e-9))
        self._shown = shown
        self._lasting = [r for r in requirements if self._limit == 0 and r.monotone]
        if self._limit:
            self._lasting = [part for r in requirements for part in closed_part(r)]

    @property
    def suppresses(self) -> bool:
        """Whether any row may be suppressed."""
        return self._limit > 0

    def __call__(self, cells: LevelCells) -> Verdict:
        """Suppress the classes that fail, and see whether that is allowed and enough."""
        fails_for_good = failing(self._lasting, cells, self._overall)
        if int(cells.rows[fails_for_good].sum()) > self._limit or (
            self._limit == 0 and fails_for_good.any()
        ):
            return Verdict(~fails_for_good, feasible=False, hopeless=True)
        kept = self._kept(cells)
        return Verdict(kept, feasible=self._allowed(cells, kept), hopeless=False)

    def _kept(self, cells: LevelCells) -> Truths:
        """The classes that meet the requirements, given that removed rows are not in the table."""
        kept = np.ones(cells.number, dtype=np.bool_)
        overall = self._overall
        while True:
            wrong = kept & (cells.rows > 0) & failing(self._others, cells, overall)
            if not wrong.any():
                return kept
            kept &= ~wrong
            if self._shown or int(cells.rows[~kept].sum()) > self._limit:
                return kept
            overall = tuple(counts[kept].sum(axis=0) for counts in cells.counts)

    def _allowed(self, cells: LevelCells, kept: Truths) -> bool:
        suppressed = int(cells.rows[~kept].sum())
        if suppressed > self._limit or not cells.rows[kept].any():
            return False
        if self._shown and suppressed:
            return self._shown_together(cells, kept)
        # Who is removed is absent, which presence is about.
        present = Histograms(
            np.where(kept, cells.rows, 0), cells.counts, self._overall, cells.population
        )
        return all(bool(r.met(present).all()) for r in self._presence)

    def _shown_together(self, cells: LevelCells, kept: Truths) -> bool:
        """Whether the suppressed rows as one class, and all others, meet the requirements."""
        lost = ~kept
        population = cells.population
        together = Histograms(
            cells.rows[lost].sum(keepdims=True),
            tuple(counts[lost].sum(axis=0, keepdims=True) for counts in cells.counts),
            self._overall,
            None if population is None else population[lost].sum(keepdims=True),
        )
        rest = Histograms(
            cells.rows[kept], (), (), None if population is None else population[kept]
        )
        return all(bool(r.met(together).all()) for r in (*self._others, *self._presence)) and all(
            bool(r.met(rest).all()) for r in self._presence
        )


def failing(
    requirements: Sequence[Requirement], cells: LevelCells, overall: tuple[Counts, ...]
) -> Truths:
    """(classes,): whether each fails any of the requirements; classes without rows only
    those about a population."""
    classes = Histograms(cells.rows, cells.counts, overall, cells.population)
    found = np.zeros(cells.number, dtype=np.bool_)
    for requirement in requirements:
        wrong = ~requirement.met(classes)
        found |= wrong if isinstance(requirement, Presence) else wrong & (cells.rows > 0)
    return found


def closed_part(requirement: Requirement) -> list[Requirement]:
    """The part of a requirement that a class keeps whatever rows join it.

    Rows that fail this part at some levels fail it at all finer ones.
    """
    match requirement:
        case K():
            return [requirement]
        case AlphaK(k=k):
            return [K(k)]
        case L(measure="distinct"):
            return [requirement]
    return []


# ---------------------------------------------------------------------- costs of levels
# What generalizing to a level loses, and what leaving a row out loses.
#
# Every loss runs from 0, nothing is generalized, to 1, everything is '*'; a row that is suppressed
# loses as much as if all its quasi-identifiers were '*'.


Loss = choices.Loss
LOSSES: tuple[str, ...] = get_args(Loss)

DIGITS = 14
"""Losses that agree to this many digits are equal: the rest is the rounding of sums."""

Scalar = TypeVar("Scalar", np.int64, np.float64)


class LevelCosts(ABC):
    """A loss of full-domain generalization.

    `bound` never falls from finer to coarser levels, and the loss is never below it: it is the
    loss if no row had to be suppressed.
    """

    @abstractmethod
    def bounds(self) -> Floats:
        """What is known of every combination's bound before its classes are counted."""

    @abstractmethod
    def bound(self, cells: LevelCells) -> float:
        """The bound at these levels."""

    @abstractmethod
    def loss(self, cells: LevelCells, kept: Truths) -> float:
        """The loss if the classes that are not kept are suppressed."""


class ColumnCosts(LevelCosts):
    """Losses that are sums over rows and columns of what a node loses."""

    def __init__(
        self,
        gaps: Sequence[Sequence[Floats]],
        rows: Sequence[Sequence[Floats]],
        totals: Sequence[float],
    ) -> None:
        self._gaps = gaps
        """gaps[j][h][node]: how much more '*' would lose of a row that shows this node."""
        self._whole = sum(totals) or 1.0
        columns = [
            np.array([total - float(gap @ there) for gap, there in zip(gap_j, rows_j, strict=True)])
            for gap_j, rows_j, total in zip(gaps, rows, totals, strict=True)
        ]
        self._bounds = outer_sum(columns) / self._whole

    def bounds(self) -> Floats:
        """The exact bound of every combination: columns add up independently."""
        return np.round(self._bounds, DIGITS)

    def bound(self, cells: LevelCells) -> float:
        """The bound at these levels."""
        return rounded(float(self._bounds[cells.levels]))

    def loss(self, cells: LevelCells, kept: Truths) -> float:
        """The bound, and what '*' loses of the suppressed rows beyond it."""
        lost = np.flatnonzero(~kept)
        more = sum(
            float(cells.rows[lost] @ self._gaps[j][level][cells.nodes[j, lost]])
            for j, level in enumerate(cells.levels)
        )
        return float(self._bounds[cells.levels]) + more / self._whole


class Discernibility(LevelCosts):
    """Σ (rows of the class)² over the classes, n for each suppressed row, over n²."""

    def __init__(self, rows: int, shape: Node) -> None:
        self._rows = rows
        self._shape = shape

    def bounds(self) -> Floats:
        """Zeros: nothing is known before classes are counted."""
        return np.zeros(self._shape)

    def bound(self, cells: LevelCells) -> float:
        """The loss if no row is suppressed."""
        return rounded(squares(cells.rows) / self._rows**2)

    def loss(self, cells: LevelCells, kept: Truths) -> float:
        """Squares of the kept classes' rows, and n for each suppressed row."""
        suppressed = int(cells.rows[~kept].sum())
        return (squares(cells.rows[kept]) + self._rows * suppressed) / self._rows**2


def rounded(loss: float) -> float:
    """A loss without the digits that are rounding errors of sums."""
    return float(np.round(loss, DIGITS))


def outer_sum(columns: Sequence[npt.NDArray[Scalar]]) -> npt.NDArray[Scalar]:
    """For every combination of places, the sum of one number of each column."""
    return functools.reduce(np.add.outer, columns)


def squares(rows: npt.NDArray[np.int64]) -> float:
    """The sum of the squares, in floating point so that it cannot overflow."""
    return float(np.square(rows.astype(np.float64)).sum())


def costs_of(loss: str, units: Units, levels: Sequence[Levels]) -> LevelCosts:
    """The loss of that name on this table."""
    if loss not in LOSSES:
        raise UsageError(f"loss {loss!r} is not known", hint=did_you_mean(loss, list(LOSSES)))
    if loss == "discernibility":
        return Discernibility(units.rows, tuple(found.height + 1 for found in levels))
    columns = zip(units.codes, levels, strict=True)
    rows = [rows_by_node(codes, units, found) for codes, found in columns]
    gaps = [gaps_of(loss, found, there) for found, there in zip(levels, rows, strict=True)]
    totals = [whole_loss(loss, found, there) for found, there in zip(levels, rows, strict=True)]
    return ColumnCosts(gaps, rows, totals)


def rows_by_node(
    codes: npt.NDArray[np.int32], units: Units, levels: Levels
) -> list[npt.NDArray[np.float64]]:
    """For each level, the rows of every node."""
    by_code = np.bincount(codes, units.weights, levels.size)
    return [
        np.bincount(nodes, by_code, len(labels)).astype(np.float64)
        for nodes, labels in zip(levels.nodes, levels.labels, strict=True)
    ]


def gaps_of(loss: str, levels: Levels, rows: Sequence[Floats]) -> list[Floats]:
    """How much more '*' would lose of one row, by level and node."""
    if loss == "entropy":
        whole = float(rows[-1][0])
        return [np.log2(whole / np.where(there > 0, there, whole)) for there in rows]
    if loss == "levels":
        height = max(levels.height, 1)
        return [np.full(len(there), 1 - level / height) for level, there in enumerate(rows)]
    if levels.size == 1:  # hiding the only value loses nothing
        return [np.zeros_like(there) for there in rows]
    leaves = [np.bincount(nodes).astype(np.float64) for nodes in levels.nodes]
    return [1 - (number - 1) / (levels.size - 1) for number in leaves]


def whole_loss(loss: str, levels: Levels, rows: Sequence[Floats]) -> float:
    """What '*' for every row loses of this column."""
    whole = float(rows[-1][0])
    if loss == "ncp":
        return whole if levels.size > 1 else 0.0
    if loss == "levels":
        return whole
    there = rows[0][rows[0] > 0]
    return float(there @ np.log2(whole / there))
