"""The store of a collector: rows of codes in SQLite, added once each and read at one moment."""

from __future__ import annotations

import heapq
import itertools
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import numpy as np
import numpy.typing as npt

from voile.client import Spec, Submission
from voile.collect import arrivals as arrived
from voile.collect.arrivals import SLICE, TOGETHER, Arrival, SeenIds
from voile.errors import TableError, UsageError, spelled
from voile.files import check_name, exclusive, sync
from voile.system import here as system
from voile.web import sqlite
from voile.web.limits import RefusalError, unavailable
from voile.web.writer import GroupWriter, WriterLimits

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowLayout:
    """How many codes each column has; each is kept in the fewest whole bytes (1, 2, 4 or 8)."""

    sizes: tuple[int, ...]

    @classmethod
    def of(cls, spec: Spec) -> RowLayout:
        """The layout of a spec's columns."""
        return cls(tuple(column.size for column in spec.columns))

    @property
    def record(self) -> np.dtype[np.void]:
        """One row: little-endian unsigned numbers, one after the other."""
        kinds = [np.min_scalar_type(size - 1).newbyteorder("<") for size in self.sizes]
        return np.dtype([(f"c{place}", kind) for place, kind in enumerate(kinds)])

    @property
    def width(self) -> int:
        """Bytes of a row."""
        return self.record.itemsize

    def pack(self, codes: Codes) -> bytes:
        """The rows (rows × columns) as bytes, one after the other."""
        records = np.empty(len(codes), self.record)
        for place, name in enumerate(self.record.names or ()):
            records[name] = codes[:, place]
        return records.tobytes()

    def unpack(self, rows: bytes) -> list[Codes]:
        """One array for each column; a code outside its column's domain means a damaged store."""
        records = np.frombuffer(rows, self.record)
        columns = [records[name].astype(np.int64) for name in self.record.names or ()]
        for place, (column, size) in enumerate(zip(columns, self.sizes, strict=True)):
            if column.size and not 0 <= column.min() <= column.max() < size:
                raise TableError(
                    f"the store is damaged: column {place + 1} holds a code outside 0 … {size - 1}",
                    hint="restore the store from a backup",
                )
        return columns


# ---------------------------------------------------------------------- store
# What a collector keeps: submitted rows by their id, in one SQLite file.
#
# Rows are keyed by their random id and kept in its order, so the order of arrival is not a part of
# the table. What has just come waits beside it, some thousands of rows at a time, until it is put
# into its place (`arrivals`). A commit is on disk before it returns. The spec is inside: a store
# belongs to one survey for ever. Ids stay in the store; releases have none.
#
# One collector at a time may open a store (`opened`); any number of readers may look at it
# meanwhile (`snapshot`).


DATABASE = "rows.sqlite"
LOCK = "lock"
MARK = sqlite.FileMark(application=0x566F6943, version=2)
"""In ASCII: 'VoiC'."""
FIRST = sqlite.FileMark(application=0x566F6943, version=1)
"""Of stores that have no table of arrivals yet."""
PAGE = 4096

TABLES = (
    "CREATE TABLE spec (one INTEGER PRIMARY KEY CHECK (one = 1), raw BLOB NOT NULL)",
    """CREATE TABLE rows (
      id BLOB PRIMARY KEY CHECK (typeof(id) = 'blob' AND length(id) = 16),
      codes BLOB NOT NULL CHECK (typeof(codes) = 'blob' AND length(codes) = {width})
    ) WITHOUT ROWID""",
    arrived.TABLE,
)
ARRIVE = "INSERT INTO arrivals (ids, codes) VALUES (?, ?)"
REST = "INSERT INTO arrivals (number, ids, codes) VALUES (?, ?, ?)"
LAST = "SELECT coalesce(max(number), 0) FROM arrivals"
HAS = "SELECT 1 FROM rows WHERE id = ?"
GIVEN = """
WITH RECURSIVE place(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM place WHERE i + 1 < :count),
given(id, codes) AS (
  SELECT substr(:ids, 16 * i + 1, 16), substr(:codes, :width * i + 1, :width) FROM place
)
"""
"""The rows of a submission, from two long byte strings. In one statement, SQLite does not hold
Python's lock, so other threads can read the next submission meanwhile."""
ADD = f"{GIVEN} INSERT INTO rows SELECT * FROM given WHERE true ON CONFLICT (id) DO NOTHING"
DIFFERENT = (
    f"{GIVEN} SELECT count(*) FROM given JOIN rows USING (id) WHERE given.codes <> rows.codes"
)


