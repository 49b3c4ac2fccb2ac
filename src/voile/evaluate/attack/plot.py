"""A picture of an attack: what was believed before against what is believed after."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from voile.evaluate.attack.attacked import Attack
from voile.evaluate.attack.beliefs import Belief
from voile.evaluate.drawing import BAND_INK, BLUE, INK, SOFT, VERMILION, load_altair, render, theme

if TYPE_CHECKING:
    import altair as alt

SORTS = ("within the promise's bounds", "positive leak", "negative leak", "prior above d")
COLOURS = [BLUE, VERMILION, "#CC79A7", "#7B8794"]
SHAPES = ["circle", "triangle-up", "triangle-down", "square"]
WIDTH, HEIGHT = 620, 430


def sort_of(belief: Belief) -> str:
    if belief.positive_leak:
        return SORTS[1]
    if belief.negative_leak:
        return SORTS[2]
    return SORTS[0] if belief.covered else SORTS[3]


def picture(attack: Attack) -> bytes:
    """An SVG that needs nothing from elsewhere."""
    return render(draw(attack), "svg")


def draw(attack: Attack) -> alt.HConcatChart:
    alt = load_altair()
    points = counted(attack)
    low = 0.4 * min([attack.promise.prior, *(min(p["prior"], p["posterior"]) for p in points)])
    chart = alt.layer(*bounds(attack, low), dots(points, low)).properties(
        width=WIDTH, height=HEIGHT
    )
    return theme(
        chart,
        title="Each mark is a tuple",
        subtitle="Larger marks are several tuples at one place. Brown: the bounds of the promise.",
        caption="Both axes are logarithmic. Beliefs of 0 are not drawn.",
        heading={"fontSize": 15, "subtitleFontSize": 13, "offset": 14},
    )


def counted(attack: Attack) -> list[dict[str, Any]]:
    """Beliefs at one place, to three digits, as one mark."""
    places = Counter(
        (float(f"{b.prior:.3g}"), float(f"{b.posterior:.3g}"), sort_of(b))
        for b in attack.beliefs
        if b.prior > 0 and b.posterior > 0
    )
    return [
        {"prior": prior, "posterior": posterior, "sort": sort, "tuples": count}
        for (prior, posterior, sort), count in places.items()
    ]


def axis(field: str, title: str, low: float) -> Any:
    alt = load_altair()
    kind = alt.X if field == "prior" else alt.Y
    scale = alt.Scale(type="log", domain=[low, 1.0], nice=False)
    ticks = [10.0**k for k in range(math.ceil(math.log10(low)), 1)]
    return kind(f"{field}:Q", scale=scale, axis=alt.Axis(title=title, values=ticks, format="~g"))


def bounds(attack: Attack, low: float) -> list[Any]:
    """The promise: γ above and (d/γ)·prior below, for priors up to d; and nothing learned."""
    alt = load_altair()
    d, gamma = attack.promise.prior, attack.promise.posterior
    x, y = axis("prior", "believed before", low), axis("posterior", "believed after", low)
    start = min(d, low * gamma / d)  # where the lower bound enters the picture
    lines = {
        "upper": [(low, gamma), (d, gamma)],
        "lower": [(start, start * d / gamma), (d, d * d / gamma)],
        "prior": [(d, max(low, d * d / gamma)), (d, gamma)],
    }
    rows = [
        {"line": name, "prior": px, "posterior": py}
        for name, ends in lines.items()
        for px, py in ends
    ]
    promise = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_line(color=BAND_INK, strokeWidth=2, clip=True)
        .encode(x=x, y=y, detail="line:N")
    )
    same = (
        alt.Chart(alt.InlineData(values=[{"prior": v, "posterior": v} for v in (low, 1.0)]))
        .mark_line(color=SOFT, strokeDash=[4, 4], clip=True)
        .encode(x=x, y=y)
    )
    return [
        same,
        promise,
        note(low, gamma, f"γ = {gamma:.3g}", dx=8, dy=-9),
        note(d, gamma, f"d = {d:.3g}", dx=16, dy=4),
        note(math.sqrt(low), math.sqrt(low), "nothing learned", dx=10, dy=12),
    ]


def note(prior: float, posterior: float, text: str, *, dx: int, dy: int) -> Any:
    alt = load_altair()
    at = alt.Chart(alt.InlineData(values=[{"prior": prior, "posterior": posterior}]))
    return at.mark_text(text=text, align="left", dx=dx, dy=dy, fontSize=13, color=INK).encode(
        x="prior:Q", y="posterior:Q"
    )


def dots(points: list[dict[str, Any]], low: float) -> Any:
    alt = load_altair()
    there = {p["sort"] for p in points}
    kept = [i for i, sort in enumerate(SORTS) if sort in there]
    names = [SORTS[i] for i in kept]
    legend = alt.Legend(title=None, orient="top", symbolSize=120, columns=4, labelLimit=300)
    colours = alt.Scale(domain=names, range=[COLOURS[i] for i in kept])
    shapes = alt.Scale(domain=names, range=[SHAPES[i] for i in kept])
    most = max([p["tuples"] for p in points], default=1)
    sizes = alt.Scale(type="sqrt", domain=[1, max(2, most)], range=[70, 420 if most > 1 else 71])
    return (
        alt.Chart(alt.InlineData(values=points))
        .mark_point(filled=True, opacity=0.75, stroke="white", strokeWidth=0.8)
        .encode(
            x=axis("prior", "believed before", low),
            y=axis("posterior", "believed after", low),
            color=alt.Color("sort:N", scale=colours, legend=legend),
            shape=alt.Shape("sort:N", scale=shapes, legend=None),
            size=alt.Size("tuples:Q", scale=sizes, legend=None),
        )
    )
