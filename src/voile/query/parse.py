"""SQL text to a Query: parsed by sqlglot, allow-listed, every column bound to the schema.

What is not on the list is refused with its place in the text. Conditions stay SQL: the engine
evaluates the same text on the rows of a view and on the tuples of the domain, so that both
agree on every function, cast and NULL.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from voile.errors import QueryError, did_you_mean
from voile.query.predicate import And, Atom, Or, Predicate, atoms, to_sql
from voile.schema import Attribute, Schema, Values
from voile.schema.schema import summary

DIALECT = "duckdb"

BOOLEAN = (exp.And, exp.Or, exp.Not, exp.Paren, exp.Boolean)
COMPARISON = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Between,
    exp.In,
    exp.Is,
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
    exp.SimilarTo,
    exp.StartsWith,
)
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Pow)
SCALAR: tuple[type[exp.Expr], ...] = (
    exp.Abs,
    exp.Ceil,
    exp.Floor,
    exp.Round,
    exp.Sqrt,
    exp.Ln,
    exp.Greatest,
    exp.Least,
    exp.Lower,
    exp.Upper,
    exp.Length,
    exp.Substring,
    exp.Trim,
    exp.Concat,
    exp.DPipe,
    exp.Year,
    exp.Month,
    exp.Day,
    exp.DayOfWeek,
    exp.Quarter,
    exp.Extract,
    exp.Case,
    exp.If,
    exp.Coalesce,
    exp.Nullif,
    exp.Cast,
    exp.TryCast,
)
MORE_SCALAR: tuple[type[exp.Expr], ...] = (
    exp.Left, exp.Right, exp.Contains, exp.StrPosition, exp.Sign, exp.Exp, exp.Log, exp.Escape,
    exp.Replace, exp.DateTrunc, exp.TimestampTrunc, exp.TimeToStr, exp.Week, exp.DayOfYear,
    exp.DayOfMonth, exp.DayOfWeekIso, exp.EndsWith, exp.Reverse, exp.Dayname, exp.Monthname,
)  # fmt: skip
NAMED = frozenset(
    [
        "date_part",
        "datepart",
        "dayname",
        "monthname",
        "isodow",
        "isoyear",
        "weekofyear",
        "yearweek",
        "decade",
        "century",
        "era",
        "prefix",
        "suffix",
        "instr",
        "strpos",
        "ends_with",
        "trunc",
        "log2",
        "log10",
        "cbrt",
        "even",
        "gcd",
        "lcm",
        "reverse",
        "repeat",
        "lpad",
        "rpad",
        "ltrim",
        "rtrim",
        "bit_count",
        "ascii",
        "chr",
        "levenshtein",
        "jaccard",
    ]
)
"""Functions of one row that the parser knows by name only."""
LEAVES = (exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.DataType, exp.Var, exp.Tuple)
ALLOWED = BOOLEAN + COMPARISON + ARITHMETIC + SCALAR + MORE_SCALAR + LEAVES

COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)

CLAUSES = {
    "group": "GROUP BY", "order": "ORDER BY", "joins": "JOIN", "with_": "WITH",
    "laterals": "LATERAL", "cluster": "CLUSTER BY", "locks": "FOR UPDATE", "columns": "renaming",
}  # fmt: skip


@dataclass(frozen=True)
class Query:
    """What was asked: how the answer is called, and which rows count (all, without a predicate)."""

    sql: str
    alias: str
    predicate: Predicate | None

    @property
    def atoms(self) -> list[Atom]:
        return list(atoms(self.predicate)) if self.predicate else []

    @property
    def where(self) -> str:
        return to_sql(self.predicate) if self.predicate else "TRUE"


def parse(sql: str, schema: Schema) -> Query:
    """Read `SELECT count(*) [AS alias] FROM name [WHERE …]`."""
    tree = _single_select(sql)
    alias = _count_alias(sql, tree)
    _one_table(sql, tree)
    where = tree.args.get("where")
    try:
        return Query(sql, alias, _predicate(sql, where.this, schema) if where else None)
    except RecursionError:
        raise QueryError("the SQL is nested too deeply", hint="write a shorter condition") from None


def _predicate(sql: str, tree: exp.Expr, schema: Schema, *, negated: bool = False) -> Predicate:
    """And and Or over atoms, with every NOT moved down to the atoms."""
    if isinstance(tree, exp.Paren):
        return _predicate(sql, tree.this, schema, negated=negated)
    if isinstance(tree, exp.Not):
        return _predicate(sql, tree.this, schema, negated=not negated)
    if isinstance(tree, exp.And | exp.Or):
        parts = tuple(_predicate(sql, p, schema, negated=negated) for p in tree.flatten())
        return And(parts) if isinstance(tree, exp.And) is not negated else Or(parts)
    atom = _atom(sql, tree, schema)
    return Atom(f"NOT ({atom.sql})", atom.attributes) if negated else atom


def _single_select(sql: str) -> exp.Select:
    if not isinstance(sql, str):
        raise QueryError(f"a query is SQL text, not {type(sql).__name__}")
    if "\0" in sql:
        raise QueryError("the SQL text has a NUL character")
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect=DIALECT) if tree is not None]
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        what = details[0].get("description") or str(error).splitlines()[0]
        if "<class" in what:  # the parser's inner words
            what = "something is missing or misplaced"
        raise refusal(sql, f"not SQL: {what}", _error_start(sql, details[0])) from None
    except RecursionError:
        raise QueryError("the SQL is nested too deeply", hint="write a shorter condition") from None
    if len(trees) != 1:
        raise QueryError(
            f"{len(trees)} statements were given" if trees else "the SQL text is empty",
            hint="ask one query: select count(*) from name where …",
        )
    tree = trees[0]
    if not isinstance(tree, exp.Select):
        what = sql.split(maxsplit=1)[0].upper() if sql.split() else "this"
        raise QueryError(
            f"{what} is not a question about the data",
            hint="ask: select count(*) from name where …",
        )
    _only(tree, {"expressions", "from_", "where"})
    return tree


def _only(node: exp.Expr, known: set[str]) -> None:
    """Refuse every clause that is not known: one that is passed over would be answered wrongly."""
    for key, value in node.args.items():
        if value and key not in known:
            clause = CLAUSES.get(key, key.strip("_").replace("_", " ").upper())
            raise QueryError(
                f"{clause} is not answered from a release",
                hint="ask: select count(*) from name where …",
            )


def _error_start(sql: str, details: dict[str, Any]) -> int | None:
    """Offset of the token that the parser tripped over; it reports line and last column."""
    line, column = details.get("line"), details.get("col")
    if not line or not column:
        return None
    before = "".join(text + "\n" for text in sql.split("\n")[: line - 1])
    return max(0, len(before) + int(column) - max(1, len(details.get("highlight") or "")))


def _count_alias(sql: str, tree: exp.Select) -> str:
    """The name of the answer; anything but one count(*) is refused."""
    if len(tree.expressions) == 1:
        item = tree.expressions[0]
        count = item.unalias()
        if isinstance(count, exp.Count) and isinstance(count.this, exp.Star):
            _only(count, {"this", "big_int"})
            _only(count.this, set())
            return item.alias or "count"
    shown = ", ".join(item.sql(DIALECT) for item in tree.expressions)
    raise refusal(
        sql, f"SELECT {shown} is not answered", place(tree.expressions), "write select count(*)"
    )


def _one_table(sql: str, tree: exp.Select) -> None:
    source = tree.args.get("from_")
    table = source.this if source else None
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise refusal(
            sql,
            "FROM must name the release's table",
            place([source]),
            "write from name; a release holds one table and any name will do",
        )
    _only(table, {"this", "alias", "db", "catalog"})
    if alias := table.args.get("alias"):
        _only(alias, {"this"})


def _atom(sql: str, tree: exp.Expr, schema: Schema) -> Atom:
    reads: set[str] = set()

    def bind(node: exp.Expr) -> exp.Expr:
        named = isinstance(node, exp.Anonymous) and node.name.lower() in NAMED
        if not (named or isinstance(node, ALLOWED)) or node.args.get("query"):
            raise refusal(sql, *_why_not(node))
        _check_kinds(sql, node, schema)
        if isinstance(node, exp.Column):
            name = _attribute(sql, node, schema)
            reads.add(name)
            return exp.column(exp.to_identifier(name, quoted=True))
        if isinstance(node, exp.Literal) and not node.is_string and not node.is_int:
            # A decimal literal would make DuckDB compute in DECIMAL, which overflows.
            return exp.cast(node.copy(), "DOUBLE", dialect=DIALECT)
        return node

    for node in tree.walk():
        bind(node)
    bound = tree.transform(lambda n: bind(n) if isinstance(n, exp.Column | exp.Literal) else n)
    ordered = tuple(name for name in schema.names if name in reads)
    return Atom(bound.sql(DIALECT, comments=False), ordered)


def _attribute(sql: str, column: exp.Column, schema: Schema) -> str:
    for name in schema.names:
        if name.lower() == column.name.lower():
            return name
    hint = did_you_mean(column.name, schema.names)
    for attribute in schema:
        if isinstance(attribute.domain, Values) and column.name in attribute.domain.values:
            hint = f"text goes in single quotes: {attribute.name} = '{column.name}'"
    raise refusal(sql, f"there is no column {column.name!r}", place([column]), hint)


def _check_kinds(sql: str, node: exp.Expr, schema: Schema) -> None:
    """Refuse a comparison that no row can pass because the literal is of another kind."""
    if isinstance(node, exp.In):
        pairs = [(node.this, literal) for literal in node.expressions]
    elif isinstance(node, exp.Between):
        pairs = [(node.this, node.args["low"]), (node.this, node.args["high"])]
    elif isinstance(node, COMPARED):
        pairs = [(node.this, node.expression), (node.expression, node.this)]
    else:
        return
    for column, literal in pairs:
        if isinstance(column, exp.Column) and isinstance(literal, exp.Literal):
            attribute = schema[_attribute(sql, column, schema)]
            if problem := _misfit(attribute, literal):
                raise refusal(sql, problem, place([column]), f"its values are {summary(attribute)}")


def _misfit(attribute: Attribute, literal: exp.Literal) -> str:
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


def _why_not(node: exp.Expr) -> tuple[str, int | None, str]:
    what = node.sql(DIALECT)
    what = what if len(what) <= 40 else what[:37] + "…"
    if isinstance(node, exp.AggFunc | exp.Window):
        why = "it looks at more than one row: a condition is about a single row"
    elif isinstance(node, exp.Rand | exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentTime) or (
        isinstance(node, exp.Anonymous) and node.name.lower() in ("now", "today", "uuid", "txid")
    ):
        why = "its value is not a function of the row"
    elif isinstance(node, exp.Subquery | exp.Select | exp.Exists | exp.In):
        why = "conditions with another table are not answered yet"
    else:
        why = "conditions may use comparisons, BETWEEN, IN (…), LIKE, IS NULL, AND/OR/NOT, CASE, "
        why += "arithmetic, and the text and date functions of one row: see docs/analyst.md"
    return f"{what} cannot be used in a condition", place([node]), why


def place(nodes: Iterable[exp.Expr | None]) -> int | None:
    """Where in the text the nodes begin, where known."""
    starts = [
        part.meta["start"]
        for node in nodes
        if node is not None
        for part in node.walk()
        if "start" in part.meta
    ]
    found: int | None = min(starts, default=None)
    return found


def refusal(sql: str, message: str, start: int | None = None, hint: str = "") -> QueryError:
    """An error that shows the line and puts a caret under the place."""
    if start is None:
        return QueryError(message, hint=hint)
    line = sql.count("\n", 0, start)
    column = start - (sql.rfind("\n", 0, start) + 1)
    text = sql.split("\n")[line]
    return QueryError(
        f"{message} (line {line + 1}, column {column + 1})\n    {text}\n    {' ' * column}^",
        hint=hint,
    )
