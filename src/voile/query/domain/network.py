"""A sum as a network of small tensors, contracted along a good path.

  * each atom is a 0/1 tensor over the attributes that *it* reads, and a bit where it is under OR;
  * And and Or are gates, tensors over bits, and the bit of each whole condition is pinned to 1;
  * weights are vectors, one for each attribute and each part k of the mixture;
  * the sum over all indices but those of the groups is the result.

Its cost is that of the widest intermediate tensor, whatever the number of clauses (the paper's
third idea, without its exponential inclusion and exclusion). Counts are sums of products of whole
numbers that are not negative, so nothing cancels, and what is below 2⁵³ is exact.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import opt_einsum
import pyarrow as pa

from voile.arrays import Bools, Floats, Ints
from voile.query.domain.compare import Array, Linear, numbers, truths
from voile.query.domain.problem import Problem, ProblemAxis, texts
from voile.query.predicate import And, Atom, Expression, Or, Predicate

# ----------------------------------------------------------------------
# atoms and values on several attributes as arrays over positions


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
    """How many positions each of these attributes has."""
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


# ----------------------------------------------------------------------
# how a sum was or would be computed, for people and for programs


Method = Literal["product", "grid", "elimination", "contraction", "enumeration", "sampling"]


@dataclass(frozen=True)
class PlanPart:
    """One component: conditions that share attributes among them and with no other component."""

    attributes: tuple[str, ...]
    atoms: tuple[str, ...]
    method: Method
    steps: tuple[str, ...] = ()
    """What is summed out in which order, where that was a choice."""
    width: int = 1
    """Elements of the largest tensor."""
    cost: float = 0.0
    """Multiplications, additions, or tuples looked at."""
    bytes: int = 0
    """Memory planned before anything was allocated."""

    def __str__(self) -> str:
        names = ", ".join(self.attributes) or "no attribute"
        head = f"{names}: {self.method}"
        if self.width > 1:
            head += f", {self.width:,} cells wide, about {self.cost:.2g} operations"
        inside = [*(f"  where {atom}" for atom in self.atoms), *(f"  {s}" for s in self.steps)]
        return "\n".join([head, *inside])


@dataclass(frozen=True)
class SumPlan:
    """The components, whose sums multiply, and the attributes that nothing reads."""

    parts: tuple[PlanPart, ...]
    free: tuple[str, ...] = ()

    def __str__(self) -> str:
        free = [f"{', '.join(self.free)}: any value"] if self.free else []
        return "\n".join([*map(str, self.parts), *free])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


# ----------------------------------------------------------------------
# a sum as a network of small tensors, contracted along a good path
#   * each atom is a 0/1 tensor over the attributes that *it* reads, and a bit where it is under OR;
#   * And and Or are gates, tensors over bits, and the bit of each whole condition is pinned to 1;
#   * weights are vectors, one for each attribute and each part k of the mixture;
#   * the sum over all indices but those of the groups is the result.
#
# Its cost is that of the widest intermediate tensor, whatever the number of clauses (the paper's
# third idea, without its exponential inclusion and exclusion). Counts are sums of products of whole
# numbers that are not negative, so nothing cancels, and what is below 2⁵³ is exact.


Index = str | int | tuple[str, str]
"""An attribute, a bit, or the classes of an attribute."""
ONE_HOT = 2**22
"""Elements of a table from positions to classes; larger ones are applied after the sum."""

OR: Floats = np.array([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], dtype=np.float64)
AND: Floats = np.array([[[1, 0], [1, 0]], [[1, 0], [0, 1]]], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Tensor:
    """Indices, and what makes the array once the plan stands."""

    indices: tuple[Index, ...]
    make: Callable[[], Floats]
    batched: bool
    """Whether the array has one more axis in front, for the parts of a mixture."""


@dataclass
class Network:
    """The sum over the domain as a network of tensors, to be contracted."""

    problem: Problem
    reduced: frozenset[str]
    """Open attributes that are summed into their classes on the way."""
    tensors: list[Tensor] = field(default_factory=list)
    sizes: dict[Index, int] = field(default_factory=dict)
    output: tuple[Index, ...] = ()
    _bits: dict[Atom, int] = field(default_factory=dict)
    _path: Sequence[tuple[int, ...]] = ()

    def add(
        self, indices: tuple[Index, ...], make: Callable[[], Floats], *, batched: bool = False
    ) -> None:
        """Add a tensor, which is made when it is needed."""
        self.tensors.append(Tensor(indices, make, batched))

    def weights(self, names: Iterable[str]) -> None:
        """The attributes' weights, and which indices stay open."""
        opened: dict[str, Index] = {}
        for name, axis in self.problem.axes.items():
            self.sizes[name] = axis.size
            indices: tuple[Index, ...] = (name,)
            make = partial(getattr, axis, "weight")
            if name in self.problem.open:
                opened[name] = name
            if name in self.reduced:
                opened[name] = ("classes of", name)
                indices, make = (name, opened[name]), partial(one_hot, axis)
                self.sizes[opened[name]] = axis.classes
            if name in names:
                self.add(indices, make, batched=True)
        self.output = tuple(opened[name] for name in self.problem.open)

    def conditions(self) -> None:
        """Formulas as gates over atoms, values and factors as they are."""
        for formula in self.problem.formulas:
            self._pin(formula)
        for value in self.problem.values:
            self.add(value.attributes, partial(value_tensor, self.problem, value))
        for factor in self.problem.factors:
            self.add(factor.axes, partial(getattr, factor, "array"), batched=True)

    def plan(self, optimize: str = "auto") -> PlanPart:
        """Find a path from the shapes alone."""
        inputs = ",".join("".join(map(self._symbol, t.indices)) for t in self.tensors)
        self._equation = inputs + "->" + "".join(map(self._symbol, self.output))
        shapes = [tuple(self.sizes[i] for i in t.indices) for t in self.tensors]
        self._path, info = opt_einsum.contract_path(
            self._equation, *shapes, shapes=True, optimize=optimize
        )
        width = max(int(info.largest_intermediate), *(math.prod(s) for s in shapes))
        total = 3 * int(info.largest_intermediate) + sum(
            math.prod(shape) * (self.problem.batch if tensor.batched else 1)
            for tensor, shape in zip(self.tensors, shapes, strict=True)
        )
        return PlanPart(
            attributes=self.problem.component.attributes,
            atoms=texts(self.problem.component),
            method="contraction",
            steps=tuple(self._steps()),
            width=width,
            cost=float(info.opt_cost),
            bytes=8 * total,
        )

    def contract(self) -> Floats:
        """Contract as planned, each part of the mixture by itself: (K, *open indices).

        With the parts as one more index, pairs would not be products of matrices any more.
        """
        arrays = [tensor.make() for tensor in self.tensors]
        results = []
        for k in range(self.problem.batch):
            mine = [a[k] if t.batched else a for t, a in zip(self.tensors, arrays, strict=True)]
            results.append(opt_einsum.contract(self._equation, *mine, optimize=self._path))
        return np.stack(results).astype(np.float64, copy=False)

    def _steps(self) -> list[str]:
        """The path in words: which indices are joined, and which are summed over."""
        left = [set(tensor.indices) for tensor in self.tensors]
        steps = []
        for pair in self._path:
            joined = set().union(*(left[i] for i in pair))
            left = [s for i, s in enumerate(left) if i not in pair]
            kept = {i for i in joined if i in self.output or any(i in s for s in left)}
            left.append(kept)
            if gone := spoken(joined - kept):
                bits = sum(isinstance(i, int) for i in kept)
                beside = [*spoken(kept), *([f"{bits} conditions"] if bits else [])]
                steps.append(f"sum over {', '.join(gone)} for each {', '.join(beside) or 'result'}")
        return steps

    def _symbol(self, index: Index) -> str:
        number = list(self.sizes).index(index)
        return str(opt_einsum.get_symbol(number))

    def _new(self) -> int:
        bit = len(self.sizes)
        self.sizes[bit] = 2
        return bit

    def _pin(self, part: Predicate) -> None:
        """The part must be true."""
        if isinstance(part, Atom):
            self._atom(part)
        elif isinstance(part, And):
            for inner in part.parts:
                self._pin(inner)
        else:
            *most, last = (self._bit(inner) for inner in part.parts)
            self.add((self._chain(OR, most), last), lambda: OR[:, :, 1])

    def _atom(self, atom: Atom) -> None:
        """A tensor that is 0 where the atom is not true."""
        if atom in self.problem.bits:
            self.add((self._bit(atom),), lambda: np.array([0.0, 1.0]))
        else:
            self.add(atom.attributes, lambda: atom_truth(self.problem, atom).astype(np.float64))

    def _bit(self, part: Predicate) -> int:
        """An index that is 1 exactly where the part is true."""
        if not isinstance(part, Atom):
            gate = OR if isinstance(part, Or) else AND
            return self._chain(gate, [self._bit(inner) for inner in part.parts])
        if part not in self._bits:
            bit = self._bits[part] = self._new()
            if part in self.problem.bits:
                factor = self.problem.bits[part]
                self.add((*factor.axes, bit), partial(getattr, factor, "array"), batched=True)
            else:
                self.add((*part.attributes, bit), lambda: both(atom_truth(self.problem, part)))
        return self._bits[part]

    def _chain(self, gate: Floats, bits: list[int]) -> int:
        result, *rest = bits
        for bit in rest:
            out = self._new()
            self.add((result, bit, out), lambda: gate)
            result = out
        return result


def spoken(indices: set[Index]) -> list[str]:
    """Attributes and classes among the indices, for people."""
    named = (i for i in indices if not isinstance(i, int))
    return sorted(i if isinstance(i, str) else " ".join(i) for i in named)


def both(truth: np.ndarray) -> Floats:
    """A last axis for the bit: not true, true."""
    return np.stack([~truth, truth], axis=-1).astype(np.float64)


def reduced(problem: Problem) -> frozenset[str]:
    """Open attributes with fewer classes than positions, where the table between fits."""
    axes = [problem.axes[name] for name in problem.open]
    few = (a for a in axes if a.classes < a.size and a.classes * a.size <= ONE_HOT)
    return frozenset(axis.name for axis in few)


def one_hot(axis: ProblemAxis) -> Floats:
    """(K, positions, classes): the weights, each under its class."""
    table = np.zeros((len(axis.weight), axis.size, axis.classes))
    table[:, np.arange(axis.size), axis.label] = axis.weight
    return table


def network_of(problem: Problem) -> Network:
    """The network of a problem: weights and conditions."""
    network = Network(problem, reduced(problem))
    network.weights(problem.axes)
    network.conditions()
    return network
