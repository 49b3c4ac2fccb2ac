"""Counts over the product of classes that a caller chooses: what trees and rules are built from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from voile.answering.axes import MOST_STATES
from voile.arrays import Floats, Ints
from voile.errors import QueryError
from voile.kinds.perturbed.axes import AxisNoise, Method
from voile.kinds.perturbed.estimator import deviation
from voile.reconstruct import Axis, invert, maximum_likelihood
from voile.reconstruct.maximum import stopped_em


@dataclass(frozen=True, eq=False)
class JointCounts:
    """Estimated counts of cells, and what is known of how far they are off."""

    counts: Floats
    """By the method that was chosen."""
    unbiased: Floats
    """By inversion; all that follows is about the errors of these."""
    squares: Floats
    """Σ g² over the rows."""
    part: Floats
    """The most that one row can do: a bound of |g| and of |g − f|."""
    widest: Floats
    """A bound of the standard error that holds for every table; 0 where nothing was perturbed."""

    @classmethod
    def exact(cls, counts: Floats) -> JointCounts:
        """Counts that are known."""
        nothing = np.zeros_like(counts)
        return cls(counts, counts, counts, nothing, nothing)

    @classmethod
    def stacked(cls, cells: Sequence[JointCounts]) -> JointCounts:
        """Single cells, one after another."""
        rows = [(c.counts, c.unbiased, c.squares, c.part, c.widest) for c in cells]
        return cls(*np.array(rows, np.float64).reshape(-1, 5).T)

    def at(self, cells: tuple[Any, ...]) -> JointCounts:
        """Some of the cells, by an index of NumPy's."""
        all_five = (self.counts, self.unbiased, self.squares, self.part, self.widest)
        return JointCounts(*(of[cells] for of in all_five))

    @property
    def variance(self) -> Floats:
        """Unbiased, and so negative at times."""
        return np.where(self.widest > 0, self.squares - self.unbiased, 0.0)

    @property
    def stderr(self) -> Floats:
        """Where the unbiased variance is negative by chance, its first part is not."""
        first = np.minimum(self.squares, self.widest**2)
        return np.sqrt(np.where(self.variance > 0, self.variance, first))

    def deviation(self, miss: float) -> Floats:
        """What the error of inversion exceeds with probability at most `miss`."""
        return deviation(self.variance, self.squares, self.part, self.widest, miss)


def joint_counts(
    codes: Mapping[str, npt.NDArray[np.signedinteger]],
    cells: Mapping[str, Ints],
    noise: Mapping[str, AxisNoise],
    rows: int,
    method: Method | Literal["stopped"],
    joint: float | None = None,
) -> JointCounts:
    """Estimated counts of every combination of classes.

    `codes` are the rows, a column at a time; cells[name][code] is the class of each value.
    """
    shape = tuple(int(classes.max()) + 1 for classes in cells.values())
    if math.prod(shape) > MOST_STATES:
        raise QueryError(
            f"{math.prod(shape):,} combinations of classes are more than {MOST_STATES:,}",
            hint="use fewer columns or coarser classes",
        )
    seen = histogram([cells[name][codes[name]] for name in cells], shape, rows)
    axes = [axis_of(noise, name, classes, seen, j, rows)
            for j, (name, classes) in enumerate(cells.items())]  # fmt: skip
    if joint is not None:  # the whole row is one column
        axes = [Axis(joint, whole_masses(axes))]
        seen = seen.reshape(-1)
    unbiased = estimate = invert(seen, axes)
    if method == "em":
        estimate = maximum_likelihood(seen, axes).counts
    elif method == "stopped":
        estimate = stopped_em(seen, axes).counts
    found = (estimate, unbiased, squares(seen, axes), most(axes), widest(seen, axes))
    return JointCounts(*(of.reshape(shape) for of in found))


def histogram(classes: Sequence[Ints], shape: tuple[int, ...], rows: int) -> Floats:
    """The rows by their classes."""
    if not classes:
        return np.array(float(rows))
    flat = np.ravel_multi_index(tuple(classes), shape)
    return np.bincount(flat, minlength=math.prod(shape)).astype(np.float64).reshape(shape)


def axis_of(
    noise: Mapping[str, AxisNoise], name: str, classes: Ints, seen: Floats, j: int, rows: int
) -> Axis:
    """The axis of a column: how often a class is kept, and what replaces it."""
    count = int(classes.max()) + 1
    how = noise.get(name, AxisNoise(1.0))
    if how.own and rows:
        others = tuple(i for i in range(seen.ndim) if i != j)
        return Axis(how.retention, seen.sum(axis=others) / rows)
    masses = np.full(len(classes), 1 / len(classes)) if how.masses is None else how.masses
    found = np.bincount(classes, masses, count)
    return Axis(how.retention, found / found.sum())


def whole_masses(axes: Sequence[Axis]) -> Floats:
    """The masses of the product of all axes."""
    result = np.ones(1)
    for axis in axes:
        result = np.multiply.outer(result, axis.masses).reshape(-1)
    return result


def squares(seen: Floats, axes: Sequence[Axis]) -> Floats:
    """Σ g² over the rows for every cell: along an axis K[c, v] = (1[v = c] − (1−p)·m_c)/p."""
    for j, axis in enumerate(axes):
        p, shape = axis.retention, [1] * seen.ndim
        shape[j] = axis.classes
        mass = axis.masses.reshape(shape)
        everywhere = ((1 - p) * mass / p) ** 2
        diagonal = (1 - 2 * (1 - p) * mass) / p**2
        seen = diagonal * seen + everywhere * seen.sum(axis=j, keepdims=True)
    return seen


def most(axes: Sequence[Axis]) -> Floats:
    """The most that one row can do to the count of each cell.

    g is a product of one K[c, v] for each axis, and f is 1 in the cell and 0 elsewhere.
    """
    if all(axis.is_public for axis in axes):
        return np.zeros([axis.classes for axis in axes])
    low, high = np.ones(()), np.ones(())
    for axis in axes:
        drawn = (1 - axis.retention) * axis.masses
        ends = (-drawn / axis.retention, (1 - drawn) / axis.retention)
        if axis.is_public:
            ends = (np.zeros(axis.classes), np.ones(axis.classes))
        products = [np.multiply.outer(a, b) for a in (low, high) for b in ends]
        low, high = np.minimum.reduce(products), np.maximum.reduce(products)
    return np.maximum(high, 1 - low)


def widest(seen: Floats, axes: Sequence[Axis]) -> Floats:
    """A bound of every cell's standard error: the rows that may count, each at its worst.

    The mean of g² is a product of the axes' means of K[c, v]². For a true class c that is one
    number, for all other classes another.
    """
    inside, beside = np.ones(()), np.zeros(())
    for axis in axes:
        p, drawn = axis.retention, (1 - axis.retention) * axis.masses
        replaced = axis.masses * (1 - drawn) ** 2 + (1 - axis.masses) * drawn**2
        own = (p * (1 - drawn) ** 2 + (1 - p) * replaced) / p**2
        other = (p * drawn**2 + (1 - p) * replaced) / p**2
        if axis.is_public:
            own, other = np.ones(axis.classes), np.zeros(axis.classes)
        beside = np.maximum.reduce(
            [np.multiply.outer(a, b) for a, b in ((inside, other), (beside, own), (beside, other))]
        )
        inside = np.multiply.outer(inside, own)
    perturbed = tuple(j for j, axis in enumerate(axes) if not axis.is_public)
    rows = seen.sum(axis=perturbed, keepdims=True)
    return np.asarray(np.sqrt(np.maximum(np.maximum(inside - 1, beside), 0.0) * rows))
