"""How far a weighted sum over a view can be from its expectation.

A view's sum of weights w is T = Σ_I w·K + Σ_D w·N with independent coins: K says whether a record
was kept, N how many noise rows a tuple got. Its variance V needs Σ_I w², which is secret; that sum
is itself bounded from both sides by what the view shows, with a part of the chance to err. Then two
bounds hold for every table, and so does the smaller:

  Bernstein     |T − E T| ≤ √(2·L·V) + c·M·L,  L = ln(2/δ),  M ≥ |w|: good for few rows
  Berry–Esseen  |T − E T| ≤ z(δ/2 − e)·√V,  e = 0.56·Σ E|X−EX|³/V^{3/2}: good for many

with V at its upper bound, and e at the lower bound of V.

c is 1/3 for coins, and max((1+2μ)/3, 1/ln(1/q)) for geometric noise: with it the cumulant
generating function of N − μ stays below s²v/(2(1−cs)). E|N−μ|³ ≤ v·(1+2.5μ). The tests check both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from voile.arrays import Floats

BERRY_ESSEEN = 0.56
"""For summands that differ (Shevtsova, 2010)."""
SPENT_ON_VARIANCE = 0.1
"""The part of the chance to err that pays for the bounds on Σ_I w²."""


@dataclass(frozen=True)
class CoinMoments:
    """What a mechanism's coins do to one record and to one tuple of the domain."""

    excess: float
    noise_mean: float
    kept_variance: float
    """By which a record raises the variance; in the set form it may be negative."""
    noise_variance: float
    scale: float
    kept_third: float
    noise_third: float

    def variance(self, members: Floats | float, spread: Floats | float) -> Floats:
        """Variance of a sum whose squared weights sum to these over the table and the domain."""
        kept: Floats = self.kept_variance * np.maximum(members, 0.0)
        return np.maximum(kept + self.noise_variance * spread, 0.0)

    def deviation(
        self, view: Floats, domain: Floats, spread: Floats, largest: Floats, miss: float
    ) -> Floats:
        """|T − E T| is more than this with probability at most `miss`.

        `view`, `domain` and `spread` are sums of squared weights over the view and the domain,
        the last with each tuple weighted by the variance of its noise, where that differs.
        """
        spent = SPENT_ON_VARIANCE * miss
        least, most = self._members(view, domain, spread, largest, math.log(2 / spent))
        ends = [self.variance(members, spread) for members in (least, most)]
        low, high = np.minimum(*ends), np.maximum(*ends)
        third = largest * (self.kept_third * most + self.noise_third * spread)
        left = miss - spent
        bernstein = bernstein_bound(high, self.scale * largest, math.log(2 / left))
        found = np.minimum(bernstein, normal_bound(low, high, third, left))
        # No row can count where no tuple does, and coins that never fall otherwise do not err.
        sure = (spread <= 0) | (self.kept_variance == self.noise_variance == 0)
        return np.where(sure, 0.0, found)

    def _members(
        self, view: Floats, domain: Floats, spread: Floats, largest: Floats, log: float
    ) -> tuple[Floats, Floats]:
        """Bounds of Σ_I w²: what Bernstein's inequality for the weights w² allows."""
        seen = (view - self.noise_mean * domain) / self.excess
        slack = self.scale * largest**2 * log / self.excess
        linear = 2 * log * largest**2 * max(self.kept_variance, 0.0) / self.excess**2
        constant = 2 * log * largest**2 * self.noise_variance * spread / self.excess**2

        def root(at: Floats) -> Floats:
            return np.sqrt(np.maximum(linear * at + linear**2 / 4 + constant, 0.0))

        up, down = seen + slack, seen - slack
        most = up + linear / 2 + root(up)
        least = down + linear / 2 - root(down)
        return np.maximum(least, 0.0), np.maximum(most, 0.0)


def bernstein_bound(variance: Floats, scale: Floats, log: float) -> Floats:
    """Bernstein's bound: √(2·L·V) + c·M·L."""
    found: Floats = np.sqrt(2 * log * variance) + scale * log
    return found


def normal_bound(low: Floats, high: Floats, third: Floats, miss: float) -> Floats:
    """The normal interval that is still valid after Berry and Esseen's correction."""
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = BERRY_ESSEEN * third / low**1.5
    tail = miss / 2 - lost
    quantile = NormalDist().inv_cdf
    wide = [-quantile(t) if t > 0 else math.inf for t in np.ravel(tail).tolist()]
    with np.errstate(invalid="ignore"):
        found: Floats = np.array(wide).reshape(np.shape(tail)) * np.sqrt(high)
    return np.where(np.isnan(found), np.inf, found)


def geometric_scale(q: float) -> float:
    """Bernstein's c for N with P(N = j) = (1 − q) q^j."""
    if q <= 0:
        return 1 / 3
    mean = q / (1 - q)
    return max((1 + 2 * mean) / 3, -1 / math.log(q))
