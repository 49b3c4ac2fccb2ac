"""One attribute and its public domain: which values it may take, in which order and words."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Literal, get_args, overload

import numpy as np
import numpy.typing as npt

from voile.client.domains import (
    EPOCH,
    KINDS,
    LARGEST,
    Bins,
    Grid,
    Kind,
    NumberedDomain,
    Value,
    Values,
)
from voile.errors import SchemaError

Public = Literal["declared", "active", "learnt"]
"""Whether a domain was declared, read off the private table, which discloses it, or learnt from it
within the promise."""

INTERVAL_DIGITS = 6
"""An interval without a step is cut into steps of a power of ten, at most 10⁶ of them."""
MAX_SIZE = 2**62
"""An attribute's code must fit one machine word, with a bit to spare for the sum of two."""


@dataclass(frozen=True)
class Range(NumberedDomain):
    """Every integer (or day) from low to high, both included."""

    low: int | dt.date
    high: int | dt.date

    @cached_property
    def size(self) -> int:
        """How many integers or days there are."""
        return ordinal(self.high) - ordinal(self.low) + 1

    @property
    def grid(self) -> Grid:
        """The same as whole numbers, which are days since 1970-01-01 for dates."""
        first = self.low if isinstance(self.low, int) else ordinal(self.low) - EPOCH
        return Grid(first, 1, 1, self.size)

    def at(self, code: int) -> Value:
        """The integer or day with that code."""
        number = ordinal(self.low) + code
        return dt.date.fromordinal(number) if isinstance(self.low, dt.date) else number


