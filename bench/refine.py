"""Refined counts beside plain ones, over all selections of up to three attributes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.child import Outcome, run
from bench.result import Result

NAME = "refine"
SEEDS = (1, 2, 3)
SECONDS = 60.0
"""The aim for choosing, fitting and examining on two cores."""
PROCESSOR = 30.0
"""The same in seconds of all processors."""
LARGE = 20.0
"""The prior factor whose view of Adult has more than MANY rows."""
MANY = 2_000_000
"""Rows of a view, all of which are to be fitted to."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:  # noqa: ARG001
    """Once, with several seeds, however many rounds: errors do not depend on the machine."""
    seeds = SEEDS[:1] if quick else SEEDS
    thin: dict[str, Any] = {"prior_factor": 1.0} if quick else {}
    few: dict[str, Any] = {"rows": 3000} if quick else {}
    half = run("refine_work:adult", retention=0.5, seeds=seeds, **thin)
    most = run("refine_work:adult", retention=None, seeds=seeds, **thin)
    large = run("refine_work:adult", retention=None, seeds=seeds[:1],
                **({"prior_factor": LARGE} | thin))  # fmt: skip
    other = run("refine_work:correlated", seeds=seeds, **few)
    return [
        *errors("Adult, a = 1/2", half, small=1.6, large=100.0),
        *seconds("Adult, a = 1/2", half),
        *errors("Adult, largest a", most, against=1.05),
        *seconds("Adult, largest a", most),
        *unsampled("Adult, a view of more than two million rows", large, quick=quick),
        *errors("20 attributes, a = 1/2", other, against=1.05),
    ]


def errors(
    table: str,
    outcome: Outcome,
    *,
    small: float | None = None,
    large: float | None = None,
    against: float | None = None,
) -> list[Result]:
    """Mean errors over all selections, and over those of at least 1000 rows; and the coverage."""
    value = outcome.value
    every = Result(
        name=NAME,
        what=f"{table}: mean error of {value['queries']:,} counts",
        unit="rows",
        ours=value["refined"],
        peer=value["plain"],
        peer_name="plain",
        aim=f"≤ {small:g} rows" if small else "",
        met=value["refined"] <= small if small else None,
        peak_memory=outcome.peak,
        others=outcome.others,
        details=value,
    )
    aim = f"≤ {large:g} rows" if large else f"≤ {against:g} ×" if against else ""
    limit = large or (against or 0.0) * value["plain_large"]
    many = replace(
        every,
        what=f"{table}: of counts ≥ 1000",
        ours=value["refined_large"],
        peer=value["plain_large"],
        aim=aim,
        met=value["refined_large"] <= limit if aim else None,
        details={},
    )
    covered = replace(
        many,
        what=f"{table}: ± 1.96 errors cover, mean over sizes",
        unit="%",
        ours=100 * value["coverage"],
        peer=95.0,
        peer_name="stated",
        aim="≥ 93 %",
        met=value["coverage"] >= 0.93,
    )
    return [every, many, covered]


def seconds(table: str, outcome: Outcome) -> list[Result]:
    """How long refining takes, beside the limits: on the clock, and of the processors."""
    taken: list[float] = outcome.value["seconds"]
    details: dict[str, Any] = {"seconds": taken, "processor_seconds": outcome.value["processor"]}
    busy = min(outcome.value["processor"])
    clock = Result(
        name=NAME,
        what=f"{table}: choice, fit and examination",
        unit="s",
        ours=min(taken),
        peer=SECONDS,
        peer_name="the limit",
        aim="≤ 1 ×",
        met=min(taken) <= SECONDS,
        others=outcome.others,
        details=details,
    )
    processor = replace(
        clock,
        what=f"{table}: the same, of all processors",
        ours=busy,
        peer=PROCESSOR,
        met=busy <= PROCESSOR,
        details={},
    )
    return [clock, processor]


def unsampled(table: str, outcome: Outcome, *, quick: bool) -> list[Result]:
    """How many rows of a large view are fitted to, what comes of it, and how long it takes."""
    fitted, view = outcome.value["fitted"], outcome.value["view"]
    every = Result(
        name=NAME,
        what=f"{table}: rows fitted to",
        unit="rows",
        ours=fitted,
        peer=view,
        peer_name="rows of the view",
        aim="all",
        met=fitted == view and (view > MANY or quick),
        peak_memory=outcome.peak,
        others=outcome.others,
    )
    timed = [
        replace(line, peer=None, peer_name="", aim="", met=None) for line in seconds(table, outcome)
    ]
    return [every, errors(table, outcome, against=1.05)[1], *timed]
