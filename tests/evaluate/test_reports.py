"""Every report is a page of the same shell: its numbers, its pictures, and what to run next."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from playwright.sync_api import Browser

from tests.support.browser import grave_problems, launched, needs_browser, opened
from tests.support.paths import ROOT
from tests.support.running import voile
from voile.cli import app
from voile.evaluate.drawing import METHOD_COLOURS
from voile.evaluate.page_pictures import hexadecimal, in_the_dark, themed
from voile.evaluate.pages import DARK, LIGHT

pytest.importorskip("vl_convert")
MARKUP = "<img src=x onerror=window.hacked=1>"
"""What must stay text wherever it is shown."""
TOWNS = ["Aachen", "Bergen", "Cork", MARKUP]
MOST = 150_000
"""Bytes of a page; with Vega's script it would have 900,000."""


@dataclass
class Seen(HTMLParser):
    """What a reader finds in a page."""

    text: str
    attributes: dict[str, dict[str, str | None]] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.attributes.setdefault(tag, dict(attrs))
        if tag not in ("meta", "br", "img"):
            self.inside.append(tag)
            self.words.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        for tag in set(self.inside):
            self.words[tag][-1] += data

    @property
    def numbers(self) -> list[float]:
        """All numbers of the tables; what is in per cent as a share."""
        found = []
        for cell in [*self.words.get("td", []), *self.words.get("th", [])]:
            for text, unit in re.findall(r"(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)( ?%)?", cell):
                value = float(text.replace(",", ""))
                found.append(value / 100 if unit else value)
        return found

    def has(self, value: float, within: float = 6e-3) -> bool:
        """Whether a number stands in a table, to the digits that are shown."""
        return any(abs(value - n) <= within * max(abs(value), abs(n)) + 1e-9 for n in self.numbers)


@dataclass(frozen=True)
class Written:
    """A page, and what the command says with --json."""

    path: Path
    told: Any

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def seen(self) -> Seen:
        return Seen(self.text)


def flat(data: Any, *names: str) -> list[float]:
    """The values of these keys."""
    return [float(data[name]) for name in names if data[name] is not None]


NUMBERS: dict[str, Callable[[Any], list[float]]] = {
    "plan": lambda told: [
        *flat(told, "prior", "posterior", "retention", "noise", "epsilon", "expected_error"),
        *(error["mean"] for error in told["errors"] if error["mean"]),
    ],
    "comparison": lambda told: [
        *(one["expected_error"] for one in told["methods"]),
        told["by_epsilon"][0]["epsilon"], told["by_epsilon"][-1]["epsilon"],
    ],
    "local": lambda told: [
        *(flat(column, "retention", "epsilon")[i] for column in told["columns"] for i in (0, 1)),
        *(error["share"] for error in told["errors"]),
    ],
    "boundary": lambda told: [
        told["rows"], told["density"], told["position"]["prior"], told["position"]["posterior"],
        *flat(told["plane"][0], "prior", "possible_from"),
    ],
    "attack": lambda told: [
        *flat(told["summary"], "tuples", "covered", "positive_leaks", "promise_broken"),
        *(belief["posterior"] for belief in told["targets"][:5]),
    ],
    "risk": lambda told: [
        float(told["k"]), told["prosecutor"]["largest"], told["prosecutor"]["average"],
        *(float(g["rows"]) for g in told["class_sizes"] if g["rows"]),
    ],
    "loss": lambda told: [
        *flat(told, "p_loss", "p_loss_revealed", "u_loss", "u_loss_trivial", "gen_iloss", "kl"),
        told["accuracy"]["release"],
    ],
    "frontier": lambda told: [
        *(value for p in told["points"] for value in (p["p_loss"], round(p["u_loss"], 5))),
        told["raw"]["p_loss"], told["trivial"]["u_loss"],
    ],
    "reproduce": lambda told: [c["mean"] for c in told["measured"].values() if "mean" in c],
    "account": lambda told: [
        unit["epsilon"] for unit in told[0]["total"]["units"].values() if unit["epsilon"]
    ],
    "beliefs": lambda told: [one["posterior"] for one in told["bounds"]],
    "reconstruct": lambda told: [a["recovered"] for a in told["attempts"]],
    "simulate": lambda told: [told["bounds"]["end"], told["beside"]["bounds"]["end"]],
    "tree": lambda told: [rule["share"] for rule in told["rules"]],
}  # fmt: skip
"""What the tables of each page must have, out of what --json gives."""
WITHIN = {"comparison": 0.06, "simulate": 0.06}
"""Where fewer than three digits are shown."""
SCHEMA = {
    "attributes": [
        {"name": "age", "kind": "integer", "range": [20, 59]},
        {"name": "sex", "kind": "categorical", "values": ["f", "m"]},
        {"name": "town", "kind": "categorical", "values": TOWNS},
        {"name": "ill", "kind": "categorical", "values": ["no", "flu", "cancer"]},
    ]
}


