"""The frontier as a picture: every release a point, what none can be below beneath them."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from voile.evaluate.drawing import (
    INK,
    METHOD_COLOURS,
    SOFT,
    VERMILION,
    edged_text,
    inline_chart,
    load_altair,
    theme,
)
from voile.evaluate.frontier.portfolio import frontier_methods
from voile.evaluate.frontier.result import Frontier, shown_by

if TYPE_CHECKING:
    import altair as alt


# ----------------------------------------------------------------------
# where things lie in the picture, in pixels, so that words do not cover points


Place = tuple[float, float]

LEFT = 0.012
"""Of the width: room to the left of no loss at all."""
MARGIN = 7
"""Around words, as a point is not only its middle."""
PLANE_STEPS = 500
"""At which a border is looked up."""


@dataclass(frozen=True)
class Words:
    """How a text stands to the point that it is about: 'left' is a text that begins there."""

    align: str
    dx: float
    dy: float

    def box(self, at: Place, width: float, height: float) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of the text."""
        begin = {"left": 0.0, "center": -width / 2, "right": -width}[self.align]
        left, middle = at[0] + self.dx + begin, at[1] + self.dy
        return left, middle - height / 2, left + width, middle + height / 2


AROUND = tuple(
    Words(align, dx, dy)
    for far in (0, 8, 16, 24, 32)
    for align, dx, dy in (
        ("left", 18, -15 - far), ("left", 18, 15 + far), ("right", -18, -15 - far),
        ("right", -18, 15 + far), ("center", 0, -24 - far), ("center", 0, 24 + far),
    )
)  # fmt: skip
"""Where words about a point may stand, the nearest and most usual first."""


@dataclass(frozen=True)
class LossPlane:
    """P_loss along, U_loss up by its square root."""

    right: float
    top: float
    width: int
    height: int

    @property
    def left(self) -> float:
        """The P_loss at the left border."""
        return -LEFT * self.right

    def at(self, p_loss: float, u_loss: float) -> Place:
        """Where a point lies, in pixels."""
        along = (p_loss - self.left) / (self.right - self.left)
        up = math.sqrt(min(max(u_loss / self.top, 0.0), 1.0))
        return along * self.width, (1 - up) * self.height

    def region_width(self, lower: Callable[[float], float], height: float) -> float:
        """How wide what lies under a falling border is, so many pixels above the ground."""
        least = self.top * (height / self.height) ** 2
        steps = (self.right * i / PLANE_STEPS for i in range(PLANE_STEPS + 1))
        inside = [p_loss for p_loss in steps if lower(p_loss) >= least]
        return self.at(inside[-1], 0)[0] - self.at(0, 0)[0] if inside else 0.0

    def along(self, line: Sequence[Place]) -> list[Place]:
        """Places on a line through these, at most `MARGIN` apart."""
        found: list[Place] = []
        for (x, y), (to_x, to_y) in pairwise(line):
            steps = math.ceil(math.hypot(to_x - x, to_y - y) / MARGIN) or 1
            shares = (i / steps for i in range(steps + 1))
            found += [(x + (to_x - x) * share, y + (to_y - y) * share) for share in shares]
        return found

    def free(
        self, about: Place, points: Sequence[Place], lines: Sequence[Place],
        width: float, height: float,
    ) -> Words:  # fmt: skip
        """Where words of this size cover fewest points, then least of lines, in the picture."""

        def covered(words: Words) -> tuple[int, ...]:
            left, top, right, bottom = words.box(about, width, height)
            out = left < 0 or top < 0 or right > self.width or bottom > self.height
            numbers = (
                sum(
                    left - MARGIN <= x <= right + MARGIN and top - MARGIN <= y <= bottom + MARGIN
                    for x, y in some
                )
                for some in (points, lines)
            )
            return out, *numbers

        return min(AROUND, key=covered)


# ----------------------------------------------------------------------
# the frontier as a picture: every release a point, what none can be below beneath them


WIDTH, HEIGHT, LINE = 880, 500, 110
FORBIDDEN = "#E3E6EA"
MONDRIAN = {
    "k": "Mondrian, k-anonymity", "l": "Mondrian, ℓ-diversity", "t": "Mondrian, t-closeness",
    "forbidden": "Mondrian, semantic, absent forbidden",
    "ignored": "Mondrian, semantic, absent ignored",
}  # fmt: skip
"""Mondrian's curves, by the kind of requirement or the reading of semantic privacy."""
COLOURS = (*METHOD_COLOURS, "#8C6D31", "#7A3E9D", "#000000", "#7F9C00", "#B0306A", "#3B6EA8",
           "#A05A2C", "#5C5C8A")  # fmt: skip
