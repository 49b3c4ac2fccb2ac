"""Adult as section 7 has it: four numeric columns, a range on each, ten intervals of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import voile
from voile.reconstruct import expectation, unbiased
from voile.reproduce.figure import Part, Run
from voile.reproduce.sigmod05.simulating import Floats, conditions, errors

SOURCE = "dataset:adult/olap"
INTERVALS = 10
RETENTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Column:
    """A column's domain and the range that is asked for, as section 7 prints them."""

    name: str
    least: int
    most: int
    low: int
    high: int

    @property
    def chance(self) -> float:
        """That a replaced value lies in the range; values are drawn from a continuous domain."""
        return (self.high - self.low) / (self.most - self.least)

    @property
    def met(self) -> str:
        return f"({self.name} between {self.low} and {self.high})::int"

    @property
    def interval(self) -> str:
        """Which of ten intervals of the same width a value lies in."""
        width = (self.most - self.least) / INTERVALS
        return f"least(floor(({self.name} - {self.least}) / {width}), {INTERVALS - 1})::int"


COLUMNS = (
    Column("age", 17, 90, 25, 45),
    Column("fnlwgt", 10_000, 1_500_000, 100_000, 1_000_000),
    Column("hours_per_week", 1, 100, 30, 60),
    Column("education_num", 1, 16, 5, 10),
)


def counted(source: str, cells: Sequence[str], size: int) -> Floats:
    """Rows by the values of SQL expressions, each of which is 0, 1, … size − 1."""
    asked = ", ".join(cells)
    rows = np.array(
        voile.read(source).run(f"select {asked}, count(*) from adult group by all"), dtype=np.int64
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
