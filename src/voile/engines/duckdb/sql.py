"""Connections, types and conditions that reading tables and counting releases share."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import duckdb

from voile.query.quoting import literal
from voile.query.value_types import ValueKind, ValueType
from voile.schema import Attribute, Bins, DayBins, Interval, Kind, Range, Values
from voile.schema.attribute import day_of

SQL: dict[Kind, str] = {
    "categorical": "VARCHAR",
    "integer": "BIGINT",
    "numeric": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
}
"""The type that a kind of attribute has."""
TYPES: dict[ValueKind, str] = {
    ValueKind.BOOLEAN: "BOOLEAN",
    ValueKind.INTEGER: "TINYINT SMALLINT INTEGER BIGINT HUGEINT "
    "UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT",
    ValueKind.NUMBER: "FLOAT DOUBLE DECIMAL",
    ValueKind.TEXT: "VARCHAR ENUM UUID",
    ValueKind.DATE: "DATE",
    ValueKind.TIME: "TIME TIME_NS",
    ValueKind.TIMESTAMP: "TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS",
    ValueKind.INTERVAL: "INTERVAL",
}
"""DuckDB's names."""
KINDS = {name: kind for kind, names in TYPES.items() for name in names.split()}
ATTRIBUTES: dict[ValueKind, Kind] = {
    ValueKind.BOOLEAN: "boolean",
    ValueKind.INTEGER: "integer",
    ValueKind.NUMBER: "numeric",
    ValueKind.TEXT: "categorical",
    ValueKind.DATE: "date",
    ValueKind.TIMESTAMP: "date",
}

Settings = dict[str, str | bool | int | float | list[str]]


def connected(
    path: Path | str = ":memory:", settings: Settings | None = None, *, read_only: bool = False
) -> duckdb.DuckDBPyConnection:
    """A connection to DuckDB with these settings, which prints nothing itself."""
    con = duckdb.connect(path, read_only=read_only, config=settings or {})
    # The progress bar of a slow query would stand before the JSON that is printed after it. In a
    # notebook without ipywidgets DuckDB draws none, and refuses to be told so.
    with suppress(duckdb.InvalidInputException):
        con.execute("SET enable_progress_bar = false")
        con.execute("SET enable_progress_bar_print = false")
    return con


def value_type(name: str) -> ValueType:
    """Our type for one of DuckDB's, by the name that it has there."""
    base = name.split("(", maxsplit=1)[0].removesuffix(" WITH TIME ZONE")
    kind = ValueKind.OTHER if name.endswith("]") else KINDS.get(base, ValueKind.OTHER)
    return ValueType(kind, name)


def kind_of(sql_type: str) -> Kind | None:
    """The kind of attribute that a DuckDB type makes, if any."""
    return ATTRIBUTES.get(value_type(sql_type).kind)


def sql_type(attribute: Attribute) -> str:
    """The type of an attribute's values: middles of bins of whole numbers are doubles."""
    if attribute.kind == "integer" and isinstance(attribute.domain, Bins):
        return SQL["numeric"]
    return SQL[attribute.kind]


def not_in_domain(attribute: Attribute, value: str) -> str:
    """True of a value that is outside the domain."""
    match attribute.domain:
        case Values(values):
            kind = SQL[attribute.kind]
            listed = ", ".join(f"CAST({literal(v)} AS {kind})" for v in values) or "NULL"
            return f"{value} NOT IN ({listed})"
        case Range(low, high):
            return f"{value} NOT BETWEEN {literal(low)} AND {literal(high)}"
        case DayBins(edges):
            first, last = day_of(edges[0]), day_of(edges[-1])
            return f"{value} NOT BETWEEN {literal(first)} AND {literal(last)}"
        case Bins(edges):
            return f"{value} NOT BETWEEN {edges[0]!r} AND {edges[-1]!r}"
        case Interval(low, high):
            return f"{value} NOT BETWEEN {low!r} AND {high!r}"


def off_grid(domain: Interval, value: str) -> str:
    """True of a number that is none of an interval's points."""
    first, stride, per = domain.first, domain.stride, domain.per
    nearest = f"round(({value} * {per}.0::DOUBLE - {first}) / {stride})"
    return f"({first} + {nearest} * {stride}) / {per}.0::DOUBLE <> {value}"


def first_line(error: Exception) -> str:
    """The first line of a message of DuckDB's."""
    return str(error).strip().splitlines()[0]
