"""Errors of all selections on Adult with even and with shaped noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from bench.adult import NAME
from voile.arrays import Floats
from voile.engines import connect
from voile.engines.encode import codes
from voile.evaluate.workload import Selections, selection_counts
from voile.mechanisms import AlphaBeta, Shaped
from voile.publishing import publish
from voile.release import ViewRelease
from voile.schema import TupleIndex

LIMITS = (0, 1, 100, 500, 1000)


def errors(*, seeds: Sequence[int], **options: Any) -> dict[str, Any]:
    """Mean |error| over the selections with at least so many rows, over the seeds."""
    table = connect(NAME)
    found = []
    for seed in seeds:
        release = publish(table, simulate_seed=seed, **options)
        schema = release.schema
        members = TupleIndex(schema.sizes).decode(table.keys(schema, drop_nulls=False))
        true = selection_counts(members, schema.sizes)
        wrong = np.abs(estimates(release, true) - true.counts)
        found.append([float(wrong[true.counts >= limit].mean()) for limit in LIMITS])
    return {
        "queries": len(true),
        "rows": release.manifest.rows,
        "prior": release.promise.prior,
        "errors": dict(zip(map(str, LIMITS), np.mean(found, axis=0).tolist(), strict=True)),
    }


def estimates(release: ViewRelease, true: Selections) -> Floats:
    """Every selection's estimate, as `ViewRelease.query` makes it, all at once."""
    mechanism, schema = release.mechanism, release.schema
    view = release.to_arrow()
    seen = [codes(view.column(a.name).combine_chunks(), a) for a in schema]
    if isinstance(mechanism, AlphaBeta):
        counts = selection_counts(seen, schema.sizes).counts
        return np.asarray((counts - mechanism.noise_mean * true.domain) / mechanism.excess)
    assert isinstance(mechanism, Shaped)
    score, _ = mechanism.scores_above()
    every = [np.concatenate(pair) for pair in zip(seen, mechanism.above_cap, strict=True)]
    weights = np.concatenate([np.ones(len(seen[0])), score])
    scored = selection_counts(every, schema.sizes, weights=weights).counts
    chances = mechanism.prior.chances(schema.sizes)
    size = float(math.prod(schema.sizes))
    expected = [
        mechanism.floor * size / math.prod(schema.sizes[j] for j in subset)
        + mechanism.strength * reduce(np.multiply.outer, [chances[j] for j in subset]).ravel()
        for subset in true.subsets
    ]
    return np.asarray((scored - np.concatenate(expected)) / mechanism.retention)
