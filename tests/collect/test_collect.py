"""The collector: what it takes, what it refuses, what its store holds."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.collecting import (
    GENEROUS,
    SURVEY,
    application,
    ask,
    collector,
    one,
    payload,
    some_submission,
    stored,
    survey,
    together,
)
from tests.support.soak import rounds
from voile.client import Spec, read_submission
from voile.collect import Writer, opened
from voile.collect.server import RequestLimits, make_app
from voile.web.limits import RateLimiter

A, B = "0a" * 16, "0b" * 16
GOOD = [40, 12.5, "Male"]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Any]:
    with application(tmp_path / "store") as made:
        yield made


def kept(tmp_path: Path) -> dict[str, bytes]:
    return stored(tmp_path / "store")


# ---------------------------------------------------------------------- taking rows


def test_rows_are_kept_as_the_parser_reads_them(tmp_path: Path, app: Any) -> None:
    spec, generator = survey(), np.random.default_rng(1)
    expected: dict[str, bytes] = {}
    for rows in (1, 2, 300):
        body, ids = some_submission(spec, rows, generator)
        answer = one(ask(app, "POST", "/v1/rows", body))
        assert (answer.status, answer.data) == (200, {"accepted": rows, "repeated": 0})
        codes = read_submission(body, spec).codes
        # Widths 1, 4 and 1: the fewest bytes for 74, 1,000,001 and 3 codes.
        for key, (age, hours, sex) in zip(ids, codes.tolist(), strict=True):
            expected[key] = bytes([age]) + hours.to_bytes(4, "little") + bytes([sex])
    assert kept(tmp_path) == expected
    assert one(ask(app, "GET", "/v1/count")).data == {"rows": 303}


def test_sending_again_changes_nothing(tmp_path: Path, app: Any) -> None:
    spec = survey()
    first = payload(spec, [A], [GOOD])
    assert one(ask(app, "POST", "/v1/rows", first)).data == {"accepted": 1, "repeated": 0}
    before = kept(tmp_path)
    assert one(ask(app, "POST", "/v1/rows", first)).data == {"accepted": 0, "repeated": 1}
    assert kept(tmp_path) == before
    both = payload(spec, [A, B], [GOOD, GOOD])
    assert one(ask(app, "POST", "/v1/rows", both)).data == {"accepted": 1, "repeated": 1}


def test_an_id_with_other_values_is_refused_and_the_first_stays(tmp_path: Path, app: Any) -> None:
    spec = survey()
    one(ask(app, "POST", "/v1/rows", payload(spec, [A], [GOOD])))
    before = kept(tmp_path)
    answer = one(ask(app, "POST", "/v1/rows", payload(spec, [B, A], [GOOD, [41, 12.5, "Male"]])))
    assert answer.status == 409
    assert "came before with other values" in answer.data["error"]
    assert kept(tmp_path) == before  # nothing of that submission
    assert one(ask(app, "GET", "/v1/count")).data == {"rows": 1}


def test_an_empty_submission_or_one_too_long_is_refused_whole(tmp_path: Path) -> None:
    spec, generator = survey(), np.random.default_rng(2)
    with application(tmp_path / "store", limits=RequestLimits(rows=5)) as app:
        body, _ = some_submission(spec, 6, generator)
        assert one(ask(app, "POST", "/v1/rows", body)).status == 400
        body, _ = some_submission(spec, 5, generator)
        assert one(ask(app, "POST", "/v1/rows", body)).status == 200
    assert len(kept(tmp_path)) == 5


def test_many_requests_share_one_commit(tmp_path: Path) -> None:
    spec, generator = survey(), np.random.default_rng(3)
    with opened(tmp_path / "store", spec) as store:
        commits: list[int] = []
        add = store.add

        def counted(submissions: Any) -> Any:
            commits.append(len(submissions))
            return add(submissions)

        store.add = counted  # type: ignore[method-assign]
        writer = Writer(store)
        made = make_app(writer, RateLimiter(GENEROUS))
        bodies = [some_submission(spec, 2, generator)[0] for _ in range(200)]
        answers = together(*(ask(made, "POST", "/v1/rows", body) for body in bodies))
        writer.close()
    assert all(answer.data == {"accepted": 2, "repeated": 0} for answer in answers)
    assert sum(commits) == 200
    assert len(commits) < 100
    assert len(kept(tmp_path)) == 400


# ---------------------------------------------------------------------- what is refused


WRONG: list[tuple[str, dict[str, Any], int, str]] = [
    ("no JSON", {"body": b"hello"}, 400, "JSON"),
    ("nothing", {"body": b""}, 400, "JSON"),
    ("a form", {"headers": {"content-type": "text/plain"}}, 415, "application/json"),
    ("no type", {"headers": {"content-type": ""}}, 415, "application/json"),
    ("gzip", {"headers": {"content-encoding": "gzip"}}, 415, "Content-Encoding"),
    ("no length", {"headers": {"content-length": ""}}, 411, "Content-Length"),
    ("a strange length", {"headers": {"content-length": "-1"}}, 411, "Content-Length"),
    ("too long, as told", {"headers": {"content-length": "2049"}}, 413, "2,048 bytes"),
    ("absurdly long", {"headers": {"content-length": "9" * 5000}}, 413, "2,048 bytes"),
    ("too long, not told", {"body": [b" " * 1000] * 3, "headers": {"content-length": "9"}}, 413,
     "2,048 bytes"),
    ("cut off", {"body": b"{", "complete": False}, 400, "ends early"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "status", "told"), [w[1:] for w in WRONG], ids=[w[0] for w in WRONG]
)
def test_what_is_wrong_is_told(
    tmp_path: Path, request_: dict[str, Any], status: int, told: str
) -> None:
    with application(tmp_path / "store", limits=RequestLimits(bytes=2048)) as app:
        given = {"body": payload(survey(), [A], [GOOD])} | request_
        answer = one(ask(app, "POST", "/v1/rows", **given))
    assert answer.status == status
    assert set(answer.data) == {"error", "hint"}
    assert told in answer.data["error"] + answer.data["hint"]
    assert answer.data["hint"]
    assert kept(tmp_path) == {}


def test_another_survey_is_told_apart_from_a_mistake(app: Any) -> None:
    other = Spec.from_dict(SURVEY | {"name": "another survey"})
    answer = one(ask(app, "POST", "/v1/rows", payload(other, [A], [GOOD])))
    assert answer.status == 422
    assert "spec" in answer.data["error"]
    assert one(ask(app, "POST", "/v1/rows", payload(survey(), [A], [[1]]))).status == 400


def test_a_refusal_does_not_repeat_what_was_sent(app: Any) -> None:
    """Answers to wrong requests end up in logs."""
    for values in ([91, 12.5, "Male"], [40, 1e6, "Male"], [40, 12.5, "secret"]):
        answer = one(ask(app, "POST", "/v1/rows", payload(survey(), [A], [values])))
        assert answer.status == 400
        assert not {"91", "1000000", "secret", A} & set(
            answer.body.decode().replace('"', " ").replace(",", " ").split()
        )


def test_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    with application(tmp_path / "store", limits=RequestLimits(seconds=0.05)) as app:

        async def slow() -> Any:
            async def nothing() -> Any:
                await asyncio.sleep(3600)

            sent: list[Any] = []

            async def send(message: Any) -> None:
                sent.append(message)

            scope = {
                "type": "http", "method": "POST", "path": "/v1/rows", "query_string": b"",
                "headers": [(b"content-type", b"application/json"), (b"content-length", b"9")],
                "client": ("127.0.0.1", 1), "http_version": "1.1",
            }  # fmt: skip
            await app(scope, nothing, send)
            return sent[0]["status"]

        assert one(slow()) == 408


def test_bodies_together_are_bounded(tmp_path: Path) -> None:
    """While two bodies are half-way that fill the bound, a third is asked to come later."""
    spec, generator = survey(), np.random.default_rng(4)
    bodies = [some_submission(spec, 10, generator)[0] for _ in range(3)]
    limits = RequestLimits(bytes_together=len(bodies[0]) + len(bodies[1]))
    with application(tmp_path / "store", limits=limits) as app:

        async def run() -> list[int]:
            pause = asyncio.Event()
            halves = [[body[:50], body[50:]] for body in bodies[:2]]
            begun = [
                asyncio.create_task(ask(app, "POST", "/v1/rows", half, pause=pause))
                for half in halves
            ]
            await asyncio.sleep(0.05)
            third = await ask(app, "POST", "/v1/rows", bodies[2])
            pause.set()
            first = [(await task).status for task in begun]
            again = await ask(app, "POST", "/v1/rows", bodies[2])
            return [*first, third.status, again.status]

        assert asyncio.run(run()) == [200, 200, 503, 200]
    assert len(kept(tmp_path)) == 30


def test_paths_and_methods_that_are_not_there(app: Any) -> None:
    for method, path, status in (
        ("GET", "/", 404), ("GET", "/docs", 404), ("GET", "/openapi.json", 404),
        ("POST", "/v1/rows/", 404), ("GET", "/v1/rows", 405), ("DELETE", "/v1/rows", 405),
        ("POST", "/v1/spec", 405), ("GET", "/v1/../etc", 404), ("BREW", "/v1/rows", 405),
    ):  # fmt: skip
        answer = one(ask(app, method, path))
        assert (answer.status, set(answer.data)) == (status, {"error", "hint"})
        assert answer.data["hint"]


def test_the_spec_is_served_byte_for_byte(app: Any) -> None:
    answer = one(ask(app, "GET", "/v1/spec"))
    assert answer.body == survey().raw
    assert answer.headers["content-type"] == "application/json"
    assert one(ask(app, "GET", "/v1/health")).data == {"status": "ok"}


def test_scripts_of_named_pages_only(tmp_path: Path) -> None:
    page = "https://survey.example"
    asked = {"origin": page, "access-control-request-method": "POST"}
    with application(tmp_path / "store", origins=(page,)) as app:
        answer = one(ask(app, "OPTIONS", "/v1/rows", headers=asked))
        assert answer.headers["access-control-allow-origin"] == page
        other = one(ask(app, "GET", "/v1/spec", headers={"origin": "https://elsewhere.example"}))
        assert "access-control-allow-origin" not in other.headers


def test_a_fault_of_ours_is_503_and_tells_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    with opened(tmp_path / "store", survey()) as store:
        writer = Writer(store)

        def broken(submissions: Any) -> Any:
            raise RuntimeError(f"a payload's content: {submissions}")

        store.add = broken  # type: ignore[method-assign]
        made = make_app(writer, RateLimiter(GENEROUS), note=told.append)
        answer = one(ask(made, "POST", "/v1/rows", payload(survey(), [A], [GOOD])))
        assert answer.status == 503
        assert told == ["a request failed: RuntimeError"]
        del store.add
        answer = one(ask(made, "POST", "/v1/rows", payload(survey(), [A], [GOOD])))
        assert answer.status == 200  # the writer's thread lives on
        writer.close()


def test_half_open_connections_keep_nobody_out(tmp_path: Path) -> None:
    """Neither others, nor who shares the address; and the collector ends in time."""
    spec = tmp_path / "spec.json"
    spec.write_bytes(survey().raw)
    with collector(tmp_path / "store", "--spec", str(spec)) as running:
        place = ("127.0.0.1", running.port)
        half = [
            socket.create_connection(place, 20, source_address=("127.0.0.2", 0))
            for _ in range(rounds(200, 1010))
        ]
        for one_of_them in half:
            with contextlib.suppress(OSError):  # some are closed already, for others
                one_of_them.sendall(b"POST /v1/rows HTTP/1.1\r\n")
        for source in ("127.0.0.2", "127.0.0.3"):
            asking = http.client.HTTPConnection(*place, timeout=20, source_address=(source, 0))
            asking.request("GET", "/v1/health")
            assert asking.getresponse().status == 200
            asking.close()
        began = time.monotonic()
        assert running.stop()[0] == 0
        assert time.monotonic() - began < 3 + 2
        for one_of_them in half:
            one_of_them.close()
