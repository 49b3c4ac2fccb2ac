"""Table, codebook, hierarchies and risk: what the screens show, do, save and refuse."""

from __future__ import annotations

import contextlib
import json
import random
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import voile
from tests.studio.conftest import RunningStudio, started
from tests.support.browser import VARIANTS, needs_browser, overflow, serious, tab
from tests.support.running import voile as command
from voile.errors import SchemaError, UsageError
from voile.evaluate.codebook import codebook_effects
from voile.evaluate.risk import most_exposed, risk
from voile.inspection import inspect_source
from voile.options.reading import ReadingOptions
from voile.progress import Silent
from voile.publishing import column_hierarchy
from voile.schema import Schema
from voile.studio.listing import listing
from voile.studio.pages import Form, Reply, ScreenPage, Visit, listed_numbers, read_number, rendered
from voile.studio.project import read_project
from voile.studio.running import run_project
from voile.studio.screens import codebook, hierarchies
from voile.studio.screens import risk as risk_screen
from voile.studio.screens import table as table_screen
from voile.studio.state import Studio

HACK = "<img src=x onerror=window.hacked=1>"
COIN = random.Random(22)  # noqa: S311
SCREENS = ("table", "codebook", "hierarchies", "risk")


def messy() -> str:
    """Semicolons, decimal commas, NA, -99, dates in two orders, and a number of each patient."""
    lines = ["patient id;age;weight;town;visit;income;score"]
    for i in range(1500):
        age = "NA" if i % 40 == 7 else COIN.randrange(18, 90)
        weight = f"{COIN.uniform(45, 120):.1f}".replace(".", ",")
        day = f"{COIN.randrange(1, 13):02d}/{COIN.randrange(1, 13):02d}/2021"
        score = -99 if i % 60 == 3 else COIN.randrange(40)
        income = 100 * COIN.randrange(9, 90)
        lines.append(f"P{10000 + i};{age};{weight};T{COIN.randrange(12)};{day};{income};{score}")
    return "\n".join(lines) + "\n"


def wide() -> str:
    rows = [",".join(str(COIN.randrange(2 + j % 9)) for j in range(300)) for _ in range(2000)]
    return "\n".join([",".join(f"q{j}" for j in range(300)), *rows]) + "\n"


def hostile() -> str:
    rows = [f'"{HACK}{COIN.randrange(3)}",it\'s {COIN.randrange(4)},{COIN.randrange(50)}'
            for _ in range(400)]  # fmt: skip
    return "\n".join([f'"{HACK}","a\'b"" & c","</textarea><b>"', *rows]) + "\n"


def houses() -> str:
    people = [f"{1000 + 3 * h},{COIN.randrange(90)},{COIN.choice('fm')},{COIN.choice('abc')}"
              for h in range(300) for _ in range(COIN.randrange(1, 5))]  # fmt: skip
    return "\n".join(["hhid,age,sex,disease", *people]) + "\n"


# ---------------------------------------------------------------------- tasks without a browser


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("look")
    for name, made in {"messy": messy, "wide": wide, "hostile": hostile, "houses": houses}.items():
        (place / f"{name}.csv").write_text(made(), encoding="utf-8")
    (place / "empty.csv").touch()
    (place / "wrong.csv").write_bytes(bytes(range(256)) * 40)
    return place


READ: dict[str, Any] = {"na": True, "dates": "dmy", "null_text": ["-99"]}


def test_the_look_is_that_of_inspect(folder: Path) -> None:
    source = str(folder / "messy.csv")
    data = table_screen.inspect_task(Silent(), source=source, reading={}, stamp=[], kept=[])
    found = inspect_source(source)
    assert {key: data[key] for key in found.to_dict()} == found.to_dict()
    assert {one["what"] for one in data["mends"]} == {"missing", "sentinel", "dates"}
    assert data["suggested"]["null_text"] == ["-99"] and data["suggested"]["na"] is True
    kept = table_screen.inspect_task(
        Silent(), source=source, reading={}, stamp=[], kept=["sentinel:score"]
    )
    assert "sentinel" not in {one["what"] for one in kept["mends"]}
    nulls = {one["name"]: one["nulls"] for one in kept["attributes"]}
    assert nulls["score"] == 0 < nulls["age"]


