"""SQLite files that servers keep: marked as theirs, and on disk after every commit."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 10.0
"""Seconds to wait for another program that has locked the data, such as a backup."""
PASSING = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
"""Errors after which SQLite goes on as before. After any other one nothing is taken any more: when
a disk has failed once, a later success does not say that what came before is safe."""
UNFINISHED = "it was begun and never finished"


@dataclass(frozen=True)
class FileMark:
    """What marks a file as ours among other databases: SQLite's application_id and a version."""

    application: int
    version: int

    def write(self, connection: sqlite3.Connection) -> None:
        """Mark a new file."""
        connection.execute(f"PRAGMA application_id = {self.application}")
        connection.execute(f"PRAGMA user_version = {self.version}")

    def is_on(self, connection: sqlite3.Connection) -> bool:
        """Whether a file has this mark."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        return bool((application, version) == (self.application, self.version))

    def check(self, connection: sqlite3.Connection) -> None:
        """Raise DatabaseError for a file that has another mark."""
        if not self.is_on(connection):
            raise sqlite3.DatabaseError("it is another database, or of another version of Voile")


def connect(path: Path, patience: float = PATIENCE) -> sqlite3.Connection:
    """A connection that begins no transactions of its own; the file must exist."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,  # opened by one thread, then used by another
    )


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether the database has no tables."""
    return not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def make_durable(connection: sqlite3.Connection) -> None:
    """Have every commit wait until it is on disk, and what is removed be overwritten.

    SQLite heeds fullfsync on macOS alone, where nothing less reaches the disk.
    """
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = 1")
    connection.execute("PRAGMA checkpoint_fullfsync = 1")
    connection.execute("PRAGMA secure_delete = ON")


def roll_back(connection: sqlite3.Connection) -> None:
    """Leave the transaction, if it is not done and SQLite has not left it itself."""
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def error_code(error: sqlite3.Error) -> int:
    """SQLite's primary code of an error."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF
