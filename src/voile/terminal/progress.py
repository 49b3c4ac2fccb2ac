"""How far long work has come."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass


class progress_bar:  # noqa: N801  (used as a function)
    """Bars with rows/s and time left on a terminal, silence in a pipe."""

    def __enter__(self) -> progress_bar:
        self._bar: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed:,.0f}/{task.total:,.0f} rows"),
                TextColumn("{task.fields[speed]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
        return self

    def start(self, what: str, total: int) -> None:
        if self._bar:
            self._task = self._bar.add_task(what, total=total, speed="")

    def advance(self, count: int) -> None:
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
        self._tasks: dict[str, Any] = {}
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._bars = Progress(console=Console(stderr=True), transient=True)
            self._bars.start()
        return self

    def __call__(self, step: str, done: float) -> None:
        if self._bars is None:
            return
        if step not in self._tasks:
            self._tasks[step] = self._bars.add_task(step, total=1.0)
        self._bars.update(self._tasks[step], completed=done)

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()
