"""Estimates and covariances of all totals of a query, for all of its groups.

With Y the sums over the seen rows, f a term of one group and g its unbiased counterpart:

  estimate     Σ Y·g
  covariance   of two such: Σ Y·g·h − Σ Ŷ·f·k, unbiased, with f and k what g and h are unbiased for
               and Ŷ the reconstructed sums: E[g(Y)h(Y)|x] − f(x)k(x), summed over the rows

Where a column's replacements are its own values, their distribution is estimated from the same
rows; f then has the first-order effect of that taken off (see `effect`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.answering.local.axes import Axis, Evaluator, Ints, Parts
from voile.answering.local.tensors import (
    ends,
    multiplied,
    placed,
    places,
    reach,
    reconstructed,
    shape_of,
    split,
    unbiased,
    varying,
    widest,
)
from voile.answering.totals import ALL_GROUPS, Groups
from voile.errors import QueryError
from voile.estimate import Floats
from voile.query.predicate import And, Atom, Expression, Predicate, Term, atoms, both
from voile.schema import Schema

Bools = npt.NDArray[np.bool_]
MOST_WORK = 2 * 10**9
"""States times groups that are gone through."""


@dataclass(frozen=True)
class CountLaw:
    """A count that one coin decides for each row: Binomial(x, kept) + Binomial(rows − x, drawn)."""

    seen: int
    rows: int
    kept: float
    drawn: float


@dataclass(frozen=True)
class LocalTotals:
    """For each group, estimates of each term and the covariances of each two."""

    groups: Groups
    terms: tuple[Term, ...]
    estimates: Floats
    """(groups, terms)"""
    seen: Floats
    """The same sums over the rows as they are seen."""
    covariances: dict[tuple[int, int], Floats]
    squares: dict[tuple[int, int], Floats]
    """Σ g·h over the seen rows: what bounds of deviations are made of."""
    largest: Floats
    """A bound of |g| and of |g − f| of one row, for each group and term."""
    widest: Floats
    """A bound of the standard error that holds for every table."""
    unit: float
    """A bound of |g| and of |g − f| of one row for any f of at most 1."""
    laws: dict[tuple[int, int], CountLaw] = field(default_factory=dict)
    """Of a group and a term, where one coin decides."""
    possible: bool = True
    """Whether any tuple of the domain can count."""

    def column(self, term: Term) -> int:
        return self.terms.index(term)


def parts_of(where: Predicate | None, groups: Sequence[Expression], terms: Sequence[Term]) -> Parts:
    predicates = [p for p in (where, *(t.predicate for t in terms)) if p]
    degree = max((t.values.count(v) for t in terms for v in t.values), default=1)
    return Parts(
        atoms=tuple(dict.fromkeys(a for p in predicates for a in atoms(p))),
        groups=tuple(dict.fromkeys(groups)),
        values=tuple(dict.fromkeys(v for t in terms for v in t.values)),
        degree=degree,
    )


class Cells:
    """What is asked, as functions of the classes of the columns that are read."""

    def __init__(self, axes: Sequence[Axis], schema: Schema, domain: Evaluator) -> None:
        self.axes, self._schema, self._domain = list(axes), schema, domain
        self._place = {axis.attribute: j for j, axis in enumerate(axes)}
        self.shape = tuple(axis.classes for axis in axes)

    def _at(self, found: npt.NDArray[Any], part: Atom | Expression) -> npt.NDArray[Any]:
        """An array over the part's columns, at one value of each class, ready to broadcast."""
        if not part.attributes:
            return found.reshape([1] * len(self.axes))
        sizes = [self._schema[name].size for name in part.attributes]
        where = [self._place[name] for name in part.attributes]
        taken = found.reshape(sizes)[np.ix_(*(self.axes[j].representative for j in where))]
        shape = [1] * len(self.axes)
        for j in where:
            shape[j] = self.axes[j].classes
        return taken.transpose(np.argsort(where)).reshape(shape)

    def truth(self, predicate: Predicate | None) -> Bools:
        if predicate is None:
            return np.ones([1] * len(self.axes), np.bool_)
        if isinstance(predicate, Atom):
            return np.asarray(self._at(self._domain.truth(predicate), predicate), np.bool_)
        parts = [self.truth(part) for part in predicate.parts]
        both_ = np.logical_and if isinstance(predicate, And) else np.logical_or
        return reduce(both_, parts)

    def function(self, where: Predicate | None, term: Term) -> tuple[Floats, tuple[int, ...]]:
        """The term as a function of the classes, and the power of each phi beside it."""
        found = self.truth(both(where, term.predicate)).astype(np.float64)
        for value in term.values:
            axis = self._axis_of(value)
            if axis is None:
                numbers = self.numbers(value)
                found = found * np.where(np.isfinite(numbers), numbers, 0.0)
            else:
                shape = [1] * len(self.axes)
                shape[self._place[axis.attribute]] = axis.classes
                found = found * axis.present.reshape(shape)
        valued = [axis for axis in self.axes if axis.powers > 1]
        return found, tuple(term.values.count(axis.value) for axis in valued)

    def numbers(self, value: Expression) -> Floats:
        """A value on the classes; NaN where it is NULL."""
        return np.asarray(self._at(self._domain.numbers(value), value), np.float64)

    def _axis_of(self, value: Expression) -> Axis | None:
        return next((axis for axis in self.axes if axis.value == value), None)

    def listing(
        self, groups: Sequence[Expression], passing: Bools
    ) -> tuple[Groups, npt.NDArray[np.int64]]:
        """The groups that the domain allows, and the group of every cell (−1: in none of them)."""
        if not groups:
            everyone = np.where(passing, 0, -1).astype(np.int64)
            return Groups(((),), (), 1, complete=True), np.broadcast_to(everyone, self.shape)
        labelled = [self._domain.labels(g) for g in groups]
        codes = [
            np.asarray(self._at(c, g), np.int64) for (c, _), g in zip(labelled, groups, strict=True)
        ]
        sizes = [len(keys) for _, keys in labelled]
        if math.prod(sizes) >= 2**62:
            raise QueryError(f"GROUP BY allows {math.prod(sizes):,} groups", hint="group by less")
        flat = np.ravel_multi_index(np.broadcast_arrays(*codes), sizes)
        cell = np.where(passing, flat, -1)
        kept = np.unique(cell)
        kept = kept[kept >= 0]
        if len(kept) > ALL_GROUPS:
            raise QueryError(
                f"GROUP BY makes {len(kept):,} groups, more than {ALL_GROUPS:,}",
                hint="group by fewer columns, or by coarser ones, as in floor(age / 10)",
            )
        places_ = np.unravel_index(kept, sizes)
        columns = [
            [keys[i] for i in place] for (_, keys), place in zip(labelled, places_, strict=True)
        ]
        listed = Groups(
            tuple(zip(*columns, strict=True)),
            tuple(np.asarray(p, np.int64) for p in places_),
            len(kept),
            complete=True,
        )
        number = np.searchsorted(kept, np.maximum(cell, 0))
        return listed, np.broadcast_to(np.where(cell < 0, -1, number), self.shape)


