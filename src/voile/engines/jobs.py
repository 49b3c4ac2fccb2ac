"""What is computed of rows where they lie: jobs that an engine may carry to many machines.

A job is a plain object that can be pickled; it holds no secret. It imports NumPy and Arrow alone,
and what it gives for some rows does not depend on how rows were dealt out: sums are added up, and
a part of a release is made of the same keys in the same order, whichever machine makes it. So a
task that fails is done again, with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Protocol

import numpy as np
import pyarrow as pa

from voile.arrays import Bools, Ints
from voile.arrow import arrow_array, numpy_array
from voile.errors import TableError
from voile.schema import Keys, TupleIndex

if TYPE_CHECKING:
    from voile.noise.subkeys import Streams, Subkeys

SUM = "n"
"""The column of a job's result that is added up; all others are keys."""
HELD = 2**20
"""Rows of partial sums that are held before they are added up."""


# ---------------------------------------------------------------------- sums


class CodedJob(Protocol):
    """Sums of rows that are given as codes."""

    @property
    def output(self) -> pa.Schema:
        """Keys, and the column SUM last."""
        ...

    def __call__(self, batches: Iterable[list[Ints]]) -> Iterator[pa.Table]:
        """Of some rows, a batch of codes at a time; what is equal may come again."""
        ...


