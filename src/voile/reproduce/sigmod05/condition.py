"""Figure 6: the condition number of the transition matrix, and what it says of the error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from voile.reconstruct import condition_number, expectation, unbiased
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.look import lines
from voile.reproduce.papers import SIGMOD05
from voile.reproduce.sigmod05.study import COLUMNS, conditions, rises
from voile.reproduce.verdict import Check, Claim, Number, Sample

RETENTIONS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
MOST_COLUMNS = 10
SELECTIVITY = 0.5
ROWS = 100_000
SPECTRAL = 2
TEXT = "condition number"


def conditioned(retention: float) -> dict[str, list[float]]:
    """Condition numbers and expected inversion errors by columns, and Adult's numbers."""
    axes = conditions(retention, [SELECTIVITY] * MOST_COLUMNS)
    adult = conditions(retention, [column.chance for column in COLUMNS])
    return {
        "even": [condition_number(axes[:k], SPECTRAL) for k in range(1, MOST_COLUMNS + 1)],
        "error": [inversion_error(retention, k) for k in range(1, MOST_COLUMNS + 1)],
        "adult": [condition_number(adult[:k], SPECTRAL) for k in range(1, len(COLUMNS) + 1)],
    }


def inversion_error(retention: float, columns: int) -> float:
    """The mean L1 error of the inversion where all cells hold equally many rows."""
    axes = conditions(retention, [SELECTIVITY] * columns)
    cell = np.zeros(2**columns)
    cell[-1] = 1
    spread = expectation(unbiased(cell, axes) ** 2, axes).reshape(-1) - cell
    one = math.sqrt(ROWS / cell.size * float(spread.sum()))
    return math.sqrt(2 / math.pi) * cell.size * one / ROWS


def parts(run: Run) -> list[Part]:  # noqa: ARG001  (nothing is random, and all of it is quick)
    """The condition numbers at each retention."""
    return [Part(conditioned, {"retention": retention}) for retention in RETENTIONS]


def conclude(run: Run, results: Sequence[Any]) -> Finding:  # noqa: ARG001
    """Compare condition numbers with the printed formula and with the inversion's error."""
    found = dict(zip(RETENTIONS, results, strict=True))
    table: dict[str, list[Any]] = {"retention": [], "columns": [], TEXT: [], "error": []}
    for retention, values in found.items():
        table["retention"] += [retention] * MOST_COLUMNS
        table["columns"] += range(1, MOST_COLUMNS + 1)
        table[TEXT] += values["even"]
        table["error"] += values["error"]
    own: dict[str, list[Any]] = {
        "retention": [p for p in found for _ in COLUMNS],
        "columns": [k for _ in found for k in range(1, len(COLUMNS) + 1)],
        TEXT: [number for values in found.values() for number in values["adult"]],
    }
    largest = found[0.2]["even"][-1]
    return Finding(
        checks=(*claims(found), *numbers(found)),
        tables={"": table, "adult": own},
        picture=lambda: picture(table),
        title=f"Ten columns at p = 0.2 make errors grow up to {largest / 1e6:.1f} million times",
        subtitle=(
            "Condition number (spectral norm) of the transition matrix; every range holds half of "
            "its domain.",
            "It is p to the power −k exactly; for Adult's ranges, which are uneven, it is larger.",
        ),
    )


def numbers(found: dict[float, Any]) -> list[Check]:
    """Section 4.2.3 says 'roughly p^−k'; with ranges of half the domain it is that exactly."""
    uneven = Number(
        "condition number of Adult's four ranges, p = 0.1",
        None,
        Sample.of(found[0.1]["adult"][-1]),
        reading=0.5,
        right=14852.0,
        why="an independent program; p^−k is 10,000",
    )
    return [
        *(
            Number(
                f"condition number, p = {p:g}, {k} columns",
                round(p**-k, 10),
                Sample.of(found[p]["even"][k - 1]),
                reading=1e-9 * p**-k,
                why=f"the printed formula p^−k at p = {p:g}, k = {k}",
            )
            for p in (0.2, 0.5, 0.9)
            for k in (1, 4, MOST_COLUMNS)
        ),
        uneven,
    ]


def claims(found: dict[float, Any]) -> list[Check]:
    """How the condition number grows, and whether it predicts the error."""
    even = {p: values["even"] for p, values in found.items()}
    by_retention = [rises([even[p][k] for p in reversed(RETENTIONS)]) for k in range(MOST_COLUMNS)]
    logarithms = np.log([(values["even"], values["error"]) for values in found.values()])
    pairs = logarithms.transpose(1, 0, 2).reshape(2, -1)
    together = float(np.corrcoef(pairs)[0, 1])
    return [
        Claim(
            "how it grows",
            "it increases as p decreases, and exponentially with the columns",
            "at p = 0.2 each column multiplies it by "
            f"{even[0.2][1] / even[0.2][0]:.3g}, at p = 0.9 by {even[0.9][1] / even[0.9][0]:.3g}",
            agrees=all(by_retention) and all(rises(values) for values in even.values()),
        ),
        Claim(
            "what it says of the error",
            "it is a good indicator of the reconstruction error by the inversion algorithm",
            f"over all p and columns the logarithms of both correlate by {together:.3f}",
            agrees=together > 0.95,
        ),
    ]


def picture(table: dict[str, list[Any]]) -> Any:
    """Condition numbers by columns, a line for each retention."""
    drawn = table | {"p": [f"p = {retention:g}" for retention in table["retention"]]}
    return lines(
        drawn,
        "columns",
        TEXT,
        "p",
        titles=("columns reconstructed together", "condition number (log scale)"),
        log=(False, True),
        formats=("d", ".0e"),
    )


FIGURE_6 = Figure(
    name="sigmod05-fig6",
    paper=SIGMOD05,
    what="Condition number of the transition matrix, by columns",
    parts=parts,
    conclude=conclude,
)
