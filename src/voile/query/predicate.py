"""Expressions of one row as bound trees, and conditions as trees of And and Or over atoms.

What was parsed and bound stays a tree of sqlglot's nodes until an engine renders it in its own
dialect. Nobody changes a node that an expression holds.

NOT is pushed down to the atoms, where it becomes part of their tree. In SQL's three-valued logic a
condition without NOT is true exactly if it is true with every atom that is not true (false, NULL,
or impossible to compute) taken as false. So two values are enough from here on. Who needs all
three joins conditions with Not and Xor, too (see voile.asking).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Union

if TYPE_CHECKING:
    from sqlglot import exp

ROW = "release row"
"""What engines call the row that an expression is about, in case a name could mean another's."""

Part_co = TypeVar("Part_co", covariant=True)
Leaf = TypeVar("Leaf")
Value = TypeVar("Value")

# ---------------------------------------------------------------------- expressions of one row


@dataclass(frozen=True, eq=False, repr=False)
class Expression:
    """Any expression of one row, and the attributes it reads, in the schema's order.

    Two are equal if they are written alike once they are bound.
    """

    node: exp.Expr
    """Never to be changed: whoever makes an expression gives the node away."""
    attributes: tuple[str, ...]
    text: str = ""
    """As the analyst wrote it, for messages."""
    start: int | None = None
    """Where in the query it was written."""

    @cached_property
    def canonical(self) -> str:
        """The bound tree in the dialect of questions: what equal expressions share."""
        from voile.query.text import written  # noqa: PLC0415  (only queries need sqlglot)

        return written(self.node)

    @cached_property
    def subqueries(self) -> int:
        """How many there are; EXISTS counts for itself."""
        from sqlglot import exp  # noqa: PLC0415  (only queries need sqlglot)

        return sum(isinstance(node, exp.Select | exp.Exists) for node in self.node.walk())

    @property
    def is_column(self) -> bool:
        """Whether it is a column of the row, and nothing else."""
        from sqlglot import exp  # noqa: PLC0415  (only queries need sqlglot)

        return isinstance(self.node, exp.Column)

    def without_not(self) -> Self:
        """What stands under a NOT in front of everything; itself, where there is none."""
        from sqlglot import exp  # noqa: PLC0415  (only queries need sqlglot)

        under = self.node.this if isinstance(self.node, exp.Not) else None
        if not isinstance(under, exp.Paren):
            return self
        return replace(self, node=under.this.copy())

    @classmethod
    def from_canonical(
        cls, canonical: str, attributes: tuple[str, ...], text: str, start: int | None
    ) -> Self:
        """An expression as it is written; its tree is read when somebody needs it."""
        found = cls.__new__(cls)
        parts = {"canonical": canonical, "attributes": attributes, "text": text, "start": start}
        found.__dict__.update(parts)  # where a cached property keeps its value, too
        return found

    def __getattr__(self, name: str) -> Any:
        """The tree of an expression that came without."""
        if name != "node" or "canonical" not in self.__dict__:
            raise AttributeError(name)
        from voile.query.text import read_back  # noqa: PLC0415  (only queries need sqlglot)

        found = self.__dict__["node"] = read_back(self.canonical)
        return found

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Expression)
            and type(self) is type(other)
            and self.canonical == other.canonical
            and self.attributes == other.attributes
        )

    def __hash__(self) -> int:
        return hash((self.canonical, self.attributes))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sql={self.canonical!r}, attributes={self.attributes!r})"


class Atom(Expression):
    """Any condition on one row that is not taken apart."""


def column(name: str) -> Expression:
    """An attribute by itself."""
    from sqlglot import exp  # noqa: PLC0415  (only queries need sqlglot)

    return Expression(exp.column(exp.to_identifier(name, quoted=True)), (name,))


def present(value: Expression) -> Atom:
    """Where a value is not NULL."""
    from sqlglot import exp  # noqa: PLC0415  (only queries need sqlglot)

    missing = exp.Is(this=exp.paren(value.node), expression=exp.Null())
    return Atom(exp.Not(this=missing), value.attributes, f"{wording(value)} is not null")


