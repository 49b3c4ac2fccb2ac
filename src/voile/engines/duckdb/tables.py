"""Tables in memory that SQL may be run on, behind locked doors: no file, no setting, no network."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from voile.engines.duckdb.sql import connected, first_line
from voile.errors import QueryError
from voile.query.quoting import literal, quote_identifier

PLACE = "voile.public"
"""What tools read of where tables are: the database, and the schema in it."""
SORT = re.compile(r"^(?:[A-Z]\w+ )?[A-Z]\w+ Error: ")


class LockedTables:
    """Named tables in one schema, and connections that reach nothing else; threads may share it."""

    def __init__(
        self,
        tables: Mapping[str, pa.Table],
        *,
        prelude: Sequence[str] = (),
        shared: bool = False,
        memory: str,
        seconds: float,
    ) -> None:
        """`prelude` are statements that define macros, before the doors are locked.

        Tables that are `shared` are read where they are, and not copied. `memory` and `seconds`
        are what one statement may take.
        """
        self._seconds = seconds
        self._shared = dict(tables) if shared else {}
        self._con = connected(
            settings={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        )
        run = self._con.execute
        database, schema = PLACE.split(".")
        run(f"ATTACH ':memory:' AS {database}")
        if schema != "main":
            run(f"CREATE SCHEMA {PLACE}")
        run(f"USE {PLACE}")
        run("DETACH memory")
        for name, table in () if shared else tables.items():
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
        with self._cursor() as cursor:
            return plain(cursor.sql(sql).to_arrow_table())

    def fields(self, sql: str) -> pa.Schema:
        """The columns of one SELECT, which is planned and not run."""
        with self._cursor() as cursor:
            names = cursor.sql(sql).columns
            none = cursor.sql(f"SELECT * FROM ({sql}) LIMIT 0").to_arrow_table()
            return plain(none.rename_columns(names)).schema

    @contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for one statement, which ends when its time is up."""
        try:
            cursor = self._con.cursor()
            clock = threading.Timer(self._seconds, cursor.interrupt)
            clock.daemon = True
            clock.start()
            try:
                cursor.execute(f"USE {PLACE}")
                for name, table in self._shared.items():
                    cursor.register(name, table)
                yield cursor
            finally:
                clock.cancel()
                clock.join()  # so that it cannot end the next statement
                cursor.close()
        except duckdb.InterruptException:
            raise QueryError(
                f"the statement took longer than {self._seconds:g} seconds",
                hint="ask for less at once",
            ) from None
        except duckdb.Error as error:
            raise QueryError(SORT.sub("", first_line(error))) from None

    def close(self) -> None:
        """Forget the tables."""
        self._con.close()


def plain(table: pa.Table) -> pa.Table:
    """The table with texts where nothing but NULL is known of a column's type."""
    fields = [
        field.with_type(pa.string()) if pa.types.is_null(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
