"""What is drawn of an answer: which estimates become bars, by what they are split and coloured."""

from __future__ import annotations

import datetime as dt
import math
import re
import statistics
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.errors import UsageError
from voile.estimate import Answer, Estimate, number, shown
from voile.evaluate.drawing import (
    BLUE,
    CODE_FONT,
    FORMATS,
    INK,
    METHOD_COLOURS,
    SOFT,
    inline_chart,
    load_altair,
    render,
    theme,
)
from voile.evaluate.pages import chart_report
from voile.files import write_whole

if TYPE_CHECKING:
    import altair as alt

__all__ = ["draw", "save"]

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
        """The groups, in the order of the bars."""
        return list(dict.fromkeys(bar.group for bar in self.panels[0].bars))

    @property
    def colour_names(self) -> list[str]:
        """What colours stand for, in the order of the bars."""
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
    """A bar for an estimate; unknown where the value is none."""
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


# ----------------------- an answer as a picture: a bar for each group, a whisker for each interval


MOST_NUMBERS = 24
"""Upright bars, among which there still is room for their numbers."""
AIR = 0.06
PALER = 0.22
"""How much white is mixed into the bars, so that whiskers are seen on them."""
HEADING = {
    "fontSize": 15,
    "font": CODE_FONT,
    "lineHeight": 20,
    "subtitleFontSize": 14,
    "subtitleLineHeight": 19,
    "frame": "bounds",
}


# ---------------------------------------------------------------------- the picture


