"""Which engine reads a table, and which opens a release's rows: registered engines in turn."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa

    from voile.engines.rows import PublicDomain, ReleaseRows
    from voile.engines.table import Table
    from voile.options.reading import ReadingKeywords
    from voile.schema import Schema

BUILT_IN = ("voile.engines.spark", "voile.engines.duckdb")
"""Packages with an ENGINE, in the order in which they are tried. DuckDB is last: it reads the rest,
and its messages say what can be read."""


class Engine(Protocol):
    """Reads tables and releases. Choosing one costs nothing: its library is loaded on first use."""

    @property
    def name(self) -> str:
        """One word."""
        ...

    def reads(self, source: object) -> bool:
        """Whether it is the one for a source, by its type or by how its address begins."""
        ...

    def table_type(self) -> type[Table]:
        """The class of its tables, made as `table_type()(source, null_text=…)`.

        It is given what the caller said about reading text: keywords of `ReadingOptions`.
        """
        ...

    def files_of(self, source: str) -> list[Path]:
        """The files that a source names; none if it is not made of files, or not there."""
        ...

    def opens(self, parts: Sequence[Path]) -> bool:
        """Whether it is the one for a release whose rows are in these files."""
        ...

    def open_rows(
        self,
        parts: Sequence[Path],
        schema: Schema,
        *,
        scores: pa.Table | None = None,
        beside: pa.Table | None = None,
    ) -> ReleaseRows:
        """A release's rows; see `open_rows` of this module."""
        ...


@runtime_checkable
class CountingEngine(Protocol):
    """Counts the rows of releases where they lie, and does other work there. It can be hashed."""

    def open_rows(
        self,
        parts: Sequence[str],
        schema: Schema,
        *,
        scores: pa.Table | None = None,
        beside: pa.Table | None = None,
        rows: int | None = None,
    ) -> ReleaseRows:
        """A release's rows, in files that its machines read by these paths or URLs.

        `rows` is how many there are, where that is known.
        """
        ...

    def run(self, tasks: int, job: Any, output: pa.Schema) -> pa.Table:
        """What a job makes of the numbers 0, 1, …, which are dealt out to the machines.

        A job takes and gives record batches, and can be pickled.
        """
        ...


class SqlTables(Protocol):
    """Tables in memory that SQL is run on."""

    def run(self, sql: str) -> pa.Table:
        """What one SELECT gives."""
        ...

    def fields(self, sql: str) -> pa.Schema:
        """The columns that it would give."""
        ...

    def close(self) -> None:
        """Forget the tables."""
        ...


_added: list[Engine] = []


def register(engine: Engine) -> None:
    """Try this engine too, before those that come with Voile."""
    _added.insert(0, engine)


def engines() -> list[Engine]:
    """All engines, in the order in which they are tried."""
    return [*_added, *(importlib.import_module(package).ENGINE for package in BUILT_IN)]


def engine_for(source: object) -> Engine:
    """The engine that reads a source."""
    return next(engine for engine in engines() if engine.reads(source))


def connect(source: object, **how: Unpack[ReadingKeywords]) -> Table:
    """The steward's table that a source names; a table is given back as it is.

    A source is a path, dataset:NAME, postgresql://…, a data frame, or anything that Arrow reads.
    `how` says how texts are written: see `voile.options.reading`. `null_text` are texts that
    stand for NULL, in text files besides the empty one.
    """
    from voile.engines.table import Table  # noqa: PLC0415  (which is made by this module)

    if isinstance(source, Table):
        return source
    return engine_for(source).table_type()(source, **how)


def files_of(source: str) -> list[Path]:
    """The files that a source names; none if it is not made of files, or not there."""
    return engine_for(source).files_of(source)


def read_all(source: object) -> pa.Table:
    """A small table, whole, as Arrow: one that an analyst brings along."""
    table = connect(source)
    return table.rows(list(table.columns))[0]


def open_rows(
    parts: Sequence[Path],
    schema: Schema,
    *,
    scores: pa.Table | None = None,
    beside: pa.Table | None = None,
    engine: object = None,
) -> ReleaseRows:
    """The rows of a release, in Parquet files of this machine, with the columns of a schema.

    Without files there are no rows, and still the domain. `scores` gives each history of a tuple
    (see voile.query.rows) its score and spread. `beside` are scored rows that are summed with
    those of the files, which score 1. `engine` counts them elsewhere: see `counting_engine`.
    """
    if engine is not None:
        places = [str(part.absolute()) for part in parts]
        return counting_engine(engine).open_rows(places, schema, scores=scores, beside=beside)
    found = next(one for one in engines() if one.opens(parts))
    return found.open_rows(parts, schema, scores=scores, beside=beside)


def counting_engine(given: object) -> CountingEngine:
    """The engine that a caller names: an address of Spark's, a session or cluster, or itself."""
    if isinstance(given, CountingEngine) and not isinstance(given, type):
        return given
    rows: Any = importlib.import_module("voile.engines.spark.rows")
    found: CountingEngine = rows.engine_at(given)
    return found


def open_domain(schema: Schema, *, strict: bool = False, memory: str = "") -> PublicDomain:
    """Expressions on the public domain of a schema, without any row.

    DuckDB computes them for every engine: the domain is small, and an expression must have one
    value, whichever engine counts the rows. `strict` refuses what fails on some tuple, which else
    is NULL. `memory` bounds what is used, as '512MB'; what needs more fails.
    """
    rows: Any = importlib.import_module("voile.engines.duckdb.rows")
    found: PublicDomain = rows.DuckRows([], schema, strict=strict, memory=memory)
    return found


def open_tables(
    tables: Mapping[str, pa.Table],
    *,
    prelude: Sequence[str] = (),
    shared: bool = False,
    memory: str = "256MB",
    seconds: float = 5,
) -> SqlTables:
    """Tables in memory, in the schema voile.public, that SELECT may read, and nothing else.

    `prelude` are statements that define macros beside them. Tables that are `shared` are read
    where they are. A statement that takes longer, or more memory, fails.
    """
    module: Any = importlib.import_module("voile.engines.duckdb.tables")
    found: SqlTables = module.LockedTables(
        tables, prelude=prelude, shared=shared, memory=memory, seconds=seconds
    )
    return found
