"""What a ledger keeps and refuses, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.ledgers import begun, question
from voile.errors import UsageError, VoileError
from voile.serve.ledger import (
    Budget,
    Event,
    ExhaustedError,
    Ledger,
    LedgerError,
    accounts,
    open_ledger,
)
from voile.serve.ledger.accounts import look_up
from voile.serve.ledger.base import LOST
from voile.serve.ledger.sql_ledger import attempt
from voile.serve.ledger.store import Run
from voile.serve.setting import LEDGER, Setting

Home = tuple[Path, Setting]


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """A server's folder with an empty ledger of ten answers."""
    folder = tmp_path / "server"
    url = None
    if request.param == "postgres":
        pytest.importorskip("psycopg")
        url = request.getfixturevalue("postgres")()
    return folder, begun(folder, ledger=url)


@pytest.fixture
def ledger(home: Home) -> Iterator[Ledger]:
    with open_ledger(*home, serving=True) as opened:
        yield opened


def told(ledger: Ledger) -> list[Event]:
    """The log, oldest first, once what is waiting has been written."""
    ledger.set_group("everybody", 1)  # waits for what was noted before
    return [event for _, event in reversed(ledger.events())][:-1]


# --------------------------------------------------------------------------------- answers


def test_an_entry_is_kept_with_its_answer_and_charged_once(home: Home) -> None:
    with open_ledger(*home, serving=True) as ledger:
        first = ledger.record("ann", [question("a"), question("b")])
        assert (first.charged, first.budgets.everyone) == (2, Budget(10, 2))
        again = ledger.record("bob", [question("b", answer=-1), question("c"), question("c")])
        assert (again.charged, again.budgets.everyone) == (1, Budget(10, 3))
        assert again.kept[question("b").key] == first.kept[question("b").key]  # not the new answer
        free = ledger.record("cy", [question("a", answer=-1)])
        assert free.charged == 0
    with open_ledger(*home) as ledger:
        kept = ledger.entries()
        assert [one.number for one in kept] == [1, 2, 3]
        assert [one.analyst for one in kept] == ["ann", "ann", "bob"]
        assert [one.entry for one in kept] == [question("a"), question("b"), question("c")]
        assert [one.at for one in kept] == sorted(one.at for one in kept)
        assert ledger.entries(after=1, most=1) == kept[1:2]
        keys = [question(name).key for name in ("c", "a", "z")]
        assert ledger.find(keys) == {keys[0]: kept[2], keys[1]: kept[0]}


def test_the_digests_are_a_chain_that_anyone_can_follow(home: Home, ledger: Ledger) -> None:
    """Computed here from the words of the docs, not by the ledger's own function."""
    ledger.set_group("team", 5)
    ledger.issue("ann", group="team")
    ledger.record("ann", [question("naïve"), question("b")])
    ledger.record("bob", [question("c")])
    digest = hashlib.sha256(f"voile ledger {home[1].id}".encode()).hexdigest()
    for kept in ledger.entries():
        e = kept.entry
        row = [digest, kept.number, e.key, e.question, e.answer, kept.analyst, kept.group, kept.at]
        digest = hashlib.sha256(json.dumps(row, separators=(",", ":")).encode()).hexdigest()
        assert kept.digest == digest
    assert [kept.group for kept in ledger.entries()] == ["team", "team", None]


def test_all_entries_of_a_question_or_none(ledger: Ledger) -> None:
    ledger.record("ann", [question(i) for i in range(8)])
    with pytest.raises(ExhaustedError, match=r"needs 3 of the budget of the server, .* 2 left"):
        ledger.record("ann", [question(i) for i in range(7, 11)])
    assert ledger.budgets("ann").everyone == Budget(10, 8)
    assert ledger.record("ann", [question(8), question(9)]).budgets.left == 0
    assert ledger.record("bob", [question(i) for i in range(10)]).charged == 0
    with pytest.raises(ExhaustedError):
        ledger.record("bob", [question(10)])


