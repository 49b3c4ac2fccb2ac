"""Quantiles of what a release leaves open.

As in voile.answering.quantiles, for each value v Z(v) = Σ (1[x ≤ v] − share) is a sum over rows.
Here its extremes bound the quantile for certain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from voile.answering.certain import bounded
from voile.answering.classes.cells import CellQuery, Cutting
from voile.answering.classes.estimator import deviation
from voile.answering.classes.law import Extremes, OpenSums
from voile.answering.columns import Certain, EstimatedColumn, Flags
from voile.answering.quantiles import (
    check_values,
    estimated_quantile,
    first_above,
    first_where,
    point,
    unknown_quantiles,
)
from voile.arrays import Floats
from voile.query.formula import Quantile

MOST_VALUES = 1024
ROUNDING = 1e-9
Sides = tuple[Floats, Floats]


def class_quantiles(
    formula: Quantile,
    cutting: Cutting,
    law_of: Callable[[CellQuery], OpenSums],
    covers: str,
    told: int,
) -> EstimatedColumn:
    """The quantile of each group; its values are cut into cells as the first `told` groups are."""
    asked, cells, folding = cutting.asked(told=told)
    at = np.asarray(folding.matrix(cells.numbers(formula.value)), np.float64)
    counted = asked.payoffs[0] * np.isfinite(at)
    values = np.unique(at[(counted > 0) & (asked.number >= 0)])
    count, groups = len(values), len(asked.groups)
    check_values(count, MOST_VALUES, formula, "grouped rows")
    if not count:
        column = unknown_quantiles(groups, covers)
        return bounded(column, Certain(column.value, column.value))
    here = [counted * (at == value) for value in values]
    below = [counted * ((at <= value) - formula.share) for value in values]
    summed = counted * np.where(np.isfinite(at), at, 0.0)
    law = law_of(asked.with_payoffs([*here, *below, counted, summed]))
    found = law.moments([(count + i, count + i) for i in range(count)])
    z = found.means[:, count : 2 * count]
    variance = np.stack(
        [
            np.minimum.reduce([c[count + i, count + i] for c in found.covariances])
            for i in range(count)
        ],
        axis=1,
    )
    value = np.array([point(counts, values, formula) for counts in found.means[:, :count]])
    part = np.full(z.shape, max(formula.share, 1 - formula.share))
    one = np.eye(2 * count + 2)
    rows = law.extremes(np.tile(one[2 * count], (groups, 1)))
    places = Places.of(formula, rows)

    @lru_cache(8)
    def interval(confidence: float) -> tuple[Floats, Floats]:
        off = deviation(np.maximum(variance, 0.0), part, 1 - confidence)
        low, high = places.lowest(z + off, values)[0], places.highest(z - off, values)[1]
        return np.fmin(low, value), np.fmax(high, value)

    ends = [law.extremes(np.tile(one[count + i], (groups, 1))) for i in range(count)]
    least, most = np.stack([e.low for e in ends], axis=1), np.stack([e.high for e in ends], axis=1)
    single = law.row_ratios(*(np.tile(one[2 * count + i], (groups, 1)) for i in (1, 0)))
    nothing = rows.high <= 0
    low, high = (
        np.where(nothing, np.nan, np.clip(end, *single))
        for end in (
            places.mixed(places.lowest(most, values), 0.0),
            places.mixed(places.highest(least, values), 1.0),
        )
    )
    exact = rows.tight and all(end.tight for end in ends)
    apart = cutting.source.recode == "generalize"
    alone = apart & (rows.low <= 0) & (low == single[0]) & (high == single[1])
    reached = alone | ((rows.low > 0) & (places.is_one | (apart & places.is_known)))
    tight = bool((nothing | (low == high) | (exact & reached)).all())
    return bounded(estimated_quantile(value, interval, covers), Certain(low, high, tight))


@dataclass(frozen=True, eq=False)
class Places:
    """Which of a group's rows, in the order of their values, a quantile lies between.

    Z(v) reaches `lower` where the row of the first place has a value of at most v, and `upper`
    where that of the second has.
    """

    lower: Floats
    upper: Floats
    share: Floats
    """Of the second value in the quantile."""
    is_known: Flags
    """Whether the number of rows is, and so the places."""
    is_one: Flags
    """Whether both places are the same."""

    @staticmethod
    def of(asked: Quantile, rows: Extremes) -> Places:
        """Of an interpolated one, places that hold for every number of rows unless it is known."""
        zero, share = np.zeros(len(rows.low)), asked.share
        always = np.ones(len(zero), np.bool_)
        if not asked.interpolated:
            return Places(zero, zero, zero, ~always, always)
        known = rows.low == rows.high
        place = share * np.maximum(rows.low - 1, 0.0)
        before, after = np.floor(place + ROUNDING), np.ceil(place - ROUNDING)
        at = share * rows.low - 1
        return Places(
            lower=np.where(known, before - at, -share + 2 * ROUNDING),
            upper=np.where(known, after - at, 1 - share),
            share=np.maximum(place - before, 0.0),
            is_known=known,
            is_one=known & (before == after),
        )

    def lowest(self, z: Floats, values: Floats) -> Sides:
        """The first value of each place at which Z may be large enough."""
        return (
            first_where(z >= self.lower[:, None] - ROUNDING, values),
            first_where(z >= self.upper[:, None] - ROUNDING, values),
        )

    def highest(self, z: Floats, values: Floats) -> Sides:
        """The first value of each place from which on Z must be."""
        return (
            first_above(z < self.lower[:, None] - ROUNDING, values),
            first_above(z < self.upper[:, None] - ROUNDING, values),
        )

    def mixed(self, ends: Sides, otherwise: float) -> Floats:
        """The quantile between two values; `otherwise` is the share where it is not known."""
        first, second = ends
        share = np.where(self.is_known, self.share, otherwise)
        return np.where(first == second, first, first + (second - first) * share)
