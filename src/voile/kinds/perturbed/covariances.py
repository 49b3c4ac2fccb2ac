"""Covariances, bounds and laws of totals, group by group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from voile.answering.axes import shape_of
from voile.arrays import Floats, Ints
from voile.errors import QueryError
from voile.kinds.perturbed.axes import PerturbedAxis
from voile.kinds.perturbed.estimator import CountLaw, TotalErrors
from voile.kinds.perturbed.tensors import (
    ends,
    multiplied,
    placed,
    places,
    reach,
    reconstructed,
    split,
    unbiased,
    varying,
    widest,
)

if TYPE_CHECKING:
    from voile.kinds.perturbed.answering import TensorQuery

MOST_WORK = 2 * 10**9
"""States times groups that are gone through."""


class GroupErrors:
    """Covariances group by group, whatever the query is."""

    def __init__(self, request: TensorQuery) -> None:
        self.request = request
        states = math.prod(shape_of(request.axes))
        groups = len(request.listed[0])
        if states * groups > MOST_WORK:
            raise QueryError(
                f"{groups:,} groups of {states:,} combinations of classes are too much",
                hint="group by columns that no condition reads, or ask for fewer groups",
            )

    def errors(self, pairs: Sequence[tuple[int, int]]) -> TotalErrors:
        """Covariances, bounds and laws, computed for one group after the other."""
        request = self.request
        count, terms = len(request.listed[0]), len(request.terms)
        covariances = {pair: np.zeros(count) for pair in pairs}
        squares = {pair: np.zeros(count) for pair in pairs}
        most, wide = np.zeros((count, terms)), np.zeros((count, terms))
        laws: dict[tuple[int, int], CountLaw] = {}
        exact = len(request.axes) == 1 and request.axes[0].permuted
        for group in range(count):
            sub = GroupTensors(request, group)
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
        return TotalErrors(covariances, squares, most, np.sqrt(wide), laws)


class GroupTensors:
    """The part of a query that is about one group: public columns are cut to its classes.

    Not so where columns are replaced by their own values, about which all rows are evidence.
    """

    def __init__(self, request: TensorQuery, group: int) -> None:
        self._asked = request
        inside = request.listed[1] == group
        self._own = any(axis.own for axis in request.axes)
        self._keep = [
            np.flatnonzero(inside.any(axis=tuple(i for i in range(inside.ndim) if i != j)))
            if axis.public and not self._own
            else np.arange(axis.classes)
            for j, axis in enumerate(request.axes)
        ]
        self.axes = [axis.cut(keep) for axis, keep in zip(request.axes, self._keep, strict=True)]
        self._inside = inside[np.ix_(*self._keep)] if request.axes else inside
        self.seen, self.estimated = self._cut(request.seen), self._cut(request.estimated)

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


def summed_out(seen: Floats, j: int, axis: PerturbedAxis) -> Floats:
    """Without one column: its classes together, power 0."""
    found: Floats = np.take(seen, np.arange(0, axis.states, axis.powers), axis=j).sum(axis=j)
    return found


def ones_elsewhere(axes: Sequence[PerturbedAxis], j: int | None) -> Floats:
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


# ----------------------------------------------------------------------
# covariances and bounds of all groups at once, where groups are just classes of columns


def is_pure(request: TensorQuery) -> bool:
    """Whether groups are just the classes of their columns, which nothing else reads."""
    if len(request.listed[0]) < 2 or any(axis.own for axis in request.axes):
        return False
    if any(len(g.attributes) != 1 for g in request.groups):
        return False
    grouped = group_axes(request)
    if len(grouped) != len(request.groups) or any(request.axes[j].powers > 1 for j in grouped):
        return False
    passing = request.cells.truth(request.where)
    functions = [f for f, _ in request.functions]
    free = all(x.shape[j] == 1 for x in (passing, *functions) for j in grouped)
    sizes = math.prod(request.axes[j].classes for j in grouped)
    return free and sizes == len(request.listed[0])


def group_axes(request: TensorQuery) -> list[int]:
    """The places of the axes that the query groups by."""
    names = [axis.attribute for axis in request.axes]
    return sorted({names.index(g.attributes[0]) for g in request.groups})


def factor_ends(axis: PerturbedAxis) -> tuple[Floats, Floats]:
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

    def __init__(self, request: TensorQuery) -> None:
        self.request = request
        self.grouped = group_axes(request)
        self.rest = [j for j in range(len(request.axes)) if j not in self.grouped]
        self._known = all(request.axes[j].public for j in self.grouped)

    def errors(self, pairs: Sequence[tuple[int, int]]) -> TotalErrors:
        """Covariances, bounds and laws, computed for all groups at once."""
        request = self.request
        rest_axes = [request.axes[j] for j in self.rest]
        f = [self._on_rest(i) for i in range(len(request.terms))]
        g = [unbiased(x, rest_axes) for x in f]
        order = self._order()
        covariances, squares = {}, {}
        for i, j in pairs:
            seen = self._over_rest(request.seen, multiplied(g[i], g[j], rest_axes))
            true = self._over_rest(request.estimated, multiplied(f[i], f[j], rest_axes))
            squared = self._squared(seen).ravel()[order]
            squares[i, j] = squared
            covariances[i, j] = squared - true.ravel()[order]
        sizes = [self._sizes(x, y, order) for x, y in zip(g, f, strict=True)]
        most, wide = (np.stack(columns, axis=1) for columns in zip(*sizes, strict=True))
        return TotalErrors(covariances, squares, most, wide, self._laws(f, order))

    def _sizes(self, g: Floats, f: Floats, order: Ints) -> tuple[Floats, Floats]:
        """The most of one row, and a bound of the standard error."""
        request, rest = self.request, [self.request.axes[j] for j in self.rest]
        if self._known:
            wide = self._over_rest(request.seen, widest(g, f, rest)).ravel()[order]
            return np.full(len(order), reach(g, f, rest)), np.sqrt(wide)
        factor = reduce(outer_ends, [factor_ends(request.axes[j]) for j in self.grouped])
        (g_low, g_high), (f_low, f_high) = (
            (low.min(initial=0.0), high.max(initial=0.0))
            for low, high in (ends(g, rest), ends(f, rest))
        )
        low, high = outer_ends(factor, (g_low, g_high))
        most = np.maximum(high - f_low, f_high - low).ravel()[order]
        return most, ((high - low) / 2 * math.sqrt(request.rows)).ravel()[order]

    def _on_rest(self, i: int) -> Floats:
        f, degrees = self.request.functions[i]
        axes = self.request.axes
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
            axis = self.request.axes[j]
            p, mass = axis.retention, axis.moments[:, 0]
            shape = [1] * seen.ndim
            shape[place] = len(mass)
            diagonal = ((1 - 2 * (1 - p) * mass) / p**2).reshape(shape)
            everywhere = (((1 - p) * mass / p) ** 2).reshape(shape)
            seen = diagonal * seen + everywhere * seen.sum(axis=place, keepdims=True)
        return seen

    def _order(self) -> Ints:
        """For each group, the place of its classes."""
        group = self.request.listed[1].max(axis=tuple(self.rest))  # −1 where the row does not pass
        return np.argsort(group.ravel(), kind="stable")

    def _laws(self, f: list[Floats], order: Ints) -> dict[tuple[int, int], CountLaw]:
        """Groups of one perturbed column, with nothing else read."""
        request = self.request
        if self.rest or len(self.grouped) != 1 or request.axes[0].public:
            return {}
        axis = request.axes[0]
        beta = (1 - axis.retention) * axis.moments[:, 0]
        return {
            (group, i): CountLaw(
                round(float(request.seen[c])),
                round(request.rows),
                axis.retention + beta[c],
                beta[c],
            )
            for group, c in enumerate(order.tolist())
            for i, term in enumerate(request.terms)
            if not term.values and float(f[i]) == 1.0
        }
