"""Charts as SVG that stands in a page: small, without a script, and in the page's own colours.

A colour is written `var(--c0072b2,#0072B2)`: as it was drawn, unless the page says another for the
dark. `dark_colours` says it.
"""

from __future__ import annotations

import colorsys
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voile.evaluate.drawing import GRID, INK, OWN_SCALES, SOFT, configuration, load_altair, render

PANEL = (380, 290)
"""Width and height of a panel, in pixels: legible on a phone, two beside each other elsewhere."""
LETTERS = 14
PADDING = {"left": 16, "right": 10, "top": 6, "bottom": 6}
"""Letters of a reader's font may be wider than those it was drawn with."""
LARGER = 1.2
"""How much larger than drawn a panel is shown where there is room."""
NAMED = {"white": "#ffffff", "black": "#000000"}
COLOUR = re.compile(r'\b(fill|stroke|stop-color)="(#[0-9A-Fa-f]{3,6}|white|black|rgb\([^)"]*\))"')
USED = re.compile(r"var\(--c([0-9a-f]{6}),")
MARK = re.compile(r'<path( aria-label="([^"]*)"[^>]*)/>')
LINK = re.compile(r'xlink:href="[^"#]*#')
SIZE = re.compile(r'\bwidth="([\d.]+)" height="([\d.]+)"')
SPOKEN = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
BRIGHT, LEAST = 0.7, 0.64
"""Lightness above which a colour is a ground, and the least of a mark in the dark."""


@dataclass(frozen=True)
class PicturePanel:
    """A chart with what stands above it, and what it shows in words for who cannot see it."""

    title: str
    chart: Any
    words: str
    note: str = ""
    size: tuple[int, int] | None = PANEL
    """None where the chart has sizes of its own."""
    linked: bool = False
    """Whether its marks are links."""


def panels(drawn: Sequence[PicturePanel], beside: str = "") -> str:
    """Panels, and a table of numbers, beside each other; below each other on a phone."""
    return f'<div class="panels">{"".join(map(figure, drawn))}{beside}</div>'


def figure(panel: PicturePanel) -> str:
    """One panel as HTML."""
    note = f"<span>{html.escape(panel.note)}</span>" if panel.note else ""
    caption = f"<figcaption><b>{html.escape(panel.title)}</b>{note}</figcaption>"
    return f"<figure>{caption}{svg_of(panel)}</figure>"


def svg_of(panel: PicturePanel) -> str:
    """The chart as SVG for a page: no title, legends in one column, colours by name."""
    found = render(plain(panel), "svg").decode()
    found = hovered(found) if panel.linked else SPOKEN.sub("", found)
    found = SIZE.sub(larger, found, count=1)
    role = "group" if panel.linked else "img"
    start = f'<svg role="{role}" aria-label="{html.escape(panel.words)}" '
    return own_names(themed(found.replace("<svg ", start, 1)))


def larger(size: re.Match[str]) -> str:
    """The size at which a panel is shown where there is room."""
    width, height = (LARGER * float(part) for part in size.groups())
    return f'width="{width:.0f}" height="{height:.0f}"'


def hovered(svg: str) -> str:
    """The same, where marks with words show them to who points at them, and links stay here."""
    return MARK.sub(r"<path\1><title>\2</title></path>", LINK.sub('href="#', svg))


def plain(panel: PicturePanel) -> Any:
    """The chart without a title, on no ground, and not wider than a panel."""
    alt = load_altair()
    chart = panel.chart
    if panel.size is not None:
        chart = chart.properties(width=panel.size[0], height=panel.size[1])
    framed = alt.vconcat(chart).resolve_scale(**OWN_SCALES)
    look = configuration()
    for part in ("axis", "legend"):
        look[part] |= {"labelFontSize": LETTERS, "titleFontSize": LETTERS}
    framed = framed.properties(background="transparent", padding=PADDING).configure(**look)
    spec = framed.to_dict()
    narrow(spec["vconcat"])
    return alt.VConcatChart.from_dict(spec)


def narrow(part: Any) -> None:
    """Legends in one column, and no title within: the page has it above."""
    if isinstance(part, list):
        for one in part:
            narrow(one)
    elif isinstance(part, dict):
        for name, value in part.items():
            if name == "legend" and isinstance(value, dict):
                value |= {"columns": 1, "orient": "top", "direction": "vertical"}
                value |= {"labelLimit": PANEL[0]}
            elif name not in ("data", "datasets"):
                narrow(value)


def themed(svg: str) -> str:
    """The same with each colour as a variable, which is what it was where nobody sets it."""
    return COLOUR.sub(lambda m: f'{m[1]}="var(--c{hexadecimal(m[2])[1:]},{m[2]})"', svg)


def hexadecimal(colour: str) -> str:
    """A colour as #rrggbb, in small letters."""
    if colour.startswith("rgb"):
        return "#" + "".join(f"{int(float(part)):02x}" for part in colour[4:-1].split(",")[:3])
    found = NAMED.get(colour, colour).lower()
    return "#" + "".join(2 * one for one in found[1:]) if len(found) == 4 else found


def own_names(svg: str) -> str:
    """Names within a picture that no other picture of the page has."""
    names = set(re.findall(r'\bid="([^"]+)"', svg))
    mark = hashlib.sha256(svg.encode()).hexdigest()[:8]
    for name in names:
        svg = svg.replace(f'id="{name}"', f'id="{name}-{mark}"')
        svg = svg.replace(f"url(#{name})", f"url(#{name}-{mark})")
    return svg


def dark_colours(body: str, dark: Mapping[str, str]) -> dict[str, str]:
    """For each colour of the pictures of a page, the one that stands for it in the dark."""
    own = {"#ffffff": "card", INK.lower(): "ink", SOFT.lower(): "soft", GRID.lower(): "line"}
    return {
        f"c{colour}": dark[own[f"#{colour}"]] if f"#{colour}" in own else in_the_dark(colour)
        for colour in sorted(set(USED.findall(body)))
    }


def in_the_dark(colour: str) -> str:
    """A colour of the same hue: bright grounds become dark ones, and marks bright enough."""
    red, green, blue = (int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4))
    hue, light, strength = colorsys.rgb_to_hls(red, green, blue)
    turned = 0.14 + 0.86 * (1 - light) if light > BRIGHT else max(1 - light, LEAST)
    found = colorsys.hls_to_rgb(hue, turned, 0.8 * strength)
    return "#" + "".join(f"{round(255 * part):02x}" for part in found)
