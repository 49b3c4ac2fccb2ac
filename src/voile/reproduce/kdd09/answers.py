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
from scipy.stats import spearmanr

from voile.evaluate.losses import Queries, relative_error, workload
from voile.reproduce import look
from voile.reproduce.figure import Figure, Finding, Part, Run
from voile.reproduce.kdd09 import study
from voile.reproduce.kdd09.study import (
    BUCKETIZED,
    CLOSENESS,
    GENERALIZED,
    K_ANONYMITY,
    REQUIREMENTS,
    Points,
    as_columns,
    classes_of,
    curves_chart,
    subject,
    values,
)
from voile.reproduce.papers import KDD09
from voile.reproduce.verdict import Check, Claim, Number, Sample

DIMENSION, SELECTIVITY = 4, 0.05
QUERIES, QUICK_QUERIES = 1000, 250
BOTH = (GENERALIZED, BUCKETIZED)


@lru_cache(maxsize=4)
def drawn_queries(
    dimension: int, selectivity: float, seed: int, queries: int
) -> tuple[Queries, Any]:
    """Random queries of this size, and their true counts."""
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

    `selectivity` is the share of the domain that a query covers, as in Anatomy: of an attribute A
    it names ⌈|A|·sel^(1/(qd+1))⌉ values.
    """
    drawn, counts = drawn_queries(dimension, selectivity, seed, queries)
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
    """The share of the domain that a query covers on average, by dimension."""
    of, found = subject(), []
    queries, _ = drawn_queries(DIMENSION, SELECTIVITY, 1, 1)
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
    """The errors of these releases on the queries of one seed."""
    number = QUICK_QUERIES if run.quick else QUERIES
    return Part(errors, {
        "releases": [dict(of) for of in releases], "dimension": dimension,
        "selectivity": selectivity, "seed": seed, "queries": number,
        "recodes": list(recodes),
    })  # fmt: skip


def with_errors(points: Points, results: Sequence[Any], recode: str) -> Points:
    """Releases in the order of `points`, each with its errors over the seeds."""
    found = []
    for i, point in enumerate(points):
        values = [result["errors"][i][recode] for result in results]
        found.append(point | {"errors": values, "error": fmean(values)})
    return found


# ---------- figure 3(a): the average relative error of counts against P_loss, of four requirements


E_TITLE = "average relative error of a count, in per cent"
GENERALIZED_ERROR = 347.0
"""At k = 5000, as an independent implementation found with queries of its own."""
ALIKE = 0.9


def parts(run: Run) -> list[Part]:
    """The losses of all releases, and the errors of each curve by seed."""
    small = [{"t": t} for t in study.SMALL_T]
    curves = [*REQUIREMENTS.values(), small]
    return [
        *study.curve_parts(),
        *(part(run, releases, seed) for releases in curves for seed in run.seeds(4, 1)),
        *(part(run, [{"k": 5000}], seed, recodes=[GENERALIZED]) for seed in run.seeds(20, 4)),
    ]


def conclude(run: Run, results: Sequence[Any]) -> Finding:
    """Compare the errors of the four requirements at equal P_loss."""
    named, small = study.curves(results)
    several = len(run.seeds(4, 1))
    answered = [
        results[6 + i * several : 6 + (i + 1) * several] for i in range(len(REQUIREMENTS) + 1)
    ]
    buckets, general = (
        {name: with_errors(study.shown_as(points, recode), found, recode)
         for (name, points), found in zip(named.items(), answered, strict=False)}
        for recode in (BUCKETIZED, GENERALIZED)
    )  # fmt: skip
    smaller = with_errors(study.shown_as(small, BUCKETIZED), answered[-1], BUCKETIZED)
    line = [*smaller, *buckets[CLOSENESS]]
    columns = as_columns(buckets, ("value", "p_loss", "u_loss", "error"))
    number = answered[0][0]["queries"]
    boxed = [result["errors"][0][GENERALIZED] for result in results[-len(run.seeds(20, 4)) :]]
    return Finding(
        checks=(*pattern(buckets, line), *method(buckets, general, boxed)),
        tables={"": columns},
        picture=lambda: drawn(columns, buckets),
        title="Counts are answered best from t-closeness, as U_loss said",
        subtitle=f"Adult, Mondrian, bucketized; {several} times {number:,} queries about four "
        "quasi-identifiers and occupation, selectivity 0.05",
    )


def pattern(buckets: dict[str, Points], line: Points) -> list[Check]:
    """Whether errors rank the requirements as U_loss does."""
    others = [point for name, points in buckets.items() if name != CLOSENESS for point in points]
    times = study.times_the_line(others, line, "error")
    above = sum(t > 1 for t in times)
    every = [point for points in buckets.values() for point in points]
    alike = float(spearmanr([p["u_loss"] for p in every], [p["error"] for p in every]).statistic)
    return [
        Claim(
            "a similar pattern as in Figure 2(a)",
            "the figure shows a similar pattern as that in Figure 2(a)",
            f"{above} of {len(times)} releases of the others lie above the line of t-closeness",
            above == len(times),
        ),
        Claim(
            "U_loss tells of queries",
            "U_loss captures the utility of the anonymized data in aggregate query answering",
            f"rank correlation of U_loss and the error {alike:.3f} over {len(every)} releases",
            alike >= ALIKE,
        ),
    ]


def method(
    buckets: dict[str, Points], general: dict[str, Points], boxed: Sequence[float]
) -> list[Check]:
    """Whether bucketization answers better; the paper does not say which one is drawn."""
    shown = study.at(buckets[K_ANONYMITY], 5000, BUCKETIZED)
    pairs = [
        (b["error"], g["error"])
        for name in buckets
        for b, g in zip(buckets[name], general[name], strict=True)
    ]
    lower = sum(b < g for b, g in pairs)
    return [
        Number("error of k = 5000, generalized, in per cent", None, Sample.of(boxed),
               right=GENERALIZED_ERROR),
        Claim(
            "bucketization answers better",
            "(which of the two is drawn is not said)",
            f"k = 5000: {shown['error']:.1f} % bucketized, {fmean(boxed):.0f} % generalized; "
            f"bucketized it is lower in {lower} of {len(pairs)} releases",
            lower == len(pairs),
        ),
    ]  # fmt: skip


def drawn(columns: dict[str, list[Any]], buckets: dict[str, Points]) -> Any:
    """The curves of the requirements, with the ends of two of them labelled."""
    chart = curves_chart(columns, "error", E_TITLE, formats=("~g", "~f"))
    words = [
        values([buckets[name][end]], "error", letter)
        for name, letter, end in ((K_ANONYMITY, "k", -1), (CLOSENESS, "t", 0))
    ]
    return look.altair().layer(chart, *words)


FIG3A = Figure(
    name="kdd09-fig3a",
    paper=KDD09,
    what="Relative error of counts against privacy loss",
    parts=parts,
    conclude=conclude,
)
