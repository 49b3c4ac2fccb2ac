"""Perturbing undone along each axis of a tensor of states.

A function f of a row's true states has an unbiased counterpart g on what is seen: E[g(Y)|X] = f(X).
Along one axis g = (f − (1−p)·E_m f)/p, for f is kept with chance p, and replaced by its mean under
the replacing distribution m otherwise; so an axis costs one pass over the tensor, and nothing of
the size of a transition matrix is ever made. The transpose of the same map turns sums over the seen
rows into estimates of sums over the true ones.

A state is a class and a power of phi (see axes.py). `one` is the constant 1 as a function of an
axis: power 0, all classes. `moments` is the mean of each state under m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from voile.answering.axes import shape_of
from voile.arrays import Floats
from voile.kinds.perturbed.axes import PerturbedAxis

SAME = 1e-12
"""Values of a function that differ by less than this part of the largest are one value."""


def unbiased(f: Floats, axes: Sequence[PerturbedAxis]) -> Floats:
    """g with E[g(Y)|X] = f(X)."""
    for j, axis in enumerate(axes):
        if axis.retention < 1:
            f = undone(f, axis.moments.ravel(), one(axis), axis.retention, j)
    return f


def reconstructed(seen: Floats, axes: Sequence[PerturbedAxis]) -> Floats:
    """Unbiased estimates of sums over the true rows, from the sums over those that are seen."""
    for j, axis in enumerate(axes):
        if axis.retention < 1:
            seen = undone(seen, one(axis), axis.moments.ravel(), axis.retention, j)
    return seen


def undone(tensor: Floats, weights: Floats, along: Floats, retention: float, j: int) -> Floats:
    """(tensor − (1−p)·along·(weights·tensor))/p, with both on axis j."""
    result: Floats = tensor - (1 - retention) * spread(tensor, weights, along, j)
    result /= retention
    return result


def spread(tensor: Floats, weights: Floats, along: Floats, j: int) -> Floats:
    """along·(weights·tensor), with both on axis j."""
    shape = [1] * tensor.ndim
    shape[j] = len(along)
    total = np.tensordot(weights, tensor, axes=(0, j))
    return np.asarray(np.expand_dims(total, j) * along.reshape(shape))


def varying(f: Floats, axes: Sequence[PerturbedAxis]) -> Floats:
    """f less its mean over what is drawn for the perturbed columns, which has no error.

    So nothing is left where f does not depend on them, up to rounding.
    """
    mean = f
    perturbed = tuple(j for j, axis in enumerate(axes) if axis.retention < 1)
    for j in perturbed:
        mean = spread(mean, axes[j].moments.ravel(), one(axes[j]), j)
    rest = f - mean
    left, whole = (
        magnitude(x, axes).max(axis=perturbed, keepdims=True, initial=0.0) for x in (rest, f)
    )
    shape = [axis.states if axis.public else 1 for axis in axes]
    each = [axis.powers if axis.public else 1 for axis in axes]
    differs = left > SAME * whole
    for j, powers in enumerate(each):
        differs = np.repeat(differs, powers, axis=j)
    return np.where(differs.reshape(shape), rest, 0.0)


def one(axis: PerturbedAxis) -> Floats:
    """The constant 1 on the states of an axis."""
    found = np.zeros((axis.classes, axis.powers))
    found[:, 0] = 1.0
    return found.ravel()


def multiplied(f: Floats, g: Floats, axes: Sequence[PerturbedAxis]) -> Floats:
    """The product of two functions: class by class, and polynomials in each phi."""
    polynomial = [axis for axis in axes if axis.powers > 1]
    if not polynomial:
        return f * g
    left, right = split(f, axes), split(g, axes)
    result = np.zeros_like(left)
    for a in product(*(range(axis.powers) for axis in polynomial)):
        if not (factor := left[places(a, axes)]).any():
            continue
        for b in product(*(range(axis.powers) for axis in polynomial)):
            degrees = [i + k for i, k in zip(a, b, strict=True)]
            if all(d < axis.powers for d, axis in zip(degrees, polynomial, strict=True)):
                result[places(degrees, axes)] += factor * right[places(b, axes)]
    return result.reshape(f.shape)


def split(f: Floats, axes: Sequence[PerturbedAxis]) -> Floats:
    """With an axis of its own for the powers of every column."""
    return f.reshape([size for axis in axes for size in (axis.classes, axis.powers)])


def places(degrees: Sequence[int], axes: Sequence[PerturbedAxis]) -> tuple[slice | int, ...]:
    """Where the states of these powers are; columns without phi have power 0 only."""
    listed = iter(degrees)
    powers = (next(listed) if axis.powers > 1 else 0 for axis in axes)
    return tuple(place for power in powers for place in (slice(None), power))


def placed(f: Floats, degrees: Sequence[int], axes: Sequence[PerturbedAxis]) -> Floats:
    """A function of the classes times values to these powers, as a function of the states."""
    result = np.zeros([size for axis in axes for size in (axis.classes, axis.powers)])
    for factor, powers in expanded(degrees, axes):
        result[places(powers, axes)] = factor * f
    return result.reshape(shape_of(axes))


def expanded(
    degrees: Sequence[int], axes: Sequence[PerturbedAxis]
) -> list[tuple[float, tuple[int, ...]]]:
    """Powers of values, which are centre + phi, as sums of powers of phi."""
    centres = [axis.centre for axis in axes if axis.powers > 1]
    found = []
    for powers in product(*(range(degree + 1) for degree in degrees)):
        parts = zip(degrees, powers, centres, strict=True)
        factor = math.prod(math.comb(d, e) * centre ** (d - e) for d, e, centre in parts)
        if factor:
            found.append((float(factor), powers))
    return found


def ends(f: Floats, axes: Sequence[PerturbedAxis]) -> tuple[Floats, Floats]:
    """The lowest and the highest f of every combination of classes.

    They lie where each phi is at one of its ends, if f is of degree 1 in each; so does the highest
    of what bends upwards. What is of a higher degree is bounded by the size of its parts.
    """
    if any(axis.powers > 3 for axis in axes):
        size = magnitude(f, axes)
        return -size, size
    sides = [axis.ends.T if axis.powers > 1 else axis.ends.T[:1] for axis in axes]
    corners = [corner(split(f, axes), axes, phis) for phis in product(*sides)]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def magnitude(f: Floats, axes: Sequence[PerturbedAxis]) -> Floats:
    """A bound of |f| for every combination of classes, by the size of its parts."""
    largest = [np.abs(axis.ends).max(axis=1) for axis in axes]
    return corner(np.abs(split(f, axes)), axes, largest)


def corner(f: Floats, axes: Sequence[PerturbedAxis], phis: Sequence[Floats]) -> Floats:
    """f of the classes, with the phi of each class given."""
    for j in reversed(range(len(axes))):
        scale = phis[j][:, None] ** np.arange(axes[j].powers)
        shape = [1] * f.ndim
        shape[2 * j : 2 * j + 2] = scale.shape
        f = (f * scale.reshape(shape)).sum(axis=2 * j + 1)
    return f


def reach(g: Floats, f: Floats, axes: Sequence[PerturbedAxis]) -> float:
    """The most that g can be, or be off f, on rows that agree on public columns."""
    perturbed = tuple(j for j, axis in enumerate(axes) if not axis.public)
    (g_low, g_high), (f_low, f_high) = (
        (low.min(axis=perturbed), high.max(axis=perturbed))
        for low, high in (ends(g, axes), ends(f, axes))
    )
    found = np.maximum.reduce([g_high - f_low, f_high - g_low, np.abs(g_low), np.abs(g_high)])
    return float(found.max(initial=0.0))


def widest(g: Floats, f: Floats, axes: Sequence[PerturbedAxis]) -> Floats:
    """A bound of the variance of g on one row, by its public columns, as a function of states."""
    mean = multiplied(g, g, axes)
    perturbed = tuple(j for j, axis in enumerate(axes) if not axis.public)
    for j in perturbed:
        p, axis = axes[j].retention, axes[j]
        mean = p * mean + (1 - p) * spread(mean, axis.moments.ravel(), one(axis), j)
    _, high = ends(mean - multiplied(f, f, axes), axes)
    most = np.maximum(high.max(axis=perturbed, keepdims=True), 0.0)
    return placed(most, (0,) * sum(axis.powers > 1 for axis in axes), axes)
