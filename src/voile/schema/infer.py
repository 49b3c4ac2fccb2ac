"""A schema from what a table holds: the 'active' domain, to be used knowingly.

An active domain is read off the private table, so publishing it discloses which values occur.
Numbers with many values become ranges or bins, which disclose less than a list would.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voile.client.domains import Bins, Kind, Value, Values
from voile.errors import TableError, spelled
from voile.schema.attribute import Attribute, Domain, Range, ordinal

LISTED_INTEGERS = 256
LISTED_NUMBERS = 64
LISTED_TEXTS = 100_000
BINS = 20
BARS = 12
"""Of a histogram that people look at."""
FEWEST_ROWS = 100
"""Of a table in which identifiers that repeat are looked for."""
EVEN = 0.1
"""How far the numbers of an identifier may be from evenly spread, as a share of them."""
LENGTHS = 0.05
"""Of amounts, how many have fewer or more digits than most."""
IDENTIFIER_NAME = re.compile(
    r"(^|[\W_])(p|u|i|hh|case|person|patient|subject|user|customer|member|student|household)?"
    r"(id|idno|ident)([\W_]|$)"
    r"|^(person|patient|subject|respondent|user|customer|member|student|household)$",
    re.IGNORECASE,
)
"""What columns are called that say whose a row is."""


@dataclass(frozen=True)
class ColumnProfile:
    """What is known of a column: counts, extremes and, where few, its values with counts."""

    name: str
    sql_type: str
    kind: Kind | None
    """None for types that a domain cannot be made of."""
    rows: int
    nulls: int
    distinct: int
    low: Value
    high: Value
    values: tuple[Value, ...] | None = None
    counts: tuple[int, ...] | None = None
    histogram: tuple[int, ...] = ()

    @property
    def looks_like_identifier(self) -> bool:
        """Nearly every row has its own value, which for text and integers names the person."""
        filled = self.rows - self.nulls
        share = {"categorical": 0.5, "integer": 0.9}.get(self.kind or "", math.inf)
        return filled >= 20 and self.distinct >= share * filled and not self._is_measured

    @property
    def _is_measured(self) -> bool:
        """Whether whole numbers are amounts, although few repeat: incomes, areas, inhabitants.

        What is handed out is spread evenly, or has one length. Amounts are many small ones and
        few large ones.
        """
        if self.kind != "integer" or self.values is None or IDENTIFIER_NAME.search(self.name):
            return False
        lengths = np.array([len(str(abs(int(as_number(value))))) for value in self.values])
        _, numbers = np.unique(lengths, return_counts=True)
        several = np.sort(numbers)[::-1][1:].sum() >= LENGTHS * len(lengths)
        return bool(several) and not is_handed_out(self.values, surely=False)

    @property
    def looks_like_repeated_identifier(self) -> bool:
        """Whether values seem to name people or households that have several rows each.

        Such values are many, each has few rows and about as many as the others have; and whole
        numbers are spread evenly, as what is handed out in turn is. Amounts, postcodes and ages
        are not: a few values have many rows, or most lie close together.
        """
        filled = self.rows - self.nulls
        if self.kind not in ("categorical", "integer") or self.looks_like_identifier:
            return False
        if not self.counts or filled < FEWEST_ROWS or self.distinct < 2:
            return False
        mean, most = filled / self.distinct, max(self.counts)
        if IDENTIFIER_NAME.search(self.name):
            few, often, even = 20, 60, 10
        else:
            few, often, even = 200, 20, 4
        if self.distinct < few or mean > often or most > even * mean + even:
            return False
        # A panel has each person as often as any other.
        surely = even == 10 or min(self.counts) == most
        return self.kind != "integer" or is_handed_out(self.values, surely=surely)


def is_handed_out(values: Sequence[Value] | None, *, surely: bool) -> bool:
    """Whether whole numbers lie about equally close from the first to the last, and are no days."""
    if values is None:
        return False
    places = np.array([as_number(value) for value in values])
    first, last = places[0], places[-1]
    if first < 0 or (first >= 19_000_101 and last <= 20_991_231):
        return False
    expected = (places - first) / max(last - first, 1)
    shares = np.arange(len(places)) / max(len(places) - 1, 1)
    return surely or bool(np.abs(expected - shares).max() < EVEN)


def infer_attribute(profile: ColumnProfile, *, null: bool) -> Attribute:
    """The attribute of a column; `null` when NULL is to be one of its values."""
    if profile.kind is None:
        raise TableError(
            f"column {profile.name!r} of type {profile.sql_type} holds values of which no domain "
            "can be made (integers beyond 64 bits, dates beyond year 9999, lists, …)",
            hint=f"leave it out: name the columns to publish with {spelled('columns')}",
        )
    if profile.rows == 0 and not null:
        raise TableError(
            "the table has no rows to read a domain off",
            hint=f"declare the domain with a codebook: {spelled('schema', 'codebook.yaml')}",
        )
    if profile.nulls == profile.rows and not null:
        raise TableError(
            f"column {profile.name!r} holds nothing but NULLs",
            hint=f"leave it out with {spelled('columns')}, or use {spelled('nulls', 'as-value')}",
        )
    return Attribute(
        name=profile.name,
        kind=profile.kind,
        domain=_domain(profile),
        null=null and profile.nulls > 0,
        ordered=profile.kind != "categorical",
        # Even that a column holds truth values, and whether one is missing, was read off it.
        public="active",
    )


def _domain(profile: ColumnProfile) -> Domain:
    if profile.kind == "boolean":
        return Values((False, True))
    limit = {"integer": LISTED_INTEGERS, "date": LISTED_INTEGERS, "numeric": LISTED_NUMBERS}.get(
        profile.kind or "", LISTED_TEXTS
    )
    if profile.kind == "numeric":
        refuse_infinite(profile)
    if profile.values is not None and len(profile.values) <= limit:
        return Values(profile.values)
    if profile.kind == "numeric":
        return Bins(nice_bins(float(profile.low), float(profile.high)))  # type: ignore[arg-type]
    if profile.kind in ("integer", "date"):
        assert isinstance(profile.low, int) or profile.kind == "date"  # noqa: S101
        return Range(profile.low, profile.high)  # type: ignore[arg-type]
    raise TableError(
        f"column {profile.name!r} has {profile.distinct:,} texts, more than can be listed",
        hint=f"leave it out with {spelled('columns')}, or group its values first",
    )


def refuse_infinite(profile: ColumnProfile) -> None:
    """Refuse a column of which no bins can be made."""
    if math.inf in (profile.high, -profile.low if isinstance(profile.low, float) else None):
        raise TableError(
            f"column {profile.name!r} holds an infinite value", hint="make it NULL, or leave it out"
        )


def nice_bins(low: float, high: float, count: int = BINS) -> tuple[float, ...]:
    """About `count` bins of a round width whose edges are multiples of it."""
    rough = (high - low) / count or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    width = next(power * step for step in (1, 2, 2.5, 5, 10) if power * step >= rough * 0.999999)
    first, last = math.floor(low / width), math.ceil(high / width)
    return tuple(
        round(width * i, 12 - math.floor(math.log10(width)))
        for i in range(first, max(last, first + 1) + 1)
    )


def numeric_extremes(profile: ColumnProfile) -> tuple[float, float]:
    """Extremes as numbers, dates as days: for histograms."""
    low, high = profile.low, profile.high
    if isinstance(low, str) or isinstance(high, str) or low is None or high is None:
        return 0.0, 0.0
    return as_number(low), as_number(high)


def as_number(value: Value) -> float:
    """A number itself, a date as its day."""
    if value is None or isinstance(value, str):
        raise TypeError(f"{value!r} is no number and no date")
    return value if isinstance(value, float) else float(ordinal(value))


def histogram(profile: ColumnProfile) -> tuple[int, ...]:
    """A few bars: equal widths for what is ordered, the most frequent values for text."""
    if not profile.counts or profile.values is None:
        return ()
    low, high = numeric_extremes(profile)
    if profile.kind in ("categorical", "boolean") or not math.isfinite(high - low) or low == high:
        return tuple(sorted(profile.counts, reverse=True)[:BARS])
    places = [as_number(value) for value in profile.values]
    bars, _ = np.histogram(places, bins=BARS, range=(low, high), weights=profile.counts)
    return tuple(int(b) for b in bars)
