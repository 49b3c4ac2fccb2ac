"""A release's rows on a cluster: grouped there, and summed here.

Spark computes no expression: its functions are not quite DuckDB's, and an estimate must not depend
on who counts. It groups rows by the columns that a question reads; the different combinations,
each with its number of rows, come here (see voile.engines.duckdb.weighted).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrays import Ints
from voile.arrow import numpy_array
from voile.engines.duckdb.weighted import WeightedRows
from voile.engines.encode import column_type
from voile.engines.rows import ReleaseRows
from voile.engines.spark.row_jobs import COUNT, PLACE, CountTuples, EncodeRows
from voile.engines.spark.session import Cluster, Frame, cluster_at, said
from voile.errors import QueryError, ReleaseError, TableError, UsageError
from voile.query.predicate import Expression, Predicate
from voile.query.rows import HISTORY, Key, RowSums, ShiftedValue, WeightedTerm
from voile.query.value_types import ValueType
from voile.schema import Attribute, Schema, TupleIndex, Values

MOST = 5_000_000
"""Combinations that are brought here for one question."""
TUPLES = 10**6
"""Tuples that are looked for at a time."""
LARGEST_LIMIT = 2**31 - 1
PATTERN = "*?[]{}\\"
"""Characters by which Spark takes a path for a pattern: it would read other files, or none."""
TYPES = {
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.date32(): "date",
}
"""Spark's names of the types that columns have."""
AS_WRITTEN = {"mergeSchema": "false", "recursiveFileLookup": "true",
              "datetimeRebaseMode": "CORRECTED"}  # fmt: skip
"""A file is its own columns and rows, whatever the folders around it are called."""


