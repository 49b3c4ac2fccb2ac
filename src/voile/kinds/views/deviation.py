"""How far a weighted sum over a view can be from its expectation.

A view's sum of weights w is T = Σ_I w·K + Σ_D w·N with independent coins: K says whether a record
was kept, N how many noise rows a tuple got. Its variance V needs Σ_I w², which is secret and is
estimated from the view. With σ = √V and z = z(δ/2),

  near normal   |T − E T| ≤ σ·(z + e),  e = (z³ − 3z)·κ/24 + (z⁵ − 10z³ + 15z)·γ²/72

is Edgeworth's interval of both sides together, with the largest skewness γ and kurtosis κ that the
weights allow, both of the order of M/σ, M ≥ |w|; and wider for what is not known of V. It is used
where e is small beside z. Elsewhere, where rows are few, two bounds hold for every table:

  Bernstein     |T − E T| ≤ √(2·L·V) + c·M·L,  L = ln(2/δ): good for few rows
  Berry–Esseen  |T − E T| ≤ z(δ/2 − e)·√V,  e = 0.56·Σ E|X−EX|³/V^{3/2}: good for many

with V at an upper bound that the view gives, with a part of the chance to err, and e at the lower
bound of V.

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
MOST_CORRECTED = 0.35
"""Up to this share of z, a correction of the normal interval is taken as one."""
MOST_OF_ONE = 0.25
"""The most that one row may be of V: beyond it, the bounds that hold for every table are used."""


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
        members = (view - self.noise_mean * domain) / self.excess
        found = np.minimum(found, self.near_normal(members, spread, largest, miss))
        # No row can count where no tuple does, and coins that never fall otherwise do not err.
        sure = (spread <= 0) | (self.kept_variance == self.noise_variance == 0)
        return np.where(sure, 0.0, found)

    @np.errstate(all="ignore")
    def near_normal(
        self,
        members: Floats,
        spread: Floats,
        largest: Floats,
        miss: float,
        *,
        more: Floats | float = 0.0,
    ) -> Floats:
        """Edgeworth's deviation, wider for what is not known of V; ∞ where rows are too few.

        `more` is added to V.
        """
        variance = self.variance(members, spread) + more
        known = np.where(variance > 0, variance, np.nan)
        step = largest**2 / known
        third = (self.kept_third * np.maximum(members, 0.0) + self.noise_third * spread) / known
        skewness = third**2 * step
        z = -NormalDist().inv_cdf(miss / 2)
        off = np.maximum(edgeworth(z, skewness, HEAVIEST * skewness), 0.0)
        # Σ_I w² is known but for an error of at most M·σ/excess, and V by that much.
        unsure = abs(self.kept_variance) / self.excess * np.sqrt(step) / 2
        found = z * (unsure + np.sqrt(1 + unsure**2)) + off
        few = ~(step <= MOST_OF_ONE) | ~(found <= (1 + MOST_CORRECTED) * z)
        return np.where(few, np.inf, np.sqrt(variance) * found)

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


HEAVIEST = 1.5
"""The excess kurtosis in units of the squared skewness: that of a gamma law, which is more than of
sums of coins (1) or of Poisson's."""


def edgeworth(z: float, skewness: Floats, kurtosis: Floats) -> Floats:
    """By how much both tails beyond ±z are too heavy, as a step of z; of squared skewness."""
    return np.asarray(
        (z**3 - 3 * z) * kurtosis / 24 + (z**5 - 10 * z**3 + 15 * z) * skewness / 72, np.float64
    )


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
