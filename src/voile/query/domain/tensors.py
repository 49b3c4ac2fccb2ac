"""Atoms and values on several attributes as arrays over positions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from voile.arrays import Bools, Floats, Ints
from voile.query.domain.compare import Linear
from voile.query.domain.inputs import Array, numbers, truths
from voile.query.domain.problem import Problem
from voile.query.predicate import Atom, Expression

CHUNK = 2**20
"""Combinations of positions that are evaluated at a time."""
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def atom_truth(problem: Problem, atom: Atom) -> Bools:
    """Where an atom is true, one axis for each attribute that it reads."""
    if atom in problem.truth:
        return problem.truth[atom]
    if atom not in problem.dense:
        linear = problem.joint[atom]
        problem.dense[atom] = (
            linear_truth(problem, linear, atom.attributes)
            if linear
            else truths(on_positions(problem, atom)).reshape(shape(problem, atom.attributes))
        )
    result: Bools = problem.dense[atom]
    return result


def value_tensor(problem: Problem, value: Expression) -> Floats:
    """A value on each combination of positions."""
    if value not in problem.dense:
        column = numbers(on_positions(problem, value))
        problem.dense[value] = column.reshape(shape(problem, value.attributes))
    result: Floats = problem.dense[value]
    return result


def shape(problem: Problem, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(problem.axes[name].size for name in names)


def on_positions(problem: Problem, expression: Expression) -> Any:
    """An expression on the product of the positions that are left, asking for no more."""
    names = expression.attributes
    sizes = shape(problem, names)
    whole = tuple(problem.schema[name].size for name in names)
    if sizes == whole:
        return problem.engine.evaluate([expression])[0]
    parts = []
    for start in range(0, math.prod(sizes), CHUNK):
        places = np.arange(start, min(start + CHUNK, math.prod(sizes)))
        positions = np.unravel_index(places, sizes)
        codes = [problem.axes[n].codes[p] for n, p in zip(names, positions, strict=True)]
        parts += problem.engine.sample(names, [expression], codes)
    # Where nothing could be computed, a part knows no type.
    known = next((part.type for part in parts if not pa.types.is_null(part.type)), pa.null())
    return pa.concat_arrays([part.cast(known) for part in parts])


def spread(array: Array, place: int, count: int) -> Array:
    """A vector as an array of `count` axes, of which it is one."""
    return array.reshape(*(1,) * place, -1, *(1,) * (count - place - 1))


def linear_truth(problem: Problem, linear: Linear, names: tuple[str, ...]) -> Bools:
    """Σ values op 0 by broadcasting; the last attribute is compared with the sum of the others."""
    total, valid = linear_sum(problem, linear, names[:-1])
    last = names[-1]
    codes = problem.axes[last].codes
    compare = COMPARE[linear.operator]
    truth = compare(total[..., None], -linear.values[last][codes])
    for good in (valid[..., None], linear.valid[last][codes]):
        if not good.all():
            truth = truth & good
    result: Bools = np.broadcast_to(truth, shape(problem, names))
    return result


def linear_sum(problem: Problem, linear: Linear, names: tuple[str, ...]) -> tuple[Ints, Bools]:
    """Σ values over some of the attributes, and where all of them are valid."""
    total, valid = np.zeros((1,) * len(names), np.int64), np.ones((1,) * len(names), np.bool_)
    for place, name in enumerate(names):
        codes = problem.axes[name].codes
        total = total + spread(linear.values[name][codes], place, len(names))
        valid = valid & spread(linear.valid[name][codes], place, len(names))
    assert math.prod(total.shape) == math.prod(shape(problem, names))  # noqa: S101
    return total, valid
