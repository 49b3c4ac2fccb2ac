"""Minimal sample-unique sets: the smallest sets of columns that single a row out.

A row is singled out by a set of columns if no other row has the same values there; the set is
minimal if no smaller part of it does. Whoever knows those few values of a person knows all the
rest of the row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.evaluate.risk.reading import Cells, keys_of

Bits = npt.NDArray[np.uint8]
Truths = npt.NDArray[np.bool_]

DENSE = 2**22
"""Combinations of values up to which rows are counted in a table rather than by sorting."""

MOST_WORK = 2e10
"""Classes times sets of columns that are looked at."""


@dataclass(frozen=True)
class UniqueSet:
    """What one set of columns does."""

    columns: tuple[str, ...]
    rows: int
    """Rows that it singles out."""
    minimal: int
    """Of those, rows that no smaller part of it singles out."""

    def to_dict(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "rows": self.rows, "minimal": self.minimal}


@dataclass(frozen=True)
class Contribution:
    """What one column does: the minimal sets that it is in."""

    column: str
    minimal: int
    share: float
    """Of the scores of all rows, what comes from sets with this column."""

    def to_dict(self) -> dict[str, Any]:
        return {"column": self.column, "minimal": self.minimal, "share": self.share}


@dataclass(frozen=True, eq=False)
class UniqueSets:
    """All minimal sets of up to `largest` columns."""

    largest: int
    rows: int
    """Rows that some set singles out."""
    sets: tuple[UniqueSet, ...]
    """Those that single out a row, most rows for the fewest columns first."""
    columns: tuple[Contribution, ...]
    """Which columns contribute, most first."""
    by_size: tuple[tuple[int, int], ...]
    """For each number of columns, how many minimal sets of rows there are, and in how many rows."""
    scores: npt.NDArray[np.float64]
    """Of each row that is singled out: the sum of its sets' weights, larger for smaller sets."""

    def to_dict(self, shown: int | None = None) -> dict[str, Any]:
        return {
            "largest": self.largest,
            "rows": self.rows,
            "by_size": [
                {"columns": size, "minimal": minimal, "rows": rows}
                for size, (minimal, rows) in enumerate(self.by_size, start=1)
            ],
            "columns": [c.to_dict() for c in self.columns],
            "combinations": [s.to_dict() for s in self.sets[:shown]],
            "largest_score": float(self.scores.max()) if len(self.scores) else 0.0,
        }


def feasible(columns: int, classes: int, largest: int) -> int:
    """The largest sets that can be looked at with reasonable work."""
    work = 0.0
    for size in range(1, min(largest, columns) + 1):
        work += math.comb(columns, size) * classes
        if work > MOST_WORK and size > 1:
            return size - 1
    return min(largest, columns)


def unique_sets(cells: Cells, names: Sequence[str], largest: int) -> UniqueSets:
    """Level by level: a set is minimal for a row if none of its parts of one column less is."""
    there = cells.rows > 0
    codes, rows = cells.codes[:, there], cells.rows[there]
    alone = np.flatnonzero(rows == 1)
    tally = Tally(names, largest, len(alone))
    before: dict[tuple[int, ...], Bits] = {}
    for size in range(1, largest + 1):
        now: dict[tuple[int, ...], Bits] = {}
        for chosen in itertools.combinations(range(len(names)), size):
            parts = [chosen[:i] + chosen[i + 1 :] for i in range(size)] if size > 1 else []
            already = _any([before[part] for part in parts], len(alone))
            single = already  # a part that singles every row out leaves nothing to count
            if not already.all():
                sizes = [cells.sizes[j] for j in chosen]
                single = singled_out(codes[list(chosen)], sizes, rows)[alone]
            tally.note(chosen, single, single & ~already)
            now[chosen] = np.packbits(single)
        before = now
        tally.close(size)
    return tally.result()


def singled_out(codes: npt.NDArray[np.int32], sizes: Sequence[int], rows: Any) -> Truths:
    """(classes,): whether the class is one row, and no other row is like it in these columns."""
    keys = keys_of(codes, sizes)
    if math.prod(sizes) > DENSE:
        keys = np.unique(keys, return_inverse=True)[1]
    alike: Truths = np.bincount(keys, rows)[keys] == 1
    return alike


def _any(packed: list[Bits], length: int) -> Truths:
    if not packed:
        return np.zeros(length, dtype=np.bool_)
    return np.unpackbits(np.bitwise_or.reduce(packed), count=length).astype(np.bool_)


class Tally:
    """What has been found so far, set by set."""

    def __init__(self, names: Sequence[str], largest: int, alone: int) -> None:
        self._names, self._largest = names, largest
        self._sets: list[UniqueSet] = []
        self._minimal = np.zeros(len(names), dtype=np.int64)
        self._weights = np.zeros(len(names))
        self._scores = np.zeros(alone)
        self._here, self._pairs = np.zeros(alone, dtype=np.bool_), 0
        self._by_size: list[tuple[int, int]] = []

    def note(self, chosen: tuple[int, ...], single: Truths, minimal: Truths) -> None:
        rows, found = int(single.sum()), int(minimal.sum())
        if rows:
            names = tuple(self._names[j] for j in chosen)
            self._sets.append(UniqueSet(names, rows, found))
        if found:
            weight = set_weight(len(chosen), len(self._names), self._largest)
            self._minimal[list(chosen)] += found
            self._weights[list(chosen)] += weight * found
            self._scores[minimal] += weight
            self._here |= minimal
            self._pairs += found

    def close(self, size: int) -> None:
        """The sets of this size are done."""
        assert len(self._by_size) == size - 1  # noqa: S101
        self._by_size.append((self._pairs, int(self._here.sum())))
        self._here, self._pairs = np.zeros_like(self._here), 0

    def result(self) -> UniqueSets:
        total = float(self._scores.sum()) or 1.0
        columns = [
            Contribution(name, int(minimal), float(weight / total))
            for name, minimal, weight in zip(self._names, self._minimal, self._weights, strict=True)
        ]
        scores = np.sort(self._scores[self._scores > 0])[::-1]
        return UniqueSets(
            largest=self._largest,
            rows=len(scores),
            sets=tuple(sorted(self._sets, key=lambda s: (len(s.columns), -s.rows, s.columns))),
            columns=tuple(sorted(columns, key=lambda c: (-c.share, c.column))),
            by_size=tuple(self._by_size),
            scores=scores,
        )


def set_weight(size: int, columns: int, largest: int) -> float:
    """As SUDA weighs a set: the product of (columns − i) for i from its size up to the largest.

    That grows by a factor for each column that the set can do without. A factor of 0, for all
    columns, is left out.
    """
    return float(math.prod(columns - i for i in range(size, min(largest, columns - 1) + 1)))
