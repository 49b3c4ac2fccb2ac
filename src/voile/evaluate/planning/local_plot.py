"""A plan of local perturbation as a picture: beliefs and errors against the retention."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from voile.evaluate.drawing import (
    INK,
    METHOD_COLOURS,
    METHOD_DASHES,
    OWN_SCALES,
    SOFT,
    inline_chart,
    line_scales,
    load_altair,
    logarithmic,
    requested_error,
    theme,
)
from voile.evaluate.planning.local import LocalPlan
from voile.evaluate.planning.local_choice import deviations, in_words
from voile.privacy.local import amplification, belief_after

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT = 430, 330
BELIEF = 0.1
"""The belief whose growth is drawn."""
WHOLE_ROW = "whole row, all columns alike"
MOST_LINES = len(METHOD_COLOURS)
LABEL = 28
LARGEST_ERROR = 1.0
"""A fraction cannot be off by more than this and mean anything."""
SMALLEST_ERROR = 1e-5
TITLE = "What keeping more of each value gives away, and what it buys"
CAPTION = (
    "Left: for any attacker, whatever they know. Right: at most, for any conditions on so many "
    "columns and any table. Made with Voile."
)


def draw(found: LocalPlan) -> alt.HConcatChart:
    """Left what an attacker gains, right what an analyst loses."""
    alt = load_altair()
    both = alt.hconcat(*panels(found), spacing=56).resolve_scale(**OWN_SCALES)
    return theme(
        both,
        title=TITLE,
        subtitle=_subtitle(found),
        caption=CAPTION,
    )


def panels(found: LocalPlan, width: int = WIDTH) -> list[Any]:
    """Beliefs against the retention, and errors against it."""
    alt = load_altair()
    return [_beliefs(alt, found), _errors(alt, found, width)]


def _subtitle(found: LocalPlan) -> list[str]:
    low, high = min(found.retentions), max(found.retentions)
    kept = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
    sent = "any number of rows" if found.rows is None else f"{found.rows:,} rows"
    columns = "1 column" if len(found.columns) == 1 else f"{len(found.columns)} columns"
    return [
        f"{in_words(found.options)}: retention {kept}, ε = {found.beliefs.epsilon:.3g} for a row",
        f"{columns}, {sent}; the points are the plan's own retentions",
    ]


# ---------------------------------------------------------------------- beliefs


def _beliefs(alt: Any, found: LocalPlan) -> Any:
    names, lines, points = belief_data(found)
    of_columns = [name for name in names if name != WHOLE_ROW]
    colours = [*METHOD_COLOURS[: len(of_columns)], INK]
    dashes = [*METHOD_DASHES[: len(of_columns)], [1, 0]]
    legend = alt.Legend(
        title=None, orient="top", columns=2, labelLimit=210, symbolSize=300, symbolType="stroke"
    )
    encoded = {
        "x": _retention_axis(alt),
        "y": alt.Y(
            "belief:Q",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(title=f"what a belief of {BELIEF:.0%} may become", format=".0%"),
        ),
        "color": alt.Color("of:N", scale=alt.Scale(domain=names, range=colours), legend=legend),
    }
    dash = alt.StrokeDash("of:N", scale=alt.Scale(domain=names, range=dashes), legend=legend)
    curves = inline_chart(lines).mark_line(strokeWidth=2)
    own = inline_chart(points).mark_point(filled=True, size=90, opacity=1)
    tooltip = ["of:N", alt.Tooltip("retention:Q"), alt.Tooltip("belief:Q", format=".3~g")]
    return alt.layer(
        curves.encode(**encoded, strokeDash=dash, tooltip=tooltip),
        own.encode(**encoded, tooltip=tooltip),
    ).properties(width=WIDTH, height=HEIGHT)


def belief_data(
    found: LocalPlan,
) -> tuple[list[str], list[dict[str, Any]], list[dict[str, Any]]]:
    """Names, lines and the plan's points: a line for each size of a domain, and one for a row."""
    same: dict[int, list[str]] = {}
    for column in sorted(found.columns, key=lambda column: -column.size):
        same.setdefault(column.size, []).append(column.name)
    names = {size: label(columns, size) for size, columns in list(same.items())[:MOST_LINES]}
    grid = np.linspace(0.0, 0.99, 100).round(6).tolist()
    lines = [
        {"of": name, "retention": p, "belief": belief(p, [size])}
        for size, name in names.items()
        for p in grid
    ]
    own = {(c.size, c.retention) for c in found.columns if c.size in names and c.retention < 1}
    points = [
        {"of": names[size], "retention": p, "belief": belief(p, [size])} for size, p in sorted(own)
    ]
    if len(found.columns) == 1:
        return list(names.values()), lines, points
    sizes = found.schema.sizes
    lines += [{"of": WHOLE_ROW, "retention": p, "belief": belief(p, sizes)} for p in grid]
    return [*names.values(), WHOLE_ROW], lines, points


