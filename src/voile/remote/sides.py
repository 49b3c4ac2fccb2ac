"""A Boolean function of two servers' columns, parsed and split into each side's conditions.

`A.smoker and not B.cancer` reads column smoker of server A and cancer of server B. A part that
reads one side only is an *atom*: any SQL condition, which that server evaluates. AND, OR, NOT,
XOR, and = and <> between conditions join them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Union

import numpy as np
import numpy.typing as npt
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from voile.arrays import Bools, Floats
from voile.errors import QueryError, UsageError, did_you_mean, spelled
from voile.query import language as strict
from voile.query.bind import Binder
from voile.query.predicate import And, Not, Or, Xor
from voile.query.text import Dialect, UnwrittenError, place, refusal, short, too_deep, written
from voile.remote.implication import BilinearForm
from voile.schema import Schema

Levels = npt.NDArray[np.int8]
"""SQL's truth values: 0 false, 1 unknown, 2 true. AND is the lesser, OR the greater."""

LONGEST = 10_000
MOST_ASSIGNMENTS = 4096
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


def shape() -> str:
    """What an expression looks like."""
    servers = spelled("servers", flag="--db")
    return f"write a condition such as A.smoker and not B.cancer, with A and B given by {servers}"


@dataclass(frozen=True)
class SideCondition:
    """A condition of one side: its SQL there, and whether it may be unknown of a row."""

    side: str
    sql: str
    nullable: bool


Tree = Union[SideCondition, bool, None, "And[Tree]", "Or[Tree]", "Not[Tree]", "Xor[Tree]"]
"""In three-valued logic; None is NULL."""


@dataclass(frozen=True)
class SideExpression:
    """A Boolean function of at most two sides."""

    text: str
    tree: Tree
    sides: tuple[str, ...]
    """Those that it reads, in the order in which the servers were given."""
    atoms: Mapping[str, tuple[SideCondition, ...]]
    """Of each side that it reads."""
    remarks: tuple[str, ...] = ()
    """Notes for the analyst that are not errors."""
    whole: str | None = None
    """Where it reads one side only, without XOR and constants: its SQL, as it was written."""


def read_expression(text: str, schemas: Mapping[str, Schema]) -> SideExpression:
    """Read an expression over these servers' columns; refuse with the place in the text."""
    tree = parsed(text)
    try:
        reader = _SideReader(text, schemas)
        found = reader.tree(tree)
        if not reader.is_small():
            reader = _SideReader(text, schemas, coarse=True)
            found = reader.tree(tree)
    except RecursionError:
        raise too_deep() from None
    sides = tuple(name for name in schemas if reader.atoms.get(name))
    atoms = {name: tuple(reader.atoms[name]) for name in sides}
    remarks = tuple(dict.fromkeys(reader.remarks))
    whole = whole_condition(text, schemas, tree, found)
    return SideExpression(text, found, sides, atoms, remarks, whole)


def whole_condition(
    text: str, schemas: Mapping[str, Schema], tree: exp.Expr, found: Tree
) -> str | None:
    """The SQL of an expression that reads one side, whose server evaluates AND, OR and NOT."""
    if not is_plain(found):
        return None
    whole = _SideReader(text, schemas, coarse=True).tree(tree)
    return whole.sql if isinstance(whole, SideCondition) else None


def is_plain(tree: Tree) -> bool:
    """Whether it has neither XOR nor constants."""
    match tree:
        case And(parts) | Or(parts):
            return all(map(is_plain, parts))
        case Not(part):
            return is_plain(part)
    return isinstance(tree, SideCondition)


