"""The exact law of a published count, and intervals by inverting it.

A count of the view is a sum of independent parts: kept records, Binomial(x, a), where x is the
true count that is sought, and noise, whose law is known. So the chance of a count as small, or
as large, as the one seen can be computed for every x. The interval holds the x for which neither
is below (1 − confidence)/2: it covers the true count with at least the stated confidence, for
every table and however small the count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from voile.arrays import Floats

WIDEST = 2**16
"""Beyond this many points of support the saddle-point formula takes over from the exact sum."""


@dataclass(frozen=True)
class Binomial:
    """The number of successes among independent trials."""

    trials: float
    chance: float

    @property
    def mean(self) -> float:
        """Its mean."""
        return self.trials * self.chance

    @property
    def variance(self) -> float:
        """Its variance."""
        return self.mean * (1 - self.chance)

    @property
    def largest(self) -> float:
        """The largest value that it can have."""
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
        """Its mean."""
        return self.cells * self.q / (1 - self.q)

    @property
    def variance(self) -> float:
        """Its variance."""
        return self.mean / (1 - self.q)

    @property
    def largest(self) -> float:
        """The largest value that it can have: there is none."""
        return math.inf

    @property
    def tail(self) -> float:
        """How much further than its standard deviations the support must be followed."""
        return 40.0 - 40.0 / math.log(self.q)

    def log_steps(self, j: Floats) -> Floats:
        """ln P(j+1) − ln P(j)."""
        return np.log((self.cells + j) / (j + 1)) + math.log(self.q)

    def cumulants(self, s: float) -> tuple[float, float, float]:
        """K(s) = ln E e^{sN} and its first two derivatives."""
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
    """The first and the last point that have any probability worth counting."""
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
        """The true counts that what was published does not rule out."""
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
    """P(Z > z) of a standard normal variable."""
    return math.erfc(z / math.sqrt(2)) / 2


def totals(kept: Part, noise: Part, s: float) -> tuple[float, float, float]:
    """K(s) of the sum of both parts, and its first two derivatives."""
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


# ---------------------------------------------------------------------- counts that a model knows


LEAST_COUNT = 1e-9


def whole_interval(estimates: Floats, errors: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Whole numbers between which a count lies, with this probability.

    Noise is as likely up as down; small counts that a model expects are skewed, as a gamma law is.
    """
    spread = np.maximum(errors, LEAST_COUNT)
    reach = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(spread)
    means = np.maximum(estimates, LEAST_COUNT)
    skewed = gamma_quantile(means**2 / spread, (1 + level) / 2) * spread / means
    low = np.floor(np.maximum(estimates - reach, 0))
    return low, np.maximum(np.ceil(np.maximum(estimates + reach, skewed)), 0)


LARGE_SHAPE = 300.0
"""From this shape on six terms of the expansion are exact to seven digits."""


def gamma_quantile(shapes: Floats, level: float) -> Floats:
    """What a gamma law of each shape, and scale 1, is below with this probability.

    Ours, so that whoever only reads releases needs no SciPy, which the tests compare it with.
    """
    different, place = np.unique(np.asarray(shapes, np.float64), return_inverse=True)
    found = _expanded(np.maximum(different, LARGE_SHAPE), NormalDist().inv_cdf(level))
    small = different < LARGE_SHAPE
    found[small] = _searched(different[small], level)
    return found[place].reshape(np.shape(shapes))


def _expanded(shape: Floats, z: float) -> Floats:
    """The Cornish-Fisher expansion of χ² with twice the shape's degrees of freedom."""
    degrees = 2 * shape
    root = np.sqrt(2 * degrees)
    found = degrees + root * z + 2 / 3 * (z**2 - 1) + (z**3 - 7 * z) / (9 * root)
    found -= (6 * z**4 + 14 * z**2 - 32) / (405 * degrees)
    found += (9 * z**5 + 256 * z**3 - 433 * z) / (2430 * degrees * root)
    return np.asarray(found / 2)


def _searched(shape: Floats, level: float) -> Floats:
    """By halving the logarithm of the quantile, which may be as small as numbers can be."""
    low, high = np.full(shape.shape, -690.0), np.full(shape.shape, math.log(2000.0))
    constant = np.array([math.lgamma(a + 1) for a in shape.tolist()])
    for _ in range(52):
        middle = (low + high) / 2
        below = _gamma_share(shape, middle, constant) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(np.exp(high))


def _gamma_share(shape: Floats, log_x: Floats, constant: Floats) -> Floats:
    """How much of a gamma law is below e^log_x: x^a e^-x / Γ(a+1) · Σ x^n / (a+1)…(a+n)."""
    x = np.exp(log_x)
    term = np.exp(shape * log_x - x - constant)
    total = term.copy()
    for n in range(1, 4000):
        term = term * (x / (shape + n))
        total += term
        if (term <= 1e-16 * total).all():
            break
    return total
