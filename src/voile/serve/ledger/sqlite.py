"""A ledger in one SQLite file, whose every commit is synced to disk."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from voile.errors import UsageError
from voile.files import sync
from voile.serve.ledger.base import LedgerError, WouldWaitError
from voile.serve.ledger.store import LedgerStore, Run, T, Work
from voile.system import here as system
from voile.web import sqlite as files

MARK = files.FileMark(application=0x566F694C, version=1)
"""In ASCII: 'VoiL'."""
IDLE = 16
"""Connections for reading that are kept."""

OF_ONE = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError)
"""Errors of one statement alone: the transaction can go on without it."""


def begin_sqlite(path: Path, fill: Work[None]) -> None:
    """Make the file and its tables; only the owner may look into it."""
    try:
        os.close(system.open_file(path, new=True))
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
        self._glance: sqlite3.Connection | None = None
        self._glancing = threading.Lock()
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
        """One transaction on the writing connection; after a lasting error, none."""
        if self._broken:
            raise self._gone()
        try:
            self._writing.execute("BEGIN IMMEDIATE")
            done = work(runner(self._writing))
            self._writing.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._failed(error) from None
        finally:
            files.roll_back(self._writing)
        return done

    def read(self, work: Work[T]) -> T:
        """One transaction on an idle connection, or on a new one."""
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

    @contextmanager
    def glancing(self) -> Iterator[Run]:
        """One transaction on a connection that has no patience, which one thread has at a time."""
        if not self._glancing.acquire(blocking=False):
            raise WouldWaitError
        try:
            if self._glance is None:
                self._glance = connect(self.path, patience=0.0)
                self._glance.execute("PRAGMA query_only = ON")
            self._glance.execute("BEGIN")
            yield runner(self._glance)
        except sqlite3.Error:  # whatever it is, who waits will see
            raise WouldWaitError from None
        finally:
            if self._glance is not None:
                files.roll_back(self._glance)
            self._glancing.release()

    def spoils(self, error: Exception) -> bool:
        """Whether the file itself failed, not only the statement."""
        return isinstance(error, sqlite3.Error) and not isinstance(error, OF_ONE)

    def close(self) -> None:
        """Close all connections."""
        with self._idle_lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
        with self._glancing:
            if self._glance is not None:
                self._glance.close()
                self._glance = None
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

    def _failed(self, error: sqlite3.Error) -> LedgerError:
        code = files.error_code(error)
        if code == sqlite3.SQLITE_FULL:
            return LedgerError(
                "there is no space for the ledger", hint="the server's steward must free space"
            )
        if code in files.PASSING:
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
    """A function that executes statements on this connection."""
    execute: Callable[..., sqlite3.Cursor] = connection.execute

    def run(sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return execute(sql, values).fetchall()

    return run


def connect(path: Path, patience: float = files.PATIENCE) -> sqlite3.Connection:
    """A connection to a ledger's file, which must exist."""
    connection = files.connect(path, patience)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def prepare(connection: sqlite3.Connection, *, checkpoints: bool, new: bool) -> None:
    """Check what the file is, and make every commit durable."""
    if files.is_empty(connection) != new:
        raise sqlite3.DatabaseError(files.UNFINISHED)
    if new:
        MARK.write(connection)
    MARK.check(connection)
    files.make_durable(connection)
    if not checkpoints:
        connection.execute("PRAGMA wal_autocheckpoint = 0")


def unusable(path: Path, error: sqlite3.Error) -> LedgerError:
    """The error for a file that is no ledger, or a damaged one."""
    return LedgerError(
        f"{str(path)!r} cannot be used as a ledger: {error}",
        hint="a ledger is begun by voile serve init, and put back from a backup by its steward",
        lasting=True,
    )
