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
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from voile.answering.arithmetic import Affine, as_ratio
from voile.answering.certain import bounded, combined
from voile.answering.classes.law import Extremes, Moments, OpenSums
from voile.answering.classes.ratios import RatioForm, certain_ratio
from voile.answering.columns import Certain, EstimatedColumn, Flags, Formulas, deviation_of_sum
from voile.arrays import Floats
from voile.query.formula import Call, Formula, Number
from voile.query.predicate import Term

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

    law: OpenSums
    moments: Moments
    about: Callable[[str], str] = str
    """Says which rows an interval is about."""
    kept: dict[bytes, Extremes] = field(default_factory=dict, repr=False)
    known: dict[Formula, Certain] = field(default_factory=dict, repr=False)

    @property
    def order(self) -> tuple[Term, ...]:
        return self.law.asked.terms

    @property
    def estimates(self) -> Floats:
        return self.moments.means

    @property
    def covers(self) -> str:
        return self.about(COVERS)

    @property
    def approximates(self) -> str:
        return self.about(APPROXIMATES)

    @property
    def is_exact(self) -> bool:
        return not any(c.any() for c in self.moments.covariances[0].values())

    # ------------------------------------------------------------------ under the assumption

    @np.errstate(all="ignore")
    def stderr(self, formula: Formula) -> Floats:
        return np.sqrt(self._variance(*self.slopes(formula)))

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
        found = self.extremes(self.spread_out(used, slope))
        return np.asarray((found.low >= 0) & (found.high <= 0))

    # ------------------------------------------------------------------ whatever holds

    def extremes(self, slope: Floats) -> Extremes:
        key = slope.tobytes()
        if key not in self.kept:
            self.kept[key] = self.law.extremes(slope)
        return self.kept[key]

    def _form(self, form: Affine) -> RatioForm:
        shape = len(self.estimates), len(self.order)
        return RatioForm(np.broadcast_to(form.row(self.order), shape).copy(), form.constant)

    def certain(self, formula: Formula) -> Certain:
        """Beyond which no data lie that agree with the release."""
        if formula not in self.known:
            self.known[formula] = self._certain(formula)
        return self.known[formula]

    @np.errstate(all="ignore")
    def _certain(self, formula: Formula) -> Certain:
        if isinstance(formula, Call) and formula.name == "round":
            assert isinstance(formula.args[1], Number)  # noqa: S101  (the parser sees to it)
            return self.certain(formula.args[0]).rounded(formula.args[1].value)
        ratio = as_ratio(formula)
        if ratio is not None and ratio.bottom.is_constant:
            form = ratio.top.times(1 / ratio.bottom.constant)
            ends = self.extremes(self._form(form).slope)
            return Certain(ends.low + form.constant, ends.high + form.constant, ends.tight)
        found: Certain | None = None
        if ratio is not None:
            found = certain_ratio(self.law, self._form(ratio.top), self._form(ratio.bottom))
            if not np.isinf([found.low, found.high]).any():
                return found
        assert isinstance(formula, Call)  # noqa: S101  (totals and numbers are ratios)
        parts = {arg: self.certain(arg) for arg in formula.args}
        rest = combined(formula, parts, len(self.estimates))
        return rest if found is None else found.cut_to(rest)

    def column(self, formula: Formula) -> EstimatedColumn:
        return bounded(super().column(formula), self.certain(formula))


@np.errstate(all="ignore")
def deviation(variance: Floats, part: Floats, miss: float) -> Floats:
    """How far a sum of independent numbers of a known variance may be off its mean."""
    log = math.log(2 / miss)
    bernstein = np.sqrt(2 * variance * log) + part * log / 3
    return np.where(variance > 0, deviation_of_sum(np.sqrt(variance), part, bernstein, miss), 0.0)