@dataclass(frozen=True)
class Asked:
    """A query on tensors: everything that estimates and errors are computed from."""

    cells: Cells
    axes: list[Axis]
    seen: Floats
    where: Predicate | None
    groups: tuple[Expression, ...]
    terms: tuple[Term, ...]
    rows: float
    told: int | None = None
    """How many of the groups are those of the answer; others only cut classes."""

    @cached_property
    def estimated(self) -> Floats:
        """Ŷ."""
        return reconstructed(self.seen, self.axes)

    @cached_property
    def functions(self) -> list[tuple[Floats, tuple[int, ...]]]:
        return [self.cells.function(self.where, term) for term in self.terms]

    @cached_property
    def listed(self) -> tuple[Groups, Ints]:
        return self.cells.listing(self.groups[: self.told], self.cells.truth(self.where))

    def totals(self, pairs: Sequence[tuple[int, int]]) -> LocalTotals:
        groups, number = self.listed
        estimates, seen = (
            np.stack([self.by_group(of, i) for i in range(len(self.terms))], axis=1)
            for of in (self.estimated, self.seen)
        )
        errors = PureErrors(self) if is_pure(self) else GroupErrors(self)
        found = errors.errors(pairs)
        return LocalTotals(
            groups=groups,
            terms=self.terms,
            estimates=estimates,
            seen=seen,
            covariances=found.covariances,
            squares=found.squares,
            largest=found.largest,
            widest=found.widest,
            unit=1 + math.prod((2 - axis.retention) / axis.retention for axis in self.axes),
            laws=found.laws,
            possible=bool((number >= 0).any()),
        )

    def by_group(self, of: Floats, i: int) -> Floats:
        """Σ of·f over the cells of each group."""
        groups, number = self.listed
        f, degrees = self.functions[i]
        weights = split(of, self.axes)[places(degrees, self.axes)] * f
        flat = np.broadcast_to(number, weights.shape).ravel()
        inside = flat >= 0
        return np.asarray(np.bincount(flat[inside], weights.ravel()[inside], len(groups)), float)


