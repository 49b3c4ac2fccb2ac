"""Makes any table that a user may name scannable in DuckDB, any number of times, as `source`."""

from __future__ import annotations

from pathlib import Path

from voile.engines.duckdb.sources.common import (
    READS,
    SOURCE,
    Connection,
    attach_dataset,
    attach_object,
    clear,
    reading,
    short_name,
)
from voile.engines.duckdb.sources.databases import attach_postgres
from voile.engines.duckdb.sources.files import attach_path
from voile.engines.duckdb.sources.text import TextNotes
from voile.engines.duckdb.sources.typed import hidden_gaps, read_texts, refuse_options
from voile.errors import UsageError
from voile.options.reading import ReadingOptions
from voile.storage import is_url

__all__ = ["SOURCE", "TextNotes", "attach", "hidden_gaps"]


def attach(
    con: Connection,
    spec: object,
    options: ReadingOptions | None = None,
    made: TextNotes | None = None,
) -> str:
    """Make `spec` available in `con` as the view (or temporary table) `source`.

    Returns a short name for the table. `options` say how text files are written and what texts
    mean; `made` takes up what reading them did. Only `con` itself sees `source`: its cursors are
    connections of their own.
    """
    clear(con)
    options, made = options or ReadingOptions(), made or TextNotes()
    name = attach_any(con, spec, options, made)
    if not made.is_text:
        with reading(name):
            read_texts(con, options, made)
    return name


def attach_any(con: Connection, spec: object, options: ReadingOptions, made: TextNotes) -> str:
    """Make `spec` available by what it is; its short name."""
    if not isinstance(spec, str | Path):
        refuse_options(options, f"a {type(spec).__name__}")
    elif str(spec).partition(":")[0] in ("dataset", "postgresql", "postgres"):
        refuse_options(options, f"{str(spec).partition(':')[0]}:…")
    if not isinstance(spec, str | Path):
        attach_object(con, spec)
        return "table"
    text = str(spec)
    if not text or (isinstance(spec, str) and not spec.strip()):
        raise UsageError("no table was named", hint=f"what is read: {READS}")
    if text.startswith("dataset:"):
        name = attach_dataset(con, text.removeprefix("dataset:"))
    elif text.startswith(("postgresql://", "postgres://")):
        name = attach_postgres(con, text)
    elif is_url(text):  # not repeated whole, it may hold a password
        scheme = text.partition("://")[0]
        raise UsageError(f"{scheme}:// is not read", hint=f"what is read: {READS}")
    else:
        with reading(text):
            name = attach_path(con, text, options, made)
    return short_name(con, name)
