"""What runs on executors: columns to their kinds' types, types to codes, codes to keys and parts.

It needs NumPy and Arrow, and for coins cryptography. It never raises for a value that does not fit:
Spark would try again, and write the value into its logs. Rows that do not fit are counted instead.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrays import Bools, Ints
from voile.arrow import arrow_array, numpy_array
from voile.engines.encode import ARROW, OUTSIDE, clamped, codes
from voile.engines.jobs import (
    SUM,
    CodedJob,
    KeyStep,
    PartWriter,
    RowJob,
    TypedJob,
    grouped,
    key_columns,
    key_names,
    keys_in,
    part_of,
)
from voile.engines.spark.vault import Vault
from voile.schema import Attribute, Keys, TupleIndex

Batches = Iterator[pa.RecordBatch]
WRONG = "wrong"
"""The column of a result that says of which attribute a row has a value outside its domain."""
FINE = -1
DAY = 86_400_000_000
"""Microseconds."""
WHOLE, NUMBER = r"^\s*[+-]?[0-9]+\s*$", r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
ISO_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
TRUTHS = r"^(?i:true|false)$"
PIECE = 2**22
"""Bytes of a file that travel at once."""
MOST_CELLS = 2**21
"""Rows of a batch that is put together before it is coded."""


# ---------------------------------------------------------------------- columns


@dataclass(frozen=True)
class Reading:
    """How a column is read: its kind, and whether it is a short float."""

    kind: str | None

    def typed(self, column: pa.Array) -> pa.Array:
        """The column as its kind's type; NULL where a value cannot be read, NaN is NULL."""
        if self.kind is None:
            return column
        found = as_kind(column, self.kind)
        if self.kind != "numeric":
            return found
        numbers = numpy_array(found)
        missing = np.isnan(numbers) | nulls(found)
        # Adding zero makes one zero of the two that floats have.
        return arrow_array(np.where(missing, 0.0, numbers + 0.0), missing)

    def lost(self, column: pa.Array) -> Bools:
        """Which values cannot be read as the kind."""
        if self.kind is None:
            return np.zeros(len(column), np.bool_)
        found = as_kind(column, self.kind)
        return nulls(found) & ~nulls(column)


def nulls(column: pa.Array) -> Bools:
    """Which values are missing."""
    return np.asarray(numpy_array(column.is_null()), np.bool_)


def as_kind(column: pa.Array, kind: str) -> pa.Array:  # noqa: PLR0911  (one for each type)
    """A column cast to a kind's type, NULL where that fails."""
    wanted, of = ARROW[kind], column.type
    if of == wanted:
        return column
    if pa.types.is_dictionary(of) or pa.types.is_large_string(of):
        return as_kind(column.cast(pa.string()), kind)
    if kind == "date":
        return as_days(column)
    if pa.types.is_string(of):
        return of_text(column, kind)
    if kind == "integer" and pa.types.is_floating(of):
        numbers = numpy_array(column.cast(pa.float64()), 0)
        whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**63)
        return arrow_array(np.where(whole, numbers, 0).astype(np.int64), ~whole | nulls(column))
    if kind == "numeric" and pa.types.is_floating(of):
        return column.cast(pa.string()).cast(wanted)  # 0.1, not 0.10000000149
    if kind == "categorical" and not (pa.types.is_integer(of) or pa.types.is_date(of)):
        # Engines spell other values in several ways: only a view of the table's says which.
        plain = pa.types.is_boolean(of)
        return column.cast(wanted) if plain else pa.nulls(len(column), wanted)
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid:
        return one_by_one(column, wanted)


def as_days(column: pa.Array) -> pa.Array:
    """The day of a time in UTC, or of a text in ISO 8601."""
    if pa.types.is_timestamp(column.type):
        moments = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        days = np.floor_divide(numpy_array(moments), DAY)
        return arrow_array(days, nulls(column)).cast(pa.int32()).cast(pa.date32())
    if pa.types.is_string(column.type):
        return of_text(column, "date")
    return pa.nulls(len(column), pa.date32())