@dataclass(frozen=True)
class Errors:
    """See LocalTotals."""

    covariances: dict[tuple[int, int], Floats]
    squares: dict[tuple[int, int], Floats]
    largest: Floats
    widest: Floats
    laws: dict[tuple[int, int], CountLaw]


class GroupErrors:
    """Covariances group by group, whatever the query is."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        states = math.prod(shape_of(asked.axes))
        groups = len(asked.listed[0])
        if states * groups > MOST_WORK:
            raise QueryError(
                f"{groups:,} groups of {states:,} combinations of classes are too much",
                hint="group by columns that no condition reads, or ask for fewer groups",
            )

    def errors(self, pairs: Sequence[tuple[int, int]]) -> Errors:
        asked = self.asked
        count, terms = len(asked.listed[0]), len(asked.terms)
        covariances = {pair: np.zeros(count) for pair in pairs}
        squares = {pair: np.zeros(count) for pair in pairs}
        most, wide = np.zeros((count, terms)), np.zeros((count, terms))
        laws: dict[tuple[int, int], CountLaw] = {}
        exact = len(asked.axes) == 1 and asked.axes[0].permuted
        for group in range(count):
            sub = Sub(asked, group)
            f = [sub.function(i) for i in range(terms)]
            g = [unbiased(x, sub.axes) for x in f]
            most[group] = [reach(x, y, sub.axes) for x, y in zip(g, f, strict=True)]
            wide[group] = [(sub.seen * widest(x, y, sub.axes)).sum()
                           for x, y in zip(g, f, strict=True)]  # fmt: skip
            for i, j in pairs:
                if exact:
                    continue
                squares[i, j][group] = (sub.seen * multiplied(g[i], g[j], sub.axes)).sum()
                true = (sub.estimated * multiplied(f[i], f[j], sub.axes)).sum()
                covariances[i, j][group] = squares[i, j][group] - true
            for i in range(terms):
                if law := sub.law(i):
                    laws[group, i] = law
        return Errors(covariances, squares, most, np.sqrt(wide), laws)


class Sub:
    """The part of a query that is about one group: public columns are cut to its classes.

    Not so where columns are replaced by their own values, of which all rows tell something.
    """

    def __init__(self, asked: Asked, group: int) -> None:
        self._asked = asked
        inside = asked.listed[1] == group
        self._own = any(axis.own for axis in asked.axes)
        self._keep = [
            np.flatnonzero(inside.any(axis=tuple(i for i in range(inside.ndim) if i != j)))
            if axis.public and not self._own
            else np.arange(axis.classes)
            for j, axis in enumerate(asked.axes)
        ]
        self.axes = [axis.cut(keep) for axis, keep in zip(asked.axes, self._keep, strict=True)]
        self._inside = inside[np.ix_(*self._keep)] if asked.axes else inside
        self.seen, self.estimated = self._cut(asked.seen), self._cut(asked.estimated)

    def _cut(self, tensor: Floats) -> Floats:
        states = [
            (keep[:, None] * axis.powers + np.arange(axis.powers)).ravel()
            for keep, axis in zip(self._keep, self._asked.axes, strict=True)
        ]
        return tensor[np.ix_(*states)] if states else tensor

    def _inside_only(self, f: Floats) -> Floats:
        whole = np.broadcast_to(f, self._asked.cells.shape)
        cut = whole[np.ix_(*self._keep)] if self._keep else whole
        return np.where(self._inside, cut, 0.0)

    def function(self, i: int) -> Floats:
        """A term, as far as it can err."""
        return varying(self.placed(*self._asked.functions[i]), self.axes)

    def placed(self, f: Floats, degrees: tuple[int, ...]) -> Floats:
        """A function of the classes, as one of this group's states."""
        found = placed(self._inside_only(f), degrees, self.axes)
        if self._own and self._asked.rows:
            found = found - self._effect(found)
        return found

    def _effect(self, f: Floats) -> Floats:
        """What it does to first order that own replacing distributions are estimated."""
        result = np.zeros_like(f)
        for j, axis in enumerate(self.axes):
            if not axis.own:
                continue
            others = [a for i, a in enumerate(self.axes) if i != j]
            counts = reconstructed(summed_out(self.seen, j, axis), others)
            every = tuple(range(counts.ndim))
            on_axis = np.tensordot(np.moveaxis(f, j, -1), counts, axes=(every, every))
            mean = float(on_axis @ axis.moments.ravel())
            shape = [1] * f.ndim
            shape[j] = axis.states
            centred = on_axis.reshape(shape) * (1 - axis.retention) / self._asked.rows
            result = result + centred * ones_elsewhere(self.axes, j)
            result = result - (1 - axis.retention) / self._asked.rows * mean * ones_elsewhere(
                self.axes, None
            )
        return result

    def law(self, i: int) -> CountLaw | None:
        """Where the count depends on one coin of each row, its law."""
        axes = self.axes
        perturbed = [j for j, axis in enumerate(axes) if not axis.public]
        if self._asked.terms[i].values or len(perturbed) != 1 or axes[perturbed[0]].own:
            return None
        (j,) = perturbed
        f = self._inside_only(self._asked.functions[i][0])
        axis = axes[j]
        drawn = np.tensordot(axis.moments[:, 0], f, axes=(0, j))
        cells = drawn[drawn > 0]
        if not len(cells) or cells.max() - cells.min() > 1e-12:
            return None
        counts = split(self.seen, axes)[places((0,) * sum(a.powers > 1 for a in axes), axes)]
        rows = (counts.sum(axis=j) * (drawn > 0)).sum()
        beta = (1 - axis.retention) * float(cells[0])
        return CountLaw(
            round(float((counts * f).sum())), round(float(rows)), axis.retention + beta, beta
        )