def test_the_first_rows_are_those_of_the_file(folder: Path) -> None:
    source = str(folder / "messy.csv")
    rows = table_screen.rows_task(Silent(), source=source, reading=READ, stamp=[])
    lines = [line.split(";") for line in (folder / "messy.csv").read_text().splitlines()]
    assert [row["patient id"] for row in rows] == [cells[0] for cells in lines[1:11]]
    assert rows[0]["weight"] == lines[1][2].replace(",", ".") and rows[0]["town"] == lines[1][3]
    assert lines[8][1] == "NA" and rows[7]["age"] is None and lines[4][6] == "-99"
    assert rows[3]["score"] is None


@pytest.mark.parametrize(
    ("text", "is_"),
    [("1,000", 1000.0), ("12,345,678.5", 12345678.5), ("0,5", 0.5), ("2,5", 2.5), ("-2,25", -2.25),
     ("0,125", 0.125), ("72.5", 72.5), ("1e-6", 1e-6)],
)  # fmt: skip
def test_numbers_are_read_as_people_type_them(text: str, is_: float) -> None:
    assert read_number(text) == is_


def test_semicolons_part_numbers_that_have_decimal_commas() -> None:
    assert listed_numbers("0, 10,\n20") == ["0", "10", "20"]
    assert listed_numbers("0; 2,5;\n7") == ["0", "2,5", "7"]
    assert hierarchies.numbers("2,5; 5; 10") == [2.5, 5, 10]