def test_the_tightest_budget_decides(ledger: Ledger) -> None:
    ledger.set_group("team", 4)
    ledger.issue("ann", queries=3, group="team")
    ledger.issue("bob", group="team")
    ledger.record("ann", [question(1), question(2)])
    with pytest.raises(ExhaustedError, match="needs 2 of the budget of 'ann', which has 1 left"):
        ledger.record("ann", [question(3), question(4)])
    ledger.record("bob", [question(3)])
    with pytest.raises(ExhaustedError, match="of the group 'team', which has 1 left"):
        ledger.record("bob", [question(4), question(5)])
    now = ledger.budgets("bob")
    assert (now.everyone, now.group, now.analyst) == (Budget(10, 3), Budget(4, 3), None)
    ledger.set_group("team", 2)  # less than was used
    assert ledger.budgets("ann").left == 0
    assert ledger.record("stranger", [question(6)]).budgets.left == 6
    assert ledger.groups() == [{"name": "team", "queries": 2, "used": 3}]


def test_a_budget_can_be_changed_and_what_was_used_stays(ledger: Ledger) -> None:
    ledger.issue("ann", queries=1)
    ledger.record("ann", [question(1)])
    ledger.issue("ann", queries=2)
    assert ledger.record("ann", [question(2)]).budgets.analyst == Budget(2, 2)
    ledger.issue("ann")  # leaves it
    with pytest.raises(ExhaustedError):
        ledger.record("ann", [question(3)])
    ledger.set_group("new", 5)
    ledger.issue("ann", queries=4, group="new")
    ledger.record("ann", [question(3)])
    assert ledger.groups()[0]["used"] == 1  # what came before was not the group's


def test_no_row_above_the_budget_can_be_written_at_all(tmp_path: Path) -> None:
    """The file itself refuses, whatever a program does."""
    begun(tmp_path / "server", queries=2)
    with closing(sqlite3.connect(tmp_path / "server" / LEDGER)) as base:
        for number in (0, 3):
            with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint"):
                base.execute(
                    "INSERT INTO entries VALUES (?, 'k', '', '', '', 1, NULL, NULL, 0, '')",
                    [number],
                )


def test_what_cannot_be_written_is_refused_alone(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="cannot take this"):
        ledger.record("ann", [dataclasses.replace(question(1), answer="\ud800")])
    assert ledger.record("ann", [question(1)]).budgets.everyone.used == 1


def test_what_cannot_be_written_is_refused_whole(ledger: Ledger) -> None:
    """The second entry fails: the first, which was written before, is neither kept nor charged."""
    broken = dataclasses.replace(question(2), answer="\ud800")
    with pytest.raises(LedgerError, match="cannot take this"):
        ledger.record("ann", [question(1), broken])
    assert ledger.entries() == []
    assert ledger.find([question(1).key]) == {}
    assert ledger.budgets("ann").everyone.used == 0


