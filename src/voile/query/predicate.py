"""A condition as a tree of And and Or over atoms.

NOT is pushed down to the atoms, where it becomes part of their SQL. In SQL's three-valued logic a
tree without NOT is true exactly if it is true with every atom that is not true (false, NULL, or
impossible to compute) taken as false. So two values are enough from here on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
SUBQUERY = re.compile(r"\(\s*SELECT\b|\bEXISTS\b", re.IGNORECASE)
ROW = "release row"
"""What engines call the row that an expression is about, in case a name could mean another's."""


@dataclass(frozen=True)
class Atom:
    """Any SQL condition on one row, and the attributes it reads, in the schema's order."""

    sql: str
    attributes: tuple[str, ...]
    text: str = field(default="", compare=False, repr=False)
    """As the analyst wrote it, for messages."""
    start: int | None = field(default=None, compare=False, repr=False)
    """Where in the query it was written."""


@dataclass(frozen=True)
class Expression:
    """Any SQL expression of one row, and the attributes it reads, in the schema's order."""

    sql: str
    attributes: tuple[str, ...]
    text: str = field(default="", compare=False, repr=False)
    """As the analyst wrote it, for messages."""
    start: int | None = field(default=None, compare=False, repr=False)
    """Where in the query it was written."""


@dataclass(frozen=True)
class And:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Predicate, ...]


Predicate = Atom | And | Or
"""A condition on one row: an atom reads a few attributes, `And` and `Or` join conditions."""


@dataclass(frozen=True)
class Term:
    """What is summed over rows or over the domain: 1 where the predicate is true, times values.

    A value that is NULL on a row contributes nothing there.
    """

    predicate: Predicate | None = None
    values: tuple[Expression, ...] = ()


def wording(part: Atom | Expression) -> str:
    return part.text or part.sql


def atoms(predicate: Predicate) -> Iterator[Atom]:
    if isinstance(predicate, Atom):
        yield predicate
    else:
        for part in predicate.parts:
            yield from atoms(part)


def attributes(predicate: Predicate) -> set[str]:
    return {name for atom in atoms(predicate) for name in atom.attributes}


def to_sql(predicate: Predicate) -> str:
    """The condition for an engine; an atom that cannot be computed on a row is not true there."""
    if isinstance(predicate, Atom):
        return guarded(predicate.sql)
    word = " AND " if isinstance(predicate, And) else " OR "
    return "(" + word.join(to_sql(part) for part in predicate.parts) + ")"


def guarded(sql: str) -> str:
    """NULL where the expression cannot be computed; DuckDB has no such guard for subqueries."""
    return f"({sql})" if has_subquery(sql) else f"TRY({sql})"


def subqueries(sql: str) -> int:
    """How many there are; words in quotes are none."""
    return len(SUBQUERY.findall(QUOTED.sub("", sql)))


def has_subquery(sql: str) -> bool:
    return subqueries(sql) > 0


def in_words(predicate: Predicate) -> str:
    """The condition as the analyst wrote it."""
    if isinstance(predicate, Atom):
        return wording(predicate)
    word = " and " if isinstance(predicate, And) else " or "
    return "(" + word.join(map(in_words, predicate.parts)) + ")"


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, And) else (predicate,)


def both(left: Predicate | None, right: Predicate | None) -> Predicate | None:
    """Left and right; a predicate that is absent is true."""
    parts = [part for side in (left, right) if side for part in conjuncts(side)]
    unique = tuple(dict.fromkeys(parts))
    return And(unique) if len(unique) > 1 else unique[0] if unique else None
