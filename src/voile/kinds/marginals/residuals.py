"""Marginals in independent pieces (ResidualPlanner: Xiao, He, Zhang and Kifer, NeurIPS 2023).

A component c is a set of columns; its part of the data is the marginal on c, centred along every
axis (what the analysis of variance calls an interaction). The marginal on s is the sum over c ⊆ s
of these parts, each spread evenly over the other axes. So each part is measured once, and all
marginals that are rebuilt agree.

With n_i values of column i:
  p_c = Π_{i∈c} (1 − 1/n_i)                      the squared norm that one record has in c
  ρ = Σ_c p_c/(2σ_c²)                            add or remove a record
  Var of a linear function f of the marginal on s: Σ_{c⊆s} σ_c²·‖C_c f‖², C_c f the function summed
     over the other axes, divided by their cells, and centred along those of c
The centred marginal times N_c = Π n_i is a table of whole numbers; noise is discrete Gaussian of
scale σ_c·N_c on each of its cells, so that ρ is that of the noise which is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from voile.arrays import Floats, Ints

Columns = tuple[int, ...]
"""Places of columns in the schema, ascending."""


def closure(tables: Iterable[Columns]) -> list[Columns]:
    """All subsets of the tables, the empty one first: the components that rebuild them."""
    found = {some for table in tables for size in range(len(table) + 1)
             for some in combinations(table, size)}  # fmt: skip
    return sorted(found, key=lambda c: (len(c), c))


def centred(table: Floats) -> Floats:
    """Without what a table of fewer columns has: every line along every axis sums to 0."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def whole_centred(table: Ints) -> Ints:
    """N_c times the centred table, in whole numbers."""
    for axis, size in enumerate(table.shape):
        table = table * size - table.sum(axis=axis, keepdims=True)
    return table


@dataclass(frozen=True)
class ResidualPlan:
    """Which components are measured, and with how much noise."""

    sizes: tuple[int, ...]
    variances: Mapping[Columns, float]
    """σ_c², by component."""

    @cached_property
    def components(self) -> list[Columns]:
        """In the order in which they are measured."""
        return sorted(self.variances, key=lambda c: (len(c), c))

    def weight(self, component: Columns) -> float:
        """p_c."""
        return math.prod(1 - 1 / self.sizes[i] for i in component)

    def cells(self, component: Columns) -> int:
        """N_c."""
        return math.prod(self.sizes[i] for i in component)

    @property
    def rho(self) -> float:
        """ρ of zCDP, for a record that is added or removed."""
        return sum(self.weight(c) / (2 * v) for c, v in self.variances.items())

    @property
    def exchange_rho(self) -> float:
        """The same for a record that takes another's place, at most.

        A change of the columns in D moves component c by 2(p_c − Π_{c∖D}(1 − 1/n)·Π_{c∩D}(−1/n))
        in squared norm; what is worst is searched over all D where columns are few, else bounded
        by the worst of each component.
        """
        return max(self._exchanged(d) for d in self._changes())

    def _changes(self) -> Iterable[Columns]:
        number = len(self.sizes)
        if number <= MOST_SEARCHED:
            for size in range(1, number + 1):
                yield from combinations(range(number), size)
        else:
            yield ()  # `_exchanged` bounds each component by itself

    def _exchanged(self, changed: Columns) -> float:
        total = 0.0
        for c, variance in self.variances.items():
            if not c:
                continue
            own = self.weight(c)
            if changed:
                other = math.prod(
                    -1 / self.sizes[i] if i in changed else 1 - 1 / self.sizes[i] for i in c
                )
                moved = 2 * (own - other) if any(i in changed for i in c) else 0.0
            else:
                moved = 2 * (own + max(1 / self.sizes[i] for i in c))
            total += moved / (2 * variance)
        return total


MOST_SEARCHED = 12
"""Columns of which every set of changes is tried."""


def plan(sizes: Sequence[int], weights: Mapping[Columns, float], rho: float) -> ResidualPlan:
    """The variances that make Σ_s w_s·Σ_cells Var least at this ρ."""
    components = closure(weights)
    values = dict.fromkeys(components, 0.0)
    for s, weight in weights.items():
        for size in range(len(s) + 1):
            for c in combinations(s, size):
                rest = math.prod(1 / sizes[i] for i in s if i not in c)
                values[c] += weight * rest * math.prod(sizes[i] - 1 for i in c)
    # A column of one value has nothing to measure.
    told = {c: math.prod(1 - 1 / sizes[i] for i in c) for c in components}
    raw = {c: math.sqrt(told[c] / values[c]) for c in components if told[c] > 0}
    scale = sum(told[c] / (2 * v) for c, v in raw.items()) / rho
    return ResidualPlan(tuple(sizes), {c: v * scale for c, v in raw.items()})


