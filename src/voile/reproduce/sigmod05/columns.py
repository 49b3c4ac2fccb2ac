"""Figures 7 and 8: one to four columns of Adult, by the iterative method and by inversion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.look import lines
from voile.reproduce.papers import SIGMOD05
from voile.reproduce.sigmod05.study import (
    COLUMNS,
    CONVERGED,
    INVERSION,
    RANDOMIZED,
    STOPPED,
    StudySeries,
    adult_parts,
    growth,
    inversion_check,
    only,
    retentions_of,
    rises,
)
from voile.reproduce.verdict import Check, Claim

ALL = tuple(range(1, len(COLUMNS) + 1))
DRAWN = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
LOWEST, HIGHEST = 0.1, 0.9


def parts(run: Run) -> list[Part]:
    """Perturbed tables of Adult for each number of columns."""
    return [part for columns in ALL for part in adult_parts(run, columns)]


def measured(run: Run, results: Sequence[Any]) -> StudySeries:
    """The errors by columns, retention and method."""
    numbers = [part.given["columns"] for part in parts(run)]
    return StudySeries.of(
        ("columns", "retention", "method"),
        (
            ((columns, retention, method), value)
            for columns, one in zip(numbers, results, strict=True)
            for retention, by_method in zip(retentions_of(run), one, strict=True)
            for method, value in by_method.items()
        ),
    )


# ---------------------------------------------------------------------- claims


def grows(series: StudySeries, run: Run, method: str) -> Claim:
    """Whether the error grows with every column and with every lower p."""
    by_columns = [growth([series.mean(k, p, method) for k in ALL]) for p in retentions_of(run)]
    by_retention = [
        rises([series.mean(k, p, method) for p in reversed(retentions_of(run))]) for k in ALL
    ]
    least = min(min(factors) for factors in by_columns)
    most = max(max(factors) for factors in by_columns)
    return Claim(
        f"how the error of the {method.split(',', maxsplit=1)[0]} grows",
        "an exponential increase as columns are added and as p decreases",
        f"a column more multiplies it by {least:.2f} to {most:.2f}; a lower p "
        + ("always raises it" if all(by_retention) else "does not always raise it"),
        agrees=least > 1 and all(by_retention),
    )


def alike(series: StudySeries) -> Claim:
    """Whether both methods are 'comparable': within a fifth of each other."""
    ratios = [series.mean(k, p, INVERSION) / series.mean(k, p, STOPPED)
              for k in (1, 2) for p in (0.7, HIGHEST)]  # fmt: skip
    return Claim(
        "few columns and high retention",
        "both algorithms give comparable errors",
        f"1–2 columns, p ≥ 0.7: inversion errs {min(ratios):.2f} to {max(ratios):.2f} times as "
        "much as the iterative method",
        agrees=max(ratios) < 1.2 and min(ratios) > 1 / 1.2,
    )


def iterative_wins(series: StudySeries) -> Claim:
    """Whether the iterative method errs less with many columns and low retention."""
    ratios = [series.mean(4, p, INVERSION) / series.mean(4, p, STOPPED) for p in (LOWEST, 0.3)]
    return Claim(
        "many columns and low retention",
        "the iterative algorithm gives smaller errors than the inversion algorithm",
        f"4 columns: inversion errs {ratios[0]:.0f} times as much at p = 0.1, {ratios[1]:.1f} "
        "times at p = 0.3",
        agrees=min(ratios) > 1.5,
    )


def flattens(series: StudySeries) -> Claim:
    """Whether the iterative error levels off while that of inversion keeps growing."""
    iterative = growth([series.mean(k, LOWEST, CONVERGED) for k in ALL])
    inversion = growth([series.mean(k, LOWEST, INVERSION) for k in ALL])
    steps = [" ".join(f"×{step:.1f}" for step in factors) for factors in (iterative, inversion)]
    return Claim(
        "whether errors level off",
        "inversion's can grow arbitrarily, the iterative method's flattens after the initial rise",
        f"by column at p = 0.1: converged {steps[0]}; inversion {steps[1]}",
        agrees=iterative[-1] < iterative[0] / 2 and inversion[-1] > inversion[0] / 2,
    )


def bounded(series: StudySeries) -> Claim:
    """Whether the iterative error stays within two and that of inversion does not."""
    largest = max(
        sample.mean for point, sample in series.samples.items() if point[-1] in (STOPPED, CONVERGED)
    )
    inversion = series.mean(4, LOWEST, INVERSION)
    return Claim(
        "the bound of two",
        "the iterative error is at most two; inversion's can grow arbitrarily",
        f"the largest iterative error is {largest:.2f}; inversion of 4 columns at p = 0.1 errs by "
        f"{inversion:.0f}",
        agrees=largest <= 2 < inversion,
    )


# ---------------------------------------------------------------------- the figures


def conclude_iterative(run: Run, results: Sequence[Any]) -> Finding:
    """Figure 7: the errors of the iterative method."""
    series = measured(run, results)
    table = only(series.columns(), method=(RANDOMIZED, STOPPED, CONVERGED))
    gain = series.mean(4, 0.3, CONVERGED) / series.mean(4, 0.3, STOPPED)
    return Finding(
        checks=(grows(series, run, STOPPED), alike(series), flattens(series), bounded(series)),
        tables={"": table},
        picture=lambda: picture(table, STOPPED),
        title="Every column adds error; the iterative method stays far below 2",
        subtitle=(
            "Adult, 1 to 4 ranges, EM stopped when a step moves less than 1/1000 of the rows; "
            f"means of {len(results) // len(ALL)} runs.",
            f"Converged, it errs {gain:.1f} times as much for 4 columns at p = 0.3: see the CSV.",
        ),
    )


def conclude_inversion(run: Run, results: Sequence[Any]) -> Finding:
    """Figure 8: the errors of the inversion."""
    series = measured(run, results)
    table = only(series.columns(), method=(RANDOMIZED, INVERSION))
    numbers: list[Check] = [
        inversion_check(f"{k} columns, p = {p:g}: mean error", series[k, p, INVERSION], k, p)
        for k in ALL
        for p in (LOWEST, 0.3, 0.5, HIGHEST)
    ]
    worst = series.mean(4, LOWEST, INVERSION)
    return Finding(
        checks=(grows(series, run, INVERSION), iterative_wins(series), *numbers),
        tables={"": table},
        picture=lambda: picture(table, INVERSION),
        title=f"Inversion errs without bound: by {worst:.0f} for four columns at p = 0.1",
        subtitle=(
            "Adult, 1 to 4 ranges, reconstruction error (L1 of shares) of the inversion; "
            f"means of {len(results) // len(ALL)} runs.",
            "No vector of shares is further than 2 from another: above that, cells are negative.",
        ),
    )


def picture(table: dict[str, list[Any]], method: str) -> Any:
    """The errors of one method by columns, a line for each retention."""
    drawn = only(table, method=(method,), retention=DRAWN)
    drawn["p"] = [f"p = {retention:g}" for retention in drawn["retention"]]
    return lines(
        drawn,
        "columns",
        "error",
        "p",
        titles=("columns reconstructed together", "reconstruction error (log scale)"),
        log=(False, True),
        formats=("d", "~g"),
    )


def figure(number: int, words: str, conclude: Any) -> Figure:
    """Figure 7 or 8."""
    return Figure(
        name=f"sigmod05-fig{number}",
        paper=SIGMOD05,
        what=f"Errors by columns and retention on Adult, {words}",
        parts=parts,
        conclude=conclude,
    )


FIGURE_7 = figure(7, "iterative method", conclude_iterative)
FIGURE_8 = figure(8, "inversion", conclude_inversion)