def wording(part: Expression) -> str:
    """As the analyst wrote it, where that is known."""
    return part.text or part.canonical


# ---------------------------------------------------------------------- conditions


@dataclass(frozen=True)
class And(Generic[Part_co]):
    """All parts hold; without parts it is true."""

    parts: tuple[Part_co, ...]


@dataclass(frozen=True)
class Or(Generic[Part_co]):
    """Some part holds; without parts it is false."""

    parts: tuple[Part_co, ...]


@dataclass(frozen=True)
class Not(Generic[Part_co]):
    """The part does not hold."""

    part: Part_co


@dataclass(frozen=True)
class Xor(Generic[Part_co]):
    """Exactly one of two parts holds."""

    left: Part_co
    right: Part_co


Joined = Union[Leaf, "And[Joined[Leaf]]", "Or[Joined[Leaf]]"]
"""Leaves of any kind, joined by And and Or."""
Predicate = Union[Atom, "And[Predicate]", "Or[Predicate]"]
"""A condition on one row: an atom reads a few attributes, `And` and `Or` join conditions."""
TRUE: And[Any] = And(())
FALSE: Or[Any] = Or(())


@dataclass(frozen=True)
class Term:
    """What is summed over rows or over the domain: 1 where the predicate is true, times values.

    A value that is NULL on a row contributes nothing there.
    """

    predicate: Predicate | None = None
    values: tuple[Expression, ...] = ()

    @property
    def subqueries(self) -> int:
        """How many its predicate and its values have."""
        conditions = atoms(self.predicate) if self.predicate else ()
        return sum(part.subqueries for part in (*conditions, *self.values))


def folded(
    tree: Joined[Leaf],
    leaf: Callable[[Leaf], Value],
    every: Callable[[Sequence[Value]], Value],
    some: Callable[[Sequence[Value]], Value],
) -> Value:
    """A condition from its leaves up: `every` joins the parts of And, `some` those of Or."""
    if isinstance(tree, And | Or):
        join = every if isinstance(tree, And) else some
        return join([folded(part, leaf, every, some) for part in tree.parts])
    return leaf(tree)


def atoms(predicate: Predicate) -> Iterator[Atom]:
    """The atoms of a predicate, from left to right."""
    if isinstance(predicate, Atom):
        yield predicate
    else:
        for part in predicate.parts:
            yield from atoms(part)


def attributes(predicate: Predicate) -> set[str]:
    """The names of all attributes that a predicate reads."""
    return {name for atom in atoms(predicate) for name in atom.attributes}


def in_words(predicate: Predicate) -> str:
    """The condition as the analyst wrote it."""
    if isinstance(predicate, Atom):
        return wording(predicate)
    word = " and " if isinstance(predicate, And) else " or "
    return "(" + word.join(map(in_words, predicate.parts)) + ")"


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """The parts of an AND, or the predicate alone."""
    return predicate.parts if isinstance(predicate, And) else (predicate,)


def both(left: Predicate | None, right: Predicate | None) -> Predicate | None:
    """Left and right; a predicate that is absent is true."""
    parts = [part for side in (left, right) if side for part in conjuncts(side)]
    unique = tuple(dict.fromkeys(parts))
    return And(unique) if len(unique) > 1 else unique[0] if unique else None


def as_atom(predicate: Predicate, names: Sequence[str]) -> Atom:
    """A whole condition as one atom that reads these attributes."""
    return predicate if isinstance(predicate, Atom) else Atom(as_node(predicate), tuple(names))


def as_node(predicate: Predicate) -> exp.Expr:
    """A condition as one tree, in which an atom that cannot be computed is NULL."""
    from sqlglot import exp  # noqa: PLC0415  (only queries need sqlglot)

    if isinstance(predicate, Atom):
        return exp.Try(this=predicate.node.copy())
    if not predicate.parts:
        return exp.true() if isinstance(predicate, And) else exp.false()
    join = exp.and_ if isinstance(predicate, And) else exp.or_
    return exp.Paren(this=join(*map(as_node, predicate.parts), copy=False, wrap=False))
