"""Errors at equal privacy, and figures that are saved or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voile.reproduce.look import BLUE, INK, METHOD_COLOURS, SOFT, VERMILION, altair, beside, records

WIDTH, HEIGHT = 400, 300
Columns = Mapping[str, Sequence[Any]]


def picture(errors: Columns, saved: Columns) -> Any:
    return beside(errors_of(errors), savings(saved))


def chart(rows: Sequence[Mapping[str, Any]]) -> Any:
    alt = altair()
    return alt.Chart(alt.Data(values=list(rows)))


def errors_of(errors: Columns) -> Any:
    """One point a method, on a scale of factors."""
    alt = altair()
    rows = [row | {"text": told(row)} for row in records(errors)]
    y = alt.Y("method:N", sort=None, title=None,
              axis=alt.Axis(labelLimit=260, grid=True))  # fmt: skip
    x = alt.X("error:Q", title="error of a conjunct's share (root mean square)",
              scale=alt.Scale(type="log", domain=[1e-4, 1], nice=False),
              axis=alt.Axis(values=[0.0001, 0.001, 0.01, 0.1, 1], format="~g"))  # fmt: skip
    colour = alt.condition("datum.error < 0.01", alt.value(BLUE), alt.value(VERMILION))
    points = chart(rows).mark_point(filled=True, size=160, opacity=1)
    words = chart(rows).mark_text(dy=-16, fontSize=12, color=SOFT)
    layers = (
        points.encode(x=x, y=y, color=colour),
        words.encode(x=x, y=y, text="text:N"),
    )
    return alt.layer(*layers).properties(
        width=WIDTH, height=HEIGHT, title="The same promise, four ways"
    )


def told(row: Mapping[str, Any]) -> str:
    return f"{row['error']:.2g}, {row['figures']:,} figures"


def savings(saved: Columns) -> Any:
    """Figures by halves over figures of the larger tables; below 1 halves save."""
    alt = altair()
    counted = [{"k": r["k"], "ratio": r["ratio"], "how": f"d = {r['d']}"} for r in records(saved)]
    printed = [{"k": r["k"], "ratio": r["printed_ratio"], "how": "d = 2, printed formula"}
               for r in records(saved) if r["d"] == 2]  # fmt: skip
    names = ["d = 1", "d = 2", "d = 3", "d = 2, printed formula"]
    base = chart(counted + printed).encode(
        x=alt.X("k:Q", title="columns k", scale=alt.Scale(type="log", domain=[7, 300], nice=False),
                axis=alt.Axis(values=[8, 16, 32, 64, 128, 256], format="d")),
        y=alt.Y("ratio:Q", title="figures by halves / figures of tables of 2d",
                scale=alt.Scale(type="log"), axis=alt.Axis(format=",~r", tickCount=6)),
        color=alt.Color("how:N", title=None,
                        scale=alt.Scale(domain=names, range=[*METHOD_COLOURS[:3], SOFT]),
                        legend=alt.Legend(orient="bottom-left", symbolType="stroke",
                                          symbolSize=300)),
        strokeDash=alt.StrokeDash("how:N", legend=None,
                                  scale=alt.Scale(domain=names, range=[[1, 0]] * 3 + [[4, 4]])),
    )  # fmt: skip
    even = chart([{"ratio": 1.0}]).mark_rule(color=INK, strokeWidth=1.2).encode(y="ratio:Q")
    word = chart([{"ratio": 1.0, "k": 290}]).mark_text(
        text="below: halves save", align="right", dy=12, fontSize=12, color=INK
    )
    layers = (even, base.mark_line(strokeWidth=2.4), base.mark_point(filled=True, size=40),
              word.encode(x="k:Q", y="ratio:Q"))  # fmt: skip
    return alt.layer(*layers).properties(
        width=WIDTH, height=HEIGHT, title="Figures that halves need"
    )