def summed_out(seen: Floats, j: int, axis: Axis) -> Floats:
    """Without one column: its classes together, power 0."""
    found: Floats = np.take(seen, np.arange(0, axis.states, axis.powers), axis=j).sum(axis=j)
    return found


def ones_elsewhere(axes: Sequence[Axis], j: int | None) -> Floats:
    """The constant 1 as a function of all axes but one, ready to broadcast."""
    result = np.ones([1] * len(axes))
    for i, axis in enumerate(axes):
        if i != j:
            shape = [1] * len(axes)
            shape[i] = axis.states
            one = np.zeros((axis.classes, axis.powers))
            one[:, 0] = 1.0
            result = result * one.reshape(shape)
    return result


# ---------------------------------------------------------------------- groups that are classes


def is_pure(asked: Asked) -> bool:
    """Whether groups are just the classes of their columns, which nothing else reads."""
    if len(asked.listed[0]) < 2 or any(axis.own for axis in asked.axes):
        return False
    if any(len(g.attributes) != 1 for g in asked.groups):
        return False
    grouped = group_axes(asked)
    if len(grouped) != len(asked.groups) or any(asked.axes[j].powers > 1 for j in grouped):
        return False
    passing = asked.cells.truth(asked.where)
    functions = [f for f, _ in asked.functions]
    free = all(x.shape[j] == 1 for x in (passing, *functions) for j in grouped)
    sizes = math.prod(asked.axes[j].classes for j in grouped)
    return free and sizes == len(asked.listed[0])


def group_axes(asked: Asked) -> list[int]:
    names = [axis.attribute for axis in asked.axes]
    return sorted({names.index(g.attributes[0]) for g in asked.groups})


def factor_ends(axis: Axis) -> tuple[Floats, Floats]:
    """The lowest and the highest K[c, v] of each class c."""
    drawn = (1 - axis.retention) * axis.moments[:, 0]
    return -drawn / axis.retention, (1 - drawn) / axis.retention


