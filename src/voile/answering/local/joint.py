"""Counts over the product of classes that a caller chooses: what trees and rules are built from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from voile.answering.local.axes import Ints, Noise
from voile.answering.local.source import Method
from voile.answering.local.states import MOST_STATES
from voile.errors import QueryError
from voile.estimate import Floats
from voile.reconstruct import Axis, invert, maximum_likelihood
from voile.reconstruct.stopped import stopped_em


def joint_counts(
    codes: Mapping[str, npt.NDArray[np.signedinteger]],
    cells: Mapping[str, Ints],
    noise: Mapping[str, Noise],
    rows: int,
    method: Method | Literal["stopped"],
    joint: float | None = None,
) -> tuple[Floats, Floats]:
    """Estimated counts and their standard errors (those of inversion).

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
    estimate = invert(seen, axes)
    variance = np.maximum(squares(seen, axes) - estimate, 0.0)
    if method == "em":
        estimate = maximum_likelihood(seen, axes).counts
    elif method == "stopped":
        estimate = stopped_em(seen, axes).counts
    return estimate.reshape(shape), np.sqrt(variance).reshape(shape)


def histogram(classes: Sequence[Ints], shape: tuple[int, ...], rows: int) -> Floats:
    if not classes:
        return np.array(float(rows))
    flat = np.ravel_multi_index(tuple(classes), shape)
    return np.bincount(flat, minlength=math.prod(shape)).astype(np.float64).reshape(shape)


def axis_of(
    noise: Mapping[str, Noise], name: str, classes: Ints, seen: Floats, j: int, rows: int
) -> Axis:
    count = int(classes.max()) + 1
    how = noise.get(name, Noise(1.0))
    if how.own and rows:
        others = tuple(i for i in range(seen.ndim) if i != j)
        return Axis(how.retention, seen.sum(axis=others) / rows)
    masses = np.full(len(classes), 1 / len(classes)) if how.masses is None else how.masses
    found = np.bincount(classes, masses, count)
    return Axis(how.retention, found / found.sum())


def whole_masses(axes: Sequence[Axis]) -> Floats:
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
