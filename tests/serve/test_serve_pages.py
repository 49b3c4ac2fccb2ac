"""The pages of a server, in a real browser, asked of a real server in a process of its own."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hatchling.builders.wheel import WheelBuilder
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browser import launched, needs_browser
from tests.support.paths import ROOT
from tests.support.running import voile
from tests.support.serving import running
from voile.errors import UsageError
from voile.remote.client import Server
from voile.serve.creation import begin
from voile.serve.steward import ledger_of

MARKUP = "<img src=x onerror=window.hacked=1>"
"""What must stay text wherever it is shown."""
CITIES = ["Aachen", "Bergen", "Cork", MARKUP]
ROWS = 3000
PAGES = files("voile.serve") / "pages"
SHARED = files("voile.web") / "static"


@dataclass(frozen=True)
class Place:
    url: str
    tokens: Mapping[str, str]

    def api(self, who: str) -> Server:
        return Server(self.url, self.tokens[who])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("pages") / "server"
    chance = np.random.default_rng(5)
    table = pa.table(
        {
            "age": chance.integers(18, 80, ROWS),
            "sex": np.array(["Female", "Male"])[chance.integers(0, 2, ROWS)],
            "home town": np.array(CITIES)[chance.choice(4, ROWS, p=[0.5, 0.3, 0.15, 0.05])],
        }
    )
    codebook = {
        "attributes": [
            {"name": "age", "kind": "integer", "range": [18, 79]},
            {"name": "sex", "kind": "categorical", "values": ["Female", "Male"]},
            {"name": "home town", "kind": "categorical", "values": CITIES},
        ]
    }
    begin(folder, table, schema=codebook, queries=60, delta=1.0, name="people",
          subsets={"young": "age < 30"})  # fmt: skip
    ledger = ledger_of(folder)
    ledger.set_group("north", 30)
    tokens = {
        who: ledger.issue(who, queries=queries, group=group)[0]
        for who, queries, group in [
            ("iris", 20, "north"), ("ben", 8, None), ("eve", 1, None), ("gone", 5, None),
            (MARKUP, 6, None), ("free", None, None), ("builder", 10, None),
        ]
    }  # fmt: skip
    tokens["ada"] = ledger.issue("ada", role="admin")[0]
    tokens["only"] = ledger.issue("only", role="admin", scopes=frozenset({"admin"}))[0]
    ledger.close()
    with running(folder, "--rate", "1000/s", "--burst", "1000") as server:
        yield Place(server.data["url"], tokens)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@dataclass
class Seen:
    """A page, and all that went wrong in it or left it."""

    page: Page
    errors: list[str]
    requests: list[str]

    def enter(self, place: Place, who: str) -> Page:
        self.page.goto(place.url)
        self.page.get_by_label("Your token").fill(place.tokens[who])
        self.page.get_by_role("button", name="Enter").click()
        expect(self.page.locator("#inside")).to_be_visible()
        return self.page


@pytest.fixture
def seen(browser: Browser) -> Iterator[Seen]:
    context = browser.new_context(viewport={"width": 1200, "height": 860}, reduced_motion="reduce")
    context.set_default_timeout(10_000)
    found = Seen(context.new_page(), [], [])
    found.page.on("pageerror", lambda error: found.errors.append(str(error)))
    found.page.on("request", lambda request: found.requests.append(request.url))
    found.page.on("dialog", lambda dialog: found.errors.append(f"dialog {dialog.message}"))
    found.page.on(
        "console",
        lambda said: found.errors.append(said.text) if "Security Policy" in said.text else None,
    )
    yield found
    assert not found.errors
    assert found.page.evaluate("window.hacked") is None
    context.close()


def price(page: Page, sql: str) -> None:
    page.get_by_label("SQL").fill(sql)
    expect(page.locator("#cost")).not_to_have_text("…")


def ask(page: Page, sql: str) -> None:
    price(page, sql)
    expect(page.locator("#ask")).to_be_enabled()
    page.locator("#ask").click()
    expect(page.locator("#answer-card")).not_to_have_attribute("aria-busy", "true")
    expect(page.locator("#answer .asked")).to_have_text(sql)
    expect(page.locator("#answer .charged")).to_be_visible()


def shown_number(text: str | None) -> float:
    return float((text or "").replace(",", "").replace("−", "-").replace("±", "").strip())


# ---------------------------------------------------------------------- analysts


@needs_browser
def test_who_enters_sees_the_promise_the_columns_and_the_budget(place: Place, seen: Seen) -> None:
    page = seen.enter(place, "iris")
    expect(page.locator("#who-name")).to_have_text("iris")
    expect(page.locator("#promise")).to_contain_text("about 3,000 people")
    expect(page.locator("#promise")).to_contain_text("at most 60 answers")
    expect(page.locator("#promise")).to_contain_text("η = 10⁻⁶")
    expect(page.locator("#promise")).to_contain_text("2.718")
    assert page.locator("#schema dt button").all_text_contents() == ["age", "sex", "home town"]
    expect(page.locator("#schema")).to_contain_text("18 to 79")
    expect(page.locator("#tabs")).to_be_hidden()
    lines = page.locator(".budget-words span:first-child").all_text_contents()
    assert lines == ["You", "Your group", "Everybody"]
    left = place.api("iris").budget()["remaining"]
    expect(page.locator("#left")).to_have_text(str(left))
    expect(page.get_by_role("meter").first).to_have_attribute("aria-valuenow", str(left))
    expect(page.locator("#promise")).not_to_contain_text("differentially private")


@needs_browser
def test_a_server_that_promises_epsilon_says_so_on_its_page(tmp_path: Path, seen: Seen) -> None:
    folder = tmp_path / "server"
    begin(folder, pa.table({"ill": [True, False] * 50}), queries=9, epsilon=0.5,
          epsilon_delta=1e-5, noise="gaussian")  # fmt: skip
    ledger = ledger_of(folder)
    token = ledger.issue("iris")[0]
    ledger.close()
    with running(folder) as server:
        page = seen.enter(Place(server.data["url"], {"iris": token}), "iris")
        expect(page.locator("#promise")).to_contain_text("ε = 0.5 and δ = 10⁻⁵")
        expect(page.locator("#promise")).to_contain_text("a factor of 1.649 and a rest of δ")


@needs_browser
def test_the_token_is_kept_in_the_tab_only(place: Place, seen: Seen) -> None:
    page = seen.enter(place, "iris")
    token = place.tokens["iris"]
    assert page.evaluate("Object.values(sessionStorage)") == [token]
    assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
    assert token not in page.content()
    assert not any(token in url for url in seen.requests)
    page.reload()
    expect(page.locator("#inside")).to_be_visible()
    page.get_by_role("button", name="Leave").click()
    expect(page.get_by_label("Your token")).to_be_focused()
    assert page.evaluate("sessionStorage.length") == 0
    assert page.locator("#budget").text_content() == ""


@needs_browser
@pytest.mark.parametrize("wrong", ["nobody.0123", "two words", "ä"])
def test_a_wrong_token_is_refused_and_forgotten(place: Place, seen: Seen, wrong: str) -> None:
    page = seen.page
    page.goto(place.url)
    page.get_by_label("Your token").fill(wrong)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("token")
    expect(page.locator("#inside")).to_be_hidden()
    assert page.evaluate("sessionStorage.length") == 0


@needs_browser
def test_the_cost_is_shown_before_it_is_spent(place: Place, seen: Seen) -> None:
    page, api = seen.enter(place, "iris"), place.api("iris")
    sql = "select avg(age) from people where sex = 'Male'"
    expect(page.locator("#ask")).to_be_disabled()
    price(page, sql)
    expect(page.locator("#ask")).to_have_text("Ask (costs 2)")
    left = api.budget()["remaining"]
    expect(page.locator("#cost")).to_contain_text(f"{left - 2} will be left")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#answer .charged")).to_contain_text(f"Charged 2. {left - 2} left")
    expect(page.locator("#left")).to_have_text(str(left - 2))
    expect(page.locator("#ask")).to_have_text("Ask (free)")
    assert api.budget()["remaining"] == left - 2
    value = shown_number(page.locator("#answer .value").text_content())
    reply = api.ask(sql)
    assert reply.answer is not None
    assert reply.stderr is not None
    assert value == pytest.approx(reply.answer, abs=reply.stderr / 10)
    assert reply.charged == 0
    expect(page.locator("#history td").nth(1)).to_have_text("2")
    expect(page.locator("#history button").first).to_have_text(sql)


@needs_browser
def test_the_cost_names_the_column_whose_error_it_tells(place: Place, seen: Seen) -> None:
    page, api = seen.enter(place, "iris"), place.api("iris")
    sql = "select count(*) as people, avg(age) as mean from people where sex = 'Female'"
    price(page, sql)
    known = api.cost(sql).stderr
    assert known["people"] is not None and known["mean"] is None
    said = page.locator("#cost")
    expect(said).to_contain_text("The standard error of people will be")
    expect(said).to_contain_text("That of mean depends on the answer.")


@needs_browser
def test_what_is_asked_again_is_in_the_history_at_a_time_with_a_zone(
    place: Place, seen: Seen
) -> None:
    page = seen.enter(place, "free")
    sql = "select count(*) from people where age < 33"
    ask(page, sql)
    expect(page.locator("#history td").nth(1)).to_have_text("1")
    page.locator("#ask").click()
    expect(page.locator("#history tbody tr")).to_have_count(2)
    expect(page.locator("#history td").nth(1)).to_have_text("free")
    expect(page.locator("#history button").first).to_have_text(sql)
    zone = page.evaluate(
        "new Intl.DateTimeFormat(undefined, {timeZoneName: 'short'}).formatToParts(new Date())"
        ".find((part) => part.type === 'timeZoneName').value"
    )
    for place_of_time in page.locator("#history .small").all():
        expect(place_of_time).to_contain_text(zone)


@needs_browser
def test_an_error_bar_is_as_long_as_the_interval(place: Place, seen: Seen) -> None:
    """Its ends, read off the axis, are the interval that the server answered."""
    page, api = seen.enter(place, "iris"), place.api("iris")
    sql = "select count(*) from people where age < 40"
    ask(page, sql)
    reply = api.ask(sql)
    chart = page.locator("#answer svg.chart")
    ticks = [
        (float(x or 0), shown_number(text))
        for x, text in zip(
            attributes(page, "#answer .tick-text", "x"),
            page.locator("#answer .tick-text").all_text_contents(), strict=True)
    ]  # fmt: skip
    (x0, v0), *_, (x1, v1) = ticks

    def read(x: float) -> float:
        return v0 + (x - x0) * (v1 - v0) / (x1 - x0)

    low, high = (float(attributes(page, "#answer .whisker", end)[0]) for end in ("x1", "x2"))
    dot = float(attributes(page, "#answer .dot", "cx")[0])
    assert (read(low), read(dot), read(high)) == pytest.approx(
        (reply.low, reply.answer, reply.high), abs=1e-6
    )
    expect(chart).to_have_attribute("role", "img")
    assert "95 % interval" in (chart.get_attribute("aria-label") or "")


def attributes(page: Page, selector: str, name: str) -> list[str]:
    found: list[str] = page.locator(selector).evaluate_all(
        "(nodes, name) => nodes.map((node) => node.getAttribute(name))", name
    )
    return found


@needs_browser
def test_groups_are_bars_and_their_markup_stays_text(place: Place, seen: Seen) -> None:
    page, api = seen.enter(place, "iris"), place.api("iris")
    sql = 'select "home town", count(*) as people from people group by "home town"'
    ask(page, sql)
    reply = api.ask(sql)
    figures = [row["people"]["estimate"] for row in reply.rows]
    widths = [float(w) for w in attributes(page, "#answer .bar", "width")]
    assert len(widths) == len(CITIES)
    assert np.array(widths) / widths[0] == pytest.approx(np.array(figures) / figures[0], rel=1e-6)
    titles = page.locator("#answer g title").all_text_contents()
    assert [title.rsplit(": ", 1)[0] for title in titles] == CITIES
    page.get_by_text("As a table").click()
    cells = page.locator("#answer tbody tr").nth(3).locator("td").all_text_contents()
    assert cells[0] == MARKUP
    assert shown_number(cells[1]) == figures[3]
    assert page.locator("img").count() == 0


def answered(page: Page, rows: list[dict[str, Any]]) -> None:
    """Ask while the server's part is played by the test."""
    reply = {"rows": rows, "confidence": 0.95, "covers": "it", "notes": [], "charged": 1,
             "remaining": 3, "subset": "all", "subset_rows": 9}  # fmt: skip
    cost = {"cost": 1, "remaining": 4, "known": 0, "stderr": {}, "notes": []}

    def play(route: Route) -> None:
        asked = json.loads(route.request.post_data or "")
        route.fulfill(json=cost if asked.get("dry_run") else reply)

    page.route("**/query", play)
    ask(page, "select home, sum(age) as total from people group by home")
    page.unroute("**/query")


