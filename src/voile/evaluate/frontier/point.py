"""A point of the frontier: a release that could be published, and what it loses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Point:
    """A release that could be published, on the two axes."""

    method: str
    parameters: Mapping[str, Any]
    """The options of publishing that make it: what is required, how it is shown."""
    requirement: str
    """What it promises, in words."""
    p_loss: float
    u_loss: float
    classes: int | None
    """None where rows are not grouped."""
    rows: int
    """That are shown; some methods leave rows out, and noise adds some."""
    seconds: float
    command: str
    p_loss_permitted: float | None = None
    """The worst that noise could ever show; None for classes, which are all shown."""

    @property
    def recode(self) -> str | None:
        """How classes are shown; None where there are none."""
        return self.parameters.get("recode")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
