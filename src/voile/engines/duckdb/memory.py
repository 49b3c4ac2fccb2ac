"""Columns of a table in memory that are read as they lie there, without a query.

Texts that repeat are numbered once, and from then on moved about as numbers. What is read is what
DuckDB would give of the same table: columns of other types than these are left to it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrays import Bools, Ints
from voile.arrow import arrow_array, numpy_array
from voile.client.domains import EPOCH, Value
from voile.engines.table import RowBatch
from voile.schema import Kind, Schema
from voile.schema.index import code_type

TYPES: dict[Any, str] = {
    pa.string(): "VARCHAR", pa.large_string(): "VARCHAR", pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE", pa.float64(): "DOUBLE",
    pa.int8(): "TINYINT", pa.int16(): "SMALLINT", pa.int32(): "INTEGER", pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT", pa.uint16(): "USMALLINT", pa.uint32(): "UINTEGER",
}  # fmt: skip
"""Arrow's types, and DuckDB's names of them, in which values are the same in both."""
ARROW: dict[Kind, Any] = {
    "categorical": pa.string(), "integer": pa.int64(), "numeric": pa.float64(),
    "boolean": pa.bool_(), "date": pa.date32(),
}  # fmt: skip
"""The type that a kind's values are read as."""
LOOKED_AT = 2**12
"""Rows that tell whether texts repeat."""
MOST_BYTES = 2**30
"""Of a column: Arrow's texts have places of 31 bits."""
MOST_LISTED = 2**16
"""Different values that are counted here; columns with more are DuckDB's to look at."""


class MemoryColumns:
    """The columns of a table in memory, each numbered when it is first asked for."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.types = {field.name: duckdb_name(field.type) for field in table.schema}
        self._encoded: dict[str, Any] = {}

    @classmethod
    def of(cls, source: object) -> MemoryColumns | None:
        """Those of a data frame or an Arrow table; None of what has to be read by DuckDB."""
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        if not isinstance(source, pa.Table) or not source.num_columns:
            return None
        known = all(duckdb_name(field.type) for field in source.schema)
        small = all(column.nbytes < MOST_BYTES for column in source.columns)
        return cls(source) if known and small else None

    def __len__(self) -> int:
        return int(self.table.num_rows)

    # ------------------------------------------------------------------ its rows

    def column(self, name: str) -> Any:
        """A column in one piece: texts that repeat as a dictionary, others as they are."""
        if name not in self._encoded:
            self._encoded[name] = encoded(self.table.column(name))
        return self._encoded[name]

    def complete(self, names: Sequence[str]) -> Bools | None:
        """Which rows have no NULL in these columns; None where all rows are so."""
        found: Bools | None = None
        for name in names:
            column = self.column(name)
            if not missing(column):
                continue
            present = numpy_array(column.is_valid())
            if pa.types.is_floating(column.type):
                present &= ~np.isnan(numpy_array(column, np.nan))
            found = present if found is None else found & present
        return found

    def rows(self, names: Sequence[str], *, drop_nulls: bool) -> tuple[pa.Table, Ints]:
        """Columns with their dictionaries, and the number of each row."""
        table = pa.table([self.column(name) for name in names], names=list(names))
        kept = self.complete(names) if drop_nulls else None
        if kept is None:
            return table, np.arange(table.num_rows)
        places = np.flatnonzero(kept)
        return table.take(arrow_array(places)), places

    def batches(self, names: Sequence[str], *, drop_nulls: bool, size: int) -> Iterator[RowBatch]:
        """Columns as DuckDB gives them, a batch at a time."""
        table, places = self.rows(names, drop_nulls=drop_nulls)
        for start in range(0, max(1, table.num_rows), size):
            some = table.slice(start, size)
            columns = [plain(column) for column in some.columns]
            yield RowBatch(pa.table(columns, names=list(names)), places[start : start + size])

    def values(self, schema: Schema, *, drop_nulls: bool, size: int) -> Iterator[pa.RecordBatch]:
        """Columns as the types of their kinds, a batch at a time; NaN is NULL."""
        table, _ = self.rows(schema.names, drop_nulls=drop_nulls)
        for start in range(0, max(1, table.num_rows), size):
            some = table.slice(start, size)
            columns = [
                typed(column, attribute.kind)
                for column, attribute in zip(some.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema.names)

    # ------------------------------------------------------------------ what it holds

    def null_counts(self, names: Sequence[str]) -> dict[str, int]:
        """Columns that have NULLs, with how many rows."""
        found = {name: missing(self.column(name)) for name in names}
        return {name: count for name, count in found.items() if count}

    def counts(self, name: str, kept: Bools | None) -> tuple[list[Value], list[int]] | None:
        """The different values in order, and the rows of each; None where they may be many."""
        column = self.column(name)
        if pa.types.is_dictionary(column.type):
            words = column.dictionary.to_pylist()
            number = numpy_array(column.indices, len(words))
            rows = np.bincount(chosen(number, kept), minlength=len(words) + 1)[:-1]
            found = sorted((words[place], int(rows[place])) for place in np.flatnonzero(rows))
            return [word for word, _ in found], [count for _, count in found]
        dates = pa.types.is_date(column.type)
        if not dates and not pa.types.is_integer(column.type):
            return None
        whole = column.cast(pa.int32()) if dates else column.cast(pa.int64())
        low, high = pc.min_max(whole).as_py().values()
        if low is None or high - low >= MOST_LISTED:
            return None
        there = numpy_array(column.is_valid()) if column.null_count else None
        both = there if kept is None else kept if there is None else there & kept
        rows = np.bincount(chosen(numpy_array(whole, low).astype(np.int64) - low, both))
        places = np.flatnonzero(rows)
        return [
            dt.date.fromordinal(int(place) + low + EPOCH) if dates else int(place) + low
            for place in places
        ], rows[places].tolist()


def duckdb_name(kind: Any) -> str:
    """DuckDB's name of a type, where its values are the same; empty for others."""
    if pa.types.is_dictionary(kind):
        return "VARCHAR" if kind.value_type in (pa.string(), pa.large_string()) else ""
    return TYPES.get(kind, "")


