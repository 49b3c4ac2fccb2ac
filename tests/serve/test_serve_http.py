"""A server over HTTP: what it answers, to whom, and what it says instead."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.collecting import Answer, one, together
from tests.support.collecting import ask as send
from tests.support.serving import GENEROUS, Served, begun, served, table
from voile.errors import UsageError
from voile.serve.api import refusal_of
from voile.serve.app import as_refusal, make_app, pages
from voile.serve.ledger import ExhaustedError, LedgerError, RolledBackError
from voile.serve.opened import opened
from voile.web.limits import Rate, RefusalError, WorkPool

COUNT = "select count(*) from people where age >= 40"
MEAN = "select avg(hours) from people where age < 50"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("serve") / "server"
    begun(made, subsets={"young": "age < 30"})
    return made


@pytest.fixture
def server(folder: Path, tmp_path: Path) -> Iterator[Served]:
    """With a ledger of its own."""
    with served(Path(shutil.copytree(folder, tmp_path / "server"))) as made:
        yield made


@pytest.fixture(scope="module")
def shared(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """For tests that leave nothing behind."""
    with served(Path(shutil.copytree(folder, tmp_path_factory.mktemp("shared") / "s"))) as made:
        yield made


# ---------------------------------------------------------------------- answers


def test_a_question_is_answered_charged_and_kept(server: Served) -> None:
    first = server.query(COUNT).data
    true = sum(age >= 40 for age in table()["age"].to_pylist())
    assert first["charged"] == 1
    assert first["remaining"] == 99
    assert first["low"] < first["answer"] < first["high"]
    assert abs(first["answer"] - true) < 8 * first["stderr"]  # fails once in 10¹⁴
    assert first["rows"] == [
        {"count": {k: first[v] for k, v in zip(("estimate", "stderr", "low", "high"),
                                               ("answer", "stderr", "low", "high"), strict=True)}}
    ]  # fmt: skip
    again = server.query("SELECT count(*)\nFROM people WHERE NOT age < 40").data
    assert (again["answer"], again["charged"], again["remaining"]) == (first["answer"], 0, 99)
    assert again["numbers"] == first["numbers"] == [1]


def test_one_answer_is_for_everybody(server: Served) -> None:
    bob, _ = server.service.ledger.issue("bob", queries=0)
    assert server.query(COUNT, bob).status == 429
    answered = server.query(COUNT).data
    free = server.query(COUNT, bob).data
    assert (free["answer"], free["charged"], free["remaining"]) == (answered["answer"], 0, 0)


def test_groups_cost_one_and_say_all_groups(server: Served) -> None:
    found = server.query("select city, count(*) from people group by city").data
    assert found["charged"] == 1
    assert found["answer"] is None
    assert [row["city"] for row in found["rows"]] == ["Aachen", "Bergen", "Cork", "Delft"]


def test_the_cost_is_told_before_and_nothing_is_charged(server: Served) -> None:
    told = server.query(MEAN, dry_run=True)
    assert told.status == 200
    assert (told.data["cost"], told.data["new"], told.data["known"]) == (2, 2, 0)
    assert told.data["remaining"] == 100
    charged = server.query(MEAN).data["charged"]
    assert charged == told.data["cost"]
    assert server.query(MEAN, dry_run=True).data["cost"] == 0


@pytest.mark.parametrize("subset", ["all", "young", {"half": "a seed"}])
def test_subsets(server: Served, subset: Any) -> None:
    found = server.query(COUNT, subset=subset)
    assert found.status == 200
    assert found.data["subset"] == subset
    assert found.data["charged"] == 1


def test_budget_schema_and_history(server: Served) -> None:
    ledger = server.service.ledger
    ledger.set_group("lab", 7)
    bob, _ = ledger.issue("bob", queries=5, group="lab")
    server.query(COUNT, bob)
    assert server.request("GET", "/budget", token=bob).data == {
        "analyst": "bob", "queries": 5, "used": 1, "remaining": 4, "role": "analyst",
        "group": {"queries": 7, "used": 1, "remaining": 6}, "scopes": ["budget", "query"],
        "everyone": {"queries": 100, "used": 1, "remaining": 99},
    }  # fmt: skip
    about = server.request("GET", "/schema", token=bob).data
    assert about["subsets"][0]["name"] == "young"
    assert about["promise"]["charges"] == 100
    assert not {"person", "ledger", "counter", "digest"} & set(about)
    (asked,) = server.request("GET", "/history", token=bob).data["history"]
    assert asked["number"] == 1
    assert asked["question"]["sql"] == COUNT
    assert server.request("GET", "/history", token=server.analyst).data["history"] == []


def test_what_is_asked_again_is_in_ones_own_history(server: Served) -> None:
    ledger = server.service.ledger
    bob, _ = ledger.issue("bob", queries=5)
    server.query(COUNT, bob)
    same = COUNT.upper()
    assert server.query(same, server.analyst).data["charged"] == 0
    ledger.record("bob", [])  # what was noted before is on disk then
    found = server.request("GET", "/history", token=server.analyst).data
    assert found["history"] == []
    (again,) = found["repeats"]
    assert again["question"] == {"sql": same, "subset": "all"}  # in one's own words
    assert again["entries"] == [1]
    own = server.request("GET", "/history", token=bob).data
    assert own["repeats"] == [] and len(own["history"]) == 1


def test_history_is_newest_first_and_bounded(server: Served) -> None:
    for age in (10, 20, 30):
        server.query(f"select count(*) from people where age > {age}")
    found = server.request("GET", "/history", token=server.analyst).data["history"]
    assert [one["number"] for one in found] == [3, 2, 1]


# ---------------------------------------------------------------------- exhausted


def test_an_exhausted_budget_is_429_and_what_was_answered_stays_free(server: Served) -> None:
    bob, _ = server.service.ledger.issue("bob", queries=1)
    assert server.query(COUNT, bob).status == 200
    refused = server.query("select count(*) from people where age >= 41", bob)
    assert refused.status == 429
    assert "retry-after" not in refused.headers
    assert "bob" in refused.data["error"]
    assert refused.data["hint"]
    assert server.query(COUNT, bob).data["charged"] == 0


def test_a_question_that_costs_more_than_is_left_takes_nothing(server: Served) -> None:
    bob, _ = server.service.ledger.issue("bob", queries=1)
    both = "select sex, sum(hours), count(*) from people where age > 3 group by sex"
    assert server.query(both, bob, dry_run=True).data["affordable"] is False
    assert server.query(both, bob).status == 429
    assert server.request("GET", "/budget", token=bob).data["used"] == 0


def test_64_clients_get_exactly_the_budget(server: Served) -> None:
    """Of 256 different questions at once 100 are answered and charged; the rest are 429."""
    asked = [
        server.sending("POST", "/query", {"sql": f"select count(*) from people where "
                       f"age > {n % 90} and hours < {20 + n // 90}"}, server.analyst)
        for n in range(256)
    ]  # fmt: skip
    gate = asyncio.Semaphore(64)

    async def through(request: Any) -> Any:
        async with gate:
            return await request

    answers = together(*map(through, asked))
    fine = [answer.data for answer in answers if answer.status == 200]
    assert sum(found["charged"] for found in fine) == len(fine) == 100
    assert {answer.status for answer in answers} == {200, 429}
    kept = server.service.ledger.entries()
    assert [one.number for one in kept] == list(range(1, 101))
    told = {found["numbers"][0]: found["answer"] for found in fine}
    assert told == {one.number: json.loads(one.entry.answer)[0] for one in kept}


# ---------------------------------------------------------------------- who may what


WAYS = [
    ("GET", "/budget"), ("GET", "/schema"), ("GET", "/history"), ("GET", "/admin/people"),
    ("GET", "/admin/groups"), ("GET", "/admin/log"), ("GET", "/admin/audit"), ("POST", "/query"),
    ("POST", "/admin/tokens"), ("POST", "/admin/revoke"), ("POST", "/admin/groups"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), WAYS)
def test_nothing_without_a_valid_token(shared: Served, method: str, path: str) -> None:
    revoked, _ = shared.service.ledger.issue("bob")
    shared.service.ledger.revoke(analyst="bob")
    good, address = shared.admin, f"10.1.{WAYS.index((method, path))}.1"
    for headers in (
        {},
        {"authorization": ""},
        {"authorization": good},
        {"authorization": f"Basic {good}"},
        {"authorization": "Bearer"},
        {"authorization": "Bearer x"},
        {"authorization": f"Bearer {good[:-1]}"},
        {"authorization": f"Bearer {good}x"},
        {"authorization": f"Bearer {revoked}"},
        {"authorization": "Bearer " + "é" * 50},
        {"authorization": f"Bearer {good.partition('.')[0]}."},
    ):
        refused = shared.request(method, path, body=b"{}", headers=headers, address=address)
        assert refused.status == 401, headers
        assert set(refused.data) == {"error", "hint"}
        assert refused.headers["www-authenticate"] == "Bearer"
    assert shared.request(method, f"{path}?token={good}", body=b"{}", address=address).status == 401


@pytest.mark.parametrize(("method", "path"), [way for way in WAYS if "admin" in way[1]])
def test_an_analyst_manages_nothing(shared: Served, method: str, path: str) -> None:
    refused = shared.request(method, path, body=b"{}", token=shared.analyst)
    assert refused.status == 403
    assert "admin" in refused.data["error"]


def test_scopes(server: Served) -> None:
    looking, _ = server.service.ledger.issue("eve", scopes=frozenset({"budget"}))
    assert server.request("GET", "/budget", token=looking).status == 200
    assert server.query(COUNT, looking).status == 403
    assert server.request("GET", "/history", token=looking).status == 403
    asking, _ = server.service.ledger.issue("kim", scopes=frozenset({"query"}))
    assert server.query(COUNT, asking).status == 200
    assert server.request("GET", "/budget", token=asking).status == 403


# ---------------------------------------------------------------------- admins


def test_an_admin_lets_people_in_and_out(server: Served) -> None:
    made = server.request(
        "POST", "/admin/groups", {"name": "lab", "queries": 3}, server.admin
    )  # fmt: skip
    assert made.data == {"name": "lab", "queries": 3}
    asked = {"analyst": "bob", "queries": 2, "group": "lab", "expires": "30d", "scopes": ["query"]}
    issued = server.request("POST", "/admin/tokens", asked, server.admin).data
    assert (issued["analyst"], issued["scopes"]) == ("bob", ["query"])
    assert issued["expires"] == pytest.approx(time.time() + 30 * 86400, abs=60)
    assert server.query(COUNT, issued["token"]).data["remaining"] == 1
    people = server.request("GET", "/admin/people", token=server.admin).data["people"]
    (bob,) = [one for one in people if one["name"] == "bob"]
    assert bob["tokens"][0]["expires"] == issued["expires"]
    assert (bob["used"], bob["queries"], bob["group"]) == (1, 2, "lab")
    assert issued["token"] not in json.dumps(people)
    groups = server.request("GET", "/admin/groups", token=server.admin).data["groups"]
    assert groups == [{"name": "lab", "queries": 3, "used": 1}]
    gone = server.request("POST", "/admin/revoke", {"token": issued["id"]}, server.admin)
    assert gone.data == {"revoked": 1}
    assert server.query(COUNT, issued["token"]).status == 401


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/admin/tokens", {}),
        ("/admin/tokens", {"analyst": ""}),
        ("/admin/tokens", {"analyst": " a "}),
        ("/admin/tokens", {"analyst": "a", "queries": -1}),
        ("/admin/tokens", {"analyst": "a", "queries": 1.5}),
        ("/admin/tokens", {"analyst": "a", "queries": True}),
        ("/admin/tokens", {"analyst": "a", "group": "nobody"}),
        ("/admin/tokens", {"analyst": "a", "role": "root"}),
        ("/admin/tokens", {"analyst": "a", "scopes": ["admin"]}),
        ("/admin/tokens", {"analyst": "a", "scopes": []}),
        ("/admin/tokens", {"analyst": "a", "expires": "soon"}),
        ("/admin/tokens", {"analyst": "a", "expires": "0d"}),
        ("/admin/revoke", {}),
        ("/admin/revoke", {"token": "a", "analyst": "b"}),
        ("/admin/revoke", {"analyst": "nobody"}),
        ("/admin/groups", {"name": "lab"}),
        ("/admin/groups", {"name": "\n", "queries": 1}),
        ("/admin/groups", {"name": "lab", "queries": 1, "more": 1}),
    ],
)
def test_what_an_admin_asks_wrongly(shared: Served, path: str, data: Any) -> None:
    refused = shared.request("POST", path, data, shared.admin)
    assert refused.status == 400
    assert refused.data["error"]
    assert refused.data["hint"]
    assert shared.service.ledger.groups() == []


def test_the_log_says_who_did_what_and_no_secrets(server: Served) -> None:
    server.query(COUNT)
    server.query(COUNT)
    server.query("select secret_words from people")
    server.request("GET", "/budget", headers={"authorization": "Bearer wrong.token"})
    server.request("POST", "/admin/tokens", {"analyst": "bob"}, server.admin)
    server.service.ledger.record("anna", [])  # what was noted before is on disk then
    log = server.request("GET", "/admin/log", token=server.admin).data["log"]
    told = [(line["who"], line["what"]) for line in log]
    for expected in (("anna", "answered"), ("anna", "repeated"), ("anna", "refused"),
                     ("127.0.0.1", "refused"), ("olga", "token")):  # fmt: skip
        assert told.count(expected) == 1
    text = json.dumps(log)
    for secret in (server.analyst, server.admin, "wrong.token", "secret_words", "select"):
        assert secret not in text
    numbers = [line["number"] for line in log]
    assert numbers == sorted(numbers, reverse=True)


def test_pages_of_the_log(shared: Served) -> None:
    def look(asked: str) -> Answer:
        return shared.request("GET", f"/admin/log?{asked}", token=shared.admin)

    (first,) = look("most=1").data["log"]
    rest = look(f"before={first['number']}&most=1000").data["log"]
    assert all(line["number"] < first["number"] for line in rest)
    for wrong in ("most=0", "most=1001", "most=ten", "most=-1", "before=1e3", "most="):
        refused = look(wrong)
        assert refused.status == 400, wrong
        assert refused.data["hint"]


# ---------------------------------------------------------------------- wrong requests


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"1", b"null", b'"sql"', b"{}", b'{"sql": 1}', b'{"sql": ""}',
        b'{"sql": "x", "sql": "y"}', b'{"sql": "x", "more": 1}', b'{"sql": "x", "dry_run": 1}',
        b'{"sql": "x", "confidence": 0}', b'{"sql": "x", "confidence": 1}',
        b'{"sql": "x", "confidence": NaN}', b'{"sql": "x", "confidence": "0.9"}',
        b'{"sql": "x", "subset": 1}', b'{"sql": "x", "subset": {}}', b'{"sql": "x", "subset": ""}',
        b'{"sql": "x", "subset": {"half": ""}}', b'{"sql": "x", "subset": {"half": "a", "b": 1}}',
        b'{"sql": "\xff"}', b"[" * 5000, b'{"sql": "' + b"x" * 10_001 + b'"}',
        b'{"sql": "x", "confidence": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_a_body_that_is_no_question(shared: Served, body: bytes) -> None:
    refused = shared.request("POST", "/query", body=body, token=shared.analyst)
    assert refused.status == 400
    assert refused.data["error"]
    assert refused.data["hint"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "text/plain"}, 415),
        ({"content-encoding": "gzip"}, 415),
        ({"content-length": ""}, 411),
        ({"content-length": "-1"}, 411),
        ({"content-length": "70000"}, 413),
        ({"content-length": "9" * 30}, 413),
    ],
)
def test_bodies_that_are_not_read(shared: Served, headers: dict[str, str], status: int) -> None:
    refused = shared.request(
        "POST", "/query", {"sql": COUNT}, token=shared.analyst, headers=headers
    )
    assert refused.status == status
    assert refused.data["hint"]


def test_a_body_longer_than_it_says(shared: Served) -> None:
    refused = shared.request(
        "POST", "/query", body=b" " * 70_000, token=shared.analyst, headers={"content-length": "9"}
    )
    assert refused.status == 413


@pytest.mark.parametrize("path", ["/nothing", "/query/", "/admin", "/pages/index.html", "/../x",
                                  "/shared.json", "/table.duckdb", "/app.py"])  # fmt: skip
def test_other_paths_are_not_there(shared: Served, path: str) -> None:
    refused = shared.request("GET", path, token=shared.admin)
    assert refused.status == 404
    assert set(refused.data) == {"error", "hint"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/query"), ("POST", "/budget"), ("PUT", "/query"), ("DELETE", "/admin/tokens"),
        ("TRACE", "/health"), ("OPTIONS", "/query"),
    ],
)  # fmt: skip
def test_other_methods_are_not_there(shared: Served, method: str, path: str) -> None:
    refused = shared.request(method, path, token=shared.admin)
    assert refused.status == 405
    assert set(refused.data) == {"error", "hint"}
    assert "access-control-allow-origin" not in refused.headers


# ---------------------------------------------------------------------- pages and headers


def test_health_needs_no_token_and_says_nothing(shared: Served) -> None:
    assert shared.request("GET", "/health").data == {"status": "ok"}


@pytest.mark.parametrize("path", ["/", "/docs", "/docs.js", "/openapi.json", "/health", "/nothing"])
def test_what_browsers_are_told(shared: Served, path: str) -> None:
    headers = shared.request("GET", path, headers={"origin": "https://elsewhere.example"}).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert not any(name.startswith("access-control") for name in headers)
    assert "server" not in headers


def test_pages_load_nothing_from_elsewhere() -> None:
    found = {path: content.decode() for path, content, _ in pages()}
    assert {"/", "/docs", "/docs.js", "/docs.css"} <= set(found)
    for path, text in found.items():
        outside = text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in outside, path
        assert "https://" not in outside, path
        assert "innerHTML" not in text, path
        if text.startswith("<!doctype html>"):
            assert " style=" not in text
            assert " onclick=" not in text
            assert "<style" not in text


def test_the_document_is_valid_and_complete(shared: Served) -> None:
    document = shared.request("GET", "/openapi.json").data
    ways = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert ways == {*WAYS, ("GET", "/health")}
    scheme = document["components"]["securitySchemes"]["token"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for path, methods in document["paths"].items():
        for what in methods.values():
            assert ("security" in what) == (path != "/health")
            assert {"200", "429", "503"} <= set(what["responses"])
            assert ("requestBody" in what) == ("413" in what["responses"])
    question = document["components"]["schemas"]["Question"]
    question["components"] = document["components"]
    jsonschema.validate({"sql": "x", "subset": {"half": "a"}}, question)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"sql": "x", "more": 1}, question)


# ---------------------------------------------------------------------- trouble


def test_rates_of_addresses_and_tokens(folder: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(folder, tmp_path / "server"))
    with served(copied, rate=Rate(1e-3, 3)) as server:
        statuses = [server.request("GET", "/docs", address="10.0.0.1").status for _ in range(5)]
        assert statuses == [200, 200, 200, 429, 429]
        assert server.request("GET", "/health", address="10.0.0.1").status == 200
        by_token = [
            server.request("GET", "/budget", token=server.analyst, address=f"10.0.1.{n}")
            for n in range(5)
        ]
        assert [answer.status for answer in by_token] == [200, 200, 200, 429, 429]
        assert 900 < int(by_token[-1].headers["retry-after"]) <= 1000
        assert "token" in by_token[-1].data["error"]


def test_the_status_of_every_error() -> None:
    def of(error: Any) -> tuple[int, int | None]:
        found = refusal_of(error)
        return int(found.status), found.retry_after

    assert of(UsageError("x", hint="y")) == (403, None)
    assert of(ExhaustedError("anna", 2, 1)) == (429, None)
    assert of(LedgerError("x")) == (503, 1)
    assert of(LedgerError("x", lasting=True)) == (503, None)
    assert of(RolledBackError("x")) == (503, None)
    assert as_refusal(UsageError("x", hint="y")).status == 400
    assert as_refusal(RuntimeError("x")).status == 503
    assert isinstance(as_refusal(ValueError()), RefusalError)


def test_a_ledger_in_trouble_is_503_and_nothing_leaves(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Any:
        raise LedgerError("there is no space for the ledger", hint="free space")

    monkeypatch.setattr(server.service.ledger, "recording", fails)
    refused = server.query(COUNT)
    assert refused.status == 503
    assert refused.headers["retry-after"] == "1"
    assert "room" not in refused.data["error"]  # which is for the steward
    assert "ledger" in refused.data["error"]


def test_a_fault_of_ours_is_503_without_its_words(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    with opened(Path(shutil.copytree(folder, tmp_path / "server"))) as service:
        pool = WorkPool(2, 2)
        token, _ = service.ledger.issue("anna")
        app = make_app(service, GENEROUS, pool, note=notes.append)

        def fails(*_: object, **__: object) -> Any:
            raise RuntimeError("secret row 17")

        monkeypatch.setattr(service, "read", fails)
        given = {"authorization": f"Bearer {token}"}
        found = one(send(app, "POST", "/query", b'{"sql": "x"}', given))
        pool.close()
    assert found.status == 503
    assert b"secret" not in found.body
    assert notes == ["a request failed: RuntimeError"]


def test_no_more_is_taken_than_can_be_done_soon() -> None:
    import threading

    pool, gate = WorkPool(1, 1), threading.Event()

    async def run() -> list[Any]:
        work = [asyncio.ensure_future(pool.run(gate.wait)) for _ in range(3)]
        await asyncio.sleep(0.05)
        gate.set()
        return await asyncio.gather(*work, return_exceptions=True)

    found = asyncio.run(run())
    pool.close()
    assert found[:2] == [True, True]
    assert isinstance(found[2], RefusalError)
    assert found[2].status == 503
