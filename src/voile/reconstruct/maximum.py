"""Maximum likelihood: plain EM, Newton steps in EM's own metric, and EM that stops in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import QueryError, UsageError
from voile.reconstruct.axes import Axis, Transition, dot, tensor
from voile.reconstruct.linear import EXPECTATION, EXPECTED, invert, plan

# ---------------------------------------------------------------------- likelihood and plain EM
# The likelihood of what was seen, and plain EM, which climbs it as the paper does.
#
# If x rows are truly in each class, w = xA of them are expected to be seen in each, and the seen
# counts y have the log-likelihood L(x) = Σ y·log(w/n), up to a constant. Its slope is
# g = A(y/w), and Bayes' rule applied to every row, x·g, is a step of EM: it keeps the total n and
# never lowers L. For every x, (max L − L(x))/n ≤ max g − 1: the gap.


class SeenCounts:
    """The seen counts y, and the ways between true counts and them. Tensors are flat here."""

    def __init__(self, y: npt.ArrayLike, axes: Sequence[Transition]) -> None:
        counts = tensor(y, axes)
        if not (np.isfinite(counts).all() and counts.min() >= 0):
            wrong = counts[~(np.isfinite(counts) & (counts >= 0))][0]
            raise UsageError(
                f"a cell was seen {wrong:g} times",
                hint="counts of rows are finite and not negative",
            )
        self.shape = counts.shape
        self.y: Floats = counts.reshape(-1)
        self.rows = float(self.y.sum())
        self.some = np.flatnonzero(self.y)
        self._there = plan(axes, EXPECTED)
        self._back = plan(axes, EXPECTATION)
        self._unseen = (self.y == 0).astype(np.float64)
        """Added to divisors, so that 0 seen of 0 expected is 0."""
        if not self.expected(np.ones_like(self.y))[self.some].all():
            raise UsageError(
                "rows were seen in classes where none can be",
                hint="the transition does not belong to these counts",
            )

    def expected(self, x: Floats) -> Floats:
        """w = xA."""
        w = x.copy()
        self._there.carry(w)
        return w

    def slope(self, w: Floats) -> Floats:
        """g = A(y/w); cells that were not seen count as nothing, whatever was expected."""
        g: Floats = w + self._unseen
        np.divide(self.y, g, out=g)
        self._back.carry(g)
        return g

    def curvature(self, w: Floats) -> Floats:
        """D = y/w²: minus the second derivative of L is A·D·Aᵀ."""
        d: Floats = w + self._unseen
        d *= d
        np.divide(self.y, d, out=d)
        return d

    def bend(self, v: Floats, curvature: Floats) -> None:
        """v becomes A·D·Aᵀv, in place."""
        self._there.carry(v)
        v *= curvature
        self._back.carry(v)

    def log_likelihood(self, w: Floats) -> float:
        """L per row."""
        if self.rows == 0:
            return 0.0
        return dot(self.y[self.some], np.log(w[self.some] / self.rows)) / self.rows

    def rise(self, before: Floats, after: Floats) -> float:
        """By how much L per row rises, exact where hardly anything changes; −∞ if it is lost."""
        old, new = before[self.some], after[self.some]
        if new.size and not new.min() > 0:
            return -np.inf
        return dot(self.y[self.some], np.log1p((new - old) / old)) / self.rows


def em_steps(
    y: npt.ArrayLike, axes: Sequence[Transition], steps: int, start: npt.ArrayLike | None = None
) -> Floats:
    """`steps` steps of EM, from the seen counts themselves unless a start is given."""
    seen = SeenCounts(y, axes)
    x = seen.y.copy() if start is None else tensor(start, axes).reshape(-1)
    for _ in range(steps):
        x *= seen.slope(seen.expected(x))
    return x.reshape(seen.shape)


def em_until(y: npt.ArrayLike, axes: Sequence[Transition], tolerance: float) -> tuple[Floats, int]:
    """EM from the seen counts until a step moves less than `tolerance` of the rows; its steps.

    The paper stops when 'consecutive iterates do not differ much'. That says nothing about how far
    the maximum is; this is here to be compared with.
    """
    if not tolerance > 0:
        raise UsageError(f"EM never stops at {tolerance:g}", hint="a tolerance is above 0")
    seen = SeenCounts(y, axes)
    x = seen.y
    steps, moved = 0, np.inf
    while moved >= tolerance * seen.rows and seen.rows > 0:
        after = x * seen.slope(seen.expected(x))
        moved = float(np.abs(after - x).sum())
        x, steps = after, steps + 1
    return x.reshape(seen.shape).copy(), steps


# ---------------------------------------------------------------------- the maximum
# The constrained maximum of the likelihood, reached by Newton steps in EM's own metric.
#
# Maximising L over x ≥ 0 with Σx = n is the same as maximising L(x) − Σx over x ≥ 0: the solution
# has the total n by itself. From x, with the slope g and H = A·D·Aᵀ, the change d solves
#
#     (H + λ/x)·d = g − 1      over the cells that are not held at 0,
#
# and x + d is cut off at 0. With H = 0 and λ = 1 this is d = x·(g−1), a step of EM; with λ = 0 it
# is Newton's. λ goes down with the gap: careful steps first, almost Newton's at the end. The
# system is solved by conjugate gradients scaled by x, where its eigenvalues lie between λ and
# about 1+λ.


FIRST = 10
"""Steps of plain EM before the first of Newton's."""
DAMPING = 0.3
"""λ as a multiple of the gap, while steps go uphill."""
LEAST = 50.0
"""λ as a multiple of the requested gap, at least: less only takes longer to solve."""
FIRMER = 10.0
"""What λ is multiplied by after a step that did not, and divided by after one that did."""
FIRMEST = 1e9
"""Where even such short steps do not go uphill, rounding is all that is left."""
SHORTEST = 2.0**-6
"""The least part of a step that is tried before a firmer one."""
FLOOR = 1e-3
"""The share of an average cell that a cell counts as, at least, while it is worth filling."""
LEFT = 0.1
"""The share of the gap that the conjugate gradients may leave over."""
MOST_INNER = 5000
"""Conjugate gradients in one step; then it is taken as it is."""
ROUNDING = 1e-14
"""A fall of the log-likelihood per row that is no more than rounding."""
EVEN = 1e-3
"""The share of rows that a given start spreads evenly, so that no cell is out of reach."""


