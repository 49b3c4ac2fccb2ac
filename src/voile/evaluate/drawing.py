"""The one look of all of Voile's pictures: theme, axes, labels, and files.

Altair, the `plots` extra, is loaded only when something is drawn.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.errors import UsageError, spelled
from voile.kinds.staging import check_outside

if TYPE_CHECKING:
    import altair as alt

# Okabe and Ito's palette: told apart with any common colour blindness; the dashes, in grey.
BLUE, VERMILION = "#0072B2", "#D55E00"
"""Two colours that nobody confuses."""
METHOD_COLOURS = [BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#7A5195"]
"""One colour for each method, in the order in which they are named."""
METHOD_DASHES = [[1, 0], [8, 3], [3, 3], [9, 3, 2, 3], [5, 5], [14, 4], [2, 5], [10, 2, 2, 2, 2, 2]]
"""One dash for each method, so that lines differ without colour too."""
DENSITY = ["#DCE8F1", "#A9C9DF", "#5B9BC4", "#1F6699", "#0B2F4E"]
"""From few to many."""
BAND_INK, INK, SOFT, GRID = "#8A5A00", "#1F2933", "#5F6C7B", "#E8ECF0"
"""Text in a band of error, text, what is beside the point, and lines of the grid."""
FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"

# Each panel keeps its own colours and dashes, and so its own legend.
OWN_SCALES = {"color": "independent", "strokeDash": "independent", "opacity": "independent"}
# No link to the online editor: one click on it would send what is drawn to another site.
EMBEDDING = {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}
CODE_FONT = "'JetBrains Mono', 'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace"
PICTURES = ("png", "svg", "pdf")
FORMATS = (*PICTURES, "html")


def theme(
    chart: alt.TopLevelMixin,
    *,
    title: str | Sequence[str],
    subtitle: str | Sequence[str],
    caption: str | Sequence[str],
    heading: dict[str, Any] | None = None,
) -> alt.HConcatChart:
    """Title and subtitle above, the source below; `heading` is for titles of another kind."""
    alt = load_altair()
    titles = [title] if isinstance(title, str) else list(title)
    lines = [subtitle] if isinstance(subtitle, str) else list(subtitle)
    plain = {"anchor": "start", "fontSize": 24, "subtitleFontSize": 15, "offset": 22}
    head = alt.TitleParams(titles, subtitle=lines, **(plain | (heading or {})))
    # Vega-Lite has no caption: an outer frame's title, turned to the bottom, is one.
    foot = alt.TitleParams(
        caption,
        orient="bottom",
        anchor="start",
        fontSize=12,
        fontWeight="normal",
        color=SOFT,
        offset=18,
    )
    if heading and "frame" in heading:
        foot.frame = heading["frame"]
    framed = alt.hconcat(chart.properties(title=head)).resolve_scale(**OWN_SCALES)
    return framed.properties(
        title=foot,
        description=f"{' '.join(titles)}. {' '.join(lines)}",
        background="white",
        padding=28,
    ).configure(**configuration())


def configuration() -> dict[str, Any]:
    """How all pictures look: fonts, axes, legends."""
    return {
        "font": FONT,
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "frame": "group",
            "fontSize": 16,
            "fontWeight": 600,
            "color": INK,
            "subtitleColor": SOFT,
            "subtitleFontSize": 13,
            "subtitlePadding": 6,
            "offset": 12,
        },
        "axis": {
            "labelFontSize": 13,
            "titleFontSize": 13,
            "labelColor": SOFT,
            "titleColor": INK,
            "titleFontWeight": "normal",
            "titlePadding": 10,
            "labelPadding": 6,
            "labelOverlap": "greedy",
            "labelSeparation": 6,
            "gridColor": GRID,
            "domain": False,
            "ticks": False,
        },
        "legend": {
            "labelFontSize": 13,
            "titleFontSize": 13,
            "labelColor": SOFT,
            "titleColor": SOFT,
            "titleFontWeight": "normal",
        },
    }


class ScriptSafe(json.JSONEncoder):
    """A label is a value of someone's table, and must not end the script that it stands in."""

    def encode(self, o: Any) -> str:
        """JSON without a character that could begin or end a tag."""
        return super().encode(o).replace("<", "\\u003c")


