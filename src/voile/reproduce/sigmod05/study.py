"""Rows perturbed in simulation, the ways to reconstruct them, and how far each is off.

Every row keeps a condition's truth with the retention, else draws it anew. Rows of a cell are
alike, so cells are perturbed instead of rows: column by column, with binomial draws. The counts
that are seen have exactly the law of rows perturbed one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

import voile
from voile.reconstruct import (
    Axis,
    em_until,
    expectation,
    invert,
    maximum_likelihood,
    stopped_em,
    unbiased,
)
from voile.reproduce.figure import Columns, Part, Run, rows_at
from voile.reproduce.verdict import Number, Sample

Floats = npt.NDArray[np.float64]

RANDOMIZED = "randomized"
INVERSION = "inversion"
STOPPED = "iterative, stopped at 1/1000"
CONVERGED = "iterative, converged"
PLAUSIBLE = "first plausible step (ours)"
METHODS = (RANDOMIZED, INVERSION, STOPPED, CONVERGED, PLAUSIBLE)

STEP = 1e-3
"""The paper stops when 'two consecutive x iterates do not differ much'. We stop when a step moves
less than this share of the rows; that is a choice, and it decides what the curves look like."""
GAP = 1e-6
"""By how much the logarithm of the likelihood, for each row, may miss its maximum."""

ESTIMATES: dict[str, Callable[[Floats, Sequence[Axis]], Floats]] = {
    RANDOMIZED: lambda seen, _: seen,
    INVERSION: invert,
    STOPPED: lambda seen, axes: em_until(seen, axes, STEP)[0],
    CONVERGED: lambda seen, axes: maximum_likelihood(seen, axes, gap=GAP).counts,
    PLAUSIBLE: lambda seen, axes: stopped_em(seen, axes).counts,
}


def conditions(retention: float, chances: Sequence[float]) -> list[Axis]:
    """An axis (not met, met) for each condition, given how likely a replaced value meets it."""
    return [Axis(retention, np.array([1 - chance, chance])) for chance in chances]


def perturbed(true: Floats, axes: Sequence[Axis], coins: np.random.Generator) -> Floats:
    """The rows of each cell after perturbation, drawn from its true rows."""
    cells = true.astype(np.int64).reshape((2,) * len(axes))
    for place, axis in enumerate(axes):
        drawn = (1 - axis.retention) * axis.masses
        pair = np.moveaxis(cells, place, 0)
        up, down = coins.binomial(pair[0], drawn[1]), coins.binomial(pair[1], drawn[0])
        cells = np.moveaxis(np.stack([pair[0] - up + down, pair[1] + up - down]), 0, place)
    return cells.astype(np.float64)


def distance(found: Floats, true: Floats) -> float:
    """The paper's reconstruction error: l₁ between the two vectors, as shares of all rows."""
    return float(np.abs(found.reshape(-1) - true.reshape(-1)).sum() / true.sum())


def errors(
    true: Floats,
    axes: Sequence[Axis],
    coins: np.random.Generator,
    repetitions: int,
    methods: Sequence[str] = METHODS,
) -> dict[str, float]:
    """The mean reconstruction error of each method, over rows perturbed so many times."""
    totals = dict.fromkeys(methods, 0.0)
    for _ in range(repetitions):
        seen = perturbed(true, axes, coins)
        for method in methods:
            totals[method] += distance(ESTIMATES[method](seen, axes), true)
    return {method: total / repetitions for method, total in totals.items()}


# ------- results of several runs, put together by point: what figures and their checks are made of


Point = tuple[Any, ...]


@dataclass(frozen=True)
class StudySeries:
    """The values of all runs at every point; a point is, say, (retention, columns, method)."""

    names: tuple[str, ...]
    samples: Mapping[Point, Sample]

    @classmethod
    def of(cls, names: Sequence[str], measured: Iterable[tuple[Point, float]]) -> StudySeries:
        """Collect measured values by their point."""
        found: dict[Point, list[float]] = {}
        for point, value in measured:
            found.setdefault(point, []).append(value)
        return cls(tuple(names), {point: Sample.of(values) for point, values in found.items()})

    def __getitem__(self, point: Point) -> Sample:
        return self.samples[point]

    def mean(self, *point: Any) -> float:
        """The mean over the runs at a point."""
        return self.samples[point].mean

    def columns(self, value: str = "error") -> dict[str, list[Any]]:
        """The series as CSV columns: point, mean, standard deviation, and number of runs."""
        found: dict[str, list[Any]] = {
            name: [point[place] for point in self.samples] for place, name in enumerate(self.names)
        }
        found[value] = [sample.mean for sample in self.samples.values()]
        found["sd"] = [sample.sd for sample in self.samples.values()]
        found["runs"] = [sample.runs for sample in self.samples.values()]
        return found


