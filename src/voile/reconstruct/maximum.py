"""The constrained maximum of the likelihood, reached by Newton steps in EM's own metric.

Maximising L over x ≥ 0 with Σx = n is the same as maximising L(x) − Σx over x ≥ 0: the solution
has the total n by itself. From x, with the slope g and H = A·D·Aᵀ, the change d solves

    (H + λ/x)·d = g − 1      over the cells that are not held at 0,

and x + d is cut off at 0. With H = 0 and λ = 1 this is d = x·(g−1), a step of EM; with λ = 0 it is
Newton's. λ goes down with the gap: careful steps first, almost Newton's at the end. The system is
solved by conjugate gradients scaled by x, where its eigenvalues lie between λ and about 1+λ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import QueryError, UsageError
from voile.reconstruct.axes import Transition, dot, tensor
from voile.reconstruct.likelihood import Seen
from voile.reconstruct.linear import invert

FIRST = 10
"""Steps of plain EM before the first of Newton's."""
DAMPING = 0.3
"""λ as a multiple of the gap, while steps go uphill."""
LEAST = 50.0
"""λ as a multiple of the gap asked for, at least: less only takes longer to solve."""
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
    """The most likely true counts. `log_likelihood` is per row, and at most `gap` below the best.

    A step is a passage there and back: what a step of EM costs.
    """

    counts: Floats
    steps: int
    gap: float
    log_likelihood: float


@dataclass(frozen=True)
class Point:
    """True counts, what they let expect, and the slope there. All are flat."""

    x: Floats
    w: Floats
    slope: Floats

    @property
    def gap(self) -> float:
        return max(float(self.slope.max()) - 1, 0.0)


@dataclass(frozen=True)
class Step:
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
    `progress` is told every point on the way; the likelihood never falls from one to the next.
    """
    seen = Seen(y, axes)
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
    return QueryError(
        f"the most likely counts of {fit.counts.size:,} cells were not reached: after "
        f"{fit.steps:,} steps the log-likelihood per row may still be {fit.gap:.2g} too low, "
        f"and {gap:.2g} was asked for",
        hint="ask for a larger gap, for fewer columns at once, or for the inversion",
    )


def at(seen: Seen, x: Floats) -> Point:
    w = seen.expected(x)
    return Point(x, w, seen.slope(w))


def first_counts(seen: Seen, axes: Sequence[Transition], start: npt.ArrayLike | None) -> Floats:
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


def inversion(seen: Seen, axes: Sequence[Transition]) -> Floats | None:
    """yA⁻¹, or None where A has no inverse."""
    try:
        return invert(seen.y, axes).reshape(-1)
    except UsageError:
        return None


def newton(seen: Seen, point: Point, firmness: float, enough: float) -> Step:
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
    return Step(free, change, passages)


def uphill(seen: Seen, point: Point, step: Step) -> Point | None:
    """The point after the step, or after half of it, or a quarter, …: the first that is higher."""
    length = 1.0
    while length >= SHORTEST:
        x = point.x.copy()
        x[step.free] = np.maximum(x[step.free] + length * step.change, 0.0)
        w = seen.expected(with_total(x, seen.rows))
        if seen.rise(point.w, w) >= -ROUNDING:
            return Point(x, w, seen.slope(w))
        length /= 2
    return None
