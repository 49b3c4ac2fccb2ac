"""A number with its error, and what the error covers."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from voile.errors import UsageError
from voile.estimate.words import finite, number


@dataclass(frozen=True)
class Bound:
    """The paper's utility statement: |error| ≤ ρ√n with probability at least 1 − ε."""

    rho: float
    epsilon: float
    error: float
    theorem: str


@dataclass(frozen=True)
class Estimate:
    """A value, its standard error, and an interval at any confidence."""

    value: float
    stderr: float
    confidence: float
    covers: str
    _interval: Callable[[float], tuple[float, float]] = field(repr=False, compare=False)
    bound: Bound | None = None
    plain: Estimate | None = None
    """The unbiased estimate, where this one was refined."""
    certain: tuple[float, float] | None = None
    """Where values were grouped: what no table that agrees with the release lies beyond."""

    def interval(self, confidence: float | None = None) -> tuple[float, float]:
        """Its interval, at the confidence of the query if no other is given."""
        return self._interval(
            self.confidence if confidence is None else checked_confidence(confidence)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data; None where a number is unknown or unbounded."""
        low, high = self.interval()
        entry: dict[str, Any] = {
            "estimate": finite(self.value),
            "stderr": finite(self.stderr),
            "low": finite(low),
            "high": finite(high),
        }
        if self.certain:
            entry |= {
                "certain_low": finite(self.certain[0]),
                "certain_high": finite(self.certain[1]),
            }
        if self.bound:
            entry["bound"] = {
                "rho": self.bound.rho,
                "epsilon": self.bound.epsilon,
                "error": self.bound.error,
                "theorem": self.bound.theorem,
            }
        if self.plain:
            entry["plain"] = self.plain.to_dict()
        return entry

    def __str__(self) -> str:
        low, high = self.interval()
        told = (
            f"{number(self.value, self.stderr)} ± {number(self.stderr, self.stderr)} "
            f"[{number(low, self.stderr)}, {number(high, self.stderr)}] at {self.confidence:.12g}"
        )
        if self.certain:
            least, most = (number(x, self.stderr) for x in self.certain)
            told += f", certainly in [{least}, {most}]"
        return told

    def __rich__(self) -> str:
        from rich.markup import escape  # noqa: PLC0415  (only when printed)

        return f"[bold]{escape(str(self))}[/bold]\n[dim]{escape(self.covers)}[/dim]"

    def _repr_html_(self) -> str:
        return f"<b>{html.escape(str(self))}</b><br><small>{html.escape(self.covers)}</small>"


def checked_confidence(confidence: float) -> float:
    """The confidence itself, refused if it is not a chance between 0 and 1."""
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise UsageError(
            f"confidence {confidence!r} must lie between 0 and 1", hint="the default is 0.95"
        )
    return confidence
