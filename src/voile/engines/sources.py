"""Makes any table that a user may name scannable in DuckDB, any number of times, as `source`."""

from __future__ import annotations

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from voile import datasets
from voile.errors import TableError, UsageError, VoileError, did_you_mean

SOURCE = "source"
Con = duckdb.DuckDBPyConnection

_STREAM, _DATABASE = "voile_stream", "voile_database"  # names taken in the connection
_TEXT = (".csv", ".tsv", ".txt")
_PACKED = (".gz", ".zst", ".bz2", ".xz")
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
_DATABASES = (".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db")
_READS = (
    f"{' '.join(_TEXT)} (also {' '.join(_PACKED)} .zip), {' '.join(_PARQUET)} or a folder of them, "
    f"{' '.join(_ARROW)}, {' '.join(_DATABASES)}, postgresql://…::table, dataset:NAME"
)
_HEADER_HINT = "the first line of a text file must hold the column names"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)

# Declared types that SQLite stores as something else: DuckDB's type, and what all values must meet.
_SQLITE_CASTS = {
    "bool": ("BOOLEAN", "{0} IN (0, 1)"),
    "boolean": ("BOOLEAN", "{0} IN (0, 1)"),
    "date": ("DATE", "{0} IS date({0})"),
    "datetime": ("TIMESTAMP", "substr({0}, 1, 19) IS datetime({0})"),
    "timestamp": ("TIMESTAMP", "substr({0}, 1, 19) IS datetime({0})"),
}
_SQLITE_SAMPLE = {"integer": "0", "real": "0.0", "text": "''", "blob": "x''"}

_HOST = r"(?:\[[0-9A-Fa-f:.%]*\]|[^\s:/?#@,\[\]]*)(?::\d*)?"
_POSTGRES_URL = re.compile(
    r"postgres(?:ql)?://(?:[^\s:/?#@\[\]]*(?::(?P<password>[^\s:/?#@\[\]]*))?@)?"
    rf"(?P<host>{_HOST}(?:,{_HOST})*)(?:/(?P<base>[^\s/?#@]*))?(?:\?(?P<options>[^\s?#]*))?"
)
# ADBC hands numeric over as text, and what neither it nor DuckDB knows as bytes.
_POSTGRES_CASTS = {"numeric": "::double precision", "money": "::numeric::double precision"}
_POSTGRES_AS_IS = re.compile(
    "smallint|integer|bigint|real|double precision|boolean|text|character varying|date|uuid|bytea|"
    "timestamp with(out)? time zone|time without time zone"
)
# Materialised views are not in information_schema, so the catalogue itself is asked.
_POSTGRES_TABLES = """
SELECT n.nspname::text, c.relname::text, coalesce(n.nspname = current_schema(), false)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^(pg_|information_schema$)'
ORDER BY 3 DESC, 1, 2"""
_POSTGRES_COLUMNS = """
SELECT a.attname::text, format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL)
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = {}::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""


def attach(con: Con, spec: object, *, null_text: Sequence[str] = ()) -> str:
    """Make `spec` available in `con` as the view (or temporary table) `source`.

    Returns a short name for the table. `null_text` are texts that stand for NULL in text files,
    besides the empty one. Only `con` itself sees `source`: its cursors are connections of their
    own.
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
    elif "://" in text:  # not repeated whole, it may hold a password
        scheme = text.partition("://")[0]
        raise UsageError(f"{scheme}:// is not read", hint=f"what is read: {_READS}")
    else:
        with _reading(text):
            name = _attach_path(con, text, null_text)
    return _short_name(con, name)


