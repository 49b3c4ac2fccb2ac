"""Pictures of every screen of the studio, for the docs: python tools/studio_screens.py FOLDER.

Needs Chromium. The table is the one of the papers, so that anyone can make the same pictures.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from tests.studio.conftest import RunningStudio, started
from tests.support.browser import launched, tab

SCREENS = ("table", "codebook", "hierarchies", "risk", "promise", "compare", "preview", "attack")
TABLE = "dataset:adult/boundary"
QUESTION = "select education, count(*) from adult where sex = 'Female' group by education"
LONGEST = 300_000
TALLEST = {"publish": 2700, "table": 1900}
"""Screens of which more is shown than 1,500 pixels."""
ON_A_PHONE = {"table": "p/boundary/table", "promise": "p/boundary/promise", "explore": "r/boundary"}


def at_rest(page: Page) -> None:
    """Wait until work has ended and charts are drawn."""
    page.wait_for_selector("main h1")
    expect(page.locator(".htmx-request:not(.job)")).to_have_count(0, timeout=LONGEST)
    expect(page.locator(".job progress")).to_have_count(0, timeout=LONGEST)
    for chart in page.locator(".chart[data-spec]:visible").all():
        expect(chart.locator("canvas")).to_be_visible(timeout=LONGEST)


def picture(page: Page, folder: Path, name: str) -> None:
    """What is on the page, down to a height that a reader looks at."""
    at_rest(page)
    page.set_viewport_size({"width": page.viewport_size["width"], "height": 700})  # type: ignore[index]
    page.evaluate("scrollTo(0, 0)")
    needed = int(page.evaluate("document.documentElement.scrollHeight"))
    height = min(TALLEST.get(name, 1500), needed)
    page.set_viewport_size({"width": page.viewport_size["width"], "height": height})  # type: ignore[index]
    page.screenshot(path=folder / f"{name}.png")
    print(name)


PRESSED = {
    "table": ["Show the first rows"],
    "compare": ["Keep it as a candidate", "Measure them on the table", "Measure the frontier"],
    "preview": ["Make a preview"],
    "attack": ["See what they learn"],
}
"""Buttons that are pressed before a picture is taken, so that it shows something."""


def pressed(page: Page, name: str) -> None:
    """Press the buttons of a screen."""
    for words in PRESSED.get(name, ()):
        page.get_by_role("button", name=words).click()
        page.wait_for_timeout(500)
        at_rest(page)


def published(page: Page, base: str) -> None:
    """Publish, so that there is something to explore."""
    page.goto(f"{base}/p/boundary/publish")
    page.get_by_text("What has left before").wait_for(timeout=LONGEST)


def served(page: Page, base: str, folder: Path) -> None:
    """Begin a server, so that there is one to look after."""
    page.goto(f"{base}/servers?project=boundary")
    page.fill("#name", "counts")
    page.get_by_role("button", name="Begin the server").click()
    page.get_by_text("answers are left").wait_for(timeout=LONGEST)
    page.fill("#analyst", "Iris")
    page.fill("#token-queries", "40")
    page.get_by_role("button", name="Make a token").click()
    page.locator("#made-token").wait_for()
    page.goto(f"{base}/servers/counts")  # the token is shown once, and not in a picture
    picture(page, folder, "server")


def main() -> None:
    """Start a studio, walk through it, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--place", type=Path, help="an empty folder that the pictures may name")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as temporary,
        launched() as browser,
        started(given.place or Path(temporary), TABLE) as running,
    ):
        take_all(browser, running, given.folder)


def take_all(browser: Browser, running: RunningStudio, folder: Path) -> None:
    """Every screen in the light, and some on a phone."""
    base = running.base
    with tab(browser) as seen:
        page = seen.page
        page.goto(running.url)
        at_rest(page)
        page.get_by_label("Role of salary").select_option("sensitive")
        expect(page.get_by_label("Role of salary")).to_have_class("role sensitive")
        page.get_by_label("Role of occupation").select_option("other")
        expect(page.get_by_label("Role of occupation")).to_have_class("role other")
        for name in SCREENS:
            page.set_viewport_size({"width": 1280, "height": 900})
            page.goto(f"{base}/p/boundary/{name}")
            pressed(page, name)
            if name == "codebook":  # with effects beside each column, which are read off the table
                page.get_by_label("Read them off").check()
                page.locator("details.entry").first.wait_for(timeout=LONGEST)
                at_rest(page)
                page.locator("details.entry summary").first.click()
            picture(page, folder, name)
            if name == "codebook":
                page.get_by_label("Learn them").check()
                page.get_by_text("There is nothing to do here").wait_for(timeout=LONGEST)
        published(page, base)
        picture(page, folder, "publish")
        page.check("input[name=read]")
        page.get_by_role("button", name="Publish boundary.voile").click()
        page.get_by_text("Verified as a stranger would").wait_for(timeout=LONGEST)
        picture(page, folder, "published")
        page.goto(f"{base}/p/boundary/publish/certificate")
        page.screenshot(path=folder / "certificate.png", full_page=True)
        page.goto(f"{base}/p/boundary/publish")
        page.get_by_role("button", name="Explore the release").click()
        page.wait_for_url("**/r/**")
        expect(page.locator("#answer .take")).to_be_visible(timeout=LONGEST)
        page.fill("#sql", QUESTION)
        page.keyboard.press("Control+Enter")
        expect(page.locator("#answer tbody tr").nth(3)).to_be_visible(timeout=LONGEST)
        expect(page.locator("#verified")).to_contain_text("Verified.", timeout=LONGEST)
        picture(page, folder, "explore")
        served(page, base, folder)
        for name in ("", "servers"):
            page.set_viewport_size({"width": 1280, "height": 900})
            page.goto(f"{base}/{name}")
            picture(page, folder, name or "start")
    on_a_phone(browser, running, folder)


def on_a_phone(browser: Browser, running: RunningStudio, folder: Path) -> None:
    """Some screens on a phone in the dark."""
    base, token = running.base, running.url.partition("token=")[2]
    with tab(browser, width=390, dark=True) as seen:
        seen.page.goto(f"{base}/?token={token}")
        for name, where in ON_A_PHONE.items():
            seen.page.goto(f"{base}/{where}")
            at_rest(seen.page)
            seen.page.screenshot(path=folder / f"{name}-phone.png")


if __name__ == "__main__":
    main()
