"""Servers in the studio: what they cost before they are begun, their analysts, log and process."""

from __future__ import annotations

import json
import math
import re
import shlex
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.studio.conftest import RunningStudio
from tests.support.browser import needs_browser, overflow, serious, tab
from tests.support.running import voile as run
from tests.support.serving import begun, served, table
from voile import serve
from voile.errors import UsageError
from voile.progress import Silent
from voile.studio.pages import AreaVisit, Form, ScreenPage, rendered
from voile.studio.project import Project, write_project
from voile.studio.screens import servers
from voile.studio.state import Studio

HOSTILE = "<img src=x onerror=window.hacked=1>"


def write_people(path: Path, rows: int = 200) -> None:
    lines = [f"{i},{20 + i % 50},{'yes' if i % 3 else HOSTILE}" for i in range(rows)]
    path.write_text("\n".join(["id,age,ill", *lines]) + "\n")


@pytest.mark.parametrize("promise", [{"delta": 1.0}, {"epsilon": 1.0, "epsilon_delta": 1e-6}])
@pytest.mark.parametrize("rows", [1, 3])
def test_what_is_planned_is_what_is_begun(
    promise: dict[str, Any], rows: int, tmp_path: Path
) -> None:
    found = serve.planned(queries=40, per_person=rows, **promise)
    people = table().append_column("who", table()["age"])
    options: dict[str, Any] = {"person": "who", "per_person": rows}
    setting, notes = serve.begin(
        tmp_path / "s", people, queries=40, columns=["sex", "city"], register=False, **promise,
        **options,
    )  # fmt: skip
    made = serve.begun_data(tmp_path / "s", setting, notes)
    for name in ("stderr", "variance", "delta", "epsilon", "promise"):
        assert found[name] == made[name], name
    assert math.isclose(found["stderr"], rows * math.sqrt(found["variance"]), rel_tol=0.02)
    with pytest.raises(UsageError, match="no number of rows"):
        serve.planned(queries=40, per_person=0, **promise)


def test_the_log_has_the_texts_of_questions(tmp_path: Path) -> None:
    begun(tmp_path / "s", subsets={"young": "age < 30"})
    sql = "select city, count(*) from people group by city"
    with served(tmp_path / "s") as server:
        server.query(sql)
        server.query("select count(*) from people where age = 1", subset="young")
        server.query(sql)  # is free
        deadline = time.monotonic() + 10
        while len(lines := serve.log(tmp_path / "s")) < 4 and time.monotonic() < deadline:
            time.sleep(0.05)
    asked = {line["what"]: line["questions"] for line in reversed(lines) if line["questions"]}
    assert asked["repeated"] == [sql]
    texts = [text for line in lines for text in line["questions"]]
    assert "select count(*) from people where age = 1  -- subset 'young'" in texts
    older = serve.log(tmp_path / "s", 1, before=lines[0]["number"])
    assert older[0]["number"] == lines[1]["number"]


def visit(folder: Path, **fields: str) -> AreaVisit:
    form = Form({name: [value] for name, value in fields.items()})
    return AreaVisit(Studio(folder), ("cost",), form)


def test_the_command_that_is_shown_begins_the_same_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOILE_REGISTER", str(tmp_path / "register.sqlite"))
    write_people(tmp_path / "people.csv")
    project = Project(source="people.csv", roles={"id": "identifier"}, reading={"na": True})
    write_project(tmp_path / "people.voile-project", project)
    values = {**servers.DEFAULTS, "project": "people.voile-project", "name": "a", "queries": "30",
              "subsets": "old = age >= 60"}  # fmt: skip
    asking = visit(tmp_path, **values)
    call = servers.begin_call(asking, values)
    done = run(*shlex.split(call.command())[1:], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)
    exec(call.python().replace("begin('a'", "begin('b'", 1).replace("    'a'", "    'b'", 1), {})  # noqa: S102
    first, second = (json.loads((tmp_path / n / "server.json").read_text()) for n in "ab")
    for one in (first, second):
        assert [a["name"] for a in one["schema"]["attributes"]] == ["age", "ill"]
        assert (one["queries"], one["subsets"][0]["name"]) == (30, "old")
    assert first["variance"] == second["variance"]


FURTHER = {"called": "folk", "id_column": "id", "counter": "elsewhere.counter", "anytime": "yes",
           "clamp": "yes"}  # fmt: skip