@dataclass(frozen=True)
class Interval(NumberedDomain):
    """Numbers from low to high at equal decimal steps: a column that is as good as continuous.

    The i-th is (first + i·stride)/per with whole numbers, so that everyone computes the same
    float, and the digits of a value do not show whether it was kept or drawn.
    """

    low: float
    high: float
    step: float

    @cached_property
    def grid(self) -> Grid:
        """The same numbers as fractions of whole numbers."""
        low, high, step = (Decimal(repr(x)) for x in (self.low, self.high, self.step))
        digits = max(0, *(-int(x.normalize().as_tuple().exponent) for x in (low, step)))
        per = Decimal(10) ** digits
        return Grid(int(low * per), int(step * per), int(per), int((high - low) // step) + 1)

    @property
    def first(self) -> int:
        """The numerator of the first number."""
        return self.grid.low

    @property
    def stride(self) -> int:
        """The difference of successive numerators."""
        return self.grid.step

    @property
    def per(self) -> int:
        """The denominator, a power of ten."""
        return self.grid.per

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.grid.count

    def at(self, code: int) -> float:
        """The number with that code."""
        return self.grid.at(code)


@dataclass(frozen=True)
class WholeBins(Bins):
    """Bins of whole numbers: [17, 20) has 17, 18 and 19, and its middle is 18.

    A value is published as the middle of its bin, which may be half a whole number.
    """

    def at(self, code: int) -> float:
        """The middle of the whole numbers in the bin with that code."""
        return (self.lows[code] + self.highs[code]) / 2

    @cached_property
    def highs(self) -> tuple[float, ...]:
        """The largest whole number in each bin: the last edge belongs to the last bin."""
        return (*(edge - 1 for edge in self.edges[1:-1]), self.edges[-1])

    @cached_property
    def middles(self) -> npt.NDArray[np.float64]:
        """The middles of all bins."""
        return np.array([self.at(code) for code in range(self.size)])


@dataclass(frozen=True)
class DayBins(WholeBins):
    """Bins of days; edges are days since 1970-01-01. A value is published as a day of its bin."""

    def at(self, code: int) -> dt.date:  # type: ignore[override]
        """The middle day of the bin with that code; of two, the earlier one."""
        return day_of(math.floor((self.lows[code] + self.highs[code]) / 2))

    @cached_property
    def middles(self) -> npt.NDArray[np.float64]:
        """The middle days of all bins, as days since 1970-01-01."""
        return np.array([ordinal(self.at(code)) - EPOCH for code in range(self.size)], np.float64)


def day_of(number: float) -> dt.date:
    """The day so many days after 1970-01-01."""
    return dt.date.fromordinal(int(number) + EPOCH)


Domain = Values | Range | Bins | Interval
"""The public values of an attribute: listed, a range of numbers, bins, or an interval."""


def ordinal(value: int | dt.date) -> int:
    """An integer itself, a date as its proleptic Gregorian ordinal."""
    return value.toordinal() if isinstance(value, dt.date) else value


@dataclass(frozen=True)
class Attribute:
    """A column: its name, what kind of values it has, and its public domain.

    `public` says where the domain comes from: 'declared' in a codebook; 'active', read off the
    private table, which is itself a disclosure that a release must own up to; or 'learnt' from it
    with noise, within the promise.
    NULL, where allowed, is one more value of the domain and the last one.
    """

    name: str
    kind: Kind
    domain: Domain
    null: bool = False
    ordered: bool = True
    public: Public = "declared"
    other: str | None = None
    """The value that stands for every text which the domain does not list."""
    clamp: bool = False
    """Whether a number or date that the domain does not have counts as the nearest that it has."""

    def __post_init__(self) -> None:
        check_domain(self)

    @property
    def other_code(self) -> int | None:
        """The code of the value that stands for all others."""
        if self.other is None or not isinstance(self.domain, Values):
            return None
        return self.domain.values.index(self.other)

    @cached_property
    def size(self) -> int:
        """How many values there are, NULL included."""
        return self.domain.size + self.null

    def __iter__(self) -> Iterator[Value]:
        yield from self.domain
        if self.null:
            yield None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON and YAML; dates as ISO text."""
        entry: dict[str, Any] = {"name": self.name, "kind": self.kind}
        match self.domain:
            case Values(values):
                entry["values"] = [plain(v) for v in values]
            case Range(low, high):
                entry["range"] = [plain(low), plain(high)]
            case DayBins(edges):
                entry["bins"] = [plain(day_of(edge)) for edge in edges]
            case WholeBins(edges):
                entry["bins"] = [int(edge) for edge in edges]
            case Bins(edges):
                entry["bins"] = list(edges)
            case Interval(low, high, step):
                entry |= {"interval": [low, high], "step": step}
        entry |= {"null": self.null, "ordered": self.ordered, "public": self.public}
        if self.other is not None:
            entry["other"] = self.other
        return entry | {"clamp": True} if self.clamp else entry


def plain(value: Value) -> Any:
    """A value as JSON has it: dates as ISO text."""
    return value.isoformat() if isinstance(value, dt.date) else value


def attribute_from_dict(entry: dict[Any, Any]) -> Attribute:
    """Read one attribute of a codebook or manifest; the error names it and the key."""
    # YAML reads an unquoted null as nothing, also where it is a key.
    entry = {"null" if key is None else key: value for key, value in entry.items()}
    name = entry.get("name")
    if name is not None and not isinstance(name, str):
        raise SchemaError(f"the name {name!r} is not text", hint="put it in quotes")
    if not name:
        raise SchemaError(f"an attribute has no name: {entry!r}", hint="write 'name: …' first")
    known = {"name", "kind", "values", "range", "bins", "interval", "step", "null", "ordered"}
    known |= {"public", "other", "clamp"}
    if extra := sorted(map(str, set(entry) - known)):
        raise SchemaError(
            f"attribute {name!r}: unknown key {extra[0]!r}",
            hint=f"known: {', '.join(sorted(known))}",
        )
    kind = entry.get("kind")
    if kind not in KINDS:
        raise SchemaError(
            f"attribute {name!r} has no kind"
            if kind is None
            else f"attribute {name!r}: kind {kind!r} is not known",
            hint=f"use one of {', '.join(KINDS)}",
        )
    public = entry.get("public", "declared")
    if public not in get_args(Public):
        raise SchemaError(
            f"attribute {name!r}: public is {public!r}", hint="write 'declared' or 'active'"
        )
    other = entry.get("other")
    if other is not None and not isinstance(other, str):
        raise SchemaError(f"attribute {name!r}: other is {other!r}, not text", hint="quote it")
    return Attribute(
        name=name,
        kind=kind,
        domain=domain_from_dict(name, kind, entry),
        null=flag(entry, "null", default=False),
        ordered=flag(entry, "ordered", default=kind != "categorical"),
        public=public,
        other=other,
        clamp=flag(entry, "clamp", default=False),
    )


def flag(entry: dict[str, Any], key: str, *, default: bool) -> bool:
    """An entry that is true or false."""
    value = entry.get(key, default)
    if not isinstance(value, bool):
        raise SchemaError(f"attribute {entry['name']!r}: {key} is {value!r}, not true or false")
    return value


def domain_from_dict(name: str, kind: Kind, entry: dict[str, Any]) -> Domain:
    """The domain of a codebook's entry; the error names the attribute."""
    if kind == "numeric" and "range" in entry and "interval" not in entry:
        entry = {"interval" if key == "range" else key: value for key, value in entry.items()}
    given = [key for key in ("values", "range", "bins", "interval") if key in entry]
    if "step" in entry and given != ["interval"]:
        raise SchemaError(f"attribute {name!r}: step belongs to interval", hint="leave it out")
    if kind == "boolean" and not given:
        return Values((False, True))
    if len(given) != 1:
        raise SchemaError(
            f"attribute {name!r} has {' and '.join(given) or 'no domain'}",
            hint="give exactly one of values, range, bins, interval",
        )
    items = entry[given[0]]
    if not isinstance(items, list | tuple):
        raise SchemaError(f"attribute {name!r}: {given[0]} must be a list, not {items!r}")
    read = [value_of_kind(name, kind, item) for item in items]
    if given[0] == "values":
        return Values(tuple(read))
    if given[0] == "range":
        if kind not in ("integer", "date") or len(read) != 2:
            raise SchemaError(f"attribute {name!r}: a range is [low, high] of integers or dates")
        low, high = read
        assert isinstance(low, int | dt.date) and isinstance(high, int | dt.date)  # noqa: S101
        if ordinal(low) > ordinal(high):
            raise SchemaError(
                f"attribute {name!r}: the range runs from {low} down to {high}",
                hint="exchange them",
            )
        return Range(low, high)
    if given[0] == "bins":
        return bins_of(name, kind, read)
    if kind != "numeric":
        raise SchemaError(f"attribute {name!r}: an interval is for kind numeric, not {kind}")
    if len(items) != 2:
        raise SchemaError(f"attribute {name!r}: an interval is [low, high]")
    return interval(name, float(items[0]), float(items[1]), entry.get("step"))


def bins_of(name: str, kind: Kind, read: Sequence[Any]) -> Bins:
    """Bins with these edges: of numbers, of whole numbers, or of days."""
    match kind:
        case "numeric":
            return Bins(tuple(map(float, read)))
        case "integer":
            return WholeBins(tuple(map(float, read)))
        case "date":
            return DayBins(tuple(float(ordinal(edge) - EPOCH) for edge in read))
    raise SchemaError(f"attribute {name!r}: bins are for numbers and dates, not for kind {kind}")


def interval(name: str, low: float, high: float, step: Any = None) -> Interval:
    """An interval, by default in steps of a power of ten that cut it into up to a million."""
    if not low < high or not math.isfinite(high - low):
        raise SchemaError(
            f"attribute {name!r}: the interval runs from {low:g} to {high:g}",
            hint="give [low, high] with low below high",
        )
    if step is None:
        step = float(Decimal(10) ** (math.ceil(math.log10(high - low)) - INTERVAL_DIGITS))
    number = isinstance(step, int | float) and not isinstance(step, bool)
    if not number or not 0 < step <= high - low:
        raise SchemaError(
            f"attribute {name!r}: step is {step!r}", hint="give a positive number, such as 0.01"
        )
    found = Interval(low, high, float(step))
    last = found.at(found.size - 1)
    if last != high:
        raise SchemaError(
            f"attribute {name!r}: steps of {step:g} from {low:g} do not lead to {high:g}",
            hint=f"let it end at {last:g}, or give a step that fits",
        )
    if abs(found.first) + found.stride * found.size >= LARGEST:
        raise SchemaError(
            f"attribute {name!r}: step {step:g} is too fine for numbers up to {high:g}",
            hint="give a larger step",
        )
    return found


def value_of_kind(name: str, kind: Kind, item: Any) -> Value:
    """Check a codebook's value against the attribute's kind; YAML reads 'yes' as true."""
    ok: bool = {
        "categorical": isinstance(item, str),
        "integer": isinstance(item, int)
        and not isinstance(item, bool)
        and -(2**63) <= item < 2**63,
        "numeric": isinstance(item, int | float)
        and not isinstance(item, bool)
        and math.isfinite(item),
        "boolean": isinstance(item, bool),
        "date": isinstance(item, dt.date | str),
    }[kind]
    if kind == "date" and isinstance(item, str):
        try:
            return dt.date.fromisoformat(item)
        except ValueError:
            ok = False
    if kind == "date" and isinstance(item, dt.datetime):
        ok = False
    if not ok:
        hint = "put it in quotes" if kind == "categorical" else f"change the value or kind: {kind}"
        raise SchemaError(f"attribute {name!r}: {item!r} is not of kind {kind}", hint=hint)
    return float(item) if kind == "numeric" else item


def check_whole(attribute: Attribute, bins: Bins) -> None:
    """Refuse bins of another kind than the attribute, or too large to be whole in doubles."""
    kinds = {"numeric": Bins, "integer": WholeBins, "date": DayBins}
    if type(bins) is not kinds.get(attribute.kind):
        raise SchemaError(
            f"attribute {attribute.name!r}: {type(bins).__name__} do not belong to kind "
            f"{attribute.kind}"
        )
    if isinstance(bins, WholeBins) and not all(
        edge.is_integer() and abs(edge) <= LARGEST for edge in bins.edges
    ):
        raise SchemaError(
            f"attribute {attribute.name!r}: the edges of its bins are not whole numbers up to "
            f"{LARGEST:,}",
            hint="give whole numbers, or kind: numeric",
        )


def check_stand_in(attribute: Attribute) -> None:
    """Refuse a stand-in for other values where it cannot be one."""
    name, domain, other = attribute.name, attribute.domain, attribute.other
    listed = isinstance(domain, Values)
    if other is not None and not (
        attribute.kind == "categorical" and isinstance(domain, Values) and other in domain.values
    ):
        raise SchemaError(
            f"attribute {name!r}: other is {other!r}, which is not one of its texts",
            hint="list it among the values; other is for kind categorical",
        )
    if attribute.clamp and (
        attribute.kind not in ("integer", "numeric", "date") or (listed and not domain.size)
    ):
        raise SchemaError(
            f"attribute {name!r}: clamp is for numbers and dates, not for kind {attribute.kind}",
            hint="leave it out; other names the value that stands for unlisted texts",
        )


def check_domain(attribute: Attribute) -> None:
    """Refuse a domain that is empty, too large, repeats a value or has bins out of order."""
    name, domain = attribute.name, attribute.domain
    check_stand_in(attribute)
    if isinstance(domain, Bins):
        if len(domain.edges) < 2 or any(
            not a < b for a, b in zip(domain.edges, domain.edges[1:], strict=False)
        ):
            raise SchemaError(
                f"attribute {name!r}: bins {list(domain.edges)} do not increase",
                hint="give at least two edges, in increasing order",
            )
        check_whole(attribute, domain)
    elif isinstance(domain, Values):
        seen: set[Value] = set()
        for value in domain.values:
            if value in seen:
                raise SchemaError(f"attribute {name!r} lists {value!r} twice")
            seen.add(value)
    if attribute.size < 1:
        raise SchemaError(f"attribute {name!r} has an empty domain", hint="list at least one value")
    if attribute.size > MAX_SIZE:
        raise SchemaError(
            f"attribute {name!r} has {attribute.size} values, more than can be numbered",
            hint="declare a smaller domain in a codebook, or leave the column out",
        )


# ---------------------------------------------------------------------- words
# Values in words, as people write them in files and read them in releases, and back.


NULL = "NULL"
LARGE = 10_000
"""Words of larger domains are made one by one, when they are needed."""


def in_words(value: Value) -> str:
    """One value: a date as 2024-01-31, a number without needless digits, NULL as NULL."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_in_words(value)
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def number_in_words(value: float) -> str:
    """The shortest digits that lead back to the same number: 24 and 0.1, not 24.0."""
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def edges_in_words(bins: Bins) -> list[str]:
    """The edges of bins as people write them: days as dates."""
    if isinstance(bins, DayBins):
        return [day_of(edge).isoformat() for edge in bins.edges]
    return [number_in_words(edge) for edge in bins.edges]


def bin_in_words(bins: Bins, number: int) -> str:
    """[20, 40), and the last one closed; of whole numbers and days 20-39, the first and last."""
    if isinstance(bins, WholeBins):
        ends = [bins.lows[number], bins.highs[number]]
        days = isinstance(bins, DayBins)
        words = [day_of(end).isoformat() if days else number_in_words(end) for end in ends]
        if ends[0] == ends[1]:
            return words[0]
        return (" to " if days or min(ends) < 0 else "-").join(words)
    low, high = (number_in_words(edge) for edge in bins.edges[number : number + 2])
    return f"[{low}, {high}" + ("]" if number == bins.size - 1 else ")")


class ValueWords(Sequence[str]):
    """The words of all codes of an attribute, made when they are needed.

    NULL is called NULL, unless that is a value: then it is empty text.
    """

    def __init__(self, attribute: Attribute) -> None:
        self._attribute = attribute
        domain = attribute.domain
        self._null = "" if isinstance(domain, Values) and NULL in domain.values else NULL

    def __len__(self) -> int:
        return self._attribute.size

    @overload
    def __getitem__(self, code: int) -> str: ...
    @overload
    def __getitem__(self, code: slice) -> tuple[str, ...]: ...
    def __getitem__(self, code: int | slice) -> str | tuple[str, ...]:
        if isinstance(code, slice):
            return tuple(self[number] for number in range(*code.indices(len(self))))
        if not -len(self) <= code < len(self):
            raise IndexError(code)
        number, domain = code % len(self), self._attribute.domain
        if number == domain.size:
            return self._null
        if isinstance(domain, Bins):
            return bin_in_words(domain, number)
        return in_words(domain.at(number))


def value_words(attribute: Attribute) -> Sequence[str]:
    """The words of every code: listed if they are few, else made when needed."""
    words = ValueWords(attribute)
    return words if attribute.size > LARGE else tuple(words)


def code_of_words(attribute: Attribute) -> Callable[[str], int | None]:
    """What finds the code of a value in words; None for words of no value of the attribute.

    Empty text and NULL mean NULL, unless they are values themselves. Numbers may be written in
    any way: 24, 24.0 and 2.4e1 are one.
    """
    domain = attribute.domain
    by_words = {word: code for code, word in enumerate(value_words(attribute))}
    by_value: dict[Value, int] = (
        {} if attribute.kind == "categorical" else {v: code for code, v in enumerate(domain)}
    )
    if attribute.null:
        by_words.setdefault("", attribute.size - 1)
        by_words.setdefault(NULL, attribute.size - 1)

    def code(text: str) -> int | None:
        if text in by_words:
            return by_words[text]
        return by_value.get(value_of_words(attribute, text.strip()))

    return code


def value_of_words(attribute: Attribute, text: str) -> Value:
    """A value of the attribute's kind; None where the text is none."""
    try:
        match attribute.kind:
            case "integer" | "numeric":
                return float(text)
            case "boolean":
                return {"true": True, "false": False}.get(text.casefold())
            case "date":
                return dt.date.fromisoformat(text)
            case _:
                return None
    except ValueError:
        return None


def domain_in_words(attribute: Attribute) -> str:
    """What values an attribute may have: '17 to 90', or the first few of a list."""
    match attribute.domain:
        case Range(low, high):
            return f"{low} to {high}"
        case DayBins(edges):
            return f"{day_of(edges[0])} to {day_of(edges[-1])}"
        case Bins(edges):
            return f"{edges[0]:g} to {edges[-1]:g}"
        case Interval(start, end):
            return f"{start:g} to {end:g}"
        case Values(values):
            shown = ", ".join(repr(v) if isinstance(v, str) else str(v) for v in values[:5])
            return shown + (f", … {len(values)} values" if len(values) > 5 else "")