RECODES = {"generalization": "triangle-up", "bucketization": "circle"}
OTHER_SHAPES = ("square", "cross", "diamond", "triangle-down", "triangle-right", "triangle-left")
WORSE_THAN_NOTHING = 1.5
"""Points that lose more than so many times what trivial anonymization does are not drawn."""
STEPS = 240
"""Of the line that bounds bucketizations."""
X = "P_loss: how far a belief about one person moves"
Y = "U_loss: how far off estimates of populations are"
CAPTION = (
    "Grey: where no bucketization can be. U_loss is drawn by its square root. {left_out}",
    "Computed from the private table: not for publishing. Made with Voile.",
)
REGION = ["no bucketization", "can be here"]
REGION_WIDTH, REGION_HEIGHT = 106, 40
"""Room that those words take."""
RECOMMENDED, RECOMMENDED_WIDTH, RECOMMENDED_HEIGHT = "recommended", 104, 18


def draw(found: Frontier) -> alt.HConcatChart:
    """The plane with its title, and below it what is not drawn."""
    return theme(
        load_altair().vconcat(losses_plane(found)),
        title=f"What can be published of {found.name}",
        subtitle=textwrap.wrap(found.in_words(), LINE),
        caption=caption(found),
    )


def losses_plane(
    found: Frontier, size: tuple[int, int] = (WIDTH, HEIGHT), *, linked: bool = False
) -> Any:
    """P_loss along, U_loss up; nearer to the corner is better.

    Where it is `linked`, each point leads to its row in the table of the page.
    """
    alt = load_altair()
    plane = plane_of(found, size)
    x = alt.X(
        "p_loss:Q", title=X,
        scale=alt.Scale(domain=[plane.left, plane.right], nice=False),
        axis=alt.Axis(values=nice(plane.right), format="~g"),
    )  # fmt: skip
    y = alt.Y(
        "u_loss:Q", title=Y, scale=alt.Scale(type="sqrt", domain=[0, plane.top], nice=False),
        axis=alt.Axis(values=nice_squares(plane.top), format="~g"),
    )  # fmt: skip
    layers = [
        *_certified(found, x, y, plane), _chain(found, x, y),
        _points(alt, found, x, y, linked=linked), *_ends(found, x, y),
        *_recommended(found, x, y, plane),
    ]  # fmt: skip
    return alt.layer(*layers).properties(width=size[0], height=size[1])


def plane_of(found: Frontier, size: tuple[int, int] = (WIDTH, HEIGHT)) -> LossPlane:
    """All that is drawn is in it."""
    right = max([found.raw_p_loss, *(p.p_loss for p in found.points)]) * 1.03
    losses = [p.u_loss for p in found.points if p.u_loss <= highest(found)]
    top = max([found.certified.trivial, *losses]) * 1.12
    return LossPlane(right or 1.0, top or 1.0, *size)


def caption(found: Frontier) -> list[str]:
    """The lines below the picture."""
    number = sum(point.u_loss > highest(found) for point in found.points)
    words = f"Not drawn, worse than telling nothing: {number}." if number else ""
    return [line.format(left_out=words).strip() for line in CAPTION]


def nice(top: float) -> list[float]:
    """Round numbers up to the top, at most eight."""
    step = next(s for s in (0.01, 0.02, 0.05, 0.1, 0.2) if top / s <= 8)
    return [round(step * i, 4) for i in range(int(top / step) + 1)]


def nice_squares(top: float) -> list[float]:
    """Round numbers that stand apart where they are drawn by their roots."""
    digits = 10 ** np.floor(np.log10(top)) if top > 0 else 1.0
    return [0.0, *(float(digits * part) for part in (0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5)
                   if digits * part <= top)]  # fmt: skip


def _certified(found: Frontier, x: Any, y: Any, plane: LossPlane) -> list[Any]:
    """Below the certified frontier nothing can be; that is said there if there is room."""
    base = inline_chart(border(found, plane)).encode(x=x, y=y)
    layers = [
        base.mark_area(color=FORBIDDEN, opacity=1, clip=True).encode(y2="zero:Q"),
        base.mark_line(color=SOFT, strokeWidth=1.6, clip=True),
    ]
    if plane.region_width(found.certified.lower, REGION_HEIGHT) >= REGION_WIDTH:
        origin = inline_chart([{"p_loss": 0.0, "u_loss": 0.0}])
        layers.append(origin.encode(x=x, y=y).mark_text(
            text=REGION, align="left", dx=5, dy=-27, fontSize=11, color=SOFT
        ))  # fmt: skip
    return layers