@pytest.mark.parametrize("error", [UsageError("no"), sqlite3.IntegrityError("no")])
def test_nothing_of_a_refused_job_stays(error: Exception) -> None:
    """Of jobs in one transaction, those that are done stay, and those that are refused do not."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as base:

        def run(sql: str, *values: object) -> list[tuple[object, ...]]:
            return base.execute(sql, values).fetchall()

        def job(number: int, *, refused: bool) -> object:
            def work(run: Run) -> int:
                run("INSERT INTO jobs VALUES (?)", number)
                if refused:
                    raise error
                return number

            return attempt(run, work, lambda _: False)

        run("CREATE TABLE jobs (number)")
        run("BEGIN")
        outcomes = [job(1, refused=False), job(2, refused=True), job(3, refused=False)]
        run("COMMIT")
        assert (outcomes[0], outcomes[2]) == (1, 3)
        assert isinstance(outcomes[1], VoileError)
        assert run("SELECT number FROM jobs ORDER BY number") == [(1,), (3,)]


def test_a_steward_may_not_answer(home: Home) -> None:
    with open_ledger(*home) as ledger, pytest.raises(UsageError, match="serving=True"):
        ledger.record("ann", [question(1)])


def test_a_closed_ledger_takes_nothing(home: Home) -> None:
    ledger = open_ledger(*home, serving=True)
    ledger.close()
    with pytest.raises(LedgerError, match="stopping"):
        ledger.record("ann", [question(1)])


# --------------------------------------------------------------------------------- people


def test_a_token_is_of_its_analyst_until_it_is_revoked(home: Home, ledger: Ledger) -> None:
    token, identity = ledger.issue("ann")
    other, admin = ledger.issue("root", role="admin")
    assert ledger.identify(token) == identity
    assert ledger.identify(other) == admin
    assert identity.scopes == {"query", "budget"}
    assert admin.scopes == {"query", "budget", "admin"}
    with open_ledger(*home) as steward:  # beside the running server
        assert steward.revoke(token=identity.token) == 1
        assert steward.revoke(token=identity.token) == 0
        late, _ = steward.issue("late", scopes=frozenset({"budget"}))
    assert ledger.identify(token) is None
    assert ledger.identify(other) == admin
    seen = ledger.identify(late)
    assert seen is not None
    assert seen.scopes == {"budget"}
    assert ledger.revoke(analyst="root") == 1
    assert ledger.identify(other) is None
    people = {one["name"]: one for one in ledger.people()}
    assert list(people) == ["ann", "late", "root"]
    assert [t["valid"] for one in people.values() for t in one["tokens"]] == [False, True, False]
    assert [one["role"] for one in people.values()] == ["analyst"] * 3  # no valid admin any more
    assert people["ann"]["tokens"][0]["revoked"] >= people["ann"]["tokens"][0]["created"]


def test_wrong_tokens_are_nobodys(ledger: Ledger) -> None:
    token, identity = ledger.issue("ann")
    _, secret = token.split(".")
    wrong = [
        "", ".", token[:-1], token + "a", token.upper(), f"{identity.token}.", secret,
        f"{identity.token}.{'0' * 43}", f" {token}", token + "\0", "\ud800." + secret,
        f"{'0' * 12}.{secret}", "' OR 1=1 --.x", "x" * 10_000, token * 100, f"{identity.token}\n.x",
    ]  # fmt: skip
    assert [ledger.identify(one) for one in wrong] == [None] * len(wrong)
    assert ledger.identify(token) == identity


def test_a_token_has_256_bits_of_which_a_hash_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    setting = begun(folder)
    with open_ledger(folder, setting, serving=True) as ledger:
        made = [ledger.issue("ann")[0] for _ in range(20)]
    kept = b"".join(path.read_bytes() for path in folder.iterdir())
    assert len(set(made)) == 20
    for token in made:
        secret = token.split(".")[1]
        assert len(secret) == 43  # 256 bits, six in a letter
        assert secret.encode() not in kept
        assert hashlib.sha256(token.encode()).hexdigest().encode() in kept


def test_every_token_is_looked_up_and_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known or not: the same steps, and a comparison that does not stop at the first letter."""
    made = accounts.make_token()
    looked: list[str] = []
    compared: list[tuple[int, int]] = []
    plain = hmac.compare_digest

    def compare(a: str, b: str) -> bool:
        compared.append((len(a), len(b)))
        return plain(a, b)

    def run(sql: str, *values: object) -> list[tuple[object, ...]]:
        looked.append(sql)
        row = (made.id, "ann", "analyst", "query", None, None, made.digest)
        return [row] if values == (made.id,) else []

    monkeypatch.setattr(hmac, "compare_digest", compare)
    asked = [made.token, f"{made.id}.wrong", "unknown.wrong", "nonsense", ""]
    assert [look_up(run, token, 0.0) is not None for token in asked] == [True, *[False] * 4]
    assert len(looked) == 5
    assert len(set(looked)) == 1
    assert compared == [(64, 64)] * 5


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"analyst": ""}, "'' is no name for an analyst"),
        ({"analyst": "a\nb"}, "is no name"),
        ({"analyst": " ann"}, "is no name"),
        ({"analyst": "x" * 101}, "is no name"),
        ({"analyst": "ann", "queries": -1}, "-1 is no budget"),
        ({"analyst": "ann", "queries": 1.5}, "1.5 is no budget"),
        ({"analyst": "ann", "queries": True}, "True is no budget"),
        ({"analyst": "ann", "group": "nobody"}, "no group 'nobody'\n.*voile serve group"),
        ({"analyst": "ann", "role": "king"}, "'king' is no role"),
        ({"analyst": "ann", "scopes": frozenset({"admin"})}, "cannot have the scope 'admin'"),
        ({"analyst": "ann", "scopes": frozenset({"qery"})}, "did you mean 'query'"),
        ({"analyst": "ann", "scopes": frozenset()}, "without scopes"),
        ({"analyst": "ann", "seconds": 0}, "after 0 seconds"),
        ({"analyst": "ann", "seconds": float("nan")}, "after nan seconds"),
        ({"analyst": "ann", "seconds": float("inf")}, "after inf seconds"),
    ],
)
def test_wishes_that_make_no_sense(wish: dict[str, object], message: str, tmp_path: Path) -> None:
    folder = tmp_path / "server"
    with open_ledger(folder, begun(folder)) as ledger:
        with pytest.raises(UsageError, match=message):
            ledger.issue(**wish)  # type: ignore[arg-type]
        assert ledger.people() == []


