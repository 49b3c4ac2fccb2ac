"""Rows perturbed in simulation, the ways to reconstruct them, and how far each is off.

Every row keeps a condition's truth with the retention, else draws it anew. Rows of a cell are
alike, so cells are perturbed instead of rows: column by column, with binomial draws. The counts
that are seen have exactly the law of rows perturbed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from voile.reconstruct import Axis, em_until, invert, maximum_likelihood, stopped_em

Floats = npt.NDArray[np.float64]

RANDOMIZED = "randomized"
INVERSION = "inversion"
STOPPED = "iterative, stopped at 1/1000"
CONVERGED = "iterative, converged"
PLAUSIBLE = "first plausible step (ours)"
METHODS = (RANDOMIZED, INVERSION, STOPPED, CONVERGED, PLAUSIBLE)

STEP = 1e-3
"""The paper stops when 'two consecutive x iterates do not differ much'. We stop when a step moves
less than this share of the rows; that is a choice, and it decides what the curves look like."""
GAP = 1e-6
"""By how much the logarithm of the likelihood, for each row, may miss its maximum."""

ESTIMATES: dict[str, Callable[[Floats, Sequence[Axis]], Floats]] = {
    RANDOMIZED: lambda seen, _: seen,
    INVERSION: invert,
    STOPPED: lambda seen, axes: em_until(seen, axes, STEP)[0],
    CONVERGED: lambda seen, axes: maximum_likelihood(seen, axes, gap=GAP).counts,
    PLAUSIBLE: lambda seen, axes: stopped_em(seen, axes).counts,
}


def conditions(retention: float, chances: Sequence[float]) -> list[Axis]:
    """An axis (not met, met) for each condition that a replaced value meets with such a chance."""
    return [Axis(retention, np.array([1 - chance, chance])) for chance in chances]


def perturbed(true: Floats, axes: Sequence[Axis], coins: np.random.Generator) -> Floats:
    """How many rows are seen in each cell, of so many that are truly there."""
    cells = true.astype(np.int64).reshape((2,) * len(axes))
    for place, axis in enumerate(axes):
        drawn = (1 - axis.retention) * axis.masses
        pair = np.moveaxis(cells, place, 0)
        up, down = coins.binomial(pair[0], drawn[1]), coins.binomial(pair[1], drawn[0])
        cells = np.moveaxis(np.stack([pair[0] - up + down, pair[1] + up - down]), 0, place)
    return cells.astype(np.float64)


def distance(found: Floats, true: Floats) -> float:
    """The paper's reconstruction error: l₁ between the two vectors, as shares of all rows."""
    return float(np.abs(found.reshape(-1) - true.reshape(-1)).sum() / true.sum())


def errors(
    true: Floats,
    axes: Sequence[Axis],
    coins: np.random.Generator,
    repetitions: int,
    methods: Sequence[str] = METHODS,
) -> dict[str, float]:
    """The mean reconstruction error of each method, over rows perturbed so many times."""
    totals = dict.fromkeys(methods, 0.0)
    for _ in range(repetitions):
        seen = perturbed(true, axes, coins)
        for method in methods:
            totals[method] += distance(ESTIMATES[method](seen, axes), true)
    return {method: total / repetitions for method, total in totals.items()}
