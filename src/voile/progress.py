"""How far a long step is: one protocol for everything that takes long."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told when a step starts, with its size, and how far it has come."""

    def start(self, what: str, total: int) -> None: ...
    def advance(self, count: int) -> None: ...


class Silent:
    """Nobody is watching."""

    def start(self, what: str, total: int) -> None:
        pass

    def advance(self, count: int) -> None:
        pass
