"""Expressions of one row: checked against the allow-list, every column bound to its attribute.

Expressions stay trees: the engine evaluates the same tree on the rows of a view and on the tuples
of the domain, so that both agree on every function, cast and NULL. A column of a joined table is
a function of the row too: it becomes a subquery that looks the row's partner up.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from voile.errors import QueryError, did_you_mean
from voile.query.language import (
    ALLOWED,
    NAMED,
    PADDING,
    SUBQUERY,
    TYPES,
    own_table,
    why_not,
)
from voile.query.lengths import MOST_MADE, ColumnLength, in_schema, overgrown, too_costly
from voile.query.predicate import ROW, And, Atom, Expression, Or, Predicate
from voile.query.text import (
    UnwrittenError,
    last_before,
    place,
    refusal,
    short,
    too_deep,
)
from voile.schema import Attribute, Schema, Values
from voile.schema.schema import summary

GROWING = (exp.Replace, exp.RegexpReplace)
MOST_GROWING = 3
"""Each may make a text many times longer."""
COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
Tables = Mapping[str, tuple[str, ...]]
"""The analyst's own tables: the columns of each by its name."""


@dataclass
class Partner:
    """A joined table: what it is called in the query, its columns, and which row it gives."""

    table: str
    columns: tuple[str, ...]
    on: exp.Expr | None = None
    reads: set[str] = field(default_factory=set)
    using: frozenset[str] = frozenset()

    def look_up(self, alias: str, column: str) -> exp.Expr:
        """A column of the row's partner, as a subquery."""
        select = exp.select(exp.column(exp.to_identifier(column, quoted=True), alias))
        return exp.Subquery(this=self._from(select, alias))

    def found(self, alias: str) -> exp.Expr:
        """TRUE where the row has a partner, NULL where it has none; an error where it has more."""
        return exp.Subquery(this=self._from(exp.select("TRUE"), alias))

    def _from(self, select: exp.Select, alias: str) -> exp.Select:
        source = exp.to_identifier(self.table, quoted=True)
        name = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
        found = select.from_(exp.Table(this=source, alias=name))
        return found.where(self.on.copy()) if self.on else found


