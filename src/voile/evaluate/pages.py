"""The one shell of every report: a page in one file that loads nothing from elsewhere.

A report has a title, a lead, its numbers as tables, its pictures, and what to do next. The page
follows the reader's choice of light or dark, fits a phone, and prints in black on white.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voile.evaluate.drawing import EMBEDDING, ScriptSafe, javascript, kind_of, render
from voile.evaluate.page_pictures import dark_colours
from voile.files import write_whole

if TYPE_CHECKING:
    import altair as alt

LIGHT = {
    "paper": "#f6f5f1", "card": "#ffffff", "ink": "#1f2a30", "soft": "#5a656c", "line": "#e1dfd8",
    "field": "#fbfaf8", "accent": "#22665f", "accent-soft": "#d7e8e4", "on-accent": "#ffffff",
    "bad": "#9b2c23", "bad-soft": "#f8e7e4",
}  # fmt: skip
DARK = {
    "paper": "#12171a", "card": "#1a2125", "ink": "#e4e9e8", "soft": "#9dabb0", "line": "#2c363b",
    "field": "#141a1d", "accent": "#7fcabf", "accent-soft": "#21403d", "on-accent": "#0d2623",
    "bad": "#f0a79d", "bad-soft": "#3b2321",
}  # fmt: skip
"""The palette of a server's pages."""
STYLE = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font-variant-numeric: tabular-nums;
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans",
  sans-serif; overflow-wrap: break-word; }
main { max-width: 72rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
main > p, main > ul { max-width: 48rem; }
h1 { font-size: 1.75rem; line-height: 1.2; font-weight: 650; margin: 0 0 .4rem; }
h2 { font-size: 1.2rem; line-height: 1.3; font-weight: 600; margin: 2.4rem 0 .6rem; }
h3 { font-size: 1.05rem; font-weight: 600; margin: 0 0 .2rem; }
p, ul { margin: 0 0 .8rem; } small, .small { font-size: .88rem; color: var(--soft); }
a, summary { color: var(--accent); } summary { cursor: pointer; }
.brand { display: block; color: var(--accent); font-weight: 650; font-size: .9rem;
  letter-spacing: .02em; margin: 0 0 1.2rem; }
.lead { color: var(--soft); margin-bottom: 1.2rem; }
.first, .warning { border-left: 4px solid var(--accent); background: var(--accent-soft);
  border-radius: 0 8px 8px 0; padding: .7rem 1rem; margin: 1rem 0; }
.warning { border-color: var(--bad); background: var(--bad-soft); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem;
  margin: 1.2rem 0; }
.figure { display: flex; flex-direction: column-reverse; justify-content: flex-end; min-width: 0;
  background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: .8rem 1rem; }
.figure dd { margin: 0; font-size: 1.4rem; font-weight: 600; line-height: 1.25; }
.figure dt { color: var(--soft); font-size: .88rem; line-height: 1.4; }
.bad dd { color: var(--bad); }
.panels { display: grid; gap: 1rem; margin: 1rem 0 1.4rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); }
.panels figure, .paper { margin: 0; min-width: 0; background: var(--card); border-radius: 12px;
  border: 1px solid var(--line); padding: .9rem 1rem; }
figcaption { margin: 0 0 .5rem; } figcaption b { font-weight: 600; }
figcaption span { display: block; color: var(--soft); font-size: .88rem; line-height: 1.4; }
.panels > .scroll { margin: 0; align-self: start; }
.panels figure { overflow: hidden; }
.panels svg { display: block; max-width: 100%; height: auto; overflow: visible; }
.paper { background: #fff; overflow-x: auto; } .paper img { display: block; max-width: 100%; }
.scroll { overflow-x: auto; margin: .4rem 0 1.2rem; background: var(--card);
  border: 1px solid var(--line); border-radius: 12px; padding: .2rem 1rem .4rem; }
.scroll:focus-visible, a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; color: var(--soft); font-size: .88rem; padding: .5rem 0 .2rem; }
caption span { display: block; position: sticky; left: 0;
  max-width: min(100%, calc(100vw - 4rem)); }
