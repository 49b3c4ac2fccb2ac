"""A query as numbers on the classes of the columns that it reads, for tables of counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from voile.answering.axes import ClassAxis, DomainArrays, check_states, whole_axis
from voile.answering.cells import ClassFunctions, parts_of
from voile.answering.columns import EstimatedColumn, Flags, Formulas
from voile.answering.evidence import Evidence, check_groups, checked_ranges, distinct, term_sets
from voile.answering.source import DomainSource, predicate_parts, value_range
from voile.answering.totals import ListedGroups
from voile.answering.walk import NO_TUPLE
from voile.arrays import Floats, Ints
from voile.query.aggregate import Formula, Quantile
from voile.query.predicate import Expression, Term
from voile.query.query import Query
from voile.schema import Schema

Places = tuple[int, ...]
"""Some of a query's axes."""


class TableSource(DomainSource, Protocol):
    """A source that knows the domain by name."""

    @property
    def schema(self) -> Schema:
        """The public domain."""
        ...


class ClassMargin(Protocol):
    """The classes of some of a query's axes, numbered one after the other."""

    @property
    def places(self) -> Places:
        """Which axes."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """How many classes each of them has."""
        ...


@dataclass(frozen=True, eq=False)
class TableCells:
    """The terms of a query, on the combinations of classes that count, one after the other."""

    coordinates: tuple[Ints, ...]
    """For every axis that is read, the class of each combination."""
    group: Ints
    groups: int
    payoffs: Floats
    """(terms, combinations)"""

    def along(self, margin: ClassMargin) -> Ints:
        """The place of each combination among the classes of some axes."""
        found: Ints = np.zeros(len(self.group), np.int64)
        for j, size in zip(margin.places, margin.shape, strict=True):
            found = found * size + self.coordinates[j]
        return found

    def summed(self, values: Floats) -> Floats:
        """(groups, terms): the sum of value·payoff over each group."""
        return np.stack(
            [np.bincount(self.group, values * p, self.groups) for p in self.payoffs], axis=1
        )


@dataclass(frozen=True, eq=False)
class TableQuery:
    """Terms on the classes of all columns that they, the condition and the groups read."""

    axes: tuple[ClassAxis, ...]
    functions: ClassFunctions
    groups: ListedGroups
    number: npt.NDArray[np.int64]
    """The group of every combination of classes; −1 for none."""
    payoffs: tuple[Floats, ...]
    """For each term, what a row adds to it."""

    def cells(self, payoffs: Sequence[Floats]) -> tuple[Places, TableCells]:
        """The axes that it depends on, and the combinations of their classes that count."""
        number, whole = self.number, [np.broadcast_to(p, self.number.shape) for p in payoffs]
        read = tuple(j for j in range(len(self.axes)) if depends([number, *whole], j))
        first = tuple(slice(None) if j in read else slice(0, 1) for j in range(len(self.axes)))
        flat = number[first].ravel()
        counts = np.flatnonzero(flat >= 0)
        places = np.unravel_index(counts, number[first].shape) if self.axes else ()
        return read, TableCells(
            tuple(np.asarray(p, np.int64) for p in places),
            flat[counts],
            len(self.groups),
            np.stack([p[first].ravel()[counts] for p in whole]),
        )


def depends(arrays: Sequence[npt.NDArray[np.generic]], axis: int) -> bool:
    """Whether some array differs along an axis."""
    return any(bool((a != a.take([0], axis=axis)).any()) for a in arrays)


def table_query_of(
    query: Query, terms: Sequence[Term], source: TableSource, more: Sequence[Expression] = ()
) -> TableQuery:
    """`more` are expressions that cut the domain as groups do."""
    parts = parts_of(query.predicate, (*query.groups, *more), terms)
    evaluator = DomainArrays(source.engine.domain, source.schema)
    names = parts.attributes(source.schema)
    axes = tuple(whole_axis(name, parts, source.schema, evaluator) for name in names)
    check_states(axes)
    functions = ClassFunctions(axes, source.schema, evaluator)
    listed, number = functions.listing(query.groups, functions.truth(query.predicate))
    payoffs = tuple(functions.function(query.predicate, term)[0] for term in terms)
    return TableQuery(axes, functions, listed, number, payoffs)


@dataclass(frozen=True, eq=False)
class PartIndex:
    """Combinations of classes by their group and their class of one part."""

    group: Ints
    place: Ints
    number: Ints
    groups: int

    def sums(self, values: Floats) -> Floats:
        """(terms, pairs)"""
        return np.stack([np.bincount(self.number, one, len(self.group)) for one in values])

    def crossed(self, sums: Floats, own: Floats) -> Floats:
        """(groups, terms, terms): Σ own·sum·sum' over the classes of each group."""
        return crossed(sums, own[self.place], self.group, self.groups)

    def grouped(self, values: Floats) -> Floats:
        """(groups, terms)"""
        return np.stack([np.bincount(self.group, one, self.groups) for one in values], axis=1)


def part_index(cells: TableCells, place: Ints, size: int) -> PartIndex:
    """Combinations of classes, numbered by their group and their class of one part."""
    found, number = np.unique(cells.group * size + place, return_inverse=True)
    return PartIndex(found // size, found % size, number, cells.groups)


def crossed(values: Floats, weights: Floats, group: Ints, groups: int) -> Floats:
    """(groups, terms, terms): Σ weight·value·value' over each group."""
    return np.stack(
        [
            np.stack([np.bincount(group, weights * a * b, groups) for b in values], axis=1)
            for a in values
        ],
        axis=1,
    )


# ----------------------------------------------------------------------
# one query, answered from tables


Tables = TypeVar("Tables", bound=TableSource)


class TableEvidence(Evidence, Generic[Tables]):
    """Totals from tables with noise: what all kinds of them have in common."""

    def __init__(self, query: Query, source: Tables) -> None:
        self.query, self.source = query, source
        self._ranges = checked_ranges(query, distinct([*term_sets(query), (Term(),)]), source)
        self._base = table_query_of(query, (Term(),), source)
        check_groups(len(self.groups))

    @property
    def groups(self) -> ListedGroups:
        """The groups of the answer."""
        return self._base.groups

    @abstractmethod
    def estimator_of(self, formula: Formula) -> Formulas:
        """Estimates of the totals of a formula."""

    @abstractmethod
    def quantiles_of(self, formula: Quantile) -> EstimatedColumn:
        """The estimates of a quantile whose values are finite, one for each group."""

    def column(self, formula: Formula) -> EstimatedColumn:
        """The estimates of a formula, one for each group."""
        return self.estimator_of(formula).column(formula)

    def values(self, formula: Formula, quantiles: Mapping[Quantile, Floats]) -> Floats:
        """The values of a formula that has quantiles in it."""
        return self.estimator_of(formula).values(quantiles)(formula).value

    def quantile(self, formula: Quantile) -> EstimatedColumn:
        """The estimates of a quantile, one for each group."""
        parts = [*predicate_parts(self.query.predicate), *predicate_parts(formula.predicate)]
        value_range(formula.value, parts, self.source, self.query.sql)  # all must be finite
        return self.quantiles_of(formula)

    def empty(self) -> Flags:
        """No group is known to be empty."""
        return np.zeros(len(self.groups), np.bool_)  # noise hides which groups are

    @property
    def nothing(self) -> str:
        """Why no tuple counts, where none does."""
        return "" if (self._base.number >= 0).any() else NO_TUPLE
