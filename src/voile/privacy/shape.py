"""Noise shaped by a prior (VLDB 2007, §4.4.2): more of it where records are likely.

The prior is a product of one distribution per attribute, s(t) = Π_j p_j(t_j). A tuple gets noise
with the mean
    μ(t) = floor + min(strength·s(t), cap).
One more record changes the chance of a view by a ratio in [1−a, 1+a/μ(t)], a the retention. A
belief d in t ends at γ at most iff μ(t) is at least f(d) = a/(ℓ·R(d) − 1), R(d) = γ(1−d)/(d(1−γ)),
with ℓ = 1, or 1−a against exclusive adversaries. f is convex, so the line from 0 to a point of it
lies above it: with cap = f(c) and strength = K·f(c)/c all beliefs up to min(K·s(t), c) are
protected.
Proofs: docs/mathematics §20.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from voile.arrays import Floats
from voile.errors import UsageError
from voile.privacy.guarantee import Adversary, DGamma, LikelihoodRatio
from voile.privacy.planner import best_retention, check_retention, largest_retention, round_down
from voile.schema.product import Product

FIRST_SHARE = 0.25
"""Of the largest belief that any noise can protect: up to it the noise follows the prior."""
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
    prior: Product,
    sizes: Sequence[int],
    *,
    floor_share: float,
    retention: float | None = None,
) -> ShapedPlan:
    """The noise that protects beliefs K·s(t), and floor_share·d everywhere.

    `expected` is K = k·n, the number of records that such beliefs add up to; `wished` has
    d = k·n/m, their average.
    """
    if not 0 < floor_share <= 1:
        raise UsageError(
            f"noise-floor {floor_share} must lie in (0, 1]",
            hint="without an even part, records that the prior takes for impossible would stand "
            "out; 0.1 if not given",
        )
    largest = largest_retention(wished, "multiset")
    if retention is not None:
        check_retention(wished, retention, largest)
    a = best_retention(wished, "multiset", largest) if retention is None else retention
    share = FIRST_SHARE
    while True:
        belief = share * most_protected(wished, a)
        cap = SAFETY * needed(wished, a, belief)
        strength = expected * cap / belief
        if prior.above(sizes, cap / strength, MOST_LISTED) is not None:
            break
        share = (1 + share) / 2  # a higher cap has fewer tuples above it
    return ShapedPlan(a, SAFETY * needed(wished, a, floor_share * wished.prior), strength, cap)


def needed(promise: DGamma, retention: float, belief: float) -> float:
    """f: the mean noise that protects a belief."""
    odds = belief / (1 - belief) * (1 - promise.posterior) / promise.posterior
    return retention * odds / (room_for(promise.adversary, retention) - odds)


def most_protected(promise: DGamma, retention: float) -> float:
    """The belief that no noise can protect, and all smaller ones can be: f grows without bound."""
    odds = room_for(promise.adversary, retention) * promise.posterior / (1 - promise.posterior)
    return odds / (1 + odds)


def promise_everywhere(wished: DGamma, ratio: LikelihoodRatio) -> DGamma:
    """What holds for every tuple, also for those that the prior takes for impossible.

    No more than was wished for: the retention was chosen for that.
    """
    assert ratio.high is not None  # noqa: S101  (there is noise everywhere)
    high = ratio.high / ratio.low if wished.adversary == "exclusive" else ratio.high
    gamma = Fraction(wished.posterior)
    protected = gamma / (gamma + (1 - gamma) * high * Fraction(SAFETY))
    return replace(wished, prior=min(wished.prior, round_down(protected)))


def room_for(adversary: Adversary, retention: float) -> float:
    """ℓ: 1, or 1−a against exclusive adversaries, for whom all other candidates may be absent."""
    return 1.0 if adversary == "independent" else 1 - retention


def promise_where_likely(
    promise: DGamma, retention: float, strength: float, cap: float
) -> tuple[float, float]:
    """K and c: beliefs up to min(K·s(t), c) are protected; rounded to the weaker side."""
    most = float(protected_priors(promise, retention, np.array([cap / SAFETY]))[0])
    belief = math.floor(most * (1 - 1e-9) * 1e9) / 1e9
    factor = strength / cap * belief * (1 - 1e-9)
    digits = 10.0 ** (5 - math.floor(math.log10(factor))) if factor > 0 else 1.0
    return math.floor(factor * digits) / digits, belief


def protected_priors(promise: DGamma, retention: float, means: Floats) -> Floats:
    """d(t): the largest beliefs in tuples with such mean noise that end at γ at most."""
    gamma, low = promise.posterior, room_for(promise.adversary, retention)
    ratio = (1 + retention / means) / low
    return np.asarray(gamma / (gamma + (1 - gamma) * ratio))
