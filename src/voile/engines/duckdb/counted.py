"""A private table that is counted and never shown: codes of the schema's domain, in a DuckDB file.

Rows are of the domain only, so that what no tuple of it can do, no row does. Knows nothing of
privacy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from voile.engines.duckdb.sql import first_line
from voile.engines.lookups import CodedRows
from voile.engines.table import Table
from voile.errors import TableError, UsageError
from voile.progress import Progress
from voile.schema import Schema
from voile.schema.index import code_type
from voile.units import counted

ROWS, TAKEN, PART = '"rows"', "taken", "part"
MEMORY = "2GB"
HASHED = "CAST('0x' || substr(sha256('voile row ' || who), 1, 16) AS UBIGINT)"
"""As voile.noise.keyed.id_hash."""
READ_ONLY: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": MEMORY,
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "lock_configuration": "true",
}


def write(
    path: Path,
    table: Table,
    schema: Schema,
    *,
    key: str | None,
    per_key: int | None,
    clamp: bool,
    progress: Progress | None,
) -> tuple[int, int]:
    """See voile.engines.counted.write_counted."""
    con = duckdb.connect(path, config={"memory_limit": MEMORY})
    try:
        columns = ", ".join(f"c{i} BIGINT" for i in range(len(schema.names)))
        con.execute(f"CREATE TABLE {TAKEN} ({columns}, who UBIGINT)")
        for part in parts(table, schema, key, clamp=clamp, progress=progress):
            con.register(PART, part)
            con.execute(f"INSERT INTO {TAKEN} SELECT * REPLACE ({HASHED} AS who) FROM {PART}")
            con.unregister(PART)
        counts = bound_rows(con, key, per_key)
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
    for codes, keys, first in batches:
        if key is not None and keys.null_count:
            raise TableError(
                f"column {key!r} says whose a row is, and is NULL in "
                f"{counted(keys.null_count, 'row')}",
                hint="leave such rows out, or name another column",
            )
        numbers = pa.array(np.arange(first, first + len(codes[0]))).cast(pa.string())
        names = [f"c{i}" for i in range(len(codes))]
        yield pa.table([*codes, numbers if key is None else keys], [*names, "who"])


def bound_rows(
    con: duckdb.DuckDBPyConnection, key: str | None, per_key: int | None
) -> tuple[int, int]:
    """Keep at most `per_key` rows of a key, or refuse a key that is there twice."""
    counted = f"SELECT count(*), count(DISTINCT who) FROM {TAKEN}"
    total, keys = con.execute(counted).fetchall()[0]
    if key is not None and per_key is None and keys < total:
        raise TableError(
            f"column {key!r} should tell rows apart, and {total - keys:,} of {total:,} rows repeat "
            "an earlier one's",
            hint=f"if people have several rows, say --person {key} --per-person N",
        )
    only = f"QUALIFY row_number() OVER (PARTITION BY who ORDER BY rowid) <= {per_key}"
    con.execute(f"CREATE TABLE {ROWS} AS SELECT * FROM {TAKEN} {only if per_key else ''}")
    con.execute(f"DROP TABLE {TAKEN}")
    kept = con.execute(f"SELECT count(*) FROM {ROWS}").fetchall()[0][0]
    return int(kept), int(keys)


def read(path: Path, schema: Schema) -> CodedRows:
    """All rows, in the fewest bytes that their codes need."""
    try:
        with duckdb.connect(path, read_only=True, config=READ_ONLY) as con:
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
