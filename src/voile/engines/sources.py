"""Makes any table a user may name scannable in DuckDB, any number of times, as `source`."""

from __future__ import annotations

import atexit
import bz2
import csv
import difflib
import glob
import importlib
import io
import lzma
import re
import shutil
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, quote, unquote

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from voile import datasets
from voile.errors import TableError, UsageError, VoileError, did_you_mean

SOURCE = "source"

_STREAM = "voile_stream"  # a one-shot stream, registered only while it is copied
_DATABASE = "voile_database"  # the attached DuckDB file
_TEXT = (".csv", ".tsv", ".txt")
_PACKED = (".gz", ".zst", ".bz2", ".xz")
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
_DATABASES = (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db")
_READS = (
    f"{' '.join(_TEXT)} (also {' '.join(_PACKED)} .zip), {' '.join(_PARQUET)} or a folder of them, "
    f"{' '.join(_ARROW)}, {' '.join(_DATABASES)}, postgresql://…::table, dataset:NAME"
)
_HEADER_HINT = "the first line of a text table must hold its column names, each once"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)

_HOST = r"(?:\[[0-9A-Fa-f:.%]*\]|[^\s:/?#@,\[\]]*)(?::\d*)?"
_POSTGRES_URL = re.compile(
    r"postgres(?:ql)?://(?:[^\s:/?#@\[\]]*(?::(?P<password>[^\s:/?#@\[\]]*))?@)?"
    rf"(?P<host>{_HOST}(?:,{_HOST})*)(?:/(?P<base>[^\s/?#@]*))?(?:\?(?P<options>[^\s?#]*))?"
)
# What ADBC and DuckDB agree on; any other type is sent as text.
_POSTGRES_TYPES = frozenset(
    "smallint|integer|bigint|real|double precision|boolean|text|character varying|date|uuid|bytea|"
    "timestamp without time zone|timestamp with time zone|time without time zone".split("|")
)
_POSTGRES_CASTS = {"numeric": "::double precision", "money": "::numeric::double precision"}
# Materialised views are missing from information_schema, so the catalogue itself is asked.
_POSTGRES_TABLES = """
SELECT n.nspname::text, c.relname::text, coalesce(n.nspname = current_schema(), false)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^(pg_|information_schema$)'
ORDER BY 3 DESC, 1, 2"""
_POSTGRES_COLUMNS = """
SELECT a.attname::text, format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL)
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = {}::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""


def attach(
    con: duckdb.DuckDBPyConnection, spec: object, *, null_text: Sequence[str] = ()
) -> str:
    """Make `spec` available in `con` as the view (or temporary table) `source`.

    Returns a short name for the table. `null_text` are the texts that stand for NULL in text
    files, besides the empty one. What is attached belongs to `con` alone: its cursors are other
    connections to DuckDB and do not see it.
    """
    _clear(con)
    if not isinstance(spec, str | Path):
        _attach_object(con, spec)
        return "table"
    text = str(spec)
    if text.startswith("dataset:"):
        name = _attach_dataset(con, text.removeprefix("dataset:"))
    elif text.startswith(("postgresql://", "postgres://")):
        name = _attach_postgres(con, text)
    elif "://" in text:
        # The rest is not repeated: it may hold a password.
        raise UsageError(f"{text.split('://')[0]}:// is not read", hint=f"what is read: {_READS}")
    else:
        name = _attach_path(con, text, null_text)
    return _short_name(con, name)


def quote_identifier(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """`text` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def _clear(con: duckdb.DuckDBPyConnection) -> None:
    """Drop what an earlier call attached: DuckDB replaces neither a table by a view nor back."""
    with _reading("the connection"):
        con.unregister(SOURCE)
        found = con.execute(
            f"SELECT 'VIEW' FROM duckdb_views() WHERE temporary AND view_name = '{SOURCE}' "
            f"UNION ALL SELECT 'TABLE' FROM duckdb_tables() WHERE temporary AND table_name = '{SOURCE}'"
        ).fetchall()
        for (kind,) in found:
            con.execute(f"DROP {kind} temp.{SOURCE}")
        con.execute(f"DETACH DATABASE IF EXISTS {_DATABASE}")


