"""From a promise to the parameters of αβ that keep it with the least error.

`retention` a is the chance that a real record is kept (the paper's α+β);
`noise` is q of the multiset form (every tuple of D gets N copies, P(N=j) = (1−q)q^j) or β of the
set form (every tuple outside the table is inserted with chance β).
Derivations: docs/mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from voile.arrays import Floats
from voile.errors import PromiseError, UsageError, spelled
from voile.options import choices
from voile.privacy.guarantee import Adversary, DGamma, LikelihoodRatio, round_down, round_up

Form = choices.Form
"""Whether the table may repeat a row, as a multiset, or not, as the paper's sets."""


@dataclass(frozen=True)
class Plan:
    """Retention and noise, with the retention's limits at this promise."""

    retention: float
    noise: float
    largest_retention: float


def plan(
    promise: DGamma,
    form: Form,
    *,
    retention: float | None = None,
    max_view_ratio: float | None = None,
    domain_ratio: Fraction | None = None,
) -> Plan:
    """The parameters with the smallest error, or those for a given retention.

    `max_view_ratio` bounds the expected rows of the view per row of the table; `domain_ratio`
    is m/n, needed for that.
    """
    largest = largest_retention(promise, form)
    if retention is not None:
        check_retention(promise, retention, largest)
    chosen = best_retention(promise, form, largest) if retention is None else retention
    if max_view_ratio is not None:
        assert domain_ratio is not None  # noqa: S101
        small = within_view(promise, form, chosen, max_view_ratio, domain_ratio)
        if retention is not None and small < retention:
            raise PromiseError(
                f"retention {retention:g} needs a view larger than {max_view_ratio:g} rows per row",
                hint=f"nearest feasible: {spelled('retention', math.floor(small * 1e6) / 1e6)}",
            )
        chosen = small
    noise = round_up(least_noise(promise, form, Fraction(chosen))) if chosen > 0 else 1.0
    if noise >= (1 if form == "multiset" else chosen):
        raise PromiseError(
            f"d = {promise.prior:.17g} is so near γ = {promise.posterior:.17g} that only noise "
            "would be left",
            hint="raise the posterior, or lower the prior",
        )
    return Plan(chosen, noise, largest)


def check_retention(promise: DGamma, retention: float, largest: float) -> None:
    """Refuse a retention that the promise does not allow, and say which it does."""
    if not 0 < retention <= 1:
        raise UsageError(f"retention {retention} must lie in (0, 1]", hint="the paper's is 0.5")
    if retention > largest:
        raise PromiseError(
            f"retention {retention:g} is too large for d = {promise.prior:.6g}, "
            f"γ = {promise.posterior:.6g}: Theorem 4.3 allows at most {largest:.6g} "
            "(a missing record would show that it was not there)",
            hint=f"nearest feasible: {spelled('retention', math.floor(largest * 1e6) / 1e6)}"
            f"{_posterior_for(promise, retention)}",
        )


def _posterior_for(promise: DGamma, retention: float) -> str:
    """The posterior at which this retention would do, where there is one."""
    needed = promise.posterior_at(1 - retention) if retention < 1 else math.inf
    return f", or {spelled('posterior', float(f'{needed:.4g}'))} and more" if needed < 1 else ""


def least_noise(promise: DGamma, form: Form, a: Fraction) -> Fraction:
    """The least noise that keeps the upper bound at retention a.

    multiset  ratio = 1 − a + a/q ≤ R        ⇒  q = a/(R − 1 + a)
              against exclusive: ≤ R(1 − a)  ⇒  q = a/((R − 1)(1 − a))
    set       ratio = a/β ≤ R                ⇒  β = a/R
              exclusive: a(1−β)/(β(1−a)) ≤ R ⇒  β = a/(a + R(1 − a))
    """
    ratio = promise.ratio_high
    if form == "multiset":
        exclusive = (ratio - 1) * (1 - a)
        return a / (exclusive if promise.adversary == "exclusive" else ratio - 1 + a)
    return a / (a + ratio * (1 - a) if promise.adversary == "exclusive" else ratio)


def largest_retention(promise: DGamma, form: Form) -> float:
    """The largest a at which the lower bound, and noise below 1, are possible.

    multiset: 1 − a ≥ d/γ. set: (1 − a)/(1 − a/R) ≥ d/γ, a little more: Theorem 4.3 prints
    the sufficient 1 − d/γ. Against exclusive adversaries the noise also grows with a and must
    stay below 1 (multiset), or (1 − a)/(1 − β) must reach d/γ (set; 1 − d/γ is sufficient).
    """
    low, ratio = promise.ratio_low, promise.ratio_high
    if promise.adversary == "independent":
        bound = 1 - low if form == "multiset" else (1 - low) / (1 - low / ratio)
    elif form == "multiset":
        bound = min(1 - low, (ratio - 1) / ratio * Fraction(999, 1000))
    else:
        bound = 1 - low
    return round_down(bound)


