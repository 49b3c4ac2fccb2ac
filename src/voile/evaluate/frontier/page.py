"""The frontier as a report: every release a point that leads to its row, and its command."""

from __future__ import annotations

import html
from pathlib import Path

from voile.errors import UsageError, spelled
from voile.evaluate import pages
from voile.evaluate.drawing import load_altair, render
from voile.evaluate.frontier.frontier_plot import caption, draw, family, losses_plane, row_name
from voile.evaluate.frontier.result import RULE, Frontier, shown_by
from voile.evaluate.frontier.running import KEPT
from voile.evaluate.page_pictures import PicturePanel, panels
from voile.evaluate.pages import NextStep, Report
from voile.files import write_whole
from voile.kinds.staging import check_outside

NOISE = (
    "Noisy views and perturbed rows were measured with simulated noise; those that are published "
    "have their own, and differ by chance. Their P_loss is what an adversary who knows the "
    "distribution of all rows comes to believe by Bayes’ rule, and what they promise is more than "
    "it says. The grey region is not about them."
)
PAGE_SIZE = (420, 360)
BEST, REST = "Efficient releases, the most private first", "All other releases that were measured"


def report(found: Frontier) -> Report:
    """The recommendation, the picture, and every release that was measured with its command."""
    best = found.recommended
    steps = [] if best is None else [NextStep("Publish what is recommended:", best.command)]
    return Report(
        f"Frontier of {found.name}",
        f"What can be published of {found.name}",
        about(found),
        [
            pages.headline(found.in_words(), warning=best is None),
            panels([drawn(found)], beside=pages.facts("What bounds the picture", ends(found))),
            pages.heading("Efficient releases"),
            pages.paragraph(
                "No other that was measured is at least as good in both losses and better in one."
            ),
            releases_table(found, efficient=True),
            releases_table(found, efficient=False),
            pages.heading("How to read this"),
            pages.paragraph(found.meaning),
            f"<p>Recommended is: {html.escape(RULE)} Nearness is a convention; whoever has a limit "
            "on P_loss should state it with <code>--most-p-loss</code>.</p>",
            pages.paragraph(
                "The grey region is certified: no bucketization whatever can be in it. Its border "
                "is a bound on what is possible, not a release: distributions that reach it need "
                "not belong to any rows, and publishing them would show single records."
            ),
            pages.paragraph(NOISE) if any(p.recode is None for p in found.points) else "",
            pages.notes(found.notes),
        ],
        steps,
        "Computed from the private table: not for publishing. Made with Voile.",
    )


def page(found: Frontier) -> bytes:
    """The report as a page."""
    return report(found).page()


def drawn(found: Frontier) -> PicturePanel:
    """The plane, whose points lead to their rows."""
    return PicturePanel(
        "Every release is a point",
        losses_plane(found, PAGE_SIZE, linked=True),
        "Scatter plot of P_loss and U_loss. Every point leads to its row in the tables below.",
        f"Nearer to the corner is better. Choose a point to see its row. {caption(found)[0]}",
        None,
        linked=True,
    )


def ends(found: Frontier) -> list[tuple[str, str]]:
    """The losses at both ends, and of the recommended release."""
    found_ends = [
        ("releases measured", f"{len(found.points):,}"),
        ("of these, efficient", f"{sum(found.efficient):,}"),
        ("could not be", f"{len(found.refused):,}"),
        ("P_loss of the exact table", f"{found.raw_p_loss:.4f}"),
        ("U_loss of a single class", f"{found.certified.trivial:.5f}"),
    ]
    if (best := found.recommended) is not None:
        found_ends += [
            ("P_loss of the recommended", f"{best.p_loss:.4f}"),
            ("U_loss of the recommended", f"{best.u_loss:.5f}"),
        ]
    return found_ends


def about(found: Frontier) -> str:
    """What was measured, in a sentence."""
    return (
        f"{found.sensitive} given {', '.join(found.qi)}: {len(found.points)} releases of "
        f"{found.rows:,} rows, measured on {found.populations:,} populations of at least "
        f"{found.min_support:.3g} of the rows."
    )


def releases_table(found: Frontier, *, efficient: bool) -> str:
    """Releases with their losses and their commands, the most private first."""
    places = [i for i, good in enumerate(found.efficient) if good == efficient]
    rows = [row_of(found, i) for i in sorted(places, key=lambda i: found.points[i].p_loss)]
    heads = [
        "method", "promise", "shown by", "P_loss", "U_loss", "above certified", "classes",
        "command",
    ]  # fmt: skip
    if not rows:
        return ""
    return pages.table(BEST if efficient else REST, heads, rows, numeric=range(3, 7))


def row_of(found: Frontier, place: int) -> str:
    """A release as a row of the table; the recommended one stands out."""
    point = found.points[place]
    above = found.above(point)
    numbers = [
        f"{point.p_loss:.4f}", f"{point.u_loss:.5f}", "–" if above is None else f"{above:z.5f}",
        "–" if point.classes is None else f"{point.classes:,}",
    ]  # fmt: skip
    words = map(pages.text_cell, (point.requirement, shown_by(point)))
    cells = [pages.head_cell(family(point)), *words, *map(pages.number_cell, numbers)]
    command = f"<details><summary>show</summary><code>{html.escape(point.command)}</code></details>"
    chosen = point is found.recommended
    return pages.row(*cells, f"<td>{command}</td>", chosen=chosen, name=row_name(place))


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
