"""α implies β in probability: Δ = Pr[β|α] − Pr[β], and the slides' tester of it.

Δ = cov(α, β)/p_α, so the covariance over random halves estimates it. The tester uses one half only:
it draws halves until one has far more of α than its size explains, and asks β of that one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from voile.arrays import Floats
from voile.asking.covariance import quantile

TINY = 1e-12
"""What a share of nothing is taken for where it divides."""


@dataclass(frozen=True)
class Ratio:
    """A ratio of two uncertain numbers; the ends are infinite if the lower one may be 0."""

    value: float
    stderr: float
    low: float
    high: float


def implied(
    covariance: float,
    covariance_stderr: float,
    share: float,
    share_stderr: float,
    *,
    linked: float = 0.0,
    confidence: float,
    halves: int,
) -> Ratio:
    """Δ̂ = cov/p_α with Fieller's interval.

    A Δ is inside if cov − Δ·p, whose expectation is then 0, is within its own error. Where the
    halves' sizes are known, errors of cov and p are uncorrelated: over random halves all odd
    moments are 0. Else `linked` is their covariance.
    """
    if share <= 0:
        return Ratio(math.nan, math.nan, -math.inf, math.inf)
    reach = quantile(confidence, halves)
    value = covariance / share
    variance = covariance_stderr**2 - 2 * value * linked + (value * share_stderr) ** 2
    low, high = fieller(
        covariance, share, reach**2 * np.array([covariance_stderr**2, linked, share_stderr**2])
    )
    stderr = math.sqrt(max(0.0, variance)) / share
    return Ratio(value, stderr, low, high)


def fieller(top: float, bottom: float, reach: Floats) -> tuple[float, float]:
    """The numbers d with (top − d·bottom)² ≤ reach₀ − 2d·reach₁ + d²·reach₂."""
    square = bottom**2 - float(reach[2])
    if square <= 0:
        return -math.inf, math.inf
    middle = (top * bottom - float(reach[1])) / square
    width = math.sqrt(max(0.0, middle**2 - (top**2 - float(reach[0])) / square))
    return middle - width, middle + width


def possible(given: float, then: float) -> tuple[float, float]:
    """Between which numbers Δ is, for conditions so frequent.

    Pr[α∧β] is at least 0 and p_α + p_β − 1, and at most p_α and p_β; Δ = Pr[α∧β]/p_α − p_β.
    """
    others = (1 - given) / max(given, TINY)
    return max(-then, (then - 1) * others), min(1 - then, then * others)


def cut(ratio: Ratio, given: tuple[float, float], then: tuple[float, float], reach: float) -> Ratio:
    """Δ cut to what is possible for these shares, each with its standard error.

    The ends of the interval are cut to what is possible for any shares within `reach` of their
    errors, so that a wrong share takes nothing off that may be true.
    """
    (a, a_error), (b, b_error) = given, then
    least_a, least_b, most_b = np.clip(
        [a - reach * a_error, b - reach * b_error, b + reach * b_error], 0.0, 1.0
    )
    low = max(-most_b, (least_b - 1) * (1 - least_a) / max(least_a, TINY))
    high = min(1 - least_b, most_b * (1 - least_a) / max(least_a, TINY))
    ends = possible(*(float(share) for share in np.clip([a, b], 0.0, 1.0)))
    return replace(
        ratio,
        value=float(np.clip(ratio.value, *ends)),
        low=float(np.clip(ratio.low, low, high)),
        high=float(np.clip(ratio.high, low, high)),
    )


# ---------------------------------------------------------------------- the tester


@dataclass(frozen=True)
class Tester:
    """Draw random halves until a_α > |q|·p_α + bias·√n, then ask β of that half.

    `noise` is the variance of the noise of one count on each side.
    """

    rows: int
    share: float
    """p_α"""
    noise: tuple[float, float]
    bias: float = 1.0
    """1 in the slides."""

    @property
    def spread(self) -> float:
        return self.share * (1 - self.share)

    @property
    def deviation(self) -> float:
        """Of a_α − |q|·p_α over random halves."""
        return math.sqrt(self.rows * self.spread / 4 + self.noise[0])

    @property
    def acceptance(self) -> float:
        """How likely a random half is accepted."""
        return float(stats.norm.sf(self.bias * math.sqrt(self.rows) / self.deviation))

    def accepts(self, counts: Floats, sizes: Floats) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.asarray(counts - sizes * self.share > self.bias * math.sqrt(self.rows))

    @property
    def slope(self) -> float:
        """Δ of a half whose excess of β is as large as that of α.

        Given the excess x of α, noise and all, that of β is x·(n/4)·p_α·Δ/deviation² on average.
        """
        return self.deviation**2 / (self.rows * self.share / 4)

    def delta(self, excess: Floats, other: Floats) -> Floats:
        """Δ̂ from the excesses of α and β in accepted halves, one by one."""
        return np.asarray(self.slope * other / excess)

    def stderr(self, excess: float, other_share: float) -> float:
        """Of Δ̂ from one half; at most, since α explains a part of the excess of β."""
        spread = self.rows * other_share * (1 - other_share) / 4 + self.noise[1]
        return self.slope * math.sqrt(spread) / excess

    def threshold(self, excess: Floats, size: Floats, other_share: float, delta: float) -> Floats:
        """The count of β above which the tester says that Δ is larger than `delta`."""
        return np.asarray(size * other_share + excess * delta / self.slope)
