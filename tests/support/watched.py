"""Progress that remembers what it heard."""

from __future__ import annotations


class WatchedProgress:
    """The steps that began, with their sizes, and every advance."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int]] = []
        self.done: list[int] = []

    def start(self, what: str, total: int) -> None:
        self.steps.append((what, total))

    def advance(self, count: int) -> None:
        self.done.append(count)