@contextmanager
def _reading(what: str, *, hint: str = "", secrets: Iterable[str] = ()) -> Iterator[None]:
    """Turn whatever a reader raises into one sentence that names the table."""
    try:
        yield
    except VoileError:
        raise
    except Exception as error:  # five libraries read here, each with its own family of errors
        reason = _reason(error)
        hidden = [secret for secret in secrets if secret]
        for secret in hidden:
            reason = reason.replace(secret, "***")
        raise TableError(f"{what} cannot be read: {reason}", hint=hint) from (
            None if hidden else error
        )


def _reason(error: Exception) -> str:
    """The first line of the message; of a text table's bad line, where and why but not what."""
    text = " ".join(map(str, error.args)) if isinstance(error, pa.ArrowException) else str(error)
    lines = [line.strip() for line in text.splitlines() if not line.startswith("Original Line:")]
    lines = [line for line in lines if line] or [type(error).__name__]
    reason = ": ".join(lines[:2]) if "CSV Error on Line" in lines[0] else lines[0]
    return reason.split(". Detail: Python exception")[0]


def _check_names(names: Sequence[str], what: str, *, hint: str = "") -> None:
    """DuckDB would silently rename such columns, so that the user's names no longer find them."""
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


def _short_name(con: duckdb.DuckDBPyConnection, name: str) -> str:
    """`name` as an SQL identifier that needs no quotes."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"\W+", "_", plain).strip("_")
    if not re.match("[A-Za-z]", plain):
        return "table"
    reserved = con.execute(
        "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
    ).fetchall()
    return f"{plain}_table" if (plain.lower(),) in reserved else plain


def _view(con: duckdb.DuckDBPyConnection, select: str) -> None:
    con.execute(f"CREATE TEMP VIEW {SOURCE} AS {select}")


def _copy(con: duckdb.DuckDBPyConnection, stream: Any, select: str = "*") -> None:
    """Copy a stream that can be read only once into a temporary table."""
    con.register(_STREAM, stream)
    try:
        con.execute(f"CREATE TEMP TABLE {SOURCE} AS SELECT {select} FROM {_STREAM}")
    finally:
        con.unregister(_STREAM)


def _path_list(files: Iterable[Path]) -> str:
    """The files as an SQL list; escaped, since DuckDB takes every path for a pattern."""
    return "[" + ", ".join(quote_literal(glob.escape(str(file))) for file in files) + "]"


# --- objects in memory ------------------------------------------------------------------------


def _attach_object(con: duckdb.DuckDBPyConnection, spec: Any) -> None:
    what = f"the {type(spec).__name__}"
    with _reading(what):
        if isinstance(spec, duckdb.DuckDBPyRelation):
            spec = spec.to_arrow_table()
        library = type(spec).__module__.partition(".")[0]
        if library == "polars" and hasattr(spec, "collect"):
            spec = spec.collect()  # once: a lazy frame need not give the same rows again
        if library in {"pandas", "polars"} and hasattr(spec, "columns"):
            _check_names([str(name) for name in spec.columns], what)
            spec = pa.table(spec)
        if isinstance(spec, pa.Table | pa.RecordBatch | ds.Dataset):
            _check_names(spec.schema.names, what)
            con.register(SOURCE, spec)
        elif hasattr(spec, "__arrow_c_stream__"):
            stream = pa.RecordBatchReader.from_stream(spec)
            _check_names(stream.schema.names, what)
            _copy(con, stream)
        else:
            raise UsageError(
                f"{what} is not a table",
                hint=f"a path, a pandas, polars or Arrow table, or one of: {_READS}",
            )


def _attach_dataset(con: duckdb.DuckDBPyConnection, name: str) -> str:
    found = datasets.find(name)
    columns = ", ".join(map(quote_identifier, found.columns))
    where = f" WHERE {found.where}" if found.where else ""
    with _reading(f"dataset {name!r}"):
        _view(con, f"SELECT {columns} FROM read_parquet({_path_list([found.path])}){where}")
    return found.name.split("/")[0]


# --- files ------------------------------------------------------------------------------------


def _attach_path(con: duckdb.DuckDBPyConnection, text: str, null_text: Sequence[str]) -> str:
    path, _, table = (text, "", "") if Path(text).exists() else text.partition("::")
    root, files = _find(path)
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1 or (len(files) > 1 and kinds.isdisjoint({"text", "parquet"})):
        raise UsageError(
            f"{path} names {len(files)} files that do not make one table",
            hint="several files are read together if all are text or all are Parquet",
        )
    kind = kinds.pop()
    if table and kind not in _DATABASE_READERS:
        raise UsageError(f"{path} is not a database: '::{table}' names nothing in it")
    with _reading(path):
        if kind in _DATABASE_READERS:
            return _DATABASE_READERS[kind](con, files[0], table)
        if kind == "text":
            _attach_text(con, files, null_text)
        elif kind == "parquet":
            _attach_parquet(con, root, files)
        else:
            _attach_arrow(con, files[0])
    return Path(path).resolve().name.split(".")[0]


def _find(text: str) -> tuple[Path, list[Path]]:
    """The files that a path, a folder or a pattern names, and the folder they were looked for in."""
    path = Path(text).expanduser().absolute()
    if path.is_file():
        return path.parent, [path]
    if path.is_dir():
        # Spark and others keep what is not part of the table under names with _ or . in front.
        found = (p for p in path.rglob("*") if p.suffix.lower() in _PARQUET and p.is_file())
        files = [p for p in found if not re.search(r"(^|/)[._]", p.relative_to(path).as_posix())]
        if not files:
            raise UsageError(f"folder {text} holds no Parquet files")
        return path, sorted(files)
    if not glob.has_magic(text):
        raise _missing(text, path)
    files = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]
    files = [file for file in files if file.is_file()]
    if not files:
        raise UsageError(f"no file matches {text}")
    return next(folder for folder in path.parents if not glob.has_magic(str(folder))), files


def _missing(text: str, path: Path) -> UsageError:
    if not path.parent.is_dir():
        return UsageError(f"there is no file {text}", hint=f"there is no folder {path.parent}")
    names = [entry.name for entry in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=3)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else ""
    return UsageError(f"there is no file {text}", hint=hint)


def _kind(file: Path) -> str:
    """What a file is: by its first bytes for databases, whose names vary, else by its name."""
    with _reading(str(file)), file.open("rb") as stream:
        magic = stream.read(16)
    if not magic:
        raise TableError(f"{file} is empty")
    if magic == b"SQLite format 3\0":
        return "sqlite"
    if magic[8:12] == b"DUCK":
        return "duckdb"
    last = file.suffix.lower()
    if last in _DATABASES:
        raise TableError(f"{file} is neither a DuckDB nor a SQLite database")
    if last == ".zip" or (Path(file.stem).suffix.lower() if last in _PACKED else last) in _TEXT:
        return "text"
    if last in _PARQUET + _ARROW:
        return "parquet" if last in _PARQUET else "arrow"
    raise UsageError(f"{file} is not of a kind that is read", hint=f"what is read: {_READS}")


def _attach_text(
    con: duckdb.DuckDBPyConnection, files: Sequence[Path], null_text: Sequence[str]
) -> None:
    plain = [_unpacked(file) for file in files]
    delimiter, names = _header(plain[0], files[0])
    for file, shown in zip(plain[1:], files[1:], strict=True):
        if _header(file, shown) != (delimiter, names):
            raise TableError(f"{shown} does not have the column names of {files[0].name}")
    nulls = ", ".join(map(quote_literal, ("", *null_text)))
    # Skipped lines and comments are switched off: the sniffer would drop rows without a word.
    options = (
        f"delim = {quote_literal(delimiter)}, quote = '\"', header = true, skip = 0, comment = '', "
        f"strict_mode = true, nullstr = [{nulls}], hive_partitioning = false"
    )
    sniffed = [_sniff(con, file, options, names) for file in plain]
    types, _, formats = sniffed[0]
    escape = max(escape for _, escape, _ in sniffed)  # a backslash, if any part has one
    if len(files) > 1:
        # Only DuckDB can tell an empty column of one part, which fits any type, from text.
        parts = f"read_csv({_path_list(plain)}, {options}, sample_size = -1, files_to_sniff = -1)"
        types = [row[1] for row in con.execute(f"DESCRIBE FROM {parts}").fetchall()]
        if any(other != formats for _, _, other in sniffed):
            # One part says day/month and another month/day: which is right cannot be known.
            types = ["VARCHAR" if kind in {"DATE", "TIMESTAMP"} else kind for kind in types]
            formats = ""
    # Everything is written out, so that a scan does not read the whole file to sniff it again.
    table = _read_text(plain, names, types, f"{options}, escape = '{escape}'{formats}")
    if len(files) > 1:
        con.execute(f"SELECT count(*) FROM {table}").fetchall()  # do the parts parse alike?
    _view(con, f"FROM {table}")


def _unpacked(file: Path) -> Path:
    """A file that DuckDB can read: itself, or a copy that lasts as long as this process."""
    suffix = file.suffix.lower()
    if suffix not in {".bz2", ".xz", ".zip"}:
        return file
    folder = tempfile.mkdtemp(prefix="voile-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if suffix == ".zip":
        with zipfile.ZipFile(file) as archive, _only_member(archive, file) as member:
            return _save(member, Path(folder, Path(member.name).name))
    with (bz2.open if suffix == ".bz2" else lzma.open)(file) as stream:
        return _save(stream, Path(folder, file.stem))


def _only_member(archive: zipfile.ZipFile, file: Path) -> IO[bytes]:
    names = [name for name in archive.namelist() if not re.search(r"/$|^__MACOSX/", name)]
    if len(names) != 1 or Path(names[0]).suffix.lower() not in _TEXT:
        raise UsageError(
            f"{file} holds {', '.join(names) or 'nothing'}",
            hint=f"a .zip is read if it holds one file, {' or '.join(_TEXT)}",
        )
    return archive.open(names[0])


def _save(stream: Any, target: Path) -> Path:
    with target.open("wb") as copy:
        shutil.copyfileobj(stream, copy)
    return target


def _header(file: Path, shown: Path) -> tuple[str, list[str]]:
    """The delimiter and the column names: the delimiter that makes the most names, if not .tsv."""
    packing = {".gz": "gzip", ".zst": "zstd"}.get(file.suffix.lower())
    with pa.input_stream(str(file), compression=packing) as stream:
        text = stream.read(2**20).decode("utf-8-sig", errors="replace")
    tabs = ".tsv" in (file.suffix.lower(), Path(file.stem).suffix.lower())
    delimiter, names = "", list[str]()
    for candidate in "\t" if tabs else ",;\t|":
        found = next(csv.reader(io.StringIO(text, newline=""), delimiter=candidate), [])
        if len(found) > len(names):
            delimiter, names = candidate, [name.strip() for name in found]
    if not text.strip():
        raise TableError(f"{shown} is empty")
    _check_names(names, str(shown), hint=_HEADER_HINT)
    number = next(filter(_NUMBER.fullmatch, names), None)
    if number is not None:
        raise TableError(f"{shown} has a number, {number}, as a column name", hint=_HEADER_HINT)
    return delimiter, names


def _sniff(
    con: duckdb.DuckDBPyConnection, file: Path, options: str, names: Sequence[str]
) -> tuple[list[str], str, str]:
    """The columns' types from the whole file, the escape, and the options for date formats."""
    try:
        [(columns, escape, date, stamp)] = con.execute(
            "SELECT Columns, Escape, DateFormat, TimestampFormat "
            f"FROM sniff_csv({_path_list([file])[1:-1]}, {options}, sample_size = -1)"
        ).fetchall()
    except duckdb.Error:
        # The sniffer only says that it failed; reading every line as text says which and why.
        table = _read_text([file], names, ["VARCHAR"] * len(names), f"{options}, escape = '\"'")
        con.execute(f"SELECT count(*) FROM {table}").fetchall()
        raise
    types = [column["type"] for column in columns]
    if len(types) != len(names):
        raise TableError(f"the first line of {file} names {len(names)} columns, not {len(types)}")
    formats = {"dateformat": date, "timestampformat": stamp}
    written = (f", {key} = {quote_literal(value)}" for key, value in formats.items() if value)
    return types, '"' if escape == "(empty)" else escape, "".join(written)