@pytest.mark.parametrize("text", ["1.234,5", "1,2,3", "", "much", "1,0000,000"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="could not convert"):
        read_number(text)


def test_the_codebook_is_that_of_schema(folder: Path) -> None:
    source, columns = str(folder / "messy.csv"), ["age", "weight", "town"]
    given: dict[str, Any] = {"source": source, "reading": READ, "stamp": []}
    data = codebook.infer_task(Silent(), **given, columns=columns, nulls="as-value")
    table = voile.read(source, **READ)
    schema = table.infer(columns, "as-value")
    assert data == {**schema.to_dict(), "problems": []}
    effects = codebook.effects_task(
        Silent(), **given, attributes=data["attributes"], promise={"epsilon": 2}
    )
    assert effects == [one.to_dict() for one in codebook_effects(table, schema, epsilon=2)]
    json.dumps(effects)


def test_a_column_without_a_domain_does_not_hide_the_others(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    place.write_text("a,b\n" + "".join(f"{i % 3},\n" for i in range(30)))
    given: dict[str, Any] = {"source": str(place), "reading": {}, "stamp": []}
    data = codebook.infer_task(Silent(), **given, columns=["a", "b"], nulls="error")
    assert [one["name"] for one in data["attributes"]] == ["a"]
    assert [one["column"] for one in data["problems"]] == ["b"]


@pytest.mark.parametrize("declared", [False, True])
def test_the_hierarchy_is_that_of_the_function(folder: Path, *, declared: bool) -> None:
    source = str(folder / "houses.csv")
    attribute = {"name": "age", "kind": "integer", "range": [0, 110]} if declared else None
    data = hierarchies.build_task(
        Silent(), source=source, reading={}, stamp=[], column="age", attribute=attribute,
        options={"multiples": [10, 20]}, text="",
    )  # fmt: skip
    schema = Schema.from_dict({"attributes": [attribute]}) if attribute else None
    found = column_hierarchy(source, "age", schema=schema, multiples=[10, 20])
    levels = found.to_dict()["levels"]
    assert [one["number"] for one in data["levels"][1:]] == [len(one["groups"]) for one in levels]
    again = hierarchies.build_task(
        Silent(), source=source, reading={}, stamp=[], column="age", attribute=attribute,
        options={"file": "text"}, text=data["csv"],
    )  # fmt: skip
    assert again["csv"] == data["csv"] and again["tree"] == data["tree"]
    rows = {one["label"]: one["rows"] for one in levels[1]["groups"]}
    assert {one["label"]: one["rows"] for one in data["tree"]["under"]} == rows


GRADES = ("none", "mild", "severe", "fatal")


def test_texts_are_put_into_an_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [GRADES[i % 4] for i in range(40)]
    (tmp_path / "p.csv").write_text("\n".join(["grade,ill", *(f"{g},x" for g in rows)]) + "\n")
    studio = Studio(tmp_path)
    try:
        visit = Visit(studio, studio.begin_project("p.csv"))
        assert visit.inspected().wait(60).ok
        visit.change(roles={"grade": "quasi-identifier", "ill": "sensitive"})
        first = shown(hierarchies.show(visit))
        assert "order" in first.context["known"] and "equal_width" not in first.context["known"]
        assert sorted(first.context["built"].wait(60).data["texts"]) == sorted(GRADES)
        asking = form(
            column="grade", way="order", order="\r\n".join(GRADES), number="2", fanout="2"
        )
        page = shown(hierarchies.preview(replace(visit, form=asking)))
        data = page.context["built"].data
        assert data["csv"].splitlines()[0] == "none;none to mild;*"
        assert [one["number"] for one in data["levels"]] == [4, 2, 1] and not data["derived"]
        (call,) = page.calls
        html = rendered(page.template, {"open": visit.open, "project": visit.project,
                                        **page.context})  # fmt: skip
        assert '<option value="order" selected>' in html and "none\nmild\nsevere\nfatal<" in html
        hierarchies.save(replace(visit, form=asking))
        assert (tmp_path / "p.grade.csv").read_text() == data["csv"]
        (tmp_path / "p.grade.csv").unlink()
        listed = hierarchies.ordered_attribute("grade", "\n".join(GRADES))
        Schema.from_dict({"attributes": [listed]}).save(tmp_path / hierarchies.ORDERED)
        monkeypatch.chdir(tmp_path)
        assert command(*shlex.split(call.command())[1:]).returncode == 0
        assert (tmp_path / "p.grade.csv").read_text() == data["csv"]
    finally:
        studio.close()
    given: dict[str, Any] = {"source": str(tmp_path / "p.csv"), "reading": {}, "stamp": [],
                             "column": "grade", "attribute": None}  # fmt: skip
    for text, says in (("none\nmild", "'severe'"), ("none\nnone", "'none' twice")):
        with pytest.raises(SchemaError, match=says) as refused:
            hierarchies.build_task(
                Silent(), **given, options={"order": "text", "equal_width": 2}, text=text
            )
        assert "every value" in refused.value.hint


def test_a_wrong_file_of_arx_is_told_without_a_path_of_ours(folder: Path) -> None:
    given: dict[str, Any] = {"source": str(folder / "houses.csv"), "reading": {}, "stamp": [],
                             "column": "sex", "attribute": None}  # fmt: skip
    for options, text, says in (({"file": "t"}, "f;x;*\nf;y;*\n", "both about 'f'"),
                                ({"file": "t"}, "f;x;*\n", "no path for 'm'"),
                                ({"mapping": "t"}, "a: [", "the text is neither")):  # fmt: skip
        with pytest.raises(SchemaError) as refusal:
            hierarchies.build_task(Silent(), **given, options=options, text=text)
        assert says in refusal.value.message and "voile-" not in refusal.value.message


def test_the_risk_is_that_of_the_function(folder: Path) -> None:
    source = str(folder / "messy.csv")
    qi, sensitive = ["age", "town", "visit"], ["income"]
    data = risk_screen.measure_task(
        Silent(), source=source, reading=READ, stamp=[], qi=qi, sensitive=sensitive,
        options={"threshold": 0.1},
    )  # fmt: skip
    table = voile.read(source, **READ)
    found = risk(table, qi=qi, sensitive=sensitive, threshold=0.1)
    assert data["headline"] == found.headline() and data["k"] == found.k
    assert sum(one["rows"] for one in data["sizes"]) == 1500
    people = most_exposed(table, qi=qi, sensitive=sensitive)
    assert data["people"] == [one.to_dict() for one in people] and people
    json.dumps(data)


# ---------------------------------------------------------------------- forms without a browser


def shown(reply: Reply) -> ScreenPage:
    assert isinstance(reply, ScreenPage)
    return reply


def form(**fields: str | list[str]) -> Form:
    return Form({name: [value] if isinstance(value, str) else value
                 for name, value in fields.items()})  # fmt: skip


BEFORE = {"name": "age", "kind": "integer", "range": [0, 9], "ordered": True, "public": "active"}


@pytest.mark.parametrize(
    ("fields", "made"),
    [
        ({"way": "range", "low": "0", "high": "110"}, {"range": [0, 110]}),
        ({"way": "values", "text": "1\r\n 2\n\n3"}, {"values": [1, 2, 3]}),
        ({"way": "bins", "edges": "0, 20;40"}, {"bins": [0, 20, 40]}),
        ({"way": "bins", "make": "yes", "count": "5", "first": "0", "last": "100"},
         {"bins": [0, 20, 40, 60, 80, 100]}),
        ({"way": "range", "low": "0", "high": "9", "null": "yes", "clamp": "yes"},
         {"range": [0, 9], "null": True, "clamp": True}),
    ],
)  # fmt: skip
def test_a_form_is_an_entry_of_a_codebook(fields: dict[str, str], made: dict[str, Any]) -> None:
    found = codebook.read_entry(form(**fields), BEFORE)
    rest = {"name": "age", "kind": "integer", "null": False, "ordered": True, "public": "declared"}
    assert found == {**rest, **made}
    Schema.from_dict({"attributes": [found]})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"way": "range", "low": "0", "high": "x9"}, "'age': 'x9' is not a whole number"),
        ({"way": "values", "text": "1\n1.5"}, "'age': '1.5'"),
        ({"way": "interval", "low": "0", "high": "9"}, "'interval' is not for kind integer"),
        ({"way": "bins", "make": "yes", "count": "0"}, "'0' bins"),
    ],
)
def test_a_wrong_entry_is_refused_by_column_and_value(fields: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError) as refusal:
        codebook.read_entry(form(**fields), BEFORE)
    assert says in refusal.value.message


