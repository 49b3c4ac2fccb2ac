"""Estimates of one column of an answer: values, standard errors and intervals of all groups.

Which interval a formula gets:

  a count               the exact inversion of its law, where that is known; else as a sum
  a sum                 a bound of its deviation
  an average or ratio   Fieller's: r is in the interval if top − r·bottom, a sum whose true value is
                        then 0, lies within its bound. Valid however small the bottom is.
  a variance            as a ratio, with what the estimated mean adds to its error
  what rises in one of  its argument's, as √ of a variance
  anything else         the normal one to second order, and it says so (nonlinear.py)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from voile.answering.arithmetic import Affine, AffineRatio, Dual, as_ratio, evaluate, round_to
from voile.answering.nonlinear import RISING, VarianceForm, as_variance, bent
from voile.arrays import Floats
from voile.query.aggregate import Call, Constant, Formula, Quantile, Total, leaves
from voile.query.predicate import Term, conjuncts, present

Flags = npt.NDArray[np.bool_]
Intervals = Callable[[float], tuple[Floats, Floats]]

DOUBLINGS, HALVINGS = 70, 50
VALID = (
    "the statistic of the table that was published, at the stated confidence or more, over the "
    "randomness of the release"
)
NORMAL = (
    "the statistic of the table that was published, at about the stated confidence (normal, "
    "corrected where rows are few; a bound where they are very few), over the randomness of the "
    "release"
)
APPROXIMATE = (
    "the statistic of the table that was published, at about the stated confidence (delta method; "
    "good where the counts behind it are large), over the randomness of the release"
)


@dataclass(frozen=True, eq=False)
class Certain:
    """For each group, what no data lie beyond that agree with the release."""

    low: Floats
    """Unknown, as `high` is, where no row can be in the group."""
    high: Floats
    tight: bool = True
    """Whether it is known that some data reach both ends, in every group."""

    @property
    def sides(self) -> tuple[Floats, Floats]:
        """The lower and the upper bounds."""
        return self.low, self.high

    def rounded(self, digits: float) -> Certain:
        """Bounds of the rounded values."""
        return Certain(round_to(self.low, digits), round_to(self.high, digits), self.tight)

    def cut_to(self, other: Certain) -> Certain:
        """Between the ends of both."""
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        return Certain(low, high, self.tight or other.tight)


@dataclass(frozen=True)
class EstimatedColumn:
    """What was estimated, for each group."""

    value: Floats
    stderr: Floats
    interval: Intervals
    covers: str = VALID
    certain: Certain | None = None
    """Beyond which no table lies that agrees with the release, where that is known."""
    plain: EstimatedColumn | None = None
    """The same without a model of the table, where one refined it."""
    stated: bool = True
    """Whether an interval can be stated; otherwise only the estimate and its certain bounds are."""

    @property
    def known(self) -> Flags:
        """Which estimates are the truth; that of an open median may have an interval of one."""
        exact = self.stderr == 0
        if self.certain is None:
            return np.asarray(exact)
        return np.asarray(exact & np.isclose(self.certain.low, self.certain.high, equal_nan=True))

    @property
    def without_model(self) -> EstimatedColumn:
        """The same column without refinement."""
        return self.plain or self


@dataclass(frozen=True)
class Formulas(ABC):
    """Formulas of totals, from the estimates of totals and what is known of their errors."""

    ranges: dict[Term, tuple[float, float]]
    """Between which values the weight of each term lies."""

    @property
    @abstractmethod
    def order(self) -> tuple[Term, ...]:
        """The terms, in the order of the estimates' columns."""

    @property
    @abstractmethod
    def estimates(self) -> Floats:
        """(groups, terms)"""

    @abstractmethod
    def stderr(self, formula: Formula) -> Floats:
        """To first order."""

    @abstractmethod
    def deviation(self, used: tuple[Term, ...], slope: Floats, miss: float) -> Floats:
        """What |error of Σ slope·total| exceeds with probability at most `miss`."""

    @abstractmethod
    def surely_nothing(self, used: tuple[Term, ...], slope: Floats) -> Flags:
        """Whether Σ slope·total is of no rows at all, whatever the table."""

    @property
    @abstractmethod
    def is_exact(self) -> bool:
        """Whether estimates are the truth."""

    def count_interval(
        self,
        term: Term,  # noqa: ARG002
        factor: float,  # noqa: ARG002
        constant: float,  # noqa: ARG002
    ) -> Intervals | None:
        """The exact interval of factor·count + constant, where there is one."""
        return None

    def most(self, form: Affine) -> float:  # noqa: ARG002
        """What a linear form cannot exceed, where that is known."""
        return math.inf

    @property
    def covers(self) -> str:
        """What intervals from `deviation` cover."""
        return VALID

    @property
    def law_covers(self) -> str:
        """What those from `count_interval` do."""
        return VALID

    @property
    def approximates(self) -> str:
        """What those by the delta method do."""
        return APPROXIMATE

    def values(self, quantiles: Mapping[Quantile, Floats]) -> Callable[[Formula], Dual]:
        """What evaluates a formula, with its derivatives by the totals."""
        order = self.order
        named = {term: self.estimates[:, i] for i, term in enumerate(order)}
        count = len(self.estimates)
        return lambda formula: evaluate(formula, named, quantiles, order, count)

    def slopes(self, formula: Formula) -> tuple[tuple[Term, ...], Floats]:
        """The terms of a formula, and its derivative by each of them: (groups, terms)."""
        used = terms_of(formula)
        slope = self.values({})(formula).slope
        return used, slope[:, [self.order.index(term) for term in used]]

    def spread_out(self, used: tuple[Term, ...], slope: Floats) -> Floats:
        """Slopes of some terms as slopes of all, in their order."""
        whole = np.zeros((len(slope), len(self.order)))
        whole[:, [self.order.index(term) for term in used]] = slope
        return whole

    # ------------------------------------------------------------------ one column

    @np.errstate(all="ignore")
    def column(self, formula: Formula) -> EstimatedColumn:
        """The estimate of a formula of totals."""
        if isinstance(formula, Call) and formula.name == "round":
            assert isinstance(formula.args[1], Constant)  # noqa: S101  (the parser sees to it)
            return rounded(self.column(formula.args[0]), formula.args[1].value)
        dual = self.values({})(formula)
        used = terms_of(formula)
        stderr = self.stderr(formula)
        if self.is_exact:  # also where the formula has no finite slope, as sqrt at 0
            stderr = np.where(np.isnan(dual.value), np.nan, 0.0)
            if as_ratio(formula) is None:
                return EstimatedColumn(dual.value, stderr, normal(dual.value, stderr), self.covers)
        ratio = as_ratio(formula)
        if ratio is None:
            return self._nonlinear(formula, dual.value, stderr)
        if ratio.bottom.is_constant:
            return self._linear(
                ratio.top.times(1 / ratio.bottom.constant), dual.value, stderr, used
            )
        interval = lru_cache(8)(lambda confidence: self._fieller(ratio, used, confidence))
        low, high = self.known_range(ratio)
        # Beyond the range of the values a standard error says nothing.
        stderr = np.where(stderr > high - low, np.nan, stderr)
        value = self._sensible(ratio, dual.value)
        return EstimatedColumn(
            value, np.where(np.isnan(value), np.nan, stderr), interval, self.covers
        )

    # ------------------------------------------------------------------ neither sums nor ratios

    def _nonlinear(self, formula: Formula, value: Floats, stderr: Floats) -> EstimatedColumn:
        assert isinstance(formula, Call)  # noqa: S101  (all else is a ratio)
        if formula.name in RISING:
            inner = self.column(formula.args[0])
            rises, least = RISING[formula.name]

            def interval(confidence: float) -> tuple[Floats, Floats]:
                low, high = inner.interval(confidence)
                with np.errstate(divide="ignore"):  # the logarithm of 0 is −∞
                    return rises(np.maximum(low, least)), rises(np.maximum(high, least))

            return EstimatedColumn(value, stderr, lru_cache(8)(interval), inner.covers)
        form = as_variance(formula)
        if form is not None and {form.mean, form.size} <= set(self.ranges):
            found = lru_cache(8)(lambda confidence: self._variance_interval(form, confidence))
            return EstimatedColumn(value, stderr, found, self.covers)
        return EstimatedColumn(value, stderr, self._bent(formula, value, stderr), self.approximates)

    def _variance_interval(self, form: VarianceForm, confidence: float) -> tuple[Floats, Floats]:
        """Fieller's interval of a variance; see nonlinear.py."""
        used, miss = form.terms, 1 - confidence
        places = [self.order.index(term) for term in used]
        square, mean, size = self.estimates[:, places].T
        with np.errstate(all="ignore"):
            middle = np.where(size > 0, mean / size, np.nan)
            extra = size * self.stderr(form.average) ** 2
            apart = square - mean * middle + extra
            unsure = math.sqrt(2) * NormalDist().inv_cdf(1 - miss / 2) * extra

            def outside(variance: Floats) -> Flags:
                slope = np.stack([np.ones(len(middle)), -2 * middle, middle**2 - variance], axis=1)
                off = np.hypot(self.deviation(used, slope, miss), unsure)
                return np.asarray(np.abs(apart - variance * (size - form.less)) > off)

            start = apart / (size - form.less)
            step = np.abs(start) * 1e-3 + 1e-9
            low, high = -edge(outside, -start, step, -1.0), edge(outside, start, step, 1.0)
            alone = np.broadcast_to(np.array([0.0, 0.0, 1.0]), (len(size), 3))
            anything = ~(size - form.less > self.deviation(used, alone, miss))
            nothing = self.surely_nothing(used, alone)
        least, most = self.ranges[form.mean]
        largest = (most - least) ** 2 / (2 if form.less else 4)
        low = np.where(anything, 0.0, np.clip(low, 0.0, largest))
        high = np.where(anything, largest, np.clip(high, 0.0, largest))
        return np.where(nothing, np.nan, low), np.where(nothing, np.nan, high)

    def _bent(self, formula: Formula, value: Floats, stderr: Floats) -> Intervals:
        """The interval to second order."""
        used = terms_of(formula)
        places = [self.order.index(term) for term in used]

        def slopes(totals: Floats) -> Floats:
            named = {term: totals[:, i] for i, term in enumerate(used)}
            return evaluate(formula, named, {}, used, len(totals)).slope

        covariances = self.covariances(used)
        found = bent(slopes, value, self.estimates[:, places], covariances, stderr)
        return lru_cache(8)(found.interval)

    def covariances(self, used: tuple[Term, ...]) -> Floats:
        """(groups, terms, terms): from the standard errors of each total and of each two."""
        single = [self.stderr(Total(term)) ** 2 for term in used]
        found = np.zeros((len(self.estimates), len(used), len(used)))
        for i, a in enumerate(used):
            found[:, i, i] = single[i]
            for j, b in enumerate(used[:i]):
                both = self.stderr(Call("+", (Total(a), Total(b)))) ** 2
                found[:, i, j] = found[:, j, i] = (both - single[i] - single[j]) / 2
        return found

    def _sensible(self, ratio: AffineRatio, value: Floats) -> Floats:
        """An average of no rows is unknown, and one of few rows still lies among the values."""
        if any(term.values or factor < 0 for term, factor in ratio.bottom.parts):
            return value
        order = self.order
        bottom = self.estimates @ ratio.bottom.row(order) + ratio.bottom.constant
        return np.where(bottom > 0, np.clip(value, *self.known_range(ratio)), np.nan)

    def _linear(
        self, form: Affine, value: Floats, stderr: Floats, used: tuple[Term, ...]
    ) -> EstimatedColumn:
        if len(form.parts) == 1 and not form.parts[0][0].values:
            ((term, factor),) = form.parts
            if exact := self.count_interval(term, factor, form.constant):
                return EstimatedColumn(value, stderr, lru_cache(8)(exact), self.law_covers)
        slope = np.broadcast_to(form.row(used), (len(value), len(used)))

        ends = self._least(form), self.most(form)

        def interval(confidence: float) -> tuple[Floats, Floats]:
            off = self.deviation(used, slope, 1 - confidence)
            return np.clip(value - off, *ends), np.clip(value + off, *ends)

        return EstimatedColumn(value, stderr, lru_cache(8)(interval), self.covers)

    def _least(self, form: Affine) -> float:
        """A sum of what is never negative is never negative."""
        never = all(factor > 0 and self.ranges[term][0] >= 0 for term, factor in form.parts)
        return form.constant if never else -math.inf

    def largest_weight(self, used: tuple[Term, ...], slope: Floats) -> Floats:
        """The largest |Σ slope·weight| of a row; what is averaged is that much off its average."""
        ends = np.array([self.ranges[term] for term in used])
        if len(used) == 2:
            for top, bottom in ((0, 1), (1, 0)):
                if not used[bottom].values and implies(used[top], used[bottom]):
                    off = [np.abs(slope[:, top] * end + slope[:, bottom]) for end in ends[top]]
                    if not averages(used[top], used[bottom]):  # rows that only the bottom counts
                        off.append(np.abs(slope[:, bottom]))
                    return np.asarray(np.max(off, axis=0))
        if len(used) == 3 and (form := quadratic(used)):
            return largest_quadratic(slope[:, form], *self.ranges[used[form[1]]])
        return np.asarray(np.abs(slope) @ np.abs(ends).max(axis=1))

    # ------------------------------------------------------------------ ratios

    def _fieller(
        self, ratio: AffineRatio, used: tuple[Term, ...], confidence: float
    ) -> tuple[Floats, Floats]:
        top, bottom = ratio.top.row(used), ratio.bottom.row(used)
        estimates = self.estimates[:, [self.order.index(term) for term in used]]
        top_value = estimates @ top + ratio.top.constant
        bottom_value = estimates @ bottom + ratio.bottom.constant

        def outside(r: Floats) -> Flags:
            slope = top - r[:, None] * bottom
            off = self.deviation(used, slope, 1 - confidence)
            return np.abs(top_value - r * bottom_value) > off

        with np.errstate(all="ignore"):
            middle = np.where(bottom_value == 0, np.nan, top_value / bottom_value)
            step = np.abs(middle) * 1e-3 + 1e-9
            low, high = -edge(outside, -middle, step, -1.0), edge(outside, middle, step, 1.0)
            # If the bottom may be 0, the ratio may be anything: also beyond infinity, as it were.
            slope = np.broadcast_to(bottom, (len(bottom_value), len(used)))
            anything = np.abs(bottom_value) <= self.deviation(used, slope, 1 - confidence)
            if self.is_exact:
                anything[:] = False
            low, high = np.where(anything, -np.inf, low), np.where(anything, np.inf, high)
            nothing = self.surely_nothing(used, slope)
        known = self.known_range(ratio)
        return (
            np.where(nothing, np.nan, np.clip(low, *known)),
            np.where(nothing, np.nan, np.clip(high, *known)),
        )

    def known_range(self, ratio: AffineRatio) -> tuple[float, float]:
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