def border(found: Frontier, plane: LossPlane) -> list[dict[str, float]]:
    """The certified frontier, finely where it is steep."""
    right = plane.right
    grid = np.unique([*np.linspace(0, right, STEPS), *np.linspace(0, right / 20, STEPS // 2)])
    return [{"p_loss": float(p), "u_loss": found.certified.lower(float(p)), "zero": 0}
            for p in grid]  # fmt: skip


def curves() -> dict[str, str]:
    """Each curve has one colour in every picture."""
    others = [how.about for name, how in frontier_methods().items() if name != "mondrian"]
    return dict(zip((*MONDRIAN.values(), *others), itertools.cycle(COLOURS), strict=False))


def shapes_of_methods() -> dict[str, str]:
    """Each way to show rows has one mark."""
    others = [how.about for how in frontier_methods().values() if not how.recodes]
    return RECODES | dict(zip(others, itertools.cycle(OTHER_SHAPES), strict=False))


def family(point: Any) -> str:
    """The curve that a point is of: the method, and for Mondrian the kind of requirement too."""
    if point.method != "mondrian":
        return frontier_methods()[point.method].about
    asked = point.parameters
    own = asked["absent"] if "semantic" in asked else next((n for n in "tl" if n in asked), "k")
    return MONDRIAN[own]


def records(found: Frontier) -> list[dict[str, Any]]:
    """The points as rows of the chart."""
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
            "row": f"#{row_name(place)}",
            "spoken": f"{point.requirement} by {family(point)}, {shown_by(point)}: P_loss "
            f"{point.p_loss:.4f}, U_loss {point.u_loss:.5f}",
        }
        for place, (point, best) in enumerate(zip(found.points, found.efficient, strict=True))
        if point.u_loss <= highest(found)
    ]


def row_name(place: int) -> str:
    """What a page calls the row of a point."""
    return f"release-{place + 1}"


def highest(found: Frontier) -> float:
    """Far above what trivial anonymization loses, a point only makes the others small."""
    return found.certified.trivial * WORSE_THAN_NOTHING


def _points(alt: Any, found: Frontier, x: Any, y: Any, *, linked: bool) -> Any:
    rows = records(found)
    drawn, seen = {row["curve"] for row in rows}, {row["shown by"] for row in rows}
    colours = {curve: colour for curve, colour in curves().items() if curve in drawn}
    shapes = {words: mark for words, mark in shapes_of_methods().items() if words in seen}
    colour = alt.Color(
        "curve:N",
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
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
    base = inline_chart(rows).encode(
        x=x, y=y, color=colour, shape=shape, tooltip=tips,
        opacity=alt.condition("datum.efficient == 'yes'", alt.value(1), alt.value(0.45)),
        size=alt.condition(hover, alt.value(190), alt.value(70)),
    )  # fmt: skip
    if linked:
        own = {"href": alt.Href("row:N"), "description": alt.Description("spoken:N")}
        base = base.encode(**own, size=alt.value(90))
        return base.mark_point(filled=True, stroke="white", strokeWidth=0.6)
    return base.mark_point(filled=True, stroke="white", strokeWidth=0.6).add_params(hover)


def chain(found: Frontier) -> list[dict[str, float]]:
    """Efficient points from one to the next."""
    rows = [
        {"p_loss": point.p_loss, "u_loss": point.u_loss}
        for point, best in zip(found.points, found.efficient, strict=True)
        if best and point.u_loss <= highest(found)
    ]
    return sorted(rows, key=lambda row: row["p_loss"])


def _chain(found: Frontier, x: Any, y: Any) -> Any:
    return (
        inline_chart(chain(found))
        .mark_line(color=INK, strokeWidth=1.2, strokeDash=[5, 3])
        .encode(x=x, y=y)
    )


def _ends(found: Frontier, x: Any, y: Any) -> list[Any]:
    """Trivial anonymization and the table as it is."""
    ends = [
        {"p_loss": 0.0, "u_loss": found.certified.trivial, "name": "trivial: a single class"},
        {"p_loss": found.raw_p_loss, "u_loss": 0.0, "name": "the exact table"},
    ]
    layers = []
    for row, align, dx, dy in zip(ends, ("left", "right"), (10, -10), (-8, -10), strict=True):
        base = inline_chart([row]).encode(x=x, y=y)
        layers += [
            base.mark_point(shape="diamond", size=130, color=INK, filled=True, opacity=1,
                            clip=False),
            base.mark_text(text=row["name"], align=align, dx=dx, dy=dy, fontSize=13, color=INK),
        ]  # fmt: skip
    return layers


def _recommended(found: Frontier, x: Any, y: Any, plane: LossPlane) -> list[Any]:
    """A ring around what is recommended, and the word where it covers least."""
    if (best := found.recommended) is None:
        return []
    points = [plane.at(row["p_loss"], row["u_loss"]) for row in records(found)]
    points += [plane.at(0, found.certified.trivial), plane.at(found.raw_p_loss, 0)]
    joined, bound = (plane.along([plane.at(row["p_loss"], row["u_loss"]) for row in line])
                     for line in (chain(found), border(found, plane)))  # fmt: skip
    place = plane.free(
        plane.at(best.p_loss, best.u_loss), points, [*joined, *bound],
        RECOMMENDED_WIDTH, RECOMMENDED_HEIGHT,
    )  # fmt: skip
    row = {"p_loss": best.p_loss, "u_loss": best.u_loss}
    base = inline_chart([row]).encode(x=x, y=y)
    return [
        base.mark_point(size=420, color=VERMILION, strokeWidth=2.4, filled=False, opacity=1),
        *edged_text(
            base, text=RECOMMENDED, align=place.align, dx=place.dx, dy=place.dy,
            baseline="middle", fontSize=14, fontWeight=600, color=VERMILION,
        ),
    ]  # fmt: skip
