"""Rows that have just come: on disk, known when they come again, and found their places."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.collecting import codes_submission, stored, survey
from tests.support.soak import rounds
from voile.collect import store as module
from voile.collect.arrivals import Arrival, SeenIds
from voile.collect.store import DATABASE, FIRST, Store, SubmissionReceipt, opened, snapshot
from voile.web.limits import RefusalError

SPEC = survey()
Rows = dict[bytes, list[int]]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows find their places after a few commits, some at a time."""
    monkeypatch.setattr(module, "TOGETHER", 40)
    monkeypatch.setattr(module, "SLICE", 7)


def some_rows(generator: np.random.Generator, count: int) -> Rows:
    def codes() -> list[int]:
        return [int(generator.integers(size)) for size in (74, 1_000_001, 3)]

    return {generator.bytes(16): codes() for _ in range(count)}


def sent(store: Store, *submissions: Rows) -> list[SubmissionReceipt | RefusalError]:
    return store.add([codes_submission(list(one), list(one.values())) for one in submissions])


def packed(store: Store, rows: Rows) -> dict[str, bytes]:
    return {key.hex(): store._layout.pack(np.array([codes])) for key, codes in rows.items()}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(rounds(2, 50)))
def test_any_submissions_in_any_order(tmp_path: Path, seed: int) -> None:
    """Beside a model: a dictionary of all rows."""
    generator, folder = np.random.default_rng(seed), tmp_path / "store"
    model: Rows = {}
    for _ in range(3):  # closed and opened again
        with opened(folder, SPEC) as store:
            assert store.count == len(model)
            for _ in range(25):
                group = [some_rows(generator, int(generator.integers(1, 9))) for _ in range(3)]
                if model and generator.random() < 0.3:  # some came before
                    old = list(model)[int(generator.integers(len(model)))]
                    group[1][old] = model[old] if generator.random() < 0.7 else [1, 2, 0]
                for one, found in zip(group, sent(store, *group), strict=True):
                    different = any(model.get(key, codes) != codes for key, codes in one.items())
                    if different:
                        assert isinstance(found, RefusalError)
                        continue
                    new = one.keys() - model.keys()
                    assert found == SubmissionReceipt(len(new), len(one) - len(new))
                    model |= one
                assert store.count == len(model)
            assert stored(folder) == packed(store, model)
            check_snapshot(folder, model)
        with ClosingConnection(folder) as connection:  # at rest every row has its place
            assert connection.execute("SELECT count(*) FROM arrivals").fetchone() == (0,)
            assert connection.execute("SELECT count(*) FROM rows").fetchone() == (len(model),)


@pytest.mark.parametrize("repeated", [False, True])
def test_rows_that_are_written_and_not_remembered_are_not_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeated: bool
) -> None:
    """Memory fails after a commit: who sends again is refused until the store is opened anew."""
    generator, folder = np.random.default_rng(4), tmp_path / "store"
    first, second = some_rows(generator, 3), some_rows(generator, 2)
    again = {**dict(list(first.items())[:1]), **second} if repeated else second

    def fails(*_: object) -> None:
        raise MemoryError

    with opened(folder, SPEC) as store:
        sent(store, first)
        with monkeypatch.context() as patched:
            patched.setattr(store, "_forget_waiting", fails)
            patched.setattr(store, "_waiting", FailingSet(store._waiting))
            with pytest.raises(MemoryError):
                sent(store, again)
        with pytest.raises(RefusalError, match="does not work: MemoryError"):
            sent(store, second)
    with opened(folder, SPEC) as store:
        assert store.count == 5
        assert sent(store, second) == [SubmissionReceipt(0, 2)]
    check_snapshot(folder, first | second)


class FailingSet(set[bytes]):
    """A set that cannot grow."""

    def update(self, *_: object) -> None:
        raise MemoryError


class ClosingConnection:
    """A connection that is closed at the end."""

    def __init__(self, folder: Path) -> None:
        self.connection = sqlite3.connect(folder / DATABASE)

    def __enter__(self) -> sqlite3.Connection:
        return self.connection

    def __exit__(self, *_: object) -> None:
        self.connection.close()


