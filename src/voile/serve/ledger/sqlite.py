"""A ledger in one SQLite file, whose every commit is synced to disk."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from voile.errors import UsageError
from voile.files import sync
from voile.serve.ledger.base import LedgerError
from voile.serve.ledger.store import PATIENCE, LedgerStore, Run, T, Work

APPLICATION = 0x566F694C
"""SQLite's application_id: 'VoiL'."""
VERSION = 1
IDLE = 16
"""Connections for reading that are kept."""
PASSING = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
"""Errors after which SQLite goes on as before. After any other one nothing is taken any more: when
a disk has failed once, a later success does not say that what came before is safe."""

OF_ONE = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError)
"""Errors of a statement alone: what it says cannot be, and nothing else has happened."""


def begin_sqlite(path: Path, fill: Work[None]) -> None:
    """Make the file and its tables; only the owner may look into it."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise UsageError(
            f"there is a ledger in {str(path)!r} already", hint="name a new folder"
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot write {str(path)!r}: {error.strerror}", hint="name another folder"
        ) from None
    store = SqliteStore(path, new=True)
    try:
        store.write(fill)
    finally:
        store.close()
    sync(path.parent)


class SqliteStore(LedgerStore):
    """One connection that writes, and some that read."""

    def __init__(self, path: Path, *, checkpoints: bool = True, new: bool = False) -> None:
        self.path = path
        self._broken: str | None = None
        """What went wrong, once nothing is taken any more."""
        self._idle: list[sqlite3.Connection] = []
        self._idle_lock = threading.Lock()
        try:
            self._writing = connect(path)
            try:
                prepare(self._writing, checkpoints=checkpoints, new=new)
            except sqlite3.Error:
                self._writing.close()
                raise
        except sqlite3.Error as error:
            raise unusable(path, error) from None

    def write(self, work: Work[T]) -> T:
        if self._broken:
            raise self._gone()
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            done = work(runner(self._writing))
            self._writing.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failed(error) from None
        finally:
            self._undo()
        return done

    def read(self, work: Work[T]) -> T:
        try:
            connection = self._take()
            try:
                connection.execute("BEGIN")
                done = work(runner(connection))
                connection.execute("ROLLBACK")
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
        except sqlite3.Error as error:
            raise LedgerError(
                f"the ledger cannot be read: {error}",
                hint="the server's steward must look after it",
            ) from None
        return done

    def spoils(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.Error) and not isinstance(error, OF_ONE)

    def close(self) -> None:
        with self._idle_lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
        self._writing.close()

    def _take(self) -> sqlite3.Connection:
        with self._idle_lock:
            if self._idle:
                return self._idle.pop()
        connection = connect(self.path)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._idle_lock:
            if len(self._idle) < IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _undo(self) -> None:
        """Leave the transaction, if it is not done and SQLite has not left it itself."""
        with suppress(sqlite3.Error):
            if self._writing.in_transaction:
                self._writing.execute("ROLLBACK")

    def _failed(self, error: sqlite3.Error) -> LedgerError:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return LedgerError(
                "there is no room for the ledger", hint="the server's steward must make room"
            )
        if code in PASSING:
            return LedgerError("another program has locked the ledger", hint="try again")
        self._broken = str(error)
        return self._gone()

    def _gone(self) -> LedgerError:
        return LedgerError(
            f"the ledger does not work: {self._broken}",
            hint="the server's steward must look after its disk and start it anew",
            lasting=True,
        )


def runner(connection: sqlite3.Connection) -> Run:
    execute: Callable[..., sqlite3.Cursor] = connection.execute

    def run(sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return execute(sql, values).fetchall()

    return run


def connect(path: Path) -> sqlite3.Connection:
    """A connection that begins no transactions of its own; the file must be there."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,  # opened by one thread, then used by another
    )
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def prepare(connection: sqlite3.Connection, *, checkpoints: bool, new: bool) -> None:
    """Check what the file is, and make every commit durable."""
    empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if empty != new:
        raise sqlite3.DatabaseError("it was begun and never finished")
    if new:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if (application, version) != (APPLICATION, VERSION):
        raise sqlite3.DatabaseError("it is another database, or of another version of Voile")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    if not checkpoints:
        connection.execute("PRAGMA wal_autocheckpoint = 0")


def unusable(path: Path, error: sqlite3.Error) -> LedgerError:
    return LedgerError(
        f"{str(path)!r} cannot be used as a ledger: {error}",
        hint="a ledger is begun by voile serve init, and put back from a backup by its steward",
        lasting=True,
    )