GROUP = 20_000
"""Rows that one transaction takes, or one submission if that has more."""
WAITING = 200_000
"""Rows that may wait for the disk. More are refused, so that memory stays bounded."""


@dataclass(frozen=True)
class SubmissionReceipt:
    """How many rows of a submission were new, and how many had been taken before."""

    accepted: int
    repeated: int


class Store:
    """A store that is open for taking rows, by one thread."""

    def __init__(self, connection: sqlite3.Connection, spec: Spec) -> None:
        self.spec = spec
        self.broken: str | None = None
        """What went wrong, once nothing is taken any more."""
        self._db = connection
        self._layout = RowLayout.of(spec)
        self._waiting: set[bytes] = set()
        """The ids of all arrivals."""
        for arrival in arrivals(connection):
            self._waiting.update(key for key, _ in arrival.rows())
        self._most_waiting = TOGETHER
        self._sorted: Arrival | None = None
        """Arrivals up to number `_last` that are on their way to their places."""
        self._last = 0
        self._seen = SeenIds(0)
        self.settle()
        self._seen = self._all_seen()
        self.count = self._seen.count + len(self._waiting)

    def add(self, submissions: Sequence[Submission]) -> list[SubmissionReceipt | RefusalError]:
        """Add every submission whole or not at all; when this returns, all is on disk.

        One transaction for all of them: syncing is what takes time.
        """
        if self.broken:
            raise self._gone()
        ids = [key for submission in submissions for key in submission.ids]
        try:
            new = self._are_new(ids)
            outcomes = self._arrived(submissions, ids) if new else self._placed(submissions)
        except sqlite3.Error as error:
            sqlite.roll_back(self._db)
            raise self._failed(error) from None
        except BaseException:
            sqlite.roll_back(self._db)
            raise
        self.count += sum(done.accepted for done in outcomes if isinstance(done, SubmissionReceipt))
        if self._sorted is not None or len(self._waiting) >= self._most_waiting:
            self._settle_some()
        return outcomes

    def _are_new(self, ids: list[bytes]) -> bool:
        """Whether all ids differ, and none of them came before."""
        if len(set(ids)) < len(ids) or not self._waiting.isdisjoint(ids):
            return False
        perhaps = self._seen.perhaps(b"".join(ids)).nonzero()[0].tolist()
        return not any(self._db.execute(HAS, [ids[place]]).fetchone() for place in perhaps)

    def _arrived(
        self, submissions: Sequence[Submission], ids: list[bytes]
    ) -> list[SubmissionReceipt | RefusalError]:
        """Write new rows as one piece."""
        codes = [self._layout.pack(submission.codes) for submission in submissions]
        arrival = Arrival.of(ids, codes)
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute(ARRIVE, [arrival.ids, arrival.codes])
        self._db.execute("COMMIT")
        with self._remembering():
            self._waiting.update(ids)
        return [SubmissionReceipt(len(submission.ids), 0) for submission in submissions]

    def _placed(self, submissions: Sequence[Submission]) -> list[SubmissionReceipt | RefusalError]:
        """Write rows of which some may have come before, each into its place."""
        self._db.execute("BEGIN IMMEDIATE")
        self._place_arrivals()
        outcomes = [self._add_one(submission) for submission in submissions]
        self._db.execute("COMMIT")
        with self._remembering():
            self._forget_waiting()
            for submission in submissions:
                self._see(b"".join(submission.ids))
        return outcomes

    def settle(self) -> None:
        """Put all rows that have arrived into their places.

        Where there is no room for that, they stay as they are: they are on disk.
        """
        if self.broken or not self._waiting:
            return
        with self._settling():
            self._place_arrivals()
            self._db.execute("COMMIT")
            with self._remembering():
                self._forget_waiting()

    def _settle_some(self) -> None:
        """Put a slice of them into their places: next to each other, so that few pages change.

        The rest is written again in the same transaction, sorted, in the place of the arrivals.
        """
        with self._settling():
            if self._sorted is None:
                self._last = int(self._db.execute(LAST).fetchone()[0])
                self._sorted = all_of(arrivals(self._db))
            some, rest = self._sorted.cut(SLICE)
            self._db.execute("DELETE FROM arrivals WHERE number <= ?", [self._last])
            if len(rest):
                self._db.execute(REST, [self._last, rest.ids, rest.codes])
            self._place(some)
            self._db.execute("COMMIT")
            with self._remembering():
                self._see(some.ids)
                self._waiting.difference_update(some.keys())
                self._sorted = rest if len(rest) else None

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        """After a commit: what is known here of the rows on disk is made true again.

        Where that fails, nothing more is taken: rows that nobody remembers would be taken twice.
        """
        try:
            yield
        except BaseException as error:
            self.broken = f"{type(error).__name__} after rows were written"
            raise

    @contextmanager
    def _settling(self) -> Iterator[None]:
        """A transaction that may fail for want of room, and is tried again later."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
        except sqlite3.Error as error:
            sqlite.roll_back(self._db)
            if sqlite.error_code(error) not in sqlite.PASSING:
                self.broken = str(error)
            self._sorted, self._most_waiting = None, len(self._waiting) + TOGETHER

    def _place_arrivals(self) -> None:
        """Move all arrivals, inside a transaction; their room is free before it is needed."""
        whole = all_of(arrivals(self._db))
        if len(whole):
            self._db.execute("DELETE FROM arrivals")
            self._place(whole)

    def _place(self, some: Arrival) -> None:
        rows = {"count": len(some), "ids": some.ids, "codes": some.codes}
        self._db.execute(ADD, rows | {"width": self._layout.width})

    def _forget_waiting(self) -> None:
        self._sorted, self._most_waiting = None, TOGETHER
        if self._waiting:
            self._see(b"".join(self._waiting))
            self._waiting.clear()

    def _see(self, ids: bytes) -> None:
        self._seen.add(ids)
        if self._seen.count > self._seen.room:
            self._seen = self._all_seen()

    def _all_seen(self) -> SeenIds:
        """The ids of all rows in their places."""
        count = int(self._db.execute("SELECT count(*) FROM rows").fetchone()[0])
        seen = SeenIds(2 * count)
        rows = self._db.execute("SELECT id FROM rows")
        while some := rows.fetchmany(BATCH):
            seen.add(b"".join(key for (key,) in some))
        return seen

    def _add_one(self, submission: Submission) -> SubmissionReceipt | RefusalError:
        count = len(submission.ids)
        rows = {
            "count": count,
            "ids": b"".join(submission.ids),
            "codes": self._layout.pack(submission.codes),
            "width": self._layout.width,
        }
        before = self._db.total_changes
        self._db.execute("SAVEPOINT submission")
        self._db.execute(ADD, rows)
        accepted = self._db.total_changes - before
        same = accepted == count or not self._db.execute(DIFFERENT, rows).fetchone()[0]
        if not same:
            self._db.execute("ROLLBACK TO submission")
        self._db.execute("RELEASE submission")
        return SubmissionReceipt(accepted, count - accepted) if same else conflict()

    def _failed(self, error: sqlite3.Error) -> RefusalError:
        code = sqlite.error_code(error)
        if code == sqlite3.SQLITE_FULL:
            return unavailable(
                "the store is full",
                hint="the collector's operator must free space",
                retry_after=600,
            )
        if code in sqlite.PASSING:
            return unavailable(
                "another program has locked the store", hint="try again", retry_after=5
            )
        self.broken = str(error)
        return self._gone()

    def _gone(self) -> RefusalError:
        return unavailable(
            f"the store does not work: {self.broken}",
            hint="the collector's operator must look after its disk and start it anew",
        )


def conflict() -> RefusalError:
    """The refusal of an id that came before with other values."""
    return RefusalError(
        HTTPStatus.CONFLICT,
        "an id of this submission came before with other values; the first ones stay, and nothing "
        "of this submission was taken",
        hint="send a perturbed row again as it was, or give a new row a new random id",
    )


class Writer(GroupWriter[Submission, SubmissionReceipt]):
    """Takes submissions from any thread; each has a future that is done when all is on disk."""

    def __init__(self, store: Store, *, group: int = GROUP, waiting: int = WAITING) -> None:
        self.store = store
        super().__init__(
            self._write_all,
            WriterLimits(group, waiting),
            name="voile-writer",
            refusal=too_late,
            weigh=lambda submission: len(submission.ids),
        )

    def _write_all(
        self, submissions: Sequence[Submission]
    ) -> list[SubmissionReceipt | RefusalError]:
        return self.store.add(submissions)


def too_late(closed: bool) -> RefusalError:
    """The refusal of a submission when the writer is closed, or too much waits."""
    if closed:
        return unavailable("the collector is stopping", hint="try again", retry_after=10)
    return unavailable("too many rows are waiting", hint="try again", retry_after=1)


@contextmanager
def opened(folder: Path, spec: Spec | None, *, most_bytes: int | None = None) -> Iterator[Store]:
    """Open a store, or begin one, and keep other collectors out meanwhile.

    A new store needs a spec; an old one has its own, and refuses another. `most_bytes` bounds the
    size of the file.
    """
    begun = (folder / DATABASE).exists()
    if not begun and spec is None:
        raise UsageError(
            f"there is no store in {str(folder)!r} yet",
            hint=f"begin one with {spelled('spec', 'spec.json')}",
        )
    make_folder(folder, begun=begun)
    with ExitStack() as stack:
        stack.enter_context(locked(folder))
        create_file(folder / DATABASE)
        connection = connect(folder)
        stack.callback(connection.close)
        try:
            prepare(connection, spec, most_bytes)
            kept = spec_of(connection)
            check_same(folder, kept, spec)
            store = Store(connection, kept)
        except sqlite3.Error as error:
            raise unusable(folder, error) from None
        stack.callback(store.settle)
        yield store


def make_folder(folder: Path, *, begun: bool) -> None:
    """The store's own folder, which only its owner may look into."""
    check_name(folder)
    parent = folder.absolute().parent
    if not parent.is_dir():
        raise UsageError(f"there is no folder {str(parent)!r}", hint="make it first")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        strange = [] if begun else [p.name for p in folder.iterdir() if p.name != LOCK]
    except OSError as error:
        raise UsageError(
            f"cannot use {str(folder)!r} as a store: {error.strerror}", hint="name another folder"
        ) from None
    if strange:
        raise UsageError(
            f"{str(folder)!r} holds {min(strange)!r} and is not a store",
            hint=f"name a new or an empty folder with {spelled('folder', flag='--store')}",
        )


