"""How many halves an error needs, before anything is asked.

Of the sides only n and the noise are known then. All classes of a side are taken to be equally
frequent: if there is one condition on each side and the halves' sizes are known, no other
frequencies have a larger covariance error.
"""

from __future__ import annotations

import math

import numpy as np

from voile.arrays import Floats
from voile.asking.covariance import Form

LEAST = 2
"""Halves: a covariance of fewer is none."""


def expected_error(
    form: Form,
    classes: tuple[Floats, Floats],
    rows: int,
    variances: tuple[float, float],
    halves: int,
    *,
    sized: bool = True,
) -> float:
    """The standard error that Pr[f] will have, at most, if classes are equally frequent.

    `classes` says which classes of its side each condition holds in (conditions × classes), and
    `sized` whether the sizes of halves are known.
    """
    shares = classes[0].mean(axis=1), classes[1].mean(axis=1)
    one, other = spread(classes[0], sized=sized), spread(classes[1], sized=sized)
    known = form if sized else form.linear()
    each = form.times(noisy(one, rows, variances[0]), noisy(other, rows, variances[1]))
    each += form.times(one, other)  # the square of what is to be found is at most this
    total = each / (halves - 1)
    for slopes, inner, variance in zip(known.slopes(shares), (one, other), variances, strict=True):
        certain = variance / rows**2
        loose = np.diag(inner) / rows / halves + 4 * certain / halves
        total += float((slopes**2 * certain * loose / (certain + loose + 1e-300)).sum())
    return math.sqrt(total)


def halves_needed(
    form: Form,
    classes: tuple[Floats, Floats],
    rows: int,
    variances: tuple[float, float],
    error: float,
    *,
    sized: bool = True,
) -> int:
    """The fewest halves with which the standard error will be no larger."""

    def enough(halves: int) -> bool:
        return expected_error(form, classes, rows, variances, halves, sized=sized) <= error

    high = LEAST
    while not enough(high):
        high *= 2
    low = LEAST - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def spread(classes: Floats, *, sized: bool) -> Floats:
    """Covariances of conditions over equally frequent classes; about 0 where sizes are unknown."""
    centred = classes - classes.mean(axis=1, keepdims=True) if sized else classes
    return np.asarray(centred @ centred.T / max(1, classes.shape[1]))


def noisy(inner: Floats, rows: int, variance: float) -> Floats:
    """σ² + 4V/n on the diagonal: what a half of n rows shows."""
    return np.asarray(inner + 4 * variance / rows * np.eye(len(inner)))


def covariance_error(
    variances: tuple[float, float], noise: tuple[float, float], covariance: float, halves: int,
    rows: int,
) -> float:  # fmt: skip
    """√[((σ_α² + 4V_α/n)·(σ_β² + 4V_β/n) + cov²)/T], of one condition on each side."""
    one, other = (s + 4 * v / rows for s, v in zip(variances, noise, strict=True))
    return math.sqrt((one * other + covariance**2) / halves)


def best_halves(rows: int, per_query: float, spread_: float = 0.25) -> tuple[float, float]:
    """T and the least error, where noise of variance V = per_query·T pays for T halves.

    More halves tell more and cost more noise; T = σ²n/(4v) is best, with 4σ√(v/n).
    """
    return spread_ * rows / (4 * per_query), 4 * math.sqrt(spread_ * per_query / rows)
