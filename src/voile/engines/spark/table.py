"""A steward's table on a cluster: looked at, checked and counted there.

Rows come to the driver only where a caller asks for them all, as evaluation does.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pyarrow as pa

from voile.arrays import Ints
from voile.arrow import arrow_array, numpy_array
from voile.engines.encode import ARROW
from voile.engines.jobs import (
    SUM,
    CodedJob,
    KeyCounts,
    RowJob,
    TypedJob,
    in_order,
)
from voile.engines.spark import SparkSource, without_secrets
from voile.engines.spark.session import NAMED, Cluster, Frame, cluster_at, said
from voile.engines.spark.work import (
    COLUMN_COUNTS,
    FACTS,
    FINE,
    GATHERED,
    SALT,
    TEXTS,
    VALUES,
    WRONG,
    CodedWork,
    Coder,
    ColumnFacts,
    GatherWork,
    LostCounts,
    MergeWork,
    Misfit,
    NullCounts,
    Reading,
    RoundedCounts,
    SaltRow,
    TypedRows,
    TypedWork,
    complete,
    typed_batch,
)
from voile.engines.table import CodedBatch, LimitedRows, RowBatch, Table
from voile.errors import SchemaError, TableError, UsageError, spelled
from voile.noise.subkeys import Subkeys
from voile.options.reading import ReadingKeywords, ReadingOptions
from voile.progress import Progress
from voile.schema import Attribute, Interval, Keys, Kind, Schema
from voile.schema.attribute import domain_in_words
from voile.schema.infer import LISTED_TEXTS, ColumnProfile, histogram

if TYPE_CHECKING:
    from voile.engines.spark.members import SparkMembers

KINDS: Mapping[str, Kind] = {
    "tinyint": "integer", "smallint": "integer", "int": "integer", "bigint": "integer",
    "float": "numeric", "double": "numeric", "decimal": "numeric",
    "string": "categorical", "char": "categorical", "varchar": "categorical",
    "boolean": "boolean", "date": "date", "timestamp": "date", "timestamp_ntz": "date",
}  # fmt: skip
"""By the first word of Spark's types."""
TIMES = ("timestamp", "timestamp_ntz")
AT_ONCE = 8
"""Columns that are counted in one pass by Spark itself: fifty blew up."""
MERGERS = 16
"""Tasks that put together what was gathered of all partitions."""
MOST_ROWS = 2**29
"""Rows whose keys are held by the driver: four gigabytes."""
NO_SECRETS = (
    "the server takes no artifacts, by which keys travel: what draws noise is refused there, and "
    "for the register and people who have several all rows pass this process"
)
ANSI = "spark.sql.ansi.enabled"


def quoted(name: str) -> str:
    """A column's name as Spark reads it."""
    return "`" + name.replace("`", "``") + "`"