def locked(folder: Path) -> AbstractContextManager[None]:
    """One collector at a time."""
    return exclusive(
        folder / LOCK,
        busy=UsageError(
            f"another collector is using the store {str(folder)!r}",
            hint=f"stop it first, or give this one its own {spelled('folder', flag='--store')}",
        ),
        unwritable="name another folder",
    )


def create_file(path: Path) -> None:
    """Make the file if there is none yet, readable by its owner only."""
    with suppress(FileExistsError):
        os.close(system.open_file(path, new=True))
        sync(path.parent)
        sync(path.absolute().parent.parent)


def connect(folder: Path) -> sqlite3.Connection:
    """A connection to a store's file, which must exist."""
    try:
        return sqlite.connect(folder / DATABASE)
    except sqlite3.Error as error:
        raise unusable(folder, error) from None


def prepare(connection: sqlite3.Connection, spec: Spec | None, most_bytes: int | None) -> None:
    """Make every commit durable, check what the file is, and fill it when it is new."""
    check_kind(connection)
    sqlite.make_durable(connection)
    if most_bytes is not None:
        connection.execute(f"PRAGMA max_page_count = {max(1, most_bytes // PAGE)}")
    connection.execute("BEGIN IMMEDIATE")
    if sqlite.is_empty(connection):
        if spec is None:
            raise sqlite3.DatabaseError(sqlite.UNFINISHED)
        MARK.write(connection)
        for statement in TABLES:
            connection.execute(statement.format(width=RowLayout.of(spec).width))
        connection.execute("INSERT INTO spec VALUES (1, ?)", [spec.raw])
    elif FIRST.is_on(connection):
        width = RowLayout.of(spec_of(connection)).width
        connection.execute(arrived.TABLE.format(width=width))
        MARK.write(connection)
    connection.execute("COMMIT")


