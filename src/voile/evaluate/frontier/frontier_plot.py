"""The frontier as a picture: every release a point, what none can be below beneath them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from voile.evaluate.frontier.portfolio import METHODS
from voile.evaluate.frontier.result import Frontier, shown_by
from voile.evaluate.look import INK, METHOD_COLOURS, SOFT, VERMILION, load_altair, theme

if TYPE_CHECKING:
    import altair as alt

WIDTH, HEIGHT, LINE = 880, 500, 110
FORBIDDEN = "#E3E6EA"
SHAPES = {
    "generalization": "triangle-up", "bucketization": "circle", "noisy views": "square",
    "perturbed rows": "cross",
}  # fmt: skip
WORSE_THAN_NOTHING = 1.5
"""Points that lose more than so many times what trivial anonymization does are not drawn."""
STEPS = 240
"""Of the line that bounds bucketizations."""
X, Y = "P_loss: how far a belief about one person moves", "U_loss: how wrong populations are told"
CAPTION = (
    "U_loss is drawn by its square root. {left_out}Computed from the private table: not for "
    "publishing. Made with Voile."
)


def draw(found: Frontier, *, titled: bool = True) -> alt.HConcatChart:
    """P_loss along, U_loss up; nearer to the corner is better."""
    alt = load_altair()
    right = max([found.raw_p_loss, *(p.p_loss for p in found.points)]) * 1.03
    losses = [p.u_loss for p in found.points if p.u_loss <= highest(found)]
    top = max([found.certified.trivial, *losses]) * 1.12
    x = alt.X("p_loss:Q", title=X, scale=alt.Scale(domain=[-0.012 * right, right], nice=False),
              axis=alt.Axis(values=nice(right), format="~g"))  # fmt: skip
    y = alt.Y(
        "u_loss:Q", title=Y, scale=alt.Scale(type="sqrt", domain=[0, top], nice=False),
        axis=alt.Axis(values=nice_squares(top), format="~g"),
    )  # fmt: skip
    layers = [
        *_certified(alt, found, x, y, right), _chain(alt, found, x, y), *_points(alt, found, x, y),
        *_marks(alt, found, x, y),
    ]  # fmt: skip
    chart = alt.layer(*layers).properties(width=WIDTH, height=HEIGHT)
    if not titled:
        none = {"fontSize": 1, "subtitleFontSize": 1, "offset": 0}
        return theme(
            alt.vconcat(chart), title="", subtitle="", caption=caption(found), heading=none
        )
    return theme(
        alt.vconcat(chart),
        title=f"What can be published of {found.name}",
        subtitle=textwrap.wrap(found.in_words(), LINE),
        caption=caption(found),
    )


def caption(found: Frontier) -> str:
    number = sum(point.u_loss > highest(found) for point in found.points)
    words = f"Not drawn, worse than telling nothing: {number}. " if number else ""
    return CAPTION.format(left_out=words)


def nice(top: float) -> list[float]:
    """Round numbers up to the top, at most eight."""
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2) if top / s <= 8)
    return [round(step * i, 4) for i in range(int(top / step) + 1)]


def nice_squares(top: float) -> list[float]:
    """Round numbers that stand apart where they are drawn by their roots."""
    digits = 10 ** np.floor(np.log10(top)) if top > 0 else 1.0
    return [0.0, *(float(digits * part) for part in (0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5)
                   if digits * part <= top)]  # fmt: skip


def _certified(alt: Any, found: Frontier, x: Any, y: Any, right: float) -> list[Any]:
    """Below the certified frontier nothing can be."""
    grid = np.unique([*np.linspace(0, right, STEPS), *np.linspace(0, right / 20, STEPS // 2)])
    rows = [{"p_loss": float(p), "u_loss": found.certified.lower(float(p)), "zero": 0}
            for p in grid]  # fmt: skip
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=y)
    words = {"p_loss": 0.0, "u_loss": found.certified.trivial * 0.006}
    label = alt.Chart(alt.InlineData(values=[words])).encode(x=x, y=y)
    text = ["no bucketization", "can be below"]
    return [
        base.mark_area(color=FORBIDDEN, opacity=1, clip=True).encode(y2="zero:Q"),
        base.mark_line(color=SOFT, strokeWidth=1.6, clip=True),
        label.mark_text(text=text, align="left", dx=5, dy=-6, fontSize=11, color=SOFT),
    ]


def family(point: Any) -> str:
    """The curve that a point is of: the method, and for Mondrian the kind of requirement too."""
    if point.method != "mondrian":
        return METHODS[point.method].about
    names = {"semantic": "semantic", "t": "t-closeness", "l": "ℓ-diversity"}
    own = next((words for name, words in names.items() if name in point.parameters), "k-anonymity")
    if "semantic" in point.parameters:
        own = f"semantic, absent {point.parameters['absent']}"
    return f"Mondrian, {own}"


def records(found: Frontier) -> list[dict[str, Any]]:
    return [
        {
            "p_loss": point.p_loss,
            "u_loss": point.u_loss,
            "curve": family(point),
            "shown by": shown_by(point),
            "requirement": point.requirement,
            "classes": point.classes,
            "efficient": "yes" if best else "no",
            "above": found.above(point),
            "command": point.command,
        }
        for point, best in zip(found.points, found.efficient, strict=True)
        if point.u_loss <= highest(found)
    ]


def highest(found: Frontier) -> float:
    """Far above what trivial anonymization loses, a point only makes the others small."""
    return found.certified.trivial * WORSE_THAN_NOTHING


def _points(alt: Any, found: Frontier, x: Any, y: Any) -> list[Any]:
    rows = records(found)
    names = list(dict.fromkeys(row["curve"] for row in rows))
    seen = {row["shown by"] for row in rows}
    shapes = {words: mark for words, mark in SHAPES.items() if words in seen}
    colours = [*METHOD_COLOURS, "#8C6D31", "#7A3E9D", "#000000"]
    colour = alt.Color(
        "curve:N",
        scale=alt.Scale(domain=names, range=[colours[i % len(colours)] for i in range(len(names))]),
        legend=alt.Legend(title=None, orient="bottom", columns=4, labelLimit=260, symbolOpacity=1),
    )
    shape = alt.Shape(
        "shown by:N",
        scale=alt.Scale(domain=list(shapes), range=list(shapes.values())),
        legend=alt.Legend(title=None, orient="bottom", symbolFillColor=SOFT),
    )
    tips = [
        alt.Tooltip("curve:N", title="method"),
        alt.Tooltip("requirement:N", title="promise"),
        alt.Tooltip("shown by:N", title="shown by"),
        alt.Tooltip("p_loss:Q", title="P_loss", format=".4f"),
        alt.Tooltip("u_loss:Q", title="U_loss", format=".5f"),
        alt.Tooltip("above:Q", title="above the certified", format=".5f"),
        alt.Tooltip("classes:Q", title="classes", format=",d"),
        alt.Tooltip("efficient:N", title="efficient"),
        alt.Tooltip("command:N", title="publish it"),
    ]
    hover = alt.selection_point(on="pointerover", nearest=False, empty=False, name="hover")
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=x, y=y, color=colour, shape=shape, tooltip=tips,
        opacity=alt.condition("datum.efficient == 'yes'", alt.value(1), alt.value(0.45)),
        size=alt.condition(hover, alt.value(190), alt.value(70)),
    )  # fmt: skip
    return [base.mark_point(filled=True, stroke="white", strokeWidth=0.6).add_params(hover)]


def _chain(alt: Any, found: Frontier, x: Any, y: Any) -> Any:
    """Efficient points joined: from one to the next, as steps would be."""
    rows = [
        {"p_loss": point.p_loss, "u_loss": point.u_loss}
        for point, best in zip(found.points, found.efficient, strict=True)
        if best and point.u_loss <= highest(found)
    ]
    rows.sort(key=lambda row: row["p_loss"])
    return (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(color=INK, strokeWidth=1.2, strokeDash=[5, 3])
        .encode(x=x, y=y)
    )


def _marks(alt: Any, found: Frontier, x: Any, y: Any) -> list[Any]:
    """Trivial anonymization, the table as it is, and what is recommended."""
    ends = [
        {"p_loss": 0.0, "u_loss": found.certified.trivial, "name": "trivial: nothing is told"},
        {"p_loss": found.raw_p_loss, "u_loss": 0.0, "name": "the exact table"},
    ]
    layers = []
    for row, align, dx, dy in zip(ends, ("left", "right"), (10, -10), (-8, -10), strict=True):
        base = alt.Chart(alt.InlineData(values=[row])).encode(x=x, y=y)
        layers += [
            base.mark_point(shape="diamond", size=130, color=INK, filled=True, opacity=1,
                            clip=False),
            base.mark_text(text=row["name"], align=align, dx=dx, dy=dy, fontSize=13, color=INK),
        ]  # fmt: skip
    if (best := found.recommended) is not None:
        row = {"p_loss": best.p_loss, "u_loss": best.u_loss}
        base = alt.Chart(alt.InlineData(values=[row])).encode(x=x, y=y)
        layers += [
            base.mark_point(size=420, color=VERMILION, strokeWidth=2.4, filled=False, opacity=1),
            base.mark_text(text=f"recommended: {best.requirement}", align="left", dx=16, dy=-14,
                           fontSize=14, fontWeight=600, color=VERMILION),
        ]  # fmt: skip
    return layers
