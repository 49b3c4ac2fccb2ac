"""A page about a table's risk, in one file that loads nothing from elsewhere."""

from __future__ import annotations

import html

from voile.evaluate.look import render
from voile.evaluate.risk.found import Risk, percent, words
from voile.evaluate.risk.plot import draw_for_page
from voile.evaluate.risk.wording import facts, meaning
from voile.units import counted

STYLE = """
<style>
body { font: 16px/1.5 Inter, 'Helvetica Neue', Helvetica, Arial, sans-serif; color: #1F2933;
       max-width: 70rem; margin: 2.5rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.9rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
.lead { color: #5F6C7B; margin: 0 0 1.4rem; }
.warning { background: #FBE9E1; border-left: 4px solid #D55E00; padding: .6rem 1rem; }
.first { background: #E8ECF0; border-left: 4px solid #5F6C7B; padding: .6rem 1rem; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1.2rem 0 1.6rem; }
.figure { flex: 1 1 8rem; border: 1px solid #E8ECF0; border-radius: 8px; padding: .8rem 1rem; }
.figure b { display: block; font-size: 1.7rem; line-height: 1.2; }
.figure span { color: #5F6C7B; font-size: .88rem; } .bad b { color: #D55E00; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { text-align: left; padding: .35rem 1.2rem .35rem 0; border-bottom: 1px solid #E8ECF0;
         font-variant-numeric: tabular-nums; vertical-align: top; }
td small, small { color: #5F6C7B; } #vis { overflow-x: auto; margin: 0 -1.5rem; }
</style>
"""


def page(risk: Risk) -> bytes:
    """HTML with the numbers, what they mean, and pictures that answer to the pointer."""
    pictures = render(draw_for_page(risk), "html").decode()
    head, _, rest = pictures.rpartition("</head>")  # the first ones stand in scripts
    body, _, end = rest.rpartition("</body>")
    body = body.replace("<body>", f"<body>{top(risk)}", 1)
    title = f"<title>Risk of {html.escape(risk.table)}</title>"
    return f"{head}{title}{STYLE}</head>{body}{bottom(risk)}</body>{end}".encode()


def top(risk: Risk) -> str:
    """Everything above the pictures."""
    tone = "warning" if risk.k < 2 else "first"
    about = f"{counted(risk.rows, 'row')}. Quasi-identifiers: {words(risk.qi)}."
    if risk.sensitive:
        about += f" Sensitive: {words(risk.sensitive)}."
    notes = "".join(f"<p><small>{html.escape(note)}</small></p>" for note in risk.notes)
    return (
        f"<h1>Risk of {html.escape(risk.table)}</h1>"
        f'<p class="lead">{html.escape(about)}</p>'
        f'<p class="{tone}"><strong>{html.escape(risk.headline())}</strong></p>'
        f"{figures(risk)}{notes}"
    )


def figures(risk: Risk) -> str:
    above = risk.prosecutor.above
    cells = [
        (f"{risk.k:,}", "k: rows of the smallest class", risk.k < 2),
        (percent(risk.uniqueness.share), "of the rows are alone in their class",
         risk.uniqueness.unique > 0),
        (percent(above), f"of the rows are found again with a chance above {risk.threshold:.3g}",
         above > 0),
        (percent(risk.marketer), "of the rows are found again on average", False),
        (f"{risk.unique_sets.rows:,}", "rows are singled out by "
         f"{risk.unique_sets.largest} columns or fewer", risk.unique_sets.rows > 0),
    ]  # fmt: skip
    shown = "".join(
        f'<div class="figure{" bad" if bad else ""}"><b>{value}</b>'
        f"<span>{html.escape(label)}</span></div>"
        for value, label, bad in cells
    )
    return f'<div class="figures">{shown}</div>'


def bottom(risk: Risk) -> str:
    """All numbers with what they mean."""
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td>"
        f"<td><small>{html.escape(meaning(name))}</small></td></tr>"
        for name, value in facts(risk)
    )
    return (
        f"<h2>All numbers</h2><table>{rows}</table>"
        "<p><small>Made with Voile from the private table: true counts of it stand on this page. "
        "Do not publish it.</small></p>"
    )
