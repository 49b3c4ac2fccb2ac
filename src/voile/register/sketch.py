"""Fingerprints of tables: a bounded sample of keyed hashes by which rows are recognised.

A sketch keeps up to `SAMPLE` different rows, those with the smallest keyed hash: a random choice
that every table with the same rows makes alike. Of each it keeps how often it occurs, and 32 bits
of the keyed hash of each value, so that it can be looked up in a table that lacks some columns or
has more. The sketch is encrypted under the same key before it is stored.

Whether another table has the same rows, and not only rows like them: let m be the share of the
sketch's rows that occur in the table, on the columns that both have, and q the share of the table's
own rows that occur in it twice or more. A row of someone else in the same population occurs with
probability q; so with a share s of rows in common m = s + (1 − s)·q, and s = 1 − (1 − m)/(1 − q).
Where no row stands alone (q = 1), rows say nothing; there the sums of hashes of whole columns,
which agree if exactly the same values occur, still recognise an unchanged table.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.compiled import compiled
from voile.engines.table import Table
from voile.records import Record
from voile.register.keys import FingerprintKey

Hashes = npt.NDArray[np.uint64]
Shorts = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]

SAMPLE = 1024
"""Different rows of a sketch."""
COLUMNS = 32
"""Columns of a sketch: those whose names have the smallest keyed hash."""
ROWS_AT_ONCE = 2**17
"""Rows whose hashes are held at once."""
MOST_SETS = 32
"""Different sets of columns that are compared in one reading of a table."""
SURE = 4.753
"""Standard deviations that a normal law exceeds with probability 1e-6."""
USUAL = 1.96
LEAST_SHARE = 0.05
"""A share of rows in common that is surely above this makes two tables the same data set."""
COINCIDENCE = math.log(1e-9)
"""Equal columns of tables of different people are as likely as this, at most."""
MISSING = np.uint64(0x9E3779B97F4A7C15)


# ---------------------------------------------------------------------- keyed hashes


@compiled
def sip_hashes(data: npt.NDArray[np.uint8], offsets: Counts, keys: Hashes, found: Hashes) -> None:
    """SipHash-2-4 of every text: text i is data[offsets[i]:offsets[i + 1]]."""
    u13, u16, u17 = np.uint64(13), np.uint64(16), np.uint64(17)
    u21, u32, u8 = np.uint64(21), np.uint64(32), np.uint64(8)
    for i in range(len(found)):
        start, stop = offsets[i], offsets[i + 1]
        length = stop - start
        v0 = keys[0] ^ np.uint64(0x736F6D6570736575)
        v1 = keys[1] ^ np.uint64(0x646F72616E646F6D)
        v2 = keys[0] ^ np.uint64(0x6C7967656E657261)
        v3 = keys[1] ^ np.uint64(0x7465646279746573)
        words = length // 8
        for w in range(words + 3):
            if w <= words:
                m = np.uint64(0)
                last = 8 if w < words else length - 8 * words
                for b in range(last):
                    m |= np.uint64(data[start + 8 * w + b]) << (u8 * np.uint64(b))
                if w == words:
                    m |= np.uint64(length & 255) << np.uint64(56)
                v3 ^= m
            elif w == words + 1:
                v2 ^= np.uint64(255)
            for _ in range(2):  # four more rounds in the end, in two turns
                v0 += v1
                v1 = (v1 << u13) | (v1 >> np.uint64(51))
                v1 ^= v0
                v0 = (v0 << u32) | (v0 >> u32)
                v2 += v3
                v3 = (v3 << u16) | (v3 >> np.uint64(48))
                v3 ^= v2
                v0 += v3
                v3 = (v3 << u21) | (v3 >> np.uint64(43))
                v3 ^= v0
                v2 += v1
                v1 = (v1 << u17) | (v1 >> np.uint64(47))
                v1 ^= v2
                v2 = (v2 << u32) | (v2 >> u32)
            if w <= words:
                v0 ^= m
        found[i] = v0 ^ v1 ^ v2 ^ v3


def text_hashes(texts: pa.Array, keys: Hashes) -> Hashes:
    """The keyed hash of each text; NULL has one of its own."""
    plain = texts.cast(pa.large_string())
    _, offsets, data = plain.buffers()
    found = np.empty(len(plain), np.uint64)
    at = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
    content = np.zeros(1, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    sip_hashes(content, at, keys, found)
    if plain.null_count:
        found[plain.is_null().to_numpy(zero_copy_only=False)] = MISSING
    return found


def value_hashes(column: pa.ChunkedArray, keys: Hashes) -> Hashes | None:
    """The keyed hash of each value as text, so that its type does not matter; None for lists."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    if pa.types.is_dictionary(whole.type):
        whole = whole.cast(whole.type.value_type)
    try:
        if pa.types.is_floating(whole.type):
            whole = pc.add(whole, 0.0)  # one zero of the two that floats have
        texts = whole.cast(pa.large_string())
    except pa.ArrowException:
        return None
    return text_hashes(texts, keys)


