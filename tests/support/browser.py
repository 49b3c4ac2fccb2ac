"""Pages in a real browser: Chromium where it is installed, and what axe finds wrong with a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from weakref import WeakSet

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.support.chromium import CHROMIUM
from tests.support.soak import SOAK

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
AXE = Path(__file__).parent / "axe" / "axe.min.js"
Scheme = Literal["light", "dark"]
VARIANTS = [(360, True), *([(360, False), (1280, False), (1280, True)] if SOAK else [])]
"""Widths in pixels, and whether it is dark: a phone in the dark has what goes wrong most."""
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")


@contextmanager
def launched() -> Iterator[Browser]:
    """A browser without a screen."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield found
        finally:
            found.close()


@dataclass
class Seen:
    """A tab, and what went wrong in it."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


STYLED: WeakSet[Page] = WeakSet()
"""Pages that axe has looked at: it tries styles of its own, which a strict policy refuses."""


def heard(seen: Seen, said: ConsoleMessage) -> None:
    """Note an error of the console, unless it is a refusal that a form shows, or of axe's own."""
    own = seen.page in STYLED and said.text.startswith("Applying inline style")
    if said.type == "error" and "422" not in said.text and not own:
        seen.errors.append(said.text)


@contextmanager
def tab(browser: Browser, *, width: int = 1280, dark: bool = False) -> Iterator[Seen]:
    """A tab of its own; errors of scripts and refusals of the policy are noted."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, reduced_motion="reduce",
        color_scheme="dark" if dark else "light",
    )  # fmt: skip
    context.set_default_timeout(30_000)
    found = Seen(context.new_page())
    found.page.on("pageerror", lambda error: found.errors.append(str(error)))
    found.page.on("console", lambda said: heard(found, said))
    found.page.on("request", lambda request: found.requests.append(request.url))
    try:
        yield found
    finally:
        context.close()


@contextmanager
def opened(browser: Browser, url: str, *, scheme: Scheme, width: int) -> Iterator[Page]:
    """A page that needs no server: every error and every request elsewhere is an error."""
    with tab(browser, width=width, dark=scheme == "dark") as seen:
        seen.page.goto(url)
        yield seen.page
        assert not seen.errors
        assert not [one for one in seen.requests if one.startswith("http")]


def grave_problems(page: Page) -> list[tuple[str, list[Any]]]:
    """What axe calls serious or critical: the rule, and where it is broken."""
    STYLED.add(page)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("async () => await axe.run()")
    assert found["passes"]  # it looked at something
    return [
        (one["id"], [node["target"] for node in one["nodes"]])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def serious(page: Page) -> list[str]:
    """The same in words."""
    return [f"{rule} at {places}" for rule, places in grave_problems(page)]


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than the screen."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))
