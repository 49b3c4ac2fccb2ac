"""SQL texts and types that reading tables and counting releases share."""

from __future__ import annotations

from voile.engines.encode import SQL
from voile.query.quoting import literal
from voile.schema import Attribute, Bins, Interval, Kind, Range, Values

KINDS: dict[Kind, str] = {
    "categorical": "VARCHAR ENUM UUID",
    "integer": "TINYINT SMALLINT INTEGER BIGINT HUGEINT "
    "UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT",
    "numeric": "FLOAT DOUBLE DECIMAL",
    "boolean": "BOOLEAN",
    "date": "DATE TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS",
}


def kind_of(sql_type: str) -> Kind | None:
    """The kind of attribute that a DuckDB type makes, if any."""
    base = sql_type.split("(", maxsplit=1)[0].removesuffix(" WITH TIME ZONE")
    for kind, types in KINDS.items():
        if base in types.split() and not sql_type.endswith("]"):
            return kind
    return None


def not_in_domain(attribute: Attribute, value: str) -> str:
    match attribute.domain:
        case Values(values):
            kind = SQL[attribute.kind]
            listed = ", ".join(f"CAST({literal(v)} AS {kind})" for v in values) or "NULL"
            return f"{value} NOT IN ({listed})"
        case Range(low, high):
            return f"{value} NOT BETWEEN {literal(low)} AND {literal(high)}"
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
    return str(error).strip().splitlines()[0]
