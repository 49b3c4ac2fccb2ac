"""Statistics of conditions on two servers, from noisy counts of the same random halves.

A half q holds each row with probability ½. Let r = a_q − |q|·p be by how much a count of q exceeds
what its size explains: over random halves cov(r_α, r_β) = (n/4)·(Pr[α∧β] − p_α·p_β). So counts of
α on one server and of β on another, of the same halves, tell how often both hold together. Where
sizes are not known, cov(a_α, a_β) = (n/4)·Pr[α∧β] tells it too, less exactly. Proofs are in
docs/mathematics 34.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from voile.arrays import Floats


@dataclass(frozen=True, eq=False)
class Form:
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

    def linear(self) -> Form:
        """The part without products."""
        return Form(self.constant, self.left, self.right, np.zeros_like(self.product))

    def times(self, one: Floats, other: Floats) -> float:
        """Variance of Σ product_ab·x_a·y_b for independent x, y with these covariances."""
        return float(((self.product.T @ one @ self.product) * other).sum())


@dataclass(frozen=True, eq=False)
class Counts:
    """Noisy counts of one side's conditions: of all rows, and of every half (halves × conditions).

    `variance` is that of the noise of one count.
    """

    total: Floats
    halves: Floats
    variance: float


@dataclass(frozen=True, eq=False)
class Shares:
    """p̂ of each condition; `direct` is the weight of the count of all rows in it."""

    value: Floats
    stderr: Floats
    direct: Floats

    sized: bool
    """Whether the sizes of the halves are known."""

    @property
    def spread(self) -> Floats:
        """σ² = p(1−p), and p where the halves' sizes are a part of what varies."""
        return spread(self.value, sized=self.sized)


@dataclass(frozen=True, eq=False)
class Found:
    """Pr[f], and what it was made of."""

    value: float
    stderr: float
    """By the formula: variances from the stated noise, correlations from the halves."""
    observed: float
    """The same from how much the halves differ, whatever the noise is said to be."""
    covariance: float
    """How much of Pr[f] is not explained by the shares alone."""
    covariance_stderr: float
    linked: tuple[float, float]
    """How the errors of the covariance and of each side's first share go together."""
    shares: tuple[Shares, Shares]
    halves: int

    def interval(self, confidence: float) -> tuple[float, float]:
        """Student's, cut to what a probability can be."""
        reach = quantile(confidence, self.halves) * self.stderr
        low, high = np.clip([self.value - reach, self.value + reach], 0.0, 1.0)
        return float(low), float(high)


def quantile(confidence: float, halves: int) -> float:
    return float(stats.t.ppf((1 + confidence) / 2, halves - 1))


def combined(form: Form, left: Counts, right: Counts, rows: int, sizes: Floats | None) -> Found:
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
    return Found(
        value=value,
        stderr=float(np.sqrt(each / (halves - 1) + through_halves + counted)),
        observed=float(np.sqrt(seen + counted)),
        covariance=value - form.value(values),
        covariance_stderr=float(np.sqrt(each / (halves - 1) + guessed)),
        linked=(linked[0], linked[1]),
        shares=shares,
        halves=halves,
    )


def products_variance(form: Form, among: Floats, cut: int) -> float:
    """Of Σ product_ab·r_a·r_b, for normal r with these covariances; the left side is before cut."""
    own, cross, other = among[:cut, :cut], among[:cut, cut:], among[cut:, cut:]
    turned = cross.T @ form.product
    return form.times(own, other) + float((turned * turned.T).sum())


def spread(shares: Floats, *, sized: bool) -> Floats:
    inside = np.clip(shares, 0.0, 1.0)
    return np.asarray(inside * (1 - inside) if sized else inside)


def shares_of(counts: Counts, rows: int, sizes: Floats | None) -> Shares:
    """p̂: the count of all rows and the counts of the halves, weighted by how sure each is.

    Variances: V/n² of the first, (σ²/n + 4V/n²)/T of the second.
    """
    halves = len(counts.halves)
    first = counts.total / rows
    certain = counts.variance / rows**2
    taken = rows * halves / 2 if sizes is None else max(1.0, float(sizes.sum()))
    second = counts.halves.sum(axis=0) / taken
    loose = (spread(first, sized=sizes is not None) / rows + 4 * certain) / halves
    both = certain + loose
    direct = np.divide(loose, both, out=np.ones_like(first), where=both > 0)
    direct = direct if certain > 0 else np.ones_like(first)
    stderr = np.sqrt(direct**2 * certain + (1 - direct) ** 2 * loose)
    return Shares(direct * first + (1 - direct) * second, stderr, direct, sizes is not None)


def excess(counts: Counts, shares: Shares, sizes: Floats | None) -> Floats:
    """r: counts of halves less what their sizes explain, centred over the halves."""
    over = counts.halves if sizes is None else counts.halves - sizes[:, None] * shares.value
    return np.asarray(over - over.mean(axis=0))


def covariances(
    over: Floats, sides: tuple[Counts, Counts], shares: tuple[Shares, Shares], rows: int
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
