"""Tables as SQL that makes and fills them: statements that any database takes, or one's own.

Standard SQL has no type without a length for texts that every database knows, so VARCHAR has one.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from voile.export.tables import Place, PlacedTable, Written, checked_rows, parts_of
from voile.kinds.exported import ExportTable
from voile.query.quoting import quote_identifier, quote_literal

AT_ONCE = 500
"""Rows of an INSERT."""
LONGEST = 4000
"""Of a VARCHAR that every database has, in characters; twice the longest text, at least 20."""
TYPES: dict[str, dict[str, str]] = {
    "standard": {"whole": "BIGINT", "number": "DOUBLE PRECISION", "truth": "BOOLEAN",
                 "day": "DATE", "text": "VARCHAR"},
    "duckdb": {"whole": "BIGINT", "number": "DOUBLE", "truth": "BOOLEAN", "day": "DATE",
               "text": "VARCHAR"},
    "sqlite": {"whole": "INTEGER", "number": "REAL", "truth": "INTEGER", "day": "TEXT",
               "text": "TEXT"},
}  # fmt: skip
ROW = "\n  ("
"""What every row begins with, and no text does: line feeds in texts are followed by no such."""


def write_sql(placed: Sequence[PlacedTable], place: Place, text: str, dialect: str) -> Written:
    """All tables in one file, with the words in comments on top."""
    beside, rows = place(placed[0].path), 0
    with beside.open("w", encoding="utf-8", newline="\n") as file:
        for line in text.splitlines():
            file.write(f"-- {line}".rstrip() + "\n")
        file.write("BEGIN;\n" if dialect != "standard" else "")
        for one in placed:
            parts = list(parts_of(one.table))
            file.write(create_table(one.table, parts, dialect))
            for statement, count in inserts(one.table, parts, dialect):
                file.write(statement)
                rows += count
        file.write("COMMIT;\n" if dialect != "standard" else "")
        written = file.tell()
    checked_rows(placed[0].path, written, beside.stat().st_size)
    return rows, [], 0


def kind_of(type_: Any) -> str:
    """What a column holds, as SQL sees it."""
    if pa.types.is_boolean(type_):
        return "truth"
    if pa.types.is_integer(type_):
        return "whole"
    if pa.types.is_floating(type_):
        return "number"
    return "day" if pa.types.is_date(type_) else "text"


def create_table(table: ExportTable, parts: Sequence[Any], dialect: str) -> str:
    """The statement that makes a table."""
    columns = []
    for column in table.columns:
        word = TYPES[dialect][kind_of(column.type)]
        if word == "VARCHAR" and dialect == "standard":
            word += f"({length(parts, column.name)})"
        columns.append(
            f"{quote_identifier(column.name)} {word}{'' if column.nullable else ' NOT NULL'}"
        )
    listed = ",\n  ".join(columns)
    return f"CREATE TABLE {quote_identifier(table.name)} (\n  {listed}\n);\n"


def length(parts: Sequence[Any], name: str) -> int:
    """Of texts of a column, with room to spare."""
    longest = max((pc.max(pc.utf8_length(p[name].cast(pa.string()))).as_py() or 0 for p in parts),
                  default=0)  # fmt: skip
    return max(20, min(LONGEST, 2 * longest), longest)


def inserts(table: ExportTable, parts: Sequence[Any], dialect: str) -> Iterator[tuple[str, int]]:
    """Statements that fill a table, with the rows of each."""
    names = ", ".join(map(quote_identifier, table.columns.names))
    head = f"INSERT INTO {quote_identifier(table.name)} ({names}) VALUES"
    spell = [speller(kind_of(column.type), dialect) for column in table.columns]
    for part in parts:
        for batch in part.to_batches(max_chunksize=AT_ONCE):
            if not batch.num_rows:
                continue
            columns = [
                ["NULL" if v is None else f(v) for v in column.to_pylist()]
                for column, f in zip(batch.columns, spell, strict=True)
            ]
            values = [f"{ROW}{', '.join(row)})" for row in zip(*columns, strict=True)]
            yield f"{head}{','.join(values)};\n", batch.num_rows


def speller(kind: str, dialect: str) -> Callable[[Any], str]:
    """How a value of a column is written."""
    if kind == "truth":
        return (lambda v: str(int(v))) if dialect == "sqlite" else (lambda v: str(v).upper())
    if kind == "day":
        word = "" if dialect == "sqlite" else "DATE "
        return lambda v: f"{word}'{as_day(v)}'"
    if kind == "number":
        return spelled_number
    return str if kind == "whole" else lambda v: quote_literal(str(v))


def as_day(value: dt.date) -> str:
    """A day with a year of four digits."""
    return value.isoformat()


def spelled_number(value: float) -> str:
    """A number that is read again as the same; what is none is NULL."""
    return repr(float(value)) if math.isfinite(value) else "NULL"
