"""Every screen with a table that is hostile and wide at once: axe finds nothing, nothing runs."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import voile
from tests.studio.conftest import RunningStudio, started
from tests.support.browser import needs_browser, overflow, serious, tab
from tests.support.soak import SOAK
from voile.studio.screens import SCREENS

HACK = "<img src=x onerror=window.hacked=1>"
COLUMNS = 300
pytestmark = needs_browser


def write(folder: Path) -> None:
    """Names and values that are HTML, in 300 columns; a release of three of them, and a project."""
    coins = random.Random(10)  # noqa: S311
    names = [f"{HACK}{j}" for j in range(COLUMNS - 1)] + ["</script><b>&amp;"]
    rows = [[f"{HACK}{coins.randrange(2 + j % 5)}" for j in range(COLUMNS)] for _ in range(150)]
    with (folder / "wide.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    roles = dict.fromkeys(names, "identifier")
    roles |= {names[0]: "quasi-identifier", names[1]: "quasi-identifier", names[-1]: "sensitive"}
    project = {"format": 1, "source": "wide.csv", "roles": roles, "options": {"epsilon": 10.0}}
    (folder / "wide.voile-project").write_text(json.dumps(project), encoding="utf-8")
    voile.publish(
        str(folder / "wide.csv"), "full-table", columns=[names[0], names[-1]], epsilon=10.0,
        to=folder / "wide.voile", simulate_seed=1, register=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    folder = tmp_path_factory.mktemp("hostile")
    write(folder)
    with started(folder, "wide.voile-project") as found:
        yield found


def settled(page: Page) -> None:
    """Wait until no work is under way."""
    page.wait_for_selector("main h1")
    expect(page.locator(".job progress")).to_have_count(0, timeout=150_000)


LOOKS = [(1280, False), *([(1280, True), (360, False), (360, True)] if SOAK else [])]


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_axe_finds_nothing_on_any_screen(
    running: RunningStudio, browser: Browser, width: int, dark: bool
) -> None:
    found: dict[str, Any] = {}
    with tab(browser, width=width, dark=dark) as seen:
        page = seen.page
        page.goto(running.url)
        screens = [f"p/wide/{screen.name}" for screen in SCREENS]
        for where in ("", *screens, "servers", "r/wide"):
            page.goto(f"{running.base}/{where}")
            settled(page)
            wrong = serious(page) + [f"{n} pixels too wide" for n in [overflow(page)] if n > 0]
            found |= {where: wrong} if wrong else {}
            assert page.evaluate("() => window.hacked === undefined"), where
        assert "/r/wide" in page.url and seen.errors == []
    assert found == {}


def test_all_columns_are_there(running: RunningStudio, browser: Browser) -> None:
    with tab(browser) as seen:
        page = seen.page
        page.goto(running.url)
        page.goto(f"{running.base}/p/wide/table")
        settled(page)
        expect(page.locator("main")).to_contain_text(f"{COLUMNS}")
        expect(page.get_by_text(f"{HACK}0", exact=True).first).to_be_visible()
        assert page.locator("main img").count() == 0
