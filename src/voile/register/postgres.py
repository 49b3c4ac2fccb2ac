"""A register in PostgreSQL, which servers, machines and CI may share.

A transaction that writes first locks the one row of `about`, so that they come one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from voile.errors import UsageError
from voile.register.store import RegisterError, RegisterStore, T, Work, create
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

SCHEMA = "voile_register"
BEGINNING = 0x566F6952
"""The advisory lock that is held while tables are made."""


class PostgresRegister(RegisterStore):
    """The tables in a schema of their own; a connection for each transaction."""

    def __init__(self, url: str) -> None:
        self.url = url

    def exists(self) -> bool:
        """Whether the tables are there."""
        with failing(self.url), connect(self.url, SCHEMA) as connection:
            return has_tables(connection, SCHEMA)

    def begin(self) -> None:
        """Make the schema and its tables, unless another program has."""
        with failing(self.url), connect(self.url, SCHEMA) as connection, connection.transaction():
            run = runner(connection)
            run("SELECT pg_advisory_xact_lock(?)", BEGINNING)
            if not has_tables(connection, SCHEMA):
                run(f"CREATE SCHEMA {SCHEMA}")
                create(run)

    def write(self, work: Work[T]) -> T:
        """One transaction under the lock of `about`."""
        self.begin()
        with failing(self.url), connect(self.url, SCHEMA) as connection, ExitStack() as stack:
            return work(alone(connection, stack))

    def read(self, work: Work[T]) -> T:
        """One transaction that sees one state."""
        with failing(self.url), connect(self.url, SCHEMA) as connection, connection.transaction():
            run = runner(connection)
            run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return work(run)


@contextmanager
def failing(url: str) -> Iterator[None]:
    """Turn the database's errors into ours."""
    try:
        yield
    except NotDurableError as error:
        raise RegisterError(
            f"{place(url)} has {error.setting} off: an entry could be lost after its release left",
            hint=f"set {error.setting} = on in postgresql.conf",
        ) from None
    except driver().errors.InsufficientPrivilege as error:
        raise UsageError(
            f"the register in {place(url)} cannot be used: {first_line(error)}",
            hint="give its user the right to CREATE in that database",
        ) from None
    except driver().Error as error:
        raise RegisterError(
            f"the register in {place(url)} does not work now: {first_line(error)}",
            hint="does the database run, is it there, and are the user and the password right?",
        ) from None
