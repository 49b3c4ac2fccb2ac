"""Answers to what clients ask of PostgreSQL's catalogues, by a database in memory."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects import DuckDB
from sqlglot.errors import ErrorLevel

from voile.engines import SqlTables, open_tables
from voile.errors import QueryError
from voile.wire.catalogue.relations import filled_tables
from voile.wire.catalogue.translating import result_names, translated
from voile.wire.catalogue.words import prelude
from voile.wire.conversation import FieldLike, WireCaller
from voile.wire.messages import WireError

COPIES = 3
"""Of the database: so many clients look at catalogues at the same time."""


class PostgresCatalogue:
    """The catalogues of some tables; threads share it."""

    def __init__(self, tables: Mapping[str, Sequence[FieldLike]]) -> None:
        self._tables = tables
        self._free: queue.Queue[SqlTables | None] = queue.Queue()
        for _ in range(COPIES):
            self._free.put(None)  # made when it is needed

    @property
    def names(self) -> list[str]:
        """The tables that it describes."""
        return list(self._tables)

    def run(self, tree: exp.Expr, caller: WireCaller, values: Sequence[Any]) -> pa.Table:
        """The rows of a query."""
        sql = self._sql(tree, caller, values)
        with self._database() as database:
            found = database.run(sql)
        return found.rename_columns(result_names(tree, found.column_names))

    def fields(self, tree: exp.Expr, caller: WireCaller, values: Sequence[Any]) -> pa.Schema:
        """The columns that it would give."""
        sql = self._sql(tree, caller, values)
        with self._database() as database:
            found = database.fields(sql)
        names = result_names(tree, found.names)
        return pa.schema(
            [pa.field(name, kind) for name, kind in zip(names, found.types, strict=True)]
        )

    def _sql(self, tree: exp.Expr, caller: WireCaller, values: Sequence[Any]) -> str:
        return as_sql(translated(tree, caller, values))

    @contextmanager
    def _database(self) -> Iterator[SqlTables]:
        database = self._free.get()
        try:
            if database is None:
                database = self._opened()
            yield database
        except QueryError as error:
            raise refusal_of(error) from None
        finally:
            self._free.put(database)

    def _opened(self) -> SqlTables:
        filled = filled_tables(self._tables)
        return open_tables(filled, prelude=list(prelude(self.names, list(filled))))

    def close(self) -> None:
        """Forget the tables."""
        for _ in range(COPIES):
            database = self._free.get()
            if database is not None:
                database.close()


def as_sql(tree: exp.Expr) -> str:
    """The tree in the words of the engine."""
    try:
        return tree.sql(DuckDB, comments=False, unsupported_level=ErrorLevel.IGNORE)
    except Exception as error:  # what the generator raises has no common class
        raise WireError(
            "42601", "the statement is not whole SQL", hint="ask with SELECT"
        ) from error


def refusal_of(error: QueryError) -> WireError:
    """What the engine refused, with the SQLSTATE that clients know; never where files lie."""
    message = error.message
    if "Cannot access" in message or "extension" in message:
        return WireError(
            "0A000", "the statement reads what is not here", hint="ask about pg_catalog"
        )
    state = next((state for part, state in STATES if part in message), "0A000")
    return WireError(state, message, hint=error.hint or "ask about pg_catalog")


STATES = (
    ("Function with name", "42883"), ("does not exist", "42P01"), ("not found in FROM", "42703"),
    ("Could not convert", "22P02"), ("longer than", "57014"), ("syntax", "42601"),
    ("Out of Memory", "53200"),
)  # fmt: skip
"""By what the engine's messages say."""
