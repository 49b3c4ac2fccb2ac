"""A steward's table, read with DuckDB: looked at, checked, and turned into keys of tuples.

Knows nothing of privacy.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import duckdb
import numpy as np
import pyarrow as pa

from voile.arrays import Ints
from voile.arrow import numpy_array
from voile.engines.duckdb.memory import MemoryColumns
from voile.engines.duckdb.sources import TextNotes, attach, hidden_gaps
from voile.engines.duckdb.sources.cells import SURELY_MISSING, sentinels
from voile.engines.duckdb.sources.common import SOURCE, arrow_table, make_view
from voile.engines.duckdb.sql import (
    SQL,
    Settings,
    connected,
    first_line,
    kind_of,
    not_in_domain,
    off_grid,
    value_type,
)
from voile.engines.encode import OUTSIDE, clamped, codes
from voile.engines.findings import ColumnFinding, refuse_undecided
from voile.engines.table import CodedBatch, LimitedRows, RowBatch, Table
from voile.errors import SchemaError, TableError, UsageError, spelled
from voile.files import TEMPORARY
from voile.options.reading import ReadingKeywords, ReadingOptions
from voile.progress import Progress
from voile.query.quoting import literal, quote_identifier
from voile.query.value_types import ValueKind
from voile.schema import Attribute, Interval, Kind, Schema
from voile.schema.attribute import domain_in_words
from voile.schema.index import code_type
from voile.schema.infer import LISTED_TEXTS, ColumnProfile, histogram
from voile.units import counted

if TYPE_CHECKING:
    from voile.engines.lookups import CodedRows

BATCH, CHUNK = 2**17, 2**20
"""Rows of a batch of codes, and of a batch of values."""
MEMORY = "1GB"
"""What DuckDB may use before it spills to disk; scans of any length stay far below."""


LIMITED = itertools.count()
"""Numbers of tables of which some rows were kept: names that are taken in a connection."""


class SpillFolder:
    """Where DuckDB spills to; it is removed with the last table that uses it."""

    def __init__(self) -> None:
        self.path = TEMPORARY.make()
        weakref.finalize(self, TEMPORARY.remove, self.path)


def one_text(column: str) -> str:
    """A value as text, so that the texts of several values together are those of no others."""
    return f"coalesce(length(CAST({column} AS VARCHAR)) || ':' || CAST({column} AS VARCHAR), '-')"


def mark_of(text: str) -> str:
    """64 bits of SHA-256, in hexadecimal: two of n texts have the same with a chance of n²·2⁻⁶⁵."""
    return f"substr(sha256({text}), 1, 16)"


def at_most_rows(
    source: str, columns: Sequence[str], who: str, rows: int, salt: str, names: tuple[str, str]
) -> str:
    """At most so many rows of each, chosen by coins of the rows; `names` are of two columns more.

    Which rows are kept depends on no other person's rows, and not on their order.
    """
    mark, number = names
    texts = " || ".join(map(one_text, columns))
    marked = f"SELECT *, {mark_of(f'{literal(salt)} || {texts}')} AS {mark} FROM {source}"
    # Equal rows have equal marks: numbered, each has coins of its own.
    place = f"row_number() OVER (PARTITION BY {mark})"
    coins = mark_of(f"{literal(salt)} || {mark} || '/' || {place}")
    numbered = f"SELECT *, {coins} AS {number} FROM ({marked})"
    return (
        f"SELECT * FROM ({numbered}) QUALIFY row_number() OVER "
        f"(PARTITION BY {who} ORDER BY {number}) <= {rows:d}"
    )


def columns_of(con: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The columns of `source`, with DuckDB's word for the type of each."""
    return {name: kind for name, kind, *_ in con.execute(f"DESCRIBE {SOURCE}").fetchall()}


def drop_table(con: duckdb.DuckDBPyConnection, table: str) -> None:
    """Forget a table whose rows nobody reads any more."""
    with suppress(duckdb.Error):
        con.execute(f"DROP TABLE IF EXISTS {table}")
    con.close()


