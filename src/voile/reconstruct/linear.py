"""xA, yA⁻¹, Af and A⁻¹f for A = A₁ ⊗ … ⊗ A_k, axis by axis, without ever forming A.

Retention replacement is the identity plus a matrix of rank one, so an axis costs a sum and a
pass over the cells, however many classes it has; public axes cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from math import prod

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError
from voile.reconstruct.axes import Dense, Transition, tensor
from voile.reconstruct.kernels import carry_function, carry_histogram, carry_run

Carry = Callable[[Floats], None]
"""Changes the cells of a tensor, given flat, along one or several axes."""


@dataclass(frozen=True)
class Direction:
    """What is carried along the axes, and in which direction."""

    histogram: bool
    backward: bool


EXPECTED = Direction(histogram=True, backward=False)
INVERT = Direction(histogram=True, backward=True)
EXPECTATION = Direction(histogram=False, backward=False)
UNBIASED = Direction(histogram=False, backward=True)


@dataclass(frozen=True)
class CarryPlan:
    """The passes over a tensor that carry it along all of its axes."""

    passes: tuple[Carry, ...]

    def carry(self, x: Floats) -> None:
        """In place; the cells must be contiguous."""
        cells = x.reshape(-1)
        for one in self.passes:
            one(cells)


def plan(axes: Sequence[Transition], way: Direction) -> CarryPlan:
    """Runs of neighbouring binary axes share their passes; public axes have none."""
    passes: list[Carry] = []
    inner = prod(axis.classes for axis in axes)
    for binary, group in groupby(axes, lambda axis: axis.classes == 2):
        run = list(group)
        if binary:
            inner >>= len(run)
            if not all(axis.is_public for axis in run):
                matrices = np.stack([directed(axis, way) for axis in run])
                passes.append(partial(carry_run, inner=inner, matrices=matrices))
            continue
        for axis in run:
            inner //= axis.classes
            if not axis.is_public:
                passes.append(along(axis, inner, way))
    return CarryPlan(tuple(passes))


def along(axis: Transition, inner: int, way: Direction) -> Carry:
    """The pass along an axis of any number of classes."""
    if isinstance(axis, Dense):
        return partial(carry_dense, inner=inner, matrix=directed(axis, way))
    p = axis.retention
    keep, share = (1 / p, -(1 - p) / p) if way.backward else (p, 1 - p)
    kernel = carry_histogram if way.histogram else carry_function
    return partial(kernel, inner=inner, masses=axis.masses, keep=keep, share=share)


def directed(axis: Transition, way: Direction) -> Floats:
    """The matrix that multiplies a column of the axis's cells."""
    matrix = axis.inverse() if way.backward else axis.matrix()
    return np.ascontiguousarray(matrix.T if way.histogram else matrix)


def carry_dense(x: Floats, inner: int, matrix: Floats) -> None:
    """Multiply the cells along one axis by a matrix, in place."""
    cells = x.reshape(-1, len(matrix), inner)
    np.copyto(cells, matrix @ cells)


def carried(values: npt.ArrayLike, axes: Sequence[Transition], way: Direction) -> Floats:
    """A copy of the values, carried along all axes."""
    x = tensor(values, axes)
    plan(axes, way).carry(x)
    return x


def expected(x: npt.ArrayLike, axes: Sequence[Transition]) -> Floats:
    """xA: how many rows are expected in each class, of `x` rows that are truly there."""
    return carried(x, axes, EXPECTED)


def invert(y: npt.ArrayLike, axes: Sequence[Transition]) -> Floats:
    """yA⁻¹: the unbiased estimate of the true counts; cells may be negative, the total stays."""
    return carried(y, axes, INVERT)


def expectation(f: npt.ArrayLike, axes: Sequence[Transition]) -> Floats:
    """Af: the mean of f(seen) given the true class."""
    return carried(f, axes, EXPECTATION)


def unbiased(f: npt.ArrayLike, axes: Sequence[Transition]) -> Floats:
    """A⁻¹f: the g whose mean, g(seen) given the true class, is f of the true class."""
    return carried(f, axes, UNBIASED)


# ---------------------------------------------------------------------- non-negative counts
# The nearest non-negative tensor of the same total.


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
