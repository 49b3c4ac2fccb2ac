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
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

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


# ---------------------------------------------------------------------- the exact law of a count
# The exact law of a published count, and intervals by inverting it.
#
# A count of the view is a sum of independent parts: kept records, Binomial(x, a), where x is the
# true count that is sought, and noise, whose law is known. So the chance of a count as small, or
# as large, as the one seen can be computed for every x. The interval holds the x for which neither
# is below (1 − confidence)/2: it covers the true count with at least the stated confidence, for
# every table and however small the count.


WIDEST = 2**16
"""Beyond this many points of support the saddle-point formula takes over from the exact sum."""


@dataclass(frozen=True)
class Binomial:
    trials: float
    chance: float

    @property
    def mean(self) -> float:
        return self.trials * self.chance

    @property
    def variance(self) -> float:
        return self.mean * (1 - self.chance)

    @property
    def largest(self) -> float:
        return self.trials

    @property
    def tail(self) -> float:
        """How much further than its standard deviations the support must be followed."""
        return 40.0

    def log_steps(self, j: Floats) -> Floats:
        """ln P(j+1) − ln P(j)."""
        return np.log((self.trials - j) / (j + 1)) + math.log(self.chance / (1 - self.chance))

    def cumulants(self, s: float) -> tuple[float, float, float]:
        """K(s) = ln E e^{sN} and its first two derivatives."""
        shifted = self.chance * math.exp(s)
        p = shifted / (1 - self.chance + shifted)
        log_mgf = self.trials * math.log1p(self.chance * math.expm1(s))
        return log_mgf, self.trials * p, self.trials * p * (1 - p)


@dataclass(frozen=True)
class NegativeBinomial:
    """The sum of `cells` independent N with P(N = j) = (1 − q) q^j."""

    cells: float
    q: float

    @property
    def mean(self) -> float:
        return self.cells * self.q / (1 - self.q)

    @property
    def variance(self) -> float:
        return self.mean / (1 - self.q)

    @property
    def largest(self) -> float:
        return math.inf

    @property
    def tail(self) -> float:
        return 40.0 - 40.0 / math.log(self.q)

    def log_steps(self, j: Floats) -> Floats:
        return np.log((self.cells + j) / (j + 1)) + math.log(self.q)

    def cumulants(self, s: float) -> tuple[float, float, float]:
        shifted = self.q * math.exp(s)
        if shifted >= 1:
            return math.inf, math.inf, math.inf
        odds = shifted / (1 - shifted)
        # As one logarithm: the difference of two would cancel where s is small.
        log_mgf = -self.cells * math.log1p(-self.q * math.expm1(s) / (1 - self.q))
        return log_mgf, self.cells * odds, self.cells * odds * (1 + odds)


Part = Binomial | NegativeBinomial


def probabilities(part: Part) -> tuple[int, Floats]:
    """First point and probabilities of the support, all but about 10⁻¹⁷ of it.

    From ratios of neighbours, outwards from the mode, then normalised: no factorials, so that
    the number of trials may be as large as a float can be.
    """
    first, last = support(part)
    if first == last:
        return first, np.ones(1)
    steps = part.log_steps(np.arange(first, last, dtype=np.float64))
    logs = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(logs - logs.max())
    return first, weights / weights.sum()


def support(part: Part) -> tuple[int, int]:
    if part.variance == 0:
        return round(part.mean), round(part.mean)
    reach = 9 * math.sqrt(part.variance) + part.tail
    last = min(math.ceil(part.mean + reach), part.largest)
    return max(0, math.floor(part.mean - reach)), int(last)


