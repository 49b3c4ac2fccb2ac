"""All views of a series together, in the multiset form, for a table that never changes.

Each view adds to g what it shows, by whether the tuple was seen before, in parts that are unbiased
for any x records; their weights are those with the least variance. What bounds the error follows
from exact moments, all for records that stay: courses of several equal records that come and go can
have more variance than what is stated here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.mechanisms.series import Counts
from voile.mechanisms.series_moments import Chain, Increment
from voile.mechanisms.series_score import Scores
from voile.privacy.series import SeriesNoise, noise_variance

COPIES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of equal records for which what they add to the variance is computed."""
STEPS = 24
WIDER = 1.05


@dataclass(frozen=True)
class Parts:
    """g = Σ_j of the parts below, by whether the tuple was seen before view j.

    unseen   A_j·(y − μ_j)/a + C_j·e_j,   e_j = (1−a)/a·(1[y=1] − q_j·1[y=0])
    seen     B_j·(y − μ)/a
    The mean of e_j with x records is x times the chance that the tuple stays unseen.
    """

    unseen: Floats
    seen: Floats
    staying: Floats


@lru_cache(64)
def best_parts(series: SeriesNoise, view: int) -> Parts:
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
    return Parts(found[:i], found[i : 2 * i], found[2 * i :])


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
    parts: Parts,
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
