"""Connections and cursors as DB-API 2.0 (PEP 249) has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

from voile.dbapi import exceptions
from voile.dbapi.exceptions import InterfaceError, OperationalError, as_standard
from voile.dbapi.parameters import Parameters
from voile.dbapi.results import ResultSet, sql_name
from voile.dbapi.session import SqlSession

Description = tuple[str, str, None, None, None, None, bool]
"""A column: its name, the name of its SQL type, and that it may be NULL."""


class Connection:
    """A session; everything is only read: nothing is committed, and settings alone are undone."""

    Warning = exceptions.Warning
    Error = exceptions.Error
    InterfaceError = exceptions.InterfaceError
    DatabaseError = exceptions.DatabaseError
    DataError = exceptions.DataError
    OperationalError = exceptions.OperationalError
    IntegrityError = exceptions.IntegrityError
    InternalError = exceptions.InternalError
    ProgrammingError = exceptions.ProgrammingError
    NotSupportedError = exceptions.NotSupportedError

    def __init__(self, session: SqlSession) -> None:
        self.session = session
        self.autocommit = True
        self._closed = False

    def cursor(self) -> Cursor:
        """A cursor that runs statements in this session."""
        self.check_open()
        return Cursor(self)

    def execute(self, sql: str, parameters: Parameters = ()) -> Cursor:
        """A cursor that has run a statement."""
        return self.cursor().execute(sql, parameters)

    def commit(self) -> None:
        """Nothing: there is nothing to commit."""
        self.check_open()

    def rollback(self) -> None:
        """Take back what was set, as the connection began: pools clean connections with this.

        Nothing else was changed. Whoever gets the connection next spends nothing unasked.
        """
        self.check_open()
        self.session.run("RESET ALL")

    def close(self) -> None:
        """End the session; its cursors are of no use then."""
        self._closed = True
        self.session.close()

    def check_open(self) -> None:
        """Refuse what is asked of a connection that was closed."""
        if self._closed:
            raise InterfaceError("the connection is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Cursor:
    """Runs statements, and gives their rows one after the other."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.lastrowid: int | None = None
        self._result: ResultSet | None = None
        self._rows: list[tuple[Any, ...]] | None = None
        self._next = 0
        self._closed = False

    # ------------------------------------------------------------------ statements

    def execute(self, sql: str, parameters: Parameters = ()) -> Self:
        """Run a statement; parameters stand at ?, or at $name if they are named."""
        self._check_open()
        self._result, self._rows, self._next = None, None, 0
        with as_standard():
            self._result = self.connection.session.run(sql, parameters)
        return self

    def executemany(self, sql: str, sequence: Iterable[Parameters]) -> Self:
        """Run a statement for each of some parameters; the rows are those of the last."""
        self._check_open()
        for parameters in sequence:
            self.execute(sql, parameters)
        return self

    @property
    def description(self) -> list[Description] | None:
        """The columns; None where a statement gives no rows."""
        if self._result is None or not self._result.fields:
            return None
        return [
            (field.name, sql_name(field.type), None, None, None, None, True)
            for field in self._result.fields
        ]

    @property
    def rowcount(self) -> int:
        """How many rows there are; −1 where there are none to be had."""
        if self._result is None or not self._result.fields:
            return -1
        return len(self._result.rows)

    @property
    def rownumber(self) -> int | None:
        """The place of the next row."""
        return None if self._result is None else self._next

    @property
    def notices(self) -> tuple[str, ...]:
        """What should be known of the rows."""
        return () if self._result is None else self._result.notices

    @property
    def messages(self) -> list[tuple[type[Exception], str]]:
        """The notices, in the standard's form."""
        return [(exceptions.Warning, notice) for notice in self.notices]

    # ------------------------------------------------------------------ rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last."""
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, `arraysize` of them if no other number is given."""
        count = self.arraysize if size is None else size
        if count < 0:
            raise InterfaceError(f"{count} rows cannot be fetched")
        rows = self._fetched()
        found = rows[self._next : self._next + count]
        self._next += len(found)
        return found

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self.fetchmany(len(self._fetched()))

    def fetch_arrow_table(self) -> Any:
        """All rows as an Arrow table."""
        return self._had().to_arrow()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def _had(self) -> ResultSet:
        self._check_open()
        if self._result is None or not self._result.fields:
            raise InterfaceError("there are no rows: execute a SELECT first")
        return self._result

    def _fetched(self) -> list[tuple[Any, ...]]:
        result = self._had()
        if self._rows is None:
            self._rows = result.to_rows()
        return self._rows

    # ------------------------------------------------------------------ the rest of the standard

    def nextset(self) -> None:
        """None: a statement gives one set of rows."""

    def setinputsizes(self, sizes: object) -> None:
        """Nothing: sizes need not be known."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing: sizes need not be known."""

    def close(self) -> None:
        """Forget the rows."""
        self._closed = True
        self._result = self._rows = None

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection.check_open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    source: str | Path | Any,
    *,
    token: str | None = None,
    token_file: str | Path | None = None,
    ca: str | Path | None = None,
    insecure: bool = False,
    intervals: bool = False,
    charge: bool = False,
    confidence: float = 0.95,
) -> Connection:
    """A connection to a release, to a folder of releases, or to a server by its address.

    The token of a server is in `token_file`, or in the variable VOILE_TOKEN. With `intervals` each
    estimate has three columns beside it: NAME_stderr, NAME_low and NAME_high, at `confidence`. A
    question that would take from a server's budget is refused, unless `charge` says that it may.
    """
    with as_standard(OperationalError):
        return Connection(
            SqlSession(
                source, token=token, token_file=token_file, ca=ca, insecure=insecure,
                intervals=intervals, charge=charge, confidence=confidence,
            )
        )  # fmt: skip
