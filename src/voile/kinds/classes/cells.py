"""The cells of a query, and its totals as functions of them.

A row's cell has two parts: that of the columns that are shown of it, and that of the columns that
are open. A total is a matrix with a line for each shown cell that occurs and a column for each
open one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from voile.answering.axes import ClassAxis, DomainArrays, check_states, whole_axis
from voile.answering.cells import ClassFunctions, parts_of
from voile.answering.totals import ListedGroups
from voile.arrays import Floats, Ints
from voile.engines.rows import PublicDomain
from voile.errors import QueryError
from voile.query.domain import DomainSums
from voile.query.predicate import Expression, Predicate, Term
from voile.recoding.grouping import Recode
from voile.schema import Schema

if TYPE_CHECKING:
    from voile.kinds.classes.manifest import ClassErrorModel
    from voile.kinds.classes.release import ClassBox, HiddenRecords, Method

# ----------------------------------------------------------------------
# what an answer from a generalized or bucketized release is computed from


Codes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassFigures:
    """The classes of a release, as numbers."""

    schema: Schema
    rows: int
    recode: Recode
    classes: int
    of_row: Codes
    """(rows,): the class of every row, ascending."""
    weights: Counts | None = None
    """How many rows each of these stands for, where those that are alike are one."""
    known: Mapping[str, Codes]
    """The columns that are shown exactly: the code of every row, in the order of `of_row`."""
    boxes: Mapping[str, ClassBox] = field(default_factory=dict)
    """Generalized: the other columns."""
    hidden: HiddenRecords | None = None
    """Bucketized: the other columns."""
    kept: dict[str, Any] = field(default_factory=dict)
    """What was fitted once, by what it is; give one dictionary to all sources of a release."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassSource(ClassFigures):
    """The classes of a release, and the engine that knows its domain.

    The rows as they are written hold labels, not values; so conditions are computed on the domain
    alone, and `engine` needs no rows (`open_domain(schema)`).
    """

    engine: PublicDomain
    domain: DomainSums
    removed: int = 0
    """Rows of the table that the release does not show."""
    method: Method = "uniform"
    remarks: Mapping[str, str] = field(default_factory=dict)
    """What an analyst should know about a column."""
    error_model: ClassErrorModel | None = None
    """What is known about real errors; without it no interval is stated."""

    @property
    def bounds_totals(self) -> bool:
        """Classes say between which numbers totals certainly lie."""
        return True


# ----------------------------------------------------------------------
# the cells of a query, and its totals as functions of them


MOST_SPANS = 2**26
"""Classes times cells of one generalized column."""


@dataclass(frozen=True, eq=False)
class CellQuery:
    """A query as numbers on cells."""

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
        """The same query with other payoffs."""
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
        """A tensor as a matrix of the cells that occur."""
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

    def with_chances(self, likely: dict[str, Floats] | None) -> Cutting:
        """The same cells with other chances of the values of generalized columns."""
        return Cutting(self.where, self.groups, self.terms, self.source, likely)

    def cell_query(
        self, answer_groups: int | None = None
    ) -> tuple[CellQuery, ClassFunctions, Folding]:
        """The query on cells; the first `answer_groups` groups are those of the answer."""
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
        listed, number = cells.listing(self.groups[:answer_groups], cells.truth(self.where))
        payoffs = tuple(
            np.asarray(folding.matrix(cells.function(self.where, term)[0]), np.float64)
            for term in self.terms
        )
        query = CellQuery(
            terms=self.terms,
            payoffs=payoffs,
            number=np.asarray(folding.matrix(number), np.int64),
            groups=listed,
            shown=row_cells.astype(np.int64),
            spans=tuple(self.spans),
            weights=tuple(self.weights),
            records=records,
        )
        return query, cells, folding

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
            f"the query distinguishes {axis.classes:,} values of {axis.attribute} in {classes_:,} "
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


# ----------------------------------------------------------------------
# what the two ways to show classes have in common: sums over rows of which a part is open


Pairs = Sequence[tuple[int, int]]
Covariances = dict[tuple[int, int], Floats]


@dataclass(frozen=True, eq=False)
class Moments:
    """Of every group, under the assumption about what is open."""

    means: Floats
    """(groups, terms)"""
    covariances: Covariances
    """Of each two terms."""
    squares: Covariances
    """The sum over the rows of the expected product of two terms' payoffs."""
    rows: Floats
    """(groups, terms): how many rows are expected to add something to the term."""


@dataclass(frozen=True, eq=False)
class Extremes:
    """What Σ slope·total can be at least and at most, for each group."""

    low: Floats
    high: Floats
    low_terms: Floats
    """(groups, terms): the totals where it is lowest."""
    high_terms: Floats
    tight: bool = True
    """Whether some data that agree with the release reach both ends."""


class OpenSums(ABC):
    """The totals of a query, as far as a release leaves them open."""

    query: CellQuery

    @abstractmethod
    def moments(self, pairs: Pairs) -> Moments:
        """The means of all terms, and the covariances of these pairs of them."""

    @abstractmethod
    def extremes(self, slope: Floats, *, terms: bool = False) -> Extremes:
        """Over all data that agree with the release; `slope` is (groups, terms).

        With `terms`, the totals of no slope are computed at the ends too.
        """

    @abstractmethod
    def row_ratios(self, top: Floats, bottom: Floats) -> tuple[Floats, Floats]:
        """The lowest and highest ratio of two forms (groups, terms) that one row can have.

        No ratio of two totals lies beyond, if each row without a bottom has no top.
        """


def ratio_ends(above: Floats, below: Floats, group: Ints, groups: int) -> tuple[Floats, Floats]:
    """The ends of the ratios in each group; unbounded where they do not bound those of sums."""
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    some = below > 0
    ratio = above[some] / below[some]
    np.minimum.at(low, group[some], ratio)
    np.maximum.at(high, group[some], ratio)
    free = (below < 0) | ((below == 0) & (above != 0))
    low[group[free]], high[group[free]] = -np.inf, np.inf
    return low, high
