"""Quantiles by inverting the estimated distribution.

For each value v that the domain allows, Z(v) = Σ (1[x ≤ v] − p) is a sum over rows, negative
below the p-quantile and not negative from it on. Estimated Z's that are off by no more than their
bound leave a range of values that can be the quantile (Woodruff's interval): at the quantile itself
Z ≥ 0, just below it Z < 0, and each is misjudged with at most half the allowed probability.

An interpolated quantile lies between the rows at ⌊p(n−1)⌋ and ⌈p(n−1)⌉, counted from 0: at the
first of the two Z > −p, below the second Z < 1 − p.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from voile.answering.arithmetic import round_to
from voile.answering.columns import (
    APPROXIMATE,
    NORMAL,
    VALID,
    EstimatedColumn,
    Flags,
    Intervals,
    half_width,
)
from voile.arrays import Floats
from voile.errors import QueryError
from voile.query.aggregate import Call, Constant, Formula, Quantile, leaves
from voile.query.predicate import wording


@dataclass(frozen=True, eq=False)
class CumulativeCounts:
    """For some groups and each value in increasing order: rows, Z, and how far Z may be off."""

    values: Floats
    counts: Floats
    """(groups, values): estimates of the rows that have the value."""
    z: Floats
    """(groups, values)"""
    deviation: Callable[[float], Floats]
    """(groups, values), by the chance to miss."""


def quantile_column(
    wanted: Quantile, found: Sequence[CumulativeCounts], covers: str, *, exact: bool = False
) -> EstimatedColumn:
    """The quantile of each group, the groups one after the other; `exact`: Z is the truth."""
    value = np.array(
        [point(counts, some.values, wanted) for some in found for counts in some.counts]
    )

    at_middles = np.array(
        [
            point(counts, some.values, replace(wanted, spans=()))
            for some in found
            for counts in some.counts
        ]
    )

    @lru_cache(8)
    def interval(confidence: float) -> tuple[Floats, Floats]:
        if exact or not found:
            return spanned(wanted, at_middles, at_middles)
        ends = [woodruff(some, wanted, 1 - confidence) for some in found]
        low, high = (np.concatenate(sides) for sides in zip(*ends, strict=True))
        return spanned(wanted, low, high)

    return estimated_quantile(value, interval, covers)


def spanned(wanted: Quantile, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Ends that are middles of bins, moved to the lower and the upper ends of those bins.

    An interpolated quantile between two of them is from the first one's to the second one's.
    """
    if not wanted.spans:
        return low, high
    values = np.array([span.value for span in wanted.spans])
    last = len(values) - 1
    first = np.clip(np.searchsorted(values, low, side="right") - 1, 0, last)
    second = np.clip(np.searchsorted(values, high, side="left"), 0, last)
    least = np.array([span.low for span in wanted.spans])[first]
    most = np.array([span.high for span in wanted.spans])[second]
    return np.where(np.isnan(low), np.nan, least), np.where(np.isnan(high), np.nan, most)


def estimated_quantile(value: Floats, interval: Intervals, covers: str) -> EstimatedColumn:
    """A quantile has no variance of its own: its standard error is that of a normal interval."""
    return EstimatedColumn(value, half_width(interval), interval, covers)


def unknown_quantiles(groups: int, covers: str) -> EstimatedColumn:
    """Of groups in which no row can have a value."""
    unknown = np.full(groups, np.nan)
    return EstimatedColumn(unknown, unknown, lambda _: (unknown, unknown), covers)


def check_values(number: int, most: int, wanted: Quantile, source: str) -> None:
    """Where every value costs work: refuse more than `most`."""
    if number > most:
        raise QueryError(
            f"a quantile over {number:,} values is too much from {source}",
            hint=f"round it to at most {most:,}, as in median(round({wording(wanted.value)}))",
        )


