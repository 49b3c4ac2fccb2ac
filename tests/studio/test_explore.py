"""Explore a release: questions clicked and typed come to what Python answers."""

from __future__ import annotations

import csv
import http.client
import io
import json
import re
import shlex
import shutil
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, expect

import voile
from tests.studio.conftest import RunningStudio, started
from tests.support.browser import VARIANTS, Seen, needs_browser, overflow, serious, tab
from tests.support.running import voile as command
from voile.errors import QueryError, UsageError
from voile.release import examine
from voile.studio.answers import Asked, Asker, Opened, in_plain_words
from voile.studio.screens.releases import table_name, verify_task
from voile.studio.shown import answer_view, marked

MARKUP = "<img src=x onerror=window.hacked=1>"
VALUES = [MARKUP, "=1+1", 'it\'s "so"', "</script>"]
COLUMNS = 300


def people(rows: int = 600) -> pd.DataFrame:
    chance = np.random.default_rng(4)
    return pd.DataFrame({
        "age": chance.integers(18, 80, rows),
        "sex": chance.choice(["Female", "Male"], rows),
        "illness": chance.choice(["asthma", "flu", "none"], rows),
    })  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with releases of several kinds, and one that was forged."""
    place = tmp_path_factory.mktemp("explore")
    options: dict[str, Any] = {"register": False}
    voile.publish("dataset:adult/boundary", columns=["age", "sex", "salary"], name="adult",
                  to=place / "adult.voile", **options)  # fmt: skip
    frame = people()
    voile.publish(frame, method="mondrian", qi=["age", "sex"], sensitive=["illness"], k=5,
                  name="wards", to=place / "wards.voile", **options)  # fmt: skip
    hostile = pd.DataFrame({
        MARKUP: np.random.default_rng(1).choice(VALUES, 400),
        "home town": np.random.default_rng(2).choice(["Aachen", "Bergen"], 400),
    })  # fmt: skip
    voile.perturb(hostile, retention=0.7, schema="active", name='people "x"',
                  to=place / "hostile.voile", **options)  # fmt: skip
    shutil.copytree(place / "adult.voile", place / "forged.voile")
    manifest = place / "forged.voile" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"epsilon": 1', '"epsilon": 9', 1) + " ")
    return place


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[RunningStudio]:
    with started(folder) as found:
        yield found


@pytest.fixture(scope="module")
def signed_in(running: RunningStudio) -> Knock:
    return Knock(running)


class Knock:
    """Requests with the studio's cookie, without a browser."""

    def __init__(self, running: RunningStudio) -> None:
        self.host = running.base.removeprefix("http://")
        self.token = running.url.partition("token=")[2]

    def get(self, path: str) -> tuple[int, bytes]:
        joined = "&" if "?" in path else "?"
        made = http.client.HTTPConnection(self.host, timeout=120)
        made.request("GET", f"{path}{joined}token={self.token}")
        reply = made.getresponse()
        content = reply.read()
        made.close()
        return reply.status, content

    def file(self, release: str, form: str, sql: str, **more: Any) -> tuple[int, bytes]:
        asked = urlencode({"sql": sql, **more}, quote_via=quote)
        return self.get(f"/r/{release}/answer.{form}?{asked}")


# ---------------------------------------------------------------------- in the browser


@dataclass
class Exploring:
    """A page of a release, and what it shows."""

    seen: Seen

    @property
    def page(self) -> Page:
        return self.seen.page

    def open(self, running: RunningStudio, name: str, sql: str = "") -> Page:
        asked = f"&sql={quote(sql)}" if sql else ""
        token = running.url.partition("token=")[2]
        self.page.goto(f"{running.base}/r/{name}?token={token}{asked}")
        expect(self.page.locator("#explore[data-ready]")).to_be_attached(timeout=60_000)
        expect(self.page.locator("#answer .take")).to_be_visible(timeout=60_000)
        return self.page

    def answered(self, sql: str) -> None:
        """Wait until this question is on the page, with its answer."""
        expect(self.page.locator("#as-sql")).to_have_text(sql, timeout=60_000)

    def table(self) -> list[list[str]]:
        """The cells of the answer's table."""
        rows = self.page.locator("#answer tbody tr")
        return [row.locator("td").all_text_contents() for row in rows.all()]


def shown_number(text: str) -> float:
    return float(text.replace(",", "").replace("±", "").strip())


