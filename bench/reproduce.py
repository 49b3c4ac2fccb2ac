"""How long the papers' figures and tables take to make again, beside what they may."""

from __future__ import annotations

from bench.child import run
from bench.result import Result

NAME = "reproduce"
LIMITS = {("--all", "--quick"): 180.0, ("--all",): 900.0}
"""Seconds by the clock, on two cores."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:  # noqa: ARG001
    """Once each: a run of minutes is its own repetition."""
    wanted = [words for words in LIMITS if "--quick" in words or not quick]
    return [measured(words, LIMITS[words]) for words in wanted]


def measured(words: tuple[str, ...], limit: float) -> Result:
    """One run of `voile reproduce` beside its limit."""
    done = run("reproduce_work:reproduced", words=list(words))
    seconds = done.value["seconds"]
    return Result(
        NAME,
        f"voile reproduce {' '.join(words)}, {done.value['figures']} figures and tables",
        "s",
        seconds,
        limit,
        "the limit",
        "≤ 1 ×",
        seconds <= limit,
        done.value["peak"],
        done.others,
        done.value,
    )