@dataclass(frozen=True)
class PublishedCount:
    """What was counted in the view, and the law it follows for each possible true count.

    `parts(x)` are the independent parts whose sum was published if the true count is x;
    `largest` is the largest true count possible.
    """

    seen: int
    parts: Callable[[int], tuple[Part, Part]]
    guess: float
    slope: float
    """Expected published count per record: seen − slope·(x − guess) is near its mean."""
    largest: float

    def interval(self, confidence: float) -> tuple[float, float]:
        miss = (1 - confidence) / 2
        at = min(max(0.0, self.guess), self.largest)
        spread = math.sqrt(sum(p.variance for p in self.parts(round(at)))) / self.slope
        z = -NormalDist().inv_cdf(miss)
        low = first_true(
            lambda x: self.chance(x, "at least") > miss, at - z * spread, 0, self.largest
        )
        high = first_true(
            lambda x: self.chance(x, "at most") <= miss, at + z * spread, low, self.largest + 1
        )
        return float(low), float(max(low, high - 1))

    def chance(self, x: int, tail: Literal["at least", "at most"]) -> float:
        """P(a count at least / at most as large as the one seen) if the true count is x."""
        kept, noise = self.parts(x)
        if sum(last - first for first, last in map(support, (kept, noise))) > WIDEST:
            return saddle_point(kept, noise, self.seen, tail)
        first, chances = probabilities(kept)
        start, others = probabilities(noise)
        cumulative = np.concatenate([[0.0], np.cumsum(others)])
        below = self.seen - (tail == "at least") - first - np.arange(len(chances)) - start
        at_most = float(chances @ cumulative[np.clip(below + 1, 0, len(others))])
        return at_most if tail == "at most" else 1 - at_most


def saddle_point(kept: Part, noise: Part, seen: int, tail: Literal["at least", "at most"]) -> float:
    """Lugannani and Rice's formula for a lattice, for counts too large to sum.

    Its relative error falls with the variance, which is in the millions wherever this is used.
    """
    point = seen - 0.5 if tail == "at least" else seen + 0.5
    mean = kept.mean + noise.mean
    deviation = math.sqrt(kept.variance + noise.variance)
    z = (point - mean) / deviation
    if abs(z) < 1e-3 or abs(z) > 30:
        upper = normal_tail(z)
    else:
        s = solve_saddle(kept, noise, point, z / deviation)
        log_mgf, _, curvature = totals(kept, noise, s)
        w = math.copysign(math.sqrt(max(0.0, 2 * (s * point - log_mgf))), s)
        u = 2 * math.sinh(s / 2) * math.sqrt(curvature)
        density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
        upper = normal_tail(w) + (density * (1 / u - 1 / w) if w else 0.0)
        upper = min(max(upper, 0.0), 1.0)
    return upper if tail == "at least" else 1 - upper


def normal_tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


def totals(kept: Part, noise: Part, s: float) -> tuple[float, float, float]:
    a, b = kept.cumulants(s), noise.cumulants(s)
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def solve_saddle(kept: Part, noise: Part, point: float, s: float) -> float:
    """K′(s) = point, by Newton's method; K′ increases, and s starts next to the root."""
    for _ in range(50):
        _, slope, curvature = totals(kept, noise, s)
        step = (slope - point) / curvature if math.isfinite(slope) else s / 2
        s -= step
        if abs(step) <= 1e-14 * max(1.0, abs(s)):
            break
    return s


def first_true(
    holds: Callable[[int], bool], guess: float, smallest: int | float, largest: float
) -> int:
    """The smallest whole number in [smallest, largest] where a monotone condition holds.

    `largest` if it holds nowhere below. Gallops from the guess, then halves.
    """
    at = int(min(max(round(guess), smallest), largest))
    step = 1
    if holds(at):
        low, high = int(smallest) - 1, at
        while high > smallest:
            below = max(int(smallest), high - step)
            if not holds(below):
                low = below
                break
            high, step = below, step * 4
    else:
        low, high = at, int(largest) if math.isfinite(largest) else 2**1000
        while low < high:
            above = min(low + step, high)
            if above >= largest or holds(above):
                high = above
                break
            low, step = above, step * 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
