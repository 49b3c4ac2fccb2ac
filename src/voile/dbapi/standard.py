"""The type objects and constructors of DB-API 2.0 (PEP 249)."""

from __future__ import annotations

import datetime as dt


class TypeGroup:
    """SQL types of one sort: equal to the name of each of them, as a description has it."""

    def __init__(self, name: str, *names: str) -> None:
        self.name = name
        self.names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeGroup):
            return self.names == other.names
        return isinstance(other, str) and other.split("(", maxsplit=1)[0] in self.names

    def __hash__(self) -> int:
        return hash(self.names)

    def __repr__(self) -> str:
        return self.name


STRING = TypeGroup("STRING", "VARCHAR")
"""Texts."""
BINARY = TypeGroup("BINARY", "BLOB")
"""Bytes, which no column has."""
NUMBER = TypeGroup(
    "NUMBER", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
    "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL",
)  # fmt: skip
"""Numbers: all estimates."""
DATETIME = TypeGroup("DATETIME", "DATE", "TIME", "TIMESTAMP", "INTERVAL")
"""Days and moments."""
BOOLEAN = TypeGroup("BOOLEAN", "BOOLEAN")
"""Truth values, which the standard does not name."""
ROWID = TypeGroup("ROWID")
"""Numbers of rows, which no column has."""

Date = dt.date
"""A day."""
Time = dt.time
"""A time of day."""
Timestamp = dt.datetime
"""A moment."""
Binary = bytes
"""Bytes."""
DateFromTicks = dt.date.fromtimestamp
"""The day of a moment."""
TimestampFromTicks = dt.datetime.fromtimestamp
"""A moment, from the seconds since 1970."""


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802  (the standard's name)
    """The time of day of a moment."""
    return dt.datetime.fromtimestamp(ticks).time()
