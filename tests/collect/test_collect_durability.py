"""What a collector has acknowledged is on disk, however its process ends."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

import numpy as np
import pytest

import voile
from tests.support.collecting import (
    Running,
    codes_submission,
    collector,
    some_submission,
    stored,
    survey,
)
from voile.client import Spec
from voile.collect import opened, snapshot
from voile.collect.releasing import release_collected
from voile.collect.store import DATABASE
from voile.errors import UsageError

FAST = ("--rate", "1000000/s", "--burst", "1000000")


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "spec.json"
    path.write_bytes(survey().raw)
    return path


@dataclass
class Sender:
    """A client that sends one submission after the other until the collector is gone."""

    running: Running
    submissions: Sequence[tuple[bytes, list[str]]]
    sent: int = 0
    acknowledged: list[str] = field(default_factory=list)

    def run(self) -> None:
        connection = self.running.connect()
        try:
            for body, ids in self.submissions:
                self.sent += 1
                status, answer = self.running.post(body, connection)
                assert status == 200, answer
                assert answer == {"accepted": len(ids), "repeated": 0}
                self.acknowledged += ids
        except (OSError, HTTPException):
            pass  # the collector is gone, perhaps in the middle of an answer
        finally:
            connection.close()


def prepared(spec: Spec, seed: int, count: int) -> list[tuple[bytes, list[str]]]:
    generator = np.random.default_rng(seed)
    return [some_submission(spec, int(generator.integers(1, 12)), generator) for _ in range(count)]


@pytest.mark.parametrize("seed", [1, 2])
def test_kill_9_loses_nothing_that_was_acknowledged(
    tmp_path: Path, spec_file: Path, seed: int
) -> None:
    spec, folder = survey(), tmp_path / "store"
    generator = np.random.default_rng(seed)
    with collector(folder, "--spec", str(spec_file), *FAST) as running:
        senders = [Sender(running, prepared(spec, 100 * seed + n, 600)) for n in range(4)]
        threads = [threading.Thread(target=sender.run) for sender in senders]
        for thread in threads:
            thread.start()
        while sum(len(sender.acknowledged) for sender in senders) < 200:
            time.sleep(0.005)
        time.sleep(generator.uniform(0.0, 0.4))
        running.process.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join()
    assert any(sender.sent < len(sender.submissions) for sender in senders), "killed too late"
    kept = stored(folder)  # checks the file's integrity, too
    for sender in senders:
        assert set(sender.acknowledged) <= kept.keys()
        for _, ids in sender.submissions:  # whole or not at all
            assert len(kept.keys() & set(ids)) in (0, len(ids))

    # Who heard nothing sends again, and every row is there exactly once.
    with collector(folder, *FAST) as running:
        assert running.data["rows"] == len(kept)
        connection = running.connect()
        for sender in senders:
            for body, ids in sender.submissions[: sender.sent]:
                status, answer = running.post(body, connection)
                there = len(kept.keys() & set(ids))
                assert (status, answer["repeated"]) == (200, there)
        connection.close()
        assert running.stop()[0] == 0
    sent = {one for s in senders for _, ids in s.submissions[: s.sent] for one in ids}
    assert stored(folder).keys() == sent


def test_a_commit_is_synced(tmp_path: Path) -> None:
    """What SQLite is told; whether a disk obeys cannot be tested here."""
    with opened(tmp_path / "store", survey()) as store:
        assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_collector_after_its_last_commit(
    tmp_path: Path, spec_file: Path, number: int
) -> None:
    folder = tmp_path / "store"
    with collector(folder, "--spec", str(spec_file), *FAST) as running:
        sender = Sender(running, prepared(survey(), 7, 3000))
        thread = threading.Thread(target=sender.run)
        thread.start()
        while len(sender.acknowledged) < 50:
            time.sleep(0.005)
        code, errors = running.stop(number)
        thread.join()
    kept = stored(folder)
    assert code == 0
    assert errors.split() == f"stopped; {folder} has {len(kept):,} rows".split()  # no other log
    assert set(sender.acknowledged) <= kept.keys()
    assert not (folder / f"{DATABASE}-wal").exists()  # all of it is in the one file


def test_two_collectors_do_not_share_a_store(tmp_path: Path, spec_file: Path) -> None:
    folder = tmp_path / "store"
    with collector(folder, "--spec", str(spec_file)) as running:
        with pytest.raises(UsageError, match="another collector"), opened(folder, None):
            pass
        running.process.kill()
        running.process.wait()
    with opened(folder, None) as store:  # the lock went with its owner
        assert store.count == 0


def fill(folder: Path, rows: int) -> None:
    generator = np.random.default_rng(5)
    sizes = (74, 1_000_001, 3)
    with opened(folder, survey()) as store:
        raw = generator.bytes(16 * rows)
        ids = [raw[16 * i : 16 * i + 16] for i in range(rows)]
        codes = np.stack([generator.integers(0, n, rows) for n in sizes], axis=1)
        store.add([codes_submission(ids, codes.tolist())])


KILLED = """
import os, pathlib, signal, sys
from voile.collect.releasing import release_collected
from voile.collect.store import Snapshot

store, target, moment = sys.argv[1:]
batches, rename = Snapshot.batches, pathlib.Path.rename

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def read_one(self):
    yield next(batches(self, 100))
    killed()

def placed(self, to):
    rename(self, to)
    killed()

match moment:
    case "reading": Snapshot.batches = read_one
    case "written": pathlib.Path.rename = killed
    case "placed": pathlib.Path.rename = placed
release_collected(pathlib.Path(store), pathlib.Path(target))
"""


@pytest.mark.parametrize("moment", ["reading", "written", "placed"])
def test_kill_9_while_releasing_leaves_a_whole_release_or_none(tmp_path: Path, moment: str) -> None:
    """After the first rows, when all is written, and when it has just been put in its place."""
    folder, target = tmp_path / "store", tmp_path / "people.voile"
    fill(folder, 1000)
    before = stored(folder)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), str(target), moment],
        check=False,
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert target.exists() == (moment == "placed")
    if target.exists():
        assert voile.verify(target).manifest.rows == 1000
    assert stored(folder) == before
    assert release_collected(folder, target, overwrite=target.exists()).rows == 1000


def test_a_release_is_of_one_moment_while_rows_come_in(tmp_path: Path) -> None:
    """A snapshot sees none of what is committed after it was taken."""
    folder = tmp_path / "store"
    fill(folder, 1000)
    with opened(folder, None) as store, snapshot(folder) as taken:
        assert taken.count == 1000
        store.add([codes_submission([bytes(16)], [[1, 2, 0]])])
        assert sum(len(batch[0]) for batch in taken.batches(100)) == 1000
        with snapshot(folder) as later:
            assert later.count == 1001


def test_a_store_that_was_never_finished_is_begun_again(tmp_path: Path) -> None:
    """As if killed between making the file and its tables."""
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / DATABASE).touch()
    with pytest.raises(UsageError, match="never finished"), opened(folder, None):
        pass
    with pytest.raises(UsageError, match="never finished"), snapshot(folder):
        pass
    with opened(folder, survey()) as store:
        assert store.count == 0
    assert sqlite3.connect(folder / DATABASE).execute("SELECT count(*) FROM spec").fetchone()[0]
