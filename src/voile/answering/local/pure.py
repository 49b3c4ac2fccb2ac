"""Covariances and bounds of all groups at once, where groups are just classes of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from voile.answering.local.axes import PerturbedAxis
from voile.answering.local.tensors import (
    ends,
    multiplied,
    placed,
    reach,
    unbiased,
    varying,
    widest,
)
from voile.answering.local.totals import CountLaw, TotalErrors
from voile.arrays import Floats, Ints

if TYPE_CHECKING:
    from voile.answering.local.asked import TensorQuery


def is_pure(asked: TensorQuery) -> bool:
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


def group_axes(asked: TensorQuery) -> list[int]:
    names = [axis.attribute for axis in asked.axes]
    return sorted({names.index(g.attributes[0]) for g in asked.groups})


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

    def __init__(self, asked: TensorQuery) -> None:
        self.asked = asked
        self.grouped = group_axes(asked)
        self.rest = [j for j in range(len(asked.axes)) if j not in self.grouped]
        self._known = all(asked.axes[j].public for j in self.grouped)

    def errors(self, pairs: Sequence[tuple[int, int]]) -> TotalErrors:
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
        return TotalErrors(covariances, squares, most, wide, self._laws(f, order))

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