def check_snapshot(folder: Path, model: Rows) -> None:
    with snapshot(folder) as taken:
        assert taken.count == len(model)
        columns = [np.concatenate(parts) for parts in zip(*taken.batches(10), strict=True)]
    shown = np.stack(columns, axis=1).tolist() if model else []
    assert shown == [codes for _, codes in sorted(model.items())]


@pytest.mark.usefixtures("small")
def test_the_same_id_twice_in_one_commit(tmp_path: Path) -> None:
    rows = some_rows(np.random.default_rng(1), 2)
    key = next(iter(rows))
    with opened(tmp_path / "store", SPEC) as store:
        first, second, third = sent(store, rows, {key: rows[key]}, {key: [1, 2, 1]})
        assert first == SubmissionReceipt(2, 0)
        assert second == SubmissionReceipt(0, 1)
        assert isinstance(third, RefusalError)
        assert store.count == 2


def test_a_store_of_the_first_version_is_taken_over(tmp_path: Path) -> None:
    folder, rows = tmp_path / "store", some_rows(np.random.default_rng(2), 5)
    with opened(folder, SPEC) as store:
        sent(store, rows)
        there = packed(store, rows)
    with ClosingConnection(folder) as connection:
        connection.execute("DROP TABLE arrivals")
        FIRST.write(connection)
        connection.commit()
    check_snapshot(folder, rows)
    with opened(folder, None) as store:
        assert store.count == 5
        more = some_rows(np.random.default_rng(3), 5)
        assert sent(store, more, rows) == [SubmissionReceipt(5, 0), SubmissionReceipt(0, 5)]
        assert stored(folder) == there | packed(store, more)


@pytest.mark.usefixtures("small")
def test_where_there_is_no_room_to_place_rows_they_stay(tmp_path: Path) -> None:
    folder, generator = tmp_path / "store", np.random.default_rng(4)
    with opened(folder, SPEC) as store:
        pages = int(store._db.execute("PRAGMA page_count").fetchone()[0])
        store._db.execute(f"PRAGMA max_page_count = {pages + 4}")
        taken: Rows = {}
        for _ in range(200):
            rows = some_rows(generator, 8)
            try:
                sent(store, rows)
            except RefusalError:
                break
            taken |= rows
        else:
            raise AssertionError("the store was never full")
        assert taken
        assert stored(folder) == packed(store, taken)
        assert store.broken is None
        store._db.execute(f"PRAGMA max_page_count = {pages + 400}")
        more = some_rows(generator, 60)
        sent(store, more)
        assert store.count == len(taken) + 60
    check_snapshot(folder, taken | more)


def ids_of(generator: np.random.Generator, count: int) -> bytes:
    return generator.bytes(16 * count)


def test_seen_ids_are_never_denied_and_others_seldom_confirmed() -> None:
    generator = np.random.default_rng(5)
    seen, there = SeenIds(20_000), ids_of(generator, 20_000)
    seen.add(there)
    assert seen.perhaps(there).all()
    wrong = int(seen.perhaps(ids_of(generator, 20_000)).sum())
    assert wrong < 400  # 0.5 % are expected; 2 % would be 30 standard deviations away
    same_half = b"".join(there[:8] + generator.bytes(8) for _ in range(2000))
    assert int(seen.perhaps(same_half).sum()) < 60


def arrivals() -> Iterator[tuple[list[bytes], list[bytes]]]:
    generator = np.random.default_rng(6)
    for count in (0, 1, 50):
        ids = [generator.bytes(16) for _ in range(count)]
        yield ids, [bytes([i % 256, 7]) for i in range(count)]


def test_an_arrival_is_sorted_and_keeps_what_belongs_together() -> None:
    for ids, codes in arrivals():
        found = Arrival.of(ids, codes)
        assert list(found.rows()) == sorted(zip(ids, codes, strict=True))
        assert found.keys() == sorted(ids)
        some, rest = found.cut(20)
        assert [*some.rows(), *rest.rows()] == list(found.rows())
        assert len(some) == min(20, len(ids))