def belief(retention: float, sizes: list[int]) -> float:
    """What the drawn belief may become."""
    ratio: Fraction | None = Fraction(1)
    for size in sizes:
        one = amplification(retention, Fraction(1, size))
        ratio = None if one is None or ratio is None else ratio * one
    return float(belief_after(BELIEF, ratio))


def label(columns: list[str], size: int) -> str:
    """The columns that have so many values, as far as there is room."""
    names = ", ".join(columns)
    short = names if len(names) <= LABEL else names[: LABEL - 1] + "…"
    return f"{short} ({size:,} values)"


# ---------------------------------------------------------------------- errors


def _errors(alt: Any, found: LocalPlan, width: int) -> Any:
    rows = error_data(found)
    names = list(dict.fromkeys(row["of"] for row in rows))
    legend = alt.Legend(title=None, orient="top", columns=2, symbolSize=300)
    drawn = [row for row in rows if SMALLEST_ERROR <= row["error"] <= LARGEST_ERROR]
    title = error_title(found)
    colours, dashes = line_scales(names)
    errors = [row["error"] for row in drawn] or [SMALLEST_ERROR, LARGEST_ERROR]
    encoded = {
        "x": _retention_axis(alt),
        "y": alt.Y("error:Q", **logarithmic(errors, title, air=1.15)),
        "color": alt.Color("of:N", scale=colours, legend=legend),
        "strokeDash": alt.StrokeDash("of:N", scale=dashes, legend=legend),
        "tooltip": ["of:N", alt.Tooltip("retention:Q"), alt.Tooltip("error:Q", format=".3~g")],
    }
    layers = [inline_chart(drawn).mark_line(strokeWidth=2).encode(**encoded)]
    places = [{"retention": p} for p in sorted(set(found.retentions)) if p < 1]
    layers.append(
        inline_chart(places).mark_rule(color=SOFT, strokeDash=[2, 3]).encode(x="retention:Q")
    )
    if found.options.error is not None and found.rows is not None:
        error = found.options.error
        text = f"requested: ±{error:g}"
        layers += requested_error(error, text, align="right", dx=-4, x=width)
    return alt.layer(*layers).properties(width=width, height=HEIGHT)


def error_title(found: LocalPlan) -> str:
    """What the axis of errors says: without a number of rows, errors are times √n."""
    if found.rows is None:
        return "standard error of a fraction, times √n"
    return f"error of a fraction, ± at {found.options.confidence:.4g}"


def error_data(found: LocalPlan) -> list[dict[str, Any]]:
    """The error of conjunctions at other retentions, the same for all columns."""
    z = deviations(found.options.confidence)
    return [
        {
            "of": "1 condition" if count == 1 else f"{count} conditions",
            "retention": point.retention,
            "error": error.factor if error.share is None else z * error.share,
        }
        for point in found.curve()
        for count, error in enumerate(point.errors, start=1)
    ]


def _retention_axis(alt: Any) -> Any:
    return alt.X(
        "retention:Q",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(title="retention p of a column", format=".1f", tickCount=6),
    )
