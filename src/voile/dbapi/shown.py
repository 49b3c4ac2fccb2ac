"""SELECT of rows, where a release shows some: run on these rows, and on nothing else."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from sqlglot import exp

from voile.dbapi.results import Field, ResultSet, fields_of, table_result
from voile.dbapi.sources import AskedTable
from voile.dbapi.statements import rewritten
from voile.engines import SqlTables, open_tables
from voile.errors import QueryError, did_you_mean
from voile.query.language import ALLOWED, NAMED, why_not
from voile.query.text import place, refusal, short

ROW_PARTS = (
    exp.Select, exp.From, exp.Table, exp.TableAlias, exp.Identifier, exp.Where, exp.Order,
    exp.Ordered, exp.Limit, exp.Offset, exp.Star, exp.Alias, exp.Subquery, exp.Distinct,
    exp.With, exp.CTE,
)  # fmt: skip
"""What a SELECT of rows is made of, besides expressions of one row."""
MEMORY = "1GB"


class ShownRows:
    """The rows of a table, read when they are first looked at."""

    def __init__(self, table: AskedTable) -> None:
        self._table = table
        self._opened: tuple[SqlTables, str] | None = None
        self._empty: SqlTables | None = None
        self._opening = threading.Lock()

    def select(self, sql: str, tree: exp.Select, *, run: bool) -> ResultSet:
        """The rows that a SELECT chooses; without `run` its columns."""
        check_rows_only(sql, tree)
        check_columns(sql, tree, [field.name for field in self._table.fields])
        text = rewritten(tree)
        try:
            tables, words = self._tables()
        except QueryError:
            if run:
                raise
            return ResultSet(self._probed(text), [], "SELECT 0")
        if run:
            return table_result(tables.run(text), words)
        return ResultSet(fields_of(tables.fields(text)), [], "SELECT 0")

    def _tables(self) -> tuple[SqlTables, str]:
        with self._opening:
            if self._opened is None:
                rows, words = self._table.rows()
                self._opened = (
                    open_tables({self._table.name: rows}, shared=True, memory=MEMORY),
                    words,
                )
        return self._opened

    def _probed(self, text: str) -> tuple[Field, ...]:
        """The columns that rows would have, where there are none to be shown."""
        with self._opening:
            if self._empty is None:
                schema: Any = pa.schema([pa.field(f.name, f.type) for f in self._table.fields])
                self._empty = open_tables({self._table.name: schema.empty_table()})
        return fields_of(self._empty.fields(text))

    def close(self) -> None:
        """Forget the rows."""
        for tables in (self._opened[0] if self._opened else None, self._empty):
            if tables is not None:
                tables.close()


def check_rows_only(sql: str, tree: exp.Expr) -> None:
    """Refuse all that is no expression of one row."""
    for node in tree.walk():
        named = isinstance(node, exp.Anonymous) and node.name.lower() in NAMED
        if named or isinstance(node, (*ROW_PARTS, *ALLOWED)):
            continue
        raise refusal(sql, f"{short(node)} cannot be used here", place(sql, [node]), why_not(node))


def check_columns(sql: str, tree: exp.Expr, names: Sequence[str]) -> None:
    """Refuse columns that nothing is called, by name and place."""
    given = {name.casefold() for name in names}
    given |= {one.alias.casefold() for one in tree.find_all(exp.Alias)}
    for column in tree.find_all(exp.Column):
        star = isinstance(column.this, exp.Star)
        if not star and column.name.casefold() not in given:
            raise refusal(
                sql,
                f"there is no column {column.name!r}",
                place(sql, [column]),
                did_you_mean(column.name, list(names)),
            )