def estimate(value: float | None, low: float | None, high: float | None) -> dict[str, Any]:
    return {"estimate": value, "stderr": 50_000.0, "low": low, "high": high}


@needs_browser
def test_estimates_below_nothing_and_unknown_ones_keep_their_labels(
    place: Place, seen: Seen
) -> None:
    """Bars go from 0 to the estimate; an interval that was cut may lie beside it."""
    page = seen.enter(place, "free")
    answered(page, [
        {"home": "Aachen", "total": None},
        {"home": "Bergen", "total": estimate(-85_718.0, 0.0, 165_659.0)},
        {"home": "Cork", "total": estimate(120_000.0, 0.0, 250_000.0)},
        {"home": "Delft", "total": estimate(None, None, None)},
    ])  # fmt: skip
    names = page.locator("#answer .bar-name")
    expect(names).to_have_text(["Aachen", "Bergen", "Cork", "Delft"])
    values = page.locator("#answer .bar-value").all_text_contents()
    assert values == ["unknown", "−85,718", "120,000", "unknown"]
    ends = [float(x) for x in attributes(page, "#answer .bar-name", "x")]
    starts, widths = (
        [float(x) for x in attributes(page, "#answer .bar", name)] for name in ("x", "width")
    )
    zero = float(attributes(page, "#answer .base", "x1")[0])
    assert min(starts) > max(ends)
    assert [starts[0] + widths[0], starts[1]] == pytest.approx([zero, zero])
    assert widths[0] / widths[1] == pytest.approx(85_718 / 120_000)
    right = page.locator("#answer .bar-value").nth(2).bounding_box()
    whiskers = [page.locator("#answer .whisker").nth(i).bounding_box() for i in range(6)]
    assert right and all(one and one["x"] + one["width"] <= right["x"] for one in whiskers)
    expect(page.locator("#cut")).to_have_count(1)
    expect(page.locator("#cut")).to_contain_text("cut to what is possible")
    answered(page, [{"home": "Cork", "total": estimate(9.0, 0.0, 20.0)}])
    expect(page.locator("#cut")).to_have_count(0)


