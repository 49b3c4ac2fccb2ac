"""Never one more, and none lost: kills, full and failing disks, power cuts, locks."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.ledgers import begun, counter_says, question, run_faults
from tests.support.paths import ROOT
from tests.support.soak import rounds
from voile.errors import UsageError
from voile.serve.ledger import LedgerError, open_ledger
from voile.serve.setting import LEDGER

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory where there is one: what a kill leaves is the same, and no disk waits."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


# --------------------------------------------------------------------------------- kills


def test_a_kill_between_every_two_lines_of_an_answer(memory: Path) -> None:
    """Before the commit nothing has happened; after it all has; heard is what has returned."""
    found = run_faults("serve_faults", "lines", memory)
    asked = found["asked"]
    places = [where for where, *_ in asked]
    for step in (
        "sql_ledger.py: return self._writer.add(",
        'sqlite.py: self._writing.execute("BEGIN IMMEDIATE")',
        "entries.py: standing.check(len(new))",
        "entries.py: if needed > left:",
        'sqlite.py: self._writing.execute("COMMIT")',
        "sqlite.py: return done",
        "sql_ledger.py: self._counter.advance(head)",
        "counter.py: system.write_at(handle, content, offset)",
        "counter.py: system.flush(handle)",
        "counter.py: self.head, self._turn = head, turn",
        "writer.py: future.set_result(outcome)",
    ):
        assert step in places, step
    committed = places.index('sqlite.py: self._writing.execute("COMMIT")')
    for number, (where, entries, let_out, again) in enumerate(asked):
        assert entries == (1 if number <= committed else 3), where
        assert let_out == (3 if where == "" else 0), where
        first = "second" if number <= committed else "first"
        assert again == ["[zero]", f"[{first} 1]", f"[{first} 2]"], where
    recovered = found["recovered"]
    assert {entries for _, entries in recovered} == {3}  # two that were lost, never charged twice
    assert len(recovered) > 100


@pytest.mark.parametrize(
    ("place", "kills"), [("memory", rounds(120, 850)), ("tmp_path", rounds(30, 150))]
)
def test_many_kills_under_load(place: str, kills: int, request: pytest.FixtureRequest) -> None:
    """In memory, where more happens in the same time, and on disk."""
    folder = request.getfixturevalue(place)
    found = run_faults("serve_faults", "kills", folder, "--rounds", kills, "--seed", kills)
    assert found["kills"] == kills
    assert 0 < found["let_out"] <= found["kept"]
    if place == "memory":
        assert found["exhausted"] > 0
    # The checks themselves are in check_let_out, which every round has passed.


def test_the_check_of_a_kill_can_fail(tmp_path: Path) -> None:
    """A ledger that has lost one, changed one, or whose counter is ahead is noticed."""
    from tests.support.serve_faults import check_let_out

    folder = tmp_path / "server"
    setting = begun(folder)
    with open_ledger(folder, setting, serving=True) as ledger:
        ledger.record("ann", [question(1), question(2)])
    told = {question(1).key: (1, "[1]"), question(2).key: (2, "[2]")}
    assert check_let_out(folder, setting, told) == 2
    with pytest.raises(AssertionError, match="has left"):
        check_let_out(folder, setting, told | {question(3).key: (3, "[3]")})
    with pytest.raises(AssertionError, match="has left"):
        check_let_out(folder, setting, told | {question(2).key: (2, "[0]")})
    with closing(sqlite3.connect(folder / LEDGER)) as base, base:
        base.execute("DELETE FROM entries WHERE number = 2")
    with pytest.raises(AssertionError, match="behind the counter"):
        check_let_out(folder, setting, {})


# --------------------------------------------------------------------------------- full, locked


def test_a_full_ledger_charges_nothing_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    setting = begun(folder, queries=10_000)
    with open_ledger(folder, setting, serving=True) as ledger:
        ledger.record("ann", [question(0)])
        base = ledger._store._writing  # type: ignore[attr-defined]
        pages = base.execute("PRAGMA page_count").fetchone()[0]
        base.execute(f"PRAGMA max_page_count = {pages}")
        long = [question(n, answer="1" * 3000) for n in range(1, 20)]
        with pytest.raises(LedgerError, match="no space") as caught:
            ledger.record("ann", long)
        assert not caught.value.lasting
        assert ledger.budgets("ann").everyone.used == 1
        assert ledger.find([entry.key for entry in long]) == {}
        base.execute("PRAGMA max_page_count = 1000000")
        assert ledger.record("ann", long).budgets.everyone.used == 20


def test_a_locked_ledger_charges_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voile.web.sqlite.PATIENCE", 0.1)
    folder = tmp_path / "server"
    setting = begun(folder)
    with (
        open_ledger(folder, setting, serving=True) as ledger,
        closing(sqlite3.connect(folder / LEDGER, isolation_level=None)) as other,
    ):
        ledger.record("ann", [question(1)])
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another program has locked the ledger") as caught:
            ledger.record("ann", [question(2)])
        assert not caught.value.lasting
        assert list(ledger.find([question(1).key, question(2).key])) == [question(1).key]
        other.execute("COMMIT")
        assert ledger.record("ann", [question(2)]).charged == 1


def test_after_any_other_error_nothing_is_taken_any_more(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    setting = begun(folder)
    with open_ledger(folder, setting, serving=True) as ledger:
        ledger.record("ann", [question(1)])
        base = ledger._store._writing  # type: ignore[attr-defined]
        base.execute("PRAGMA query_only = ON")
        for _ in range(2):
            with pytest.raises(LedgerError, match="does not work: attempt to write a readonly"):
                ledger.record("ann", [question(2)])
            base.execute("PRAGMA query_only = OFF")
        ledger.note("ann", "refused")  # never fails
        assert list(ledger.find([question(1).key])) == [question(1).key]  # reading goes on
    with open_ledger(folder, setting, serving=True) as ledger:
        assert ledger.record("ann", [question(2)]).charged == 1


def test_an_answer_waits_for_its_counter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Committed, but the counter has no room: nobody hears of it until the counter has."""
    folder = tmp_path / "server"
    setting = begun(folder)
    with open_ledger(folder, setting, serving=True) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr("voile.serve.ledger.counter.os.pwrite", no_room)
            for _ in range(2):
                with pytest.raises(LedgerError, match="no space for the counter"):
                    ledger.record("ann", [question(1)])
                with pytest.raises(LedgerError, match="no space for the counter"):
                    ledger.find([question(1).key])
                with pytest.raises(LedgerError, match="no space for the counter"):
                    ledger.entries()
        again = ledger.record("ann", [question(1, answer=-1)])
        assert (again.charged, again.kept[question(1).key].entry.answer) == (0, "[1]")
        assert counter_says(folder / "counter")["number"] == 1


