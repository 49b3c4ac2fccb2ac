"""Shares of rows that come back, over the size of the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voile.reproduce.look import INK, METHOD_COLOURS, SOFT, VERMILION, altair, records

WIDTH, HEIGHT = 700, 400
Columns = Mapping[str, Sequence[Any]]


def chart(rows: Sequence[Mapping[str, Any]]) -> Any:
    alt = altair()
    return alt.Chart(alt.Data(values=list(rows)))


def picture(columns: Columns, questions: Sequence[int]) -> Any:
    """A line for each number of questions; rings where the slides' and a server's noise are."""
    alt = altair()
    names = [f"{count:,} questions" for count in questions]
    rows = [row | {"asked": f"{row['questions']:,} questions"} for row in records(columns)]
    plain = [row for row in rows if row["noise"].replace(".", "").isdigit()]
    named = [row | {"text": row["noise"]} for row in rows if row not in plain]
    x = alt.X("roots:Q", title="standard deviation of the noise, in √n",
              scale=alt.Scale(type="log", domain=[0.09, 100], nice=False),
              axis=alt.Axis(values=[0.1, 0.25, 0.5, 1, 2, 4, 10, 30], format="~g"))  # fmt: skip
    shares = {"title": "rows recovered", "axis": alt.Axis(format=".0%"),
              "scale": alt.Scale(domain=[0.45, 1.0], nice=False)}  # fmt: skip
    y, most, level = (alt.Y(f"{name}:Q", **shares) for name in ("recovered", "most", "y"))
    colour = alt.Color(
        "asked:N", title=None, scale=alt.Scale(domain=names, range=METHOD_COLOURS[: len(names)]),
        legend=alt.Legend(orient="top", symbolType="stroke", symbolSize=400),
    )  # fmt: skip
    base = chart(plain)
    ring = chart(named)
    words = [row for row in named if row["questions"] == questions[-1]]
    layers = (
        chart([{"y": 0.5}]).mark_rule(color=SOFT, strokeDash=[4, 3]).encode(y=level),
        chart([{"x": 1.0}]).mark_rule(color=VERMILION, strokeDash=[6, 4]).encode(
            x=alt.X("x:Q", scale=alt.Scale(type="log"))),
        base.mark_line(strokeWidth=1, opacity=0.6).encode(x=x, y=most, color=colour),
        base.mark_line(strokeWidth=2.5).encode(x=x, y=y, color=colour),
        base.mark_point(filled=True, size=50, opacity=1).encode(x=x, y=y, color=colour),
        ring.mark_point(size=110, strokeWidth=2.5, opacity=1).encode(x=x, y=y, color=colour),
        chart(words).mark_text(align="left", dx=12, fontSize=12, color=INK).encode(
            x=x, y=y, text="text:N"),
        chart([{"x": 95.0, "y": 0.5}]).mark_text(
            text="guessing", align="right", dy=13, fontSize=12, color=SOFT).encode(
                x=alt.X("x:Q"), y=level),
    )  # fmt: skip
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
