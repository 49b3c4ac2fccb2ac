"""Attributes summed out of comparisons without listing any product.

An attribute that a comparison Σ values op 0 reads, and nothing else reads together with others,
is replaced by the distribution of its values: how much weight lies below each number. Several
such attributes of one comparison are convolved first. So `x < y` costs a sort and a lookup for
each y, a chain x < y AND y < z one after the other, and `a + b + c < 100` a convolution.

An attribute whose classes matter (groups, or conditions under OR on it alone) leaves its classes
behind: the distribution is kept for each class. Under OR, both the weight for which the
comparison is true and that for which it is not are kept, each summed up by itself, so that
nothing cancels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voile.arrays import Bools, Floats, Ints
from voile.query.domain.compare import OPPOSITE, Linear, added
from voile.query.domain.network import linear_sum
from voile.query.domain.problem import Factor, Problem, ProblemAxis
from voile.query.predicate import Atom, atoms

CONVOLVED = 4 * 10**9
"""Multiplications that convolving two distributions may take."""
LISTED = 10**7
"""Pairs of values that are listed to convolve distributions with wide gaps."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """Weight on whole numbers: (K, classes, numbers), and apart from it what is not valid."""

    numbers: Ints
    mass: Floats
    invalid: Floats

    @property
    def contiguous(self) -> bool:
        """Whether its numbers follow each other without gaps."""
        return len(self.numbers) == 0 or span(self.numbers) == len(self.numbers)

    def places(self, sought: Ints) -> tuple[Ints, Ints]:
        """How many numbers are below, and how many are at most, each of those sought."""
        if len(self.numbers) and self.contiguous:
            below = np.clip(sought - self.numbers[0], 0, len(self.numbers))
            until = np.clip(sought - (self.numbers[0] - 1), 0, len(self.numbers))
            return below, until
        return (
            np.searchsorted(self.numbers, sought, side="left"),
            np.searchsorted(self.numbers, sought, side="right"),
        )

    def compared(self, operator: str, places: tuple[Ints, Ints]) -> Floats:
        """The weight of the numbers that are `operator` each of those sought: (K, classes, …)."""
        below, until = places
        if operator == "=":
            padded = np.pad(self.mass, [(0, 0), (0, 0), (0, 1)])
            return padded[..., below] * (until > below)
        if operator == "<>":
            return self._below()[..., below] + self._above()[..., until]
        if operator in ("<", "<="):
            return self._below()[..., below if operator == "<" else until]
        return self._above()[..., until if operator == ">" else below]

    def _below(self) -> Floats:
        return np.cumsum(np.pad(self.mass, [(0, 0), (0, 0), (1, 0)]), axis=-1)

    def _above(self) -> Floats:
        backwards = np.pad(self.mass[..., ::-1], [(0, 0), (0, 0), (1, 0)])
        return np.cumsum(backwards, axis=-1)[..., ::-1]


def span(numbers: Ints) -> int:
    """How many whole numbers lie from the first to the last."""
    return int(numbers[-1]) - int(numbers[0]) + 1


def distribution(axis: ProblemAxis, values: Ints, valid: Bools, *, by_class: bool) -> Distribution:
    """How an attribute's weight lies on the values of its term."""
    label, classes = (axis.label, axis.classes) if by_class else (np.zeros_like(axis.label), 1)
    kept = np.flatnonzero(valid)
    invalid = np.stack([added(label, w * ~valid, classes) for w in axis.weight])
    numbers, place = numbered(values[kept])
    cells = label[kept] * len(numbers) + place
    mass = [added(cells, w[kept], classes * len(numbers)) for w in axis.weight]
    shape = (len(mass), classes, len(numbers))
    return Distribution(numbers, np.stack(mass).reshape(shape), invalid)


def numbered(values: Ints) -> tuple[Ints, Ints]:
    """Increasing numbers with all the values among them, and each value's place there."""
    if len(values) and int(values.max()) - int(values.min()) < 4 * len(values) + 1024:
        return np.arange(values.min(), values.max() + 1), values - values.min()
    numbers, place = np.unique(values, return_inverse=True)
    return numbers, place


def convolution(one: Distribution, other: Distribution) -> Distribution:
    """The distribution of the sum; `one` may have classes, `other` has a single one."""
    invalid = one.invalid * (other.invalid + other.mass.sum(axis=-1))
    invalid = invalid + one.mass.sum(axis=-1) * other.invalid
    if not len(one.numbers) or not len(other.numbers):
        return Distribution(one.numbers[:0], one.mass[..., :0], invalid)
    if one.contiguous and other.contiguous:
        mass = np.stack(
            [
                np.stack([np.convolve(m, o[0]) for m in ms])
                for ms, o in zip(one.mass, other.mass, strict=True)
            ]
        )
        low = one.numbers[0] + other.numbers[0]
        return Distribution(np.arange(low, low + mass.shape[-1]), mass, invalid)
    numbers, place = numbered((one.numbers[:, None] + other.numbers).ravel())
    mass = np.stack(
        [
            np.stack([added(place, np.outer(m, o[0]).ravel(), len(numbers)) for m in ms])
            for ms, o in zip(one.mass, other.mass, strict=True)
        ]
    )
    return Distribution(numbers, mass, invalid)


def convolution_cost(one: Distribution, other: Distribution) -> float:
    """How many operations a convolution takes, weighted by how slow they are."""
    pairs = float(one.mass.size) * len(other.numbers)
    return pairs if one.contiguous and other.contiguous else pairs * CONVOLVED / LISTED


