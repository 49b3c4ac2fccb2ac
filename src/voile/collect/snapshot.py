"""Reading a store out: what was in it at one moment, while a collector may go on filling it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from voile.client import Spec
from voile.collect.layout import Codes, RowLayout
from voile.collect.store import DATABASE, check_kind, check_same, connect, spec_of, unusable
from voile.errors import UsageError

BATCH = 2**16
"""Rows that are read at a time."""


class Snapshot:
    """The rows of one moment. Ids are looked at for their order only; they never leave here."""

    def __init__(self, connection: sqlite3.Connection, spec: Spec) -> None:
        self.spec = spec
        self._db = connection
        self.count = int(connection.execute("SELECT count(*) FROM rows").fetchone()[0])

    def batches(self, size: int = BATCH) -> Iterator[list[Codes]]:
        """Codes, one array for each column. In the order of the ids, which tells nothing."""
        layout = RowLayout.of(self.spec)
        rows = self._db.execute("SELECT codes FROM rows ORDER BY id")
        while found := rows.fetchmany(size):
            yield layout.unpack(b"".join(codes for (codes,) in found))


@contextmanager
def snapshot(folder: Path, spec: Spec | None = None) -> Iterator[Snapshot]:
    """Look at a store without locking anybody out; with `spec`, only if it is the store's own."""
    if not (folder / DATABASE).is_file():
        raise UsageError(
            f"there is no store in {str(folder)!r}", hint="name the --store of a collector"
        )
    connection = connect(folder)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")  # all that follows sees one state
        check_kind(connection)
        kept = spec_of(connection)
        check_same(folder, kept, spec)
        yield Snapshot(connection, kept)
    except sqlite3.Error as error:
        raise unusable(folder, error) from None
    finally:
        connection.close()
