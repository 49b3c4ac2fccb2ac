"""A number with its error, and what the error covers."""

from __future__ import annotations

import csv
import datetime as dt
import html
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError

Floats = npt.NDArray[np.float64]


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
        return self._interval(
            self.confidence if confidence is None else checked_confidence(confidence)
        )

    def to_dict(self) -> dict[str, Any]:
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
    if not isinstance(confidence, int | float) or not 0 < confidence < 1:
        raise UsageError(
            f"confidence {confidence!r} must lie between 0 and 1", hint="the default is 0.95"
        )
    return confidence


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


@dataclass(frozen=True)
class Answer:
    """The answer to a query: one row for each group (one row without groups), in the order asked.

    A row maps each column of SELECT to a group's key or to an Estimate.
    """

    rows: tuple[dict[str, Any], ...]
    confidence: float
    covers: str
    notes: tuple[str, ...] = ()
    columns: Mapping[str, bool] = field(default_factory=dict)
    """The names of the columns, and which hold estimates: known also where there is no row."""
    assumption: str = ""
    """What the estimates rest on besides the release; then certain bounds stand beside them."""

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

    # ------------------------------------------------------------------ for other programs

    def to_dict(self) -> dict[str, Any]:
        plain = [
            {k: v.to_dict() if isinstance(v, Estimate) else jsonable(v) for k, v in row.items()}
            for row in self.rows
        ]
        answer: dict[str, Any] = {
            "rows": plain,
            "confidence": self.confidence,
            "covers": self.covers,
        }
        answer |= {"assumption": self.assumption} if self.assumption else {}
        return answer | ({"notes": list(self.notes)} if self.notes else {})

    def flat(self) -> list[dict[str, Any]]:
        """One row for each group with plain columns: NAME, NAME_stderr, NAME_low, NAME_high.

        Where values were grouped, NAME_certain_low and NAME_certain_high stand beside them.
        """
        return [flattened(row) for row in self.rows]

    def _names(self) -> list[str]:
        if self.rows:
            return list(flattened(self.rows[0]))
        ends = ["", "_stderr", "_low", "_high"]
        ends += ["_certain_low", "_certain_high"] if self.assumption else []
        return [name + end for name, numbers in self.columns.items()
                for end in (ends if numbers else [""])]  # fmt: skip

    def to_arrow(self) -> Any:
        import pyarrow as pa  # noqa: PLC0415  (only when asked for)

        rows = self.flat()
        return pa.table({name: pa.array([row[name] for row in rows]) for name in self._names()})

    def to_pandas(self) -> Any:
        import pandas  # noqa: PLC0415  (an optional package)

        return pandas.DataFrame(self.flat(), columns=self._names())

    def to_polars(self) -> Any:
        import polars  # noqa: PLC0415  (an optional package)

        return polars.from_arrow(self.to_arrow())

    def to_csv(self) -> str:
        rows = self.flat()
        text = io.StringIO()
        writer = csv.DictWriter(text, self._names(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    # ------------------------------------------------------------------ for reading

    def __repr__(self) -> str:
        return f"Answer({self})"

    def __str__(self) -> str:
        lines = ["  ".join(f"{name} {value}" for name, value in row.items()) for row in self.rows]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def __rich__(self) -> Any:
        from rich.markup import escape  # noqa: PLC0415  (only when printed)
        from rich.table import Table  # noqa: PLC0415

        grouped = any(not isinstance(v, Estimate) for row in self.rows for v in row.values())
        if not grouped and len(self.rows) == 1:
            return self._upright()
        first = self.rows[0] if self.rows else dict.fromkeys(self.columns, "")
        # Many estimates stand with their errors in one cell: three columns each would not fit.
        narrow = sum(isinstance(value, Estimate) for value in first.values()) > 1
        table = Table(show_lines=narrow)
        for name, value in first.items():
            right = isinstance(value, int | float | Estimate)
            table.add_column(escape(name), justify="right" if right else "left", overflow="fold")
            if isinstance(value, Estimate) and not narrow:
                table.add_column("± stderr", justify="right", style="dim")
                table.add_column(f"{self.confidence:.12g} interval", justify="right", style="dim")
                if self.assumption:
                    table.add_column("certain", justify="right", style="dim")
        for row in self.rows:
            parts = [cells(value) for value in row.values()]
            table.add_row(*(stacked(p) for p in parts) if narrow else (c for p in parts for c in p))
        return table

    def _upright(self) -> Any:
        """One row of estimates, each on a line of its own."""
        from rich.markup import escape  # noqa: PLC0415  (only when printed)
        from rich.table import Table  # noqa: PLC0415

        table = Table()
        headings = ["", "estimate", "± stderr", f"{self.confidence:.12g} interval"]
        for heading in [*headings, "certain"] if self.assumption else headings:
            table.add_column(heading, justify="right" if heading else "left")
        for row in self.rows:
            for name, value in row.items():
                table.add_row(escape(name), *cells(value))
        return table

    def _repr_html_(self) -> str:
        names = list(self.rows[0]) if self.rows else []
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(str(v))}</td>" for v in row.values()) + "</tr>"
            for row in self.rows
        )
        notes = "".join(f"<p>note: {html.escape(note)}</p>" for note in self.notes)
        assumed = f" Assumed: {self.assumption}." if self.assumption else ""
        told = html.escape(f"Intervals cover {self.covers}.{assumed}")
        return f"<table><caption>{told}</caption><tr>{head}</tr>{body}</table>{notes}"


def cells(value: Any) -> tuple[str, ...]:
    from rich.markup import escape  # noqa: PLC0415  (only when printed)

    if not isinstance(value, Estimate):
        return (escape(shown(value)),)
    found = [value.value, value.stderr, *value.interval(), *(value.certain or ())]
    shown_ = [number(x, value.stderr) for x in found]
    ends = [f"{low} … {high}" for low, high in zip(shown_[2::2], shown_[3::2], strict=True)]
    return shown_[0], shown_[1], *ends


def stacked(parts: tuple[str, ...]) -> str:
    if len(parts) == 1:
        return parts[0]
    value, stderr, interval, *certain = parts
    found = f"{value} ± {stderr}\n[dim]{interval}[/dim]"
    return found + (f"\n[dim]certain {certain[0]}[/dim]" if certain else "")


def flattened(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if not isinstance(value, Estimate):
            flat[name] = value
            continue
        low, high = value.interval()
        flat |= {
            name: value.value,
            f"{name}_stderr": value.stderr,
            f"{name}_low": low,
            f"{name}_high": high,
        }
        if value.certain:
            flat |= {
                f"{name}_certain_low": value.certain[0],
                f"{name}_certain_high": value.certain[1],
            }
        if value.plain:
            flat[f"{name}_plain"] = value.plain.value
    return flat


def jsonable(value: Any) -> Any:
    if isinstance(value, dt.date | dt.datetime | dt.time):
        return value.isoformat()
    if isinstance(value, float):
        return finite(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