def _read_text(
    files: Iterable[Path], names: Iterable[str], types: Iterable[str], options: str
) -> str:
    columns = ", ".join(
        f"{quote_literal(name)}: {quote_literal(kind)}"
        for name, kind in zip(names, types, strict=True)
    )
    return f"read_csv({_path_list(files)}, auto_detect = false, {options}, columns = {{{columns}}})"


def _attach_parquet(con: duckdb.DuckDBPyConnection, root: Path, files: Sequence[Path]) -> None:
    schemas = []
    for file in files:
        with _reading(str(file)):
            schemas.append(pq.read_schema(file))
        _check_names(schemas[-1].names, str(file))
        if set(schemas[-1].names) != set(schemas[0].names):
            raise TableError(f"{file} does not have the columns of {files[0].name}")
    # Folders such as year=2024 hold a column, but only below the one that the user named.
    hive = any("=" in str(file.parent.relative_to(root)) for file in files)
    union = any(schema.types != schemas[0].types for schema in schemas)
    options = f"hive_partitioning = {hive}, union_by_name = {union}"
    _view(con, f"FROM read_parquet({_path_list(files)}, {options})")


def _attach_arrow(con: duckdb.DuckDBPyConnection, file: Path) -> None:
    with file.open("rb") as stream:
        if stream.read(6) == b"ARROW1":
            table = ds.dataset(file, format="ipc")
            _check_names(table.schema.names, str(file))
            con.register(SOURCE, table)
            return
        stream.seek(0)
        with pa.ipc.open_stream(stream) as batches:
            _check_names(batches.schema.names, str(file))
            _copy(con, batches)


