"""Quantiles of perturbed rows, from the reconstructed distribution."""

from __future__ import annotations

from functools import partial

import numpy as np

from voile.answering.columns import EstimatedColumn
from voile.answering.local.asked import TensorQuery
from voile.answering.local.estimator import COVERS, deviation
from voile.answering.local.group_errors import GroupTensors
from voile.answering.local.tensors import multiplied, reach, unbiased, varying, widest
from voile.answering.quantiles import Cumulated, check_values, quantile_column
from voile.arrays import Floats
from voile.query.formula import Quantile

MOST_VALUES = 4096


def local_quantiles(asked: TensorQuery, formula: Quantile) -> EstimatedColumn:
    """One group at a time: the values are the classes of one more column."""
    found = [below(asked, formula, group) for group in range(len(asked.listed[0]))]
    exact = not any(variance.any() for _, variance in found)
    return quantile_column(formula, [one for one, _ in found], COVERS, exact=exact)


def below(asked: TensorQuery, formula: Quantile, group: int) -> tuple[Cumulated, Floats]:
    """Z of every value of a group, and the variance of its estimate."""
    sub = GroupTensors(asked, group)
    (truth, _), numbers = asked.functions[0], asked.cells.numbers(formula.value)
    counted = np.broadcast_to(truth * np.isfinite(numbers), asked.cells.shape)
    at = np.broadcast_to(numbers, asked.cells.shape)
    values = np.unique(at[(counted > 0) & (asked.listed[1] == group)])
    check_values(len(values), MOST_VALUES, formula, "perturbed rows")
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
    variance = np.maximum(sums[1], 0.0)
    off = partial(deviation, variance, sums[2], sums[3], np.sqrt(sums[5]))
    return Cumulated(values, sums[4:5], sums[:1], lambda miss: off(miss)[None]), variance