def test_revoking_what_is_not_there(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match=r"no token of 'ann'\n.*no token was issued yet"):
        ledger.revoke(analyst="ann")
    _, identity = ledger.issue("ann")
    with pytest.raises(UsageError, match=r"no token of 'anne'\n.*did you mean 'ann'"):
        ledger.revoke(analyst="anne")
    with pytest.raises(UsageError, match="either"):
        ledger.revoke()
    with pytest.raises(UsageError, match="either"):
        ledger.revoke(token=identity.token, analyst="ann")
    with pytest.raises(UsageError, match="is no name for a group"):
        ledger.set_group("", 3)


# --------------------------------------------------------------------------------- time


class Wall:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.time = 2e9

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    clock = Wall()
    monkeypatch.setattr("voile.serve.ledger.sql_ledger.time.time", clock)
    return clock


def test_a_token_expires_to_the_second(wall: Wall, ledger: Ledger) -> None:
    token, identity = ledger.issue("ann", seconds=60)
    wall.time += 59.9
    assert ledger.identify(token) == identity
    wall.time += 0.1
    assert ledger.identify(token) is None


def test_setting_the_clock_back_revives_no_token(wall: Wall, home: Home) -> None:
    with open_ledger(*home, serving=True) as ledger:
        token, _ = ledger.issue("ann", seconds=60)
        wall.time += 100
        assert ledger.identify(token) is None
        wall.time -= 90
        assert ledger.identify(token) is None  # while it runs
    with open_ledger(*home, serving=True) as ledger:
        assert ledger.identify(token) is None  # and when it is started anew
        assert [e.what for e in told(ledger)] == ["token", "expired", "expired"]  # once each


def test_times_of_entries_never_go_back(wall: Wall, home: Home) -> None:
    with open_ledger(*home, serving=True) as ledger:
        ledger.record("ann", [question(1)])
        wall.time -= 1000
        ledger.record("ann", [question(2)])
    with open_ledger(*home, serving=True) as ledger:
        ledger.record("ann", [question(3)])
        wall.time += 2000
        ledger.record("ann", [question(4)])
        assert [kept.at for kept in ledger.entries()] == [2e9, 2e9, 2e9, 2e9 + 1000]
        assert [event.at for event in told(ledger)] == []


# --------------------------------------------------------------------------------- the log


