"""What reading every kind of table shares: quoting, naming, and errors that name the table."""

from __future__ import annotations

import glob
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from voile import datasets
from voile.errors import TableError, UsageError, VoileError
from voile.foreign import ENDINGS
from voile.query.quoting import quote_identifier, quote_literal

SOURCE = "source"
Connection = duckdb.DuckDBPyConnection

STREAM, DATABASE = "voile_stream", "voile_database"  # names taken in the connection
TEXT = (".csv", ".tsv", ".txt")
PACKED = (".gz", ".zst", ".bz2", ".xz")
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
SPREADSHEETS = (".xls", ".xlsb", ".numbers")
DATABASES = (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db")
READS = (
    f"{' '.join(TEXT)} (also {' '.join(PACKED)} .zip), {' '.join(PARQUET)} or a folder of them, "
    f"{' '.join(ARROW)}, {' '.join(ENDINGS)}, {' '.join(DATABASES)}, "
    "postgresql://…::table, dataset:NAME"
)


def clear(con: Connection) -> None:
    """Drop what an earlier call attached: DuckDB does not replace a table by a view, or back."""
    with reading("the connection"):
        con.unregister(SOURCE)
        found = con.execute(
            f"SELECT 'VIEW' FROM duckdb_views() WHERE temporary AND view_name = '{SOURCE}' UNION "
            f"SELECT 'TABLE' FROM duckdb_tables() WHERE temporary AND table_name = '{SOURCE}'"
        ).fetchall()
        for (kind,) in found:
            con.execute(f"DROP {kind} temp.{SOURCE}")
        con.execute(f"DETACH DATABASE IF EXISTS {DATABASE}")


@contextmanager
def reading(what: str, *, secrets: Iterable[str] = ()) -> Iterator[None]:
    """Turn whatever a reader raises into one sentence that names the table."""
    try:
        yield
    except VoileError:
        raise
    except Exception as error:  # five libraries read here, each with its own family of errors
        reason, hidden = reason_of(error), sorted(filter(None, secrets), key=len, reverse=True)
        for secret in hidden:
            reason = reason.replace(secret, "***")
        cause = None if hidden else error
        raise TableError(f"{what} cannot be read: {reason}") from cause


def reason_of(error: Exception) -> str:
    """The first line of the message; for a bad line of a text file where and why, not what."""
    if isinstance(error, UnicodeEncodeError):
        return "its path is not UTF-8"
    text = " ".join(map(str, error.args)) if isinstance(error, pa.ArrowException) else str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    reason = lines[0]
    advice = [i for i, line in enumerate(lines) if line.startswith("Possible ")]
    if "CSV Error on Line" in reason and advice:
        # Between the two stand private rows, and last why they cannot be read.
        reason += f": {lines[advice[0] - 1]}"
    return reason.split(". Detail: Python exception")[0]


def check_names(names: Sequence[str], what: str, *, hint: str = "") -> None:
    """Refuse names that DuckDB would change without a word, so that the user's find nothing."""
    if not names:
        raise TableError(f"{what} has no columns", hint=hint)
    seen: dict[str, str] = {}
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise TableError(f"column {position} of {what} has no name", hint=hint)
        other = seen.setdefault(name.lower(), name)
        if position > len(seen):
            how = "appears twice" if other == name else f"and {other!r} differ only by case"
            raise TableError(f"column name {name!r} {how} in {what}", hint=hint)


def short_name(con: Connection, name: str) -> str:
    """`name` as an SQL identifier that needs no quotes."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"\W+", "_", plain).strip("_")
    if not re.match("[A-Za-z]", plain):
        return "table"
    reserved = con.execute(
        "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
    ).fetchall()
    return f"{plain}_table" if (plain.lower(),) in reserved else plain


def make_view(con: Connection, select: str) -> None:
    """Name what SQL selects `source`."""
    con.execute(f"CREATE TEMP VIEW {SOURCE} AS {select}")


def copy_stream(con: Connection, stream: Any, select: str = "*") -> None:
    """Copy a stream that can be read only once into a temporary table."""
    con.register(STREAM, stream)
    try:
        con.execute(f"CREATE TEMP TABLE {SOURCE} AS SELECT {select} FROM {STREAM}")
    finally:
        con.unregister(STREAM)


def listed(texts: Iterable[str]) -> str:
    """Texts as an SQL list."""
    return f"[{', '.join(map(quote_literal, texts))}]"


def paths(files: Iterable[Path]) -> str:
    """The files as an SQL list; escaped, since DuckDB takes every path for a pattern."""
    return listed(glob.escape(str(file)) for file in files)


# ----------------------------------------------------------------------
# tables held in memory, and those that come with Voile


def arrow_table(spec: Any) -> Any:
    """A data frame as Arrow has it; other things in memory as they are."""
    library, what = type(spec).__module__.partition(".")[0], f"the {type(spec).__name__}"
    with reading(what):
        if isinstance(spec, duckdb.DuckDBPyRelation):
            spec = spec.to_arrow_table()
        if library == "polars" and hasattr(spec, "collect"):
            spec = spec.collect()  # once: a lazy frame need not give the same rows again
        if library in {"pandas", "polars"} and hasattr(spec, "columns"):
            check_names([str(name) for name in spec.columns], what)
            pandas = library == "pandas"
            spec = pa.Table.from_pandas(spec, preserve_index=False) if pandas else spec.to_arrow()
        if isinstance(spec, pa.Table | pa.RecordBatch):
            check_names(spec.schema.names, what)
        return spec


def attach_object(con: Connection, spec: Any) -> None:
    """Name a table in memory `source`."""
    import pyarrow.dataset as ds  # noqa: PLC0415  (slow to load, and rarely needed)

    what = f"the {type(spec).__name__}"
    spec = arrow_table(spec)
    with reading(what):
        if isinstance(spec, pa.Table | pa.RecordBatch | ds.Dataset):
            check_names(spec.schema.names, what)
            con.register(SOURCE, spec)
        elif hasattr(spec, "__arrow_c_stream__"):
            stream = pa.RecordBatchReader.from_stream(spec)
            check_names(stream.schema.names, what)
            copy_stream(con, stream)
        else:
            raise UsageError(
                f"{what} is not a table", hint=f"a pandas, polars or Arrow table, or {READS}"
            )


def attach_dataset(con: Connection, name: str) -> str:
    """Name a table that comes with Voile `source`; its short name."""
    found = datasets.find(name)
    columns = ", ".join(map(quote_identifier, found.columns))
    where = f" WHERE {found.where}" if found.where else ""
    with reading(f"dataset {name!r}"):
        make_view(con, f"SELECT {columns} FROM read_parquet({paths([found.path])}){where}")
    return found.name.split("/")[0]