def test_every_option_of_serve_init_is_in_the_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOILE_REGISTER", str(tmp_path / "register.sqlite"))
    monkeypatch.chdir(tmp_path)
    write_people(tmp_path / "people.csv")
    codebook: list[dict[str, Any]] = [
                {"name": "age", "kind": "integer", "range": [30, 60]},
                {"name": "ill", "kind": "categorical", "values": ["yes", HOSTILE]}]  # fmt: skip
    project = Project(source="people.csv", roles={"id": "identifier"}, codebook="declared",
                      attributes=codebook)  # fmt: skip
    write_project(tmp_path / "people.voile-project", project)
    values = {**servers.DEFAULTS, "project": "people.voile-project", "name": "a", **FURTHER}
    asking = visit(tmp_path, **values)
    source, reading, options = servers.chosen(asking, values)
    servers.begin_task(Silent(), folder=str(tmp_path / "b"), source=source, reading=reading,
                       options=json.loads(json.dumps(options)))  # fmt: skip
    call = servers.begin_call(asking, values)
    assert str(tmp_path) not in call.command()
    (tmp_path / "elsewhere.counter").unlink(missing_ok=True)
    assert run(*shlex.split(call.command())[1:]).returncode == 0
    (tmp_path / "elsewhere.counter").unlink(missing_ok=True)
    exec(call.python().replace("'a'", "'c'", 1), {})  # noqa: S102
    for name in "abc":
        made = json.loads((tmp_path / name / "server.json").read_text())
        assert (made["name"], made["id_column"], made["anytime"]) == ("folk", "id", True)
        assert made["counter"] == str(tmp_path / "elsewhere.counter")
    page = servers.listing(asking)
    assert isinstance(page, ScreenPage)
    cheaper = servers.listing(visit(tmp_path, **{**values, "anytime": ""}))
    assert isinstance(cheaper, ScreenPage)
    assert page.context["cost"]["stderr"] > cheaper.context["cost"]["stderr"]
    html = rendered("servers.html", {"studio": asking.studio, **page.context})
    for name, value in FURTHER.items():
        assert re.search(rf'name="{name}"[^>]*(value="{value}"|checked)', html), name
    ledger = {"ledger": "postgresql://localhost/ledgers"}
    assert servers.chosen(asking, {**values, **ledger})[2]["ledger"] == ledger["ledger"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"queries": "many"}, "no number"), ({"delta": "x"}, "no number"), ({"table": ""}, "no table"),
     ({"table": "nowhere.csv"}, "no file"), ({"name": "../x"}, "no name"),
     ({"project": "../x.voile-project"}, "not in this folder"), ({"subsets": "old"}, "NAME=SQL"),
     ({"table": "postgresql://u:pw@h/d::t"}, "password"),
     ({"ledger": "postgresql://u:pw@h/d"}, "password")],
)  # fmt: skip
def test_wrong_forms_are_refused(fields: dict[str, str], words: str, tmp_path: Path) -> None:
    write_people(tmp_path / "people.csv")
    given = {**servers.DEFAULTS, "table": "people.csv", **fields}
    with pytest.raises(UsageError, match=words):
        servers.begin(visit(tmp_path, **given))


@needs_browser
def test_a_server_from_the_form_to_an_answer_and_its_end(
    studio: Callable[..., RunningStudio], browser: Browser, tmp_path: Path
) -> None:
    write_people(tmp_path / "people.csv")
    running = studio()
    with tab(browser) as seen:
        page = seen.page
        page.goto(running.url)
        page.goto(f"{running.base}/servers")
        page.fill("#table", "people.csv")
        page.fill("#name", "counts")
        page.fill("#columns", "age, ill")
        before = page.inner_text("#cost")
        page.fill("#queries", "25")
        page.locator("#delta").focus()
        page.wait_for_function(
            "was => document.querySelector('#cost').innerText !== was", arg=before
        )
        words = "voile serve init counts --table people.csv --queries 25"
        page.locator("#cost code", has_text=words).wait_for(state="attached")
        page.get_by_role("button", name="Begin the server").click()
        page.locator("#analyst").wait_for(timeout=150_000)
        page.fill("#analyst", HOSTILE)
        page.get_by_role("button", name="Make a token").click()
        token = page.locator("#made-token").inner_text()
        page.get_by_role("button", name="Run it here").click()
        page.locator(".running a").wait_for(timeout=150_000)
        url = page.locator(".running a").inner_text()
        body = json.dumps({"sql": "select count(*) from people where ill = 'yes'"}).encode()
        asked = urllib.request.Request(f"{url}/query", body, {  # noqa: S310  (our own server)
            "Authorization": f"Bearer {token}", "Content-Type": "application/json"})  # fmt: skip
        with urllib.request.urlopen(asked) as answer:  # noqa: S310
            assert json.load(answer)["charged"] == 1
        shown = page.locator(".question", has_text="ill = 'yes'")
        deadline = time.monotonic() + 30
        while not shown.count() and time.monotonic() < deadline:
            page.reload()  # a line of the log is written soon, not at once
        assert shown.count() == 1
        assert token not in page.content() and not page.evaluate("window.hacked")
        assert serious(page) == []
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Revoke token").click()
        page.locator(".tokens .gone").wait_for()
        page.get_by_role("button", name="Stop it").click()
        page.get_by_role("button", name="Run it here").wait_for()
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(url, timeout=5)  # noqa: S310
        page.fill("#group", "lab")
        page.fill("#group-queries", "10")
        page.get_by_role("button", name="Set its budget").click()
        page.get_by_text("lab: 0 of 10 answers").wait_for()
        page.set_viewport_size({"width": 360, "height": 800})
        assert overflow(page) <= 0 and serious(page) == []
        assert seen.errors == []
