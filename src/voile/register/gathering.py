"""What is gathered of rows where they lie: a sample of keyed hashes, and which rows occur.

A job reads some rows and gives what it gathered of them in a few bytes. Parts are merged in any
order, and come to what one reading of all rows gives. Keys, and the hashes of rows that are looked
for, are handed to it apart: it carries no secret.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrays import Bools
from voile.noise.subkeys import Subkeys
from voile.register.hashes import (
    MISSING,
    Counts,
    Hashes,
    HashKeys,
    Shorts,
    column_part,
    mixed,
    row_hashes,
    value_hashes,
)

if TYPE_CHECKING:
    from typing import Any

SAMPLE = 1024
"""Different rows of a sketch."""
GUESSED = 4 * SAMPLE
"""Rows of a batch that are looked at first for those with the smallest hashes."""
ROWS_AT_ONCE = 2**17
"""Rows whose hashes are held at once."""
LABEL = "gathering/0"
"""By which a job finds its search among the secrets."""


# ---------------------------------------------------------------------- what is gathered


class SketchedRows:
    """The different rows with the smallest hashes, and how often each occurs.

    A row that is in it in the end was never left out before, so that its count is exact.
    """

    def __init__(self, columns: int) -> None:
        self.hashes: Hashes = np.empty(0, np.uint64)
        self.counts: Counts = np.empty(0, np.int64)
        self.values: Shorts = np.empty((0, columns), np.uint32)

    def add(self, hashes: Hashes, values: Sequence[Shorts]) -> None:
        """Take a batch of rows in."""
        most = int(self.threshold)
        # Hashes are spread evenly: where few rows are alike, a small share of them will do.
        upto = min(most, (GUESSED << 64) // max(1, len(hashes)))
        while True:
            near = np.flatnonzero(hashes <= np.uint64(upto))
            found, first, counts = np.unique(hashes[near], return_index=True, return_counts=True)
            if len(found) >= SAMPLE or upto == most:
                break
            upto = min(most, 8 * upto + 1)
        if not len(near):
            return
        first, found, counts = near[first[:SAMPLE]], found[:SAMPLE], counts[:SAMPLE]
        rows = np.empty((len(first), len(values)), np.uint32)
        for at, column in enumerate(values):
            rows[:, at] = column[first]
        self.merge(found, counts, rows)

    def merge(self, hashes: Hashes, counts: Counts, values: Shorts) -> None:
        """Take another sample of rows in."""
        every = np.concatenate([self.hashes, hashes])
        merged, place, inverse = np.unique(every, return_index=True, return_inverse=True)
        total = np.zeros(len(merged), np.int64)
        np.add.at(total, inverse, np.concatenate([self.counts, counts]))
        self.values = np.concatenate([self.values, values])[place[:SAMPLE]]
        self.hashes, self.counts = merged[:SAMPLE], total[:SAMPLE]

    @property
    def threshold(self) -> np.uint64:
        """Every row with a hash up to this is in it."""
        full = len(self.hashes) >= SAMPLE
        return self.hashes[-1] if full else np.uint64(2**64 - 1)


Ends = tuple[int, int]


def both_ends(one: Ends | None, other: Ends | None) -> Ends | None:
    """From where to where two ranges reach together."""
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


@dataclass
class Gathered:
    """What was seen of some rows; the first of the samples is of all columns."""

    rows: int
    sums: Hashes
    """For each column the sum of its values' hashes."""
    ends: list[Ends | None]
    """For each column of whole numbers its smallest and largest."""
    samples: list[SketchedRows]
    """For each set of columns the rows with the smallest hashes."""
    seen: list[Bools]
    """For each set of columns, and each row that is looked for, whether it is there."""

    @classmethod
    def nothing(cls, columns: int, wanted: Sequence[int]) -> Gathered:
        """Of no rows; `wanted` is how many are looked for in each set of columns."""
        return cls(
            0, np.zeros(columns, np.uint64), [None] * columns,
            [SketchedRows(0 if place else columns) for place in range(len(wanted))],
            [np.zeros(number, np.bool_) for number in wanted],
        )  # fmt: skip

    def merge(self, other: Gathered) -> None:
        """Add what was seen of other rows."""
        self.rows += other.rows
        self.sums = self.sums + other.sums
        self.ends = [both_ends(*pair) for pair in zip(self.ends, other.ends, strict=True)]
        for mine, theirs in zip(self.samples, other.samples, strict=True):
            mine.merge(theirs.hashes, theirs.counts, theirs.values)
        self.seen = [mine | theirs for mine, theirs in zip(self.seen, other.seen, strict=True)]

    def pack(self) -> bytes:
        """All of it as bytes."""
        head = {
            "rows": self.rows, "ends": self.ends, "wanted": [len(one) for one in self.seen],
        }  # fmt: skip
        arrays: dict[str, Any] = {"head": np.array(json.dumps(head)), "sums": self.sums}
        for i, (sample, seen) in enumerate(zip(self.samples, self.seen, strict=True)):
            arrays |= {f"hashes{i}": sample.hashes, f"counts{i}": sample.counts,
                       f"seen{i}": np.packbits(seen)}  # fmt: skip
        return packed(arrays | {"values": self.samples[0].values})

    @classmethod
    def unpack(cls, raw: bytes) -> Gathered:
        """What `pack` wrote."""
        arrays = unpacked(raw)
        head = json.loads(str(arrays["head"]))
        found = cls.nothing(len(head["ends"]), head["wanted"])
        found.rows, found.sums = head["rows"], arrays["sums"]
        found.ends = [None if ends is None else (ends[0], ends[1]) for ends in head["ends"]]
        for i, (sample, wanted) in enumerate(zip(found.samples, head["wanted"], strict=True)):
            sample.hashes, sample.counts = arrays[f"hashes{i}"], arrays[f"counts{i}"]
            none = np.empty((len(sample.hashes), 0), np.uint32)
            sample.values = none if i else arrays["values"]
            found.seen[i] = np.unpackbits(arrays[f"seen{i}"], count=wanted).view(np.bool_)
        return found