@dataclass(frozen=True)
class Fit:
    """The maximum-likelihood counts. `log_likelihood` is per row, and at most `gap` below the best.

    A step is a passage there and back: what a step of EM costs.
    """

    counts: Floats
    steps: int
    gap: float
    log_likelihood: float


@dataclass(frozen=True)
class LikelihoodPoint:
    """True counts, what they let expect, and the slope there. All are flat."""

    x: Floats
    w: Floats
    slope: Floats

    @property
    def gap(self) -> float:
        """The most by which the log-likelihood per row may be below the maximum."""
        return max(float(self.slope.max()) - 1, 0.0)


@dataclass(frozen=True)
class NewtonStep:
    """A change of the cells `free`, and the passages that finding it took."""

    free: npt.NDArray[np.intp]
    change: Floats
    passages: int


def maximum_likelihood(
    y: npt.ArrayLike,
    axes: Sequence[Transition],
    *,
    gap: float = 1e-8,
    most_steps: int = 100_000,
    start: npt.ArrayLike | None = None,
    progress: Callable[[Fit], None] | None = None,
) -> Fit:
    """The x ≥ 0 with Σx = Σy under which y is most likely, within `gap` per row of the best.

    Where the inversion has no negative cell it is the maximum, and is returned at once.
    `progress` is called with every point on the way; the likelihood never falls.
    """
    seen = SeenCounts(y, axes)
    if seen.rows == 0:
        return Fit(np.zeros(seen.shape), 0, 0.0, 0.0)
    point = at(seen, first_counts(seen, axes, start))
    steps, damping = 1, DAMPING
    while True:
        fit = Fit(point.x.reshape(seen.shape), steps, point.gap, seen.log_likelihood(point.w))
        if progress is not None:
            progress(fit)
        if fit.gap <= gap:
            return fit
        if steps >= most_steps or damping > FIRMEST:
            raise not_reached(fit, gap)
        if steps <= FIRST:
            point, steps = at(seen, point.x * point.slope), steps + 1
            continue
        firmness = damping * max(min(fit.gap, 1.0), LEAST / DAMPING * gap)
        step = newton(seen, point, firmness, gap / 2)
        higher = uphill(seen, point, step)
        steps += step.passages + 1
        damping = damping * FIRMER if higher is None else max(damping / FIRMER, DAMPING)
        point = higher or point


def not_reached(fit: Fit, gap: float) -> QueryError:
    """The error of a fit that did not come near enough to the maximum."""
    return QueryError(
        f"the maximum likelihood of {fit.counts.size:,} cells was not reached: after "
        f"{fit.steps:,} steps the log-likelihood per row may still be {fit.gap:.2g} too low, "
        f"and {gap:.2g} was requested",
        hint="allow a larger gap, take fewer columns at once, or take the inversion",
    )


def at(seen: SeenCounts, x: Floats) -> LikelihoodPoint:
    """The point of these counts: what they let expect, and the slope there."""
    w = seen.expected(x)
    return LikelihoodPoint(x, w, seen.slope(w))


def first_counts(
    seen: SeenCounts, axes: Sequence[Transition], start: npt.ArrayLike | None
) -> Floats:
    """The inversion if it has no negative cell, else the given start or half of y; all totals n."""
    inverted = inversion(seen, axes)
    if inverted is not None and inverted.min() >= -ROUNDING * seen.rows:
        return with_total(np.maximum(inverted, 0.0), seen.rows)
    even = seen.rows / seen.y.size
    if start is None:
        return (seen.y + even) / 2
    x = tensor(start, axes).reshape(-1)
    if not (x.min() >= 0 and 0 < x.sum() < np.inf):
        raise UsageError(
            f"a start with the least cell {x.min():g} and the total {x.sum():g}",
            hint="counts of rows are not negative, and some are above 0",
        )
    return with_total(x, (1 - EVEN) * seen.rows) + EVEN * even