# --- databases --------------------------------------------------------------------------------


def _choose(tables: Mapping[str, Any], wanted: str, where: str, default: str) -> str:
    """The table that is meant; those of the schema `default` are listed without it."""
    if not tables:
        raise TableError(f"{where} holds no tables")
    if not wanted and len(tables) == 1:
        return next(iter(tables))
    if not wanted:
        listed = ", ".join(tables)
        raise UsageError(
            f"{where} holds {len(tables)} tables: {listed}", hint="add ::table to name one of them"
        )
    folded = {name.lower(): name for name in tables}
    for name in (wanted, wanted.removeprefix(f"{default}.")):
        if name in tables or name.lower() in folded:
            return name if name in tables else folded[name.lower()]
    raise UsageError(
        f"there is no table {wanted!r} in {where}", hint=did_you_mean(wanted, list(tables))
    )


def _attach_duckdb(con: duckdb.DuckDBPyConnection, file: Path, table: str) -> str:
    con.execute(f"ATTACH {quote_literal(str(file))} AS {_DATABASE} (READ_ONLY)")
    found = con.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        f"WHERE table_catalog = '{_DATABASE}' ORDER BY ALL"
    ).fetchall()
    tables = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in found}
    schema, name = tables[_choose(tables, table, str(file), "main")]
    _view(con, f"FROM {_DATABASE}.{quote_identifier(schema)}.{quote_identifier(name)}")
    return name


def _attach_sqlite(con: duckdb.DuckDBPyConnection, file: Path, table: str) -> str:
    driver = importlib.import_module("adbc_driver_sqlite.dbapi")  # slow to load, rarely needed
    with driver.connect(f"file:{quote(str(file))}?mode=ro") as db, db.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )
        tables = {name: name for (name,) in cursor.fetchall()}
        name = _choose(tables, table, str(file), "main")
        columns, first, select = _sqlite_types(cursor, name)
        listed = ", ".join(columns)
        # ADBC takes the types from the first batch, NULLs for integers: a row before the
        # table's own sets them, and is cut off again.
        cursor.execute(f"SELECT {first} UNION ALL SELECT {listed} FROM {quote_identifier(name)}")
        batches = cursor.fetch_record_batch()
        rest = (batch.slice(i == 0) for i, batch in enumerate(batches))
        _copy(con, pa.RecordBatchReader.from_batches(batches.schema, rest), select)
    return name
