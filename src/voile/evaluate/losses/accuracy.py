"""How well sensitive values can be told from quasi-identifiers, learning from a release alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voile.kinds.blocks import Told
from voile.recoding.grouping import Shown
from voile.recoding.units import Codes, Counts


def naive_bayes_accuracy(told: Told, cells: Codes, counts: Counts, sizes: Sequence[int]) -> float:
    """The share of the table's rows that naive Bayes, trained on a release, gets right.

    Trained on the estimated counts of each column's values beside each sensitive value, one row
    added to each; negative estimates are 0. `cells` and their `counts` are the table.
    """
    rows = np.maximum(sum(blocks.counts.sum(axis=0) for blocks in told), 0.0)
    with np.errstate(divide="ignore"):
        score = np.tile(np.log(rows), (cells.shape[1], 1))
    for j, size in enumerate(sizes):
        pairs = np.maximum(sum(blocks.by_value(j, size) for blocks in told), 0.0)
        score += np.log((pairs + 1) / (pairs.sum(axis=0) + size))[cells[j]]
    right = np.take_along_axis(counts, np.argmax(score, axis=1)[:, None], axis=1)
    return float(right.sum() / max(1, counts.sum()))


def class_majority_accuracy(shown: Shown, attribute: int = 0) -> float:
    """The share of rows that have the most frequent value of the other rows of their class.

    Each row is left out of its class while it is told. Of values that are equally frequent the
    one that is more frequent in the whole table is told.
    """
    counts = shown.histograms.counts[attribute]
    overall = shown.histograms.overall[attribute]
    rank = np.empty(len(overall), dtype=np.int64)
    rank[np.argsort(-overall, kind="stable")] = np.arange(len(overall))[::-1]
    order = counts * np.int64(len(overall)) + rank  # by count, then by rank
    top = np.argmax(order, axis=1)
    first = np.take_along_axis(order, top[:, None], axis=1)[:, 0]
    others = order.copy()
    np.put_along_axis(others, top[:, None], -1, axis=1)
    right = first - len(overall) > others.max(axis=1)  # still told when one row is left out
    rows = np.take_along_axis(counts, top[:, None], axis=1)[:, 0]
    return float(rows[right].sum() / max(1, counts.sum()))


def majority_accuracy(counts: Counts) -> float:
    """The share of rows that have the table's most frequent value."""
    overall = counts.sum(axis=0)
    return float(overall.max() / max(1, overall.sum()))
