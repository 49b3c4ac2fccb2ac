"""EM stopped where the seen counts are explained as well as the truth would explain them.

The most likely counts explain noise too: over many small cells they are spiky, some far too
large and many 0. The truth does not fit what was seen perfectly. Given true counts x, cell v is
seen a sum of independent coins with mean w_v = (xA)_v and variance w_v − Σ_c x_c·A[c,v]², so that
Pearson's misfit Σ (y−w)²/w has the mean Σ_v (1 − Σ_c x_c·A[c,v]²/w_v). EM begins with the seen
counts, which are too even, and lowers the misfit; it ends at the first x whose misfit is no more
than this mean. (Morozov's discrepancy principle.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.reconstruct.axes import Axis, Transition
from voile.reconstruct.likelihood import Seen
from voile.reconstruct.maximum import Fit, maximum_likelihood

MOST_STEPS = 2000


def stopped_em(
    y: npt.ArrayLike, axes: Sequence[Transition], *, most_steps: int = MOST_STEPS
) -> Fit:
    """The first step of EM that is as plausible as the truth.

    Where noise has put the seen counts out of reach of all true ones, no step is; then the
    likelihood cannot rise by what half the mean misfit is worth, or the maximum is taken.
    """
    seen = Seen(y, axes)
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
