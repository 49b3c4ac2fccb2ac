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
BINARY = TypeGroup("BINARY", "BLOB")
NUMBER = TypeGroup(
    "NUMBER", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
    "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL",
)  # fmt: skip
DATETIME = TypeGroup("DATETIME", "DATE", "TIME", "TIMESTAMP", "INTERVAL")
BOOLEAN = TypeGroup("BOOLEAN", "BOOLEAN")
ROWID = TypeGroup("ROWID")

Date, Time, Timestamp, Binary = dt.date, dt.time, dt.datetime, bytes
DateFromTicks = dt.date.fromtimestamp
TimestampFromTicks = dt.datetime.fromtimestamp


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802  (the standard's name)
    """The time of day of a moment."""
    return dt.datetime.fromtimestamp(ticks).time()
