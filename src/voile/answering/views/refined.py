"""Refined estimates: each plain one weighed against what a model of the table expects.

The model is a mixture of products fitted to the same view (voile.refine), so its sums over the
domain are one more weighted contraction. A total is refined by weighing both by their errors.
Groups are then moved, by their errors, so that they add up to the refined total, and what counts
rows is never negative. Formulas are computed from refined totals.

To weigh them, the error of a weighted sum with weights w is modelled like a count's, which is the
case w = 1: κ·Σw² for what a smooth model cannot know, τ·σ²·min(1, √(n·Σw²)/σ)^0.6 for noise left in
the fit, b²·n·Σw² for its bias (n the rows that count; Cauchy and Schwarz).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from voile.answering.arithmetic import as_ratio, evaluate
from voile.answering.columns import EstimatedColumn, Intervals, terms_of
from voile.answering.totals import product
from voile.answering.views.estimator import ViewEstimator
from voile.arrays import Floats
from voile.query.formula import Formula, Total
from voile.query.predicate import Term
from voile.refine import ErrorModel
from voile.refine.mixture import terms as error_terms

COVERS = (
    "the statistic of the table that was published, at about the stated confidence: the error is "
    "that of queries like this one when halves of the view examine each other, not a guarantee; "
    "the plain estimate's interval is one"
)
ROUNDS = 50


@dataclass(frozen=True)
class Refiner:
    """Refined columns of one answer."""

    plain: ViewEstimator
    model: Floats
    """(groups, terms): what the model expects each total to be."""
    error: ErrorModel

    def column(self, formula: Formula) -> EstimatedColumn:
        """The refined estimate of a formula of totals, with the plain one beside it."""
        terms = tuple(self.plain.totals.terms)
        dual = evaluate(formula, self.totals, {}, terms, len(self.model))
        used = terms_of(formula)
        stderr = self._stderr(dual.slope, used)
        value = np.clip(dual.value, *self._range(formula))
        return EstimatedColumn(value, stderr, self._interval(formula, value, stderr), COVERS)

    @cached_property
    def totals(self) -> dict[Term, Floats]:
        """Refined totals by term: (groups,) each."""
        return {term: self._total(term) for term in self.plain.totals.terms}

    def _total(self, term: Term) -> Floats:
        totals = self.plain.totals
        rows = Term(term.predicate)
        if any(product(term, t) not in totals.terms for t in (term, rows)):
            return self.plain.estimates[:, totals.column(term)]  # only ever part of a variance
        value, stderr = self._alone(term)
        if len(value) > 1 and totals.groups.complete:
            whole, _ = self._whole._alone(term)
            value = adding_up(value, stderr**2, float(whole[0]), least=self._least(term))
        return value

    @cached_property
    def _whole(self) -> Refiner:
        """All groups together, as a query without GROUP BY sees them."""
        return Refiner(self.plain.whole(), self.model.sum(axis=0, keepdims=True), self.error)

    def _alone(self, term: Term) -> tuple[Floats, Floats]:
        """Each group's total and standard error, whatever the others are.

        A sum is the model's mean value times the refined number of rows, plus how far the rows of
        the view are from that mean: so the sum of 1 is the count.
        """
        totals, rows = self.plain.totals, Term(term.predicate)
        i, j = totals.column(term), totals.column(rows)
        plain, model = self.plain.estimates, self.model
        if not term.values:
            variance = self._variance((term,), np.ones((len(plain), 1)))
            return self.error.combine(plain[:, i], variance, model[:, i])
        mean = np.divide(model[:, i], model[:, j], out=np.zeros(len(plain)), where=model[:, j] > 0)
        used, slope = (term, rows), np.stack([np.ones(len(plain)), -mean], axis=1)
        apart = plain[:, i] - mean * plain[:, j]
        left, error = self._weighed(apart, self._variance(used, slope), *self._sizes(used, slope))
        count, count_error = self._alone(rows)
        value = np.maximum(mean * count + left, self._least(term))
        return value, np.hypot(error, mean * count_error)

    def _weighed(
        self, plain: Floats, variance: Floats, size: Floats, square: Floats
    ) -> tuple[Floats, Floats]:
        """A plain estimate of what the model takes for 0, weighed by the errors of both."""
        wrong = self._model_variance(variance, size, square)
        both = variance + wrong
        weight = np.divide(wrong, both, out=np.ones_like(both), where=both > 0)
        stated = weight * variance * (1 + 2 * (1 - weight) * self.error.follows)
        return weight * plain, np.sqrt(np.minimum(stated, variance))

    def _model_variance(self, variance: Floats, size: Floats, square: Floats) -> Floats:
        product_ = np.sqrt(np.maximum(size * square, 0.0))
        _, noise, bias = error_terms(product_, variance)
        return np.asarray(self.error.weights @ np.stack([square, noise, bias]))

    def _least(self, term: Term) -> float:
        return 0.0 if self.plain.ranges.get(term, (0.0, 0.0))[0] >= 0 else -np.inf

    # ------------------------------------------------------------------ errors

    def _variance(self, used: tuple[Term, ...], slope: Floats) -> Floats:
        """Of the plain estimate of the sum with these slopes."""
        members = np.maximum(self.plain.products(used, slope, self.plain.estimates), 0.0)
        spread = np.maximum(self.plain.products(used, slope, self.plain.totals.spread), 0.0)
        return self.plain.mechanism.variance(members, spread)

    def _sizes(self, used: tuple[Term, ...], slope: Floats) -> tuple[Floats, Floats]:
        """The rows that count, and Σ w² over them, as the model expects them."""
        totals = self.plain.totals
        counts = [self.model[:, totals.column(Term(t.predicate))] for t in used]
        square = np.maximum(self.plain.products(used, slope, self.model), 0.0)
        return np.max(counts, axis=0), square

    def _stderr(self, slopes: Floats, used: tuple[Term, ...]) -> Floats:
        """As stated for counts; for what sums values, the plain estimate's.

        How wrong the model is has been learned from counts. Values with a long tail can be worse,
        so that their refined estimates may be better but are not called so.
        """
        slope = slopes[:, [self.plain.totals.column(term) for term in used]]
        variance = self._variance(used, slope)
        if any(term.values for term in used):
            return np.sqrt(variance)
        if len(used) == 1:
            return np.abs(slope[:, 0]) * self._alone(used[0])[1]
        return self._weighed(np.zeros(len(slope)), variance, *self._sizes(used, slope))[1]

    def _interval(self, formula: Formula, value: Floats, stderr: Floats) -> Intervals:
        limits = self._range(formula)

        def interval(confidence: float) -> tuple[Floats, Floats]:
            off = NormalDist().inv_cdf((1 + confidence) / 2) * stderr
            return np.clip(value - off, *limits), np.clip(value + off, *limits)

        return interval

    def _range(self, formula: Formula) -> tuple[float, float]:
        """Outside of which the formula cannot be: counts below 0, averages beyond the values."""
        ratio = as_ratio(formula)
        if isinstance(formula, Total):
            rows = self.plain.rows
            most = np.inf if rows is None or formula.term.values else float(rows)
            return self._least(formula.term), most
        if ratio and not ratio.bottom.is_constant:
            return self.plain.known_range(ratio)
        return -np.inf, np.inf


def adding_up(values: Floats, variances: Floats, total: float, *, least: float) -> Floats:
    """The values moved so that they add up to the total: the surer ones less, none below `least`.

    The least change in units of the variances, found by moving those that can still move.
    """
    found = np.maximum(values, least)
    for _ in range(ROUNDS):
        missing = total - float(found.sum())
        if abs(missing) <= 1e-9 * max(1.0, abs(total)):
            break
        free = (variances > 0) & ((missing > 0) | (found > least))
        if not free.any():
            break
        moved = found + np.where(free, missing * variances / variances[free].sum(), 0.0)
        found = np.maximum(moved, least)
    return found
