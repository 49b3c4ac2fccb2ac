"""An answer as a table on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from voile.estimate.estimate import Estimate, number, shown

if TYPE_CHECKING:
    from voile.estimate.answer import Answer


def table_of(answer: Answer) -> Table:
    """The answer as a table: upright for one row of estimates, else a line for each group."""
    grouped = any(not isinstance(v, Estimate) for row in answer.rows for v in row.values())
    if not grouped and len(answer.rows) == 1:
        return upright(answer)
    first = answer.rows[0] if answer.rows else dict.fromkeys(answer.columns, "")
    # Many estimates stand with their errors in one cell: three columns each would not fit.
    narrow = sum(isinstance(value, Estimate) for value in first.values()) > 1
    table = Table(show_lines=narrow)
    for name, value in first.items():
        right = isinstance(value, int | float | Estimate)
        table.add_column(escape(name), justify="right" if right else "left", overflow="fold")
        if isinstance(value, Estimate) and not narrow:
            for heading in headings_of(answer)[1:]:
                table.add_column(heading, justify="right", style="dim")
    intervals = states_intervals(answer)
    for row in answer.rows:
        parts = [cells(value, intervals=intervals) for value in row.values()]
        table.add_row(*(stacked(p) for p in parts) if narrow else (c for p in parts for c in p))
    return table


def upright(answer: Answer) -> Table:
    """One row of estimates, each on a line of its own."""
    table = Table()
    for heading in ["", *headings_of(answer)]:
        table.add_column(heading, justify="right" if heading else "left")
    for row in answer.rows:
        for name, value in row.items():
            table.add_row(escape(name), *cells(value, intervals=states_intervals(answer)))
    return table


def headings_of(answer: Answer) -> list[str]:
    """What stands above the parts of an estimate that `cells` gives."""
    certain = ["certain"] if answer.assumption else []
    if not states_intervals(answer):
        return ["estimate", *certain]
    return ["estimate", "± stderr", f"{answer.confidence:.12g} interval", *certain]


def states_intervals(answer: Answer) -> bool:
    """Whether some estimate has an interval."""
    found = [v for row in answer.rows for v in row.values() if isinstance(v, Estimate)]
    return not found or any(estimate.is_stated for estimate in found)


def cells(value: Any, *, intervals: bool = True) -> tuple[str, ...]:
    """A key, or an estimate's value, error, interval and certain bounds, as texts."""
    if not isinstance(value, Estimate):
        return (escape(shown(value)),)
    if not intervals and value.certain:
        return number(value.value), " … ".join(map(number, value.certain))
    found = [value.value, value.stderr, *value.interval(), *(value.certain or ())]
    shown_ = [number(x, value.stderr) for x in found]
    ends = [f"{low} … {high}" for low, high in zip(shown_[2::2], shown_[3::2], strict=True)]
    return shown_[0], shown_[1], *ends


def stacked(parts: tuple[str, ...]) -> str:
    """The parts of an estimate in one cell, its interval below."""
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        return f"{parts[0]}\n[dim]certain {parts[1]}[/dim]"
    value, stderr, interval, *certain = parts
    found = f"{value} ± {stderr}\n[dim]{interval}[/dim]"
    return found + (f"\n[dim]certain {certain[0]}[/dim]" if certain else "")
