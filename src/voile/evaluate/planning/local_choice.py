"""How far counts from locally perturbed rows will be off, before anyone has sent one.

A row counts g = Π_j (1[y_j∈S_j] − (1−p_j)b_j)/p_j towards a conjunction; b_j is the chance that a
replaced value meets the condition on column j. Its mean is 1 for rows that meet all conditions,
else 0. Errors here are of the fraction of rows, and the rows are given: only the coins are random.
Derivations: docs/mathematics, "Promises of local perturbation".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from voile.arrays import Floats
from voile.errors import PromiseError, UsageError, spelled
from voile.options.planning import LocalPlanOptions
from voile.privacy.guarantees import Breach, Dp, SBreach
from voile.privacy.guarantees.theorems import ratio_of
from voile.privacy.local import (
    amplification,
    common_retention,
    epsilon_of,
    equal_shares,
    exp_down,
    retention_for_ratio,
    row_amplification,
    row_retention,
)
from voile.records import Record


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
class ClientsNeeded(Record):
    """How many rows make a fraction's error at most so large, with so small a chance of more."""

    theorem1: int
    """4·ln(2/δ)/(pε)², as the paper has it: true, and eight times too many."""
    hoeffding: int
    """ln(2/δ)/(2(pε)²): enough for every table and every condition on one column."""
    normal: int
    """z²·v/ε² with the exact variance v: right for so many rows that a sum of coins is normal."""


def clients_needed(
    retention: float,
    error: float,
    miss: float,
    mass: float | None = None,
    fraction: float | None = None,
) -> ClientsNeeded:
    """Rows for |f′ − f| ≤ `error` except with probability `miss` (Theorem 1's n, ε and δ).

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
    """Refuse an error or a confidence that is not between 0 and 1."""
    if not 0 < error < 1:
        raise UsageError(
            f"error {error} must lie between 0 and 1",
            hint="it is how far the fraction of rows may be off, e.g. 0.01",
        )
    if not 0 < confidence < 1:
        raise UsageError(f"confidence {confidence:g} must lie between 0 and 1", hint="e.g. 0.95")


# --------------------- from what is requested of local perturbation to the retentions that keep it


NEARLY_ALL = 0.99
"""A retention that is named where no smaller one would do."""
DIGITS = 6
"""Digits of a retention that is recommended; the rest is rounded to the side of what is asked."""


# ---------------------------------------------------------------------- the promise


def check_promise(options: LocalPlanOptions) -> None:
    """Refuse what is no ε and no breach."""
    for epsilon in (options.epsilon, options.epsilon_column):
        if epsilon is not None:
            Dp(epsilon, "swap")
    _ = breach_of(options), breach_of_sets(options)


def breach_of(options: LocalPlanOptions) -> Breach | None:
    """The breach that is to be prevented, where one is named."""
    return None if options.breach is None else Breach(*options.breach)


def breach_of_sets(options: LocalPlanOptions) -> SBreach | None:
    """The same where only sets are protected that replacement makes less likely."""
    if options.breach is None or options.relative is None:
        return None
    return SBreach(options.relative, *options.breach)


def row_ratio(options: LocalPlanOptions) -> Fraction | None:
    """The largest γ of a row that is asked for, where it is one of a row."""
    if options.epsilon is not None:
        return exp_down(options.epsilon)
    if options.breach is not None and options.relative is None:
        return ratio_of(*options.breach)
    return None


# ---------------------------------------------------------------------- the retentions


def choose(options: LocalPlanOptions, sizes: Sequence[int], rows: int | None) -> tuple[float, ...]:
    """A retention for each column: the largest that keep the promise, or the least for the error.

    Replacement is uniform. Refuses what leaves nothing, and an error out of the promise's reach.
    """
    if options.is_by_error:
        return (least_for_error(options, rows),) * len(sizes)
    exact = largest(options, sizes)
    found = exact if options.retention else tuple(shortened(p, math.floor) for p in exact)
    if min(found) <= 0:
        raise PromiseError(
            f"{in_words(options)} leaves nothing of a value: its retention would be 0",
            hint="nearest feasible: any larger ε, or ρ₂ further above ρ₁",
        )
    if options.error is not None and rows is not None:
        check_reach(options, sizes, rows, min(found))
    return found


def alone(options: LocalPlanOptions, sizes: Sequence[int]) -> tuple[float, ...] | None:
    """The largest retention of each column if it were the only one; None for an error's options."""
    if options.is_by_error or options.retention is not None:
        return None
    return tuple(shortened(largest(options, [size])[0], math.floor) for size in sizes)


