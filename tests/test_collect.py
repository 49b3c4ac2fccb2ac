"""The collector: what it takes, what it refuses, what its store holds."""

from __future__ import annotations

import asyncio
import gc
import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.collecting import (
    GENEROUS,
    SIZES,
    SURVEY,
    application,
    ask,
    codes_submission,
    one,
    payload,
    some_submission,
    stored,
    survey,
    together,
)
from voile.cli import app as command_line
from voile.cli.collecting import check_installed
from voile.client import Spec, read_submission
from voile.collect import Added, Writer, opened, snapshot
from voile.collect.app import Limits, make_app
from voile.collect.layout import Layout
from voile.collect.rate import Buckets, Rate, party
from voile.collect.refusal import RefusalError
from voile.collect.releasing import release_collected
from voile.collect.serving import Address, bound, check_origins, check_proxy, settings
from voile.collect.store import DATABASE
from voile.errors import TableError, UsageError

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
    with application(tmp_path / "store", limits=Limits(rows=5)) as app:
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
        made = make_app(writer, Buckets(GENEROUS))
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
    with application(tmp_path / "store", limits=Limits(bytes=2048)) as app:
        given = {"body": payload(survey(), [A], [GOOD])} | request_
        answer = one(ask(app, "POST", "/v1/rows", **given))
    assert answer.status == status
    assert set(answer.data) == {"error", "hint"}
    assert told in answer.data["error"] + answer.data["hint"]
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
    with application(tmp_path / "store", limits=Limits(seconds=0.05)) as app:

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
    limits = Limits(bytes_together=len(bodies[0]) + len(bodies[1]))
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
        made = make_app(writer, Buckets(GENEROUS), note=told.append)
        answer = one(ask(made, "POST", "/v1/rows", payload(survey(), [A], [GOOD])))
        assert answer.status == 503
        assert told == ["a request failed: RuntimeError"]
        del store.add
        answer = one(ask(made, "POST", "/v1/rows", payload(survey(), [A], [GOOD])))
        assert answer.status == 200  # the writer's thread lives on
        writer.close()


# ---------------------------------------------------------------------- a store in trouble


def test_a_full_store_says_so_keeps_what_it_has_and_recovers(tmp_path: Path) -> None:
    spec, generator = survey(), np.random.default_rng(5)
    acknowledged: set[str] = set()
    with application(tmp_path / "store", most_bytes=2**17) as app:
        for _ in range(100):
            body, ids = some_submission(spec, 100, generator)
            answer = one(ask(app, "POST", "/v1/rows", body))
            if answer.status != 200:
                break
            acknowledged |= set(ids)
        assert (answer.status, answer.headers["retry-after"]) == (503, "600")
        assert answer.data["error"] == "the store is full"
        assert one(ask(app, "GET", "/v1/count")).data == {"rows": len(acknowledged)}
        assert one(ask(app, "GET", "/v1/health")).status == 200
    assert kept(tmp_path).keys() == acknowledged
    with application(tmp_path / "store") as app:  # somebody made room
        assert one(ask(app, "POST", "/v1/rows", body)).data == {"accepted": 100, "repeated": 0}


def test_after_an_error_of_the_disk_nothing_more_is_taken(tmp_path: Path) -> None:
    with opened(tmp_path / "store", survey()) as store:
        connection = store._db

        class Failing:
            in_transaction = False
            total_changes = 0

            def execute(self, statement: str, _: object = None) -> Any:
                if statement == "COMMIT":
                    error = sqlite3.OperationalError("disk I/O error")
                    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
                    raise error
                return SimpleNamespace(fetchone=lambda: (0,))

        store._db = Failing()  # type: ignore[assignment]
        with pytest.raises(RefusalError, match="disk I/O error"):
            store.add([codes_submission([bytes(16)], [[1, 2, 0]])])
        store._db = connection
        with pytest.raises(RefusalError, match="the store does not work"):
            store.add([codes_submission([bytes(16)], [[1, 2, 0]])])
        writer = Writer(store)
        made = make_app(writer, Buckets(GENEROUS))
        assert one(ask(made, "GET", "/v1/health")).status == 503
        writer.close()


