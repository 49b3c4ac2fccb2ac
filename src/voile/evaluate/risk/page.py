"""Risk in words: each number by its name, and what the name means."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from voile.evaluate import page_pictures, pages
from voile.evaluate.drawing import (
    BLUE,
    GRID,
    INK,
    SOFT,
    VERMILION,
    inline_chart,
    load_altair,
    log_ticks,
    theme,
)
from voile.evaluate.page_pictures import PicturePanel
from voile.evaluate.pages import NextStep, Report
from voile.evaluate.risk.found import Risk, words
from voile.evaluate.risk.uniqueness import ASSUMPTION
from voile.units import counted, percent, rounded

if TYPE_CHECKING:
    import altair as alt

MEANINGS = {
    "k": "rows of the smallest class",
    "classes": "different combinations of quasi-identifiers",
    "ℓ distinct": "different sensitive values in the poorest class",
    "ℓ frequency": "1 / the largest share of a sensitive value in a class",
    "ℓ entropy": "e to the smallest entropy of a class",
    "t": "largest Jensen–Shannon divergence of a class (natural logarithm)",
    "t equal": "the same as earth mover's distance, values equally far apart",
    "δ semantic": "largest |ln(share in a class / share in the table)|; ∞ if a value is absent",
    "δ, absent ignored": "the same, of values that occur in the class",
    "prosecutor, largest": "worst row, by someone who knows that it is there",
    "prosecutor, average": "the same for all rows on average",
    "prosecutor, above": "rows whose chance is above the threshold (--threshold)",
    "journalist, largest": "worst row, by someone who knows the population only",
    "journalist, average": "the same for all rows on average",
    "journalist, above": "rows whose chance is above the threshold (--threshold)",
    "marketer": "rows found again when each is linked to somebody at random",
    "presence": "share of the population's people of a class who are in the table",
    "unique": "rows that are alone in their class",
    "population unique": "counted: of those, alone in the population too",
    "population unique, Pitman": f"estimated, if {ASSUMPTION}",
    "population unique, Zayatz": f"estimated, if {ASSUMPTION}",
    "suppressed cells": "each counted as a value of its own",
    "suppressed rows": "rows of which no quasi-identifier is shown",
}


SINGLED = "singled out by"
ABOVE = ", above"


def meaning(name: str) -> str:
    """What a number is, without the sensitive attribute in brackets or the threshold's value."""
    if name.startswith(SINGLED):
        most = int(name.removeprefix(SINGLED))
        if most == 1:
            return "rows that 1 column is enough to single out"
        return f"rows that {most} columns, or fewer, are enough to single out"
    plain = name.split(" [", maxsplit=1)[0]
    above = plain.find(ABOVE)
    return MEANINGS.get(plain if above < 0 else plain[: above + len(ABOVE)], "")


def facts(risk: Risk) -> list[tuple[str, str]]:
    """Each number by its name, in the order in which people ask for them."""
    return [
        ("k", f"{risk.k:,}"),
        ("classes", f"{len(risk.classes):,}"),
        *_of_values(risk),
        *_found_again(risk),
        *_alone(risk),
        *_suppressed(risk),
    ]


def _of_values(risk: Risk) -> list[tuple[str, str]]:
    names = {
        "ℓ distinct": "l_distinct",
        "ℓ frequency": "l_frequency",
        "ℓ entropy": "l_entropy",
        "t": "t",
        "t equal": "t_emd_equal",
        "δ semantic": "semantic",
        "δ, absent ignored": "semantic_ignored",
    }
    several = len(risk.disclosures) > 1
    return [
        (f"{name} [{d.attribute}]" if several else name, rounded(d.measured[key]))
        for d in risk.disclosures
        for name, key in names.items()
    ]


def _found_again(risk: Risk) -> list[tuple[str, str]]:
    found = []
    for who, chances in (("prosecutor", risk.prosecutor), ("journalist", risk.journalist)):
        if chances:
            found += [
                (f"{who}, largest", f"{chances.largest:.4g}"),
                (f"{who}, average", f"{chances.average:.4g}"),
                (
                    f"{who}{ABOVE} {chances.threshold:.3g}",
                    f"{percent(chances.above, rough=True)} of rows",
                ),
            ]
    found.append(("marketer", f"{percent(risk.marketer, rough=True)} of rows"))
    if risk.presence:
        found.append(("presence", f"{risk.presence.low:.4g} to {risk.presence.high:.4g}"))
    return found