def packed(arrays: dict[str, Any]) -> bytes:
    """Arrays as bytes."""
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def unpacked(raw: bytes) -> dict[str, Any]:
    """Arrays that were packed; nothing that could run is read."""
    with np.load(io.BytesIO(raw), allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


# ---------------------------------------------------------------------- what is looked for


@dataclass
class ColumnSet:
    """The columns that a table has in common with some sketches, and the rows looked for."""

    places: tuple[int, ...]
    """In the table's own order."""
    wanted: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    """The hashes of rows on these columns, each once, in order."""

    def want(self, hashes: Sequence[Hashes]) -> None:
        """Look for these rows."""
        self.wanted = np.unique(np.concatenate(hashes))


@dataclass(frozen=True)
class SketchSearch:
    """How rows are hashed, and which are looked for: all of it is secret."""

    values: Hashes
    """The key of values."""
    rows: np.uint64
    """The key of rows."""
    columns: Hashes
    """The keyed hashes of the columns' names."""
    sets: Sequence[ColumnSet]
    """All columns first."""

    @classmethod
    def of(cls, keys: HashKeys, columns: Hashes, sets: Sequence[ColumnSet]) -> SketchSearch:
        """With a register's keys."""
        return cls(keys.values, keys.rows, columns, sets)

    def secrets(self) -> Subkeys:
        """What is sealed on its way."""
        arrays: dict[str, Any] = {
            "values": self.values, "rows": np.array([self.rows]), "columns": self.columns,
        }  # fmt: skip
        for i, one in enumerate(self.sets):
            arrays |= {f"places{i}": np.array(one.places, np.int64), f"wanted{i}": one.wanted}
        return Subkeys({LABEL: packed(arrays)})

    @classmethod
    def opened(cls, secrets: Subkeys) -> SketchSearch:
        """Where the rows are."""
        arrays = unpacked(secrets.secret(LABEL))
        number = sum(name.startswith("places") for name in arrays)
        sets = [
            ColumnSet(tuple(arrays[f"places{i}"].tolist()), arrays[f"wanted{i}"])
            for i in range(number)
        ]
        return cls(arrays["values"], arrays["rows"][0], arrays["columns"], sets)

    def nothing(self) -> Gathered:
        """What is gathered of no rows."""
        return Gathered.nothing(len(self.columns), [len(one.wanted) for one in self.sets])


# ---------------------------------------------------------------------- looking


class Looking:
    """One reading of rows, a batch at a time."""

    def __init__(self, search: SketchSearch) -> None:
        self.search, self.found = search, search.nothing()
        self._starts = [first_bits(one.wanted) for one in search.sets]

    def look(self, rows: pa.Table) -> None:
        """Take a batch in."""
        columns = [self._hashed(place, column) for place, column in enumerate(rows.columns)]
        self.found.rows += rows.num_rows
        self.found.sums += np.array([column.sum(dtype=np.uint64) for column in columns])
        short = [(column >> np.uint64(32)).astype(np.uint32) for column in columns]
        parts = [column_part(*pair) for pair in zip(short, self.search.columns, strict=True)]
        total = np.zeros(rows.num_rows, np.uint64)
        for part in parts:
            total += part
        for place, one in enumerate(self.search.sets):
            hashes = self._of_rows(one, parts, total)
            self.found.samples[place].add(hashes, () if place else short)
            self._mark(place, one.wanted, hashes)

    def _hashed(self, place: int, column: pa.ChunkedArray) -> Hashes:
        self.found.ends[place] = both_ends(self.found.ends[place], ends_of(column))
        found = value_hashes(column, self.search.values)
        return np.full(len(column), MISSING, np.uint64) if found is None else found

    def _of_rows(self, one: ColumnSet, parts: Sequence[Hashes], total: Hashes) -> Hashes:
        """The hashes of rows on some columns: a sum, from the shorter side."""
        out = [part for place, part in enumerate(parts) if place not in one.places]
        if len(out) >= len(one.places):
            return row_hashes([parts[place] for place in one.places], self.search.rows)
        rest = total + self.search.rows
        for part in out:
            rest -= part
        return mixed(rest)

    def _mark(self, place: int, wanted: Hashes, hashes: Hashes) -> None:
        if not len(wanted):
            return
        near = hashes[self._starts[place][hashes >> np.uint64(48)]]
        at = np.minimum(np.searchsorted(wanted, near), len(wanted) - 1)
        self.found.seen[place][at[wanted[at] == near]] = True


def first_bits(wanted: Hashes) -> Bools:
    """The first 16 bits of what is wanted: most rows need no closer look."""
    found = np.zeros(2**16, np.bool_)
    found[wanted >> np.uint64(48)] = True
    return found


def ends_of(column: pa.ChunkedArray) -> Ends | None:
    """The smallest and largest of whole numbers."""
    of = column.type
    whole = pa.types.is_integer(of) or (pa.types.is_decimal(of) and of.scale == 0)
    if not whole or len(column) == column.null_count:
        return None
    found = pc.min_max(column).as_py()
    return int(found["min"]), int(found["max"])


@dataclass(frozen=True)
class GatherRows:
    """The job: what is gathered of some rows, and parts of it put together."""

    def __call__(self, batches: Iterable[pa.Table], secrets: Subkeys) -> bytes:
        """Of batches of the columns that are searched."""
        looking = Looking(SketchSearch.opened(secrets))
        for rows in pieces(batches):
            looking.look(rows)
        return looking.found.pack()

    def merged(self, parts: Iterable[bytes]) -> bytes:
        """At least one part; all of one search."""
        every = iter(parts)
        found = Gathered.unpack(next(every))
        for part in every:
            found.merge(Gathered.unpack(part))
        return found.pack()


def pieces(batches: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Batches of not too many rows."""
    for rows in batches:
        for start in range(0, rows.num_rows, ROWS_AT_ONCE):
            yield rows.slice(start, ROWS_AT_ONCE)