def row_hashes(values: Sequence[Shorts], seed: np.uint64) -> Hashes:
    """One hash of several columns' hashes, in their order."""
    found: Hashes = np.full(len(values[0]) if values else 0, seed, np.uint64)
    for column in values:
        found ^= column.astype(np.uint64)
        found *= np.uint64(0xFF51AFD7ED558CCD)
        found ^= found >> np.uint64(32)
        found *= np.uint64(0xC4CEB9FE1A85EC53)
        found ^= found >> np.uint64(29)
    return found


@dataclass(frozen=True)
class HashKeys:
    """What a key gives for hashing values, names of columns, and rows."""

    values: Hashes
    names: Hashes
    rows: np.uint64

    @classmethod
    def of(cls, key: FingerprintKey) -> HashKeys:
        """The hash keys of a register's key."""
        values, names = (
            np.frombuffer(key.derive(purpose)[:16], np.uint64) for purpose in ("values", "columns")
        )
        return cls(values, names, np.uint64(struct.unpack("<Q", key.derive("rows")[:8])[0]))


# ---------------------------------------------------------------------- samples of rows


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
        near = np.flatnonzero(hashes <= self.threshold)
        if not len(near):
            return
        found, first, counts = np.unique(hashes[near], return_index=True, return_counts=True)
        first, found, counts = near[first[:SAMPLE]], found[:SAMPLE], counts[:SAMPLE]
        rows = np.stack([column[first] for column in values], axis=1)
        every = np.concatenate([self.hashes, found])
        merged, place, inverse = np.unique(every, return_index=True, return_inverse=True)
        total = np.zeros(len(merged), np.int64)
        np.add.at(total, inverse, np.concatenate([self.counts, counts]))
        self.values = np.concatenate([self.values, rows])[place[:SAMPLE]]
        self.hashes, self.counts = merged[:SAMPLE], total[:SAMPLE]

    @property
    def threshold(self) -> np.uint64:
        """Every row with a hash up to this is in it."""
        full = len(self.hashes) >= SAMPLE
        return self.hashes[-1] if full else np.uint64(2**64 - 1)


