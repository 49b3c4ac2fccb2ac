"""Statistics of conditions on two servers, from noisy counts of the same random halves.

A half q holds each row with probability ½. Let r = a_q − |q|·p be by how much a count of q exceeds
what its size explains: over random halves cov(r_α, r_β) = (n/4)·(Pr[α∧β] − p_α·p_β). So counts of
α on one server and of β on another, of the same halves, show how often both hold together. Where
sizes are not known, cov(a_α, a_β) = (n/4)·Pr[α∧β] shows it too, less exactly. Proofs are in
docs/mathematics 34.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from voile.arrays import Floats


@dataclass(frozen=True, eq=False)
class BilinearForm:
    """f = constant + Σ left_a·α_a + Σ right_b·β_b + Σ product_ab·α_a·β_b, of 0/1 conditions.

    Every Boolean function of two sides is of this form, with whole numbers.
    """

    constant: int
    left: Floats
    right: Floats
    product: Floats

    def value(self, shares: tuple[Floats, Floats]) -> float:
        """Pr[f] if the two sides were independent."""
        a, b = shares
        return float(self.constant + self.left @ a + self.right @ b + a @ self.product @ b)

    def slopes(self, shares: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """By how much that changes with each share."""
        a, b = shares
        return self.left + self.product @ b, self.right + a @ self.product

    def linear(self) -> BilinearForm:
        """The part without products."""
        return BilinearForm(self.constant, self.left, self.right, np.zeros_like(self.product))

    def times(self, one: Floats, other: Floats) -> float:
        """Variance of Σ product_ab·x_a·y_b for independent x, y with these covariances."""
        return float(((self.product.T @ one @ self.product) * other).sum())


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """Noisy counts of one side's conditions: of all rows, and of every half (halves × conditions).

    `variance` is that of the noise of one count.
    """

    total: Floats
    halves: Floats
    variance: float


@dataclass(frozen=True, eq=False)
class EstimatedShares:
    """p̂ of each condition; `direct` is the weight of the count of all rows in it."""

    value: Floats
    stderr: Floats
    direct: Floats

    sized: bool
    """Whether the sizes of the halves are known."""

    @property
    def spread(self) -> Floats:
        """σ² = p(1−p), and p where the halves' sizes are a part of what varies."""
        return share_variance(self.value, sized=self.sized)


@dataclass(frozen=True, eq=False)
class CovarianceEstimate:
    """Pr[f], and what it was made of."""

    value: float
    stderr: float
    """By the formula: variances from the stated noise, correlations from the halves."""
    observed: float
    """The same from how much the halves differ, whatever noise the servers state."""
    covariance: float
    """How much of Pr[f] is not explained by the shares alone."""
    covariance_stderr: float
    linked: tuple[float, float]
    """Covariances of the errors of the covariance and of each side's first share."""
    shares: tuple[EstimatedShares, EstimatedShares]
    halves: int

    def interval(self, confidence: float) -> tuple[float, float]:
        """Student's, cut to what a probability can be."""
        reach = quantile(confidence, self.halves) * self.stderr
        low, high = np.clip([self.value - reach, self.value + reach], 0.0, 1.0)
        return float(low), float(high)


def quantile(confidence: float, halves: int) -> float:
    """Student's quantile for a two-sided interval from this many halves."""
    return float(stats.t.ppf((1 + confidence) / 2, halves - 1))


def combined(
    form: BilinearForm, left: NoisyCounts, right: NoisyCounts, rows: int, sizes: Floats | None
) -> CovarianceEstimate:
    """Estimate Pr[f] of two sides from counts of the same halves, whose sizes may be unknown."""
    halves, cut = len(left.halves), left.total.size
    sides = (left, right)
    shares = (shares_of(left, rows, sizes), shares_of(right, rows, sizes))
    over = np.hstack([excess(c, s, sizes) for c, s in zip(sides, shares, strict=True)])
    among = covariances(over, sides, shares, rows)
    each = 16 / rows**2 * products_variance(form, among, cut)
    products = np.einsum("qa,ab,qb->q", over[:, :cut], form.product, over[:, cut:]) * 4 / rows
    summed = float(products.sum()) / (halves - 1)

    values = shares[0].value, shares[1].value
    known = form if sizes is not None else form.linear()
    slopes = np.concatenate(known.slopes(values))
    direct = np.concatenate([s.direct for s in shares])
    noise = np.concatenate([np.full(c.total.size, c.variance) for c in sides])
    steps = slopes * (1 - direct) * 2 / rows
    counted = float(((slopes * direct) ** 2 * noise).sum()) / rows**2
    through_halves = float(steps @ among @ steps) / halves
    seen = float(np.var(products + over @ steps, ddof=1)) / halves
    value = known.value(values) + summed
    # What is left of the products when the shares explain them: less sure if p̂ is not taken off.
    off = [a - b for a, b in zip(known.slopes(values), form.slopes(values), strict=True)]
    guessed = sum(float(((o * s.stderr) ** 2).sum()) for o, s in zip(off, shares, strict=True))
    linked = [float((o * s.stderr**2)[:1].sum()) for o, s in zip(off, shares, strict=True)]
    return CovarianceEstimate(
        value=value,
        stderr=float(np.sqrt(each / (halves - 1) + through_halves + counted)),
        observed=float(np.sqrt(seen + counted)),
        covariance=value - form.value(values),
        covariance_stderr=float(np.sqrt(each / (halves - 1) + guessed)),
        linked=(linked[0], linked[1]),
        shares=shares,
        halves=halves,
    )


