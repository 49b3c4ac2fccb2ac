"""Estimates from a view: sums over its rows beside sums over the domain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Protocol, runtime_checkable

import numpy as np

from voile.answering.arithmetic import as_ratio, evaluate
from voile.answering.columns import (
    NORMAL,
    EstimatedColumn,
    Flags,
    Formulas,
    Intervals,
    terms_of,
)
from voile.answering.count_law import whole_interval
from voile.answering.totals import ListedGroups, NoiseShape, Totals, product
from voile.arrays import Floats
from voile.engines.rows import ReleaseRows
from voile.estimate import Bound
from voile.kinds.views.refinement.mixture import ErrorModel, doubted
from voile.kinds.views.refinement.mixture import terms as error_terms
from voile.query.aggregate import Formula, Total
from voile.query.domain import DomainSums, Weights
from voile.query.predicate import Term

LEAST_SAMPLED = 1e-6
"""A domain that was sampled is never taken for empty."""
SPENT_ON_SAMPLING = 0.1
"""The part of the chance to err that pays for a domain that was sampled."""


class ViewMechanism(Protocol):
    """What an answer asks of a view's mechanism: arithmetic on sums over rows and over the domain.

    A sum over the domain is Σ w for the mean of the noise, and Σ w² (`spread`) for its variance.
    Where noise differs from tuple to tuple they are weighted by its mean and its variance there.
    """

    def total(self, view: Floats, domain: Floats) -> Floats:
        """Σ w over the table, from Σ w over the view and over the domain."""
        ...

    def variance(self, members: Floats, spread: Floats) -> Floats:
        """Variance of that estimate, from Σ w² over the table and over the domain."""
        ...

    def deviation(
        self, view: Floats, domain: Floats, spread: Floats, largest: Floats, miss: float
    ) -> Floats:
        """What its error exceeds with probability at most `miss`, from Σ w² and |w| ≤ largest."""
        ...

    def domain_share(self, error: Floats) -> Floats:
        """What an error in Σ w over the domain does to the estimate."""
        ...


@runtime_checkable
class InvertibleCounts(Protocol):
    """A mechanism whose counts have a law that can be inverted."""

    def interval(
        self, seen: int, domain: float, confidence: float, rows: int | None = None
    ) -> tuple[float, float]:
        """An exact interval for a count."""
        ...


@dataclass(frozen=True)
class ViewEstimator(Formulas):
    """Estimates of totals, and of formulas made of them."""

    totals: Totals
    mechanism: ViewMechanism
    rows: int | None
    """The number of records of the table, where that is public."""

    @property
    def order(self) -> tuple[Term, ...]:
        """The terms, in the order of the totals' columns."""
        return self.totals.terms

    @property
    def covers(self) -> str:
        """What an interval of a sum or a ratio covers."""
        return NORMAL

    @cached_property
    def estimates(self) -> Floats:
        """(groups, terms): unbiased estimates of every total."""
        return self.mechanism.total(self.totals.view, self.totals.domain)

    def whole(self) -> ViewEstimator:
        """All groups taken together."""
        t = self.totals
        view, domain, error, spread = (
            x.sum(axis=0, keepdims=True) for x in (t.view, t.domain, t.domain_error, t.spread)
        )
        one = ListedGroups(((),), (), 1, complete=True)
        return replace(self, totals=Totals(one, t.terms, view, domain, error, spread, ()))

    def stderr(self, formula: Formula) -> Floats:
        """The standard errors of a formula, by group."""
        members, spread, sampled = self.spread(formula)
        return np.sqrt(self.mechanism.variance(members, spread) + sampled**2)

    @property
    def is_exact(self) -> bool:
        """Whether the view is the table itself, and its domain was summed exactly."""
        return noiseless(self.mechanism) and not self.totals.domain_error.any()

    def count_interval(self, term: Term, factor: float, constant: float) -> Intervals | None:
        """Exact intervals of factor·count + constant; None where there are none."""
        law = self.mechanism
        if not isinstance(law, InvertibleCounts):
            return None
        return lambda confidence: self._count(law, term, factor, constant, confidence)

    @np.errstate(all="ignore")
    def _count(
        self, law: InvertibleCounts, term: Term, factor: float, constant: float, confidence: float
    ) -> tuple[Floats, Floats]:
        i = self.totals.column(term)
        seen, domain = self.totals.view[:, i], self.totals.domain[:, i]
        errors = self.totals.domain_error[:, i]
        spent = SPENT_ON_SAMPLING * (1 - confidence)
        z = -NormalDist().inv_cdf(spent / 2)
        ends = []
        for n, d, error in zip(seen, domain, errors, strict=True):
            if error:  # a larger domain explains more of what was seen by noise
                c = confidence + spent
                low = law.interval(int(n), float(d + z * error), c, self.rows)[0]
                least = max(LEAST_SAMPLED, float(d - z * error))
                high = law.interval(int(n), least, c, self.rows)[1]
            else:
                low, high = law.interval(int(n), float(d), confidence, self.rows)
            ends.append((low, high))
        low_high = np.array(ends).reshape(len(seen), 2) * factor + constant
        return low_high.min(axis=1), low_high.max(axis=1)

    # ------------------------------------------------------------------ sums of several totals

    def products(self, used: tuple[Term, ...], slope: Floats, of: Floats) -> Floats:
        """Σ (Σ_i s_i w_i)² from the sums of products w_i w_j, for each group."""
        result = np.zeros(len(slope))
        for i, a in enumerate(used):
            for j, b in enumerate(used[i:], start=i):
                both = of[:, self.totals.column(product(a, b))]
                result += (1 if i == j else 2) * slope[:, i] * slope[:, j] * both
        return result

    @np.errstate(all="ignore")
    def spread(self, formula: Formula) -> tuple[Floats, Floats, Floats]:
        """What the formula's variance is made of, to first order.

        Σ w² over the table and over the domain, with w the change of the formula for one more
        row; and the standard error that a sampled domain adds.
        """
        used, slope = self.slopes(formula)
        members = np.maximum(self.products(used, slope, self.estimates), 0.0)
        if self.rows is not None and len(used) == 1 and not used[0].values:
            members = np.minimum(members, slope[:, 0] ** 2 * self.rows)
        spread = np.maximum(self.products(used, slope, self.totals.spread), 0.0)
        return members, spread, self._sampled(used, slope)

    def _sampled(self, used: tuple[Term, ...], slope: Floats) -> Floats:
        """Standard error that a sampled domain adds; as if the errors of all totals agreed."""
        errors = self.totals.domain_error[:, [self.totals.column(t) for t in used]]
        return self.mechanism.domain_share((np.abs(slope) * errors).sum(axis=1))

    @np.errstate(all="ignore")
    def deviation(self, used: tuple[Term, ...], slope: Floats, miss: float) -> Floats:
        """What the error of Σ slope·total exceeds with probability at most `miss`."""
        sampled = self._sampled(used, slope)
        spent = SPENT_ON_SAMPLING * miss if sampled.any() else 0.0
        view = np.maximum(self.products(used, slope, self.totals.view), 0.0)
        domain, spread = (
            np.maximum(self.products(used, slope, of), 0.0)
            for of in (self.totals.domain, self.totals.spread)
        )
        spread = np.where(sampled > 0, np.maximum(spread, LEAST_SAMPLED), spread)
        largest = self.largest_weight(used, slope)
        off = self.mechanism.deviation(view, domain, spread, largest, miss - spent)
        if not any(term.values for term in used):  # counts move in steps
            half = self.mechanism.total(largest / 2, np.zeros(len(largest)))
            off = np.where(off > 0, off + half, off)
        return off - NormalDist().inv_cdf(spent / 2) * sampled if spent else off

    def surely_nothing(self, used: tuple[Term, ...], slope: Floats) -> Flags:
        """Groups in which no tuple of the domain contributes."""
        nowhere = self.products(used, slope, self.totals.domain) <= 0
        return np.asarray(nowhere & (self._sampled(used, slope) == 0))


