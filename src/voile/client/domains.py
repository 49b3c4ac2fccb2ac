"""Public domains: the numbering of a column's values, in arithmetic that every language has.

Numbers are IEEE doubles; a date is the number of days since 1970-01-01. `encode` numbers the
values of an array and gives −1 to those outside; `decode` is its inverse on codes. The schema's
domains (voile.schema.attribute) are made of these.
"""

from __future__ import annotations

import datetime as dt
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]

Kind = Literal["categorical", "integer", "numeric", "boolean", "date"]
"""What a column's values are; it decides which comparisons a query may make."""

Value = str | int | float | bool | dt.date | None
"""One value of a column, as Python has it; None is NULL."""

KINDS: tuple[str, ...] = get_args(Kind)
EPOCH = dt.date(1970, 1, 1).toordinal()
LARGEST = 2**50
"""Bound of a grid's whole numbers. Up to it, encoding the value of a code gives the code back:
the operations of `Grid.encode` are together off by less than ½ (docs/mathematics, §22)."""


class NumberedDomain(ABC):
    """Public values that are numbered from 0: iterating gives them in the order of their codes."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many values there are."""

    @abstractmethod
    def at(self, code: int) -> Value:
        """The value with that code."""

    def __iter__(self) -> Iterator[Value]:
        return map(self.at, range(self.size))


@dataclass(frozen=True)
class Grid(NumberedDomain):
    """The points (low + i·step)/per for i = 0, …, count − 1, of whole numbers low, step, per.

    A number between the first and the last point belongs to the nearest one, and half-way to
    the upper one, both by the arithmetic of doubles.
    """

    low: int
    step: int
    per: int
    count: int

    @property
    def size(self) -> int:
        """How many points there are."""
        return self.count

    @property
    def high(self) -> int:
        """The whole number of the last point."""
        return self.low + self.step * (self.count - 1)

    def at(self, code: int) -> float:
        """The point with that code."""
        return (self.low + code * self.step) / self.per

    def encode(self, numbers: Numbers) -> Codes:
        """The code of the point that is nearest to each number."""
        inside = (numbers >= self.low / self.per) & (numbers <= self.high / self.per)
        with np.errstate(over="ignore"):
            place = numbers * self.per if self.per != 1 else numbers
            place = place - self.low
        if self.step != 1:
            place /= self.step
        place += 0.5
        np.floor(place, out=place)
        if not inside.all():
            place[~inside] = -1
        return place.astype(np.int64)

    def decode(self, codes: Codes) -> Numbers:
        """The points of codes."""
        return (self.low + codes * self.step) / np.float64(self.per)


@dataclass(frozen=True)
class Bins(NumberedDomain):
    """Intervals [e₀,e₁), [e₁,e₂), …, the last one closed; a value is published as its middle."""

    edges: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1

    count = size

    def at(self, code: int) -> float:
        """The middle of the bin with that code."""
        return (self.edges[code] + self.edges[code + 1]) / 2

    @property
    def lows(self) -> tuple[float, ...]:
        """The smallest number in each bin."""
        return self.edges[:-1]

    @cached_property
    def highs(self) -> tuple[float, ...]:
        """The largest double in each bin."""
        below = (math.nextafter(edge, -math.inf) for edge in self.edges[1:-1])
        return (*below, self.edges[-1])

    @cached_property
    def _table(self) -> Numbers:
        return np.array(self.edges, dtype=np.float64)

    def encode(self, numbers: Numbers) -> Codes:
        """The code of the bin that each number is in."""
        codes = np.searchsorted(self._table, numbers, side="right").astype(np.int64) - 1
        codes[numbers == self._table[-1]] = self.size - 1
        codes[~(numbers <= self._table[-1])] = -1
        return codes

    @cached_property
    def middles(self) -> Numbers:
        """The middles of all bins."""
        with np.errstate(over="ignore"):
            return (self._table[:-1] + self._table[1:]) / 2

    def decode(self, codes: Codes) -> Numbers:
        """The middles of the bins with these codes."""
        return self.middles[codes]


Edges = Bins
"""The name of bins in a spec, where they are given by their edges."""


@dataclass(frozen=True)
class Values(NumberedDomain):
    """A list of different values, in the order of their codes."""

    values: tuple[Value, ...]

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.values)

    count = size

    def __iter__(self) -> Iterator[Value]:
        return iter(self.values)

    def at(self, code: int) -> Value:
        """The value with that code."""
        return self.values[code]


@dataclass(frozen=True)
class Texts(Values):
    """A list of different texts; equal means the same Unicode characters."""

    values: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts in the order of their codes."""
        return self.values

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The code of each text."""
        return {text: code for code, text in enumerate(self.values)}

    @cached_property
    def _table(self) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=object)

    def decode(self, codes: Codes) -> npt.NDArray[Any]:
        """The texts of codes."""
        return self._table[codes]


