"""Statements: one text cut into them, and what kind each is, by its first words and its tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from voile.dbapi.statements import CatalogueDialect
from voile.wire.messages import WireError

LONGEST = 200_000
"""Characters of one text: reading SQL takes time by its length."""


class StatementKind(Enum):
    """What is to be done."""

    EMPTY = "nothing"
    QUERY = "rows of a query"
    BEGIN = "begin a transaction"
    COMMIT = "end a transaction"
    ROLLBACK = "end a transaction that failed"
    SAVEPOINT = "a point in a transaction"
    SET = "change a setting"
    SHOW = "show a setting"
    DECLARE = "begin a cursor"
    FETCH = "the next rows of a cursor"
    CLOSE = "end a cursor"
    PASSED = "nothing that matters here"
    REFUSED = "nothing that can be done here"


@dataclass(frozen=True)
class WireStatement:
    """One statement of a client's."""

    kind: StatementKind
    sql: str
    start: int = 0
    """Where it begins in the text that it came in."""
    tag: str = ""
    """What a client is told when it is done, where that is known by its words."""
    words: tuple[str, ...] = ()
    """Its first words, in capitals."""


FIRST: dict[str, tuple[StatementKind, str]] = {
    "SELECT": (StatementKind.QUERY, "SELECT"), "WITH": (StatementKind.QUERY, "SELECT"),
    "VALUES": (StatementKind.QUERY, "SELECT"), "TABLE": (StatementKind.QUERY, "SELECT"),
    "(": (StatementKind.QUERY, "SELECT"), "EXPLAIN": (StatementKind.QUERY, "EXPLAIN"),
    "BEGIN": (StatementKind.BEGIN, "BEGIN"), "START": (StatementKind.BEGIN, "START TRANSACTION"),
    "COMMIT": (StatementKind.COMMIT, "COMMIT"), "END": (StatementKind.COMMIT, "COMMIT"),
    "ROLLBACK": (StatementKind.ROLLBACK, "ROLLBACK"),
    "ABORT": (StatementKind.ROLLBACK, "ROLLBACK"),
    "SAVEPOINT": (StatementKind.SAVEPOINT, "SAVEPOINT"),
    "RELEASE": (StatementKind.SAVEPOINT, "RELEASE"),
    "SET": (StatementKind.SET, "SET"), "RESET": (StatementKind.SET, "RESET"),
    "SHOW": (StatementKind.SHOW, "SHOW"),
    "DECLARE": (StatementKind.DECLARE, "DECLARE CURSOR"), "FETCH": (StatementKind.FETCH, "FETCH"),
    "CLOSE": (StatementKind.CLOSE, "CLOSE CURSOR"),
    "DEALLOCATE": (StatementKind.PASSED, "DEALLOCATE"),
    "DISCARD": (StatementKind.PASSED, "DISCARD ALL"),
    "LISTEN": (StatementKind.PASSED, "LISTEN"), "UNLISTEN": (StatementKind.PASSED, "UNLISTEN"),
}  # fmt: skip


def statements_of(sql: str) -> list[WireStatement]:
    """The statements of a text, without those that are empty."""
    if len(sql) > LONGEST:
        raise WireError(
            "54000", f"the text has {len(sql):,} characters, more than {LONGEST:,}",
            hint="send one statement at a time",
        )  # fmt: skip
    found: list[WireStatement] = []
    part: list[Token] = []
    for token in [*tokens_of(sql), None]:
        if token is not None and token.token_type is not TokenType.SEMICOLON:
            part.append(token)
        elif part:
            found.append(statement_of(sql, part))
            part = []
    return found


def tokens_of(sql: str) -> list[Token]:
    """The words of a text, as PostgreSQL reads them."""
    try:
        return list(Postgres().tokenize(sql))
    except SqlglotError:
        raise WireError(
            "42601", "the text is no SQL", hint="is every quotation mark closed?"
        ) from None


def statement_of(sql: str, tokens: Sequence[Token]) -> WireStatement:
    """One statement, by its words."""
    start, end = tokens[0].start, tokens[-1].end + 1
    words = tuple(token.text.upper() for token in tokens[:6])
    kind, tag = FIRST.get(words[0], (StatementKind.REFUSED, ""))
    if kind is StatementKind.ROLLBACK and "TO" in words[:3]:
        kind = StatementKind.SAVEPOINT
    return WireStatement(kind, sql[start:end], start, tag, words)


def refusal(statement: WireStatement) -> WireError:
    """Why a statement is none that is done here."""
    word = statement.words[0]
    if word == "COPY":
        return WireError("0A000", "COPY is not answered here",
                         hint="SELECT the rows; \\g FILE of psql writes them down")  # fmt: skip
    if word in WRITING:
        return WireError("25006", f"{word} would change something: what is here is only read",
                         hint="ask with SELECT")  # fmt: skip
    return WireError("42601", f"{word[:40]!r} begins no statement that is answered here",
                     hint="ask with SELECT")  # fmt: skip


WRITING = frozenset(
    ["INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP", "GRANT",
     "REVOKE", "COMMENT", "VACUUM", "ANALYZE", "REINDEX", "CLUSTER", "REFRESH", "IMPORT"]
)  # fmt: skip


# ---------------------------------------------------------------------- tables of a query


@dataclass(frozen=True)
class TableName:
    """A table as a query names it."""

    schema: str
    name: str
    start: int | None = None


@lru_cache(maxsize=512)
def parsed(sql: str) -> exp.Expr | None:
    """The tree of one query; None where it is none. It is shared: copy it before changing it."""
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect=CatalogueDialect) if tree is not None]
    except (SqlglotError, RecursionError):
        return None
    return trees[0] if len(trees) == 1 else None


