"""The nearest non-negative tensor of the same total."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError


def project(x: npt.ArrayLike) -> Floats:
    """The Euclidean projection on {z ≥ 0, Σz = Σx}: max(x − t, 0), with the t that keeps the total.

    The cells above t are the largest ones; of the r largest, t = (their sum − Σx)/r, and r is the
    last rank whose cell is still above that t.
    """
    values = np.array(x, dtype=np.float64)
    total = values.sum()
    if total < 0:
        raise UsageError(
            f"cells with the total {total:g} have no non-negative neighbour of that total",
            hint="counts of rows sum to the number of rows",
        )
    if values.size == 0 or values.min() >= 0:
        return values
    descending = np.sort(values, axis=None)[::-1]
    thresholds = np.cumsum(descending)
    thresholds -= total
    thresholds /= np.arange(1, values.size + 1)
    above = np.flatnonzero(descending > thresholds)
    values -= thresholds[above[-1]] if above.size else descending[0]
    return np.maximum(values, 0.0, out=values)