def render(chart: alt.TopLevelMixin, kind: str) -> bytes:
    """The picture as the content of a file; `kind` is one of PICTURES: a page is a `Report`."""
    load_altair()
    if kind == "svg":
        text = io.StringIO()
        chart.save(text, format="svg")
        return text.getvalue().encode()
    content = io.BytesIO()
    chart.save(content, format=kind, **({"scale_factor": 2} if kind == "png" else {}))
    return content.getvalue()


def javascript() -> str:
    """What draws a picture in a page of our own, to stand in the page itself."""
    load_altair()
    from altair.utils._importers import (  # noqa: PLC0415  (an optional extra)
        import_vl_convert,
        vl_version_for_vl_convert,
    )

    bundle: str = import_vl_convert().javascript_bundle(vl_version=vl_version_for_vl_convert())
    return bundle


def load_altair() -> Any:
    """Altair, with what draws pictures of its charts; refused with a hint where it is missing."""
    try:
        import altair  # noqa: PLC0415  (an optional extra, and slow to load)
        import vl_convert  # noqa: F401, PLC0415
    except ImportError as missing:
        raise UsageError(
            f"drawing needs {missing.name}, which is not installed",
            hint="pip install 'voile[plots]'",
        ) from missing
    return altair


# ---------------------------------------------------- parts of pictures: titles, axes, ticks, notes


Rows = list[dict[str, Any]]


def inline_chart(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A chart of these rows, which it carries with it."""
    alt = load_altair()
    return alt.Chart(alt.InlineData(values=list(rows)))


def edged_text(at: Any, edge: int = 4, **look: Any) -> tuple[Any, Any]:
    """A text in two layers: first a white edge, which keeps lines out of the letters."""
    white = look | {"color": "white", "stroke": "white", "strokeWidth": edge}
    return at.mark_text(**white), at.mark_text(**look)


def requested_error(error: float, text: str, *, align: str, dx: int, x: int) -> list[Any]:
    """The error that was requested: a line across the picture, with its name above it at `x`."""
    at = inline_chart([{"error": error}]).encode(y="error:Q")
    name = at.mark_text(color=VERMILION, fontSize=13, text=text, align=align, dx=dx, dy=-8)
    return [
        at.mark_rule(color=VERMILION, strokeWidth=1.5, clip=True),
        name.encode(x=load_altair().value(x)),
    ]


def line_scales(names: Sequence[str]) -> tuple[alt.Scale, alt.Scale]:
    """A colour and a dash for each line."""
    alt = load_altair()
    count = len(names)
    return (
        alt.Scale(domain=list(names), range=METHOD_COLOURS[:count]),
        alt.Scale(domain=list(names), range=METHOD_DASHES[:count]),
    )


def log_ticks(low: float, high: float, leading: Sequence[int] = (1, 2, 5)) -> list[float]:
    """These digits times the powers of ten, as far as they are in the range."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = (float(f"{digit}e{power}") for power in powers for digit in leading)
    # Ends are computed: a tick that should be one is not lost to rounding.
    return [tick for tick in ticks if low * (1 - 1e-12) <= tick <= high * (1 + 1e-12)]


def logarithmic(values: Sequence[float], title: str, *, air: float) -> dict[str, Any]:
    """A logarithmic axis with ticks at 1, 2 and 5 times the powers of ten."""
    alt = load_altair()
    low, high = (min(values) / air, max(values) * air) if values else (1.0, 10.0)
    ticks = log_ticks(low, high, (1, 2, 5) if high / low < 10**4 else (1,))
    return {
        "scale": alt.Scale(type="log", domain=[low, high], nice=False),
        "axis": alt.Axis(title=title, values=ticks, format=",.12~g"),
    }


# ---------------------------------------------------- pictures to files whose names say their kind


def check_picture(path: Path, *, overwrite: bool) -> None:
    """Refuse before any work is done."""
    kind_of(path)
    load_altair()
    check_outside(path)
    if not path.resolve().parent.is_dir():
        raise UsageError(
            f"there is no folder {str(path.parent)!r} for {path.name!r}", hint="make it first"
        )
    if path.exists() and not overwrite:
        raise UsageError(
            f"{str(path)!r} exists already",
            hint=f"choose another name, or pass {spelled('overwrite', True)}",
        )


def kind_of(path: Path) -> str:
    """The format that a file's name says, one of FORMATS."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise UsageError(
            f"{str(path)!r} ends in {path.suffix or 'nothing'}",
            hint=f"name it .{', .'.join(FORMATS[:-1])} or .{FORMATS[-1]}",
        )
    return kind
