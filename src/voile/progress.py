"""How far a long step is: one protocol for everything that takes long."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Hears when a step starts, with its size, and how far it has come."""

    def start(self, what: str, total: int) -> None:
        """A step begins that has `total` parts."""

    def advance(self, count: int) -> None:
        """So many more parts of the step are done."""


class Silent:
    """Nobody is watching."""

    def start(self, what: str, total: int) -> None:
        """Nothing happens."""

    def advance(self, count: int) -> None:
        """Nothing happens."""
