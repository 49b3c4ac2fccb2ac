"""What mining found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from voile.estimate import finite, number


@dataclass(frozen=True)
class Share:
    """How frequent one side's condition is."""

    server: str
    sql: str
    value: float
    stderr: float

    def to_dict(self) -> dict[str, Any]:
        return {"server": self.server, "sql": self.sql, "share": self.value, "stderr": self.stderr}


@dataclass(frozen=True)
class Implication:
    """Δ = Pr[then | given] − Pr[then]."""

    given: str
    then: str
    delta: float
    stderr: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "given": self.given, "then": self.then, "delta": finite(self.delta),
            "stderr": finite(self.stderr), "low": finite(self.low), "high": finite(self.high),
        }  # fmt: skip


@dataclass(frozen=True)
class Spent:
    """What one server was asked, what it charged, and what is left."""

    asked: int
    charged: int
    remaining: int

    def to_dict(self) -> dict[str, Any]:
        return {"asked": self.asked, "charged": self.charged, "remaining": self.remaining}


@dataclass(frozen=True)
class Mined:
    """Pr[f] with its error."""

    expression: str
    value: float
    stderr: float
    low: float
    high: float
    confidence: float
    observed: float | None
    """The standard error that the halves show, whatever the noise is said to be."""
    independent: float
    """What Pr[f] would be if the two sides had nothing to do with each other."""
    implications: tuple[Implication, ...]
    shares: tuple[Share, ...]
    spent: dict[str, Spent]
    rows: int
    halves: int
    seed: str
    expected_error: float
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "expression": self.expression,
            "probability": {
                "estimate": self.value, "stderr": self.stderr, "low": self.low, "high": self.high,
            },
            "confidence": self.confidence,
            "observed_stderr": self.observed,
            "independent": self.independent,
            "implications": [one.to_dict() for one in self.implications],
            "shares": [one.to_dict() for one in self.shares],
            "queries": {name: one.to_dict() for name, one in self.spent.items()},
            "rows": self.rows, "halves": self.halves, "seed": self.seed,
            "expected_error": self.expected_error, "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        value, stderr, low, high = (
            number(x, self.stderr) for x in (self.value, self.stderr, self.low, self.high)
        )
        return f"Pr[{self.expression}] = {value} ± {stderr} [{low}, {high}] at {self.confidence:g}"


@dataclass(frozen=True)
class Tested:
    """What the slides' tester found, and how likely it was to find anything."""

    expression: str
    bias: float
    acceptance: float
    """How likely a random half is accepted."""
    tried: int
    accepted: str | None
    """The half that was, by its seed."""
    delta: float | None
    stderr: float | None
    threshold: float
    above: bool | None
    """What the tester says: whether Δ is larger than the threshold."""
    shares: tuple[Share, ...]
    spent: dict[str, Spent]
    rows: int
    seed: str
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "expression": self.expression, "bias": self.bias, "acceptance": self.acceptance,
            "tried": self.tried, "accepted": self.accepted, "delta": self.delta,
            "stderr": self.stderr, "threshold": self.threshold, "above": self.above,
            "shares": [one.to_dict() for one in self.shares],
            "queries": {name: one.to_dict() for name, one in self.spent.items()},
            "rows": self.rows, "seed": self.seed, "notes": list(self.notes),
        }  # fmt: skip
