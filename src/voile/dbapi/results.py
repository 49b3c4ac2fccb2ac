"""What a statement gives: columns with types, rows, a tag, and what should be known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Field:
    """A column: its name, and its type as an Arrow DataType."""

    name: str
    type: Any


@dataclass(frozen=True)
class ResultSet:
    """The rows of a statement.

    `tag` says what was done as PostgreSQL does: "SELECT 5", "SET", "SHOW". `notices` say what no
    row shows: what the rows are, and what an analyst should know of the estimates.
    """

    fields: tuple[Field, ...]
    rows: pa.Table | list[tuple[Any, ...]]
    tag: str
    notices: tuple[str, ...] = ()

    def to_arrow(self) -> Any:
        """The rows as an Arrow table with the types of the fields."""
        if isinstance(self.rows, pa.Table):
            return self.rows
        arrays = [
            pa.array([row[i] for row in self.rows], field.type)
            for i, field in enumerate(self.fields)
        ]
        return pa.Table.from_arrays(arrays, names=[field.name for field in self.fields])

    def to_rows(self) -> list[tuple[Any, ...]]:
        """The rows as Python's values."""
        if not isinstance(self.rows, pa.Table):
            return self.rows
        columns = [column.to_pylist() for column in self.rows.columns]
        return list(zip(*columns, strict=True)) if columns else [()] * self.rows.num_rows


def fields_of(schema: Any) -> tuple[Field, ...]:
    """The columns of an Arrow schema."""
    return tuple(Field(field.name, field.type) for field in schema)


def table_result(table: pa.Table, *notices: str, tag: str = "") -> ResultSet:
    """An Arrow table as what a SELECT gives."""
    return ResultSet(
        fields_of(table.schema), table, tag or f"SELECT {table.num_rows}", tuple(notices)
    )


def rows_result(
    fields: Sequence[Field], rows: Sequence[tuple[Any, ...]], *notices: str, tag: str = ""
) -> ResultSet:
    """Rows of Python's values as what a SELECT gives."""
    return ResultSet(tuple(fields), list(rows), tag or f"SELECT {len(rows)}", tuple(notices))


def nothing(tag: str, *notices: str) -> ResultSet:
    """What a statement without rows gives."""
    return ResultSet((), [], tag, tuple(notices))


def sql_name(kind: Any) -> str:
    """What SQL calls an Arrow type."""
    if kind in NAMES:
        return NAMES[kind]
    sorts = (
        (pa.types.is_timestamp, "TIMESTAMP"), (pa.types.is_time, "TIME"),
        (pa.types.is_large_string, "VARCHAR"), (pa.types.is_dictionary, "VARCHAR"),
        (pa.types.is_interval, "INTERVAL"), (pa.types.is_duration, "INTERVAL"),
    )  # fmt: skip
    for belongs, name in sorts:
        if belongs(kind):
            return name
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"{sql_name(kind.value_type)}[]"
    return str(kind).upper()


NAMES: dict[Any, str] = {
    pa.string(): "VARCHAR", pa.bool_(): "BOOLEAN", pa.date32(): "DATE", pa.binary(): "BLOB",
    pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INTEGER", pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT", pa.uint16(): "USMALLINT", pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT", pa.float32(): "FLOAT", pa.float64(): "DOUBLE",
}  # fmt: skip
