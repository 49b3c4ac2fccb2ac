"""How values are spread, where each is known only to lie in an interval.

Of every row an interval of positions is known. The distribution that makes what is known most
likely is the fixed point of Turnbull's steps: each interval hands its rows out to its positions in
proportion to how likely those are, and what a position is handed is how likely it is next. One row
that may be anywhere is added, so that no position becomes impossible; and few steps are made from
an even spread, for the limit piles everything up on a few positions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats

STEPS = 50


def spread_in_intervals(
    low: npt.NDArray[np.integer],
    high: npt.NDArray[np.integer],
    rows: Floats,
    size: int,
    steps: int = STEPS,
) -> Floats:
    """The chance of each of `size` positions, from intervals low … high of so many rows each."""
    likely = np.full(size, 1 / size)
    first, after = low.astype(np.int64), high.astype(np.int64) + 1
    total = float(rows.sum())
    for _ in range(steps if total else 0):
        summed = np.concatenate([[0.0], np.cumsum(likely)])
        each = rows / (summed[after] - summed[first])
        opened = np.bincount(first, each, size + 1) - np.bincount(after, each, size + 1)
        handed = np.maximum(np.cumsum(opened)[:size], 0.0) * likely
        likely = (handed + 1 / size) / (total + 1)
    return likely