class DuckTable(Table):
    """A table that DuckDB reads, from files, databases or memory."""

    def __init__(self, source: object, **how: Unpack[ReadingKeywords]) -> None:
        self.reading, made = ReadingOptions(**how), TextNotes()
        self._memory: MemoryColumns | None = None
        if not isinstance(source, str | Path) and not self.reading.given_keywords():
            source = arrow_table(source)
            self._memory = MemoryColumns.of(source)
        if self._memory is None:
            self._con = self._connected()
            self.name = attach(self._con, source, self.reading, made)
            self.columns = columns_of(self._con)
        else:
            self.name, self.columns = "table", self._memory.types
        self.notes, self._made = tuple(made.notes), made
        self.labels, self.categories = made.labels, made.categories
        text = str(source) if isinstance(source, str) else ""
        self.dataset = text if text.startswith("dataset:") else ""

    @cached_property
    def _con(self) -> duckdb.DuckDBPyConnection:
        """Made when it is first needed, where the columns lie in memory."""
        assert self._memory is not None  # noqa: S101
        con = self._connected()
        attach(con, self._memory.table)
        return con

    def _connected(self) -> duckdb.DuckDBPyConnection:
        con = connected(settings={"memory_limit": MEMORY})
        # Statistics of Parquet leave NaN out: by them DuckDB takes isnan(x) to be never true.
        con.execute("SET disabled_optimizers = 'statistics_propagation'")
        self._spill = SpillFolder()
        con.execute(f"SET temp_directory = {literal(str(self._spill.path))}")
        return con

    @property
    def with_time_of_day(self) -> list[str]:
        """Columns of which only the day is kept."""
        kinds = {name: value_type(kind).kind for name, kind in self.columns.items()}
        return [name for name, kind in kinds.items() if kind is ValueKind.TIMESTAMP]

    def __len__(self) -> int:
        if self._memory is not None:
            return len(self._memory)
        return self._one(f"SELECT count(*) FROM {SOURCE}")

    # ------------------------------------------------------------------ looking at it

    def findings(self) -> Sequence[ColumnFinding]:
        """What a steward should decide about its columns, or know of.

        Of a source that has types: texts that stand for NULL in a column of texts that holds
        numbers or dates besides, which nobody has to decide.
        """
        made = self._made
        numbers = [n for n, kind in self.columns.items() if kind in ("BIGINT", "DOUBLE")]
        if not made.is_text:
            gaps = () if self.reading.na is not None else hidden_gaps(self._con)
            found = sentinels(self._con, numbers, []) if made.has_codes else ()
            return (*gaps, *found)
        return (*made.findings, *sentinels(self._con, numbers, made.with_points))

    def check_meaning(self, names: Sequence[str]) -> None:
        """Refuse a column that would be taken for categories and may hold something else."""
        refuse_undecided(self._made.findings, names)  # sentinels stop nobody: not looked for

    def profiles(self, names: Sequence[str], *, drop_nulls: bool = False) -> list[ColumnProfile]:
        """What each column holds, in one scan plus one for each column.

        Of the rows that will be published only: what is dropped must not show in a domain.
        """
        found = self._counted(names, drop_nulls=drop_nulls)
        if rest := [name for name in names if name not in found]:
            rows = self._rows_of(names, drop_nulls=drop_nulls)
            found |= {profile.name: profile for profile in self._queried(rest, rows)}
        return [found[name] for name in names]

    def _counted(self, names: Sequence[str], *, drop_nulls: bool) -> dict[str, ColumnProfile]:
        """What columns in memory hold that have few different values."""
        if self._memory is None:
            return {}
        kept = self._memory.complete(names) if drop_nulls else None
        rows = len(self) if kept is None else int(kept.sum())
        found = {}
        for name in names:
            if (counts := self._memory.counts(name, kept)) is None:
                continue
            values, times = counts
            ends = (values[0], values[-1]) if values else (None, None)
            profile = ColumnProfile(
                name, self.columns[name], self.kind(name), rows, rows - sum(times), len(values),
                *ends, values=tuple(values), counts=tuple(times),
            )  # fmt: skip
            found[name] = replace(profile, histogram=histogram(profile))
        return found

    def _queried(self, names: Sequence[str], rows: str) -> list[ColumnProfile]:
        """What columns hold, by DuckDB's queries."""
        selected = ["count(*)"]
        for name in names:
            kind = self.kind(name)
            value = self._value(name, kind)
            lost = f"count(*) FILTER (WHERE {self._unreadable(name, kind)})" if kind else "0"
            selected += [lost, f"count({value})", f"approx_count_distinct({value})"]
            selected += [f"min({value})", f"max({value})"] if kind else ["NULL", "NULL"]
        facts = self._row(f"SELECT {', '.join(selected)} FROM {rows}")
        return [
            self._profile(name, rows, facts[0], *facts[1 + 5 * i : 6 + 5 * i])
            for i, name in enumerate(names)
        ]

    def _rows_of(self, names: Sequence[str], *, drop_nulls: bool) -> str:
        return f"{SOURCE} WHERE {self._complete(names) if drop_nulls else 'TRUE'}"

    def _profile(
        self,
        name: str,
        rows: str,
        total: int,
        lost: int,
        filled: int,
        about: int,
        low: Any,
        high: Any,
    ) -> ColumnProfile:
        # Python has no dates outside the years 1 to 9999: DuckDB hands them over as text.
        odd = lost or (
            self.kind(name) == "date" and (isinstance(low, str) or isinstance(high, str))
        )
        kind = None if odd else self.kind(name)
        profile = ColumnProfile(
            name, self.columns[name], kind, total, total - filled - lost, about, low, high
        )
        if kind is None or about > 2 * LISTED_TEXTS:
            return profile
        value = self._value(name, kind)
        # By position: a name of ours could be one of the table's.
        found = self._con.execute(
            f"SELECT {value}, count(*) FROM {rows} AND {value} IS NOT NULL GROUP BY 1 ORDER BY 1"
        ).fetchall()
        values, counts = tuple(v for v, _ in found), tuple(c for _, c in found)
        profile = replace(
            profile,
            distinct=len(values),
            values=values if len(values) <= LISTED_TEXTS else None,
            counts=counts,
        )
        return replace(profile, histogram=histogram(profile))

    def duplicates(self, names: Sequence[str]) -> int:
        """Rows that repeat an earlier row."""
        listed = ", ".join(self._value(name, self.kind(name)) for name in names)
        distinct = self._one(f"SELECT count(*) FROM (SELECT DISTINCT {listed} FROM {SOURCE})")
        return len(self) - distinct

    # ------------------------------------------------------------------ some of its rows

    def at_most(self, column: str, rows: int, salt: str) -> LimitedRows:
        """At most so many rows for each value of a column, without that column."""
        who, values = quote_identifier(column), f"voile_rows_{next(LIMITED)}"
        mark, number = (quote_identifier(free) for free in self._free_names(2))
        columns = [quote_identifier(name) for name in self.columns]
        kept = at_most_rows(SOURCE, columns, who, rows, salt, (mark, number))
        found = self._one(f"SELECT count(DISTINCT {who}) FROM {SOURCE}")
        self._run(
            f"CREATE TABLE {values} AS SELECT * EXCLUDE ({who}, {mark}, {number}) FROM ({kept}) "
            f"ORDER BY {number}"
        )
        return LimitedRows(self._named(values), found)

    def _free_names(self, count: int) -> list[str]:
        """Names that no column has."""
        taken = {name.lower() for name in self.columns}
        return list(islice((n for i in itertools.count() if (n := f"c{i}") not in taken), count))

    def _named(self, table: str) -> DuckTable:
        """A table of the same database as a steward's table of the same name."""
        con = self._con.cursor()  # it sees the table, and not our `source`
        make_view(con, f"SELECT * FROM {table}")
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__, _con=con, _memory=None)
        found.columns = columns_of(con)
        weakref.finalize(found, drop_table, self._con.cursor(), table)
        return found

    def _run(self, sql: str) -> None:
        try:
            self._con.execute(sql)
        except duckdb.Error as error:
            raise TableError(f"table {self.name!r} cannot be read: {first_line(error)}") from None

    # ------------------------------------------------------------------ reading it

    def null_counts(self, names: Sequence[str]) -> dict[str, int]:
        """Columns that have NULLs, with how many rows."""
        if self._memory is not None:
            return self._memory.null_counts(names)
        selected = ", ".join(
            f"count(*) - count({self._value(name, self.kind(name))})" for name in names
        )
        row = self._row(f"SELECT {selected} FROM {SOURCE}")
        return {name: count for name, count in zip(names, row, strict=True) if count}

    def count(self, condition: str) -> int:
        """The truth, for evaluation: rows for which a condition holds."""
        return self._one(f"SELECT count(*) FROM {SOURCE} WHERE TRY({condition})")

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The truth, for evaluation: what SQL gives on the table, by whatever name it calls it."""
        import sqlglot  # noqa: PLC0415  (publishing runs no query)

        (found,) = sqlglot.parse_one(sql, dialect="duckdb").find_all(sqlglot.exp.Table)
        found.set("this", sqlglot.to_identifier(SOURCE))
        rows: list[tuple[Any, ...]] = self._con.execute(found.root().sql("duckdb")).fetchall()
        return rows

    def combinations(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The different combinations of values, as texts; the last column says how many rows."""
        listed = ", ".join(f"{self._raw(name)} AS c{i}" for i, name in enumerate(names))
        texts = ", ".join(f"CAST(c{i} AS VARCHAR) AS c{i}" for i in range(len(names)))
        grouped = f"SELECT {listed}, count(*) AS n FROM {SOURCE} GROUP BY ALL"
        return self._stream(f"SELECT {texts}, n FROM ({grouped})", CHUNK)

    def spelled(self, names: Sequence[str], count: str) -> Iterator[pa.RecordBatch]:
        """Rows that were counted elsewhere, as `combinations` has them."""
        texts = [f"CAST({self._raw(name)} AS VARCHAR) AS c{i}" for i, name in enumerate(names)]
        return self._stream(f"SELECT {', '.join([*texts, count])} FROM {SOURCE}", CHUNK)

    def batches(self, names: Sequence[str], *, drop_nulls: bool = False) -> Iterator[RowBatch]:
        """The columns as they are, a batch at a time, in the order of the rows."""
        if self._memory is not None:
            yield from self._memory.batches(names, drop_nulls=drop_nulls, size=CHUNK)
            return
        listed = ", ".join(quote_identifier(name) for name in names)
        if not drop_nulls:
            done = 0
            for batch in self._stream(f"SELECT {listed} FROM {SOURCE}", CHUNK):
                yield RowBatch(pa.table(batch), np.arange(done, done + batch.num_rows))
                done += batch.num_rows
            return
        place = quote_identifier("row of the table")
        numbered = f"SELECT {listed}, row_number() OVER () - 1 AS {place} FROM {SOURCE}"
        kept = f"SELECT * FROM ({numbered}) WHERE {self._complete(names)}"
        for batch in self._stream(kept, CHUNK):
            rows = pa.table(batch)
            yield RowBatch(rows.select(list(names)), numpy_array(rows.column(len(names))))

    def numbered_rows(
        self, names: Sequence[str], *, drop_nulls: bool = False
    ) -> tuple[pa.Table, Ints]:
        """As `rows`; texts that repeat are in dictionaries, where the table is in memory."""
        if self._memory is None:
            return self.rows(names, drop_nulls=drop_nulls)
        return self._memory.rows(names, drop_nulls=drop_nulls)

    def unordered(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """The columns as they are, and those of texts that repeat as dictionaries."""
        if self._memory is None:
            return super().unordered(names)
        return iter([self._memory.rows(names, drop_nulls=False)[0]])

    def complete_rows(self, names: Sequence[str]) -> int:
        """How many rows have no NULL in these columns."""
        if self._memory is not None:
            kept = self._memory.complete(names)
            return len(self) if kept is None else int(kept.sum())
        return self._one(f"SELECT count(*) FROM {SOURCE} WHERE {self._complete(names)}")

    def coded(
        self,
        schema: Schema,
        *,
        drop_nulls: bool,
        row_key: str | None = None,
        clamp: bool = False,
        progress: Progress | None = None,
    ) -> Iterator[CodedBatch]:
        """The codes of all rows, a batch at a time, in the order of the rows."""
        batches = self._values(schema, drop_nulls=drop_nulls, row_key=row_key)
        done = 0
        for batch in batches:
            columns = [clamped(batch.column(i), a) if clamp or a.clamp else batch.column(i)
                       for i, a in enumerate(schema)]  # fmt: skip
            coded = [codes(column, a) for column, a in zip(columns, schema, strict=True)]
            wrong = [a for a, code in zip(schema, coded, strict=True) if (code == OUTSIDE).any()]
            if wrong:
                batches.close()  # an open result keeps the connection busy
                raise self._violation(wrong[0], drop_nulls=drop_nulls)
            keys = None if row_key is None else batch.column(len(schema.names))
            yield CodedBatch(coded, keys, done)
            done += batch.num_rows
            if progress is not None:
                progress.advance(batch.num_rows)

    def typed(self, names: Sequence[str], *, drop_nulls: bool = False) -> Iterator[pa.RecordBatch]:
        """Each column as its kind's type, a batch at a time."""
        columns = [f"{self._value(n, self.kind(n))} AS {quote_identifier(n)}" for n in names]
        where = self._complete(names) if drop_nulls else "TRUE"
        return self._stream(f"SELECT {', '.join(columns)} FROM {SOURCE} WHERE {where}", BATCH)

    def _values(
        self, schema: Schema, *, drop_nulls: bool, row_key: str | None
    ) -> Generator[pa.RecordBatch]:
        if self._memory is not None and row_key is None and self._same_kinds(schema):
            yield from self._memory.values(schema, drop_nulls=drop_nulls, size=BATCH)
            return
        columns = [f"{self._value(a.name, a.kind)} AS {quote_identifier(a.name)}" for a in schema]
        if row_key is not None:
            columns.append(f"CAST({quote_identifier(row_key)} AS VARCHAR)")
        where = self._complete(schema.names) if drop_nulls else "TRUE"
        yield from self._stream(f"SELECT {', '.join(columns)} FROM {SOURCE} WHERE {where}", BATCH)

    def _same_kinds(self, schema: Schema) -> bool:
        return all(self.kind(attribute.name) == attribute.kind for attribute in schema)

    def _stream(self, sql: str, size: int) -> Generator[pa.RecordBatch]:
        """What SQL gives, so many rows at a time; one batch without rows where it gives none."""
        try:
            # A relation's reader streams; execute() would hold the whole result.
            reader = self._con.sql(sql).to_arrow_reader(size)
            empty = True
            for batch in reader:
                empty = False
                yield batch
            if empty:
                yield pa.RecordBatch.from_pylist([], schema=reader.schema)
        except duckdb.Error as error:
            raise TableError(f"table {self.name!r} cannot be read: {first_line(error)}") from None

    def _complete(self, names: Sequence[str]) -> str:
        return " AND ".join(f"{self._value(name, self.kind(name))} IS NOT NULL" for name in names)

    def check_kinds(self, schema: Schema) -> None:
        """A value that is not of its attribute's kind would be read as NULL: find it first."""
        for attribute in schema:
            lost = self._unreadable(attribute.name, attribute.kind)
            if self._one(f"SELECT count(*) FROM {SOURCE} WHERE {lost}"):
                raise self._violation(attribute, drop_nulls=False)

    def rounded(self, schema: Schema) -> dict[str, int]:
        """Columns with numbers between an interval's steps, with how many rows."""
        found = {}
        for attribute in schema:
            if isinstance(attribute.domain, Interval):
                value = self._value(attribute.name, attribute.kind)
                off = off_grid(attribute.domain, value)
                if count := self._one(f"SELECT count(*) FROM {SOURCE} WHERE {off}"):
                    found[attribute.name] = count
        return found

    def _violation(self, attribute: Attribute, *, drop_nulls: bool) -> SchemaError:
        """Which row, which column, which value, and what to do about it."""
        name, column = attribute.name, quote_identifier(attribute.name)
        value, lost = self._value(name, attribute.kind), self._unreadable(name, attribute.kind)
        outside = lost
        if attribute.other is None and not attribute.clamp:
            outside = f"({lost}) OR ({not_in_domain(attribute, value)})"
        if not attribute.null and not drop_nulls:
            outside += f" OR {value} IS NULL"
        place = quote_identifier(f"row of {name}")
        row, found, unread = self._row(
            f"SELECT {place}, {column}, {lost} FROM (SELECT row_number() OVER () AS {place}, "
            f"{column} FROM {SOURCE}) WHERE {outside} LIMIT 1"
        )
        where = f"row {row}, column {name!r}"
        if found is None:
            hint = f"set 'null: true' for {name!r} in the schema, or use {spelled('nulls', 'drop')}"
            return SchemaError(f"{where}: NULL is not in the schema's domain", hint=hint)
        shown = repr(found) if isinstance(found, str) else str(found)
        why = f"is not of kind {attribute.kind}" if unread else "is not in the schema's domain"
        hint = (
            f"correct the row (a header is not counted), or change the kind or domain of {name!r} "
            "in the schema"
        )
        if unread and isinstance(found, str):
            option = ("na", True) if found.strip() in SURELY_MISSING else ("null_text", found)
            hint += f"; if {shown} stands for NULL, add {spelled(*option)}"
        return SchemaError(f"{where}: {shown} {why} ({domain_in_words(attribute)})", hint=hint)

    # ------------------------------------------------------------------ one column in SQL

    def kind(self, name: str) -> Kind | None:
        """The kind of attribute that a column makes, if any."""
        return kind_of(self.columns[name])

    def _raw(self, name: str) -> str:
        """The column, with what depends on the machine or on short floats straightened out."""
        column = quote_identifier(name)
        if self.columns[name] == "TIMESTAMP WITH TIME ZONE":
            return f"make_timestamp(epoch_us({column}))"  # the day in UTC, wherever we are
        if self.columns[name] == "FLOAT":
            return f"CAST(CAST({column} AS VARCHAR) AS DOUBLE)"  # 0.1, not 0.10000000149
        return column

    def _value(self, name: str, kind: Kind | None) -> str:
        """The column as the kind's SQL type; NaN is NULL, a time of day is dropped."""
        if kind is None:
            return quote_identifier(name)
        cast = f"TRY_CAST({self._raw(name)} AS {SQL[kind]})"
        # Adding zero makes one zero of the two that floats have.
        return f"nullif({cast} + 0.0::DOUBLE, 'nan'::DOUBLE)" if kind == "numeric" else cast

    def _unreadable(self, name: str, kind: Kind) -> str:
        """True of a row whose value is lost in the cast to the kind."""
        raw = self._raw(name)
        lost = f"({raw} IS NOT NULL AND TRY_CAST({raw} AS {SQL[kind]}) IS NULL)"
        if kind == "integer" and self.kind(name) != "integer":
            # DuckDB rounds 1.5 to 2.
            lost += f" OR TRY_CAST({raw} AS DOUBLE) <> floor(TRY_CAST({raw} AS DOUBLE))"
        return lost

    def _row(self, sql: str) -> tuple[Any, ...]:
        try:
            # fetchone() would leave the result open, and the connection busy.
            return self._con.execute(sql).fetchall()[0]
        except duckdb.Error as error:
            raise TableError(f"table {self.name!r} cannot be read: {first_line(error)}") from None

    def _one(self, sql: str) -> int:
        return int(self._row(sql)[0])


# ----------------------------------------------------------------------
# a private table that is counted and never shown: codes of the schema's domain, in a DuckDB file
# Rows are of the domain only, so that what no tuple of it can do, no row does. Knows nothing of
# privacy.


ROWS, TAKEN, PART = '"rows"', "taken", "part"
COUNTED_MEMORY = "2GB"
HASHED = "CAST('0x' || substr(sha256('voile row ' || who), 1, 16) AS UBIGINT)"
"""As voile.noise.keyed.id_hash."""
READ_ONLY: Settings = {
    "memory_limit": COUNTED_MEMORY,
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
}


def write(
    path: Path,
    table: Table,
    schema: Schema,
    *,
    key: str | None,
    per_key: int | None,
    salt: str,
    clamp: bool,
    progress: Progress | None,
) -> tuple[int, int]:
    """See voile.engines.counted.write_counted."""
    con = connected(path, {"memory_limit": COUNTED_MEMORY})
    try:
        columns = ", ".join(f"c{i} BIGINT" for i in range(len(schema.names)))
        con.execute(f"CREATE TABLE {TAKEN} ({columns}, who UBIGINT)")
        for part in parts(table, schema, key, clamp=clamp, progress=progress):
            con.register(PART, part)
            con.execute(f"INSERT INTO {TAKEN} SELECT * REPLACE ({HASHED} AS who) FROM {PART}")
            con.unregister(PART)
        counts = bound_rows(con, key, per_key, salt)
        con.execute("CHECKPOINT")
        return counts
    except duckdb.Error as error:
        raise TableError(f"the table cannot be taken in: {first_line(error)}") from None
    finally:
        con.close()


def parts(
    table: Table, schema: Schema, key: str | None, *, clamp: bool, progress: Progress | None
) -> Iterator[pa.Table]:
    """Codes, a batch at a time, and whose they are; without a key a row is known by its number."""
    batches = table.coded(schema, drop_nulls=False, row_key=key, clamp=clamp, progress=progress)
    for coded, keys, first in batches:
        if key is not None and keys.null_count:
            raise TableError(
                f"column {key!r} says whose a row is, and is NULL in "
                f"{counted(keys.null_count, 'row')}",
                hint="leave such rows out, or name another column",
            )
        numbers = pa.array(np.arange(first, first + len(coded[0]))).cast(pa.string())
        names = [f"c{i}" for i in range(len(coded))]
        yield pa.table([*coded, numbers if key is None else keys], [*names, "who"])


def bound_rows(
    con: duckdb.DuckDBPyConnection, key: str | None, per_key: int | None, salt: str
) -> tuple[int, int]:
    """Keep at most `per_key` rows of a key, or refuse a key that is there twice."""
    counted = f"SELECT count(*), count(DISTINCT who) FROM {TAKEN}"
    total, keys = con.execute(counted).fetchall()[0]
    if key is not None and per_key is None and keys < total:
        raise TableError(
            f"column {key!r} should identify rows, and {total - keys:,} of {total:,} rows repeat "
            "an earlier one's",
            hint=f"if people have several rows, say {spelled('person', key)} and "
            f"{spelled('per_person')}",
        )
    kept_rows = f"SELECT * FROM {TAKEN}"
    if per_key:
        names = [name for name, *_ in con.execute(f"DESCRIBE {TAKEN}").fetchall()]
        kept_rows = at_most_rows(TAKEN, names, "who", per_key, salt, ("mark", "number"))
        kept_rows = f"SELECT * EXCLUDE (mark, number) FROM ({kept_rows})"
    con.execute(f"CREATE TABLE {ROWS} AS {kept_rows}")
    con.execute(f"DROP TABLE {TAKEN}")
    kept = con.execute(f"SELECT count(*) FROM {ROWS}").fetchall()[0][0]
    return int(kept), int(keys)


def read(path: Path, schema: Schema) -> CodedRows:
    """All rows, in the fewest bytes that their codes need."""
    from voile.engines.lookups import CodedRows  # noqa: PLC0415  (publishing looks nothing up)

    try:
        with connected(path, READ_ONLY, read_only=True) as con:
            con.execute("SET lock_configuration = true")
            columns = {
                attribute.name: con.execute(f"SELECT c{i} FROM {ROWS}")
                .fetchnumpy()[f"c{i}"]
                .astype(code_type(attribute.size))
                for i, attribute in enumerate(schema)
            }
            hashes = con.execute(f"SELECT who FROM {ROWS}").fetchnumpy()["who"]
    except duckdb.Error as error:
        raise UsageError(
            f"the table in {str(path)!r} cannot be opened: {first_line(error)}",
            hint="restore it from a backup, or begin the server anew",
        ) from None
    return CodedRows(schema, columns, np.asarray(hashes, dtype=np.uint64))
