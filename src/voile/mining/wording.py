"""Conditions as SQL that an analyst can paste into a query, and as words for people."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence

from voile.query.quoting import literal, quote_identifier
from voile.query.strict import RESERVED
from voile.schema import Value
from voile.schema.attribute import plain

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
    told = f"class {shortened(label)}: "
    if not stderr:
        return f"{told}{100 * share:.0f} %"
    digits = min(max(-math.floor(math.log10(100 * stderr)), 0), 2)
    return f"{told}{100 * share:.{digits}f} ± {100 * stderr:.{digits}f} %"


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
    bracketed = f"({first})" if " AND " in first else first
    return f"({bracketed} OR {second})"