def check_kind(connection: sqlite3.Connection) -> None:
    """Raise DatabaseError for a database that is not a store; an empty one may become one."""
    if not sqlite.is_empty(connection) and not FIRST.is_on(connection):
        MARK.check(connection)


def arrivals(connection: sqlite3.Connection) -> Iterator[Arrival]:
    """Rows that are not in their places yet; in stores of the first version all are."""
    if not FIRST.is_on(connection):
        for ids, codes in connection.execute("SELECT ids, codes FROM arrivals ORDER BY number"):
            yield Arrival(bytes(ids), bytes(codes))


def all_of(found: Iterator[Arrival]) -> Arrival:
    """Some arrivals as one."""
    listed = list(found)
    return Arrival.of([one.ids for one in listed], [one.codes for one in listed])


def spec_of(connection: sqlite3.Connection) -> Spec:
    """The spec that the store was begun with, byte for byte."""
    if sqlite.is_empty(connection):
        raise sqlite3.DatabaseError(sqlite.UNFINISHED)
    found = connection.execute("SELECT raw FROM spec").fetchone()
    if found is None:
        raise sqlite3.DatabaseError("it has no spec")
    return Spec.from_bytes(bytes(found[0]))


def check_same(folder: Path, kept: Spec, given: Spec | None) -> None:
    """Refuse a spec other than the one the store was begun with."""
    if given is not None and given.digest != kept.digest:
        raise UsageError(
            f"the store {str(folder)!r} was begun with another spec (its digest is "
            f"{kept.digest[:12]}…, not {given.digest[:12]}…)",
            hint="rows that were perturbed differently cannot be mixed: name a new "
            f"{spelled('folder', flag='--store')}",
        )


