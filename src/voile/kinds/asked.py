"""How an answer is wanted from a release: all that `query` takes besides the SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MEMORY = 2**30


@dataclass(frozen=True)
class QueryOptions:
    """The same for every kind of release; each refuses what means nothing to it."""

    confidence: float = 0.95
    tables: Mapping[str, object] = field(default_factory=dict)
    simultaneous: bool = False
    refine: bool = False
    method: str | None = None
    memory: int | str = MEMORY
    exact: bool = False
