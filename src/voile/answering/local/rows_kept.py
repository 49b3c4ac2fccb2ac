"""Totals where whole rows were kept or replaced by a uniform tuple (FRAPP's γ-diagonal matrix).

One coin decides for all columns, so sums over the view and over the domain are enough: with weight
w, μ its mean over the domain and p the retention, g = (w(y) − (1−p)·μ)/p is unbiased for w(x), and
  Σ E[w·w'(Y)] is estimated by the view's own sum of w·w',
  Σ E w(Y)·E w'(Y) = p²·Σww' + p(1−p)(μ'Σw + μΣw') + n(1−p)²·μμ'   over the true rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from voile.answering.local.totals import CountLaw, LocalTotals
from voile.answering.totals import product, totals, with_products
from voile.estimate import Floats
from voile.query.domain import DomainSums
from voile.query.predicate import Expression, Predicate, Term
from voile.query.rows import Rows


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
    p, q = retention, 1 - retention
    mean = found.domain / float(size)
    true = (found.view - q * count * mean) / p
    covariances: dict[tuple[int, int], Floats] = {}
    squares: dict[tuple[int, int], Floats] = {}
    for terms in sets:
        for a in terms:
            for b in terms:
                s, t, both = (found.column(x) for x in (a, b, product(a, b)))
                m, k = mean[:, s], mean[:, t]
                expected = (
                    p**2 * true[:, both]
                    + p * q * (k * true[:, s] + m * true[:, t])
                    + count * q**2 * m * k
                )
                covariances[s, t] = (found.view[:, both] - expected) / p**2
                squares[s, t] = (
                    found.view[:, both]
                    - q * (k * found.view[:, s] + m * found.view[:, t])
                    + count * q**2 * m * k
                ) / p**2
    weights = np.array([(0.0, *ranges.get(t, (0.0, 0.0))) for t in found.terms])
    low, high = weights.min(axis=1), weights.max(axis=1)
    largest = np.maximum((high - q * mean) / p - low, high - (low - q * mean) / p)
    everyone = [i for i, t in enumerate(found.terms) if not t.values]
    laws = {
        (g, i): CountLaw(
            round(found.view[g, i]), count, p + q * float(mean[g, i]), q * float(mean[g, i])
        )
        for i in everyone
        for g in range(len(found.groups))
    }
    return LocalTotals(
        groups=found.groups,
        terms=found.terms,
        estimates=true,
        seen=found.view,
        covariances=covariances,
        squares=squares,
        largest=largest,
        widest=np.broadcast_to((high - low) / (2 * p) * math.sqrt(count), mean.shape),
        unit=1 + (2 - p) / p,
        laws=laws,
        possible=bool((found.domain > 0).any()),
    )
