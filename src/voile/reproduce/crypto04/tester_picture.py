"""The slide's two bells, and chances to decide rightly over what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from voile.reproduce.look import BLUE, INK, SOFT, VERMILION, altair, beside, records

BINS = 28
WIDTH, HEIGHT = 400, 360
Columns = Mapping[str, Sequence[Any]]


def picture(
    halves: Columns, decided: Columns, separation: float, rows: int, deltas: Sequence[float]
) -> Any:
    return beside(bells(halves, separation, rows, deltas), costs(decided))


def chart(rows: Sequence[Mapping[str, Any]]) -> Any:
    alt = altair()
    return alt.Chart(alt.Data(values=list(rows)))


def bells(halves: Columns, separation: float, rows: int, deltas: Sequence[float]) -> Any:
    """Histograms of a(q, β) − |q|·p(β), in √n."""
    alt = altair()
    scaled = np.array(halves["other"]) / math.sqrt(rows)
    known = np.array(halves["delta"])
    edges = np.linspace(scaled.min(), scaled.max(), BINS + 1)
    names = [f"Δ = {delta:g}" for delta in deltas]
    bars: list[dict[str, Any]] = [
        {"x": float(edges[i]), "x2": float(edges[i + 1]), "count": int(count), "zero": 0, "Δ": name}
        for delta, name in zip(deltas, names, strict=True)
        for i, count in enumerate(np.histogram(scaled[known == delta], edges)[0])
    ]
    top = max(bar["count"] for bar in bars)
    height = alt.Scale(domain=[0, 1.25 * top], nice=False)
    x = alt.X("x:Q", title="a(q, β) − |q|·p(β), in √n", scale=alt.Scale(zero=False, nice=False))
    colour = alt.Color("Δ:N", title=None, scale=alt.Scale(domain=names, range=[BLUE, VERMILION]),
                       legend=alt.Legend(orient="top"))  # fmt: skip
    drawn = chart(bars).mark_rect(opacity=0.55).encode(
        x=x, x2="x2:Q", y=alt.Y("zero:Q", title="accepted halves", scale=height), y2="count:Q",
        color=colour,
    )  # fmt: skip
    means = [float(scaled[known == delta].mean()) for delta in deltas]
    arrow = [{"x": means[0], "x2": means[1], "y": 1.08 * top}]
    word = [{"x": sum(means) / 2, "y": 1.16 * top,
             "text": f"{separation:.2f}·(Δ2 − Δ1)·√n; printed: 1"}]  # fmt: skip
    y = alt.Y("y:Q", scale=height)
    layers = (
        drawn,
        chart([{"x": mean, "y": 0, "y2": 1.08 * top} for mean in means])
        .mark_rule(color=INK, strokeDash=[4, 3])
        .encode(x=x, y=y, y2="y2:Q"),
        chart(arrow).mark_rule(color=INK, strokeWidth=2).encode(x=x, x2="x2:Q", y=y),
        chart(word).mark_text(fontSize=13, color=INK).encode(x=x, y=y, text="text:N"),
    )
    told = f"{len(known):,} halves that were accepted"
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=told)


def costs(decided: Columns) -> Any:
    alt = altair()
    names = ["one biased half", "covariance"]
    base = chart(records(decided)).encode(
        x=alt.X("questions:Q", title="questions asked, on average", scale=alt.Scale(type="log"),
                axis=alt.Axis(format="~s", tickCount=5)),
        y=alt.Y("right:Q", title="chance to decide rightly", axis=alt.Axis(format=".0%"),
                scale=alt.Scale(domain=[0.5, 1.0])),
        color=alt.Color("tester:N", title=None,
                        scale=alt.Scale(domain=names, range=[VERMILION, BLUE]),
                        legend=alt.Legend(orient="top", symbolType="stroke", symbolSize=400)),
    )  # fmt: skip
    biased = base.transform_filter("datum.bias != null")
    words = biased.mark_text(align="left", dx=6, dy=16, fontSize=12).encode(
        text=alt.Text("label:N"), color=alt.value(SOFT)
    )
    labelled = words.transform_calculate(
        label="datum.bias == 1 ? 'as printed, √n' : format(datum.bias, '.1f') + '·√n'"
    )
    line = base.mark_line(strokeWidth=2.5)
    points = base.mark_point(filled=True, size=50, opacity=1)
    return alt.layer(line, points, labelled).properties(
        width=WIDTH, height=HEIGHT, title="What a decision costs"
    )
