"""Quantiles from a noisy view: the distribution of its rows beside that of the domain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from voile.answering.columns import VALID, EstimatedColumn
from voile.answering.quantiles import Cumulated, point, quantile_column
from voile.answering.totals import ListedGroups, hashable, scattered
from voile.answering.views.estimator import SPENT_ON_SAMPLING, ViewMechanism, noiseless
from voile.answering.views.source import ViewModel, ViewSource
from voile.arrays import Floats
from voile.errors import QueryError
from voile.query.formula import Quantile
from voile.query.predicate import Expression, Predicate, Term, both
from voile.query.rows import SCORE, SPREAD, WeightedTerm

MOST_CELLS = 20_000_000
SPENT_TWICE = 1.1
"""Two values are judged, each on one side; what the bounds of a variance cost is paid twice."""


@dataclass(frozen=True)
class ViewDistribution:
    """For each group and each value in increasing order, rows of the view and tuples of D."""

    values: Floats
    view: Floats
    domain: Floats
    error: Floats
    spread: Floats
    """As `domain`, weighted by the variance of each tuple's noise."""
    codes: tuple[Any, ...] = ()
    """Of every group with every value, among the keys of the domain."""


def view_quantiles(
    asked: Quantile,
    where: Predicate | None,
    groups: Sequence[Expression],
    listed: ListedGroups,
    source: ViewSource,
) -> EstimatedColumn:
    """The quantile of every group."""
    mechanism = source.mechanism
    found = distribution(asked, where, groups, listed, source)
    exact = noiseless(mechanism) and not found.error.any()
    return quantile_column(asked, [cumulated(found, mechanism, asked.share)], VALID, exact=exact)


def distribution(
    asked: Quantile,
    where: Predicate | None,
    groups: Sequence[Expression],
    listed: ListedGroups,
    source: ViewSource,
) -> ViewDistribution:
    """The counts of every value in every group, on both sides."""
    passing = both(where, asked.predicate)
    keys = [*groups, asked.value]
    rows, domain, shape = source.engine, source.domain, source.shape
    weights = [SCORE, SPREAD] if rows.scored else [""]
    seen = rows.sums(passing, keys, [WeightedTerm(Term(), weight) for weight in weights])
    (expected,) = domain.sums([Term(passing)], keys)
    known = [k for k in expected.keys[-1] if k is not None and not _unordered(k)]
    order = sorted(range(len(known)), key=lambda i: known[i])
    if len(listed) * len(known) > MOST_CELLS:
        raise QueryError(
            f"a quantile over {len(known):,} values in {len(listed):,} groups is too much",
            hint="ask for fewer groups",
        )
    places = {hashable(k): i for i, k in enumerate(expected.keys[-1])}
    value_codes = np.array([places[hashable(known[i])] for i in order], dtype=np.int64)
    codes = _crossed(listed, value_codes)
    view, _ = scattered(seen, codes, expected)  # rows whose value is NULL have no place
    mean = domain.sums([Term(passing)], keys, shape.mean)[0] if shape else expected
    noise = domain.sums([Term(passing)], keys, shape.variance)[0] if shape else expected
    spread = noise.at(codes) + (view[:, 1] if rows.scored else 0.0)
    size = (len(listed), len(value_codes))
    return ViewDistribution(
        values=np.array([float(known[i]) for i in order]),
        view=view[:, 0].reshape(size),
        domain=mean.at(codes).reshape(size),
        error=mean.errors_at(codes).reshape(size),
        spread=spread.reshape(size),
        codes=codes,
    )


def refined_quantiles(
    asked: Quantile,
    where: Predicate | None,
    groups: Sequence[Expression],
    listed: ListedGroups,
    source: ViewSource,
    model: ViewModel,
) -> Floats:
    """Quantiles of counts that are weighed against the model's, value by value."""
    found = distribution(asked, where, groups, listed, source)
    term = Term(both(where, asked.predicate))
    (expected,) = source.domain.sums([term], [*groups, asked.value], model.weights)
    plain = source.mechanism.total(found.view, found.domain).ravel()
    variance = source.mechanism.variance(np.maximum(plain, 0.0), found.spread.ravel())
    counts, _ = model.error.combine(plain, variance, model.rows * expected.at(found.codes))
    rows = counts.reshape(found.view.shape)
    return np.array([point(row, found.values, asked) for row in rows])


def _unordered(key: Any) -> bool:
    return isinstance(key, float) and math.isnan(key)


def _crossed(listed: ListedGroups, values: Any) -> tuple[Any, ...]:
    """Codes of every group with every value."""
    repeated = [np.repeat(code, len(values)) for code in listed.codes]
    return (*repeated, np.tile(values, len(listed)))


@np.errstate(all="ignore")
def cumulated(found: ViewDistribution, mechanism: ViewMechanism, share: float) -> Cumulated:
    """Z of every value, and how far it may be off."""
    below_view, below_domain = np.cumsum(found.view, axis=1), np.cumsum(found.domain, axis=1)
    below_spread = np.cumsum(found.spread, axis=1)
    all_view, all_domain = below_view[:, -1:], below_domain[:, -1:]
    z = mechanism.total(below_view - share * all_view, below_domain - share * all_domain)
    largest = np.full(z.shape, max(share, 1 - share))

    def deviation(miss: float) -> Floats:
        spent = SPENT_ON_SAMPLING * miss if found.error.any() else 0.0
        off = mechanism.deviation(
            squares(below_view, all_view, share),
            squares(below_domain, all_domain, share),
            squares(below_spread, below_spread[:, -1:], share),
            largest,
            miss / SPENT_TWICE - spent,
        )
        if not spent:
            return off
        # As if the errors of all values agreed, below v and in the total.
        error = np.cumsum(found.error, axis=1)
        error = error + share * error[:, -1:]
        return off - NormalDist().inv_cdf(spent / 2) * mechanism.domain_share(error)

    counts = mechanism.total(found.view, found.domain)
    return Cumulated(found.values, counts, z, deviation)


def squares(below: Floats, everything: Floats, share: float) -> Floats:
    """Σ (1[x ≤ v] − p)²."""
    return (1 - share) ** 2 * below + share**2 * (everything - below)
