"""Questions that take too much: stopped at their limit, and in nobody else's way."""

from __future__ import annotations

import asyncio
import http.client
import io
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bench.hostile_work import hostile

from tests.support.serving import Running, Served, begun, running, served
from voile.errors import QueryError
from voile.serve import api, worker, workers
from voile.serve.api import TRIES
from voile.serve.setting import Setting
from voile.serve.steward import ledger_of
from voile.serve.workers import QuestionWorkers, unpickled
from voile.web.limits import Rate, RateLimiter, RefusalError

COUNT = "select count(*) from people where age < 30"
ALL = "city || sex || age || hours || smoker"
LONG = f"lpad({ALL}, 1000, 'ab')"
HEAVY = (
    f"select count(*) from people where length(regexp_replace({LONG}, '(a|b)+?c*', 'xy', 'g')) "
    "+ age > {n}"
)
"""Reads all columns, and takes about a minute on their 97,600 combinations."""
LARGE = "select " + ", ".join(
    f"sum(age * hours + length({ALL}) + {n})" for n in range(40)
) + " from people"  # fmt: skip
"""Its tables would be 40 times 97,600 numbers."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("workers")
    counter = place / "a secret place"
    begun(place / "server", queries=1000, subsets={"young": "age < 30"}, counter=counter)
    return place / "server"


@pytest.fixture(scope="module")
def questions(folder: Path) -> Iterator[QuestionWorkers]:
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("PGPASSWORD", "a secret of the steward")
        made = QuestionWorkers(Setting.open(folder))
    yield made
    made.close()


def test_a_worker_reads_what_the_server_itself_would_read(
    folder: Path, questions: QuestionWorkers
) -> None:
    asked: list[tuple[str, Any]] = [
        (COUNT, "all"), (COUNT, {"half": "a"}), (COUNT, {"half": "b"}), (COUNT, "young"),
        ("select avg(hours), variance(age) from people where sex = 'Male' or smoker", "all"),
        ("select sex, city, count(*) from people group by 1, 2 having count(*) > 3", "all"),
        ("select sum(age / 7) from people where city like 'B%' group by city", "young"),
        ("select avg(age) from people where sex = 'Female'", "all"),
        ("select corr(age, hours), stddev(age + hours / 3) from people where not smoker", "all"),
        ("select city, avg(case when sex = 'Male' then hours end) as x, 100.0 * count(*) filter "
         "(where smoker) / count(*) from people where age % 7 <> 2 group by all order by x", "all"),
        ("select covar_pop(age, hours) / nullif(avg(hours), 0) from people", {"half": "z"}),
        ("select floor(age / 10) * 10 as d, avg(coalesce(hours, 3)) from people group by d", "all"),
    ]  # fmt: skip
    with served(folder) as server:
        for sql, subset in asked:
            own = server.service.read(sql, subset)
            other = asyncio.run(questions.read("anna", sql, subset))
            assert [t.key for t in own.totals] == [t.key for t in other.totals]
            assert [t.question for t in own.totals] == [t.question for t in other.totals]
            assert [t.law for t in own.totals] == [t.law for t in other.totals]
            assert own.groups.keys == other.groups.keys
            assert own.stored == other.stored
            rows = server.service._rows
            true, same = (rows.totals(q.sums(q.totals)).tolist() for q in (own, other))
            assert true == same
            mine, theirs = (server.service.cost_of("anna", q) for q in (own, other))
            assert mine == theirs
            server.service.answer("anna", other)
            told, again = (server.service.answer("anna", q).to_dict() for q in (own, other))
            assert told == again


def test_who_waits_is_spared_a_worker_by_what_was_read_meanwhile(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an analyst's questions of one form that come at once, a worker reads the first alone."""
    made = QuestionWorkers(Setting.open(folder), workers=1)
    asked = [f"select count(*) from people where age < {n}" for n in range(20, 50)]
    by_worker: list[str] = []
    tried = made._tried

    async def noted(who: str, sql: str, declared: str | None) -> Any:
        by_worker.append(sql)
        return await tried(who, sql, declared)

    async def run() -> list[Any]:
        return await asyncio.gather(*(made.read("anna", sql, "all") for sql in asked))

    monkeypatch.setattr(made, "_tried", noted)
    with closing(made), served(folder) as server:
        found = asyncio.run(run())
        own = [server.service.read(sql, "all") for sql in asked]
    assert by_worker == asked[:1]
    assert [q.totals[0].key for q in found] == [q.totals[0].key for q in own]


def test_refusals_are_those_of_the_server_itself(folder: Path, questions: QuestionWorkers) -> None:
    with served(folder) as server:
        for sql in ("select max(age) from people", "select count(*) from people where aeg > 3",
                    "select count(*) from pg_tables", "nonsense"):  # fmt: skip
            with pytest.raises(QueryError) as own:
                server.service.read(sql)
            with pytest.raises(QueryError) as other:
                asyncio.run(questions.read("anna", sql, "all"))
            assert (own.value.message, own.value.hint) == (other.value.message, other.value.hint)


