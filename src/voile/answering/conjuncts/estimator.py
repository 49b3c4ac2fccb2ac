"""Formulas of totals from published tables: standard errors and intervals.

A total from one table is a sum of independent noise, which is normal but for its steps. One from
two parts is a mean of t products, whose tails are longer: its interval is Student's, with as many
degrees of freedom as there are halves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri, stdtrit

from voile.answering.arithmetic import Affine
from voile.answering.columns import Flags, Formulas
from voile.answering.conjuncts.joints import Average, TableCells
from voile.answering.conjuncts.planning import Plan
from voile.arrays import Floats
from voile.query.formula import Formula
from voile.query.predicate import Term

COVERS = (
    "the statistic of the table that was published, at about the stated confidence, over the "
    "randomness of the release"
)


@dataclass(frozen=True)
class ConjunctEstimator(Formulas):
    """The totals of one formula, and what is made of them."""

    terms: tuple[Term, ...]
    cells: TableCells
    plan: Plan
    found: Floats
    """(groups, terms)"""
    rows: int
    halves: int

    @property
    def order(self) -> tuple[Term, ...]:
        return self.terms

    @property
    def estimates(self) -> Floats:
        return self.found

    @property
    def covers(self) -> str:
        return COVERS

    @property
    def is_exact(self) -> bool:
        return not self.plan.variance(np.ones_like(self.found)).any() and not any(
            self.plan.variance(self._only(i)).any() for i in range(len(self.terms))
        )

    def _only(self, place: int) -> Floats:
        slope = np.zeros_like(self.found)
        slope[:, place] = 1.0
        return slope

    @np.errstate(all="ignore")
    def stderr(self, formula: Formula) -> Floats:
        return np.sqrt(self.plan.variance(self.spread_out(*self.slopes(formula))))

    def deviation(self, used: tuple[Term, ...], slope: Floats, miss: float) -> Floats:
        whole = self.spread_out(used, slope)
        spread = np.sqrt(self.plan.variance(whole))
        step = self.largest_weight(used, slope) / 2
        return np.asarray(np.where(spread > 0, self.factor(miss) * spread + step, 0.0))

    def factor(self, miss: float) -> float:
        """How many standard errors are exceeded, on either side, with chance `miss`."""
        return factor(self.plan, self.halves, miss)

    def surely_nothing(self, used: tuple[Term, ...], slope: Floats) -> Flags:
        whole = self.spread_out(used, slope)
        asked = np.einsum("cg,gc->c", whole[self.cells.group], self.cells.payoffs)
        return np.asarray(np.bincount(self.cells.group, asked != 0, self.cells.groups) == 0)

    def most(self, form: Affine) -> float:
        """No more rows count than there are."""
        if any(factor < 0 for _, factor in form.parts):
            return math.inf
        largest = sum(factor * max(self.ranges[term][1], 0.0) for term, factor in form.parts)
        return form.constant + self.rows * largest


def factor(plan: Plan, halves: int, miss: float) -> float:
    if isinstance(plan, Average):
        return -float(stdtrit(halves, miss / 2))
    return -float(ndtri(miss / 2))