def quote_identifier(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """`text` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def _clear(con: Con) -> None:
    """Drop what an earlier call attached: DuckDB does not replace a table by a view, or back."""
    with _reading("the connection"):
        con.unregister(SOURCE)
        found = con.execute(
            f"SELECT 'VIEW' FROM duckdb_views() WHERE temporary AND view_name = '{SOURCE}' UNION "
            f"SELECT 'TABLE' FROM duckdb_tables() WHERE temporary AND table_name = '{SOURCE}'"
        ).fetchall()
        for (kind,) in found:
            con.execute(f"DROP {kind} temp.{SOURCE}")
        con.execute(f"DETACH DATABASE IF EXISTS {_DATABASE}")


@contextmanager
def _reading(what: str, *, secrets: Iterable[str] = ()) -> Iterator[None]:
    """Turn whatever a reader raises into one sentence that names the table."""
    try:
        yield
    except VoileError:
        raise
    except Exception as error:  # five libraries read here, each with its own family of errors
        reason, hidden = _reason(error), [secret for secret in secrets if secret]
        for secret in hidden:
            reason = reason.replace(secret, "***")
        cause = None if hidden else error
        raise TableError(f"{what} cannot be read: {reason}") from cause


def _reason(error: Exception) -> str:
    """The first line of the message; for a bad line of a text file where and why, not what."""
    text = " ".join(map(str, error.args)) if isinstance(error, pa.ArrowException) else str(error)
    lines = [line.strip() for line in text.splitlines() if not line.startswith("Original Line:")]
    lines = [line for line in lines if line] or [type(error).__name__]
    reason = ": ".join(lines[:2]) if "CSV Error on Line" in lines[0] else lines[0]
    return reason.split(". Detail: Python exception")[0]


def _check_names(names: Sequence[str], what: str, *, hint: str = "") -> None:
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


def _short_name(con: Con, name: str) -> str:
    """`name` as an SQL identifier that needs no quotes."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"\W+", "_", plain).strip("_")
    if not re.match("[A-Za-z]", plain):
        return "table"
    reserved = con.execute(
        "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
    ).fetchall()
    return f"{plain}_table" if (plain.lower(),) in reserved else plain


def _view(con: Con, select: str) -> None:
    con.execute(f"CREATE TEMP VIEW {SOURCE} AS {select}")


def _copy(con: Con, stream: Any, select: str = "*") -> None:
    """Copy a stream that can be read only once into a temporary table."""
    con.register(_STREAM, stream)
    try:
        con.execute(f"CREATE TEMP TABLE {SOURCE} AS SELECT {select} FROM {_STREAM}")
    finally:
        con.unregister(_STREAM)


def _listed(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(quote_literal, texts))}]"


def _paths(files: Iterable[Path]) -> str:
    """The files as an SQL list; escaped, since DuckDB takes every path for a pattern."""
    return _listed(glob.escape(str(file)) for file in files)


# ---------------------------------------------------------------------------- held in memory


def _attach_object(con: Con, spec: Any) -> None:
    what = f"the {type(spec).__name__}"
    with _reading(what):
        library = type(spec).__module__.partition(".")[0]
        if isinstance(spec, duckdb.DuckDBPyRelation):
            spec = spec.to_arrow_table()
        if library == "polars" and hasattr(spec, "collect"):
            spec = spec.collect()  # once: a lazy frame need not give the same rows again
        if library in {"pandas", "polars"} and hasattr(spec, "columns"):
            _check_names([str(name) for name in spec.columns], what)
            spec = pa.table(spec)  # leaves out pandas' index
        if isinstance(spec, pa.Table | pa.RecordBatch | ds.Dataset):
            _check_names(spec.schema.names, what)
            con.register(SOURCE, spec)
        elif hasattr(spec, "__arrow_c_stream__"):
            stream = pa.RecordBatchReader.from_stream(spec)
            _check_names(stream.schema.names, what)
            _copy(con, stream)
        else:
            raise UsageError(
                f"{what} is not a table", hint=f"a pandas, polars or Arrow table, or {_READS}"
            )


def _attach_dataset(con: Con, name: str) -> str:
    found = datasets.find(name)
    columns = ", ".join(map(quote_identifier, found.columns))
    where = f" WHERE {found.where}" if found.where else ""
    with _reading(f"dataset {name!r}"):
        _view(con, f"SELECT {columns} FROM read_parquet({_paths([found.path])}){where}")
    return found.name.split("/")[0]


