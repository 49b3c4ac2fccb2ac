"""DB-API 2.0: what PEP 249 says of modules, connections, cursors, types and exceptions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import voile.dbapi as module
from voile.errors import VoileError

GROUPS = "select sex, count(*) as n from people group by sex order by sex"


@pytest.fixture
def connection(releases: dict[str, Any]) -> Iterator[module.Connection]:
    with module.connect(releases["view"].path) as found:
        yield found


def test_the_module_says_what_it_is() -> None:
    assert (module.apilevel, module.threadsafety, module.paramstyle) == ("2.0", 2, "qmark")
    for name in (
        "connect", "Warning", "Error", "InterfaceError", "DatabaseError", "DataError",
        "OperationalError", "IntegrityError", "InternalError", "ProgrammingError",
        "NotSupportedError", "Date", "Time", "Timestamp", "DateFromTicks", "TimeFromTicks",
        "TimestampFromTicks", "Binary", "STRING", "BINARY", "NUMBER", "DATETIME", "ROWID",
    ):  # fmt: skip
        assert hasattr(module, name), name


def test_exceptions_descend_as_they_should() -> None:
    assert not issubclass(module.Warning, module.Error)
    assert issubclass(module.InterfaceError, module.Error)
    for kind in (
        module.DataError, module.OperationalError, module.IntegrityError, module.InternalError,
        module.ProgrammingError, module.NotSupportedError,
    ):  # fmt: skip
        assert issubclass(kind, module.DatabaseError) and issubclass(kind, module.Error)
        assert getattr(module.Connection, kind.__name__) is kind


def test_a_cursor_gives_rows_in_turn(connection: module.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.description is None and cursor.rowcount == -1 and cursor.rownumber is None
    assert cursor.execute(GROUPS) is cursor
    assert cursor.description is not None
    assert [column[:2] for column in cursor.description] == [("sex", "VARCHAR"), ("n", "DOUBLE")]
    assert all(len(column) == 7 for column in cursor.description)
    assert (cursor.rowcount, cursor.rownumber) == (2, 0)
    first = cursor.fetchone()
    assert first is not None and first[0] == "Female" and cursor.rownumber == 1
    assert [row[0] for row in cursor.fetchmany()] == ["Male"]
    assert cursor.fetchone() is None and cursor.fetchall() == [] and cursor.fetchmany(3) == []
    assert [row[0] for row in cursor.execute(GROUPS)] == ["Female", "Male"]
    cursor.arraysize = 5
    assert len(cursor.execute(GROUPS).fetchmany()) == 2
    assert cursor.nextset() is None
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)


def test_a_statement_without_rows_has_none_to_fetch(connection: module.Connection) -> None:
    cursor = connection.execute("SET voile.intervals = on")
    assert cursor.description is None and cursor.rowcount == -1
    with pytest.raises(module.InterfaceError, match="no rows"):
        cursor.fetchall()
    with pytest.raises(module.InterfaceError, match="-1 rows"):
        connection.execute("select 1").fetchmany(-1)


def test_arrow_tables_are_fetched(connection: module.Connection) -> None:
    table = connection.execute(GROUPS).fetch_arrow_table()
    assert table.schema == pa.schema([("sex", pa.string()), ("n", pa.float64())])
    assert table.num_rows == 2


def test_type_objects_equal_the_types_of_a_description(connection: module.Connection) -> None:
    cursor = connection.execute(
        "select city, age, day, smoker, date_trunc('month', day) as m, count(*) from people "
        "where age = 30 group by all limit 1"
    )
    assert cursor.description is not None
    kinds = [column[1] for column in cursor.description]
    groups = [module.STRING, module.NUMBER, module.DATETIME, module.BOOLEAN, module.DATETIME,
              module.NUMBER]  # fmt: skip
    assert kinds == groups
    others = {module.STRING, module.NUMBER, module.DATETIME, module.BINARY, module.ROWID}
    for kind, group in zip(kinds, groups, strict=True):
        assert not any(kind == other for other in others - {group})
    assert module.NUMBER == "DECIMAL(18,3)" and repr(module.STRING) == "STRING"


def test_notices_are_messages(connection: module.Connection) -> None:
    cursor = connection.execute("select distinct sex from people")
    assert len(cursor.notices) == 1 and "public domain" in cursor.notices[0]
    assert cursor.messages == [(module.Warning, cursor.notices[0])]


def test_executemany_keeps_the_last_rows(connection: module.Connection) -> None:
    cursor = connection.cursor().executemany("select ? as x", [(1,), (2,), (3,)])
    assert cursor.fetchall() == [(3,)]


def test_transactions_do_nothing_and_closing_ends(releases: dict[str, Any]) -> None:
    connection = module.connect(str(releases["view"].path))
    cursor = connection.cursor()
    connection.commit()
    connection.rollback()
    connection.close()
    connection.close()
    for ask in (connection.cursor, connection.commit, lambda: cursor.execute("select 1")):
        with pytest.raises(module.InterfaceError, match="connection is closed"):
            ask()
    with module.connect(releases["view"]) as other, other.cursor() as used:
        used.execute("select 1")
    with pytest.raises(module.InterfaceError, match="cursor is closed"):
        used.fetchall()


def test_a_rollback_takes_back_what_was_set(releases: dict[str, Any]) -> None:
    """As pools do that know DB-API alone: the next user of the connection spends nothing."""
    with module.connect(releases["view"], intervals=True) as connection:
        settings = connection.session.settings
        for between in ("select 1", "begin", "begin; rollback"):
            connection.execute("set voile.charge = on")
            connection.execute("set voile.intervals = off")
            for part in between.split("; "):
                connection.execute(part)
            connection.commit()
            assert settings.charge and not settings.intervals, between
            connection.rollback()
            assert not settings.charge and settings.intervals, between
            connection.execute("rollback")
            assert not settings.charge, between


@pytest.mark.parametrize(
    ("sql", "parameters", "kind", "message"),
    [("select count(*) from people where aeg > 3", (), "ProgrammingError", "did you mean 'age'"),
     ("select", (), "ProgrammingError", "select"),
     ("select ?", (), "ProgrammingError", "has no value"),
     ("select 1", (1,), "ProgrammingError", "0 places"),
     ("select ?", (object(),), "ProgrammingError", "of type object"),
     ("select ?", "x", "ProgrammingError", "a sequence of values, not str"),
     ("insert into people values (?)", (1,), "NotSupportedError", "only read"),
     ("select * from people", (), "ProgrammingError", "no rows that mean anything")],
)  # fmt: skip
def test_refusals_are_exceptions_of_the_standard(
    connection: module.Connection, sql: str, parameters: Any, kind: str, message: str
) -> None:
    with pytest.raises(getattr(module, kind), match=message) as caught:
        connection.execute(sql, parameters)
    assert isinstance(caught.value.__cause__, VoileError)
    assert caught.value.hint == caught.value.__cause__.hint


@pytest.mark.parametrize("source", ["nothing.voile", "http://127.0.0.1:1", "http://example.org"])
def test_what_cannot_be_connected_to(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOILE_TOKEN", "x")
    with pytest.raises(module.OperationalError):
        module.connect(source)


def test_constructors() -> None:
    assert module.Date(2024, 2, 29) == dt.date(2024, 2, 29)
    assert module.Timestamp(2024, 2, 29, 1, 2, 3) == dt.datetime(2024, 2, 29, 1, 2, 3)
    moment = dt.datetime(2024, 2, 29, 1, 2, 3)
    assert module.TimestampFromTicks(moment.timestamp()) == moment
    assert module.DateFromTicks(moment.timestamp()) == moment.date()
    assert module.TimeFromTicks(moment.timestamp()) == module.Time(1, 2, 3)
    assert module.Binary(b"x") == b"x"
