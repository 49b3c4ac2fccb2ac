"""The tables of a register, in a SQLite file or in PostgreSQL; rows are added and never changed.

What is known of a departure is the sum of its rows: the entry, which is on disk before anything
leaves, the data sets that it belongs to, and events after it (it has left, it stayed, it was
withdrawn). An entry without events may have left, and counts as if it had.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from voile.errors import UsageError, VoileError, spelled
from voile.files import check_name, sync
from voile.register.places import RegisterPlace
from voile.system import here as system
from voile.web import sqlite as files

MARK = files.FileMark(application=0x566F6952, version=1)
"""In ASCII: 'VoiR'."""

T = TypeVar("T")
Run = Callable[..., list[tuple[Any, ...]]]
"""run(sql, *values): the rows that a statement gives; values stand for its question marks."""
Work = Callable[[Run], T]

TABLES = (
    "CREATE TABLE about (one BIGINT PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, key TEXT)",
    """CREATE TABLE entries (
      id TEXT PRIMARY KEY,
      at DOUBLE PRECISION NOT NULL,
      what TEXT NOT NULL,
      sketch TEXT
    )""",
    """CREATE TABLE links (
      entry TEXT NOT NULL REFERENCES entries (id),
      data_set TEXT NOT NULL,
      how TEXT NOT NULL,
      PRIMARY KEY (entry, data_set)
    )""",
    """CREATE TABLE events (
      id TEXT PRIMARY KEY,
      entry TEXT NOT NULL REFERENCES entries (id),
      at DOUBLE PRECISION NOT NULL,
      what TEXT NOT NULL,
      note TEXT NOT NULL
    )""",
    """CREATE TABLE limits (
      id TEXT PRIMARY KEY,
      at DOUBLE PRECISION NOT NULL,
      data_set TEXT NOT NULL,
      terms TEXT
    )""",
    """CREATE TABLE aliases (
      name TEXT NOT NULL,
      data_set TEXT NOT NULL,
      at DOUBLE PRECISION NOT NULL,
      how TEXT NOT NULL,
      PRIMARY KEY (name, data_set)
    )""",
    """CREATE TABLE changes (
      number BIGINT PRIMARY KEY,
      token TEXT NOT NULL,
      at DOUBLE PRECISION NOT NULL,
      note TEXT NOT NULL
    )""",
    """CREATE TABLE sketches (
      digest TEXT PRIMARY KEY,
      key TEXT NOT NULL,
      sealed TEXT NOT NULL
    )""",
)
COPIED = {
    "sketches": ("digest", "key", "sealed"),
    "entries": ("id", "at", "what", "sketch"),
    "links": ("entry", "data_set", "how"),
    "aliases": ("name", "data_set", "at", "how"),
    "events": ("id", "entry", "at", "what", "note"),
    "limits": ("id", "at", "data_set", "terms"),
}
"""The tables that hold rows, in an order in which they can be copied.

`changes` is the history of one register, and is copied with all of it alone.
"""


class RegisterError(VoileError):
    """The register cannot be used now; nothing leaves without it."""


def new_id() -> str:
    """An id that no other row of any register has."""
    return uuid.uuid4().hex


def create(run: Run) -> None:
    """Make the tables of a new register."""
    for statement in TABLES:
        run(statement)
    run("INSERT INTO about (one, id, key) VALUES (1, ?, NULL)", new_id())


class RegisterStore(ABC):
    """Transactions on the tables; whatever goes wrong is a RegisterError."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether there is a register."""

    @abstractmethod
    def begin(self) -> None:
        """Make the register, unless it is there."""

    @abstractmethod
    def write(self, work: Work[T]) -> T:
        """One transaction, the only one at its time: on disk when this returns."""

    @abstractmethod
    def read(self, work: Work[T]) -> T:
        """Look at one moment's state."""


def open_store(place: RegisterPlace) -> RegisterStore:
    """The store of a register's place; nothing is made yet."""
    if place.file is not None:
        return SqliteRegister(place.file)
    from voile.register.postgres import PostgresRegister  # noqa: PLC0415  (an extra)

    return PostgresRegister(str(place.address))


# ---------------------------------------------------------------------- SQLite


class SqliteRegister(RegisterStore):
    """One file, whose every commit is synced to disk; a connection for each transaction."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Whether the file is there."""
        return self.path.exists()

    def begin(self) -> None:
        """Make the file beside its place, whole, and give it its name; others may be first."""
        if self.exists():
            return
        check_name(self.path)
        try:
            make_folder(self.path.absolute().parent)
            beside = self.path.with_name(f".{self.path.name}.{new_id()[:8]}")
            os.close(system.open_file(beside, new=True))
            try:
                fill(beside)
                sync(beside)
                system.place_new(beside, self.path)
            except FileExistsError:
                pass
            finally:
                beside.unlink(missing_ok=True)
            sync(self.path.absolute().parent)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(
                f"cannot make the register {str(self.path)!r}: {reason}",
                hint=f"name another with {spelled('register', 'PATH')}, or publish without one",
            ) from None

    def write(self, work: Work[T]) -> T:
        """One transaction that no other program writes in."""
        self.begin()
        return self._done("BEGIN IMMEDIATE", work, "COMMIT")

    def read(self, work: Work[T]) -> T:
        """One transaction that sees one state."""
        return self._done("BEGIN", work, "ROLLBACK")

    def _done(self, begin: str, work: Work[T], end: str) -> T:
        try:
            connection = files.connect(self.path)
            try:
                MARK.check(connection)
                files.make_durable(connection)
                connection.execute("PRAGMA foreign_keys = ON")
                connection.execute(begin)
                done = work(runner(connection))
                connection.execute(end)
            finally:
                files.roll_back(connection)
                connection.close()
        except sqlite3.Error as error:
            raise self._failed(error) from None
        return done

    def _failed(self, error: sqlite3.Error) -> RegisterError:
        if files.error_code(error) in files.PASSING:
            return RegisterError(
                f"the register {str(self.path)!r} cannot be written now: {error}",
                hint="another program has locked it, or the disk is full: try again",
            )
        return RegisterError(
            f"{str(self.path)!r} cannot be used as a register: {error}",
            hint=f"name another with {spelled('register', 'PATH')}, or restore it from a backup",
        )


def make_folder(folder: Path) -> None:
    """The folder of the register, for its owner alone where it is made here."""
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def fill(path: Path) -> None:
    """Mark an empty file as a register, and make its tables."""
    connection = files.connect(path)
    try:
        MARK.write(connection)
        files.make_durable(connection)
        connection.execute("BEGIN IMMEDIATE")
        create(runner(connection))
        connection.execute("COMMIT")
    finally:
        connection.close()


def runner(connection: sqlite3.Connection) -> Run:
    """A function that executes statements on this connection."""

    def run(sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return connection.execute(sql, values).fetchall()

    return run