def of_text(column: pa.Array, kind: str) -> pa.Array:
    """Texts that are written as the kind's values are; NULL for others."""
    forms = {"integer": WHOLE, "numeric": NUMBER, "date": ISO_DAY, "boolean": TRUTHS}
    fits = pc.match_substring_regex(column, forms[kind])
    plain = pc.if_else(fits, pc.utf8_trim_whitespace(column), pa.scalar(None, pa.string()))
    if kind in ("integer", "numeric"):
        plain = pc.replace_substring_regex(plain, r"^\+", "")
    if kind == "boolean":
        plain = pc.utf8_lower(plain)
    try:
        return plain.cast(ARROW[kind])
    except pa.ArrowInvalid:
        return one_by_one(plain, ARROW[kind])


def one_by_one(column: pa.Array, wanted: Any) -> pa.Array:
    """A cast that fails on some value: each different value on its own."""
    listed = column.dictionary_encode()
    values = []
    for value in listed.dictionary:
        try:
            values.append(value.cast(wanted).as_py())
        except pa.ArrowInvalid:
            values.append(None)
    return pa.array(values, wanted).take(listed.indices)


@dataclass(frozen=True)
class TypedWork:
    """Batches of a frame's columns with their kinds' types, for a job that sums them."""

    names: tuple[str, ...]
    readings: tuple[Reading, ...]
    drop_nulls: bool
    job: TypedJob

    def __call__(self, batches: Batches) -> Batches:
        """What the job sums."""
        typed = (
            typed_batch(b, self.names, self.readings, self.drop_nulls) for b in joined(batches)
        )
        for part in self.job(typed):
            yield from part.to_batches()


@dataclass(frozen=True)
class TypedRows:
    """Rows with the values that would be published: of equal ones of a batch, one."""

    types: tuple[Any, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return tuple(f"c{i}" for i in range(len(self.types)))

    @property
    def output(self) -> pa.Schema:
        """The columns, and how often a row occurs."""
        fields = [pa.field(n, kind) for n, kind in zip(self.names, self.types, strict=True)]
        return pa.schema([*fields, pa.field(SUM, pa.int64())])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Of each batch its different rows."""
        for batch in batches:
            ones = arrow_array(np.ones(batch.num_rows, np.int64))
            columns = [*batch.columns, ones]
            yield grouped([pa.Table.from_arrays(columns, schema=self.output)], self.output)


def typed_batch(
    batch: pa.RecordBatch, names: Sequence[str], readings: Sequence[Reading], drop_nulls: bool
) -> pa.RecordBatch:
    """A batch with the kinds' types, without rows that have a NULL if these are dropped."""
    columns = [r.typed(batch.column(i)) for i, r in enumerate(readings)]
    found = pa.RecordBatch.from_arrays(columns, list(names))
    return found.filter(arrow_array(complete(columns))) if drop_nulls else found


def complete(columns: Sequence[pa.Array]) -> Bools:
    """Which rows have no NULL."""
    found = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        if column.null_count:
            found &= ~nulls(column)
    return found


def joined(batches: Iterable[pa.RecordBatch]) -> Batches:
    """Small batches put together: each has its price."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= BATCH:
            yield one_batch(held)
            held, rows = [], 0
    if held:
        yield one_batch(held)


BATCH = 2**17


def one_batch(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Several batches as one."""
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).combine_chunks()
    return table.to_batches()[0] if table.num_rows else batches[0]


# ---------------------------------------------------------------------- codes


@dataclass(frozen=True)
class Coder:
    """Rows to codes, and of which attribute rows have values outside the domain."""

    attributes: tuple[Attribute, ...]
    drop_nulls: bool
    clamp: bool = False

    def coded(self, batches: Batches) -> Iterator[tuple[list[Ints], list[int]]]:
        """Codes of the rows that fit, and how many do not, by attribute."""
        for batch in joined(batches):
            columns = [
                Reading(a.kind).typed(batch.column(i)) for i, a in enumerate(self.attributes)
            ]
            if self.drop_nulls:
                kept = complete(columns)
                if not kept.all():
                    columns = [c.filter(arrow_array(kept)) for c in columns]
            found = []
            wrong = [0] * len(self.attributes)
            fits = np.ones(len(columns[0]), np.bool_)
            for i, (column, a) in enumerate(zip(columns, self.attributes, strict=True)):
                moved = clamped(column, a) if self.clamp or a.clamp else column
                code = codes(moved, a)
                outside = code == OUTSIDE
                if outside.any():
                    wrong[i] = int(outside.sum())
                    fits &= ~outside
                found.append(code)
            yield (found if fits.all() else [code[fits] for code in found]), wrong


