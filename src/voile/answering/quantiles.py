"""Quantiles by inverting the estimated distribution.

For each value v that the domain allows, Z(v) = Σ (1[x ≤ v] − p) is a sum over rows, negative
below the p-quantile and not negative from it on. Estimated Z's that are off by no more than their
bound leave a range of values that can be the quantile (Woodruff's interval): at the quantile itself
Z ≥ 0, just below it Z < 0, and each is misjudged with a chance of at most half the allowed one.

An interpolated quantile lies between the rows at ⌊p(n−1)⌋ and ⌈p(n−1)⌉, counted from 0: at the
first of the two Z > −p, below the second Z < 1 − p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from voile.answering.columns import VALID, Column, half_width
from voile.answering.estimator import SPENT_ON_SAMPLING, Mechanism, noiseless
from voile.answering.source import Model, Source
from voile.answering.totals import Groups, hashable, scattered
from voile.arrays import Floats
from voile.errors import QueryError
from voile.query.formula import Quantile
from voile.query.predicate import Expression, Predicate, Term, both
from voile.query.rows import SCORE, SPREAD, WeightedTerm

MOST_CELLS = 20_000_000
SPENT_TWICE = 1.1
"""Two values are judged, each on one side; what the bounds of a variance cost is paid twice."""


@dataclass(frozen=True)
class Distribution:
    """For each group and each value in increasing order, rows of the view and tuples of D."""

    values: Floats
    view: Floats
    domain: Floats
    error: Floats
    spread: Floats
    """As `domain`, weighted by the variance of each tuple's noise."""
    codes: tuple[Any, ...] = ()
    """Of every group with every value, among the keys of the domain."""


def quantile_column(
    asked: Quantile,
    where: Predicate | None,
    groups: Sequence[Expression],
    listed: Groups,
    source: Source,
) -> Column:
    mechanism = source.mechanism
    found = distribution(asked, where, groups, listed, source)
    total = mechanism.total(found.view, found.domain)
    value = np.array([point(counts, found.values, asked) for counts in total])

    @lru_cache(8)
    def interval(confidence: float) -> tuple[Floats, Floats]:
        if noiseless(mechanism) and not found.error.any():
            return value, value
        return woodruff(found, mechanism, asked.share, 1 - confidence, asked.interpolated)

    return Column(value, half_width(interval), interval, VALID)


def distribution(
    asked: Quantile,
    where: Predicate | None,
    groups: Sequence[Expression],
    listed: Groups,
    source: Source,
) -> Distribution:
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
    return Distribution(
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
    listed: Groups,
    source: Source,
    model: Model,
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


def _crossed(listed: Groups, values: Any) -> tuple[Any, ...]:
    """Codes of every group with every value."""
    repeated = [np.repeat(code, len(values)) for code in listed.codes]
    return (*repeated, np.tile(values, len(listed)))


def point(counts: Floats, values: Floats, asked: Quantile) -> float:
    """The quantile of estimated counts, after the least change that makes them a distribution."""
    if not len(values):
        return math.nan
    cumulative = increasing(np.cumsum(counts))
    total = cumulative[-1]
    if total <= 0:
        return math.nan
    if not asked.interpolated:
        return float(
            values[min(np.searchsorted(cumulative, asked.share * total - 1e-9), len(values) - 1)]
        )
    place = asked.share * max(total - 1, 0.0)
    below, above = math.floor(place + 1e-9), math.ceil(place - 1e-9)
    first, second = (
        values[min(np.searchsorted(cumulative, at + 1 - 1e-9), len(values) - 1)]
        for at in (below, above)
    )
    return float(first + (second - first) * max(0.0, place - below))


def increasing(sums: Floats) -> Floats:
    """The nearest non-decreasing sequence that starts at 0 or more (pool adjacent violators)."""
    means: list[float] = []
    sizes: list[int] = []
    for value in sums.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2:] = [(means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size]
            sizes[-2:] = [size]
    pooled: Floats = np.maximum(np.repeat(means, sizes), 0.0)
    return pooled


@np.errstate(all="ignore")
def woodruff(
    found: Distribution,
    mechanism: Mechanism,
    share: float,
    miss: float,
    interpolated: bool = False,
) -> tuple[Floats, Floats]:
    """The ends of the interval of each group."""
    under, over = (share, 1 - share) if interpolated else (0.0, 0.0)
    below_view, below_domain = np.cumsum(found.view, axis=1), np.cumsum(found.domain, axis=1)
    below_spread = np.cumsum(found.spread, axis=1)
    all_view, all_domain = below_view[:, -1:], below_domain[:, -1:]
    z = mechanism.total(below_view - share * all_view, below_domain - share * all_domain)
    largest = np.full(z.shape, max(share, 1 - share))
    spent = SPENT_ON_SAMPLING * miss if found.error.any() else 0.0
    off = mechanism.deviation(
        squares(below_view, all_view, share),
        squares(below_domain, all_domain, share),
        squares(below_spread, below_spread[:, -1:], share),
        largest,
        miss / SPENT_TWICE - spent,
    )
    if spent:
        # As if the errors of all values agreed, below v and in the total.
        error = np.cumsum(found.error, axis=1)
        error = error + share * error[:, -1:]
        off = off - NormalDist().inv_cdf(spent / 2) * mechanism.domain_share(error)
    low, high = np.full(len(z), np.nan), np.full(len(z), np.nan)
    for i in range(len(z)):
        if not len(found.values):
            continue
        possible, too_low = z[i] >= -off[i] - under, z[i] < off[i] + over
        low[i] = found.values[np.argmax(possible)] if possible.any() else found.values[-1]
        last = np.flatnonzero(too_low)
        after = min(last[-1] + 1, len(found.values) - 1) if len(last) else 0
        high[i] = found.values[after]
    return low, np.maximum(low, high)


def squares(below: Floats, everything: Floats, share: float) -> Floats:
    """Σ (1[x ≤ v] − p)²."""
    return (1 - share) ** 2 * below + share**2 * (everything - below)
