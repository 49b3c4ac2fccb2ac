"""How a sum was or would be computed, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Method = Literal["product", "grid", "elimination", "contraction", "enumeration", "sampling"]


@dataclass(frozen=True)
class Part:
    """One component: conditions that share attributes among them and with no other component."""

    attributes: tuple[str, ...]
    atoms: tuple[str, ...]
    method: Method
    steps: tuple[str, ...] = ()
    """What is summed out in which order, where that was a choice."""
    width: int = 1
    """Elements of the largest tensor."""
    cost: float = 0.0
    """Multiplications, additions, or tuples looked at."""
    bytes: int = 0
    """Memory planned before anything was allocated."""

    def __str__(self) -> str:
        names = ", ".join(self.attributes) or "no attribute"
        head = f"{names}: {self.method}"
        if self.width > 1:
            head += f", {self.width:,} cells wide, about {self.cost:.2g} operations"
        inside = [*(f"  where {atom}" for atom in self.atoms), *(f"  {s}" for s in self.steps)]
        return "\n".join([head, *inside])


@dataclass(frozen=True)
class Plan:
    """The components, whose sums multiply, and the attributes that nothing reads."""

    parts: tuple[Part, ...]
    free: tuple[str, ...] = ()

    def __str__(self) -> str:
        free = [f"{', '.join(self.free)}: any value"] if self.free else []
        return "\n".join([*map(str, self.parts), *free])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)
