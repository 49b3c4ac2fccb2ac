"""Rows that are alone in their class, and how many of them are alone in the population too.

The population is not seen. Two models guess it from the sizes of the table's classes: Pitman's
(Hoshino 2001), whose two parameters are fitted by maximum likelihood, and Zayatz's (1991), which
takes the population's classes to be as large as the table's. Both take the table for a random
sample of the population. docs/mathematics has the formulas.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, gammaln

from voile.arrays import Floats
from voile.evaluate.risk.disclosure import Cells, keys_of
from voile.records import Record

Counts = npt.NDArray[np.int64]

ASSUMPTION = "the table is a random sample of the population"


@dataclass(frozen=True)
class Uniqueness:
    """Rows that are alone in their class."""

    rows: int
    unique: int
    sampling_fraction: float | None = None
    population_unique: int | None = None
    """Counted in a population table: rows that are alone there too."""
    pitman: float | None = None
    """Estimated: how many of the rows are alone in the population."""
    zayatz: float | None = None

    @property
    def share(self) -> float:
        """The share of rows that are unique."""
        return self.unique / self.rows

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        estimated = None
        if self.sampling_fraction is not None:
            estimated = {
                "sampling_fraction": self.sampling_fraction,
                "assumption": ASSUMPTION,
                "pitman": self.pitman,
                "zayatz": self.zayatz,
            }
        return {
            "sample_unique": self.unique,
            "share": self.share,
            "population_unique": self.population_unique,
            "estimated": estimated,
        }


def uniqueness(
    rows: Counts, population: Counts | None, sampling_fraction: float | None
) -> Uniqueness:
    """Of classes with these rows; the population is counted where it is known."""
    alone = rows == 1
    counted = None if population is None else int((alone & (population <= 1)).sum())
    there = rows[rows > 0]
    n, unique = int(there.sum()), int(alone.sum())
    if sampling_fraction is None:
        return Uniqueness(n, unique, None, counted)
    sizes, classes = np.unique(there, return_counts=True)
    pitman = pitman_unique(sizes, classes, sampling_fraction)
    zayatz = zayatz_unique(sizes, classes, sampling_fraction)
    return Uniqueness(n, unique, sampling_fraction, counted, pitman, zayatz)


def zayatz_unique(sizes: Counts, classes: Counts, fraction: float) -> float:
    """Uniques, times the chance that a class of one row is one of a population class of one."""
    unique = int(classes[sizes == 1].sum())
    if not unique or fraction == 1:
        return float(unique)
    one_seen = sizes * fraction * np.exp((sizes - 1) * np.log1p(-fraction))
    return float(unique * unique * fraction / (classes * one_seen).sum())


def pitman_unique(sizes: Counts, classes: Counts, fraction: float) -> float:
    """How many of the rows are expected to be alone in a population of Pitman's model."""
    unique = int(classes[sizes == 1].sum())
    if not unique or unique == classes.sum() or fraction == 1:  # nothing to fit, or to find
        return float(unique)
    theta, alpha = fitted(sizes, classes)
    people = float((sizes * classes).sum()) / fraction
    return min(float(unique), fraction * expected_unique(theta, alpha, people))


def fitted(sizes: Counts, classes: Counts) -> tuple[float, float]:
    """θ and α of largest likelihood, with α between 0 and 1 and θ above 0."""

    def loss(point: Floats) -> float:
        return -log_likelihood(float(np.exp(point[0])), float(expit(point[1])), sizes, classes)

    starts = [(np.log(max(1.0, classes.sum())), 0.0), (0.0, 0.0)]
    tries = [minimize(loss, np.array(s), method="Nelder-Mead") for s in starts]
    best = min(tries, key=lambda found: float(found.fun))
    return float(np.exp(best.x[0])), float(expit(best.x[1]))


def log_likelihood(theta: float, alpha: float, sizes: Counts, classes: Counts) -> float:
    """Of a partition with `classes[i]` classes of `sizes[i]` rows, up to a constant."""
    n, u = float((sizes * classes).sum()), float(classes.sum())
    new = (u - 1) * np.log(alpha) + gammaln(theta / alpha + u) - gammaln(theta / alpha + 1)
    again = (classes * (gammaln(sizes - alpha) - gammaln(1 - alpha))).sum()
    return float(new + again - gammaln(theta + n) + gammaln(theta + 1))


def expected_unique(theta: float, alpha: float, n: float) -> float:
    """Classes of one among n: n times the chance that nobody joins the first."""
    joined = gammaln(theta + alpha + n - 1) - gammaln(theta + alpha)
    seated = gammaln(theta + n) - gammaln(theta + 1)
    return float(n * np.exp(joined - seated))


# ------------------ minimal sample-unique sets: the smallest sets of columns that single a row out


Bits = npt.NDArray[np.uint8]
Truths = npt.NDArray[np.bool_]

DENSE = 2**22
"""Combinations of values up to which rows are counted in a table rather than by sorting."""

MOST_WORK = 2e10
"""Classes times sets of columns that are looked at."""


@dataclass(frozen=True)
class UniqueSet(Record):
    """What one set of columns does."""

    columns: tuple[str, ...]
    rows: int
    """Rows that it singles out."""
    minimal: int
    """Of those, rows that no smaller part of it singles out."""


@dataclass(frozen=True)
class Contribution(Record):
    """What one column does: the minimal sets that it is in."""

    column: str
    minimal: int
    share: float
    """Of the scores of all rows, what comes from sets with this column."""


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
        """The same as plain data, ready for JSON."""
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
    tally = UniqueTally(names, largest, len(alone))
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


class UniqueTally:
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
        """Count the rows that a set of columns singles out."""
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
        """All that was counted."""
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
