"""One session of a tool: statements in SQL, answered from releases and servers.

A statement is one of these:

    SELECT … count(*), avg(x) … FROM name …     statistics: estimates from the release or server
    SELECT DISTINCT x FROM name                 the values that x may have, from the public domain
    SELECT x, y FROM name LIMIT 100             rows, where the release shows some
    SELECT … LIMIT 0, WHERE 1 = 0               the columns alone
    SELECT version(), … FROM information_schema.tables     what tools ask about tables
    SET, SHOW, BEGIN, COMMIT, …                 the session's own

Nothing of it writes, and nothing but statistics of a server, with SET voile.charge = on, spends.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from sqlglot import exp

from voile.dbapi.catalogue import Catalogue
from voile.dbapi.parameters import Parameters, Unstated, bound, placeholders
from voile.dbapi.questions import LISTED, distinct, keys_alone, statistics, statistics_fields
from voile.dbapi.results import Field, ResultSet, nothing, rows_result, sql_name
from voile.dbapi.settings import SessionSettings
from voile.dbapi.shown import ShownRows
from voile.dbapi.sources import AskedTable, opened_tables
from voile.dbapi.statements import (
    CommandText,
    asks_for_statistics,
    catalogue_tree,
    check_apart,
    command_of,
    command_word,
    is_catalogue,
    refused_command,
    released,
    rewritten,
    tables_in,
    tree_of,
    unnested,
    unqualified,
    wants_columns_only,
)
from voile.errors import QueryError, UsageError
from voile.query import language
from voile.query.rewriting import Rewriter, aggregates
from voile.query.text import place, refusal, too_deep

TRANSACTIONS = {
    "BEGIN": "BEGIN", "START": "START TRANSACTION", "COMMIT": "COMMIT", "END": "COMMIT",
    "ROLLBACK": "ROLLBACK", "ABORT": "ROLLBACK", "SAVEPOINT": "SAVEPOINT", "RELEASE": "RELEASE",
    "DISCARD": "DISCARD ALL", "UNLISTEN": "UNLISTEN", "DEALLOCATE": "DEALLOCATE",
    "CLOSE": "CLOSE CURSOR",
}  # fmt: skip
"""What a session that only reads takes, and does nothing for but to undo what was set."""
TABLE_INFO = re.compile(r"table_info\s*\(\s*'?(?P<name>[^']+?)'?\s*\)", re.IGNORECASE)
EXPLAINED = re.compile(r"\A(?:ANALYZE\b|VERBOSE\b|\([^)]*\)|\s)+", re.IGNORECASE)
"""What may stand between EXPLAIN and the question."""
ASKING = frozenset(["SELECT", "WITH", "FROM", "VALUES", "TABLE", ""])


class SqlSource:
    """The tables that sessions share, and the catalogue that describes them."""

    def __init__(self, tables: Mapping[str, AskedTable]) -> None:
        self.tables = dict(tables)
        self.catalogue = Catalogue(self.tables.values())
        self.shown = {name: ShownRows(table) for name, table in self.tables.items()}

    def close(self) -> None:
        """Close what the tables hold."""
        self.catalogue.close()
        for shown in self.shown.values():
            shown.close()
        for table in self.tables.values():
            table.close()


class SqlSession:
    """Statements of one caller; threads take turns."""

    def __init__(
        self,
        source: Any,
        *,
        intervals: bool = False,
        charge: bool = False,
        confidence: float = 0.95,
        token: str | None = None,
        token_file: str | Path | None = None,
        ca: str | Path | None = None,
        insecure: bool = False,
    ) -> None:
        """`source` is a release or its path, a folder of releases, a server or its address.

        Or a list of these, or an `SqlSource`, which other sessions may share; closing a session
        leaves it open.
        """
        self.settings = SessionSettings(intervals=intervals, charge=charge, confidence=confidence)
        self._shared = isinstance(source, SqlSource)
        self.source: SqlSource = source if isinstance(source, SqlSource) else SqlSource(
            opened_tables(source, token=token, token_file=token_file, ca=ca, insecure=insecure)
        )  # fmt: skip
        self._turn = threading.RLock()
        self._thread = 0
        """Which runs a statement; 0: none does."""
        self._closed = False

    @property
    def tables(self) -> dict[str, tuple[Field, ...]]:
        """The columns of every table, by its name."""
        return {name: table.fields for name, table in self.source.tables.items()}

    def run(self, sql: str, parameters: Parameters = ()) -> ResultSet:
        """Run one statement; parameters stand at ?, $1 or $name."""
        return self._taken(sql, parameters, run=True)

    def fields(self, sql: str, parameters: Parameters | None = None) -> tuple[Field, ...]:
        """The columns that a statement gives. It is not run, and nothing is charged.

        Parameters that are not given are taken to be NULL.
        """
        return self._taken(sql, parameters, run=False).fields

    def interrupt(self) -> None:
        """End what the statement that runs computes here; from another thread."""
        if thread := self._thread:
            for table in self.source.tables.values():
                table.domain.interrupt(thread)

    def close(self) -> None:
        """End the session."""
        if not self._closed and not self._shared:
            self.source.close()
        self._closed = True

    def __enter__(self) -> SqlSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ statements

    def _taken(self, sql: str, parameters: Parameters | None, *, run: bool) -> ResultSet:
        if self._closed:
            raise UsageError("the session is closed", hint="connect again")
        try:
            with self._turn:
                self._thread = threading.get_ident()
                try:
                    return self._one(sql, parameters, run=run)
                finally:
                    self._thread = 0
        except RecursionError:
            raise too_deep() from None

    def _one(self, sql: str, parameters: Parameters | None, *, run: bool) -> ResultSet:
        command = command_of(sql)
        if command is None:
            return nothing("")
        if command.word in ASKING:
            return self._select(sql, parameters, run=run)
        return self._command(sql, command, run=run)

    def _command(self, sql: str, command: CommandText, *, run: bool) -> ResultSet:
        word, rest = command.word, command.rest
        if word in TRANSACTIONS:
            if run:
                self._transact(word, rest.upper().split())
            return nothing(TRANSACTIONS[word])
        ways: dict[str, Callable[[str], ResultSet]] = {
            "SET": self.settings.set if run else lambda _: nothing("SET"),
            "RESET": self.settings.reset if run else lambda _: nothing("RESET"),
            "SHOW": self._show,
            "DESCRIBE": self._describe,
            "DESC": self._describe,
            "PRAGMA": self._pragma,
            "EXPLAIN": self._explain,
        }
        if word not in ways:
            raise refused_command(sql, word)
        return ways[word](rest)

    def _transact(self, word: str, rest: list[str]) -> None:
        """Nothing is changed but settings, so nothing else is undone."""
        if word == "DISCARD":
            self.settings.reset("all")
        elif word in ("BEGIN", "START"):
            self.settings.begin()
        elif word in ("COMMIT", "END"):
            self.settings.end(undo=False)
        elif word in ("ROLLBACK", "ABORT") and "TO" not in rest[:2]:
            self.settings.end(undo=True)

    def _show(self, name: str) -> ResultSet:
        if name.strip().lower() == "tables":
            rows = [(table,) for table in self.tables]
            return rows_result([Field("name", pa.string())], rows, tag="SHOW")
        return self.settings.show(name)

    def _describe(self, name: str) -> ResultSet:
        table = exp.to_table(name.strip() or "name", dialect="duckdb")
        found = released(name, table, self.source.tables)
        fields = [Field(n, pa.string()) for n in ("column_name", "column_type", "null")]
        listed = self.source.tables[found]
        rows = [
            (field.name, sql_name(field.type), "YES" if attribute.null else "NO")
            for field, attribute in zip(listed.fields, listed.schema, strict=True)
        ]
        return rows_result(fields, rows)

    def _pragma(self, text: str) -> ResultSet:
        """PRAGMA table_info('name'), which some tools ask for columns."""
        asked = TABLE_INFO.fullmatch(text.strip())
        if asked is None:
            raise QueryError(
                f"PRAGMA {text[:60]} is refused", hint="PRAGMA table_info('name') is answered"
            )
        described = self._describe(asked["name"])
        names = ("cid", "name", "type", "notnull", "dflt_value", "pk")
        kinds = (pa.int64(), pa.string(), pa.string(), pa.bool_(), pa.string(), pa.bool_())
        rows = [
            (i, name, kind, null == "NO", None, False)
            for i, (name, kind, null) in enumerate(described.to_rows())
        ]
        return rows_result([Field(n, k) for n, k in zip(names, kinds, strict=True)], rows)

    def _explain(self, text: str) -> ResultSet:
        """EXPLAIN of a question: what answers it, and what that would be charged."""
        asked = EXPLAINED.sub("", text, count=1)
        tree = tree_of(asked)
        lines = ["a look at catalogues, which is free"]
        if not self._is_look(asked, tree):
            question = self._question(asked, tree, None)
            lines = [*explained(question)]
        return rows_result([Field("QUERY PLAN", pa.string())], [(line,) for line in lines])

    # ------------------------------------------------------------------ SELECT

    def _select(self, sql: str, parameters: Parameters | None, *, run: bool) -> ResultSet:
        tree = tree_of(sql)
        if self._is_look(sql, tree):
            return self._looked_up(sql, tree, parameters, run=run)
        question = self._question(sql, tree, parameters)
        return self._answered(question, run=run and not question.columns_only)

    def _is_look(self, sql: str, tree: exp.Expr) -> bool:
        """Whether a SELECT reads catalogues, or no table."""
        tables = tables_in(tree)
        if tables and not any(map(is_catalogue, tables)):
            return False
        check_apart(sql, tables, self.source.tables)
        return True

    def _looked_up(
        self, sql: str, tree: exp.Expr, parameters: Parameters | None, *, run: bool
    ) -> ResultSet:
        as_postgres = catalogue_tree(sql)
        if as_postgres is not None and len(placeholders(as_postgres)) == len(placeholders(tree)):
            tree = as_postgres
        tree = bound(tree, given(parameters))
        values = self.settings.values
        if run:
            return self.source.catalogue.run(sql, tree, values)
        return ResultSet(self.source.catalogue.fields(sql, tree, values), [], "SELECT 0")

    def _question(self, sql: str, tree: exp.Expr, parameters: Parameters | None) -> TableQuestion:
        """A SELECT of one table, with its parameters in place."""
        plain = not placeholders(tree) and command_word(sql) in ("SELECT", "WITH", "FROM")
        tree = bound(tree, given(parameters))
        tables = tables_in(tree)
        named = sorted({released(sql, table, self.source.tables) for table in tables})
        if len(named) > 1:
            raise refusal(
                sql, f"{' and '.join(named)} cannot be read together: no release knows which of "
                "its rows belong to which of another's", place(sql, tables), "ask each by itself",
            )  # fmt: skip
        if not isinstance(tree, exp.Select):
            raise refusal(sql, f"{tree.key.upper()} is not answered from a release", 0,
                          "ask one query at a time")  # fmt: skip
        language.check(sql, tree)  # of what was written; the rest is about what was read of it
        changed = unqualified(tree, named)
        inner = unnested(tree)
        same = plain and not changed and inner is tree
        return TableQuestion(sql if same else rewritten(inner), inner, self.source.tables[named[0]])

    def _answered(self, question: TableQuestion, *, run: bool) -> ResultSet:
        """Statistics, values of the domain, or rows."""
        sql, table = question.sql, question.table
        if question.sort == "statistics":
            if not any(map(aggregates, question.flat.expressions)):
                return keys_alone(question.flat, table, self.settings, run=run)
            if run:
                return statistics(sql, table, self.settings)
            return ResultSet(statistics_fields(sql, table, self.settings), [], "SELECT 0")
        if question.sort == "values":
            return distinct(question.flat, table, run=run)
        return self.source.shown[table.name].select(sql, question.tree, run=run)


# ---------------------------------------------------------------------- questions


@dataclass(frozen=True)
class TableQuestion:
    """A SELECT of one table: its text, its tree, and the table."""

    sql: str
    tree: exp.Select
    table: AskedTable

    @cached_property
    def flat(self) -> exp.Select:
        """The same as one SELECT without another one inside."""
        columns = tuple(self.table.schema.names)
        return Rewriter(self.sql, columns, {}, self.table.name).flattened(self.tree)

    @property
    def sort(self) -> Literal["statistics", "values", "rows"]:
        """What is asked: estimates, values that columns may have, or rows."""
        if asks_for_statistics(self.flat):
            return "statistics"
        grouped = self.flat.args.get("distinct") or self.flat.args.get("group")
        return "values" if grouped else "rows"

    @property
    def columns_only(self) -> bool:
        """Whether no row can come of it."""
        return wants_columns_only(self.tree)


def explained(question: TableQuestion) -> Iterator[str]:
    """What answers a question, and what that would be charged."""
    if question.columns_only:
        yield "the columns alone, which are free"
    elif question.sort == "statistics":
        yield from question.table.price(question.sql)
    elif question.sort == "values":
        yield LISTED
    else:
        yield question.table.rows()[1]


def given(parameters: Parameters | None) -> Parameters:
    """The parameters; where only columns are sought and none are given, NULL for each."""
    return Unstated() if parameters is None else parameters