def test_a_question_is_stopped_at_its_limit_and_others_go_on(
    questions: QuestionWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another analyst gets many answers in the time that one takes to be stopped."""
    monkeypatch.setattr(workers, "SECONDS", 2.0)
    made = questions

    async def run() -> tuple[int, list[Any], float]:
        began, answered = time.monotonic(), 0
        asked = [made.read("mallory", HEAVY.format(n=n), "all") for n in (1, 2)]
        bad = [asyncio.ensure_future(one) for one in asked]
        while not all(one.done() for one in bad):
            await made.read("anna", f"{COUNT} and hours * 100 > {answered}", "all")
            answered += 1
        found = await asyncio.gather(*bad, return_exceptions=True)
        return answered, list(found), time.monotonic() - began

    answered, errors, seconds = asyncio.run(run())
    assert [type(one) for one in errors] == [QueryError, QueryError]
    assert answered >= 20  # it would be 0 or 1 if they waited behind each other
    assert seconds < 30


def test_who_is_stopped_again_and_again_has_to_wait(
    questions: QuestionWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = questions
    monkeypatch.setattr(made, "_stopped", RateLimiter(Rate(0.01, 2)))
    monkeypatch.setattr(workers, "SECONDS", 0.6)

    async def run() -> list[Any]:
        bad = [made.read("eve", HEAVY.format(n=n), "all") for n in range(4)]
        found = list(await asyncio.gather(*bad, return_exceptions=True))
        return [*found, await made.read("anna", COUNT, "all")]

    *errors, answered = asyncio.run(run())
    kinds = [type(one) for one in errors]
    assert kinds == [QueryError, QueryError, RefusalError, RefusalError]
    assert errors[-1].status == 429
    assert answered.totals


def test_a_question_that_needs_too_much_memory_is_stopped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a worker with little more memory than it has; the next question has another one."""
    little = "from voile.serve import worker; worker.MEMORY = 2**24; worker.main()"
    monkeypatch.setattr(workers, "RUN", little)
    made = QuestionWorkers(Setting.open(folder), workers=1)

    async def run() -> None:
        first = set(made._all)
        await made.read("anna", COUNT, "all")
        with pytest.raises(QueryError, match="too much time or memory"):
            await made.read("anna", LARGE, "all")
        await made.read("anna", f"{COUNT} and smoker", "all")
        assert len(first & made._all) < len(first)

    asyncio.run(run())
    made.close()


BREAKING = """
from voile.serve import worker
own = worker.QuestionReader.read
def read(self, sql, *rest):
    if "breaks" in sql:
        raise KeyError("a fault of ours")
    return own(self, sql, *rest)
worker.QuestionReader.read = read
if "garbage" in %r:
    good = worker.encoded
    worker.encoded = lambda reply: b"no reply" if isinstance(reply, worker.Failed) else good(reply)
worker.main()
"""


BREAKS = "select count(*) from people where breaks > {n}"


def test_who_makes_errors_of_ours_has_to_wait(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the worker goes on: it takes a second to start another."""
    monkeypatch.setattr(workers, "RUN", BREAKING % "")
    monkeypatch.setattr(workers, "STOPPED", Rate(0.001, 3))
    made = QuestionWorkers(Setting.open(folder), workers=1)
    first = set(made._all)

    async def run() -> list[int]:
        found = []
        for n in range(5):
            with pytest.raises(RefusalError) as refused:
                await made.read("mona", BREAKS.format(n=n), "all")
            found.append(int(refused.value.status))
        with pytest.raises(RefusalError, match="too many"):
            await made.read("mona", COUNT, "all")
        assert (await made.read("otto", COUNT, "all")).totals
        return found

    with closing(made):
        assert asyncio.run(run()) == [503, 503, 503, 429, 429]
        assert made._all == first


def test_an_error_of_ours_is_logged_by_its_type(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "RUN", BREAKING % "")
    made = QuestionWorkers(Setting.open(folder), workers=1)
    with closing(made), served(folder, questions=made) as server:
        mona, _ = server.service.ledger.issue("mona")
        for dry in (False, True):
            found = server.query(BREAKS.format(n=1), mona, dry_run=dry)
            assert found.status == 503
            assert "a fault of ours" not in found.body.decode()
        lines = refusals(server, "mona")
    assert [line.what for line in lines] == ["tried", "refused"]
    assert all("KeyError" in line.detail["why"] for line in lines)


def refusals(server: Served, who: str) -> list[Any]:
    server.service.ledger.record(who, [])  # what was noted before is on disk then
    found = [event for _, event in server.service.ledger.events()]
    return [event for event in found if event.who == who and "status" in event.detail]


def test_a_worker_that_sends_no_reply_counts_as_stopped(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "RUN", BREAKING % "garbage")
    monkeypatch.setattr(workers, "STOPPED", Rate(0.001, 1))
    made = QuestionWorkers(Setting.open(folder), workers=1)

    async def run() -> None:
        first = set(made._all)
        with pytest.raises(QueryError, match="was stopped"):
            await made.read("eve", "select count(*) from people where breaks", "all")
        assert len(first & made._all) < len(first)
        with pytest.raises(RefusalError, match="too many"):
            await made.read("eve", COUNT, "all")

    with closing(made):
        asyncio.run(run())


def test_tables_of_a_question_are_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(folder) as server:
        question = server.service.read("select sum(age * hours), sum(age + hours) from people")
    monkeypatch.setattr(worker, "LARGEST", 2 * 8 * 100 * 61)
    refused = unpickled(worker.encoded(question))
    assert isinstance(refused, worker.Refused)
    assert "too many combinations" in refused.error().message


def test_a_worker_has_no_secrets(folder: Path, questions: QuestionWorkers) -> None:
    """Neither the server's environment, nor where the ledger is, nor a file of its folder."""
    assert "secret place" not in str(Setting.open(folder).to_public())
    assert questions._all
    for one in questions._all:
        process = Path("/proc") / str(one._process.pid)
        assert b"secret" not in (process / "environ").read_bytes()
        assert b"secret" not in (process / "cmdline").read_bytes()
        files = [file.readlink() for file in (process / "fd").iterdir()]
        assert not [file for file in files if file.is_relative_to(folder.parent)]


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


@pytest.mark.parametrize("what", [Evil(), os.getcwd, io.BytesIO, Path("x")])
def test_a_worker_can_send_nothing_but_data(what: Any) -> None:
    with pytest.raises(pickle.UnpicklingError, match="is no data"):
        unpickled(pickle.dumps(what))


def test_workers_end_with_their_server(folder: Path) -> None:
    """Also where nobody could tell them to: the server is killed while one is at work."""
    token = new_token(folder)
    with running(folder) as server:
        threading.Thread(target=ask, args=(server, HEAVY.format(n=3), token), daemon=True).start()
        time.sleep(1.0)
        started = children(server.process.pid)
        assert len(started) == workers.WORKERS + 1
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    until = time.monotonic() + 30
    while any(is_running(pid) for pid in started) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(is_running(pid) for pid in started)


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except OSError:
        return False


# ---------------------------------------------------------------------- a whole server


def new_token(folder: Path, analyst: str = "anna") -> str:
    with ledger_of(folder) as ledger:
        return ledger.issue(analyst)[0]


def ask(server: Running, sql: str, token: str, **parts: Any) -> tuple[int, Any] | None:
    try:
        return server.ask(sql, token, **parts)
    except (OSError, http.client.HTTPException):
        return None


def test_one_analyst_stops_neither_others_nor_the_end(folder: Path) -> None:
    """Many of the worst questions at once, and half-open connections: others are answered.

    So is /health, and SIGTERM ends all. `python -m bench hostile` measures it, and soak does.
    """
    anna, mallory = new_token(folder), new_token(folder, "mallory")
    with running(folder, "--rate", "1000/s", "--burst", "1000") as server:
        worst = [partial(ask, server, HEAVY.format(n=n), mallory, dry_run=n < 6) for n in range(12)]
        bad = [threading.Thread(target=one, daemon=True) for one in worst]
        for one in bad:
            one.start()
        place = ("127.0.0.1", server.port)
        half = [
            socket.create_connection(place, 20, source_address=("127.0.0.2", 0)) for _ in range(200)
        ]
        for connection in half:
            connection.sendall(b"POST /query HTTP/1.1\r\n")
        time.sleep(0.5)
        began = time.monotonic()
        for n in range(5):
            assert server.ask(f"{COUNT} and hours < {n + 5}", anna)[0] == 200
            looking = server.connect()
            looking.request("GET", "/health")
            assert looking.getresponse().status == 200
            looking.close()
        assert time.monotonic() - began < 15  # seconds each, if they waited for one of the others
        began = time.monotonic()
        code, _ = server.stop()
        assert time.monotonic() - began < 3 + 2  # and a little, on a busy machine
        assert code == 0
        for connection in half:
            connection.close()
        for one in bad:
            one.join(10)


@pytest.mark.soak  # make soak measures it: other tests share the machine
def test_another_analyst_waits_less_than_three_times_as_long() -> None:
    found = hostile(requests=400, senders=16, half_open=500)
    assert found["p99_ms"] < 3 * found["quiet_p99_ms"], found


def test_dry_runs_are_rated_and_logged_without_their_words(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "TRIES", Rate(0.01, 3))
    assert TRIES.burst >= 60  # the page makes one while an analyst types
    with served(folder) as server:
        tried = [server.query(COUNT, dry_run=True) for _ in range(2)]
        refused = server.query("select count(*) from people where surname = 'Huber'", dry_run=True)
        late = [server.query(COUNT, dry_run=True) for _ in range(2)]
        assert [one.status for one in (*tried, refused, *late)] == [200, 200, 403, 429, 429]
        assert "retry-after" in late[0].headers
        assert server.query(COUNT).status == 200  # asking is not what was rated
        server.service.ledger.record("anna", [])  # what was noted before is on disk then
        lines = [e for _, e in server.service.ledger.events() if e.what == "tried"]
    lines = [line for line in lines if line.who == "anna"]
    assert len(lines) == 3
    assert {line.detail.get("status") for line in lines} == {None, 403}
    assert "Huber" not in str(lines)
    assert "surname" not in str(lines)
