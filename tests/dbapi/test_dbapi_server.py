"""Over a server: what tools ask by themselves is free, and what is charged was allowed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry

import voile
from tests.dbapi.support import SHAPES
from voile import dbapi
from voile.dbapi import ChargeError, SqlSession
from voile.errors import QueryError, VoileError


@pytest.fixture
def asked(server: tuple[str, Path]) -> Iterator[SqlSession]:
    url, file = server
    with SqlSession(url, token_file=file) as found:
        yield found


@pytest.fixture
def budget(server: tuple[str, Path]) -> Iterator[Any]:
    """How many answers are left."""
    url, file = server
    with voile.connect(url, file.read_text(encoding="ascii").strip()) as found:
        yield lambda: found.budget()["remaining"]


def test_nothing_that_a_tool_asks_by_itself_is_charged(asked: SqlSession, budget: Any) -> None:
    before = budget()
    statements = [
        "select 1", "select version()", "select table_name from information_schema.tables",
        "select distinct city from people", "select * from people limit 0", "BEGIN", "ROLLBACK",
        "SELECT TRUE AS _ FROM public.people WHERE 1 <> 1 LIMIT 0", "show tables", "show all",
        "select city from people group by city", "explain select avg(age) from people",
        "select * from (select sex, count(*) as n from people group by sex) as v where 0 = 1",
    ]  # fmt: skip
    for sql in statements:
        asked.run(sql)
    for shape in SHAPES:
        if shape.refused is None:
            assert asked.fields(shape.sql)
        if shape.rows is not None and "having" not in shape.sql.lower():
            assert [list(row) for row in asked.run(shape.sql).to_rows()] == shape.rows
    assert budget() == before


def test_a_question_is_charged_only_if_that_was_said(asked: SqlSession, budget: Any) -> None:
    before = budget()
    sql = "select city, count(*) as n from people where age > ? group by city"
    with pytest.raises(ChargeError, match=r"charged 1 answer of the \d+ .*(?s:.)*voile\.charge"):
        asked.run(sql, (33,))
    assert [f.name for f in asked.fields(sql)] == ["city", "n"] and budget() == before
    asked.run("SET voile.charge = on")
    first = asked.run(sql, (33,))
    assert budget() == before - 1 and "charged 1; " in first.notices[-1]
    asked.run("SET voile.charge = off")
    again = asked.run(sql, (33,))
    assert again.rows == first.rows and budget() == before - 1
    assert not any(note.startswith("charged") for note in again.notices)
    asked.run("SET voile.intervals = on")
    assert len(asked.run(sql, (33,)).fields) == 5
    assert "0 answers" in asked.run("explain " + sql.replace("?", "33")).to_rows()[0][0]


def test_keys_have_their_types_though_json_has_none(asked: SqlSession) -> None:
    asked.run("SET voile.charge = on")
    found = asked.run(
        "select date_trunc('month', day) as m, smoker, age // 50 as a, count(*) as n from people "
        "group by all order by m, smoker, a limit 1"
    )
    (row,) = found.to_rows()
    assert row[:3] == (dt.datetime(2024, 1, 1), False, 0)
    assert found.to_arrow().num_rows == 1
    ((day,),) = asked.run("select distinct day from people limit 1").to_rows()
    assert day == dt.date(2024, 1, 1)


def test_a_server_shows_no_rows(asked: SqlSession) -> None:
    with pytest.raises(QueryError, match="is on a server, which shows no rows"):
        asked.run("select * from people limit 3")


def test_a_server_refuses_what_it_refuses(asked: SqlSession, budget: Any) -> None:
    before = budget()
    asked.run("SET voile.charge = on")
    for sql in ("select median(age) from people", "select max(age) from people"):
        with pytest.raises(QueryError):
            asked.run(sql)
    assert budget() == before


def test_errors_are_the_standards(server: tuple[str, Path]) -> None:
    url, file = server
    with dbapi.connect(url, token_file=file) as connection:
        with pytest.raises(dbapi.OperationalError, match="would be charged"):
            connection.execute("select avg(age) from people where city = 'Cork'")
        with pytest.raises(dbapi.ProgrammingError, match="did you mean 'age'"):
            connection.execute("select avg(aeg) from people")
    with pytest.raises(dbapi.OperationalError):
        dbapi.connect(url, token="wrong")  # noqa: S106


def test_sqlalchemy_asks_a_server(server: tuple[str, Path], budget: Any) -> None:
    registry.register("voile.http", "voile.dbapi.alchemy", "HttpDialect")
    url, file = server
    before = budget()
    place = url.removeprefix("http://").rstrip("/")
    token = file.read_text(encoding="ascii").strip()
    engine = sa.create_engine(f"voile+http://anna:{token}@{place}/?intervals=on")
    people = sa.Table("people", sa.MetaData(), autoload_with=engine)
    question = sa.select(people.c.sex, sa.func.count().label("n")).group_by(people.c.sex)
    with engine.connect() as connection:
        with pytest.raises(sa.exc.OperationalError, match="would be charged"):
            connection.execute(question)
        assert budget() == before
        connection.execute(sa.text("SET voile.charge = on"))
        rows = connection.execute(sa.text("select sex, count(*) as n from people group by sex"))
        assert list(rows.keys()) == ["sex", "n", "n_stderr", "n_low", "n_high"]
    assert budget() == before - 1
    engine.dispose()


def test_what_is_no_server_is_refused(asked: SqlSession) -> None:
    with pytest.raises(VoileError):
        SqlSession("http://127.0.0.1:1", token="x")  # noqa: S106
    assert asked.tables