def test_a_store_that_another_program_has_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voile.collect.store.PATIENCE", 0.01)
    with application(tmp_path / "store") as app:
        other = sqlite3.connect(tmp_path / "store" / DATABASE, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        body = payload(survey(), [A], [GOOD])
        answer = one(ask(app, "POST", "/v1/rows", body))
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        other.execute("ROLLBACK")
        other.close()
        assert one(ask(app, "POST", "/v1/rows", body)).status == 200


def test_more_than_may_wait_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "store", survey()) as store:
        go, add = threading.Event(), store.add

        def waiting(submissions: Any) -> Any:
            go.wait()
            return add(submissions)

        store.add = waiting  # type: ignore[method-assign]
        writer = Writer(store, waiting=2)
        rows = [codes_submission([bytes([n]) * 16], [[1, 2, 0]]) for n in range(8)]
        futures, refused = [], 0
        for row in rows:
            try:
                futures.append(writer.add(row))
            except RefusalError as error:
                assert error.retry_after == 1
                refused += 1
        go.set()
        assert all(future.result() == Added(1, 0) for future in futures)
        assert 1 <= refused <= 6
        writer.close()
        with pytest.raises(RefusalError, match="stopping"):
            writer.add(rows[0])


def test_who_has_given_up_is_not_waited_for(tmp_path: Path) -> None:
    with opened(tmp_path / "store", survey()) as store:
        go, add = threading.Event(), store.add

        def waiting(submissions: Any) -> Any:
            go.wait()
            return add(submissions)

        store.add = waiting  # type: ignore[method-assign]
        writer = Writer(store)
        first = writer.add(codes_submission([b"1" * 16], [[1, 2, 0]]))
        while not first.running():
            pass
        second = writer.add(codes_submission([b"2" * 16], [[1, 2, 0]]))
        assert second.cancel()
        go.set()
        writer.close()
        assert first.result() == Added(1, 0)
    assert set(kept(tmp_path)) == {(b"1" * 16).hex()}


