"""Covariances, bounds and laws of totals, group by group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from voile.answering.axes import shape_of
from voile.answering.local.axes import PerturbedAxis
from voile.answering.local.tensors import (
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
from voile.answering.local.totals import CountLaw, TotalErrors
from voile.arrays import Floats
from voile.errors import QueryError

if TYPE_CHECKING:
    from voile.answering.local.asked import TensorQuery

MOST_WORK = 2 * 10**9
"""States times groups that are gone through."""


class GroupErrors:
    """Covariances group by group, whatever the query is."""

    def __init__(self, asked: TensorQuery) -> None:
        self.asked = asked
        states = math.prod(shape_of(asked.axes))
        groups = len(asked.listed[0])
        if states * groups > MOST_WORK:
            raise QueryError(
                f"{groups:,} groups of {states:,} combinations of classes are too much",
                hint="group by columns that no condition reads, or ask for fewer groups",
            )

    def errors(self, pairs: Sequence[tuple[int, int]]) -> TotalErrors:
        asked = self.asked
        count, terms = len(asked.listed[0]), len(asked.terms)
        covariances = {pair: np.zeros(count) for pair in pairs}
        squares = {pair: np.zeros(count) for pair in pairs}
        most, wide = np.zeros((count, terms)), np.zeros((count, terms))
        laws: dict[tuple[int, int], CountLaw] = {}
        exact = len(asked.axes) == 1 and asked.axes[0].permuted
        for group in range(count):
            sub = GroupTensors(asked, group)
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

    Not so where columns are replaced by their own values, of which all rows tell something.
    """

    def __init__(self, asked: TensorQuery, group: int) -> None:
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