@dataclass
class Binder:
    """Turns syntax trees into expressions and predicates over the schema's attributes."""

    sql: str
    schema: Schema
    names: set[str]
    """What the release's table is called in the query, in lower case."""
    tables: Tables = field(default_factory=dict)
    partners: dict[str, Partner] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    """What the analyst should know and is not wrong."""

    @cached_property
    def lengths(self) -> ColumnLength:
        """The most characters of each column's values."""
        return in_schema(self.schema)

    def expression(self, tree: exp.Expr) -> Expression:
        """A syntax tree bound to the schema's attributes."""
        node, reads = self.bound(tree)
        found = Expression(node, self._ordered(reads), short(tree), place(self.sql, [tree]))
        try:
            hash(found)  # by how it is written, once and for all
        except UnwrittenError:
            raise self._refused(tree) from None
        return found

    def predicate(self, tree: exp.Expr, *, negated: bool = False) -> Predicate:
        """And and Or over atoms, with every NOT moved down to the atoms."""
        try:
            return self._predicate(tree, negated=negated)
        except RecursionError:
            raise too_deep() from None

    def _predicate(self, tree: exp.Expr, *, negated: bool) -> Predicate:
        if isinstance(tree, exp.Paren):
            return self._predicate(tree.this, negated=negated)
        if isinstance(tree, exp.Not):
            return self._predicate(tree.this, negated=not negated)
        if isinstance(tree, exp.And | exp.Or):
            parts = tuple(self._predicate(p, negated=negated) for p in tree.flatten())
            return And(parts) if isinstance(tree, exp.And) is not negated else Or(parts)
        if isinstance(tree, exp.Xor):
            return self._xor(tree, negated=negated)
        if isinstance(tree, exp.Null):
            return Atom(cast(tree.copy(), exp.DType.BOOLEAN), ())
        found = self.expression(tree)
        node = exp.Not(this=exp.paren(found.node)) if negated else found.node
        return Atom(node, found.attributes, found.text, found.start)

    def _xor(self, tree: exp.Xor, *, negated: bool) -> Predicate:
        mixed = (exp.And, exp.Or)
        if any(isinstance(n, mixed) for n in (tree.parent, tree.this, tree.expression)):
            where = last_before(self.sql, "xor", place(self.sql, [tree.expression]))
            raise refusal(self.sql, "XOR beside AND or OR can be read in two ways", where,
                          "put parentheses around it")  # fmt: skip
        left, right = tree.this, tree.expression
        # One of the two, or (negated) both or neither.
        signs = [(False, negated is False), (True, negated)]
        return Or(
            tuple(
                And((self._predicate(left, negated=a), self._predicate(right, negated=b)))
                for a, b in signs
            )
        )

    # ------------------------------------------------------------------ one expression

    def bound(self, tree: exp.Expr) -> tuple[exp.Expr, set[str]]:
        """The tree with every column resolved, and the attributes it reads."""
        # A copy stands alone: the SELECT around the original is no subquery.
        holder = exp.Paren(this=tree.copy())
        for node in holder.this.walk():
            self._check(node, inside=_encloses(holder.this, node))
            self._check_kinds(node)
        self._check_lengths(holder.this)
        reads: set[str] = set()
        for node in reversed(list(holder.walk())):  # a part before its whole
            replacement = self._replaced(node, reads)
            if replacement is not node:
                node.replace(replacement)
        return holder.this, reads

    def _ordered(self, reads: set[str]) -> tuple[str, ...]:
        return tuple(name for name in self.schema.names if name in reads)

    def _check(self, node: exp.Expr, *, inside: bool) -> None:
        named = isinstance(node, exp.Anonymous) and node.name.lower() in NAMED
        opens = isinstance(node, exp.Subquery | exp.Exists | exp.Any | exp.All | exp.Select)
        subquery = self.tables and isinstance(node, SUBQUERY) and (inside or opens)
        if not (named or subquery or isinstance(node, ALLOWED)):
            raise self._refused(node)
        if isinstance(node, exp.In) and not self.tables and node.args.get("query"):
            raise self._refused(node)
        if isinstance(node, exp.In) and (node.args.get("field") or node.args.get("unnest")):
            raise self._refused(node)
        if isinstance(node, exp.Table):
            self._check_table(node)
        if isinstance(node, GROWING) and _nested(node, GROWING) > MOST_GROWING:
            raise refusal(self.sql, f"{short(node)} replaces text within replaced text too often",
                          place(self.sql, [node]), f"at most {MOST_GROWING} times")  # fmt: skip
        if isinstance(node, exp.DataType):
            self._check_type(node)
        if isinstance(node, exp.Pad):
            self._check_padding(node)
        if costly := too_costly(node, self.lengths):
            message, hint = costly
            raise refusal(self.sql, message, place(self.sql, [node]), hint)
        if isinstance(node, exp.Floor | exp.Ceil) and node.args.get("decimals"):
            raise self._refused(node)
        if isinstance(node, exp.Tuple) and not node.expressions:
            raise self._refused(node)
        if isinstance(node, exp.WidthBucket) and not node.args.get("num_buckets"):
            raise self._refused(node)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            raise self._refused(node.this)

    def _refused(self, node: exp.Expr) -> QueryError:
        return refusal(
            self.sql, f"{short(node)} cannot be used here", place(self.sql, [node]), why_not(node)
        )

    def _check_table(self, node: exp.Table) -> None:
        if node.alias_or_name.lower() == ROW:
            raise refusal(self.sql, f"{ROW!r} is what the release's row is called here",
                          place(self.sql, [node]), "choose another name")  # fmt: skip
        known = isinstance(node.this, exp.Identifier) and _find(node.name, self.tables)
        if known and not (node.args.get("db") or node.args.get("catalog")):
            return
        if node.name.lower() in self.names:
            what = "a subquery over the release itself looks at more than one row"
            raise refusal(self.sql, what, place(self.sql, [node]),
                          "a condition is about a single row")  # fmt: skip
        raise unknown_table(self.sql, node, self.tables)

    def _check_type(self, node: exp.DataType) -> None:
        kind = node.this.value if isinstance(node.this, exp.DType) else str(node.this)
        if kind not in TYPES:
            raise refusal(self.sql, f"the type {short(node)} is not used here",
                          place(self.sql, [node.parent]),
                          "cast to INTEGER, DOUBLE, VARCHAR, DATE or BOOLEAN")  # fmt: skip

    def _check_padding(self, node: exp.Pad) -> None:
        length = node.expression
        if not (isinstance(length, exp.Literal) and length.is_int and int(length.this) <= PADDING):
            raise refusal(self.sql, f"{short(node)} pads to a length that is not a small number",
                          place(self.sql, [node]), f"write a number up to {PADDING}")  # fmt: skip

    def _check_lengths(self, tree: exp.Expr) -> None:
        if node := overgrown(tree, self.lengths):
            message = f"{short(node)} may make a text of more than {MOST_MADE:,} characters"
            raise refusal(self.sql, message, place(self.sql, [node]),
                          "use shorter texts, or cut them with left(x, 100) first")  # fmt: skip

    def _replaced(self, node: exp.Expr, reads: set[str]) -> exp.Expr:
        """What a node means: NULL where it cannot be computed, numbers as doubles.

        Engines catch errors too, but not in subqueries, and not without cost.
        """
        if isinstance(node, exp.Column):
            return self._column(node, reads)
        if isinstance(node, exp.Literal) and not node.is_string and not node.is_int:
            # A decimal literal would make an engine compute in DECIMAL, which overflows.
            return cast(node.copy(), exp.DType.DOUBLE)
        if type(node) is exp.Cast:
            return exp.TryCast(**node.args)
        if isinstance(node, exp.Mod | exp.IntDiv):
            zero = exp.Literal.number(0)
            node.set("expression", exp.Nullif(this=node.expression.copy(), expression=zero))
        if isinstance(node, exp.Xor):
            return exp.NEQ(this=exp.paren(node.this), expression=exp.paren(node.expression))
        if isinstance(node, exp.WidthBucket):
            return _width_bucket(node)
        return node

    # ------------------------------------------------------------------ columns

    def _column(self, node: exp.Column, reads: set[str]) -> exp.Expr:
        if node.args.get("db") or node.args.get("catalog"):
            raise refusal(self.sql, f"{short(node)} has too many parts", place(self.sql, [node]),
                          f"write {node.table}.{node.name}")  # fmt: skip
        if self._is_inner(node):
            return node
        if partner := self._partner(node):
            alias, column = partner
            reads |= self.partners[alias].reads
            return self.partners[alias].look_up(alias, column)
        name = self.attribute(node)
        reads.add(name)
        # Beside other tables a bare name could mean one of theirs.
        table = exp.to_identifier(ROW, quoted=True) if self.tables else None
        return exp.column(exp.to_identifier(name, quoted=True), table)

    def _is_inner(self, node: exp.Column) -> bool:
        """Whether the column belongs to a table of an enclosing subquery, or to its SELECT list."""
        scope = node.find_ancestor(exp.Select)
        while scope is not None:
            for table in _sources(scope):
                columns = self.tables.get(_find(table.name, self.tables) or "", ())
                called = table.alias_or_name.lower()
                if node.table.lower() == called:
                    if not _find(node.name, columns):
                        raise self._no_column(node, columns)
                    return True
                if not node.table and _find(node.name, columns):
                    return True
            scope = scope.find_ancestor(exp.Select)
        return False

    def _partner(self, node: exp.Column) -> tuple[str, str] | None:
        if node.table.lower() in self.names:
            return None
        if not node.table and any(node.name.lower() in p.using for p in self.partners.values()):
            return None  # USING makes both columns one
        found = []
        for alias, partner in self.partners.items():
            column = _find(node.name, partner.columns)
            if node.table.lower() == alias.lower():
                if not column:
                    raise self._no_column(node, partner.columns)
                return alias, column
            if not node.table and column:
                found.append((alias, column))
        if found and (len(found) > 1 or _find(node.name, self.schema.names)):
            raise refusal(self.sql, f"{node.name} is in more than one table",
                          place(self.sql, [node]), f"write {found[0][0]}.{node.name}")  # fmt: skip
        return found[0] if found else None

    def attribute(self, column: exp.Column) -> str:
        """The attribute that a column of the release names."""
        if column.table and column.table.lower() not in self.names:
            known = [*self.partners, *sorted(self.names)]
            raise refusal(self.sql, f"there is no table {column.table!r} in FROM",
                          place(self.sql, [column]), did_you_mean(column.table, known))  # fmt: skip
        if name := _find(column.name, self.schema.names):
            return name
        raise self._no_column(column, self.schema.names)

    def _no_column(self, column: exp.Column, known: tuple[str, ...] | list[str]) -> QueryError:
        hint = did_you_mean(column.name, list(known))
        for attribute in self.schema:
            if isinstance(attribute.domain, Values) and column.name in attribute.domain.values:
                hint = f"text goes in single quotes: {attribute.name} = '{column.name}'"
        return refusal(
            self.sql, f"there is no column {column.name!r}", place(self.sql, [column]), hint
        )

    # ------------------------------------------------------------------ kinds

    def _check_kinds(self, node: exp.Expr) -> None:
        """Refuse a comparison that no row can pass because the literal is of another kind."""
        if isinstance(node, exp.In):
            pairs = [(node.this, literal) for literal in node.expressions]
        elif isinstance(node, exp.Between):
            pairs = [(node.this, node.args["low"]), (node.this, node.args["high"])]
        elif isinstance(node, COMPARED):
            pairs = [(node.this, node.expression), (node.expression, node.this)]
        else:
            return
        equal = isinstance(node, exp.In | exp.EQ | exp.NEQ)
        for column, literal in pairs:
            if isinstance(column, exp.Column) and isinstance(literal, exp.Literal):
                self._check_pair(column, literal, equal=equal)

    def _check_pair(self, column: exp.Column, literal: exp.Literal, *, equal: bool) -> None:
        if self._is_inner(column) or self._partner(column):
            return
        attribute = self.schema[self.attribute(column)]
        if problem := misfit(attribute, literal):
            raise refusal(self.sql, problem, place(self.sql, [literal]),
                          f"its values are {summary(attribute)}")  # fmt: skip
        values = attribute.domain.values if isinstance(attribute.domain, Values) else ()
        if equal and attribute.kind == "categorical" and literal.this not in values:
            near = did_you_mean(literal.this, [str(v) for v in values])
            remark = f"{attribute.name} has no value {literal.this!r}: {near}"
            if attribute.other is not None:
                within = f"rows that have it are among those of {attribute.other!r}"
                remark = f"{attribute.name} does not list {literal.this!r}: {within}"
            self.remarks.append(remark)


