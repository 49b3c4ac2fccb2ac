"""How far long work has come."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from voile.terminal.escaping import console

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class progress_bar:  # noqa: N801  (used as a function)
    """Bars with rows/s and time left on a terminal, silence in a pipe."""

    def __enter__(self) -> progress_bar:
        self._bar: Any = None
        if sys.stderr.isatty():
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:,.0f}/{task.total:,.0f} rows"),
                TextColumn("{task.fields[speed]}"),
                TimeRemainingColumn(),
                console=console(stderr=True),
                transient=True,
            )
            self._bar.start()
        return self

    def start(self, what: str, total: int) -> None:
        """Begin a bar of so many rows."""
        if self._bar:
            self._task = self._bar.add_task(what, total=total, speed="")

    def advance(self, count: int) -> None:
        """Count rows of the bar that was begun last."""
        if self._bar:
            self._bar.advance(self._task, count)
            speed = self._bar.tasks[self._task].speed or 0
            self._bar.update(self._task, speed=f"{speed:,.0f} rows/s" if speed else "")

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()


class fitting_progress:  # noqa: N801  (used as a function)
    """A bar for each step of a fit on a terminal, silence elsewhere."""

    def __enter__(self) -> fitting_progress:
        self._bars: Any = None
        if sys.stderr.isatty():
            from rich.progress import Progress

            self._bars = Progress(console=console(stderr=True), transient=True)
            self._bars.start()
        return self

    def start(self, what: str, total: int) -> None:
        """Begin a step of so many parts."""
        if self._bars is not None:
            self._task = self._bars.add_task(what, total=total)

    def advance(self, count: int) -> None:
        """Count parts of the step that was begun last."""
        if self._bars is not None:
            self._bars.advance(self._task, count)

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()


# ----------------------------------------------------------------------
# tables that a narrow terminal does not cut: numbers stay whole, texts are broken


NARROW = 80
"""Columns below which tables of texts become lists."""


def whole_numbers(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Collection[int],
    **options: Any,
) -> Any:
    """A table whose columns `numeric` are as wide as their numbers, whatever the terminal is."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, **options)
    for place, heading in enumerate(headings):
        if place in numeric:
            table.add_column(heading, justify="right", no_wrap=True, overflow="fold")
        else:
            table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def table_or_list(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """Rows of texts beside each other, the first whole; below each other where there is no room."""
    from rich.console import Group
    from rich.padding import Padding

    if not is_narrow():
        return whole_texts(headings, rows)
    parts: list[Any] = ["", f"[bold]{headings[0]}[/bold]"]
    for first, *others in rows:
        parts.append(" ".join(first.split()))
        shown = [f"[dim]{name}[/dim] {cell}".strip() for name, cell in zip(
            headings[1:], others, strict=True) if cell]  # fmt: skip
        parts += [Padding(text, (0, 0, 0, 4)) for text in shown]
    return Group(*parts, "")


def whole_texts(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """A table whose first column is not broken."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(headings[0], no_wrap=True, overflow="fold")
    for heading in headings[1:]:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def is_narrow(columns: int = NARROW) -> bool:
    """Whether the terminal is narrower than that."""
    return console().width < columns
