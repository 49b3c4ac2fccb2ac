"""How much an error in what was seen can grow when it is carried back."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod, sqrt

import numpy as np

from voile.errors import UsageError
from voile.reconstruct.axes import Axis, Transition

NORMS = (1, 2, inf)


def condition_number(axes: Sequence[Transition], norm: float) -> float:
    """‖A‖·‖A⁻¹‖ of the whole product, in the norm 1 (column sums), 2 (spectral) or ∞ (row sums).

    Each of these norms of a Kronecker product is the product of its factors' norms.
    """
    if norm not in NORMS:
        raise UsageError(f"no condition number in the norm {norm!r}", hint="give 1, 2 or math.inf")
    return prod(of_axis(axis, norm) for axis in axes)


def of_axis(axis: Transition, norm: float) -> float:
    if axis.is_public:
        return 1.0
    if isinstance(axis, Axis):
        return of_replacement(axis, norm)
    matrix, inverse = axis.matrix(), axis.inverse()
    return float(np.linalg.norm(matrix, norm) * np.linalg.norm(inverse, norm))


def of_replacement(axis: Axis, norm: float) -> float:
    """The closed forms of p·I + (1−p)·1·b and of its inverse (I − (1−p)·1·b)/p.

    In the norm 2, all singular values but two are p; those two have the product p, and their
    squares the sum 2p + t² with t = (1−p)·√(classes·Σb²), so the larger one is (t + √(t²+4p))/2.
    """
    p, classes = axis.retention, axis.classes
    drawn = (1 - p) * axis.masses
    if norm == 1:
        return float((p + classes * drawn.max()) * (1 + (classes - 2) * drawn).max() / p)
    if norm == 2:
        t = sqrt(classes * float(drawn @ drawn))
        return ((t + sqrt(t * t + 4 * p)) / 2) ** 2 / p
    return float(2 - p - 2 * drawn.min()) / p
