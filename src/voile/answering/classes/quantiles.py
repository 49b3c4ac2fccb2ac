"""Quantiles of what a release leaves open, by inverting the distribution.

As in voile.answering.quantiles: for each value v, Z(v) = Σ (1[x ≤ v] − share) is a sum over rows,
of which the mean, its deviation and its extremes leave ranges of values that can be the quantile.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from voile.answering.classes.estimator import COVERS, bounded, deviation
from voile.answering.columns import Column, Flags, half_width
from voile.answering.quantiles import point
from voile.errors import QueryError
from voile.estimate import Floats
from voile.query.formula import Quantile
from voile.query.predicate import Term, wording

if TYPE_CHECKING:
    from voile.answering.classes.work import ClassWork

MOST_VALUES = 1024


def quantile_column(work: ClassWork, formula: Quantile) -> Column:
    """The values are cut into cells as groups are."""
    cutting = work.cutting((Term(formula.predicate),), more=(formula.value,))
    asked, cells, folding = cutting.asked(told=len(work.query.groups))
    at = np.asarray(folding.matrix(cells.numbers(formula.value)), np.float64)
    counted = asked.payoffs[0] * np.isfinite(at)
    values = np.unique(at[(counted > 0) & (asked.number >= 0)])
    if len(values) > MOST_VALUES:
        raise QueryError(
            f"a quantile over {len(values):,} values is too much from grouped rows",
            hint=f"round it to at most {MOST_VALUES:,}, as in "
            f"median(round({wording(formula.value)}))",
        )
    here = [counted * (at == value) for value in values]
    below = [counted * ((at <= value) - formula.share) for value in values]
    law = work.law_of(asked.with_payoffs([*here, *below]))
    count = len(values)
    found = law.moments([(count + i, count + i) for i in range(count)])
    z = found.means[:, count:]
    variance = np.stack(
        [
            np.minimum.reduce([c[count + i, count + i] for c in found.covariances])
            for i in range(count)
        ],
        axis=1,
    ) if count else z  # fmt: skip
    ends = [law.extremes(one(len(z), 2 * count, count + i)) for i in range(count)]
    least, most = (
        np.stack(side, axis=1) if count else z
        for side in ([e.low for e in ends], [e.high for e in ends])
    )
    under, over = (formula.share, 1 - formula.share) if formula.interpolated else (0.0, 0.0)
    value = np.array([point(counts, values, formula) for counts in found.means[:, :count]])
    part = np.full(z.shape, max(formula.share, 1 - formula.share))

    @lru_cache(8)
    def interval(confidence: float) -> tuple[Floats, Floats]:
        off = deviation(np.maximum(variance, 0.0), part, 1 - confidence)
        return first_where(z + off >= -under, values), first_above(z - off < over, values)

    certain = (
        first_where(most >= -under - ROUNDING, values),
        first_above(least < over - ROUNDING, values),
    )
    return bounded(Column(value, half_width(interval), interval, COVERS), certain)


ROUNDING = 1e-9


def one(groups: int, terms: int, place: int) -> Floats:
    found = np.zeros((groups, terms))
    found[:, place] = 1.0
    return found


def first_where(holds: Flags, values: Floats) -> Floats:
    """The first value of each group for which something holds, or the last of all."""
    if not len(values):
        return np.full(len(holds), math.nan)
    places = np.where(holds.any(axis=1), holds.argmax(axis=1), len(values) - 1)
    return values[places]


def first_above(low: Flags, values: Floats) -> Floats:
    """The value after the last of which something holds, or the last of all."""
    if not len(values):
        return np.full(len(low), math.nan)
    last = len(values) - 1
    after = np.where(low.any(axis=1), last - low[:, ::-1].argmax(axis=1) + 1, 0)
    return values[np.minimum(after, last)]