class TypedJob(Protocol):
    """Sums of rows whose columns have their kinds' types."""

    @property
    def output(self) -> pa.Schema:
        """Keys, and the column SUM last."""
        ...

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Of some rows, a batch at a time; what is equal may come again."""
        ...


class RowJob(Protocol):
    """Gathers something small of rows as they are; its secrets are handed to it apart."""

    def __call__(self, batches: Iterable[pa.Table], secrets: Subkeys) -> bytes:
        """Of some rows, or of none."""
        ...

    def merged(self, parts: Iterable[bytes]) -> bytes:
        """Parts as one, in whatever order they come."""
        ...


def added_up(parts: Iterable[pa.Table], output: pa.Schema) -> pa.Table:
    """Partial sums as one table: each combination of keys once, in order."""
    held: list[pa.Table] = []
    rows = 0
    for part in parts:
        held.append(part)
        rows += part.num_rows
        if rows > HELD:
            held = [grouped(held, output)]
            rows = held[0].num_rows // 2  # what cannot be added up further is not tried each time
    return in_order(grouped(held, output))


def grouped(parts: Sequence[pa.Table], output: pa.Schema) -> pa.Table:
    """Parts with what has equal keys added up."""
    joined = pa.concat_tables(parts) if parts else output.empty_table()
    keys = [name for name in output.names if name != SUM]
    if not keys:
        total = numpy_array(joined.column(SUM)).sum() if joined.num_rows else 0
        return pa.table([arrow_array(np.array([total], np.int64))], schema=output)
    found = joined.group_by(keys).aggregate([(SUM, "sum")])
    return found.rename_columns([*keys, SUM]).select(output.names).cast(output)


def in_order(found: pa.Table) -> pa.Table:
    """Sorted by the keys."""
    keys = [(name, "ascending") for name in found.column_names if name != SUM]
    return found.sort_by(keys) if keys and found.num_rows > 1 else found


def whole_numbers(names: Sequence[str]) -> pa.Schema:
    """A result of whole numbers alone."""
    return pa.schema([pa.field(name, pa.int64()) for name in (*names, SUM)])


@dataclass(frozen=True)
class CellCounts:
    """How many rows each cell of some tables has; a table is a set of columns by their places."""

    sizes: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]

    @property
    def output(self) -> pa.Schema:
        """The table, its cell, and the rows."""
        return whole_numbers(("table", "cell"))

    def __call__(self, batches: Iterable[list[Ints]]) -> Iterator[pa.Table]:
        """Small tables are counted in one array for all rows, others batch by batch."""
        shapes = [math.prod(self.sizes[j] for j in one) for one in self.sets]
        dense = {i: np.zeros(shape, np.int64) for i, shape in enumerate(shapes) if shape <= HELD}
        for codes in batches:
            for number, one in enumerate(self.sets):
                cells = np.zeros(len(codes[0]), np.int64)
                for j in one:
                    cells = cells * self.sizes[j] + codes[j]
                if number in dense:
                    dense[number] += np.bincount(cells, minlength=shapes[number])
                else:
                    yield self._part(number, *np.unique(cells, return_counts=True))
        for number, counts in dense.items():
            cells = np.flatnonzero(counts)
            yield self._part(number, cells, counts[cells])

    def _part(self, number: int, cells: Ints, counts: Ints) -> pa.Table:
        columns = [np.full(len(cells), number, np.int64), cells, counts.astype(np.int64)]
        return pa.table([arrow_array(c) for c in columns], schema=self.output)

    def tables(self, found: pa.Table) -> list[Ints]:
        """What was counted, each table in its shape."""
        number, cell, rows = (numpy_array(found.column(name)) for name in self.output.names)
        tables = []
        for i, one in enumerate(self.sets):
            shape = [self.sizes[j] for j in one]
            table = np.zeros(math.prod(shape), np.int64)
            here = number == i
            table[cell[here]] = rows[here]
            tables.append(table.reshape(shape))
        return tables


def check_same(name: str, rows: int, tables: Sequence[Ints]) -> None:
    """Refuse tables of which one counts other rows than there were: then the source changed."""
    for counts in tables:
        if (found := int(counts.sum())) != rows:
            raise TableError(
                f"table {name!r} had {rows:,} rows when it was counted first, and {found:,} later",
                hint="nothing was released; publish a table or snapshot that does not change",
            )


def key_names(index: TupleIndex) -> list[str]:
    """The columns that hold a key: one for each of its words."""
    return [f"k{i}" for i in range(len(index.limbs))]


def key_columns(index: TupleIndex, keys: Keys) -> list[Ints]:
    """Keys as whole numbers with a sign, which sort alike: a word has at most 63 bits."""
    return [word.astype(np.int64) for word in index.words(keys)]


def keys_in(index: TupleIndex, found: pa.Table | pa.RecordBatch) -> Keys:
    """The keys of such columns."""
    words = [numpy_array(found.column(name)).astype(np.uint64) for name in key_names(index)]
    return index.keys(words)


@dataclass(frozen=True)
class KeyCounts:
    """How many rows each tuple has that occurs."""

    sizes: tuple[int, ...]

    @property
    def output(self) -> pa.Schema:
        """The words of a key, and the rows."""
        return whole_numbers(key_names(TupleIndex(self.sizes)))

    def __call__(self, batches: Iterable[list[Ints]]) -> Iterator[pa.Table]:
        """Of each batch its different tuples."""
        index = TupleIndex(self.sizes)
        for codes in batches:
            keys, counts = np.unique(index.encode(codes), return_counts=True)
            columns = [*key_columns(index, keys), counts.astype(np.int64)]
            yield pa.table([arrow_array(c) for c in columns], schema=self.output)


@dataclass(frozen=True, eq=False)
class DealtRows:
    """A job on rows that a tree of cuts has dealt out.

    Node i sends positions up to cut[i] of column[i] to node child[i], and others to the node after
    that; a leaf has column −1. The job is given the number of each row's leaf, and some columns.
    """

    job: CodedJob
    column: Ints
    cut: Ints
    child: Ints
    numbers: Ints
    """(nodes,): the number of a leaf; −1 where its rows are left out."""
    places: tuple[tuple[int, Ints | None], ...]
    """Which columns are cut, and the position of each code where it is not the code."""
    given: tuple[int, ...]
    """The columns that the job is given."""
    hidden: tuple[int, ...] = ()
    """Those of them that are 0 in leaves that are `whole`: so fewer rows differ."""
    whole: Bools | None = None
    """(numbers,)"""

    @property
    def output(self) -> pa.Schema:
        """What the job sums."""
        return self.job.output

    def __call__(self, batches: Iterable[list[Ints]]) -> Iterator[pa.Table]:
        """What the job sums of these rows."""
        return self.job(self._dealt(codes) for codes in batches)

    def _dealt(self, codes: list[Ints]) -> list[Ints]:
        number = self.numbers[self._leaves(codes)]
        found = {i: codes[i] for i in self.given}
        if self.whole is not None:
            found |= {i: np.where(self.whole[number], 0, codes[i]) for i in self.hidden}
        inside = number >= 0
        return [part[inside] for part in (number, *found.values())]

    def _leaves(self, codes: list[Ints]) -> Ints:
        """The leaf of every row: NumPy walks the tree a level at a time."""
        positions = [codes[i] if places is None else places[codes[i]] for i, places in self.places]
        node = np.zeros(len(codes[0]), np.int64)
        while True:
            column = self.column[node]
            if not (column >= 0).any():
                return node
            for j, position in enumerate(positions):
                here = np.flatnonzero(column == j)
                at = node[here]
                node[here] = self.child[at] + (position[here] > self.cut[at])


# ---------------------------------------------------------------------- keys of rows, in parts


@dataclass(frozen=True)
class MadeKeys:
    """What a step makes of the keys of one part."""

    keys: Keys
    figures: dict[str, float] = field(default_factory=dict)
    """Numbers to be added up over all parts."""


class KeyStep(Protocol):
    """Turns keys into other keys, part by part."""

    @property
    def parts(self) -> int:
        """How many there are."""
        ...

    @property
    def starts(self) -> Keys | None:
        """The first key of each part, where parts are ranges; None where keys are mixed."""
        ...

    def purposes(self) -> Iterable[tuple[str, int]]:
        """Of which coins are tossed."""
        ...

    def made(self, part: int, keys: Keys, coins: Streams) -> MadeKeys:
        """What becomes of the keys of a part, which come in order."""
        ...


class PartWriter(Protocol):
    """Writes the keys of each part as one file of a release."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the domain whose keys it writes."""
        ...

    @property
    def parts(self) -> int:
        """How many files there are."""
        ...

    @property
    def starts(self) -> Keys | None:
        """The first key of each file, where files are ranges; None where keys are mixed."""
        ...

    def purposes(self) -> Iterable[tuple[str, int]]:
        """Of which coins are tossed."""
        ...

    def write(
        self, part: int, keys: Iterator[Keys], coins: Streams, out: BinaryIO
    ) -> dict[str, float]:
        """One file of keys that come in order, a batch at a time.

        Returns numbers that are added up over all files, and `rows`, those of the file.
        """
        ...


