"""Counts of a release beside what is true: every interval, as a picture. For the steward alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voile.evaluate.drawing import (
    BLUE,
    INK,
    VERMILION,
    inline_chart,
    load_altair,
    render,
    theme,
)
from voile.evaluate.felt import FeltCount, felt_of
from voile.evaluate.pages import chart_report
from voile.files import write_whole
from voile.kinds.choosing import in_per_cent
from voile.schema import Schema
from voile.schema.attribute import plain

DRAWN_AT_MOST = 1500


def draw_counts(counts: Sequence[FeltCount], schema: Schema, stem: Path) -> list[Path]:
    """Every count that was compared, with its interval, beside the truth: PNG and HTML."""
    felt = felt_of(counts)
    title = (
        f"{100 * (felt.coverage or 0.0):.1f} % of the intervals hold the truth; the middle count "
        f"is off by {in_per_cent(felt.both or 0.0)}"
    )
    chart = theme(
        counts_chart(counts, schema),
        title="What can be counted from the release, beside what is true",
        subtitle=[
            f"{len(counts):,} counts of one and two columns that hold 1 % of the rows or more,",
            f"with 95 % intervals. {title}.",
        ],
        caption="Truth and release side by side: for the steward alone. Made with Voile.",
    )
    stem.parent.mkdir(parents=True, exist_ok=True)
    page = chart_report(chart, title=title, source="Point at a mark to see which count it is.")
    return [
        write_whole(stem.with_name(f"{stem.name}.png"), render(chart, "png")),
        write_whole(stem.with_name(f"{stem.name}.html"), page.page()),
    ]


def counts_chart(counts: Sequence[FeltCount], schema: Schema) -> Any:
    """True counts to the right, estimates with their intervals upwards, both by powers of ten."""
    alt = load_altair()
    step = -(-len(counts) // DRAWN_AT_MOST)
    rows = [counted_row(one, schema) for one in counts[::step]]
    ends = [min(row["truth"] for row in rows) * 0.8, max(row["truth"] for row in rows) * 1.25]
    axis = alt.Axis(format="~s", tickCount=6)
    scale = alt.Scale(type="log", domain=ends, nice=False, clamp=True)
    x = alt.X("truth:Q", title="true count", scale=scale, axis=axis)
    y = alt.Y("estimate:Q", title="count from the release", scale=scale, axis=axis)
    colour = alt.Color(
        "interval:N",
        title=None,
        scale=alt.Scale(domain=["holds the truth", "misses it"], range=[BLUE, VERMILION]),
        legend=alt.Legend(orient="top-left"),
    )
    tooltip = [f"{name}:{'N' if isinstance(held, str) else 'Q'}" for name, held in rows[0].items()]
    base = inline_chart(rows).encode(x=x, color=colour, tooltip=tooltip)
    line = inline_chart([{"truth": end, "estimate": end} for end in ends])
    return alt.layer(
        line.mark_line(color=INK, strokeWidth=1, opacity=0.5).encode(x=x, y=y),
        base.mark_rule(strokeWidth=1.2, opacity=0.35).encode(
            y=alt.Y("low:Q", scale=scale), y2="high:Q"
        ),
        base.mark_circle(size=26, opacity=0.75).encode(y=y),
    ).properties(width=760, height=520)


def counted_row(one: FeltCount, schema: Schema) -> dict[str, Any]:
    """A count as a row of the picture."""
    attributes = [schema.attributes[i] for i in one.columns]
    codes = np.unravel_index(one.cell, [a.size for a in attributes])
    low, high = one.estimate.interval()
    words = (
        f"{a.name} = {plain(list(a)[code])}" for a, code in zip(attributes, codes, strict=True)
    )
    return {
        "count": " and ".join(words),
        "truth": one.truth,
        "estimate": max(round(float(one.estimate.value), 1), 0.5),
        "low": max(round(low, 1), 0.5),
        "high": round(high, 1),
        "interval": "holds the truth" if low <= one.truth <= high else "misses it",
    }