def best_retention(promise: DGamma, form: Form, largest: float) -> float:
    """The retention with the least noise variance per tuple of D.

    Independent adversaries: the variance falls in a, so the largest. Exclusive: the set form has
    R/(a(1−a)(R−1)²), least at 1/2; the multiset form has q/((1−q)²a²), least where
    2R·a(1−a) = R − 1 − aR, i.e. a = (3R − √(R² + 8R))/(4R), which tends to 1/2.
    """
    if promise.adversary == "independent":
        return largest
    if form == "set":
        return min(0.5, largest)
    over = float(1 / promise.ratio_high)
    return min((3 - math.sqrt(1 + 8 * over)) / 4, largest)


def within_view(
    promise: DGamma, form: Form, retention: float, max_view_ratio: float, domain_ratio: Fraction
) -> float:
    """The largest retention, up to the given one, whose expected view is small enough.

    The view has a·n + (mean noise)·m rows, which grows with a.
    """
    if max_view_ratio <= 0:
        raise UsageError(f"max-view-ratio {max_view_ratio} must be positive")

    def view_ratio(a: float) -> float:
        noise = least_noise(promise, form, Fraction(a))
        mean = noise / (1 - noise) if form == "multiset" else noise
        return float(Fraction(a) + mean * domain_ratio)

    if view_ratio(retention) <= max_view_ratio:
        return retention
    low, high = 0.0, retention
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if view_ratio(middle) <= max_view_ratio else (low, middle)
    if low < 1e-3:
        # Against exclusive adversaries a promise may allow less than one half.
        share = min(0.5, retention)
        feasible = float(f"{view_ratio(share):.3g}")
        raise PromiseError(
            f"a view of at most {max_view_ratio:g} rows per row would keep fewer than one record "
            f"in a thousand at d = {promise.prior:.6g}, γ = {promise.posterior:.6g}",
            hint=f"nearest feasible: {spelled('max_view_ratio', feasible)} keeps {share:.3g} of "
            "the records",
        )
    return low


if TYPE_CHECKING:
    from voile.schema.index import Product

# ---------------------------------------------------------------------- shaped noise
# Noise shaped by a prior (VLDB 2007, §4.4.2): more of it where records are likely.
#
# The prior is a product of one distribution per attribute, s(t) = Π_j p_j(t_j). A tuple gets
# noise with the mean
#     μ(t) = floor + min(strength·s(t), cap).
# One more record changes the chance of a view by a ratio in [1−a, 1+a/μ(t)], a the retention. A
# belief d in t ends at γ at most iff μ(t) is at least f(d) = a/(ℓ·R(d) − 1), R(d) =
# γ(1−d)/(d(1−γ)), with ℓ = 1, or 1−a against exclusive adversaries. f is convex, so the line from
# 0 to a point of it lies above it: with cap = f(c) and strength = K·f(c)/c all beliefs up to
# min(K·s(t), c) are protected. Proofs: docs/mathematics §20.


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
    wanted: DGamma,
    expected: float,
    prior: Product,
    sizes: Sequence[int],
    *,
    floor_share: float,
    retention: float | None = None,
) -> ShapedPlan:
    """The noise that protects beliefs K·s(t), and floor_share·d everywhere.

    `expected` is K = k·n, the number of records that such beliefs add up to; `wanted` has
    d = k·n/m, their average.
    """
    if not 0 < floor_share <= 1:
        raise UsageError(
            f"noise-floor {floor_share} must lie in (0, 1]",
            hint="without an even part, records that the prior takes for impossible would stand "
            "out; 0.1 if not given",
        )
    largest = largest_retention(wanted, "multiset")
    if retention is not None:
        check_retention(wanted, retention, largest)
    a = best_retention(wanted, "multiset", largest) if retention is None else retention
    share = FIRST_SHARE
    while True:
        belief = share * most_protected(wanted, a)
        cap = SAFETY * needed(wanted, a, belief)
        strength = expected * cap / belief
        if prior.above(sizes, cap / strength, MOST_LISTED) is not None:
            break
        share = (1 + share) / 2  # a higher cap has fewer tuples above it
    return ShapedPlan(a, SAFETY * needed(wanted, a, floor_share * wanted.prior), strength, cap)


def needed(promise: DGamma, retention: float, belief: float) -> float:
    """f: the mean noise that protects a belief."""
    odds = belief / (1 - belief) * (1 - promise.posterior) / promise.posterior
    return retention * odds / (room_for(promise.adversary, retention) - odds)


def most_protected(promise: DGamma, retention: float) -> float:
    """The belief that no noise can protect, and all smaller ones can be: f grows without bound."""
    odds = room_for(promise.adversary, retention) * promise.posterior / (1 - promise.posterior)
    return odds / (1 + odds)


def promise_everywhere(wanted: DGamma, ratio: LikelihoodRatio) -> DGamma:
    """What holds for every tuple, also for those that the prior takes for impossible.

    No more than was requested: the retention was chosen for that.
    """
    assert ratio.high is not None  # noqa: S101  (there is noise everywhere)
    high = ratio.high / ratio.low if wanted.adversary == "exclusive" else ratio.high
    gamma = Fraction(wanted.posterior)
    protected = gamma / (gamma + (1 - gamma) * high * Fraction(SAFETY))
    return replace(wanted, prior=min(wanted.prior, round_down(protected)))


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