@dataclass(frozen=True, eq=False)
class RowSketch:
    """The fingerprint of a table, under one key."""

    key: str
    """The id of the key."""
    rows: int
    columns: Hashes
    """The keyed hashes of the columns' names, in order."""
    sums: Hashes
    """For each column the sum of its values' hashes: the same in any order of the rows."""
    hashes: Hashes
    counts: Counts
    values: Shorts

    @property
    def threshold(self) -> np.uint64:
        """Every row with a hash up to this is in the sample."""
        full = len(self.hashes) >= SAMPLE
        return self.hashes[-1] if full else np.uint64(2**64 - 1)

    def pack(self) -> bytes:
        """All of it as bytes, the same for the same table."""
        head = struct.pack("<QII", self.rows, len(self.columns), len(self.hashes))
        parts = (self.columns, self.sums, self.hashes, self.counts, self.values.T.copy())
        return head + b"".join(
            part.astype(part.dtype.newbyteorder("<")).tobytes() for part in parts
        )

    @classmethod
    def unpack(cls, key: str, raw: bytes) -> RowSketch:
        """The sketch that `pack` wrote; ValueError where it is none."""
        try:
            rows, columns, sample = struct.unpack_from("<QII", raw)
            at = struct.calcsize("<QII")
            found: list[npt.NDArray[Any]] = []
            for kind, number in (
                (np.uint64, columns), (np.uint64, columns), (np.uint64, sample),
                (np.int64, sample), (np.uint32, sample * columns),
            ):  # fmt: skip
                found.append(np.frombuffer(raw, kind, number, at))
                at += found[-1].nbytes
        except struct.error as error:
            raise ValueError(str(error)) from None
        names, sums, hashes, counts, values = found
        return cls(key, rows, names, sums, hashes, counts, values.reshape(columns, sample).T)

    def seal(self, key: FingerprintKey) -> bytes:
        """Encrypted under the key: what is stored."""
        import os  # noqa: PLC0415

        from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415  (only to store)
            AESGCM,
        )

        nonce = os.urandom(12)
        packed = zlib.compress(self.pack(), 6)
        return nonce + AESGCM(key.derive("sketches")).encrypt(nonce, packed, self.key.encode())

    @classmethod
    def unseal(cls, key: FingerprintKey, sealed: bytes) -> RowSketch:
        """The sketch that was stored; ValueError where it was changed."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  (only to compare)
        from cryptography.hazmat.primitives.ciphers.aead import (  # noqa: PLC0415
            AESGCM,
        )

        try:
            packed = AESGCM(key.derive("sketches")).decrypt(
                sealed[:12], sealed[12:], key.id.encode()
            )
        except InvalidTag:
            raise ValueError("the sketch was changed, or is of another key") from None
        return cls.unpack(key.id, zlib.decompress(packed))

    def digest(self, key: FingerprintKey) -> str:
        """By which equal sketches are stored once."""
        import hmac  # noqa: PLC0415

        return hmac.new(key.derive("digests"), self.pack(), "sha256").hexdigest()


# ---------------------------------------------------------------------- comparing


@dataclass(frozen=True)
class RowOverlap(Record):
    """How many rows two tables have in common, as far as their sketches say."""

    share: float
    """Of the rows of the smaller side, estimated."""
    low: float
    high: float
    """At 95 % confidence."""
    surely: float
    """Below this with probability at most 1e-6, where both are of one population."""
    unchanged: bool = False
    """Whether all columns that both have hold exactly the same values."""

    @property
    def is_same(self) -> bool:
        """Whether the tables have so many rows in common that they are one data set."""
        return self.unchanged or self.surely > LEAST_SHARE

    @property
    def words(self) -> str:
        """How sure, in words."""
        if self.unchanged:
            return "the same values in every column that both have"
        return f"{self.share:.0%} of the rows in common ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True)
class SampledRows:
    """How many rows of a table are of some sort, from those in its sample."""

    found: float
    squares: float
    """The sum of the squares of the rows' counts: the variance of `found`."""
    of: float
    """The table's rows, times the share of hashes that the sample covers."""

    @classmethod
    def within(
        cls, sample: RowSketch | SketchedRows, rows: int, chosen: npt.NDArray[np.bool_]
    ) -> SampledRows:
        """The chosen rows of a sample."""
        counts = sample.counts[chosen].astype(np.float64)
        covered = (float(sample.threshold) + 1) / 2**64
        return cls(float(counts.sum()), float((counts**2).sum()), rows * covered)

    @property
    def share(self) -> float:
        """Of the table's rows, estimated."""
        return self.found / self.of

    def between(self, deviations: float) -> tuple[float, float]:
        """The share at a confidence, as of a sum of Poisson counts."""
        half = deviations**2 / 2
        spread = deviations * math.sqrt(self.squares + half / 2)
        low, high = self.found + half - spread, self.found + half + spread
        return max(0.0, low) / self.of, high / self.of