def balanced(sizes: Sequence[int], tables: Iterable[Columns]) -> dict[Columns, float]:
    """Weights under which small and large tables gain alike: one over the root of the cells."""
    return {s: math.prod(sizes[i] for i in s) ** -0.5 for s in tables}


@dataclass(frozen=True, eq=False)
class NoisyMarginals:
    """Components that were measured, and the tables that they rebuild."""

    plan: ResidualPlan
    residuals: Mapping[Columns, Floats]
    """Centred, by component."""

    def table(self, columns: Columns) -> Floats:
        """The marginal on these columns, unbiased."""
        sizes = [self.plan.sizes[i] for i in columns]
        found = np.zeros(sizes)
        for size in range(len(columns) + 1):
            for c in combinations(columns, size):
                if c in self.residuals:
                    shape = [self.plan.sizes[i] if i in c else 1 for i in columns]
                    rest = math.prod(self.plan.sizes[i] for i in columns if i not in c)
                    found += self.residuals[c].reshape(shape) / rest
        return found

    def cell_variance(self, columns: Columns) -> float:
        """Of every cell of that marginal."""
        total = 0.0
        for size in range(len(columns) + 1):
            for c in combinations(columns, size):
                if c in self.plan.variances:
                    rest = math.prod(self.plan.sizes[i] for i in columns if i not in c)
                    total += self.plan.variances[c] * self.plan.weight(c) / rest**2
        return total


# ----------------------------------------------------------------------
# linear functions of a marginal: what they are estimated at, and their exact covariances


@dataclass(frozen=True, eq=False)
class LinearFunctions:
    """Functions of a marginal that are equal on classes of values: f(k, class, class, …).

    `weights` has, in its last axes, what a row of each combination of classes adds to each
    function; before these there may be axes of its own, such as one of functions.
    """

    columns: Columns
    classes: tuple[Ints, ...]
    """For each column, the class of each of its values."""
    weights: Floats

    @cached_property
    def _sizes(self) -> list[Floats]:
        """How many values each class has."""
        return [np.bincount(c).astype(np.float64) for c in self.classes]

    @property
    def _before(self) -> int:
        return self.weights.ndim - len(self.columns)

    @cached_property
    def parts(self) -> dict[Columns, Floats]:
        """C_c f for every c ⊆ columns: averaged over other axes, centred along those of c."""
        found = {(): self.weights}
        for j, column in enumerate(self.columns):
            share = self._sizes[j] / self._sizes[j].sum()
            axis = self._before + j
            split = {}
            for c, f in found.items():
                mean = np.moveaxis(np.tensordot(f, share, (axis, 0))[..., None], -1, axis)
                split[c] = mean
                split[(*c, column)] = f - mean
            found = split
        return found

    def estimates(self, noisy: NoisyMarginals) -> Floats:
        """Unbiased: the sum over components of what each says."""
        total = np.zeros(self.weights.shape[: self._before])
        for c, f in self.parts.items():
            if c in noisy.residuals:
                folded = self._folded(noisy.residuals[c], c)
                shape = [folded.shape[c.index(i)] if i in c else 1 for i in self.columns]
                axes = tuple(range(self._before, self.weights.ndim))
                total = total + (f * folded.reshape(shape)).sum(axis=axes)
        return total

    def _folded(self, residual: Floats, component: Columns) -> Floats:
        """A component summed over the values of each class."""
        for axis, column in enumerate(component):
            class_of = self.classes[self.columns.index(column)]
            order = np.argsort(class_of, kind="stable")
            starts = np.searchsorted(class_of[order], np.arange(class_of.max() + 1))
            residual = np.add.reduceat(residual.take(order, axis=axis), starts, axis=axis)
        return residual

    def variances(self, plan: ResidualPlan) -> Floats:
        """Of each function's estimate."""
        total = np.zeros(self.weights.shape[: self._before])
        for c, f in self.parts.items():
            if c in plan.variances:
                total = total + plan.variances[c] * self._norm(c, f, f)
        return total

    def covariances(self, plan: ResidualPlan) -> Floats:
        """(…, k, k): of the functions along the last axis before those of the columns."""
        total: Floats | None = None
        for c, f in self.parts.items():
            if c in plan.variances:
                one, other = np.expand_dims(f, self._before), np.expand_dims(f, self._before - 1)
                product = plan.variances[c] * self._norm(c, one, other, before=self._before + 1)
                total = product if total is None else total + product
        assert total is not None  # noqa: S101  (the empty component is always there, or p is 0)
        return total

    def _norm(self, component: Columns, f: Floats, g: Floats, before: int | None = None) -> Floats:
        """Σ over the cells of a component of f·g."""
        before = self._before if before is None else before
        product = f * g
        for j in reversed(range(len(self.columns))):
            size = self._sizes[j] if self.columns[j] in component else np.ones(1)
            product = np.tensordot(product, size, (before + j, 0))
        return np.asarray(product)
