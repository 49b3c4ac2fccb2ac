"""Expressions on the public domain, evaluated by DuckDB.

Small attributes share one padded table, so that conditions on any number of them cost one call:
a call takes a few tenths of a millisecond, an expression on a thousand values next to nothing.
"""

from __future__ import annotations

import contextlib
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrow import arrow_array
from voile.engines.duckdb.rendering import expression_sql, guarded
from voile.engines.duckdb.sql import first_line
from voile.engines.encode import computed_values, domain_array, is_computed
from voile.errors import QueryError
from voile.query.predicate import ROW, Expression
from voile.query.quoting import quote_identifier
from voile.schema import Schema

CHUNK = 2**20
"""Tuples of a product that are evaluated at a time."""
PADDED = (2**11, 2**16)
"""Rows of the shared tables: one vector of DuckDB's, and the largest attribute that shares one."""
CACHE = 2**28
"""Bytes of evaluated expressions that are kept."""
FAILURES = 64
"""Parts of a table that are tried by themselves where an expression fails in spite of TRY."""
INCOMING = "incoming tuples"
FINAL = (duckdb.BinderException, duckdb.InterruptException)
"""Errors that no smaller part would escape."""
NATIVE = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"}
"""Types that NumPy and DuckDB share: fetched that way, they come in half the time."""