def tables_in(tree: exp.Expr) -> list[TableName]:
    """The tables that a query reads, without those that it makes itself."""
    own = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    return [
        TableName(folded(table.args.get("db")), folded(table.this))
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)
        and (table.args.get("db") or table.name.lower() not in own)
    ]


def folded(name: Any) -> str:
    """A name as PostgreSQL knows it: in small letters, where it is not quoted."""
    if not isinstance(name, exp.Identifier):
        return ""
    return name.name if name.quoted else name.name.lower()


def without_database(sql: str, database: str) -> str:
    """The text with spaces in the place of a database's name, which tools write before schemas."""
    if database not in sql:
        return sql
    tokens, found = tokens_of(sql), list(sql)
    dots = [token.token_type is TokenType.DOT for token in tokens]
    for at in range(len(tokens) - 4):
        parts = [tokens[at].text, tokens[at + 2].text]
        if dots[at + 1] and dots[at + 3] and parts == [database, "public"]:
            start, stop = tokens[at].start, tokens[at + 1].end + 1
            found[start:stop] = " " * (stop - start)
    return "".join(found)


# ---------------------------------------------------------------------- settings and cursors


SETTING = re.compile(
    r"""\s*(?:SESSION\s+|LOCAL\s+)?(?P<name>[\w.]+|"[^"]+")\s*(?:=|\s+TO\s+)\s*(?P<value>.*)""",
    re.IGNORECASE | re.DOTALL,
)
ZONE = re.compile(r"\s*(?:SESSION\s+|LOCAL\s+)?TIME\s+ZONE\s+(?P<value>.*)", re.IGNORECASE)
RESETTABLE = re.compile(r'[\w.]+(?:\s+[\w.]+)*|"[^"]+"')
NAMES = re.compile(r"\s*NAMES\s+(?P<value>.*)", re.IGNORECASE)
OF_TRANSACTION = re.compile(
    r"\s*(?:(?:SESSION\s+|LOCAL\s+)?TRANSACTION|SESSION\s+CHARACTERISTICS|CONSTRAINTS"
    r"|(?:SESSION\s+|LOCAL\s+)?ROLE|SESSION\s+AUTHORIZATION)\b",
    re.IGNORECASE,
)


def setting_of(sql: str) -> tuple[str, str | None] | None:
    """The setting that SET or RESET changes, and to what; None where it is none of ours.

    The value is None for the default; the name is "all" for RESET ALL.
    """
    word, rest = [*re.split(r"\s+", sql.strip(), maxsplit=1), ""][:2]
    if word.upper() == "RESET":
        if not RESETTABLE.fullmatch(rest.strip()):
            raise WireError("42601", "RESET is not followed by a setting",
                            hint="write RESET ALL, or name one setting")  # fmt: skip
        return rest.strip().strip('"').lower(), None
    if OF_TRANSACTION.match(rest):
        return None
    if found := ZONE.match(rest):
        return "timezone", unquoted(found["value"])
    if found := NAMES.match(rest):
        return "client_encoding", unquoted(found["value"])
    if not (found := SETTING.match(rest)):
        raise WireError("42601", "SET is not followed by a setting and a value",
                        hint="such as SET statement_timeout = 10000")  # fmt: skip
    value = found["value"].strip()
    default = value.upper() == "DEFAULT"
    return found["name"].strip('"').lower(), None if default else unquoted(value)


def unquoted(value: str) -> str:
    """A value as SET gives it; a list is joined with commas."""
    parts = [part.strip() for part in value.strip().split(",")]
    return ", ".join(
        part[1:-1].replace("''", "'") if len(part) > 1 and part[0] == part[-1] == "'" else
        part.strip('"') for part in parts
    )  # fmt: skip


DECLARED = re.compile(
    r"DECLARE\s+(?P<name>\w+|\"[^\"]+\")\s+(?:(?:BINARY|INSENSITIVE|ASENSITIVE|NO|SCROLL)\s+)*"
    r"CURSOR\s+(?:(?:WITH|WITHOUT)\s+HOLD\s+)?FOR\s+(?P<query>.*)",
    re.IGNORECASE | re.DOTALL,
)
FETCHED = re.compile(
    r"(?:FETCH|MOVE)\s+(?:(?P<all>FORWARD\s+ALL|ALL)|(?:FORWARD\s+)?(?P<most>\d+)|NEXT|FORWARD)?"
    r"\s*(?:(?:FROM|IN)\s+)?(?P<name>\w+|\"[^\"]+\")\s*",
    re.IGNORECASE,
)
DEALLOCATED = re.compile(r"DEALLOCATE\s+(?:PREPARE\s+)?(?P<name>\w+|\"[^\"]+\")\s*", re.IGNORECASE)
CLOSED = re.compile(r"CLOSE\s+(?P<name>\w+|\"[^\"]+\")\s*", re.IGNORECASE)


def cursor_name(text: str) -> str:
    """A cursor's name as PostgreSQL knows it."""
    return text.strip('"') if text.startswith('"') else text.lower()


def deallocated(statement: WireStatement) -> str:
    """The prepared statement that is to be forgotten: its name, "all", or none."""
    if statement.words[:2] == ("DISCARD", "ALL"):
        return "all"
    if statement.words[:1] != ("DEALLOCATE",):
        return ""
    found = DEALLOCATED.fullmatch(statement.sql)
    if found is None:
        raise WireError("42601", "DEALLOCATE is not followed by a statement's name",
                        hint="write DEALLOCATE ALL, or name one")  # fmt: skip
    return cursor_name(found["name"])