def test_other_is_listed_by_itself() -> None:
    before = {**BEFORE, "kind": "categorical", "ordered": False}
    found = codebook.read_entry(form(way="values", text="a\nb", other="rest"), before)
    assert found["values"] == ["a", "b", "rest"] and found["other"] == "rest"


def test_long_lists_come_in_pages() -> None:
    items = [{"name": f"q{i}", "kind": "integer", "role": "other"} for i in range(300)]
    assert len(listing(items, Form()).items) == 60 and listing(items, Form()).pages == 5
    assert [one["name"] for one in listing(items, form(page="5")).items][-1] == "q299"
    assert listing(items, form(page="99")).page == 5 and listing(items, form(page="x")).page == 1
    assert [one["name"] for one in listing(items, form(find="Q17")).items] == [
        "q17", *(f"q{i}" for i in range(170, 180))
    ]  # fmt: skip
    assert listing(items, form(find="other")).found == 300


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[RunningStudio]:
    with started(folder) as found:
        yield found


@pytest.fixture
def opened(running: RunningStudio) -> Callable[[Page, str], str]:
    """Opens a table by typing its name, and gives the address of its project."""

    def open_(page: Page, name: str) -> str:
        page.goto(running.url)
        page.fill("#path", name)
        page.get_by_role("button", name="Open", exact=True).click()
        page.wait_for_url("**/p/**")
        url = page.url.rpartition("/")[0] if page.url.endswith("/table") else page.url
        ended(page)
        return url

    return open_