def _alone(risk: Risk) -> list[tuple[str, str]]:
    alone = risk.uniqueness
    found = [("unique", f"{counted(alone.unique, 'row')} ({percent(alone.share, rough=True)})")]
    if alone.population_unique is not None:
        found.append(("population unique", counted(alone.population_unique, "row")))
    if alone.pitman is not None and alone.zayatz is not None:
        found.append(("population unique, Pitman", f"about {counted(alone.pitman, 'row')}"))
        found.append(("population unique, Zayatz", f"about {counted(alone.zayatz, 'row')}"))
    few = f"{SINGLED} {risk.unique_sets.largest}"
    return [*found, (few, counted(risk.unique_sets.rows, "row"))]


def _suppressed(risk: Risk) -> list[tuple[str, str]]:
    if not risk.suppressed_cells:
        return []
    left = f", {risk.rows_left_out:,} left out" if risk.rows_left_out else ""
    return [
        ("suppressed cells", f"{risk.suppressed_cells:,}"),
        ("suppressed rows", f"{risk.suppressed_rows:,}{left}"),
    ]


# --------- pictures of risk: sizes of classes, chances, columns, and the sets that single rows out


WIDTH, HEIGHT = 350, 240
LISTED = 270
"""The width of a picture with names at its left, on a page."""
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


def wrapped(text: str) -> list[str]:
    """The lines of a subtitle."""
    return textwrap.wrap(text, 130)


def panels(risk: Risk) -> Any:
    """Classes and chances above, columns and sets below."""
    alt = load_altair()
    own = {"color": "independent"}
    upper = alt.hconcat(class_sizes(risk), chances(risk), spacing=60).resolve_scale(**own)
    lower = alt.hconcat(columns(risk), sets(risk), spacing=40).resolve_scale(**own)
    return alt.vconcat(upper, lower, spacing=40).resolve_scale(**own)


def panel(chart: Any, title: str, subtitle: str, width: int = WIDTH) -> Any:
    """A chart of the common height with its title."""
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
        inline_chart(points)
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
    """The sizes of a group of classes: 5, 6–10, 100+."""
    if end is None:
        return f"{start:,}+"
    return f"{start:,}" if start == end else f"{start:,}–{end:,}"


def above_words(risk: Risk, chance: float) -> str:
    """Whether a chance is above the threshold, as the legend says it."""
    return f"chance {'above' if chance > risk.threshold else 'at most'} {risk.threshold:.3g}"


def chances(risk: Risk, *, hovered: bool = True) -> Any:
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
                   axis=alt.Axis(format="~g", values=log_ticks(low, 1.0))),
        "y": alt.Y("share:Q", title="share of rows with at least that chance",
                   axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(domain=[0, 1])),
        "color": alt.Color("who:N", scale=colours, legend=(
            alt.Legend(title=None, orient="bottom", offset=10) if len(whose) > 1 else None)),
    }  # fmt: skip
    tips = [
        alt.Tooltip("who:N", title="who"),
        alt.Tooltip("chance:Q", title="chance", format=".4g"),
        alt.Tooltip("share:Q", title="share of rows", format=".3%"),
    ]
    drawn = {name: with_ends(found, low) for name, found in steps.items()}
    lines = inline_chart(records(drawn)).mark_line(interpolate="step-before", strokeWidth=2.5)
    dots = inline_chart(records(steps)).mark_point(filled=True, size=90, opacity=0.001)
    shown = alt.when(nearest).then(alt.value(1)).otherwise(alt.value(0.001))
    marked = inline_chart([{"chance": risk.threshold}])
    rule = marked.mark_rule(color=SOFT, strokeDash=[4, 4]).encode(x="chance:Q")
    over = dots.encode(**encoded, opacity=shown, tooltip=tips).add_params(nearest)
    chart = alt.layer(rule, lines.encode(**encoded), *([over] if hovered else []))
    words = f"1 / the people that a row may be; dashed: threshold {risk.threshold:.3g}"
    return panel(chart, "Chance to be found again", words)


def records(steps: dict[str, list[tuple[float, float]]]) -> list[dict[str, Any]]:
    """The steps of each attacker, as a chart takes them."""
    return [
        {"chance": chance, "share": share, "who": name}
        for name, found in steps.items()
        for chance, share in found
    ]


def with_ends(steps: list[tuple[float, float]], low: float) -> list[tuple[float, float]]:
    """From all rows, at the lowest chance that is drawn, down to none above the largest."""
    return [(low, 1.0), *steps, (steps[-1][0], 0.0)]


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
        inline_chart(points)
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
        inline_chart(points)
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
    text = f"No row is singled out by {risk.unique_sets.largest} columns or fewer."
    frame = inline_chart([{}])
    back = frame.mark_rect(color=GRID, opacity=0.4)
    return back + frame.mark_text(text=text, fontSize=14, color=INK)


