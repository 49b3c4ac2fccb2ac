"""Estimates of one column of an answer: values, standard errors and intervals of all groups.

Which interval a formula gets:

  a count               the exact inversion of its law, where that is known; else as a sum
  a sum                 a bound of its deviation that holds for every table (mechanisms.deviation)
  an average or ratio   Fieller's: r is in the interval if top − r·bottom, a sum whose true value is
                        then 0, lies within its bound. Valid however small the bottom is.
  anything else         the normal one with the delta method's standard error, and it says so
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from voile.answering.arithmetic import Affine, Dual, Ratio, as_ratio, evaluate, round_to
from voile.answering.totals import Groups, Totals, product
from voile.estimate import Floats
from voile.query.formula import Call, Formula, Number, Quantile, Total, leaves
from voile.query.predicate import Term, conjuncts

Flags = npt.NDArray[np.bool_]
Intervals = Callable[[float], tuple[Floats, Floats]]

DOUBLINGS, HALVINGS = 70, 50
LEAST_SAMPLED = 1e-6
"""A domain that was sampled is never taken for empty."""
SPENT_ON_SAMPLING = 0.1
"""The part of the chance to err that pays for a domain that was sampled."""
VALID = (
    "the statistic of the table that was published, at the stated confidence or more, over the "
    "randomness of the release"
)
APPROXIMATE = (
    "the statistic of the table that was published, at about the stated confidence (delta method; "
    "good where the counts behind it are large), over the randomness of the release"
)


class Mechanism(Protocol):
    """What answering asks of a mechanism: arithmetic on sums over its rows and over the domain.

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
        """How far it may be off but for a chance of `miss`, from Σ w² and |w| ≤ largest."""
        ...

    def domain_share(self, error: Floats) -> Floats:
        """What an error in Σ w over the domain does to the estimate."""
        ...


@runtime_checkable
class ExactCounts(Protocol):
    """A mechanism whose counts have a law that can be inverted."""

    def interval(
        self, seen: int, domain: float, confidence: float, rows: int | None = None
    ) -> tuple[float, float]:
        """An exact interval for a count."""
        ...


@dataclass(frozen=True)
class Column:
    """What was estimated, for each group."""

    value: Floats
    stderr: Floats
    interval: Intervals
    covers: str = VALID


