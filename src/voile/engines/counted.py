"""A private table that is counted and never shown, kept on disk as codes of the schema's domain.

DuckDB keeps it. What was kept is counted in memory (see voile.engines.lookups).
"""

from __future__ import annotations

from pathlib import Path

from voile.engines.lookups import CodedRows
from voile.engines.table import Table
from voile.progress import Progress
from voile.schema import Schema


def write_counted(
    path: Path,
    table: Table,
    schema: Schema,
    *,
    key: str | None = None,
    per_key: int | None = None,
    salt: str = "",
    clamp: bool = False,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Take a table in: its rows' codes, and each row's public hash.

    `key` names the column that rows are known by; with `per_key` only so many rows of each are
    kept, by coins of the rows that `salt` decides, else each must be there once. Returns how many
    rows were kept, and how many keys have any.
    """
    from voile.engines.duckdb import table as counted  # noqa: PLC0415  (loads DuckDB)

    return counted.write(
        path, table, schema, key=key, per_key=per_key, salt=salt, clamp=clamp, progress=progress
    )


def read_counted(path: Path, schema: Schema) -> CodedRows:
    """All rows, in the fewest bytes that their codes need."""
    from voile.engines.duckdb import table as counted  # noqa: PLC0415  (loads DuckDB)

    return counted.read(path, schema)
