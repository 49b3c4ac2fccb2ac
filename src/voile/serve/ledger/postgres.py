"""A ledger in PostgreSQL, which several servers may share.

A transaction that writes first locks the one row of `about`: so charges come one after the other,
whichever server they come from. Its tables are in a schema of their own, named by the server's id.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from voile.errors import UsageError, spelled
from voile.serve.ledger.base import LedgerError
from voile.serve.ledger.store import LedgerStore, T, Work
from voile.serve.setting import Setting
from voile.web.postgres import (
    NotDurableError,
    alone,
    connect,
    driver,
    first_line,
    has_tables,
    place,
    runner,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from voile.serve.ledger.store import Run

    Connection = psycopg.Connection[tuple[Any, ...]]

IDLE = 8
"""Connections for reading that are kept."""


class PostgresStore(LedgerStore):
    """One connection that writes, and some that read; a lost one is made anew."""

    def __init__(self, url: str, server: str) -> None:
        self.url = url
        self.schema = schema_of(server)
        self._writing: Connection | None = None
        self._idle: list[Connection] = []
        self._idle_lock = threading.Lock()
        if not exists(url, server):
            raise LedgerError(
                f"there is no ledger {self.schema!r} in {place(url)}",
                hint="a ledger is begun by voile serve init --ledger URL",
                lasting=True,
            )

    def write(self, work: Work[T]) -> T:
        """One transaction under the lock of `about`; a lost connection is replaced before it."""
        with failing(self.url):
            try:
                with ExitStack() as stack:
                    done = work(self._begin(stack))
            except BaseException:
                self._leave()
                raise
        return done

    def _begin(self, stack: ExitStack) -> Run:
        """Begin to write; on a new connection, if the last one was lost meanwhile."""
        if self._writing is not None:
            try:
                return alone(self._writing, stack)
            except driver().OperationalError:
                if not self._writing.broken:
                    raise
                stack.pop_all()
                self._leave()
        self._writing = connect(self.url, self.schema)
        return alone(self._writing, stack)

    def read(self, work: Work[T]) -> T:
        """One transaction on an idle connection, or on a new one."""
        with failing(self.url):
            while connection := self._take():
                try:
                    return self._read(connection, work)
                except driver().OperationalError:
                    if not connection.broken:  # else it was lost while idle, perhaps long ago
                        raise
            return self._read(connect(self.url, self.schema), work)

    def _read(self, connection: Connection, work: Work[T]) -> T:
        try:
            with connection.transaction():
                done = work(runner(connection))
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        return done

    def spoils(self, error: Exception) -> bool:
        """Whether the database itself failed, not only the statement."""
        of_one = (driver().IntegrityError, driver().DataError, driver().ProgrammingError)
        return isinstance(error, driver().Error) and not isinstance(error, of_one)

    def close(self) -> None:
        """Close all connections."""
        self._leave()
        with self._idle_lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def _leave(self) -> None:
        """Close the writing connection: its state is unknown after an error."""
        if self._writing is not None:
            with suppress(Exception):
                self._writing.close()
            self._writing = None

    def _take(self) -> Connection | None:
        with self._idle_lock:
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: Connection) -> None:
        with self._idle_lock:
            if len(self._idle) < IDLE:
                self._idle.append(connection)
                return
        connection.close()


def check_url(url: str) -> None:
    """Refuse what is no address of a PostgreSQL before anything is made."""
    if not url.startswith(("postgresql://", "postgres://")):
        raise UsageError(
            f"{spelled('ledger')} must be postgresql://…, not {url.partition(':')[0]!r}",
            hint=f"postgresql://user@host/database; without {spelled('ledger')} it is a file in "
            "the folder",
        )


def exists(url: str, server: str) -> bool:
    """Whether the server's tables are there."""
    schema = schema_of(server)
    with failing(url), connect(url, schema) as connection:
        return has_tables(connection, schema)


def begin_postgres(setting: Setting, fill: Work[None]) -> None:
    """Make the ledger's schema and its tables."""
    url, schema = str(setting.ledger), schema_of(setting.id)
    with failing(url), connect(url, schema) as connection, connection.transaction():
        if has_tables(connection, schema):
            raise UsageError(
                f"there is a ledger {schema!r} in {place(url)} already",
                hint="begin a new server",
            )
        run = runner(connection)
        run(f"CREATE SCHEMA {schema}")
        fill(run)


def schema_of(server: str) -> str:
    """The name of a server's own schema; a server's id has nothing but hex digits."""
    if not server.isalnum() or not server.isascii():
        raise UsageError(f"{server!r} is no server's id", hint="it has 32 hex digits")
    return f"voile_{server.lower()}"


@contextmanager
def failing(url: str) -> Iterator[None]:
    """Turn the database's errors into ours. All may pass: a new connection sees the true state."""
    try:
        yield
    except NotDurableError as error:
        raise LedgerError(
            f"{place(url)} has {error.setting} off: a charge could be lost after its answer was "
            "given",
            hint=f"set {error.setting} = on in postgresql.conf",
            lasting=True,
        ) from None
    except driver().errors.InsufficientPrivilege as error:
        raise LedgerError(
            f"the ledger in {place(url)} cannot be used: {first_line(error)}",
            hint="give its user the right to CREATE in that database",
            lasting=True,
        ) from None
    except driver().Error as error:
        raise LedgerError(
            f"the ledger in {place(url)} does not work now: {first_line(error)}",
            hint="does the database run, is it there, and are the user and the password right?",
        ) from None
