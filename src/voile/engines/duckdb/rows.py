"""A release's rows, counted with DuckDB behind locked doors."""

from __future__ import annotations

import glob
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from voile.arrays import Ints
from voile.arrow import arrow_array, numpy_array
from voile.engines.duckdb.domain import Domain
from voile.engines.duckdb.rendering import (
    condition_sql,
    expression_sql,
    guarded,
    key_sql,
    product_sql,
    sum_sql,
)
from voile.engines.duckdb.sql import (
    connected,
    first_line,
    not_in_domain,
    off_grid,
    sql_type,
    value_type,
)
from voile.engines.encode import OUTSIDE, codes, column_type, domain_array, values_at
from voile.engines.rows import ReleaseRows, check_table_name
from voile.errors import QueryError, ReleaseError
from voile.query.predicate import ROW, Expression, Predicate, wording
from voile.query.quoting import literal, quote_identifier
from voile.query.rows import HISTORY, SCORE, SPREAD, Key, RowSums, ShiftedValue, WeightedTerm
from voile.query.value_types import ValueType
from voile.schema import Attribute, Bins, DayBins, Interval, Range, Schema
from voile.schema.attribute import day_of

BinPoint = Literal["low", "middle", "high"]
MOST_GROUPS = 10**6
REMEMBERED, REMEMBERED_GROUPS = 256, 10_000
"""Answers that are kept, and the most groups of one of them."""
HISTOGRAMS = 8
"""Histograms of all rows that are kept."""
BATCH = 2**17
"""Rows of a batch of codes."""
AS_WRITTEN = "hive_partitioning = false, union_by_name = false"
"""A file is its own columns and rows, whatever the folders around it are called."""
ROWS, SCORED = '"release rows"', '"scored rows"'
BINS_CHECKED = 10**5
"""Tuples on which a condition is tried at the ends of bins."""