def only(columns: Columns, **wanted: Sequence[Any]) -> dict[str, list[Any]]:
    """The rows of a table whose values are among those wanted."""
    size = len(next(iter(columns.values())))
    kept = [
        row
        for row in range(size)
        if all(columns[name][row] in values for name, values in wanted.items())
    ]
    return rows_at(columns, kept)


def rises(values: Sequence[float]) -> bool:
    """Whether every value is above the one before."""
    return all(before < after for before, after in pairwise(values))


def growth(values: Sequence[float]) -> list[float]:
    """The ratio of each value to the one before."""
    return [after / before for before, after in pairwise(values)]


# --------- adult as section 7 has it: four numeric columns, a range on each, ten intervals of each


SOURCE = "dataset:adult/olap"
INTERVALS = 10
RETENTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class StudyColumn:
    """A column's domain and the range that is queried, as section 7 prints them."""

    name: str
    least: int
    most: int
    low: int
    high: int

    @property
    def chance(self) -> float:
        """The probability that a replaced value, drawn from a continuous domain, is in range."""
        return (self.high - self.low) / (self.most - self.least)

    @property
    def met(self) -> str:
        """SQL that is 1 where the range is met, else 0."""
        return f"({self.name} between {self.low} and {self.high})::int"

    @property
    def interval(self) -> str:
        """Which of ten intervals of the same width a value lies in."""
        width = (self.most - self.least) / INTERVALS
        return f"least(floor(({self.name} - {self.least}) / {width}), {INTERVALS - 1})::int"


COLUMNS = (
    StudyColumn("age", 17, 90, 25, 45),
    StudyColumn("fnlwgt", 10_000, 1_500_000, 100_000, 1_000_000),
    StudyColumn("hours_per_week", 1, 100, 30, 60),
    StudyColumn("education_num", 1, 16, 5, 10),
)


def counted(source: str, cells: Sequence[str], size: int) -> Floats:
    """Rows by the values of SQL expressions, each of which is 0, 1, … size − 1."""
    listed = ", ".join(cells)
    rows = np.array(
        voile.read(source).run(f"select {listed}, count(*) from adult group by all"), dtype=np.int64
    )
    counts = np.zeros((size,) * len(cells))
    counts[tuple(rows[:, :-1].T)] = rows[:, -1]
    return counts


@lru_cache
def true_counts(columns: int) -> Floats:
    """Rows by which of the first conditions they meet."""
    return counted(SOURCE, [column.met for column in COLUMNS[:columns]], 2)


def cells(names: Sequence[str]) -> Floats:
    """Rows in the cross product of ten intervals of each of these columns."""
    known = {column.name: column for column in COLUMNS}
    return counted(SOURCE, [known[name].interval for name in names], INTERVALS)


def adult_errors(
    columns: int, retentions: Sequence[float], seed: int, repetitions: int
) -> list[dict[str, float]]:
    """For each retention: the mean error of every method over so many perturbed tables."""
    chances = [column.chance for column in COLUMNS[:columns]]
    return [
        errors(
            true_counts(columns),
            conditions(retention, chances),
            np.random.default_rng([seed, columns, round(1000 * retention)]),
            repetitions,
        )
        for retention in retentions
    ]


def adult_parts(run: Run, columns: int) -> list[Part]:
    """Perturbed tables of Adult's first columns, one piece of work for each seed."""
    retentions = list(retentions_of(run))
    repetitions = 10 if run.quick else 20
    return [
        Part(
            adult_errors,
            {
                "columns": columns,
                "retentions": retentions,
                "seed": seed,
                "repetitions": repetitions,
            },
        )
        for seed in run.seeds(full=20, quick=8)
    ]


def retentions_of(run: Run) -> tuple[float, ...]:
    """The retentions to study; every other one in a quick run."""
    return RETENTIONS[::2] if run.quick else RETENTIONS


def expected_inversion(columns: int, retention: float) -> float:
    """The mean error of the inversion, from the variances of its cells; no coin is thrown.

    A cell's estimate is a sum over many rows, so nearly normal, and |N(0, v)| has the mean √(2v/π).
    """
    true = true_counts(columns)
    axes = conditions(retention, [column.chance for column in COLUMNS[:columns]])
    total = 0.0
    for cell in np.eye(true.size):
        counted_as = unbiased(cell, axes)
        spread = expectation(counted_as**2, axes).reshape(-1) - cell
        total += math.sqrt(float(true.reshape(-1) @ spread))
    return math.sqrt(2 / math.pi) * total / float(true.sum())


def inversion_check(what: str, measured: Sample, columns: int, retention: float) -> Number:
    """The inversion's mean error beside what `expected_inversion` says of it."""
    right = expected_inversion(columns, retention)
    return Number(
        what,
        None,
        measured,
        # The mean is right up to how nearly normal sums of 32,561 coins are.
        reading=0.01 * right,
        right=right,
        why="by formula, from the variances of the cells",
        average=True,
    )
