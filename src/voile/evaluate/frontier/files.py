"""The folder of a frontier: points, a picture, a page."""

from __future__ import annotations

from pathlib import Path

from voile.errors import UsageError
from voile.evaluate.drawing import load_altair, render
from voile.evaluate.frontier.frontier_plot import draw
from voile.evaluate.frontier.page import page
from voile.evaluate.frontier.result import Frontier
from voile.evaluate.frontier.running import KEPT
from voile.files import write_whole
from voile.kinds.staging import check_outside

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