def largest(options: LocalPlanOptions, sizes: Sequence[int]) -> tuple[float, ...]:
    """The largest retention of each column that the promise allows."""
    masses = [Fraction(1, size) for size in sizes]
    if options.retention is not None:
        return (options.retention,) * len(sizes)
    if options.epsilon_column is not None:
        most = exp_down(options.epsilon_column)
        return tuple(retention_for_ratio(most, mass) for mass in masses)
    if (breach := breach_of_sets(options)) is not None:
        return (against_sets(breach, masses),) * len(sizes)
    most = row_ratio(options) or Fraction(1)
    if options.share == "retention":
        return (common_retention(most, masses),) * len(sizes)
    return equal_shares(most, masses)


def against_sets(breach: SBreach, masses: Sequence[Fraction]) -> float:
    """For sets of rows of any shape; by ε where a small domain allows more."""
    most = ratio_of(breach.rho1, breach.rho2)
    return max(row_retention(breach, len(masses)), common_retention(most, masses))


def least_for_error(options: LocalPlanOptions, rows: int | None) -> float:
    """The least retention with which so many rows reach the error."""
    assert options.error is not None  # noqa: S101
    if rows is None:
        raise UsageError(
            f"{spelled('error', options.error)} alone says no retention without a number of rows",
            hint=f"give {spelled('rows')}, or a promise such as {spelled('epsilon', 3)}",
        )
    found = shortened(retention_needed(rows, options.error, options.confidence), math.ceil)
    if found >= 1:
        feasible = rounded_up(reached_error(rows, NEARLY_ALL, options.confidence))
        raise PromiseError(
            f"{spelled('error', options.error)} leaves nothing to perturb: {rows:,} rows would "
            "have to be "
            "sent as they are",
            hint=f"nearest feasible: {spelled('error', feasible)}, or more rows",
        )
    return found


def check_reach(
    options: LocalPlanOptions, sizes: Sequence[int], rows: int, retention: float
) -> None:
    """Refuse an error that the promise puts out of reach, with what could be had instead."""
    assert options.error is not None  # noqa: S101
    reached = reached_error(rows, retention, options.confidence)
    if reached <= options.error:
        return
    needed = clients_needed(retention, options.error, 1 - options.confidence).normal
    instead = [spelled("rows", needed)]
    if rounded_up(reached) < 1:
        instead.append(spelled("error", rounded_up(reached)))
    raise PromiseError(
        f"{in_words(options)}: with a retention of {retention:g}, {rows:,} rows give "
        f"±{reached:.3g} at {options.confidence:.4g} for a condition on one column, "
        f"not ±{options.error:g}",
        hint=f"nearest feasible: {', or '.join([*instead, weaker(options, sizes, rows)])}",
    )


def weaker(options: LocalPlanOptions, sizes: Sequence[int], rows: int) -> str:
    """The promise, of the requested kind where it has an ε, that allows the requested error."""
    least = least_for_error(options, rows)
    ratios = [amplification(least, Fraction(1, size)) for size in sizes]
    if options.retention is not None or breach_of_sets(options) is not None:
        return spelled("retention", least)
    if options.epsilon_column is not None:
        return spelled("epsilon_column", rounded_up(max(map(epsilon_of, ratios))))
    if options.share == "retention":
        return spelled("epsilon", rounded_up(epsilon_of(row_amplification(ratios))))
    sharing = sum(size > 1 for size in sizes)
    return spelled("epsilon", rounded_up(sharing * max(map(epsilon_of, ratios))))


def rounded_up(number: float) -> float:
    """Three digits, not below."""
    return shortened(number, math.ceil, digits=3)


def shortened(number: float, way: Callable[[Fraction], int], digits: int = DIGITS) -> float:
    """A number of few digits, rounded to one side."""
    if number in (0.0, 1.0) or math.isinf(number):
        return number
    scale = Fraction(10) ** (digits - 1 - math.floor(math.log10(number)))
    return float(way(Fraction(number) * scale) / scale)


def in_words(options: LocalPlanOptions) -> str:
    """What was asked for, as it was given."""
    if options.epsilon is not None:
        return spelled("epsilon", options.epsilon)
    if options.epsilon_column is not None:
        return spelled("epsilon_column", options.epsilon_column)
    if options.breach is not None:
        within = f" {spelled('relative', options.relative)}" if options.relative is not None else ""
        return spelled("breach", options.breach) + within
    if options.retention is not None:
        return spelled("retention", options.retention)
    return spelled("error", options.error)
