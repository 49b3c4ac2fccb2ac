"""What somebody who uses a server for the first time runs into."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.ledgers import begun as begun_ledger
from tests.support.ledgers import question
from tests.support.serving import CODEBOOK, Served, begun, served, table
from voile.cli import app
from voile.errors import UsageError, in_shell
from voile.remote.client import Cost, connect
from voile.remote.connection import ServerAddress, unreachable
from voile.schema import Schema
from voile.serve.api import LedgerHealth, hide
from voile.serve.creation import begin
from voile.serve.ledger import ExhaustedError, LedgerError, open_ledger, recover
from voile.serve.opened import opened
from voile.serve.setting import LEDGER, Setting
from voile.serve.steward import begun_data, beyond
from voile.terminal.mining import about_view, price
from voile.terminal.serving import recovered_lines, state_of

COUNT = "select count(*) from people where age < 30"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    begun(tmp_path / "server")
    with served(tmp_path / "server") as found:
        yield found


def refused(*words: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        app(list(words), standalone_mode=False)
    return caught.value


# ---------------------------------------------------------------------- beginning


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"queries": 10**20}, "queries=1000.* is too large"),
        ({"delta": float("inf")}, "delta=inf is not a finite number"),
        ({"delta": float("nan")}, "delta=nan is not a finite number"),
        ({"name": ""}, "name='' is no name"),
        ({"name": " people"}, "name=' people' is no name"),
        ({"ledger": "sqlite:///x"}, "ledger= must be postgresql://…, not 'sqlite'"),
    ],
)
def test_what_no_server_can_be_begun_with(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        begun(tmp_path / "server", **options)
    assert list(tmp_path.iterdir()) == []


def visits() -> pa.Table:
    """Three visits of most of 150 people, five of the first ten; names are no kinds of anything."""
    who = [i for i in range(150) for _ in range(5 if i < 10 else 3)]
    return pa.table({"patient": [f"p{i:03d}" for i in who], "ill": [i % 2 == 0 for i in who]})


def test_the_error_of_a_count_is_that_of_all_rows_that_one_person_has(tmp_path: Path) -> None:
    setting, notes = begin(
        tmp_path / "server", visits(), queries=10, delta=1.0, person="patient", per_person=3
    )
    assert "up to 3 rows of each person were kept, and 20 rows left out" in notes
    found = begun_data(tmp_path / "server", setting, notes)
    with opened(tmp_path / "server") as service:
        reply = service.ask("anna", "select count(*) from t where ill").to_dict()
    assert found["stderr"] == pytest.approx(reply["stderr"])
    assert found["stderr"] == pytest.approx(3 * setting.variance**0.5, rel=1e-3)


def test_names_that_every_analyst_would_be_told_are_noted(tmp_path: Path) -> None:
    _, notes = begin(tmp_path / "server", visits(), queries=10, delta=1.0)
    (note,) = [note for note in notes if note.startswith("'patient' has 150 different values")]
    assert "person='patient'" in note


def test_a_schema_that_was_read_off_the_table_declares_nothing(tmp_path: Path) -> None:
    read = begin(tmp_path / "one", table(), queries=10, delta=1.0, columns=["sex"])[0].schema
    assert read.active == ["sex"]
    setting, notes = begin(tmp_path / "two", table(), queries=10, delta=1.0, schema=read)
    assert not setting.declared
    assert any("values were read off the table: sex" in note for note in notes)
    assert "left out, not in the schema: age, city, smoker, hours" in notes
    declared = Schema.from_dict(CODEBOOK)
    setting, notes = begin(
        tmp_path / "three", table(), queries=10, delta=1.0, schema=declared, columns=["sex"]
    )
    assert setting.declared
    assert "left out, not among the columns: age, city, smoker, hours" in notes


# ---------------------------------------------------------------------- the folder


@pytest.mark.parametrize("change", [{"variance": 0.5}, {"delta": 9.0}, {"per_person": 9}])
def test_a_setting_that_was_changed_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    folder = tmp_path / "server"
    begun(folder)
    path = folder / "server.json"
    whole = path.read_text()
    path.write_text(json.dumps(json.loads(whole) | change))
    for act in (lambda: opened(folder).__enter__(), lambda: recover(folder, Setting.open(folder))):
        with pytest.raises(UsageError, match="is not as the server was begun") as caught:
            act()
        assert str(path) in caught.value.message
    path.write_text(json.dumps(json.loads(whole), sort_keys=True))  # the same in other places
    with opened(folder) as service:
        assert service.ask("anna", COUNT).charged == 1


def test_the_ledger_and_the_counter_may_be_moved(tmp_path: Path) -> None:
    setting = begun_ledger(tmp_path / "server")
    (tmp_path / "server" / "counter").rename(tmp_path / "elsewhere")
    moved = dataclasses.replace(setting, counter=str(tmp_path / "elsewhere"))
    with open_ledger(tmp_path / "server", moved, serving=True) as ledger:
        assert ledger.record("ann", [question(1)]).charged == 1


def test_a_file_is_no_servers_folder(tmp_path: Path) -> None:
    (tmp_path / "tiny.csv").write_text("a\n1\n")
    error = refused("serve", "token", str(tmp_path / "tiny.csv"), "--analyst", "x")
    assert "tiny.csv' is no server's folder" in error.message


def test_a_token_in_a_file_is_not_said_to_be_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(tmp_path / "server", queries=20)
    words = ["serve", "token", str(tmp_path / "server"), "--analyst", "Ärztin Ü"]
    file = tmp_path / "token"
    app([*words, "--queries", "21", "-o", str(file)], standalone_mode=False)
    told = capsys.readouterr().err
    assert "shown once" not in told
    assert "21 is more than all answers that there will ever be, 20" in told
    for wrong in (["--expires", "soon"], ["--scope", "admin"], ["--queries", str(2**53)]):
        refused(*words, "-o", str(tmp_path / "none"), *wrong)
    assert not (tmp_path / "none").exists()
    assert beyond(tmp_path / "server", 20) == beyond(tmp_path / "server", None) == ""


# ---------------------------------------------------------------------- the ledger


def test_the_log_has_names_as_they_are_and_no_control_characters(tmp_path: Path) -> None:
    setting = begun_ledger(tmp_path / "server")
    with open_ledger(tmp_path / "server", setting) as ledger:
        ledger.note("Ärztin Ü", "refused", why="\x1b[31m→\ud800")
        ledger.issue("ann")
        (_, event) = ledger.events()[1]
    assert event.who == "Ärztin Ü"
    assert event.detail == {"why": "\\x1b[31m→\\ud800"}


def test_who_asks_for_more_than_there_will_ever_be_is_not_sent_to_the_steward() -> None:
    assert "steward" in ExhaustedError("'ann'", 1, 0).hint
    assert "steward" in ExhaustedError("the group 'lab'", 1, 0).hint
    hint = ExhaustedError("the server", 1, 0).hint
    assert "steward" not in hint
    assert "never be more" in hint


def test_recover_says_what_it_revoked_and_what_to_do_next(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    setting = begun_ledger(folder)
    with open_ledger(folder, setting, serving=True) as ledger:
        ledger.issue("ann")
        ledger.issue("bob")
        ledger.record("ann", [question(1)])
    with closing(sqlite3.connect(folder / LEDGER, isolation_level=None)) as base:  # an old copy
        base.execute("DELETE FROM entries")
    done = recover(folder, setting)
    assert (done.lost, done.revoked) == (1, 2)
    told = "\n".join(recovered_lines(done, folder))
    assert "tokens revoked" in told
    assert "voile serve token" in told
    assert "voile serve run" in told
    again = recover(folder, setting)
    assert (again.lost, again.revoked) == (0, 0)
    assert "revoked" not in "\n".join(recovered_lines(again, folder))


def test_a_token_that_ends_soon_says_when() -> None:
    token = {"revoked": None, "valid": True, "expires": time.time() + 3600}
    assert "UTC" in state_of(token)
    assert ":" not in state_of(token | {"expires": time.time() + 10 * 86400})


# ---------------------------------------------------------------------- over HTTP


@pytest.mark.parametrize("subset", [{"half": 5}, {"half": ""}, {}, 5, None, {"half": "a", "b": 1}])
def test_a_subset_of_no_form_is_told_which_there_are(server: Served, subset: Any) -> None:
    found = server.query(COUNT, subset=subset)
    assert found.status == 400
    assert found.data["hint"] == (
        'subset is "all", {"half": "SEED"}, or the name of a declared subset'
    )


def test_a_half_in_the_words_of_the_command_is_told_those_of_http(server: Served) -> None:
    found = server.query(COUNT, subset="half:x")
    assert (found.status, found.data["hint"]) == (400, 'a half is {"half": "x"}')


def test_the_log_says_why_without_the_question(server: Served) -> None:
    server.query("select count(*) from people where surname = 'Meier'")
    server.query("select count(*) from people where surname = 'Huber'", dry_run=True)
    server.request("POST", "/admin/groups", {"name": "lab", "queries": 3}, server.admin)
    log = server.request("GET", "/admin/log", token=server.admin).data["log"]
    (line,) = [line for line in log if line["what"] == "refused"]
    assert line["detail"]["why"].startswith("there is no column …")
    assert "surname" not in json.dumps(log)
    (line,) = [line for line in log if line["what"] == "group"]
    assert line["who"] == "olga"


def test_words_of_a_question_are_hidden() -> None:
    sql = "select count(*) from t where town = 'Ulm' and age > 81"
    assert hide(sql, "town = Ulm is 81 too many, 'Ulm'\nselect") == "… = … is … too many, …"
    assert hide(sql, "a count is not a sum") == "a count is not a sum"


def test_health_is_that_of_the_ledger(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert server.request("GET", "/health").data == {"status": "ok"}
    assert server.request("HEAD", "/health").status == 200

    def fails() -> None:
        raise LedgerError("the database 'mine' on 10.0.0.1 does not work")

    monkeypatch.setattr(server.service.ledger, "check", fails)
    assert server.request("GET", "/health").status == 200  # it was well a moment ago
    monkeypatch.setattr("voile.serve.api.BELIEVED", 0.0)
    sick = server.request("GET", "/health")
    assert sick.status == 503
    assert "10.0.0.1" not in json.dumps(sick.data)
    monkeypatch.undo()
    monkeypatch.setattr("voile.serve.api.BELIEVED", 0.0)
    assert server.request("GET", "/health").status == 200


def test_a_ledger_that_is_looked_at_by_one_is_not_looked_at_by_others(tmp_path: Path) -> None:
    setting = begun_ledger(tmp_path / "server")
    with open_ledger(tmp_path / "server", setting, serving=True) as ledger:
        health = LedgerHealth(ledger)
        assert health.is_due()
        health.look()
        assert not health.is_due()
        health.check()
    ledger_is_closed = LedgerHealth(ledger)
    ledger_is_closed.look()
    with pytest.raises(LedgerError):
        ledger_is_closed.check()


def test_a_wrong_method_is_told_the_right_ones(server: Served) -> None:
    assert server.request("PUT", "/admin/groups").headers["allow"] == "GET, POST"
    assert server.request("GET", "/query", token=server.analyst).headers["allow"] == "POST"
    assert server.request("POST", "/health").headers["allow"] == "GET, HEAD"


# ---------------------------------------------------------------------- asking


def test_the_token_has_two_other_ways_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOILE_TOKEN", raising=False)
    with pytest.raises(UsageError, match="no token was given") as caught:
        connect("http://127.0.0.1:1")
    assert "token=" in caught.value.hint
    assert "VOILE_TOKEN" in caught.value.hint
    with pytest.raises(UsageError) as caught, in_shell():
        connect("http://127.0.0.1:1")
    assert "--token-file" in caught.value.hint


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("127.0.0.1:8560", "http://127.0.0.1:8560"),
        ("localhost:8560", "http://localhost:8560"),
        ("counts.example.org", "https://counts.example.org"),
        ("ftp://counts.example.org", "such as"),
        ("", "such as"),
    ],
)
def test_an_address_without_its_beginning(url: str, meant: str) -> None:
    with pytest.raises(UsageError, match="is not the address") as caught:
        ServerAddress.read(url)
    assert meant in caught.value.hint


def test_a_port_that_speaks_tls_is_told_apart() -> None:
    address = ServerAddress.read("http://127.0.0.1:1")
    assert "https://" in unreachable(address, ConnectionResetError()).hint
    assert "https://" not in unreachable(address, ConnectionRefusedError()).hint


def test_what_was_closed_is_not_asked() -> None:
    server = connect("http://127.0.0.1:1", "token")
    server.close()
    with pytest.raises(UsageError, match="was closed"):
        server.budget()


@pytest.mark.parametrize("other", ["--json", "--dry-run"])
def test_csv_is_one_form_of_an_answer(other: str) -> None:
    error = refused("ask", "http://127.0.0.1:1", "select 1", "--token", "t", "--csv", other)
    assert error.message == f"--csv and {other} exclude each other"


def test_what_cannot_be_asked_is_not_offered() -> None:
    assert price(Cost(2, 0, 2, 0)) == "it cannot be asked: it would cost 2, and 0 are left"
    assert price(Cost(2, 3, 2, 0)) == "it would cost 2 of the 3 that are left"
    assert price(Cost(0, 0, 0, 2)) == "free: it was answered before"


def test_about_says_how_many_rows_people_have(tmp_path: Path) -> None:
    from rich.console import Console

    begin(
        tmp_path / "server", visits(), queries=10, delta=1.0, person="patient", per_person=3,
        name="people",
    )  # fmt: skip
    with served(tmp_path / "server") as server:
        about = server.request("GET", "/schema", token=server.analyst).data
    console = Console(width=300)
    with console.capture() as capture:
        console.print(about_view(about))
    assert "150 people, up to 3 rows of each" in capture.get()
    assert f"a count has a standard error of {about['stderr']:,.6g}" in capture.get()
    assert about["rows"] == 450
