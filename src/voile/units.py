"""Amounts as people write and read them."""

from __future__ import annotations

import math
import re

from voile.errors import UsageError

UNITS = {"": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}


def byte_count(amount: str | int) -> int:
    """500MB, 4GB, or a number of bytes."""
    text = str(amount).upper().strip()
    number = text.rstrip("KMGTB")
    try:
        return int(float(number) * UNITS[text[len(number) :]])
    except (ValueError, KeyError, OverflowError):
        raise UsageError(
            f"{amount!r} is not an amount of memory", hint="write 500MB or 4GB"
        ) from None


def rounded(value: float) -> str:
    """Four digits that count, or ∞."""
    return "∞" if value == math.inf else f"{value:.4g}"


UNIT = 1000


def number(value: float | None) -> str:
    """A number for reading, or a dash."""
    if value is None or math.isnan(value):
        return "–"
    return f"{value:,.4g}" if value < UNIT or math.isinf(value) else f"{value:,.0f}"


def bytes_in_words(size: float) -> str:
    """A size in the unit that fits."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < UNIT:
            return f"{size:,.3g} {unit}"
        size /= UNIT
    return f"{size:,.3g} TB"


NEARLY_SURE = 0.99
"""Above this a bound on a belief says next to nothing."""


def chance(value: float, digits: int = 3) -> str:
    """A probability with so many digits, or more: what is below 1 is never written as 1."""
    if not NEARLY_SURE < value < 1:
        return f"{value:.{digits}g}"
    places = max(digits, math.ceil(-math.log10(1 - value)) + 1)
    return f"{value:.{places}f}".rstrip("0")


def percent(share: float, *, rough: bool = False) -> str:
    """20 %, 0.0465 %, 99.9996 %; only what is all is 100 %.

    With `rough`, what is nearly nothing or nearly all has fewer digits.
    """
    if rough and 0 < share < 1e-4:
        return f"{100 * share:.1g} %"
    if not 0.999 <= share < 1:
        return f"{100 * share:.3g} %"
    places = min(12, math.ceil(-math.log10(1 - share)) - 1) - rough
    return f"{100 * share:.{places}f} %"


SINGULAR = {"are": "is", "were": "was", "repeat": "repeats"}


def counted(number: float, what: str, verb: str = "") -> str:
    """1 row, 2 rows, 1,234 rows were; rounded to whole ones."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,.0f}"
    words = [f"{what}s", verb] if shown != "1" else [what, SINGULAR.get(verb, verb)]
    return " ".join([shown, *filter(None, words)])


SECONDS = {"min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def duration(text: str) -> float:
    """Seconds of 90min, 12h, 30d or 52w."""
    found = re.fullmatch(r"(\d{1,6})(min|h|d|w)", text.strip(), re.ASCII)
    if not found or int(found[1]) == 0:
        raise UsageError(f"{text!r} is not a time", hint="write 90min, 12h, 30d or 52w")
    return float(int(found[1]) * SECONDS[found[2]])
