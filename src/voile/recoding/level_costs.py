"""What generalizing to a level loses, and what leaving a row out loses.

Every loss runs from 0, nothing is generalized, to 1, everything is '*'; a row that is suppressed
loses as much as if all its quasi-identifiers were '*'.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar, get_args

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError, did_you_mean
from voile.options import choices
from voile.recoding.rollup import Cells, Node
from voile.recoding.units import Units
from voile.schema.hierarchy import Levels

Truths = npt.NDArray[np.bool_]
Loss = choices.Loss
LOSSES: tuple[str, ...] = get_args(Loss)

DIGITS = 14
"""Losses that agree in so many digits are equal: the rest is the rounding of sums."""

Scalar = TypeVar("Scalar", np.int64, np.float64)


class Costs(ABC):
    """A loss of full-domain generalization.

    `bound` never falls from finer to coarser levels, and the loss is never below it: it is the
    loss if no row had to be suppressed.
    """

    @abstractmethod
    def bounds(self) -> Floats:
        """What is known of every combination's bound before its classes are counted."""

    @abstractmethod
    def bound(self, cells: Cells) -> float:
        """The bound at these levels."""

    @abstractmethod
    def loss(self, cells: Cells, kept: Truths) -> float:
        """With the classes that are not kept suppressed."""


class ByColumn(Costs):
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
        return np.round(self._bounds, DIGITS)

    def bound(self, cells: Cells) -> float:
        return rounded(float(self._bounds[cells.levels]))

    def loss(self, cells: Cells, kept: Truths) -> float:
        lost = np.flatnonzero(~kept)
        more = sum(
            float(cells.rows[lost] @ self._gaps[j][level][cells.nodes[j, lost]])
            for j, level in enumerate(cells.levels)
        )
        return float(self._bounds[cells.levels]) + more / self._whole


class Discernibility(Costs):
    """Σ (rows of the class)² over the classes, n for each suppressed row, over n²."""

    def __init__(self, rows: int, shape: Node) -> None:
        self._rows = rows
        self._shape = shape

    def bounds(self) -> Floats:
        return np.zeros(self._shape)

    def bound(self, cells: Cells) -> float:
        return rounded(squares(cells.rows) / self._rows**2)

    def loss(self, cells: Cells, kept: Truths) -> float:
        suppressed = int(cells.rows[~kept].sum())
        return (squares(cells.rows[kept]) + self._rows * suppressed) / self._rows**2


def rounded(loss: float) -> float:
    return float(np.round(loss, DIGITS))


def outer_sum(columns: Sequence[npt.NDArray[Scalar]]) -> npt.NDArray[Scalar]:
    """For every combination of places, the sum of one number of each column."""
    return functools.reduce(np.add.outer, columns)


def squares(rows: npt.NDArray[np.int64]) -> float:
    return float(np.square(rows.astype(np.float64)).sum())


def costs_of(loss: str, units: Units, levels: Sequence[Levels]) -> Costs:
    """The loss of that name on this table."""
    if loss not in LOSSES:
        raise UsageError(f"loss {loss!r} is not known", hint=did_you_mean(loss, list(LOSSES)))
    if loss == "discernibility":
        return Discernibility(units.rows, tuple(found.height + 1 for found in levels))
    columns = zip(units.codes, levels, strict=True)
    rows = [rows_by_node(codes, units, found) for codes, found in columns]
    gaps = [gaps_of(loss, found, there) for found, there in zip(levels, rows, strict=True)]
    totals = [whole_loss(loss, found, there) for found, there in zip(levels, rows, strict=True)]
    return ByColumn(gaps, rows, totals)


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
    """By level and node, how much more '*' would lose of one row."""
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
