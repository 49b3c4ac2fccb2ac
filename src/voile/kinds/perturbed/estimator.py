"""Formulas of totals that were reconstructed: standard errors and intervals.

A total is a sum over the rows of independent numbers, each unbiased for the row's part of it. Its
interval is

  the exact inversion of its law     where one coin decides for each row whether it counts
  the normal one                     where no row matters much: b·max(1, z²/2) ≤ σ, with b the most
                                     of one row; wider by b/2, for totals move in steps
  Bernstein's                        otherwise, with a bound of the variance from the same rows or
                                     for every table; it holds however few rows there are
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from voile.answering.arithmetic import Affine, Dual
from voile.answering.columns import (
    EstimatedColumn,
    Flags,
    Formulas,
    Intervals,
    deviation_of_sum,
    largest_count,
    terms_of,
)
from voile.answering.count_law import Binomial, PublishedCount
from voile.answering.totals import ListedGroups
from voile.arrays import Floats
from voile.query.aggregate import Formula, Quantile
from voile.query.predicate import Term

# ----------------------------------------------------------------------
# what is found about the totals of a query, for all of its groups


@dataclass(frozen=True)
class CountLaw:
    """A count that one coin decides for each row: Binomial(x, kept) + Binomial(rows − x, drawn)."""

    seen: int
    rows: int
    kept: float
    drawn: float


@dataclass(frozen=True)
class LocalTotals:
    """For each group, estimates of each term and the covariances of each two."""

    groups: ListedGroups
    terms: tuple[Term, ...]
    estimates: Floats
    """(groups, terms)"""
    seen: Floats
    """The same sums over the rows as they are seen."""
    covariances: dict[tuple[int, int], Floats]
    squares: dict[tuple[int, int], Floats]
    """Σ g·h over the seen rows: what bounds of deviations are made of."""
    largest: Floats
    """A bound of |g| and of |g − f| of one row, for each group and term."""
    widest: Floats
    """A bound of the standard error that holds for every table."""
    unit: float
    """A bound of |g| and of |g − f| of one row for any f of at most 1."""
    laws: dict[tuple[int, int], CountLaw] = field(default_factory=dict)
    """Of a group and a term, where one coin decides."""
    possible: bool = True
    """Whether any tuple of the domain can count."""

    def column(self, term: Term) -> int:
        """The place of a term among the totals."""
        return self.terms.index(term)


@dataclass(frozen=True)
class TotalErrors:
    """See LocalTotals."""

    covariances: dict[tuple[int, int], Floats]
    squares: dict[tuple[int, int], Floats]
    largest: Floats
    widest: Floats
    laws: dict[tuple[int, int], CountLaw]


# ----------------------------------------------------------------------
# formulas of totals that were reconstructed: standard errors and intervals
# A total is a sum over the rows of independent numbers, each unbiased for the row's part of it. Its
# interval is
#
#   the exact inversion of its law     where one coin decides for each row whether it counts
#   the normal one                     where no row matters much: b·max(1, z²/2) ≤ σ, with b the
#   most
#                                      of one row; wider by b/2, for totals move in steps
#   Bernstein's                        otherwise, with a bound of the variance from the same rows or
#                                      for every table; it holds however few rows there are


SPENT_ON_VARIANCE = 0.1
"""The part of the chance to err that pays for a variance that is not known."""
ROUNDING = 1e-12
LAW_COVERS = (
    "the statistic of the rows before they were perturbed, at the stated confidence or more, over "
    "the randomness of the perturbing"
)
APPROXIMATES = (
    "the statistic of the rows before they were perturbed, at about the stated confidence (delta "
    "method; good where the counts behind it are large), over the randomness of the perturbing"
)
COVERS = (
    "the statistic of the rows before they were perturbed, at about the stated confidence (normal, "
    "with an unbiased variance; a bound that always holds where rows are few), over the "
    "randomness of the perturbing"
)


@dataclass(frozen=True)
class LocalEstimator(Formulas):
    """Estimates of totals by inversion, and of formulas made of them."""

    totals: LocalTotals
    rows: int

    @property
    def order(self) -> tuple[Term, ...]:
        """The terms, in the order of the totals' columns."""
        return self.totals.terms

    @property
    def estimates(self) -> Floats:
        """(groups, terms): unbiased estimates of every total."""
        return self.totals.estimates

    @property
    def covers(self) -> str:
        """What an interval from a bound on the error covers."""
        return COVERS

    @property
    def law_covers(self) -> str:
        """What an interval from a count's exact law covers."""
        return LAW_COVERS

    @property
    def approximates(self) -> str:
        """What an interval from the normal approximation covers."""
        return APPROXIMATES

    @property
    def is_exact(self) -> bool:
        """Whether nothing that the totals read was perturbed."""
        return not any(square.any() for square in self.totals.covariances.values())

    def most(self, form: Affine) -> float:
        """No count exceeds the number of rows."""
        return largest_count(form, self.rows)

    @np.errstate(all="ignore")
    def stderr(self, formula: Formula) -> Floats:
        """The standard errors of a formula, by group."""
        used, slope = self.slopes(formula)
        variance = self._form(used, slope, self.totals.covariances)
        squares = self._form(used, slope, self.totals.squares)
        # An unbiased variance may be negative by chance; its first part never falls short of it.
        return np.sqrt(np.where(variance > 0, variance, np.maximum(squares, 0.0)))

    def _form(
        self, used: tuple[Term, ...], slope: Floats, of: dict[tuple[int, int], Floats]
    ) -> Floats:
        """Σ s_i·s_j·of_ij."""
        result = np.zeros(len(slope))
        for i, a in enumerate(used):
            for j, b in enumerate(used[i:], start=i):
                pair = (self.order.index(a), self.order.index(b))
                both = of[pair] if pair in of else of[pair[::-1]]
                result += (1 if i == j else 2) * slope[:, i] * slope[:, j] * both
        return result

    @np.errstate(all="ignore")
    def deviation(self, used: tuple[Term, ...], slope: Floats, miss: float) -> Floats:
        """What the error of Σ slope·total exceeds with probability at most `miss`."""
        if self.is_exact:
            return np.zeros(len(slope))
        variance = self._form(used, slope, self.totals.covariances)
        squares = np.maximum(self._form(used, slope, self.totals.squares), 0.0)
        places = [self.order.index(term) for term in used]
        widest = (np.abs(slope) * self.totals.widest[:, places]).sum(axis=1)
        return deviation(variance, squares, self._part(used, slope), widest, miss)

    def _part(self, used: tuple[Term, ...], slope: Floats) -> Floats:
        """The most that one row can do to Σ slope·total: the smaller of two bounds."""
        places = [self.order.index(term) for term in used]
        apart = (np.abs(slope) * self.totals.largest[:, places]).sum(axis=1)
        return np.asarray(np.fmin(apart, self.totals.unit * self.largest_weight(used, slope)))

    def surely_nothing(self, used: tuple[Term, ...], slope: Floats) -> Flags:  # noqa: ARG002
        """All groups, where no tuple of the domain contributes."""
        return np.full(len(slope), not self.totals.possible)

    def count_interval(self, term: Term, factor: float, constant: float) -> Intervals | None:
        """Exact intervals of factor·count + constant; None where there are none."""
        place = self.order.index(term)
        found = [self.totals.laws.get((g, place)) for g in range(len(self.estimates))]
        laws = [law for law in found if law is not None]
        if len(laws) < len(found):
            return None

        def interval(confidence: float) -> tuple[Floats, Floats]:
            ends = np.array([exact(law, confidence) for law in laws]).reshape(-1, 2)
            ends = ends * factor + constant
            return ends.min(axis=1), ends.max(axis=1)

        return interval


