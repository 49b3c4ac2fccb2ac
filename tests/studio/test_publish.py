"""Publishing from the studio: the same by every way, the list, the certificate, wrong input."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

import voile
from tests.studio.conftest import RunningStudio, started
from tests.support.browser import VARIANTS, needs_browser, overflow, serious, tab
from tests.support.running import voile as run
from voile.errors import PromiseError, UsageError
from voile.progress import Silent
from voile.register import Register, SpendingLimit
from voile.signing import SigningKey
from voile.studio.certificate import certificate_page, checked, sections
from voile.studio.project import (
    KeptCandidate,
    Look,
    Project,
    PublishedRelease,
    check_address,
    read_project,
    write_project,
)
from voile.studio.running import codebook_place, shown_call
from voile.studio.screens import publish, start
from voile.studio.state import OpenProject

HOSTILE = "<img src=x onerror=window.hacked=1>"
CODEBOOK: list[dict[str, Any]] = [
    {"name": "age", "kind": "integer", "range": [18, 80]},
    {"name": "town", "kind": "categorical", "values": ["Bern", "Basel", "Genf"]},
]


def write_people(path: Path, *, rows: int = 300, town: str = "town") -> None:
    rng = np.random.default_rng(7)
    ages, towns = rng.integers(18, 81, rows), rng.choice(["Bern", "Basel", "Genf"], rows)
    lines = [f"{i},{age},{place}" for i, (age, place) in enumerate(zip(ages, towns, strict=True))]
    path.write_text("\n".join([f"id,age,{town}", *lines]) + "\n")


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenProject:
    """A project whose release comes from a seed, with a codebook of its own."""
    monkeypatch.setenv("VOILE_REGISTER", str(tmp_path / "register.sqlite"))
    write_people(tmp_path / "people.csv")
    project = Project(
        source="people.csv", roles={"id": "identifier"}, codebook="declared", attributes=CODEBOOK,
        method="full-table", options={"epsilon": 1.0, "simulate_seed": 1}, output="one.voile",
    )  # fmt: skip
    path = tmp_path / "people.voile-project"
    write_project(path, project)
    return OpenProject("people", path, project)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def published_by_task(opened: OpenProject, **given: Any) -> dict[str, Any]:
    return publish.publish_task(
        Silent(), path=str(opened.path), project=opened.project.model_dump(),
        **{"overwrite": False, "passphrase": None, **given},
    )  # fmt: skip


# ---------------------------------------------------------------------- the same by every way


def test_a_click_a_run_and_the_shown_command_give_the_same_bytes(opened: OpenProject) -> None:
    folder = opened.path.parent
    published_by_task(opened)
    clicked = contents(folder / "one.voile")
    done = run("studio", "run", str(opened.path), "--overwrite", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["release"] == str(folder / "one.voile")
    assert contents(folder / "one.voile") == clicked
    call = shown_call(opened, ["id", "age", "town"], folder)
    assert "people.codebook.yaml" in call.command() and str(folder) not in call.command()
    done = run(*shlex.split(call.command())[1:], cwd=folder)
    assert done.returncode == 0, done.stderr
    assert contents(folder / "one.voile") == clicked
    opened.change(options={"epsilon": 1.0, "simulate_seed": 2}, output="two.voile")
    published_by_task(opened)
    assert contents(folder / "two.voile") != clicked


def test_the_python_that_is_shown_does_the_same(
    opened: OpenProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = opened.path.parent
    published_by_task(opened)
    clicked = contents(folder / "one.voile")
    monkeypatch.chdir(folder)
    exec(shown_call(opened, ["id", "age", "town"], folder).python(), {})  # noqa: S102
    assert contents(folder / "one.voile") == clicked


def test_a_run_is_noted_in_the_project_and_refuses_to_overwrite(opened: OpenProject) -> None:
    done = run("studio", "run", str(opened.path))
    assert done.returncode == 0, done.stderr
    (noted,) = read_project(opened.path).published
    assert noted.digest == voile.open(noted.place).manifest.digest
    again = run("studio", "run", str(opened.path))
    assert again.returncode == 2 and "exists" in again.stderr


def test_a_codebook_that_somebody_wrote_is_never_written_over(opened: OpenProject) -> None:
    codebook_place(opened).write_text("attributes: []\n")
    with pytest.raises(UsageError, match="did not write it"):
        published_by_task(opened)
    assert codebook_place(opened).read_text() == "attributes: []\n"


WORDS = "of these words"


def test_a_key_with_a_passphrase_signs_and_the_passphrase_is_kept_nowhere(
    opened: OpenProject,
) -> None:
    folder = opened.path.parent
    key = SigningKey.new("Ada")
    key.save(folder / "people.key", passphrase=WORDS)
    opened.change(sign="people.key")
    with pytest.raises(UsageError, match="passphrase"):
        published_by_task(opened, passphrase=WORDS[1:])
    published_by_task(opened, passphrase=WORDS)
    assert voile.verify(folder / "one.voile", signer=key.fingerprint)
    for path in folder.rglob("*"):
        assert not path.is_file() or WORDS.encode() not in path.read_bytes(), path


# ---------------------------------------------------------------------- the list and the register


def rehearsed(opened: OpenProject) -> dict[str, Any]:
    return publish.rehearse_task(
        Silent(), path=str(opened.path), project=opened.project.model_dump(), stamp=[], left=0
    )


def test_the_rehearsal_says_what_the_release_will_say_and_leaves_nothing(
    opened: OpenProject,
) -> None:
    folder = opened.path.parent
    before = set(folder.iterdir())
    found = rehearsed(opened)
    assert set(folder.iterdir()) == before  # not even a register
    published_by_task(opened)
    release = voile.open(folder / "one.voile")
    assert [one["name"] for one in found["columns"]] == list(release.schema.names)
    assert found["left_out"] == ["id"] and found["simulated"]
    assert found["disclosed"] == [one.model_dump() for one in release.manifest.disclosed]
    for part in found["promised"]:
        assert all(line in release.describe() for line in part.get("items", [part.get("text")]))


def test_the_account_that_is_foreseen_is_the_one_that_comes(opened: OpenProject) -> None:
    opened.change(options={"epsilon": 1.0})
    for number in range(2):
        (foreseen,) = rehearsed(opened)["accounts"]
        assert len(foreseen["left"]) == number
        published_by_task(opened, overwrite=True)
        account = Register.open().account("people")
        assert foreseen["after"] == account.summary and len(account.left) == number + 1


def test_a_limit_refuses_in_the_list_what_it_refuses_in_the_end(opened: OpenProject) -> None:
    opened.change(options={"epsilon": 1.0})
    published_by_task(opened)
    Register.open().set_limit("people", SpendingLimit(2.5, unit="exchange"))
    (foreseen,) = rehearsed(opened)["accounts"]
    with pytest.raises(PromiseError) as refused:
        published_by_task(opened, overwrite=True)
    assert foreseen["refused"] == refused.value.message and foreseen["limit"].startswith("ε = 2.5")


def test_a_description_by_its_headings() -> None:
    found = sections("# t\n\nAbout.\n\n## A\nx\n- 1\n- 2\n\ny\n- 3\n")
    assert found[""] == [{"text": "About."}]
    assert found["A"] == [{"text": "x"}, {"items": ["1", "2"]}, {"text": "y"}, {"items": ["3"]}]


# ---------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    "given", ["../x.voile", "a/../../x", ".", "/elsewhere/x.voile", "s3a://b/x"]
)
def test_places_outside_must_be_meant(given: str, opened: OpenProject) -> None:
    with pytest.raises(UsageError):
        publish.checked_place(opened, given, meant=False)
    if given.startswith(("/", "s3a")):
        assert publish.checked_place(opened, given, meant=True) == given


def test_a_place_is_a_name_beside_the_project(opened: OpenProject) -> None:
    assert publish.checked_place(opened, "people", meant=False) == "people.voile"
    inside = str(opened.path.parent / "x.voile")
    assert publish.checked_place(opened, inside, meant=False) == inside


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"%PDF-1.7 x", "a PDF"), (b"", "is empty"), (b" \n\n", "is empty"),
     (b"PK\x03\x04xx", "workbook"), (b"\x89PNG\r\n", "a picture")],
)  # fmt: skip
def test_files_that_are_no_tables_are_refused(content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=words) as refused:
        start.check_table_file(file)
    assert refused.value.hint


def test_tables_pass(tmp_path: Path) -> None:
    for name, content in (
        ("a.csv", b"x,y\n1,2\n"),
        ("a.zip", b"PK\x03\x04"),
        ("a.xlsx", b"PK\x03\x04"),
        ("a.parquet", b"PAR1"),
    ):
        (tmp_path / name).write_bytes(content)
        start.check_table_file(tmp_path / name)
    with pytest.raises(UsageError, match="is a folder"):
        start.check_table_file(tmp_path)
    with pytest.raises(UsageError, match="no file") as refused:
        start.check_table_file(tmp_path / "b.csv")
    assert "a.csv" in refused.value.hint


@pytest.mark.parametrize(
    "address", ["postgresql://u:secret@h/d::t", "postgresql://h/d?password=secret"]
)
def test_a_password_in_an_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_address(address)
    assert "secret" not in f"{refused.value}".replace("no secret", "")


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    """A studio with a table that has a hostile name, and a project that publishes it at once."""
    folder = tmp_path_factory.mktemp("studio")
    write_people(folder / "people.csv", town=HOSTILE)
    (folder / "paper.csv").write_bytes(b"%PDF-1.7")
    (folder / "broken.voile-project").write_text("{")
    town = {**CODEBOOK[1], "name": HOSTILE}
    project = Project(
        source="people.csv", roles={"id": "identifier"}, codebook="declared",
        attributes=[CODEBOOK[0], town], method="full-table", options={"epsilon": 1.0},
    )  # fmt: skip
    write_project(folder / "people.voile-project", project)
    with started(folder) as found:
        yield found


@pytest.fixture
def page(running: RunningStudio, browser: Browser) -> Iterator[Page]:
    with tab(browser) as seen:
        seen.page.goto(running.url)
        yield seen.page
        assert not seen.page.evaluate("window.hacked"), "a name was taken for HTML"
        assert not seen.errors


def refused(page: Page, words: str) -> None:
    page.locator("#problem .problem", has_text=words).wait_for()
    assert page.locator("#problem .hint").inner_text()


@needs_browser
def test_the_start_shows_what_there_is_and_refuses_what_is_wrong(
    page: Page, running: RunningStudio
) -> None:
    assert page.locator("button.choice", has_text="people.voile-project").count() == 1
    assert "is not a project file" in page.inner_text("main")
    for given, words in (("paper.csv", "is a PDF"), ("nowhere.csv", "there is no file"),
                         (".", "is a folder"), ("", "no table was named"),
                         ("postgresql://u:pw1234@h/d::t", "has a password")):  # fmt: skip
        page.fill("#path", given)
        page.locator("form[hx-post='/start/open']", has=page.locator("#path")).locator(
            "button"
        ).click()
        refused(page, words)
        assert "pw1234" not in page.inner_text("#problem")
    page.fill("#release-path", "people.csv")
    page.get_by_role("button", name="Explore").click()
    refused(page, "is not a release")
    page.set_input_files("#file", str(running.folder / "paper.csv"))
    refused(page, "is a PDF")
    missed = """() => !document.querySelector("h1").dispatchEvent(
      new DragEvent("drop", { bubbles: true, cancelable: true }))"""
    assert page.evaluate(missed)  # a file that misses the field does not replace the page
    assert not [*running.folder.glob("paper-*")]


@needs_browser
def test_from_the_list_to_a_signed_release_and_its_certificate(
    page: Page, running: RunningStudio
) -> None:
    folder = running.folder
    page.locator("button.choice", has_text="people.voile-project").click()
    page.wait_for_url("**/p/people/**")
    page.goto(f"{running.base}/p/people/publish")
    page.get_by_text("What has left before").wait_for(timeout=150_000)
    assert HOSTILE in page.inner_text(".tags") and "nothing has left" in page.inner_text(".sums")
    assert serious(page) == []
    command = page.locator(".calls code").first.text_content() or ""
    assert "people.codebook.yaml" in command and (folder / "people.codebook.yaml").is_file()
    assert page.locator(".calls code", has_text="voile studio run people.voile-project").count()

    page.fill("#output", "../outside.voile")
    page.locator("#where ~ form button").click()
    refused(page, "leads out of")
    page.fill("#output", "first")
    page.locator("#where ~ form button").click()
    page.get_by_role("button", name="Publish first.voile").wait_for()

    page.locator("summary", has_text="Make a new key").click()
    page.fill("#signer", "Ada")
    page.fill("#new-passphrase", "secret words 17")
    page.fill("#again", "secret words 17")
    page.get_by_role("button", name="Make the key").click()
    page.locator("#passphrase").wait_for()
    page.get_by_role("button", name="Publish first.voile").click()
    refused(page, "not confirmed")
    page.check("input[name=read]")
    page.fill("#passphrase", "wrong")
    page.get_by_role("button", name="Publish first.voile").click()
    refused(page, "passphrase does not open")
    page.fill("#passphrase", "secret words 17")
    page.check("input[name=read]")
    page.get_by_role("button", name="Publish first.voile").click()
    page.reload()  # in the middle of it
    page.get_by_text("Verified as a stranger would").wait_for(timeout=150_000)
    assert serious(page) == []

    key = (folder / "people.key.pub").read_text()
    release = voile.verify(folder / "first.voile", signer=key)
    assert release.manifest.digest in page.inner_text(".published")
    noted = read_project(folder / "people.voile-project").published
    assert [one.digest for one in noted] == [release.manifest.digest]
    for path in folder.glob("people*"):
        assert not path.is_file() or b"secret words 17" not in path.read_bytes()
    assert "secret words 17" not in page.content()

    before = contents(folder / "first.voile")
    page.get_by_role("button", name="Save it as first.certificate.html").click()
    page.goto(f"{running.base}/p/people/publish/certificate")
    check_certificate(page, release.manifest.digest, key)
    saved = folder / "first.certificate.html"
    assert contents(folder / "first.voile") == before and voile.verify(folder / "first.voile")
    page.goto(saved.as_uri())
    check_certificate(page, release.manifest.digest, key)


def check_certificate(page: Page, digest: str, key: str) -> None:
    """It has the digest, who signed, the promise, the checks, and moments with their zone."""
    text = page.inner_text("main")
    fingerprint = fingerprint_of(key)
    for words in (digest, "Ada", fingerprint, "differential privacy",
                  "What is not promised", "The files are whole: yes", HOSTILE):  # fmt: skip
        assert words in text, words
    assert len(re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", text)) >= 2
    assert serious(page) == []


def test_a_certificate_lists_what_was_seen_before_its_release_alone(opened: OpenProject) -> None:
    published_by_task(opened)
    place = str(opened.path.parent / "one.voile")
    moments = {"early": "2020-01-01T00:00:00Z", "late": "2020-01-03T00:00:00Z"}
    project = opened.project.model_copy(update={
        "looks": [Look(at=at, what=f"{name} look") for name, at in moments.items()],
        "candidates": [
            KeptCandidate(name=f"{name} one", method="auto", after_looking=True, at=at)
            for name, at in moments.items()
        ],
    })  # fmt: skip
    left = PublishedRelease(at="2020-01-02T00:00:00Z", place=place, method="full-table")
    text = certificate_page(project, left, checked(place), alone=True)
    assert "early look" in text and "early one" in text
    assert "late look" not in text and "late one" not in text


def fingerprint_of(line: str) -> str:
    """Of a public key's line, as `ssh-keygen -l` computes it."""
    digest = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


