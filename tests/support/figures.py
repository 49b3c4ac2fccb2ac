"""Small figures to try the reproducing of figures on."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from voile.reproduce import Claim, Figure, Finding, Number, Part, Run, Sample
from voile.reproduce.look import lines


def work(seed: int, p: float, log: str) -> dict[str, float]:
    """Leaves a line behind, so that one sees how often it was done."""
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{seed} {p}\n")
    return {"p": p, "error": 1 / p + seed / 100}


def slow(seed: int, log: str) -> dict[str, float]:
    time.sleep(60 if seed else 0)
    return work(seed, 0.5, log)


def dies() -> None:
    os._exit(9)


def fails() -> None:
    raise ValueError("nothing to divide by")


def unknown() -> dict[str, float]:
    return {"p": 0.5, "error": math.nan}


def grid(log: str, run: Run) -> list[Part]:
    return [
        Part(work, {"seed": seed, "p": p, "log": log})
        for seed in run.seeds(3, 2)
        for p in (0.1, 0.5, 0.9)
    ]


def conclude(printed: float, _: Run, results: Sequence[Any]) -> Finding:
    errors = Sample.of(found["error"] for found in results if found["p"] == 0.5)
    columns = {
        "p": [found["p"] for found in results],
        "error": [found["error"] for found in results],
        "method": ["<ours>"] * len(results),
    }
    return Finding(
        checks=(
            Number("error at p = .5", printed, errors, 0.05),
            Number("a misprint", 5.0, Sample.of(2.0), 0.01, right=2.0, why="forgets <a> factor"),
            Claim("it falls", "errors fall", "from 10 to 1", agrees=True),
        ),
        tables={"": columns, "again": columns},
        picture=lambda: lines(columns, "p", "error", "method", titles=("retention", "error")),
        title="Errors fall",
        subtitle="with retention",
    )


def figure(log: Path, *, printed: float = 2.0, name: str = "tests-fig1") -> Figure:
    return Figure(
        name, "Tests: how to be sure", "errors", partial(grid, str(log)), partial(conclude, printed)
    )


def part_of(part: Part, _: Run) -> list[Part]:
    return [part]


def made_of(part: Part) -> Figure:
    return Figure(
        "tests-fig2", "Tests", "one piece", partial(part_of, part), partial(conclude, 2.0)
    )
