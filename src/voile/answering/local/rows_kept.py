"""Totals where whole rows were kept or replaced by a uniform tuple (FRAPP's γ-diagonal matrix).

One coin decides for all columns, so sums over the view and over the domain are enough: with weight
w, μ its mean over the domain and p the retention, g = (w(y) − (1−p)·μ)/p is unbiased for w(x), and
  Σ E[w·w'(Y)] is estimated by the view's own sum of w·w',
  Σ E w(Y)·E w'(Y) = p²·Σww' + p(1−p)(μ'Σw + μΣw') + n(1−p)²·μμ'   over the true rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from voile.answering.local.totals import CountLaw, LocalTotals
from voile.answering.totals import Totals, product, totals, with_products
from voile.arrays import Floats
from voile.query.domain import DomainSums
from voile.query.predicate import Expression, Predicate, Term
from voile.query.rows import Rows


@dataclass(frozen=True)
class KeptRows:
    """Sums over the view and the domain, and what they say about the true rows."""

    found: Totals
    retention: float
    size: int
    count: int

    @cached_property
    def mean(self) -> Floats:
        """μ of every term."""
        return np.asarray(self.found.domain / float(self.size))

    @cached_property
    def true(self) -> Floats:
        """Unbiased estimates of the terms' sums over the true rows."""
        drawn = (1 - self.retention) * self.count * self.mean
        return np.asarray((self.found.view - drawn) / self.retention)

    def covariance(self, a: Term, b: Term) -> Floats:
        s, t, both = self._places(a, b)
        p, q, m, k = self.retention, 1 - self.retention, self.mean[:, s], self.mean[:, t]
        crossed = p * q * (k * self.true[:, s] + m * self.true[:, t])
        expected = p**2 * self.true[:, both] + crossed + self.count * q**2 * m * k
        return np.asarray((self.found.view[:, both] - expected) / p**2)

    def square(self, a: Term, b: Term) -> Floats:
        """Σ g·h over the rows that are seen."""
        s, t, both = self._places(a, b)
        q, m, k, view = 1 - self.retention, self.mean[:, s], self.mean[:, t], self.found.view
        crossed = q * (k * view[:, s] + m * view[:, t])
        whole = view[:, both] - crossed + self.count * q**2 * m * k
        return np.asarray(whole / self.retention**2)

    def _places(self, a: Term, b: Term) -> tuple[int, int, int]:
        return self.found.column(a), self.found.column(b), self.found.column(product(a, b))

    def laws(self) -> dict[tuple[int, int], CountLaw]:
        """Of every count: the same coin decides for all columns of a row."""
        p, drawn = self.retention, (1 - self.retention) * self.mean
        return {
            (g, i): CountLaw(
                round(self.found.view[g, i]), self.count, p + float(drawn[g, i]), float(drawn[g, i])
            )
            for i, term in enumerate(self.found.terms)
            if not term.values
            for g in range(len(self.found.groups))
        }


def whole_row_totals(
    where: Predicate | None,
    groups: tuple[Expression, ...],
    sets: Sequence[Sequence[Term]],
    rows: Rows,
    domain: DomainSums,
    *,
    retention: float,
    size: int,
    count: int,
    ranges: dict[Term, tuple[float, float]],
) -> LocalTotals:
    found = totals(where, groups, with_products(sets), rows, domain)
    kept = KeptRows(found, retention, size, count)
    pairs = {(found.column(a), found.column(b)): (a, b) for s in sets for a in s for b in s}
    weights = np.array([(0.0, *ranges.get(t, (0.0, 0.0))) for t in found.terms])
    low, high = weights.min(axis=1), weights.max(axis=1)
    drawn = (1 - retention) * kept.mean
    ends = (high - drawn) / retention - low, high - (low - drawn) / retention
    return LocalTotals(
        groups=found.groups,
        terms=found.terms,
        estimates=kept.true,
        seen=found.view,
        covariances={place: kept.covariance(*terms) for place, terms in pairs.items()},
        squares={place: kept.square(*terms) for place, terms in pairs.items()},
        largest=np.maximum(*ends),
        widest=np.broadcast_to((high - low) / (2 * retention) * math.sqrt(count), drawn.shape),
        unit=1 + (2 - retention) / retention,
        laws=kept.laws(),
        possible=bool((found.domain > 0).any()),
    )
