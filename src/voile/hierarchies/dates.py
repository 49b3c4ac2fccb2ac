"""Hierarchies of days: month, quarter, year."""

from __future__ import annotations

import datetime as dt

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError
from voile.hierarchies.stacking import Partition, check_values, renumbered, stacked
from voile.schema import Attribute, Range
from voile.schema.attribute import ordinal
from voile.schema.hierarchy import Levels

EPOCH = dt.date(1970, 1, 1).toordinal()


def calendar(attribute: Attribute) -> Levels:
    """day → month → quarter → year → '*', without the levels that change nothing."""
    months = days_of(attribute).astype("M8[M]").astype(np.int64)  # months since January 1970
    return stacked(attribute, (by_months(months, length) for length in (1, 3, 12)))


def days_of(attribute: Attribute) -> npt.NDArray[np.datetime64]:
    if attribute.kind != "date":
        raise UsageError(
            f"{attribute.name!r} is of kind {attribute.kind}, not date",
            hint="use --multiples for numbers, --mask for text, or kind: date in the schema",
        )
    check_values(attribute)
    domain = attribute.domain
    if isinstance(domain, Range):
        ordinals = np.arange(domain.size, dtype=np.int64) + ordinal(domain.low)
    else:
        ordinals = np.array([ordinal(day) for day in domain], dtype=np.int64)  # type: ignore[arg-type]
    return (ordinals - EPOCH).astype("M8[D]")


def by_months(months: npt.NDArray[np.int64], length: int) -> Partition:
    """Spans of so many months: 2024-03, 2024-Q1, 2024."""
    groups, numbers = renumbered(months // length)
    return Partition(numbers, [span_words(int(group), length) for group in groups])


def span_words(group: int, length: int) -> str:
    year, place = divmod(group * length, 12)
    year += 1970
    if length == 12:
        return f"{year:04d}"
    return f"{year:04d}-Q{place // 3 + 1}" if length == 3 else f"{year:04d}-{place + 1:02d}"
