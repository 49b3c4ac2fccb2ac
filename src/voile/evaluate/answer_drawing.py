"""What is drawn of an answer: which estimates become bars, by what they are split and coloured."""

from __future__ import annotations

import datetime as dt
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from voile.errors import UsageError
from voile.estimate import Answer, Estimate, shown
from voile.evaluate.look import (
    METHOD_COLOURS,
)

if TYPE_CHECKING:
    pass


MOST_BARS = 60
MOST_COLUMNS = 120
"""Bars in one picture; upright ones of numbers or days, which need no names, may be more."""
MOST_PANELS = 6
MOST_COLOURS = len(METHOD_COLOURS)
SHORT_LABEL = 12
UPRIGHT_BARS = 8
"""Names that stand side by side without being turned."""
CUT = 8.0
"""An end this many times farther out than all that matters is cut off, with an arrow."""
BETWEEN = " · "


@dataclass(frozen=True)
class Bar:
    """One estimate to draw: of which group, and in which colour where there are several."""

    group: str
    value: float
    low: float
    high: float
    colour: str = ""


@dataclass(frozen=True)
class Panel:
    """One aggregate of the answer, for every group."""

    name: str
    bars: tuple[Bar, ...]

    @property
    def reach(self) -> tuple[float, float]:
        """What the axis shows: 0, all estimates, and all ends that are not far out."""
        values = [b.value for b in self.bars if math.isfinite(b.value)]
        ends = [end for b in self.bars for end in (b.low, b.high) if math.isfinite(end)]
        matters = max(map(abs, values), default=0.0)
        matters = max(matters, statistics.median(map(abs, ends)) if ends else 0.0)
        drawn = [0.0, *values, *(end for end in ends if abs(end) <= CUT * matters)]
        low, high = min(drawn), max(drawn)
        return (low, high) if low < high else (0.0, 1.0)

    @property
    def large(self) -> bool:
        """Whether decimals would say nothing beside the other numbers."""
        return max(map(abs, self.reach)) >= 1000


@dataclass(frozen=True)
class Drawing:
    """What of an answer is drawn, and what must be said of the rest."""

    panels: tuple[Panel, ...]
    groups: str
    colours: str
    upright: bool
    notes: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(bar.group for bar in self.panels[0].bars))

    @property
    def colour_names(self) -> list[str]:
        return list(dict.fromkeys(bar.colour for bar in self.panels[0].bars if bar.colour))


def drawing(answer: Answer, sql: str, *, most_bars: int | None = None) -> Drawing:
    """Sort an answer's columns into groups, colours and panels.

    Rows stand in the order asked for. Names in no order asked for stand by size.
    """
    first = answer.rows[0] if answer.rows else {}
    wanted = [name for name in first if any(isinstance(row[name], Estimate) for row in answer.rows)]
    if not wanted:
        raise UsageError("the answer has nothing to draw", hint="ask for groups that exist")
    keys = [name for name in first if name not in wanted]
    groups, colour = split_keys(answer, keys)
    upright = stands_upright(answer, groups, colour)
    most = most_bars or (MOST_COLUMNS if upright else MOST_BARS)
    free = not (upright or colour or re.search(r"\border\s+by\b", sql, re.IGNORECASE))
    rows = sorted(answer.rows, key=lambda row: size_key(row[wanted[0]])) if free else answer.rows
    rows = rows[:most]
    notes = [f"the first {most:,} of {len(answer.rows):,} rows"] if len(answer.rows) > most else []
    if len(wanted) > MOST_PANELS:
        notes.append(f"the first {MOST_PANELS} of {len(wanted)} columns")
    labels = unique([BETWEEN.join(shown(row[k]) for k in groups) for row in rows], bool(colour))
    panels = tuple(
        Panel(
            name,
            tuple(
                bar_of(row[name], label, shown(row[colour]) if colour else "")
                for row, label in zip(rows, labels, strict=True)
            ),
        )
        for name in wanted[:MOST_PANELS]
    )
    notes += remarks([bar for panel in panels for bar in panel.bars], panels)
    return Drawing(panels, BETWEEN.join(groups), colour, upright, tuple(notes))


def split_keys(answer: Answer, keys: list[str]) -> tuple[list[str], str]:
    """Of two group columns, one gives the places and the other the colours, if it has few values.

    Each pair must occur once, or bars would lie on each other.
    """
    if len(keys) != 2:
        return keys, ""
    few = {key: len({shown(row[key]) for row in answer.rows}) for key in keys}
    pairs = {tuple(shown(row[key]) for key in keys) for row in answer.rows}
    for colour in (keys[1], keys[0]):
        others = few[keys[0] if colour is keys[1] else keys[1]]
        if 2 <= few[colour] <= MOST_COLOURS and others > 1 and len(pairs) == len(answer.rows):
            return [key for key in keys if key is not colour], colour
    return keys, ""


def stands_upright(answer: Answer, groups: list[str], colour: str) -> bool:
    """Columns suit numbers and days, which have an order, and few short names."""
    if not groups:
        return False
    if len(groups) == 1 and all(
        isinstance(row[groups[0]], int | float | dt.date | None) for row in answer.rows
    ):
        ordered = [row[groups[0]] for row in answer.rows if row[groups[0]] is not None]
        places = list(dict.fromkeys(ordered))
        if places in (sorted(places), sorted(places, reverse=True)):
            return len(answer.rows) <= MOST_COLUMNS
    labels = {BETWEEN.join(shown(row[k]) for k in groups) for row in answer.rows}
    bars = len(answer.rows) if colour else len(labels)
    return (
        len(labels) <= UPRIGHT_BARS
        and bars <= 2 * UPRIGHT_BARS
        and max(map(len, labels)) <= SHORT_LABEL
    )


def unique(labels: list[str], shared: bool) -> list[str]:
    """Names under which bars are told apart: text NULL and the missing value look the same."""
    if shared:
        return labels
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        found.append(f"{label} ({seen[label]})" if seen[label] > 1 else label)
    return found


def size_key(value: Any) -> tuple[bool, float]:
    """Large estimates first, unknown ones last."""
    size = value.value if isinstance(value, Estimate) else math.nan
    return math.isnan(size), 0.0 if math.isnan(size) else -size


def bar_of(value: Any, group: str, colour: str) -> Bar:
    if not isinstance(value, Estimate):
        return Bar(group, math.nan, math.nan, math.nan, colour)
    return Bar(group, value.value, *value.interval(), colour)


def remarks(bars: list[Bar], panels: Sequence[Panel]) -> list[str]:
    """What the picture cannot show as a length."""
    notes = []
    unknown = sum(math.isnan(bar.value) for bar in bars)
    if unknown:
        notes.append(f"{unknown:,} of {len(bars):,} estimates are unknown")
    loose = sum(math.isnan(b.low) or math.isnan(b.high) for b in bars)
    if loose:
        notes.append(f"{loose:,} of {len(bars):,} have no interval")
    ends = [
        (end, panel.reach) for panel in panels for bar in panel.bars for end in (bar.low, bar.high)
    ]
    endless = any(math.isinf(end) for end, _ in ends)
    beyond = any(math.isfinite(end) and not low <= end <= high for end, (low, high) in ends)
    if endless or beyond:
        where = ["the interval has no end on that side"] * endless
        where += ["the interval goes on beyond the picture"] * beyond
        notes.append(f"arrow: {', or '.join(where)}")
    return notes
