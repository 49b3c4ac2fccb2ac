"""Estimates from a view: sums over its rows beside sums over the domain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Protocol, runtime_checkable

import numpy as np

from voile.answering.columns import Flags, Formulas, Intervals
from voile.answering.totals import ListedGroups, Totals, product
from voile.arrays import Floats
from voile.query.formula import Formula
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
        return self.totals.terms

    @cached_property
    def estimates(self) -> Floats:
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
        members, spread, sampled = self.spread(formula)
        return np.sqrt(self.mechanism.variance(members, spread) + sampled**2)

    @property
    def is_exact(self) -> bool:
        return noiseless(self.mechanism) and not self.totals.domain_error.any()

    def count_interval(self, term: Term, factor: float, constant: float) -> Intervals | None:
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

    def surely_nothing(self, used: tuple[Term, ...], slope: Floats) -> Flags:
        nowhere = self.products(used, slope, self.totals.domain) <= 0
        return np.asarray(nowhere & (self._sampled(used, slope) == 0))


def noiseless(mechanism: ViewMechanism) -> bool:
    """Whether the view is the table itself; then estimates are exact."""
    return not mechanism.variance(np.ones(1), np.ones(1)).any()
