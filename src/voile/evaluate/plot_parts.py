"""Parts of pictures of errors: titles, axes, ticks, notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from voile.arrays import Floats
from voile.evaluate.look import (
    BAND_INK,
    INK,
    load_altair,
)

if TYPE_CHECKING:
    import altair as alt

Rows = list[dict[str, Any]]

COUNT_TURN = 10.0
"""Where a symlog axis of counts turns from linear to logarithmic."""
AIR = 1.2
"""How far a symlog axis of counts goes beyond the largest, so that its dot is not cut."""


def note_text(x: float, y: float, text: str) -> alt.LayerChart:
    """A text beside the band: to the left of what is above the line, else to the right."""
    alt = load_altair()
    at = alt.Chart(alt.InlineData(values=[{"x": x, "y": y}])).encode(x="x:Q", y="y:Q")
    align, shift, colour = ("right", -12, BAND_INK) if y > x else ("left", 12, INK)
    look = {"text": text, "align": align, "dx": shift, "fontSize": 13, "color": colour}
    # First a white edge, which keeps the grid's lines out of the letters.
    return at.mark_text(**look, stroke="white", strokeWidth=5) + at.mark_text(**look)


def title_of(text: str, below: str) -> alt.TitleParams:
    alt = load_altair()
    return alt.TitleParams(text, subtitle=below) if below else alt.TitleParams(text)


def tooltips_of(**titles: str) -> list[alt.Tooltip]:
    alt = load_altair()
    names = {"query", "method"}
    return [
        alt.Tooltip(f"{field}:N", title=title)
        if field in names
        else alt.Tooltip(f"{field}:Q", title=title, format=",.1~f")
        for field, title in titles.items()
    ]


def axis_of(title: str, **more: Any) -> alt.Axis:
    return load_altair().Axis(title=title, format=",.0f", **more)


def count_axis(title: str, top: float) -> alt.X:
    # From -0.5, so that the count 0, the most frequent of all, has a column of its own.
    scale = symlog_scale(-0.5, AIR * top, COUNT_TURN)
    ticks = [tick for tick in ticks_of(AIR * top, COUNT_TURN) if tick >= 0]
    return load_altair().X("x:Q", scale=scale, axis=axis_of(title, values=ticks))


def plain_scale(low: float, high: float) -> alt.Scale:
    return load_altair().Scale(domain=[float(low), float(high)], nice=False, zero=False)


def symlog_scale(low: float, high: float, turn: float) -> alt.Scale:
    return load_altair().Scale(type="symlog", constant=turn, domain=[low, high], nice=False)


def symlog_steps(low: float, high: float, steps: int, turn: float) -> Floats:
    """The edges of cells that are equally wide on a symlog axis."""
    first, last = (math.copysign(math.log1p(abs(end) / turn), end) for end in (low, high))
    even = np.linspace(first, last, steps + 1)
    edges: Floats = np.sign(even) * np.expm1(np.abs(even)) * turn
    return edges


def ticks_of(reach: float, turn: float, leading: Sequence[int] = (1, 3)) -> list[float]:
    """Below the turn only 0, for there is no room; but all of a range that ends there."""
    steps = [float(d * 10**k) for k in range(12) for d in leading]
    ticks = [tick for tick in steps if turn <= tick <= reach or tick <= reach < 3 * turn]
    return [-tick for tick in reversed(ticks)] + [0.0] + ticks