def draw(answer: Answer, sql: str) -> alt.HConcatChart:
    """The bar chart of an answer, with the query as its title."""
    alt = load_altair()
    what = drawing(answer, sql)
    charts = [
        _panel(what, panel, first=i == 0, last=i == len(what.panels) - 1)
        for i, panel in enumerate(what.panels)
    ]
    together = alt.vconcat if what.upright or len(what.names) == 1 else alt.hconcat
    chart = together(*charts, spacing=26).resolve_scale(color="shared")
    width = _width(what) * (1 if together is alt.vconcat else len(charts))
    longest = max(map(len, what.names)) if what.groups else 0
    letters = max(46, (width + (60 if what.upright else 7 * min(longest, 32))) // 9)
    percent = f"{100 * answer.confidence:.4g} %"
    many = len(charts) * len(answer.rows) > 1
    below = (
        f"Estimates, with whiskers for their {percent} intervals. Each covers {answer.covers}."
        if many
        else f"The estimate, with a whisker for its {percent} interval. It covers {answer.covers}."
    )
    notes = [f"{note[0].upper()}{note[1:]}." for note in what.notes]
    return theme(
        chart,
        title=titled(sql, letters),
        subtitle=textwrap.wrap(below, round(1.3 * letters)),
        caption=textwrap.wrap(" ".join([*notes, "Made with Voile."]), round(1.5 * letters)),
        heading=HEADING,
    )


TITLE_LETTERS = 200
"""Of a query as the title of a page."""


def titled(sql: str, letters: int) -> list[str]:
    """The query without its line breaks, on three lines at most."""
    text = " ".join(sql.split()).rstrip("; ")
    return textwrap.wrap(text, letters, max_lines=3, placeholder=" …") or ["(no query)"]


def save(answer: Answer, sql: str, path: Path) -> Path:
    """Write the picture to a file whose name ends in one of FORMATS."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise UsageError(
            f"{path.name!r} does not say what picture to make",
            hint=f"end it in {', '.join('.' + known for known in FORMATS)}",
        )
    chart = draw(answer, sql)
    if kind != "html":
        return write_whole(path, render(chart, kind))
    title = " ".join(titled(sql, TITLE_LETTERS))
    source = "Made with Voile from the answer. Point at a mark to see its interval."
    return write_whole(path, chart_report(chart, title=title, source=source).page())


def _width(what: Drawing) -> int:
    if not what.upright:
        return 520 if len(what.panels) == 1 or len(what.names) == 1 else 300
    slots = len(what.names) * (max(1, len(what.colour_names)) + 0.6)
    return int(min(max(420, 34 * slots), 860))


def _panel(what: Drawing, panel: Panel, *, first: bool, last: bool) -> alt.LayerChart:
    """Bars with whiskers; lengths go up where `upright`, else to the right."""
    alt = load_altair()
    low, high = panel.reach
    numbers = not what.upright or len(panel.bars) <= MOST_NUMBERS
    air = AIR * (high - low)
    # Numbers stand beyond the whiskers, and need their room.
    room = (0.09 if what.upright else 0.16) * (high - low) if numbers else 0.0
    beyond = any(bar.low < low for bar in panel.bars)
    lowest, highest = low - (air if low < 0 or beyond else 0), high + air + room
    rows = [_row(bar, lowest, highest - room, large=panel.large) for bar in panel.bars]
    data = inline_chart(rows)
    length, length2, place, offset = (
        (alt.Y, alt.Y2, alt.X, alt.XOffset) if what.upright else (alt.X, alt.X2, alt.Y, alt.YOffset)
    )
    scale = alt.Scale(domain=[lowest, highest], nice=False, zero=False)
    numeric = ".3~s" if max(-low, high) >= 1e7 else ",.0f" if panel.large else ",.3~r"
    axis = alt.Axis(title=None, format=numeric, tickCount=5, labelFlush=False, grid=True)
    title = what.groups if what.upright and what.groups else None
    named = alt.Axis(
        title=title,
        labelLimit=230,
        grid=False,
        labelAngle=0,
        labelPadding=6 if what.upright else 12,
    )
    shows_names = last if what.upright else first or len(what.names) == 1
    at = place(
        "group:N",
        sort=what.names,
        axis=named if shows_names else None,
        scale=alt.Scale(paddingInner=0.28, paddingOuter=0.18),
    )
    shared: dict[str, Any] = {_channel(place): at}
    if what.colours:
        shared[_channel(offset)] = offset("colour:N", sort=what.colour_names)
    along = _channel(length)
    base = data.encode(**shared, tooltip=_tooltips(what, panel))
    bars = base.transform_filter("isValid(datum.value)").mark_bar(**_fill(what))
    bars = bars.encode(
        **{along: length("value:Q", scale=scale, axis=axis), f"{along}2": length2("zero:Q")},
        **_colour(what, first=first),
    )
    held = base.transform_filter("isValid(datum.low) && isValid(datum.high)")
    rule = held.mark_rule(color=INK, strokeWidth=1.4).encode(
        **{along: length("low:Q", scale=scale), f"{along}2": length2("high:Q")}
    )
    ends = [_end(held, panel, what, side, length, scale) for side in ("low", "high")]
    layers = [bars, _zero(data, length, scale), rule, *(mark for marks in ends for mark in marks)]
    if numbers:
        layers.append(_numbers(base, what, length, scale))
    grouped = first and what.groups and not what.upright
    name = f"{panel.name} by {what.groups}" if grouped else panel.name
    chart: Any = alt.layer(*layers).properties(
        title=alt.TitleParams(name, fontSize=14, offset=8), **_size(what)
    )
    return chart


def _row(bar: Bar, lowest: float, highest: float, *, large: bool) -> dict[str, Any]:
    """A bar as data: ends that cannot be shown lie on the picture's edge, and are marked."""
    known = not (math.isnan(bar.low) or math.isnan(bar.high))
    low, high = max(bar.low, lowest), min(bar.high, highest)
    value = bar.value if math.isfinite(bar.value) else None
    top = max([0.0, value or 0.0, high if known else 0.0])
    return {
        "group": bar.group,
        "colour": bar.colour,
        "value": value,
        "zero": 0,
        "low": low if known else None,
        "high": high if known else None,
        "low cut": known and low > bar.low,
        "high cut": known and high < bar.high,
        "top": top,
        "estimate": written(bar.value, large=large),
        "interval": f"{number(bar.low)} … {number(bar.high)}" if known else "unknown",
    }


def written(value: float, *, large: bool) -> str:
    """A number as it stands beside its bar."""
    text = f"{value:,.0f}" if large and math.isfinite(value) else number(value)
    return "0" if text == "-0" else text.replace("-", "−")


def _channel(kind: Any) -> str:
    name: str = kind.__name__
    return name[0].lower() + name[1:]


def _fill(what: Drawing) -> dict[str, Any]:
    return {"clip": True, **({} if what.colours else {"color": _pale(BLUE)})}


def _pale(colour: str) -> str:
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + PALER * (255 - part)):02X}" for part in parts)


