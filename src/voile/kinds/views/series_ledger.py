"""A series' ledger: what the steward must remember from one view to the next.

One SQLite file, readable by its owner only. **It is secret**: it holds the table that was published
last, so that changes can be counted. Beside it are the terms of the series, which must not change,
and every view with its state. A view is *planned* here, durably, before anything of it can be seen;
when its release is in place it is *released*. A view that stayed planned counts as spent.

A ledger that is open is locked: who comes second is refused. Never go back to an older copy of a
ledger: it would not know of views that others have. A *counter*, a small file that is kept
elsewhere, says which view was planned last, so that an older copy is noticed.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from voile.errors import PromiseError, UsageError, spelled
from voile.files import sync, write_whole
from voile.kinds.views.series import SeriesHistory
from voile.privacy import Adversary, DGamma
from voile.privacy.series import SeriesNoise
from voile.schema import Keys, Schema, TupleIndex
from voile.system import here as system

APPLICATION = 0x566F696C
"""SQLite's application_id: 'Voil'."""
VERSION = 1
COUNTER = "voile-series-counter"
PART = 2**26
"""Bytes of an array in one row of the ledger."""
TABLES = """
CREATE TABLE terms (one INTEGER PRIMARY KEY CHECK (one = 1), text TEXT NOT NULL);
CREATE TABLE views (
  number INTEGER PRIMARY KEY,
  state TEXT NOT NULL CHECK (state IN ('planned', 'released')),
  at TEXT NOT NULL,
  path TEXT NOT NULL,
  digest TEXT NOT NULL
);
CREATE TABLE arrays (
  number INTEGER NOT NULL, what TEXT NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL,
  PRIMARY KEY (number, what, part)
);
"""