class Domain:
    """Evaluates expressions on a schema's domains; someone else looks after the connection."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, schema: Schema, *, strict: bool = False
    ) -> None:
        """`strict` refuses what fails on some tuple in spite of TRY, where it else is NULL."""
        self._con = connection
        self._strict = strict
        with contextlib.suppress(duckdb.Error):  # where the configuration is locked
            # It would compute what several TRY have in common outside of them, where it fails.
            connection.execute("SET disabled_optimizers = 'common_subexpressions'")
        self._schema = schema
        self._tables: dict[int, str] = {}
        self._columns: dict[str, Any] = {}
        self._kept: OrderedDict[Expression, Any] = OrderedDict()
        self._bytes = 0

    def evaluate(self, requests: Sequence[Expression]) -> list[pa.Array]:
        """Each expression on the product of its attributes' domains, row-major.

        What cannot be computed is NULL.
        """
        found: dict[Expression, Any] = {e: self._kept[e] for e in requests if e in self._kept}
        shared: dict[int, list[Expression]] = {}
        for expression in dict.fromkeys(requests):
            if expression in found:
                self._kept.move_to_end(expression)
            elif rows := self._shared_rows(expression):
                shared.setdefault(rows, []).append(expression)
            else:
                found[expression] = self._on_product(expression)
        for rows, expressions in shared.items():
            table = self._padded(rows, expressions)
            columns = self._run(expressions, table, rows)
            for expression, column in zip(expressions, columns, strict=True):
                found[expression] = column.slice(0, self._size(expression.attributes))
        for expression, column in found.items():
            self._keep(expression, column)
        return [found[expression] for expression in requests]

    def sample(
        self,
        attributes: Sequence[str],
        requests: Sequence[Expression],
        codes: Sequence[npt.NDArray[np.int64]],
    ) -> list[pa.Array]:
        """Each expression on tuples of the product, given by their codes."""
        count = len(codes[0]) if codes else 1
        parts: list[list[Any]] = [[] for _ in requests]
        for start in range(0, max(count, 1), CHUNK):
            end = min(start + CHUNK, count)
            some = [c[start:end] for c in codes]
            for part, column in zip(
                parts, self._on_codes(attributes, requests, some, end - start), strict=True
            ):
                part.append(column)
        return [joined(part) for part in parts]

    def _on_product(self, expression: Expression) -> Any:
        shape = tuple(self._schema[name].size for name in expression.attributes)
        size = math.prod(shape)
        parts = []
        for start in range(0, size, CHUNK):
            places = np.arange(start, min(start + CHUNK, size))
            codes = np.unravel_index(places, shape) if shape else ()
            parts += self._on_codes(expression.attributes, [expression], codes, len(places))
        return joined(parts)

    def _on_codes(
        self,
        attributes: Sequence[str],
        requests: Sequence[Expression],
        codes: Sequence[npt.NDArray[np.int64]],
        count: int,
    ) -> list[Any]:
        if not requests:
            return []
        if not attributes:
            columns = self._run(requests, "(SELECT 1)", 1)
            return [pa.concat_arrays([c] * count) if count != 1 else c for c in columns]
        values = [self._values(name, c) for name, c in zip(attributes, codes, strict=True)]
        with self._incoming(pa.table(values, names=list(attributes)), requests):
            return self._run(requests, quote_identifier(INCOMING), count)

    @contextlib.contextmanager
    def _incoming(self, table: pa.Table, requests: Sequence[Expression]) -> Iterator[None]:
        """The table as INCOMING; an interruption here is one of these expressions, as in a run."""
        try:
            self._con.register(INCOMING, table)
            try:
                yield
            finally:
                self._con.unregister(INCOMING)
        except duckdb.InterruptException as error:
            raise uncomputable(requests, error) from None

    def _values(self, name: str, codes: npt.NDArray[np.int64]) -> Any:
        attribute = self._schema[name]
        if is_computed(attribute):
            return computed_values(attribute, codes)
        if name not in self._columns:
            self._columns[name] = domain_array(attribute)
        return self._columns[name].take(arrow_array(codes))

    def _size(self, attributes: Sequence[str]) -> int:
        return math.prod(self._schema[name].size for name in attributes)

    def _shared_rows(self, expression: Expression) -> int:
        """How many rows the shared table has that this expression is evaluated on; 0 for none."""
        if len(expression.attributes) > 1 or expression.subqueries:
            return 0
        size = self._size(expression.attributes)
        return next((rows for rows in PADDED if size <= rows), 0)

    def _padded(self, rows: int, requests: Sequence[Expression]) -> str:
        """A table with a column for each attribute of at most so many values, the last repeated."""
        if rows not in self._tables:
            table = quote_identifier(f"domains up to {rows}")
            names = [a.name for a in self._schema if a.size <= rows]
            columns = [
                self._values(n, np.minimum(np.arange(rows), self._schema[n].size - 1))
                for n in names
            ] or [arrow_array(np.zeros(rows, np.int8))]
            source = quote_identifier(INCOMING)
            with self._incoming(pa.table(columns, names=names or ["nothing"]), requests):
                self._con.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * FROM {source}")
            self._tables[rows] = table
        return self._tables[rows]

    def _run(self, requests: Sequence[Expression], table: str, count: int) -> list[Any]:
        """The expressions on every row of a table, in its order."""
        try:
            columns = self._fetch(self._select(requests, table))
        except duckdb.Error as error:
            if self._strict or isinstance(error, FINAL) or len(requests) == count == 1:
                raise uncomputable(requests, error) from None
            columns = [self._in_parts(e, table, 0, count, [FAILURES]) for e in requests]
        if columns and len(columns[0]) != count:
            wrong = f"has {len(columns[0])} values for {count} tuples"
            raise QueryError(f"{expression_sql(requests[0])} {wrong}")
        return columns

    def _select(self, requests: Sequence[Expression], table: str) -> str:
        selected = ", ".join(f"{guarded(e)} AS c{i}" for i, e in enumerate(requests))
        if not any(e.subqueries for e in requests):
            return f"SELECT {selected} FROM {self._from(table)}"
        # A join with what the subquery selects need not keep the rows in order.
        place = "row_number() OVER () AS place"
        numbered = self._from(f"(SELECT *, {place} FROM {table})")
        return f"SELECT {selected} FROM {numbered} ORDER BY place"

    def _in_parts(
        self, expression: Expression, table: str, start: int, count: int, left: list[int]
    ) -> Any:
        """One expression, the rows halved until only those that fail are left, which are NULL.

        TRY should see to that, but what an expression has twice is computed outside of it.
        """
        rows = f"(SELECT * FROM {table} LIMIT {count} OFFSET {start})"
        left[0] -= 1
        try:
            return self._fetch(self._select([expression], rows))[0]
        except duckdb.Error as error:
            if left[0] < 0 or expression.subqueries or isinstance(error, FINAL):
                raise uncomputable([expression], error) from None
        if count == 1:
            return pa.nulls(1)
        half = count // 2
        return joined(
            [
                self._in_parts(expression, table, start, half, left),
                self._in_parts(expression, table, start + half, count - half, left),
            ]
        )

    def _from(self, table: str) -> str:
        """What the expressions' names refer to."""
        return f"{table} AS {quote_identifier(ROW)}"

    def _fetch(self, sql: str) -> list[Any]:
        done = self._con.execute(sql)
        if all(str(column[1]) in NATIVE for column in done.description or ()):
            return [from_numpy(column) for column in done.fetchnumpy().values()]
        self._con.abort()  # types cost no rows yet, and Arrow has its own way to fetch them
        table = self._con.sql(sql).to_arrow_table()
        return [joined(column.chunks) for column in table.columns]

    def _keep(self, expression: Expression, column: Any) -> None:
        if expression not in self._kept:
            self._kept[expression] = column
            self._bytes += column.nbytes
        while self._bytes > CACHE and self._kept:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= dropped.nbytes


def from_numpy(column: Any) -> Any:
    """A column that DuckDB gave to NumPy, as Arrow."""
    if isinstance(column, np.ma.MaskedArray):
        return arrow_array(column.data, np.ma.getmaskarray(column))
    return arrow_array(column)


def joined(parts: list[Any]) -> Any:
    """Parts of one column as a whole; parts of NULLs alone take the type of the others."""
    if len(parts) == 1:
        return parts[0]
    known = next((part.type for part in parts if not pa.types.is_null(part.type)), pa.null())
    return pa.concat_arrays([part.cast(known) for part in parts]) if parts else pa.nulls(0)


def uncomputable(requests: Sequence[Expression], error: duckdb.Error) -> QueryError:
    """The error for expressions that fail on the domain."""
    listed = " and ".join(map(expression_sql, requests))
    return QueryError(f"{listed} cannot be computed on the domain: {first_line(error)}")
