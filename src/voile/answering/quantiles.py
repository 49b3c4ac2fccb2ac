"""Quantiles by inverting the estimated distribution.

For each value v that the domain allows, Z(v) = Σ (1[x ≤ v] − p) is a sum over rows, negative
below the p-quantile and not negative from it on. Estimated Z's that are off by no more than their
bound leave a range of values that can be the quantile (Woodruff's interval): at the quantile itself
Z ≥ 0, just below it Z < 0, and each is misjudged with a chance of at most half the allowed one.

An interpolated quantile lies between the rows at ⌊p(n−1)⌋ and ⌈p(n−1)⌉, counted from 0: at the
first of the two Z > −p, below the second Z < 1 − p.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from voile.answering.columns import EstimatedColumn, Flags, Intervals, half_width
from voile.arrays import Floats
from voile.errors import QueryError
from voile.query.formula import Quantile
from voile.query.predicate import wording


@dataclass(frozen=True, eq=False)
class Cumulated:
    """For some groups and each value in increasing order: rows, Z, and how far Z may be off."""

    values: Floats
    counts: Floats
    """(groups, values): estimates of the rows that have the value."""
    z: Floats
    """(groups, values)"""
    deviation: Callable[[float], Floats]
    """(groups, values), by the chance to miss."""


def quantile_column(
    asked: Quantile, found: Sequence[Cumulated], covers: str, *, exact: bool = False
) -> EstimatedColumn:
    """The quantile of each group, the groups one after the other; `exact`: Z is the truth."""
    value = np.array(
        [point(counts, some.values, asked) for some in found for counts in some.counts]
    )

    @lru_cache(8)
    def interval(confidence: float) -> tuple[Floats, Floats]:
        if exact or not found:
            return value, value
        ends = [woodruff(some, asked, 1 - confidence) for some in found]
        low, high = (np.concatenate(sides) for sides in zip(*ends, strict=True))
        return low, high

    return estimated_quantile(value, interval, covers)


def estimated_quantile(value: Floats, interval: Intervals, covers: str) -> EstimatedColumn:
    """A quantile has no variance of its own: its standard error is that of a normal interval."""
    return EstimatedColumn(value, half_width(interval), interval, covers)


def unknown_quantiles(groups: int, covers: str) -> EstimatedColumn:
    """Of groups in which no row can have a value."""
    unknown = np.full(groups, np.nan)
    return EstimatedColumn(unknown, unknown, lambda _: (unknown, unknown), covers)


def check_values(number: int, most: int, asked: Quantile, source: str) -> None:
    """Where every value costs work: refuse more than `most`."""
    if number > most:
        raise QueryError(
            f"a quantile over {number:,} values is too much from {source}",
            hint=f"round it to at most {most:,}, as in median(round({wording(asked.value)}))",
        )


@np.errstate(all="ignore")
def woodruff(found: Cumulated, asked: Quantile, miss: float) -> tuple[Floats, Floats]:
    """The values that can be the quantile, from the first to the last, for each group."""
    if not len(found.values):
        unknown = np.full(len(found.z), np.nan)
        return unknown, unknown
    share = asked.share
    under, over = (share, 1 - share) if asked.interpolated else (0.0, 0.0)
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


def point(counts: Floats, values: Floats, asked: Quantile) -> float:
    """The quantile of estimated counts, after the least change that makes them a distribution."""
    if not len(values):
        return math.nan
    cumulative = increasing(np.cumsum(counts))
    total = cumulative[-1]
    if total <= 0:
        return math.nan
    if not asked.interpolated:
        return float(
            values[min(np.searchsorted(cumulative, asked.share * total - 1e-9), len(values) - 1)]
        )
    place = asked.share * max(total - 1, 0.0)
    below, above = math.floor(place + 1e-9), math.ceil(place - 1e-9)
    first, second = (
        values[min(np.searchsorted(cumulative, at + 1 - 1e-9), len(values) - 1)]
        for at in (below, above)
    )
    return float(first + (second - first) * max(0.0, place - below))


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