# ------------------------------------------------------------------------------------- files


def _attach_path(con: Con, text: str, null_text: Sequence[str]) -> str:
    path, _, table = text.rpartition("::")
    if not path or Path(text).exists():
        path, table = text, ""
    root, files = _find(path)
    kinds = {_kind(file) for file in files}
    kind = kinds.pop()
    if kinds or (len(files) > 1 and kind not in {"text", "parquet"}):
        raise UsageError(
            f"{path} names {len(files)} files that do not make one table",
            hint="several files are read together if all are text files or all are Parquet",
        )
    if kind in {"duckdb", "sqlite"}:
        return (_attach_duckdb if kind == "duckdb" else _attach_sqlite)(con, files[0], table)
    if table:
        raise UsageError(f"{path} is not a database, so '::{table}' names nothing in it")
    if kind == "text":
        _attach_text(con, files, null_text)
    elif kind == "parquet":
        _attach_parquet(con, root, files)
    else:
        _attach_arrow(con, files[0])
    return Path(path).resolve().name.split(".")[0]


def _find(text: str) -> tuple[Path, list[Path]]:
    """The files that a path, a folder or a pattern names, and the folder that was looked in."""
    path = Path(text).expanduser().absolute()
    if path.is_file():
        return path.parent, [path]
    if path.is_dir():
        # Spark and others keep what is not part of the table under names with _ or . in front.
        found = (p for p in sorted(path.rglob("*")) if p.suffix.lower() in _PARQUET and p.is_file())
        files = [p for p in found if not re.search(r"(^|/)[._]", p.relative_to(path).as_posix())]
        if not files:
            raise UsageError(f"folder {text} holds no Parquet files")
        return path, files
    if not glob.has_magic(text):
        raise _missing(text, path)
    root = next(folder for folder in path.parents if folder.is_dir())
    found = (p for p in sorted(root.glob(str(path.relative_to(root)))) if p.is_file())
    files = [p for p in found if not p.name.startswith(".")]
    if not files:
        raise UsageError(f"no file matches {text}")
    return root, files


def _missing(text: str, path: Path) -> UsageError:
    if not path.parent.is_dir():
        return UsageError(f"there is no file {text}", hint=f"there is no folder {path.parent}")
    names = [entry.name for entry in path.parent.iterdir()]
    near = " or ".join(map(repr, difflib.get_close_matches(path.name, names)))
    return UsageError(f"there is no file {text}", hint=f"did you mean {near}?" if near else "")


def _kind(file: Path) -> str:
    """What a file is: by its first bytes if a database, whose names vary, else by its name."""
    with file.open("rb") as stream:
        magic = stream.read(16)
    last = file.suffix.lower()
    if not magic:
        raise TableError(f"{file} is empty")
    if magic == b"SQLite format 3\0" or magic[8:12] == b"DUCK":
        return "duckdb" if magic[8:12] == b"DUCK" else "sqlite"
    if last in _DATABASES:
        raise TableError(f"{file} is neither a DuckDB nor a SQLite database")
    if last == ".zip" or (Path(file.stem).suffix.lower() if last in _PACKED else last) in _TEXT:
        return "text"
    if last in _PARQUET + _ARROW:
        return "parquet" if last in _PARQUET else "arrow"
    raise UsageError(f"{file} is not of a kind that is read", hint=f"what is read: {_READS}")


def _attach_text(con: Con, files: Sequence[Path], null_text: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="voile-") as folder:
        plain = [_unpacked(file, Path(folder, str(i))) for i, file in enumerate(files)]
        delimiter, names = _header(plain[0], files[0])
        for file, shown in zip(plain[1:], files[1:], strict=True):
            if _header(file, shown) != (delimiter, names):
                raise TableError(f"{shown} does not have the column names of {files[0].name}")
        # Skipped lines and comments are switched off: the sniffer would drop rows silently.
        options = (
            f"delim = {quote_literal(delimiter)}, quote = '\"', header = true, skip = 0, "
            f"comment = '', strict_mode = true, nullstr = {_listed(['', *null_text])}, "
            "hive_partitioning = false"
        )
        _copy_text(con, plain, names, options)


