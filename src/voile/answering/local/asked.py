"""Estimates and covariances of all totals of a query, for all of its groups.

With Y the sums over the seen rows, f a term of one group and g its unbiased counterpart:

  estimate     Σ Y·g
  covariance   of two such: Σ Y·g·h − Σ Ŷ·f·k, unbiased, with f and k what g and h are unbiased for
               and Ŷ the reconstructed sums: E[g(Y)h(Y)|x] − f(x)k(x), summed over the rows

Where a column's replacements are its own values, their distribution is estimated from the same
rows; f then has the first-order effect of that taken off (see Sub in group_errors.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from voile.answering.cells import ClassFunctions
from voile.answering.local.axes import PerturbedAxis
from voile.answering.local.group_errors import GroupErrors
from voile.answering.local.pure import PureErrors, is_pure
from voile.answering.local.tensors import expanded, places, reconstructed, split
from voile.answering.local.totals import LocalTotals
from voile.answering.totals import ListedGroups
from voile.arrays import Floats, Ints
from voile.query.predicate import Expression, Predicate, Term


@dataclass(frozen=True)
class TensorQuery:
    """A query on tensors: everything that estimates and errors are computed from."""

    cells: ClassFunctions
    axes: list[PerturbedAxis]
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
    def listed(self) -> tuple[ListedGroups, Ints]:
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
        states = split(of, self.axes)
        weights = np.asarray(
            sum(
                factor * states[places(powers, self.axes)] * f
                for factor, powers in expanded(degrees, self.axes)
            )
        )
        flat = np.broadcast_to(number, weights.shape).ravel()
        inside = flat >= 0
        return np.asarray(np.bincount(flat[inside], weights.ravel()[inside], len(groups)), float)
