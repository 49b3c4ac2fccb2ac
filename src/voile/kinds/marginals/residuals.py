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
The centred marginal times N_c = Π n_i is a table of whole numbers: that is what gets noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from voile.arrays import Floats, Ints

Columns = tuple[int, ...]
"""Places of columns in the schema, ascending."""


def subsets(table: Columns) -> Iterator[Columns]:
    """All of them, the empty one first."""
    for size in range(len(table) + 1):
        yield from combinations(table, size)


def closure(tables: Iterable[Columns]) -> list[Columns]:
    """All subsets of the tables, the empty one first: the components that rebuild them."""
    found = {some for table in tables for some in subsets(table)}
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
    """σ_c², by component; 0 where a component is known exactly."""

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
        if not all(self.variances.values()):
            return math.inf
        return math.fsum(self.weight(c) / (2 * v) for c, v in self.variances.items())

    @property
    def exchange_rho(self) -> float:
        """The same for a record that takes another's place, at most."""
        from voile.kinds.marginals.exchanges import worst_exchange  # noqa: PLC0415

        return worst_exchange(self.sizes, {c: 1 / v for c, v in self.variances.items() if c})

    def cell_variance(self, columns: Columns) -> float:
        """Of every cell of the marginal on these columns, as it is rebuilt."""
        total = 0.0
        for c in subsets(columns):
            if c in self.variances:
                rest = math.prod(self.sizes[i] for i in columns if i not in c)
                total += self.variances[c] * self.weight(c) / rest**2
        return total


def plan(sizes: Sequence[int], weights: Mapping[Columns, float], rho: float) -> ResidualPlan:
    """The variances that make Σ_s w_s·Σ_cells Var least at this ρ."""
    values = component_weights(sizes, weights)
    # A column of one value has nothing to measure.
    norms = {c: p for c in values if (p := math.prod(1 - 1 / sizes[i] for i in c)) > 0}
    raw = {c: math.sqrt(p / values[c]) for c, p in norms.items()}
    scale = math.fsum(norms[c] / (2 * v) for c, v in raw.items()) / rho
    return ResidualPlan(tuple(sizes), {c: v * scale for c, v in raw.items()})


def component_weights(
    sizes: Sequence[int], weights: Mapping[Columns, float]
) -> dict[Columns, float]:
    """v_c, by how much a unit of σ_c² adds to Σ_s w_s·Σ_cells Var."""
    values = dict.fromkeys(closure(weights), 0.0)
    for s, weight in weights.items():
        for c in subsets(s):
            rest = math.prod(1 / sizes[i] for i in s if i not in c)
            values[c] += weight * rest * math.prod(sizes[i] - 1 for i in c)
    return values


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
        for c in subsets(columns):
            if c in self.residuals:
                shape = [self.plan.sizes[i] if i in c else 1 for i in columns]
                rest = math.prod(self.plan.sizes[i] for i in columns if i not in c)
                found += self.residuals[c].reshape(shape) / rest
        return found

    def cell_variance(self, columns: Columns) -> float:
        """Of every cell of that marginal."""
        return self.plan.cell_variance(columns)
