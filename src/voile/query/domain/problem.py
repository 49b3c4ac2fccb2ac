"""What is left to sum over: attributes as axes, and what reads several of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from voile.arrays import Bools, Floats, Ints
from voile.query.domain.compare import DomainEngine, Linear, added
from voile.query.predicate import And, Atom, Expression, Predicate, Term, atoms, attributes
from voile.schema import Schema

# ----------------------------------------------------------------------
# conditions, values and groups to components that share no attribute
# Components are independent, so their sums multiply (VLDB 2007, §4.1).


Piece = Predicate | Expression


@dataclass(frozen=True)
class Component:
    """What reads a set of attributes that nothing else reads."""

    attributes: tuple[str, ...]
    parts: tuple[Predicate, ...] = ()
    """Conditions that must all be true."""
    values: tuple[Expression, ...] = ()
    groups: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class PlacedComponent:
    """A component, and which of the call's group expressions its groups are."""

    component: Component
    places: tuple[int, ...]


def flat(predicate: Predicate | None) -> Iterator[Predicate]:
    """The parts of nested ANDs."""
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from flat(part)
    elif predicate is not None:
        yield predicate


def reads(piece: Piece) -> set[str]:
    """The names of the attributes that a condition or an expression reads."""
    return set(piece.attributes) if isinstance(piece, Expression) else attributes(piece)


def split(term: Term, groups: Sequence[Expression], schema: Schema) -> list[PlacedComponent]:
    """Components of a term, in the schema's order of their first attributes."""
    parts = list(dict.fromkeys(flat(term.predicate)))
    pieces: list[Piece] = [*parts, *term.values, *groups]
    names = [reads(piece) for piece in pieces]
    root = connected(names)
    places = {name: i for i, name in enumerate(schema.names)}
    found = []
    for number in sorted(set(root), key=lambda r: min((places[n] for n in names[r]), default=-1)):
        members = [i for i, r in enumerate(root) if r == number]
        inside = set().union(*(names[i] for i in members))
        first_group = len(parts) + len(term.values)
        component = Component(
            attributes=tuple(n for n in schema.names if n in inside),
            parts=tuple(parts[i] for i in members if i < len(parts)),
            values=tuple(
                term.values[i - len(parts)] for i in members if len(parts) <= i < first_group
            ),
            groups=tuple(groups[i - first_group] for i in members if i >= first_group),
        )
        mine = tuple(i - first_group for i in members if i >= first_group)
        found.append(PlacedComponent(component, mine))
    return found


def connected(names: Sequence[set[str]]) -> list[int]:
    """For each set the number of the first one that it is connected to."""
    root = list(range(len(names)))
    owner: dict[str, int] = {}
    for i, inside in enumerate(names):
        for name in inside:
            old, new = root[owner.setdefault(name, i)], root[i]
            if old != new:
                low, high = min(old, new), max(old, new)
                root = [low if r == high else r for r in root]
    return root


def texts(component: Component) -> tuple[str, ...]:
    """The atoms of a component as SQL, each once."""
    return tuple(dict.fromkeys(a.canonical for part in component.parts for a in atoms(part)))


# ----------------------------------------------------------------------
# what is left to sum over: attributes as axes, and what reads several of them


@dataclass(frozen=True, eq=False)
class ProblemAxis:
    """An attribute as the sum sees it: positions, each standing for one or more of its values."""

    name: str
    codes: Ints
    """For each position a value that it stands for."""
    weight: Floats
    """(K, positions)."""
    label: Ints
    """The class of each position: conditions and groups on this attribute alone see only those."""
    first: Ints
    """For each class its first position."""

    @property
    def size(self) -> int:
        """How many positions there are."""
        return len(self.codes)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return len(self.first)

    def coarse(self) -> ProblemAxis:
        """One position for each class."""
        weight = np.stack([added(self.label, w, self.classes) for w in self.weight])
        every = np.arange(self.classes)
        return ProblemAxis(self.name, self.codes[self.first], weight, every, every)

    def weighed(self, factor: Floats) -> ProblemAxis:
        """Weights times a factor, without the positions where nothing is left."""
        weight = self.weight * factor
        kept = np.flatnonzero((weight != 0).any(axis=0))
        label, first = classed(self.label[kept])
        return ProblemAxis(self.name, self.codes[kept], weight[:, kept], label, first)


