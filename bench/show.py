"""Results as one table for people, or as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.child import QUIET
from bench.machine import described, machine
from bench.result import Result, Unit

WIDEST = 1000


def quantity(value: float | None, unit: Unit) -> str:
    """A number in its unit."""
    if value is None:
        return ""
    match unit:
        case "rows/s":
            return (
                f"{rounded(value / 1e6)} M rows/s" if value >= 1e6 else f"{rounded(value)} rows/s"
            )
        case "bytes":
            return size(int(value))
        case _:
            return f"{rounded(value)} {unit}"


def rounded(value: float) -> str:
    """Three digits, or all of a larger number."""
    return f"{value:,.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def times(ratio: float | None) -> str:
    """A ratio, to two places."""
    if ratio is None:
        return ""
    return f"{ratio:,.2f} ×" if ratio >= 0.005 else "< 0.01 ×"


def size(count: int | None) -> str:
    """Bytes in megabytes."""
    return "" if count is None else f"{count / 1e6:,.0f} MB"


def verdict(result: Result) -> Text:
    """The aim, and whether it is met."""
    if result.met is None:
        return Text("–", style="dim")
    sign, style = ("✓", "bold green") if result.met else ("✗", "bold red")
    return Text(f"{sign} {result.aim}", style=style)


def table(results: Sequence[Result], *, quick: bool) -> Table:
    """All results, a section for each benchmark."""
    title = "Voile's benchmarks" + (" (--quick: too small to judge by)" if quick else "")
    shown = Table(title=title, caption=caption(), box=box.SIMPLE_HEAD)
    for heading in ("", "ours", "beside", "", "ratio", "aim", "peak", "others"):
        number = heading in ("ours", "beside", "ratio", "peak", "others")
        shown.add_column(heading, justify="right" if number else "left", no_wrap=True)
    last = ""
    for result in results:
        if result.name != last:
            shown.add_section()
            shown.add_row(Text(result.name, style="bold"))
        shown.add_row(*cells(result))
        last = result.name
    return shown


def caption() -> str:
    """What the columns mean, and the machine."""
    return (
        "ratio: ours / beside. peak: memory of our process. others: share of the machine that "
        f"other processes had meanwhile.\n{described(machine())}"
    )


def cells(result: Result) -> list[str | Text]:
    """One result as the cells of its line."""
    return [
        "  " + result.what,
        quantity(result.ours, result.unit),
        quantity(result.peer, result.unit),
        result.peer_name,
        times(result.ratio),
        verdict(result),
        size(result.peak_memory),
        others(result),
    ]


def others(result: Result) -> Text:
    """The share of the machine that others had."""
    if result.unit == "bytes":
        return Text("")
    return Text(f"{result.others:.0%}", style="yellow" if result.others > QUIET else "dim")


def details(result: Result) -> list[str]:
    """The numbers behind a result, a line each."""
    lines = [f"{result.name}: {result.what}, {result.peer_name or 'ours'}"]
    for key, value in result.details.items():
        if isinstance(value, dict):
            lines.append(f"    {key}: {joined(value)}")
        elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
            lines += [f"    {joined(item)}" for item in value]
        elif isinstance(value, list):
            lines.append(f"    {key} {', '.join(plain(item) for item in value)}")
        else:
            lines.append(f"    {key} {plain(value)}")
    return lines


def joined(numbers: dict[str, Any]) -> str:
    """Named numbers in one line."""
    return ", ".join(f"{name} {plain(value)}" for name, value in numbers.items())


def plain(value: object) -> str:
    """A number with four digits, or any other value."""
    return f"{value:,.4g}" if isinstance(value, float) else f"{value}"


def show(results: Sequence[Result], *, quick: bool) -> None:
    """Print the table."""
    shown = table(results, quick=quick)
    # Lines that a narrow terminal breaks are easier to read than numbers that are cut off.
    needed = Console(width=WIDEST).measure(shown).maximum
    Console(width=max(Console().width, needed)).print(shown)


def as_json(results: Sequence[Result], *, quick: bool) -> str:
    """The machine and all results as JSON."""
    answer = {
        "machine": machine(),
        "quick": quick,
        "results": [result.to_dict() for result in results],
    }
    return json.dumps(answer, ensure_ascii=False, indent=1)
