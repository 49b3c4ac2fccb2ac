"""Whether every 0.95 is 0.95: releases × questions of all kinds, on real tables."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from bench.child import run, run_by
from bench.marginals import peers_folder
from bench.result import Result

NAME = "coverage"
RELEASES = 3
"""Of each kind and table."""
LEAST, MOST, WIDEST = 93.0, 98.0, 1.2
"""Per cent of intervals that hold the truth; of averages of many rows, in standard errors."""
FEWEST = 200
"""Intervals from which on a share is judged."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:  # noqa: ARG001
    """Every kind on every table that the environment `tables` has, however many rounds."""
    peers = peers_folder()
    python = peers and peers / "tables" / "bin" / "python"
    if python is None or not python.exists():
        return []
    with tempfile.TemporaryDirectory(prefix="voile-coverage-") as folder:
        tables = run_by(python, "coverage_tables:written", folder=folder).value
        if quick:
            tables = {name: tables[name] for name in sorted(tables, key=tuned(tables))[:2]}
        kinds = run("coverage_work:kinds").value["kinds"]
        for kind in kinds[:3] if quick else kinds:
            for name, about in tables.items():
                run("coverage_work:counted", folder=folder, table=name, kind=kind, **about,
                    seeds=list(range(1 if quick else RELEASES)))  # fmt: skip
        cells = run("coverage_work:pooled", folder=folder).value["cells"]
    return [*results(cells)]


def tuned(tables: dict[str, Any]) -> Any:
    """Tables that no constant was chosen with come first."""
    return lambda name: (tables[name]["tuned"], name)


def results(cells: list[dict[str, Any]]) -> Iterator[Result]:
    """A line for each kind and statistic, of the tables that no constant was chosen with."""
    for cell in cells:
        if cell["tuned"] or cell["part"] != "all" or cell["table"]:
            continue
        own = {"kind": cell["kind"], "statistic": cell["statistic"]}
        same = [c for c in cells if own.items() <= c.items() and c is not cell]
        yield Result(
            name=NAME, what=worded(cell), unit="%", ours=cell["covered"],
            aim=f"≥ {LEAST:g} %", met=judged(cell),
            details={"cells": [shown(one) for one in (cell, *same)]},
        )  # fmt: skip
        large = [c for c in same if c["part"] == "large" and not c["tuned"] and not c["table"]]
        if cell["statistic"] == "average" and large and large[0]["intervals"] >= FEWEST:
            yield sharp(large[0])


def worded(cell: dict[str, Any]) -> str:
    """What was counted."""
    return (
        f"{cell['kind']}: {cell['statistic']}, {cell['intervals']:,} intervals of "
        f"{cell['releases']} releases, at most {cell['at_most']:.1f}"
    )


def judged(cell: dict[str, Any]) -> bool | None:
    """Whether enough intervals hold the truth; None where they are few."""
    return None if cell["intervals"] < FEWEST else bool(cell["covered"] >= LEAST)


def sharp(cell: dict[str, Any]) -> Result:
    """Whether averages of many rows are as sharp as they can be."""
    wide = cell["of_noise"] and cell["width"] > WIDEST
    return Result(
        name=NAME, unit="%", ours=cell["covered"],
        what=f"{cell['kind']}: averages of many rows, {cell['width']:.2f} × as wide as ± 1.96 σ",
        aim=f"≤ {MOST:g} %, ≤ {WIDEST:g} ×" if cell["of_noise"] else "",
        met=bool(cell["covered"] <= MOST and not wide) if cell["of_noise"] else None,
    )  # fmt: skip


def shown(cell: dict[str, Any]) -> dict[str, Any]:
    """A cell as a line of --verbose, marked where it covers too little."""
    few, under = cell["intervals"] < FEWEST, cell["covered"] < LEAST
    mark = "" if not under else "few, under" if few else "under"
    if under and cell["at_most"] < LEAST:
        mark = "surely under"
    about = "tuned" if cell["tuned"] else "held out"
    return {
        "": f"{cell['table'] or 'all tables'} ({about}), {cell['part']}",
        "intervals": cell["intervals"], "releases": cell["releases"], "covered": cell["covered"],
        "at most": cell["at_most"], "width": cell["width"], "mark": mark,
    }  # fmt: skip
