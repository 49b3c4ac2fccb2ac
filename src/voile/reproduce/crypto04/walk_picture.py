"""Two fans of walks side by side, each with where its walks end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voile.reproduce.look import BLUE, INK, VERMILION, altair, beside

WIDTH, HEIGHT, SIDE = 360, 380, 80
BANDS = ((0, 6, 0.16), (1, 5, 0.22), (2, 4, 0.3))
"""Places among the quantiles: between them are 99, 90 and 50 % of the walkers."""


def picture(found: Mapping[str, Any], queries: int, delta: float, reach: float) -> Any:
    named = (
        (f"The slides' noise: V = T = {queries}", found["slides"]),
        (f"What η = {found['eta']:g} needs: V = {found['ratio_drawn']:.1f}·T", found["needed"]),
    )
    fans = [fan(title, one, queries, delta, reach) for title, one in named]
    return beside(*fans)


def fan(title: str, one: Mapping[str, Any], queries: int, delta: float, reach: float) -> Any:
    alt = altair()
    domain = alt.Scale(domain=[-reach, reach], nice=False, clamp=True)
    y = alt.Y("y:Q", title="change of conf", scale=domain, axis=alt.Axis(tickCount=8))
    x = alt.X("answer:Q", title="answers", scale=alt.Scale(domain=[0, queries]),
              axis=alt.Axis(grid=False, tickCount=5))  # fmt: skip
    said = f"beyond δ at the end: {chance(one['exact'])}; ever: {chance(one['rare_ever'][0])}"
    walks = alt.layer(*bands(one, x, y), *drawn(one, x, y), limit(delta, y)).properties(
        width=WIDTH, height=HEIGHT, title=alt.TitleParams(title, subtitle=said)
    )
    return alt.hconcat(walks, ends(one, delta, reach), spacing=6).resolve_scale(y="shared")


def chance(p: float) -> str:
    return f"{100 * p:.1f} %" if p >= 1e-3 else f"{p:.1e}"


def chart(rows: Sequence[Mapping[str, Any]]) -> Any:
    alt = altair()
    return alt.Chart(alt.Data(values=list(rows)))


def bands(one: Mapping[str, Any], x: Any, y: Any) -> list[Any]:
    layers = []
    for low, high, opacity in BANDS:
        between = zip(one["times"], one["quantiles"][low], one["quantiles"][high], strict=True)
        rows = [{"answer": t, "y": a, "y2": b} for t, a, b in between]
        area = chart(rows).mark_area(color=BLUE, opacity=opacity, clip=True)
        layers.append(area.encode(x=x, y=y, y2="y2:Q"))
    return layers


def drawn(one: Mapping[str, Any], x: Any, y: Any) -> list[Any]:
    """A few walks; those that were ever beyond δ in orange."""
    layers = []
    for reached, colour, opacity in ((False, INK, 0.35), (True, VERMILION, 0.75)):
        rows = [
            {"answer": t, "y": c, "walk": i}
            for i, walk in enumerate(one["drawn"])
            if one["ever"][i] == reached
            for t, c in zip(one["times"], walk, strict=True)
        ]
        if rows:
            line = chart(rows).mark_line(color=colour, strokeWidth=0.9, opacity=opacity, clip=True)
            layers.append(line.encode(x=x, y=y, detail="walk:N"))
    return layers


def limit(delta: float, y: Any) -> Any:
    rule = chart([{"y": delta}]).mark_rule(color=VERMILION, strokeDash=[6, 4], strokeWidth=1.8)
    return rule.encode(y=y)


def ends(one: Mapping[str, Any], delta: float, reach: float) -> Any:
    """Where walks end, as bars on the fan's own axis."""
    alt = altair()
    width = 2 * reach / len(one["bars"])
    rows = [
        {"y": -reach + i * width, "y2": -reach + (i + 1) * width, "zero": 0, "x": bar,
         "beyond": -reach + (i + 0.5) * width > delta}
        for i, bar in enumerate(one["bars"])
    ]  # fmt: skip
    x = alt.X("zero:Q", axis=None, scale=alt.Scale(domain=[0, 1.05 * max(one["bars"])]))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-reach, reach], nice=False))
    colour = alt.condition("datum.beyond", alt.value(VERMILION), alt.value(BLUE))
    bars = chart(rows).mark_rect(opacity=0.6).encode(x=x, x2="x:Q", y=y, y2="y2:Q", color=colour)
    word = chart([{"y": delta}]).mark_text(
        text="+δ", align="left", dx=4, dy=-7, fontSize=14, color=VERMILION
    )
    layers = (bars, limit(delta, y), word.encode(x=alt.value(SIDE), y=y))
    return alt.layer(*layers).properties(width=SIDE, height=HEIGHT)
