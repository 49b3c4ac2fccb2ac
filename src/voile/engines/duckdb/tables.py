"""Tables in memory that SQL may be run on, behind locked doors: no file, no setting, no network."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from voile.engines.duckdb.sql import connected, first_line
from voile.errors import QueryError
from voile.query.quoting import literal, quote_identifier

CATALOG, SCHEMA = "voile", "public"
"""What tools read of where tables are."""
MEMORY = "256MB"
SECONDS = 10.0
"""What one statement may take."""


class LockedTables:
    """Named tables in one schema, and a connection that reaches nothing else."""

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        *,
        prelude: Sequence[str] = (),
        shared: bool = False,
        memory: str = MEMORY,
        seconds: float = SECONDS,
    ) -> None:
        """`prelude` are statements that define views and macros, before the doors are locked.

        Tables that are `shared` are read where they are, and not copied.
        """
        self._seconds = seconds
        self._busy = threading.Lock()
        self._con = connected(
            settings={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        )
        run = self._con.execute
        run(f"ATTACH ':memory:' AS {CATALOG}")
        run(f"CREATE SCHEMA {CATALOG}.{SCHEMA}")
        run(f"USE {CATALOG}.{SCHEMA}")
        run("DETACH memory")
        for name, table in tables.items():
            if shared:
                self._con.register(name, table)
                continue
            self._con.register("incoming", table)
            run(f"CREATE TABLE {quote_identifier(name)} AS SELECT * FROM incoming")
            self._con.unregister("incoming")
        for statement in prelude:
            run(statement)
        # No table is found among the variables of the program.
        run("SET python_enable_replacements = false")
        run("SET threads = 1")
        run(f"SET memory_limit = {literal(memory)}")
        run("SET temp_directory = ''")
        run("SET enable_external_access = false")
        run("SET lock_configuration = true")

    def run(self, sql: str) -> pa.Table:
        """What one SELECT gives."""
        with self._limited():
            return self._con.sql(sql).to_arrow_table()

    def fields(self, sql: str) -> pa.Schema:
        """The columns of one SELECT, which is planned and not run."""
        with self._limited():
            return self._con.sql(f"SELECT * FROM ({sql}) LIMIT 0").to_arrow_table().schema

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """One statement at a time, which ends when its time is up."""
        with self._busy:
            clock = threading.Timer(self._seconds, self._con.interrupt)
            clock.daemon = True
            clock.start()
            try:
                yield
            except duckdb.InterruptException:
                raise QueryError(
                    f"the statement took longer than {self._seconds:g} seconds",
                    hint="ask for less at once",
                ) from None
            except duckdb.Error as error:
                raise QueryError(first_line(error)) from None
            finally:
                clock.cancel()

    def close(self) -> None:
        """Forget the tables."""
        self._con.close()
