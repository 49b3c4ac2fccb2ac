"""Walks of confidence as a picture: two fans side by side, each with where it ends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from voile.evaluate.drawing import BLUE, INK, SOFT, VERMILION, inline_chart, load_altair, theme
from voile.evaluate.page_pictures import PicturePanel, panels
from voile.evaluate.pages import NextStep, Report, head_cell, headline, number_cell, row, table
from voile.evaluate.sulq.simulation import Outcome, Simulation, expected_walk
from voile.units import rounded

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT, SIDE = 400, 420, 90
BANDS = ((0, 6, 0.16), (1, 5, 0.22), (2, 4, 0.3))
"""Places in QUANTILES, and how dark: between them are 99, 90 and 50 % of the walkers."""
BINS = 60
Y = "change of conf since the first answer"


def draw(found: Simulation) -> alt.HConcatChart:
    """The chosen noise to the left, what it is compared with to the right, on one scale."""
    alt = load_altair()
    reach = _reach(found)
    left, right = (_fan(found, one, reach, first=i == 0)
                   for i, one in enumerate((found.chosen, found.beside)))  # fmt: skip
    setup = found.setup
    belief = f"{setup.prior:.3g} to {found.limit:.3g}"
    return theme(
        alt.hconcat(left, right, spacing=44).resolve_scale(y="shared"),
        title=f"What {setup.queries:,} noisy answers tell about one row",
        subtitle=[
            f"{setup.walkers:,} adversaries who know every other row, each with their own answers. "
            "Bands: where 50, 90 and 99 % of them are.",
            f"Dashed: ±δ = ±{setup.delta:g}. A rise by δ takes a belief of {belief}. "
            "Orange: walks that were above it at some time.",
        ],
        caption=f"{setup.noise.capitalize()} noise; the person is in "
        f"{'every question' if setup.membership == 'all' else 'half of the questions'}, and the "
        "truth is what is suspected. Simulated, about no data. Made with Voile.",
    )


def report(found: Simulation) -> Report:
    """Both fans, the chances that were seen beside those that are bounded."""
    setup, reach = found.setup, _reach(found)
    drawn = [
        PicturePanel(_title(found, one), _fan(found, one, reach, first=True, brief=True),
              f"Fan chart: how conf changes answer by answer; {_said(one)}.", _said(one), None)
        for one in (found.chosen, found.beside)
    ]  # fmt: skip
    kept = "keeps" if found.keeps else "does not keep"
    noise = f"{setup.noise.capitalize()} noise of variance {found.chosen.variance:,.6g}"
    needs = "" if found.keeps else f": it needs {found.needed.variance:,.6g}"
    lead = (
        f"{setup.walkers:,} adversaries who know every other row. After {setup.queries:,} answers "
        f"conf is to have risen by more than δ = {setup.delta:g}, a belief from {setup.prior:.4g} "
        f"beyond {found.limit:.4g}, with probability at most η = {setup.eta:g}."
    )
    step = NextStep("See what too little noise gives away of a whole column:",
                    "voile attack reconstruct")  # fmt: skip
    return Report(
        "What noisy answers tell about one row",
        f"What {setup.queries:,} noisy answers tell about one row",
        lead,
        [
            headline(f"{noise} {kept} the promise{needs}.", warning=not found.keeps),
            panels(drawn),
            chances_table(found),
        ],
        [step],
        "Simulated, about no data. Made with Voile.",
    )


def chances_table(found: Simulation) -> str:
    """Chances that conf is above δ, seen and bounded, for both noises."""
    both = (found.chosen, found.beside)
    rows = [
        ("at the end, seen", [one.measured.end for one in both]),
        ("at the end, exactly", [one.bounds.end for one in both]),
        ("at the end, by the normal law", [one.bounds.normal for one in both]),
        ("at any time, seen", [one.measured.anytime for one in both]),
        ("at any time, at most", [one.bounds.anytime for one in both]),
        ("any property, any time, at most", [one.bounds.any_property for one in both]),
    ]
    return table(
        "Chances that conf is above δ",
        ["when", *(f"V = {one.variance:,.6g}" for one in both)],
        [row(head_cell(name), *(number_cell(rounded(p)) for p in values)) for name, values in rows],
        {1, 2},
    )


def _reach(found: Simulation) -> float:
    """How far up and down both fans go."""
    ends = [np.abs(one.walks.quantiles[[0, -1], -1]) for one in (found.chosen, found.beside)]
    finite = [float(x) for pair in ends for x in pair if math.isfinite(x)]
    return 1.12 * max([1.3 * found.setup.delta, *finite])


def _fan(found: Simulation, one: Outcome, reach: float, *, first: bool, brief: bool = False) -> Any:
    alt = load_altair()
    y = alt.Y("y:Q", scale=alt.Scale(domain=[-reach, reach], nice=False, clamp=True),
              title=Y if first else None, axis=alt.Axis(tickCount=8, format="~g"))  # fmt: skip
    x = alt.X("answer:Q", title="answers", scale=alt.Scale(domain=[0, found.setup.queries]),
              axis=alt.Axis(format=",.0f", tickCount=6, tickMinStep=1, grid=False))  # fmt: skip
    layers = [*_bands(one, x, y), *_walks(one, x, y), _limits(found.setup.delta, y)]
    fan = alt.layer(*layers).properties(width=250 if brief else WIDTH, height=HEIGHT)
    if not brief:  # a page has the title above the picture
        title = alt.TitleParams(_title(found, one), subtitle=_said(one))
        fan = fan.properties(title=title)
    return alt.hconcat(fan, _ends(found, one, reach), spacing=6).resolve_scale(y="shared")


def _title(found: Simulation, one: Outcome) -> str:
    shown = f"{one.variance:,.4g}" if one.variance < 1e4 else f"{one.variance:,.0f}"
    if math.isclose(one.variance, found.setup.queries):
        return f"As printed in the slides: V = T = {shown}"
    if one.variance == found.needed.variance:
        return f"As the promise needs: V = {shown}"
    return f"V = {shown}"


def _said(one: Outcome) -> str:
    ends, ever = one.bounds.end, one.rare_anytime.chance
    return f"above δ at the end: {_chance(ends)}; at any time: {_chance(ever)}"


def _chance(p: float) -> str:
    return f"{100 * p:.3g} %" if p >= 1e-3 else f"{p:.2g}"


def _bands(one: Outcome, x: Any, y: Any) -> list[Any]:
    walks = one.walks
    layers = []
    for low, high, opacity in BANDS:
        between = zip(walks.times, walks.quantiles[low], walks.quantiles[high], strict=True)
        rows = [{"answer": int(t), "y": _capped(a), "y2": _capped(b)} for t, a, b in between]
        chart = inline_chart(rows).mark_area(color=BLUE, opacity=opacity)
        layers.append(chart.encode(x=x, y=y, y2="y2:Q"))
    return layers


def _walks(one: Outcome, x: Any, y: Any) -> list[Any]:
    """A few walks; those that were ever above δ in orange."""
    layers = []
    for breached, colour, width, opacity in ((False, INK, 0.7, 0.35), (True, VERMILION, 1.0, 0.75)):
        rows = [
            {"answer": int(t), "y": _capped(c), "walk": i}
            for i, walk in enumerate(one.walks.drawn)
            if bool(one.walks.ever[i]) == breached
            for t, c in zip(one.walks.times, walk, strict=True)
        ]
        if rows:
            lines = inline_chart(rows).mark_line(
                color=colour, strokeWidth=width, opacity=opacity, clip=True
            )
            layers.append(lines.encode(x=x, y=y, detail="walk:N"))
    return layers


def _limits(delta: float, y: Any) -> Any:
    lines = inline_chart([{"y": delta}, {"y": -delta}])
    return lines.mark_rule(color=VERMILION, strokeDash=[6, 4], strokeWidth=1.6).encode(y=y)


def _names(delta: float, y: Any) -> list[Any]:
    """What the limits are called, at their outer ends: beside all that is drawn."""
    alt = load_altair()
    return [
        inline_chart([{"y": sign * delta}])
        .mark_text(text=f"{word}δ", align="left", dx=4, dy=-6 * sign, fontSize=14, color=VERMILION)
        .encode(x=alt.value(SIDE), y=y)
        for sign, word in ((1, "+"), (-1, "−"))
    ]


def _ends(found: Simulation, one: Outcome, reach: float) -> Any:
    """Where the walks end, as bars on the fan's own axis, with the normal law."""
    alt = load_altair()
    delta = found.setup.delta
    bars, curve = _histogram(one, reach, delta), _normal(found, one, reach)
    widest = 1.08 * max(row["x"] for row in bars + curve)
    x = {"axis": None, "scale": alt.Scale(domain=[0, widest])}
    y = alt.Y("y:Q", scale=alt.Scale(domain=[-reach, reach], nice=False), axis=None)
    colour = alt.condition("datum.above", alt.value(VERMILION), alt.value(BLUE))
    layers = [
        inline_chart(bars)
        .mark_rect(opacity=0.55, clip=True)
        .encode(x=alt.X("zero:Q", **x), x2="x:Q", y=y, y2="y2:Q", color=colour),
        inline_chart(curve)
        .mark_line(color=INK, strokeWidth=1.4)
        .encode(x=alt.X("x:Q", **x), y=y, order="at:Q"),
        _limits(delta, y),
        *_names(delta, y),
    ]
    title = alt.TitleParams("the end", fontSize=13, fontWeight="normal", color=SOFT)
    return alt.layer(*layers).properties(width=SIDE, height=HEIGHT, title=title)


def _histogram(one: Outcome, reach: float, delta: float) -> list[dict[str, Any]]:
    """Bars that part at ±δ."""
    width = delta / math.ceil(delta * BINS / (2 * reach))
    edges = width * np.arange(-math.ceil(reach / width), math.ceil(reach / width) + 1)
    ends = np.clip(one.walks.ends, edges[0], edges[-1])
    density = np.histogram(ends, edges)[0] / (len(ends) * width)
    return [
        {"y": float(a), "y2": float(a + width), "x": float(d), "zero": 0,
         "above": bool(a + width / 2 > delta)}
        for a, d in zip(edges[:-1], density, strict=True) if d
    ]  # fmt: skip


def _normal(found: Simulation, one: Outcome, reach: float) -> list[dict[str, Any]]:
    mean, deviation = expected_walk(found.setup, one.variance)
    grid = np.linspace(-reach, reach, 241)
    density = norm.pdf(grid, mean, deviation)
    return [
        {"y": float(a), "x": float(b), "at": i}
        for i, (a, b) in enumerate(zip(grid, density, strict=True))
    ]


def _capped(x: float) -> float:
    """No infinity in a picture."""
    return float(max(min(x, 1e6), -1e6))
