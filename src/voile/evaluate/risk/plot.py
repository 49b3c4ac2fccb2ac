"""Pictures of risk: sizes of classes, chances, columns, and the sets that single rows out."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from voile.evaluate.look import BLUE, GRID, INK, SOFT, VERMILION, load_altair, theme
from voile.evaluate.risk.found import Risk

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 350, 240
LABELS = 220
"""Room for the names of sets of columns."""
SETS_SHOWN = 12
COLUMNS_SHOWN = 12
SET_COLOURS = [VERMILION, "#E69F00", "#56B4E9", BLUE, "#7B8794"]
MOST_STEPS = 400
FLAT_LABELS = 5
"""As many bars as have room for labels that are not turned."""
WIDEST_BAR = 70


def draw(risk: Risk) -> alt.HConcatChart:
    """The four pictures together, under the most important sentence."""
    return theme(
        panels(risk),
        title=f"How many rows of {risk.table} can be told apart",
        subtitle=wrapped(risk.headline()),
        caption="Of the private table itself: not for publication.",
    )


def draw_for_page(risk: Risk) -> alt.HConcatChart:
    """The same without a heading, which the page has already."""
    plain = {"fontSize": 1, "subtitleFontSize": 1, "offset": 0}
    return theme(panels(risk), title="", subtitle="", caption="", heading=plain)


def wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 130)


def panels(risk: Risk) -> Any:
    alt = load_altair()
    own = {"color": "independent"}
    upper = alt.hconcat(class_sizes(risk), chances(risk), spacing=60).resolve_scale(**own)
    lower = alt.hconcat(columns(risk), sets(risk), spacing=40).resolve_scale(**own)
    return alt.vconcat(upper, lower, spacing=40).resolve_scale(**own)


def panel(chart: Any, title: str, subtitle: str, width: int = WIDTH) -> Any:
    alt = load_altair()
    return chart.properties(
        width=width, height=HEIGHT, title=alt.TitleParams(title, subtitle=subtitle)
    )


def class_sizes(risk: Risk) -> Any:
    """Rows by the size of their class; red where the chance is above the threshold."""
    alt = load_altair()
    groups = [g for g in risk.class_sizes() if g["rows"]]
    points = [
        {
            "size": size_words(g["from"] or 1, g["to"]),
            "rows": g["rows"],
            "classes": g["classes"],
            "share": (g["rows"] or 0) / risk.rows,
            "sort": place,
            "chance": above_words(risk, 1 / (g["from"] or 1)),
        }
        for place, g in enumerate(groups)
    ]
    order = [p["size"] for p in points]
    few = len(points) <= FLAT_LABELS
    shades = alt.Scale(domain=[above_words(risk, 1), above_words(risk, 0)], range=[VERMILION, BLUE])
    chart = (
        alt.Chart(alt.InlineData(values=points))
        .mark_bar(cornerRadiusTopLeft=2, cornerRadiusTopRight=2, **few_bars(len(points), WIDTH))
        .encode(
            x=alt.X("size:N", sort=order, title="rows that share all quasi-identifiers",
                    axis=alt.Axis(labelAngle=0 if few else -35, labelOverlap=False, grid=False)),
            y=alt.Y("share:Q", title="share of rows", axis=alt.Axis(format="%", tickCount=5)),
            color=alt.Color("chance:N", scale=shades, legend=None),
            tooltip=[
                alt.Tooltip("size:N", title="class of"),
                alt.Tooltip("classes:Q", title="classes", format=","),
                alt.Tooltip("rows:Q", title="rows", format=","),
                alt.Tooltip("share:Q", title="share of rows", format=".2%"),
            ],
        )
    )  # fmt: skip
    words = f"Red: chance to be found again above {risk.threshold:.3g}"
    return panel(chart, "Rows by the size of their class", words)


def few_bars(number: int, room: int) -> dict[str, int]:
    """Few bars are kept from filling the picture."""
    return {"size": WIDEST_BAR} if number * WIDEST_BAR < 0.9 * room else {}


def size_words(start: int, end: int | None) -> str:
    if end is None:
        return f"{start:,}+"
    return f"{start:,}" if start == end else f"{start:,}–{end:,}"


def above_words(risk: Risk, chance: float) -> str:
    return f"chance {'above' if chance > risk.threshold else 'at most'} {risk.threshold:.3g}"


def chances(risk: Risk) -> Any:
    """The share of rows that are found again with at least a chance."""
    alt = load_altair()
    whose = {"prosecutor": risk.prosecutor} | (
        {"journalist": risk.journalist} if risk.journalist else {}
    )
    steps = {name: thinned(found.steps()) for name, found in whose.items()}
    smallest = min(chance for found in steps.values() for chance, _ in found)
    low = min(0.1, 10 ** math.floor(math.log10(smallest)))
    colours = alt.Scale(domain=list(whose), range=[BLUE, VERMILION][: len(whose)])
    nearest = alt.selection_point(
        nearest=True, on="pointerover", fields=["chance"], empty=False, clear="pointerout"
    )
    encoded = {
        "x": alt.X("chance:Q", title="chance that a row is found again",
                   scale=alt.Scale(type="log", domain=[low, 1]),
                   axis=alt.Axis(format="~g", values=ticks(low))),
        "y": alt.Y("share:Q", title="share of rows with at least that chance",
                   axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1])),
        "color": alt.Color("who:N", scale=colours, legend=(
            alt.Legend(title=None, orient="bottom", offset=10) if len(whose) > 1 else None)),
    }  # fmt: skip
    told = [
        alt.Tooltip("who:N", title="who"),
        alt.Tooltip("chance:Q", title="chance", format=".4g"),
        alt.Tooltip("share:Q", title="share of rows", format=".3%"),
    ]
    drawn = {name: with_ends(found, low) for name, found in steps.items()}
    lines = alt.Chart(records(drawn)).mark_line(interpolate="step-before", strokeWidth=2.5)
    dots = alt.Chart(records(steps)).mark_point(filled=True, size=90, opacity=0.001)
    shown = alt.when(nearest).then(alt.value(1)).otherwise(alt.value(0.001))
    marked = alt.Chart(alt.InlineData(values=[{"chance": risk.threshold}]))
    rule = marked.mark_rule(color=SOFT, strokeDash=[4, 4]).encode(x="chance:Q")
    chart = alt.layer(
        rule, lines.encode(**encoded),
        dots.encode(**encoded, opacity=shown, tooltip=told).add_params(nearest),
    )  # fmt: skip
    words = f"1 / the people that a row may be; dashed: threshold {risk.threshold:.3g}"
    return panel(chart, "Chance to be found again", words)


def records(steps: dict[str, list[tuple[float, float]]]) -> Any:
    """The steps of each who looks, as a chart takes them."""
    alt = load_altair()
    return alt.InlineData(
        values=[
            {"chance": chance, "share": share, "who": name}
            for name, found in steps.items()
            for chance, share in found
        ]
    )


def with_ends(steps: list[tuple[float, float]], low: float) -> list[tuple[float, float]]:
    """From all rows, at the lowest chance that is drawn, down to none above the largest."""
    return [(low, 1.0), *steps, (steps[-1][0], 0.0)]


def ticks(low: float) -> list[float]:
    """1, 2 and 5 of every decade from the lowest to 1."""
    decades = range(math.floor(math.log10(low)), 0)
    return [float(f"{m}e{k}") for k in decades for m in (1, 2, 5)] + [1.0]


def thinned(steps: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """As many steps as can be seen, the ends among them."""
    every = max(1, math.ceil(len(steps) / MOST_STEPS))
    kept = steps[::every]
    return kept if kept[-1] == steps[-1] else [*kept, steps[-1]]


def columns(risk: Risk) -> Any:
    """Which columns single rows out."""
    found = risk.unique_sets.columns[:COLUMNS_SHOWN]
    points = [
        {"name": c.column, "share": c.share, "minimal": c.minimal} for c in found if c.minimal
    ]
    title, words = (
        "Columns that single rows out",
        "Share of the rows' scores from sets with the column",
    )
    if not points:
        return panel(nothing(risk), title, words)
    alt = load_altair()
    chart = (
        alt.Chart(alt.InlineData(values=points))
        .mark_bar(color=BLUE, cornerRadiusEnd=2, **few_bars(len(points), HEIGHT))
        .encode(
            y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=170, grid=False)),
            x=alt.X("share:Q", title="share of scores",
                    axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1])),
            tooltip=[
                alt.Tooltip("name:N", title="column"),
                alt.Tooltip("share:Q", title="share", format=".1%"),
                alt.Tooltip("minimal:Q", title="minimal sets with it", format=","),
            ],
        )
    )  # fmt: skip
    return panel(chart, title, words)


def sets(risk: Risk) -> Any:
    """Which few columns single out how many rows."""
    most = sorted(risk.unique_sets.sets, key=lambda s: -s.minimal)[:SETS_SHOWN]
    points: list[dict[str, Any]] = [
        {
            "name": " + ".join(s.columns),
            "rows": s.rows,
            "minimal": s.minimal,
            "size": f"{len(s.columns)} column{'s' * (len(s.columns) > 1)}",
        }
        for s in most
        if s.minimal
    ]
    title = "What is enough to know"
    words = "Rows that these columns single out, none fewer"
    if not points:
        return panel(nothing(risk), title, words, LABELS + 80)
    alt = load_altair()
    sizes = sorted({p["size"] for p in points})
    colours = alt.Scale(domain=sizes, range=[SET_COLOURS[min(int(s.split()[0]), 5) - 1]
                                             for s in sizes])  # fmt: skip
    chart = (
        alt.Chart(alt.InlineData(values=points))
        .mark_bar(cornerRadiusEnd=2, **few_bars(len(points), HEIGHT))
        .encode(
            y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=LABELS, grid=False)),
            x=alt.X("minimal:Q", title="rows", axis=alt.Axis(format="~s", tickCount=5)),
            color=alt.Color("size:N", scale=colours, legend=(
                alt.Legend(title=None, orient="bottom", offset=10) if len(sizes) > 1 else None)),
            tooltip=[
                alt.Tooltip("name:N", title="columns"),
                alt.Tooltip("minimal:Q", title="rows, by no smaller set", format=","),
                alt.Tooltip("rows:Q", title="rows in all", format=","),
            ],
        )
    )  # fmt: skip
    return panel(chart, title, words, 280)


def nothing(risk: Risk) -> Any:
    """In the place of a picture of nothing."""
    alt = load_altair()
    text = f"No row is singled out by {risk.unique_sets.largest} columns or fewer."
    frame = alt.Chart(alt.InlineData(values=[{}]))
    back = frame.mark_rect(color=GRID, opacity=0.4)
    return back + frame.mark_text(text=text, fontSize=14, color=INK)
