"""Shared fixtures, and Hypothesis set up for repeatable runs."""

from __future__ import annotations

import atexit
import gc
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.chromium import CHROMIUM
from tests.support.paths import TESTS
from tests.support.postgres import postgres, postgres_server
from tests.support.soak import SOAK, rounds

__all__ = ["oracle", "postgres", "postgres_server"]

settings.register_profile(
    "voile",
    deadline=None,
    derandomize=True,
    max_examples=rounds(50, 100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("voile")

# No test, nor a process that it starts, writes into the register of whoever runs the tests.
DATA = tempfile.mkdtemp(prefix="voile-tests-")
atexit.register(shutil.rmtree, DATA, ignore_errors=True)
os.environ["XDG_DATA_HOME"] = DATA
os.environ.pop("VOILE_REGISTER", None)


@pytest.fixture(autouse=True)
def register(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The register of one test, which is made when something is written into it."""
    place = tmp_path_factory.getbasetemp() / "registers" / f"{len(PLACES)}.db"
    PLACES.append(place)
    monkeypatch.setenv("VOILE_REGISTER", str(place))
    return place


PLACES: list[Path] = []


def pytest_configure(config: pytest.Config) -> None:
    """Which files were checked is remembered apart from what the user's cache folder holds."""
    folder = tempfile.mkdtemp(prefix="voile-cache-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ["XDG_CACHE_HOME"] = folder


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a soak alone runs: `skipped` then says that something is missing here."""
    later = [item for item in items if not SOAK and item.get_closest_marker("soak")]
    if later:
        config.hook.pytest_deselected(items=later)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tests of pages that did not run are no proof: say so where nobody overlooks it."""
    if CHROMIUM is None:
        terminalreporter.section("NO BROWSER", red=True, bold=True)
        terminalreporter.write_line(
            "Chromium is not installed: no page was tested. On Debian: apt-get install chromium"
        )


def pytest_collection() -> None:
    """Collecting makes millions of objects, and none of them is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected stays until the end: the garbage collector need not look at it again."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def oracle() -> dict[str, dict[str, Any]]:
    """Values that an independent implementation computed, by name."""
    path = TESTS / "oracle" / "alphabeta.json"
    return {check["id"]: check for check in json.loads(path.read_text())["checks"]}
