"""Conditions as SQL that an analyst can paste into a query, and as words for people."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.client.domains import EPOCH
from voile.engines.encode import column_type, domain_array, values_at
from voile.errors import TableError, UsageError, spelled
from voile.query.language import RESERVED
from voile.query.quoting import literal, quote_identifier
from voile.schema import Attribute, Bins, DayBins, Value, Values
from voile.schema.attribute import day_of, plain

SHOWN = 5
"""Values that are listed one by one for people; of more, a few and how many there are."""
SUCH_AS = 3
LONGEST = 40
"""Characters of a value that people see."""

PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def name_in_sql(name: str) -> str:
    """The name, in quotes only where SQL needs them."""
    return name if PLAIN.fullmatch(name) and name not in RESERVED else quote_identifier(name)


def value_in_sql(value: Value) -> str:
    """A value as a literal of SQL."""
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return literal(value)


def value_in_words(value: Value) -> str:
    """A value as people and JSON keys have it."""
    return "NULL" if value is None else str(plain(value))


def shortened(value: Value) -> str:
    """A value as people have it, the middle of a very long one left out."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    text = f"{value:.0f}" if whole else value_in_words(value)
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}…{text[-half + 1 :]}"


def listed_in_words(column: str, inside: Sequence[Value], outside: Sequence[Value]) -> str:
    """The values, or those that are left out; of many only some."""
    few, sign = (inside, "") if len(inside) <= len(outside) else (outside, "not ")
    if len(few) <= SHOWN:
        return f"{column}: {sign}{joined(few)}"
    total = len(inside) + len(outside)
    return f"{column}: {len(inside):,} of {total:,} values, such as {joined(inside[:SUCH_AS])}"


def joined(values: Sequence[Value]) -> str:
    """Between commas, or semicolons where values have commas themselves."""
    texts = [shortened(value) for value in values]
    return ("; " if any("," in text for text in texts) else ", ").join(texts)


def class_in_words(label: Value, share: float, stderr: float) -> str:
    """A class with its share: the word keeps a class 18 apart from 18 %."""
    label_words = f"class {shortened(label)}: "
    if not stderr:
        return f"{label_words}{100 * share:.0f} %"
    digits = min(max(-math.floor(math.log10(100 * stderr)), 0), 2)
    return f"{label_words}{100 * share:.{digits}f} ± {100 * stderr:.{digits}f} %"


def listed(column: str, inside: Sequence[str], outside: Sequence[str]) -> str:
    """In these values, or in none of the others, whichever is shorter."""
    if len(inside) == 1:
        return f"{column} = {inside[0]}"
    if len(outside) == 1:
        return f"{column} <> {outside[0]}"
    if len(inside) <= len(outside):
        return f"{column} IN ({', '.join(inside)})"
    return f"{column} NOT IN ({', '.join(outside)})"


def either(first: str, second: str) -> str:
    """One condition or the other."""
    bracketed = f"({first})" if " AND " in first else first
    return f"({bracketed} OR {second})"


# ---------------------- A column's public domain cut into bins, and sets of bins as SQL conditions


Whole = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

UNKNOWN = -1
"""The bin of a value that the domain does not have."""
MOST_VALUES = 1000
"""Values without an order that are still told apart one by one."""
MOST_CODES = 2**26
"""The largest domain whose codes are listed: half a gigabyte of bins."""


