"""The first five minutes: real tables, published by the command that is offered."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench.child import run, run_by
from bench.marginals import peers_folder
from bench.result import Result

NAME = "first_minutes"
SEEDS = (1, 2, 3)
LEAST_ROWS, MANY_ROWS = 1_000, 5_000
MEDIAN_ERROR, LARGEST_ERROR, COVERED = 5.0, 10.0, 93.0
"""Per cent: in the middle of all tables, of each with many rows, and of the intervals."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:  # noqa: ARG001
    """Every table that the environment `tables` has, however many rounds."""
    peers = peers_folder()
    python = peers and peers / "tables" / "bin" / "python"
    if python is None or not python.exists():
        return []
    with tempfile.TemporaryDirectory(prefix="voile-first-") as folder:
        files = run_by(python, "first_minutes_tables:written", folder=folder).value["files"]
        tables = [Path(folder) / name for name in (files[:3] if quick else files)]
        return list(results(tables, folder, SEEDS[:1] if quick else SEEDS))


def results(tables: list[Path], folder: str, seeds: tuple[int, ...]) -> Iterator[Result]:
    """One line for each table, and what they come to."""
    errors, refused = [], 0
    for table in tables:
        found = [
            run("first_minutes_work:tried", table=str(table), folder=folder, seed=seed).value
            for seed in seeds
        ]
        rows = rows_of(table)
        accepted = [one for one in found if one["accepted"]]
        if not accepted:
            refused += rows >= LEAST_ROWS
            yield refusal(table.stem, rows, found[0])
            continue
        error = 100 * median(one["both"] for one in accepted)
        errors.append(error)
        yield Result(
            name=NAME, what=f"{table.stem}, {rows:,} rows: counts of 1 % and more are off by",
            unit="%", ours=error, aim=f"≤ {LARGEST_ERROR:g} %" if rows >= MANY_ROWS else "",
            met=error <= LARGEST_ERROR if rows >= MANY_ROWS else None,
            peak_memory=max(one["peak"] for one in found), details=accepted[0],
        )  # fmt: skip
        covered = 100 * median(one["coverage"] for one in accepted)
        yield Result(
            name=NAME, what=f"{table.stem}: true counts in their 0.95 interval", unit="%",
            ours=covered, aim=f"≥ {COVERED:g} %", met=covered >= COVERED,
        )  # fmt: skip
    if errors:
        yield Result(
            name=NAME, what="the middle of all tables", unit="%", ours=median(errors),
            aim=f"≤ {MEDIAN_ERROR:g} %", met=median(errors) <= MEDIAN_ERROR,
        )  # fmt: skip
    yield Result(
        name=NAME, what=f"refused, of tables with {LEAST_ROWS:,} rows or more", unit="rows",
        ours=refused, aim="none", met=refused == 0,
    )  # fmt: skip


def rows_of(table: Path) -> int:
    """Lines of a file, without its header."""
    with table.open("rb") as file:
        return sum(1 for _ in file) - 1


def refusal(name: str, rows: int, found: dict[str, Any]) -> Result:
    """A table that was refused, with why."""
    return Result(
        name=NAME, what=f"{name}, {rows:,} rows: refused", unit="rows", ours=rows,
        aim="" if rows < LEAST_ROWS else "published", met=None if rows < LEAST_ROWS else False,
        details=found,
    )  # fmt: skip