def unknown_table(sql: str, node: exp.Expr, tables: Tables) -> QueryError:
    """The error for a table that was not given."""
    known = f"known: {', '.join(tables)}; " if tables else ""
    name = node.name if isinstance(node, exp.Table) else short(node)
    return refusal(
        sql, f"there is no table {name!r}", place(sql, [node]),
        f"{known}give your own tables with {own_table(name)}",
    )  # fmt: skip


def _nested(node: exp.Expr, kinds: tuple[type[exp.Expr], ...]) -> int:
    """How many of these a node stands in, itself included."""
    found = 0
    above: exp.Expr | None = node
    while above is not None:
        found += isinstance(above, kinds)
        above = above.parent
    return found


def _encloses(root: exp.Expr, node: exp.Expr) -> bool:
    """Whether a node stands in a subquery of the expression that begins at root."""
    while node is not root and node.parent is not None:
        node = node.parent
        if isinstance(node, exp.Select):
            return True
    return False


def _sources(select: exp.Expr) -> list[exp.Table]:
    """The tables that one SELECT reads itself; those of subqueries in it are not in its scope."""
    first = select.args.get("from_")
    items = [first, *(select.args.get("joins") or [])]
    return [item.this for item in items if item and isinstance(item.this, exp.Table)]


def _find(name: str, known: Iterable[str]) -> str | None:
    """The name as it is spelled where it is defined; SQL does not mind upper and lower case."""
    return next((k for k in known if k.lower() == name.lower()), None)


