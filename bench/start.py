"""How long a user waits before a command begins: processes that are started and end."""

from __future__ import annotations

from pathlib import Path

from bench.child import run
from bench.result import Result

NAME = "start"
HELP, ANSWER = 0.3, 0.8
"""Seconds that --help and a small question may take."""
RUNS = 20
RELEASES = Path(__file__).parents[1] / "tests" / "fixtures" / "version1"
COUNT = "SELECT count(*) FROM people"
COMMANDS: dict[str, list[str]] = {
    "voile --help": ["--help"],
    "voile publish --help": ["publish", "--help"],
    "voile datasets": ["datasets"],
    "voile query, a view": ["query", f"{RELEASES}/view.voile", COUNT],
    "voile query, perturbed rows": ["query", f"{RELEASES}/perturbed.voile", COUNT],
    "voile query, classes": ["query", f"{RELEASES}/mondrian.voile", COUNT],
    "voile query, tables of counts": ["query", f"{RELEASES}/counts.voile", COUNT],
    "voile verify": ["verify", f"{RELEASES}/view.voile"],
    "voile describe": ["describe", f"{RELEASES}/view.voile"],
    "voile inspect": ["inspect", f"{RELEASES}/patients.csv"],
}
NAMES = {"best": "best", "median": "median", "processor": "least CPU"}
LIMITS = {"--help": HELP, "query": ANSWER}


def benchmark(*, quick: bool, rounds: int) -> list[Result]:  # noqa: ARG001
    """Seconds from the command to its end."""
    runs = 3 if quick else RUNS
    return [
        line
        for what, arguments in COMMANDS.items()
        for line in measured(what, arguments, runs, limit=LIMITS.get(arguments[0], 0))
    ]


def measured(what: str, arguments: list[str], runs: int, limit: float) -> list[Result]:
    """The best and the median of one command's starts, and its seconds of the processor."""
    done = run("start_work:started", arguments=arguments, runs=runs)
    return [
        Result(
            NAME,
            f"{what}, {words} of {runs} starts",
            "s",
            done.value[name],
            limit or None,
            "the limit" if limit else "",
            "≤ 1 ×" if limit else "",
            done.value[name] <= limit if limit else None,
            done.value["peak"],
            done.others,
        )
        for name, words in NAMES.items()
    ]