def ended(page: Page) -> None:
    """Wait until no work is under way."""
    page.wait_for_selector("main h1")
    page.wait_for_function("() => !document.querySelector('.job progress')", timeout=60_000)


def go(page: Page, url: str, screen: str) -> None:
    """A screen, when its work has ended."""
    page.goto(f"{url}/{screen}")
    ended(page)


def calls(page: Page) -> list[str]:
    return page.locator(".calls pre code").all_text_contents()


def run_calls(page: Page, folder: Path) -> Any:
    """Both calls that a page shows do what they say; what the command tells."""
    shell, python = calls(page)
    done = command(*shlex.split(shell)[1:], "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    for file in folder.glob("*.codebook.yaml"):
        file.unlink()
    with contextlib.chdir(folder):
        exec(compile(python, "shown", "exec"), {})  # noqa: S102  (what the page shows)
    return json.loads(done.stdout)


@needs_browser
def test_from_a_messy_table_to_its_risk(
    browser: Browser, opened: Callable[[Page, str], str], folder: Path
) -> None:
    with tab(browser) as seen:
        page = seen.page
        url = opened(page, "messy.csv")
        project = folder / "messy.voile-project"
        walk_table(page, project)
        assert run_calls(page, folder)["rows"] == 1500
        page.get_by_role("button", name="Show the first rows").click()
        rows = page.locator("table.rows")
        expect(rows.locator("tbody tr")).to_have_count(10)
        expect(rows.locator("tbody tr").first).to_contain_text("P10000")
        expect(rows.locator("tbody tr").nth(7).locator("td").nth(1)).to_have_text("missing")
        assert "P10000" not in project.read_text()
        assert run_calls(page, folder)["rows"] == 1500
        walk_codebook(page, url, project, folder)
        walk_hierarchies(page, url, project, folder)
        go(page, url, "risk")
        chosen = read_project(project)
        qi, sensitive = chosen.named("quasi-identifier"), chosen.named("sensitive")
        table = voile.read(folder / "messy.csv", **chosen.reading)
        found = risk(table, qi=qi, sensitive=sensitive)
        expect(page.locator(".headline")).to_have_text(found.headline())
        expect(page.locator(".people li").first).to_contain_text("Only one row has")
        expect(page.locator("main")).to_contain_text("For you only")
        page.wait_for_selector(".chart canvas")
        assert run_calls(page, folder)["k"] == found.k
        page.fill("#threshold", "2")
        page.get_by_role("button", name="Measure").click()
        expect(page.locator("#problem")).to_contain_text("'2' is not above 0")
        assert not seen.errors
    published(project, folder)


def walk_table(page: Page, project: Path) -> None:
    """Mend, give roles, and say what becomes of missing values."""
    roles = read_project(project).roles
    assert roles["patient id"] == "identifier" and roles["income"] == "sensitive"
    assert roles["age"] == "quasi-identifier" and len(roles) == 7
    page.get_by_role("button", name="Mend all").click()
    expect(page.get_by_role("button", name="Mend all")).to_have_count(0)
    ended(page)
    chosen = read_project(project)
    assert chosen.reading["na"] is True and chosen.reading["null_text"] == ["-99"]
    assert chosen.reading["dates"] in ("dmy", "mdy") and chosen.nulls == "as-value"
    expect(page.locator("select.role")).to_have_count(7)
    for name in ("weight", "score"):
        page.get_by_label(f"Tick {name}", exact=True).check()
    page.select_option("#bulk-role", "other")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_label("Role of score")).to_have_value("other")
    assert read_project(project).named("other") == ["weight", "score"]
    page.get_by_label("Role of score").select_option("sensitive")
    expect(page.get_by_label("Role of score")).to_have_class("role sensitive")
    assert read_project(project).roles["score"] == "sensitive"
    page.get_by_label("Leave out rows").check()
    expect(page.locator("input[value=drop]")).to_be_checked()
    wait_for(lambda: read_project(project).nulls == "drop")
    page.get_by_label("Missing is one more value").check()
    wait_for(lambda: read_project(project).nulls == "as-value")


