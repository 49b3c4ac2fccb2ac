"""Results as one table for people, or as JSON for programs."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.result import Result, Unit

PACKAGES = ("voile", "duckdb", "pyarrow", "numpy", "numba", "cryptography")


def machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    } | {name: version(name) for name in PACKAGES}


def quantity(value: float | None, unit: Unit) -> str:
    if value is None:
        return ""
    match unit:
        case "rows/s":
            return f"{value / 1e6:,.3g} M rows/s"
        case "bytes":
            return size(int(value))
        case _:
            return f"{value:,.3g} {unit}"


def size(count: int | None) -> str:
    return "" if count is None else f"{count / 1e6:,.0f} MB"


def verdict(met: bool | None) -> Text:
    if met is None:
        return Text("–", style="dim")
    return Text("met", style="bold green") if met else Text("missed", style="bold red")


def table(results: Sequence[Result], *, quick: bool) -> Table:
    here = machine()
    title = "Voile's benchmarks" + (" (--quick: too small to judge by)" if quick else "")
    caption = ", ".join(f"{name} {value}" for name, value in here.items())
    shown = Table(title=title, caption=caption, box=box.SIMPLE_HEAD)
    for heading in ("benchmark", "what", "ours", "beside", "", "ratio", "aim", "", "peak memory"):
        number = heading in ("ours", "ratio", "peak memory")
        shown.add_column(heading, justify="right" if number else "left", overflow="fold")
    last = ""
    for result in results:
        if last and result.name != last:
            shown.add_section()
        shown.add_row(*cells(result, first=result.name != last))
        last = result.name
    return shown


def cells(result: Result, *, first: bool) -> list[str | Text]:
    return [
        Text(result.name if first else "", style="bold"),
        result.what,
        quantity(result.ours, result.unit),
        quantity(result.peer, result.unit),
        result.peer_name,
        "" if result.ratio is None else f"{result.ratio:,.2f} ×",
        result.aim,
        verdict(result.met),
        size(result.peak_memory),
    ]


def details(result: Result) -> list[str]:
    """The numbers behind a result, a line each."""
    lines = [f"{result.name}: {result.what}"]
    for key, value in result.details.items():
        if isinstance(value, list):
            lines += [
                f"    {'  '.join(f'{k} {plain(v)}' for k, v in item.items())}" for item in value
            ]
        elif isinstance(value, dict):
            lines += [f"    {name}  {plain(number)}" for name, number in value.items()]
        else:
            lines.append(f"    {key}  {plain(value)}")
    return lines


def plain(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else f"{value}"


def show(results: Sequence[Result], *, quick: bool) -> None:
    console = Console()
    # Where nobody watches a terminal, the width is a guess: the table needs its own.
    wide = console if console.is_terminal else Console(width=180)
    wide.print(table(results, quick=quick))


def as_json(results: Sequence[Result], *, quick: bool) -> str:
    answer = {
        "machine": machine(),
        "quick": quick,
        "results": [result.to_dict() for result in results],
    }
    return json.dumps(answer, ensure_ascii=False, indent=1)
