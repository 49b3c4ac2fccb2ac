"""One column of a survey: its public domain, how its values are perturbed, and its ε."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import repeat
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from voile.client.domains import (
    Codes,
    Domain,
    Edges,
    Grid,
    Kind,
    Listed,
    Texts,
    WrongValueError,
    gather,
    to_numbers,
)
from voile.errors import UsageError

LARGEST_FRACTION = 2**1000
"""Fractions below it are doubles."""
ROUNDING = 2.0**-48
"""Relative error that the logarithms below stay within, with a margin (docs/mathematics,
§22)."""


def local_epsilon(retention: float, odds: int | Fraction) -> float:
    """ln(1 + p·w/(1 − p)), rounded up; w is 1/m of the least likely replacement.

    Infinite where everything is kept. The fraction is exact, the logarithm is not.
    """
    if retention == 0:
        return 0.0
    if retention == 1:
        return math.inf
    kept = Fraction(retention)
    return math.nextafter(log_one_more(kept * odds / (1 - kept)) * (1 + ROUNDING), math.inf)


def log_one_more(excess: Fraction) -> float:
    """ln(1 + a); where a is larger than a double can be, the 1 does not matter."""
    if excess < LARGEST_FRACTION:
        return math.log1p(float(excess))
    return math.log(excess.numerator) - math.log(excess.denominator)


def together(epsilons: list[float]) -> float:
    """The sum, rounded up."""
    total = math.fsum(epsilons)
    return math.nextafter(total, math.inf) if 0 < total < math.inf else total


# ---------------------------------------------------------------------- column
# One column of a survey: its public domain, and how its values are perturbed.


Replace = tuple[int, ...] | Literal["uniform"]


@dataclass(frozen=True)
class Column:
    """A value is kept with chance `retention`, else replaced by one of the public domain.

    `replace` is 'uniform', or a whole number for each code: chances in proportion. NULL, where
    allowed, is the last code. `Spec` makes columns, and checks them.
    """

    name: str
    kind: Kind
    domain: Domain
    null: bool
    retention: float
    replace: Replace

    @property
    def size(self) -> int:
        """How many codes there are, NULL included."""
        return self.domain.size + self.null

    @property
    def total(self) -> int:
        """W: the replacement is drawn from W equally likely tickets."""
        return self.size if self.replace == "uniform" else sum(self.replace)

    @property
    def least(self) -> int:
        """How many of the tickets the least likely code has."""
        return 1 if self.replace == "uniform" else min(self.replace)

    @cached_property
    def cumulative(self) -> Codes | None:
        """Tickets up to and including each code; None where each code has one."""
        if self.replace == "uniform":
            return None
        return np.cumsum(np.array(self.replace, dtype=np.int64))

    def epsilon(self) -> float:
        """Local ε: ln of the largest P(y|x)/P(y|x′), infinite where values are sent as they are."""
        if self.size == 1:
            return 0.0
        return local_epsilon(self.retention, Fraction(self.total, self.least))

    # ------------------------------------------------------------------ values and codes

    def encode(
        self, values: Sequence[Any] | npt.NDArray[Any], *, exact: bool = False, what: str = "row"
    ) -> Codes:
        """The codes of values: a list with None for NULL, or an array.

        A grid takes the nearest point and bins take any number inside, unless `exact`: then a
        value must be one that `decode` gives, as it is in what clients send.
        """
        self._check_list(values)
        try:
            answers = gather(values, self.kind)
        except WrongValueError as wrong:
            raise self._refusal(what, wrong.place) from None
        try:
            present = self._encode_present(answers.present, exact)
        except WrongValueError as wrong:
            raise self._refusal(what, answers.place(wrong.place)) from None
        if answers.missing is None:
            return present
        if not self.null:
            raise self._refusal(what, int(np.flatnonzero(answers.missing)[0]))
        codes = np.full(len(answers.missing), self.size - 1, dtype=np.int64)
        codes[~answers.missing] = present
        return codes

    def encode_one(self, value: Any) -> int:
        """The code of one value."""
        return int(self.encode([value])[0])

    def decode(self, codes: npt.ArrayLike) -> npt.NDArray[Any]:
        """The values of codes, as JSON writes them: dates are texts, NULL is None."""
        given = np.asarray(codes)
        if given.size and (
            given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= self.size
        ):
            raise UsageError(
                f"column {self.name!r}: codes that it does not have",
                hint=f"give whole numbers from 0 to {self.size - 1}",
            )
        given = given.astype(np.int64)
        if not self.null:
            return self._values(given)
        missing = given == self.size - 1
        if not missing.any():
            return self._values(given)
        values = np.full(given.shape, None, dtype=object)
        # Through a list, so that the values are Python's own, as JSON needs them.
        values[~missing] = self._values(given[~missing]).tolist()
        return values

    def _encode_present(self, present: npt.NDArray[Any] | list[Any], exact: bool) -> Codes:
        if isinstance(self.domain, Texts):
            given = present.tolist() if isinstance(present, np.ndarray) else present
            found = map(self.domain.places.get, given, repeat(-1))
            codes = np.fromiter(found, dtype=np.int64, count=len(given))
        else:
            numbers = to_numbers(present, self.kind)
            codes = self.domain.encode(numbers)
            if exact and isinstance(self.domain, Grid | Edges):
                codes[self.domain.decode(codes) != numbers] = -1
        if codes.size and codes.min() < 0:
            raise WrongValueError(int(np.flatnonzero(codes < 0)[0]))
        return codes

    def _values(self, codes: Codes) -> npt.NDArray[Any]:
        if isinstance(self.domain, Texts):
            return self.domain.decode(codes)
        numbers = self.domain.decode(codes)
        match self.kind:
            case "integer":
                return numbers.astype(np.int64)
            case "boolean":
                return numbers.astype(np.bool_)
            case "date":
                return self._days(codes)
        return numbers

    def _days(self, codes: Codes) -> npt.NDArray[Any]:
        """Days as texts; where there are more codes than days, each day is written once."""
        if codes.size > self.domain.size:
            return self._days(np.arange(self.domain.size))[codes]
        days = self.domain.decode(codes).astype(np.int64).astype("datetime64[D]")
        return np.datetime_as_string(days).astype(object)

    # ------------------------------------------------------------------ words

    def _check_list(self, values: object) -> None:
        """Values in their order: not a text, which would be taken for its characters."""
        flat = np.ndim(values) == 1 if isinstance(values, np.ndarray) else True
        if isinstance(values, str | bytes | Mapping | Set) or not (
            flat and isinstance(values, Iterable)
        ):
            raise UsageError(
                f"the values of column {self.name!r} are no list, but of type "
                f"{type(values).__name__}",
                hint="give a list or a flat array, with one value for each row",
            )

    def _refusal(self, what: str, place: int) -> UsageError:
        # The value itself is not shown: it is somebody's answer, and errors travel to logs,
        # crash reports and the other side of a connection.
        return UsageError(
            f"column {self.name!r}, {what} {place}: the value is not in the domain",
            hint=f"{self.describe()}; the value is not shown, since errors travel",
        )

    def describe(self) -> str:
        """The public domain in a few words."""
        null = ", or NULL (None)" if self.null else "; NULL is not allowed"
        return self._describe_domain() + null

    def _describe_domain(self) -> str:
        match self.domain:
            case Texts(texts):
                return f"one of {shortened([repr(text) for text in texts])}"
            case Listed():
                known = [str(value) for value in self._values(np.arange(min(self.domain.size, 9)))]
                return f"one of {shortened(known, self.domain.size)}"
            case Edges(edges):
                return f"a number from {edges[0]:g} to {edges[-1]:g}"
        low, high = self._values(np.array([0, self.domain.size - 1]))
        noun = {"integer": "a whole number", "date": "a date YYYY-MM-DD"}.get(self.kind, "a number")
        return f"{noun} from {low} to {high}"


def shortened(known: list[str], count: int | None = None) -> str:
    """The first eight of a list, in words."""
    more = (len(known) if count is None else count) > 8
    return ", ".join(known[:8]) + (", …" if more else "")