def part_of(index: TupleIndex, keys: Keys, parts: int, starts: Keys | None) -> Ints:
    """To which part each key belongs."""
    if starts is None:
        return mixed(index, keys, parts)
    return np.searchsorted(starts, keys, side="right").astype(np.int64) - 1


def mixed(index: TupleIndex, keys: Keys, parts: int) -> Ints:
    """A part for each key that says nothing of its place in the order: equal keys have the same.

    The finalizer of SplitMix64, over the words of a key.
    """
    if parts == 1:
        return np.zeros(len(keys), np.int64)
    found = np.zeros(len(keys), np.uint64)
    for word in index.words(keys):
        found = (found ^ word) + np.uint64(0x9E3779B97F4A7C15)
        found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        found ^= found >> np.uint64(31)
    return (found % np.uint64(parts)).astype(np.int64)


def added(all_figures: Iterable[dict[str, float]]) -> dict[str, float]:
    """Figures of several parts, added up by name."""
    total: dict[str, float] = {}
    for figures in all_figures:
        for name, value in figures.items():
            total[name] = total.get(name, 0) + value
    return total


class KeyReader:
    """Keys that come in order, read range by range."""

    def __init__(self, keys: Iterator[Keys]) -> None:
        self._keys, self._left = keys, list[Keys]()

    def before(self, end: Keys | None) -> Iterator[Keys]:
        """Those below a key, or all that are left; to be read to its end before the next."""
        while True:
            some = self._left.pop() if self._left else next(self._keys, None)
            if some is None:
                return
            cut = len(some) if end is None else int(np.searchsorted(some, end)[0])
            if cut:
                yield some[:cut]
            if cut < len(some):
                self._left.append(some[cut:])
                return
