"""Confidence, conf(p) = ln(p/(1−p)), as a random walk: its normal law.

Someone who knows every other row weighs two hypotheses about one. An answer with noise of variance
V, where they differ by 1, moves conf by a step of mean 1/2V towards the truth and of variance 1/V.
Proofs: docs/mathematics, section 33. The exact laws of the noise that is drawn: `promise`.
"""

from __future__ import annotations

import math

from voile.errors import UsageError

__all__ = ["breach", "conf", "variance_needed", "walk", "walk_bound"]

LEAST_ETA = 1e-20
"""Smaller probabilities cannot be distinguished from 0 where exact laws of noise are summed."""


def conf(p: float) -> float:
    """The log-odds of a belief; −∞ of 0 and ∞ of 1."""
    if not 0 <= p <= 1:
        raise UsageError(f"a belief lies in [0, 1], not {p}", hint="give a probability")
    if p in (0, 1):
        return math.inf if p else -math.inf
    return math.log(p) - math.log1p(-p)


def variance_needed(delta: float, eta: float, queries: int, *, anytime: bool = False) -> float:
    """V with Pr[conf rises by more than δ over T answers] = η, for normal steps.

    V = T/u² with u = −z + √(z² + 2δ), where z is exceeded with chance η. `anytime` bounds the
    walk's highest point instead of its last: by Lévy's inequality η/2 at the end suffices.
    """
    from scipy.special import ndtri  # noqa: PLC0415  (slow to import)

    check_promise(delta, eta, queries)
    z = -float(ndtri(eta / 2 if anytime else eta))
    root = math.sqrt(z * z + 2 * delta)
    u = 2 * delta / (z + root) if z > 0 else root - z
    return queries / (u * u)


def breach(delta: float, queries: int, variance: float) -> float:
    """Pr[conf rises by more than δ over all answers], for normal steps: a walk N(T/2V, T/V)."""
    from scipy.special import ndtr  # noqa: PLC0415  (slow to import)

    mean, deviation = walk(queries, variance)
    return float(ndtr((mean - delta) / deviation))


def walk_bound(delta: float, queries: int, variance: float) -> float:
    """Pr[conf is ever more than δ above its start], for Brownian motion with the walk's law.

    The walk is that motion looked at T times, so that it is ever above δ at most as often.
    """
    from scipy.special import log_ndtr  # noqa: PLC0415  (slow to import)

    mean, deviation = walk(queries, variance)
    reflected = delta + float(log_ndtr(-(delta + mean) / deviation))
    return breach(delta, queries, variance) + math.exp(reflected)


def walk(queries: int, variance: float) -> tuple[float, float]:
    """The mean and the standard deviation of the change of conf after all answers."""
    return queries / (2 * variance), math.sqrt(queries / variance)


def check_promise(delta: float, eta: float, queries: int) -> None:
    """Refuse what is no (δ, T, η)."""
    if not (math.isfinite(delta) and delta > 0):
        raise UsageError(
            f"δ = {delta} is not above 0", hint="1 lets a belief of .5 rise to .73; 0.5 to .62"
        )
    if not LEAST_ETA <= eta < 0.5:
        raise UsageError(
            f"η = {eta} is not between {LEAST_ETA:g} and .5",
            hint="it is the chance that a belief rises by more than δ; 1e-6 is usual",
        )
    if queries < 1:
        raise UsageError(f"T = {queries} questions is less than 1", hint="give at least 1")
