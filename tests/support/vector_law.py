"""The law of the wire format, slowly and straight from the text of docs/reference/wire-format.md.

It shares no code with `voile.client`: exact fractions, one value at a time.
"""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import Any

Document = dict[str, Any]


def size(column: Document) -> int:
    domain = column["domain"]
    if "values" in domain:
        count = len(domain["values"])
    elif "edges" in domain:
        count = len(domain["edges"]) - 1
    else:
        count = domain["count"]
    return int(count) + int(column["null"])


def value_of(column: Document, code: int) -> Any:
    domain = column["domain"]
    if column["null"] and code == size(column) - 1:
        return None
    if "values" in domain:
        return domain["values"][code]
    if "first" in domain:
        return (dt.date.fromisoformat(domain["first"]) + dt.timedelta(days=code)).isoformat()
    if "edges" in domain:
        low, high = domain["edges"][code : code + 2]
        return rounded((exactly(low) + exactly(high)) / 2)
    point = Fraction(domain["low"] + code * domain["step"], domain["per"])
    return int(point) if column["kind"] == "integer" else rounded(point)


def code_of(column: Document, value: Any) -> int:
    domain = column["domain"]
    if value is None:
        return size(column) - 1
    if "values" in domain:
        return int(domain["values"].index(value))
    if "first" in domain:
        return (dt.date.fromisoformat(value) - dt.date.fromisoformat(domain["first"])).days
    if "edges" in domain:
        below = [place for place, edge in enumerate(domain["edges"][:-1]) if edge <= value]
        return below[-1]
    # One rounding to a double after each operation, as the format says.
    scaled = exactly(rounded(exactly(value) * domain["per"]))
    moved = exactly(rounded(scaled - domain["low"]))
    place = exactly(rounded(moved / domain["step"]))
    return math.floor(exactly(rounded(place + Fraction(1, 2))))


def exactly(number: float) -> Fraction:
    return Fraction(number)


def rounded(number: Fraction) -> float:
    """The nearest double: Python divides whole numbers with one rounding, to even."""
    return number.numerator / number.denominator


class Bytes:
    """The random bytes of a vector, read eight at a time."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def word(self) -> int:
        word, self.data = int.from_bytes(self.data[:8], "big"), self.data[8:]
        return word

    def replacement(self, column: Document) -> int:
        parts = column["replace"]
        if parts == "uniform":
            return self.below(size(column))
        ticket = self.below(sum(parts))
        return next(code for code in range(len(parts)) if sum(parts[: code + 1]) > ticket)

    def below(self, bound: int) -> int:
        while (word := self.word()) >= 2**64 // bound * bound:
            pass
        return word % bound

    def kept(self, retention: float) -> bool:
        return self.word() < math.floor(Fraction(retention) * 2**64)


def perturbed(spec: Document, row: Document, random: bytes) -> list[Any]:
    source, joint = Bytes(random), spec.get("joint")
    codes = [code_of(column, row[column["name"]]) for column in spec["columns"]]
    made = []
    if joint and joint["retention"] < 1:
        kept = source.kept(joint["retention"])
        others = [source.replacement(column) for column in spec["columns"]]
        made = codes if kept else others
    else:
        for column, code in zip(spec["columns"], codes, strict=True):
            if column["retention"] == 1:
                made.append(code)
                continue
            kept = source.kept(column["retention"])
            other = source.replacement(column)
            made.append(code if kept else other)
    assert not source.data, "the vector has bytes that nobody draws"
    return [value_of(column, code) for column, code in zip(spec["columns"], made, strict=True)]


def public(spec: Document) -> list[str]:
    """Columns that are sent as they are, but for those with one value, which tell nothing."""
    joint = spec.get("joint")
    if joint and joint["retention"] < 1:
        return []
    return [c["name"] for c in spec["columns"] if c["retention"] == 1 and size(c) > 1]


def epsilon(spec: Document) -> float:
    """ln of the largest ratio of chances of the same outcome, from the chances themselves.

    Infinite where all that tells anything is sent as it is.
    """
    joint = spec.get("joint")
    telling = [column["name"] for column in spec["columns"] if size(column) > 1]
    if telling and telling == public(spec):
        return math.inf
    if joint:
        count = math.prod(size(column) for column in spec["columns"])
        return log_ratio(Fraction(joint["retention"]), Fraction(1, count), count)
    total = 0.0
    for column in spec["columns"]:
        if column["retention"] < 1:
            parts = [1] if column["replace"] == "uniform" else column["replace"]
            whole = size(column) if column["replace"] == "uniform" else sum(parts)
            least = Fraction(min(parts), whole)
            total += log_ratio(Fraction(column["retention"]), least, size(column))
    return total


def log_ratio(retention: Fraction, least: Fraction, count: int) -> float:
    if count == 1:
        return 0.0
    most = retention + (1 - retention) * least
    ratio = most / ((1 - retention) * least)
    if ratio < 2:
        return math.log1p(ratio - 1)
    return math.log(ratio.numerator) - math.log(ratio.denominator)
