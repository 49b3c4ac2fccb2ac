"""From a promise to the parameters of αβ that keep it with the least error.

`retention` a is the chance that a real record is kept (the paper's α+β);
`noise` is q of the multiset form (every tuple of D gets N copies, P(N=j) = (1−q)q^j) or β of the
set form (every tuple outside the table is inserted with chance β).
Derivations: docs/mathematics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from voile.errors import PromiseError, UsageError
from voile.options import choices
from voile.privacy.guarantee import DGamma

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
                hint=f"nearest feasible: --retention {math.floor(small * 1e6) / 1e6:g}",
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
    if not 0 < retention <= 1:
        raise UsageError(f"retention {retention} must lie in (0, 1]", hint="the paper's is 0.5")
    if retention > largest:
        raise PromiseError(
            f"retention {retention:g} is too large for d = {promise.prior:.6g}, "
            f"γ = {promise.posterior:.6g}: Theorem 4.3 allows at most {largest:.6g} "
            "(a missing record would show that it was not there)",
            hint=f"nearest feasible: --retention {math.floor(largest * 1e6) / 1e6:g}"
            f"{_posterior_for(promise, retention)}",
        )


def _posterior_for(promise: DGamma, retention: float) -> str:
    """The posterior at which this retention would do, where there is one."""
    needed = promise.prior / (1 - retention) if retention < 1 else math.inf
    return f", or --posterior {needed:.4g} and more" if needed < 1 else ""


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

    multiset: 1 − a ≥ d/γ. set: (1 − a)/(1 − a/R) ≥ d/γ, a little more room: Theorem 4.3 prints
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
        raise PromiseError(
            f"a view of at most {max_view_ratio:g} rows per row would keep fewer than one record "
            f"in a thousand at d = {promise.prior:.6g}, γ = {promise.posterior:.6g}",
            hint=f"nearest feasible: --max-view-ratio {view_ratio(0.5):.3g} keeps half the records",
        )
    return low


def round_up(x: Fraction) -> float:
    """The smallest float not below x: a promise is never broken by rounding."""
    near = float(x)
    return near if Fraction(near) >= x else math.nextafter(near, math.inf)


def round_down(x: Fraction) -> float:
    near = float(x)
    return near if Fraction(near) <= x else math.nextafter(near, -math.inf)
