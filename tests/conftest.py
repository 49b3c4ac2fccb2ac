"""Shared fixtures, and Hypothesis set up for repeatable runs."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.paths import TESTS
from tests.support.postgres import postgres, postgres_server
from tests.support.soak import rounds

__all__ = ["oracle", "postgres", "postgres_server"]

settings.register_profile(
    "voile",
    deadline=None,
    derandomize=True,
    max_examples=rounds(50, 100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("voile")


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