@dataclass(frozen=True)
class Estimator:
    """Estimates of totals, and of formulas made of them."""

    totals: Totals
    mechanism: Mechanism
    rows: int | None
    """The number of records of the table, where that is public."""
    ranges: dict[Term, tuple[float, float]]
    """Between which values the weight of each term lies."""

    @cached_property
    def estimates(self) -> Floats:
        return self.mechanism.total(self.totals.view, self.totals.domain)

    def whole(self) -> Estimator:
        """All groups taken together."""
        t = self.totals
        view, domain, error, spread = (
            x.sum(axis=0, keepdims=True) for x in (t.view, t.domain, t.domain_error, t.spread)
        )
        one = Groups(((),), (), 1, complete=True)
        return replace(self, totals=Totals(one, t.terms, view, domain, error, spread, ()))

    def values(self, quantiles: dict[Quantile, Floats]) -> Callable[[Formula], Dual]:
        order = tuple(self.totals.terms)
        named = {term: self.estimates[:, i] for i, term in enumerate(order)}
        count = len(self.totals.groups)
        return lambda formula: evaluate(formula, named, quantiles, order, count)

    # ------------------------------------------------------------------ one column

    @np.errstate(all="ignore")
    def column(self, formula: Formula) -> Column:
        """The estimate of a formula of totals."""
        if isinstance(formula, Call) and formula.name == "round":
            assert isinstance(formula.args[1], Number)  # noqa: S101  (the parser sees to it)
            return rounded(self.column(formula.args[0]), formula.args[1].value)
        dual = self.values({})(formula)
        used = terms_of(formula)
        members, spread, sampled = self.spread(formula)
        stderr = np.sqrt(self.mechanism.variance(members, spread) + sampled**2)
        if self._is_exact:  # also where the formula has no finite slope, as sqrt at 0
            stderr = np.where(np.isnan(dual.value), np.nan, 0.0)
        ratio = as_ratio(formula)
        if ratio is None:
            return Column(dual.value, stderr, normal(dual.value, stderr), APPROXIMATE)
        if ratio.bottom.is_constant:
            return self._linear(
                ratio.top.times(1 / ratio.bottom.constant), dual.value, stderr, used
            )
        interval = lru_cache(8)(lambda confidence: self._fieller(ratio, used, confidence))
        low, high = self.known_range(ratio)
        # Beyond the range of the values a standard error says nothing.
        stderr = np.where(stderr > high - low, np.nan, stderr)
        return Column(self._sensible(ratio, dual.value), stderr, interval)

    def _sensible(self, ratio: Ratio, value: Floats) -> Floats:
        """An average of no rows is unknown, and one of few rows still lies among the values."""
        if any(term.values or factor < 0 for term, factor in ratio.bottom.parts):
            return value
        order = tuple(self.totals.terms)
        bottom = self.estimates @ ratio.bottom.row(order) + ratio.bottom.constant
        return np.where(bottom > 0, np.clip(value, *self.known_range(ratio)), np.nan)

    @property
    def _is_exact(self) -> bool:
        return noiseless(self.mechanism) and not self.totals.domain_error.any()

    def _linear(
        self, form: Affine, value: Floats, stderr: Floats, used: tuple[Term, ...]
    ) -> Column:
        one_count = len(form.parts) == 1 and not form.parts[0][0].values
        if one_count and isinstance(law := self.mechanism, ExactCounts):
            ((term, factor),) = form.parts
            exact = lru_cache(8)(lambda c: self._count(law, term, factor, form.constant, c))
            return Column(value, stderr, exact)
        slope = np.broadcast_to(form.row(used), (len(value), len(used)))

        least = self._least(form)

        def interval(confidence: float) -> tuple[Floats, Floats]:
            off = self._deviation(used, slope, 1 - confidence)
            return np.maximum(value - off, least), np.maximum(value + off, least)

        return Column(value, stderr, lru_cache(8)(interval))

    def _least(self, form: Affine) -> float:
        """A sum of what is never negative is never negative."""
        never = all(factor > 0 and self.ranges[term][0] >= 0 for term, factor in form.parts)
        return form.constant if never else -math.inf

    @np.errstate(all="ignore")
    def _count(
        self, law: ExactCounts, term: Term, factor: float, constant: float, confidence: float
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
        used = terms_of(formula)
        slope = self.values({})(formula).slope[:, [self.totals.column(term) for term in used]]
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
    def _deviation(self, used: tuple[Term, ...], slope: Floats, miss: float) -> Floats:
        sampled = self._sampled(used, slope)
        spent = SPENT_ON_SAMPLING * miss if sampled.any() else 0.0
        view = np.maximum(self.products(used, slope, self.totals.view), 0.0)
        domain, spread = (
            np.maximum(self.products(used, slope, of), 0.0)
            for of in (self.totals.domain, self.totals.spread)
        )
        spread = np.where(sampled > 0, np.maximum(spread, LEAST_SAMPLED), spread)
        largest = np.abs(slope) @ np.array([max(map(abs, self.ranges[t])) for t in used])
        off = self.mechanism.deviation(view, domain, spread, largest, miss - spent)
        return off - NormalDist().inv_cdf(spent / 2) * sampled if spent else off

    # ------------------------------------------------------------------ ratios

    def _fieller(
        self, ratio: Ratio, used: tuple[Term, ...], confidence: float
    ) -> tuple[Floats, Floats]:
        top, bottom = ratio.top.row(used), ratio.bottom.row(used)
        estimates = self.estimates[:, [self.totals.column(term) for term in used]]
        top_value = estimates @ top + ratio.top.constant
        bottom_value = estimates @ bottom + ratio.bottom.constant

        def outside(r: Floats) -> Flags:
            slope = top - r[:, None] * bottom
            off = self._deviation(used, slope, 1 - confidence)
            return np.abs(top_value - r * bottom_value) > off

        with np.errstate(all="ignore"):
            middle = np.where(bottom_value == 0, np.nan, top_value / bottom_value)
            step = np.abs(middle) * 1e-3 + 1e-9
            low, high = -edge(outside, -middle, step, -1.0), edge(outside, middle, step, 1.0)
            # If the bottom may be 0, the ratio may be anything: also beyond infinity, as it were.
            slope = np.broadcast_to(bottom, (len(bottom_value), len(used)))
            anything = np.abs(bottom_value) <= self._deviation(used, slope, 1 - confidence)
            if self._is_exact:
                anything[:] = False
            low, high = np.where(anything, -np.inf, low), np.where(anything, np.inf, high)
            nothing = (self.products(used, slope, self.totals.domain) <= 0) & (
                self._sampled(used, slope) == 0
            )
        known = self.known_range(ratio)
        return (
            np.where(nothing, np.nan, np.clip(low, *known)),
            np.where(nothing, np.nan, np.clip(high, *known)),
        )

    def known_range(self, ratio: Ratio) -> tuple[float, float]:
        """An average lies among the values averaged, a share between 0 and 1."""
        everything = (-math.inf, math.inf)
        if len(ratio.bottom.parts) != 1 or ratio.top.constant or ratio.bottom.constant:
            return everything
        ((bottom, divisor),) = ratio.bottom.parts
        # (a + c·b)/b is a/b + c: averages are taken around the middle of their values.
        shift = sum(part for term, part in ratio.top.parts if term == bottom) / divisor
        rest = [(term, part) for term, part in ratio.top.parts if term != bottom]
        if len(rest) != 1 or bottom.values or not implies(rest[0][0], bottom):
            return everything
        ((top, factor),) = rest
        low, high = self.ranges[top]
        if not averages(top, bottom):
            low, high = min(low, 0.0), max(high, 0.0)
        ends = (low * factor / divisor + shift, high * factor / divisor + shift)
        return min(ends), max(ends)


def noiseless(mechanism: Mechanism) -> bool:
    """Whether the view is the table itself; then estimates are exact."""
    return not mechanism.variance(np.ones(1), np.ones(1)).any()


def terms_of(formula: Formula) -> tuple[Term, ...]:
    return tuple(dict.fromkeys(leaf.term for leaf in leaves(formula) if isinstance(leaf, Total)))


def edge(outside: Callable[[Floats], Flags], start: Floats, step: Floats, sign: float) -> Floats:
    """How far one can go up from `start` (times `sign`) before being outside; ∞ if one never is."""

    def out(x: Floats) -> Flags:
        return np.where(np.isnan(x), False, outside(sign * x))

    inside, beyond = start.copy(), start + step
    for _ in range(DOUBLINGS):
        found = out(beyond)
        if found.all():
            break
        inside = np.where(found, inside, beyond)
        beyond = np.where(found, beyond, start + 2 * (beyond - start))
    unbounded = ~out(beyond)
    for _ in range(HALVINGS):
        middle = (inside + beyond) / 2
        found = out(middle)
        inside, beyond = np.where(found, inside, middle), np.where(found, middle, beyond)
    return np.where(unbounded, np.inf, beyond)


def implies(top: Term, bottom: Term) -> bool:
    """Whether the rows that count in `top` are among those that count in `bottom`."""
    wanted = set(conjuncts(bottom.predicate)) if bottom.predicate else set()
    present = {f"NOT ({value.sql}) IS NULL" for value in top.values}
    has = set(conjuncts(top.predicate)) if top.predicate else set()
    return all(part in has or getattr(part, "sql", "") in present for part in wanted)


def averages(top: Term, bottom: Term) -> bool:
    """Whether `top` sums a value over just the rows that `bottom` counts."""
    wanted = set(conjuncts(bottom.predicate)) if bottom.predicate else set()
    has = set(conjuncts(top.predicate)) if top.predicate else set()
    present = {getattr(part, "sql", "") for part in wanted}
    return bool(top.values) and has <= wanted and all(
        f"NOT ({value.sql}) IS NULL" in present for value in top.values
    )  # fmt: skip


def normal(value: Floats, stderr: Floats) -> Intervals:
    @np.errstate(all="ignore")
    def interval(confidence: float) -> tuple[Floats, Floats]:
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        return value - z * stderr, value + z * stderr

    return interval


@np.errstate(all="ignore")
def half_width(interval: Intervals) -> Floats:
    """The standard error of a normal estimate that had this interval."""
    low, high = interval(0.95)
    return (high - low) / (2 * NormalDist().inv_cdf(0.975))


def rounded(column: Column, digits: float) -> Column:
    def interval(confidence: float) -> tuple[Floats, Floats]:
        low, high = column.interval(confidence)
        return round_to(low, digits), round_to(high, digits)

    return Column(round_to(column.value, digits), column.stderr, interval, column.covers)