def chosen(numbers: npt.NDArray[Any], kept: Bools | None) -> npt.NDArray[Any]:
    """All numbers, or those of some rows."""
    return numbers if kept is None else numbers[kept]


def missing(column: Any) -> int:
    """How many values are NULL, or not a number."""
    nulls = int(column.null_count)
    if pa.types.is_floating(column.type):
        nulls += int(np.isnan(numpy_array(column)).sum())
    return nulls


def whole(column: pa.ChunkedArray) -> Any:
    """A column in one piece."""
    found = column.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        return found.chunk(0) if found.num_chunks else pa.array([], found.type)
    return found


def encoded(column: pa.ChunkedArray) -> Any:
    """Texts that repeat as a dictionary in which each is once; other columns in one piece."""
    if pa.types.is_dictionary(column.type):
        column = whole(column)
        if is_numbered(column):
            return column
        column = pa.chunked_array([column.cast(column.type.value_type)])
    if column.type not in (pa.string(), pa.large_string()):
        return whole(column)
    first = column.slice(0, LOOKED_AT)
    if 2 * len(first.unique()) <= len(first):
        found = whole(column.dictionary_encode().unify_dictionaries())
        if len(found.dictionary) <= MOST_LISTED:
            words = found.dictionary.cast(pa.string())
            narrow = pa.from_numpy_dtype(code_type(len(words) + 1))  # one more for NULL
            return pa.DictionaryArray.from_arrays(found.indices.cast(narrow), words)
    return whole(column).cast(pa.string())


def is_numbered(column: Any) -> bool:
    """Whether a dictionary is as those that are made here: each text once, and no NULL."""
    words = column.dictionary
    if words.type != pa.string() or words.null_count or len(words.unique()) < len(words):
        return False
    return bool(column.type.index_type == pa.from_numpy_dtype(code_type(len(words) + 1)))


def plain(column: pa.ChunkedArray) -> Any:
    """A column without its dictionary, as DuckDB gives it."""
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column


def typed(column: pa.ChunkedArray, kind: Kind) -> Any:
    """A column as its kind's type; NaN is NULL, and one zero of two is left."""
    found = whole(column)
    if pa.types.is_dictionary(found.type):
        return found
    if kind == "numeric":
        found = pc.add(found, 0.0)
        gone = pc.is_nan(found)
        return pc.if_else(gone, pa.scalar(None, found.type), found) if missing(found) else found
    return found.cast(ARROW[kind])