@dataclass(frozen=True)
class SeriesTerms:
    """What all views of a series have in common."""

    name: str
    noise: SeriesNoise
    promise: DGamma
    changes_at_most: int | None
    schema: Schema
    rows_told: bool
    """Whether the prior was relative to the rows of the first table, which it then discloses."""
    simulated: bool
    options: dict[str, Any]
    """The options of the first view, which every later view must repeat."""
    counter: str | None = None
    """Where the counter is, if one is kept."""

    def to_text(self) -> str:
        """The terms as JSON, as the ledger keeps them; without a counter as ever."""
        data = asdict(self) | {"schema": self.schema.to_dict()}
        if self.counter is None:
            del data["counter"]
        return json.dumps(data, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> SeriesTerms:
        """The terms that a ledger has kept."""
        data = json.loads(text)
        noise = data["noise"] | {"unseen": tuple(data["noise"]["unseen"])}
        adversary: Adversary = data["promise"]["adversary"]
        return cls(
            **data
            | {
                "noise": SeriesNoise(**noise),
                "promise": DGamma(**data["promise"] | {"adversary": adversary}),
                "schema": Schema.from_dict(data["schema"]),
            }
        )


@dataclass(frozen=True)
class SeriesEntry:
    """A view as the ledger knows it."""

    number: int
    state: Literal["planned", "released"]
    path: Path
    digest: str


@dataclass(frozen=True)
class SeriesCounter:
    """The file elsewhere that says which view of a series was planned last."""

    path: Path
    series: str

    def read(self) -> tuple[int, str] | None:
        """The number and the digest of the last view; None where the file is not there."""
        try:
            found = json.loads(self.path.read_bytes())
            number, digest = found["view"], found["digest"]
            if found["format"] != COUNTER or not isinstance(number, int):
                raise ValueError
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise UsageError(
                f"{str(self.path)!r} is no counter of a series, or cannot be read",
                hint=f"name the counter with {spelled('counter')}",
            ) from None
        if found["series"] != self.series:
            raise UsageError(
                f"{str(self.path)!r} is the counter of the series {found['series']!r}, not of "
                f"{self.series!r}",
                hint="every series has a counter of its own",
            )
        return number, str(digest)

    def write(self, number: int, digest: str) -> None:
        """Say, durably, that this view is the last one."""
        said = {"format": COUNTER, "series": self.series, "view": number, "digest": digest}
        write_whole(self.path, (json.dumps(said) + "\n").encode())
        sync(self.path.absolute().parent)


class SeriesLedger:
    """An open, locked ledger."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._db = connection

    @property
    def terms(self) -> SeriesTerms | None:
        """None for a series that has not begun."""
        found = self._db.execute("SELECT text FROM terms").fetchone()
        return SeriesTerms.from_text(found[0]) if found else None

    @property
    def entries(self) -> list[SeriesEntry]:
        """Every view, planned or released, in their order."""
        found = self._db.execute("SELECT number, state, path, digest FROM views ORDER BY number")
        return [SeriesEntry(row[0], row[1], Path(row[2]), row[3]) for row in found]

    @property
    def last(self) -> SeriesEntry | None:
        """The latest view, planned or released."""
        return self.entries[-1] if self.entries else None

    def knows(self, number: int, digest: str) -> bool:
        """Whether this is that view of the series, byte for byte."""
        return any((one.number, one.digest) == (number, digest) for one in self.entries)

    def keep_counter(self, terms: SeriesTerms) -> None:
        """Remember where the counter of the series is from now on."""
        with self._transaction():
            self._db.execute("UPDATE terms SET text = ?", [terms.to_text()])

    def plan(
        self,
        terms: SeriesTerms,
        number: int,
        path: Path,
        digest: str,
        table: Keys,
        history: SeriesHistory,
    ) -> None:
        """Write down, durably, that this view is about to be released. It is then spent."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        with self._transaction():
            self._db.execute("INSERT OR IGNORE INTO terms VALUES (1, ?)", [terms.to_text()])
            self._db.execute(
                "INSERT INTO views VALUES (?, 'planned', ?, ?, ?)",
                [number, at, str(path.absolute()), digest],
            )
            for what, array in (
                ("table", table), ("shown", history.keys), ("counts", history.counts),
            ):  # fmt: skip
                self._put(number, what, array)

    def released(self, number: int) -> None:
        """The view is in its place; what is only needed for the views before it may go."""
        with self._transaction():
            self._db.execute("UPDATE views SET state = 'released' WHERE number = ?", [number])
            self._db.execute("DELETE FROM arrays WHERE number < ?", [number])

    def withdraw(self, number: int) -> None:
        """A planned view of which it is certain that nobody has seen it."""
        with self._transaction():
            self._db.execute("DELETE FROM views WHERE number = ?", [number])
            self._db.execute("DELETE FROM arrays WHERE number = ?", [number])
            if number == 1:
                self._db.execute("DELETE FROM terms")

    def table(self, number: int, index: TupleIndex) -> Keys:
        """The private table behind a view, as sorted keys."""
        return self._get(number, "table", index.key_type)

    def history(self, number: int, index: TupleIndex) -> SeriesHistory:
        """All that the views up to this one have shown."""
        counts = self._get(number, "counts", np.dtype(np.uint32))
        return SeriesHistory(self._get(number, "shown", index.key_type), counts.reshape(-1, number))

    def _put(self, number: int, what: str, array: Keys) -> None:
        raw = np.ascontiguousarray(array).tobytes()
        for part, start in enumerate(range(0, len(raw), PART)):
            self._db.execute(
                "INSERT INTO arrays VALUES (?, ?, ?, ?)",
                [number, what, part, raw[start : start + PART]],
            )

    def _get(self, number: int, what: str, kind: np.dtype[Any]) -> Keys:
        rows = self._db.execute(
            "SELECT bytes FROM arrays WHERE number = ? AND what = ? ORDER BY part", [number, what]
        )
        return np.frombuffer(b"".join(row[0] for row in rows), dtype=kind)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


@contextmanager
def opened(path: Path) -> Iterator[SeriesLedger]:
    """Open a ledger, or begin one, and keep everybody else out meanwhile."""
    create(path)
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        prepare(connection)
        with suppress(OSError):  # a copy may have come with other rights, or belong to another
            path.chmod(0o600)
        yield SeriesLedger(path, connection)
    except sqlite3.Error as error:
        raise unusable(path, error) from None
    finally:
        connection.close()


def create(path: Path) -> None:
    """Make the file where it is not there yet, for the owner's eyes only."""
    if path.is_dir():
        raise UsageError(
            f"the ledger {str(path)!r} is a folder",
            hint=f"{spelled('ledger')} names a file",
        )
    try:
        handle = system.open_file(path, new=True)
    except FileExistsError:
        return
    except OSError as error:
        raise UsageError(
            f"cannot write the ledger {str(path)!r}: {error.strerror}",
            hint=f"name another place with {spelled('ledger')}",
        ) from None
    os.close(handle)
    sync(path.absolute().parent)


def prepare(connection: sqlite3.Connection) -> None:
    """Lock until the end, make every commit durable, and check what the file is."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("BEGIN EXCLUSIVE")
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if empty:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in TABLES.split(";\n"):
            connection.execute(statement)
    elif (application, version) != (APPLICATION, VERSION):
        raise sqlite3.DatabaseError("it is another database")
    connection.execute("COMMIT")


def unusable(path: Path, error: sqlite3.Error) -> UsageError | PromiseError:
    """The error for a ledger that another run has locked, or that is none."""
    if "locked" in str(error):
        return PromiseError(
            f"another run is publishing in the series of {str(path)!r}",
            hint="wait until it is done, and publish again",
        )
    return UsageError(
        f"{str(path)!r} is not the ledger of a series: {error}",
        hint=f"a ledger is made by the first view of a series; name it with {spelled('ledger')}",
    )