def terms_of(formula: Formula) -> tuple[Term, ...]:
    """The terms that formulas are made of, each once."""
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
    has = set(conjuncts(top.predicate)) if top.predicate else set()
    return wanted <= has | {present(value) for value in top.values}


def averages(top: Term, bottom: Term) -> bool:
    """Whether `top` sums a value over just the rows that `bottom` counts."""
    wanted = set(conjuncts(bottom.predicate)) if bottom.predicate else set()
    has = set(conjuncts(top.predicate)) if top.predicate else set()
    there = {present(value) for value in top.values}
    return bool(there) and has <= wanted and there <= wanted


def quadratic(used: tuple[Term, ...]) -> list[int]:
    """The places of Σx², Σx and n of the same rows, where these are the terms."""
    places = sorted(range(3), key=lambda i: -len(used[i].values))
    square, mean, size = (used[i] for i in places)
    alike = len(mean.values) == 1 and square.values == 2 * mean.values and not size.values
    same = square.predicate == mean.predicate and averages(mean, size)
    return places if alike and same else []


@np.errstate(all="ignore")
def largest_quadratic(slope: Floats, low: float, high: float) -> Floats:
    """The largest |a·x² + b·x + c| of x between two ends."""
    a, b, c = slope.T
    bend = np.nan_to_num(np.clip(-b / (2 * a), low, high), nan=low)
    return np.asarray(np.max([np.abs(a * x**2 + b * x + c) for x in (low, high, bend)], axis=0))


