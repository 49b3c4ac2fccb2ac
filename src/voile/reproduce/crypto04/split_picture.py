"""Estimates beside the truth, and their error by the number of halves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voile.reproduce.look import BLUE, METHOD_COLOURS, VERMILION, altair, beside, records

WIDTH, HEIGHT = 400, 360
Columns = Mapping[str, Sequence[Any]]


def picture(
    estimates: Columns, measured: Columns, formula: Columns, promises: Sequence[str]
) -> Any:
    return beside(intervals(estimates), curves(measured, formula, promises))


def chart(columns: Columns) -> Any:
    alt = altair()
    return alt.Chart(alt.Data(values=records(columns)))


def intervals(estimates: Columns) -> Any:
    """Each function's runs side by side, each with its interval; the truth as a bar across."""
    alt = altair()
    base = chart(estimates)
    x = alt.X("function:N", sort=None, title=None,
              axis=alt.Axis(labelAngle=0, labelFontSize=14))  # fmt: skip
    off = alt.XOffset("run:O")
    scale = alt.Scale(zero=False)
    y = alt.Y("low:Q", title="probability", scale=scale)
    layers = (
        base.mark_tick(color=VERMILION, thickness=2.5, bandSize=WIDTH / 5).encode(
            x=x, y=alt.Y("truth:Q", title="probability", scale=scale)
        ),
        base.mark_rule(color=BLUE, strokeWidth=1.6).encode(x=x, xOffset=off, y=y, y2="high:Q"),
        base.mark_point(filled=True, color=BLUE, size=36, opacity=1).encode(
            x=x, xOffset=off, y="estimate:Q"
        ),
    )
    title = alt.TitleParams(
        "Estimates and the truth", subtitle="blue: one estimate a run; orange: the truth"
    )
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=title)


def curves(measured: Columns, formula: Columns, promises: Sequence[str]) -> Any:
    alt = altair()
    colours = alt.Color(
        "promise:N", legend=None,
        scale=alt.Scale(domain=list(promises), range=METHOD_COLOURS[: len(promises)]),
    )  # fmt: skip
    x = alt.X("halves:Q", title="halves T that are asked about, and promised for",
              scale=alt.Scale(type="log", domain=[18, 22_000], nice=False),
              axis=alt.Axis(values=[20, 100, 1000, 10_000], format=",d"))  # fmt: skip
    scale = alt.Scale(type="log", domain=[0.005, 0.15], nice=False, clamp=True)
    y = alt.Y("error:Q", title="standard error of Pr(α and β)", scale=scale,
              axis=alt.Axis(values=[0.005, 0.01, 0.02, 0.05, 0.1], format="~g"))  # fmt: skip
    # The second promise's points stand a little to the right, so that intervals do not hide others.
    beside_ = f"datum.halves * (datum.promise == '{promises[-1]}' ? 1.1 : 1)"
    points = chart(measured).transform_calculate(halves=beside_)
    words = chart(named(formula, promises))
    layers = (
        chart(formula).mark_line(strokeWidth=2.2).encode(x=x, y=y, color=colours),
        points.mark_rule(strokeWidth=1.6).encode(
            x=x, y=alt.Y("low:Q", scale=scale), y2="high:Q", color=colours
        ),
        points.mark_point(filled=True, size=60, opacity=1).encode(x=x, y=y, color=colours),
        words.mark_text(align="right", fontSize=13, fontWeight=600).encode(
            x=x, y=y, text="text:N", color=colours
        ),
    )
    title = alt.TitleParams(
        "More halves tell more, and need more noise",
        subtitle="lines: the formula; points: root mean square of runs, with 0.95 intervals",
    )
    return alt.layer(*layers).properties(width=WIDTH, height=HEIGHT, title=title)


def named(formula: Columns, promises: Sequence[str]) -> dict[str, list[Any]]:
    """Each curve's name and least error, near its right end."""
    rows = list(zip(formula["promise"], formula["halves"], formula["error"], strict=True))
    own = [[row for row in rows if row[0] == name] for name in promises]
    return {
        "promise": list(promises),
        "halves": [several[-1][1] for several in own],
        "error": [several[-1][2] * at for several, at in zip(own, (0.42, 1.2), strict=True)],
        "text": [f"{name}, least {min(row[2] for row in several):.3f}"
                 for name, several in zip(promises, own, strict=True)],
    }  # fmt: skip
