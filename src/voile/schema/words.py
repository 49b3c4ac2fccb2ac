"""Values in words, as people write them in files and read them in releases, and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import overload

from voile.schema.attribute import Attribute, Bins, Domain, Interval, Range, Value, Values, ordinal

NULL = "NULL"
LARGE = 10_000
"""Words of larger domains are made one by one, when they are asked for."""


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


def bin_in_words(bins: Bins, number: int) -> str:
    """[20, 40), and the last one closed."""
    low, high = (number_in_words(edge) for edge in bins.edges[number : number + 2])
    return f"[{low}, {high}" + ("]" if number == bins.size - 1 else ")")


def value_at(domain: Domain, code: int) -> Value:
    """The value of a code, without listing the domain."""
    match domain:
        case Values(values):
            return values[code]
        case Range(low):
            number = ordinal(low) + code
            return dt.date.fromordinal(number) if isinstance(low, dt.date) else number
        case Interval():
            return (domain.first + code * domain.stride) / domain.per
        case Bins(edges):
            return (edges[code] + edges[code + 1]) / 2


class Words(Sequence[str]):
    """The words of all codes of an attribute, made when they are asked for.

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
        return in_words(value_at(domain, number))


def value_words(attribute: Attribute) -> Sequence[str]:
    """The words of every code: listed if they are few, else made when asked for."""
    words = Words(attribute)
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
        case Bins(edges):
            return f"{edges[0]:g} to {edges[-1]:g}"
        case Interval(start, end):
            return f"{start:g} to {end:g}"
        case Values(values):
            shown = ", ".join(repr(v) if isinstance(v, str) else str(v) for v in values[:5])
            return shown + (f", … {len(values)} values" if len(values) > 5 else "")
