"""A column's values as arrays: JSON's kinds, Python's, NumPy's, and NULL.

What comes in is a sequence of any of these; what a domain numbers is doubles or texts.
`WrongValueError` carries the place of the first value that is of another kind, and not the value.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from voile.client.domains import Numbers

Kind = Literal["categorical", "integer", "numeric", "boolean", "date"]
KINDS: tuple[str, ...] = get_args(Kind)
EPOCH = dt.date(1970, 1, 1).toordinal()
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
class Answers:
    """Values of one column: the present ones in order, and where NULL stands."""

    present: npt.NDArray[Any] | list[Any]
    missing: Bools | None

    def place(self, index: int) -> int:
        """The place in the column of the index-th present value."""
        return index if self.missing is None else int(np.flatnonzero(~self.missing)[index])


def gather(values: Sequence[Any] | npt.NDArray[Any], kind: Kind) -> Answers:
    """Separate NULL (None) from the values, all of which are of the kind's types."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in DTYPES[kind]:
            return Answers(values, None)
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
        return Answers(given, None)
    missing = np.fromiter((value is None for value in given), dtype=np.bool_, count=len(given))
    return Answers([value for value in given if value is not None], missing)


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
