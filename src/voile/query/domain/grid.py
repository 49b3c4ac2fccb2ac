"""A sum by looking at every combination of positions: all at once, or window by window."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product

import numpy as np

from voile.arrays import Floats
from voile.query.domain.compare import Array
from voile.query.domain.network import Network, PlanPart, atom_truth, reduced, value_tensor
from voile.query.domain.problem import Problem, ProblemAxis, texts
from voile.query.predicate import And, Atom, folded

Window = dict[str, slice]


def cell_values(problem: Problem, window: Window) -> Floats:
    """1[all formulas] · Π values on the cells of a window, by broadcasting."""
    names = list(problem.axes)
    place = {name: i for i, name in enumerate(names)}

    def spread(array: Array, axes: tuple[str, ...]) -> Array:
        order = sorted(range(len(axes)), key=lambda i: place[axes[i]])
        cut = array[tuple(window[name] for name in axes)].transpose(order)
        shape = [1] * len(names)
        for i in order:
            shape[place[axes[i]]] = cut.shape[order.index(i)]
        return cut.reshape(shape)

    def truth(atom: Atom) -> Array:
        return spread(atom_truth(problem, atom), atom.attributes)

    def joined(by: np.ufunc) -> Callable[[Sequence[Array]], Array]:
        # Small arrays first: what a few attributes decide is combined before it is spread.
        return lambda parts: reduce(by, sorted(parts, key=lambda array: array.size))

    whole = And(tuple(problem.formulas))
    every, some = joined(np.logical_and), joined(np.logical_or)
    cells = folded(whole, truth, every, some) if problem.formulas else np.True_
    for value in problem.values:
        cells = cells * spread(value_tensor(problem, value), value.attributes)
    sizes = [len(range(*window[n].indices(problem.axes[n].size))) for n in names]
    return np.broadcast_to(np.asarray(cells, np.float64), sizes)


def windows(problem: Problem, cells: int) -> Iterator[Window]:
    """The grid in windows of about so many cells, cut along the first axes."""
    names = list(problem.axes)
    sizes = [problem.axes[name].size for name in names]
    if 0 in sizes:
        return
    cut = next((i for i in range(len(sizes)) if math.prod(sizes[i + 1 :]) <= cells), 0)
    step = max(1, cells // math.prod(sizes[cut + 1 :]))
    ranges = [[slice(i, i + 1) for i in range(size)] for size in sizes[:cut]]
    if sizes:
        ranges.append([slice(i, min(i + step, sizes[cut])) for i in range(0, sizes[cut], step)])
    for chosen in product(*ranges):
        rest = (slice(0, size) for size in sizes[cut + 1 :])
        yield dict(zip(names, (*chosen, *rest), strict=True))


def windowed(problem: Problem, window: Window) -> Problem:
    """The problem with the axes cut down to a window, for its weights."""

    def part(axis: ProblemAxis) -> ProblemAxis:
        cut = window[axis.name]
        return replace(
            axis, codes=axis.codes[cut], weight=axis.weight[:, cut], label=axis.label[cut]
        )

    return replace(problem, axes={name: part(axis) for name, axis in problem.axes.items()})


def enumerate_grid(problem: Problem, cells: int) -> Floats:
    """Sum over the windows: (K, *open axes)."""
    into_classes = reduced(problem)
    axes = [problem.axes[name] for name in problem.open]
    sizes = [a.classes if a.name in into_classes else a.size for a in axes]
    total = np.zeros((problem.batch, *sizes))
    for window in windows(problem, cells):
        part = windowed(problem, window)
        values = cell_values(problem, window)
        if len(part.axes) <= 1 and not part.open:
            total += (values * weight_of(part)).sum(axis=tuple(range(1, 1 + len(part.axes))))
            continue
        cut = [(f.axes, cut_to(f.array, f.axes, window)) for f in problem.factors]
        place = (slice(None) if n in into_classes else window[n] for n in problem.open)
        total[(slice(None), *place)] += weighed(part, into_classes, values, cut)
    return total


def cut_to(array: Floats, axes: tuple[str, ...], window: Window) -> Floats:
    """The part of an array that lies in a window of positions."""
    return array[(slice(None), *(window[name] for name in axes))]


def weighed(
    problem: Problem,
    into_classes: frozenset[str],
    values: Floats,
    factors: list[tuple[tuple[str, ...], Floats]],
) -> Floats:
    """Cells times weights and factors, summed over what is not open: (K, *open)."""
    names = tuple(problem.axes)
    network = Network(problem, into_classes)
    taken = {*problem.open, *(name for axes, _ in factors for name in axes)}
    first = max(set(names) - taken, key=lambda n: problem.axes[n].size, default=None)
    network.weights([name for name in names if name != first])
    if first is None:
        network.add(names, lambda: values)
    else:
        # The longest sum for all parts of the mixture at once: one product of matrices.
        rest = tuple(name for name in names if name != first)
        weight = problem.axes[first].weight
        summed = np.moveaxis(np.tensordot(values, weight, ([names.index(first)], [1])), -1, 0)
        network.add(rest, lambda: summed, batched=True)
    for axes, array in factors:
        network.add(axes, lambda array=array: array, batched=True)  # type: ignore[misc]
    network.plan()
    return network.contract()


def weight_of(problem: Problem) -> Floats:
    """Everything that weighs the positions of the only axis, if there is one: (K, positions)."""
    weight: Floats = np.ones((problem.batch, *(axis.size for axis in problem.axes.values())))
    for axis in problem.axes.values():
        weight = weight * axis.weight
    for factor in problem.factors:
        weight = weight * factor.array
    return weight


def grid_part(problem: Problem) -> PlanPart:
    """The plan of going through all combinations of positions."""
    kept = sum(math.prod(problem.axes[n].size for n in join) for join in problem.joins())
    return PlanPart(
        attributes=problem.component.attributes,
        atoms=texts(problem.component),
        method="product" if len(problem.axes) <= 1 else "grid",
        width=problem.cells,
        cost=float(problem.cells * max(1, len(problem.truth) + len(problem.joint))),
        bytes=9 * kept + 20 * problem.cells,
    )
