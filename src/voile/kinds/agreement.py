"""Whether noisy counts of the same agree as closely as their noise lets them, and no closer.

With x_i counts of the same cells, v_i their variances, and x̄ their weighted mean,
Q = Σ_i Σ_v (x_iv − x̄_v)²/v_i has the law of χ² with (counts − 1)·cells degrees of freedom.

From above the bound holds for every noise whose tails a variance bounds: the binomial law's own, σ²
of the discrete Gaussian law (Hsu, Kakade and Zhang, 2012). From below it is Chernoff's for normal
noise, of which every sum is taken to be rounded to the nearest whole number. What agrees too well
had no noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from voile.arrays import Floats
from voile.kinds.plausibility import Surprise


@dataclass(frozen=True)
class TableAgreement:
    """What is compared: Q, its degrees of freedom, and what rounding by 1 adds to √Q at most."""

    what: str
    q: float
    degrees: int
    rounding: float
    proxy: float = 1.0
    """By how much the variance that bounds the noise's tails exceeds its own."""
    excess: float = 0.0
    """What rounding may have added to √Q."""


def comparison(
    what: str, listed: list[tuple[Floats, float]], truth: Floats | None = None
) -> TableAgreement:
    """Counts of the same values with their variances, against the truth or their weighted mean."""
    counts = np.stack([x for x, _ in listed])
    weights = np.array([1 / v for _, v in listed])[:, None]
    mean = (weights * counts).sum(axis=0) / weights.sum() if truth is None else truth
    q = float((weights * (counts - mean) ** 2).sum())
    degrees = counts.size - (counts.shape[1] if truth is None else 0)
    return TableAgreement(what, q, degrees, math.sqrt(float(weights.sum()) * counts.shape[1]))


def tails(one: TableAgreement) -> Surprise:
    """ln P of a Q so small or so large, at most."""
    share = (math.sqrt(one.q) + one.rounding) ** 2 / one.degrees
    if share < 1:  # P(χ² ≤ k·x) ≤ (x·e^(1−x))^(k/2)
        chance = one.degrees / 2 * (math.log(share) + 1 - share)
        return Surprise(f"{one.what} agree too well", chance + math.log(2))
    q = max(0.0, math.sqrt(one.q) - one.excess) ** 2 / one.proxy
    if q <= one.degrees:
        return Surprise(f"{one.what} agree", 0.0)
    # P(Q ≥ k + 2√(kt) + 2t) ≤ e^−t
    root = (math.sqrt(2 * q - one.degrees) - math.sqrt(one.degrees)) / 2
    return Surprise(f"{one.what} differ too much", math.log(2) - root**2)
