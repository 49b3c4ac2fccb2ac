"""Formulas of totals that the release leaves open: standard errors, intervals, certain bounds.

Under the assumption about what is open, a total is a sum of independent rows (or, in a bucket, of
a random pairing; the count of pairs with two properties has the law of a sum of independent coins
there too). Its interval is

  the normal one    where no row matters much: b·max(1, z²/2) ≤ σ, with b the most of one row;
                    wider by b/2, for totals move in steps
  Bernstein's       otherwise

cut to the certain bounds, which hold without the assumption.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from voile.answering.arithmetic import Ratio, as_ratio, round_to
from voile.answering.classes.law import Extremes, Law, Moments
from voile.answering.columns import Column, Flags, Formulas, terms_of
from voile.answering.mixed import bounds
from voile.estimate import Floats
from voile.query.formula import Call, Formula, Number, leaves
from voile.query.predicate import Term

MOST_STEPS = 50
SETTLED = 1e-12
Sides = tuple[Floats, Floats]
COVERS = (
    "the statistic of the rows before they were grouped, at about the stated confidence, if what "
    "is assumed about the values within a class holds; the certain bounds hold always"
)
APPROXIMATES = (
    "the statistic of the rows before they were grouped, at about the stated confidence (delta "
    "method; good where the counts behind it are large), if what is assumed about the values "
    "within a class holds; the certain bounds hold always"
)


@dataclass(frozen=True)
class ClassEstimator(Formulas):
    """Means of totals, and of formulas made of them."""

    law: Law
    moments: Moments
    kept: dict[bytes, Extremes] = field(default_factory=dict, repr=False)

    @property
    def order(self) -> tuple[Term, ...]:
        return self.law.asked.terms

    @property
    def estimates(self) -> Floats:
        return self.moments.means

    @property
    def covers(self) -> str:
        return COVERS

    @property
    def approximates(self) -> str:
        return APPROXIMATES

    @property
    def is_exact(self) -> bool:
        return not any(c.any() for c in self.moments.covariances[0].values())

    # ------------------------------------------------------------------ under the assumption

    @np.errstate(all="ignore")
    def stderr(self, formula: Formula) -> Floats:
        used = terms_of(formula)
        slope = self.values({})(formula).slope[:, [self.order.index(term) for term in used]]
        return np.sqrt(self._variance(used, slope))

    def _variance(self, used: tuple[Term, ...], slope: Floats) -> Floats:
        """Σ s_i·s_j·covariance_ij; the least, where there are several bounds."""
        places = [self.order.index(term) for term in used]
        found = []
        for of in self.moments.covariances:
            variance = np.zeros(len(slope))
            for i, a in enumerate(places):
                for j, b in enumerate(places):
                    both = of[a, b] if (a, b) in of else of[b, a]
                    variance += slope[:, i] * slope[:, j] * both
            found.append(np.maximum(variance, 0.0))
        return np.asarray(np.minimum.reduce(found))

    @np.errstate(all="ignore")
    def deviation(self, used: tuple[Term, ...], slope: Floats, miss: float) -> Floats:
        variance = self._variance(used, slope)
        return deviation(variance, self.largest_weight(used, slope), miss)

    def surely_nothing(self, used: tuple[Term, ...], slope: Floats) -> Flags:
        found = self.extremes(self._spread_out(used, slope))
        return np.asarray((found.low >= 0) & (found.high <= 0))

    # ------------------------------------------------------------------ whatever holds

    def extremes(self, slope: Floats) -> Extremes:
        key = slope.tobytes()
        if key not in self.kept:
            self.kept[key] = self.law.extremes(slope)
        return self.kept[key]

    def _spread_out(self, used: tuple[Term, ...], slope: Floats) -> Floats:
        whole = np.zeros((len(slope), len(self.order)))
        whole[:, [self.order.index(term) for term in used]] = slope
        return whole

    def _form(self, row: Floats) -> Floats:
        return np.broadcast_to(row, (len(self.estimates), len(self.order))).copy()

    @np.errstate(all="ignore")
    def certain(self, formula: Formula) -> Sides:
        """Beyond which no data lie that agree with the release."""
        if isinstance(formula, Call) and formula.name == "round":
            assert isinstance(formula.args[1], Number)  # noqa: S101  (the parser sees to it)
            low, high = self.certain(formula.args[0])
            digits = formula.args[1].value
            return round_to(low, digits), round_to(high, digits)
        ratio = as_ratio(formula)
        if ratio is not None and ratio.bottom.is_constant:
            form = ratio.top.times(1 / ratio.bottom.constant)
            found = self.extremes(self._form(form.row(self.order)))
            return found.low + form.constant, found.high + form.constant
        if ratio is not None and not (ratio.top.constant or ratio.bottom.constant):
            return self._ratio(ratio)
        return self._parts(formula)

    def _parts(self, formula: Formula) -> Sides:
        """From the bounds of every part."""
        ends = {leaf: self.certain(leaf) for leaf in leaves(formula)}
        return bounds(formula, ends, len(self.estimates))

    def _ratio(self, ratio: Ratio) -> Sides:
        top, bottom = (self._form(form.row(self.order)) for form in (ratio.top, ratio.bottom))
        below = self.law.extremes(bottom, terms=True)
        low, high = self.law.row_ratios(top, bottom)
        if not below.tight:
            return low, high
        first = (top * below.low_terms).sum(axis=1) / below.low
        sure = below.low > 0
        least = -self._highest(-top, bottom, np.where(sure, -first, 0.0), sure)
        most = self._highest(top, bottom, np.where(sure, first, 0.0), sure)
        nothing = below.high <= 0
        low, high = (
            np.where(sure & np.isfinite(exact), exact, end)
            for exact, end in ((least, low), (most, high))
        )
        return np.where(nothing, np.nan, low), np.where(nothing, np.nan, high)

    def _highest(self, top: Floats, bottom: Floats, ratio: Floats, sure: Flags) -> Floats:
        """The highest top/bottom, from one that is possible (Dinkelbach's steps)."""
        for _ in range(MOST_STEPS if sure.any() else 0):
            slope = np.where(sure[:, None], top - ratio[:, None] * bottom, 0.0)
            found = self.law.extremes(slope, terms=True)
            if not found.tight or np.isnan(found.high_terms).any():
                return np.full(len(ratio), np.nan)
            above, below = ((x * found.high_terms).sum(axis=1) for x in (top, bottom))
            better = np.where(sure & (below > 0), above / below, ratio)
            settled = better <= ratio + SETTLED * np.abs(ratio)
            ratio = np.maximum(ratio, better)
            if settled.all():
                break
        return ratio

    def column(self, formula: Formula) -> Column:
        return bounded(super().column(formula), self.certain(formula))


def bounded(column: Column, certain: Sides) -> Column:
    """The column with its interval within the certain bounds."""
    low, high = certain
    known = low == high

    def within(values: Floats) -> Floats:
        return np.fmin(np.fmax(values, low), high) if len(values) else values

    def interval(confidence: float) -> Sides:
        least, most = column.interval(confidence)
        return within(least), within(most)

    value = np.where(np.isnan(column.value), np.nan, within(column.value))
    stderr = np.where(known & ~np.isnan(column.stderr), 0.0, column.stderr)
    return replace(column, value=value, stderr=stderr, interval=interval, certain=certain)


@np.errstate(all="ignore")
def deviation(variance: Floats, part: Floats, miss: float) -> Floats:
    """How far a sum of independent numbers of a known variance may be off its mean."""
    z, log = -NormalDist().inv_cdf(miss / 2), math.log(2 / miss)
    spread = np.sqrt(variance)
    normal = z * spread + part / 2
    few = max(1.0, z**2 / 2) * part > spread
    wide = np.maximum(np.sqrt(2 * variance * log) + part * log / 3, normal)
    return np.where(variance > 0, np.where(few, wide, normal), 0.0)
