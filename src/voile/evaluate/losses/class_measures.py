"""What grouping rows into classes costs, by the measures that are in use.

All need no more than what is shown and the table's own values: which row is in which class is not
asked. Values that are shown as they are cost nothing, so what is about generalized values is 0 for
bucketized rows. Rows that were left out of the release (`left_out`) lost all that there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voile.arrays import Floats
from voile.kinds.blocks import Orders
from voile.recoding.grouping import Shown
from voile.recoding.units import Counts
from voile.schema.hierarchy import Levels


def discernibility(shown: Shown, left_out: int = 0) -> int:
    """Σ over rows of how many rows look the same; a suppressed row looks like any other."""
    rows = shown.histograms.rows
    every = int(rows.sum()) + left_out
    last = np.array(shown.sizes) - 1
    suppressed = ((shown.low == 0) & (shown.high == last)).all(axis=1)
    if shown.recode == "bucketize":
        suppressed[:] = False
    return int((rows * np.where(suppressed, every, rows)).sum()) + left_out * every


def average_class_size(shown: Shown) -> float:
    """Rows for each class."""
    rows = shown.histograms.rows
    return float(rows.sum() / max(1, np.count_nonzero(rows)))


def normalised_class_size(shown: Shown) -> float:
    """C_avg: the average class size in units of the smallest class; 1 is the best."""
    rows = shown.histograms.rows
    return average_class_size(shown) / int(rows[rows > 0].min())


def gen_iloss(shown: Shown, left_out: int = 0) -> float:
    """GenILoss, or NCP: (high − low)/(size − 1), the mean over all cells of the table.

    0 where values are shown as they are, 1 where all are suppressed. A column of one value has
    nothing to lose, and is not counted.
    """
    steps = np.array(shown.sizes) - 1
    wide = (shown.high - shown.low)[:, steps > 0] / steps[steps > 0]
    lost = wide.mean(axis=1) if wide.shape[1] else np.zeros(len(wide))
    return mean_over_rows(shown, lost, left_out)


def precision(shown: Shown, levels: Sequence[Levels], orders: Orders, left_out: int = 0) -> float:
    """Sweeney's Prec: 1 − the mean of level/height over all cells of the table.

    The level of a range is that of the lowest node that has all of it. A column of one value is
    not counted.
    """
    lost = np.zeros(len(shown.low))
    counted = max(1, sum(of.size > 1 for of in levels))
    for j, (of, order) in enumerate(zip(levels, orders, strict=True)):
        if of.size == 1:
            continue
        low, high = shown.low[:, j], shown.high[:, j]
        level = np.full(len(low), of.height)
        for h in range(of.height - 1, -1, -1):
            nodes = of.nodes[h][order]
            runs = np.cumsum(np.concatenate([[False], nodes[1:] != nodes[:-1]]))
            level[runs[low] == runs[high]] = h
        lost += level / of.height
    return 1.0 - mean_over_rows(shown, lost / counted, left_out)


def non_uniform_entropy(shown: Shown, values: Sequence[Counts], left_out: int = 0) -> float:
    """What is still open about values, as a share of what suppressing all of them leaves open.

    Knowing a range E, a value v is open to −ln(n_v/n_E), with n_v the rows of the table that have
    the value and n_E those that have one of the range. values[j] are the n_v of column j, by
    position. 0 where values are shown as they are, 1 where all are suppressed.
    """
    rows = shown.histograms.rows
    if shown.recode == "bucketize":  # a row that was left out counts like any other
        return left_out / max(1, left_out + int(rows.sum()))
    left = whole = 0.0
    for j, count in enumerate(values):
        before = np.concatenate([[0], np.cumsum(count)])
        inside = before[shown.high[:, j] + 1] - before[shown.low[:, j]]
        told, every = times_log(count, count), before[-1:]
        left += times_log(rows, inside) + left_out * times_log(np.ones(1), every) - told
        whole += times_log(every, every) - told
    return left / whole if whole > 0 else 0.0


def times_log(weights: Counts | Floats, numbers: Counts) -> float:
    """Σ w ln x, over x > 0."""
    return float((weights * np.log(np.maximum(numbers, 1))).sum())


def mean_over_rows(shown: Shown, by_class: Floats, left_out: int) -> float:
    """Of what each row lost; 1 for rows that were left out, and 0 for those shown as they are."""
    rows = shown.histograms.rows
    lost = 0.0 if shown.recode == "bucketize" else float((rows * by_class).sum())
    return (lost + left_out) / max(1, int(rows.sum()) + left_out)