def table_of_people(path: Path, rows: int = 3000) -> None:
    chance = np.random.default_rng(3)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "sex", "town", "ill"])
        for _ in range(rows):
            town = TOWNS[chance.choice(4, p=[0.4, 0.3, 0.2, 0.1])]
            ill = ["no", "flu", "cancer"][chance.choice(3, p=[0.7, 0.2, 0.1])]
            writer.writerow([chance.integers(20, 60), ["f", "m"][chance.integers(2)], town, ill])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    """Every report, made by its command."""
    place = tmp_path_factory.mktemp("reports")
    table_of_people(place / "people.csv")
    (place / "book.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    with (place / "targets.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [["name", "age", "sex", "town", "ill"], [MARKUP, 30, "f", "Cork", ""]]
        )

    def run(*words: str) -> Any:
        done = voile(*words, "--json", cwd=place)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    register = ["--register", str(place / "register.db")]
    kept = ["publish", "people.csv", *register]
    run(*kept, "--prior", "0.05", "--posterior", "0.3", "-o", "view.voile")
    run(*kept, "--method", "marginals", "--epsilon", "1", "-o", "counts.voile")
    run(*kept, "--method", "mondrian", "--k", "10", "--qi", "age,sex,town", "--sensitive", "ill",
        "-o", "classes.voile")  # fmt: skip
    run("perturb", "people.csv", "-o", "rows.voile", "--retention", "0.6", *register)
    known = ["--qi", "age,sex,town", "--sensitive", "ill"]
    commands: dict[str, list[str]] = {
        "plan": ["plan", "people.csv", "--method", "alphabeta", "--prior", "0.05", "--max-error",
                 "60"],
        "comparison": ["plan", "people.csv", "--epsilon", "5", "--schema", "book.json"],
        "local": ["plan", "people.csv", "--local", "--epsilon", "2"],
        "boundary": ["boundary", "people.csv", "--prior", "0.05"],
        "attack": ["attack", "view.voile", "--targets", "targets.csv"],
        "risk": ["risk", "people.csv", *known],
        "loss": ["loss", "people.csv", "classes.voile"],
        "account": ["register", "show", "people", *register],
        "beliefs": ["attack", "counts.voile"],
        "reconstruct": ["attack", "reconstruct", "--rows", "60", "--runs", "2", "--simulate-seed",
                        "1"],
        "simulate": ["sulq", "simulate", "--walkers", "300", "--simulate-seed", "1"],
        "tree": ["tree", "rows.voile", "--target", "sex", "--depth", "2", "--min-support", "20"],
    }  # fmt: skip
    found = {
        name: Written(place / f"{name}.html", run(*words, "-o", f"{name}.html"))
        for name, words in commands.items()
    }
    told = run("frontier", "people.csv", *known, "-o", "f", "--grid", "k=5,50;t=0.1", "--methods",
               "mondrian,trivial", "--min-support", "0.1")  # fmt: skip
    found["frontier"] = Written(place / "f/frontier.html", told)
    told = run("reproduce", "vldb07-example42", "--quick", "-o", "papers")
    found["reproduce"] = Written(place / "papers/index.html", told)
    assert set(found) == set(NUMBERS)
    return found


