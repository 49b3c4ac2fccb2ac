"""What a hostile review of the studio found, each as it was shown."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.studio.conftest import RunningStudio, started
from tests.studio.test_door import Knocking
from tests.support.running import voile as run_voile
from voile.errors import UsageError
from voile.studio.calls import publish_options
from voile.studio.jobs import Job, hear
from voile.studio.pages import Form, Visit
from voile.studio.project import Project, read_project
from voile.studio.screens import attack, preview, publish
from voile.studio.state import OpenProject, Studio, stamp

PEOPLE = "pid,age,sex,income\n" + "".join(
    f"{i // 4},{20 + i % 50},{'fm'[i % 2]},{'low' if i % 3 else 'high'}\n" for i in range(400)
)
ROLES = {"pid": "identifier", "age": "quasi-identifier", "sex": "quasi-identifier",
         "income": "sensitive"}  # fmt: skip


@pytest.fixture
def studio_here(tmp_path: Path) -> Iterator[Studio]:
    found = Studio(tmp_path)
    yield found
    found.close()


@pytest.fixture
def opened(studio_here: Studio, tmp_path: Path) -> OpenProject:
    (tmp_path / "people.csv").write_text(PEOPLE)
    return studio_here.begin_project("people.csv", roles=ROLES)


def done(job: Job | None) -> Job:
    assert job is not None
    found = job.wait(120)
    assert not found.running
    return found


def visit_of(studio: Studio, opened: OpenProject, **fields: str) -> Visit:
    found = Visit(studio, opened, Form({name: [value] for name, value in fields.items()}))
    done(found.inspected())
    return found


def test_classes_are_no_promise_to_people_with_several_rows() -> None:
    project = Project(source="x.csv", roles={}, person="pid", method="mondrian", options={"k": 10})
    with pytest.raises(UsageError, match="'pid' says that people have several"):
        publish_options(project, ["pid", "age"])
    assert "person" in publish_options(project, ["pid", "age"], method="auto", options={})


def test_a_stale_page_publishes_nothing(studio_here: Studio, opened: OpenProject) -> None:
    """Another tab has changed the promise, the place or the key since."""
    opened.change(method="mondrian", options={"k": 10})
    visit = visit_of(studio_here, opened)
    job = done(publish.rehearsed(visit))
    assert job.ok, job.error
    seen = publish.seen_by(visit, job)
    for change in ({"output": "other.voile"}, {"sign": "some.key"}, {"options": {"k": 20}}):
        before = {name: getattr(opened.project, name) for name in change}
        opened.change(**change)
        done(publish.rehearsed(visit_of(studio_here, opened)))
        with pytest.raises(UsageError, match="have changed since"):
            publish.go(visit_of(studio_here, opened, read="yes", seen=seen))
        opened.change(**before)
    assert not list(studio_here.folder.glob("*.voile"))


def test_a_changed_hierarchy_or_table_is_another_rehearsal(
    studio_here: Studio, opened: OpenProject
) -> None:
    file = studio_here.folder / "people.sex.csv"
    file.write_text("f;*\nm;*\n")
    opened.change(hierarchies={"sex": file.name})
    first = opened.stamp()
    file.write_text("f;all\nm;all\n")
    assert opened.stamp() != first
    one = studio_here.folder / "a1.csv"
    one.write_text("a\n1\n")
    before = stamp(str(studio_here.folder / "a*.csv"))
    assert before
    (studio_here.folder / "a2.csv").write_text("a\n1\n")
    assert stamp(str(studio_here.folder / "a*.csv")) != before
    with pytest.raises(UsageError, match="has changed since the list was read"):
        publish.publish_task(
            None, path=str(opened.path), project=opened.project.model_dump(),  # type: ignore[arg-type]
            overwrite=False, passphrase=None, stamp=first,
        )  # fmt: skip


def test_every_look_at_the_private_table_is_noted(studio_here: Studio, opened: OpenProject) -> None:
    preview.set_pair(visit_of(studio_here, opened, a="age", b="sex"))
    assert any("preview" in look.what for look in opened.project.looks)
    attack.act(visit_of(studio_here, opened, candidate="0"))
    assert any("attack" in look.what for look in opened.project.looks)


def test_a_refusal_that_nobody_hears_leaves_no_rows(tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    (folder / "rows.parquet").write_bytes(b"private")
    process = subprocess.Popen(
        [sys.executable, "-m", "voile.studio.work", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    process.stdout.close()
    asked = {"source": str(tmp_path / "nowhere.csv"), "reading": {}, "stamp": []}
    process.stdin.write(json.dumps({"task": "table.inspect", "arguments": asked}) + "\n")
    process.stdin.flush()  # and it stays open: the studio seems to live
    process.wait(timeout=60)
    assert not folder.exists()
    process.stdin.close()


def test_a_trial_does_not_outlive_a_studio_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    folder = tmp_path / "temporary"
    folder.mkdir()
    (folder / "trial").mkdir()
    (folder / "trial" / "rows.parquet").write_bytes(b"private")
    process = subprocess.Popen(
        [sys.executable, "-m", "voile.studio.work", str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write('{"task": "table.in')  # the studio dies before it has said it all
    process.stdin.close()
    process.wait(timeout=60)
    process.stdout.close()
    assert not folder.exists()


@pytest.mark.parametrize(
    "address",
    ["postgresql://u:pw@h/d::t", "postgresql://u@h/d?password=s3cret::t",
     "postgresql://u@h/d?sslpassword=s3cret::t", "postgresql://u@h/d?p%61ssword=s3cret::t"],
)  # fmt: skip
def test_no_password_gets_into_a_project(address: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has a password"):
        Project(source=address)
    shown = run_voile("studio", address, "--no-browser", cwd=tmp_path)
    assert shown.returncode == 2 and "s3cret" not in shown.stdout + shown.stderr
    assert not list(tmp_path.glob("*.voile-project"))


@pytest.mark.parametrize(
    "options",
    [{"register": False}, {"register": "/x"}, {"to": "x"}, {"output": "/x.voile"},
     {"columns": ["a"]}, {"sign": "key"}, {"k": {"a": 1}}],
)  # fmt: skip
def test_a_project_slips_nothing_into_publishing(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "x.voile-project"
    path.write_text(json.dumps({"source": "x.csv", "options": options}))
    with pytest.raises(UsageError, match="option"):
        read_project(path)
    path.write_text(json.dumps(
        {"source": "x", "candidates": [{"name": "a", "method": "auto", "options": options}]}
    ))  # fmt: skip
    with pytest.raises(UsageError, match="option"):
        read_project(path)


def test_a_run_publishes_into_the_projects_folder_unless_told_otherwise(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    project = {"source": "dataset:scores", "output": str(tmp_path / "outside.voile"),
               "codebook": "table", "method": "full-table",
               "options": {"epsilon": 1.0, "simulate_seed": 1}}  # fmt: skip
    (home / "x.voile-project").write_text(json.dumps(project))
    refused = run_voile("studio", "run", "x.voile-project", cwd=home)
    assert refused.returncode == 2 and "--output" in refused.stderr
    assert not (tmp_path / "outside.voile").exists()


@pytest.mark.parametrize(
    "data",
    [{"looks": [{"at": "zzz", "what": "x"}]}, {"attributes": [{"foo": 1}]},
     {"published": [{"at": "<b>", "place": "x", "method": "auto"}]}],
)  # fmt: skip
def test_malformed_projects_are_refused_when_they_are_opened(
    data: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "x.voile-project"
    path.write_text(json.dumps({"source": "x.csv", **data}))
    with pytest.raises(UsageError, match="not a project file"):
        read_project(path)


def test_what_cannot_be_noted_is_said() -> None:
    def refuse(_: Any) -> None:
        raise UsageError("the disk is full", hint="make room")

    job = Job("1", "publish.publish", "Publishing", then=refuse)
    assert hear(job, {"result": {}})
    assert job.state == "failed" and "could not be noted: the disk is full" in job.error


# ---------------------------------------------------------------------- over HTTP


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    with started(tmp_path_factory.mktemp("review")) as found:
        yield found


@pytest.fixture
def own(running: RunningStudio) -> Callable[..., tuple[int, dict[str, str], str]]:
    door = Knocking(running)

    def send(method: str, path: str, body: str | None = None) -> tuple[int, dict[str, str], str]:
        return door.send(method, path, body, Cookie=door.cookie, HX_Request="true",
                         Origin=f"http://{door.host}")  # fmt: skip

    return send


@pytest.mark.parametrize("name", ["人口.csv", "данные.csv", "n" * 300 + ".csv", "e\u0301.csv"])
def test_any_name_of_a_file_is_taken(
    name: str, own: Callable[..., tuple[int, dict[str, str], str]]
) -> None:
    status, headers, text = own("PUT", f"/upload?name={quote(name)}", PEOPLE)
    assert status == 200, text
    where = headers["hx-redirect"]
    assert where.isascii() and own("GET", f"{where}/table")[0] == 200


def test_uploads_of_one_name_are_both_kept(
    own: Callable[..., tuple[int, dict[str, str], str]], running: RunningStudio
) -> None:
    bodies = [PEOPLE.replace("low", word) for word in ("first", "second", "third")]
    threads = [
        threading.Thread(target=own, args=("PUT", "/upload?name=same.csv", body)) for body in bodies
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.read_text() for path in running.folder.glob("same*.csv")) == sorted(bodies)


def test_the_same_file_again_is_not_copied_again(
    own: Callable[..., tuple[int, dict[str, str], str]], running: RunningStudio
) -> None:
    (running.folder / "there.csv").write_text(PEOPLE)
    places = {own("PUT", "/upload?name=there.csv", PEOPLE)[1]["hx-redirect"] for _ in range(2)}
    assert places == {"/p/there"} and len([*running.folder.glob("there*.csv")]) == 1


def test_a_form_that_is_too_large_is_refused_with_words(
    own: Callable[..., tuple[int, dict[str, str], str]],
) -> None:
    status, _, text = own("POST", "/start/open", "path=" + "x" * (2**24 + 1))
    assert status == 422 and "too large" in text


def test_a_killed_studio_takes_its_processes_with_it(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(PEOPLE)
    with started(tmp_path, "people.csv") as running:
        time.sleep(2)
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(running.process.pid)],
            capture_output=True, text=True, check=True,
        ).stdout.split()  # fmt: skip
        assert children
        running.process.kill()
        running.process.wait()
    until = time.monotonic() + 20
    while any(alive(int(pid)) for pid in children):
        assert time.monotonic() < until
        time.sleep(0.1)


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
