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

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.kinds.views.alphabeta import AlphaBeta
from voile.kinds.views.series import Counts, Scores
from voile.privacy.series import SeriesNoise, noise_variance

# ---------------------------------------------------------------------- moments
# Exact moments of a sum over the views of a series, for one tuple.
#
# A tuple's law over the views is a chain with two states: unseen, until a view shows it, then seen.
# A sum of increments, each a function of the state and of the count that a view shows, has moments
# and a generating function that follow by walking the chain. Counts are cut off where less than
# 10⁻¹⁸ of their law remains.


REST = 1e-18
Increment = Callable[[int, bool, npt.NDArray[np.int64]], Floats]
"""What view j (from 0), a state (whether seen) and counts add to the sum."""


@dataclass(frozen=True)
class Chain:
    """One tuple with `records[j]` records at view j, and the sum that is taken along."""

    noise: SeriesNoise
    records: Sequence[int]
    increment: Increment

    def moments(self, powers: int) -> Floats:
        """E G^k for k = 0 … powers."""
        unseen = np.zeros(powers + 1)
        unseen[0] = 1.0
        seen = np.zeros(powers + 1)
        for j in range(len(self.records)):
            chances, added = self._view(j, seen=False)
            absent, shown = (power_sums(chances[part], added[part], powers)
                             for part in (slice(0, 1), slice(1, None)))  # fmt: skip
            again = power_sums(*self._view(j, seen=True), powers)
            unseen, seen = (
                convolved(unseen, absent),
                convolved(unseen, shown) + convolved(seen, again),
            )
        return unseen + seen

    @np.errstate(over="ignore")
    def log_generating(self, s: float) -> float:
        """ln E exp(s·G); ∞ where that is larger than any float."""
        unseen, seen = 1.0, 0.0
        for j in range(len(self.records)):
            chances, added = self._view(j, seen=False)
            terms = chances * np.exp(s * added)
            now = unseen * float(terms[1:].sum())
            if seen:
                again_chances, again = self._view(j, seen=True)
                now += seen * float(again_chances @ np.exp(s * again))
            unseen, seen = unseen * float(terms[0]), now
        return math.log(unseen + seen)

    def variance(self) -> float:
        """The variance of the sum."""
        _, first, second = self.moments(2)
        return float(second - first**2)

    def _view(self, j: int, *, seen: bool) -> tuple[Floats, Floats]:
        noise = self.noise.seen if seen else self.noise.unseen[j]
        chances = law(self.noise, noise, self.records[j])
        return chances, self.increment(j, seen, np.arange(len(chances)))


def law(series: SeriesNoise, noise: float, records: int) -> Floats:
    """P(count = 0, 1, …) of a tuple with so many records and this noise."""
    a = series.retention
    if series.form == "set":
        chance = a if records else noise
        return np.array([1 - chance, chance])
    size = records + 2 + math.ceil(math.log(REST) / math.log(noise))
    copies = (1 - noise) * noise ** np.arange(size)
    kept = np.array(
        [math.comb(records, k) * a**k * (1 - a) ** (records - k) for k in range(records + 1)]
    )
    return np.convolve(copies, kept)[:size]


def power_sums(chances: Floats, added: Floats, powers: int) -> Floats:
    """Σ P·x^k for k = 0 … powers."""
    return np.array([float(chances @ added**k) for k in range(powers + 1)])


def convolved(left: Floats, right: Floats) -> Floats:
    """Moments of a sum of independent parts."""
    return np.array(
        [
            sum(math.comb(k, j) * left[j] * right[k - j] for j in range(k + 1))
            for k in range(len(left))
        ]
    )


# ---------------------------------------------------------------------- multisets
# All views of a series together, in the multiset form, for a table that never changes.
#
# Each view adds to g what it shows, by whether the tuple was seen before, in parts that are
# unbiased for any x records; their weights are those with the least variance. What bounds the
# error follows from exact moments, all for records that stay: courses of several equal records
# that come and go can have more variance than what is stated here.


