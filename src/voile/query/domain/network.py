"""A sum as a network of small tensors, contracted along a good path.

  * each atom is a 0/1 tensor over the attributes that *it* reads, and a bit where it is under OR;
  * And and Or are gates, tensors over bits, and the bit of each whole condition is pinned to 1;
  * weights are vectors, one for each attribute and each part k of the mixture;
  * the sum over all indices but those of the groups is what is asked for.

Its cost is that of the widest intermediate tensor, whatever the number of clauses (the paper's
third idea, without its exponential inclusion and exclusion). Counts are sums of products of whole
numbers that are not negative, so nothing cancels, and what is below 2⁵³ is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import opt_einsum

from voile.arrays import Floats
from voile.query.domain.plan import Part
from voile.query.domain.problem import Axis, Problem
from voile.query.domain.split import texts
from voile.query.domain.tensors import atom_truth, value_tensor
from voile.query.predicate import And, Atom, Or, Predicate

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

    def plan(self, optimize: str = "auto") -> Part:
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
        return Part(
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


def one_hot(axis: Axis) -> Floats:
    """(K, positions, classes): the weights, each under its class."""
    table = np.zeros((len(axis.weight), axis.size, axis.classes))
    table[:, np.arange(axis.size), axis.label] = axis.weight
    return table


def network_of(problem: Problem) -> Network:
    network = Network(problem, reduced(problem))
    network.weights(problem.axes)
    network.conditions()
    return network
