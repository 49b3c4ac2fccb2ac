"""A sum estimated from tuples drawn from the component's domain, with its standard error.

The last resort, for conditions that nothing takes apart on domains too large to list. Tuples are
drawn in proportion to the weights, which hold every condition on a single attribute, so only the
joint conditions are left to chance. The draw depends on the question alone: asked again, the
answer is the same, and nothing private is involved.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from voile.arrays import Floats, Ints
from voile.query.domain.inputs import Array, all_hold, numbers, some_hold, truths
from voile.query.domain.plan import Part
from voile.query.domain.problem import Group, Problem
from voile.query.domain.split import texts
from voile.query.predicate import And, Atom, folded

TUPLES = 2**21
"""Tuples drawn for each part of a mixture."""
CHUNK = 2**19


@dataclass(frozen=True, eq=False)
class Drawn:
    """Some tuples: their positions on the axes, their codes, and the sign of their weight."""

    positions: dict[str, Ints]
    codes: dict[str, Ints]
    sign: Floats


def sample(problem: Problem) -> tuple[Floats, Floats]:
    """Sums (K, *groups) and their standard errors."""
    sizes = [group.size for group in problem.groups]
    sums = np.zeros((problem.batch, math.prod(sizes)))
    squares = np.zeros_like(sums)
    for k in range(problem.batch):
        for drawn in draws(problem, k):
            value = contributions(problem, drawn)
            cell = cells(problem.groups, drawn)
            sums[k] += np.bincount(cell, value, sums.shape[1])
            squares[k] += np.bincount(cell, value * value, sums.shape[1])
    mean = sums / TUPLES
    variance = np.maximum(squares / TUPLES - mean * mean, 0)
    mass = np.array([total_mass(problem, k) for k in range(problem.batch)])[:, None]
    shape = (problem.batch, *sizes)
    # Where no tuple fell, the sum is not known to be 0: as if one had, of size 1.
    floor = np.where(squares > 0, 0, mass / TUPLES)
    error = np.maximum(mass * np.sqrt(variance / TUPLES), floor)
    return (mass * mean).reshape(shape), error.reshape(shape)


def total_mass(problem: Problem, k: int) -> float:
    listed = math.prod(float(np.abs(a.weight[k]).sum()) for a in problem.axes.values())
    return listed * math.prod(float(problem.schema[name].size) for name in problem.huge)


def seed(problem: Problem, k: int) -> int:
    text = f"{problem.component}|{k}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")


def draws(problem: Problem, k: int) -> Iterator[Drawn]:
    """Tuples in proportion to the absolute weights."""
    rng = np.random.Generator(np.random.PCG64(seed(problem, k)))
    tables = {}
    for name, axis in problem.axes.items():
        tables[name] = np.cumsum(np.abs(axis.weight[k]))
    if any(len(table) == 0 or table[-1] == 0 for table in tables.values()):
        return
    for _ in range(0, TUPLES, CHUNK):
        positions: dict[str, Ints] = {}
        codes: dict[str, Ints] = {}
        sign = np.ones(CHUNK)
        for name, table in tables.items():
            axis = problem.axes[name]
            at = np.searchsorted(table, rng.random(CHUNK) * table[-1], side="right")
            # Rounding may hit the end: the last position that has any weight.
            at = np.minimum(at, np.searchsorted(table, table[-1]))
            positions[name], codes[name] = at, axis.codes[at]
            sign *= np.sign(axis.weight[k][at])
        for name in problem.huge:
            codes[name] = rng.integers(0, problem.schema[name].size, CHUNK)
        yield Drawn(positions, codes, sign)


def contributions(problem: Problem, drawn: Drawn) -> Floats:
    """1[all formulas] · Π values · sign for each tuple."""
    joint = problem.joint_atoms()
    names = [n for n in problem.component.attributes if n in drawn.codes]
    asked = [*joint, *problem.values]
    columns = problem.engine.sample(names, asked, [drawn.codes[n] for n in names])
    known = {atom: truths(c) for atom, c in zip(joint, columns, strict=False)}

    def truth(atom: Atom) -> Array:
        if atom in known:
            return known[atom]
        return problem.truth[atom][drawn.positions[atom.attributes[0]]]

    whole = And(tuple(problem.formulas))
    value: Floats = drawn.sign * folded(whole, truth, all_hold, some_hold)
    for column in columns[len(joint) :]:
        value = value * numbers(column)
    return value


def cells(groups: list[Group], drawn: Drawn) -> Ints:
    """The group of each tuple, one number for all group expressions."""
    cell = np.zeros(len(drawn.sign), np.int64)
    for group in groups:
        code: Array = group.codes.reshape(group.shape)[
            tuple(drawn.codes[name] for name in group.attributes)
        ]
        cell = cell * group.size + code
    return cell


def sampling_part(problem: Problem) -> Part:
    atoms = len(problem.joint_atoms()) + len(problem.values)
    groups = math.prod(group.size for group in problem.groups)
    return Part(
        attributes=problem.component.attributes,
        atoms=texts(problem.component),
        method="sampling",
        steps=(f"{TUPLES:,} tuples",),
        width=CHUNK,
        cost=float(TUPLES * problem.batch * max(1, atoms)),
        bytes=8 * (CHUNK * (2 * len(problem.component.attributes) + atoms + 4) + 4 * groups),
    )
