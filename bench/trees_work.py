"""Accuracy of trees from perturbed rows of Adult, on its test rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import voile
from voile.mining import ExactCounts, Limits, grow
from voile.mining.report import ReportRows
from voile.schema import Attribute, Range, Schema, Values

SCHEMA = Schema(
    (
        Attribute("age", "integer", Range(17, 90)),
        Attribute("fnlwgt", "integer", Range(10_000, 1_500_000)),
        Attribute("hours_per_week", "integer", Range(1, 99)),
        Attribute("education_num", "integer", Range(1, 16)),
        Attribute("salary", "categorical", Values(("<=50K", ">50K")), ordered=False),
    )
)
TARGET = "salary"


def accuracies(
    *, retention: float, clear: bool, seeds: Sequence[int], methods: Sequence[str]
) -> dict[str, Any]:
    """Means over the seeds, beside the tree of the rows, and the most frequent class."""
    rows = ReportRows.of_table("dataset:adult/test", SCHEMA, TARGET)
    raw = rows.accuracy(
        grow(ExactCounts.of_table("dataset:adult/train", SCHEMA), TARGET, limits=Limits())
    )
    kept = dict.fromkeys(SCHEMA.names, retention) | ({TARGET: 1.0} if clear else {})
    found: dict[str, list[float]] = {method: [] for method in methods}
    taken = []
    for seed in seeds:
        release = voile.perturb("dataset:adult/train", kept, schema=SCHEMA, simulate_seed=seed)
        for method in methods:
            begun = time.perf_counter()
            tree = grow(release, TARGET, limits=Limits(method=method))
            taken.append(time.perf_counter() - begun)
            found[method].append(rows.accuracy(tree).accuracy)
    return {
        "raw": raw.accuracy,
        "majority": raw.majority,
        "accuracy": {method: float(np.mean(values)) for method, values in found.items()},
        "spread": {method: float(np.std(values)) for method, values in found.items()},
        "seconds": min(taken),
    }
