"""The synthetic tables of section 7: independent columns, whose values follow Zipf's law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.reconstruct import invert
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.look import lines
from voile.reproduce.papers import SIGMOD05
from voile.reproduce.sigmod05.study import (
    CONVERGED,
    METHODS,
    RANDOMIZED,
    STOPPED,
    Floats,
    StudySeries,
    conditions,
    counted,
    errors,
    only,
    perturbed,
    rises,
)
from voile.reproduce.verdict import Check, Claim, Number

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
    """Rows by the conditions that they meet, each on half the domain of its own column."""
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


# ---------------------------------------------------------------------- correlated columns

CORRELATED = {
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
def correlated_counts() -> Floats:
    """Rows of Adult by which of these conditions they meet."""
    return counted("dataset:adult/train", [f"({condition})::int" for condition in CORRELATED], 2)


def correlated_errors(
    columns: Sequence[int], retentions: Sequence[float], seed: int, repetitions: int
) -> list[list[dict[str, float]]]:
    """For each retention and number of columns: mean errors over so many perturbed tables."""
    chances = list(CORRELATED.values())
    return [
        [
            errors(
                few,
                conditions(retention, chances[: few.ndim]),
                np.random.default_rng([seed, few.ndim, round(1000 * retention)]),
                repetitions,
            )
            for few in prefixes(correlated_counts(), columns)
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


# ----------- figure 10: eight columns of Zipfian tables with a thousand to a hundred thousand rows


SIZES = (1_000, 10_000, 100_000)
COLUMNS = 8
RETENTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
USEFUL = 0.5
"""An error that leaves something to be read from the vector."""

# As in Figure 9: means over 10 tables by an independent program, by rows, retention and method.
KNOWN = {
    (1_000, 0.9, STOPPED): (0.4269, 0.0424),
    (10_000, 0.2, STOPPED): (0.5198, 0.1742),
    (10_000, 0.3, STOPPED): (0.7883, 0.0626),
    (100_000, 0.3, STOPPED): (0.0829, 0.0300),
    (1_000, 0.1, CONVERGED): (1.9050, 0.0471),
    (10_000, 0.6, CONVERGED): (0.8265, 0.0450),
    (10_000, 0.8, CONVERGED): (0.3118, 0.0363),
    (100_000, 0.6, CONVERGED): (0.4558, 0.0418),
    (100_000, 0.9, CONVERGED): (0.0476, 0.0022),
    (1_000, 0.8, RANDOMIZED): (0.4098, 0.0501),
    (10_000, 0.1, RANDOMIZED): (0.1858, 0.0134),
}


def parts(run: Run) -> list[Part]:
    """Zipfian tables of each size, one piece of work for each seed."""
    return [
        Part(
            zipf_errors,
            {
                "rows": rows,
                "columns": [COLUMNS],
                "retentions": list(RETENTIONS),
                "seed": seed,
                "repetitions": 2 if run.quick else 10,
            },
        )
        for rows in SIZES
        for seed in run.seeds(full=20, quick=5)
    ]


def measured(run: Run, results: Sequence[Any]) -> StudySeries:
    """The errors by rows, retention and method."""

    def points() -> Any:
        for part, one in zip(parts(run), results, strict=True):
            for retention, (found,) in zip(RETENTIONS, one, strict=True):
                for method, value in found.items():
                    yield (part.given["rows"], retention, method), value

    return StudySeries.of(("rows", "retention", "method"), points())


def numbers(series: StudySeries) -> list[Check]:
    """The errors beside an independent program's."""
    return [
        Number(
            f"{method}, {rows:,} rows, p = {p:g}: mean error",
            None,
            series[rows, p, method],
            reading=apart,
            right=right,
            why="the mean of 10 tables by an independent program",
            average=True,
        )
        for (rows, p, method), (right, apart) in KNOWN.items()
    ]


def falls(series: StudySeries) -> Claim:
    """Whether errors fall as rows are added."""
    always = [
        rises([series.mean(rows, p, method) for rows in reversed(SIZES)])
        for p in RETENTIONS
        for method in (STOPPED, CONVERGED)
    ]
    return Claim(
        "more rows",
        "the reconstruction error decreases as the number of perturbed rows increases",
        f"from size to size, at {sum(always)} of {len(always)} retentions and stopping rules",
        agrees=all(always),
    )


def root(series: StudySeries) -> Claim:
    """The exponent of n between the two larger sizes, where the error is far below its bound."""
    first, second, low = (
        math.log10(series.mean(SIZES[-1], p, CONVERGED) / series.mean(SIZES[-2], p, CONVERGED))
        for p in (0.8, 0.9, 0.2)
    )
    return Claim(
        "how fast",
        "for large n the error decreases as n to the power −0.5",
        f"from 10,000 to 100,000 rows, converged: n^{first:.2f} at p = 0.8, "
        f"n^{second:.2f} at p = 0.9, but n^{low:.2f} at p = 0.2, where n is not large",
        agrees=all(abs(exponent + 0.5) < 0.05 for exponent in (first, second)),
    )


def reaches(series: StudySeries) -> Claim:
    """Whether more rows allow smaller retentions."""
    least = [
        min((p for p in RETENTIONS if series.mean(rows, p, CONVERGED) < USEFUL), default=1.0)
        for rows in SIZES
    ]
    return Claim(
        "what more rows allow",
        "with more rows, more columns can be reconstructed together at smaller retentions",
        "converged, 8 columns, an error below 0.5 needs p of "
        + ", ".join(f"{p:g} ({rows:,})" for p, rows in zip(least, SIZES, strict=True)),
        agrees=least[0] > least[1] > least[2],
    )


def conclude(run: Run, results: Sequence[Any]) -> Finding:
    """Figure 10: the errors by number of rows."""
    series = measured(run, results)
    table = series.columns()
    ratio = series.mean(SIZES[0], 0.9, CONVERGED) / series.mean(SIZES[-1], 0.9, CONVERGED)
    return Finding(
        checks=(falls(series), root(series), reaches(series), *numbers(series)),
        tables={"": table},
        picture=lambda: picture(table),
        title=f"A hundred times the rows, {ratio:.0f} times less error: the root of n, for high p",
        subtitle=(
            "Zipfian tables, 8 ranges of half a domain each, reconstruction error (L1 of shares); "
            f"means of {len(results) // len(SIZES)} runs.",
            "Stopped at 1/1000 for low p, EM has hardly left the raw vector, which is near the "
            "even truth.",
        ),
    )


def picture(table: dict[str, list[Any]]) -> Any:
    """The errors by retention, a line for each number of rows and stopping rule."""
    drawn = only(table, method=(STOPPED, CONVERGED))
    short = {STOPPED: "stopped", CONVERGED: "converged"}
    drawn["curve"] = [
        f"{rows:,} rows, {short[method]}"
        for rows, method in zip(drawn["rows"], drawn["method"], strict=True)
    ]
    order = [f"{rows:,} rows, {word}" for word in ("converged", "stopped") for rows in SIZES]
    return lines(
        drawn,
        "retention",
        "error",
        "curve",
        titles=("retention p, alike for all columns", "reconstruction error (log scale)"),
        log=(False, True),
        order=order,
        formats=("~g", "~g"),
    )


FIGURE_10 = Figure(
    name="sigmod05-fig10",
    paper=SIGMOD05,
    what="Errors by number of rows on Zipfian data, eight columns",
    parts=parts,
    conclude=conclude,
)
