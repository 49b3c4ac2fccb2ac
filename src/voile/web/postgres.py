"""PostgreSQL as a place for what must not be lost: connections whose commits are on disk."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from voile.errors import UsageError
from voile.web.sqlite import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]
    Run = Callable[..., list[tuple[Any, ...]]]
    """run(sql, *values): the rows that a statement gives; values stand for its question marks."""

DURABLE = ("on", "remote_apply")
"""Settings of synchronous_commit under which a commit that returns is on disk."""


class NotDurableError(Exception):
    """A database that may lose what it has committed; says which setting is off."""

    def __init__(self, setting: str) -> None:
        super().__init__(setting)
        self.setting = setting


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
        make_durable(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def make_durable(connection: Connection) -> None:
    """Ask for commits that wait for the disk, and refuse a database that does not sync at all."""
    if shown(connection, "synchronous_commit") not in DURABLE:
        connection.execute("SET synchronous_commit TO on")
    wrong = [name for name in ("fsync", "full_page_writes") if shown(connection, name) != "on"]
    if shown(connection, "synchronous_commit") not in DURABLE:
        wrong.append("synchronous_commit")
    if wrong:
        raise NotDurableError(wrong[0])


def shown(connection: Connection, name: str) -> str:
    """The value of a setting of the database."""
    found = connection.execute(f"SHOW {name}").fetchone()
    said = found[0] if found else ""
    return said.decode() if isinstance(said, bytes) else str(said)


def alone(connection: Connection, stack: ExitStack) -> Run:
    """A transaction that ends with the stack, and that others who write wait for."""
    stack.enter_context(connection.transaction())
    run = runner(connection)
    run("SELECT one FROM about FOR UPDATE")
    return run


def has_tables(connection: Connection, schema: str) -> bool:
    """Whether the schema holds a ledger."""
    found = connection.execute("SELECT to_regclass(%s)", [f"{schema}.about"]).fetchone()
    return found is not None and found[0] is not None


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
        raise UsageError("PostgreSQL needs psycopg", hint="pip install 'voile[postgres]'") from None
    return psycopg