def products_variance(form: BilinearForm, among: Floats, cut: int) -> float:
    """Of Σ product_ab·r_a·r_b, for normal r with these covariances; the left side is before cut."""
    own, cross, other = among[:cut, :cut], among[:cut, cut:], among[cut:, cut:]
    turned = cross.T @ form.product
    return form.times(own, other) + float((turned * turned.T).sum())


def share_variance(shares: Floats, *, sized: bool) -> Floats:
    """σ² of each condition from its share; `sized`: the halves' sizes are known."""
    inside = np.clip(shares, 0.0, 1.0)
    return np.asarray(inside * (1 - inside) if sized else inside)


def shares_of(counts: NoisyCounts, rows: int, sizes: Floats | None) -> EstimatedShares:
    """p̂: the count of all rows and the counts of the halves, weighted by their precision.

    Variances: V/n² of the first, (σ²/n + 4V/n²)/T of the second.
    """
    halves = len(counts.halves)
    first = counts.total / rows
    certain = counts.variance / rows**2
    taken = rows * halves / 2 if sizes is None else max(1.0, float(sizes.sum()))
    second = counts.halves.sum(axis=0) / taken
    loose = (share_variance(first, sized=sizes is not None) / rows + 4 * certain) / halves
    both = certain + loose
    direct = np.divide(loose, both, out=np.ones_like(first), where=both > 0)
    direct = direct if certain > 0 else np.ones_like(first)
    stderr = np.sqrt(direct**2 * certain + (1 - direct) ** 2 * loose)
    return EstimatedShares(
        direct * first + (1 - direct) * second, stderr, direct, sizes is not None
    )


def excess(counts: NoisyCounts, shares: EstimatedShares, sizes: Floats | None) -> Floats:
    """r: counts of halves less what their sizes explain, centred over the halves."""
    over = counts.halves if sizes is None else counts.halves - sizes[:, None] * shares.value
    return np.asarray(over - over.mean(axis=0))


def covariances(
    over: Floats,
    sides: tuple[NoisyCounts, NoisyCounts],
    shares: tuple[EstimatedShares, EstimatedShares],
    rows: int,
) -> Floats:
    """Of r: variances nσ²/4 + V as they must be, correlations as the halves show them."""
    stated = np.concatenate(
        [rows * s.spread / 4 + c.variance for c, s in zip(sides, shares, strict=True)]
    )
    deviations = np.sqrt((over**2).sum(axis=0))
    outer = np.outer(deviations, deviations)
    correlations = np.divide(over.T @ over, outer, out=np.zeros_like(outer), where=outer > 0)
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations * np.sqrt(np.outer(stated, stated)))


# ---------------------------------------------------------------------- needed
# How many halves an error needs, before anything is asked.
#
# Of the sides only n and the noise are known then. All classes of a side are taken to be equally
# frequent: if there is one condition on each side and the halves' sizes are known, no other
# frequencies have a larger covariance error.


LEAST = 2
"""Halves: a covariance of fewer is none."""


def expected_error(
    form: BilinearForm,
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
    one, other = (
        class_covariances(classes[0], sized=sized),
        class_covariances(classes[1], sized=sized),
    )
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
    form: BilinearForm,
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


def class_covariances(classes: Floats, *, sized: bool) -> Floats:
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

    More halves reduce the error and add noise; T = σ²n/(4v) is best, with 4σ√(v/n).
    """
    return spread_ * rows / (4 * per_query), 4 * math.sqrt(spread_ * per_query / rows)


# ---------------------------------------------------------------------- implication
# α implies β in probability: Δ = Pr[β|α] − Pr[β], and the slides' tester of it.
#
# Δ = cov(α, β)/p_α, so the covariance over random halves estimates it. The tester uses one half
# only: it draws halves until one has far more of α than its size explains, and asks β of that one.


TINY = 1e-12
"""What a share of nothing is taken for where it divides."""


@dataclass(frozen=True)
class UncertainRatio:
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
) -> UncertainRatio:
    """Δ̂ = cov/p_α with Fieller's interval.

    A Δ is inside if cov − Δ·p, whose expectation is then 0, is within its own error. Where the
    halves' sizes are known, errors of cov and p are uncorrelated: over random halves all odd
    moments are 0. Else `linked` is their covariance.
    """
    if share <= 0:
        return UncertainRatio(math.nan, math.nan, -math.inf, math.inf)
    reach = quantile(confidence, halves)
    value = covariance / share
    variance = covariance_stderr**2 - 2 * value * linked + (value * share_stderr) ** 2
    low, high = fieller(
        covariance, share, reach**2 * np.array([covariance_stderr**2, linked, share_stderr**2])
    )
    stderr = math.sqrt(max(0.0, variance)) / share
    return UncertainRatio(value, stderr, low, high)


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


def cut(
    ratio: UncertainRatio, given: tuple[float, float], then: tuple[float, float], reach: float
) -> UncertainRatio:
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
        """σ² = p(1−p) of α."""
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
        """Which halves have enough of α."""
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