def test_a_walk_by_clicks_comes_to_what_python_answers(
    running: RunningStudio, browser: Browser, folder: Path
) -> None:
    release = voile.open(folder / "adult.voile")
    with tab(browser) as seen:
        walk = Exploring(seen)
        page = walk.open(running, "adult")
        expect(page.locator("h1")).to_have_text("Explore adult")
        expect(page.locator("#verified")).to_contain_text("Verified.", timeout=60_000)
        expect(page.locator("#verified")).to_contain_text("Nobody has signed it.")
        expect(page.locator(".about")).to_contain_text("differential privacy with ε = 1")

        male = page.locator(".bar-button", has_text=re.compile("^Male"))
        expect(male).to_be_visible(timeout=60_000)
        bars = release.query("select sex, count(*) from adult group by sex")
        wanted = {row["sex"]: row["count"].value for row in bars.rows}["Male"]
        shown, _, _ = (male.locator(".bar-number").text_content() or "").partition(" ± ")
        assert shown_number(shown) == pytest.approx(wanted, abs=0.5)
        male.click()
        sql = "select count(*) from adult where sex = 'Male'"
        walk.answered(sql)
        expect(male).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#sql")).to_have_value(sql)
        found = release.query(sql)
        assert shown_number(page.locator(".big .value").text_content() or "") == pytest.approx(
            found.value, abs=0.5
        )
        expect(page.locator("#answer .covers")).to_contain_text(found.covers)

        salary = page.locator("details.column", has=page.locator("summary", has_text="salary"))
        salary.get_by_role("button", name="Group by").click()
        sql = "select salary, count(*) from adult where sex = 'Male' group by salary"
        walk.answered(sql)
        found = release.query(sql)
        cells = walk.table()
        assert [row[0] for row in cells] == [row["salary"] for row in found.rows]
        for row, wanted_row in zip(cells, found.flat(), strict=True):
            given = [shown_number(text) for text in row[1:]]
            assert given == pytest.approx([*wanted_row.values()][1:], abs=0.51)
        expect(page.locator("#answer .chart canvas")).to_be_visible()

        page.get_by_label("Show").select_option("avg")
        sql = "select salary, avg(age) from adult where sex = 'Male' group by salary"
        walk.answered(sql)
        page.get_by_role("button", name="Remove sex: Male").click()
        walk.answered("select salary, avg(age) from adult group by salary")
        expect(male).to_have_attribute("aria-pressed", "false")

        page.reload()
        expect(page.locator("#explore[data-ready]")).to_be_attached()
        last = "select salary, avg(age) from adult group by salary"
        expect(page.locator("#sql")).to_have_value(last)
        expect(page.get_by_label("Show")).to_have_value("avg")
        expect(page.locator(".history li")).to_have_count(4)
        page.locator(".history a").last.click()
        walk.answered("select count(*) from adult where sex = 'Male'")
        expect(male).to_have_attribute("aria-pressed", "true")
        assert not seen.errors


def test_typed_sql_moves_the_builder_and_what_is_beyond_it_is_asked_all_the_same(
    running: RunningStudio, browser: Browser, folder: Path
) -> None:
    release = voile.open(folder / "adult.voile")
    with tab(browser) as seen:
        walk = Exploring(seen)
        page = walk.open(running, "adult")
        box = page.locator("#sql")
        sql = (
            "SELECT sex, salary, sum(age) as years FROM adult WHERE age >= 30 AND age < 40 "
            "AND (sex = 'Male' or sex = 'Female') GROUP BY 1, salary"
        )
        box.fill(sql)
        expect(page.get_by_label("Show")).to_have_value("sum")
        expect(page.get_by_label("for each")).to_have_value("sex")
        expect(page.get_by_label("and each")).to_have_value("salary")
        chips = page.locator("#builder .chip")
        assert chips.all_text_contents() == ["age: 30 to below 40 ×", "sex: Male or Female ×"]
        box.press("Control+Enter")
        walk.answered(sql)
        chips.first.click()  # what the builder writes of it says the same, without the filter
        written = (
            "select sex, salary, sum(age) as years\nfrom adult\n"
            "where sex in ('Male', 'Female')\ngroup by sex, salary"
        )
        walk.answered(written)
        same = release.query(sql.replace("age >= 30 AND age < 40 AND ", "")).to_dict()
        assert release.query(written).to_dict() == same

        for beyond in ("select count(*) from adult where age > 30 or sex = 'Male'",
                       "select age / 10, count(*) from adult group by 1",
                       "select count(*) from adult order by 1"):  # fmt: skip
            box.fill(beyond)
            expect(page.locator(".beyond")).to_contain_text("beyond the builder")
        box.fill("select count(*) from adult where age > 30 or sex = 'Male'")
        page.get_by_role("button", name="Ask").click()
        walk.answered("select count(*) from adult where age > 30 or sex = 'Male'")
        page.get_by_role("button", name="Begin anew").click()
        walk.answered("select count(*) from adult")
        expect(page.locator(".beyond")).to_be_hidden()
        assert not seen.errors


