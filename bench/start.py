"""How long a user waits before a command begins: processes that are started and end."""

from __future__ import annotations

from bench.child import run
from bench.result import Result

NAME = "start"
LIMIT = 0.3
"""Seconds that --help may take."""
RUNS = 20
COMMANDS: dict[str, list[str]] = {
    "voile --help": ["--help"],
    "voile publish --help": ["publish", "--help"],
    "voile datasets": ["datasets"],
}


def benchmark(*, quick: bool, rounds: int) -> list[Result]:  # noqa: ARG001
    """Seconds from the command to its end."""
    runs = 3 if quick else RUNS
    return [
        line
        for what, arguments in COMMANDS.items()
        for line in measured(what, arguments, runs, limit=LIMIT if arguments[0] == "--help" else 0)
    ]


def measured(what: str, arguments: list[str], runs: int, limit: float) -> list[Result]:
    """The best and the median of one command's starts."""
    done = run("start_work:started", arguments=arguments, runs=runs)
    return [
        Result(
            NAME,
            f"{what}, {name} of {runs} starts",
            "s",
            done.value[name],
            limit or None,
            "the limit" if limit else "",
            "≤ 1 ×" if limit else "",
            done.value[name] <= limit if limit else None,
            done.value["peak"],
            done.others,
        )
        for name in ("best", "median")
    ]
