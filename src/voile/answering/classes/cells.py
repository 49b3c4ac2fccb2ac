"""The cells of a query, and what is asked as functions of them.

A row's cell has two parts: that of the columns that are shown of it, and that of the columns that
are open. What is asked is a matrix with a line for each shown cell that occurs and a column for
each open one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from voile.answering.axes import ClassAxis, DomainArrays, check_states, whole_axis
from voile.answering.cells import ClassFunctions, parts_of
from voile.answering.classes.source import ClassBox, ClassSource
from voile.answering.totals import ListedGroups
from voile.arrays import Floats, Ints
from voile.errors import QueryError
from voile.query.predicate import Expression, Predicate, Term

MOST_SPANS = 2**26
"""Classes times cells of one generalized column."""


@dataclass(frozen=True, eq=False)
class CellQuery:
    """A query on cells."""

    terms: tuple[Term, ...]
    payoffs: tuple[Floats, ...]
    """For each term (shown cells, open cells): what a row there adds to it."""
    number: Ints
    """(shown cells, open cells): the group; −1 for none."""
    groups: ListedGroups
    shown: Ints
    """(rows,): the shown cell of each row."""
    spans: tuple[Ints, ...]
    """Generalized: for each column that is read (classes, cells), how many values of a class's box
    lie in each cell. The open cells are their product."""
    weights: tuple[Floats, ...]
    """The same as shares of the box, by how likely each value is."""
    records: Ints
    """Bucketized: the open cell of every hidden record."""

    def with_payoffs(self, payoffs: Sequence[Floats]) -> CellQuery:
        return replace(self, payoffs=tuple(payoffs))


@dataclass(frozen=True, eq=False)
class Folding:
    """From tensors with an axis for each column to matrices of shown and open cells."""

    axes: tuple[ClassAxis, ...]
    order: tuple[int, ...]
    """The axes of shown columns, then those of open ones."""
    width: int
    """The number of all open cells."""
    lines: Ints
    """The shown cells that occur."""
    columns: Ints | slice
    """The open cells that occur, where that is known."""

    def matrix(self, tensor: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        shape = tuple(axis.classes for axis in self.axes)
        whole = np.broadcast_to(tensor, shape).transpose(self.order)
        return whole.reshape(-1, self.width)[self.lines][:, self.columns]


class Cutting:
    """Cuts the domain of a query's columns into cells, and knows what is shown there."""

    def __init__(
        self,
        where: Predicate | None,
        groups: Sequence[Expression],
        terms: tuple[Term, ...],
        source: ClassSource,
        likely: dict[str, Floats] | None = None,
    ) -> None:
        """`likely` are the chances of each value of a generalized column; by default all alike."""
        self.where, self.groups, self.terms, self.source = where, tuple(groups), terms, source
        self.evaluator = DomainArrays(source.engine.domain, source.schema)
        self.likely = likely or {}
        self.parts = parts_of(where, self.groups, terms)
        self.spans: list[Ints] = []
        self.weights: list[Floats] = []
        self._codes: dict[str, Ints] = {}

    def asked(self, told: int | None = None) -> tuple[CellQuery, ClassFunctions, Folding]:
        """The query on cells; the first `told` groups are those of the answer."""
        source, names = self.source, self.parts.attributes(self.source.schema)
        axes = [self._axis(name) for name in names]
        check_states(axes)
        cells = ClassFunctions(axes, source.schema, self.evaluator)
        shown = [j for j, name in enumerate(names) if name in source.known]
        open_ = [j for j, name in enumerate(names) if name not in source.known]
        rows = self._flat(axes, shown, source.rows)
        lines, row_cells = np.unique(rows, return_inverse=True)
        columns, records = self._records(axes, open_)
        width = math.prod(axes[j].classes for j in open_)
        folding = Folding(tuple(axes), (*shown, *open_), width, lines, columns)
        listed, number = cells.listing(self.groups[:told], cells.truth(self.where))
        payoffs = tuple(
            np.asarray(folding.matrix(cells.function(self.where, term)[0]), np.float64)
            for term in self.terms
        )
        asked = CellQuery(
            terms=self.terms,
            payoffs=payoffs,
            number=np.asarray(folding.matrix(number), np.int64),
            groups=listed,
            shown=row_cells.astype(np.int64),
            spans=tuple(self.spans),
            weights=tuple(self.weights),
            records=records,
        )
        return asked, cells, folding

    def _flat(self, axes: Sequence[ClassAxis], places: Sequence[int], count: int) -> Ints:
        """The combined cell of every row, or record, in the columns at these places."""
        found = np.zeros(count, np.int64)
        for j in places:
            found = found * axes[j].classes + self._codes[axes[j].attribute]
        return found

    def _records(
        self, axes: Sequence[ClassAxis], open_: Sequence[int]
    ) -> tuple[Ints | slice, Ints]:
        hidden = self.source.hidden
        if hidden is None:
            return slice(None), np.zeros(0, np.int64)
        columns, records = np.unique(self._flat(axes, open_, len(hidden.rows)), return_inverse=True)
        return columns, records.astype(np.int64)

    def _axis(self, name: str) -> ClassAxis:
        """One column's cells, as far as rows, records or boxes have them."""
        source = self.source
        axis = whole_axis(name, self.parts, source.schema, self.evaluator)
        if name in source.boxes:
            box = source.boxes[name]
            inside, weights = spans(axis, box, self.likely.get(name))
            keep = np.flatnonzero(inside.any(axis=0))
            self.spans.append(inside[:, keep])
            self.weights.append(weights[:, keep])
            return axis.cut(keep)
        codes = source.known.get(name)
        if codes is None:
            assert source.hidden is not None  # noqa: S101  (what is not shown is hidden)
            codes = source.hidden.codes[name]
        keep, found = np.unique(axis.class_of[codes], return_inverse=True)
        self._codes[name] = found.astype(np.int64)
        return axis.cut(keep)


def spans(axis: ClassAxis, box: ClassBox, likely: Floats | None) -> tuple[Ints, Floats]:
    """How many values of each class's box lie in each cell, and their share of the box.

    `likely` are the chances of the values by position; without it all are alike.
    """
    classes_ = len(box.low)
    if classes_ * axis.classes > MOST_SPANS:
        raise QueryError(
            f"the query tells {axis.classes:,} values of {axis.attribute} apart in {classes_:,} "
            "classes, which is too much",
            hint=f"round it, as in floor({axis.attribute} / 10) * 10",
        )
    cell_at = axis.class_of[box.order]
    by_cell = np.argsort(cell_at, kind="stable")
    starts = np.searchsorted(cell_at[by_cell], np.arange(axis.classes + 1))
    counts = np.empty((classes_, axis.classes), np.int64)
    masses = np.empty((classes_, axis.classes))
    for cell in range(axis.classes):
        at = by_cell[starts[cell] : starts[cell + 1]]
        first, last = np.searchsorted(at, box.low), np.searchsorted(at, box.high, side="right")
        counts[:, cell] = last - first
        if likely is not None:
            summed = np.concatenate([[0.0], np.cumsum(likely[at])])
            masses[:, cell] = np.where(last > first, summed[last] - summed[first], 0.0)
    weights = counts.astype(np.float64) if likely is None else masses
    return counts, weights / weights.sum(axis=1, keepdims=True)