class SparkTable(Table):
    """A table of a cluster's catalogue, files that it reads, or a data frame."""

    at_hand = False

    def __init__(self, source: object, **how: Unpack[ReadingKeywords]) -> None:
        self.reading = ReadingOptions(**how)
        if given := self.reading.model_dump(exclude_defaults=True):
            raise UsageError(
                f"{spelled(min(given))} is for text files that Voile reads itself",
                hint="the cluster reads this table: declare a view there that casts its columns",
            )
        if isinstance(source, SparkSource):
            self.cluster = cluster_at(source.address)
            self.frame = self.cluster.frame(source.what)
            self.name = name_of(source.what)
        else:
            self.frame = source
            self.cluster = Cluster.of_frame(source)
            self.cluster.address.check_private()
            self.name = "rows"
        self.cluster.prepare()  # before any row is read
        if not self.cluster.takes_secrets:
            self.notes = (NO_SECRETS,)
        self.dataset = ""
        fields = said(lambda: self.frame.schema)().fields
        self.columns = {field.name: field.dataType.simpleString() for field in fields}
        if not fields:
            raise TableError(
                f"the cluster finds no columns in {shown_source(source)!r}",
                hint=NAMED,
            )
        if len({name.lower() for name in self.columns}) < len(fields):
            raise TableError(
                f"table {self.name!r} has columns whose names differ in case alone",
                hint="rename them: Spark does not tell them apart",
            )

    def of(self, rows: object) -> Table:
        """The same table with these rows; those that are in this process are read here."""
        if not type(rows).__module__.startswith("pyspark."):
            return super().of(rows)
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__)
        found.__dict__.pop("_rows", None)
        found.frame = rows
        found.columns = {
            field.name: field.dataType.simpleString()
            for field in said(lambda: found.frame.schema)().fields
        }
        return found

    # ------------------------------------------------------------------ its columns

    @property
    def with_time_of_day(self) -> list[str]:
        """Columns of which only the day is kept."""
        return [name for name, kind in self.columns.items() if kind in TIMES]

    def kind(self, name: str) -> Kind | None:
        """The kind of attribute that a column makes, if any."""
        return KINDS.get(self.columns[name].partition("(")[0])

    def columns_frame(self, names: Sequence[str]) -> Frame:
        """Some columns, known by their places: Spark takes a dot in a name for something else."""
        return self.frame.selectExpr(*(f"{quoted(name)} AS c{i}" for i, name in enumerate(names)))

    def _readings(self, names: Sequence[str]) -> tuple[Reading, ...]:
        return tuple(Reading(self.kind(name)) for name in names)

    def _texts(self, names: Sequence[str], work: Any) -> list[Any]:
        frame = self.cluster.run(self.columns_frame(names), work, TEXTS)
        return [json.loads(text) for text in self.cluster.table(frame).column(0).to_pylist()]

    def _by_column(self, names: Sequence[str], work: Any) -> dict[int, int]:
        """Sums by the place of a column, over all tasks."""
        frame = self.cluster.run(self.columns_frame(names), work, COLUMN_COUNTS)
        found: dict[int, int] = {}
        for row in self.cluster.table(frame).to_pylist():
            found[row["c"]] = found.get(row["c"], 0) + row[SUM]
        return found

    # ------------------------------------------------------------------ looking at it

    def profiles(self, names: Sequence[str], *, drop_nulls: bool = False) -> list[ColumnProfile]:
        """What each column holds, in two passes or three."""
        kinds = [self.kind(name) for name in names]
        about = self._about(names)
        listed = tuple(
            k is not None and n <= 2 * LISTED_TEXTS for k, n in zip(kinds, about, strict=True)
        )
        work = ColumnFacts(self._readings(names), listed, drop_nulls)
        frame = self.cluster.run(self.columns_frame(names), work, VALUES)
        found = self.cluster.table(frame.groupBy(*VALUES.names[:2]).sum(SUM))
        rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
        parts: list[Any] = []
        values: list[dict[Any, int]] = [{} for _ in names]
        for place, text, many in rows:
            if place == FACTS:
                parts += [json.loads(text)] * many
            else:
                values[place][meant(json.loads(text), kinds[place])] = many
        return [
            self._profile(name, i, parts, about[i], values[i] if listed[i] else None)
            for i, name in enumerate(names)
        ]

    def _about(self, names: Sequence[str]) -> list[int]:
        """About how many different values each column has."""
        found: list[int] = []
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]
            listed = [
                f"approx_count_distinct(CAST({quoted(name)} AS string)) AS c{i}"
                if self.kind(name) else f"CAST(0 AS bigint) AS c{i}"
                for i, name in enumerate(some)
            ]  # fmt: skip
            row = self.cluster.table(said(self.frame.selectExpr)(*listed)).to_pylist()[0]
            found += [int(row[f"c{i}"] or 0) for i in range(len(some))]
        return found

    def _profile(
        self,
        name: str,
        place: int,
        parts: Sequence[Any],
        about: int,
        counts: Mapping[Any, int] | None,
    ) -> ColumnProfile:
        kind = self.kind(name)
        facts = [part["columns"][place] for part in parts]
        total = sum(part["total"] for part in parts)
        lost, filled = (sum(f[word] for f in facts) for word in ("lost", "filled"))

        def ends(word: str) -> list[Any]:
            return [meant(f[word], kind) for f in facts if f[word] is not None]

        low, high = min(ends("low"), default=None), max(ends("high"), default=None)
        kind = None if lost else kind
        about = min(about, filled + lost)  # an estimate, which may be above
        profile = ColumnProfile(
            name, self.columns[name], kind, total, total - filled - lost, about, low, high
        )
        if kind is None or counts is None:
            return profile
        ordered = sorted(counts)
        profile = ColumnProfile(
            name, self.columns[name], kind, total, total - filled - lost, len(ordered), low, high,
            values=tuple(ordered) if len(ordered) <= LISTED_TEXTS else None,
            counts=tuple(counts[value] for value in ordered),
        )  # fmt: skip
        return replace(profile, histogram=histogram(profile))

    def check_kinds(self, schema: Schema) -> None:
        """Refuse a value that is not of its attribute's kind."""
        readings = tuple(Reading(a.kind) for a in schema)
        lost = self._by_column(schema.names, LostCounts(readings))
        for place, attribute in enumerate(schema):
            if lost.get(place):
                raise self.violation(attribute, drop_nulls=False)

    def rounded(self, schema: Schema) -> dict[str, int]:
        """Columns with numbers between an interval's steps, with how many rows."""
        stepped = tuple(a for a in schema if isinstance(a.domain, Interval))
        if not stepped:
            return {}
        found = self._by_column([a.name for a in stepped], RoundedCounts(stepped))
        return {a.name: found[i] for i, a in enumerate(stepped) if found.get(i)}

    def violation(self, attribute: Attribute, *, drop_nulls: bool) -> SchemaError:
        """Which column, which value, and what to do about it; rows have no order here."""
        name = attribute.name
        found = self._texts([name], Misfit(attribute, drop_nulls))
        where = f"column {name!r}"
        if not found:
            return SchemaError(f"{where}: a value is not in the schema's domain")
        first = found[0]
        if first["value"] is None:
            hint = f"set 'null: true' for {name!r} in the schema, or use {spelled('nulls', 'drop')}"
            return SchemaError(f"{where}: NULL is not in the schema's domain", hint=hint)
        shown = repr(first["value"]) if first["text"] else first["value"]
        why = (
            f"is not of kind {attribute.kind}" if first["lost"] else "is not in the schema's domain"
        )
        hint = f"correct the rows, or change the kind or domain of {name!r} in the schema"
        return SchemaError(f"{where}: {shown} {why} ({domain_in_words(attribute)})", hint=hint)

    # ------------------------------------------------------------------ counting it

    def __len__(self) -> int:
        return self._rows

    @cached_property
    def _rows(self) -> int:
        return int(said(self.frame.count)())

    def complete_rows(self, names: Sequence[str]) -> int:
        """How many rows have no NULL in these columns."""
        return self._by_column(names, NullCounts(self._readings(names))).get(-1, 0)

    def null_counts(self, names: Sequence[str]) -> dict[str, int]:
        """Columns that have NULLs, with how many rows."""
        found = self._by_column(names, NullCounts(self._readings(names)))
        return {name: found[i] for i, name in enumerate(names) if found.get(i)}

    def duplicates(self, names: Sequence[str]) -> int:
        """Rows that repeat another row, by the values that would be published."""
        frame = self.columns_frame(names)
        if all(self.kind(name) for name in names):
            job = TypedRows(tuple(ARROW[str(self.kind(name))] for name in names))
            work = TypedWork(job.names, self._readings(names), False, job)
            made = self.cluster.run(frame, work, job.output)
            frame = made.select(*job.names)
        return len(self) - int(said(frame.distinct().count)())

    def combinations(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The different combinations of values, as texts; the last column says how many rows.

        They are grouped there and spelled here, by DuckDB, as of every other table.
        """
        counted = self._combined(names)
        empty = True
        for table in self.cluster.rows(counted):
            empty = False
            yield from spelled_out(table.rename_columns([*table.column_names[:-1], "n"]))
        if empty:
            none = self.cluster.table(counted.limit(0))
            yield from spelled_out(none.rename_columns([*none.column_names[:-1], "n"]))

    def different_combinations(self, names: Sequence[str]) -> int:
        """How many different combinations of values there are, counted on the cluster."""
        return int(said(self._combined(names).count)())

    def _combined(self, names: Sequence[str]) -> Frame:
        """The different combinations of values, and how many rows have each."""
        grouped = self.columns_frame(names).groupBy(*(f"c{i}" for i in range(len(names))))
        return said(grouped.count)()

    def count(self, condition: str) -> int:
        """The truth, for evaluation: rows for which a condition holds."""
        with self._lenient():
            return int(said(self.frame.filter(translated(condition)).count)())

    @contextmanager
    def _lenient(self) -> Iterator[None]:
        """What cannot be computed on a row is NULL there, as elsewhere."""
        conf = self.cluster.session.conf
        before = said(conf.get)(ANSI, None)
        said(conf.set)(ANSI, "false")
        try:
            yield
        finally:
            said(conf.unset)(ANSI) if before is None else said(conf.set)(ANSI, before)

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The truth, for evaluation: what SQL gives on the table, by whatever name it calls it."""
        import sqlglot  # noqa: PLC0415  (publishing runs no query)

        (found,) = sqlglot.parse_one(sql, dialect="duckdb").find_all(sqlglot.exp.Table)
        found.set("this", sqlglot.to_identifier("voile_source"))
        text = found.root().sql("spark")
        self.frame.createOrReplaceTempView("voile_source")
        with self._lenient():
            answer = self.cluster.table(said(self.cluster.session.sql)(text))
        return [tuple(row.values()) for row in answer.to_pylist()]

    # ------------------------------------------------------------------ jobs

    def coded_sums(
        self,
        schema: Schema,
        job: CodedJob,
        *,
        drop_nulls: bool,
        clamp: bool = False,
        progress: Progress | None = None,
    ) -> pa.Table:
        """What a job sums of the rows' codes, on the cluster."""
        summed = self._summed(schema, job, drop_nulls=drop_nulls, clamp=clamp)
        found = self._sums(self.cluster.table(summed), schema, job, drop_nulls)
        if progress is not None:
            progress.advance(len(self))
        return in_order(found)

    def ordered_sums(
        self, schema: Schema, job: CodedJob, *, drop_nulls: bool
    ) -> Iterator[pa.Table]:
        """What a job sums of the rows' codes, sorted on the cluster, some at a time."""
        keys = [name for name in job.output.names if name != SUM]
        summed = self._summed(schema, job, drop_nulls=drop_nulls)
        for some in self.cluster.rows(summed.orderBy(*keys)):
            yield self._sums(some, schema, job, drop_nulls)

    def different_tuples(self, schema: Schema, *, drop_nulls: bool) -> int:
        """How many different tuples the rows have, counted on the cluster."""
        job = KeyCounts(tuple(schema.sizes))
        return int(said(self._summed(schema, job, drop_nulls=drop_nulls).count)())

    def _summed(
        self, schema: Schema, job: CodedJob, *, drop_nulls: bool, clamp: bool = False
    ) -> Frame:
        """What a job sums, on the cluster: the keys, what does not fit, and the sum."""
        work = CodedWork(Coder(tuple(schema), drop_nulls, clamp), job)
        frame = self.cluster.run(self.columns_frame(schema.names), work, work.output)
        return frame.groupBy(*(name for name in work.output.names if name != SUM)).sum(SUM)

    def _sums(self, summed: pa.Table, schema: Schema, job: CodedJob, drop_nulls: bool) -> pa.Table:
        """Such sums as the job names them; refused where a row did not fit."""
        found = summed.rename_columns([*summed.column_names[:-1], SUM])
        self.fitting(found, schema, drop_nulls)
        return found.select(job.output.names).cast(job.output)

    def fitting(self, found: pa.Table, schema: Schema, drop_nulls: bool) -> int:
        """Refuse sums in which a row did not fit; else their number of rows, the last column's."""
        wrong = numpy_array(found.column(WRONG))
        if (wrong != FINE).any():
            place = int(wrong[wrong != FINE].min())
            raise self.violation(list(schema)[place], drop_nulls=drop_nulls)
        last = found.column(found.num_columns - 1)
        return int(numpy_array(last)[0]) if found.num_rows else 0

    def typed_sums(
        self, names: Sequence[str], job: TypedJob, *, drop_nulls: bool = False
    ) -> pa.Table:
        """What a job sums of the rows' values, on the cluster."""
        keys, summed = self._typed_sums(names, job, drop_nulls)
        found = self.cluster.table(summed).rename_columns([*keys, SUM])
        return in_order(found.select(job.output.names).cast(job.output))

    def ordered_typed_sums(
        self, names: Sequence[str], job: TypedJob, *, drop_nulls: bool = False
    ) -> Iterator[pa.Table]:
        """What a job sums of the rows' values, sorted on the cluster, some at a time."""
        keys, summed = self._typed_sums(names, job, drop_nulls)
        for some in self.cluster.rows(summed.orderBy(*map(quoted, keys))):
            found = some.rename_columns([*keys, SUM])
            yield found.select(job.output.names).cast(job.output)

    def _typed_sums(
        self, names: Sequence[str], job: TypedJob, drop_nulls: bool
    ) -> tuple[list[str], Frame]:
        """The keys of a job, and what it sums, on the cluster."""
        work = TypedWork(tuple(names), self._readings(names), drop_nulls, job)
        frame = self.cluster.run(self.columns_frame(names), work, job.output)
        keys = [name for name in job.output.names if name != SUM]
        return keys, frame.groupBy(*map(quoted, keys)).sum(SUM)

    def gathered(self, names: Sequence[str], job: RowJob, secrets: Subkeys) -> bytes:
        """What a job gathers of the columns, on the cluster; here where secrets cannot go there."""
        if not self.cluster.takes_secrets:
            return super().gathered(names, job, secrets)
        with self.cluster.coins(secrets) as vault:
            frame = self.columns_frame(names)
            parts = self.cluster.run(frame, GatherWork(job, vault), GATHERED)
            merged = self.cluster.run(parts.repartition(MERGERS), MergeWork(job), GATHERED)
            found = self.cluster.table(merged)
        rows = int(numpy_array(found.column("rows")).sum())
        if rows != len(self):
            raise changed(self.name, len(self), rows)
        return job.merged([job((), secrets), *found.column("content").to_pylist()])

    def members(
        self, schema: Schema, *, drop_nulls: bool, progress: Progress | None = None
    ) -> SparkMembers:
        """The rows by key, which stay on the cluster."""
        from voile.engines.spark.members import SparkMembers  # noqa: PLC0415  (which imports us)

        del progress
        return SparkMembers(self, schema, drop_nulls=drop_nulls)

    def keys(self, schema: Schema, *, drop_nulls: bool, progress: Progress | None = None) -> Keys:
        """The key of every row, sorted: different tuples are counted there, and repeated here."""
        rows = self.used_rows(schema, drop_nulls=drop_nulls)
        if rows > MOST_ROWS:
            raise TableError(
                f"this holds all rows in this process, and {rows:,} are more than {MOST_ROWS:,}",
                hint="publish marginals or a view, which are made on the cluster",
            )
        return np.repeat(*self.tuple_counts(schema, drop_nulls=drop_nulls, progress=progress))

    # ------------------------------------------------------------------ reading it

    def _in_order(self, names: Sequence[str], where: str = "") -> Iterator[tuple[pa.Table, Ints]]:
        """All rows on the driver, some at a time, and their numbers.

        Partitions have no order that stays: rows are numbered in the order of all their values.
        """
        sorted_by = [quoted(name) for name, kind in self.columns.items() if "map<" not in kind]
        frame = self.frame.filter(where) if where else self.frame
        ordered = said(frame.orderBy)(*sorted_by).select(*map(quoted, names))
        done = 0
        for table in self.cluster.rows(ordered):
            yield table, np.arange(done, done + table.num_rows)
            done += table.num_rows
        if not done:
            none = self.cluster.table(self.columns_frame(names).limit(0))
            yield as_named(none, names), np.empty(0, np.int64)

    def batches(self, names: Sequence[str], *, drop_nulls: bool = False) -> Iterator[RowBatch]:
        """The columns as they are, a batch at a time; a row keeps its number."""
        readings = self._readings(names)
        for table, places in self._in_order(names):
            if not drop_nulls or not table.num_rows:
                yield RowBatch(table, places)
                continue
            (batch,) = whole_batches(table)
            kept = complete([r.typed(batch.column(i)) for i, r in enumerate(readings)])
            yield RowBatch(table.filter(arrow_array(kept)), places[kept])

    def typed(self, names: Sequence[str], *, drop_nulls: bool = False) -> Iterator[pa.RecordBatch]:
        """Each column as its kind's type, a batch at a time, on the driver."""
        readings = self._readings(names)
        for table in self.unordered(names):
            for batch in whole_batches(table):
                yield typed_batch(batch, names, readings, drop_nulls)

    def coded(
        self,
        schema: Schema,
        *,
        drop_nulls: bool,
        row_key: str | None = None,
        clamp: bool = False,
        progress: Progress | None = None,
    ) -> Iterator[CodedBatch]:
        """The codes of all rows, a batch at a time, on the driver."""
        coder = Coder(tuple(schema), drop_nulls, clamp)
        names = [*schema.names, *([] if row_key is None else [row_key])]
        where = self._complete(schema) if drop_nulls else ""
        for table, places in self._in_order(list(dict.fromkeys(names)), where):
            for batch in whole_batches(table):
                for codes, wrong in coder.coded(iter([batch])):
                    for place in np.flatnonzero(wrong):
                        raise self.violation(list(schema)[int(place)], drop_nulls=drop_nulls)
                    keys = None if row_key is None else batch.column(row_key).cast(pa.string())
                    yield CodedBatch(codes, keys, int(places[0]) if len(places) else 0)
                    if progress is not None:
                        progress.advance(len(codes[0]))

    def unordered(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """All rows on the driver, some at a time, in no order that stays."""
        empty = True
        for table in self.cluster.rows(self.columns_frame(names)):
            empty = False
            yield as_named(table, names)
        if empty:
            yield as_named(self.cluster.table(self.columns_frame(names).limit(0)), names)

    def _complete(self, schema: Schema) -> str:
        """True of rows without NULL, in Spark's own words."""
        conditions = []
        for attribute in schema:
            column = quoted(attribute.name)
            conditions.append(f"{column} IS NOT NULL")
            if self.columns[attribute.name] in ("float", "double"):
                conditions.append(f"NOT isnan({column})")
        return " AND ".join(conditions)

    # ------------------------------------------------------------------ some of its rows

    def at_most(self, column: str, rows: int, salt: str) -> LimitedRows:
        """At most so many rows for each value of a column, without that column.

        The salt is no part of the plan: a job joins it to the rows, and no shuffle carries it.
        """
        if not self.cluster.takes_secrets:
            return super().at_most(column, rows, salt)
        names = list(self.columns)
        texts = ", ".join(
            f"coalesce(concat(length({text}), ':', {text}), '-')"
            for text in (self._as_text(name) for name in names)
        )
        vault = self.cluster.lend(Subkeys({SALT: salt.encode()}))
        salted = self.cluster.run(self.cluster.session.range(0, 1, 1, 1), SaltRow(vault), TEXTS)

        def hashed(frame: Frame, what: str) -> Frame:
            both = frame.crossJoin(salted.toDF(SALT))
            return both.selectExpr("*", what).drop(SALT)

        marked = hashed(
            self.frame, f"substr(sha2(concat({SALT}, {texts}), 256), 1, 16) AS voile_mark"
        )
        # Equal rows have equal marks: numbered, each has coins of its own.
        place = "row_number() OVER (PARTITION BY voile_mark ORDER BY voile_mark)"
        numbered = hashed(
            marked.selectExpr("*", f"{place} AS voile_place"),
            f"sha2(concat({SALT}, voile_mark, '/', CAST(voile_place AS string)), 256) "
            "AS voile_coins",
        )
        who = quoted(column)
        order = f"row_number() OVER (PARTITION BY {who} ORDER BY voile_coins) AS voile_order"
        kept = numbered.selectExpr("*", order).filter(f"voile_order <= {rows:d}")
        left = [quoted(name) for name in names if name != column]
        count = int(said(self.frame.select(who).distinct().count)())
        found = self.of(kept.select(*left))
        weakref.finalize(found, self.cluster.spent, vault)  # rows are read when they are needed
        return LimitedRows(found, count)

    def _as_text(self, name: str) -> str:
        return f"CAST({quoted(name)} AS string)"


def meant(value: Any, kind: Kind | None) -> Any:
    """A value that was sent as JSON."""
    if kind == "numeric" and isinstance(value, str):
        return float.fromhex(value)
    if kind == "date":
        return dt.date.fromordinal(value)
    return value


def as_named(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Columns by their names again, and moments in UTC."""
    found = table.rename_columns(list(names))
    fields = [
        field.with_type(pa.timestamp("us", "UTC"))
        if pa.types.is_timestamp(field.type) and field.type.tz
        else field
        for field in found.schema
    ]
    return found.cast(pa.schema(fields))


def spelled_out(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Combinations with their values as texts."""
    from voile.engines.duckdb.table import DuckTable  # noqa: PLC0415  (only to look at a table)

    yield from DuckTable(table).spelled(table.column_names[:-1], "n")


def changed(name: str, rows: int, found: int) -> TableError:
    """The error of a table that was read twice and was not the same."""
    return TableError(
        f"table {name!r} had {rows:,} rows when it was counted, and {found:,} when they were read",
        hint="nothing was released; publish a table or snapshot that does not change",
    )


def whole_batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A table as batches, at least one."""
    batches = table.combine_chunks().to_batches()
    if batches:
        yield from batches
    else:
        yield pa.RecordBatch.from_pylist([], schema=table.schema)


def translated(condition: str) -> str:
    """A condition of DuckDB's SQL in Spark's."""
    import sqlglot  # noqa: PLC0415  (publishing runs no query)

    return sqlglot.parse_one(condition, dialect="duckdb").sql("spark")


def shown_source(source: object) -> str:
    """What the caller named, or a word for a frame."""
    return without_secrets(source.what) if isinstance(source, SparkSource) else "the frame"


def name_of(what: str) -> str:
    """A short name that needs no quotes, from a table or a path."""
    last = re.split(r"[/\\.:]", re.sub(r"\.(parquet|csv|json|orc)$", "", what.rstrip("/")))[-1]
    found = re.sub(r"\W", "_", last).strip("_")
    return found if re.match(r"[A-Za-z]", found) else f"t_{found}" if found else "rows"
