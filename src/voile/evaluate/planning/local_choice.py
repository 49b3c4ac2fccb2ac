"""From what is requested of local perturbation to the retentions that keep it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from voile.errors import PromiseError, UsageError, spelled
from voile.evaluate.planning.local_error import (
    clients_needed,
    reached_error,
    retention_needed,
)
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