def wait_for(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 15
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


def walk_codebook(page: Page, url: str, project: Path, folder: Path) -> None:
    """Declare, make bins, get it wrong, load a codebook and download it."""
    go(page, url, "codebook")
    assert "There is nothing to do here" in page.inner_text("main")
    page.get_by_text("Declare them", exact=True).click()
    expect(page.locator("details.entry")).to_have_count(6, timeout=60_000)
    ended(page)
    assert {one["name"] for one in read_project(project).attributes} == {
        "age", "weight", "town", "visit", "income", "score"
    }  # fmt: skip
    assert run_calls(page, folder)["attributes"]
    entry = page.locator("details.entry", has_text="age").first
    entry.locator("summary").first.click()
    entry.get_by_label("The values are").select_option("bins")
    entry.get_by_label("Edges of the bins").fill("18, x, 99")
    entry.get_by_role("button", name="Save age").click()
    expect(page.locator("#problem")).to_contain_text("column 'age': 'x' is not a whole number")
    entry.get_by_label("Edges of the bins").fill("20, 40, 60")
    entry.get_by_role("button", name="Save age").click()
    expect(entry.locator("summary").first).to_contain_text("declared", timeout=60_000)
    ended(page)
    expect(entry.locator("summary").first).to_contain_text("rows outside")
    age = next(one for one in read_project(project).attributes if one["name"] == "age")
    assert age["bins"] == [20, 40, 60] and age["public"] == "declared"
    page.get_by_text("Load a codebook").click()
    page.fill("#yaml", "attributes:\n- {name: size, kind: integer, range: [0, 1]}")
    page.get_by_role("button", name="Use it").click()
    expect(page.locator("#problem")).to_contain_text("'size', the table has none")
    page.fill("#yaml", "attributes:\n- {name: age, kind: integer, range: [18, 89], 'null': true}")
    page.get_by_role("button", name="Use it").click()
    wait_for(lambda: {"range": [18, 89]}.items() <= age_of(project).items())
    ended(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the codebook").click()
    schema = Schema.open(download.value.path())
    assert schema.to_dict()["attributes"][0] == age_of(project)


def age_of(project: Path) -> dict[str, Any]:
    return next(one for one in read_project(project).attributes if one["name"] == "age")


def walk_hierarchies(page: Page, url: str, project: Path, folder: Path) -> None:
    """Build ranges, save them, and see a wrong text refused."""
    go(page, url, "hierarchies?column=age")
    page.select_option("#h-way", "multiples")
    page.fill("#h-widths", "10, 20")
    page.get_by_role("button", name="Preview").click()
    page.wait_for_url("**way=multiples**")
    ended(page)
    expect(page.locator(".tree")).to_contain_text("20-39")
    page.get_by_role("button", name="Save for age").click()
    expect(page.get_by_text("saved as messy.age.csv")).to_be_visible(timeout=60_000)
    assert read_project(project).hierarchies == {"age": "messy.age.csv"}
    assert (folder / "messy.age.csv").read_text().splitlines()[0] == "18;10-19;0-19;*"
    with page.expect_download() as download:
        page.get_by_role("link", name="Download messy.age.csv").click()
    assert download.value.path().read_bytes() == (folder / "messy.age.csv").read_bytes()
    go(page, url, "hierarchies?column=town&way=mask&side=right&anew=yes")
    schema = Schema.from_dict({"attributes": read_project(project).attributes})
    schema.save(folder / "messy.codebook.yaml", overwrite=True)
    shell, _ = calls(page)
    done = command(*shlex.split(shell)[1:], "--json", cwd=folder)
    assert done.returncode == 0 and json.loads(done.stdout)["built"] == "--mask", done.stderr
    (folder / "messy.codebook.yaml").unlink()
    page.select_option("#h-way", "file")
    page.fill("#h-text", "T1;x\n")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".problem").first).to_contain_text("has no path for", timeout=60_000)
    assert "way=mask" in page.url


