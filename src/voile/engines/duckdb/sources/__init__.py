"""Makes any table that a user may name scannable in DuckDB, any number of times, as `source`."""

from __future__ import annotations

from collections.abc import Sequence
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
from voile.errors import UsageError

__all__ = ["SOURCE", "attach"]


def attach(con: Connection, spec: object, *, null_text: Sequence[str] = ()) -> str:
    """Make `spec` available in `con` as the view (or temporary table) `source`.

    Returns a short name for the table. `null_text` are texts that stand for NULL in text files,
    besides the empty one. Only `con` itself sees `source`: its cursors are connections of their
    own.
    """
    clear(con)
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
    elif "://" in text:  # not repeated whole, it may hold a password
        scheme = text.partition("://")[0]
        raise UsageError(f"{scheme}:// is not read", hint=f"what is read: {READS}")
    else:
        with reading(text):
            name = attach_path(con, text, null_text)
    return short_name(con, name)