COPIES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of equal records for which what they add to the variance is computed."""
STEPS = 24
WIDER = 1.05


@dataclass(frozen=True)
class ScoreParts:
    """g = Σ_j of the parts below, by whether the tuple was seen before view j.

    unseen   A_j·(y − μ_j)/a + C_j·e_j,   e_j = (1−a)/a·(1[y=1] − q_j·1[y=0])
    seen     B_j·(y − μ)/a
    The mean of e_j with x records is x times the chance that the tuple stays unseen.
    """

    unseen: Floats
    seen: Floats
    staying: Floats


@lru_cache(64)
def best_parts(series: SeriesNoise, view: int) -> ScoreParts:
    """The weights that are unbiased for every number of records, with the least variance at 0.

    A_1 + Σ_{j≥2} B_j = 1; A_{k+1} − B_{k+1} + C_k = 0; C_i = 0. All parts are uncorrelated but
    f_j and e_j of one view.
    """
    a, i = series.retention, view
    q = np.array(series.unseen[:i])
    lost = np.concatenate([[0.0], np.cumsum(np.log1p(-q))[:-1]])
    left, shown = np.exp(lost), -np.expm1(lost)
    again = noise_variance("multiset", a, series.seen)
    size = 3 * i
    quadratic = np.zeros((size, size))
    for j in range(i):
        quadratic[j, j] = left[j] * q[j] / ((1 - q[j]) * a) ** 2
        quadratic[i + j, i + j] = shown[j] * again
        staying = left[j] * ((1 - a) / a) ** 2 * q[j] * (1 - q[j]) * (1 + q[j])
        both = left[j] * (1 - a) * q[j] * (1 - q[j]) / a**2
        quadratic[2 * i + j, 2 * i + j] = staying
        quadratic[j, 2 * i + j] = quadratic[2 * i + j, j] = both
    limits = np.zeros((i + 2, size))
    limits[0, 0] = 1.0
    limits[0, i + 1 : 2 * i] = 1.0
    for k in range(1, i):
        limits[k, [k, i + k, 2 * i + k - 1]] = 1.0, -1.0, 1.0
    limits[i, 3 * i - 1] = 1.0  # the last view leaves nothing to come
    limits[i + 1, i] = 1.0  # nothing is seen before the first
    unit = float(np.abs(quadratic[:i, :i]).max())
    whole = np.block([[quadratic / unit, limits.T], [limits, np.zeros((i + 2, i + 2))]])
    right = np.zeros(size + i + 2)
    right[size] = 1.0
    found = np.linalg.lstsq(whole, right, rcond=None)[0][:size]
    return ScoreParts(found[:i], found[i : 2 * i], found[2 * i :])


def increments(series: SeriesNoise, view: int) -> Increment:
    """What each view adds to g."""
    a, parts = series.retention, best_parts(series, view)

    def added(j: int, seen: bool, counts: npt.NDArray[np.int64]) -> Floats:
        q = series.seen if seen else series.unseen[j]
        plain = (counts - q / (1 - q)) / a
        if seen:
            return np.asarray(parts.seen[j] * plain)
        stays = (1 - a) / a * ((counts == 1) - q * (counts == 0))
        return np.asarray(parts.unseen[j] * plain + parts.staying[j] * stays)

    return added


def of_multisets(series: SeriesNoise, view: int) -> Scores:
    """All views together, in the multiset form."""
    added, parts = increments(series, view), best_parts(series, view)

    def scored(histories: Counts) -> tuple[Floats, Floats]:
        total, seen = np.zeros(len(histories)), np.zeros(len(histories), dtype=np.bool_)
        for j, column in enumerate(histories.T.astype(np.int64)):
            total += np.where(seen, added(j, True, column), added(j, False, column))
            seen |= column > 0
        return total, np.zeros(len(total))

    def chain(records: tuple[int, ...]) -> Chain:
        return Chain(series, records, added)

    nothing = chain((0,) * view)
    noise = nothing.variance()
    raised = [(chain((x,) * view).variance() - noise) / x for x in COPIES]
    raised.append((1 - series.retention) / series.retention
                  * float(parts.unseen[0] ** 2 + parts.seen[1:] @ parts.seen[1:]))  # fmt: skip
    third, kept_third = thirds(chain, view)
    return Scores(
        name="combined",
        of=scored,
        empty=float(scored(np.zeros((1, view), np.uint32))[0][0]),
        noise_variance=noise,
        kept_variance=max(raised),
        least_kept_variance=min(raised),
        scale=bernstein_scale(series, parts, chain, noise, max(raised), view),
        noise_third=third,
        kept_third=kept_third,
    )


def thirds(chain: Callable[[tuple[int, ...]], Chain], view: int) -> tuple[float, float]:
    """Bounds of E|g − E g|³ without records, and of what a record adds: √(variance·fourth)."""

    def third(x: int) -> float:
        raw = chain((x,) * view).moments(4)
        mean = raw[1]
        second = raw[2] - mean**2
        fourth = raw[4] - 4 * mean * raw[3] + 6 * mean**2 * raw[2] - 3 * mean**4
        return math.sqrt(max(second, 0.0) * max(fourth, 0.0))

    nothing = third(0)
    return nothing, max((third(x) - nothing) / x for x in COPIES)


def bernstein_scale(
    series: SeriesNoise,
    parts: ScoreParts,
    chain: Callable[[tuple[int, ...]], Chain],
    noise: float,
    kept: float,
    view: int,
) -> float:
    """The least c found with ln E exp(s(g − E g)) ≤ s²v/(2(1 − c|s|)) for all |s| < 1/c.

    Tried on a grid of s and of numbers of records; c starts where the left side is finite.
    """
    a = series.retention
    tails = [abs(w) / a / -math.log(q) for w, q in zip(parts.unseen, series.unseen, strict=False)]
    tails += [abs(w) / a / -math.log(series.seen) for w in parts.seen[1:]]
    c = max(tails) * WIDER
    steps = np.linspace(-1, 1, 2 * STEPS)

    def holds(c: float) -> bool:
        for x in (0, 1, 2, 4, 8, 32):
            found, v = chain((x,) * view), noise + kept * x
            for s in steps[1:-1] / c:
                bound = s**2 * v / (2 * (1 - c * abs(s)))
                if found.log_generating(float(s)) - s * x > bound * (1 + 1e-9) + 1e-12:
                    return False
        return True

    while not holds(c):
        c *= WIDER
    return float(c)


# ---------------------------------------------------------------------- estimators


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
    """All views together, in the set form."""
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
