"""Conditions to count: a function of two sides as few products of one condition on each.

The truth assignments of A's atoms fall into classes that leave the same function of B's, its
cofactor. So f = Σ_j α_j·β_j, with disjoint α_j. One class can be left out, since they sum to 1, and
a condition and its complement need one count: XOR is α + β − 2αβ, a single product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrays import Bools, Floats
from voile.asking.covariance import Form
from voile.asking.sides import MOST, BooleanFunction, SideAtom, levels
from voile.errors import UsageError

STATES = {
    (2,): "{0}", (0,): "NOT ({0})", (1,): "({0}) IS NULL", (0, 2): "NOT (({0}) IS NULL)",
    (1, 2): "NOT (({0}) IS FALSE)", (0, 1): "NOT (({0}) IS TRUE)",
}  # fmt: skip
"""SQL that says which truth values an atom has."""


@dataclass(frozen=True, eq=False)
class Products:
    """What to count on each side, and how Pr[f] follows."""

    conditions: tuple[tuple[str, ...], tuple[str, ...]]
    form: Form
    classes: tuple[Floats, Floats]
    """Of each side: in which of its classes each condition holds (conditions × classes)."""


def products(expression: BooleanFunction) -> Products:
    """Take f apart from the side that needs fewer counts."""
    first, second = (*expression.sides, "", "")[:2]
    grids = tuple(assignments(expression.atoms.get(side, ())) for side in (first, second))
    values = {}
    for side, grid, turn in ((first, grids[0], (-1, 1)), (second, grids[1], (1, -1))):
        for index, atom in enumerate(expression.atoms.get(side, ())):
            values[atom] = grid[:, index].reshape(turn)
    shape = (len(grids[0]), len(grids[1]))
    truth = np.broadcast_to(levels(expression.tree, values) == 2, shape)
    one, other = (
        Sets(expression.atoms.get(side, ()), grid)
        for side, grid in zip((first, second), grids, strict=True)
    )
    if len(expression.sides) == 1 and truth.any() and not truth.all():
        return _alone(expression.whole or one.spelled(truth[:, 0]), truth)
    ways = [_by_classes(truth, one, other), _turned(_by_classes(truth.T, other, one))]
    return min(ways, key=_counts).spelled(one, other)


def _alone(condition: str, truth: Bools) -> Products:
    """One side only: one count of the condition itself, not of its complement."""
    form = Form(0, np.ones(1), np.zeros(0), np.zeros((1, 0)))
    classes = _distinct(truth.T), _distinct(np.zeros((0, 1), dtype=np.bool_))
    return Products(((condition,), ()), form, classes)


def assignments(atoms: Sequence[SideAtom]) -> npt.NDArray[np.int8]:
    """Every truth assignment of the atoms (assignments × atoms)."""
    states = [(0, 1, 2) if atom.nullable else (0, 2) for atom in atoms]
    size = math.prod(map(len, states))
    if size > MOST:
        raise UsageError(
            f"the expression has {len(atoms)} conditions on columns of {atoms[0].side}, which "
            f"alternate with the other side's",
            hint="put the conditions of one side together in parentheses",
        )
    return np.array(list(itertools.product(*states)), dtype=np.int8).reshape(size, len(atoms))


@dataclass(frozen=True, eq=False)
class _Split:
    """f as a form over sets of assignments: `left` and `right` are conditions × assignments."""

    left: Bools
    right: Bools
    form: Form

    def spelled(self, one: Sets, other: Sets) -> Products:
        return Products(
            (one.sql_of(self.left), other.sql_of(self.right)),
            self.form,
            (_distinct(self.left), _distinct(self.right)),
        )


def _counts(split: _Split) -> tuple[int, int]:
    sizes = len(split.left), len(split.right)
    return max(sizes), sum(sizes)


def _turned(split: _Split) -> _Split:
    form = split.form
    turned = Form(form.constant, form.right, form.left, form.product.T)
    return _Split(split.right, split.left, turned)


def _by_classes(truth: Bools, one: Sets, other: Sets) -> _Split:
    """By the classes of the rows of a truth table: f = β₀ + Σ α_x·(β_x − β₀)."""
    cofactors, member = np.unique(truth, axis=0, return_inverse=True)
    member = member.reshape(-1)
    rest = _left_out(cofactors, member)
    builder = _Builder(one, other)
    builder.add(1, None, cofactors[rest])
    for x in range(len(cofactors)):
        if x != rest:
            builder.add(1, member == x, cofactors[x])
            builder.add(-1, member == x, cofactors[rest])
    return builder.split(truth.shape)


def _left_out(cofactors: Bools, member: npt.NDArray[np.intp]) -> int:
    """The class that is not counted: one whose cofactor is constant, else the largest."""
    constant = cofactors.all(axis=1) | ~cofactors.any(axis=1)
    sizes = np.bincount(member, minlength=len(cofactors))
    return int(np.argmax(np.where(constant, sizes + sizes.sum(), sizes)))


class _Builder:
    """Sums products of conditions; a condition and its complement are one."""

    def __init__(self, left: Sets, right: Sets) -> None:
        self.left, self.right = left, right
        self.terms: dict[tuple[bytes, bytes], int] = {}
        self.sets: dict[bytes, Bools] = {}

    def add(self, factor: int, one: Bools | None, other: Bools | None) -> None:
        for a, x in self.parts(one, self.left):
            for b, y in self.parts(other, self.right):
                self.terms[a, b] = self.terms.get((a, b), 0) + factor * x * y

    def parts(self, condition: Bools | None, sets: Sets) -> list[tuple[bytes, int]]:
        """A 0/1 condition as constant + sign·kept; the kept one is the shorter of the two."""
        if condition is None or condition.all():
            return [(b"", 1)]
        if not condition.any():
            return []
        shorter = len(sets.spelled(~condition)), bool(condition[0])
        flipped = shorter < (len(sets.spelled(condition)), not condition[0])
        kept = ~condition if flipped else condition
        self.sets[kept.tobytes()] = kept
        return [(b"", 1), (kept.tobytes(), -1)] if flipped else [(kept.tobytes(), 1)]

    def split(self, shape: tuple[int, int]) -> _Split:
        used = {key: factor for key, factor in self.terms.items() if factor}
        left = list(dict.fromkeys(a for a, _ in used if a))
        right = list(dict.fromkeys(b for _, b in used if b))
        full = np.zeros((len(left) + 1, len(right) + 1))
        for (a, b), factor in used.items():
            full[left.index(a) + 1 if a else 0, right.index(b) + 1 if b else 0] = factor
        form = Form(int(full[0, 0]), full[1:, 0], full[0, 1:], full[1:, 1:])
        sides = [
            np.array([self.sets[key] for key in keys], dtype=np.bool_).reshape(len(keys), size)
            for keys, size in zip((left, right), shape, strict=True)
        ]
        return _Split(sides[0], sides[1], form)


def _distinct(sets: Bools) -> Floats:
    """Assignments that no condition tells apart are one class."""
    return np.unique(sets, axis=1).astype(np.float64)


@dataclass(frozen=True)
class Sets:
    """Sets of one side's assignments, in SQL."""

    atoms: tuple[SideAtom, ...]
    grid: npt.NDArray[np.int8]

    def sql_of(self, sets: Bools) -> tuple[str, ...]:
        return tuple(self.spelled(one) for one in sets)

    def spelled(self, inside: Bools) -> str:
        """OR over boxes of states that cover the set, each grown as far as the set allows."""
        index = {tuple(row): number for number, row in enumerate(self.grid.tolist())}
        open_, boxes = inside.copy(), []
        while open_.any():
            box = [[state] for state in self.grid[int(np.argmax(open_))].tolist()]
            for place, atom in enumerate(self.atoms):
                for state in (0, 1, 2) if atom.nullable else (0, 2):
                    grown = [*box[:place], sorted({*box[place], state}), *box[place + 1 :]]
                    if all(inside[index[one]] for one in itertools.product(*grown)):
                        box = grown
            for one in itertools.product(*box):
                open_[index[one]] = False
            boxes.append(box)
        return _any([self._box_sql(box) for box in boxes])

    def _box_sql(self, box: list[list[int]]) -> str:
        parts = []
        for atom, states in zip(self.atoms, box, strict=True):
            if len(states) < 2 + atom.nullable:
                parts.append(STATES[tuple(states)].format(atom.sql))
        return parts[0] if len(parts) == 1 else " AND ".join(f"({part})" for part in parts)


def _any(boxes: list[str]) -> str:
    return boxes[0] if len(boxes) == 1 else " OR ".join(f"({box})" for box in boxes)
