"""Quantiles from published tables: the distribution of a value is more terms of the query."""

from __future__ import annotations

import numpy as np

from voile.answering.columns import EstimatedColumn
from voile.answering.conjuncts.asked import asked_of
from voile.answering.conjuncts.estimator import COVERS, factor
from voile.answering.conjuncts.planning import Planner
from voile.answering.conjuncts.source import ConjunctSource
from voile.answering.quantiles import Cumulated, check_values, quantile_column, unknown_quantiles
from voile.arrays import Floats
from voile.query.formula import Quantile
from voile.query.predicate import Term
from voile.query.query import Query

MOST_VALUES = 256


def conjunct_quantiles(query: Query, formula: Quantile, source: ConjunctSource) -> EstimatedColumn:
    """The values are cut as groups are; Z of each value is one more term."""
    asked = asked_of(query, (Term(formula.predicate),), source, more=(formula.value,))
    shape = asked.number.shape
    at = np.broadcast_to(asked.functions.numbers(formula.value), shape)
    counted = np.broadcast_to(asked.payoffs[0], shape) * np.isfinite(at)
    values = np.unique(at[(counted > 0) & (asked.number >= 0)])
    check_values(len(values), MOST_VALUES, formula, "published tables")
    groups = len(asked.groups)
    if not len(values):
        return unknown_quantiles(groups, COVERS)
    below = [counted * (at <= value) for value in values]
    read, cells = asked.cells([counted, *below])
    plan = Planner(source.tables, asked.axes).plan(read, cells)
    found = plan.estimates(cells)
    slopes = np.tile(np.eye(len(values) + 1)[1:], (groups, 1, 1))
    slopes[:, :, 0] = -formula.share
    z = np.einsum("gvt,gt->gv", slopes, found)
    spread = np.sqrt(np.stack([plan.variance(slopes[:, i]) for i in range(len(values))], axis=1))
    here = np.diff(found[:, 1:], axis=1, prepend=0.0)

    def deviation(miss: float) -> Floats:
        times = factor(plan, source.tables.halves, miss)
        return np.where(spread > 0, times * spread + 0.5, 0.0)

    return quantile_column(formula, [Cumulated(values, here, z, deviation)], COVERS)