@dataclass(frozen=True)
class CodedWork:
    """Codes of rows, for a job that sums them; what does not fit is a row of its own."""

    coder: Coder
    job: CodedJob

    @property
    def output(self) -> pa.Schema:
        """What the job sums, and WRONG."""
        return self.job.output.append(pa.field(WRONG, pa.int64()))

    def __call__(self, batches: Batches) -> Batches:
        """What the job sums of these rows."""
        wrong = np.zeros(len(self.coder.attributes), np.int64)

        def fitting() -> Iterator[list[Ints]]:
            for found, outside in self.coder.coded(batches):
                wrong[:] += outside
                yield found

        for part in self.job(fitting()):
            fine = np.full(part.num_rows, FINE, np.int64)
            yield from part.append_column(self.output.field(WRONG), arrow_array(fine)).to_batches()
        yield from self._misfits(wrong)

    def _misfits(self, wrong: Ints) -> Batches:
        places = np.flatnonzero(wrong)
        if not len(places):
            return
        columns = []
        for field in self.output:
            if field.name == WRONG:
                columns.append(arrow_array(places))
            elif field.name == SUM:
                columns.append(arrow_array(wrong[places]))
            else:
                columns.append(pa.nulls(len(places), field.type))
        yield pa.RecordBatch.from_arrays(columns, schema=self.output)


# ---------------------------------------------------------------------- keys in parts


PART, COUNT, FIGURES = "part", SUM, "figures"
ROWS_READ, KEYS_READ = "rows read", "keys read"
"""Figures: what a step and what the writer of files has read."""


def keys_output(index: TupleIndex) -> pa.Schema:
    """The part of a key, its words, how often it occurs; and what is not a key, as text."""
    words = [pa.field(name, pa.int64()) for name in key_names(index)]
    numbers = [pa.field(PART, pa.int64()), *words, pa.field(COUNT, pa.int64())]
    return pa.schema([*numbers, pa.field(WRONG, pa.int64()), pa.field(FIGURES, pa.string())])


@dataclass(frozen=True)
class PartKeys:
    """Rows to keys, each with its part; equal ones of a batch are one with a count."""

    coder: Coder
    parts: int
    starts: Keys | None

    @property
    def index(self) -> TupleIndex:
        """The numbering of the domain's tuples."""
        return TupleIndex([a.size for a in self.coder.attributes])

    def __call__(self, batches: Batches) -> Batches:
        """Keys with their parts."""
        index = self.index
        for found, wrong in self.coder.coded(batches):
            if len(found[0]):
                yield parted(index, index.encode(found), self.parts, self.starts)
            for place in np.flatnonzero(wrong):
                yield note(index, wrong=int(place))


def parted(index: TupleIndex, keys: Keys, parts: int, starts: Keys | None) -> pa.RecordBatch:
    """Keys with their parts, equal ones as one with a count."""
    unique, counts = np.unique(keys, return_counts=True)
    numbers = part_of(index, unique, parts, starts)
    columns = [numbers, *key_columns(index, unique), counts.astype(np.int64)]
    columns.append(np.full(len(unique), FINE, np.int64))
    arrays = [arrow_array(c) for c in columns]
    return pa.RecordBatch.from_arrays(
        [*arrays, pa.nulls(len(unique), pa.string())], schema=keys_output(index)
    )