def overlap(absent: SampledRows, alone: SampledRows) -> RowOverlap | None:
    """s = 1 − (1 − m)/(1 − q), from the rows that are absent and those that stand alone.

    None where no row stands alone.
    """
    if not alone.found:
        return None

    def common(absent_share: float, alone_share: float) -> float:
        ratio = absent_share / alone_share if alone_share else math.inf
        return max(0.0, min(1.0, 1 - ratio))

    def at(deviations: float) -> tuple[float, float]:
        (few, many), (least, most) = absent.between(deviations), alone.between(deviations)
        return common(many, least), common(few, most)

    return RowOverlap(common(absent.share, alone.share), *at(USUAL), at(SURE)[0])


@dataclass
class ColumnSet:
    """The columns that a table has in common with some sketches, and what is seen of them."""

    places: tuple[int, ...]
    """In the table's own order."""
    sample: SketchedRows
    wanted: Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    seen: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    def look(self, values: Sequence[Shorts], seed: np.uint64) -> None:
        """Take a batch in."""
        chosen = [values[place] for place in self.places]
        hashes = row_hashes(chosen, seed)
        self.sample.add(hashes, chosen)
        if len(self.wanted):
            at = np.minimum(np.searchsorted(self.wanted, hashes), len(self.wanted) - 1)
            self.seen[at[self.wanted[at] == hashes]] = True


class Fingerprinting:
    """One reading of a table: its sketch, and what it has in common with known ones."""

    def __init__(self, table: Table, key: FingerprintKey, known: Sequence[RowSketch]) -> None:
        self.table, self.key, self.keys = table, key, HashKeys.of(key)
        self.known = [sketch for sketch in known if sketch.key == key.id]
        names = list(table.columns)
        hashed = text_hashes(pa.array(names, pa.large_string()), self.keys.names)
        order = np.argsort(hashed)[:COLUMNS]
        self.names, self.columns = [names[place] for place in order], hashed[order]

    def run(self) -> tuple[RowSketch, list[RowOverlap | None]]:
        """The sketch, and for each known one what both have in common; None: no column."""
        rows, sums = 0, np.zeros(len(self.names), np.uint64)
        whole = tuple(range(len(self.names)))
        sets = {whole: ColumnSet(whole, SketchedRows(len(whole)))}
        self._prepare(sets)
        for values in self._batches():
            rows += len(values[0])
            sums += np.array([column.sum(dtype=np.uint64) for column in values])
            short = [(column >> np.uint64(32)).astype(np.uint32) for column in values]
            for one in sets.values():
                one.look(short, self.keys.rows)
        own = sets[whole].sample
        sketch = RowSketch(
            self.key.id, rows, self.columns, sums, own.hashes, own.counts, own.values
        )
        return sketch, [self._compared(sketch, other, sets) for other in self.known]

    def _batches(self) -> Iterator[list[Hashes]]:
        if not self.names:
            return
        for batch in self.table.batches(self.names):
            for start in range(0, batch.rows.num_rows, ROWS_AT_ONCE):
                some = batch.rows.slice(start, ROWS_AT_ONCE)
                yield [self._hashed(some.column(place)) for place in range(len(self.names))]

    def _hashed(self, column: pa.ChunkedArray) -> Hashes:
        found = value_hashes(column, self.keys.values)
        return np.full(len(column), MISSING, np.uint64) if found is None else found

    def _common(self, other: RowSketch) -> tuple[tuple[int, ...], list[int]]:
        """The columns that both have: their places here, and there."""
        _, here, there = np.intersect1d(
            self.columns, other.columns, assume_unique=True, return_indices=True
        )
        return tuple(here.tolist()), there.tolist()

    def _prepare(self, sets: dict[tuple[int, ...], ColumnSet]) -> None:
        """What is looked for, by sets of columns; the largest sets first."""
        wanted: dict[tuple[int, ...], list[Hashes]] = {}
        for other in self.known:
            here, there = self._common(other)
            if here:
                wanted.setdefault(here, []).append(self._restricted(other, there))
        for here in sorted(wanted, key=len, reverse=True)[:MOST_SETS]:
            one = sets.setdefault(here, ColumnSet(here, SketchedRows(len(here))))
            one.wanted = np.unique(np.concatenate(wanted[here]))
            one.seen = np.zeros(len(one.wanted), np.bool_)

    def _restricted(self, other: RowSketch, there: Sequence[int]) -> Hashes:
        """The hashes of a sketch's rows on some of its columns."""
        return row_hashes([other.values[:, place] for place in there], self.keys.rows)

    def _compared(
        self, sketch: RowSketch, other: RowSketch, sets: dict[tuple[int, ...], ColumnSet]
    ) -> RowOverlap | None:
        """The surest of what is known: exact columns, their rows here, our rows there."""
        if is_unchanged(sketch, other):
            return RowOverlap(1.0, 1.0, 1.0, 1.0, unchanged=True)
        here, there = self._common(other)
        if here not in sets or not is_alike(len(here), sketch, other):
            return None
        if not len(other.hashes) or not sketch.rows:
            return None
        one = sets[here]
        wanted = self._restricted(other, there)
        hits = one.seen[np.searchsorted(one.wanted, wanted)]
        alone = SampledRows.within(one.sample, sketch.rows, one.sample.counts == 1)
        ways = [overlap(SampledRows.within(other, other.rows, ~hits), alone)]
        if len(here) == len(sketch.columns) == len(other.columns):
            ways.append(turned(sketch, other))
        return max(filter(None, ways), key=lambda way: way.surely, default=None)


