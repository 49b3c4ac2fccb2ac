"""The frontier as one page that loads nothing from elsewhere: hover a point, click to copy."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from voile.errors import UsageError
from voile.evaluate.drawing import ScriptSafe, javascript, load_altair, render
from voile.evaluate.frontier.frontier_plot import draw, family
from voile.evaluate.frontier.result import RULE, Frontier, shown_by
from voile.evaluate.frontier.running import KEPT
from voile.files import write_whole
from voile.kinds.staging import check_outside

STYLE = """
body { font: 16px/1.5 Inter, 'Helvetica Neue', Helvetica, Arial, sans-serif; color: #1F2933;
       max-width: 76rem; margin: 2.5rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.9rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
.lead { color: #5F6C7B; margin: 0 0 1.4rem; }
.best { background: #FBE9E1; border-left: 4px solid #D55E00; padding: .7rem 1rem; }
pre { background: #F5F7F9; border-radius: 6px; padding: .7rem 1rem; margin: .5rem 0;
      white-space: pre-wrap; font: .85rem/1.5 'JetBrains Mono', 'DejaVu Sans Mono', monospace; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .35rem .7rem; border-bottom: 1px solid #E8ECF0;
         vertical-align: top; font-variant-numeric: tabular-nums; }
th { color: #5F6C7B; font-weight: 500; } .n { text-align: right; white-space: nowrap; }
tr.best td { background: #FBE9E1; } code { font-size: .78rem; word-break: break-word; }
small { color: #5F6C7B; } #picture { overflow-x: auto; }
summary { cursor: pointer; color: #0072B2; } #vg-tooltip-element { max-width: 34rem; }
#vg-tooltip-element td.value { max-width: none; white-space: normal; overflow: visible; }
"""
NOISE = (
    "Noisy views and perturbed rows were measured with simulated coins; those that are published "
    "have their own, and differ by chance. Their P_loss is what an adversary who knows the "
    "distribution of all rows comes to believe by Bayes’ rule, and what they promise is more than "
    "it says. The grey region is not about them."
)
SCRIPT = """
vegaEmbed('#picture', SPEC, {actions: {export: true, source: false, compiled: false,
  editor: false}}).then(function (made) {
  made.view.addEventListener('click', function (event, item) {
    if (item && item.datum && item.datum.command) {
      document.getElementById('command').textContent = '$ ' + item.datum.command;
    }
  });
});
"""


def page(found: Frontier) -> bytes:
    """HTML with the recommendation, the picture, and every efficient release with its command."""
    name = html.escape(found.name)
    spec = json.dumps(draw(found, titled=False).to_dict(), cls=ScriptSafe)
    best = found.recommended
    command = f"$ {best.command}" if best is not None else "Click a point."
    body = [
        f"<h1>What can be published of {name}</h1>",
        f'<p class="lead">{html.escape(about(found))}</p>',
        f'<p class="best"><strong>{html.escape(found.in_words())}</strong></p>',
        '<div id="picture"></div>',
        "<p><small>Hover a point to see what it is; click it for its command:</small></p>",
        f'<pre id="command">{html.escape(command)}</pre>',
        "<h2>Efficient releases</h2>",
        "<p>No other that was measured is at least as good in both losses and better in one.</p>",
        efficient_table(found),
        "<h2>How to read this</h2>",
        f"<p>{html.escape(found.meaning)}</p>",
        f"<p>Recommended is: {html.escape(RULE)} Nearness is a convention; whoever has a limit on "
        "P_loss should state it with <code>--most-p-loss</code>.</p>",
        "<p>The grey region is certified: no bucketization whatever can be in it. Its border is a "
        "bound on what is possible, not a release: distributions that reach it need not belong to "
        "any rows, and publishing them would show single records.</p>",
        *([f"<p>{NOISE}</p>"] if any(p.recode is None for p in found.points) else []),
        "<p><small>Computed from the private table: not for publishing. Made with Voile.</small>"
        "</p>",
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>Frontier of {name}</title>"
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
        f"<script>{javascript()}</script></head><body>{''.join(body)}"
        f"<script>const SPEC = {spec};{SCRIPT}</script></body></html>\n"
    ).encode()


def about(found: Frontier) -> str:
    return (
        f"{found.sensitive} given {', '.join(found.qi)}: {len(found.points)} releases of "
        f"{found.rows:,} rows, measured on {found.populations:,} populations of at least "
        f"{found.min_support:.3g} of the rows."
    )


def efficient_table(found: Frontier) -> str:
    best = [p for p, good in zip(found.points, found.efficient, strict=True) if good]
    rows = "".join(row_of(found, p) for p in sorted(best, key=lambda p: p.p_loss))
    heads = "".join(
        f"<th{kind}>{text}</th>"
        for text, kind in (
            ("method", ""), ("promise", ""), ("shown by", ""), ("P_loss", ' class="n"'),
            ("U_loss", ' class="n"'), ("above certified", ' class="n"'), ("classes", ' class="n"'),
            ("command", ""),
        )
    )  # fmt: skip
    return f'<div class="scroll"><table><tr>{heads}</tr>{rows}</table></div>'


def row_of(found: Frontier, point: Any) -> str:
    words = [family(point), point.requirement, shown_by(point)]
    above = found.above(point)
    numbers = [
        f"{point.p_loss:.4f}", f"{point.u_loss:.5f}", "–" if above is None else f"{above:z.5f}",
        "–" if point.classes is None else f"{point.classes:,}",
    ]  # fmt: skip
    cells = "".join(f"<td>{html.escape(word)}</td>" for word in words)
    cells += "".join(f'<td class="n">{number}</td>' for number in numbers)
    chosen = ' class="best"' if point is found.recommended else ""
    command = f"<details><summary>show</summary><code>{html.escape(point.command)}</code></details>"
    return f"<tr{chosen}>{cells}<td>{command}</td></tr>"


# ----------------------------------------------------------------------
# the folder of a frontier: points, a picture, a page


POINTS, PICTURE, PAGE = "points.csv", "frontier.png", "frontier.html"


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Refuse before any work is done. A folder that holds points may be gone on with."""
    load_altair()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is a file", hint="name a folder")
    check_outside(folder / POINTS)
    if overwrite or (folder / KEPT).exists():
        return
    for name in (POINTS, PICTURE, PAGE):
        if (folder / name).exists():
            raise UsageError(
                f"{str(folder / name)!r} exists already",
                hint="choose another folder, or pass --overwrite",
            )


def write_frontier(found: Frontier, folder: Path) -> list[Path]:
    """Each file whole or not there."""
    chart = draw(found)
    return [
        write_whole(folder / POINTS, found.csv()),
        write_whole(folder / PICTURE, render(chart, "png")),
        write_whole(folder / PAGE, page(found)),
    ]