def largest_count(form: Affine, rows: int) -> float:
    """What a multiple of a count cannot exceed, if no count exceeds `rows`."""
    if len(form.parts) != 1 or form.parts[0][0].values or form.parts[0][1] < 0:
        return math.inf
    return form.constant + form.parts[0][1] * rows


def deviation_of_sum(spread: Floats, part: Floats, bound: Floats, miss: float) -> Floats:
    """How far a sum of independent numbers may be off, from its standard error.

    The normal deviation where no row matters much: b·max(1, z²/2) ≤ σ, with b (`part`) the most of
    one row; wider by b/2, for totals move in steps. Otherwise `bound`, if that is wider.
    """
    z = -NormalDist().inv_cdf(miss / 2)
    normal = z * spread + part / 2
    few = max(1.0, z**2 / 2) * part > spread
    return np.where(few, np.maximum(bound, normal), normal)


def normal(value: Floats, stderr: Floats) -> Intervals:
    """Intervals of a normal estimate."""

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


def rounded(column: EstimatedColumn, digits: float) -> EstimatedColumn:
    """A column of rounded values."""

    def interval(confidence: float) -> tuple[Floats, Floats]:
        low, high = column.interval(confidence)
        return round_to(low, digits), round_to(high, digits)

    return EstimatedColumn(round_to(column.value, digits), column.stderr, interval, column.covers)