def compare(sketch: RowSketch, other: RowSketch) -> RowOverlap | None:
    """What two sketches of one key have in common, without their tables."""
    if is_unchanged(sketch, other):
        return RowOverlap(1.0, 1.0, 1.0, 1.0, unchanged=True)
    if not np.array_equal(sketch.columns, other.columns):
        return None
    ways = [turned(sketch, other), turned(other, sketch)] if sketch.rows and other.rows else []
    return max(filter(None, ways), key=lambda way: way.surely, default=None)


def turned(sketch: RowSketch, other: RowSketch) -> RowOverlap | None:
    """How many of the sketch's rows the other table had, where both have the same columns.

    Rows with hashes up to the other's threshold are in its sample, if they were in its table.
    """
    common = min(sketch.threshold, other.threshold)
    near = sketch.hashes <= common
    covered = (float(common) + 1) / 2**64
    counts = sketch.counts[near & ~np.isin(sketch.hashes, other.hashes)].astype(np.float64)
    absent = SampledRows(float(counts.sum()), float((counts**2).sum()), sketch.rows * covered)
    return overlap(absent, SampledRows.within(other, other.rows, other.counts == 1))


def is_unchanged(sketch: RowSketch, other: RowSketch) -> bool:
    """Whether columns of both hold exactly the same values, whatever they are called now.

    Of other people's rows a value that n rows have occurs exactly as often with probability
    about 1/√(4πn); enough such evidence together excludes a coincidence.
    """
    if sketch.rows != other.rows or not sketch.rows:
        return False
    sums = set(sketch.sums.tolist())
    same = [place for place, one in enumerate(other.sums.tolist()) if one in sums]
    if not is_alike(len(same), sketch, other):
        return False
    return -sum(evidence(other, place) for place in same) < COINCIDENCE


def is_alike(columns: int, sketch: RowSketch, other: RowSketch) -> bool:
    """Whether so many common columns are most of those of one side.

    Tables about different things often number their rows alike, in a column of the same name.
    """
    return 2 * columns > min(len(sketch.columns), len(other.columns))


def evidence(sketch: RowSketch, place: int) -> float:
    """−ln of the probability that another sample has the same counts in a column.

    A column in which no value repeats may be the numbers of the rows, and says nothing.
    """
    values, which = np.unique(sketch.values[:, place], return_inverse=True)
    if len(values) == sketch.counts.sum():
        return 0.0
    rows = np.sort(np.bincount(which, weights=sketch.counts))[:-1]  # the last follows from the rest
    return float(np.log(4 * math.pi * np.maximum(rows, 1)).sum()) / 2


def fingerprint(
    table: Table, key: FingerprintKey, known: Sequence[RowSketch] = ()
) -> tuple[RowSketch, list[RowOverlap | None]]:
    """The sketch of a table under a key, and what it has in common with each known sketch."""
    return Fingerprinting(table, key, known).run()