@dataclass(frozen=True, eq=False)
class Binning:
    """Which bin each code of an attribute is in; NULL, where allowed, is the last bin alone.

    Where `ordered`, bins are intervals of the domain and a tree cuts between them. Elsewhere
    every value is a bin.
    """

    attribute: Attribute
    bins: Whole
    ordered: bool

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self.attribute.name

    @cached_property
    def size(self) -> int:
        """How many bins there are."""
        return int(self.bins[-1]) + 1

    @cached_property
    def starts(self) -> Whole:
        """The first code of each bin."""
        return np.searchsorted(self.bins, np.arange(self.size)).astype(np.int64)

    @property
    def intervals(self) -> int:
        """Bins without the one of NULL."""
        return self.size - self.attribute.null

    @cached_property
    def comparable(self) -> bool:
        """Whether the domain's order is that of SQL, so that bins are ranges of values."""
        domain = self.attribute.domain
        if not self.ordered or self.attribute.kind == "categorical":
            return False
        return not isinstance(domain, Values) or increasing(domain)

    # ------------------------------------------------------------------ rows to bins

    def places(self, column: Any) -> Whole:
        """The bin of each value of an Arrow column, UNKNOWN where the domain has none.

        A number beyond the ends of a range is in the first or the last bin.
        """
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        try:
            found = self._compared(whole) if self.comparable else self._looked_up(whole)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TableError(
                f"column {self.name!r} has values that are not of kind {self.attribute.kind}: "
                f"{str(error).splitlines()[0]}",
                hint="give a table with the columns of the release",
            ) from None
        missing = whole.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        found[missing] = self.size - 1 if self.attribute.null else UNKNOWN
        return found

    def _compared(self, column: Any) -> Whole:
        numbers = as_numbers(column, self.attribute)
        found = np.searchsorted(self._boundaries, numbers, side="right")
        return found.astype(np.int64)

    @cached_property
    def _boundaries(self) -> npt.NDArray[np.float64]:
        """The values at which a new bin begins."""
        starts = self.starts[1 : self.intervals]
        domain = self.attribute.domain
        if isinstance(domain, Bins):
            return np.array(domain.edges)[starts] + (EPOCH if isinstance(domain, DayBins) else 0)
        return as_numbers(values_at(self.attribute, starts), self.attribute)

    def _looked_up(self, column: Any) -> Whole:
        values = domain_array(self.attribute).slice(0, self.attribute.domain.size)
        place = pc.index_in(column.cast(column_type(self.attribute)), value_set=values)
        codes = place.fill_null(UNKNOWN).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.where(codes == UNKNOWN, UNKNOWN, self.bins[codes])

    # ------------------------------------------------------------------ bins in words

    def value(self, place: int) -> Value:
        """The value that a bin of a single code stands for."""
        found: Value = values_at(self.attribute, self.starts[[place]]).to_pylist()[0]
        return found

    def condition(self, mask: Mask) -> str:
        """A set of bins as SQL that is true of exactly their values."""
        if mask.all():
            return "true"
        column, null = name_in_sql(self.name), bool(self.attribute.null and mask[-1])
        own = mask[: self.intervals]
        if not own.any():
            return f"{column} IS NULL" if null else "false"
        if own.all():
            return f"{column} IS NOT NULL"
        text = self._range(own) if self.comparable else self._list(own)
        return either(text, f"{column} IS NULL") if null else text

    def words(self, mask: Mask) -> str:
        """The same for people: short, and no SQL."""
        null, own = bool(self.attribute.null and mask[-1]), mask[: self.intervals]
        if mask.all() or not own.any() or own.all():
            text = {True: "any" if mask.all() else "known", False: "NULL"}[bool(own.any())]
            return f"{self.name}: {text}"
        if self.comparable:
            low, high = (None if end is None else shortened(end) for end in self._ends(own))
            text = f"{self.name} < {high}" if low is None else f"{self.name} ≥ {low}"
            if low is not None and high is not None:
                text = f"{low} ≤ {self.name} < {high}"
        else:
            text = listed_in_words(self.name, *self._sides(own))
        return f"{text} or NULL" if null else text

    def _ends(self, own: Mask) -> tuple[Value, Value]:
        """Where neighbouring bins begin and where the next one does, None at the domain's ends."""
        first, last = int(np.argmax(own)), len(own) - int(np.argmax(own[::-1]))
        low = self._boundary(first) if first > 0 else None
        return low, self._boundary(last) if last < self.intervals else None

    def _range(self, own: Mask) -> str:
        """Neighbouring bins as a comparison or two."""
        column, (low, high) = name_in_sql(self.name), self._ends(own)
        bounds = [f"{column} >= {value_in_sql(low)}"] if low is not None else []
        bounds += [f"{column} < {value_in_sql(high)}"] if high is not None else []
        return " AND ".join(bounds)

    def _boundary(self, place: int) -> Value:
        domain = self.attribute.domain
        if isinstance(domain, Bins):
            edge = domain.edges[int(self.starts[place])]
            return day_of(edge) if isinstance(domain, DayBins) else edge
        return self.value(place)

    def _list(self, own: Mask) -> str:
        inside, outside = (list(map(value_in_sql, side)) for side in self._sides(own))
        return listed(name_in_sql(self.name), inside, outside)

    def _sides(self, own: Mask) -> tuple[list[Value], list[Value]]:
        """The values in these bins, and those in the others."""
        inside = np.isin(self.bins[: self.attribute.domain.size], np.flatnonzero(own))
        values = domain_array(self.attribute).slice(0, self.attribute.domain.size)
        chosen, others = (values.filter(pa.array(side)).to_pylist() for side in (inside, ~inside))
        return chosen, others


def binning(attribute: Attribute, bins: int) -> Binning:
    """`bins` equal parts of an ordered domain, all its values if it has no more; else all."""
    if attribute.size > MOST_CODES:
        raise UsageError(
            f"column {attribute.name!r} has {attribute.size:,} possible values, "
            f"more than {MOST_CODES:,}",
            hint=f"leave it out with {spelled('columns')}, or declare a coarser step in the schema",
        )
    values = attribute.domain.size
    ordered = attribute.ordered and attribute.kind != "boolean"
    parts = min(bins, values) if ordered else values
    if not ordered and values > MOST_VALUES:
        raise UsageError(
            f"column {attribute.name!r} has {values:,} values without an order",
            hint=f"leave it out with {spelled('columns')}, or declare 'ordered: true' in the "
            "schema",
        )
    found = np.arange(values, dtype=np.int64) * parts // values
    return Binning(attribute, np.append(found, [parts] * attribute.null).astype(np.int64), ordered)


def as_numbers(column: Any, attribute: Attribute) -> npt.NDArray[np.float64]:
    """Numbers or days as floats, NaN where there is none."""
    if attribute.kind == "date":
        days = column.cast(pa.date32()).cast(pa.int32()).cast(pa.float64())
        return np.asarray(days.to_numpy(zero_copy_only=False), np.float64) + EPOCH
    numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(numbers, np.float64)


def increasing(domain: Values) -> bool:
    """Whether the values are listed in rising order."""
    numbers = [v.toordinal() if isinstance(v, dt.date) else v for v in domain.values]
    return all(a < b for a, b in pairwise(numbers))  # type: ignore[operator]
