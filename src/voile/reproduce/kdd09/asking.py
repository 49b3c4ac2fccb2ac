"""How wrong random counts are answered from a release, as in section 5.2."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np

from voile.evaluate.losses import Queries, relative_error, workload
from voile.reproduce.figure import Part, Run
from voile.reproduce.kdd09.study import BUCKETIZED, GENERALIZED, Points, classes_of, subject

DIMENSION, SELECTIVITY = 4, 0.05
QUERIES, QUICK_QUERIES = 1000, 250
BOTH = (GENERALIZED, BUCKETIZED)


@lru_cache(maxsize=4)
def asked(dimension: int, selectivity: float, seed: int, queries: int) -> tuple[Queries, Any]:
    of = subject()
    return workload(
        of.told, of.units.sizes, dimension=dimension, selectivity=selectivity, number=queries,
        seed=seed,
    )  # fmt: skip


def errors(
    releases: Sequence[Mapping[str, Any]],
    dimension: int,
    selectivity: float,
    seed: int,
    queries: int,
    recodes: Sequence[str],
) -> dict[str, Any]:
    """The average relative error in per cent of each release, by how it is shown.

    `selectivity` is the share of the domain that a query asks for, as in Anatomy: of an attribute A
    it names ⌈|A|·sel^(1/(qd+1))⌉ values.
    """
    drawn, counts = asked(dimension, selectivity, seed, queries)
    return {
        "errors": [
            {s.recode: 100 * relative_error(s.told, drawn, counts)
             for s in classes_of(json.dumps(dict(of))) if s.recode in recodes}
            for of in releases
        ],
        "rows": float(np.median(counts)),
        "queries": drawn.number,
    }  # fmt: skip


def regions(dimensions: Sequence[int]) -> list[float]:
    """By dimension: the share of the domain that a query names, on average over its columns."""
    of, found = subject(), []
    queries, _ = asked(DIMENSION, SELECTIVITY, 1, 1)
    values = queries.sensitive.shape[1]
    for dimension in dimensions:
        each = SELECTIVITY ** (1 / (dimension + 1))
        shares = [math.ceil(size * each) / size for size in (*of.units.sizes, values)]
        several = [math.prod(some) for some in combinations(shares[:-1], dimension)]
        found.append(fmean(several) * shares[-1])
    return found


def part(
    run: Run,
    releases: Sequence[Mapping[str, Any]],
    seed: int,
    dimension: int = DIMENSION,
    selectivity: float = SELECTIVITY,
    recodes: Sequence[str] = BOTH,
) -> Part:
    number = QUICK_QUERIES if run.quick else QUERIES
    return Part(errors, {
        "releases": [dict(of) for of in releases], "dimension": dimension,
        "selectivity": selectivity, "seed": seed, "queries": number,
        "recodes": list(recodes),
    })  # fmt: skip


def with_errors(points: Points, results: Sequence[Any], recode: str) -> Points:
    """Releases in the order that was asked for, each with its errors over the seeds."""
    found = []
    for i, point in enumerate(points):
        values = [result["errors"][i][recode] for result in results]
        found.append(point | {"errors": values, "error": fmean(values)})
    return found
