"""A collector's store: in trouble, in the wrong place, read out and released."""

from __future__ import annotations

import gc
import sqlite3
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.support.collecting import (
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
)
from voile.client import Spec
from voile.collect import SubmissionReceipt, Writer, opened, snapshot
from voile.collect.releasing import release_collected
from voile.collect.server import make_app
from voile.collect.store import DATABASE, RowLayout
from voile.errors import TableError, UsageError
from voile.web.limits import RateLimiter, RefusalError

A, B = "0a" * 16, "0b" * 16
GOOD = [40, 12.5, "Male"]


def kept(tmp_path: Path) -> dict[str, bytes]:
    return stored(tmp_path / "store")


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
        made = make_app(writer, RateLimiter(GENEROUS))
        assert one(ask(made, "GET", "/v1/health")).status == 503
        writer.close()


def test_a_store_that_another_program_has_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voile.web.sqlite.PATIENCE", 0.01)
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
        assert all(future.result() == SubmissionReceipt(1, 0) for future in futures)
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
        assert first.result() == SubmissionReceipt(1, 0)
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
    layout = RowLayout(sizes)
    packed = layout.pack(codes)
    assert len(packed) == 1000 * layout.width
    assert (np.stack(layout.unpack(packed), axis=1) == codes).all()


def test_a_code_outside_its_domain_means_a_damaged_store() -> None:
    with pytest.raises(TableError, match="column 2 holds a code outside 0 … 2"):
        RowLayout((2, 3)).unpack(bytes([1, 2, 0, 3]))


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
