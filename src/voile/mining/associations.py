"""Which association rules are looked for, and what is told about those that were found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from voile.errors import UsageError
from voile.mining.counts import checked_method
from voile.mining.intervals import Bounded

LONGEST = 6


@dataclass(frozen=True)
class RuleLimits:
    """Which rules are looked for."""

    support: float = 0.05
    confidence: float = 0.6
    longest: int = 3
    bins: int = 5
    method: str = "inversion"
    level: float = 0.95
    simultaneous: bool = False

    def __post_init__(self) -> None:
        checked_method(self.method)
        if not 0 < self.support <= 1:
            raise UsageError(
                f"a support of {self.support:g} is no share of the rows",
                hint="choose one above 0, such as 0.05; at most 1",
            )
        if not 0 <= self.confidence <= 1:
            raise UsageError(
                f"a confidence of {self.confidence:g} is no share", hint="choose from 0 to 1"
            )
        if not 2 <= self.longest <= LONGEST:
            raise UsageError(
                f"rules of {self.longest} items are not looked for",
                hint=f"choose from 2 to {LONGEST}",
            )
        if not 2 <= self.bins <= 1000:
            raise UsageError(f"{self.bins} bins are not possible", hint="choose from 2 to 1000")
        if not 0 < self.level < 1:
            raise UsageError(
                f"intervals cannot hold with a chance of {self.level:g}",
                hint="choose a level between 0 and 1, such as 0.95",
            )


@dataclass(frozen=True)
class AssociationRule:
    """Rows that meet `conditions` meet `consequent`, with this confidence."""

    conditions: tuple[str, ...]
    consequent: str
    text: str
    """The rule for people."""
    support: Bounded
    confidence: Bounded
    lift: Bounded

    def to_dict(self) -> dict[str, Any]:
        return {
            "conditions": list(self.conditions),
            "consequent": self.consequent,
            "text": self.text,
            "support": self.support.to_dict(),
            "confidence": self.confidence.to_dict(),
            "lift": self.lift.to_dict(),
        }


@dataclass(frozen=True)
class Found:
    """The rules, the best lift first, and how many were looked at to find them."""

    rules: tuple[AssociationRule, ...]
    frequent: int
    tested: int
    intervals: int
    """How many intervals the columns can make, whatever the rows are."""
    limits: RuleLimits

    def to_dict(self) -> dict[str, Any]:
        return {
            "rules": [rule.to_dict() for rule in self.rules],
            "frequent": self.frequent,
            "tested": self.tested,
            "intervals": self.intervals,
            **asdict(self.limits),
            "notes": list(self.notes),
        }

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.tested:
            return ()
        if self.limits.simultaneous:
            return (
                f"all intervals hold together with a chance of {self.limits.level:g}: the chance "
                f"to err is shared by the {self.intervals:,} intervals that these columns can "
                "make, shown or not",
            )
        return (
            f"{self.tested:,} rules were compared and the best are shown: each interval holds "
            f"with a chance of {self.limits.level:g} by itself, but the best of many look better "
            "than they are, and theirs hold less often; --simultaneous makes all intervals hold "
            "together",
        )
