"""A ledger in PostgreSQL: shared by servers, synced, and none the worse for a lost connection."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.ledgers import begun, counter_says, question, run_faults
from voile.errors import UsageError
from voile.serve.ledger import ExhaustedError, LedgerError, open_ledger

psycopg: Any = pytest.importorskip("psycopg")


def test_two_servers_share_a_ledger(postgres: Callable[..., str], tmp_path: Path) -> None:
    setting = begun(tmp_path / "one", ledger=postgres())
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "counter").write_bytes((tmp_path / "one" / "counter").read_bytes())
    with (
        open_ledger(tmp_path / "one", setting, serving=True) as one,
        open_ledger(tmp_path / "two", setting, serving=True) as two,
    ):
        for number in range(10):
            (one, two)[number % 2].record("ann", [question(number)])
        assert one.entries() == two.entries()
        assert two.record("bob", [question(0, answer=-1)]).charged == 0
        for ledger in (one, two):
            with pytest.raises(ExhaustedError):
                ledger.record("ann", [question(10)])
    said = [counter_says(tmp_path / name / "counter") for name in ("one", "two")]
    assert [counter["number"] for counter in said] == [10, 10]


def test_a_database_that_does_not_sync_is_refused(
    postgres: Callable[..., str], tmp_path: Path
) -> None:
    url = postgres()
    setting = begun(tmp_path / "server", ledger=url)
    with psycopg.connect(url, autocommit=True) as base:
        for name in ("fsync", "full_page_writes"):
            change_setting(base, f"ALTER SYSTEM SET {name} = off", name, "off")
            with pytest.raises(LedgerError, match=f"'mine' on 127.0.0.1 has {name} off"):
                open_ledger(tmp_path / "server", setting, serving=True)
            change_setting(base, f"ALTER SYSTEM RESET {name}", name, "on")
        # A session can and does ask for itself to wait for the disk.
        base.execute("ALTER DATABASE mine SET synchronous_commit = off")
    with open_ledger(tmp_path / "server", setting, serving=True) as ledger:
        ledger.record("ann", [question(1)])


def change_setting(base: object, sql: str, name: str, value: str) -> None:
    """For the whole server, which takes a moment."""
    execute = base.execute  # type: ignore[attr-defined]
    execute(sql)
    execute("SELECT pg_reload_conf()")
    for _ in range(200):
        if execute(f"SHOW {name}").fetchone()[0] == value:
            return
        time.sleep(0.02)
    raise AssertionError(f"{name} is not {value}")


def test_a_lost_connection_costs_nothing(
    postgres: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres()
    setting = begun(tmp_path / "server", ledger=url)
    kill = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'voile' AND pid <> pg_backend_pid()"
    )
    with (
        open_ledger(tmp_path / "server", setting, serving=True) as ledger,
        psycopg.connect(url, autocommit=True) as base,
    ):
        ledger.record("ann", [question(1)])
        base.execute(kill)  # while nobody asks: nobody notices
        assert ledger.record("ann", [question(2)]).budgets.everyone.used == 2
        with monkeypatch.context() as patch:

            def lost(*_: object) -> None:
                base.execute(kill)

            patch.setattr("voile.serve.ledger.entries.not_before", lost)  # amidst a charge
            with pytest.raises(LedgerError, match=r"'mine' on 127.0.0.1 does not work") as caught:
                ledger.record("ann", [question(3)])
        assert not caught.value.lasting
        assert "s3cr3t" not in str(caught.value)
        assert ledger.record("ann", [question(3)]).budgets.everyone.used == 3
        assert [kept.number for kept in ledger.entries()] == [1, 2, 3]


def test_a_database_that_does_not_know_its_encoding(
    postgres: Callable[..., str], tmp_path: Path
) -> None:
    url = postgres("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
    try:
        setting = begun(tmp_path / "server", ledger=url.replace("/mine", "/ascii"))
        with open_ledger(tmp_path / "server", setting, serving=True) as ledger:
            ledger.issue("Ärztin Ü", by="Köchin")
            ledger.record("Ärztin Ü", [question(1)])
            assert ledger.entries()[0].analyst == "Ärztin Ü"
            assert ledger.events()[0][1].who == "Köchin"
    finally:
        postgres("DROP DATABASE ascii WITH (FORCE)")


def test_a_user_without_rights_is_told_so(postgres: Callable[..., str], tmp_path: Path) -> None:
    url = postgres("DROP ROLE IF EXISTS ina", "CREATE ROLE ina LOGIN PASSWORD 'pw'")
    try:
        poor = f"postgresql://ina:pw@{url.partition('@')[2]}"
        with pytest.raises(LedgerError, match="permission denied") as caught:
            begun(tmp_path / "server", ledger=poor)
        assert caught.value.lasting
        assert "right to CREATE" in caught.value.hint
    finally:
        postgres("DROP ROLE ina")


def test_a_setting_that_was_changed_is_refused_there_too(
    postgres: Callable[..., str], tmp_path: Path
) -> None:
    setting = begun(tmp_path / "server", ledger=postgres())
    with pytest.raises(UsageError, match=r"server.json' is not as the server was begun"):
        open_ledger(tmp_path / "server", dataclasses.replace(setting, variance=0.5))


def test_another_program_locks_the_shared_ledger(
    postgres: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voile.web.postgres.PATIENCE", 0.2)
    url = postgres()
    setting = begun(tmp_path / "server", ledger=url)
    with (
        open_ledger(tmp_path / "server", setting, serving=True) as ledger,
        psycopg.connect(url) as base,
    ):
        base.execute(f"SELECT * FROM voile_{setting.id}.about FOR UPDATE")
        with pytest.raises(LedgerError, match="lock timeout"):
            ledger.record("ann", [question(1)])
        base.rollback()
        assert ledger.record("ann", [question(1)]).charged == 1


def test_a_ledger_that_is_not_in_the_database(
    postgres: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres()
    setting = begun(tmp_path / "server", ledger=url)
    with pytest.raises(LedgerError, match="no ledger 'voile_ffff"):
        open_ledger(tmp_path / "server", dataclasses.replace(setting, id="f" * 32))
    with pytest.raises(UsageError, match="no server's id"):
        open_ledger(tmp_path / "server", dataclasses.replace(setting, id="a; DROP"))
    wrong = dataclasses.replace(setting, ledger=url.replace("/mine", "/none"))
    with pytest.raises(LedgerError, match=r"'none' on 127.0.0.1 does not work now") as caught:
        open_ledger(tmp_path / "server", wrong)
    assert "s3cr3t" not in str(caught.value)
    assert "again" not in caught.value.hint
    assert "is it there" in caught.value.hint
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match=r"pip install 'voile\[postgres\]'"):
        open_ledger(tmp_path / "server", setting)


def test_two_servers_are_killed_on_one_shared_ledger(
    postgres: Callable[..., str], tmp_path: Path
) -> None:
    """What either has let out is in the ledger, and there are never more than T."""
    url = postgres()
    found = run_faults("serve_shared", tmp_path, url, "--rounds", 15)
    assert found["kills"] == 30
    assert found["by_both"] > 0
    assert 0 < found["let_out"] <= found["kept"] <= 150
