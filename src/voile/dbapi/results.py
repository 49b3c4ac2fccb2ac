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
