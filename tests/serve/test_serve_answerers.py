"""Several processes make answers from one ledger: each charge once, and never one more."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.ledgers import begun as ledger_begun
from tests.support.ledgers import counter_says, question
from tests.support.serving import Running, begun, running
from tests.support.soak import rounds
from voile.errors import UsageError
from voile.serve.answerers import MOST, AnswererProcess, AnswererProcesses, check_workers
from voile.serve.ledger.base import ExhaustedError
from voile.serve.ledger.sql_ledger import Place, open_ledger
from voile.serve.steward import issue_token, ledger_of
from voile.web.limits import RefusalError

PLACES: tuple[Place, ...] = ("first", "beside")
FAST = ("--rate", "100000/s", "--burst", "100000", "--workers", "2")
QUESTIONS = [f"select count(*) from people where age > {n} and hours > 20" for n in range(20, 40)]


def token_of(folder: Path, analyst: str, queries: int | None = None) -> str:
    made, _ = issue_token(
        folder, analyst, queries=queries, group=None, role="analyst", scopes=None, seconds=None
    )
    return made


# ---------------------------------------------------------------------- one ledger


def test_two_ledgers_of_one_folder_never_charge_too_much(tmp_path: Path) -> None:
    """Each with a connection and a counter of its own, as in two processes."""
    folder = tmp_path / "ledger"
    setting = ledger_begun(folder, queries=40)
    heard: list[tuple[str, int, str]] = []
    with ExitStack() as stack:
        shared = [
            stack.enter_context(open_ledger(folder, setting, serving=True, place=place))
            for place in PLACES
        ]

        def work(number: int) -> None:
            ledger = shared[number % 2]
            for name in range(60):
                entry = question((7 * name + 13 * number) % 60, answer=number)
                try:
                    found = ledger.record("anna", [entry]).kept[entry.key]
                except ExhaustedError:
                    continue
                heard.append((entry.key, found.number, found.entry.answer))
                assert counter_says(folder / "counter")["number"] >= found.number
                again = ledger.find([entry.key])
                assert again[entry.key].entry.answer == found.entry.answer

        threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        entries = shared[0].entries()
    assert len(entries) == 40
    assert len({(key, number, answer) for key, number, answer in heard}) == 40
    assert {number for _, number, _ in heard} == set(range(1, 41))
    assert counter_says(folder / "counter")["number"] == 40
    with open_ledger(folder, setting, serving=True) as alone:  # the chain is whole
        assert len(alone.entries()) == 40


def test_one_server_at_a_time_has_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    setting = ledger_begun(folder)
    with (
        open_ledger(folder, setting, serving=True, place="first"),
        pytest.raises(UsageError, match="another server"),
        open_ledger(folder, setting, serving=True),
    ):
        pass


def test_numbers_of_processes() -> None:
    check_workers(1)
    check_workers(MOST)
    for wrong in (0, -1, MOST + 1):
        with pytest.raises(UsageError, match="no number of processes"):
            check_workers(wrong)


# ---------------------------------------------------------------------- processes


def asked_by_threads(
    server: Running, tokens: list[str], hear: Any, sqls: list[str], *, shift: int = 3
) -> list[threading.Thread]:
    def work(number: int) -> None:
        connection = server.connect()
        for place in range(len(sqls)):
            sql = sqls[(place + shift * number) % len(sqls)]
            try:
                status, data = server.ask(sql, tokens[number % len(tokens)], connection)
            except OSError:
                return
            hear(sql, status, data)
        connection.close()

    threads = [threading.Thread(target=work, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    return threads


def test_all_hear_the_same_and_the_budget_holds(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    begun(folder, queries=15)
    tokens = [token_of(folder, name) for name in ("anna", "olga", "iris")]
    heard: list[tuple[str, int, Any]] = []
    with running(folder, *FAST) as server:
        for thread in asked_by_threads(server, tokens, lambda *one: heard.append(one), QUESTIONS):
            thread.join()
        status, refused = server.ask("select nonsense", tokens[0])
        assert (status, "error" in refused) == (403, True)
        dry = server.ask("select count(*) from people where age > 77", tokens[0], dry_run=True)
        assert (dry[0], dry[1]["remaining"], dry[1]["affordable"]) == (200, 0, False)
        groups = "select city, count(*) from people group by city"
        assert server.ask(groups, tokens[1])[0] == 429
        code, _ = server.stop()
        assert code == 0
    assert len(heard) == 6 * len(QUESTIONS)
    answers: dict[str, set[float]] = {}
    for sql, status, data in heard:
        assert status in (200, 429), data
        if status == 200:
            answers.setdefault(sql, set()).add(data["answer"])
    assert len(answers) == 15
    assert all(len(found) == 1 for found in answers.values())
    assert sum(data.get("charged", 0) for _, _, data in heard) == 15
    with ledger_of(folder) as ledger:
        assert len(ledger.entries()) == 15


def children(process: int) -> list[int]:
    """The answerers of a server."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    named = [(int(one), Path(f"/proc/{one}/cmdline").read_bytes()) for one in found]
    return [one for one, line in named if b"answerers" in line]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="who is whose child, Linux says")
