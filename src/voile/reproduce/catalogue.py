"""All figures and tables, paper by paper."""

from __future__ import annotations

from difflib import get_close_matches

from voile.errors import UsageError
from voile.reproduce import crypto04, kdd09, sigmod05, tr07, vldb07
from voile.reproduce.figure import Figure

FIGURES = (
    *vldb07.FIGURES, *tr07.FIGURES, *kdd09.FIGURES, *sigmod05.FIGURES, *crypto04.FIGURES,
)  # fmt: skip
"""Every figure and table that can be made again, paper by paper."""


def find(name: str) -> Figure:
    """The figure of this name."""
    known = {figure.name: figure for figure in FIGURES}
    if name in known:
        return known[name]
    close = get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    raise UsageError(
        f"there is no figure {name!r}",
        hint=f"did you mean {close[0]}?" if close else "voile reproduce --list",
    )
