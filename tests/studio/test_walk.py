"""The whole path in a browser: from a messy file to a signed release and an analyst's answer."""

from __future__ import annotations

import csv
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import pytest
from playwright.sync_api import Browser, Page, expect

import voile
from tests.studio.conftest import RunningStudio, started
from tests.support.browser import needs_browser, tab
from tests.support.paths import ROOT
from tests.support.soak import SOAK
from voile.studio.project import read_project

ROWS = 4000
MINUTES = 5
pytestmark = needs_browser


def patients() -> Iterator[list[Any]]:
    """A header, and rows with decimal commas, NA, and a number for each patient."""
    coins = random.Random(11)  # noqa: S311
    yield ["patient_id", "age", "sex", "ward", "weight", "outcome"]
    for number in range(ROWS):
        weight = f"{coins.gauss(75, 12):.1f}".replace(".", ",")
        yield [
            f"P{number:06d}", coins.randint(18, 90), coins.choice("fm"),
            coins.choice(["north", "south", "east", "NA"]), weight,
            coins.choices(["home", "moved", "died"], [8, 3, 1])[0],
        ]  # fmt: skip


def messy(path: Path) -> None:
    """A clinic's export, with semicolons."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=";").writerows(patients())


def workbook(path: Path) -> None:
    """The same as a workbook, with weights as texts."""
    book = pytest.importorskip("openpyxl").Workbook()
    for row in patients():
        book.active.append(row)
    book.save(path)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    folder = tmp_path_factory.mktemp("clinic")
    messy(folder / "source.csv")
    with started(folder) as found:
        yield found


@pytest.fixture
def page(running: RunningStudio, browser: Browser) -> Iterator[Page]:
    """A tab with the start in it, in which nothing may go wrong."""
    with tab(browser) as seen:
        seen.page.goto(running.url)
        yield seen.page
        assert not seen.errors


def at_rest(page: Page) -> None:
    """Wait until no work is under way."""
    page.wait_for_selector("main h1")
    expect(page.locator(".job progress")).to_have_count(0, timeout=150_000)


def upload(page: Page, running: RunningStudio, name: str) -> str:
    """Choose the file under a name of its own; the address of its project."""
    content = (running.folder / f"source{Path(name).suffix}").read_bytes()
    file = {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    page.set_input_files("#file", file)  # type: ignore[arg-type]
    page.wait_for_url("**/p/**")
    at_rest(page)
    return f"{running.base}/p/{Path(name).stem}"


def prepare(page: Page) -> None:
    """Mend what is odd, and say what is secret."""
    page.get_by_role("button", name="Mend all").click()
    expect(page.get_by_role("button", name="Mend all")).to_have_count(0, timeout=60_000)
    at_rest(page)
    page.get_by_label("Role of outcome").select_option("sensitive")
    expect(page.get_by_label("Role of outcome")).to_have_class(re.compile("sensitive"))
    page.get_by_label("Role of weight").select_option("other")
    expect(page.get_by_label("Role of weight")).to_have_class(re.compile("other"))


def publish(page: Page, url: str, name: str, *, sign: bool) -> None:
    """From the list of what is disclosed to a release that verified."""
    page.goto(f"{url}/publish")
    page.get_by_text("What has left before").wait_for(timeout=150_000)
    if sign:
        page.locator("summary", has_text="Make a new key").click()
        page.fill("#signer", "Data office")
        page.get_by_role("button", name="Make the key").click()
        page.locator("#passphrase").wait_for()
    page.check("input[name=read]")
    page.get_by_role("button", name=f"Publish {name}").click()
    page.get_by_text("Verified as a stranger would").wait_for(timeout=150_000)


def test_from_a_messy_workbook_to_a_signed_release_and_an_answer(
    page: Page, running: RunningStudio
) -> None:
    """The walk of docs/walks/data-officer.md: what that page prints bold is on these screens."""
    workbook(running.folder / "source.xlsx")
    begun, said = time.monotonic(), list[str]()

    def look() -> None:
        said.append(" ".join((page.locator("body").text_content() or "").split()))

    url = upload(page, running, "ward.xlsx")
    project = running.folder / "ward.voile-project"
    assert read_project(project).roles["patient_id"] == "identifier"
    look()
    prepare(page)
    chosen = read_project(project)
    assert chosen.reading["na"] is True and chosen.nulls == "as-value"
    look()
    page.goto(f"{url}/promise")
    at_rest(page)
    look()
    page.goto(f"{url}/publish")
    page.get_by_text("What has left before").wait_for(timeout=150_000)
    look()
    publish(page, url, "ward.voile", sign=True)
    look()
    release = voile.verify(
        running.folder / "ward.voile", signer=(running.folder / "ward.key.pub").read_text()
    )
    assert "patient_id" not in release.schema.names and release.manifest.registered
    walk = (ROOT / "docs" / "walks" / "data-officer.md").read_text(encoding="utf-8")
    bold = [" ".join(one.split()) for one in re.findall(r"\*\*(.+?)\*\*", walk, re.DOTALL)]
    assert bold.pop(0) == "bold" and len(bold) > 20
    assert not [label for label in bold if not any(label in screen for screen in said)]

    sql = "select count(*) from ward where sex = 'f'"
    page.get_by_role("button", name="Explore the release").click()
    page.wait_for_url("**/r/ward**")
    page.goto(f"{running.base}/r/ward?sql={quote(sql)}")
    expect(page.locator("#answer .take")).to_be_visible(timeout=60_000)
    answer = voile.open(running.folder / "ward.voile").query(sql)
    shown = (page.locator(".big .value").text_content() or "").replace(",", "")
    assert float(shown) == pytest.approx(answer.value, abs=0.5)
    with (running.folder / "source.csv").open(encoding="utf-8") as file:
        truth = sum(row["sex"] == "f" for row in csv.DictReader(file, delimiter=";"))
    assert abs(answer.value - truth) < 5 * answer.stderr + 1
    assert time.monotonic() - begun < 60 * MINUTES


def test_the_same_with_classes(page: Page, running: RunningStudio) -> None:
    url = upload(page, running, "wing.csv")
    prepare(page)
    page.goto(f"{url}/promise")
    at_rest(page)
    page.get_by_label(re.compile("A rule, a contract")).check()
    at_rest(page)
    expect(page.locator(".need.chosen")).to_contain_text("A rule, a contract")
    publish(page, url, "wing.voile", sign=True)
    release = voile.verify(
        running.folder / "wing.voile", signer=(running.folder / "wing.key.pub").read_text()
    )
    parameters: Any = release.manifest.parameters
    assert set(parameters.qi) == {"age", "sex", "ward"} and parameters.sensitive == ["outcome"]
    ((smallest,),) = duckdb.execute(
        f"select min(n) from (select count(*) n from '{release.path}/data/*.parquet' "
        f"group by {parameters.class_column})"
    ).fetchall()
    assert smallest >= read_project(running.folder / "wing.voile-project").options["k"]


def test_two_tabs_and_a_reload_lose_nothing(running: RunningStudio, browser: Browser) -> None:
    with ExitStack() as stack:
        one, other = (stack.enter_context(tab(browser)).page for _ in range(2))
        one.goto(running.url)
        url = upload(one, running, "tabs.csv")
        other.goto(f"{running.base}/?token={running.url.partition('token=')[2]}")
        other.goto(f"{url}/table")
        at_rest(other)
        one.get_by_label("Role of age").select_option("other")
        expect(one.get_by_label("Role of age")).to_have_class(re.compile("other"))
        other.get_by_label("Role of sex").select_option("sensitive")
        expect(other.get_by_label("Role of sex")).to_have_class(re.compile("sensitive"))
        expect(other.get_by_label("Role of age")).to_have_value("other")
        roles = read_project(running.folder / "tabs.voile-project").roles
        assert roles["age"] == "other" and roles["sex"] == "sensitive"

        one.goto(f"{url}/promise")
        expect(one.locator(".job")).to_be_visible()  # work is under way
        one.reload()
        other.goto(f"{url}/promise")  # the same work, not done twice
        at_rest(one)
        at_rest(other)
        assert one.locator("#slider-epsilon").count() == other.locator("#slider-epsilon").count()
        expect(one.locator("#slider-epsilon")).to_be_visible()


def test_a_crash_loses_no_choice(tmp_path: Path, browser: Browser) -> None:
    messy(tmp_path / "source.csv")
    with started(tmp_path, "source.csv") as first, tab(browser) as seen:
        seen.page.goto(first.url)
        at_rest(seen.page)
        seen.page.get_by_label("Role of age").select_option("other")
        expect(seen.page.get_by_label("Role of age")).to_have_class(re.compile("other"))
        first.process.kill()
        first.process.wait()
        seen.page.get_by_label("Role of sex").select_option("sensitive")
        expect(seen.page.locator("#problem")).to_contain_text("does not answer")
    with started(tmp_path, "source.voile-project") as second, tab(browser) as seen:
        seen.page.goto(second.url)
        at_rest(seen.page)
        expect(seen.page.get_by_label("Role of age")).to_have_value("other")


@pytest.fixture
def large(tmp_path: Path) -> Callable[[int], Path]:
    """Tables of any number of rows, in Parquet."""

    def make(rows: int) -> Path:
        path = tmp_path / "large.parquet"
        duckdb.sql(
            f"copy (select i as id, (hash(i) % 90)::int as age, hash(i + 1) % 1000 as postcode, "
            f"['a', 'b', 'c'][1 + (hash(i + 2) % 3)::int] as kind, random() as score "
            f"from range({rows}) t(i)) to '{path}'"
        )
        return path

    return make


def test_a_million_rows_stay_quick(
    large: Callable[[int], Path], tmp_path: Path, browser: Browser
) -> None:
    large(5_000_000 if SOAK else 1_000_000)
    with started(tmp_path, "large.parquet") as running, tab(browser) as seen:
        page = seen.page
        page.goto(running.url)
        expect(page.locator(".job").or_(page.get_by_label("Role of id"))).to_be_visible()
        page.goto(f"{running.base}/")  # nothing is blocked meanwhile
        expect(page.locator("h1")).to_have_text("Start")
        page.goto(f"{running.base}/p/large/table")
        at_rest(page)
        expect(page.get_by_label("Role of id")).to_have_value("identifier")
        begun = time.monotonic()
        page.goto(f"{running.base}/p/large/table")
        expect(page.get_by_label("Role of age")).to_be_visible()
        assert time.monotonic() - begun < 10  # it is not read again
        assert not seen.errors
