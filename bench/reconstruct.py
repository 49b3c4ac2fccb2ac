"""The most likely counts of k binary columns: a step, and all the way, beside the whole matrix."""

from __future__ import annotations

from bench.child import Outcome, best, highest_peak, run_rounds
from bench.result import Result

NAME = "reconstruct"
LARGEST_MATRIX = 13
"""Beyond, the matrix needs gigabytes."""
STEP_LIMIT = 0.5
"""Milliseconds, at 13 columns."""
LARGEST = 16
"""Columns."""
LIMIT = 2.0
"""Seconds to the maximum, at so many columns."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """Steps of EM, and whole ways to the maximum."""
    times, rows = (1, 10_000) if quick else (5, 100_000)
    columns = (10, 11) if quick else range(10, LARGEST + 1)
    steps = {
        f"step {k}": (
            "reconstruct_work:step",
            {"k": k, "rows": rows, "dense": k <= LARGEST_MATRIX, "times": times},
        )
        for k in columns
    }
    ways = {
        f"way {k} {p} {n}": (
            "reconstruct_work:converge",
            {"k": k, "rows": n, "retention": p, "times": 1 if quick else 2},
        )
        for k, p, n in whole_ways(quick=quick, rows=rows)
    }
    done = run_rounds(steps | ways, min(rounds, 2))
    return [line(outcomes) for outcomes in done.values()]


def whole_ways(*, quick: bool, rows: int) -> list[tuple[int, float, int]]:
    """Columns, retention and rows of the problems that are solved to the end."""
    if quick:
        return [(10, 0.5, rows)]
    small = [(k, p, rows) for k in (10, 13) for p in (0.3, 0.5)]
    return [*small, *((LARGEST, p, n) for n in (rows, 10 * rows) for p in (0.1, 0.3, 0.5))]


def line(outcomes: list[Outcome]) -> Result:
    """The result of a step, or of a whole way."""
    fastest = best(outcomes)
    return (
        way_line(fastest, outcomes) if "seconds" in fastest.value else step_line(fastest, outcomes)
    )


def step_line(fastest: Outcome, outcomes: list[Outcome]) -> Result:
    """Milliseconds of a step beside the whole matrix."""
    value = fastest.value
    k, dense = value["k"], value.get("dense")
    needs = f" (the matrix would need {8 * 4**k / 1e9:.1f} GB)" if dense is None else ""
    aimed = k == LARGEST_MATRIX
    return Result(
        name=NAME,
        what=f"a step of EM, {k} columns{needs}",
        unit="ms",
        ours=value["ours"],
        peer=dense,
        peer_name="" if dense is None else "the whole matrix, NumPy",
        aim=f"≤ {STEP_LIMIT:g} ms" if aimed else "",
        met=value["ours"] <= STEP_LIMIT if aimed else None,
        peak_memory=highest_peak(outcomes),
        others=fastest.others,
        details=value,
    )


def way_line(fastest: Outcome, outcomes: list[Outcome]) -> Result:
    """Seconds to the maximum beside the limit."""
    value = fastest.value
    k = value["k"]
    aimed = k == LARGEST
    return Result(
        name=NAME,
        what=f"to the maximum, {k} columns, {value['rows']:,} rows, p = {value['retention']:g}",
        unit="s",
        ours=value["seconds"],
        peer=LIMIT if aimed else None,
        peer_name="the limit" if aimed else "",
        aim="≤ 1 ×" if aimed else "",
        met=value["seconds"] <= LIMIT if aimed else None,
        peak_memory=highest_peak(outcomes),
        others=fastest.others,
        details=value,
    )
