"""The promise of a view: the one that the options choose, and notes about it."""

from __future__ import annotations

from fractions import Fraction

from voile.errors import PromiseError, spelled
from voile.kinds.views.alphabeta import Publishing
from voile.kinds.views.options import ViewOptions, epsilon_promise
from voile.kinds.views.shaped import Shaped
from voile.privacy import DGamma, LikelihoodRatio
from voile.privacy.guarantee import SharedDGamma

PRIOR_FACTOR = 10.0
MOST_ROWS = 4_000_000_000
MOST_DRAWN = 3e8
"""Hits that shaped noise may take: a few minutes; likely tuples are hit many times."""


def promise_for(density: Fraction, options: ViewOptions) -> DGamma:
    """d is given, or k times n/m, the prior of someone who knows only the table's size."""
    prior, posterior = options.prior, options.posterior
    if options.epsilon is not None:
        prior, posterior = epsilon_promise(options.epsilon)
    if prior is None:
        factor = PRIOR_FACTOR if options.prior_factor is None else options.prior_factor
        d = Fraction(factor) * density
        if posterior <= d:
            most = float(Fraction(posterior) / density)
            ways = [f"{spelled('prior_factor')} below {most:.4g}"] if most > 1 else []
            ways += [f"{spelled('posterior')} above {float(d):.4g}"] if d < 1 else []
            ways += [
                "more or finer columns, so that the domain is larger",
                f"{spelled('prior')} with a number",
            ]
            raise PromiseError(
                f"prior factor {factor:g} means d = {float(d):.6g}, which is not below the "
                f"posterior γ = {posterior:.6g}: Theorem 4.3 needs d ≤ γ",
                hint="nearest feasible: " + ", or ".join(ways),
            )
        prior = float(d)
    return DGamma(prior, posterior, options.adversary)


def of_one_record(promise: DGamma, records: int) -> DGamma:
    """What a promise about a person with so many records demands of each of them."""
    if records == 1:
        return promise
    return SharedDGamma(promise.prior, promise.posterior, promise.adversary, records)


def weak_prior(promise: DGamma, size: int) -> list[str]:
    """A warning where the promise covers nobody who knows that the person is in the table."""
    if Fraction(promise.prior) * size >= 1:
        return []
    return [
        f"d = {promise.prior:.3g} is below 1/m = {float(Fraction(1, size)):.3g}: someone who knows "
        "that a person is in the table, and nothing else, believes more than that already, and "
        "is promised against nothing"
    ]


def weakened(requested: DGamma, promise: DGamma) -> list[str]:
    """Shaped noise promises less than was requested to records that are not likely."""
    if promise.prior >= requested.prior * (1 - 1e-6):
        return []
    return [
        f"asked for d = {requested.prior:.3g}: noise with a shape promises that to likely records, "
        f"and d = {promise.prior:.3g} to all; a larger {spelled('noise_floor')} promises more "
        "to all"
    ]


def linked_list(promise: DGamma, ratio: LikelihoodRatio) -> list[str]:
    """What the default does not promise against, in a number."""
    if promise.adversary == "exclusive":
        return []
    reached = float(ratio.linked_posterior(promise.prior))
    return [
        "someone who knows that a person is in the table, and has a list of records that could be "
        f"theirs, may come to believe in one of them with up to {reached:.3g}; "
        f"{spelled('adversary', 'exclusive')} keeps that below {promise.posterior:g}"
    ]


def check_size(mechanism: Publishing, rows: int, size: int) -> None:
    """Refuse a promise whose view would be too large, or its noise too slow to draw."""
    if isinstance(mechanism, Shaped) and mechanism.drawn(size) > MOST_DRAWN:
        raise PromiseError(
            f"noise of this shape needs about {mechanism.drawn(size):.3g} draws, more than "
            f"{MOST_DRAWN:.3g}: the prior has most of its mass on few tuples",
            hint="use a smaller prior, a larger posterior, fewer skewed columns, or even noise",
        )
    expected = mechanism.retention * rows + mechanism.expected_noise(size)
    if expected > MOST_ROWS:
        raise PromiseError(
            f"this promise needs a view of about {expected:.3g} rows",
            hint="use fewer or coarser columns, a smaller prior, a larger posterior, "
            f"or {spelled('max_view_ratio')}",
        )