def _copy_text(con: Con, files: Sequence[Path], names: Sequence[str], options: str) -> None:
    """Copy the files into a temporary table.

    A view would not do: DuckDB 2.0 pushes casts down into the file, so that TRY_CAST raises and
    a number cast to text is spelled as in the file; and every scan would sniff the types again.
    """
    whole = f"sample_size = -1, files_to_sniff = -1, names = {_listed(names)}"
    rows = f"read_csv({_paths(files)}, {options}, {whole})"
    try:
        con.execute(f"CREATE TEMP TABLE {SOURCE} AS FROM {rows}")
    except duckdb.Error:
        # A sniffer that fails says no more than that; reading it all as text says where and why.
        columns = ", ".join(f"{quote_literal(name)}: 'VARCHAR'" for name in names)
        plain = f"{options}, escape = '\"', auto_detect = false, columns = {{{columns}}}"
        con.execute(f"SELECT count(*) FROM read_csv({_paths(files)}, {plain})").fetchall()
        raise


def _unpacked(file: Path, folder: Path) -> Path:
    """A file that DuckDB can read: itself, or a copy in `folder`."""
    suffix = file.suffix.lower()
    if suffix not in {".bz2", ".xz", ".zip"}:
        return file
    folder.mkdir()
    if suffix == ".zip":
        with zipfile.ZipFile(file) as archive, _only_member(archive, file) as packed:
            return _save(packed, folder / f"table{Path(packed.name).suffix}")
    with (bz2.open if suffix == ".bz2" else lzma.open)(file) as packed:
        return _save(packed, folder / file.stem)


def _only_member(archive: zipfile.ZipFile, file: Path) -> IO[bytes]:
    names = [name for name in archive.namelist() if not re.search(r"/$|^__MACOSX/", name)]
    if len(names) != 1 or Path(names[0]).suffix.lower() not in _TEXT:
        raise UsageError(
            f"{file} holds {', '.join(names) or 'no file'}",
            hint=f"a .zip is read if it holds one file and that is {' or '.join(_TEXT)}",
        )
    return archive.open(names[0])


def _save(packed: Any, target: Path) -> Path:
    with target.open("wb") as copy:
        shutil.copyfileobj(packed, copy)
    return target


def _header(file: Path, shown: Path) -> tuple[str, list[str]]:
    """The delimiter, that which parts the first line into the most names, and those names."""
    packing = {".gz": "gzip", ".zst": "zstd"}.get(file.suffix.lower())
    with pa.input_stream(str(file), compression=packing) as stream:
        text = stream.read(2**20).decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise TableError(f"{shown} is empty")
    tabs = ".tsv" in (file.suffix.lower(), Path(file.stem).suffix.lower())
    delimiter, names = "", list[str]()
    for candidate in "\t" if tabs else ",;\t|":
        found = next(csv.reader(io.StringIO(text, newline=""), delimiter=candidate), [])
        if len(found) > len(names):
            delimiter, names = candidate, [name.strip() for name in found]
    _check_names(names, str(shown), hint=_HEADER_HINT)
    number = next(filter(_NUMBER.fullmatch, names), None)
    if number is not None:
        raise TableError(f"a column of {shown} is named {number}, a number", hint=_HEADER_HINT)
    return delimiter, names


