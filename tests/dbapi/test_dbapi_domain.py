"""Work on a public domain ends in time, and when nobody waits for it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import pytest

from tests.dbapi.support import CODEBOOK
from voile.dbapi import SqlSession
from voile.dbapi.domain import TimedDomain
from voile.errors import QueryError
from voile.schema import Schema


def endless(engine: Any) -> None:
    try:
        engine._con.execute("SELECT sum(a.i * b.i) FROM range(10000000) a(i), range(10000000) b(i)")
    except duckdb.InterruptException:
        raise QueryError("interrupted") from None


def test_work_that_takes_too_long_is_ended_and_the_next_is_done() -> None:
    domain = TimedDomain(Schema.from_dict(CODEBOOK), seconds=0.05)
    with pytest.raises(QueryError, match=r"longer than 0\.05 seconds"), domain.at_work() as engine:
        endless(engine)
    domain.seconds = 60.0
    with domain.at_work() as engine:
        assert engine.schema is domain.schema
    with pytest.raises(QueryError, match="its own"), domain.at_work():
        raise QueryError("its own")


def test_a_part_that_is_interrupted_is_not_taken_for_null(
    releases: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = SqlSession(releases["view"])
    fetched: list[str] = []

    def failing(_: Any, sql: str) -> list[Any]:
        fetched.append(sql)
        raise duckdb.InterruptException("ended") if len(fetched) > 1 else duckdb.Error("fails")

    monkeypatch.setattr("voile.engines.duckdb.domain.Domain._fetch", failing)
    with pytest.raises(QueryError, match="ended"):
        session.run("select distinct upper(city) from people")
    assert len(fetched) == 2
    session.close()


def test_who_cancels_ends_the_work_of_its_own_thread_alone(
    releases: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, other = SqlSession(releases["view"]), SqlSession(releases["view"])
    begun = threading.Event()

    def allowed(_: Any, engine: Any) -> list[Any]:
        begun.set()
        endless(engine)
        return []

    monkeypatch.setattr("voile.dbapi.questions.allowed", allowed)
    (table,) = session.source.tables.values()
    table.domain.seconds = 60.0
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(session.run, "select distinct city from people")
        assert begun.wait(30)
        other.interrupt()
        table.domain.interrupt(threading.get_ident())
        assert not future.done()
        session.interrupt()
        with pytest.raises(QueryError, match="was cancelled"):
            future.result(30)
    session.interrupt()
    assert len(session.run("select count(*) from people").rows) == 1
    session.close()
    other.close()


def test_expressions_of_too_many_combinations_are_refused(
    releases: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voile.dbapi.domain.MOST_COMBINED", 100)
    with SqlSession(releases["view"]) as session:
        for sql in ("select distinct age + length(city) from people",
                    "select distinct sex from people where age > length(city)"):  # fmt: skip
            with pytest.raises(QueryError, match="296 combinations of values") as caught:
                session.run(sql)
            assert caught.value.hint
        assert len(session.run("select distinct age from people").rows) == 74
        assert len(session.run("select distinct sex, city from people").rows) == 8
