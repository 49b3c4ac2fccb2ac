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

Names of columns and texts are compared without their case and the spaces around them. A column may
have been recoded, so that rows are also compared on all common columns but one. A table in which
every row occurs f times counts as one in which it occurs once. Row numbers are nobody's: where they
are among the columns, two different people who have the same number agree in the other columns with
some probability p, and 1 − q above is multiplied by 1 − p.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.engines.table import Table
from voile.records import Record
from voile.register.gathering import (
    SAMPLE,
    ColumnSet,
    Gathered,
    GatherRows,
    SketchedRows,
    SketchSearch,
)
from voile.register.hashes import (
    ZERO,
    Counts,
    Hashes,
    HashKeys,
    Shorts,
    column_part,
    folded_names,
    row_hashes,
    text_hashes,
)
from voile.register.keys import FingerprintKey
from voile.units import counted

COLUMNS = 32
"""Columns of a sketch: those whose names have the smallest keyed hash."""
MOST_SETS = 32
"""Different sets of columns that are compared in one reading of a table."""
SETS_LESS_ONE = 64
"""Different sets of columns that lack one of those in common, in the same reading."""
SURE = 4.753
"""Standard deviations that a normal law exceeds with probability 1e-6."""
SURE_OF_MANY = 5.454
"""With probability 1e-6 divided by the number of columns: one of them is left out in turn."""
FEWEST_REPEATED = 50
"""Different rows of a sample from which on it is seen that all of them occur f times."""
MOST_REPEATED = 8
USUAL = 1.96
LEAST_SHARE = 0.05
"""A share of rows in common that is surely above this makes two tables the same data set."""
COINCIDENCE = math.log(1e-9)
"""Equal columns of tables of different people are as likely as this, at most."""


# ---------------------------------------------------------------------- the sketch


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
    numbers: Hashes
    """For each column 1 where it numbers the rows, as far as can be seen; else 0."""
    hashes: Hashes
    counts: Counts
    values: Shorts

    @property
    def numbered(self) -> list[int]:
        """The places of columns that number the rows."""
        return np.flatnonzero(self.numbers).tolist()

    @property
    def threshold(self) -> np.uint64:
        """Every row with a hash up to this is in the sample."""
        full = len(self.hashes) >= SAMPLE
        return self.hashes[-1] if full else np.uint64(2**64 - 1)

    def pack(self) -> bytes:
        """All of it as bytes, the same for the same table."""
        head = struct.pack("<QII", self.rows, len(self.columns), len(self.hashes))
        parts = (
            self.columns, self.sums, self.numbers, self.hashes, self.counts, self.values.T.copy(),
        )  # fmt: skip
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
                (np.uint64, columns), (np.uint64, columns), (np.uint64, columns),
                (np.uint64, sample), (np.int64, sample), (np.uint32, sample * columns),
            ):  # fmt: skip
                found.append(np.frombuffer(raw, kind, number, at))
                at += found[-1].nbytes
        except struct.error as error:
            raise ValueError(str(error)) from None
        names, sums, numbers, hashes, counts, values = found
        shaped = values.reshape(columns, sample).T
        return cls(key, rows, names, sums, numbers, hashes, counts, shaped)

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
    without: int = 0
    """How many of the columns that both have were left out, since they may have been recoded."""

    @property
    def is_same(self) -> bool:
        """Whether the tables have so many rows in common that they are one data set."""
        return self.unchanged or self.surely > LEAST_SHARE

    @property
    def words(self) -> str:
        """How sure, in words."""
        if self.unchanged:
            return "the same values in every column that both have"
        less = f", without {counted(self.without, 'column')}" if self.without else ""
        return f"{self.share:.0%} of the rows in common ({self.low:.0%} to {self.high:.0%}){less}"


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

    @classmethod
    def alone(cls, sample: RowSketch | SketchedRows, rows: int) -> SampledRows:
        """The rows that occur once, or f times where every row does."""
        return cls.within(sample, rows, sample.counts <= repeated(sample.counts))

    def times(self, factor: float) -> SampledRows:
        """That many times as many of them."""
        return SampledRows(self.found * factor, self.squares * factor**2, self.of)

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


def repeated(counts: Counts) -> int:
    """How often every row occurs at least: f, where nearly all counts are multiples of it."""
    if len(counts) < FEWEST_REPEATED:
        return 1
    for f in range(MOST_REPEATED, 1, -1):
        if (counts % f == 0).mean() > 0.95:
            return f
    return 1


def chance_agreement(sketch: RowSketch, places: Sequence[int]) -> float:
    """At most so often two different rows agree in these columns, surely.

    By Hoeffding's bound for the share of pairs in a sample that agree.
    """
    if not places:
        return 1.0
    rows = row_hashes([column_part(sketch.values[:, at], np.uint64(at)) for at in places], ZERO)
    number = len(rows)
    if number <= 1:
        return 1.0
    _, found = np.unique(rows, return_counts=True)
    pairs = float((found * (found - 1.0)).sum()) / (number * (number - 1.0))
    return min(1.0, pairs + math.sqrt(-math.log(1e-6) / number))


def overlap(
    absent: SampledRows, alone: SampledRows, sure: float = SURE, without: int = 0
) -> RowOverlap | None:
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

    return RowOverlap(common(absent.share, alone.share), *at(USUAL), at(sure)[0], without=without)


def numbering(found: Gathered) -> Hashes:
    """1 for each column that numbers the rows: whole numbers with few gaps, none of them twice."""
    numbers, own = np.zeros(len(found.ends), np.uint64), found.samples[0]
    for place, ends in enumerate(found.ends):
        if ends is not None and ends[1] - ends[0] < 2 * found.rows:
            different = len(np.unique(own.values[:, place]))
            numbers[place] = different == len(own.counts) == own.counts.sum()
    return numbers


