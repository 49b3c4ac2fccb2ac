"""Arithmetic that has quantiles in it: intervals from the intervals of its parts.

A quantile is no sum over rows, so that neither Fieller's interval nor the delta method applies.
Each part gets an interval that misses with its share of the allowed chance; all of them hold at
once with the stated confidence, and whatever is computed from values inside them lies between the
ends found here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from voile.answering.arithmetic import round_to
from voile.answering.columns import APPROXIMATE, VALID, EstimatedColumn, half_width
from voile.arrays import Floats
from voile.query.formula import Call, Formula, Number, Quantile, leaves

Ends = tuple[Floats, Floats]


def has_quantile(formula: Formula) -> bool:
    return any(isinstance(leaf, Quantile) for leaf in leaves(formula))


def mixed_column(
    formula: Formula, value: Floats, column: Callable[[Formula], EstimatedColumn]
) -> EstimatedColumn:
    """The column of a formula, given its values and the columns of its parts."""
    parts: dict[Formula, EstimatedColumn] = {leaf: column(leaf) for leaf in leaves(formula)}

    @lru_cache(8)
    @np.errstate(all="ignore")
    def interval(confidence: float) -> Ends:
        level = 1 - (1 - confidence) / len(parts)
        ends = {leaf: part.interval(level) for leaf, part in parts.items()}
        low, high = bounds(formula, ends, len(value))
        return np.fmin(low, value), np.fmax(high, value)

    stderr = half_width(interval)
    valid = all(part.covers == VALID for part in parts.values())
    return EstimatedColumn(value, stderr, interval, VALID if valid else APPROXIMATE)


def bounds(formula: Formula, ends: Mapping[Formula, Ends], count: int) -> Ends:
    """Between which numbers a formula lies if each of its parts lies between its ends."""
    if formula in ends:
        return ends[formula]
    if isinstance(formula, Number):
        return np.full(count, formula.value), np.full(count, formula.value)
    assert isinstance(formula, Call)  # noqa: S101  (the ends of totals and quantiles are given)
    low, high = CALLS[formula.name](*(bounds(arg, ends, count) for arg in formula.args))
    # What cannot be bounded (∞ − ∞, 0 · ∞) can be anything.
    return np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)


def _corners(compute: Callable[[Floats, Floats], Floats], a: Ends, b: Ends) -> Ends:
    """For what rises or falls in each argument: the extremes are at ends of both."""
    found = np.stack([compute(x, y) for x in a for y in b])
    return found.min(axis=0), found.max(axis=0)


def _divided(a: Ends, b: Ends) -> Ends:
    low, high = _corners(np.divide, a, b)
    through_zero = (b[0] <= 0) & (b[1] >= 0)
    return np.where(through_zero, -np.inf, low), np.where(through_zero, np.inf, high)


def _power(a: Ends, b: Ends) -> Ends:
    low, high = _corners(np.power, a, b)
    unordered = a[0] <= 0
    return np.where(unordered, -np.inf, low), np.where(unordered, np.inf, high)


def _absolute(a: Ends) -> Ends:
    low, high = np.minimum(np.abs(a[0]), np.abs(a[1])), np.maximum(np.abs(a[0]), np.abs(a[1]))
    return np.where((a[0] <= 0) & (a[1] >= 0), 0.0, low), high


def _rounded(a: Ends, digits: Ends) -> Ends:
    places = digits[0][0] if len(digits[0]) else 0
    return round_to(a[0], places), round_to(a[1], places)


def _rising(compute: Callable[[Floats], Floats], least: float) -> Callable[[Ends], Ends]:
    """A function that rises, from where it is defined on."""
    return lambda a: (compute(np.maximum(a[0], least)), compute(np.maximum(a[1], least)))


CALLS: dict[str, Callable[..., Ends]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": lambda a, b: _corners(np.multiply, a, b),
    "/": _divided,
    "pow": _power,
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _absolute,
    "sqrt": _rising(np.sqrt, 0.0),
    "ln": _rising(np.log, 0.0),
    "exp": _rising(np.exp, -np.inf),
    "round": _rounded,
    "nullif": lambda a, _: a,
}
