"""The plane of promises as a picture: possible, unknown, impossible, and where the table stands."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.evaluate.look import BLUE, INK, SOFT, VERMILION, load_altair, theme
from voile.evaluate.planning.boundary import Plane, PlanePoint
from voile.evaluate.planning.pictures import save
from voile.schema.schema import large

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 760, 460
SUBTITLE = 95
"""Characters of a line of it that fit the width."""
REGIONS = {
    "possible: αβ can tell 0 records from all n": "#BBD9EC",
    "unknown": "#F4F1E8",
    "impossible for every algorithm (Theorem 3.3)": "#F3C4A8",
    "excluded: d ≥ γ": "#E3E6EA",
}
POSSIBLE, UNKNOWN, IMPOSSIBLE, EXCLUDED = REGIONS
CONTOURS = {1: "error 10 % of n", 2: "error 1 % of n"}
CAPTION = (
    "Errors: 95 %, of the worst counting query, with αβ's best retention against independent "
    "adversaries. Made with Voile."
)


def draw(plane: Plane) -> alt.HConcatChart:
    """Priors on a logarithmic axis, posteriors from 0 to 1."""
    alt = load_altair()
    points = plane.points
    ends = [points[0].prior, points[-1].prior]
    x = alt.X(
        "prior:Q",
        scale=alt.Scale(type="log", domain=ends, nice=False),
        axis=alt.Axis(title="prior d: what an adversary believes before", format="~e"),
    )
    y = alt.Y(
        "low:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(title="posterior γ: what one may believe after", format="~g"),
    )
    layers = [_areas(alt, points, x, y), *_contours(alt, points, x, y), *_position(alt, plane)]
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    framed = alt.vconcat(chart)
    return theme(
        framed,
        title=f"What can be promised about {plane.name}",
        subtitle=[
            f"n = {plane.boundary.rows:,} rows, m = {large(plane.boundary.domain_size)} possible "
            "tuples",
            *textwrap.wrap(plane.boundary.in_words(), SUBTITLE),
        ],
        caption=CAPTION,
    )


def write(plane: Plane, path: Path, *, overwrite: bool) -> Path:
    return save(lambda: draw(plane), path, overwrite=overwrite)


def areas(point: PlanePoint) -> list[tuple[str, float, float]]:
    """The regions above one prior: name, from where, up to where."""
    possible, forbidden = point.possible_from[0], point.impossible_up_to
    floor = point.prior if forbidden is None else max(point.prior, forbidden)
    ceiling = 1.0 if possible is None else possible
    return [
        (POSSIBLE, ceiling, 1.0),
        (UNKNOWN, floor, max(floor, ceiling)),
        (IMPOSSIBLE, point.prior, floor),
        (EXCLUDED, 0.0, point.prior),
    ]


def _areas(alt: Any, points: tuple[PlanePoint, ...], x: Any, y: Any) -> Any:
    found = [(point.prior, *area) for point in points for area in areas(point)]
    there = {name for _, name, low, high in found if high > low}
    seen = [name for name in REGIONS if name in there]
    rows = [
        {"prior": prior, "region": name, "low": low, "high": high}
        for prior, name, low, high in found
        if name in there
    ]
    colour = alt.Color(
        "region:N",
        scale=alt.Scale(domain=seen, range=[REGIONS[name] for name in seen]),
        legend=alt.Legend(title=None, orient="top", columns=2, labelLimit=420),
    )
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_area(opacity=1, clip=True)
        .encode(x=x, y=y, y2="high:Q", color=colour)
    )


def _contours(alt: Any, points: tuple[PlanePoint, ...], x: Any, y: Any) -> list[Any]:
    """Lines where αβ's error is a tenth and a hundredth of n, each with its name at its end."""
    layers = []
    for level, name in CONTOURS.items():
        found = [(p.prior, p.possible_from[level]) for p in points]
        rows = [{"prior": prior, "low": at} for prior, at in found if at is not None]
        if len(rows) < 2:
            continue
        line = alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=y)
        middle = min(rows, key=lambda row: abs(row["low"] - 0.62))
        text = alt.Chart(alt.InlineData(values=[middle])).encode(x=x, y=y)
        look = {"text": name, "align": "left", "dx": 8, "fontSize": 13, "color": BLUE}
        layers += [
            line.mark_line(color=BLUE, strokeWidth=1.4, strokeDash=[6, 3], clip=True),
            text.mark_text(**look),
        ]
    return layers


def _position(alt: Any, plane: Plane) -> list[Any]:
    """Where the table stands: the prior n/m of someone who knows its size, and the options."""
    density = float(plane.boundary.density)
    here = {"prior": plane.prior, "low": plane.posterior}
    size = alt.Chart(alt.InlineData(values=[{"prior": density}])).encode(x="prior:Q")
    own = alt.Chart(alt.InlineData(values=[here])).encode(x="prior:Q", y="low:Q")
    region = plane.region(plane.prior, plane.posterior)
    label = (
        f"d = {plane.prior:.3g} = {plane.prior_factor:.4g}·n/m, γ = {plane.posterior:g}: {region}"
    )
    layers = []
    if density < plane.points[-1].prior:
        layers += [
            size.mark_rule(color=SOFT, strokeDash=[2, 3]),
            size.mark_text(text="n/m", fontSize=12, color=SOFT).encode(y=alt.value(-8)),
        ]
    if plane.prior < plane.points[-1].prior:
        # On the side where there is more room.
        middle = math.sqrt(plane.points[0].prior * plane.points[-1].prior)
        side = ("left", 12) if plane.prior < middle else ("right", -12)
        beside = {"align": side[0], "dx": side[1], "fontSize": 14, "fontWeight": 600}
        layers += [
            own.mark_point(filled=True, size=120, color=VERMILION, opacity=1, stroke="white"),
            own.mark_text(
                text=label,
                color="white",
                stroke="white",
                strokeWidth=4,
                strokeJoin="round",
                **beside,
            ),
            own.mark_text(text=label, color=INK, **beside),
        ]
    return layers