@pytest.mark.parametrize("name", NUMBERS)
def test_a_page_says_what_it_is_in_its_language(written: dict[str, Written], name: str) -> None:
    seen = written[name].seen
    assert written[name].text.startswith("<!doctype html>")
    assert seen.attributes["html"]["lang"] == "en"
    assert seen.words["title"][0].strip()
    assert len(seen.words["h1"]) == 1 and seen.words["h1"][0].strip()
    metas = [attributes for tag, attributes in seen.tags if tag == "meta"]
    assert {"charset": "utf-8"} in metas
    assert any(one.get("name") == "viewport" for one in metas)
    assert len(seen.words["table"]) == len(seen.words["caption"]) == len(seen.words["thead"])
    assert all(one.get("scope") in ("col", "row") for tag, one in seen.tags if tag == "th")


@pytest.mark.parametrize("name", NUMBERS)
def test_its_tables_have_the_numbers_of_json(written: dict[str, Written], name: str) -> None:
    seen, wanted = written[name].seen, NUMBERS[name](written[name].told)
    assert wanted
    within = WITHIN.get(name, 6e-3)
    assert [value for value in wanted if not seen.has(value, within)] == []
    assert not seen.has(1.2345e17, within)


@pytest.mark.parametrize("name", NUMBERS)
def test_it_is_small_and_asks_nothing_of_the_network(
    written: dict[str, Written], name: str
) -> None:
    text, seen = written[name].text, written[name].seen
    assert len(text.encode()) < MOST
    links = [
        value
        for _, attributes in seen.tags
        for key, value in attributes.items()
        if key in ("src", "href", "xlink:href", "srcset", "data", "action")
    ]
    assert not [value for value in links if value and re.match(r"(?i)\s*(https?:|//)", value)]
    assert not re.search(r"@import|url\(\s*[\"']?(https?:|//)", text)
    named = "Content-Security-Policy"
    policies = [one["content"] for tag, one in seen.tags
                if tag == "meta" and one.get("http-equiv") == named]  # fmt: skip
    assert len(policies) == 1 and (policies[0] or "").startswith("default-src 'none'")
    assert "script" not in seen.attributes
    assert ("img", {"src": "x", "onerror": "window.hacked=1"}) not in seen.tags


def parsed(line: str) -> str:
    """The command that a line calls, with all its words read; a wrong word is an error."""
    words = shlex.split(line)
    assert words[0] == "voile"
    command: Any = typer.main.get_command(app)
    context, rest = None, words[1:]
    while hasattr(command, "resolve_command"):
        context = command.make_context("voile", list(rest), parent=context)
        left = [*context._protected_args, *context.args]
        _, command, rest = command.resolve_command(context, left)
    command.make_context("voile", list(rest), parent=context)
    return str(command.name)


def test_a_wrong_command_is_not_read() -> None:
    assert parsed("voile plan people.csv --epsilon 1") == "plan"
    for line in ("voile plan people.csv --no-such-flag 1", "voile plann people.csv"):
        with pytest.raises(Exception, match=r"(?i)no such"):
            parsed(line)


@pytest.mark.parametrize("name", NUMBERS)
def test_what_to_run_next_can_be_run(written: dict[str, Written], name: str) -> None:
    seen = written[name].seen
    (section,) = [one for one in seen.words["section"] if one.startswith("Next")]
    commands = [line for line in seen.words["pre"] if line in section]
    assert commands
    for line in commands:
        assert parsed(line)


NEXT = {"plan": "publish", "comparison": "publish", "boundary": "plan", "risk": "frontier",
        "loss": "frontier", "attack": "attack"}  # fmt: skip


@pytest.mark.parametrize("name", NEXT)
def test_the_next_command_runs_where_the_report_was_made(
    written: dict[str, Written], name: str
) -> None:
    place = written[name].path.parent
    line = next(x for x in written[name].seen.words["pre"] if x.startswith(f"voile {NEXT[name]}"))
    more = {
        "publish": ["-o", f"{name}.voile", "--no-register", "--overwrite"]
        + ["--yes"] * (name == "comparison"),
        "frontier": ["--grid", "k=50", "--methods", "trivial", "--overwrite"],
    }.get(NEXT[name], [])
    done = voile(*shlex.split(line)[1:], *more, "--json", cwd=place)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------------- endings