@needs_browser
@pytest.mark.parametrize(("width", "dark"), VARIANTS)
def test_the_pages_are_for_everyone(
    width: int, dark: bool, running: RunningStudio, browser: Browser
) -> None:
    with tab(browser, width=width, dark=dark) as seen:
        page = seen.page
        page.goto(running.url)
        for path in ("/", "/p/people/publish", "/servers"):
            page.goto(running.base + path)
            assert serious(page) == [], path
            assert overflow(page) <= 0, path


@needs_browser
def test_what_is_refused_comes_with_what_would_help(
    studio: Callable[..., RunningStudio], browser: Browser, tmp_path: Path
) -> None:
    """A vacuous promise needs a tick; advice is computed, and a button takes it."""
    write_people(tmp_path / "people.csv")
    weak = Project(source="people.csv", roles={"id": "identifier"}, codebook="table",
                   method="full-table", options={"epsilon": 50.0})  # fmt: skip
    write_project(tmp_path / "weak.voile-project", weak)
    useless = Project(source="people.csv", roles={"id": "identifier"},
                      options={"epsilon": 0.4, "simulate_seed": 1})  # fmt: skip
    write_project(tmp_path / "useless.voile-project", useless)
    running = studio()
    with tab(browser) as seen:
        page = seen.page
        page.goto(running.url)
        page.locator("button.choice", has_text="weak.voile-project").click()
        page.wait_for_url("**/p/weak/**")
        page.goto(f"{running.base}/p/weak/publish")
        page.get_by_text("says next to nothing").first.wait_for(timeout=150_000)
        assert not page.get_by_role("button", name="Publish weak.voile").count()
        page.check("input[name=sure]")
        page.get_by_role("button", name="Go on with the weak promise").click()
        page.get_by_role("button", name="Publish weak.voile").wait_for(timeout=150_000)
        assert read_project(tmp_path / "weak.voile-project").options["weak"] is True

        page.goto(running.base)
        page.locator("button.choice", has_text="useless.voile-project").click()
        page.wait_for_url("**/p/useless/**")
        page.goto(f"{running.base}/p/useless/publish")
        page.get_by_text("What would help").wait_for(timeout=150_000)
        assert serious(page) == []
        page.get_by_role("button", name="Do this").first.click()
        page.locator(".advice").wait_for(state="detached")
        assert read_project(tmp_path / "useless.voile-project").options != useless.options