class SparkRows(ReleaseRows):
    """The rows of a release that a cluster reads, and its domain, which is computed here."""

    def __init__(
        self,
        cluster: Cluster,
        parts: Sequence[str],
        schema: Schema,
        scores: pa.Table | None = None,
        beside: pa.Table | None = None,
        *,
        rows: int | None = None,
    ) -> None:
        """`parts` are paths or URLs that the executors read; of no part there are no rows.

        `scores` and `beside` are as for every engine. `rows` is how many the parts have, where
        that is known: what the cluster counts must come to as many.
        """
        self.schema, self._cluster, self._stated = schema, cluster, rows
        self._held = WeightedRows(self._grouped, schema, scores, beside)
        self.scored, self.domain = self._held.scored, self._held.domain
        columns = {a.name: column_type(a) for a in schema}
        self._columns = columns if scores is None else columns | {HISTORY: pa.string()}
        self._frame = self._opened(list(parts)) if parts else None

    def _opened(self, parts: list[str]) -> Frame:
        for part in parts:
            check_plain(part)
        with counting():
            reader = self._cluster.session.read
            for name, value in AS_WRITTEN.items():
                reader = reader.option(name, value)
            frame = said(reader.parquet)(*parts)
            fields = said(lambda: frame.schema)().fields
        found = {field.name: field.dataType.simpleString() for field in fields}
        if not found:  # Sail passes over files that are not there
            raise ReleaseError(f"the cluster finds no rows at {parts[0]!r}", hint=REACHED)
        for name, kind in self._columns.items():
            if found.get(name) != TYPES[kind]:
                has = f"has {found[name]}s" if name in found else "is not there"
                raise ReleaseError(
                    f"the release cannot be counted: column {name!r} {has}, not {TYPES[kind]}s",
                    hint="try `voile verify`",
                )
        return frame.select(*map(quoted, self._columns))

    # ------------------------------------------------------------------ what is computed here

    def types(self, expressions: Sequence[Expression]) -> list[ValueType]:
        """The type of each expression of a row; what does not fit the table is refused."""
        return self._held.types(expressions)

    def cuts_a_bin(self, expression: Expression) -> bool:
        """Whether an expression of binned attributes differs at the ends of a bin."""
        return self._held.cuts_a_bin(expression)

    def on_tuples(self, expressions: Sequence[Expression], tuples: pa.Table) -> list[pa.Array]:
        """Each expression on tuples that are given by their values, also within bins."""
        return self._held.on_tuples(expressions, tuples)

    def add_table(self, name: str, table: pa.Table) -> tuple[str, ...]:
        """Put a table of the analyst's own beside the rows; the names of its columns."""
        return self._held.add_table(name, table)

    def interrupt(self) -> None:
        """End what another thread is computing here or on the cluster, with an error for it."""
        self._held.interrupt()
        with suppress(Exception):  # a server need not know how
            self._cluster.session.interruptAll()

    def sums(
        self, where: Predicate | None, keys: Sequence[Expression], sums: Sequence[WeightedTerm]
    ) -> RowSums:
        """Sums over the rows that pass, for each combination of keys that occurs."""
        return self._held.sums(where, keys, sums)

    def histogram(
        self, keys: Sequence[Key], products: Sequence[Sequence[ShiftedValue]]
    ) -> pa.Table:
        """Sums of products over all rows, by keys: columns k0, k1, … and s0, s1, …"""
        return self._held.histogram(keys, products)

    # ------------------------------------------------------------------ combinations

    def _grouped(self, names: tuple[str, ...], copies: str) -> pa.Table:
        """The combinations of some columns that occur, and how many rows have each."""
        fields = [pa.field(name, self._columns[name]) for name in names]
        wanted = pa.schema([*fields, pa.field(copies, pa.int64())])
        if self._frame is None:
            return wanted.empty_table()
        with counting():
            if not names:
                total = said(self._frame.count)()
                found = pa.table([pa.array([total] if total else [], pa.int64())], [copies])
            else:
                found = self._combinations(self._frame, names, copies).cast(wanted)
        total = pc.sum(found[copies]).as_py() or 0
        if self._stated is not None and total != self._stated:
            raise ReleaseError(
                f"the cluster counts {total:,} rows, and the release states {self._stated:,}",
                hint="open the release anew: its files may have changed",
            )
        return signed_zeros(found, self.schema)

    def _combinations(self, frame: Frame, names: tuple[str, ...], copies: str) -> pa.Table:
        from pyspark.sql.connect import functions as f  # noqa: PLC0415  (only with a cluster)

        grouped = frame.groupBy(*map(quoted, names)).agg(f.count(f.lit(1)).alias(copies))
        sizes = [math.inf if name == HISTORY else self.schema[name].size for name in names]
        most = math.prod(sizes) if self._stated is None else min(math.prod(sizes), self._stated)
        if most > MOST:
            check_few(names, said(grouped.count)())
        parts, seen = [], 0
        for part in self._cluster.rows(grouped):
            parts.append(part)
            seen += part.num_rows
            check_few(names, seen, at_least=True)
        empty = pa.table({name: pa.array([], self._columns.get(name, pa.int64()))
                          for name in (*names, copies)})  # fmt: skip
        return pa.concat_tables(parts) if parts else empty

    # ------------------------------------------------------------------ all rows

    @property
    def _encoding(self) -> EncodeRows:
        # Of a release's rows, no value stands for those that the domain does not list.
        return EncodeRows(tuple(replace(attribute, other=None) for attribute in self.schema))

    def _numbered(self, frame: Frame) -> Frame:
        """The schema's columns by number: Spark hands names with dots to no job."""
        names = self.schema.names
        return frame.select(*map(quoted, names)).toDF(*(f"c{i}" for i in range(len(names))))

    def coded(self) -> Iterator[list[Ints]]:
        """Every row's place in each attribute's domain, a batch at a time, in no order.

        Executors encode: what travels are numbers, and not texts.
        """
        if self._frame is None:
            return
        job = self._encoding
        seen = 0
        with counting():
            rows = self._numbered(self._frame)
            for part in self._cluster.rows(self._cluster.run(rows, job, job.output)):
                seen += part.num_rows
                yield [numpy_array(column) for column in part.columns]
        if self._stated is not None and seen != self._stated:
            raise ReleaseError(
                f"the cluster reads {seen:,} rows, and the release states {self._stated:,}",
                hint="open the release anew: its files may have changed",
            )

    def counts(self, codes: Sequence[npt.NDArray[Any]]) -> Ints:
        """How many rows are each of these tuples.

        codes[j][i] is the place of tuple i in the domain of attribute j.
        """
        index = TupleIndex(self.schema.sizes)
        wanted, place = np.unique(index.encode(codes), return_inverse=True)
        found = np.zeros(len(wanted), np.int64)
        if self._frame is None or not len(wanted):
            return found[place]
        rows = self._numbered(self._frame)
        for start in range(0, len(wanted), TUPLES):
            job = CountTuples(self._encoding, wanted[start : start + TUPLES])
            with counting():
                some = self._cluster.table(self._cluster.run(rows, job, job.output))
            np.add.at(found, numpy_array(some[PLACE]) + start, numpy_array(some[COUNT]))
        return found[place]

    def outside(self) -> str | None:
        """The first attribute that has a row with a value outside its domain, if any."""
        return next((a.name for a in self.schema if self._has_foreign(a)), None)

    def _has_foreign(self, attribute: Attribute) -> bool:
        """Look at each different value once; of more than the domain has, one is not in it."""
        if self._frame is None:
            return False
        seen = 0
        with counting():
            different = self._frame.select(quoted(attribute.name)).distinct()
            if attribute.size < LARGEST_LIMIT:
                different = different.limit(attribute.size + 1)
            for part in self._cluster.rows(different):
                seen += part.num_rows
                wanted = pa.schema([pa.field(attribute.name, self._columns[attribute.name])])
                values = signed_zeros(part.cast(wanted), self.schema)
                if seen > attribute.size or self._held.foreign_among(attribute, values):
                    return True
        return False


