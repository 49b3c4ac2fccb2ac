"""Tables in DuckDB and SQLite files and in PostgreSQL."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from voile.engines.duckdb.sources.common import (
    DATABASE,
    Connection,
    check_names,
    copy_stream,
    make_view,
    reading,
)
from voile.errors import TableError, UsageError, did_you_mean
from voile.query.quoting import quote_identifier, quote_literal

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
# Materialised views are not in information_schema, so the catalogue itself is read.
_POSTGRES_TABLES = """
SELECT n.nspname::text, c.relname::text, coalesce(n.nspname = current_schema(), false)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^(pg_|information_schema$)'
ORDER BY 3 DESC, 1, 2"""
_POSTGRES_COLUMNS = """
SELECT a.attname::text, format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL)
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = {}::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""


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


def attach_duckdb(con: Connection, file: Path, table: str) -> str:
    """Name a table of a DuckDB file `source`; its own name."""
    con.execute(f"ATTACH {quote_literal(str(file))} AS {DATABASE} (READ_ONLY)")
    found = con.execute(
        "SELECT table_schema, table_name FROM information_schema.tables "
        f"WHERE table_catalog = '{DATABASE}' ORDER BY ALL"
    ).fetchall()
    tables: dict[str, tuple[str, str]]
    tables = {n if schema == "main" else f"{schema}.{n}": (schema, n) for schema, n in found}
    schema, name = tables[_choose(tables, table, str(file), "main")]
    make_view(con, f"FROM {DATABASE}.{quote_identifier(schema)}.{quote_identifier(name)}")
    return name


def attach_sqlite(con: Connection, file: Path, table: str) -> str:
    """Copy a table of a SQLite file to `source`; its own name."""
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
        copy_stream(con, pa.RecordBatchReader.from_batches(batches.schema, rows), cast)
    return name


def _sqlite_columns(cursor: Any, table: str, what: str) -> list[tuple[str, str, str]]:
    """Of each column its name, a value of the type it is stored as, and how DuckDB reads it."""
    cursor.execute(f"SELECT name, type FROM pragma_table_info({quote_literal(table)})")
    declared = [(quote_identifier(name), (kind or "").lower()) for name, kind in cursor.fetchall()]
    casts = [_SQLITE_CASTS.get(kind, ("", "0")) for _, kind in declared]
    selected = (
        f"group_concat(DISTINCT typeof({name})), min({fits.format(name)})"
        for (name, _), (_, fits) in zip(declared, casts, strict=True)
    )
    cursor.execute(f"SELECT {', '.join(selected)} FROM {quote_identifier(table)}")
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


def attach_postgres(con: Connection, text: str) -> str:
    """Copy a table of a PostgreSQL database to `source`; its own name."""
    url, table, where, secrets = _parse_postgres(text)
    try:
        driver = importlib.import_module("adbc_driver_postgresql.dbapi")
    except ImportError:
        hint = "pip install 'voile[postgres]'"
        raise UsageError("reading PostgreSQL needs a driver", hint=hint) from None
    with (
        reading(where, secrets=secrets),
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
        check_names([column for column, _ in columns], f"table {name!r} of {where}")
        listed = ", ".join(_postgres_column(*column) for column in columns)
        cursor.execute(f"SELECT {listed} FROM {reference}")
        copy_stream(con, cursor.fetch_record_batch())
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
