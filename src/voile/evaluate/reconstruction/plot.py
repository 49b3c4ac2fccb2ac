"""What comes back of a column, as a picture: by the size of the noise, a line for each attack."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from voile.evaluate.drawing import (
    INK,
    METHOD_COLOURS,
    SOFT,
    VERMILION,
    edged_text,
    inline_chart,
    load_altair,
    log_ticks,
    theme,
)
from voile.evaluate.page_pictures import PANEL, PicturePanel, panels
from voile.evaluate.pages import NextStep, Report, head_cell, number_cell, row, table
from voile.evaluate.reconstruction.simulating import Attempt, Reconstruction

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 760, 420
ROOM = 1.25
"""The axis goes so many times beyond the least and the largest noise."""
LEAST = 0.05
"""Of the axis, in √n: noise of none would be infinitely far away."""
SUBTITLE = (
    "Noise far below √n hides nothing. What a server adds for T questions hides nearly all, "
    "however large T is."
)
CAPTION = "Subsets and noise are simulated. Made with Voile."


def draw(found: Reconstruction) -> alt.HConcatChart:
    """The picture with its title."""
    return theme(
        load_altair().vconcat(panel(found)),
        title=title(found),
        subtitle=SUBTITLE,
        caption=CAPTION,
    )


def title(found: Reconstruction) -> str:
    """What was attacked."""
    return f"A secret column of {found.rows:,} rows, from noisy counts of random halves"


def report(found: Reconstruction) -> Report:
    """What came back at every size of the noise."""
    spoken = "Line chart: the share of rows that came back falls as the noise grows."
    drawn = PicturePanel("What comes back, by the noise", panel(found, named=False), spoken,
                  "Rings: what a server adds for its own promise.", (PANEL[0], 320))  # fmt: skip
    rows = [
        row(
            head_cell(a.noise), number_cell(f"{a.questions:,}"), number_cell(f"{a.size:,.4g}"),
            number_cell(f"{a.roots:.3g}"), number_cell(f"{a.recovered:.3f}"),
            number_cell("–" if a.stderr is None else f"{a.stderr:.3f}"),
            number_cell(f"{a.ceiling:.3f}"),
        )
        for a in found.attempts
    ]  # fmt: skip
    headings = ["noise", "questions", "size", "in √n", "recovered", "±", "most, on average"]
    told = table("Shares of rows whose value is found", headings, rows, range(1, 7))
    lead = f"Guessing the commoner value gets {found.guess:.3f} of the rows right. {SUBTITLE}"
    step = NextStep("See how large a server's noise is for its promise:", "voile sulq simulate")
    return Report("What noisy counts give away", title(found), lead, [panels([drawn]), told],
                  [step], CAPTION)  # fmt: skip


def panel(found: Reconstruction, *, named: bool = True) -> Any:
    """Noise along, in √n by its logarithm; the share of rows that came back up."""
    alt = load_altair()
    sizes = [max(a.roots, LEAST) for a in found.attempts]
    ends = [min([*sizes, 1.0]) / ROOM, max([*sizes, 1.0]) * ROOM]
    x = alt.X(
        "roots:Q", title="size of the noise, in √n",
        scale=alt.Scale(type="log", domain=ends, nice=False),
        axis=alt.Axis(values=log_ticks(ends[0], ends[1]), format="~g"),
    )  # fmt: skip
    y = alt.Y(
        "recovered:Q", title="rows whose value is found",
        scale=alt.Scale(domain=[lowest(found), 1], nice=False), axis=alt.Axis(format="~%"),
    )  # fmt: skip
    layers = [
        *_guessing(found, x, y, ends), *_root(alt, x, ends),
        *_lines(alt, found, x, y), *_settings(found, x, y)[: None if named else 1],
    ]  # fmt: skip
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def lowest(found: Reconstruction) -> float:
    """A little below guessing, and below all that is drawn."""
    least = min([found.guess, 0.5, *(a.recovered for a in found.attempts)])
    return max(0.0, math.floor(20 * least - 0.5) / 20)


def of_setting(attempt: Attempt) -> bool:
    """Whether the noise is what a server adds for its own promise."""
    return attempt.noise.startswith("δ")


def record(attempt: Attempt) -> dict[str, Any]:
    """An attempt as a row of the chart."""
    return {
        "roots": max(attempt.roots, LEAST), "recovered": attempt.recovered,
        "ceiling": attempt.ceiling, "noise": attempt.noise,
        "questions": f"{attempt.questions:,} questions", "count": attempt.questions,
    }  # fmt: skip


def _lines(alt: Any, found: Reconstruction, x: Any, y: Any) -> list[Any]:
    """A line for each number of questions."""
    counts = sorted({a.questions for a in found.attempts})
    names = [f"{count:,} questions" for count in counts]
    colours = [c for c in METHOD_COLOURS if c != VERMILION]
    colour = alt.Color(
        "questions:N",
        scale=alt.Scale(domain=names, range=[colours[i % len(colours)] for i in range(len(names))]),
        legend=alt.Legend(title=None, orient="top", symbolType="stroke", symbolStrokeWidth=3),
    )
    tips = [
        alt.Tooltip("questions:N"), alt.Tooltip("noise:N"),
        alt.Tooltip("roots:Q", title="size in √n", format=".3g"),
        alt.Tooltip("recovered:Q", format=".3f"),
        alt.Tooltip("ceiling:Q", title="at most", format=".3f"),
    ]  # fmt: skip
    rows = [record(attempt) for attempt in found.attempts]
    base = inline_chart(rows).encode(x=x, y=y, color=colour, tooltip=tips)
    return [base.mark_line(strokeWidth=2.4), base.mark_point(filled=True, size=55, opacity=1)]


def _guessing(found: Reconstruction, x: Any, y: Any, ends: list[float]) -> list[Any]:
    rows = [{"roots": end, "recovered": found.guess} for end in ends]
    line = inline_chart(rows).encode(x=x, y=y)
    word = inline_chart(rows[:1]).encode(x=x, y=y)
    return [
        line.mark_line(color=SOFT, strokeDash=[5, 4], strokeWidth=1.2),
        word.mark_text(text="guessing", align="left", dx=6, dy=11, fontSize=12, color=SOFT),
    ]


def _root(alt: Any, x: Any, ends: list[float]) -> list[Any]:
    if not ends[0] < 1 < ends[1]:
        return []
    base = inline_chart([{"roots": 1.0}]).encode(x=x)
    return [
        base.mark_rule(color=SOFT, strokeDash=[2, 3]),
        base.mark_text(text="√n", fontSize=13, color=SOFT, dx=12).encode(y=alt.value(10)),
    ]


def _settings(found: Reconstruction, x: Any, y: Any) -> list[Any]:
    """Rings around what a server's own noise leaves."""
    rows = [record(attempt) for attempt in found.attempts if of_setting(attempt)]
    if not rows:
        return []
    base = inline_chart(rows).encode(x=x, y=y)
    last = inline_chart([max(rows, key=lambda row: row["roots"])])
    return [
        base.mark_point(size=260, color=VERMILION, strokeWidth=2.2, filled=False, opacity=1),
        *edged_text(
            last.encode(x=x, y=y), text=f"rings: a server with {rows[0]['noise']}", align="right",
            dx=14, dy=38, fontSize=13, fontWeight=600, color=INK,
        ),
    ]  # fmt: skip