def no_room(*_: object) -> int:
    raise OSError(28, "No space left on device")


def test_a_counter_that_fails_stops_the_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "server"
    setting = begun(folder)

    def failing(_: int) -> None:
        raise OSError(5, "Input/output error")

    with open_ledger(folder, setting, serving=True) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr("voile.serve.ledger.counter.os.fsync", failing)
            with pytest.raises(LedgerError, match="Input/output error") as caught:
                ledger.record("ann", [question(1)])
        assert caught.value.lasting
        with pytest.raises(LedgerError, match="cannot be written: Input/output error"):
            ledger.record("ann", [question(2)])


def test_a_folder_that_cannot_be_written() -> None:
    """As another user, since root may write anywhere."""
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to others
        found = run_faults("serve_disk", "read-only", place)
    assert "cannot be used as a ledger: attempt to write a readonly database" in found["steward"]
    assert found["steward"].startswith("LedgerError")
    assert "lock': Permission denied" in found["serving"]


# --------------------------------------------------------------------------------- the disk


def test_what_is_synced_before_an_answer_leaves(memory: Path) -> None:
    """In this order: the log of SQLite, the counter; then the answer."""
    found = run_faults("serve_disk", "synced", memory)
    recorded = [calls for calls in found if calls != ["answer"]]  # each answers two
    assert len(recorded) == 19
    log = f"{LEDGER}-wal"
    for calls in recorded:
        place = calls.index(f"sync {log}")
        assert set(calls[:place]) == {f"write {log}"}
        assert calls[place + 1 :] == ["write counter", "sync counter", "answer"]


def test_a_power_cut_after_every_call_to_the_disk(memory: Path) -> None:
    """Whatever was not synced is lost, or torn, or there: nothing that has left is missing."""
    found = run_faults("serve_disk", "power", memory)
    assert (found["wrong"], found["let_out"]) == (0, found["queries"])
    assert found["cuts"] > 1000
    assert found["lost_unsynced"] > 500  # the cuts do take something away
    # Without syncs, or with SQLite's synchronous = NORMAL, the same cuts find what is wrong.
    assert found["wrong_no-sync"] > 100
    assert found["wrong_normal"] > 100


def test_every_call_to_the_disk_may_fail(memory: Path) -> None:
    """What has left is there all the same; a full disk passes, any other error stops answers."""
    found = run_faults("serve_disk", "failing", memory)
    for seen in found.values():
        assert seen["calls"] >= seen["failed"] > 10
    full = found["full"]
    assert 10 < full["went_on"] < full["failed"]  # a sync that fails is never trusted again
    assert found["broken"]["went_on"] == found["readonly"]["went_on"] == 0


def test_a_server_beside_a_server_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    setting = begun(folder)
    with open_ledger(folder, setting, serving=True):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys; from pathlib import Path; from tests.support.ledgers import SETTING; "
                "from voile.serve.ledger import open_ledger; "
                "open_ledger(Path(sys.argv[1]), SETTING, serving=True)",
                str(folder),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert UsageError.__name__ in done.stderr
    assert "another server is using the folder" in done.stderr