def published(project: Path, folder: Path) -> None:
    """What the screens saved is what is published, from wherever it is run."""
    data = json.loads(project.read_text())
    other = project.with_name("again.voile-project")
    other.write_text(json.dumps({**data, "method": "fulldomain", "options": {"k": 3,
                     "suppression": 0.9}, "output": "again.voile"}))  # fmt: skip
    run_project(other, overwrite=True, progress=Silent())
    release = voile.open(folder / "again.voile")
    assert "patient id" not in release.schema.names
    assert {"age", "town", "visit"} == set(release.qi)  # type: ignore[attr-defined]


@needs_browser
@pytest.mark.parametrize(("width", "dark"), VARIANTS)
def test_no_screen_has_a_serious_flaw(
    width: int, dark: bool, browser: Browser, opened: Callable[[Page, str], str]
) -> None:
    with tab(browser, width=width, dark=dark) as seen:
        url = opened(seen.page, "houses.csv")
        for screen in SCREENS:
            go(seen.page, url, screen)
            if screen == "codebook":
                seen.page.get_by_text("Declare them", exact=True).click()
                expect(seen.page.locator("details.entry")).to_have_count(3, timeout=60_000)
                ended(seen.page)
                seen.page.locator("details.entry summary").first.click()
            assert serious(seen.page) == [], screen
            assert overflow(seen.page) <= 0, screen
        assert not seen.errors


@needs_browser
def test_who_is_a_person(
    browser: Browser, opened: Callable[[Page, str], str], folder: Path
) -> None:
    with tab(browser) as seen:
        page = seen.page
        opened(page, "houses.csv")
        project = folder / "houses.voile-project"
        page.get_by_role("button", name="Use hhid to tell people apart").click()
        wait_for(lambda: read_project(project).person == "hhid")
        page.get_by_label("whole households are protected").check()
        page.fill("#person-rows", "3")
        page.locator("section", has_text="Who is a person?").get_by_role("button").last.click()
        wait_for(lambda: read_project(project).unit == "household")
        chosen = read_project(project)
        assert chosen.rows_per_person == 3 and chosen.roles["hhid"] == "identifier"
        assert chosen.columns(["hhid", "age"]) == ["age"]
        page.get_by_label("Each row is one person").check()
        page.locator("section", has_text="Who is a person?").get_by_role("button").last.click()
        wait_for(lambda: read_project(project).person is None)


@needs_browser
def test_hostile_names_and_values_stay_text(
    browser: Browser, opened: Callable[[Page, str], str], folder: Path
) -> None:
    with tab(browser) as seen:
        page = seen.page
        url = opened(page, "hostile.csv")
        for screen in SCREENS:
            go(page, url, screen)
            if screen == "codebook":
                page.get_by_text("Declare them", exact=True).click()
                expect(page.locator("details.entry")).to_have_count(3, timeout=60_000)
                ended(page)
            assert HACK in page.inner_text("main"), screen
        go(page, url, "table")
        page.get_by_label(f"Role of {HACK}").select_option("sensitive")
        project = folder / "hostile.voile-project"
        wait_for(lambda: read_project(project).roles[HACK] == "sensitive")
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main b b").count() == 0
        assert not seen.errors


