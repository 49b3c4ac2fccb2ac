"""Conditions as SQL that an analyst can paste into a query."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

from voile.engines.sources import quote_identifier
from voile.engines.sql import literal
from voile.query.strict import RESERVED
from voile.schema import Value
from voile.schema.attribute import plain

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
