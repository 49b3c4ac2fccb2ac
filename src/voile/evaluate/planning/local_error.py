"""How far counts from locally perturbed rows will be off, before anyone has sent one.

A row counts g = Π_j (1[y_j∈S_j] − (1−p_j)b_j)/p_j towards a conjunction; b_j is the chance that a
replaced value meets the condition on column j. Its mean is 1 for rows that meet all conditions,
else 0. Errors here are of the fraction of rows, and the rows are given: only the coins are random.
Derivations: docs/mathematics, "Promises of local perturbation".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.errors import UsageError


@dataclass(frozen=True)
class Condition:
    """A condition on one column: its retention p, and the mass b of the values that meet it."""

    retention: float
    mass: float

    @property
    def square_if_met(self) -> float:
        """E[g²] of a row that meets it."""
        met = self.retention + (1 - self.retention) * self.mass
        return 1 + met * (1 - met) / self.retention**2

    @property
    def square_if_not(self) -> float:
        """E[g²] of a row that does not."""
        met = (1 - self.retention) * self.mass
        return met * (1 - met) / self.retention**2


def count_variance(condition: Condition, fraction: float) -> float:
    """n·Var of one condition's fraction: t(1−t)/p² − f(1−f), t = pf + (1−p)b."""
    seen = condition.retention * fraction + (1 - condition.retention) * condition.mass
    return seen * (1 - seen) / condition.retention**2 - fraction * (1 - fraction)


def conjunction_variance(conditions: Sequence[Condition], fractions: Floats) -> float:
    """n·Var of a conjunction in a table whose fractions of rows by truth values are known.

    One axis of (not met, met) for each condition.
    """
    total: Any = fractions
    for condition in conditions:
        squares = np.array([condition.square_if_not, condition.square_if_met])
        total = np.tensordot(squares, total, axes=(0, 0))
    return float(total) - float(fractions[(1,) * len(conditions)])


def largest_variance(conditions: Sequence[Condition], fraction: float | None = None) -> float:
    """n·Var of a conjunction in the worst table, of which this fraction meets it, or any.

    Rows that meet all conditions have the variance Π E[g²] − 1, the others Π E[g²], largest at
    some pattern of what they meet; the table holds so many of the one and the rest of the other.
    """
    met = math.prod(condition.square_if_met for condition in conditions)
    among_others = met * max(
        condition.square_if_not / condition.square_if_met for condition in conditions
    )
    larger = math.prod(max(c.square_if_met, c.square_if_not) for c in conditions)
    others = max(among_others, larger if larger > met else 0.0)
    if fraction is None:
        return max(met - 1, others)
    return fraction * (met - 1) + (1 - fraction) * others


def worst_variance(retention: float) -> float:
    """n·Var of one condition, whatever its mass and the table: 1/(4p²), or (1−p)/p above 1/2."""
    return 1 / (4 * retention**2) if retention <= 0.5 else (1 - retention) / retention


def worst_joint_variance(retentions: Sequence[float]) -> float:
    """n·Var of a conjunction, one condition on each such column, whatever these and the table.

    Π(1 + v_j) − 1 with v_j of each column as in `worst_variance`: all rows meet all conditions.
    """
    total = 0.0
    for retention in retentions:
        alone = worst_variance(retention)
        total += alone + total * alone
    return total


def identity_variance(retention: float, fraction: float) -> float:
    """n·Var of one condition's plain count after identity replacement; swapping has none."""
    return fraction * (1 - fraction) * (1 - retention**2)


# ---------------------------------------------------------------------- how many clients


@dataclass(frozen=True)
class ClientsNeeded:
    """How many rows make a fraction's error at most so large, with so small a chance of more."""

    theorem1: int
    """4·ln(2/δ)/(pε)², as the paper has it: true, and eight times too many."""
    hoeffding: int
    """ln(2/δ)/(2(pε)²): enough for every table and every condition on one column."""
    normal: int
    """z²·v/ε² with the exact variance v: right for so many rows that a sum of coins is normal."""

    def to_dict(self) -> dict[str, int]:
        return {"theorem1": self.theorem1, "hoeffding": self.hoeffding, "normal": self.normal}


def clients_needed(
    retention: float,
    error: float,
    miss: float,
    mass: float | None = None,
    fraction: float | None = None,
) -> ClientsNeeded:
    """Rows for |f′ − f| ≤ `error` but for a chance of `miss` (Theorem 1's n, ε and δ).

    f is the fraction that meets a condition on one column. The normal number is for the condition's
    mass and for f, where they are known, else for the worst.
    """
    check_error(error, 1 - miss)
    if not 0 < retention <= 1:
        raise UsageError(f"retention {retention} must lie in (0, 1]", hint="e.g. 0.3")
    return ClientsNeeded(
        theorem1=math.ceil(4 * math.log(2 / miss) / (retention * error) ** 2),
        hoeffding=rows_by_hoeffding([retention], error, 1 - miss),
        normal=rows_if_normal(_variance(retention, mass, fraction), error, 1 - miss),
    )


def rows_by_hoeffding(retentions: Sequence[float], error: float, confidence: float) -> int:
    """Enough for any conditions on columns of these retentions and any table.

    What a row counts towards their conjunction has a range of at most Π 1/p_j.
    """
    scale = (math.prod(retentions) * error) ** 2
    return math.ceil(math.log(2 / (1 - confidence)) / (2 * scale))


def rows_if_normal(variance: float, error: float, confidence: float) -> int:
    """z²·v/ε²; `variance` is n·Var of the fraction."""
    return max(1, math.ceil(deviations(confidence) ** 2 * variance / error**2))


def _variance(retention: float, mass: float | None, fraction: float | None) -> float:
    if mass is None:
        return worst_variance(retention)
    condition = Condition(retention, mass)
    if fraction is None:  # linear in f: the worst is at an end
        return max(count_variance(condition, 0.0), count_variance(condition, 1.0))
    return count_variance(condition, fraction)


def retention_needed(rows: int, error: float, confidence: float) -> float:
    """The least retention with which so many rows give that error, for a condition on one column.

    z²·v(p) ≤ n·ε² with v as in `worst_variance`.
    """
    check_error(error, confidence)
    z = deviations(confidence)
    small = z / (2 * error * math.sqrt(rows))
    return small if small <= 0.5 else z**2 / (z**2 + rows * error**2)


def reached_error(rows: int, retention: float, confidence: float) -> float:
    """The error that is not exceeded with this confidence, for any condition on one column."""
    return deviations(confidence) * math.sqrt(worst_variance(retention) / rows)


def deviations(confidence: float) -> float:
    """z: a normal variable is within so many standard deviations with this probability."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def check_error(error: float, confidence: float) -> None:
    if not 0 < error < 1:
        raise UsageError(
            f"error {error} must lie between 0 and 1",
            hint="it is how far the fraction of rows may be off, e.g. 0.01",
        )
    if not 0 < confidence < 1:
        raise UsageError(f"confidence {confidence:g} must lie between 0 and 1", hint="e.g. 0.95")