@np.errstate(all="ignore")
def woodruff(found: CumulativeCounts, wanted: Quantile, miss: float) -> tuple[Floats, Floats]:
    """The values that can be the quantile, from the first to the last, for each group."""
    if not len(found.values):
        unknown = np.full(len(found.z), np.nan)
        return unknown, unknown
    share = wanted.share
    under, over = (share, 1 - share) if wanted.interpolated else (0.0, 0.0)
    off = found.deviation(miss)
    low = first_where(found.z >= -off - under, found.values)
    return low, np.maximum(low, first_above(found.z < off + over, found.values))


def first_where(holds: Flags, values: Floats) -> Floats:
    """The first value of each group for which something holds, or the last of all."""
    places = np.where(holds.any(axis=1), holds.argmax(axis=1), len(values) - 1)
    return values[places]


def first_above(low: Flags, values: Floats) -> Floats:
    """The value after the last of which something holds, or the last of all."""
    last = len(values) - 1
    after = np.where(low.any(axis=1), last - low[:, ::-1].argmax(axis=1) + 1, 0)
    return values[np.minimum(after, last)]


def point(counts: Floats, values: Floats, wanted: Quantile) -> float:
    """The quantile of estimated counts, after the least change that makes them a distribution."""
    if not len(values):
        return math.nan
    cumulative = increasing(np.cumsum(counts))
    total = cumulative[-1]
    if total <= 0:
        return math.nan
    if wanted.spans:
        return within_span(cumulative, values, wanted)
    if not wanted.interpolated:
        return float(
            values[min(np.searchsorted(cumulative, wanted.share * total - 1e-9), len(values) - 1)]
        )
    place = wanted.share * max(total - 1, 0.0)
    below, above = math.floor(place + 1e-9), math.ceil(place - 1e-9)
    first, second = (
        values[min(np.searchsorted(cumulative, at + 1 - 1e-9), len(values) - 1)]
        for at in (below, above)
    )
    return float(first + (second - first) * max(0.0, place - below))


def within_span(cumulative: Floats, values: Floats, wanted: Quantile) -> float:
    """The quantile of numbers that are known by bins, interpolated within its bin."""
    place = wanted.share * cumulative[-1]
    at = min(int(np.searchsorted(cumulative, place - 1e-9)), len(values) - 1)
    before = cumulative[at - 1] if at else 0.0
    share = (place - before) / max(cumulative[at] - before, 1e-300)
    spans = {span.value: span.knots for span in wanted.spans}
    knots = spans.get(float(values[at]), (float(values[at]),))
    return float(np.interp(share, np.linspace(0, 1, len(knots)), knots))


def increasing(sums: Floats) -> Floats:
    """The nearest non-decreasing sequence that starts at 0 or more (pool adjacent violators)."""
    means: list[float] = []
    sizes: list[int] = []
    for value in sums.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2:] = [(means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size]
            sizes[-2:] = [size]
    pooled: Floats = np.maximum(np.repeat(means, sizes), 0.0)
    return pooled


# ----------------------------------------------------------------------
# arithmetic that has quantiles in it: intervals from the intervals of its parts
# A quantile is no sum over rows, so that neither Fieller's interval nor the delta method applies.
# Each part gets an interval that misses with its share of the allowed chance; all of them hold at
# once with the stated confidence, and whatever is computed from values inside them lies between the
# ends found here.


Ends = tuple[Floats, Floats]


def has_quantile(formula: Formula) -> bool:
    """Whether a formula has a quantile in it."""
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
    stated = {part.covers for part in parts.values()}
    covers = next((c for c in (VALID, NORMAL) if stated <= {VALID, c}), APPROXIMATE)
    return EstimatedColumn(value, stderr, interval, covers)


def bounds(formula: Formula, ends: Mapping[Formula, Ends], count: int) -> Ends:
    """Between which numbers a formula lies if each of its parts lies between its ends."""
    if formula in ends:
        return ends[formula]
    if isinstance(formula, Constant):
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
