"""A Boolean function of two servers' columns: read, and taken apart into each side's conditions.

`A.smoker and not B.cancer` reads column smoker of server A and cancer of server B. A part that
reads one side only is an *atom*: any SQL condition of that side, the server's own matter. AND, OR,
NOT, XOR, and = and <> between conditions join them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Union

import numpy as np
import numpy.typing as npt
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from voile.errors import QueryError, UsageError, did_you_mean
from voile.query import strict
from voile.query.bind import Binder
from voile.query.predicate import And, Not, Or, Xor
from voile.query.text import Dialect, UnwrittenError, place, refusal, short, too_deep, written
from voile.schema import Schema

Levels = npt.NDArray[np.int8]
"""SQL's truth values: 0 false, 1 unknown, 2 true. AND is the lesser, OR the greater."""

SHAPE = "write a condition such as A.smoker and not B.cancer, with A and B given by --db"
LONGEST = 10_000
MOST = 4096
"""Truth assignments of one side's atoms."""
TERNARY = (
    "the method does not extend to ternary functions: a function may read two servers; ask about "
    "two at a time"
)
COMPARED = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip
CONDITIONS = (
    *COMPARED, exp.And, exp.Or, exp.Xor, exp.Not, exp.Boolean, exp.Between, exp.In, exp.Is,
    exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.Glob, exp.StartsWith,
    exp.EndsWith, exp.Contains, exp.RegexpFullMatch,
)  # fmt: skip
"""What is true, false or unknown of a row; else a column must be of kind boolean."""
JOINTS = (exp.And, exp.Or, exp.Xor, exp.Not)
NEVER_NULL = (
    *COMPARED, exp.And, exp.Or, exp.Xor, exp.Not, exp.Paren, exp.Boolean, exp.Between, exp.In,
    exp.Is, exp.Like, exp.Column, exp.Identifier, exp.Literal, exp.Neg, exp.Add, exp.Sub,
)  # fmt: skip
"""What has a value wherever its columns have."""


@dataclass(frozen=True)
class SideAtom:
    """A condition of one side: its SQL there, and whether it may be unknown of a row."""

    side: str
    sql: str
    nullable: bool


Tree = Union[SideAtom, bool, None, "And[Tree]", "Or[Tree]", "Not[Tree]", "Xor[Tree]"]
"""In three-valued logic; None is NULL."""


@dataclass(frozen=True)
class BooleanFunction:
    """A Boolean function of at most two sides."""

    text: str
    tree: Tree
    sides: tuple[str, ...]
    """Those that it reads, in the order in which the servers were given."""
    atoms: Mapping[str, tuple[SideAtom, ...]]
    """Of each side that it reads."""
    remarks: tuple[str, ...] = ()
    """What the analyst should know and is not wrong."""
    whole: str | None = None
    """Where it reads one side only, without XOR and constants: its SQL, as it was written."""


def read(text: str, schemas: Mapping[str, Schema]) -> BooleanFunction:
    """Read an expression over these servers' columns; refuse with the place in the text."""
    tree = parsed(text)
    try:
        reader = _Reader(text, schemas)
        found = reader.tree(tree)
        if not reader.is_small():
            reader = _Reader(text, schemas, coarse=True)
            found = reader.tree(tree)
    except RecursionError:
        raise too_deep() from None
    sides = tuple(name for name in schemas if reader.atoms.get(name))
    atoms = {name: tuple(reader.atoms[name]) for name in sides}
    remarks = tuple(dict.fromkeys(reader.remarks))
    whole = whole_condition(text, schemas, tree, found)
    return BooleanFunction(text, found, sides, atoms, remarks, whole)


def whole_condition(
    text: str, schemas: Mapping[str, Schema], tree: exp.Expr, found: Tree
) -> str | None:
    """The SQL of an expression that reads one side: AND, OR and NOT are the server's own words."""
    if not is_plain(found):
        return None
    whole = _Reader(text, schemas, coarse=True).tree(tree)
    return whole.sql if isinstance(whole, SideAtom) else None