def quoted(name: str) -> str:
    """A column's name as Spark reads it."""
    return f"`{name.replace('`', '``')}`"


def check_plain(part: str) -> None:
    """Refuse a path that Spark would take for a pattern."""
    if wrong := sorted({sign for sign in part if sign in PATTERN}):
        raise UsageError(
            f"a cluster takes {part!r} for a pattern, because of {' '.join(wrong)}",
            hint="rename the folder, or count without an engine",
        )


def check_few(names: Sequence[str], count: int, *, at_least: bool = False) -> None:
    """Refuse more combinations than are brought here."""
    if count <= MOST:
        return
    listed = ", ".join("their histories" if name == HISTORY else name for name in names)
    more = "at least " if at_least else ""
    raise QueryError(
        f"{listed} have {more}{count:,} combinations in the rows, and at most {MOST:,} are brought "
        "here to be counted",
        hint="ask about fewer columns at a time, or count without an engine",
    )


def signed_zeros(found: pa.Table, schema: Schema) -> pa.Table:
    """Zeros with the sign that the domain lists: Spark makes one of both when it groups."""
    for attribute in schema:
        place = found.schema.get_field_index(attribute.name)
        if place < 0 or not lists_negative_zero(attribute):
            continue
        column = found.column(place)
        signed = pc.if_else(pc.equal(column, 0.0), -0.0, column)
        found = found.set_column(place, found.schema.field(place), signed)
    return found


def lists_negative_zero(attribute: Attribute) -> bool:
    """Whether the zero that a domain lists is -0.0."""
    listed = attribute.domain.values if isinstance(attribute.domain, Values) else ()
    return any(isinstance(v, float) and v == 0 and math.copysign(1, v) < 0 for v in listed)


REACHED = "put the release where the executors read it: an object store, or a folder they share"


@contextmanager
def counting() -> Iterator[None]:
    """What a cluster refuses of a release's files is an error of the release."""
    try:
        yield
    except TableError as error:
        hint = REACHED if "PATH_NOT_FOUND" in error.message else "try `voile verify`"
        raise ReleaseError(f"the release cannot be counted: {error.message}", hint=hint) from None


# ---------------------------------------------------------------------- the engine


@dataclass(frozen=True)
class ClusterEngine:
    """Counts the rows of releases on a cluster, where they lie."""

    cluster: Cluster

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterEngine) and other.cluster.session is self.cluster.session

    def __hash__(self) -> int:
        return hash(id(self.cluster.session))

    def __str__(self) -> str:
        return f"the cluster at {self.cluster.address}"

    def open_rows(
        self,
        parts: Sequence[str],
        schema: Schema,
        *,
        scores: pa.Table | None = None,
        beside: pa.Table | None = None,
        rows: int | None = None,
    ) -> SparkRows:
        """A release's rows, in Parquet files that the executors read."""
        return SparkRows(self.cluster, parts, schema, scores, beside, rows=rows)

    def run(self, tasks: int, job: Any, output: pa.Schema) -> pa.Table:
        """What a job makes of the numbers 0, 1, …, which are dealt out to the executors."""
        numbers = self.cluster.session.range(0, tasks, 1, tasks)
        return self.cluster.table(self.cluster.run(numbers, job, output))


def engine_at(given: object) -> ClusterEngine:
    """The engine that a caller means: a cluster, a session of Spark Connect, or an address."""
    if isinstance(given, ClusterEngine):
        return given
    if isinstance(given, Cluster):
        return ClusterEngine(given)
    if isinstance(given, str):
        return ClusterEngine(cluster_at(given, private=False))  # what is published may be read
    if type(given).__module__.startswith("pyspark.sql.connect"):
        with suppress(AttributeError):
            return ClusterEngine(Cluster.of_frame(given.range(1)))  # type: ignore[attr-defined]
    raise UsageError(
        f"a {type(given).__name__} does not count rows",
        hint='give an address, "local" or "sc://HOST:PORT", or a session of Spark Connect: '
        'SparkSession.builder.remote("sc://…").getOrCreate()',
    )