@needs_browser
def test_what_is_public_is_exact_and_said_to_be_before(place: Place, seen: Seen) -> None:
    page, api = seen.enter(place, "iris"), place.api("iris")
    left = api.budget()["remaining"]
    price(page, "select count(*) from people")
    expect(page.locator("#ask")).to_have_text("Ask (free)")
    expect(page.locator("#cost .hint")).to_contain_text("how many rows there are is public")
    ask(page, "select count(*) from people")
    expect(page.locator("#answer .big")).to_have_text("3,000 exact")
    expect(page.locator("#answer .dot")).to_have_count(1)
    expect(page.locator("#answer .whisker")).to_have_count(0)
    expect(page.locator("#answer")).not_to_contain_text("interval")
    expect(page.locator("#answer .charged")).to_have_text(f"Free. {left} left.")


@needs_browser
def test_several_figures_of_groups_have_a_drawing_each(place: Place, seen: Seen) -> None:
    page = seen.enter(place, "iris")
    ask(page, "select sex, count(*) as n, avg(age) as mean from people group by sex")
    captions = page.locator("#answer figcaption").all_text_contents()
    assert [caption.split(",")[0] for caption in captions] == ["n", "mean"]
    assert page.locator("#answer svg.chart").count() == 2


@needs_browser
def test_a_refused_question_says_why_and_costs_nothing(place: Place, seen: Seen) -> None:
    page, api = seen.enter(place, "ben"), place.api("ben")
    before = api.budget()
    for sql in ("select agee from people", MARKUP, "select * from people", "drop table people"):
        price(page, sql)
        expect(page.locator("#cost")).to_have_class("cost no")
        expect(page.locator("#ask")).to_be_disabled()
        page.get_by_label("SQL").press("Control+Enter")
    price(page, "select count(*) from people where agee > 3")
    expect(page.locator("#cost .words")).to_contain_text("'agee'")
    expect(page.locator("#cost .hint")).to_contain_text("did you mean 'age'?")
    expect(page.locator("#cost pre")).to_contain_text("^")
    expect(page.locator("#answer-card")).to_be_hidden()
    assert api.budget() == before
    assert page.locator("img").count() == 0


