"""What of a release goes into a file of another program: tables, and what to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from voile.schema import Attribute


@dataclass(frozen=True)
class ExportChoice:
    """What a caller chose of what there is; a kind refuses what it does not have."""

    tables: bool = False
    """Noisy tables with their errors, in place of synthetic rows."""
    noisy_rows: bool = False
    """The rows of a noisy view, most of which are nobody's."""
    number: int | None = None
    """How many synthetic rows."""


@dataclass(frozen=True)
class ExportTable:
    """A table that a release shows."""

    name: str
    columns: Any
    """The Arrow schema of its parts."""
    parts: Iterable[Any]
    """Its rows, some at a time."""
    about: str
    """What a row is, and what must not be done with it."""
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    """Of columns that are the schema's as they are: what values they may have."""


def attributes_of(columns: Any, attributes: Iterable[Attribute]) -> dict[str, Attribute]:
    """The attributes whose columns are among these with the type of their values."""
    from voile.engines.encode import column_type  # noqa: PLC0415  (most releases are not exported)

    known = {attribute.name: attribute for attribute in attributes}
    return {
        column.name: known[column.name]
        for column in columns
        if column.name in known and column.type == column_type(known[column.name])
    }


def marked(rows: Any, name: str) -> Any:
    """Rows with a column that is true in all of them."""
    return rows.append_column(
        pa.field(name, pa.bool_(), nullable=False), pa.repeat(pa.scalar(True), rows.num_rows)
    )


def stacked_columns(attributes: Sequence[Attribute], table: str, figures: Sequence[Any]) -> Any:
    """The columns of tables that stand one below the other; those of other tables are NULL."""
    from voile.engines.encode import column_type  # noqa: PLC0415

    listed = [pa.field(a.name, column_type(a)) for a in attributes]
    return pa.schema([pa.field(table, pa.string(), nullable=False), *listed, *figures])


def stacked(columns: Any, title: str, values: Mapping[str, Any], rows: int) -> Any:
    """One of these tables: what it lacks is NULL."""
    first = columns.field(0)
    found = {first.name: pa.repeat(pa.scalar(title), rows)}
    for column in columns:
        if column.name != first.name:
            given = values.get(column.name)
            found[column.name] = pa.nulls(rows, column.type) if given is None else given
    return pa.table(found).select(columns.names).cast(columns)