@needs_browser
def test_three_hundred_columns_stay_quick(
    browser: Browser, opened: Callable[[Page, str], str], folder: Path
) -> None:
    with tab(browser) as seen:
        page = seen.page
        opened(page, "wide.csv")
        expect(page.locator("select.role")).to_have_count(60)
        page.get_by_label("Page 5").click()
        expect(page.get_by_label("Role of q299")).to_be_visible()
        page.fill("#find", "q17")
        expect(page.locator("select.role")).to_have_count(11)
        page.get_by_role("button", name="Tick all shown").click()
        page.select_option("#bulk-role", "identifier")
        page.get_by_role("button", name="Set", exact=True).click()
        project = folder / "wide.voile-project"
        wait_for(lambda: len(read_project(project).named("identifier")) == 11)
        expect(page.locator("select.role")).to_have_count(11)
        begun = time.monotonic()
        page.get_by_label("Role of q17", exact=True).select_option("other")
        expect(page.get_by_label("Role of q17", exact=True)).to_have_class("role other")
        assert time.monotonic() - begun < 5
        assert not seen.errors


@needs_browser
@pytest.mark.parametrize(
    ("name", "says"), [("empty.csv", "empty"), ("wrong.csv", ""), ("absent.csv", "no file")]
)
def test_a_wrong_file_is_told(
    name: str, says: str, browser: Browser, running: RunningStudio
) -> None:
    with tab(browser) as seen:
        page = seen.page
        page.goto(running.url)
        page.fill("#path", name)
        page.get_by_role("button", name="Open", exact=True).click()
        expect(page.locator(".problem")).to_be_visible(timeout=60_000)
        assert says in page.locator(".problem").inner_text()
        assert "Traceback" not in page.inner_text("main")
        if name == "wrong.csv":
            expect(page.get_by_label("Between cells")).to_be_visible()


@needs_browser
def test_letters_of_another_encoding_take_one_click(
    browser: Browser, running: RunningStudio, folder: Path
) -> None:
    lines = ["Straße;Alter;leer", *(f"Süd {n % 3};{n % 40};" for n in range(200))]
    (folder / "latin.csv").write_bytes("\n".join(lines).encode("cp1252"))
    with tab(browser) as seen:
        page = seen.page
        page.goto(running.url)
        page.fill("#path", "latin.csv")
        page.get_by_role("button", name="Open", exact=True).click()
        page.get_by_role("button", name="Read its letters as cp1252").click()
        expect(page.get_by_label("Role of Straße")).to_be_visible(timeout=60_000)
        expect(page.get_by_label("Role of leer")).to_have_value("identifier")  # no row has a value
        page.get_by_role("link", name="Next: Codebook").click()
        expect(page.locator("h1")).to_have_text("Codebook")
        assert not seen.errors


@needs_browser
def test_a_table_is_opened_mended_and_left_by_keys_alone(
    browser: Browser, running: RunningStudio
) -> None:
    def reach(text: str) -> None:
        """Tab to what has this text or id, as nobody with a mouse would."""
        words = "[document.activeElement.id, document.activeElement.textContent.trim()]"
        for _ in range(80):
            page.keyboard.press("Tab")
            if text in page.evaluate(words):
                return
        raise AssertionError(f"the keyboard does not come to {text!r}")

    with tab(browser) as seen:
        page = seen.page
        page.goto(running.url)
        reach("path")
        page.keyboard.type("messy.csv")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Role of age")).to_be_visible(timeout=60_000)
        reach("bulk-role")
        page.keyboard.press("ArrowDown")
        reach("Next: Codebook")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Codebook")
        assert not seen.errors


@pytest.mark.parametrize(
    ("hint", "options"),
    [("add encoding='cp1252'", [("encoding", "cp1252")]), ("add source='x'", []), ("", []),
     ("use separator=';' or header='no'", [("separator", ";"), ("header", "no")])],
)  # fmt: skip
def test_hints_at_how_a_file_is_read_are_buttons(hint: str, options: list[Any]) -> None:
    assert [(name, value) for name, value, _ in table_screen.hinted(hint)] == options


def test_the_reading_of_a_form_is_strict() -> None:
    with pytest.raises(UsageError, match="not a whole number"):
        table_screen.whole("1e9", "lines")
    assert ReadingOptions(separator="tab").separator == "\t"
