"""Rows of a release that are counted where they lie, to see whether chance can have made them.

The job runs on executors, with NumPy and Arrow alone. Files are dealt out to tasks in their order.
A task counts the rows of cells, or of a view its different tuples and how often each is shown. The
tuples at both ends of a task are given apart: the next task may go on with them.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from voile.arrays import Ints
from voile.engines.encode import codes, column_type
from voile.errors import ReleaseError, VoileError
from voile.files import sha256
from voile.kinds.plausibility import DomainCells
from voile.schema import Attribute, TupleIndex
from voile.schema.index import Codes, Keys

if TYPE_CHECKING:
    from voile.kinds.release import Release

REPEATED = 12
"""Multiplicities that are looked at: noise that repeats a tuple so often is rare."""
MOST_TASKS = 64
"""What comes to the driver is one small answer of each."""
AT_A_TIME = 2**17
OUT_OF_ORDER = "data/ is not in the order of the domain"


# ----------------------------------------------------------------------
# different tuples, and how often each is shown


@dataclass(eq=False)
class TupleCounts:
    """How many tuples are shown so often or more, and where they lie."""

    cells: Sequence[DomainCells]

    def __post_init__(self) -> None:
        self.repeated = np.zeros(REPEATED, np.int64)
        """At place j, the tuples that are shown more than j times."""

    def add(self, tuples: Sequence[Codes], copies: Codes) -> None:
        """Count different tuples, each with its number of copies."""
        for cells in self.cells:
            cells.add(tuples)
        often = np.bincount(np.minimum(copies, REPEATED), minlength=REPEATED + 1)
        self.repeated += np.cumsum(often[::-1])[::-1][1:]


def runs(batches: Iterable[Sequence[Codes]], index: TupleIndex
         ) -> Iterator[tuple[list[Codes], Codes]]:  # fmt: skip
    """The different tuples in the order of the domain, with the number of copies of each.

    The last one comes alone.
    """
    last: Keys | None = None
    held = 0  # copies of the last tuple, which the next batch may go on with
    for coded in batches:
        keys = index.encode(coded)
        if not len(keys):
            continue
        joined = keys if last is None else np.concatenate([last, keys])
        if not ascending(joined):
            raise ReleaseError(OUT_OF_ORDER)
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        copies = np.diff(np.append(starts, len(keys)))
        if last is not None:
            if keys[0] == last[0]:
                copies[0] += held
            else:
                yield index.decode(last), np.array([held])
        held, last = int(copies[-1]), keys[-1:]
        yield [code[starts[:-1]] for code in coded], copies[:-1]
    if last is not None:
        yield index.decode(last), np.array([held])


def ascending(keys: Keys) -> bool:
    """Whether keys are in order; those of several words are compared word by word."""
    words = keys[:, None] if keys.dtype.kind == "u" else keys.view(">u8").reshape(len(keys), -1)
    equal = np.ones(len(keys) - 1, np.bool_)
    for word in words.T:
        if (equal & (word[1:] < word[:-1])).any():
            return False
        equal &= word[1:] == word[:-1]
    return True


# ----------------------------------------------------------------------
# the job


@dataclass(frozen=True, eq=False)
class CountRows:
    """Counts the rows of files whose tasks are dealt out by number."""

    folder: str
    files: tuple[tuple[str, str], ...]
    """Names and digests, in order."""
    attributes: tuple[Attribute, ...]
    cells: tuple[DomainCells, ...]
    tuples: bool
    """Whether different tuples are counted, of files that are in the order of the domain."""

    @property
    def tasks(self) -> int:
        """How many there are."""
        return min(len(self.files), MOST_TASKS)

    @property
    def output(self) -> pa.Schema:
        """The number of a task, what it counted, and what is wrong; empty if nothing is."""
        return pa.schema([pa.field("task", pa.int64()), pa.field("content", pa.binary()),
                          pa.field("fault", pa.string())])  # fmt: skip

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One task after the other."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                try:
                    row = [number, self._counted(number), ""]
                except VoileError as error:
                    row = [number, b"", error.message]
                except OSError as error:
                    row = [number, b"", f"rows cannot be read: {error.strerror or error}"]
                arrays = [pa.array([v], f.type) for v, f in zip(row, self.output, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=self.output)

    def _counted(self, task: int) -> bytes:
        cells = [replace(some) for some in self.cells]  # nothing is counted in these yet
        counts, ends = TupleCounts(cells), EndRuns(len(self.attributes))
        if self.tuples:
            index = TupleIndex([a.size for a in self.attributes])
            for tuples, copies in ends.without(runs(self._coded(task), index)):
                counts.add(tuples, copies)
        else:
            for coded in self._coded(task):
                for some in cells:
                    some.add(coded)
        out = io.BytesIO()
        seen = np.concatenate([np.zeros(0, np.int64), *(some.seen for some in cells)])
        np.savez(out, seen=seen, repeated=counts.repeated, ends=ends.tuples, copies=ends.copies)
        return out.getvalue()

    def _coded(self, task: int) -> Iterator[list[Ints]]:
        """The codes of a task's rows, file by file."""
        from voile.storage import StoredFolder  # noqa: PLC0415  (who looks here has none)

        store = StoredFolder.of(self.folder)
        first, last = (len(self.files) * place // self.tasks for place in (task, task + 1))
        for name, stated in self.files[first:last]:
            with tempfile.TemporaryDirectory(prefix="voile-") as folder:
                path = Path(store.uri(name)) if store.is_local else Path(folder) / "part"
                digest = sha256(path) if store.is_local else store.fetch(name, path)
                if digest != stated:
                    raise ReleaseError(f"{name} was changed after the release was written")
                yield from self._coded_file(path)

    def _coded_file(self, path: Path) -> Iterator[list[Ints]]:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(AT_A_TIME, columns=[a.name for a in self.attributes]):
                yield [
                    codes(batch.column(a.name).cast(column_type(a)), replace(a, other=None))
                    for a in self.attributes
                ]


class EndRuns:
    """The first and the last tuple of some runs, with their copies; one if there is one alone."""

    def __init__(self, columns: int) -> None:
        self.tuples: Ints = np.zeros((0, columns), np.int64)
        self.copies: Ints = np.zeros(0, np.int64)

    def without(self, found: Iterable[tuple[list[Codes], Codes]]
                ) -> Iterator[tuple[list[Codes], Codes]]:  # fmt: skip
        """The runs between them."""
        held: tuple[list[Codes], Codes] | None = None
        for tuples, copies in found:
            if not len(copies):
                continue
            if held is not None:
                yield self._after_first(*held)
            held = tuples, copies
        if held is not None:  # the last one, which came alone
            self._take(held[0], held[1])

    def _after_first(self, tuples: list[Codes], copies: Codes) -> tuple[list[Codes], Codes]:
        if len(self.copies):
            return tuples, copies
        self._take([code[:1] for code in tuples], copies[:1])
        return [code[1:] for code in tuples], copies[1:]

    def _take(self, tuples: list[Codes], copies: Codes) -> None:
        here = np.stack([np.asarray(code, np.int64) for code in tuples], axis=1)
        self.tuples = np.concatenate([self.tuples, here])
        self.copies = np.concatenate([self.copies, np.asarray(copies, np.int64)])


# ----------------------------------------------------------------------
# on the driver


def lie_far(release: Release) -> bool:
    """Whether rows lie elsewhere, and are too many to be brought here."""
    from voile.kinds.staging import MOST_LOOKED_AT  # noqa: PLC0415  (not on executors)

    return bool(release.left) and release.manifest.rows > MOST_LOOKED_AT


def count_there(release: Release, cells: Sequence[DomainCells], tuples: TupleCounts | None) -> None:
    """Count a release's rows in these cells where they lie; or its different tuples."""
    assert release.mirror is not None and release.engine is not None  # noqa: S101
    files = [file for file in release.manifest.files if file.path in release.left]
    job = CountRows(
        release.mirror.store.url, tuple((f.path, f.sha256) for f in files),
        tuple(release.schema), tuple(cells), tuples is not None,
    )  # fmt: skip
    try:
        found = release.engine.run(job.tasks, job, job.output)
    except VoileError as error:
        raise ReleaseError(
            f"the rows cannot be looked at: {error.message}", hint=error.hint
        ) from None
    answers = {row["task"]: row for row in found.to_pylist()}
    pending = PendingRun(TupleIndex(release.schema.sizes), tuples)
    for task in range(job.tasks):
        answer = answers.get(task)
        if answer is None:
            raise ReleaseError(f"{release.engine} did not count all rows", hint="try it again")
        if answer["fault"]:
            raise ReleaseError(answer["fault"])
        with np.load(io.BytesIO(answer["content"]), allow_pickle=False) as content:
            add_answer(content, cells, pending)
    pending.close()


def add_answer(content: Any, cells: Sequence[DomainCells], pending: PendingRun) -> None:
    """Add what a task has counted; tasks come in order."""
    start = 0
    for some in cells:
        some.seen += content["seen"][start : start + len(some.seen)]
        start += len(some.seen)
    if pending.tuples is not None:
        pending.tuples.repeated += content["repeated"]
        for ends, copies in zip(content["ends"], content["copies"], strict=True):
            pending.add([np.array([code]) for code in ends], int(copies))


class PendingRun:
    """The last tuple so far, with whose copies the next task may go on."""

    def __init__(self, index: TupleIndex, tuples: TupleCounts | None) -> None:
        self._index, self.tuples = index, tuples
        self._last: Keys | None = None
        self._copies = 0

    def add(self, ends: list[Codes], copies: int) -> None:
        """The next tuple, or more copies of the same."""
        key = self._index.encode(ends)
        if self._last is not None:
            if not ascending(np.concatenate([self._last, key])):
                raise ReleaseError(OUT_OF_ORDER)
            if key[0] == self._last[0]:
                self._copies += copies
                return
            self.close()
        self._last, self._copies = key, copies

    def close(self) -> None:
        """Count the last tuple."""
        if self._last is not None and self.tuples is not None:
            self.tuples.add(self._index.decode(self._last), np.array([self._copies]))
            self._last = None
