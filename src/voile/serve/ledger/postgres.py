"""A ledger in PostgreSQL, which several servers may share.

A transaction that writes first locks the one row of `about`: so charges come one after the other,
whichever server they come from. Its tables are in a schema of their own, named by the server's id.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from voile.errors import UsageError, spelled
from voile.serve.ledger.base import LedgerError
from voile.serve.ledger.store import LedgerStore, T, Work
from voile.serve.setting import Setting
from voile.web.sqlite import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from voile.serve.ledger.store import Run

    Connection = psycopg.Connection[tuple[Any, ...]]

IDLE = 8
"""Connections for reading that are kept."""
DURABLE = ("on", "remote_apply")
"""Settings of synchronous_commit under which a commit that returns is on disk."""


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


def alone(connection: Connection, stack: ExitStack) -> Run:
    """A transaction that ends with the stack, and that others who write wait for."""
    stack.enter_context(connection.transaction())
    run = runner(connection)
    run("SELECT one FROM about FOR UPDATE")
    return run


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


def connect(url: str, schema: str) -> Connection:
    """A connection whose commits are on disk when they return."""
    connection: Connection = driver().connect(
        url,
        autocommit=True,
        connect_timeout=int(PATIENCE),
        application_name="voile",
        client_encoding="UTF8",  # whatever the database's own is
    )
    try:
        connection.execute(f"SET search_path TO {schema}")
        connection.execute(f"SET lock_timeout TO {int(1000 * PATIENCE)}")
        connection.execute(f"SET idle_in_transaction_session_timeout TO {int(3000 * PATIENCE)}")
        make_durable(connection, url)
    except BaseException:
        connection.close()
        raise
    return connection


def make_durable(connection: Connection, url: str) -> None:
    """Ask for commits that wait for the disk, and refuse a database that does not sync at all."""
    if shown(connection, "synchronous_commit") not in DURABLE:
        connection.execute("SET synchronous_commit TO on")
    wrong = [name for name in ("fsync", "full_page_writes") if shown(connection, name) != "on"]
    if shown(connection, "synchronous_commit") not in DURABLE:
        wrong.append("synchronous_commit")
    if wrong:
        raise LedgerError(
            f"{place(url)} has {wrong[0]} off: a charge could be lost after its answer was given",
            hint=f"set {wrong[0]} = on in postgresql.conf",
            lasting=True,
        )


def shown(connection: Connection, name: str) -> str:
    """The value of a setting of the database."""
    found = connection.execute(f"SHOW {name}").fetchone()
    said = found[0] if found else ""
    return said.decode() if isinstance(said, bytes) else str(said)


def has_tables(connection: Connection, schema: str) -> bool:
    """Whether the schema holds a ledger."""
    found = connection.execute("SELECT to_regclass(%s)", [f"{schema}.about"]).fetchone()
    return found is not None and found[0] is not None


def schema_of(server: str) -> str:
    """The name of a server's own schema; a server's id has nothing but hex digits."""
    if not server.isalnum() or not server.isascii():
        raise UsageError(f"{server!r} is no server's id", hint="it has 32 hex digits")
    return f"voile_{server.lower()}"


def runner(connection: Connection) -> Run:
    """A function that executes statements with question marks on this connection."""

    def run(sql: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = connection.execute(in_words_of_psycopg(sql), values or None)
        return cursor.fetchall() if cursor.description else []

    return run


@lru_cache(maxsize=256)
def in_words_of_psycopg(sql: str) -> bytes:
    """Our statements have question marks for values and no per cent signs."""
    return sql.replace("?", "%s").encode()


@contextmanager
def failing(url: str) -> Iterator[None]:
    """Turn the database's errors into ours. All may pass: a new connection sees the true state."""
    try:
        yield
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


def first_line(error: Exception) -> str:
    """The first line of an error's message; the others repeat the statement."""
    return str(error).strip().split("\n", maxsplit=1)[0]


def place(url: str) -> str:
    """The database's name and host, without user and password."""
    parts = urlsplit(url)
    return f"the database {parts.path.lstrip('/')!r} on {parts.hostname or 'this machine'}"


def driver() -> Any:
    """The package psycopg, which is an extra."""
    try:
        import psycopg  # noqa: PLC0415  (an extra)
    except ImportError:
        raise UsageError(
            "a ledger in PostgreSQL needs psycopg", hint="pip install 'voile[postgres]'"
        ) from None
    return psycopg
