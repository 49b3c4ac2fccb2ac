"""Noise shaped by a prior (VLDB 2007, §4.4.2): more of it where records are likely.

The prior is a product of one distribution per attribute, s(t) = Π_j p_j(t_j). A tuple gets noise
with the mean
    μ(t) = floor + min(strength·s(t), cap).
One more record changes the chance of a view by a ratio in [1−a, 1+a/μ(t)], a the retention.
Whoever believes in t with at most d(t), d(t)/(1−d(t)) = (γ/(1−γ)) / (1+a/μ(t)), believes in it
with at most γ afterwards. Proofs: docs/mathematics.md §20.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError
from voile.privacy.guarantee import Adversary, DGamma, LikelihoodRatio
from voile.privacy.planner import best_retention, check_retention, largest_retention, round_down

Floats = npt.NDArray[np.float64]

MOST_LISTED = 4_000_000
"""Tuples that may lie above the cap, whose means are not products and must be listed."""
SAFETY = 1 + 1e-9
"""By which noise exceeds what is needed, far beyond the rounding of its sampler."""


@dataclass(frozen=True)
class ShapedPlan:
    """Parameters of shaped noise."""

    retention: float
    floor: float
    strength: float
    cap: float


def plan_shaped(
    wished: DGamma,
    expected: float,
    sizes: Sequence[int],
    *,
    floor_share: float,
    retention: float | None = None,
) -> ShapedPlan:
    """As many noise rows as uniform noise would need for the wished promise, put where s(t) is.

    `expected` = k·n is the number of records that the adversary's beliefs k·n·s(t) add up to;
    `wished` has d = k·n/m, the average of those. `floor_share` of the noise is spread evenly.
    """
    if not 0 < floor_share <= 1:
        raise UsageError(
            f"noise-floor {floor_share} must lie in (0, 1]",
            hint="a share of the noise is spread evenly, or records that the prior takes for "
            "impossible would stand out; 0.1 if not given",
        )
    largest = largest_retention(wished, "multiset")
    if retention is not None:
        check_retention(wished, retention, largest)
    a = best_retention(wished, "multiset", largest) if retention is None else retention
    gamma, room = wished.posterior, room_for(wished.adversary, a)
    rows = SAFETY * a * (1 - gamma) / (gamma * room) * expected
    size = math.prod(sizes)
    # A mean of a halves the odds of the largest belief that any noise can protect; beyond that,
    # more noise gains little.
    strength = rows * (1 - floor_share)
    cap = max(a, strength / MOST_LISTED)
    return ShapedPlan(a, rows * floor_share / float(size), strength, cap)


def promise_everywhere(wished: DGamma, ratio: LikelihoodRatio) -> DGamma:
    """What holds for every tuple, also for those that the prior takes for impossible."""
    assert ratio.high is not None  # noqa: S101  (there is noise everywhere)
    high = ratio.high / ratio.low if wished.adversary == "exclusive" else ratio.high
    gamma = Fraction(wished.posterior)
    return replace(wished, prior=round_down(gamma / (gamma + (1 - gamma) * high)))


def room_for(adversary: Adversary, retention: float) -> float:
    """1, or 1−a against exclusive adversaries, for whom all other candidates may be absent."""
    return 1.0 if adversary == "independent" else 1 - retention


def protected_priors(promise: DGamma, retention: float, means: Floats) -> Floats:
    """`protected_prior` of many tuples."""
    gamma, low = promise.posterior, room_for(promise.adversary, retention)
    ratio = (1 + retention / means) / low
    return np.asarray(gamma / (gamma + (1 - gamma) * ratio))


def protected_prior(promise: DGamma, retention: Fraction, mean: Fraction) -> Fraction:
    """d(t): the largest belief in a tuple with this mean noise that ends at γ at most."""
    gamma = Fraction(promise.posterior)
    low = 1 - retention if promise.adversary == "exclusive" else Fraction(1)
    ratio = (1 + retention / mean) / low
    return gamma / (gamma + (1 - gamma) * ratio)
