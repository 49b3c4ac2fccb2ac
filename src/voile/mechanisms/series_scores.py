"""What a tuple's history in a series counts for: two estimators of how many records it has.

Every estimate from a series is Σ_t w(t)·g(history of t) over all of D. Nearly all tuples were never
shown, so it is computed as Σ over shown tuples of w·(g − g(0)) plus g(0)·Σ_D w: a score for each
shown tuple, and the sum over the domain.

- `single`: the last view alone. Given the views before it, unbiased whatever the table did
  meanwhile, and the only such estimator.
- `combined`: all views, with the least variance where records stay. In the set form records that
  come or go bias it by a bounded amount; in the multiset form none may.

Derivations: docs/mathematics, section 19.
"""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from voile.arrays import Floats
from voile.mechanisms.alphabeta import AlphaBeta
from voile.mechanisms.series import Counts
from voile.mechanisms.series_multiset import of_multisets
from voile.mechanisms.series_score import Scores
from voile.privacy.series import SeriesNoise, noise_variance

__all__ = ["combined", "single"]

MIXED_SHARE = 1e-4
"""Records per tuple of D for which `combined` is best in the set form; it is unbiased for any."""


def single(series: SeriesNoise, view: int) -> Scores:
    """The last view alone: (y − mean noise)/excess, by what the tuple was before that view."""
    a, states = series.retention, (series.unseen[view - 1], series.seen)
    coins = [AlphaBeta(a, noise, series.form) for noise in states]
    means, lifts = [c.noise_mean for c in coins], [c.excess for c in coins]
    noises = [noise_variance(series.form, a, noise) for noise in states]
    kept = [c.coins.kept_variance / c.excess**2 for c in coins]
    scales = [c.coins.scale / c.excess for c in coins]
    spans = [(1 if series.form == "set" else 1 + 2.5 * c.noise_mean) / c.excess for c in coins]
    used = slice(0, 1 if view == 1 else 2)  # nothing is seen before the first view

    def scored(histories: Counts) -> tuple[Floats, Floats]:
        before = histories[:, :-1].any(axis=1).astype(int)
        mean, lift = np.array(means)[before], np.array(lifts)[before]
        return (histories[:, -1] - mean) / lift, np.array(noises)[before] / noises[0] - 1

    return Scores(
        name="current",
        of=scored,
        empty=-means[0] / lifts[0],
        noise_variance=noises[0],
        kept_variance=max(kept[used]),
        least_kept_variance=min(kept[used]),
        scale=max(scales[used]),
        noise_third=noises[0] * max(spans[used]),
        kept_third=max(c.coins.kept_third / c.excess**3 for c in coins[used]),
    )


def combined(series: SeriesNoise, view: int) -> Scores:
    """All views up to this one, with the least variance for records that stay."""
    return of_sets(series, view) if series.form == "set" else of_multisets(series, view)


# ---------------------------------------------------------------------- sets


def history_chances(series: SeriesNoise, course: tuple[int, ...]) -> Floats:
    """P(history) for all 2^i of them, first view slowest, of a tuple in the table as said."""
    chances, seen = np.ones(1), np.zeros(1, dtype=np.bool_)
    for noise, there in zip(series.unseen, course, strict=False):
        shown = np.where(seen, series.seen, noise) if not there else series.retention
        both = np.stack([chances * (1 - shown), chances * shown], axis=1)
        chances = both.reshape(-1)
        seen = np.stack([seen, np.ones_like(seen)], axis=1).reshape(-1)
    return chances


def best_weights(series: SeriesNoise, view: int, share: float = MIXED_SHARE) -> Floats:
    """g over all histories: unbiased, with the least variance where `share` of D are records.

    Minimise Σ g²·(λP₁ + (1−λ)P₀) given Σ g·P₁ = 1 and Σ g·P₀ = 0; by Lagrange,
    g = (A·P₁ + B·P₀)/(λP₁ + (1−λ)P₀).
    """
    always, never = (history_chances(series, (there,) * view) for there in (1, 0))
    mixed = share * always + (1 - share) * never
    p11, p10, p00 = (float(x) for x in (
        always @ (always / mixed), always @ (never / mixed), never @ (never / mixed)
    ))  # fmt: skip
    a, b = np.linalg.solve(np.array([[p11, p10], [p10, p00]]), np.array([1.0, 0.0]))
    return np.asarray((a * always + b * never) / mixed)


def of_sets(series: SeriesNoise, view: int) -> Scores:
    g = best_weights(series, view)

    def moments(course: tuple[int, ...]) -> tuple[float, float]:
        chances = history_chances(series, course)
        mean = float(chances @ g)
        return mean, float(chances @ (g - mean) ** 2)

    def scored(histories: Counts) -> tuple[Floats, Floats]:
        place = np.zeros(len(histories), np.int64)
        for column in histories.T:
            place = 2 * place + (column > 0)
        return g[place], np.zeros(len(place))

    noise, stays = moments((0,) * view)[1], moments((1,) * view)[1]
    drift = changed = 0.0
    for course in product((0, 1), repeat=view):  # the mean is not a sum over changes here
        changes = sum(before != after for before, after in pairwise(course))
        mean, variance = moments(course)
        if changes:
            now = course[-1]
            drift = max(drift, abs(mean - now) / changes)
            changed = max(changed, (variance - noise - now * (stays - noise)) / changes)
    span = float(max(g.max(), 1 - g.min()))
    return Scores(
        name="combined",
        of=scored,
        empty=float(g[0]),
        noise_variance=noise,
        kept_variance=stays - noise,
        least_kept_variance=stays - noise,
        scale=span / 3,
        noise_third=noise * span,
        kept_third=max(0.0, stays - noise) * span,
        drift=drift,
        changed_variance=changed,
    )
