"""What a statement is: a command of a session, a question, or a look at rows or at catalogues."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ErrorLevel, SqlglotError

from voile.errors import QueryError, did_you_mean
from voile.query.rewriting import aggregates
from voile.query.text import (
    ASK,
    UnwrittenError,
    check_text,
    extended_parser,
    not_a_question,
    place,
    refusal,
    syntax_trees,
    too_deep,
    written,
)

CATALOG, SCHEMA = "voile", "public"
"""Where tables are."""
SCHEMAS = frozenset(["", SCHEMA, "main"])
CATALOGUES = frozenset(["information_schema", "pg_catalog"])
CATALOGUE_TABLE = re.compile(r"pg_\w+|sqlite_master", re.IGNORECASE)
SPACE = re.compile(r"(?:\s+|;|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*", re.DOTALL)
COMMAND = re.compile(r"(?P<word>[a-zA-Z]+)\b\s*(?P<rest>.*?)[\s;]*\Z", re.DOTALL)
MOST_NODES = 20_000
"""Parts of one statement's tree; what is done with it takes longer than reading it."""


class ReadOnlyError(QueryError):
    """A statement that would write, where all is only read."""


WRITING = frozenset(
    """INSERT UPDATE DELETE MERGE UPSERT REPLACE TRUNCATE CREATE ALTER DROP RENAME GRANT REVOKE
    COMMENT COPY LOAD IMPORT EXPORT VACUUM REINDEX LOCK""".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class CommandText:
    """A statement of a session: its first word, and what follows."""

    word: str
    rest: str


def command_of(sql: str) -> CommandText | None:
    """The first word of a statement; None where there is no statement."""
    check_text(sql)
    begun = SPACE.match(sql)
    found = COMMAND.match(sql, begun.end() if begun else 0)
    if found is None:
        return None if begun and begun.end() == len(sql) else CommandText("", sql)
    return CommandText(found["word"].upper(), found["rest"])


def command_word(sql: str) -> str:
    """The first word of a statement."""
    found = command_of(sql)
    return "" if found is None else found.word


# ---------------------------------------------------------------------- trees


def tree_of(sql: str) -> exp.Expr:
    """The one SELECT of a text, or several that are joined by UNION."""
    trees = syntax_trees(sql)
    if len(trees) != 1:
        raise QueryError(f"{len(trees)} statements were given", hint="run them one by one")
    tree = trees[0]
    while isinstance(tree, exp.Subquery | exp.Paren) and not tree.args.get("alias"):
        tree = tree.this
    if not isinstance(tree, exp.Select | exp.SetOperation | exp.Values):
        raise not_a_question(sql, sql.split(maxsplit=1)[0].upper())
    if sum(1 for _ in tree.walk()) > MOST_NODES:
        raise QueryError("the statement has too many parts", hint="ask for less at once")
    return tree


class CatalogueDialect(Postgres):
    """PostgreSQL's SQL, in which its clients look at catalogues; parameters are marked."""

    def parser(self, **options: object) -> Any:
        """The parser below."""
        return extended_parser(super().parser, options)

    class Parser(Postgres.Parser):  # type: ignore[misc, valid-type]
        """Marks where parameters are."""

        def _parse_placeholder(self, *args: object, **kwargs: object) -> object:
            token, node = self._curr, super()._parse_placeholder(*args, **kwargs)
            if token and isinstance(node, exp.Expr):
                node.meta.setdefault("start", token.start)
            return node

        def _warn_unsupported(self) -> None:
            """A statement that is not understood is refused; nothing is to be logged."""


def catalogue_tree(sql: str) -> exp.Expr | None:
    """The same as PostgreSQL reads it, if it does."""
    try:
        found = sqlglot.parse_one(sql, dialect=CatalogueDialect)
    except SqlglotError:
        return None
    except RecursionError:
        raise too_deep() from None
    return found if isinstance(found, exp.Select | exp.SetOperation | exp.Values) else None


def rewritten(tree: exp.Expr) -> str:
    """The text of a tree."""
    try:
        return written(tree)
    except UnwrittenError:
        raise QueryError("the statement is not whole SQL") from None


def catalogue_text(tree: exp.Expr) -> str:
    """The text of a look at catalogues, in the words of the engine."""
    try:
        return tree.sql(DuckDB, comments=False, unsupported_level=ErrorLevel.IGNORE)
    except Exception as error:  # see voile.query.text.written
        raise QueryError("the statement is not whole SQL") from error


# ---------------------------------------------------------------------- tables


def tables_in(tree: exp.Expr) -> list[exp.Table]:
    """The tables that a statement reads, but those that WITH defines."""
    defined = {part.alias.lower() for part in tree.find_all(exp.CTE)}
    return [
        table
        for table in tree.find_all(exp.Table)
        if table.args.get("db") or table.name.lower() not in defined
    ]


def check_apart(sql: str, tables: Collection[exp.Table], names: Collection[str]) -> None:
    """Refuse to read a release beside catalogues: these are looked at without its rows."""
    lower = {name.lower() for name in names}
    for table in tables:
        if not is_catalogue(table) and table.name.lower() in lower:
            raise refusal(
                sql, f"{table.name} is not read beside catalogues", place(sql, [table]),
                "ask one after the other",
            )  # fmt: skip


def is_catalogue(table: exp.Table) -> bool:
    """Whether a table is one of those that describe others."""
    if table.db:
        return table.db.lower() in CATALOGUES
    return bool(CATALOGUE_TABLE.fullmatch(table.name))


def released(sql: str, table: exp.Table, names: Collection[str]) -> str:
    """The name of the release that a table stands for, as the session spells it."""
    plain = isinstance(table.this, exp.Identifier)
    known = {name.lower(): name for name in names}
    placed = table.db.lower() in SCHEMAS and table.catalog.lower() in ("", CATALOG)
    if plain and placed and table.name.lower() in known:
        return known[table.name.lower()]
    called = ".".join(part for part in (table.catalog, table.db, table.name) if part)
    shown = repr(called) if called and plain else table.sql("duckdb", comments=False)[:60]
    raise refusal(
        sql,
        f"there is no table {shown}",
        place(sql, [table], "from"),
        f"{did_you_mean(table.name, list(names))} (nothing else is read: no file, no function)",
    )


def unqualified(tree: exp.Expr, names: Collection[str]) -> bool:
    """Take the schema and the database away in front of tables; whether there were any."""
    lower = {name.lower() for name in names}
    changed = False
    for node in tree.find_all(exp.Table, exp.Column):
        if not (node.args.get("db") or node.args.get("catalog")):
            continue
        named = node.table if isinstance(node, exp.Column) else node.name
        if named.lower() in lower:
            node.set("db", None)
            node.set("catalog", None)
            changed = True
    return changed


# ---------------------------------------------------------------------- what is asked


def is_false(tree: exp.Expr | None) -> bool:
    """Whether a condition is false whatever the row: WHERE 1 = 0, as tools write it."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.And):
        return is_false(tree.this) or is_false(tree.expression)
    if isinstance(tree, exp.Boolean):
        return not tree.this
    if isinstance(tree, exp.EQ | exp.NEQ):
        sides = tree.this, tree.expression
        if all(isinstance(side, exp.Literal) for side in sides):
            same = sides[0] == sides[1]
            return same if isinstance(tree, exp.NEQ) else not same
    return False


def unnested(tree: exp.Select) -> exp.Select:
    """SELECT * FROM (SELECT DISTINCT …) as the inner SELECT, sorted and cut as the outer one."""
    source = tree.args.get("from_")
    holder = source.this if source is not None else None
    inner = holder.this if isinstance(holder, exp.Subquery) else None
    outer = {key for key, value in tree.args.items() if value}
    if not (
        isinstance(inner, exp.Select)
        and inner.args.get("distinct")
        and not inner.args.get("limit")
        and outer <= {"expressions", "from_", "order", "limit", "offset"}
        and len(tree.expressions) == 1
        and isinstance(tree.expressions[0], exp.Star)
    ):
        return tree
    found = inner.copy()
    for clause in ("order", "limit", "offset"):
        if given := tree.args.get(clause):
            found.set(clause, given.copy())
    return found


def wants_columns_only(tree: exp.Select) -> bool:
    """Whether no row can come of it: LIMIT 0, or a condition that never holds."""
    limit = tree.args.get("limit")
    count = limit.args.get("expression") or limit.args.get("count") if limit else None
    if isinstance(count, exp.Literal) and count.is_int and int(count.this) == 0:
        return True
    where = tree.args.get("where")
    one_row = not tree.args.get("group") and any(map(aggregates, tree.expressions))
    return where is not None and is_false(where.this) and not one_row


def asks_for_statistics(flat: exp.Select) -> bool:
    """Whether a SELECT that was brought to one level aggregates."""
    clauses = ("having", "order", "qualify")
    held = [flat.args[clause] for clause in clauses if flat.args.get(clause)]
    return any(map(aggregates, [*flat.expressions, *held]))


def refused_command(sql: str, word: str) -> QueryError:
    """The error for a statement that is no question, and no command that is taken."""
    start = len(sql) - len(sql.lstrip())
    if word in WRITING:
        found = refusal(sql, f"{word} is refused: releases and servers are only read", start, ASK)
        return ReadOnlyError(found.message, hint=found.hint, start=found.start)
    return not_a_question(sql, word)
