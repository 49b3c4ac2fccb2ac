"""One measured comparison."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from bench.child import Outcome

Unit = Literal["rows/s", "answers/s", "s", "ms", "bytes", "rows", "%"]


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
    others: float = 0.0
    """The share of the machine that other processes had meanwhile: the ratio is as good as it."""
    details: dict[str, Any] = field(default_factory=dict)
    """Numbers behind this one, printed with --verbose."""

    @property
    def ratio(self) -> float | None:
        """Ours / peer; None without a peer."""
        return self.ours / self.peer if self.peer else None

    def to_dict(self) -> dict[str, Any]:
        """All fields and the ratio, ready for JSON."""
        return asdict(self) | {"ratio": self.ratio}


def rates(
    name: str,
    what: str,
    ours: Outcome,
    peer: Outcome,
    peer_name: str,
    *,
    aim: float | None = None,
    peak_memory: int | None = None,
) -> Result:
    """Rows a second of both; `aim` is the least ratio wanted."""
    a, b = float(ours.value["rate"]), float(peer.value["rate"])
    return Result(
        name=name,
        what=what,
        unit="rows/s",
        ours=a,
        peer=b,
        peer_name=peer_name,
        aim="" if aim is None else f"≥ {aim:g} ×",
        met=None if aim is None else a >= aim * b,
        peak_memory=peak_memory,
        others=max(ours.others, peer.others),
        details={"ours": ours.value, "peer": peer.value},
    )


def memory_limit(name: str, what: str, peak: int, limit: int) -> Result:
    """Peak memory beside what it may be."""
    return Result(name, what, "bytes", peak, limit, "the limit", "≤ 1 ×", peak <= limit, peak)
