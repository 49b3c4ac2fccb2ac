"""Pages in one file that load nothing from elsewhere: one skeleton, one style, and their parts."""

from __future__ import annotations

import html
import json
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from voile.evaluate.drawing import EMBEDDING, ScriptSafe, javascript

if TYPE_CHECKING:
    import altair as alt

STYLE = """
body { font: 16px/1.5 Inter, 'Helvetica Neue', Helvetica, Arial, sans-serif; color: #1F2933;
       margin: 2.5rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.9rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
.lead { color: #5F6C7B; margin: 0 0 1.4rem; } small { color: #5F6C7B; }
.first { background: #E8ECF0; border-left: 4px solid #5F6C7B; padding: .6rem 1rem; }
.warning { background: #FBE9E1; border-left: 4px solid #D55E00; padding: .6rem 1rem; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.2rem 0 1.6rem; }
.figure { flex: 1 1 7rem; border: 1px solid #E8ECF0; border-radius: 8px; padding: .8rem 1rem; }
.figure b { display: block; font-size: 1.7rem; line-height: 1.2; }
.figure span { color: #5F6C7B; font-size: .88rem; } .bad b { color: #D55E00; }
.scroll, #picture { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .35rem .7rem; border-bottom: 1px solid #E8ECF0;
         vertical-align: top; font-variant-numeric: tabular-nums; }
th { color: #5F6C7B; font-weight: 500; } .n { text-align: right; white-space: nowrap; }
"""
PICTURE = '<div id="picture"></div>'
"""Where the page's chart is drawn."""


def page(
    title: str,
    parts: Iterable[str],
    *,
    width: int,
    style: str = "",
    chart: alt.TopLevelMixin | None = None,
    script: str = "",
) -> bytes:
    """A whole page, `width` rem wide at most, of parts that are HTML already.

    A chart is drawn at PICTURE and answers to the pointer; `script` may use `drawn`, the promise
    of its view.
    """
    own = f"{STYLE}body {{ max-width: {width}rem; }}\n{style}"
    body = "\n".join(filter(None, parts))
    library, drawing = ("", "") if chart is None else (_script(javascript()), _drawing(chart))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title>"
        f'<meta name="viewport" content="width=device-width"><style>{own}</style>{library}</head>'
        f"<body>{body}{drawing}{_script(script)}</body></html>\n"
    ).encode()


def _script(text: str) -> str:
    return f"<script>{text}</script>" if text else ""


def _drawing(chart: alt.TopLevelMixin) -> str:
    spec = json.dumps(chart.to_dict(), cls=ScriptSafe)
    options = json.dumps(EMBEDDING)
    return _script(f"const SPEC = {spec};\nconst drawn = vegaEmbed('#picture', SPEC, {options});")


def headline(text: str, *, warning: bool) -> str:
    """The most important sentence, in a colour of warning or not."""
    tone = "warning" if warning else "first"
    return f'<p class="{tone}"><strong>{html.escape(text)}</strong></p>'


def figures(cells: Iterable[tuple[str, str, bool]]) -> str:
    """Large numbers side by side: each with its label, and whether it is bad news."""
    shown = "".join(
        f'<div class="figure{" bad" if bad else ""}"><b>{html.escape(value)}</b>'
        f"<span>{html.escape(label)}</span></div>"
        for value, label, bad in cells
    )
    return f'<div class="figures">{shown}</div>'


def table(headings: Sequence[str], rows: Iterable[str], numeric: Collection[int]) -> str:
    """Rows under headings; those at the places `numeric` are over numbers."""
    head = "".join(
        f'<th class="n">{h}</th>' if i in numeric else f"<th>{h}</th>"
        for i, h in enumerate(headings)
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def row(*cells: str, chosen: bool = False) -> str:
    """One row of cells; a chosen one stands out."""
    kind = ' class="best"' if chosen else ""
    return f"<tr{kind}>{''.join(cells)}</tr>"


def text_cell(value: str) -> str:
    """A cell with a text, which may hold anything."""
    return f"<td>{html.escape(value)}</td>"


def number_cell(value: str) -> str:
    """A cell with a number, at the right."""
    return f'<td class="n">{html.escape(value)}</td>'
