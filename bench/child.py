"""Runs one task in a process of its own, so that its peak memory is its own.

The peak is ru_maxrss. Linux starts a child's at its parent's size, so the parent imports no
library that needs much: tasks import what they measure.
"""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.busy import OtherWork

ROOT = Path(__file__).resolve().parents[1]
QUIET = 0.1
"""The share of the machine that others may have before a timing is in doubt."""


@dataclass(frozen=True)
class Outcome:
    """What a task found, the peak of its memory in bytes, and how busy others kept the machine."""

    value: dict[str, Any]
    peak: int
    others: float


class TaskError(RuntimeError):
    """A task ended without an answer."""


def run(task: str, **arguments: Any) -> Outcome:
    """Call `module:function` of this package with the arguments, in a new process."""
    return run_by(Path(sys.executable), task, **arguments)


def run_by(interpreter: Path, task: str, **arguments: Any) -> Outcome:
    """The same by the Python of another environment, which has the libraries of the task."""
    with OtherWork() as others:
        done = subprocess.run(
            [interpreter, "-m", "bench.child", task, json.dumps(arguments)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode:
        raise TaskError(f"{task} ended with status {done.returncode}")
    answer = json.loads(done.stdout.splitlines()[-1])
    return Outcome(answer["value"], answer["peak"], others.share)


def run_rounds(
    tasks: Mapping[str, tuple[str, dict[str, Any]]], rounds: int
) -> dict[str, list[Outcome]]:
    """Every task once a round, in turn, so that a busy minute of the machine falls on all.

    A task that had the machine to itself in no round gets up to as many rounds again, unless one
    round was asked for.
    """
    outcomes: dict[str, list[Outcome]] = {name: [] for name in tasks}
    for number in range(2 * rounds if rounds > 1 else 1):
        for name, (task, arguments) in tasks.items():
            if number < rounds or min(done.others for done in outcomes[name]) > QUIET:
                outcomes[name].append(run(task, **arguments))
    return outcomes


def best(outcomes: list[Outcome]) -> Outcome:
    """The one with the highest rate: other work on the machine can only slow a run down."""
    return max(outcomes, key=lambda outcome: float(outcome.value["rate"]))


def highest_peak(outcomes: list[Outcome]) -> int:
    """The largest peak of memory, in bytes."""
    return max(outcome.peak for outcome in outcomes)


def peak_so_far() -> int:
    """The peak of this process's memory, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main(task: str, arguments: str) -> None:
    """Run one task and print its value and peak as JSON."""
    module, function = task.split(":")
    value = getattr(importlib.import_module(f"bench.{module}"), function)(**json.loads(arguments))
    print(json.dumps({"value": value, "peak": peak_so_far()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
