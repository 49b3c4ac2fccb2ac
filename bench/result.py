"""One measured comparison."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Unit = Literal["rows/s", "s", "ms", "bytes"]


@dataclass(frozen=True)
class Result:
    """Ours beside a peer or a limit; `ratio` is always ours / peer, in the unit given."""

    name: str
    what: str
    unit: Unit
    ours: float
    peer: float | None = None
    peer_name: str = ""
    aim: str = ""
    met: bool | None = None
    """None where no aim was set."""
    peak_memory: int | None = None
    """Bytes of the process that did our work."""
    details: dict[str, Any] = field(default_factory=dict)
    """Numbers behind this one, printed with --verbose."""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.peer if self.peer else None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.ratio}


def at_least(
    factor: float,
    name: str,
    what: str,
    ours: float,
    peer: float,
    peer_name: str,
    *,
    peak_memory: int | None = None,
    details: dict[str, Any] | None = None,
) -> Result:
    """Rates: the more the better."""
    return Result(
        name, what, "rows/s", ours, peer, peer_name, f"≥ {factor:g} ×", ours >= factor * peer,
        peak_memory, details or {},
    )  # fmt: skip


def memory_limit(name: str, what: str, peak: int, limit: int) -> Result:
    """Peak memory beside what it may be."""
    return Result(name, what, "bytes", peak, limit, "the limit", "≤ 1 ×", peak <= limit, peak)