def noiseless(mechanism: ViewMechanism) -> bool:
    """Whether the view is the table itself; then estimates are exact."""
    return not mechanism.variance(np.ones(1), np.ones(1)).any()


# ----------------------------------------------------------------------
# what an answer from a noisy view is computed from


@dataclass(frozen=True)
class ViewSource:
    """Everything that an answer is computed from."""

    engine: ReleaseRows
    domain: DomainSums
    mechanism: ViewMechanism
    rows: int | None = None
    """The number of records of the table, where that is public."""
    bound: Bound | None = None
    shape: NoiseShape | None = None
    """How the noise differs over the domain, where it does."""
    model: ViewModel | None = None
    """What estimates are refined with, where that is wanted."""


@dataclass(frozen=True)
class ViewModel:
    """A model of the table, fitted to the same view."""

    rows: float
    weights: Weights
    error: ErrorModel
    left_out: frozenset[str]
    """Attributes that it knows nothing about."""


# ----------------------------------------------------------------------
# refined estimates: each plain one weighed against what a model of the table expects
# The model is a mixture of products fitted to the same view (refinement/), so its sums over the
# domain are one more weighted contraction. A total is refined by weighing both by their errors.
# Groups are then moved, by their errors, so that they add up to the refined total, and what counts
# rows is never negative. Formulas are computed from refined totals.
#
# To weigh them, the error of a weighted sum with weights w is modelled like a count's, which is the
# case w = 1: κ·Σw² for what a smooth model cannot know, τ·σ²·min(1, √(n·Σw²)/σ)^0.6 for noise left
# in the fit, b²·n·Σw² for its bias (n the rows that count; Cauchy and Schwarz).


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
        if any(term.values for term in used):
            interval = self._moved(formula, value, stderr)
        else:
            interval = self._interval(formula, value, stderr)
        return EstimatedColumn(value, stderr, lru_cache(8)(interval), COVERS)

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
        wrong = doubted(plain, variance, self._model_variance(variance, size, square))
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
        together = self._weighed(np.zeros(len(slope)), variance, *self._sizes(used, slope))[1]
        # Each total has its own weight, so that not all that cancels in the plain estimate does.
        each = [slope[:, i] * self._alone(term)[1] for i, term in enumerate(used)]
        apart = np.sqrt(np.sum(np.square(each), axis=0))
        return np.asarray(np.maximum(together, np.minimum(apart, np.sqrt(variance))))

    def _moved(self, formula: Formula, value: Floats, stderr: Floats) -> Intervals:
        """The plain estimate's interval around the refined one, whose error is stated as its."""
        plain, limits = self.plain.column(formula), self._range(formula)
        usual = self._interval(formula, value, stderr)

        @np.errstate(all="ignore")
        def interval(confidence: float) -> tuple[Floats, Floats]:
            found = plain.interval(confidence)
            moved = [np.clip(value + (end - plain.value), *limits) for end in found]
            # An end at a limit is one because nothing nearer is known.
            ends = [
                np.where(np.isin(end, limits), end, at)
                for end, at in zip(found, moved, strict=True)
            ]
            low, high = (
                np.where(np.isfinite(end), end, other)
                for end, other in zip(ends, usual(confidence), strict=True)
            )
            return np.fmin(low, value), np.fmax(high, value)

        return interval

    def _interval(self, formula: Formula, value: Floats, stderr: Floats) -> Intervals:
        """Normal; of a count in whole numbers, and skewed where few rows are expected."""
        limits = self._range(formula)
        if isinstance(formula, Total):

            def whole(confidence: float) -> tuple[Floats, Floats]:
                low, high = whole_interval(value, stderr**2, confidence)
                known = stderr <= 0
                low, high = np.where(known, value, low), np.where(known, value, high)
                return np.clip(low, *limits), np.clip(high, *limits)

            return whole

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
