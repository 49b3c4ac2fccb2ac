"""What mining needs of a server: the client is one, and so is whatever answers like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Subset = str | Mapping[str, str]


class Replied(Protocol):
    """What mining reads of an answer."""

    @property
    def answer(self) -> float | None: ...
    @property
    def stderr(self) -> float | None: ...
    @property
    def charged(self) -> int: ...
    @property
    def subset_rows(self) -> int | None: ...


class Costs(Protocol):
    @property
    def cost(self) -> int: ...


class Asked(Protocol):
    """A server, or whatever answers like one; several threads may ask it."""

    def about(self) -> Mapping[str, Any]: ...
    def budget(self) -> Mapping[str, Any]: ...
    def cost(self, sql: str, subset: Subset = "all") -> Costs: ...
    def ask(self, sql: str, subset: Subset = "all") -> Replied: ...