@needs_browser
def test_a_used_up_budget_leaves_what_was_answered(place: Place, seen: Seen) -> None:
    page = seen.enter(place, "eve")
    sql = "select count(*) from people where sex = 'Female' and age > 60"
    ask(page, sql)
    value = page.locator("#answer .value").text_content()
    expect(page.locator("#budget .problem")).to_contain_text("used up")
    price(page, "select count(*) from people where age = 33")
    expect(page.locator("#ask")).to_be_disabled()
    expect(page.locator("#cost")).to_contain_text("It costs 1, and 0 are left.")
    page.get_by_role("button", name=sql).click()
    expect(page.locator("#ask")).to_have_text("Ask (free)")
    page.locator("#ask").click()
    expect(page.locator("#answer .charged")).to_contain_text("Free")
    assert page.locator("#answer .value").text_content() == value


@needs_browser
def test_halves_and_declared_subsets_are_asked_about(place: Place, seen: Seen) -> None:
    page, api = seen.enter(place, "iris"), place.api("iris")
    sql = "select count(*) from people where sex = 'Male'"
    expect(page.locator("#seed-field")).to_be_hidden()
    page.get_by_label("Rows").select_option("half")
    page.get_by_label("Seed of the half").fill("spring")
    ask(page, sql)
    value = shown_number(page.locator("#answer .value").text_content())
    half = api.ask(sql, "half:spring")
    assert (half.charged, half.answer) == (0, value)
    expect(page.locator("#history .small").first).to_contain_text("in the half spring")
    page.get_by_label("Rows").select_option("named:young")
    ask(page, sql)
    young = api.ask(sql, "young")
    assert young.charged == 0
    assert young.answer == shown_number(page.locator("#answer .value").text_content())


