"""An answer as bars of letters, with whiskers, for a terminal."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from voile.estimate import Answer, number
from voile.evaluate.answer_plot import BETWEEN, Bar, Panel, drawing

MOST_BARS = 50
LONGEST_LABEL = 28
NARROWEST = 16
BAR_STYLE, WHISKER_ON_BAR, WHISKER, ZERO = "blue", "bold white on blue", "bold", "dim"


@dataclass(frozen=True)
class Marks:
    """What bars are drawn with."""

    bar: str
    line: str
    low: str
    high: str
    point: str
    to_left: str
    to_right: str
    zero: str
    cross: str


DRAWN = Marks("█", "─", "├", "┤", "●", "◀", "▶", "│", "┼")
ASCII = Marks("#", "-", "[", "]", "o", "<", ">", "|", "+")


def print_bars(answer: Answer, sql: str, console: Console) -> None:
    """One line for each estimate: its name, the bar with its whisker, the number."""
    what = drawing(answer, sql, most_bars=MOST_BARS)
    marks = DRAWN if console.encoding.lower().startswith("utf") else ASCII
    for panel in what.panels:
        grouped = BETWEEN.join(name for name in (what.groups, what.colours) if name)
        title = f"{panel.name} by {grouped}" if grouped else panel.name
        console.print(Text(title, style="bold"))
        print_panel(panel, console, marks)
    for note in what.notes:
        console.print(Text(note, style="dim"))


def print_panel(panel: Panel, console: Console, marks: Marks) -> None:
    labels = [label_of(bar) for bar in panel.bars]
    longest = min(max(map(cell_len, labels)), LONGEST_LABEL, console.width // 3)
    numbers = [number_of(bar, large=panel.large) for bar in panel.bars]
    width = console.width - longest - max(map(cell_len, numbers)) - 4
    for bar, label, value in zip(panel.bars, labels, numbers, strict=True):
        line = Text(no_wrap=True, overflow="crop")
        line.append(f" {fitted(label, longest)} ")
        line.append_text(bar_text(bar, panel, max(width, NARROWEST), marks))
        line.append(f" {value}")
        console.print(line)


def label_of(bar: Bar) -> str:
    return BETWEEN.join(part for part in (bar.group, bar.colour) if part)


def number_of(bar: Bar, *, large: bool) -> str:
    return f"{bar.value:,.0f}" if large and math.isfinite(bar.value) else number(bar.value)


def fitted(label: str, width: int) -> str:
    # Control characters in a value of someone's table must not reach the terminal.
    clean = "".join(c if c.isprintable() else "�" for c in label)
    return set_cell_size(clean if cell_len(clean) <= width else clean[: width - 1] + "…", width)


def bar_text(bar: Bar, panel: Panel, width: int, marks: Marks) -> Text:
    """The bar from 0 to the estimate; over it, the interval from end to end."""
    low, high = panel.reach
    # Arrows have a place of their own at either end, beyond all estimates.
    first = int(any(b.low < low for b in panel.bars))
    last = width - 1 - any(b.high > high for b in panel.bars)

    def cell(x: float) -> int:
        if not low <= x <= high:
            return 0 if x < low else width - 1
        return first + round((x - low) / (high - low) * (last - first))

    zero = cell(0.0)
    cells: list[tuple[str, str]] = [(" ", "")] * width
    filled = range(0)
    if math.isfinite(bar.value):
        ends = sorted((zero, cell(bar.value)))
        filled = range(ends[0], ends[1] + 1)
    for i in filled:
        cells[i] = (marks.bar, BAR_STYLE)
    cells[zero] = (marks.zero, ZERO) if zero not in filled or len(filled) == 1 else cells[zero]
    if not (math.isnan(bar.low) or math.isnan(bar.high)):
        left, right = cell(bar.low), cell(bar.high)
        line = dict.fromkeys(range(left, right + 1), marks.line)
        line[left] = marks.to_left if bar.low < low else marks.low
        line[right] = marks.to_right if bar.high > high else marks.high
        if left < zero < right:
            line[zero] = marks.cross
        if math.isfinite(bar.value):
            line[cell(bar.value)] = marks.point
        for i, mark in line.items():
            cells[i] = (mark, WHISKER_ON_BAR if i in filled else WHISKER)
    text = Text()
    for style, run in itertools.groupby(cells, key=lambda cell: cell[1]):
        text.append("".join(mark for mark, _ in run), style=style)
    return text
