"""What people see of the frontier of a table."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from voile.terminal import table_of

if TYPE_CHECKING:
    from voile.evaluate.frontier.point import Point
    from voile.evaluate.frontier.result import Frontier


def frontier_view(found: Frontier) -> Any:
    """The efficient points, then which one to publish and how."""
    from rich.console import Group
    from rich.markup import escape
    from rich.text import Text

    best = [p for p, good in zip(found.points, found.efficient, strict=True) if good]
    rows = [
        [escape(asked(p)), p.method, p.recode or "–", f"{p.p_loss:.4f}", f"{p.u_loss:.5f}",
         number(found.above(p), "z.5f"), number(p.classes, ",")]
        for p in sorted(best, key=lambda p: p.p_loss)
    ]  # fmt: skip
    headings = ["efficient", "method", "recode", "P_loss", "U_loss", "above", "classes"]
    parts: list[Any] = [
        f"[bold]{escape(found.name)}[/bold]: {escape(found.sensitive)} given "
        f"{escape(', '.join(found.qi))}; {len(found.points)} releases measured, {len(best)} of "
        f"them efficient, on {found.populations:,} populations",
        table_of(headings, rows),
        Text(found.in_words(), style="bold"),
    ]
    if found.recommended is not None:
        command = found.recommended.command  # in one line, so that it can be copied
        parts.append(Text(command, style="cyan", no_wrap=True, overflow="ignore"))
    parts.append(Text(found.meaning, style="dim"))
    if found.refused:
        parts.append(
            Text(f"{len(found.refused)} could not be: {found.refused[0].why}", style="dim")
        )
    return Group(*parts)


def asked(point: Point) -> str:
    """What it was asked to promise, in few words."""
    own = ("k", "l", "t", "semantic", "absent", "posterior", "retention")
    named = [f"{n} {point.parameters[n]}" for n in own if n in point.parameters]
    return ", ".join(named) or "–"


def number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


class points_bar:  # noqa: N801  (used as a function)
    """A bar of points on a terminal, silence in a pipe."""

    def __enter__(self) -> points_bar:
        self._bar: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
            from rich.progress import TimeRemainingColumn as Remaining

            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining(),
                console=Console(stderr=True), transient=True,
            )  # fmt: skip
            self._bar.start()
        return self

    def start(self, what: str, total: int) -> None:
        if self._bar:
            self._task = self._bar.add_task(what, total=total)

    def advance(self, count: int) -> None:
        if self._bar:
            self._bar.advance(self._task, count)

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()