@needs_browser
def test_examples_and_columns_make_questions_that_are_answered(place: Place, seen: Seen) -> None:
    page = seen.enter(place, "iris")
    chips = page.locator("#examples button")
    assert chips.all_text_contents()[0] == "sex = Female"
    for i in range(chips.count()):
        chips.nth(i).click()
        expect(page.locator("#ask")).to_be_enabled()
    page.get_by_label("SQL").fill("select count(*) from people where ")
    page.get_by_role("button", name="home town", exact=True).click()
    assert page.get_by_label("SQL").input_value().endswith('where "home town"')


@needs_browser
def test_without_a_server_the_page_says_so(place: Place, seen: Seen) -> None:
    page = seen.enter(place, "ben")
    page.route("**/query", lambda route: route.abort())
    price(page, "select count(*) from people")
    expect(page.locator("#cost")).to_contain_text("cannot be reached")
    page.unroute("**/query")
    page.route("**/query", lambda route: route.fulfill(status=503, body="<b>proxy</b>"))
    price(page, "select count(*) from people where age > 20")
    expect(page.locator("#cost")).to_contain_text("answered 503")


@needs_browser
def test_who_has_no_budget_of_their_own_sees_that_of_everybody(place: Place, seen: Seen) -> None:
    page = seen.enter(place, "free")
    lines = page.locator(".budget-words span:first-child").all_text_contents()
    assert lines == ["Everybody"]