class DuckRows(ReleaseRows):
    """The rows of a release, and its domain, behind a connection that can reach nothing else."""

    def __init__(
        self,
        files: Sequence[Path],
        schema: Schema,
        scores: pa.Table | None = None,
        beside: pa.Table | None = None,
        *,
        strict: bool = False,
        memory: str = "",
    ) -> None:
        """Without files there are no rows, and still the domain, `strict` or not (see Domain).

        `memory` bounds what DuckDB uses; what needs more fails.

        `scores` gives each history of a tuple (see HISTORY) its score and spread.

        `beside` are scored rows that are summed with those of the view, which score 1.
        """
        self.schema = schema
        self.scored = scores is not None or beside is not None
        self._summed = ROWS if beside is None else SCORED
        self._con = locked_connection(files, memory)
        try:
            self._create_views(files, scores, beside)
        except duckdb.Error as error:
            raise unreadable(error) from None
        self.domain = Domain(self._con, schema, strict=strict)
        self._answered: OrderedDict[str, RowSums] = OrderedDict()
        self._histograms: OrderedDict[str, pa.Table] = OrderedDict()
        self._enums: dict[str, str] = {}
        """By attribute, the type of the texts that its domain lists."""

    def _create_views(
        self, files: Sequence[Path], scores: pa.Table | None, beside: pa.Table | None
    ) -> None:
        columns = ", ".join(quote_identifier(name) for name in self.schema.names)
        rows = f"read_parquet([{escaped(files)}], {AS_WRITTEN})" if files else no_rows(self.schema)
        if scores is not None:
            self._keep("scores of histories", scores)
            columns += f", {SCORE}, {SPREAD}"
            rows += f' JOIN "scores of histories" USING ({HISTORY})'
        self._con.execute(f"CREATE VIEW {ROWS} AS SELECT {columns} FROM {rows}")
        if beside is not None:
            self._keep("rows beside", beside)
            self._con.execute(
                f"CREATE VIEW {SCORED} AS SELECT *, 1.0 AS {SCORE}, 0.0 AS {SPREAD} FROM {ROWS} "
                'UNION ALL BY NAME SELECT * FROM "rows beside"'
            )

    def add_table(self, name: str, table: pa.Table) -> tuple[str, ...]:
        """Put a table of the analyst's own beside the view; the names of its columns."""
        check_table_name(name)
        self._keep(name, table)
        return tuple(table.column_names)

    def _keep(self, name: str, table: pa.Table) -> None:
        self._con.register("incoming", table)
        self._con.execute(f"CREATE TABLE {quote_identifier(name)} AS SELECT * FROM incoming")
        self._con.unregister("incoming")

    def interrupt(self) -> None:
        """End what another thread is computing here, with an error for that one."""
        self._con.interrupt()

    def types(self, expressions: Sequence[Expression]) -> list[ValueType]:
        """The type of each expression of a row; what does not fit the table is refused."""
        listed = ", ".join(f"({expression_sql(e)})" for e in expressions)
        try:
            relation = self._con.sql(f'SELECT {listed} FROM {self._summed} AS "{ROW}" LIMIT 0')
        except duckdb.Error as error:
            if len(expressions) > 1:  # say which one
                return [kind for e in expressions for kind in self.types([e])]
            raise QueryError(
                f"{wording(expressions[0])} does not fit the table: {first_line(error)}"
            ) from None
        return [value_type(str(kind)) for kind in relation.types]

    def sums(
        self, where: Predicate | None, keys: Sequence[Expression], sums: Sequence[WeightedTerm]
    ) -> RowSums:
        """Aggregates of the rows that pass, for each combination of keys that occurs.

        The rows never change, so sums are remembered.
        """
        return self._sums_over(self._summed, where, keys, sums)

    def _sums_over(
        self,
        rows: str,
        where: Predicate | None,
        keys: Sequence[Expression],
        sums: Sequence[WeightedTerm],
        copies: str = "",
    ) -> RowSums:
        listed = ", ".join([*map(guarded, keys), *(sum_sql(one, copies) for one in sums)])
        grouped = f" GROUP BY {', '.join(str(1 + i) for i in range(len(keys)))}" if keys else ""
        most = MOST_GROUPS + 1
        passing = condition_sql(where)
        sql = f'SELECT {listed} FROM {rows} AS "{ROW}" WHERE {passing}{grouped} LIMIT {most}'
        if sql not in self._answered:
            found = self._sums(sql, len(keys), len(sums))
            if len(found.sums) > REMEMBERED_GROUPS:
                return found
            self._answered[sql] = found
            if len(self._answered) > REMEMBERED:
                self._answered.popitem(last=False)
        self._answered.move_to_end(sql)
        return self._answered[sql]

    def _sums(self, sql: str, width: int, sums: int) -> RowSums:
        try:
            rows = self._con.execute(sql).fetchall()
        except duckdb.Error as error:
            raise unanswered(error) from None
        if len(rows) > MOST_GROUPS:
            raise QueryError(
                f"GROUP BY makes more than {MOST_GROUPS:,} groups",
                hint="group by fewer columns, or by coarser ones, as in floor(age / 10)",
            )
        found = [[math.nan if v is None else v for v in row[width:]] for row in rows]
        numbers = np.array(found, dtype=np.float64).reshape(len(rows), sums)
        return RowSums(tuple([row[i] for row in rows] for i in range(width)), numbers)

    def histogram(
        self, keys: Sequence[Key], products: Sequence[Sequence[ShiftedValue]]
    ) -> pa.Table:
        """Sums of products over all rows, by the keys that occur: k0, k1, … and s0, s1, …"""
        return self._histogram_of(ROWS, keys, products)

    def _histogram_of(
        self,
        rows: str,
        keys: Sequence[Key],
        products: Sequence[Sequence[ShiftedValue]],
        copies: str = "",
    ) -> pa.Table:
        named = [f"{key_sql(key)} AS k{i}" for i, key in enumerate(keys)]
        named += [f"{product_sql(factors, copies)} AS s{i}" for i, factors in enumerate(products)]
        grouped = f" GROUP BY {', '.join(f'k{i}' for i in range(len(keys)))}" if keys else ""
        sql = f'SELECT {", ".join(named)} FROM {rows} AS "{ROW}"{grouped}'
        if sql not in self._histograms:
            try:
                self._histograms[sql] = self._con.sql(sql).to_arrow_table()
            except duckdb.Error as error:
                raise unanswered(error) from None
            if len(self._histograms) > HISTOGRAMS:
                self._histograms.popitem(last=False)
        return self._histograms[sql]

    def coded(self) -> Iterator[list[Ints]]:
        """Every row's place in each attribute's domain, a batch at a time, in the files' order."""
        try:
            listed = ", ".join(
                self._text_code(a) if a.kind == "categorical" else quote_identifier(a.name)
                for a in self.schema
            )
            for batch in self._con.sql(f"SELECT {listed} FROM {ROWS}").to_arrow_reader(BATCH):
                yield [
                    numpy_array(batch.column(i)) if a.kind == "categorical"
                    else codes(batch.column(i), a)
                    for i, a in enumerate(self.schema)
                ]  # fmt: skip
        except duckdb.Error as error:
            raise unanswered(error) from None

    def _text_code(self, attribute: Attribute) -> str:
        """The place of a text in its domain, found by DuckDB.

        A text of a dictionary is looked up once for all its rows. Were it handed out, every row of
        a batch would have a copy: of 60,000 characters, gigabytes from a file of some bytes.
        """
        column = quote_identifier(attribute.name)
        null = attribute.size - 1 if attribute.null else OUTSIDE
        found = (
            f"enum_code({self._as_listed(attribute)})::BIGINT" if attribute.domain.size else "NULL"
        )
        return f"CASE WHEN {column} IS NULL THEN {null} ELSE coalesce({found}, {OUTSIDE}) END"

    def _as_listed(self, attribute: Attribute) -> str:
        """A text as one of those that its domain lists; NULL where it is none of them."""
        if not attribute.domain.size:
            return "NULL"
        if attribute.name not in self._enums:
            name = quote_identifier(f"places of {attribute.name}")
            values = self._listed(attribute)
            self._con.execute(
                f"CREATE TYPE {name} AS ENUM (SELECT v FROM {values} AS d(v) WHERE v IS NOT NULL)"
            )
            self._con.execute(f"DROP TABLE {values}")
            self._enums[attribute.name] = name
        return f"TRY_CAST({quote_identifier(attribute.name)} AS {self._enums[attribute.name]})"

    def counts(self, codes: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
        """How many rows of the view are each of these tuples, given by the places of their values.

        codes[j][i] is the place of tuple i in the domain of attribute j.
        """
        decoded = [values_at(a, c) for a, c in zip(self.schema, codes, strict=True)]
        size = len(codes[0])
        names = [f"v{j}" for j in range(len(decoded))]
        tuples = pa.table([arrow_array(np.arange(size)), *decoded], ["place", *names])
        same = " AND ".join(
            f"r.{quote_identifier(a.name)} IS NOT DISTINCT FROM incoming.{name}"
            for a, name in zip(self.schema, names, strict=True)
        )
        sql = f"SELECT place, count(*) AS n FROM incoming JOIN {ROWS} AS r ON {same} GROUP BY place"
        found = self._with(tuples, sql)
        seen = np.zeros(size, dtype=np.int64)
        seen[numpy_array(found["place"])] = numpy_array(found["n"])
        return seen

    # ------------------------------------------------------------------ its values

    def outside(self) -> str | None:
        """The first attribute that has a row with a value outside its domain, if any.

        Each has a query of its own: DuckDB takes long to plan many conditions in one.
        """
        return next((a.name for a in self.schema if self._has_foreign(a)), None)

    def _has_foreign(self, attribute: Attribute) -> bool:
        try:
            sql = f"SELECT EXISTS (SELECT 1 FROM {ROWS} WHERE {self._foreign(attribute)})"
            return bool(self._con.execute(sql).fetchall()[0][0])
        except duckdb.Error as error:
            raise unreadable(error) from None

    def _foreign(self, attribute: Attribute) -> str:
        column = quote_identifier(attribute.name)
        if isinstance(attribute.domain, Range):
            foreign = not_in_domain(attribute, column)
        elif isinstance(attribute.domain, Interval):
            outside = not_in_domain(attribute, column)
            foreign = f"({outside} OR {off_grid(attribute.domain, column)})"
        elif attribute.kind == "categorical":
            foreign = f"{self._as_listed(attribute)} IS NULL"
        else:
            foreign = f"{column} NOT IN (SELECT v FROM {self._listed(attribute)} AS d(v) "
            foreign += "WHERE v IS NOT NULL)"
        # Of an empty list nothing is, not even NULL.
        null = f"AND {column} IS NOT NULL" if attribute.null else f"OR {column} IS NULL"
        return f"({foreign}) {null}"

    def _listed(self, attribute: Attribute) -> str:
        table = quote_identifier(f"values of {attribute.name}")
        self._con.register("incoming", pa.table({"v": domain_array(attribute)}))
        self._con.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM incoming")
        self._con.unregister("incoming")
        return table

    def cuts_a_bin(self, expression: Expression) -> bool:
        """Whether an expression of binned attributes differs at the ends of a bin."""
        read = [self.schema[name] for name in expression.attributes]
        binned = any(isinstance(a.domain, Bins) for a in read)
        if not binned or math.prod(a.size for a in read) > BINS_CHECKED:
            return False
        low, middle, high = (self._at(expression, read, point) for point in get_args(BinPoint))
        return not (low.equals(middle) and middle.equals(high))

    def on_tuples(self, expressions: Sequence[Expression], tuples: pa.Table) -> list[pa.Array]:
        """Each expression on tuples that are given by their values, also within bins."""
        listed = ", ".join(f"{guarded(e)} AS v{i}" for i, e in enumerate(expressions))
        found = self._with(tuples, f'SELECT {listed} FROM incoming AS "{ROW}"')
        return [column.combine_chunks() for column in found.columns]

    def _at(self, expression: Expression, read: list[Attribute], point: BinPoint) -> pa.Array:
        """The expression on the product of the domains, with one point standing for each bin."""
        shape = tuple(a.size for a in read)
        codes = np.unravel_index(np.arange(math.prod(shape)), shape)
        columns = [points(a, point).take(arrow_array(c)) for a, c in zip(read, codes, strict=True)]
        return self.on_tuples([expression], pa.table(columns, names=[a.name for a in read]))[0]

    def _with(self, incoming: pa.Table, sql: str) -> pa.Table:
        """What SQL gives on a table that is there for this once, by the name of incoming."""
        self._con.register("incoming", incoming)
        try:
            return self._con.sql(sql).to_arrow_table()
        except duckdb.Error as error:
            raise unanswered(error) from None
        finally:
            self._con.unregister("incoming")


def locked_connection(files: Sequence[Path], memory: str) -> duckdb.DuckDBPyConnection:
    """A connection that reaches these files and nothing else, whatever SQL gets to it."""
    con = connected(
        settings={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    )
    if memory:
        con.execute(f"SET memory_limit = {literal(memory)}")
        con.execute("SET temp_directory = ''")
    # DuckDB takes every path for a pattern, and checks it before and after expanding it.
    allowed = ", ".join([*(literal(file) for file in files), escaped(files)])
    con.execute(f"SET allowed_paths = [{allowed}]")
    con.execute("SET enable_external_access = false")
    # It would compute what several TRY have in common outside of them, where it fails.
    con.execute("SET disabled_optimizers = 'common_subexpressions'")
    con.execute("SET lock_configuration = true")
    return con


def escaped(files: Sequence[Path]) -> str:
    """The files as a list of patterns, each of which is one file."""
    return ", ".join(literal(glob.escape(str(file))) for file in files)


def points(attribute: Attribute, at: BinPoint) -> pa.Array:
    """Every value of a domain, with the lowest, middle or highest point of each bin."""
    if not isinstance(attribute.domain, Bins) or at == "middle":
        return domain_array(attribute)
    bins = attribute.domain
    ends: list[Any] = [*(bins.lows if at == "low" else bins.highs)]
    if isinstance(bins, DayBins):
        ends = [day_of(end) for end in ends]
    return pa.array([*ends, None] if attribute.null else ends, column_type(attribute))


def unanswered(error: duckdb.Error) -> QueryError | ReleaseError:
    """The error of a query that DuckDB cannot compute, or of a release that is broken."""
    line = first_line(error)
    if "More than one row returned by a subquery" in line:
        return QueryError(
            "a row of the release has more than one partner in a joined table, or a subquery "
            "gives more than one row",
            hint="make the table's keys unique, or ask with EXISTS or IN",
        )
    if isinstance(error, duckdb.IOException | duckdb.InvalidInputException):
        return unreadable(error)
    return QueryError(f"the query cannot be computed: {line}")


def unreadable(error: duckdb.Error) -> ReleaseError:
    """The error for a release that DuckDB cannot read."""
    return ReleaseError(
        f"the release cannot be counted: {first_line(error)}", hint="try `voile verify`"
    )


def no_rows(schema: Schema) -> str:
    """Columns of the schema's types, and no rows."""
    listed = ", ".join(f"CAST(NULL AS {sql_type(a)}) AS {quote_identifier(a.name)}" for a in schema)
    return f"(SELECT {listed} WHERE FALSE)"
