"""An old ledger is noticed, and recovering from it charges what is missing."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.ledgers import begun, counter_says, question
from voile.errors import UsageError
from voile.serve.ledger import (
    Entry,
    ExhaustedError,
    Ledger,
    RolledBackError,
    begin_ledger,
    open_ledger,
    recover,
)
from voile.serve.setting import LEDGER, Setting


def answer(folder: Path, setting: Setting, *names: object) -> None:
    with open_ledger(folder, setting, serving=True) as ledger:
        for name in names:
            ledger.record("ann", [question(name)])


def refused(folder: Path, setting: Setting, message: str) -> None:
    with pytest.raises(RolledBackError, match=message):
        open_ledger(folder, setting, serving=True)


def counted(path: Path) -> int:
    return int(counter_says(path)["number"])


def answered(ledger: Ledger) -> list[str]:
    return [kept.entry.answer for kept in ledger.entries() if not kept.lost]


def exhaust(folder: Path, setting: Setting) -> int:
    """How many new answers there are before it is over."""
    with open_ledger(folder, setting, serving=True) as ledger:
        for number in range(setting.queries + 1):
            try:
                ledger.record("bob", [question(f"new {number}")])
            except ExhaustedError:
                return number
    raise AssertionError("one more than T")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "server"


# --------------------------------------------------------------------------------- old copies


def test_a_ledger_put_back_alone_is_noticed(folder: Path, tmp_path: Path) -> None:
    setting = begun(folder)
    answer(folder, setting, 1, 2, 3)
    shutil.copy(folder / LEDGER, tmp_path / "backup")
    answer(folder, setting, 4, 5)
    shutil.copy(tmp_path / "backup", folder / LEDGER)
    refused(folder, setting, "has 3 entries, but 5 answers were given: an old copy")
    with open_ledger(folder, setting) as steward:  # may look, and issue tokens
        assert len(steward.entries()) == 3


def test_a_whole_folder_put_back_is_noticed_by_a_counter_outside(
    folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    setting = begun(folder, counter=str(outside / "counter"))
    answer(folder, setting, 1, 2, 3)
    shutil.copytree(folder, tmp_path / "backup")
    answer(folder, setting, 4, 5)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    assert not (folder / "counter").exists()
    refused(folder, setting, "has 3 entries, but 5 answers were given")
    assert recover(folder, setting).lost == 2
    assert exhaust(folder, setting) == 5


def test_a_whole_folder_put_back_is_not_noticed_by_a_counter_inside(
    folder: Path, tmp_path: Path
) -> None:
    """What a counter outside is for; docs/guides/ledger.md says so."""
    setting = begun(folder)
    answer(folder, setting, 1)
    shutil.copytree(folder, tmp_path / "backup")
    answer(folder, setting, 2)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "backup", folder)
    assert exhaust(folder, setting) == 9


def test_a_copy_that_went_its_own_way_is_noticed(folder: Path, tmp_path: Path) -> None:
    setting = begun(folder)
    answer(folder, setting, 1, 2)
    shutil.copytree(folder, tmp_path / "copy")
    answer(folder, setting, "a", "b")
    answer(tmp_path / "copy", setting, "c", "d", "e")
    shutil.copy(tmp_path / "copy" / LEDGER, folder / LEDGER)
    refused(folder, setting, "entry 4 of the ledger is not the one that the counter knows")
    # Of four answers nobody knows how many are in this one.
    assert recover(folder, setting).lost == 4
    assert exhaust(folder, setting) == 1


def test_two_copies_cannot_serve_at_once_with_a_counter_outside(
    folder: Path, tmp_path: Path
) -> None:
    setting = begun(folder, counter=str(tmp_path / "counter"))
    shutil.copytree(folder, tmp_path / "copy")
    with (
        open_ledger(folder, setting, serving=True),
        pytest.raises(UsageError, match=r"another server is using the counter"),
    ):
        open_ledger(tmp_path / "copy", setting, serving=True)


@pytest.mark.parametrize("change", ["UPDATE entries SET answer = '[0]' WHERE number = 2",
                                    "UPDATE entries SET analyst = 'bob' WHERE number = 1",
                                    "UPDATE entries SET group_name = 'x' WHERE number = 1",
                                    "UPDATE entries SET at = at - 1 WHERE number = 3",
                                    "DELETE FROM entries WHERE number = 2",
                                    "DELETE FROM entries WHERE number = 1"])  # fmt: skip
def test_a_changed_entry_breaks_the_chain(folder: Path, change: str) -> None:
    setting = begun(folder)
    answer(folder, setting, 1, 2, 3)
    with closing(sqlite3.connect(folder / LEDGER)) as base, base:
        base.execute(change)
    refused(folder, setting, "the ledger was changed")
    with pytest.raises(RolledBackError, match="the ledger was changed"):
        recover(folder, setting)


# --------------------------------------------------------------------------------- the counter


def test_the_counter_is_where_the_ledger_is(folder: Path) -> None:
    setting = begun(folder)
    assert counted(folder / "counter") == 0
    with open_ledger(folder, setting, serving=True) as ledger:
        for number in range(1, 4):
            kept = ledger.record("ann", [question(number)]).kept[question(number).key]
            said = counter_says(folder / "counter")
            assert (said["number"], said["digest"]) == (number, kept.digest)
            assert said["server"] == setting.id


def test_a_ledger_ahead_of_the_counter_is_what_a_crash_leaves(folder: Path) -> None:
    setting = begun(folder)
    answer(folder, setting, 1)
    before = (folder / "counter").read_bytes()
    answer(folder, setting, 2, 3)
    (folder / "counter").write_bytes(before)
    answer(folder, setting, 4)
    assert counted(folder / "counter") == 4


@pytest.mark.parametrize("content", [b"", b"{}", b"7", b'{"format": "voile-counter"}', b"\xff"])
def test_a_damaged_counter_is_not_believed(folder: Path, content: bytes) -> None:
    setting = begun(folder)
    answer(folder, setting, 1)
    (folder / "counter").write_bytes(content)
    refused(folder, setting, r"counter .*/counter' cannot be read")


def test_a_half_written_place_leaves_the_other(folder: Path) -> None:
    """As a power cut in the middle of a write does; what it was to say had not left."""
    setting = begun(folder)
    answer(folder, setting, 1, 2)
    content = (folder / "counter").read_bytes()
    assert len(content) == 1024
    places = [content[:512], content[512:]]
    turns = [json.loads(place)["turn"] for place in places]
    newest = turns.index(max(turns))
    for half in (places[newest][:60].ljust(512), bytes(512), places[newest].replace(b"2", b"3")):
        changed = [*places]
        changed[newest] = half
        (folder / "counter").write_bytes(b"".join(changed))
        answer(folder, setting)  # starts
        assert counted(folder / "counter") == 2
    (folder / "counter").write_bytes(places[newest][:100] * 2)
    refused(folder, setting, "damaged, or no counter")


def test_the_counter_of_another_server(folder: Path, tmp_path: Path) -> None:
    setting = begun(folder)
    begun(tmp_path / "other", id="f" * 32)
    shutil.copy(tmp_path / "other" / "counter", folder / "counter")
    with pytest.raises(UsageError, match="the counter of another server"):
        open_ledger(folder, setting, serving=True)


@pytest.mark.parametrize("entries", [0, 3])
def test_a_missing_counter_is_noticed(folder: Path, entries: int) -> None:
    setting = begun(folder)
    answer(folder, setting, *range(entries))
    (folder / "counter").unlink()
    refused(folder, setting, "counter .* is gone, so it is unknown")
    assert recover(folder, setting).lost == 10 - entries  # nobody knows, so all
    assert exhaust(folder, setting) == 0


def test_who_knows_that_the_ledger_is_whole_may_say_so(folder: Path) -> None:
    setting = begun(folder)
    with open_ledger(folder, setting) as steward:
        token, identity = steward.issue("ann")
    answer(folder, setting, 1, 2, 3)
    (folder / "counter").unlink()
    assert recover(folder, setting, ledger_is_whole=True).lost == 0
    assert exhaust(folder, setting) == 7
    with open_ledger(folder, setting) as steward:
        assert steward.identify(token) == identity


# --------------------------------------------------------------------------------- recovering


def test_recovering_charges_what_is_missing_and_revokes_every_token(
    folder: Path, tmp_path: Path
) -> None:
    """What was revoked after the backup was made would be valid again."""
    setting = begun(folder)
    with open_ledger(folder, setting, serving=True) as ledger:
        token, identity = ledger.issue("ann", queries=9)
    answer(folder, setting, 1, 2)
    shutil.copy(folder / LEDGER, tmp_path / "backup")
    with open_ledger(folder, setting, serving=True) as ledger:
        ledger.revoke(token=identity.token)
    answer(folder, setting, 3, 4, 5)
    shutil.copy(tmp_path / "backup", folder / LEDGER)
    assert recover(folder, setting).lost == 3
    assert recover(folder, setting).lost == 0
    with open_ledger(folder, setting, serving=True) as ledger:
        assert ledger.identify(token) is None
        assert ledger.budgets("ann").everyone.used == 5
        assert [kept.lost for kept in ledger.entries()] == [False, False, True, True, True]
        assert answered(ledger) == ["[1]", "[2]"]
        assert [e.detail["lost"] for _, e in ledger.events() if e.what == "recovered"] == [0, 3]
        ledger.record("ann", [question(3, answer="other noise")])  # a new answer, a new charge
    assert exhaust(folder, setting) == 4


def test_recovering_again_after_a_kill_charges_nothing_twice(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed when the lost entries are charged and the counter has not moved yet."""
    setting = begun(folder)
    answer(folder, setting, 1)
    shutil.copy(folder / LEDGER, tmp_path / "backup")
    answer(folder, setting, 2, 3)
    shutil.copy(tmp_path / "backup", folder / LEDGER)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("voile.serve.ledger.counter.write_synced", interrupted)
        recover(folder, setting)
    assert counted(folder / "counter") == 3
    assert recover(folder, setting).lost == 0
    assert exhaust(folder, setting) == 7


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_recovering_what_is_sound_changes_no_entry(folder: Path) -> None:
    setting = begun(folder)
    with open_ledger(folder, setting, serving=True) as ledger:
        token, identity = ledger.issue("ann")
    answer(folder, setting, 1, 2)
    assert recover(folder, setting).lost == 0
    with open_ledger(folder, setting, serving=True) as ledger:
        assert len(ledger.entries()) == 2
        assert ledger.identify(token) == identity


