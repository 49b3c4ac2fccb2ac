"""The synthetic tables of section 7: independent columns, whose values follow Zipf's law."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from voile.reconstruct import invert
from voile.reproduce.sigmod05.adult import counted
from voile.reproduce.sigmod05.simulating import METHODS, Floats, conditions, errors, perturbed

PARAMETER = 0.5
RAREST = 5
"""Rows of the least frequent value; so there is about one value for ten rows."""
HALF = 0.5


@lru_cache
def frequencies(rows: int) -> npt.NDArray[np.int64]:
    """Rows of every value, the most frequent first: in proportion to rank^−½, each within one."""
    values = rows // (2 * RAREST)
    shares = np.cumsum(np.arange(1, values + 1) ** -PARAMETER)
    ends = np.round(rows * shares / shares[-1]).astype(np.int64)
    return np.sort(np.diff(ends, prepend=0))[::-1]


def rows_in_range(rows: int, width: float, coins: np.random.Generator | None) -> int:
    """Rows in a range of that share of the domain.

    The paper does not say how values are ordered: by `coins`, or from the most frequent on.
    """
    counts = frequencies(rows)
    ordered = counts if coins is None else coins.permutation(counts)
    return int(ordered[: round(width * len(counts))].sum())


def true_counts(
    rows: int, columns: int, coins: np.random.Generator, *, ordered: bool = False
) -> Floats:
    """Rows by which of so many conditions they meet, each on half the domain of its own column."""
    place = np.zeros(rows, dtype=np.int64)
    for _ in range(columns):
        met = np.zeros(rows, dtype=np.int64)
        met[: rows_in_range(rows, HALF, None if ordered else coins)] = 1
        place = 2 * place + coins.permutation(met)
    return np.bincount(place, minlength=2**columns).reshape((2,) * columns).astype(np.float64)


def prefixes(true: Floats, columns: Sequence[int]) -> list[Floats]:
    """The same table by its first columns alone."""
    return [true.sum(axis=tuple(range(k, true.ndim))) for k in columns]


def zipf_errors(
    rows: int,
    columns: Sequence[int],
    retentions: Sequence[float],
    seed: int,
    repetitions: int,
    ordered: bool = False,
    methods: Sequence[str] = METHODS,
) -> list[list[dict[str, float]]]:
    """For each retention and number of columns: mean errors over so many tables."""
    totals = [[dict.fromkeys(methods, 0.0) for _ in columns] for _ in retentions]
    for repetition in range(repetitions):
        coins = np.random.default_rng([seed, rows, repetition])
        true = true_counts(rows, max(columns), coins, ordered=ordered)
        for retention, by_columns in zip(retentions, totals, strict=True):
            for few, total in zip(prefixes(true, columns), by_columns, strict=True):
                axes = conditions(retention, [HALF] * few.ndim)
                for method, error in errors(few, axes, coins, 1, methods).items():
                    total[method] += error / repetitions
    return totals


# ---------------------------------------------------------------------- columns that go together

TOGETHER = {
    "sex = 'Male'": 1 / 2,
    "marital_status = 'Married-civ-spouse'": 1 / 7,
    "relationship in ('Husband', 'Wife')": 2 / 6,
    "salary = '>50K'": 1 / 2,
    "education_num >= 10": 7 / 16,
    "age between 30 and 59": 30 / 74,
    "hours_per_week between 40 and 60": 21 / 99,
    "race = 'White'": 1 / 5,
}
"""Conditions on Adult that are far from independent, and the share of the domain that meets them:
our own workload, beside the paper's."""


@lru_cache
def together() -> Floats:
    return counted("dataset:adult/train", [f"({condition})::int" for condition in TOGETHER], 2)


def together_errors(
    columns: Sequence[int], retentions: Sequence[float], seed: int, repetitions: int
) -> list[list[dict[str, float]]]:
    """For each retention and number of columns: mean errors over so many perturbed tables."""
    chances = list(TOGETHER.values())
    return [
        [
            errors(
                few,
                conditions(retention, chances[: few.ndim]),
                np.random.default_rng([seed, few.ndim, round(1000 * retention)]),
                repetitions,
            )
            for few in prefixes(together(), columns)
        ]
        for retention in retentions
    ]


# ---------------------------------------------------------------------- ranges of one column


def width_errors(
    rows: int,
    widths: Sequence[float],
    retention: float,
    seed: int,
    repetitions: int,
) -> dict[str, list[float]]:
    """For each width of a range on one column: mean absolute and relative errors of its share."""
    coins = np.random.default_rng([seed, rows])
    absolute, relative = np.zeros((2, len(widths)))
    for place, width in enumerate(widths):
        axes = conditions(retention, [width])
        for _ in range(repetitions):
            met = rows_in_range(rows, width, coins)
            seen = perturbed(np.array([rows - met, met], dtype=np.float64), axes, coins)
            off = abs(float(invert(seen, axes)[1]) - met)
            absolute[place] += off / rows / repetitions
            relative[place] += off / met / repetitions
    return {"absolute": absolute.tolist(), "relative": relative.tolist()}
