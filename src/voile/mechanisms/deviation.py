"""How far a weighted sum over a view can be from its expectation.

A view's sum of weights w is T = Σ_I w·K + Σ_D w·N with independent coins: K says whether a record
was kept, N how many noise rows a tuple got. Its variance needs Σ_I w², which is secret; that sum is
itself estimated from the view, and bounded from above where a bound must hold. Two bounds hold for
every table, and the smaller is taken (both grow with the variance, so it holds too):

  Bernstein     |T − E T| ≤ √(2·L·V) + c·M·L,  L = ln(2/δ),  M ≥ |w|: good for few rows
  Berry–Esseen  the normal interval with δ enlarged by twice 0.56·Σ E|X−EX|³/V^{3/2}: good for many

c is 1/3 for coins, and max((1+2μ)/3, 1/ln(1/q)) for geometric noise: with it the cumulant
generating function of N − μ stays below s²v/(2(1−cs)). E|N−μ|³ ≤ v·(1+2.5μ). The tests check both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from voile.estimate import Floats

BERRY_ESSEEN = 0.56
"""For summands that differ (Shevtsova, 2010)."""
SPENT_ON_VARIANCE = 0.1
"""The part of the chance to err that pays for the bound on Σ_I w²."""


@dataclass(frozen=True)
class Coins:
    """What a mechanism's coins do to one record and to one tuple of the domain."""

    excess: float
    noise_mean: float
    kept_variance: float
    """By which a record raises the variance; less than 0 counts as 0."""
    noise_variance: float
    scale: float
    kept_third: float
    noise_third: float

    def variance(self, members: Floats | float, domain: Floats | float) -> Floats:
        """Variance of a sum whose squared weights sum to these over the table and the domain."""
        kept: Floats = self.kept_variance * np.maximum(members, 0.0)
        return kept + self.noise_variance * domain

    def deviation(self, view: Floats, domain: Floats, largest: Floats, miss: float) -> Floats:
        """|T − E T| is at most this, but for a chance of `miss`.

        `view` and `domain` are sums of squared weights over the view and the domain.
        """
        spent = SPENT_ON_VARIANCE * miss
        members = self._most_members(view, domain, largest, math.log(1 / spent))
        variance = self.variance(members, domain)
        third = largest * (self.kept_third * members + self.noise_third * domain)
        left = miss - spent
        bernstein = _bernstein(variance, self.scale * largest, math.log(2 / left))
        return np.where(variance > 0, np.minimum(bernstein, _normal(variance, third, left)), 0.0)

    def _most_members(self, view: Floats, domain: Floats, largest: Floats, log: float) -> Floats:
        """An upper bound of Σ_I w²: the largest that Bernstein's inequality allows."""
        slack = view - self.noise_mean * domain + self.scale * largest**2 * log
        linear = 2 * log * largest**2 * max(self.kept_variance, 0.0)
        constant = 2 * log * largest**2 * self.noise_variance * domain
        a, b = self.excess, 2 * self.excess * slack + linear
        root = np.sqrt(np.maximum(b**2 - 4 * a**2 * (slack**2 - constant), 0.0))
        return np.maximum((b + root) / (2 * a**2), 0.0)


def _bernstein(variance: Floats, scale: Floats, log: float) -> Floats:
    found: Floats = np.sqrt(2 * log * variance) + scale * log
    return found


def _normal(variance: Floats, third: Floats, miss: float) -> Floats:
    """The normal interval that is still valid after Berry and Esseen's correction."""
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = BERRY_ESSEEN * third / variance**1.5
    tail = miss / 2 - lost
    quantile = NormalDist().inv_cdf
    wide = [-quantile(t) if t > 0 else math.inf for t in np.ravel(tail).tolist()]
    found: Floats = np.array(wide).reshape(np.shape(tail)) * np.sqrt(variance)
    return found


def geometric_scale(q: float) -> float:
    """Bernstein's c for N with P(N = j) = (1 − q) q^j."""
    if q <= 0:
        return 1 / 3
    mean = q / (1 - q)
    return max((1 + 2 * mean) / 3, -1 / math.log(q))
