"""Figures of the papers on a terminal: what is printed, what was measured, how they agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from voile.terminal import table_of

if TYPE_CHECKING:
    from voile.reproduce import Figure, Reproduced

STYLES = {"agrees": "green", "differs": "yellow", "fails": "bold red"}


def list_view(figures: Sequence[Figure]) -> Any:
    from rich.console import Group
    from rich.text import Text

    papers = dict.fromkeys(figure.paper for figure in figures)
    return Group(
        *(
            part
            for paper in papers
            for part in (
                Text(paper, style="bold"),
                table_of(
                    ["", ""],
                    [[f.name, f.what] for f in figures if f.paper == paper],
                    show_header=False,
                ),
            )
        )
    )


def reproduced_view(found: Sequence[Reproduced]) -> Any:
    """One figure in full, several as a line each and in full what does not agree."""
    from rich.console import Group

    if len(found) == 1:
        return figure_view(found[0])
    unsound = [figure_view(one) for one in found if not one.sound]
    return Group(summary(found), *unsound)


def summary(found: Sequence[Reproduced]) -> Any:
    from rich.text import Text

    from voile.reproduce.verdict import sign

    view = table_of(["", "", "as printed", "verdict"], [])
    view.columns[2].justify = "right"
    for one in found:
        compared = [check.agrees for check in one.checks if check.agrees is not None]
        told = sign(one.agrees, one.sound)
        view.add_row(
            one.name, one.what, f"{sum(compared)} of {len(compared)}", Text(told, STYLES[told])
        )
    return view


def figure_view(found: Reproduced) -> Any:
    from rich.console import Group
    from rich.text import Text

    from voile.reproduce.verdict import sign
    from voile.reproduce.writing import measured, printed

    view = table_of(["", "the paper", "measured", "verdict"], [])
    for check in found.checks:
        told = sign(check.agrees, check.sound)
        shown = "–" if check.agrees is None and check.sound else told
        # As Text: what stands in brackets is no markup.
        cells = (check.what, printed(check.printed), measured(check.to_dict()))
        view.add_row(*map(Text, cells), Text(shown, STYLES[told]))
    reasons = [
        Text(f"{check.what}: {check.why}", style="dim") for check in found.checks if check.why
    ]
    return Group(Text(found.title, style="bold"), Text(found.paper, style="dim"), view, *reasons)