QUESTIONS = [
    "select count(*) from adult",
    "select median(age) from adult where salary = '>50K'",
    "select sex, count(*) as n from adult where age between 20 and 29 group by sex",
    "select count(*) from adult where sex in ('Male', 'Female') and age > 30",
    "select avg(age) from adult where age is null",
    "select sum(age) from adult where (sex = 'Male' or sex is null)",
    "select count(*) from adult where age >= 18.5 and age <= 70",
]


def test_what_the_builder_reads_it_writes_again_with_the_same_meaning(
    running: RunningStudio, browser: Browser, folder: Path
) -> None:
    """The JavaScript of the builder against the parser of Voile."""
    release = voile.open(folder / "adult.voile")
    with tab(browser) as seen:
        page = Exploring(seen).open(running, "adult")
        written = page.evaluate(
            """async (asked) => {
              const { read, write } = await import("/static/shared/sql.js");
              const about = await (await fetch("/r/adult/schema.json")).json();
              return asked.map((sql) => write(read(sql, about).question, about.name));
            }""",
            QUESTIONS,
        )
    for asked, again in zip(QUESTIONS, written, strict=True):
        assert answered_or_why(release, again) == answered_or_why(release, asked), again


def answered_or_why(release: Any, sql: str) -> Any:
    try:
        return release.query(sql).to_dict()["rows"]
    except QueryError as error:
        return re.sub(r" \(line.*", "", error.message, flags=re.DOTALL)


def test_a_refusal_shows_the_place_and_what_to_do(running: RunningStudio, browser: Browser) -> None:
    with tab(browser) as seen:
        page = Exploring(seen).open(running, "adult")
        page.locator("#sql").fill("select count(*) from adult where agee > 3")
        page.get_by_role("button", name="Ask").click()
        problem = page.locator("#answer .problem")
        expect(problem).to_contain_text("no column 'agee'")
        expect(problem.locator("mark")).to_have_text("agee")
        expect(problem).to_contain_text("did you mean 'age'?")
        assert not serious(page)


@pytest.mark.parametrize(("width", "dark"), VARIANTS)
def test_it_can_be_read_by_everybody(
    running: RunningStudio, browser: Browser, width: int, dark: bool
) -> None:
    with tab(browser, width=width, dark=dark) as seen:
        page = Exploring(seen).open(
            running, "wards", "select sex, illness, count(*) from wards group by sex, illness"
        )
        expect(page.locator(".bar-button").first).to_be_visible(timeout=60_000)
        expect(page.locator("#answer .chart canvas")).to_be_visible()
        expect(page.locator("#verified")).to_contain_text("signed", timeout=60_000)
        assert not seen.errors
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        assert not serious(page)
        assert overflow(page) <= 0
        page.goto(f"{running.base}/r")
        assert not serious(page)


def test_hostile_names_and_values_stay_text(
    running: RunningStudio, browser: Browser, folder: Path
) -> None:
    release = voile.open(folder / "hostile.voile")
    with tab(browser) as seen:
        walk = Exploring(seen)
        page = walk.open(running, "hostile")
        expect(page.locator(".bar-button")).to_have_count(6, timeout=60_000)
        page.locator(".bar-button", has_text="it's").click()
        expect(page.locator("#builder .chip")).to_have_text(f'{MARKUP}: it\'s "so" ×')
        column = page.locator("details.column").first
        column.get_by_role("button", name="Group by").click()
        expect(page.locator("#answer tbody td").first).to_have_text('it\'s "so"')
        sql = page.locator("#sql").input_value()
        (row,) = release.query(sql).rows
        assert row[MARKUP] == 'it\'s "so"'
        page.get_by_role("button", name="Begin anew").click()
        page.locator("#sql").fill(MARKUP)
        page.get_by_role("button", name="Ask").click()
        expect(page.locator("#answer .problem")).to_be_visible()
        assert page.evaluate("window.hacked") is None
        assert page.locator("img").count() == 0
        assert not seen.errors