def note(index: TupleIndex, *, wrong: int = FINE, figures: str | None = None, part: int = 0
         ) -> pa.RecordBatch:  # fmt: skip
    """A row that is no key: that a value does not fit, or figures to be added up."""
    words: list[int] = [0] * len(index.limbs)
    values = [[part], *[[w] for w in words], [0], [wrong], [figures]]
    output = keys_output(index)
    arrays = [pa.array(v, field.type) for v, field in zip(values, output, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=output)


class PartReader:
    """Keys by part, in order: one part after the other, and what is no key.

    Where the server keeps the order in which it sorted (`ordered`), they are read as they come,
    and an order that was lost is an error. Sail forgets it: there a task sorts its own rows.
    """

    def __init__(self, batches: Batches, index: TupleIndex, *, ordered: bool) -> None:
        self._batches = batches if ordered else sorted_batches(batches, index)
        self._index = index
        self._left: list[pa.RecordBatch] = []
        self.wrong: list[int] = []
        self.figures: list[str] = []
        self.read = 0
        """Keys that were read so far, each as often as it occurs."""

    def _next(self) -> pa.RecordBatch | None:
        if self._left:
            return self._left.pop()
        while (batch := next(self._batches, None)) is not None:
            if batch.num_rows:
                return batch
        return None

    def parts(self) -> Iterator[tuple[int, Iterator[Keys]]]:
        """Each part with its keys, to be read to their end before the next."""
        before = -1
        while (batch := self._next()) is not None:
            self._left.append(batch)
            number = int(numpy_array(batch.column(0).slice(0, 1))[0])
            if number <= before:
                raise RuntimeError(OUT_OF_ORDER)
            before = number
            yield number, self._in_order(number)
            for _ in self._keys(number):  # what was not read
                pass

    def _in_order(self, number: int) -> Iterator[Keys]:
        """The keys of a part; that they come in order is what coins depend on."""
        last: Keys | None = None
        for keys in self._keys(number):
            joined_up = keys if last is None else np.concatenate([last, keys])
            if not in_order_of(self._index, joined_up):
                raise RuntimeError(OUT_OF_ORDER)
            self.read += len(keys)
            yield keys
            last = keys[-1:]

    def _keys(self, number: int) -> Iterator[Keys]:
        while (batch := self._next()) is not None:
            numbers = numpy_array(batch.column(0))
            if (numbers[1:] < numbers[:-1]).any():
                raise RuntimeError(OUT_OF_ORDER)
            upto = int(np.searchsorted(numbers, number, side="right"))
            if upto < batch.num_rows:
                self._left.append(batch.slice(upto))
                batch = batch.slice(0, upto)
            if batch.num_rows:
                yield from self._of(batch)
            if self._left:
                return

    def _of(self, batch: pa.RecordBatch) -> Iterator[Keys]:
        counts = numpy_array(batch.column(COUNT))
        notes = counts == 0
        if notes.any():
            rest = batch.filter(arrow_array(notes))
            self.wrong += [w for w in rest.column(WRONG).to_pylist() if w != FINE]
            self.figures += [f for f in rest.column(FIGURES).to_pylist() if f is not None]
            batch, counts = batch.filter(arrow_array(~notes)), counts[~notes]
        keys = keys_in(self._index, batch)
        # Of a tuple that many rows have, a few at a time.
        start = 0
        while start < len(keys):
            if counts[start] > MOST_CELLS:
                left = int(counts[start])
                while left:
                    some = min(left, MOST_CELLS)
                    yield np.repeat(keys[start : start + 1], some)
                    left -= some
                start += 1
                continue
            running = np.cumsum(counts[start:])
            take = max(1, int(np.searchsorted(running, MOST_CELLS, side="right")))
            here = slice(start, start + take)
            yield np.repeat(keys[here], counts[here])
            start += take


def in_order_of(index: TupleIndex, keys: Keys) -> bool:
    """Whether keys do not descend, word by word."""
    alike = np.ones(max(0, len(keys) - 1), np.bool_)
    for word in index.words(keys):
        if (alike & (word[1:] < word[:-1])).any():
            return False
        alike &= word[1:] == word[:-1]
    return True


OUT_OF_ORDER = "the cluster has lost the order of the keys that it was to sort"


def sorted_batches(batches: Batches, index: TupleIndex) -> Batches:
    """All rows of a task, sorted by part and key."""
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return
    names = [PART, *key_names(index)]
    table = pa.Table.from_batches(found)
    found.clear()
    columns = [numpy_array(table.column(name)) for name in reversed(names)]
    order = np.lexsort(columns)
    del columns
    for start in range(0, len(order), BATCH):
        some = table.take(arrow_array(order[start : start + BATCH]))
        yield from some.combine_chunks().to_batches()


@dataclass(frozen=True)
class StepWork:
    """Makes other keys of the keys of each part, and deals these out anew."""

    step: KeyStep
    sizes: tuple[int, ...]
    vault: Vault
    parts: int
    starts: Keys | None
    ordered: bool

    def __call__(self, batches: Batches) -> Batches:
        """Keys of the step with the parts that they belong to next."""
        index, coins = TupleIndex(self.sizes), self.vault.open()
        reader = PartReader(batches, index, ordered=self.ordered)
        for number, keys in reader.parts():
            found = [np.empty(0, index.key_type), *keys]
            made = self.step.made(number, np.concatenate(found), coins)
            if len(made.keys):
                yield parted(index, made.keys, self.parts, self.starts)
            yield note(index, figures=json.dumps(made.figures))
        for place in reader.wrong:
            yield note(index, wrong=place)
        for figures in (*reader.figures, json.dumps({ROWS_READ: reader.read})):
            yield note(index, figures=figures)


FILES = pa.schema([
    pa.field(PART, pa.int64()), pa.field("piece", pa.int64()), pa.field("content", pa.binary()),
    pa.field(WRONG, pa.int64()), pa.field(FIGURES, pa.string()),
])  # fmt: skip
"""Files in pieces; the figures of a file come with its last piece."""


@dataclass(frozen=True)
class FileWork:
    """Writes the keys of each part as a file, and hands it over in pieces."""

    writer: PartWriter
    vault: Vault
    ordered: bool
    distinct: bool = False

    def __call__(self, batches: Batches) -> Batches:
        """The files of these parts."""
        index, coins = TupleIndex(self.writer.sizes), self.vault.open()
        reader = PartReader(batches, index, ordered=self.ordered)
        for number, keys in reader.parts():
            out = io.BytesIO()
            unique = without_repetitions(keys) if self.distinct else keys
            figures = self.writer.write(number, unique, coins, out)
            content = out.getbuffer()
            pieces = max(1, -(-len(content) // PIECE))
            for piece in range(pieces):
                part = bytes(content[piece * PIECE : (piece + 1) * PIECE])
                last = json.dumps(figures) if piece == pieces - 1 else None
                yield self._row(number, piece, part, FINE, last)
        for place in reader.wrong:
            yield self._row(-1, 0, b"", place, None)
        for more in (*reader.figures, json.dumps({KEYS_READ: reader.read})):
            yield self._row(-1, 0, b"", FINE, more)

    @staticmethod
    def _row(
        number: int, piece: int, content: bytes, wrong: int, figures: str | None
    ) -> pa.RecordBatch:
        values = [[number], [piece], [content], [wrong], [figures]]
        arrays = [pa.array(v, field.type) for v, field in zip(values, FILES, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=FILES)


def without_repetitions(keys: Iterator[Keys]) -> Iterator[Keys]:
    """Sorted keys, each once."""
    last: Keys | None = None
    for some in keys:
        fresh = np.ones(len(some), np.bool_)
        fresh[1:] = some[1:] != some[:-1]
        if last is not None and len(some):
            fresh[0] = some[0] != last[0]
        if fresh.any():
            yield some[fresh]
        last = some[-1:] if len(some) else last


# ---------------------------------------------------------------------- gathering


GATHERED = pa.schema([pa.field("rows", pa.int64()), pa.field("content", pa.binary())])
"""What was gathered, and of how many rows."""


@dataclass(frozen=True)
class GatherWork:
    """What a job gathers of the rows of each partition."""

    job: RowJob
    vault: Vault

    def __call__(self, batches: Batches) -> Batches:
        """One row, also of a partition that has none."""
        read = 0

        def tables() -> Iterator[pa.Table]:
            nonlocal read
            for batch in joined(batches):
                read += batch.num_rows
                yield pa.Table.from_batches([batch])

        content = self.job(tables(), self.vault.open())
        yield gathered_row(content, read)


@dataclass(frozen=True)
class MergeWork:
    """Puts together what was gathered, so that little comes to the driver."""

    job: RowJob

    def __call__(self, batches: Batches) -> Batches:
        """One row of several, or none of none."""
        found = [batch for batch in batches if batch.num_rows]
        if found:
            parts = (part for batch in found for part in batch.column("content").to_pylist())
            rows = sum(int(numpy_array(batch.column("rows")).sum()) for batch in found)
            yield gathered_row(self.job.merged(parts), rows)


def gathered_row(content: bytes, rows: int) -> pa.RecordBatch:
    """What was gathered as a row."""
    arrays = [pa.array([rows], pa.int64()), pa.array([content], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, schema=GATHERED)


# ---------------------------------------------------------------------- looking


@dataclass(frozen=True)
class LostCounts:
    """How many rows have a value that cannot be read as its kind, by column."""

    readings: tuple[Reading, ...]

    def __call__(self, batches: Batches) -> Batches:
        """One row for each column that has some."""
        lost = np.zeros(len(self.readings), np.int64)
        for batch in joined(batches):
            lost += [int(r.lost(batch.column(i)).sum()) for i, r in enumerate(self.readings)]
        places = np.flatnonzero(lost)
        yield pa.RecordBatch.from_arrays(
            [arrow_array(places), arrow_array(lost[places])], schema=COLUMN_COUNTS
        )


COLUMN_COUNTS = pa.schema([pa.field("c", pa.int64()), pa.field(SUM, pa.int64())])


@dataclass(frozen=True)
class ColumnFacts:
    """Of each column: what is lost, filled, and the ends, as texts; and of each value the rows.

    A value is a row of its own, so that rows of a value are added up on the cluster; facts are a
    row of column FACTS, which as many tasks have found as its sum says.
    """

    readings: tuple[Reading, ...]
    listed: tuple[bool, ...]
    """Columns whose values are listed."""
    drop_nulls: bool

    def __call__(self, batches: Batches) -> Batches:
        """Partial facts, to be put together by the driver."""
        total = 0
        lost, filled = np.zeros((2, len(self.readings)), np.int64)
        ends: list[list[Any]] = [[] for _ in self.readings]
        values: list[list[pa.Table]] = [[] for _ in self.readings]
        for batch in joined(batches):
            columns = [r.typed(batch.column(i)) for i, r in enumerate(self.readings)]
            kept = complete(columns) if self.drop_nulls else np.ones(batch.num_rows, np.bool_)
            total += int(kept.sum())
            for i, (reading, column) in enumerate(zip(self.readings, columns, strict=True)):
                mask = arrow_array(kept)
                here = column if kept.all() else column.filter(mask)
                unread = reading.lost(batch.column(i)) & kept
                lost[i] += int(unread.sum())
                filled[i] += len(here) - here.null_count
                if reading.kind is None:
                    continue
                if len(here) > here.null_count:
                    low_high = pc.min_max(here)
                    ends[i] += [low_high["min"].as_py(), low_high["max"].as_py()]
                if self.listed[i]:
                    counts = pc.value_counts(here.drop_null())
                    columns_of = [counts.field("values"), counts.field("counts")]
                    values[i].append(pa.table(columns_of, ["v", SUM]))
                    if len(values[i]) > 16:
                        values[i] = [summed_values(values[i])]
        yield self._facts(total, lost, filled, ends)
        for i, some in enumerate(values):
            if some:
                yield from self._listed(i, summed_values(some))

    def _facts(self, total: int, lost: Ints, filled: Ints, ends: list[list[Any]]) -> pa.RecordBatch:
        facts = [
            {
                "lost": int(lost[i]), "filled": int(filled[i]),
                "low": plain(min(found)) if found else None,
                "high": plain(max(found)) if found else None,
            }
            for i, found in enumerate(ends)
        ]  # fmt: skip
        text = json.dumps({"total": total, "columns": facts})
        values = [[FACTS], [text], [1]]
        arrays = [pa.array(v, field.type) for v, field in zip(values, VALUES, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=VALUES)

    @staticmethod
    def _listed(place: int, counts: pa.Table) -> Batches:
        texts = [json.dumps(plain(value)) for value in counts["v"].to_pylist()]
        places = arrow_array(np.full(len(texts), place, np.int64))
        rows = counts[SUM].cast(pa.int64())
        found = pa.table([places, pa.array(texts, pa.string()), rows], schema=VALUES)
        yield from found.to_batches(max_chunksize=BATCH)


FACTS = -1
VALUES = pa.schema([pa.field("c", pa.int64()), pa.field("text", pa.string()),
                    pa.field(SUM, pa.int64())])  # fmt: skip
"""The place of a column, a value as JSON, and its rows."""
TEXTS = pa.schema([pa.field("text", pa.string())])


SALT = "voile_salt"


@dataclass(frozen=True)
class SaltRow:
    """The salt of hashes of rows, which is in no plan, in place of the row of a frame of one."""

    vault: Vault

    def __call__(self, batches: Batches) -> Batches:
        """As text."""
        for batch in batches:
            texts = [self.vault.open().secret(SALT).decode()] * batch.num_rows
            yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], schema=TEXTS)


def summed_values(parts: Sequence[pa.Table]) -> pa.Table:
    """Rows of each value, added up."""
    found = pa.concat_tables(parts).group_by("v").aggregate([(SUM, "sum")])
    return found.rename_columns(["v", SUM])


def plain(value: Any) -> Any:
    """A value as JSON holds it; days as their numbers, floats as their digits."""
    if isinstance(value, float):
        return value.hex()
    return value.toordinal() if hasattr(value, "toordinal") else value


@dataclass(frozen=True)
class NullCounts:
    """How many rows have a NULL, by column; and how many have none at all, as column −1."""

    readings: tuple[Reading, ...]

    def __call__(self, batches: Batches) -> Batches:
        """One row for each column, and one for complete rows."""
        found = np.zeros(len(self.readings) + 1, np.int64)
        for batch in joined(batches):
            columns = [r.typed(batch.column(i)) for i, r in enumerate(self.readings)]
            found[:-1] += [column.null_count for column in columns]
            found[-1] += int(complete(columns).sum())
        places = np.array([*range(len(self.readings)), -1], np.int64)
        yield pa.RecordBatch.from_arrays(
            [arrow_array(places), arrow_array(found)], schema=COLUMN_COUNTS
        )


@dataclass(frozen=True)
class Misfit:
    """Finds a value of one column that is outside its domain, or cannot be read."""

    attribute: Attribute
    drop_nulls: bool

    def __call__(self, batches: Batches) -> Batches:
        """At most one for each task: the value as text, and whether it cannot be read."""
        for batch in batches:
            column = batch.column(0)
            reading = Reading(self.attribute.kind)
            lost = reading.lost(column)
            typed = reading.typed(column)
            moved = clamped(typed, self.attribute) if self.attribute.clamp else typed
            outside = codes(moved, self.attribute) == OUTSIDE
            if self.drop_nulls:
                outside &= ~nulls(typed) | lost
            wrong = np.flatnonzero(outside | lost)
            if len(wrong):
                place = int(wrong[0])
                value = column[place].as_py()
                text = json.dumps({"value": None if value is None else str(value),
                                   "text": isinstance(value, str),
                                   "lost": bool(lost[place])})  # fmt: skip
                yield pa.RecordBatch.from_arrays([pa.array([text])], schema=TEXTS)
                return


@dataclass(frozen=True)
class RoundedCounts:
    """How many rows have numbers between an interval's steps."""

    attributes: tuple[Attribute, ...]

    def __call__(self, batches: Batches) -> Batches:
        """One row for each column."""
        found = np.zeros(len(self.attributes), np.int64)
        for batch in joined(batches):
            for i, attribute in enumerate(self.attributes):
                domain: Any = attribute.domain
                numbers = numpy_array(Reading(attribute.kind).typed(batch.column(i)).drop_null())
                numbers = numbers.astype(np.float64)
                nearest = np.rint((numbers * domain.per - domain.first) / domain.stride)
                points = (domain.first + nearest * domain.stride) / domain.per
                found[i] += int(np.count_nonzero(points != numbers))
        places = np.arange(len(self.attributes))
        yield pa.RecordBatch.from_arrays(
            [arrow_array(places), arrow_array(found)], schema=COLUMN_COUNTS
        )
