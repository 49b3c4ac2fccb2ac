"""Releases and servers asked in SQL, as DB-API 2.0 (PEP 249) has it.

    with voile.dbapi.connect("adult.voile") as connection:
        cursor = connection.cursor()
        cursor.execute("select sex, count(*) from adult where age > ? group by sex", (60,))
        print(cursor.fetchall())

`SqlSession` is the same without the standard's clothes: for what serves other protocols.
"""

from voile.dbapi import standard
from voile.dbapi.connection import Connection, Cursor, connect
from voile.dbapi.exceptions import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from voile.dbapi.results import Field, ResultSet
from voile.dbapi.session import SqlSession, SqlSource
from voile.dbapi.sources import ChargeError
from voile.dbapi.standard import (
    BINARY,
    BOOLEAN,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    DateFromTicks,
    TimeFromTicks,
    TimestampFromTicks,
)
from voile.dbapi.statements import ReadOnlyError

apilevel = "2.0"
"""Of the standard."""
threadsafety = 2
"""Threads may share connections, and take turns."""
paramstyle = "qmark"
"""Values stand at question marks."""
Binary, Date, Time, Timestamp = (
    standard.Binary, standard.Date, standard.Time, standard.Timestamp,
)  # fmt: skip
"""Constructors of the standard that are Python's own types."""

__all__ = [
    "BINARY", "BOOLEAN", "DATETIME", "NUMBER", "ROWID", "STRING", "ChargeError",
    "Connection", "Cursor", "DataError", "DatabaseError", "DateFromTicks", "Error",
    "Field", "IntegrityError", "InterfaceError", "InternalError", "NotSupportedError",
    "OperationalError", "ProgrammingError", "ReadOnlyError", "ResultSet", "SqlSession",
    "SqlSource", "TimeFromTicks", "TimestampFromTicks", "Warning", "apilevel",
    "connect", "paramstyle", "threadsafety",
]  # fmt: skip
