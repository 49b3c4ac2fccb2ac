"""How one column moves rows between classes, and what that does to a tensor along its axis.

A tensor has one axis per column and one cell per combination of classes. Along the axis of a
column, A[c, c'] is the chance that a row of class c is seen in class c'. Two things can be
carried along an axis: a histogram x, which becomes xA, and a function f of the seen class, whose
mean given the true class is Af.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod, sqrt

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError

ROUNDING = 1e-9
"""By how much chances that are sums of many others may miss 1."""


@dataclass(frozen=True)
class Axis:
    """Retention replacement: a row keeps its class with chance p, else draws one from `masses`.

    A draw may give the class that the row had, so A = p·I + (1−p)·1·masses.
    """

    retention: float
    masses: Floats

    def __post_init__(self) -> None:
        masses = frozen_copy(self.masses, 1)
        object.__setattr__(self, "masses", masses)
        if not 0 < self.retention <= 1:
            raise UsageError(
                f"a retention of {self.retention:g} cannot be undone",
                hint="the chance to keep a value is above 0 and at most 1",
            )
        if masses.size == 0 or not masses.min() >= 0 or abs(masses.sum() - 1) > ROUNDING:
            raise UsageError(
                f"the replacing chances of {masses.size} classes sum to {masses.sum():.12g}",
                hint="there is at least one class; chances are not negative and sum to 1",
            )

    @property
    def classes(self) -> int:
        """How many classes the column has."""
        return self.masses.size

    @property
    def is_public(self) -> bool:
        """Whether every row stays where it is."""
        return self.retention == 1 or self.classes == 1

    def matrix(self) -> Floats:
        """A itself, for small numbers of classes."""
        return self.retention * np.eye(self.classes) + (1 - self.retention) * self.masses

    def inverse(self) -> Floats:
        """A⁻¹ = (I − (1−p)·1·masses)/p, because masses·1 = 1."""
        return (np.eye(self.classes) - (1 - self.retention) * self.masses) / self.retention


@dataclass(frozen=True)
class Dense:
    """Any other transition between the classes of one axis; rows sum to 1."""

    transition: Floats

    def __post_init__(self) -> None:
        transition = frozen_copy(self.transition, 2)
        object.__setattr__(self, "transition", transition)
        rows, columns = transition.shape
        if rows != columns or rows == 0:
            raise UsageError(
                f"a transition of {rows} by {columns} classes cannot be undone",
                hint="give one row and one column for each class",
            )
        if not transition.min() >= 0 or np.abs(transition.sum(axis=1) - 1).max() > ROUNDING:
            raise UsageError(
                f"a row of the transition between {rows} classes does not sum to 1",
                hint="row c holds the chances of what is seen of class c",
            )

    @property
    def classes(self) -> int:
        """How many classes the column has."""
        return len(self.transition)

    @property
    def is_public(self) -> bool:
        """Whether every row stays where it is."""
        return bool((np.diagonal(self.transition) == 1).all())

    def matrix(self) -> Floats:
        """A itself, as it was given."""
        return self.transition

    def inverse(self) -> Floats:
        """A⁻¹; refused where there is none."""
        try:
            return np.linalg.inv(self.transition).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            raise UsageError(
                f"the transition between {self.classes} classes has no inverse",
                hint="some mixture of classes is seen exactly as another is",
            ) from None


Transition = Axis | Dense
"""How a column's values turn into each other: by retention alone, or by any matrix."""


def frozen_copy(values: npt.ArrayLike, dimensions: int) -> Floats:
    """The caller's numbers, out of the reach of later changes."""
    copy = np.array(values, dtype=np.float64)
    if copy.ndim != dimensions:
        raise UsageError(
            f"{copy.ndim} dimensions where {dimensions} are needed",
            hint="replacing chances are a list, a transition is a matrix",
        )
    copy.flags.writeable = False
    return copy


def tensor(values: npt.ArrayLike, axes: Sequence[Transition]) -> Floats:
    """A fresh contiguous copy in the shape of the axes; a flat list of all cells will do."""
    shape = tuple(axis.classes for axis in axes)
    copy = np.array(values, dtype=np.float64, order="C")
    if copy.shape != shape and copy.shape != (math.prod(shape),):
        raise UsageError(
            f"a tensor of shape {copy.shape} for axes of {shape} classes",
            hint="one axis per column, with one cell per class",
        )
    return copy.reshape(shape)


def dot(a: Floats, b: Floats) -> float:
    """Σab on one core: the same digits on every machine, and no threads waiting for each other."""
    return float(np.einsum("i,i->", a, b))


# ---------------------------------------------------------------------- condition numbers
# How much an error in what was seen can grow when it is carried back.


NORMS = (1, 2, inf)


def condition_number(axes: Sequence[Transition], norm: float) -> float:
    """‖A‖·‖A⁻¹‖ of the whole product, in the norm 1 (column sums), 2 (spectral) or ∞ (row sums).

    Each of these norms of a Kronecker product is the product of its factors' norms.
    """
    if norm not in NORMS:
        raise UsageError(f"no condition number in the norm {norm!r}", hint="give 1, 2 or math.inf")
    return prod(of_axis(axis, norm) for axis in axes)


def of_axis(axis: Transition, norm: float) -> float:
    """The condition number of one axis."""
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