@lru_cache(2**16)
def exact(law: CountLaw, confidence: float) -> tuple[float, float]:
    """The interval of a count whose law is known; groups often have the same few counts."""
    whatever = law.kept >= 1 - ROUNDING  # counts, and so does every row
    if law.rows == 0 or law.drawn <= 0 or whatever:
        return float(law.seen), float(law.seen)
    excess = law.kept - law.drawn
    published = PublishedCount(
        seen=law.seen,
        parts=lambda x: (Binomial(x, law.kept), Binomial(max(0.0, law.rows - x), law.drawn)),
        guess=(law.seen - law.drawn * law.rows) / excess,
        slope=excess,
        largest=law.rows,
    )
    return published.interval(confidence)


@np.errstate(all="ignore")
def deviation(
    variance: Floats, squares: Floats, part: Floats, widest: Floats, miss: float
) -> Floats:
    """How far a sum may be off.

    From its estimated variance, Σ g², the most of one row, and what no standard error exceeds.
    """
    spread = np.sqrt(np.maximum(variance, 0.0))
    return deviation_of_sum(spread, part, bernstein(squares, part, widest, miss), miss)


def bernstein(squares: Floats, part: Floats, widest: Floats, miss: float) -> Floats:
    """Bernstein's bound, with Σ E g² bounded by what was seen of it.

    Σ g² falls short of its mean E by at most √(2·b²·E·ln(1/δ)) except with probability δ, for terms
    of at most b² that are not negative; and E is at least the variance.
    """
    log_variance = -math.log(SPENT_ON_VARIANCE * miss)
    log = math.log(2 / ((1 - SPENT_ON_VARIANCE) * miss))
    half = part * math.sqrt(log_variance / 2)
    mean = np.minimum((half + np.sqrt(half**2 + squares)) ** 2, widest**2)
    return np.asarray(np.sqrt(2 * mean * log) + part * log / 3)


@dataclass(frozen=True)
class ConstrainedEstimator:
    """The same with counts that are never negative: the table of maximum likelihood.

    Standard errors and intervals are those of inversion, which hold for every table. Sums stay
    with inversion altogether: to be constrained, the counts of every single value would have to
    be, and where those are mostly noise that table is far from the true one.
    """

    plain: LocalEstimator
    most_likely: LocalEstimator

    def values(self, quantiles: Mapping[Quantile, Floats]) -> Callable[[Formula], Dual]:
        """The values of formulas from the constrained totals."""
        return self.most_likely.values(quantiles)

    def column(self, formula: Formula) -> EstimatedColumn:
        """The constrained estimates of a formula, in intervals that hold both estimates."""
        plain = self.plain.column(formula)
        if any(term.values for term in terms_of(formula)):
            return plain
        value = self.most_likely.column(formula).value

        def interval(confidence: float) -> tuple[Floats, Floats]:
            low, high = plain.interval(confidence)
            return np.fmin(low, value), np.fmax(high, value)

        return EstimatedColumn(value, plain.stderr, interval, plain.covers)