def is_plain(tree: Tree) -> bool:
    """Whether it has neither XOR nor constants."""
    match tree:
        case And(parts) | Or(parts):
            return all(map(is_plain, parts))
        case Not(part):
            return is_plain(part)
    return isinstance(tree, SideAtom)


def parsed(text: str) -> exp.Expr:
    """The one condition that the text holds."""
    if not text.strip():
        raise QueryError("the expression is empty", hint=SHAPE)
    if "\0" in text or len(text) > LONGEST:
        raise QueryError(
            f"the expression is longer than {LONGEST:,} characters, or has a NUL", hint=SHAPE
        )
    try:
        trees = [t for t in sqlglot.parse(text, dialect=Dialect) if t is not None]
    except SqlglotError as error:
        details = (getattr(error, "errors", None) or [{}])[0]
        column = int(details.get("col") or 1) - max(1, len(details.get("highlight") or ""))
        line = int(details.get("line") or 1) - 1
        start = sum(len(one) + 1 for one in text.split("\n")[:line]) + max(0, column)
        raise refusal(text, "the expression is not SQL", start, SHAPE) from None
    except RecursionError:
        raise too_deep() from None
    if len(trees) != 1:
        raise QueryError(f"{len(trees)} expressions were given", hint="give one: " + SHAPE)
    if not isinstance(trees[0], exp.Condition | exp.Predicate) or isinstance(trees[0], exp.Query):
        raise refusal(text, f"{short(trees[0])} is no condition", 0, SHAPE)
    strict.check(text, exp.Select(expressions=[trees[0]]))
    return trees[0]