def with_total(x: Floats, total: float) -> Floats:
    """x, scaled in place."""
    x *= total / x.sum()
    return x


def inversion(seen: SeenCounts, axes: Sequence[Transition]) -> Floats | None:
    """yA⁻¹, or None where A has no inverse."""
    try:
        return invert(seen.y, axes).reshape(-1)
    except UsageError:
        return None


def newton(seen: SeenCounts, point: LikelihoodPoint, firmness: float, enough: float) -> NewtonStep:
    """Solve (H + λ/x)·d = g − 1 over the free cells, λ the `firmness`, by conjugate gradients.

    What is left over of the right side is the slope to be expected after the step, so the largest
    cell of it says when to stop: at a tenth of the gap, or at `enough`.
    """
    free = np.flatnonzero((point.x > 0) | (point.slope > 1))
    scale = np.maximum(point.x[free], FLOOR * seen.rows / seen.y.size)
    firm = firmness / scale
    curvature = seen.curvature(point.w)
    whole = np.zeros_like(point.x)
    left = point.slope[free] - 1
    target = max(LEFT * float(left.max()), enough)
    change = np.zeros_like(left)
    toward = scale * left
    energy = dot(left, toward)
    passages = 0
    while left.max() > target and passages < MOST_INNER:
        passages += 1
        whole[:] = 0.0
        whole[free] = toward
        seen.bend(whole, curvature)
        bent = whole[free] + firm * toward
        length = energy / dot(toward, bent)
        change += length * toward
        left -= length * bent
        scaled = scale * left
        before, energy = energy, dot(left, scaled)
        toward *= energy / before
        toward += scaled
    return NewtonStep(free, change, passages)


def uphill(seen: SeenCounts, point: LikelihoodPoint, step: NewtonStep) -> LikelihoodPoint | None:
    """The point after the step, or after half of it, or a quarter, …: the first that is higher."""
    length = 1.0
    while length >= SHORTEST:
        x = point.x.copy()
        x[step.free] = np.maximum(x[step.free] + length * step.change, 0.0)
        w = seen.expected(with_total(x, seen.rows))
        if seen.rise(point.w, w) >= -ROUNDING:
            return LikelihoodPoint(x, w, seen.slope(w))
        length /= 2
    return None


# ---------------------------------------------------------------------- EM stopped early
# EM stopped where the seen counts are explained as well as the truth would explain them.
#
# Maximum-likelihood counts explain noise too: over many small cells they are spiky, some far too
# large and many 0. The truth does not fit what was seen perfectly. Given true counts x, cell v is
# seen a sum of independent coins with mean w_v = (xA)_v and variance w_v − Σ_c x_c·A[c,v]², so that
# Pearson's misfit Σ (y−w)²/w has the mean Σ_v (1 − Σ_c x_c·A[c,v]²/w_v). EM begins with the seen
# counts, which are too even, and lowers the misfit; it ends at the first x whose misfit is no more
# than this mean. (Morozov's discrepancy principle.)


MOST_STEPS = 2000


def stopped_em(
    y: npt.ArrayLike, axes: Sequence[Transition], *, most_steps: int = MOST_STEPS
) -> Fit:
    """The first step of EM that is as plausible as the truth.

    Where noise has put the seen counts out of reach of all true ones, no step is; then the
    likelihood cannot rise by what half the mean misfit is worth, or the maximum is taken.
    """
    seen = SeenCounts(y, axes)
    x = seen.y.copy()
    for step in range(most_steps):
        w = seen.expected(x)
        slope = seen.slope(w)
        gap = float(slope.max()) - 1 if seen.rows else 0.0
        mean = mean_misfit(x.reshape(seen.shape), w, axes)
        if misfit(seen.y, w) <= mean or 2 * seen.rows * gap <= mean:
            return Fit(x.reshape(seen.shape), step, gap, seen.log_likelihood(w))
        x *= slope
    return maximum_likelihood(y, axes)


def misfit(y: Floats, w: Floats) -> float:
    """Pearson's Σ (y−w)²/w; where nothing is expected, nothing is seen."""
    some = w > 0
    return float(((y[some] - w[some]) ** 2 / w[some]).sum())


def mean_misfit(x: Floats, w: Floats, axes: Sequence[Transition]) -> float:
    """What the misfit is on average if x is the truth and w = xA."""
    squares = x
    for place, axis in enumerate(axes):
        squares = carry_squares(squares, axis, place)
    some = w > 0
    return float((1 - squares.reshape(-1)[some] / w[some]).sum())


def carry_squares(x: Floats, axis: Transition, place: int) -> Floats:
    """Σ_c x_c·A[c,v]² along one axis."""
    if not isinstance(axis, Axis):
        squares = axis.matrix() ** 2
        return np.moveaxis(np.tensordot(x, squares, axes=(place, 0)), -1, place)
    p, shape = axis.retention, [1] * x.ndim
    shape[place] = axis.classes
    drawn = (1 - p) * axis.masses.reshape(shape)
    carried: Floats = p * (p + 2 * drawn) * x + drawn**2 * x.sum(axis=place, keepdims=True)
    return carried