th, td { text-align: left; padding: .4rem 1.1rem .4rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; } tbody tr:last-child > * { border-bottom: 0; }
thead th { color: var(--soft); font-weight: 550; font-size: .85rem; vertical-align: bottom; }
tbody th { font-weight: 550; } .n { text-align: right; white-space: nowrap; }
tr.best > *, tr:target > * { background: var(--accent-soft); }
code, pre { font-family: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas,
  "DejaVu Sans Mono", monospace; font-size: .88em; overflow-wrap: anywhere; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; margin: 0 0 .9rem;
  padding: .6rem .8rem; white-space: pre-wrap; }
.next p { margin: 0 0 .25rem; }
.tag { display: inline-block; border: 1px solid currentColor; border-radius: 99px;
  color: var(--soft); padding: 0 .55rem; font-size: .8rem; white-space: nowrap; }
.tag.bad { color: var(--bad); }
footer { border-top: 1px solid var(--line); margin-top: 2.4rem; padding-top: .9rem;
  color: var(--soft); font-size: .88rem; }
@media (max-width: 40rem) {
  main { padding: 1.2rem .9rem 2rem; } h1 { font-size: 1.4rem; }
  .figures { grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: .6rem; }
  .figure { padding: .6rem .8rem; } .figure dd { font-size: 1.3rem; }
  .panels figure { padding: .6rem .3rem; } figcaption { padding: 0 .5rem; }
  .scroll { padding: .1rem .7rem .3rem; } th, td { padding-right: .8rem; }
}
@media print {
  body { background: none; font-size: 10.5pt; } main { max-width: none; padding: 0; }
  .scroll { overflow: visible; } .panels figure, .figure, tr, pre { break-inside: avoid; }
  h2, figcaption { break-after: avoid; }
}
"""
PICTURE = '<div id="picture" class="paper"></div>'
"""Where a chart that answers to the pointer is drawn."""


@dataclass(frozen=True)
class NextStep:
    """A command to run next, and why one would."""

    why: str
    command: str


@dataclass(frozen=True)
class Report:
    """All that a page says; texts are plain, parts are HTML already."""

    title: str
    """Of the window; it tells one report from others."""
    heading: str
    lead: str
    parts: Sequence[str]
    next: Sequence[NextStep]
    source: str
    """What the page was made of, and whether it may be published."""
    style: str = ""
    chart: alt.TopLevelMixin | None = None
    """Drawn at PICTURE, and answers to the pointer; the page is large then."""

    def page(self) -> bytes:
        """The whole page, in one file."""
        body = "\n".join(
            [
                '<p class="brand">Voile</p>',
                f"<h1>{html.escape(self.heading)}</h1>",
                f'<p class="lead">{html.escape(self.lead)}</p>' if self.lead else "",
                *filter(None, self.parts),
                next_steps(self.next),
                f"<footer>{html.escape(self.source)}</footer>",
            ]
        )
        style = palette(body) + STYLE + self.style
        scripts = [] if self.chart is None else [javascript(), drawing(self.chart)]
        head = (
            f'<meta http-equiv="Content-Security-Policy" content="{policy(style, scripts)}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="color-scheme" content="light dark">'
            f'<meta name="referrer" content="no-referrer"><title>{html.escape(self.title)}</title>'
            f"<style>{style}</style>"
        )
        library, drawn = map(script, scripts or ["", ""])
        return (
            f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">{head}{library}'
            f"</head>\n<body><main>\n{body}\n</main>{drawn}</body>\n</html>\n"
        ).encode()


def palette(body: str) -> str:
    """The colours of the page and of its pictures, light and dark; paper is always light."""
    light, dark = (
        "".join(f"--{name}:{value};" for name, value in colours.items())
        for colours in (LIGHT, DARK | dark_colours(body, DARK))
    )
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"
    )


def policy(style: str, scripts: Sequence[str]) -> str:
    """What a browser lets the page do: its own style, its own script, and pictures beside it."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    allowed = f"default-src 'none'; img-src 'self' data: file:; style-src 'sha256-{digest}'"
    if not scripts:
        return f"{allowed}; base-uri 'none'; form-action 'none'"
    # Vega compiles its expressions, and sets the style of what it draws.
    own = "style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'"
    return f"default-src 'none'; img-src data: blob:; {own}; base-uri 'none'; form-action 'none'"