def _attach_parquet(con: Con, root: Path, files: Sequence[Path]) -> None:
    schemas = []
    for file in files:
        with _reading(str(file)):
            schemas.append(pq.read_schema(file))
        _check_names(schemas[-1].names, str(file))
        if set(schemas[-1].names) != set(schemas[0].names):
            raise TableError(f"{file} does not have the columns of {files[0].name}")
    # A folder such as year=2024 holds a column, but only below the folder that the user named.
    hive = any("=" in str(file.parent.relative_to(root)) for file in files)
    union = any(schema.types != schemas[0].types for schema in schemas)
    options = f"hive_partitioning = {hive}, union_by_name = {union}"
    _view(con, f"FROM read_parquet({_paths(files)}, {options})")


def _attach_arrow(con: Con, file: Path) -> None:
    with file.open("rb") as stream:
        if stream.read(6) != b"ARROW1":
            stream.seek(0)
            with pa.ipc.open_stream(stream) as batches:
                _check_names(batches.schema.names, str(file))
                return _copy(con, batches)
    table = ds.dataset(file, format="ipc")
    _check_names(table.schema.names, str(file))
    con.register(SOURCE, table)
    return None


# --------------------------------------------------------------------------------- databases


def _choose(tables: Mapping[str, Any], wanted: str, where: str, home: str) -> str:
    """The table that is meant; those of the schema `home` are known by their name alone."""
    if not tables:
        raise TableError(f"{where} holds no tables")
    if not wanted and len(tables) == 1:
        return next(iter(tables))
    if not wanted:
        raise UsageError(
            f"{where} holds {len(tables)} tables: {', '.join(tables)}",
            hint=f"add ::table to say which, such as ::{next(iter(tables))}",
        )
    folded = {name.lower(): name for name in tables} | {name: name for name in tables}
    for name in (wanted, wanted.lower(), wanted.removeprefix(f"{home}.").lower()):
        if name in folded:
            return folded[name]
    raise UsageError(
        f"there is no table {wanted!r} in {where}", hint=did_you_mean(wanted, list(tables))
    )


def _attach_duckdb(con: Con, file: Path, table: str) -> str:
    con.execute(f"ATTACH {quote_literal(str(file))} AS {_DATABASE} (READ_ONLY)")
    found = con.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        f"WHERE table_catalog = '{_DATABASE}' ORDER BY ALL"
    ).fetchall()
    tables: dict[str, tuple[str, str]]
    tables = {n if schema == "main" else f"{schema}.{n}": (schema, n) for schema, n in found}
    schema, name = tables[_choose(tables, table, str(file), "main")]
    _view(con, f"FROM {_DATABASE}.{quote_identifier(schema)}.{quote_identifier(name)}")
    return name


def _attach_sqlite(con: Con, file: Path, table: str) -> str:
    driver = importlib.import_module("adbc_driver_sqlite.dbapi")  # slow to load, rarely needed
    with driver.connect(f"file:{quote(str(file))}?mode=ro") as db, db.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            "AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
        )
        tables = {name: name for (name,) in cursor.fetchall()}
        name = _choose(tables, table, str(file), "main")
        columns = _sqlite_columns(cursor, name, f"table {name!r} of {file}")
        sample = ", ".join(f"{value} AS {column}" for column, value, _ in columns)
        listed = ", ".join(column for column, _, _ in columns)
        # ADBC takes the types from the first batch and NULLs for integers: a row in front of the
        # table's own sets them, and is cut off again.
        cursor.execute(f"SELECT {sample} UNION ALL SELECT {listed} FROM {quote_identifier(name)}")
        batches = cursor.fetch_record_batch()
        rows = (batch if i else batch.slice(1) for i, batch in enumerate(batches))
        cast = ", ".join(f"{read} AS {column}" for column, _, read in columns)
        _copy(con, pa.RecordBatchReader.from_batches(batches.schema, rows), cast)
    return name


