"""A steward's table, read with DuckDB: looked at, checked, and turned into keys of tuples.

Knows nothing of privacy.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import sqlglot

from voile.engines.duckdb.sources import SOURCE, attach, quote_identifier
from voile.engines.duckdb.sql import first_line, kind_of, literal, not_in_domain, off_grid
from voile.engines.encode import OUTSIDE, SQL, clamped, codes
from voile.errors import SchemaError, TableError, UsageError, did_you_mean
from voile.schema import Attribute, Bins, Interval, Keys, Kind, Range, Schema, TupleIndex, Values
from voile.schema.index import code_type
from voile.schema.infer import LISTED_TEXTS, ColumnProfile, infer_attribute, numeric_extremes

Nulls = Literal["error", "drop", "as-value"]
NULLS: tuple[str, ...] = get_args(Nulls)
Progress = Callable[[int], None]

BATCH = 2**17
MEMORY = "1GB"
"""What DuckDB may use before it spills to disk; scans of any length stay far below."""

BARS = 12


class Table:
    """A table that someone wants to publish: read any number of times, never held in memory."""

    def __init__(self, source: object, *, null_text: Sequence[str] = ()) -> None:
        self._con = duckdb.connect(config={"memory_limit": MEMORY})
        spill = tempfile.mkdtemp(prefix="voile-")
        weakref.finalize(self, shutil.rmtree, spill, ignore_errors=True)
        self._con.execute(f"SET temp_directory = {literal(spill)}")
        self.name = attach(self._con, source, null_text=null_text)
        text = str(source) if isinstance(source, str) else ""
        self.dataset = text if text.startswith("dataset:") else ""
        """dataset:NAME where it is a shipped one, whose hierarchies are shipped too."""
        described = self._con.execute(f"DESCRIBE {SOURCE}").fetchall()
        self.columns: dict[str, str] = {name: kind for name, kind, *_ in described}

    @property
    def with_time_of_day(self) -> list[str]:
        """Columns of which only the day is kept."""
        return [name for name, kind in self.columns.items() if kind.startswith("TIMESTAMP")]

    def holds(self, attribute: Attribute) -> bool:
        """Whether the column's own values are the attribute's, not rounded or read as others."""
        name = attribute.name
        exact = isinstance(attribute.domain, Values | Range)
        return exact and self._kind(name) == attribute.kind and name not in self.with_time_of_day

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {len(self.columns)} columns)"

    def __len__(self) -> int:
        return self._one(f"SELECT count(*) FROM {SOURCE}")

    def check_columns(self, names: Sequence[str]) -> list[str]:
        """The names themselves, refused where one is unknown or stands twice."""
        for name in names:
            if name not in self.columns:
                raise UsageError(
                    f"table {self.name!r} has no column {name!r}",
                    hint=did_you_mean(name, list(self.columns)),
                )
        if len(set(names)) < len(names):
            raise UsageError(
                f"a column is named twice: {', '.join(names)}", hint="name each column once"
            )
        if not names:
            raise UsageError("no columns were chosen", hint="name at least one")
        return list(names)

    # ------------------------------------------------------------------ looking at it

    def profiles(self, names: Sequence[str], *, drop_nulls: bool = False) -> list[ColumnProfile]:
        """What each column holds, in one scan plus one for each column.

        Of the rows that will be published only: what is dropped must not show in a domain.
        """
        rows = f"{SOURCE} WHERE {self._complete(names) if drop_nulls else 'TRUE'}"
        asked = ["count(*)"]
        for name in names:
            kind = self._kind(name)
            value = self._value(name, kind)
            lost = f"count(*) FILTER (WHERE {self._unreadable(name, kind)})" if kind else "0"
            asked += [lost, f"count({value})", f"approx_count_distinct({value})"]
            asked += [f"min({value})", f"max({value})"] if kind else ["NULL", "NULL"]
        facts = self._row(f"SELECT {', '.join(asked)} FROM {rows}")
        return [
            self._profile(name, rows, facts[0], *facts[1 + 5 * i : 6 + 5 * i])
            for i, name in enumerate(names)
        ]

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
            self._kind(name) == "date" and (isinstance(low, str) or isinstance(high, str))
        )
        kind = None if odd else self._kind(name)
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
        listed = ", ".join(self._value(name, self._kind(name)) for name in names)
        distinct = self._one(f"SELECT count(*) FROM (SELECT DISTINCT {listed} FROM {SOURCE})")
        return len(self) - distinct

    def infer(self, names: Sequence[str], nulls: Nulls) -> Schema:
        """The schema of what the columns hold, the 'active' domain."""
        profiles = self.profiles(names, drop_nulls=nulls == "drop")
        return Schema(tuple(infer_attribute(p, null=nulls == "as-value") for p in profiles))

    # ------------------------------------------------------------------ reading it

    def null_counts(self, names: Sequence[str]) -> dict[str, int]:
        """Columns that have NULLs, with how many rows."""
        asked = ", ".join(
            f"count(*) - count({self._value(name, self._kind(name))})" for name in names
        )
        row = self._row(f"SELECT {asked} FROM {SOURCE}")
        return {name: count for name, count in zip(names, row, strict=True) if count}

    def count(self, condition: str) -> int:
        """The truth, for evaluation: rows for which a condition holds."""
        return self._one(f"SELECT count(*) FROM {SOURCE} WHERE TRY({condition})")

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """The truth, for evaluation: what SQL gives on the table, by whatever name it calls it."""
        (found,) = sqlglot.parse_one(sql, dialect="duckdb").find_all(sqlglot.exp.Table)
        found.set("this", sqlglot.to_identifier(SOURCE))
        rows: list[tuple[Any, ...]] = self._con.execute(found.root().sql("duckdb")).fetchall()
        return rows

    def combinations(self, names: Sequence[str]) -> pa.Table:
        """The different combinations of values, as texts; the last column says how many rows.

        NULL is a value of its own. Columns are numbered: a name of ours could be one of the
        table's.
        """
        listed = ", ".join(f"{self._raw(name)} AS c{i}" for i, name in enumerate(names))
        texts = ", ".join(f"CAST(c{i} AS VARCHAR) AS c{i}" for i in range(len(names)))
        grouped = f"SELECT {listed}, count(*) AS n FROM {SOURCE} GROUP BY ALL"
        try:
            return self._con.sql(f"SELECT {texts}, n FROM ({grouped})").to_arrow_table()
        except duckdb.Error as error:
            raise TableError(f"table {self.name!r} cannot be read: {first_line(error)}") from None

    def rows(self, names: Sequence[str], *, drop_nulls: bool) -> tuple[Any, npt.NDArray[np.int64]]:
        """The columns as they are, of the rows that are published; and which rows those are."""
        listed = ", ".join(quote_identifier(name) for name in names)
        place = quote_identifier("row of the table")
        if not drop_nulls:
            found = self._con.sql(f"SELECT {listed} FROM {SOURCE}").to_arrow_table()
            return found, np.arange(found.num_rows)
        found = self._con.sql(
            f"SELECT * FROM (SELECT {listed}, row_number() OVER () - 1 AS {place} FROM {SOURCE}) "
            f"WHERE {self._complete(names)}"
        ).to_arrow_table()
        return found.select(list(names)), found.column(len(names)).to_numpy()

    def of(self, rows: Any) -> Table:
        """The same table with these rows."""
        found = Table(rows)
        found.name, found.dataset = self.name, self.dataset
        return found

    def complete_rows(self, names: Sequence[str]) -> int:
        """How many rows have no NULL in these columns."""
        return self._one(f"SELECT count(*) FROM {SOURCE} WHERE {self._complete(names)}")

    def keys(
        self, schema: Schema, *, drop_nulls: bool, progress: Progress = lambda _: None
    ) -> Keys:
        """The key of every row, sorted: the whole table in eight bytes a row.

        Sorted in place, so the peak is that one array and a batch.
        """
        index = TupleIndex(schema.sizes)
        size = self.complete_rows(schema.names) if drop_nulls else len(self)
        keys = np.empty(size, dtype=index.key_type)
        done = 0
        for coded, _ in self.coded(schema, drop_nulls=drop_nulls, progress=progress):
            keys[done : done + len(coded[0])] = index.encode(coded)
            done += len(coded[0])
        keys = keys[:done]
        keys.sort()
        return keys

    def columns_of_codes(
        self,
        schema: Schema,
        *,
        drop_nulls: bool,
        row_key: str | None = None,
        progress: Progress = lambda _: None,
    ) -> tuple[list[npt.NDArray[Any]], pa.Array | None]:
        """Every row's place in each attribute's domain, a column at a time, in narrow numbers.

        And, where it is named, the column that is the key of the rows, as text.
        """
        size = self.complete_rows(schema.names) if drop_nulls else len(self)
        columns = [np.empty(size, dtype=code_type(a.size)) for a in schema]
        keys: list[Any] = []
        done = 0
        for coded, key in self.coded(schema, drop_nulls=drop_nulls, row_key=row_key,
                                     progress=progress):  # fmt: skip
            for column, code in zip(columns, coded, strict=True):
                column[done : done + len(code)] = code
            done += len(coded[0])
            keys.append(key)
        found = None if row_key is None else pa.chunked_array(keys, pa.string()).combine_chunks()
        return [column[:done] for column in columns], found

    def coded(
        self,
        schema: Schema,
        *,
        drop_nulls: bool,
        row_key: str | None = None,
        clamp: bool = False,
        progress: Progress = lambda _: None,
    ) -> Iterator[tuple[list[npt.NDArray[np.int64]], Any]]:
        """The codes of all rows, a batch at a time; and their keys, where a column is named.

        `clamp` moves numbers and dates that lie outside a range to its nearer end.
        """
        batches = self._batches(schema, drop_nulls=drop_nulls, row_key=row_key)
        for batch in batches:
            columns = [clamped(batch.column(i), a) if clamp else batch.column(i)
                       for i, a in enumerate(schema)]  # fmt: skip
            coded = [codes(column, a) for column, a in zip(columns, schema, strict=True)]
            wrong = [a for a, code in zip(schema, coded, strict=True) if (code == OUTSIDE).any()]
            if wrong:
                batches.close()  # an open result keeps the connection busy
                raise self._violation(wrong[0], drop_nulls=drop_nulls)
            yield coded, None if row_key is None else batch.column(len(schema.names))
            progress(batch.num_rows)

    def _batches(
        self, schema: Schema, *, drop_nulls: bool, row_key: str | None = None
    ) -> Generator[Any, None, None]:
        columns = [f"{self._value(a.name, a.kind)} AS {quote_identifier(a.name)}" for a in schema]
        if row_key is not None:
            columns.append(f"CAST({quote_identifier(row_key)} AS VARCHAR)")
        listed = ", ".join(columns)
        where = self._complete(schema.names) if drop_nulls else "TRUE"
        # A relation's reader streams; execute() would hold the whole result.
        relation = self._con.sql(f"SELECT {listed} FROM {SOURCE} WHERE {where}")
        try:
            yield from relation.to_arrow_reader(BATCH)
        except duckdb.Error as error:
            raise TableError(f"table {self.name!r} cannot be read: {first_line(error)}") from None

    def _complete(self, names: Sequence[str]) -> str:
        return " AND ".join(f"{self._value(name, self._kind(name))} IS NOT NULL" for name in names)

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
            hint = f"set 'null: true' for {name!r} in the schema, or use --nulls drop"
            return SchemaError(f"{where}: NULL is not in the schema's domain", hint=hint)
        shown = repr(found) if isinstance(found, str) else str(found)
        why = f"is not of kind {attribute.kind}" if unread else "is not in the schema's domain"
        hint = (
            f"correct the row (a header is not counted), or change the kind or domain of {name!r} "
            "in the schema"
        )
        if unread and isinstance(found, str):
            hint += f"; if {shown} stands for NULL, say --null-text {shown}"
        return SchemaError(f"{where}: {shown} {why} ({domain_in_words(attribute)})", hint=hint)

    # ------------------------------------------------------------------ one column in SQL

    def _kind(self, name: str) -> Kind | None:
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
        if kind == "integer" and self._kind(name) != "integer":
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


def domain_in_words(attribute: Attribute) -> str:
    match attribute.domain:
        case Range(low, high):
            return f"{low} to {high}"
        case Bins(edges):
            return f"{edges[0]:g} to {edges[-1]:g}"
        case Interval(start, end):
            return f"{start:g} to {end:g}"
        case Values(values):
            shown = ", ".join(repr(v) if isinstance(v, str) else str(v) for v in values[:5])
            return shown + (f", … {len(values)} values" if len(values) > 5 else "")


def histogram(profile: ColumnProfile) -> tuple[int, ...]:
    """A few bars: equal widths for what is ordered, the most frequent values for text."""
    if not profile.counts or profile.values is None:
        return ()
    low, high = numeric_extremes(profile)
    if profile.kind in ("categorical", "boolean") or not math.isfinite(high - low) or low == high:
        return tuple(sorted(profile.counts, reverse=True)[:BARS])
    places = [
        float(v.toordinal() if hasattr(v, "toordinal") else v)  # type: ignore[union-attr, arg-type]
        for v in profile.values
    ]
    bars, _ = np.histogram(places, bins=BARS, range=(low, high), weights=profile.counts)
    return tuple(int(b) for b in bars)


def read_all(source: object) -> Any:
    """A small table, whole, as Arrow: one that an analyst brings along."""
    con = duckdb.connect(config={"memory_limit": MEMORY})
    attach(con, source)
    return con.sql(f"SELECT * FROM {SOURCE}").to_arrow_table()
