"""Quantiles from published tables, by inverting the distribution.

As in voile.answering.quantiles: for each value v, Z(v) = Σ (1[x ≤ v] − share) is a sum over rows,
of which the estimate and its deviation leave a range of values that can be the quantile.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from voile.answering.columns import Column, half_width
from voile.answering.conjuncts.asking import asked_of
from voile.answering.conjuncts.estimator import COVERS, factor
from voile.answering.conjuncts.planning import Planner
from voile.answering.conjuncts.source import ConjunctSource
from voile.answering.quantiles import point
from voile.arrays import Floats
from voile.errors import QueryError
from voile.query.formula import Quantile
from voile.query.predicate import Term, wording
from voile.query.query import Query

MOST_VALUES = 256


def quantile_column(query: Query, formula: Quantile, source: ConjunctSource) -> Column:
    """The values are cut as groups are; Z of each value is one more term."""
    asked = asked_of(query, (Term(formula.predicate),), source, more=(formula.value,))
    shape = asked.number.shape
    at = np.broadcast_to(asked.functions.numbers(formula.value), shape)
    counted = np.broadcast_to(asked.payoffs[0], shape) * np.isfinite(at)
    values = np.unique(at[(counted > 0) & (asked.number >= 0)])
    if len(values) > MOST_VALUES:
        raise QueryError(
            f"a quantile over {len(values):,} values is too much from published tables",
            hint=f"round it to at most {MOST_VALUES:,}, as in "
            f"median(round({wording(formula.value)}))",
        )
    groups = len(asked.groups)
    if not len(values):
        unknown = np.full(groups, np.nan)
        return Column(unknown, unknown, lambda _: (unknown, unknown), COVERS)
    below = [counted * (at <= value) for value in values]
    read, cells = asked.cells([counted, *below])
    plan = Planner(source.tables, asked.axes).plan(read, cells)
    found = plan.estimates(cells)
    slopes = np.tile(np.eye(len(values) + 1)[1:], (groups, 1, 1))
    slopes[:, :, 0] = -formula.share
    z = np.einsum("gvt,gt->gv", slopes, found)
    spread = np.sqrt(np.stack([plan.variance(slopes[:, i]) for i in range(len(values))], axis=1))
    here = np.diff(found[:, 1:], axis=1, prepend=0.0)
    value = np.array([point(counts, values, formula) for counts in here])

    @lru_cache(8)
    def interval(confidence: float) -> tuple[Floats, Floats]:
        times = factor(plan, source.tables.halves, 1 - confidence)
        off = np.where(spread > 0, times * spread + 0.5, 0.0)
        return ends(z, off, values, formula)

    return Column(value, half_width(interval), interval, COVERS)


def ends(z: Floats, off: Floats, values: Floats, formula: Quantile) -> tuple[Floats, Floats]:
    """The values that can be the quantile (Woodruff's interval), for each group."""
    share, last = formula.share, len(values) - 1
    under, over = (share, 1 - share) if formula.interpolated else (0.0, 0.0)
    possible, too_low = z >= -off - under, z < off + over
    low = np.where(possible.any(axis=1), possible.argmax(axis=1), last)
    after = np.where(too_low.any(axis=1), last - too_low[:, ::-1].argmax(axis=1) + 1, 0)
    high = np.maximum(low, np.minimum(after, last))
    return values[low], values[high]