# ---------------------------------------------------------------------- the builder


@needs_browser
def test_clicks_write_sql_and_cost_nothing_until_it_is_asked(place: Place, seen: Seen) -> None:
    page, api = seen.enter(place, "builder"), place.api("builder")
    left = api.budget()["remaining"]
    page.locator("#schema details.column").nth(1).locator("summary").click()
    page.locator("#schema").get_by_role("button", name="Female", exact=True).click()
    sql = "select count(*) from people where sex = 'Female'"
    expect(page.get_by_label("SQL")).to_have_value(sql)
    expect(page.locator("#ask")).to_have_text("Ask (costs 1)")
    page.locator("#schema details.column").nth(2).locator("summary").click()
    page.locator("#schema details.column").nth(2).get_by_role("button", name="Group by").click()
    page.get_by_label("Show").select_option("avg")
    sql = 'select "home town", avg(age)\nfrom people\nwhere sex = \'Female\'\ngroup by "home town"'
    expect(page.get_by_label("SQL")).to_have_value(sql)
    expect(page.locator("#ask")).to_have_text("Ask (costs 2)")
    assert api.budget()["remaining"] == left
    assert not any(url.endswith("bars.json") for url in seen.requests)
    page.locator("#ask").click()
    expect(page.locator("#answer .charged")).to_contain_text("Charged 2")
    page.get_by_label("SQL").fill("select count(*) from people where age between 20 and 29")
    expect(page.get_by_role("button", name="Remove age: 20 to 29")).to_be_visible()
    expect(page.get_by_label("Show")).to_have_value("count")
    page.get_by_label("SQL").fill("select count(*) from people where age > 3 or age < 2")
    expect(page.locator(".beyond")).to_contain_text("beyond the builder")


