"""Values that many rows have, by noisy counts above a threshold.

Which values there are is not public, so that noise is drawn for those that occur and only counts
above the threshold are shown: a value that one person alone has reaches it with probability δ.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrays import Floats, Ints
from voile.arrow import numpy_array
from voile.errors import TableError, spelled
from voile.learning.budget import Noise
from voile.learning.coins import AT_ONCE, noise_by_value, noise_of_part
from voile.noise.keyed import Key
from voile.schema import Attribute, Values

MOST_TEXTS = 200
"""Values of a column that are listed: those with the largest noisy counts."""
MOST_NUMBERS = 64
COVERED = 0.97
"""The share of the rows from which on listed numbers stand for a column."""
OTHER = "other"


@dataclass(frozen=True, eq=False)
class ListedValues:
    """Values above the threshold, and their noisy counts, in the order of the values."""

    values: tuple[Any, ...]
    counts: Ints

    def most(self, number: int) -> ListedValues:
        """Those with the largest noisy counts; of equal ones, the first values."""
        if len(self.values) <= number:
            return self
        kept = np.sort(np.argsort(-self.counts, kind="stable")[:number])
        return ListedValues(tuple(self.values[i] for i in kept), self.counts[kept])


class ValueCounter(Protocol):
    """How many rows each value of a column has."""

    def listed(self, noise: Noise, scale: float, threshold: int, key: Key, column: str
               ) -> ListedValues:  # fmt: skip
        """The values whose noisy count reaches the threshold."""
        ...


class TextCounter:
    """How many rows each text has; NULL is not counted."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, column: Any) -> None:
        """Count a batch."""
        found = pc.value_counts(pc.drop_null(column))
        values, counts = (found.field(name).to_pylist() for name in ("values", "counts"))
        self._counts.update(dict(zip(values, counts, strict=True)))

    def listed(self, noise: Noise, scale: float, threshold: int, key: Key, column: str
               ) -> ListedValues:  # fmt: skip
        """Those whose noisy count reaches the threshold."""
        values = sorted(self._counts)
        counts = np.array([self._counts[value] for value in values], dtype=np.int64)
        words = [value.encode() for value in values]
        return reaching(values, words, counts, noise, scale, threshold, key, column)


class NumberCounter:
    """How many rows each number has; NULL is not counted."""

    def __init__(self) -> None:
        self._values: Floats = np.empty(0)
        self._counts: Ints = np.empty(0, dtype=np.int64)

    def add(self, numbers: Floats) -> None:
        """Count a batch."""
        # −0 and 0 are one number: which of them a row has must not show in what is listed.
        values = np.concatenate([self._values, numbers + 0.0])
        weights = np.concatenate([self._counts, np.ones(len(numbers), dtype=np.int64)])
        self._values, place = np.unique(values, return_inverse=True)
        self._counts = np.bincount(place, weights, minlength=len(self._values)).astype(np.int64)

    def listed(self, noise: Noise, scale: float, threshold: int, key: Key, column: str
               ) -> ListedValues:  # fmt: skip
        """Those whose noisy count reaches the threshold."""
        words = [value.tobytes() for value in self._values.astype("<f8")]
        values = self._values.tolist()
        return reaching(values, words, self._counts, noise, scale, threshold, key, column)


MOST_VALUES = 2**26
"""Different values of a column that pass this process, from where the rows lie: minutes."""
OUT_OF_ORDER = "the values of a column did not come in the order in which they were sorted"


class ColumnStreams:
    """Values of several columns, sorted by column and value, as one stream after the other."""

    def __init__(self, parts: Iterator[pa.Table]) -> None:
        self._parts, self._left = parts, list[pa.Table]()

    def of(self, place: int) -> Iterator[pa.Table]:
        """The values and counts of a column; to be read to their end before the next."""
        while (some := self._left.pop() if self._left else next(self._parts, None)) is not None:
            places = numpy_array(some.column(0))
            if (places < place).any() or (places[1:] < places[:-1]).any():
                raise RuntimeError(OUT_OF_ORDER)
            upto = int(np.searchsorted(places, place, side="right"))
            if upto < some.num_rows:
                self._left.append(some.slice(upto))
            if upto:
                yield some.slice(0, upto)
            if self._left:
                return


