"""What is certain of a formula, from what is certain of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from voile.answering.columns import Certain, EstimatedColumn
from voile.answering.quantiles import bounds
from voile.arrays import Floats
from voile.query.aggregate import Call, Constant, Formula, Total


def combined(formula: Call, parts: Mapping[Formula, Certain], count: int) -> Certain:
    """From the bounds of the arguments.

    Where two of them are open they need not have their ends together, and where one is at its end
    another may be unknown (as an average of no rows). Arithmetic that has no end, as a division by
    what may be 0, is bounded by nothing.
    """
    low, high = bounds(formula, {part: found.sides for part, found in parts.items()}, count)
    given = [parts[arg] for arg in formula.args]
    nothing = np.any([np.isnan(found.low) for found in given], axis=0)
    open_ = np.sum([found.low < found.high for found in given], axis=0)
    totals = all(isinstance(arg, Constant | Total) for arg in formula.args)
    alone = totals or sum(not isinstance(arg, Constant) for arg in formula.args) == 1
    reached = (open_ <= alone) & np.isfinite(low) & np.isfinite(high)
    if formula.name == "abs":  # 0 lies between the ends, and need not be among what can be
        reached &= (given[0].low >= 0) | (given[0].high <= 0)
    tight = all(found.tight for found in given) and bool((reached | nothing).all())
    return Certain(np.where(nothing, np.nan, low), np.where(nothing, np.nan, high), tight)


def bounded(column: EstimatedColumn, certain: Certain) -> EstimatedColumn:
    """The column with its interval within the certain bounds."""
    low, high = certain.sides
    known = low == high

    def within(values: Floats) -> Floats:
        return np.fmin(np.fmax(values, low), high) if len(values) else values

    def interval(confidence: float) -> tuple[Floats, Floats]:
        least, most = column.interval(confidence)
        return within(least), within(most)

    value = np.where(np.isnan(column.value), np.nan, within(column.value))
    stderr = np.where(known & ~np.isnan(column.stderr), 0.0, column.stderr)
    return replace(column, value=value, stderr=stderr, interval=interval, certain=certain)