@pytest.mark.parametrize("seed", range(rounds(1, 20)))
def test_a_process_that_is_killed_loses_and_doubles_no_charge(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "server"
    begun(folder, queries=500)
    tokens = [token_of(folder, name) for name in ("anna", "olga", "iris")]
    sqls = [f"select count(*) from people where age > {n} and hours > {m}"
            for n in range(18, 30) for m in range(10, 20)]  # fmt: skip
    heard: list[tuple[str, int, Any]] = []
    enough = threading.Event()

    def hear(sql: str, status: int, data: Any) -> None:
        heard.append((sql, status, data))
        if len(heard) > 100 + 20 * seed:
            enough.set()

    with running(folder, *FAST) as server:
        before = children(server.process.pid)
        assert len(before) == 2
        threads = asked_by_threads(server, tokens, hear, sqls, shift=20)
        assert enough.wait(60)
        for one in before[: 1 + seed % 2]:
            os.kill(one, signal.SIGKILL)
        for thread in threads:
            thread.join()
        answers: dict[str, set[float]] = {}
        for sql, status, data in heard:
            assert status in (200, 503), data
            if status == 200:
                answers.setdefault(sql, set()).add(data["answer"])
        for sql, found in answers.items():  # what was told is kept, and free
            status, data = until_answered(server, sql, tokens[0])
            assert (data["charged"], {data["answer"]}) == (0, found)
        assert server.stop()[0] == 0
    with ledger_of(folder) as ledger:
        entries = ledger.entries()
    charged = sum(data.get("charged", 0) for _, status, data in heard if status == 200)
    lost = sum(status == 503 for _, status, _ in heard)
    assert charged <= len(entries) <= charged + lost
    assert len({kept.entry.key for kept in entries}) == len(entries) <= len(sqls)


def until_answered(server: Running, sql: str, token: str) -> tuple[int, Any]:
    """Ask again as long as the process that is to answer is being started anew."""
    for _ in range(2000):
        status, data = server.ask(sql, token)
        if status == 200:
            return status, data
        assert status == 503, data
    raise AssertionError("the process never came back")


def test_what_happens_when_no_process_is_left(tmp_path: Path) -> None:
    """Its refusal says that asking again is safe."""
    found = AnswererProcesses.__new__(AnswererProcesses)
    ended = AnswererProcess.__new__(AnswererProcess)
    ended.gone = True
    found.all, found._closed, found._folder, found._lock = [ended], True, tmp_path, threading.Lock()
    with pytest.raises(RefusalError, match="ended") as refused:
        found._of("anna")
    assert refused.value.status == 503
    assert "free" in refused.value.hint