PICTURED = {
    "risk": ["risk", "people.csv", "--qi", "age,sex", "--sensitive", "ill"],
    "loss": ["loss", "people.csv", "classes.voile"],
    "attack": ["attack", "view.voile", "--targets", "targets.csv"],
    "plan": ["plan", "people.csv", "--method", "alphabeta", "--prior", "0.05"],
    "boundary": ["boundary", "people.csv"],
}
STARTS = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.parametrize("name", PICTURED)
def test_the_name_of_the_file_says_what_is_written(
    written: dict[str, Written], tmp_path: Path, name: str
) -> None:
    place = written["risk"].path.parent
    for ending, start in STARTS.items():
        target = tmp_path / f"{name}.{ending}"
        done = voile(*PICTURED[name], "-o", str(target), cwd=place)
        assert done.returncode == 0, done.stderr
        assert target.read_bytes().startswith(start)
    again = voile(*PICTURED[name], "-o", str(tmp_path / f"{name}.svg"), cwd=place)
    assert again.returncode == 2 and "exists already" in again.stderr
    wrong = voile(*PICTURED[name], "-o", str(tmp_path / f"{name}.bmp"), cwd=place)
    assert wrong.returncode == 2 and "ends in .bmp" in wrong.stderr


# ---------------------------------------------------------------------- colours


def test_the_palette_is_that_of_a_servers_pages() -> None:
    style = (ROOT / "src/voile/serve/pages/style.css").read_text(encoding="utf-8")
    light, dark = style.split("prefers-color-scheme: dark", 1)
    for colours, text in ((LIGHT, light), (DARK, dark)):
        for name, value in colours.items():
            assert f"--{name}: {value};" in text, name


def brightness(colour: str) -> float:
    """WCAG's relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((brightness(one), brightness(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colour", METHOD_COLOURS)
def test_lines_are_seen_in_the_dark(colour: str) -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast(in_the_dark(colour[1:].lower()), DARK["card"]) >= 4.5


def test_colours_of_a_picture_become_variables() -> None:
    found = themed(
        '<path fill="#0072B2" stroke="white"/><path fill="none" stroke="rgb(1, 2, 255)"/>'
    )
    assert found == (
        '<path fill="var(--c0072b2,#0072B2)" stroke="var(--cffffff,white)"/>'
        '<path fill="none" stroke="var(--c0102ff,rgb(1, 2, 255))"/>'
    )
    assert hexadecimal("#ABC") == "#aabbcc"


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


@needs_browser
@pytest.mark.parametrize("name", NUMBERS)
def test_everybody_can_read_it(written: dict[str, Written], browser: Browser, name: str) -> None:
    """Light and dark, on a phone and on a desk: nothing serious, and no scrolling sideways."""
    url = written[name].path.as_uri()
    for scheme in ("light", "dark"):
        for width in (360, 1280):
            with opened(browser, url, scheme=scheme, width=width) as page:
                assert grave_problems(page) == [], (scheme, width)
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                assert page.evaluate("window.hacked") is None
                ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert (brightness(hexadecimal(ground)) > 0.5) == (scheme == "light")


@needs_browser
def test_axe_finds_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<!doctype html><html><body><img src='data:,'><p>text</p></body></html>")
    with opened(browser, bad.as_uri(), scheme="light", width=360) as page:
        assert {"image-alt", "html-has-lang"} <= {rule for rule, _ in grave_problems(page)}


@needs_browser
def test_a_point_of_the_frontier_leads_to_its_row(
    written: dict[str, Written], browser: Browser
) -> None:
    report = written["frontier"]
    with opened(browser, report.path.as_uri(), scheme="light", width=1280) as page:
        links = page.locator("svg a")
        assert links.count() == len(report.told["points"])
        links.last.focus()
        page.keyboard.press("Enter")
        place = page.evaluate("location.hash")
        number = int(place.removeprefix("#release-"))
        row = page.locator("tr:target")
        assert f"{report.told['points'][number - 1]['p_loss']:.4f}" in (row.text_content() or "")
        command = row.locator("code").text_content()
        assert command == report.told["points"][number - 1]["command"]