def outer_ends(left: tuple[Floats, Floats], right: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The ends of all products of two numbers, of each of which the ends are given."""
    found = [np.multiply.outer(a, b) for a in left for b in right]
    return np.minimum.reduce(found), np.maximum.reduce(found)


class PureErrors:
    """All groups at once: a group's counterpart is a product over the columns of the groups.

    Along such a column K[c, v] = (1[v = c] − (1−p)·m_c)/p for the group c and the class v that is
    seen, so K² is a diagonal and a rank-one part, and costs one pass.
    """

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.grouped = group_axes(asked)
        self.rest = [j for j in range(len(asked.axes)) if j not in self.grouped]
        self._known = all(asked.axes[j].public for j in self.grouped)

    def errors(self, pairs: Sequence[tuple[int, int]]) -> Errors:
        asked = self.asked
        rest_axes = [asked.axes[j] for j in self.rest]
        f = [self._on_rest(i) for i in range(len(asked.terms))]
        g = [unbiased(x, rest_axes) for x in f]
        order = self._order()
        covariances, squares = {}, {}
        for i, j in pairs:
            seen = self._over_rest(asked.seen, multiplied(g[i], g[j], rest_axes))
            true = self._over_rest(asked.estimated, multiplied(f[i], f[j], rest_axes))
            squared = self._squared(seen).ravel()[order]
            squares[i, j] = squared
            covariances[i, j] = squared - true.ravel()[order]
        sizes = [self._sizes(x, y, order) for x, y in zip(g, f, strict=True)]
        most, wide = (np.stack(columns, axis=1) for columns in zip(*sizes, strict=True))
        return Errors(covariances, squares, most, wide, self._laws(f, order))

    def _sizes(self, g: Floats, f: Floats, order: Ints) -> tuple[Floats, Floats]:
        """The most of one row, and a bound of the standard error."""
        asked, rest = self.asked, [self.asked.axes[j] for j in self.rest]
        if self._known:
            wide = self._over_rest(asked.seen, widest(g, f, rest)).ravel()[order]
            return np.full(len(order), reach(g, f, rest)), np.sqrt(wide)
        factor = reduce(outer_ends, [factor_ends(asked.axes[j]) for j in self.grouped])
        (g_low, g_high), (f_low, f_high) = (
            (low.min(initial=0.0), high.max(initial=0.0))
            for low, high in (ends(g, rest), ends(f, rest))
        )
        low, high = outer_ends(factor, (g_low, g_high))
        most = np.maximum(high - f_low, f_high - low).ravel()[order]
        return most, ((high - low) / 2 * math.sqrt(asked.rows)).ravel()[order]

    def _on_rest(self, i: int) -> Floats:
        f, degrees = self.asked.functions[i]
        axes = self.asked.axes
        shape = tuple(axes[j].classes for j in self.rest)
        cut = np.broadcast_to(np.squeeze(f, axis=tuple(self.grouped)), shape)
        rest = [axes[j] for j in self.rest]
        found = placed(cut, degrees, rest)
        return varying(found, rest) if self._known else found

    def _over_rest(self, of: Floats, function: Floats) -> Floats:
        """Σ of·function over the other columns, for each class of those of the groups."""
        return np.tensordot(of, function, axes=(self.rest, tuple(range(function.ndim))))

    def _squared(self, seen: Floats) -> Floats:
        for place, j in enumerate(self.grouped):
            axis = self.asked.axes[j]
            p, mass = axis.retention, axis.moments[:, 0]
            shape = [1] * seen.ndim
            shape[place] = len(mass)
            diagonal = ((1 - 2 * (1 - p) * mass) / p**2).reshape(shape)
            everywhere = (((1 - p) * mass / p) ** 2).reshape(shape)
            seen = diagonal * seen + everywhere * seen.sum(axis=place, keepdims=True)
        return seen

    def _order(self) -> Ints:
        """For each group, the place of its classes."""
        group = self.asked.listed[1].max(axis=tuple(self.rest))  # −1 where the row does not pass
        return np.argsort(group.ravel(), kind="stable")

    def _laws(self, f: list[Floats], order: Ints) -> dict[tuple[int, int], CountLaw]:
        """Groups of one perturbed column, with nothing else read."""
        asked = self.asked
        if self.rest or len(self.grouped) != 1 or asked.axes[0].public:
            return {}
        axis = asked.axes[0]
        beta = (1 - axis.retention) * axis.moments[:, 0]
        return {
            (group, i): CountLaw(
                round(float(asked.seen[c])), round(asked.rows), axis.retention + beta[c], beta[c]
            )
            for group, c in enumerate(order.tolist())
            for i, term in enumerate(asked.terms)
            if not term.values and float(f[i]) == 1.0
        }
