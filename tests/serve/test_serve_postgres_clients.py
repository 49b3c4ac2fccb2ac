"""PostgreSQL's clients of a server: tokens, budgets, and what is charged only when it is meant."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import Served, begun, running, served
from voile.dbapi.domain import TimedDomain
from voile.engines import open_domain
from voile.errors import QueryError
from voile.remote.client import Server
from voile.serve.postgres_clients import InnerApp, InnerRequests, postgres_clients
from voile.wire.server import WireOptions

psycopg = pytest.importorskip("psycopg")
ASKED = "select sex, count(*) as n from people where age < 50 group by sex order by sex"


@contextmanager
def applied(app: Any) -> Iterator[InnerApp]:
    """The application in a loop of its own, as a web server runs it."""
    inner, loop = InnerApp(app), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin() -> None:
        inner.begin()

    asyncio.run_coroutine_threadsafe(begin(), loop).result(20)
    try:
        yield inner
    finally:
        inner.end()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Served, str]]:
    """A server, and where its clients connect to it without a password."""
    setting = begun(tmp_path / "s", queries=10)
    with (
        served(tmp_path / "s") as found,
        applied(found.app) as inner,
        postgres_clients(WireOptions(port=0), setting, inner, print) as wire,
    ):
        yield found, f"host=127.0.0.1 port={wire.port} dbname=voile user=anna"


def test_nothing_is_charged_until_it_is_meant(server: tuple[Served, str]) -> None:
    found, place = server
    with psycopg.connect(f"{place} password={found.analyst}") as connection:
        for free in (
            "select 1", "select table_name from information_schema.tables",
            "select distinct city from people", "select * from people limit 0",
            "select * from people where 1 = 0",
        ):  # fmt: skip
            connection.execute(free)
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="would be charged"):
            connection.execute(ASKED)
        connection.rollback()
        assert found.service.ledger.budgets("anna").everyone.used == 0
        connection.execute("set voile.charge = on")
        told: list[str] = []
        connection.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
        first = connection.execute(ASKED).fetchall()
        assert [sex for sex, _ in first] == ["Female", "Male"]
        assert found.service.ledger.budgets("anna").everyone.used == 1
        assert any("charged 1; 9 left" in line for line in told)
        assert connection.execute(ASKED).fetchall() == first
    with psycopg.connect(f"{place} password={found.admin}") as other:
        assert other.execute(ASKED).fetchall() == first, "answered before, so it is free"
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="shows no rows"):
            other.execute("select * from people limit 1")
    assert found.service.ledger.budgets("anna").everyone.used == 1


def test_strangers_sql_is_tried_by_the_application_before_it_is_computed_here(
    server: tuple[Served, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, place = server
    worked: list[str] = []

    def refused(_: Server, sql: str) -> None:
        raise QueryError(f"too hard: {sql[:20]}")

    def at_work(_: TimedDomain) -> None:
        worked.append("here")

    monkeypatch.setattr(Server, "cost", refused)
    monkeypatch.setattr(TimedDomain, "at_work", at_work)
    with psycopg.connect(f"{place} password={found.analyst}", autocommit=True) as connection:
        for sql in ("select distinct upper(city) from people", ASKED,
                    "select upper(sex), count(*) from people where 1 = 0 group by 1"):  # fmt: skip
            with pytest.raises(psycopg.Error, match="too hard"):
                connection.execute(sql)
    assert not worked


def test_all_clients_share_one_domain(
    server: tuple[Served, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, place = server
    opened: list[Any] = []

    def counted(*given: Any, **options: Any) -> Any:
        opened.append(given)
        return open_domain(*given, **options)

    monkeypatch.setattr("voile.dbapi.domain.open_domain", counted)
    for token in (found.analyst, found.admin):
        with psycopg.connect(f"{place} password={token}") as connection:
            sexes = connection.execute("select distinct sex from people").fetchall()
            assert sexes == [("Female",), ("Male",)]
    assert len(opened) == 1


def test_an_exhausted_budget_is_said(server: tuple[Served, str]) -> None:
    found, place = server
    few, _ = found.service.ledger.issue("bob", queries=1)
    with psycopg.connect(f"{place} password={few}", autocommit=True) as connection:
        connection.execute("set voile.charge = on")
        connection.execute("select count(*) from people where age < 11")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="budget of bob"):
            connection.execute("select count(*) from people where age < 12")
        assert connection.execute("select 1").fetchone() == (1,)


def test_tokens_are_those_of_the_server(server: tuple[Served, str]) -> None:
    found, place = server
    for wrong in ("wrong", f"{found.analyst}x", "žluť", "two words"):
        with pytest.raises(psycopg.OperationalError, match="no valid token"):
            psycopg.connect(f"{place} password='{wrong}'")
    found.service.ledger.revoke(analyst="anna")
    with pytest.raises(psycopg.OperationalError, match="no valid token"):
        psycopg.connect(f"{place} password={found.analyst}")


def test_a_token_that_is_revoked_ends_what_it_began(server: tuple[Served, str]) -> None:
    found, place = server
    with psycopg.connect(f"{place} password={found.analyst}", autocommit=True) as connection:
        connection.execute("select distinct sex from people")
        found.service.ledger.revoke(analyst="anna")
        with pytest.raises(psycopg.Error, match="token"):
            connection.execute(ASKED)


def test_requests_to_an_application_that_stopped_are_refused() -> None:
    inner = InnerApp(None)
    with pytest.raises(Exception, match="starting or stopping"):
        InnerRequests(inner, "a-token").get("/schema")
    inner.end()
    with pytest.raises(Exception, match="starting or stopping"):
        inner.ask("GET", "/schema", b"", "a-token")


def test_a_server_answers_both_in_one_process(tmp_path: Path) -> None:
    setting = begun(tmp_path / "s", queries=10)
    with running(tmp_path / "s", "--wire", "0") as found:
        place = f"host=127.0.0.1 port={found.data['wire']} user=anna"
        with pytest.raises(psycopg.OperationalError, match="no valid token"):
            psycopg.connect(f"{place} password=wrong")
        assert found.stop()[0] == 0
    assert setting.name == "people"