def _colour(what: Drawing, *, first: bool) -> dict[str, Any]:
    if not what.colours:
        return {}
    alt = load_altair()
    names = what.colour_names
    scale = alt.Scale(domain=names, range=[*map(_pale, METHOD_COLOURS[: len(names)])])
    key = alt.Legend(
        title=what.colours,
        titleOrient="left",
        titlePadding=10,
        orient="top",
        columns=4,
        symbolType="square",
        symbolStrokeWidth=0,
        offset=14,
    )
    return {"color": alt.Color("colour:N", scale=scale, legend=key if first else None)}


def _end(
    held: alt.Chart, panel: Panel, what: Drawing, side: str, length: Any, scale: alt.Scale
) -> list[alt.Chart]:
    """A whisker's end: a short stroke, or an arrow where the interval goes on."""
    along = _channel(length)
    at = {along: length(f"{side}:Q", scale=scale)}
    bars = len(panel.bars)
    stroke = max(4, min(14, 320 // bars)) if what.upright else max(5, min(12, 400 // bars))
    across = {"orient": "horizontal" if what.upright else "vertical"}
    closed = held.transform_filter(f"!datum['{side} cut']").mark_tick(
        color=INK, opacity=1, thickness=1.4, size=stroke, **across
    )
    shape = {"low": ("down", "left"), "high": ("up", "right")}[side][0 if what.upright else 1]
    cut = held.transform_filter(f"datum['{side} cut']").mark_point(
        shape=f"triangle-{shape}", color=INK, fill=INK, size=46, opacity=1
    )
    return [closed.encode(**at), cut.encode(**at)]


def _zero(data: alt.Chart, length: Any, scale: alt.Scale) -> alt.Chart:
    """The line that bars begin at."""
    alt = load_altair()
    along = _channel(length)
    return data.mark_rule(color=SOFT, strokeWidth=1).encode(
        **{along: length("zero:Q", scale=scale)}, tooltip=alt.value(None)
    )


def _numbers(base: alt.Chart, what: Drawing, length: Any, scale: alt.Scale) -> alt.Chart:
    crowded = len(what.panels[0].bars) > 16
    look: dict[str, Any] = {"fontSize": 11 if crowded else 12, "color": INK}
    look |= (
        {"align": "center", "baseline": "bottom", "dy": -5}
        if what.upright
        else {"align": "left", "baseline": "middle", "dx": 8}
    )
    return base.mark_text(**look).encode(
        **{_channel(length): length("top:Q", scale=scale)}, text="estimate:N"
    )


def _tooltips(what: Drawing, panel: Panel) -> list[alt.Tooltip]:
    alt = load_altair()
    fields = [("group", what.groups or "group")] if what.groups else []
    fields += [("colour", what.colours)] if what.colours else []
    fields += [("estimate", panel.name), ("interval", "interval")]
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in fields]


def _size(what: Drawing) -> dict[str, Any]:
    if what.upright:
        return {"width": _width(what), "height": 300 if len(what.panels) == 1 else 190}
    colours = max(1, len(what.colour_names))
    each = 20 if len(what.names) * colours > 14 else 30
    return {"width": _width(what), "height": max(46, round(each * len(what.names) * colours))}