class Fingerprinting:
    """One reading of a table: its sketch, and what it has in common with known ones."""

    def __init__(self, table: Table, key: FingerprintKey, known: Sequence[RowSketch]) -> None:
        self.table, self.key, self.keys = table, key, HashKeys.of(key)
        self.known = [sketch for sketch in known if sketch.key == key.id]
        names = list(table.columns)
        hashed = text_hashes(pa.array(folded_names(names), pa.large_string()), self.keys.names)
        order = np.argsort(hashed)[:COLUMNS]
        self.names, self.columns = [names[place] for place in order], hashed[order]
        self.sets: dict[tuple[int, ...], ColumnSet] = {}

    def run(self) -> tuple[RowSketch, list[RowOverlap | None]]:
        """The sketch, and for each known one what both have in common; None: no column."""
        whole = tuple(range(len(self.names)))
        self.sets[whole] = ColumnSet(whole)
        self._prepare()
        found = self._gathered()
        own = found.samples[0]
        sketch = RowSketch(
            self.key.id, found.rows, self.columns, found.sums, numbering(found),
            own.hashes, own.counts, own.values,
        )  # fmt: skip
        return sketch, [self._compared(sketch, found, other) for other in self.known]

    def _gathered(self) -> Gathered:
        """What is seen of all rows, wherever they lie."""
        search = SketchSearch.of(self.keys, self.columns, list(self.sets.values()))
        if not self.names:
            return search.nothing()
        return Gathered.unpack(self.table.gathered(self.names, GatherRows(), search.secrets()))

    def _common(self, other: RowSketch) -> dict[int, int]:
        """The columns that both have: their places here, and there."""
        _, here, there = np.intersect1d(
            self.columns, other.columns, assume_unique=True, return_indices=True
        )
        return dict(zip(here.tolist(), there.tolist(), strict=True))

    def _less_one(self, other: RowSketch, common: Mapping[int, int]) -> list[tuple[int, ...]]:
        """The columns that both have, less each of them in turn, and without row numbers."""
        numbers = set(other.numbered)
        people = tuple(here for here, there in common.items() if there not in numbers)
        sets = [tuple(one for one in people if one != out) for out in people]
        if len(people) < len(common):
            sets.insert(0, people)
        least = min(len(self.columns), len(other.columns)) - len(numbers)
        return [one for one in sets if one and 2 * len(one) > least]

    def _prepare(self) -> None:
        """What is looked for, by sets of columns; the largest sets first, so many at most."""
        wanted: dict[tuple[int, ...], list[Hashes]] = {}
        less: dict[tuple[int, ...], list[Hashes]] = {}
        for other in self.known:
            common = self._common(other)
            if common:
                wanted.setdefault(tuple(common), []).append(self._restricted(other, common))
            for places in self._less_one(other, common):
                chosen = {here: common[here] for here in places}
                less.setdefault(places, []).append(self._restricted(other, chosen))
        for found, most in ((wanted, MOST_SETS), (less, SETS_LESS_ONE)):
            for places in sorted(found, key=len, reverse=True)[:most]:
                both = [*wanted.get(places, ()), *less.get(places, ())]
                self.sets.setdefault(places, ColumnSet(places)).want(both)

    def _restricted(self, other: RowSketch, common: Mapping[int, int]) -> Hashes:
        """The hashes of a sketch's rows on some of its columns."""
        parts = [column_part(other.values[:, at], other.columns[at]) for at in common.values()]
        return row_hashes(parts, self.keys.rows)

    def _compared(self, sketch: RowSketch, found: Gathered, other: RowSketch) -> RowOverlap | None:
        """The surest of what is known: exact columns, their rows here, our rows there."""
        if is_unchanged(sketch, other):
            return RowOverlap(1.0, 1.0, 1.0, 1.0, unchanged=True)
        common = self._common(other)
        if not is_alike(len(common), sketch, other) or not len(other.hashes) or not sketch.rows:
            return None
        ways = [self._met(found, other, common)]
        ways += [
            self._met(found, other, {here: common[here] for here in places}, len(common))
            for places in self._less_one(other, common)
        ]
        if len(common) == len(sketch.columns) == len(other.columns):
            ways.append(turned(sketch, other))
        return max(filter(None, ways), key=lambda way: way.surely, default=None)

    def _met(
        self, found: Gathered, other: RowSketch, common: Mapping[int, int], of: int = 0
    ) -> RowOverlap | None:
        """How many of the other's rows are here, on these columns."""
        if tuple(common) not in self.sets:
            return None
        place, one = list(self.sets).index(tuple(common)), self.sets[tuple(common)]
        wanted = self._restricted(other, common)
        hits = found.seen[place][np.searchsorted(one.wanted, wanted)]
        alone = SampledRows.alone(found.samples[place], found.rows)
        numbers = set(other.numbered)
        if numbers & set(common.values()):
            rest = [at for at in common.values() if at not in numbers]
            alone = alone.times(1 - chance_agreement(other, rest))
        absent = SampledRows.within(other, other.rows, ~hits)
        return overlap(absent, alone, SURE_OF_MANY if of else SURE, max(0, of - len(common)))


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
    alone = SampledRows.alone(other, other.rows)
    if numbers := set(sketch.numbered) | set(other.numbered):
        rest = [at for at in range(len(other.columns)) if at not in numbers]
        alone = alone.times(1 - chance_agreement(other, rest))
    return overlap(absent, alone)


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