def test_a_forged_release_is_refused_with_the_reason(
    running: RunningStudio, browser: Browser, folder: Path
) -> None:
    with pytest.raises(voile.VoileError) as refused:
        voile.open(folder / "forged.voile")
    with tab(browser) as seen:
        token = running.url.partition("token=")[2]
        page = seen.page
        page.goto(f"{running.base}/r/forged?token={token}")
        expect(page.locator(".problem")).to_contain_text(refused.value.args[0].splitlines()[0])
        expect(page.locator("#explore")).to_have_count(0)


# ---------------------------------------------------------------------- what is taken along

SQL = "select sex, salary, count(*) as n, avg(age) as mean from adult group by sex, salary"


def test_files_hold_what_python_answers(signed_in: Knock, folder: Path) -> None:
    found = voile.open(folder / "adult.voile").query(SQL, 0.9)
    status, content = signed_in.file("adult", "json", SQL, confidence=0.9)
    assert status == 200 and json.loads(content) == found.to_dict()
    _, content = signed_in.file("adult", "csv", SQL, confidence=0.9)
    rows = [*csv.DictReader(io.StringIO(content.decode()))]
    for row, wanted in zip(rows, found.flat(), strict=True):
        assert row == {key: str(value) for key, value in wanted.items()}
    _, content = signed_in.file("adult", "parquet", SQL, confidence=0.9)
    table = pq.read_table(io.BytesIO(content))
    pd.testing.assert_frame_equal(table.to_pandas(), found.to_pandas())
    assert json.loads(table.schema.metadata[b"voile"])["covers"] == found.covers
    _, content = signed_in.get("/r/adult/release.zip")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        manifest = archive.read("adult.voile/manifest.json")
    assert manifest == (folder / "adult.voile" / "manifest.json").read_bytes()


def test_cells_that_a_spreadsheet_computes_can_be_had_as_texts(
    signed_in: Knock, folder: Path
) -> None:
    name = f'"{MARKUP}"'
    sql = f'select {name}, count(*) from "people ""x""" group by {name}'
    _, plain = signed_in.file("hostile", "csv", sql)
    _, safe = signed_in.file("hostile", "safe.csv", sql)
    release = voile.open(folder / "hostile.voile")
    assert plain.decode() == release.query(sql).to_csv()
    assert safe.decode() == release.query(sql).to_csv(safe=True)
    assert "\n'=1+1," in safe.decode() and "\n=1+1," in plain.decode()


def test_a_refusal_for_programs_is_json(signed_in: Knock) -> None:
    status, content = signed_in.file("adult", "json", "select agee from adult")
    assert status == 422 and "agee" in json.loads(content)["error"]
    assert signed_in.file("adult", "json", "select 1", confidence=3)[0] == 422
    assert signed_in.file("adult", "exe", SQL)[0] == 404
    assert signed_in.get("/r/nothing")[0] == 404
    assert signed_in.get("/r/adult/nothing")[0] == 404