def unusable(folder: Path, error: sqlite3.Error) -> UsageError:
    """The error for a file that is no store, or a damaged one."""
    return UsageError(
        f"{str(folder / DATABASE)!r} cannot be used as a store: {error}",
        hint="a store is begun by voile collect --spec spec.json --store FOLDER",
    )


# ---------------------------------------------------------------------- snapshot
# Reading a store out: what was in it at one moment, while a collector may go on filling it.


BATCH = 2**16
"""Rows that are read at a time."""


class Snapshot:
    """The rows of one moment. Ids give their order only and are not read out."""

    def __init__(self, connection: sqlite3.Connection, spec: Spec) -> None:
        self.spec = spec
        self._db = connection
        self._arrived = all_of(arrivals(connection))
        placed = int(connection.execute("SELECT count(*) FROM rows").fetchone()[0])
        self.count = placed + len(self._arrived)

    def batches(self, size: int = BATCH) -> Iterator[list[Codes]]:
        """Codes, one array for each column, in the order of the ids, which are random."""
        layout = RowLayout.of(self.spec)
        for some in in_batches(self._in_order(), size):
            yield layout.unpack(b"".join(some))

    def _in_order(self) -> Iterator[bytes]:
        """The codes of all rows, those that have just arrived among the others."""
        if not len(self._arrived):
            for (codes,) in self._db.execute("SELECT codes FROM rows ORDER BY id"):
                yield codes
            return
        placed = self._db.execute("SELECT id, codes FROM rows ORDER BY id")
        for _, codes in heapq.merge(placed, self._arrived.rows()):
            yield codes


def in_batches(rows: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    """Rows, so many at a time."""
    while some := list(itertools.islice(rows, size)):
        yield some


@contextmanager
def snapshot(folder: Path, spec: Spec | None = None) -> Iterator[Snapshot]:
    """Read a store while a collector may be running; a given `spec` must be the store's own."""
    if not (folder / DATABASE).is_file():
        raise UsageError(
            f"there is no store in {str(folder)!r}",
            hint=f"name the {spelled('folder', flag='--store')} of a collector",
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
