"""Values that many rows have, by noisy counts above a threshold.

Which values there are is not public, so that noise is drawn for those that occur and only counts
above the threshold are shown: a value that one person alone has reaches it with probability δ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from voile.arrays import Floats, Ints
from voile.arrow import numpy_array
from voile.learning.budget import Noise
from voile.learning.coins import noise_by_value
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


class TextCounter:
    """How many rows each text has; NULL is not counted."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, column: Any) -> None:
        """Count a batch."""
        found = pc.value_counts(pc.drop_null(column))
        self.add_counts(found.field("values"), numpy_array(found.field("counts")))

    def add_counts(self, values: Any, counts: Ints) -> None:
        """Add different values that were counted."""
        self._counts.update(dict(zip(values.to_pylist(), counts.tolist(), strict=True)))

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
        self._add(numbers + 0.0, np.ones(len(numbers), dtype=np.int64))

    def add_counts(self, values: Any, counts: Ints) -> None:
        """Add different values that were counted."""
        self._add(numpy_array(values), counts)

    def _add(self, numbers: Floats, counts: Ints) -> None:
        values = np.concatenate([self._values, numbers])
        weights = np.concatenate([self._counts, counts])
        self._values, place = np.unique(values, return_inverse=True)
        self._counts = np.bincount(place, weights, minlength=len(self._values)).astype(np.int64)

    def listed(self, noise: Noise, scale: float, threshold: int, key: Key, column: str
               ) -> ListedValues:  # fmt: skip
        """Those whose noisy count reaches the threshold."""
        words = [value.tobytes() for value in self._values.astype("<f8")]
        values = self._values.tolist()
        return reaching(values, words, self._counts, noise, scale, threshold, key, column)


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
