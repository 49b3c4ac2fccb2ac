"""The paper's Figures 2 and 3 for any release: estimates against true counts, and their errors.

Its look is that of `drawing`; the `plots` extra is needed only when a function is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError
from voile.evaluate.drawing import (
    AIR,
    BAND,
    BAND_INK,
    BLUE,
    COUNT_TURN,
    DENSITY,
    INK,
    METHOD_COLOURS,
    OWN_SCALES,
    VERMILION,
    Rows,
    axis_of,
    count_axis,
    inline_chart,
    line_scales,
    load_altair,
    note_text,
    plain_scale,
    render,
    symlog_scale,
    symlog_steps,
    theme,
    ticks_of,
    title_of,
    tooltips_of,
)
from voile.evaluate.pages import chart_report
from voile.evaluate.workload import cumulative_error
from voile.files import write_whole

if TYPE_CHECKING:
    import altair as alt

Array = npt.NDArray[Any]
Labels = Sequence[str] | Callable[[int], str]

SOURCE = "Made with Voile. Point at a mark to see which query it is."
CAPTION = "Queries: every selection of up to three attributes. Made with Voile."

# What goes into a picture: the largest queries one by one, all queries as the cells of a grid.
MAX_POINTS = 3000
MAX_OUTSIDE = 500
CELLS_LINEAR = 72
CELLS_SYMLOG = 56
CURVE_POINTS = 80
# A mean over fewer queries than this says more about those queries than about the method.
MIN_QUERIES = 10

# In pixels. The left panel is as high as the two at its right with what stands between them.
WIDTH, LEFT_HEIGHT, UPPER_HEIGHT, LOWER_HEIGHT = 540, 562, 260, 199
LEGEND_ROW, LEGEND_COLUMNS = 28, 3


@dataclass(frozen=True)
class _Queries:
    """What the two panels of Figure 2 share; `drawn` are the queries with a dot of their own."""

    truth: Floats
    estimate: Floats
    halfwidth: float
    drawn: npt.NDArray[np.bool_]
    # Rows go beside the charts, under a name: Altair copies what is in a chart at each step.
    datasets: dict[str, Rows] = field(default_factory=dict)

    @property
    def error(self) -> Floats:
        return self.estimate - self.truth

    def put(self, name: str, rows: Rows) -> alt.NamedData:
        self.datasets[name] = rows
        return load_altair().NamedData(name=name)


def estimates(
    truth: Array,
    estimate: Array,
    halfwidth: float,
    *,
    labels: Labels,
    title: str,
    subtitle: str | Sequence[str],
    method: str = "αβ",
    others: Mapping[str, Array] | None = None,
    caption: str = CAPTION,
) -> alt.HConcatChart:
    """Estimates against true counts (Figure 2), their errors, and the mean error (Figure 3).

    `halfwidth` is the bound ρ√n that holds for each query with high probability. `others` are
    further methods' estimates of the same queries, drawn as lines in the mean error only.
    """
    if method in (others or {}):
        raise UsageError(f"two methods are named {method!r}")
    alt = load_altair()
    known, guess = _pair(truth, estimate)
    if not 0 < halfwidth < math.inf:
        raise UsageError(f"the band's halfwidth must be a number above 0, not {halfwidth}")
    methods = _methods(known, {method: guess, **(others or {})})
    queries = _Queries(known, guess, float(halfwidth), _drawn_singly(known, guess, halfwidth))
    points = queries.put("points", _points(queries, labels))
    means = _mean_panel(known, methods).properties(
        width=WIDTH, height=LOWER_HEIGHT - LEGEND_ROW * _legend_rows(methods)
    )
    right = alt.vconcat(_error_panel(queries, points), means, spacing=32)
    right = right.resolve_scale(**OWN_SCALES)
    both = alt.hconcat(_estimate_panel(queries, points), right, spacing=52)
    both = both.resolve_scale(**OWN_SCALES)
    both = theme(both, title=title, subtitle=subtitle, caption=caption)
    both.datasets = queries.datasets
    return both


def mean_errors(
    truth: Array,
    methods: Mapping[str, Array],
    *,
    title: str,
    subtitle: str | Sequence[str],
    caption: str = CAPTION,
) -> alt.HConcatChart:
    """Figure 3 by itself: the mean error of the queries with true count ≥ x, a line per method."""
    known = np.asarray(truth, np.float64)
    panel = _mean_panel(known, _methods(known, methods)).properties(width=760, height=380)
    # In a frame, for the theme's title would take the place of the panel's own.
    framed = load_altair().vconcat(panel).resolve_scale(**OWN_SCALES)
    return theme(framed, title=title, subtitle=subtitle, caption=caption)


def save(chart: alt.TopLevelMixin, stem: Path) -> list[Path]:
    """Write `stem`.png and `stem`.html; a reader sees a whole file or none."""
    title = " ".join(chart.to_dict()["hconcat"][0]["title"]["text"])
    page = chart_report(chart, title=title, source=SOURCE).page()
    picture = render(chart, "png")
    stem.parent.mkdir(parents=True, exist_ok=True)
    return [
        write_whole(stem.with_name(f"{stem.name}.png"), picture),
        write_whole(stem.with_name(f"{stem.name}.html"), page),
    ]


def _pair(truth: Array, estimate: Array) -> tuple[Floats, Floats]:
    known, guess = np.asarray(truth, np.float64), np.asarray(estimate, np.float64)
    if known.ndim != 1 or known.shape != guess.shape or not known.size:
        raise UsageError(
            f"truth and estimate must be two lists of one length, not {known.shape} and "
            f"{guess.shape}"
        )
    if not (np.isfinite(known).all() and np.isfinite(guess).all()):
        raise UsageError("a true count or an estimate is not a finite number")
    if known.min() < 0:
        raise UsageError(f"a true count is below 0: {known.min()}")
    return known, guess


def _methods(truth: Floats, methods: Mapping[str, Array]) -> dict[str, Floats]:
    if not 1 <= len(methods) <= len(METHOD_COLOURS):
        raise UsageError(
            f"one picture shows 1 to {len(METHOD_COLOURS)} methods, not {len(methods)}"
        )
    return {name: _pair(truth, estimate)[1] for name, estimate in methods.items()}


def _drawn_singly(truth: Floats, estimate: Floats, halfwidth: float) -> npt.NDArray[np.bool_]:
    """The largest queries, and the farthest outside the band: each of those should be seen."""
    error = np.abs(estimate - truth)
    farthest = np.argsort(-error, kind="stable")[:MAX_OUTSIDE]
    chosen = np.zeros(len(truth), np.bool_)
    chosen[farthest] = error[farthest] > halfwidth
    chosen[np.argsort(-truth, kind="stable")[:MAX_POINTS]] = True
    return chosen


def _points(queries: _Queries, labels: Labels) -> Rows:
    if not callable(labels) and len(labels) != len(queries.truth):
        raise UsageError(f"{len(labels)} labels for {len(queries.truth)} queries")
    name = labels if callable(labels) else labels.__getitem__
    truth, estimate = queries.truth.tolist(), queries.estimate.tolist()
    return [
        {
            "query": name(i),
            "truth": round(truth[i], 1),
            "estimate": round(estimate[i], 1),
            "error": round(estimate[i] - truth[i], 1),
            "outside": abs(estimate[i] - truth[i]) > queries.halfwidth,
        }
        for i in np.flatnonzero(queries.drawn).tolist()
    ]


def _estimate_panel(queries: _Queries, points: alt.NamedData) -> alt.LayerChart:
    """Figure 2 on plain axes: there the bound is seen as large as it is beside the counts."""
    alt = load_altair()
    width = queries.halfwidth
    top = 1.03 * float(max(queries.truth.max(), queries.estimate.max(), 1.0))
    low = 1.15 * float(min(queries.estimate.min(), -width))
    ticks = {"tickCount": 6, "tickMinStep": 1}
    x = alt.X("x:Q", scale=plain_scale(0.0, top), axis=axis_of("true count", **ticks))
    y = alt.Y("y:Q", scale=plain_scale(low, top), axis=axis_of("estimate", **ticks))
    ends = [{"x": v, "y": v - width, "y2": v + width, "same": v} for v in (0.0, top)]
    line = inline_chart(ends).encode(x=x)
    grid = np.linspace(0, top, CELLS_LINEAR + 1), np.linspace(low, top, CELLS_LINEAR + 1)
    cells = queries.put("cells", _cells(queries, queries.estimate, grid, dots=False))
    return alt.layer(
        line.mark_area(color=BAND, opacity=0.32, clip=True).encode(y=y, y2="y2:Q"),
        _heat(cells, len(queries.truth), legend=not queries.drawn.all()).encode(x=x, y=y),
        line.mark_line(color=INK, strokeWidth=1.2, clip=True).encode(y="same:Q"),
        *_dots(queries, points, "estimate"),
        note_text(
            0.58 * top,
            min(0.58 * top + width, 0.95 * top),
            f"band: true count ± ρ√n = ± {_short(width)}",
        ),
        note_text(0.64 * top, max(0.64 * top - width, 0.9 * low), "line: estimate = true count"),
    ).properties(
        width=WIDTH,
        height=LEFT_HEIGHT,
        title=title_of("Estimate against true count", _key(queries)),
    )


def _error_panel(queries: _Queries, points: alt.NamedData) -> alt.LayerChart:
    """The same points with the line y = x laid flat, and room for the many small counts."""
    alt = load_altair()
    width, error, top = queries.halfwidth, queries.error, max(float(queries.truth.max()), 1.0)
    # Some air outside of the band, or no one sees where it ends.
    reach = float(max(1.5 * np.abs(error).max(), 2.2 * width))
    # Were the axis logarithmic from nearer to 0, it would look as if small errors were lacking.
    turn = min(max(6 * float(np.median(np.abs(error))), 1.0), max(width / 10, 1.0))
    across = np.unique(np.rint(symlog_steps(0, math.ceil(top) + 1, CELLS_SYMLOG, COUNT_TURN)))
    grid = across - 0.5, symlog_steps(-reach, reach, CELLS_SYMLOG, turn)
    cells = queries.put("error cells", _cells(queries, error, grid, dots=True))
    x = count_axis("true count", top)
    ticks = axis_of("estimate − true count", values=ticks_of(reach, turn, (1,)))
    y = alt.Y("y:Q", scale=symlog_scale(-reach, reach, turn), axis=ticks)
    ends = [{"x": -0.5, "x2": AIR * top, "y": -width, "y2": width, "zero": 0}]
    band = inline_chart(ends).encode(x=x)
    name = {"text": f"+ρ√n = +{_short(width)}", "align": "left", "dx": 6, "dy": -9}
    return alt.layer(
        band.mark_rect(color=BAND, opacity=0.32).encode(x2="x2:Q", y=y, y2="y2:Q"),
        _heat(cells, len(error), legend=False).encode(x=x, y=y),
        band.mark_rule(color=INK, strokeWidth=1.2).encode(x2="x2:Q", y="zero:Q"),
        *_dots(queries, points, "error"),
        band.mark_text(**name, fontSize=13, color=BAND_INK).encode(y="y2:Q"),
    ).properties(
        width=WIDTH,
        height=UPPER_HEIGHT,
        title=title_of("Error against true count", _summary(error, width)),
    )


def _mean_panel(truth: Floats, methods: Mapping[str, Floats]) -> alt.Chart:
    """Figure 3; it ends where too few queries are left for a mean."""
    alt = load_altair()
    rows = _curves(truth, methods)
    names = list(methods)
    highest = 1.3 * max([row["y"] for row in rows] + [1.0])
    ticks = axis_of("mean |error|", values=ticks_of(highest, COUNT_TURN))
    # Above the panel, for no corner within is sure to be free of lines.
    place = {"orient": "top", "columns": LEGEND_COLUMNS, "offset": 8}
    legend = alt.Legend(title=None, symbolSize=500, symbolStrokeWidth=2.5, **place)
    key = {"legend": legend if _legend_rows(methods) else None, "sort": names}
    colours, dashes = line_scales(names)
    return (
        inline_chart(rows)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=count_axis("x, a true count", max(float(truth.max()), 1.0)),
            y=alt.Y("y:Q", scale=symlog_scale(0, highest, COUNT_TURN), axis=ticks),
            color=alt.Color("method:N", scale=colours, **key),
            strokeDash=alt.StrokeDash("method:N", scale=dashes, **key),
            tooltip=tooltips_of(method="method", x="true count ≥", y="mean |error|", n="queries"),
        )
        .properties(title=title_of("Mean absolute error over the queries with true count ≥ x", ""))
    )


def _legend_rows(methods: Mapping[str, Floats]) -> int:
    return math.ceil(len(methods) / LEGEND_COLUMNS) if len(methods) > 1 else 0


def _curves(truth: Floats, methods: Mapping[str, Floats]) -> Rows:
    ranked = np.sort(truth)
    last = float(ranked[-min(MIN_QUERIES, len(ranked))])
    steps = np.rint(symlog_steps(0, last, CURVE_POINTS, COUNT_TURN))
    thresholds = np.unique(np.minimum(steps, last))
    taken = len(ranked) - np.searchsorted(ranked, thresholds)
    return [
        {"method": name, "x": float(x), "y": round(float(y), 2), "n": int(n)}
        for name, estimate in methods.items()
        for x, y, n in zip(
            thresholds, cumulative_error(truth, estimate, thresholds.tolist()), taken, strict=True
        )
    ]


def _key(queries: _Queries) -> str:
    total, outside = len(queries.truth), np.abs(queries.error) > queries.halfwidth
    shown = f"blue dots: the {MAX_POINTS:,} largest of {total:,} queries; shading: the others"
    text = f"dots: all {total:,} queries" if queries.drawn.all() else shown
    return f"{text}; orange: outside the band" if outside.any() else text


def _summary(error: Floats, halfwidth: float) -> str:
    outside = int(np.sum(np.abs(error) > halfwidth))
    # Counted outside rather than as a percentage inside, which would be rounded up to 100 %.
    where = f"outside the band: {outside:,} of {len(error):,} queries"
    return f"{where}; half have an error of at most {np.median(np.abs(error)):,.1f}"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _heat(cells: alt.NamedData, queries: int, *, legend: bool) -> alt.Chart:
    alt = load_altair()
    ticks = [10**k for k in range(10) if 10**k <= queries]
    shown = alt.Legend(
        title="queries per cell",
        orient="bottom-right",
        direction="horizontal",
        gradientLength=210,
        values=ticks,
        format="~s",
        offset=14,
    )
    # Both panels' colours mean the same, so that one legend serves both.
    scale = alt.Scale(type="log", domain=[1, max(queries, 10)], range=DENSITY, nice=False)
    return (
        alt.Chart(cells)
        .mark_rect(clip=True)
        .encode(
            x2="x2:Q",
            y2="y2:Q",
            color=alt.Color("n:Q", scale=scale, legend=shown if legend else None),
            tooltip=tooltips_of(n="queries in this cell"),
        )
    )


def _dots(queries: _Queries, points: alt.NamedData, y: str) -> list[alt.Chart]:
    alt = load_altair()
    shown = tooltips_of(query="query", truth="true count", estimate="estimate", error="error")
    dots = alt.Chart(points).encode(x="truth:Q", y=f"{y}:Q", tooltip=shown)
    blue = dots.transform_filter("!datum.outside").mark_circle(size=16, color=BLUE, opacity=0.6)
    if not queries.drawn.all():
        # Fading in, for an edge where the dots begin would look like a property of the data.
        ends = np.sort(queries.truth)[[-MAX_POINTS, -1]].tolist()
        fading = alt.Scale(type="symlog", domain=ends, range=[0.12, 0.9], constant=COUNT_TURN)
        blue = blue.encode(opacity=alt.Opacity("truth:Q", scale=fading, legend=None))
    orange = dots.transform_filter("datum.outside").mark_circle(
        size=30, color=VERMILION, opacity=0.9
    )
    return [blue, orange]


def _cells(queries: _Queries, y: Floats, grid: tuple[Floats, Floats], *, dots: bool) -> Rows:
    """The cells to shade: those of queries without a dot; with `dots`, also where dots crowd."""
    undrawn = ~queries.drawn
    if not undrawn.any():
        return []
    counts, _, _ = np.histogram2d(queries.truth, y, bins=grid)
    hidden, _, _ = np.histogram2d(queries.truth[undrawn], y[undrawn], bins=grid)
    left, below = (edges.round(2).tolist() for edges in grid)
    return [
        {"x": left[i], "x2": left[i + 1], "y": below[j], "y2": below[j + 1], "n": int(counts[i, j])}
        for i, j in np.argwhere((hidden > 0) | (dots & (counts > 1))).tolist()
    ]
