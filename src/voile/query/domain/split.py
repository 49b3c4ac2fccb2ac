"""Conditions, values and groups to components that share no attribute.

Components are independent, so their sums multiply (VLDB 2007, §4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from voile.query.predicate import And, Expression, Predicate, Term, atoms, attributes
from voile.schema import Schema

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
class Placed:
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
    return set(piece.attributes) if isinstance(piece, Expression) else attributes(piece)


def split(term: Term, groups: Sequence[Expression], schema: Schema) -> list[Placed]:
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
        found.append(Placed(component, mine))
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
