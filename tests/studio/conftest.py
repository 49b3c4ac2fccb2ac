"""A studio that runs in a process of its own, as its users have it, and tabs that look at it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.browser import launched


@dataclass(frozen=True)
class RunningStudio:
    """The link that was printed, and where it works."""

    url: str
    folder: Path
    process: subprocess.Popen[str]

    @property
    def base(self) -> str:
        return self.url[: self.url.index("/", len("http://"))]


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[RunningStudio]:
    """`voile studio` in a folder, until the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "voile.cli", "studio", *arguments, "--no-browser", "--json"],
        cwd=folder,
        env={**os.environ, "VOILE_REGISTER": str(folder / "register.sqlite")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield RunningStudio(json.loads(process.stdout.readline())["url"], folder, process)
    finally:
        process.terminate()
        process.wait(timeout=20)
        process.stdout.close()


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Callable[..., RunningStudio]]:
    """Starts studios in the test's folder."""
    running = []

    def start(*arguments: str) -> RunningStudio:
        context = started(tmp_path, *arguments)
        running.append(context)
        return context.__enter__()

    yield start
    for context in running:
        context.__exit__(None, None, None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found