class OrderedCounter:
    """How many rows each value has, values in their order: few of them are held at a time."""

    def __init__(self, parts: Iterator[pa.Table]) -> None:
        self._parts = parts

    def listed(self, noise: Noise, scale: float, threshold: int, key: Key, column: str
               ) -> ListedValues:  # fmt: skip
        """Those whose noisy count reaches the threshold: as if all had been held."""
        values: list[Any] = []
        reached: list[Ints] = [np.empty(0, dtype=np.int64)]
        for part, (some, counts) in enumerate(self._blocks()):
            if part * AT_ONCE + len(some) > MOST_VALUES:
                raise TableError(
                    f"column {column!r} has more than {MOST_VALUES:,} different values, which "
                    "would all pass this process",
                    hint=f"leave it out ({spelled('columns')} names those to publish), or give "
                    f"its domain with {spelled('schema')}",
                )
            noisy = counts + noise_of_part(noise, scale, key, column, words_of(some), part)
            kept = np.flatnonzero(noisy >= threshold)
            values += [some[int(i)] for i in kept]
            reached.append(noisy[kept])
        return ListedValues(tuple(values), np.concatenate(reached))

    def _blocks(self) -> Iterator[tuple[list[Any], Ints]]:
        """AT_ONCE values with their counts, and last those that are left."""
        held: list[Any] = []
        counts: Ints = np.empty(0, dtype=np.int64)
        for some in self._parts:
            before = len(held)
            held += some.column(1).to_pylist()
            counts = np.concatenate([counts, numpy_array(some.column(2))])
            recent = held[max(0, before - 1) :]
            if any(one >= other for one, other in itertools.pairwise(recent)):
                raise RuntimeError(OUT_OF_ORDER)
            while len(held) > AT_ONCE:  # one is kept, beside which the next is looked at
                yield held[:AT_ONCE], counts[:AT_ONCE]
                held, counts = held[AT_ONCE:], counts[AT_ONCE:]
        if held:
            yield held, counts


def words_of(values: Sequence[Any]) -> list[bytes]:
    """What noise is keyed by."""
    if isinstance(values[0], str):
        return [value.encode() for value in values]
    return [value.tobytes() for value in np.asarray(values, dtype="<f8")]


def reaching(
    values: Sequence[Any], words: Sequence[bytes], counts: Ints, noise: Noise, scale: float,
    threshold: int, key: Key, column: str,
) -> ListedValues:  # fmt: skip
    """The values whose count with noise reaches the threshold."""
    noisy = counts + noise_by_value(noise, scale, key, column, words)
    kept = np.flatnonzero(noisy >= threshold)
    return ListedValues(tuple(values[int(i)] for i in kept), noisy[kept])


# ---------------------------------------------------------------------- domains


def text_attribute(name: str, listed: ListedValues, *, null: bool) -> Attribute:
    """Listed texts, and one more that stands for all others."""
    values = listed.most(MOST_TEXTS).values
    other = free_word(values)
    return Attribute(
        name, "categorical", Values((*values, other)), null=null, ordered=False,
        public="learnt", other=other,
    )  # fmt: skip


def free_word(values: Sequence[str]) -> str:
    """'other', or the first of 'other (2)', 'other (3)', … that is not listed."""
    taken, found, number = {value.casefold() for value in values}, OTHER, 1
    while found in taken:
        number += 1
        found = f"{OTHER} ({number})"
    return found


def covering_numbers(listed: ListedValues, rows: int) -> tuple[float, ...]:
    """The listed numbers, where nearly all rows have one of them; else none.

    Zero alone is not listed: whether a number is 0 is worth a bin of all others.
    """
    if not 0 < len(listed.values) <= MOST_NUMBERS or listed.values == (0.0,):
        return ()
    if listed.counts.sum() < COVERED * rows or not np.isfinite(listed.values).all():
        return ()
    return listed.values
