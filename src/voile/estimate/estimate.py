"""A number with its error, and what the error covers."""

from __future__ import annotations

import datetime as dt
import html
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from voile.errors import UsageError, spelled

# ---------------------------------------------------------------------- numbers and values in words
# Numbers and values as people and JSON read them.


def finite(x: float) -> float | None:
    """For JSON, which has no word for what is unknown or unbounded."""
    return x if math.isfinite(x) else None


def number(x: float, error: float = math.nan) -> str:
    """Numbers for reading: thousands apart, decimals only where they matter beside the error."""
    if math.isnan(x):
        return "unknown"
    if math.isinf(x):
        return "∞" if x > 0 else "−∞"
    if x == int(x):
        return f"{x:,.0f}"
    if 0 < error < 1:
        return f"{x:,.{min(9, 1 - math.floor(math.log10(error)))}f}"
    if abs(x) >= 100:
        return f"{x:,.0f}"
    return f"{x:,.2f}" if abs(x) >= 0.1 else f"{x:.3g}"


def shown(value: Any) -> str:
    """A group's key for reading."""
    if value is None:
        return "NULL"
    if isinstance(value, float) and math.isfinite(value) and abs(value) < 1e15:
        return f"{value:.0f}" if value == int(value) else f"{value:.10g}"
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return str(value.date())
    return str(value)


def jsonable(value: Any) -> Any:
    """A group's key as JSON has it."""
    if isinstance(value, dt.date | dt.datetime | dt.time):
        return value.isoformat()
    if isinstance(value, float):
        return finite(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


# ---------------------------------------------------------------------- estimates


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

    @property
    def is_stated(self) -> bool:
        """Whether it has an interval; otherwise only certain bounds stand beside it."""
        return self.certain is None or not math.isnan(self.interval()[0])

    def __str__(self) -> str:
        low, high = self.interval()
        if self.certain and not self.is_stated:
            least, most = map(number, self.certain)
            return f"{number(self.value)}, certainly in [{least}, {most}]"
        text = (
            f"{number(self.value, self.stderr)} ± {number(self.stderr, self.stderr)} "
            f"[{number(low, self.stderr)}, {number(high, self.stderr)}] at {self.confidence:.12g}"
        )
        if self.certain:
            least, most = (number(x, self.stderr) for x in self.certain)
            text += f", certainly in [{least}, {most}]"
        return text

    def __rich__(self) -> str:
        from rich.markup import escape  # noqa: PLC0415  (only when printed)

        return f"[bold]{escape(str(self))}[/bold]\n[dim]{escape(self.covers)}[/dim]"

    def _repr_html_(self) -> str:
        return f"<b>{html.escape(str(self))}</b><br><small>{html.escape(self.covers)}</small>"


def checked_confidence(confidence: float) -> float:
    """The confidence itself, refused if it is not a chance between 0 and 1."""
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise UsageError(
            f"confidence {confidence!r} must lie between 0 and 1",
            hint=f"{spelled('confidence', 0.95)} is the default",
        )
    return confidence
