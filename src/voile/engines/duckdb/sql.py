"""SQL texts and types that reading tables and counting releases share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from voile.query.predicate import Expression, Predicate, folded
from voile.query.quoting import literal
from voile.query.rows import Flags, Key, Shifted, WeightedTerm
from voile.query.value_types import ValueKind, ValueType
from voile.schema import Attribute, Bins, Interval, Kind, Range, Values

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


def value_type(name: str) -> ValueType:
    """Our type for one of DuckDB's, by the name that it has there."""
    base = name.split("(", maxsplit=1)[0].removesuffix(" WITH TIME ZONE")
    kind = ValueKind.OTHER if name.endswith("]") else KINDS.get(base, ValueKind.OTHER)
    return ValueType(kind, name)


def kind_of(sql_type: str) -> Kind | None:
    """The kind of attribute that a DuckDB type makes, if any."""
    return ATTRIBUTES.get(value_type(sql_type).kind)


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


# ----------------------------------------------------------------------
# bound trees as SQL of DuckDB: the only place where a query becomes text again
# Another engine renders the same trees in its own dialect, for the most part by sqlglot.


@lru_cache(maxsize=4096)
def expression_sql(expression: Expression) -> str:
    """An expression of one row, in DuckDB's dialect."""
    from sqlglot.dialects.duckdb import DuckDB  # noqa: PLC0415  (only queries need sqlglot)
    from sqlglot.errors import ErrorLevel  # noqa: PLC0415

    return expression.node.sql(DuckDB, comments=False, unsupported_level=ErrorLevel.IGNORE)


def guarded(expression: Expression) -> str:
    """NULL where the expression cannot be computed; DuckDB has no such guard for subqueries."""
    sql = expression_sql(expression)
    return f"({sql})" if expression.subqueries else f"TRY({sql})"


def condition_sql(predicate: Predicate | None) -> str:
    """A condition on rows; an atom that cannot be computed on a row is not true there."""
    if predicate is None:
        return "TRUE"
    return folded(predicate, guarded, _all_of, _any_of)


def _all_of(parts: Sequence[str]) -> str:
    return f"({' AND '.join(parts)})" if parts else "TRUE"


def _any_of(parts: Sequence[str]) -> str:
    return f"({' OR '.join(parts)})" if parts else "FALSE"


def sum_sql(summed: WeightedTerm) -> str:
    """The aggregate over rows that a term stands for, each row times its weight."""
    term, weight = summed.term, summed.weight
    only = f" FILTER (WHERE {condition_sql(term.predicate)})" if term.predicate else ""
    if not term.values and not weight:
        return f"count(*){only}"
    factors = [as_double(value) for value in term.values]
    return f"coalesce(sum({' * '.join([*factors, weight] if weight else factors)}){only}, 0)"


def key_sql(key: Key) -> str:
    """What rows are grouped by."""
    return flags_sql(key) if isinstance(key, Flags) else guarded(key)


def flags_sql(flags: Flags) -> str:
    conditions = [f"({guarded(atom)}) IS TRUE" for atom in flags.conditions]
    if flags.value is not None:
        conditions.append(f"isfinite({as_double(flags.value)}) IS TRUE")
    bits = [f"(({condition})::BIGINT << {i})" for i, condition in enumerate(conditions)]
    return " | ".join(bits) or "0::BIGINT"


def product_sql(factors: Sequence[Shifted]) -> str:
    """The sum over rows of a product of shifted values; of none, the number of rows."""
    shifted = [f"({as_double(f.value)} - ({f.centre!r})::DOUBLE)" for f in factors]
    return f"coalesce(sum({' * '.join(shifted)}), 0)" if shifted else "count(*)"


def as_double(value: Expression) -> str:
    return f"CAST({guarded(value)} AS DOUBLE)"
