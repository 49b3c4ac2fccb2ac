"""Where the tables of a ledger are: what SQLite and PostgreSQL share, and what each does alone.

Nothing counts charges but the entries themselves: an entry says the how-manieth it is, of all, of
its analyst and of its group, and no two may say the same. No number above T can be written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from voile.serve.ledger.base import WouldWaitError
from voile.serve.setting import Setting

Run = Callable[..., list[tuple[Any, ...]]]
"""run(sql, *values): the rows that a statement gives; values stand for its question marks."""

TABLES = (
    """CREATE TABLE about (
      one BIGINT PRIMARY KEY CHECK (one = 1),
      server TEXT NOT NULL,
      queries BIGINT NOT NULL,
      setting TEXT NOT NULL
    )""",
    """CREATE TABLE entries (
      number BIGINT PRIMARY KEY CHECK (number BETWEEN 1 AND {queries}),
      key TEXT NOT NULL UNIQUE,
      question TEXT NOT NULL,
      answer TEXT NOT NULL,
      analyst TEXT NOT NULL,
      nth BIGINT NOT NULL,
      group_name TEXT,
      group_nth BIGINT,
      at DOUBLE PRECISION NOT NULL,
      digest TEXT NOT NULL,
      UNIQUE (analyst, nth),
      UNIQUE (group_name, group_nth)
    )""",
    "CREATE TABLE groups (name TEXT PRIMARY KEY, queries BIGINT NOT NULL)",
    """CREATE TABLE analysts (
      name TEXT PRIMARY KEY, group_name TEXT REFERENCES groups (name), queries BIGINT
    )""",
    """CREATE TABLE tokens (
      id TEXT PRIMARY KEY,
      analyst TEXT NOT NULL REFERENCES analysts (name),
      digest TEXT NOT NULL,
      role TEXT NOT NULL,
      scopes TEXT NOT NULL,
      created DOUBLE PRECISION NOT NULL,
      expires DOUBLE PRECISION,
      revoked DOUBLE PRECISION
    )""",
    """CREATE TABLE events (
      number BIGINT PRIMARY KEY,
      at DOUBLE PRECISION NOT NULL,
      who TEXT NOT NULL,
      what TEXT NOT NULL,
      detail TEXT NOT NULL
    )""",
)


def create(run: Run, setting: Setting) -> None:
    """Make the tables of a new ledger."""
    for statement in TABLES:
        run(statement.format(queries=int(setting.queries)))
    begun_with = (setting.id, setting.queries, setting.fingerprint())
    run("INSERT INTO about (one, server, queries, setting) VALUES (1, ?, ?, ?)", *begun_with)


def marks(values: Sequence[object]) -> str:
    """As many question marks, for IN (…)."""
    return ", ".join("?" * len(values))


# ---------------------------------------------------------------------- store
# Where the tables of a ledger are: what SQLite and PostgreSQL each do in their own way.


T = TypeVar("T")
Work = Callable[[Run], T]


class LedgerStore(ABC):
    """Transactions on the tables; whatever goes wrong is a LedgerError."""

    @abstractmethod
    def write(self, work: Work[T]) -> T:
        """One transaction, the only one at its time: on disk when this returns.

        Called by one thread. If this raises, nothing that the work did may be disclosed.
        """

    @abstractmethod
    def read(self, work: Work[T]) -> T:
        """Look at one moment's state, from any thread."""

    @contextmanager
    def glancing(self) -> Iterator[Run]:
        """Look at one moment's state without waiting for anything; else a WouldWaitError."""
        raise WouldWaitError
        yield

    @abstractmethod
    def spoils(self, error: Exception) -> bool:
        """Whether a transaction is of no use after this, and not only the statement it is of."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""
