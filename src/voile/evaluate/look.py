"""The one look of all of Voile's pictures, and how they are written to files.

Only the modules that draw need the `plots` extra, and only when something is drawn.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.errors import UsageError

if TYPE_CHECKING:
    import altair as alt

# Okabe and Ito's palette: told apart with any common colour blindness; the dashes, in grey.
BLUE, VERMILION = "#0072B2", "#D55E00"
"""Two colours that nobody confuses."""
METHOD_COLOURS = [BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555"]
"""One colour for each method, in the order in which they are named."""
METHOD_DASHES = [[1, 0], [8, 3], [3, 3], [9, 3, 2, 3], [5, 5], [14, 4], [2, 5]]
"""One dash for each method, so that lines differ without colour too."""
DENSITY = ["#DCE8F1", "#A9C9DF", "#5B9BC4", "#1F6699", "#0B2F4E"]
"""From few to many."""
BAND, BAND_INK, INK, SOFT, GRID = "#F2C879", "#8A5A00", "#1F2933", "#5F6C7B", "#E8ECF0"
"""Bands of error, text, what is beside the point, and lines of the grid."""
FONT = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', sans-serif"

# Each panel keeps its own colours and dashes, and so its own legend.
OWN_SCALES = {"color": "independent", "strokeDash": "independent", "opacity": "independent"}
CODE_FONT = "'JetBrains Mono', 'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace"
FORMATS = ("png", "svg", "pdf", "html")


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
    ).configure(**_config())


def _config() -> dict[str, Any]:
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
        return super().encode(o).replace("<", "\\u003c")


def render(chart: alt.TopLevelMixin, kind: str) -> bytes:
    """The picture as the content of a file; `kind` is one of FORMATS."""
    load_altair()
    if kind == "html":
        # No link to the online editor: one click on it would send what is drawn to another site.
        actions = {"export": True, "source": False, "compiled": False, "editor": False}
        page: str = chart.to_html(
            inline=True, embed_options={"actions": actions}, json_kwds={"cls": ScriptSafe}
        )
        return page.encode()
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


def write(path: Path, content: bytes) -> Path:
    """Write beside, then rename: a reader sees a whole file or none."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


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