def _sqlite_columns(cursor: Any, table: str, what: str) -> list[tuple[str, str, str]]:
    """Of each column its name, a value of the type it is stored as, and how DuckDB reads it."""
    cursor.execute(f"SELECT name, type FROM pragma_table_info({quote_literal(table)})")
    declared = [(quote_identifier(name), (kind or "").lower()) for name, kind in cursor.fetchall()]
    casts = [_SQLITE_CASTS.get(kind, ("", "0")) for _, kind in declared]
    asked = (
        f"group_concat(DISTINCT typeof({name})), min({fits.format(name)})"
        for (name, _), (_, fits) in zip(declared, casts, strict=True)
    )
    cursor.execute(f"SELECT {', '.join(asked)} FROM {quote_identifier(table)}")
    [facts] = cursor.fetchall()
    columns = []
    for i, ((name, kind), (cast, _)) in enumerate(zip(declared, casts, strict=True)):
        stored = _sqlite_storage(facts[2 * i] or "", kind, f"column {name} of {what}")
        fits = cast and facts[2 * i + 1] != 0
        read = f"CAST({name} AS {cast})" if fits else name
        columns.append((name, _SQLITE_SAMPLE[stored], read))
    return columns


def _sqlite_storage(found: str, declared: str, what: str) -> str:
    """The one storage class of a column that holds the classes `found`, a list with commas."""
    classes = set(found.split(",")) - {"", "null"}
    if classes == {"integer", "real"}:
        return "real"
    if len(classes) > 1:
        raise TableError(
            f"{what} mixes {' and '.join(sorted(classes))} values",
            hint="make a view that casts it to one type, and read that",
        )
    if classes:
        return classes.pop()
    if "int" in declared:  # no values at all: what SQLite would make of the declared type
        return "integer"
    return "real" if re.search("real|floa|doub|num|dec", declared) else "text"


def _attach_postgres(con: Con, text: str) -> str:
    url, table, where, secrets = _parse_postgres(text)
    try:
        driver = importlib.import_module("adbc_driver_postgresql.dbapi")
    except ImportError:
        hint = "pip install 'voile[postgres]'"
        raise UsageError("reading PostgreSQL needs a driver", hint=hint) from None
    with (
        _reading(where, secrets=secrets),
        driver.connect(url) as db,
        db.cursor() as cursor,
    ):
        cursor.execute(_POSTGRES_TABLES)
        found = cursor.fetchall()
        tables = {n if home else f"{schema}.{n}": (schema, n) for schema, n, home in found}
        schema, name = tables[_choose(tables, table, where, "public")]
        reference = f"{quote_identifier(schema)}.{quote_identifier(name)}"
        cursor.execute(_POSTGRES_COLUMNS.format(quote_literal(reference)))
        columns = cursor.fetchall()
        _check_names([column for column, _ in columns], f"table {name!r} of {where}")
        listed = ", ".join(_postgres_column(*column) for column in columns)
        cursor.execute(f"SELECT {listed} FROM {reference}")
        _copy(con, cursor.fetch_record_batch())
    return str(name)


def _postgres_column(name: str, kind: str) -> str:
    cast = _POSTGRES_CASTS.get(kind, "" if _POSTGRES_AS_IS.fullmatch(kind) else "::text")
    return f"{quote_identifier(name)}{cast} AS {quote_identifier(name)}"


def _parse_postgres(text: str) -> tuple[str, str, str, set[str]]:
    """The URL without the table, the table, the database in words, and what is secret."""
    url, _, table = text.rpartition("::")
    if not url or re.search(r"[/@\]]", table):
        url, table = text, ""
    parsed = _POSTGRES_URL.fullmatch(url)
    if not parsed or re.search("%(?![0-9A-Fa-f]{2})", url):
        # Refused here, since libpq quotes the part it stumbles on, which may be the password.
        raise UsageError(
            "the PostgreSQL URL is not well formed",
            hint="postgresql://user:password@host:port/database::table, "
            "with @ : / ? # [ ] % in the password written as %40 %3A %2F %3F %23 %5B %5D %25",
        )
    written = [parsed["password"] or "", *re.findall(r"password=([^&]*)", parsed["options"] or "")]
    where = f"PostgreSQL database {parsed['base'] or ''!r} on {parsed['host'] or 'localhost'}"
    return url, table, where, {*written, *map(unquote, written)}
