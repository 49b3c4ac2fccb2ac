"""Quantiles of perturbed rows, by inverting the reconstructed distribution.

As in voile.answering.quantiles: for each value v, Z(v) = Σ (1[x ≤ v] − share) is a sum over rows,
of which the estimate and its deviation leave a range of values that can be the quantile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from voile.answering.columns import Column, half_width
from voile.answering.local.asked import Asked
from voile.answering.local.estimator import COVERS, deviation
from voile.answering.local.group_errors import Sub
from voile.answering.local.tensors import multiplied, reach, unbiased, varying, widest
from voile.answering.quantiles import point
from voile.arrays import Floats
from voile.errors import QueryError
from voile.query.formula import Quantile
from voile.query.predicate import Term, wording

if TYPE_CHECKING:
    from voile.answering.local.work import LocalWork

MOST_VALUES = 4096


@dataclass(frozen=True)
class Below:
    """For every value v in increasing order: Z(v), and what its error is made of."""

    values: Floats
    counts: Floats
    z: Floats
    variance: Floats
    squares: Floats
    part: Floats
    widest: Floats


def quantile_column(work: LocalWork, formula: Quantile) -> Column:
    """One group at a time: the values are the classes of one more column."""
    if work.source.joint is not None:
        raise QueryError(
            "quantiles are not estimated where whole rows were kept or replaced",
            hint="count what lies below a value: count(*) … where age <= 40",
        )
    asked = work.asked(terms=(Term(formula.predicate),), more=(formula.value,))
    found = [below(asked, formula, group) for group in range(len(work.groups))]
    value = np.array([point(each.counts, each.values, formula) for each in found])
    exact = not any(each.variance.any() for each in found)

    @lru_cache(8)
    def interval(confidence: float) -> tuple[Floats, Floats]:
        if exact:
            return value, value
        ends = np.array([ends_of(each, formula, 1 - confidence) for each in found]).reshape(-1, 2)
        return ends[:, 0], ends[:, 1]

    return Column(value, half_width(interval), interval, COVERS)


def below(asked: Asked, formula: Quantile, group: int) -> Below:
    sub = Sub(asked, group)
    (truth, _), numbers = asked.functions[0], asked.cells.numbers(formula.value)
    counted = np.broadcast_to(truth * np.isfinite(numbers), asked.cells.shape)
    at = np.broadcast_to(numbers, asked.cells.shape)
    values = np.unique(at[(counted > 0) & (asked.listed[1] == group)])
    if len(values) > MOST_VALUES:
        raise QueryError(
            f"a quantile over {len(values):,} values is too much from perturbed rows",
            hint=f"round it to fewer than {MOST_VALUES:,}, as in "
            f"median(round({wording(formula.value)}))",
        )
    sums = np.zeros((6, len(values)))
    for i, value in enumerate(values):
        f = sub.placed(counted * ((at <= value) - formula.share), ())
        sums[0, i] = (sub.estimated * f).sum()
        f = varying(f, sub.axes)
        g = unbiased(f, sub.axes)
        sums[2, i] = (sub.seen * multiplied(g, g, sub.axes)).sum()
        sums[1, i] = sums[2, i] - (sub.estimated * multiplied(f, f, sub.axes)).sum()
        sums[3, i] = reach(g, f, sub.axes)
        sums[5, i] = (sub.seen * widest(g, f, sub.axes)).sum()
        sums[4, i] = (sub.estimated * sub.placed(counted * (at == value), ())).sum()
    return Below(values, sums[4], sums[0], np.maximum(sums[1], 0.0), sums[2], sums[3],
                 np.sqrt(sums[5]))  # fmt: skip


def ends_of(found: Below, formula: Quantile, miss: float) -> tuple[float, float]:
    """The values that can be the quantile (Woodruff's interval)."""
    if not len(found.values):
        return math.nan, math.nan
    share = formula.share
    under, over = (share, 1 - share) if formula.interpolated else (0.0, 0.0)
    off = deviation(found.variance, found.squares, found.part, found.widest, miss)
    possible, too_low = found.z >= -off - under, found.z < off + over
    low = found.values[np.argmax(possible)] if possible.any() else found.values[-1]
    last = np.flatnonzero(too_low)
    high = found.values[min(last[-1] + 1, len(found.values) - 1)] if len(last) else low
    return float(low), float(max(low, high))
