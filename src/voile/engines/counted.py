"""A private table that is counted and never shown: one DuckDB file behind locked doors.

Its rows hold values of the schema's domain only, so that what no tuple of the domain can do, no
row does. Knows nothing of privacy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from voile.engines.encode import SQL, values_at
from voile.engines.sources import quote_identifier
from voile.engines.sql import first_line
from voile.engines.table import Progress, Table
from voile.errors import ReleaseError, TableError, UsageError
from voile.noise.halves import half_mask, row_hashes
from voile.query.predicate import ROW
from voile.query.rows import RowSums
from voile.schema import Schema

HASH = "voile row hash"
ROWS = '"rows"'
PARTS = "parts of rows"
MEMORY = "2GB"
LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": MEMORY,
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    # It would compute what several TRY have in common outside of them, where it fails.
    "disabled_optimizers": "common_subexpressions",
    "lock_configuration": "true",
}


def half(seed: str) -> str:
    """The condition that a row is in the public half of a seed."""
    return f"bit_count({quote_identifier(HASH)} & {half_mask(seed)}::UBIGINT) % 2 = 1"


def write_counted(
    path: Path,
    table: Table,
    schema: Schema,
    *,
    key: str | None = None,
    per_key: int | None = None,
    clamp: bool = False,
    progress: Progress = lambda _: None,
) -> tuple[int, int]:
    """Take a table in: its values as the domain has them, and each row's public hash.

    `key` names the column that rows are known by; with `per_key` only so many rows of each are
    kept, else each must be there once. Returns how many rows were kept, and how many keys have any.
    """
    if HASH in schema.names:
        raise TableError(f"a column is called {HASH!r}", hint="rename it")
    con = duckdb.connect(path, config={"memory_limit": MEMORY})
    try:
        kinds = [f"{quote_identifier(a.name)} {SQL[a.kind]}" for a in schema]
        con.execute(f"CREATE TABLE taken ({', '.join(kinds)}, {quote_identifier(HASH)} UBIGINT)")
        for batch in batches(table, schema, key, clamp=clamp, progress=progress):
            con.register(PARTS, batch)
            con.execute(f"INSERT INTO taken SELECT * FROM {quote_identifier(PARTS)}")
            con.unregister(PARTS)
        counts = bound_rows(con, key, per_key)
        con.execute("CHECKPOINT")
        return counts
    except duckdb.Error as error:
        raise TableError(f"the table cannot be taken in: {first_line(error)}") from None
    finally:
        con.close()


def batches(
    table: Table, schema: Schema, key: str | None, *, clamp: bool, progress: Progress
) -> Iterator[pa.Table]:
    """Rows as values of the domain, with their hashes; without a key a row is known by its number.

    Hashes are made once, here, and never while questions are answered.
    """
    done = 0
    coded = table.coded(schema, drop_nulls=False, row_key=key, clamp=clamp, progress=progress)
    for codes, keys in coded:
        count = len(codes[0])
        if key is not None and keys.null_count:
            raise TableError(
                f"column {key!r} says whose a row is, and is NULL in {keys.null_count:,} rows",
                hint="leave such rows out, or name another column",
            )
        known = range(done, done + count) if key is None else keys.to_pylist()
        columns = [values_at(a, c) for a, c in zip(schema, codes, strict=True)]
        yield pa.table([*columns, pa.array(row_hashes(known))], [*schema.names, HASH])
        done += count


def bound_rows(
    con: duckdb.DuckDBPyConnection, key: str | None, per_key: int | None
) -> tuple[int, int]:
    """Keep at most `per_key` rows of a key, or refuse a key that is there twice."""
    column = quote_identifier(HASH)
    total, keys = con.execute(f"SELECT count(*), count(DISTINCT {column}) FROM taken").fetchall()[0]
    if key is not None and per_key is None and keys < total:
        raise TableError(
            f"column {key!r} should tell rows apart, and {total - keys:,} of {total:,} rows repeat "
            "an earlier one's",
            hint=f"if people have several rows, say --person {key} --per-person N",
        )
    only = f"QUALIFY row_number() OVER (PARTITION BY {column} ORDER BY rowid) <= {per_key}"
    con.execute(f"CREATE TABLE {ROWS} AS SELECT * FROM taken {only if per_key else ''}")
    con.execute("DROP TABLE taken")
    kept = con.execute(f"SELECT count(*) FROM {ROWS}").fetchall()[0][0]
    return int(kept), int(keys)


class CountedTable:
    """Sums over the rows, for as many threads as ask."""

    def __init__(self, path: Path) -> None:
        try:
            self._con = duckdb.connect(path, read_only=True, config=LOCKED)
        except duckdb.Error as error:
            raise UsageError(
                f"the table in {str(path)!r} cannot be opened: {first_line(error)}",
                hint="restore it from a backup, or begin the server anew",
            ) from None
        self._threads = threading.local()

    def sums(self, where: str, keys: Sequence[str], sums: Sequence[str]) -> RowSums:
        """SQL aggregates of the rows that pass, for each combination of keys that occurs."""
        listed = ", ".join([*keys, *sums])
        grouped = f" GROUP BY {', '.join(str(1 + i) for i in range(len(keys)))}" if keys else ""
        sql = f'SELECT {listed} FROM {ROWS} AS "{ROW}" WHERE {where}{grouped}'
        try:
            rows = self._cursor().execute(sql).fetchall()
        except duckdb.Error as error:
            raise ReleaseError(f"the rows cannot be counted: {first_line(error)}") from None
        width = len(keys)
        numbers = np.array([row[width:] for row in rows], np.float64).reshape(len(rows), len(sums))
        return RowSums(tuple([row[i] for row in rows] for i in range(width)), numbers)

    def count(self, where: str) -> int:
        return int(self.sums(where, [], ["count(*)"]).sums[0, 0])

    def hashes(self) -> Any:
        """The rows' public hashes."""
        sql = f"SELECT {quote_identifier(HASH)} FROM {ROWS}"
        return self._cursor().sql(sql).to_arrow_table().column(0).to_numpy()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        if not hasattr(self._threads, "cursor"):
            self._threads.cursor = self._con.cursor()
        found: duckdb.DuckDBPyConnection = self._threads.cursor
        return found

    def close(self) -> None:
        self._con.close()