@dataclass(frozen=True)
class Listed(NumberedDomain):
    """A list of different numbers, in the order of their codes; dates by their days."""

    numbers: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return len(self.numbers)

    count = size

    def at(self, code: int) -> float:
        """The number with that code."""
        return self.numbers[code]

    @cached_property
    def _table(self) -> Numbers:
        return np.array(self.numbers, dtype=np.float64)

    @cached_property
    def _order(self) -> npt.NDArray[np.intp]:
        return np.argsort(self._table)

    def encode(self, numbers: Numbers) -> Codes:
        """The code of each number, which must be one of the list."""
        places = np.searchsorted(self._table, numbers, sorter=self._order)
        codes = self._order[np.minimum(places, self.size - 1)].astype(np.int64)
        codes[self._table[codes] != numbers] = -1
        return codes

    def decode(self, codes: Codes) -> Numbers:
        """The numbers of codes."""
        return self._table[codes]


Domain = Grid | Listed | Bins | Texts
"""The public values of a column, as a client needs them."""


# ---------------------------------------------------------------------- values
# A column's values as arrays: JSON's kinds, Python's, NumPy's, and NULL.
#
# What comes in is a sequence of any of these; what a domain numbers is doubles or texts.
# `WrongValueError` carries the place of the first value that is of another kind, and not the
# value.


Bools = npt.NDArray[np.bool_]

TYPES: dict[str, frozenset[type]] = {
    "categorical": frozenset({str}),
    "integer": frozenset({int, float}),
    "numeric": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "date": frozenset({str, dt.date}),
}
DTYPES = {"categorical": "U", "integer": "iuf", "numeric": "iuf", "boolean": "b", "date": "MU"}
"""Kinds of NumPy arrays (`dtype.kind`) that are taken for each kind of column."""


class WrongValueError(Exception):
    """A value of another kind than the column's, at this place."""

    def __init__(self, place: int) -> None:
        self.place = place


@dataclass(frozen=True)
class ColumnAnswers:
    """Values of one column: the present ones in order, and where NULL stands."""

    present: npt.NDArray[Any] | list[Any]
    missing: Bools | None

    def place(self, index: int) -> int:
        """The place in the column of the index-th present value."""
        return index if self.missing is None else int(np.flatnonzero(~self.missing)[index])


def gather(values: Sequence[Any] | npt.NDArray[Any], kind: Kind) -> ColumnAnswers:
    """Separate NULL (None) from the values, all of which are of the kind's types."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in DTYPES[kind]:
            return ColumnAnswers(values, None)
        values = values.tolist()
    given = list(values)
    types = set(map(type, given))
    if any(issubclass(found, np.generic) for found in types):
        given = [value.item() if isinstance(value, np.generic) else value for value in given]
        types = set(map(type, given))
    allowed = TYPES[kind] | {type(None)}
    if not types <= allowed:
        raise WrongValueError(
            next(i for i, value in enumerate(given) if type(value) not in allowed)
        )
    if type(None) not in types:
        return ColumnAnswers(given, None)
    missing = np.fromiter((value is None for value in given), dtype=np.bool_, count=len(given))
    return ColumnAnswers([value for value in given if value is not None], missing)


def to_numbers(present: npt.NDArray[Any] | list[Any], kind: Kind) -> Numbers:
    """Doubles; days since 1970-01-01 for dates. An error names the index among the present."""
    if kind == "date":
        return days(present)
    try:
        numbers = np.asarray(present, dtype=np.float64)
    except OverflowError:
        raise WrongValueError(next(i for i, v in enumerate(present) if abs(v) >= 2**1023)) from None
    if kind == "integer" and not (isinstance(present, np.ndarray) and present.dtype.kind in "iu"):
        broken = np.flatnonzero(numbers != np.floor(numbers))
        if len(broken):
            raise WrongValueError(int(broken[0]))
    return numbers


def days(present: npt.NDArray[Any] | list[Any]) -> Numbers:
    """Days since 1970-01-01 of dates, or of texts of the form YYYY-MM-DD and no other."""
    if isinstance(present, np.ndarray) and present.dtype.kind == "M":
        dates = present.astype("datetime64[D]")
        broken = np.flatnonzero(dates != present)  # a time of day, or no time at all
        if len(broken):
            raise WrongValueError(int(broken[0]))
        return dates.astype(np.int64).astype(np.float64)
    given = present.tolist() if isinstance(present, np.ndarray) else present
    # Few days are many people's: each is read once.
    known = {value: day_number(value) for value in set(given)}
    numbers = np.fromiter(map(known.__getitem__, given), dtype=np.float64, count=len(given))
    broken = np.flatnonzero(np.isnan(numbers))
    if len(broken):
        raise WrongValueError(int(broken[0]))
    return numbers


def day_number(value: str | dt.date) -> float:
    """Days since 1970-01-01, NaN for a text that is no date as JSON writes it."""
    if isinstance(value, dt.date):
        return float(value.toordinal() - EPOCH)
    try:
        date = dt.date.fromisoformat(value)
    except ValueError:
        return math.nan
    return float(date.toordinal() - EPOCH) if date.isoformat() == value else math.nan