@needs_browser
def test_what_is_taken_along_asks_the_same_again_for_nothing(
    place: Place, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, api = seen.enter(place, "builder"), place.api("builder")
    sql = 'select "home town", count(*) as n from people where age > 30 group by "home town"'
    ask(page, sql)
    left = api.budget()["remaining"]
    again = api.ask(sql)
    with page.expect_download() as got:
        page.locator("#answer").get_by_role("button", name="CSV").click()
    rows = [*csv.DictReader(got.value.path().read_text(encoding="utf-8").splitlines())]
    assert [row["home town"] for row in rows] == CITIES
    for row, wanted in zip(rows, again.rows, strict=True):
        ends = {"n": "estimate", "n_stderr": "stderr", "n_low": "low", "n_high": "high"}
        for name, part in ends.items():
            assert float(row[name]) == pytest.approx(wanted["n"][part])
    with page.expect_download() as got:
        page.locator("#answer").get_by_role("button", name="JSON").click()
    assert json.loads(got.value.path().read_text())["rows"] == again.to_dict()["rows"]
    with page.expect_download() as got:
        page.locator("#answer").get_by_role("button", name="Parquet").click()
    assert got.value.suggested_filename == "answer.parquet"
    table = pq.read_table(got.value.path())
    assert table["n"].to_pylist() == [row["n"]["estimate"] for row in again.rows]
    assert api.budget()["remaining"] == left
    sql_text, python, shell, curl = page.locator("#answer .take pre").all_text_contents()
    assert sql_text == sql
    monkeypatch.setenv("VOILE_TOKEN", place.tokens["builder"])
    printed: list[Any] = []
    exec(python, {"print": printed.append})  # noqa: S102  (what the page says, as it stands)
    assert printed[0].rows == again.rows
    asked = voile(*shlex.split(shell)[1:])
    assert json.loads(asked.stdout)["rows"] == again.to_dict()["rows"]
    words = shlex.split(curl)
    assert json.loads(words[-1]) == {"sql": sql, "subset": "all", "confidence": 0.95}
    assert place.tokens["builder"] not in curl
    assert api.budget()["remaining"] == left
    page.goto("about:blank")
    page.goto(f"{place.url}/#sql={quote(sql)}")
    expect(page.get_by_label("SQL")).to_have_value(sql)
    expect(page.locator("#ask")).to_have_text("Ask (free)")
    page.goto("about:blank")
    page.goto(f"{place.url}/#sql={quote(sql)}&rows=half%3Aseven&confidence=0.99")
    expect(page.locator("#subset")).to_have_value("half")
    expect(page.locator("#seed")).to_have_value("seven")
    expect(page.locator("#confidence")).to_have_value("0.99")


# ---------------------------------------------------------------------- admins


@needs_browser
def test_an_admin_makes_and_revokes_tokens(place: Place, seen: Seen, browser: Browser) -> None:
    page = seen.enter(place, "ada")
    page.get_by_role("tab", name="Ask").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Manage")).to_be_focused()
    expect(page.locator("#people")).to_contain_text(MARKUP)
    expect(page.locator("#groups")).to_contain_text("north")
    page.get_by_label("Analyst", exact=True).fill("nina")
    page.locator("#new-queries").fill("3")
    page.get_by_role("button", name="Make a token").click()
    token = page.locator("#made-token").text_content() or ""
    expect(page.locator("#people")).to_contain_text("3 of 3 left")
    assert Server(place.url, token).budget()["queries"] == 3
    page.get_by_role("button", name="Hide").click()
    assert token not in page.content()

    other = browser.new_context().new_page()
    other.goto(place.url)
    other.get_by_label("Your token").fill(token)
    other.keyboard.press("Enter")
    expect(other.locator("#who-name")).to_have_text("nina")

    public = token.split(".")[0]
    revoke = page.get_by_role("button", name=f"Revoke token {public}")
    revoke.click()
    expect(revoke).to_have_text("Revoke for good?")
    revoke.click()
    expect(page.locator("#people .gone")).to_contain_text(public)
    with pytest.raises(UsageError, match="token"):
        Server(place.url, token).budget()
    other.get_by_label("SQL").fill("select count(*) from people")
    expect(other.get_by_role("alert")).to_contain_text("not valid")
    other.context.close()
    assert page.locator("img").count() == 0


@needs_browser
def test_an_admin_sees_what_answers_told(place: Place, seen: Seen) -> None:
    place.api("ada").ask("select count(*) from people where age > 50")
    page = seen.enter(place, "only")
    page.get_by_role("button", name="Compute it").click()
    told = page.locator("#audit p").first
    expect(told).to_contain_text("of 60 answers")
    expect(told).to_contain_text("Promised for all answers: δ = 1.")
    expect(page.locator("#audit tbody")).to_contain_text("age")
    worst = json.loads(page.request.get(
        f"{place.url}/admin/audit", headers={"Authorization": f"Bearer {place.tokens['only']}"}
    ).body())["worst"]  # fmt: skip
    expect(told).to_contain_text(f"more than {worst['rise']:.4g} in log-odds")


@needs_browser
def test_an_admin_sets_groups_and_reads_the_log(place: Place, seen: Seen) -> None:
    page = seen.enter(place, "only")
    expect(page.locator("#panel-manage")).to_be_visible()
    expect(page.locator("#panel-ask")).to_be_hidden()
    page.locator("#group-name").fill("south")
    page.locator("#group-queries").fill("7")
    page.get_by_role("button", name="Set its budget").click()
    expect(page.locator("#groups")).to_contain_text("7 of 7 left")
    expect(page.locator("#log tbody tr").first).to_contain_text("south")
    page.get_by_label("Analyst", exact=True).fill("otto")
    page.locator("#new-group").fill("nowhere")
    page.get_by_role("button", name="Make a token").click()
    expect(page.get_by_role("alert").first).to_contain_text("there is no group 'nowhere'")


# ---------------------------------------------------------------------- everybody


@needs_browser
def test_nothing_is_loaded_from_elsewhere(place: Place, seen: Seen) -> None:
    page = seen.enter(place, "ada")
    page.get_by_role("tab", name="Manage").click()
    expect(page.locator("#log tbody tr").first).to_be_visible()
    assert all(url.startswith(place.url) for url in seen.requests)
    policy = page.request.get(place.url).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    page.evaluate("document.body.setAttribute('onclick', 'window.hacked = 1')")
    page.locator("body").click(position={"x": 2, "y": 2})
    assert seen.errors, "the browser let an inline script pass"
    seen.errors.clear()


@needs_browser
def test_it_fits_a_telephone(place: Place, seen: Seen) -> None:
    seen.page.set_viewport_size({"width": 400, "height": 800})
    page = seen.enter(place, "ada")
    ask(page, "select sex, count(*) as people from people group by sex")
    wide = "document.scrollingElement.scrollWidth"
    assert page.evaluate(wide) <= 400
    page.get_by_role("tab", name="Manage").click()
    expect(page.locator("#log tbody tr").first).to_be_visible()
    assert page.evaluate(wide) <= 400
    inner = "[...document.querySelectorAll('#panel-manage .scroll')].filter((s) => s.offsetParent)"
    assert page.evaluate(f"{inner}.length") >= 3
    assert page.evaluate(f"{inner}.every((s) => s.scrollWidth <= s.clientWidth)")
    revoke = page.get_by_role("button", name="Revoke token").first.bounding_box()
    last = page.locator("#log td:last-child").first.bounding_box()
    for box in (revoke, last):
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 400


@needs_browser
def test_every_field_has_a_label_and_every_button_a_name(place: Place, seen: Seen) -> None:
    page = seen.enter(place, "ada")
    expect(page.locator("#log tbody tr")).not_to_have_count(0)
    fields = "[...document.querySelectorAll('input, select, textarea')]"
    buttons = "[...document.querySelectorAll('button')]"
    name = "(b.getAttribute('aria-label') || b.textContent).trim()"
    unnamed = page.evaluate(
        f"[...{fields}.filter((f) => !f.labels.length), ...{buttons}.filter((b) => !{name})]"
        ".map((node) => node.outerHTML)"
    )
    assert unnamed == []
    twice = page.evaluate(
        "() => { const ids = [...document.querySelectorAll('[id]')].map((n) => n.id);"
        " return ids.filter((id, i) => ids.indexOf(id) !== i); }"
    )
    assert twice == []


@needs_browser
def test_dark_and_light_follow_the_reader(place: Place, seen: Seen) -> None:
    page = seen.enter(place, "ben")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(colour) != light


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_words_can_be_read_in_both_schemes() -> None:
    """WCAG's 4.5 to 1 for words, 3 to 1 for what is drawn."""
    css = (PAGES / "style.css").read_text(encoding="utf-8")
    light, dark = (
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))
        for block in re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    )
    for colours in (light, light | dark):
        for ground in ("card", "paper", "field"):
            for words in ("ink", "soft", "accent", "bad"):
                assert contrast(colours[words], colours[ground]) >= 4.5, (words, ground)
        assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
        assert contrast(colours["bad"], colours["bad-soft"]) >= 4.5
        assert contrast(colours["ink"], colours["bar"]) >= 3


def test_no_script_makes_markup_of_text_and_nothing_is_from_elsewhere() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|"
        r"createContextualFragment|localStorage|\.style\b|srcdoc|javascript:"
    )
    known = "http://www.w3.org/2000/svg"
    found = [
        file
        for folder in (PAGES, SHARED)
        for file in folder.iterdir()
        if file.name.endswith((".js", ".html", ".css", ".svg"))
    ]
    assert len(found) >= 12
    for file in found:
        text = file.read_text(encoding="utf-8")
        assert not forbidden.search(text), file.name
        assert not re.search(r"(https?:)?//\w", text.replace(known, "").replace("// ", "")), (
            file.name
        )
        if file.name.endswith(".html"):
            assert not re.search(r"\son\w+=|\sstyle=|<style|<script>", text)


def test_a_wheel_has_the_pages() -> None:
    builder: Any = WheelBuilder(str(ROOT))
    inside = {file.distribution_path for file in builder.recurse_included_files()}
    for file in PAGES.iterdir():
        assert f"voile/serve/pages/{file.name}" in inside
    for file in SHARED.iterdir():
        assert f"voile/web/static/{file.name}" in inside