def test_what_is_shown_as_python_shell_and_curl_gives_the_same(
    running: RunningStudio, browser: Browser, folder: Path, signed_in: Knock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(folder)
    sql = "select sex, count(*) from adult where salary = '>50K' group by sex"
    wanted = voile.open("adult.voile").query(sql, 0.99)
    with tab(browser) as seen:
        walk = Exploring(seen)
        page = walk.open(running, "adult", sql)
        page.get_by_label("Intervals cover").select_option("0.99")
        expect(page.locator("#as-python")).to_contain_text("0.99")
        python, shell, curl = (
            page.locator(f"#as-{form}").text_content() or "" for form in ("python", "shell", "curl")
        )
        link = page.get_by_role("link", name="Link").get_attribute("href")
        page.goto(running.base + (link or ""))
        walk.answered(sql)
        assert len(walk.table()) == len(wanted.rows)
        expect(page.get_by_label("Intervals cover")).to_have_value("0.99")
        called = page.locator(".calls code").all_text_contents()
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(python, {})  # noqa: S102  (what the page says is run as it stands)
    assert printed.getvalue().strip() == str(wanted).strip()
    asked = command(*shlex.split(shell)[1:])
    assert json.loads(asked.stdout) == wanted.to_dict()
    words = shlex.split(curl)
    assert words[:2] == ["curl", "--get"] and words[2].startswith(running.base)
    given = {words[i + 1].partition("=")[0]: words[i + 1].partition("=")[2]
             for i, word in enumerate(words) if word in ("--data-urlencode", "-d")}  # fmt: skip
    assert given.pop("token") == "TOKEN"
    path = words[2].removeprefix(running.base)
    status, content = signed_in.get(f"{path}?{urlencode(given)}")
    assert status == 200 and json.loads(content) == wanted.to_dict()
    assert called[0] == "voile describe adult.voile"
    assert command(*shlex.split(called[0])[1:]).returncode == 0


# ---------------------------------------------------------------------- many columns


def wide_about() -> dict[str, Any]:
    return {"name": "wide", "attributes": [
        {"name": f"c{i:03d}", "kind": "categorical", "values": ["a", "b"], "null": False}
        for i in range(COLUMNS)
    ]}  # fmt: skip


def test_hundreds_of_columns_are_found_by_name_and_counted_when_seen(
    running: RunningStudio, browser: Browser
) -> None:
    """The schema is played by the test: bars are asked only of columns that are open."""
    asked: list[str] = []
    figures = [{"estimate": x, "stderr": 1.0, "low": x - 2, "high": x + 2} for x in (5.0, 9.0)]
    bars = {"rows": [{"c": key, "count": one} for key, one in zip("ab", figures, strict=True)]}

    def answer(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(json=bars)

    with tab(browser) as seen:
        page = seen.page
        page.route("**/schema.json", lambda route: route.fulfill(json=wide_about()))
        page.route("**/bars.json*", answer)
        Exploring(seen).open(running, "adult")
        expect(page.locator("details.column")).to_have_count(COLUMNS)
        expect(page.locator(".bar-button")).to_have_count(6)
        assert len(asked) == 3
        page.get_by_label(f"Find one of {COLUMNS} columns").fill("c217")
        column = page.locator("details.column:visible")
        expect(column).to_have_count(1)
        column.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(column.locator(".bar-button")).to_have_count(2)
        assert len(asked) == 4 and "c217" in asked[-1]
        column.locator(".bar-button").nth(1).focus()
        page.keyboard.press("Space")
        expect(page.locator("#sql")).to_have_value("select count(*) from wide where c217 = 'b'")
        assert not seen.errors


ATTRIBUTES = [
    {"name": "age", "kind": "integer", "range": [0, 99], "null": False},
    {"name": "pay", "kind": "numeric", "bins": [0.0, 10.0, 20.0, 50.0], "null": True},
    {"name": "born", "kind": "date", "range": ["2000-01-01", "2001-12-31"], "null": False},
    {"name": "few", "kind": "integer", "range": [1, 5], "null": False},
]


LABEL_OF_BIN = """async ([kind, key]) => {
  const { bars } = await import("/static/shared/sql.js");
  return bars({ name: "age", kind, bins: [12, 19, 20, 22], null: false }, "t").bar(key).label;
}"""
"""A bin of whole numbers is called by the numbers in it."""


def test_bars_of_every_kind_of_column_are_filters_that_count_the_same(
    running: RunningStudio, browser: Browser, tmp_path: Path
) -> None:
    """A release without noise: each bar's number is that of its own filter."""
    chance = np.random.default_rng(8)
    rows = 400
    frame = pd.DataFrame({
        "age": chance.integers(0, 100, rows), "pay": chance.uniform(0, 50, rows).round(1),
        "born": pd.to_datetime("2000-01-01") + pd.to_timedelta(chance.integers(0, 700, rows), "D"),
        "few": chance.integers(1, 6, rows),
    })  # fmt: skip
    frame.loc[:20, "pay"] = None
    release = voile.publish(frame, method="trivial", schema={"attributes": ATTRIBUTES},
                            qi=["few"], sensitive=["age"], insensitive=["pay", "born"], k=1,
                            weak=True, name="t", register=False, to=tmp_path / "t")  # fmt: skip
    with tab(browser) as seen:
        page = Exploring(seen).open(running, "adult")
        assert [page.evaluate(LABEL_OF_BIN, ["integer", key]) for key in (14.5, 19.5, 21)] == [
            "12 – 18", "19", "20 – 22"
        ]  # fmt: skip
        assert page.evaluate(LABEL_OF_BIN, ["numeric", 19.5]) == "19 – 20"
        for one in ATTRIBUTES:
            sql = page.evaluate(
                "async (one) => (await import('/static/shared/sql.js')).bars(one, 't').sql",
                one,
            )
            answer = release.query(sql)
            keys = [next(iter(row.values())) for row in answer.to_dict()["rows"]]
            filters = page.evaluate(
                """async ([one, keys]) => {
                  const { bars, blank, write } = await import("/static/shared/sql.js");
                  const { bar } = bars(one, "t");
                  return keys.map((key) => write({ ...blank(), where: [bar(key).filter] }, "t"));
                }""",
                [one, keys],
            )
            counts = [row["count"].value for row in answer.rows]
            assert sum(counts) == pytest.approx(rows)
            assert [release.query(each).value for each in filters] == pytest.approx(counts)


# ---------------------------------------------------------------------- without a browser


def test_a_question_that_does_not_end_is_cancelled_and_the_next_is_answered(
    folder: Path, tmp_path: Path
) -> None:
    program = tmp_path / "slow.py"
    program.write_text(
        "import json, sys, time\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    time.sleep(asked['seconds'])\n"
        "    print(json.dumps({'data': asked['seconds']}), flush=True)\n"
    )
    asker = Asker(folder / "adult.voile", [sys.executable, str(program)])
    slow, waiting = asker.ask({"seconds": 600}), asker.ask({"seconds": 0, "n": 2})
    assert asker.ask({"seconds": 600}) is slow  # another tab finds it
    assert slow.wait(0.3).running
    begun = time.monotonic()
    asker.cancel(slow)
    assert slow.state == "cancelled" and waiting.wait(20).data == 0
    assert asker.ask({"seconds": 600}) is not slow
    asker.cancel(asker.ask({"seconds": 600}))
    late = asker.ask({"seconds": 600, "n": 3}, limit=0.2)
    assert late.wait(20).state == "failed" and "within 0 s" in late.error
    assert time.monotonic() - begun < 20
    last = asker.ask({"seconds": 600, "n": 4})
    asker.close()
    assert last.wait(5).state == "cancelled"


def test_a_process_that_dies_says_so_and_another_takes_its_place(folder: Path) -> None:
    asker = Asker(folder / "adult.voile", [sys.executable, "-c", "raise SystemExit"])
    asked = asker.ask({"do": "about"}).wait(20)
    assert asked.state == "failed" and "has ended" in asked.error and not asked.lasting
    with pytest.raises(voile.VoileError, match="has ended"):
        asked.result(1)
    with pytest.raises(UsageError, match="too long"):
        Asked({}, 1.0).result(0)
    asker.close()


def test_what_is_said_of_a_release_is_what_it_says(folder: Path) -> None:
    for name in ("adult", "wards", "hostile"):
        release = voile.open(folder / f"{name}.voile")
        about = Opened(str(folder / f"{name}.voile")).about()
        assert about["describe"] == release.describe()
        assert about["attributes"] == release.schema.to_dict()["attributes"]
        assert about["promise"] == release.promise_in_short
        assert 0 < len(in_plain_words(release)) <= 4
        json.dumps(about)
        quoted = table_name(release.name)
        assert release.query(f"select count(*) from {quoted}").rows
    assert table_name("order") == '"order"'


def test_verification_is_what_the_command_says(folder: Path) -> None:
    class Silent:
        def start(self, what: str, total: int) -> None: ...
        def advance(self, count: int) -> None: ...

    for name in ("adult", "forged"):
        path = str(folder / f"{name}.voile")
        found = verify_task(Silent(), path=path, stamp=[])
        assert found == examine(path).to_dict()
        assert found["ok"] is (name == "adult")


def test_charts_hold_the_numbers_and_their_intervals(folder: Path) -> None:
    release = voile.open(folder / "adult.voile")
    answer = release.query(SQL)
    view = answer_view({**answer.to_dict(), "columns": dict(answer.columns)})
    assert [chart["name"] for chart in view["charts"]] == ["n", "mean"]
    drawn = view["charts"][0]["spec"]["data"]["values"]
    for bar, row in zip(drawn, answer.rows, strict=True):
        assert (bar["key"], bar["other"]) == (row["sex"], row["salary"])
        assert (bar["low"], bar["high"]) == pytest.approx(row["n"].interval())
        assert bar["value"] == row["n"].value
    one = release.query("select count(*) from adult")
    alone = answer_view({**one.to_dict(), "columns": dict(one.columns)})
    assert f"± {one.stderr:,.2f}" == alone["single"][0]["error"]


def test_the_place_of_an_error_is_marked(folder: Path) -> None:
    sql = "select count(*)\nfrom adult where agee > 3"
    with pytest.raises(QueryError) as refused:
        voile.open(folder / "adult.voile").query(sql)
    before, at, after = marked(sql, refused.value.start)
    assert (at, before + at + after) == ("agee", sql)
    assert marked("x", None) == ("x", "", "")


pytestmark = needs_browser
