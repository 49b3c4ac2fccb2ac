"""A number with its error, and what the error covers."""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from voile.errors import UsageError


@dataclass(frozen=True)
class Bound:
    """The paper's utility statement: |error| ≤ ρ√n with probability at least 1 − ε."""

    rho: float
    epsilon: float
    error: float
    theorem: str


@dataclass(frozen=True)
class Estimate:
    """An unbiased value, its standard error, and an interval at any confidence."""

    value: float
    stderr: float
    confidence: float
    covers: str
    _interval: Callable[[float], tuple[float, float]] = field(repr=False, compare=False)
    bound: Bound | None = None

    def interval(self, confidence: float | None = None) -> tuple[float, float]:
        return self._interval(
            self.confidence if confidence is None else checked_confidence(confidence)
        )

    def to_dict(self) -> dict[str, Any]:
        low, high = self.interval()
        entry: dict[str, Any] = {
            "estimate": self.value,
            "stderr": self.stderr,
            "low": low,
            "high": high,
        }
        if self.bound:
            entry["bound"] = {
                "rho": self.bound.rho,
                "epsilon": self.bound.epsilon,
                "error": self.bound.error,
                "theorem": self.bound.theorem,
            }
        return entry

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"{number(self.value)} ± {number(self.stderr)} "
            f"[{number(low)}, {number(high)}] at {self.confidence:.4g}"
        )

    def __rich__(self) -> str:
        from rich.markup import escape  # noqa: PLC0415  (only when printed)

        return f"[bold]{escape(str(self))}[/bold]\n[dim]{escape(self.covers)}[/dim]"

    def _repr_html_(self) -> str:
        return f"<b>{html.escape(str(self))}</b><br><small>{html.escape(self.covers)}</small>"


def checked_confidence(confidence: float) -> float:
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise UsageError(
            f"confidence {confidence!r} must lie between 0 and 1", hint="the default is 0.95"
        )
    return confidence


def number(x: float) -> str:
    """Counts for reading: thousands apart, decimals only where they matter."""
    return f"{x:,.0f}" if abs(x) >= 100 or x == int(x) else f"{x:,.2f}"


@dataclass(frozen=True)
class Answer:
    """The answer to a query: one row of estimates for each group (one row without groups)."""

    rows: tuple[dict[str, Any], ...]
    confidence: float
    covers: str
    notes: tuple[str, ...] = ()

    @property
    def scalar(self) -> Estimate:
        """The only estimate of the answer."""
        found = [v for row in self.rows for v in row.values() if isinstance(v, Estimate)]
        if len(found) != 1:
            raise ValueError(f"the answer holds {len(found)} estimates, not one")
        return found[0]

    @property
    def value(self) -> float:
        return self.scalar.value

    @property
    def stderr(self) -> float:
        return self.scalar.stderr

    def interval(self, confidence: float | None = None) -> tuple[float, float]:
        return self.scalar.interval(confidence)

    def to_dict(self) -> dict[str, Any]:
        plain = [
            {k: v.to_dict() if isinstance(v, Estimate) else v for k, v in row.items()}
            for row in self.rows
        ]
        answer: dict[str, Any] = {
            "rows": plain,
            "confidence": self.confidence,
            "covers": self.covers,
        }
        return answer | ({"notes": list(self.notes)} if self.notes else {})

    def __repr__(self) -> str:
        return f"Answer({self})"

    def __str__(self) -> str:
        return "\n".join(
            "  ".join(f"{name} {value}" for name, value in row.items()) for row in self.rows
        )

    def __rich__(self) -> Any:
        from rich.markup import escape  # noqa: PLC0415  (only when printed)
        from rich.table import Table  # noqa: PLC0415

        table = Table()
        for heading in ("", "estimate", "± stderr", f"{self.confidence:.4g} interval"):
            table.add_column(heading, justify="right" if heading else "left")
        for row in self.rows:
            for name, value in row.items():
                if isinstance(value, Estimate):
                    low, high = value.interval()
                    table.add_row(
                        escape(name), number(value.value), number(value.stderr),
                        f"{number(low)} … {number(high)}",
                    )  # fmt: skip
        return table

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
            for row in self.rows
            for name, value in row.items()
        )
        return f"<table><caption>{html.escape(self.covers)}</caption>{cells}</table>"