def test_recovering_without_any_ledger_begins_a_new_one(folder: Path) -> None:
    setting = begun(folder)
    answer(folder, setting, 1, 2, 3)
    (folder / LEDGER).unlink()
    refused(folder, setting, "ledger .* is gone")
    assert recover(folder, setting).lost == 3
    assert exhaust(folder, setting) == 7


def test_recovering_beside_a_running_server_is_refused(folder: Path) -> None:
    setting = begun(folder)
    with (
        open_ledger(folder, setting, serving=True),
        pytest.raises(UsageError, match="another server"),
    ):
        recover(folder, setting)


def test_lost_entries_never_pass_the_budget(folder: Path) -> None:
    setting = begun(folder, queries=4)
    answer(folder, setting, 1, 2, 3)
    (folder / LEDGER).unlink()
    (folder / "counter").rename(folder / "kept")
    begin_ledger(folder, setting)
    answer(folder, setting, "a", "b", "c")
    (folder / "kept").rename(folder / "counter")
    assert recover(folder, setting).lost == 1
    assert exhaust(folder, setting) == 0


def test_the_key_of_a_lost_entry_is_no_questions(folder: Path) -> None:
    setting = begun(folder)
    answer(folder, setting, 1, 2, 3)
    (folder / LEDGER).unlink()
    recover(folder, setting)
    with open_ledger(folder, setting, serving=True) as ledger:
        lost = ledger.entries()
        assert len({kept.entry.key for kept in lost}) == 3
        assert {kept.entry.answer for kept in lost} == {"null"}
        assert ledger.find([question(n).key for n in (1, 2, 3)]) == {}
        assert isinstance(lost[0].entry, Entry)


def test_a_shared_ledger_put_back_is_noticed_and_recovered(
    folder: Path, postgres: Callable[..., str]
) -> None:
    psycopg = pytest.importorskip("psycopg")
    url = postgres()
    setting = begun(folder, ledger=url)
    answer(folder, setting, 1, 2, 3, 4)
    with psycopg.connect(url) as base:
        base.execute(f"DELETE FROM voile_{setting.id}.entries WHERE number > 2")
    refused(folder, setting, "has 2 entries, but 4 answers were given")
    assert recover(folder, setting).lost == 2
    with psycopg.connect(url) as base:
        base.execute(f"DROP SCHEMA voile_{setting.id} CASCADE")
    assert recover(folder, setting).lost == 4
    assert exhaust(folder, setting) == 6