@dataclass(frozen=True, eq=False)
class TermGroup:
    """A group expression: the code of its value on each tuple of the attributes that it reads."""

    attributes: tuple[str, ...]
    shape: tuple[int, ...]
    codes: Ints
    size: int


@dataclass(frozen=True, eq=False)
class Factor:
    """A tensor over positions: (K, *axes), or (K, *axes, 2) where it is an atom's bit."""

    axes: tuple[str, ...]
    array: Floats


@dataclass
class Problem:
    """Σ over positions of Π weights · 1[all formulas] · Π values · Π factors."""

    schema: Schema
    engine: DomainEngine
    component: Component
    batch: int
    groups: list[TermGroup]
    axes: dict[str, ProblemAxis] = field(default_factory=dict)
    scale: Floats = field(default_factory=lambda: np.ones(1))
    formulas: list[Predicate] = field(default_factory=list)
    truth: dict[Atom, Bools] = field(default_factory=dict)
    """Atoms under OR on one attribute, on its positions."""
    joint: dict[Atom, Linear | None] = field(default_factory=dict)
    """Atoms on several attributes; taken apart where possible."""
    values: list[Expression] = field(default_factory=list)
    factors: list[Factor] = field(default_factory=list)
    bits: dict[Atom, Factor] = field(default_factory=dict)
    """Atoms that some attributes were summed out of."""
    huge: tuple[str, ...] = ()
    """Attributes too large to be listed at all."""
    dense: dict[Any, Any] = field(default_factory=dict)

    @property
    def open(self) -> tuple[str, ...]:
        """The attributes that groups read."""
        named = {name for group in self.groups for name in group.attributes}
        return tuple(name for name in self.component.attributes if name in named)

    @property
    def cells(self) -> int:
        """How many combinations of positions there are."""
        return math.prod(axis.size for axis in self.axes.values())

    def copy(self) -> Problem:
        """For changes that may have to be taken back."""
        return replace(
            self,
            axes=dict(self.axes),
            formulas=list(self.formulas),
            truth=dict(self.truth),
            factors=list(self.factors),
            bits=dict(self.bits),
            dense={},
        )

    def joins(self) -> list[tuple[str, ...]]:
        """The sets of attributes that something reads together."""
        return [
            *(self.bits[a].axes if a in self.bits else a.attributes for a in self.joint_atoms()),
            *(value.attributes for value in self.values),
            *(factor.axes for factor in self.factors),
            *(group.attributes for group in self.groups if len(group.attributes) > 1),
        ]

    def joint_atoms(self) -> list[Atom]:
        """The atoms that read several attributes, once."""
        found = (a for formula in self.formulas for a in atoms(formula))
        return list(dict.fromkeys(a for a in found if a in self.joint))

    def coarsen(self) -> None:
        """Classes instead of values, where nothing reads an attribute together with others.

        What nothing reads any more is only a factor.
        """
        together = {name for join in self.joins() for name in join}
        read = together.union(self.open, *(reads(formula) for formula in self.formulas))
        for name, axis in list(self.axes.items()):
            if name not in read:
                self.scale = self.scale * axis.weight.sum(axis=1)
                del self.axes[name]
            elif name not in together:
                self.reshape(axis.coarse(), axis.first)

    def reshape(self, axis: ProblemAxis, kept: Ints) -> None:
        """Put in another axis for an attribute whose positions are some of the old ones."""
        for atom, truth in self.truth.items():
            if atom.attributes == (axis.name,):
                self.truth[atom] = truth[kept]
        self.axes[axis.name] = axis


def classed(label: Ints) -> tuple[Ints, Ints]:
    """Labels renumbered without gaps, and the first position of each."""
    if not label.any():
        return label, np.arange(min(1, len(label)))
    if label.max() > 4 * len(label) + 1024:
        _, first, numbered = np.unique(label, return_index=True, return_inverse=True)
        return numbered.astype(np.int64), first.astype(np.int64)
    numbered = (np.cumsum(np.bincount(label) > 0) - 1)[label]
    first = np.empty(int(numbered.max()) + 1, np.int64)
    first[numbered[::-1]] = np.arange(len(label))[::-1]
    return numbered, first
