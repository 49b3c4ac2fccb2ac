"""Conditions whose atoms read one attribute each, summed attribute by attribute.

After some attributes have their values, all that matters for the rest is which parts of the
condition are settled. Tuples that agree on that are one state with the sum of their weights. A
DNF of twenty clauses has as many states as there are different sets of clauses still alive, not
as many as there are tuples: it is a decision diagram, built from the top and never stored.

A state has a bit for each And and Or. It is set when the node is settled by one of its parts (an
And is false, an Or is true). A node all of whose attributes have been seen with its bit not set
has the other value, which settles the node above it. Bits below a settled node mean nothing any
more and are set, too, so that equal states look equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints, Words
from voile.query.domain.compare import added
from voile.query.domain.problem import Problem, ProblemAxis, reads
from voile.query.predicate import And, Atom, Predicate, atoms


@dataclass(frozen=True)
class StateNode:
    """An And or an Or of the condition."""

    number: int
    above: int
    is_and: bool
    reads: frozenset[str]
    below: tuple[int, ...]
    """Every node under this one."""


@dataclass(frozen=True, eq=False)
class States:
    """Different states, the open positions that led to them, and their weight."""

    bits: Words
    opened: Ints
    mass: Floats


@dataclass(frozen=True)
class Walk:
    """What came of it: the sums (K, *open positions) and what was done."""

    sums: Floats
    steps: tuple[str, ...]
    most: int
    """Combinations of a state and a position that were looked at in one step, and in all."""
    looked: int
    bytes: int


def fits(problem: Problem) -> bool:
    """Whether every atom reads one attribute, and nothing else reads several."""
    alone = all(atom in problem.truth for formula in problem.formulas for atom in atoms(formula))
    return alone and not problem.joins() and not problem.huge


def walk(problem: Problem, memory: int) -> Walk | None:
    """Sum attribute by attribute, unless the states become too many."""
    root = And(tuple(problem.formulas))
    nodes, placed = numbered(root)
    words = (len(nodes) + 63) // 64
    row = 8 * (4 * words + 3 * problem.batch + 8)
    states = States(
        np.zeros((1, words), np.uint64), np.zeros(1, np.int64), np.ones((problem.batch, 1))
    )
    strides = open_strides(problem)
    seen: set[str] = set()
    steps, widest, looked = [], 1, 0
    for name in order(problem, nodes):
        axis = problem.axes[name]
        rows = len(states.bits) * axis.size
        if row * rows > memory:
            return None
        widest, looked = max(widest, rows), looked + rows
        seen.add(name)
        finished = [n for n in nodes if name in n.reads <= seen]
        settles = settled_by(problem, axis, placed, nodes, words)
        states = step(states, axis, strides.get(name, 0), settles, finished, nodes)
        steps.append(f"sum over {name} ({axis.size} classes): {len(states.bits)} states")
    return Walk(by_position(problem, states), tuple(steps), widest, looked, row * widest)


def numbered(root: And[Predicate]) -> tuple[list[StateNode], list[tuple[Atom, int]]]:
    """Nodes with the one above before those below, and the atoms with the node above them."""
    nodes: list[StateNode] = []
    atoms: list[tuple[Atom, int]] = []

    def visit(part: Predicate, above: int) -> list[int]:
        if isinstance(part, Atom):
            atoms.append((part, above))
            return []
        number = len(nodes)
        place = StateNode(number, above, isinstance(part, And), frozenset(reads(part)), ())
        nodes.append(place)
        below = [n for inner in part.parts for n in visit(inner, number)]
        nodes[number] = StateNode(number, above, place.is_and, place.reads, tuple(below))
        return [number, *below]

    visit(root, -1)
    return nodes, atoms


def order(problem: Problem, nodes: list[StateNode]) -> list[str]:
    """Attributes such that few nodes are begun and not finished at any time."""
    left = list(problem.axes)
    chosen: list[str] = []
    while left:

        def begun(name: str) -> tuple[int, int]:
            seen = {*chosen, name}
            half = sum(1 for n in nodes if n.reads & seen and not n.reads <= seen)
            return half, problem.axes[name].size

        chosen.append(min(left, key=begun))
        left.remove(chosen[-1])
    return chosen


def open_strides(problem: Problem) -> dict[str, int]:
    """How far apart an open attribute's positions are in the result."""
    strides, stride = {}, 1
    for name in reversed(problem.open):
        strides[name] = stride
        stride *= problem.axes[name].size
    return strides


def mask(numbers: tuple[int, ...], words: int) -> Words:
    """Words with the bits of these numbers set."""
    bits = np.zeros(words, np.uint64)
    for number in numbers:
        bits[number // 64] |= np.uint64(1) << np.uint64(number % 64)
    return bits


def settled_by(
    problem: Problem,
    axis: ProblemAxis,
    atoms: list[tuple[Atom, int]],
    nodes: list[StateNode],
    words: int,
) -> Words:
    """(positions, words): the nodes that each position of an attribute settles by itself."""
    bits = np.zeros((axis.size, words), np.uint64)
    for atom, above in atoms:
        if atom.attributes == (axis.name,):
            truth = problem.truth[atom]
            bits[~truth if nodes[above].is_and else truth] |= mask((above,), words)
    return bits


def step(
    states: States,
    axis: ProblemAxis,
    stride: int,
    settles: Words,
    finished: list[StateNode],
    nodes: list[StateNode],
) -> States:
    """Every state with every position of one more attribute; equal states become one."""
    words = settles.shape[-1]
    bits = (states.bits[:, None, :] | settles).reshape(-1, words)
    mass = (states.mass[:, :, None] * axis.weight[:, None, :]).reshape(len(axis.weight), -1)
    for node in reversed(finished):  # from below
        if node.number:
            other = ~settled(bits, node.number)
            bits[other] |= mask((node.above,), words)
            bits |= mask((node.number,), words)
    for node in nodes:  # from above
        if node.below and node.number:
            bits[settled(bits, node.number)] |= mask(node.below, words)
    opened = (states.opened[:, None] + stride * np.arange(axis.size)).ravel()
    kept = np.flatnonzero(~settled(bits, 0))
    return merged(bits[kept], opened[kept], mass[:, kept])


def settled(bits: Words, number: int) -> npt.NDArray[np.bool_]:
    """Which states have a bit set."""
    shifted = bits[:, number // 64] >> np.uint64(number % 64)
    return np.asarray(shifted & np.uint64(1) != 0)


def merged(bits: Words, opened: Ints, mass: Floats) -> States:
    """Equal states as one, with the sum of their weights."""
    key = np.zeros(len(bits), np.int64)
    for column in (opened, *bits.T):
        if column.any():
            _, one = np.unique(column, return_inverse=True)
            if key.any():
                # Both are numbered without gaps, so that together they fit a machine word.
                _, one = np.unique(key * (one.max() + 1) + one, return_inverse=True)
            key = one
    count = int(key.max(initial=-1)) + 1
    first = np.empty(count, np.int64)
    first[key[::-1]] = np.arange(len(key))[::-1]
    return States(bits[first], opened[first], np.stack([added(key, m, count) for m in mass]))


def by_position(problem: Problem, states: States) -> Floats:
    """What is left is true: its weight for each combination of open positions."""
    sizes = [problem.axes[name].size for name in problem.open]
    sums = [added(states.opened, m, math.prod(sizes)) for m in states.mass]
    return np.stack(sums).reshape(-1, *sizes)