def _width_bucket(node: exp.WidthBucket) -> exp.Expr:
    """The histogram function that DuckDB lacks: 0 below, n+1 above, else 1 to n."""
    x, low, high, n = (
        exp.paren(node.args[key]) for key in ("this", "min_value", "max_value", "num_buckets")
    )
    one, known = exp.Literal.number(1), exp.Not(this=exp.Is(this=x.copy(), expression=exp.Null()))
    steps = exp.Mul(this=exp.paren(_minus(x, low)), expression=n.copy())
    width = exp.paren(_minus(high, low))
    place = exp.Floor(this=exp.Div(this=steps, expression=width, typed=False, safe=False))
    inside = exp.Add(this=exp.TryCast(this=place, to=exp.DType.INT.into_expr()), expression=one)
    above = exp.Add(this=n.copy(), expression=one.copy())
    return (
        exp.Case()
        .when(exp.LT(this=x.copy(), expression=low.copy()), exp.Literal.number(0))
        .when(exp.GTE(this=x.copy(), expression=high.copy()), above)
        .when(known, inside)
    )


def _minus(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Sub(this=left.copy(), expression=right.copy())


def cast(node: exp.Expr, kind: exp.DType) -> exp.Expr:
    """A node cast to a type."""
    return exp.Cast(this=node, to=kind.into_expr())


def misfit(attribute: Attribute, literal: exp.Literal) -> str:
    """Why a column cannot equal or exceed this literal, or nothing."""
    name, text, kind = attribute.name, literal.this, attribute.kind
    if kind == "categorical" and not literal.is_string:
        return f"{name} is text, and {text} is a number: write '{text}'"
    if kind in ("integer", "numeric") and literal.is_string and not _reads(float, text):
        return f"{name} is a number, and '{text}' is not"
    if kind == "date" and not (literal.is_string and _reads(dt.datetime.fromisoformat, text)):
        return f"{name} is a date, and {literal.sql()} is not: write '2024-12-31'"
    return ""


def _reads(reader: Callable[[str], object], text: str) -> bool:
    try:
        reader(text.strip())
    except ValueError:
        return False
    return True