def script(text: str) -> str:
    """A script of the page's own."""
    return f"<script>{text}</script>" if text else ""


def drawing(chart: alt.TopLevelMixin) -> str:
    """The lines that draw a chart at PICTURE."""
    spec = json.dumps(chart.to_dict(), cls=ScriptSafe)
    options = json.dumps(EMBEDDING)
    return f"const SPEC = {spec};\nconst drawn = vegaEmbed('#picture', SPEC, {options});"


def next_steps(steps: Sequence[NextStep]) -> str:
    """The last section: what to run next."""
    shown = "".join(
        f"<p>{html.escape(step.why)}</p><pre><code>{html.escape(step.command)}</code></pre>"
        for step in steps
    )
    return f'<section class="next"><h2>Next</h2>{shown}</section>' if shown else ""


def write_report(
    path: Path, report: Callable[[], Report], picture: Callable[[], Any], *, overwrite: bool
) -> Path:
    """The report as a page, or its picture alone, as the file's name says."""
    kind = kind_of(path)
    content = report().page() if kind == "html" else render(picture(), kind)
    return write_whole(path, content, overwrite=overwrite)


def chart_report(chart: Any, *, title: str, source: str, next: Sequence[NextStep] = ()) -> Report:
    """A page around one chart whose points answer to the pointer."""
    return Report(title, title, "", [PICTURE], next, source, chart=chart)


# ------------------------------------------------------------------- parts of a page, HTML already


RIGHT = ' class="n"'
"""Of a cell with a number."""


def paragraph(text: str, kind: str = "") -> str:
    """A plain text as a paragraph."""
    start = f'<p class="{kind}">' if kind else "<p>"
    return f"{start}{html.escape(text)}</p>"


def heading(text: str) -> str:
    """The heading of a section."""
    return f"<h2>{html.escape(text)}</h2>"


def notes(texts: Iterable[str]) -> str:
    """What must be known of the numbers, a line for each."""
    return "".join(paragraph(f"Note: {text}", "small") for text in texts)


def headline(text: str, *, warning: bool = False) -> str:
    """The most important sentence, in a colour of warning or not."""
    tone = "warning" if warning else "first"
    return f'<p class="{tone}"><strong>{html.escape(text)}</strong></p>'


def figures(cells: Iterable[tuple[str, str, bool]]) -> str:
    """Large numbers side by side: each with its label, and whether it is bad news."""
    shown = "".join(
        f'<div class="figure{" bad" if bad else ""}"><dt>{html.escape(label)}</dt>'
        f"<dd>{html.escape(value)}</dd></div>"
        for value, label, bad in cells
    )
    return f'<dl class="figures">{shown}</dl>'


def table(
    caption: str, headings: Sequence[str], rows: Iterable[str], numeric: Collection[int] = ()
) -> str:
    """Rows under headings; those at the places `numeric` are over numbers.

    It scrolls in a box of its own where it is wider than the page.
    """
    head = "".join(
        f'<th scope="col"{RIGHT if i in numeric else ""}>{html.escape(h)}</th>'
        for i, h in enumerate(headings)
    )
    label = html.escape(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table>'
        f"<caption><span>{label}</span></caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def facts(caption: str, pairs: Iterable[Sequence[str]], headings: Sequence[str] = ()) -> str:
    """Names with their values, and what more is said of each."""
    rows = [row(head_cell(name), *map(text_cell, more)) for name, *more in pairs]
    return table(caption, headings or ("what", "value"), rows)


def row(*cells: str, chosen: bool = False, name: str = "") -> str:
    """One row of cells; a chosen one stands out, and a name can be linked to."""
    kind = ' class="best"' if chosen else ""
    linked = f' id="{html.escape(name)}"' if name else ""
    return f"<tr{kind}{linked}>{''.join(cells)}</tr>"


def head_cell(value: str) -> str:
    """The cell that names its row."""
    return f'<th scope="row">{html.escape(value)}</th>'


def text_cell(value: str) -> str:
    """A cell with a text, which may hold anything."""
    return f"<td>{html.escape(value)}</td>"


def number_cell(value: str) -> str:
    """A cell with a number, at the right."""
    return f"<td{RIGHT}>{html.escape(value)}</td>"
