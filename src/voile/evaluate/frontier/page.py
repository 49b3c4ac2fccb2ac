"""The frontier as one page that loads nothing from elsewhere: hover a point, click to copy."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from voile.errors import UsageError, spelled
from voile.evaluate import pages
from voile.evaluate.drawing import load_altair, render
from voile.evaluate.frontier.frontier_plot import draw, family
from voile.evaluate.frontier.result import RULE, Frontier, shown_by
from voile.evaluate.frontier.running import KEPT
from voile.files import write_whole
from voile.kinds.staging import check_outside

STYLE = """
.best { background: #FBE9E1; border-left: 4px solid #D55E00; padding: .7rem 1rem; }
pre { background: #F5F7F9; border-radius: 6px; padding: .7rem 1rem; margin: .5rem 0;
      white-space: pre-wrap; font: .85rem/1.5 'JetBrains Mono', 'DejaVu Sans Mono', monospace; }
tr.best td { background: #FBE9E1; } code { font-size: .78rem; word-break: break-word; }
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
drawn.then(function (made) {
  made.view.addEventListener('click', function (event, item) {
    if (item && item.datum && item.datum.command) {
      document.getElementById('command').textContent = '$ ' + item.datum.command;
    }
  });
});
"""


def page(found: Frontier) -> bytes:
    """HTML with the recommendation, the picture, and every efficient release with its command."""
    best = found.recommended
    command = f"$ {best.command}" if best is not None else "Click a point."
    body = [
        f"<h1>What can be published of {html.escape(found.name)}</h1>",
        f'<p class="lead">{html.escape(about(found))}</p>',
        f'<p class="best"><strong>{html.escape(found.in_words())}</strong></p>',
        pages.PICTURE,
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
    return pages.page(
        f"Frontier of {found.name}", body, width=76, style=STYLE,
        chart=draw(found, titled=False), script=SCRIPT,
    )  # fmt: skip


def about(found: Frontier) -> str:
    """What was measured, in a sentence."""
    return (
        f"{found.sensitive} given {', '.join(found.qi)}: {len(found.points)} releases of "
        f"{found.rows:,} rows, measured on {found.populations:,} populations of at least "
        f"{found.min_support:.3g} of the rows."
    )


def efficient_table(found: Frontier) -> str:
    """Every efficient release with its losses and its command, the most private first."""
    best = [p for p, good in zip(found.points, found.efficient, strict=True) if good]
    rows = [row_of(found, p) for p in sorted(best, key=lambda p: p.p_loss)]
    heads = [
        "method", "promise", "shown by", "P_loss", "U_loss", "above certified", "classes",
        "command",
    ]  # fmt: skip
    return pages.table(heads, rows, numeric=range(3, 7))


def row_of(found: Frontier, point: Any) -> str:
    """A release as a row of the table; the recommended one stands out."""
    words = [family(point), point.requirement, shown_by(point)]
    above = found.above(point)
    numbers = [
        f"{point.p_loss:.4f}", f"{point.u_loss:.5f}", "–" if above is None else f"{above:z.5f}",
        "–" if point.classes is None else f"{point.classes:,}",
    ]  # fmt: skip
    cells = [*map(pages.text_cell, words), *map(pages.number_cell, numbers)]
    command = f"<details><summary>show</summary><code>{html.escape(point.command)}</code></details>"
    return pages.row(*cells, f"<td>{command}</td>", chosen=point is found.recommended)


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
                hint=f"choose another folder, or pass {spelled('overwrite', True)}",
            )


def write_frontier(found: Frontier, folder: Path) -> list[Path]:
    """Each file whole or not there."""
    chart = draw(found)
    return [
        write_whole(folder / POINTS, found.csv()),
        write_whole(folder / PICTURE, render(chart, "png")),
        write_whole(folder / PAGE, page(found)),
    ]