@dataclass(frozen=True)
class Step:
    """What is summed out of an atom: attributes that vanish, perhaps one that leaves classes."""

    atom: Atom
    gone: tuple[str, ...]
    classed: str | None
    shared: tuple[str, ...]
    elements: int

    def __str__(self) -> str:
        into = [*self.shared, *([f"classes of {self.classed}"] if self.classed else [])]
        out = [*self.gone, *([self.classed] if self.classed else [])]
        return f"{self.atom.canonical}: sum over {', '.join(out)} for each {', '.join(into)}"


def eliminate(problem: Problem, memory: int) -> list[Step]:
    """Sum out what can be, the smallest results first; the problem is changed in place."""
    taken: list[Step] = []
    while True:
        steps = [s for a in problem.joint_atoms() if (s := step_of(problem, a, memory))]
        done = next((s for s in sorted(steps, key=lambda s: s.elements) if apply(problem, s)), None)
        if done is None:
            return taken
        taken.append(done)
        problem.coarsen()


def step_of(problem: Problem, atom: Atom, memory: int) -> Step | None:
    """What can be summed out of an atom, and into how large a tensor, if that fits."""
    linear = problem.joint[atom]
    if linear is None or atom in problem.bits:
        return None
    joins = problem.joins()
    private = [n for n in atom.attributes if sum(n in join for join in joins) == 1]
    lasting = {n: n in problem.open or problem.axes[n].classes > 1 for n in atom.attributes}
    shared = [n for n in atom.attributes if n not in private]
    if not shared and private:
        kept = max(private, key=lambda n: (lasting[n], problem.axes[n].size))
        private.remove(kept)
        shared.append(kept)
    gone = tuple(n for n in private if not lasting[n])
    rest = [n for n in private if lasting[n] and 2 * problem.axes[n].classes < problem.axes[n].size]
    classed = min(rest, key=lambda n: problem.axes[n].classes, default=None)
    for left in (classed, None):  # with classes left behind, or without if those are too many
        if gone or left:
            stay = tuple(n for n in atom.attributes if n not in gone and n != left)
            elements = math.prod(problem.axes[n].size for n in stay)
            elements *= problem.axes[left].classes if left else 1
            step = Step(atom, gone, left, stay, elements)
            if bytes_of(problem, step) <= memory:
                return step
    return None


def bytes_of(problem: Problem, step: Step) -> int:
    """At most: the tensor with its indices, and the distribution with its sums from both ends."""
    out = [*step.gone, *([step.classed] if step.classed else [])]
    numbers = sum(4 * problem.axes[n].size + 1024 for n in out)
    classes = problem.axes[step.classed].classes if step.classed else 1
    return 64 * problem.batch * step.elements + 32 * problem.batch * classes * numbers


def apply(problem: Problem, step: Step) -> bool:
    """Sum out as planned, unless the convolution would cost too much."""
    linear = problem.joint[step.atom]
    assert linear is not None  # noqa: S101
    weight = combined(problem, step, linear)
    if weight is None:
        return False
    axes = (*((step.classed,) if step.classed else ()), *step.shared)
    total, valid = linear_sum(problem, linear, step.shared)
    places = weight.places(-total)
    true = weight.compared(linear.operator, places) * valid
    under_or = any(step.atom in atoms(f) for f in problem.formulas if f != step.atom)
    if under_or:
        untrue = weight.compared(OPPOSITE[linear.operator], places)
        flat = (*weight.invalid.shape, *(1,) * total.ndim)
        everything = (weight.mass.sum(axis=-1) + weight.invalid).reshape(flat)
        untrue = np.where(valid, untrue + weight.invalid.reshape(flat), everything)
        array = np.stack([untrue, true], axis=-1)
        problem.bits[step.atom] = Factor(axes, array if step.classed else array[:, 0])
    else:
        problem.formulas.remove(step.atom)
        found = Factor(axes, true if step.classed else true[:, 0])
        if len(axes) == 1:
            weigh(problem, found)
        else:
            problem.factors.append(found)
    remove(problem, step)
    return True


def combined(problem: Problem, step: Step, linear: Linear) -> Distribution | None:
    """The distribution of the sum of what is summed out."""

    def of(name: str, *, by_class: bool) -> Distribution:
        axis = problem.axes[name]
        values, valid = linear.values[name][axis.codes], linear.valid[name][axis.codes]
        return distribution(axis, values, valid, by_class=by_class)

    parts = sorted((of(name, by_class=False) for name in step.gone), key=lambda d: len(d.numbers))
    if step.classed:
        parts.insert(0, of(step.classed, by_class=True))
    return convolved(parts)


def convolved(parts: Sequence[Distribution]) -> Distribution | None:
    """The distribution of a sum; None where it would cost too much."""
    result = parts[0]
    for part in parts[1:]:
        if convolution_cost(result, part) > CONVOLVED:
            return None
        result = convolution(result, part)
    return result


def weigh(problem: Problem, factor: Factor) -> None:
    """A factor on one attribute is part of its weights."""
    axis = problem.axes[factor.axes[0]]
    kept = np.flatnonzero((axis.weight * factor.array != 0).any(axis=0))
    problem.reshape(axis.weighed(factor.array), kept)


def remove(problem: Problem, step: Step) -> None:
    """Take the attributes out whose weight is now in the tensor."""
    for name in step.gone:
        del problem.axes[name]
    if step.classed:
        axis = problem.axes[step.classed]
        every = np.arange(axis.classes)
        ones = np.ones((problem.batch, axis.classes))
        coarse = ProblemAxis(axis.name, axis.codes[axis.first], ones, every, every)
        problem.reshape(coarse, axis.first)