# ---------------------- A page about a table's risk, in one file that loads nothing from elsewhere


def report(risk: Risk, command: str) -> Report:
    """The numbers, what they mean, and pictures; `command` looks for a release."""
    about = f"{counted(risk.rows, 'row')}. Quasi-identifiers: {words(risk.qi)}."
    if risk.sensitive:
        about += f" Sensitive: {words(risk.sensitive)}."
    return Report(
        f"Risk of {risk.table}",
        f"How many rows of {risk.table} can be told apart",
        about,
        [
            pages.headline(risk.headline(), warning=risk.k < 2),
            figures(risk),
            pages.notes(risk.notes),
            page_pictures.panels(drawn(risk)),
            pages.heading("The same in numbers"),
            sizes_table(risk),
            sets_table(risk),
            pages.heading("All measures"),
            pages.facts(
                "Measures, each with what it means",
                [(name, value, meaning(name)) for name, value in facts(risk)],
                ["measure", "value", "what it is"],
            ),
        ],
        [NextStep("See what could be published instead, and what it would lose:", command)],
        "Made with Voile from the private table: true counts of it stand on this page. Do not "
        "publish it.",
    )


def drawn(risk: Risk) -> list[PicturePanel]:
    """The four pictures, each with its words."""
    spoken = (
        "Bar chart: the share of rows in classes of each size. The numbers are in the table of "
        "class sizes.",
        "Step chart: the share of rows that are found again with at least a chance. The largest "
        "and the average are among all measures.",
        "Bar chart: how much each column contributes to singling rows out.",
        "Bar chart: which few columns single out how many rows. The numbers are in the table of "
        "columns.",
    )
    charts = (class_sizes(risk), chances(risk, hovered=False), columns(risk), sets(risk))
    return [untitled(chart, text) for chart, text in zip(charts, spoken, strict=True)]


def untitled(chart: Any, spoken: str) -> PicturePanel:
    """A panel whose title stands on the page rather than in the picture."""
    title, note = chart.title.text, chart.title.subtitle
    chart.title = load_altair().Undefined
    # What lists names at its left is as wide as what does not.
    named = any("labelLimit" in str(part) for part in (chart.to_dict().get("encoding", {}),))
    return PicturePanel(
        title, chart, spoken, note, (LISTED, HEIGHT) if named else page_pictures.PANEL
    )


def sizes_table(risk: Risk) -> str:
    """Rows by the size of their class."""
    rows = [
        pages.row(
            pages.head_cell(size_words(g["from"] or 1, g["to"])),
            pages.number_cell(f"{g['classes']:,}"), pages.number_cell(f"{g['rows']:,}"),
            pages.number_cell(percent((g["rows"] or 0) / risk.rows, rough=True)),
        )
        for g in risk.class_sizes() if g["rows"]
    ]  # fmt: skip
    headings = ["class of", "classes", "rows", "share of rows"]
    return pages.table("Class sizes", headings, rows, {1, 2, 3})


def sets_table(risk: Risk) -> str:
    """The columns that single rows out, alone or together."""
    most = sorted(risk.unique_sets.sets, key=lambda s: -s.minimal)[:SETS_SHOWN]
    rows = [
        pages.row(
            pages.head_cell(" + ".join(s.columns)), pages.number_cell(f"{s.minimal:,}"),
            pages.number_cell(f"{s.rows:,}"),
        )
        for s in most if s.minimal
    ]  # fmt: skip
    if not rows:
        few = f"No row is singled out by {risk.unique_sets.largest} columns or fewer."
        return pages.paragraph(few)
    headings = ["columns", "rows, none fewer do", "rows in all"]
    return pages.table("Columns that together single rows out", headings, rows, {1, 2})


def figures(risk: Risk) -> str:
    """The main numbers."""
    return pages.figures(figure_cells(risk))


def figure_cells(risk: Risk) -> list[tuple[str, str, bool]]:
    """The main numbers, what each is, and whether it is bad."""
    above = risk.prosecutor.above
    return [
        (f"{risk.k:,}", "k: rows of the smallest class", risk.k < 2),
        (percent(risk.uniqueness.share, rough=True), "of the rows are alone in their class",
         risk.uniqueness.unique > 0),
        (percent(above, rough=True),
         f"of the rows are found again with a chance above {risk.threshold:.3g}", above > 0),
        (percent(risk.marketer, rough=True), "of the rows are found again on average", False),
        (f"{risk.unique_sets.rows:,}", "rows are singled out by "
         f"{risk.unique_sets.largest} columns or fewer", risk.unique_sets.rows > 0),
    ]  # fmt: skip
