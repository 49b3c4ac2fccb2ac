"""Charts and drawn tables that all papers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voile.evaluate.drawing import (
    BLUE,
    DENSITY,
    GRID,
    INK,
    METHOD_COLOURS,
    METHOD_DASHES,
    OWN_SCALES,
    SOFT,
    VERMILION,
)
from voile.evaluate.drawing import load_altair as altair
from voile.reproduce.figure import Columns

__all__ = [
    "BLUE", "DENSITY", "GRID", "INK", "METHOD_COLOURS", "METHOD_DASHES", "SOFT", "VERMILION",
    "altair", "beside", "chart", "lines", "records", "table",
]  # fmt: skip

WIDTH, HEIGHT = 620, 380
ROW = 30
"""Height of a line of a drawn table."""


def records(columns: Columns) -> list[dict[str, Any]]:
    """The rows of a table of columns, as Altair takes them."""
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def chart(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A chart of these rows, to which marks and axes are added."""
    alt = altair()
    return alt.Chart(alt.Data(values=list(rows)))


def lines(
    columns: Columns,
    x: str,
    y: str,
    by: str,
    *,
    titles: tuple[str, str],
    log: tuple[bool, bool] = (False, False),
    band: tuple[str, str] | None = None,
    order: Sequence[str] = (),
    formats: tuple[str, str] = ("", ""),
    domains: tuple[Sequence[float], Sequence[float]] = ((), ()),
    ticks: tuple[int, int] = (0, 0),
    width: int = WIDTH,
    height: int = HEIGHT,
    legend: str = "",
    points: bool = True,
) -> Any:
    """A line with points for each value of `by`, in colours and dashes; `band` is (low, high).

    `domains` are where the axes begin and end, and `ticks` about how many numbers stand at them, if
    that is not to be chosen.
    """
    alt = altair()
    series = list(order) or list(dict.fromkeys(columns[by]))
    scale = [_scale(*each) for each in zip(log, domains, strict=True)]
    axis = [
        alt.Axis(format=form, **({"tickCount": number} if number else {}))
        for form, number in zip(formats, ticks, strict=True)
    ]
    base = chart(records(columns)).encode(
        x=alt.X(f"{x}:Q", title=titles[0], scale=scale[0], axis=axis[0]),
        y=alt.Y(f"{y}:Q", title=titles[1], scale=scale[1], axis=axis[1]),
        color=alt.Color(
            f"{by}:N",
            title=legend or None,
            scale=alt.Scale(domain=series, range=METHOD_COLOURS[: len(series)]),
            legend=alt.Legend(
                orient="top", symbolType="stroke", symbolSize=400, columns=3, labelLimit=260
            ),
        ),
    )
    drawn = base.mark_line(strokeWidth=2.5).encode(
        strokeDash=alt.StrokeDash(
            f"{by}:N",
            legend=None,
            scale=alt.Scale(domain=series, range=METHOD_DASHES[: len(series)]),
        )
    )
    layers = [drawn, *([base.mark_point(filled=True, size=42, opacity=1)] if points else [])]
    if band:
        low, high = (f"{name}:Q" for name in band)
        layers.insert(0, base.mark_area(opacity=0.15).encode(y=alt.Y(low), y2=alt.Y2(high)))
    return alt.layer(*layers).properties(width=width, height=height)


def _scale(log: bool, domain: Sequence[float]) -> Any:
    given: dict[str, Any] = {"type": "log"} if log else {"zero": False}
    return altair().Scale(**given, **({"domain": list(domain), "nice": False} if domain else {}))


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    widths: Sequence[int] = (),
    marks: Mapping[tuple[int, int], str] | None = None,
) -> Any:
    """A table as a picture; `marks` colours single cells by (row, column)."""
    alt = altair()
    wide = list(widths) or [max(90, WIDTH // len(headings))] * len(headings)
    left = [sum(wide[:i]) for i in range(len(wide))]
    cells = [
        {"x": left[j], "y": i * ROW, "text": text, "colour": (marks or {}).get((i - 1, j), INK),
         "weight": "bold" if i == 0 else "normal"}
        for i, row in enumerate([headings, *rows])
        for j, text in enumerate(row)
    ]  # fmt: skip
    size = {"width": sum(wide), "height": (len(rows) + 1) * ROW}
    place = {
        "x": alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, size["width"]], nice=False)),
        "y": alt.Y(
            "y:Q", axis=None, scale=alt.Scale(domain=[size["height"], -ROW / 2], nice=False)
        ),
    }
    text = (
        chart(cells)
        .mark_text(align="left", baseline="middle", fontSize=13)
        .encode(**place, text="text:N", color=alt.Color("colour:N", scale=None))
    )
    bold = text.transform_filter("datum.weight == 'bold'").mark_text(
        align="left", baseline="middle", fontSize=13, fontWeight=600
    )
    rules = [{"y": (i + 0.5) * ROW, "x": 0, "x2": size["width"]} for i in range(len(rows))]
    ruled = chart(rules).mark_rule(color=GRID).encode(**place, x2=alt.X2("x2:Q"))
    plain = text.transform_filter("datum.weight != 'bold'")
    return alt.layer(ruled, plain, bold).properties(**size)


def beside(*charts: Any) -> Any:
    """Charts side by side, each with its own scales."""
    return altair().hconcat(*charts, spacing=36).resolve_scale(**OWN_SCALES)