def test_a_store_belongs_to_one_spec(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with opened(folder, survey()):
        pass
    other = Spec.from_dict(SURVEY | {"name": "another survey"})
    with pytest.raises(UsageError, match="begun with another spec"), opened(folder, other):
        pass
    with pytest.raises(UsageError, match="begun with another spec"), snapshot(folder, other):
        pass
    with opened(folder, None) as store:
        assert store.spec.raw == survey().raw


def test_places_that_are_no_store(tmp_path: Path) -> None:
    def attempt(folder: Path, told: str, spec: Spec | None = None) -> None:
        with pytest.raises(UsageError, match=told), opened(folder, spec or survey()):
            pass

    with pytest.raises(UsageError, match="no store"), opened(tmp_path / "new", None):
        pass
    with pytest.raises(UsageError, match="no store"), snapshot(tmp_path / "new"):
        pass
    attempt(tmp_path / "no" / "store", "there is no folder")
    full = tmp_path / "full"
    full.mkdir()
    (full / "letter.txt").touch()
    attempt(full, "holds 'letter.txt' and is not a store")
    attempt(full / "letter.txt", "cannot use|cannot write")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    connection = sqlite3.connect(foreign / DATABASE)
    connection.execute("CREATE TABLE precious (x)")
    connection.close()
    attempt(foreign, "another database")
    (foreign / DATABASE).write_bytes(b"no database at all, but long enough" * 100)
    attempt(foreign, "not a database")
    gc.collect()


def test_only_its_owner_may_look_into_a_store(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with opened(folder, survey()) as store:
        store.add([codes_submission([bytes(16)], [[1, 2, 0]])])
        assert folder.stat().st_mode & 0o077 == 0
        for path in folder.iterdir():
            assert path.stat().st_mode & 0o077 == 0, path.name


# ---------------------------------------------------------------------- reading out


@pytest.mark.parametrize("sizes", [(1,), (2, 255, 256, 257), (65536, 65537, 2**32 + 1, 3), SIZES])
def test_codes_survive_packing(sizes: tuple[int, ...]) -> None:
    generator = np.random.default_rng(6)
    codes = np.stack([generator.integers(0, size, 1000) for size in sizes], axis=1)
    codes[0] = 0
    codes[1] = np.array(sizes) - 1
    layout = Layout(sizes)
    packed = layout.pack(codes)
    assert len(packed) == 1000 * layout.width
    assert (np.stack(layout.unpack(packed), axis=1) == codes).all()


def test_a_code_outside_its_domain_means_a_damaged_store() -> None:
    with pytest.raises(TableError, match="column 2 holds a code outside 0 … 2"):
        Layout((2, 3)).unpack(bytes([1, 2, 0, 3]))


def test_batches_come_in_the_order_of_ids_whatever_came_first(tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    ids = [generator.bytes(16) for _ in range(1000)]
    codes = np.stack([generator.integers(0, size, 1000) for size in SIZES], axis=1)
    with opened(tmp_path / "store", survey()) as store:
        store.add([codes_submission([one], [row]) for one, row in zip(ids, codes, strict=True)])
    with snapshot(tmp_path / "store") as taken:
        batches = list(taken.batches(64))
    assert [len(batch[0]) for batch in batches] == [64] * 15 + [40]
    found = np.stack([np.concatenate(column) for column in zip(*batches, strict=True)], axis=1)
    order = sorted(range(1000), key=lambda row: ids[row])
    assert (found == codes[order]).all()


def test_a_release_has_the_rows_and_no_id(tmp_path: Path) -> None:
    """Codes of the store, decoded by hand, are what the release's files hold."""
    generator, folder = np.random.default_rng(8), tmp_path / "store"
    ids = [generator.bytes(16) for _ in range(500)]
    codes = np.stack([generator.integers(0, size, 500) for size in SIZES], axis=1)
    with opened(folder, survey()) as store:
        store.add([codes_submission(ids, codes.tolist())])
        done = release_collected(folder, tmp_path / "people.voile", spec=survey())
    assert (done.rows, done.spec) == (500, survey().digest)
    sexes = ("Female", "Male", None)
    expected = sorted((17 + a, h / 10_000, str(sexes[s])) for a, h, s in codes.tolist())
    files = sorted((tmp_path / "people.voile").rglob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert set(rows[0]) == {"age", "hours", "sex"}
    assert sorted((r["age"], float(r["hours"]), str(r["sex"])) for r in rows) == expected
    content = b"".join(p.read_bytes() for p in done.release.path.rglob("*") if p.is_file())
    assert not any(one in content or one.hex().encode() in content for one in ids)


def test_what_cannot_be_released(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with opened(folder, survey()):
        pass
    with pytest.raises(TableError, match="nothing has been collected"):
        release_collected(folder, tmp_path / "people.voile")
    with pytest.raises(UsageError, match="inside the store"):
        release_collected(folder, folder / "people.voile")
    with pytest.raises(UsageError, match="no store"):
        release_collected(tmp_path / "nowhere", tmp_path / "people.voile")
    with opened(folder, None) as store:
        store.add([codes_submission([bytes(16)], [[1, 2, 0]])])
    release_collected(folder, tmp_path / "people.voile")
    with pytest.raises(UsageError, match="exists already"):
        release_collected(folder, tmp_path / "people.voile")
    release_collected(folder, tmp_path / "people.voile", overwrite=True)


# ---------------------------------------------------------------------- rates


def test_a_bucket_fills_at_its_rate() -> None:
    """Against exact arithmetic: over t seconds at most burst + rate·t requests pass."""
    now = [0.0]
    buckets = Buckets(Rate(2.0, 3), clock=lambda: now[0])
    assert [buckets.wait("10.0.0.1") for _ in range(3)] == [0.0] * 3
    assert buckets.wait("10.0.0.1") == pytest.approx(0.5)
    assert buckets.wait("10.0.0.2") == 0.0  # others are not affected
    now[0] = 0.25
    assert buckets.wait("10.0.0.1") == pytest.approx(0.25)  # being refused costs nothing
    now[0] = 0.5
    assert buckets.wait("10.0.0.1") == 0.0
    passed = 0
    for step in range(1, 1001):
        now[0] = 0.5 + step / 64
        passed += buckets.wait("10.0.0.1") == 0.0
    assert passed == 1000 / 64 * 2 // 1
    now[0] = 1e6
    assert [buckets.wait("10.0.0.1") for _ in range(4)].count(0.0) == 3  # never more than a burst
    now[0] = 0.0
    assert buckets.wait("10.0.0.1") > 0  # a clock that goes back gives nothing


def test_memory_of_addresses_is_bounded() -> None:
    buckets = Buckets(Rate(1.0, 1), clock=lambda: 0.0, addresses=100)
    for number in range(1000):
        assert buckets.wait(f"10.0.{number // 256}.{number % 256}") == 0.0
    assert len(buckets) == 100
    assert buckets.wait("10.0.3.231") > 0  # the last one is remembered
    assert buckets.wait("10.0.0.0") == 0.0  # the first one is not


@pytest.mark.parametrize(
    ("address", "shared"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("nonsense" * 100, ("nonsense" * 100)[:64]),
        ("", ""),
    ],
)
def test_who_shares_a_bucket(address: str, shared: str) -> None:
    assert party(address) == shared


def test_who_asks_too_often_waits(tmp_path: Path) -> None:
    with application(tmp_path / "store", rate=Rate(0.01, 2)) as app:
        for _ in range(2):
            assert one(ask(app, "GET", "/v1/spec")).status == 200
        answer = one(ask(app, "GET", "/v1/nowhere"))
        assert (answer.status, answer.headers["retry-after"]) == (429, "100")
        assert one(ask(app, "GET", "/v1/spec", address="10.0.0.9")).status == 200
        for _ in range(5):
            assert one(ask(app, "GET", "/v1/health")).status == 200


# ---------------------------------------------------------------------- what a user writes


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:8400", "127.0.0.1", 8400), ("localhost:0", "localhost", 0), ("[::1]:1", "::1", 1)],
)
def test_addresses(text: str, host: str, port: int) -> None:
    assert Address.read(text) == Address(host, port)
    assert Address.read(text).url == f"http://{text}"


@pytest.mark.parametrize(
    "text", ["", "8400", ":8400", "host:", "host:x", "host:-1", "host:65536", "::1:8400", "h:١٢"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match="--listen"):
        Address.read(text)


@pytest.mark.parametrize("text", ["", "50", "50/", "/s", "0/s", "-1/s", "50/day", "1e3/s", "nan/s"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(UsageError, match="--rate"):
        Rate.read(text, 1)


def test_rates_as_people_write_them() -> None:
    assert Rate.read("50/s", 200) == Rate(50.0, 200)
    assert Rate.read("30/min", 1) == Rate(0.5, 1)
    assert Rate.read("900/h", 1) == Rate(0.25, 1)
    with pytest.raises(UsageError, match="--burst 0"):
        Rate.read("50/s", 0)


def test_public_addresses_are_refused_unless_asked_for() -> None:
    for host in ("0.0.0.0", "::"):  # noqa: S104
        with (
            pytest.raises(UsageError, match="other machines"),
            bound(Address(host, 0), public=False),
        ):
            pass
    with bound(Address("0.0.0.0", 0), public=True) as listener:  # noqa: S104
        assert listener.getsockname()[1]
    with bound(Address("localhost", 0), public=False) as listener:
        port = listener.getsockname()[1]
        listener.listen()
        taken = Address("localhost", port)
        with pytest.raises(UsageError, match="cannot listen on"), bound(taken, public=False):
            pass
    with pytest.raises(UsageError, match="no host"), bound(Address("a..b", 0), public=False):
        pass


def test_limits_proxies_and_origins_are_checked() -> None:
    with pytest.raises(UsageError, match="--most-rows 0"):
        Limits(rows=0)
    with pytest.raises(UsageError, match="--most-bytes 10"):
        Limits(bytes=10)
    with pytest.raises(UsageError, match="--proxy 'nginx'"):
        check_proxy("nginx")
    check_proxy("::1")
    assert check_origins(["https://survey.example:8443"]) == ("https://survey.example:8443",)
    for wrong in ("*", "survey.example", "https://survey.example/page", "https://*", ""):
        with pytest.raises(UsageError, match="--origin"):
            check_origins([wrong])


def test_a_proxy_is_believed_only_if_it_is_named(tmp_path: Path) -> None:
    """Two clients behind one web server have a rate each; nobody else can claim to be others."""
    for proxy, second in (("127.0.0.1", 200), ("10.9.9.9", 429), (None, 429)):
        with application(tmp_path / f"store {proxy}", rate=Rate(0.001, 1)) as app:
            config = settings(app, proxy)
            config.load()
            for client, status in (("203.0.113.1", 200), ("203.0.113.2", second)):
                headers = {"x-forwarded-for": client}
                answer = one(ask(config.loaded_app, "GET", "/v1/spec", headers=headers))
                assert answer.status == status, proxy


# ---------------------------------------------------------------------- the command


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    store = ["collect", "--store", str(tmp_path / "store")]
    for options, told in (
        (["--listen", "127.0.0.1:0", "--release", "r.voile"], "exclude each other"),
        (["--overwrite"], "belongs to --release"),
        (["--most-stored", "10KB"], "--most-stored 10240 is no room"),
        ([], "there is no store"),
        (["--spec", str(tmp_path / "none.json")], "there is no spec"),
    ):
        done = CliRunner().invoke(command_line, [*store, *options])
        assert isinstance(done.exception, UsageError)
        assert told in done.exception.message
    assert not (tmp_path / "store").exists()


def test_the_release_of_a_store_as_json_and_for_people(tmp_path: Path) -> None:
    folder, target = tmp_path / "store", tmp_path / "people.voile"
    with opened(folder, survey()) as store:
        store.add([codes_submission([bytes(16), b"1" * 16], [[1, 2, 0], [3, 4, 2]])])
    command = ["collect", "--store", str(folder), "--release", str(target)]
    done = CliRunner().invoke(command_line, [*command, "--json"])
    assert json.loads(done.stdout) == {
        "release": str(target), "store": str(folder), "rows": 2, "spec": survey().digest,
    }  # fmt: skip
    done = CliRunner().invoke(command_line, [*command, "--overwrite"])
    assert "as they were perturbed by those who sent them" in done.stdout


def test_what_is_missing_to_serve_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UsageError, match="needs fastapi and uvicorn") as refused:
        check_installed()
    assert refused.value.hint == "pip install 'voile[server]'"