def test_the_log_tells_what_was_done_newest_first(ledger: Ledger) -> None:
    ledger.set_group("team", 7)
    _, identity = ledger.issue("ann", queries=3, group="team")
    ledger.revoke(analyst="ann")
    ledger.note("ann", "refused", reason="no such column", path=Path("/x"))
    ledger.note("bad \ud800\0 name" + "x" * 500, "refused", text="\0\ud800")
    events = told(ledger)
    assert [event.what for event in events] == ["group", "token", "revoked", "refused", "refused"]
    assert events[1].detail["id"] == identity.token
    assert events[2].detail == {"ids": [identity.token]}
    assert events[3].detail == {"reason": "no such column", "path": "/x"}
    assert len(events[4].who) < 250
    numbered = ledger.events(most=2)
    assert [number for number, _ in numbered] == [6, 5]
    assert [number for number, _ in ledger.events(before=5, most=2)] == [4, 3]


def test_notes_of_a_closed_ledger_are_dropped(home: Home) -> None:
    ledger = open_ledger(*home)
    ledger.close()
    ledger.note("ann", "refused")


# --------------------------------------------------------------------------------- opening


def test_one_server_at_a_time(home: Home) -> None:
    folder = home[0]
    with open_ledger(*home, serving=True):
        with pytest.raises(UsageError, match=f"another server is using the folder '{folder}'"):
            open_ledger(*home, serving=True)
        with open_ledger(*home) as steward:
            assert steward.people() == []
    open_ledger(*home, serving=True).close()


def test_begun_once(home: Home) -> None:
    folder, setting = home
    with pytest.raises(UsageError, match=r"counter' exists already"):
        begun(folder, ledger=setting.ledger)
    (folder / "counter").unlink()
    with pytest.raises(UsageError, match=r"there is a ledger .* already"):
        begun(folder, ledger=setting.ledger)


def test_what_was_begun_is_not_changed(home: Home) -> None:
    folder, setting = home
    with pytest.raises(UsageError, match="begun with 10 answers, not 11"):
        open_ledger(folder, dataclasses.replace(setting, queries=11))


def test_the_ledger_of_another_server(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    setting = begun(folder)
    other = dataclasses.replace(setting, id="f" * 32)
    with pytest.raises(UsageError, match="ledger is of another server"):
        open_ledger(folder, other)
    (folder / LEDGER).unlink()
    with pytest.raises(UsageError, match=r"no folder .* for the counter"):
        begun(folder, counter=str(tmp_path / "none" / "counter"))


def test_files_that_are_no_ledger(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    setting = begun(folder)
    (folder / LEDGER).write_bytes(b"")
    with pytest.raises(LedgerError, match="never finished"):
        open_ledger(folder, setting)
    (folder / LEDGER).write_bytes(b"not a database at all" * 100)
    with pytest.raises(LedgerError, match="not a database"):
        open_ledger(folder, setting)
    (folder / LEDGER).unlink()
    with closing(sqlite3.connect(folder / LEDGER)) as base:
        base.execute("CREATE TABLE mine (a)")
    with pytest.raises(LedgerError, match="another database"):
        open_ledger(folder, setting)


def test_only_its_owner_may_look_into_it(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    old = os.umask(0)
    try:
        setting = begun(folder)
        with open_ledger(folder, setting, serving=True) as ledger:
            ledger.record("ann", [question(1)])
            modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    finally:
        os.umask(old)
    assert {LEDGER, f"{LEDGER}-wal", "counter", "lock"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_an_open_ledger_is_read_while_it_is_written(ledger: Ledger) -> None:
    """A look takes one moment's state, however long another one takes to look."""
    ledger.record("ann", [question(1)])
    looks = [ledger.budgets("ann") for _ in range(40)]
    assert {look.everyone.used for look in looks} == {1}


def test_lost_entries_have_a_question_of_their_own() -> None:
    assert json.loads(LOST) == {"lost": True}
