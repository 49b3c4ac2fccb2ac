"""The text of a query: parsed by sqlglot, and refusals that point into it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from voile.errors import QueryError

ASK = "ask: select count(*) from name where …"
LONGEST = 100_000
"""Characters of a query; the parser's time grows with them."""


class Dialect(DuckDB):
    """DuckDB's SQL, and XOR between conditions."""

    class Tokenizer(DuckDB.Tokenizer):
        KEYWORDS = {**DuckDB.Tokenizer.KEYWORDS, "XOR": TokenType.XOR}  # noqa: RUF012

    class Parser(DuckDB.Parser):  # type: ignore[misc, valid-type]
        CONJUNCTION = {**DuckDB.Parser.CONJUNCTION, TokenType.XOR: exp.Xor}  # noqa: RUF012


def to_sql(node: exp.Expr) -> str:
    return node.sql(DuckDB, comments=False)


def single_select(sql: str) -> exp.Select:
    """The one SELECT that the text holds."""
    if not isinstance(sql, str):
        raise QueryError(f"a query is SQL text, not {type(sql).__name__}")
    if "\0" in sql:
        raise QueryError("the SQL text has a NUL character")
    if len(sql) > LONGEST:
        raise QueryError(f"the SQL text has {len(sql):,} characters, more than {LONGEST:,}")
    trees = _trees(sql)
    if len(trees) != 1:
        raise QueryError(
            f"{len(trees)} statements were given" if trees else "the SQL text is empty",
            hint="ask one query: select count(*) from name where …",
        )
    tree = trees[0]
    if not isinstance(tree, exp.Select):
        what = sql.split(maxsplit=1)[0].upper() if sql.split() else "this"
        if isinstance(tree, exp.SetOperation):
            raise refusal(sql, f"{tree.key.upper()} is not answered from a release",
                          first_token(sql, tree.key), "ask one query at a time")  # fmt: skip
        raise refusal(sql, f"{what} is not a question about the data", 0, ASK)
    return tree


def _trees(sql: str) -> list[exp.Expr]:
    try:
        return [tree for tree in sqlglot.parse(sql, dialect=Dialect) if tree is not None]
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        what = details[0].get("description") or str(error).splitlines()[0]
        if "<class" in what or not what.isprintable():  # the parser's inner words
            what = "something is missing or misplaced"
        raise refusal(sql, f"not SQL: {what}", _error_start(sql, details[0])) from None
    except RecursionError:
        raise too_deep() from None


def too_deep() -> QueryError:
    return QueryError("the SQL is nested too deeply", hint="write a shorter condition")


def _error_start(sql: str, details: dict[str, Any]) -> int | None:
    """Offset of the token that the parser tripped over; it reports line and last column."""
    line, column = details.get("line"), details.get("col")
    if not line or not column:
        return None
    before = "".join(text + "\n" for text in sql.split("\n")[: line - 1])
    return max(0, len(before) + int(column) - max(1, len(details.get("highlight") or "")))


def place(sql: str, nodes: Iterable[exp.Expr | None], *words: str) -> int:
    """Where in the text the nodes begin: by the parser's marks, else at the first of the words."""
    found = list(nodes)
    starts = [
        part.meta["start"]
        for node in found
        if node is not None
        for part in node.walk()
        if "start" in part.meta
    ]
    if starts and len(found) == 1 and isinstance(found[0], exp.Func | exp.Window | exp.Filter):
        return _function_start(sql, found[0], min(starts))
    named = [first_token(sql, word) for word in words]
    known = [start for start in named if start is not None]
    if not starts and not known:
        keys = {key for node in found if node is not None for key in _names(node)}
        known = [start for key in keys if (start := first_token(sql, key)) is not None]
    return min(starts or known, default=0)


def _function_start(sql: str, node: exp.Expr, inside: int) -> int:
    """The parser marks a function's arguments, not its name: the name stands before them."""
    names = {name.upper() for name in _names(node)}
    before = [t.start for t in _tokens(sql) if t.start < inside and t.text.upper() in names]
    return max(before, default=inside)


def _names(node: exp.Expr) -> list[str]:
    """How a node may be called in the text."""
    names = [node.key, *(getattr(type(node), "_sql_names", None) or [])]
    return [*names, to_sql(node).split("(", maxsplit=1)[0].split(" ", maxsplit=1)[0]]


def first_token(sql: str, word: str) -> int | None:
    """Where a word first stands as a token of its own."""
    return next((t.start for t in _tokens(sql) if t.text.upper() == word.upper()), None)


def _tokens(sql: str) -> list[Any]:
    try:
        return list(Dialect().tokenize(sql))
    except SqlglotError:
        return []


def refusal(sql: str, message: str, start: int | None = None, hint: str = "") -> QueryError:
    """An error that shows the line and puts a caret under the place."""
    if start is None:
        return QueryError(message, hint=hint)
    start = min(start, len(sql))
    line = sql.count("\n", 0, start)
    column = start - (sql.rfind("\n", 0, start) + 1)
    text = sql.split("\n")[line]
    shown = text if len(text) <= 200 else text[max(0, column - 60) : column + 60]
    caret = column if len(text) <= 200 else min(column, 60)
    return QueryError(
        f"{message} (line {line + 1}, column {column + 1})\n    {shown}\n    {' ' * caret}^",
        hint=hint,
    )


def short(node: exp.Expr) -> str:
    text = to_sql(node)
    return text if len(text) <= 40 else text[:37] + "…"
