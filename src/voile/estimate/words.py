"""Numbers and values as people and JSON read them."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any


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
    if isinstance(value, dt.date | dt.datetime | dt.time):
        return value.isoformat()
    if isinstance(value, float):
        return finite(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