@dataclass
class _Reader:
    """Takes a syntax tree apart at the joints between the sides."""

    text: str
    schemas: Mapping[str, Schema]
    coarse: bool = False
    """Whether all that reads one side is one atom; else only what no AND, OR, NOT or XOR joins."""
    atoms: dict[str, list[SideAtom]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def is_small(self) -> bool:
        """Whether every truth assignment of a side's atoms can be looked at."""
        states = [math.prod(2 + atom.nullable for atom in side) for side in self.atoms.values()]
        return max(states, default=1) <= MOST

    def tree(self, node: exp.Expr) -> Tree:
        sides = self.sides(node)
        if len(sides) > 2:
            names = ", ".join(sides)
            raise UsageError(f"the expression reads {len(sides)} servers: {names}", hint=TERNARY)
        return self.part(node)

    def part(self, node: exp.Expr) -> Tree:
        while isinstance(node, exp.Paren):
            node = node.this
        node = self.rotated(node)
        sides = self.sides(node)
        joint = isinstance(node, JOINTS) or (
            isinstance(node, exp.EQ | exp.NEQ) and self.joins(node)
        )
        if not sides and not joint:
            return self.constant(node)
        if not self.is_condition(node):
            raise refusal(self.text, f"{short(node)} is no condition", place(self.text, [node]),
                          "compare it with something: = , < , in (…)")  # fmt: skip
        if len(sides) != 1 or (joint and not self.coarse):
            return self.joined(node)
        return self.atom(node, sides[0])

    def joined(self, node: exp.Expr) -> Tree:
        match node:
            case exp.Not():
                return Not(self.part(node.this))
            case exp.And() | exp.Or():
                parts = tuple(self.part(p) for p in node.flatten())
                return And(parts) if isinstance(node, exp.And) else Or(parts)
            case exp.Xor():
                self.check_xor(node)
                return Xor(self.part(node.this), self.part(node.expression))
            case exp.EQ() | exp.NEQ() if self.joins(node):
                found = Xor(self.part(node.this), self.part(node.expression))
                return Not(found) if isinstance(node, exp.EQ) else found
        raise refusal(
            self.text,
            f"{short(node)} reads {' and '.join(self.sides(node))} at once",
            place(self.text, [node]),
            "no server holds both columns: each comparison may read one server, and AND, OR, "
            "NOT and XOR join comparisons",
        )

    def joins(self, node: exp.Expr) -> bool:
        return all(self.is_condition(part) for part in (node.this, node.expression))

    def check_xor(self, node: exp.Expr) -> None:
        if any(isinstance(n, exp.And | exp.Or) for n in (node.parent, node.this, node.expression)):
            raise refusal(self.text, "XOR beside AND or OR can be read in two ways",
                          place(self.text, [node]), "put parentheses around it")  # fmt: skip

    def rotated(self, node: exp.Expr) -> exp.Expr:
        """`a > 1 <> b = 2` is read from the left, as (a > 1 <> b) = 2; it means the other thing."""
        if not (isinstance(node, exp.EQ | exp.NEQ) and isinstance(node.this, exp.EQ | exp.NEQ)):
            return node
        first, middle, last = node.this.this, node.this.expression, node.expression
        if not self.is_condition(first) or self.is_condition(middle):
            return node
        return type(node.this)(this=first, expression=type(node)(this=middle, expression=last))

    def is_condition(self, node: exp.Expr) -> bool:
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column):
            return self.schema_of(node)[self.binder(node).attribute(node)].kind == "boolean"
        return isinstance(node, (*CONDITIONS, exp.Null))

    def constant(self, node: exp.Expr) -> bool | None:
        if isinstance(node, exp.Null):
            return None
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        raise refusal(self.text, f"{short(node)} reads no server", place(self.text, [node]), SHAPE)

    # ------------------------------------------------------------------ one side

    def atom(self, node: exp.Expr, side: str) -> SideAtom:
        schema = self.schemas[side]
        binder = Binder(self.text, schema, {side.lower()})
        bound = binder.expression(node)
        self.remarks += [f"{side}: {remark}" for remark in binder.remarks]
        nullable = any(schema[name].null for name in bound.attributes)
        nullable |= not all(isinstance(part, NEVER_NULL) for part in node.walk())
        nullable &= not isinstance(node, exp.Is)
        bare = exp.Paren(this=node.copy())
        for column in bare.find_all(exp.Column):
            name = binder.attribute(column)
            column.replace(exp.column(exp.to_identifier(name, quoted=True)))
        try:
            found = SideAtom(side, written(bare.this), nullable)
        except UnwrittenError:
            raise refusal(self.text, f"{short(node)} cannot be used here",
                          place(self.text, [node]), SHAPE) from None  # fmt: skip
        known = self.atoms.setdefault(side, [])
        if found not in known:
            known.append(found)
        return found

    def sides(self, node: exp.Expr) -> list[str]:
        found = {self.side_of(column) for column in node.find_all(exp.Column)}
        return [name for name in self.schemas if name in found]

    def side_of(self, column: exp.Column) -> str:
        """The server whose column it is."""
        known = list(self.schemas)
        if not column.table:
            holders = [n for n, s in self.schemas.items()
                       if column.name.lower() in map(str.lower, s.names)]  # fmt: skip
            hint = f"write {holders[0]}.{column.name}" if holders else SHAPE
            raise refusal(self.text, f"{column.name} does not say whose column it is",
                          place(self.text, [column]), hint)  # fmt: skip
        for name in known:
            if name.lower() == column.table.lower():
                return name
        raise refusal(self.text, f"there is no server {column.table!r}",
                      place(self.text, [column]), did_you_mean(column.table, known))  # fmt: skip

    def schema_of(self, column: exp.Column) -> Schema:
        return self.schemas[self.side_of(column)]

    def binder(self, column: exp.Column) -> Binder:
        side = self.side_of(column)
        return Binder(self.text, self.schemas[side], {side.lower()})


def levels(tree: Tree, of: Mapping[SideAtom, Levels]) -> Levels:
    """The truth value of a tree, given those of its atoms; arrays are broadcast."""
    match tree:
        case None:
            return np.array(1, dtype=np.int8)
        case bool():
            return np.array(2 * tree, dtype=np.int8)
        case SideAtom():
            return of[tree]
        case Not(part):
            return np.asarray(2 - levels(part, of), dtype=np.int8)
        case Xor(left, right):
            one, other = levels(left, of), levels(right, of)
            known = (one != 1) & (other != 1)
            return np.where(known, np.where(one == other, 0, 2), 1).astype(np.int8)
        case And(parts) | Or(parts):
            join = np.minimum if isinstance(tree, And) else np.maximum
            return reduce(join, [levels(part, of) for part in parts])