def parsed(text: str) -> exp.Expr:
    """The one condition that the text holds."""
    if not text.strip():
        raise QueryError("the expression is empty", hint=shape())
    if "\0" in text or len(text) > LONGEST:
        raise QueryError(
            f"the expression is longer than {LONGEST:,} characters, or has a NUL", hint=shape()
        )
    try:
        trees = [t for t in sqlglot.parse(text, dialect=Dialect) if t is not None]
    except SqlglotError as error:
        details = (getattr(error, "errors", None) or [{}])[0]
        column = int(details.get("col") or 1) - max(1, len(details.get("highlight") or ""))
        line = int(details.get("line") or 1) - 1
        start = sum(len(one) + 1 for one in text.split("\n")[:line]) + max(0, column)
        raise refusal(text, "the expression is not SQL", start, shape()) from None
    except RecursionError:
        raise too_deep() from None
    if len(trees) != 1:
        raise QueryError(f"{len(trees)} expressions were given", hint="give one: " + shape())
    if not isinstance(trees[0], exp.Condition | exp.Predicate) or isinstance(trees[0], exp.Query):
        raise refusal(text, f"{short(trees[0])} is no condition", 0, shape())
    strict.check(text, exp.Select(expressions=[trees[0]]))
    return trees[0]


@dataclass
class _SideReader:
    """Splits a syntax tree where its sides meet."""

    text: str
    schemas: Mapping[str, Schema]
    coarse: bool = False
    """Whether all that reads one side is one atom; else only what no AND, OR, NOT or XOR joins."""
    atoms: dict[str, list[SideCondition]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def is_small(self) -> bool:
        """Whether every truth assignment of a side's atoms can be looked at."""
        states = [math.prod(2 + atom.nullable for atom in side) for side in self.atoms.values()]
        return max(states, default=1) <= MOST_ASSIGNMENTS

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
        raise refusal(
            self.text, f"{short(node)} reads no server", place(self.text, [node]), shape()
        )

    # ------------------------------------------------------------------ one side

    def atom(self, node: exp.Expr, side: str) -> SideCondition:
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
            found = SideCondition(side, written(bare.this), nullable)
        except UnwrittenError:
            raise refusal(self.text, f"{short(node)} cannot be used here",
                          place(self.text, [node]), shape()) from None  # fmt: skip
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
            hint = f"write {holders[0]}.{column.name}" if holders else shape()
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


def levels(tree: Tree, of: Mapping[SideCondition, Levels]) -> Levels:
    """The truth value of a tree, given those of its atoms; arrays are broadcast."""
    match tree:
        case None:
            return np.array(1, dtype=np.int8)
        case bool():
            return np.array(2 * tree, dtype=np.int8)
        case SideCondition():
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


# ---------------------------------------------------------------------- classes
# Conditions to count: a function of two sides as few products of one condition on each.
#
# The truth assignments of A's atoms fall into classes that leave the same function of B's, its
# cofactor. So f = Σ_j α_j·β_j, with disjoint α_j. One class can be left out, since they sum to 1,
# and a condition and its complement need one count: XOR is α + β − 2αβ, a single product.


STATES = {
    (2,): "{0}", (0,): "NOT ({0})", (1,): "({0}) IS NULL", (0, 2): "NOT (({0}) IS NULL)",
    (1, 2): "NOT (({0}) IS FALSE)", (0, 1): "NOT (({0}) IS TRUE)",
}  # fmt: skip
"""SQL that says which truth values an atom has."""


@dataclass(frozen=True, eq=False)
class SideProducts:
    """What to count on each side, and how Pr[f] follows."""

    conditions: tuple[tuple[str, ...], tuple[str, ...]]
    form: BilinearForm
    classes: tuple[Floats, Floats]
    """Of each side: in which of its classes each condition holds (conditions × classes)."""


def products(expression: SideExpression) -> SideProducts:
    """Split f by the classes of the side that needs fewer counts."""
    first, second = (*expression.sides, "", "")[:2]
    grids = tuple(assignments(expression.atoms.get(side, ())) for side in (first, second))
    values = {}
    for side, grid, turn in ((first, grids[0], (-1, 1)), (second, grids[1], (1, -1))):
        for index, atom in enumerate(expression.atoms.get(side, ())):
            values[atom] = grid[:, index].reshape(turn)
    shape = (len(grids[0]), len(grids[1]))
    truth = np.broadcast_to(levels(expression.tree, values) == 2, shape)
    one, other = (
        AssignmentSets(expression.atoms.get(side, ()), grid)
        for side, grid in zip((first, second), grids, strict=True)
    )
    if len(expression.sides) == 1 and truth.any() and not truth.all():
        return _alone(expression.whole or one.spelled(truth[:, 0]), truth)
    ways = [_by_classes(truth, one, other), _turned(_by_classes(truth.T, other, one))]
    return min(ways, key=_counts).spelled(one, other)


def _alone(condition: str, truth: Bools) -> SideProducts:
    """One side only: one count of the condition itself, not of its complement."""
    form = BilinearForm(0, np.ones(1), np.zeros(0), np.zeros((1, 0)))
    classes = _distinct(truth.T), _distinct(np.zeros((0, 1), dtype=np.bool_))
    return SideProducts(((condition,), ()), form, classes)


def assignments(atoms: Sequence[SideCondition]) -> npt.NDArray[np.int8]:
    """Every truth assignment of the atoms (assignments × atoms)."""
    states = [(0, 1, 2) if atom.nullable else (0, 2) for atom in atoms]
    size = math.prod(map(len, states))
    if size > MOST_ASSIGNMENTS:
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
    form: BilinearForm

    def spelled(self, one: AssignmentSets, other: AssignmentSets) -> SideProducts:
        return SideProducts(
            (one.sql_of(self.left), other.sql_of(self.right)),
            self.form,
            (_distinct(self.left), _distinct(self.right)),
        )


def _counts(split: _Split) -> tuple[int, int]:
    sizes = len(split.left), len(split.right)
    return max(sizes), sum(sizes)


def _turned(split: _Split) -> _Split:
    form = split.form
    turned = BilinearForm(form.constant, form.right, form.left, form.product.T)
    return _Split(split.right, split.left, turned)


def _by_classes(truth: Bools, one: AssignmentSets, other: AssignmentSets) -> _Split:
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

    def __init__(self, left: AssignmentSets, right: AssignmentSets) -> None:
        self.left, self.right = left, right
        self.terms: dict[tuple[bytes, bytes], int] = {}
        self.sets: dict[bytes, Bools] = {}

    def add(self, factor: int, one: Bools | None, other: Bools | None) -> None:
        for a, x in self.parts(one, self.left):
            for b, y in self.parts(other, self.right):
                self.terms[a, b] = self.terms.get((a, b), 0) + factor * x * y

    def parts(self, condition: Bools | None, sets: AssignmentSets) -> list[tuple[bytes, int]]:
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
        form = BilinearForm(int(full[0, 0]), full[1:, 0], full[0, 1:], full[1:, 1:])
        sides = [
            np.array([self.sets[key] for key in keys], dtype=np.bool_).reshape(len(keys), size)
            for keys, size in zip((left, right), shape, strict=True)
        ]
        return _Split(sides[0], sides[1], form)


def _distinct(sets: Bools) -> Floats:
    """Assignments on which all conditions agree are one class."""
    return np.unique(sets, axis=1).astype(np.float64)


@dataclass(frozen=True)
class AssignmentSets:
    """Sets of one side's assignments, in SQL."""

    atoms: tuple[SideCondition, ...]
    grid: npt.NDArray[np.int8]

    def sql_of(self, sets: Bools) -> tuple[str, ...]:
        """Each of the sets as an SQL condition."""
        return tuple(self.spelled(one) for one in sets)

    def spelled(self, inside: Bools) -> str:
        """OR over boxes of states that cover the set, each grown as far as the set allows."""
        index = {tuple(row): number for number, row in enumerate(self.grid.tolist())}
        open_, boxes = inside.copy(), []
        while open_.any():
            box = [[state] for state in self.grid[int(np.argmax(open_))].tolist()]
            for at, atom in enumerate(self.atoms):
                for state in (0, 1, 2) if atom.nullable else (0, 2):
                    grown = [*box[:at], sorted({*box[at], state}), *box[at + 1 :]]
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
