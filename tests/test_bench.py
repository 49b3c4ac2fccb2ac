"""Benchmarks are run by hand: here every module is imported, and every name in a text is found."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import bench
import pytest
from bench import domain_count, local
from bench.noise_work import ours_profiled
from bench.stages import STAGES, located

MODULES = sorted(one.name for one in pkgutil.iter_modules(bench.__path__))
FOLDER = Path(bench.__path__[0])
WRITTEN = {
    task
    for name in MODULES
    for task in re.findall(r'"(\w+_work:\w+)"', (FOLDER / f"{name}.py").read_text("utf-8"))
}
COMPOSED = {
    *(f"domain_work:{way}" for way in ("ours", "cross_join", *domain_count.BESIDE)),
    *(f"local_work:{way}" for way in ("ours", "ours_perturbing", *local.PEERS)),
}


@pytest.mark.parametrize("name", MODULES)
def test_every_module_is_imported(name: str) -> None:
    importlib.import_module(f"bench.{name}")


@pytest.mark.parametrize("task", sorted(WRITTEN | COMPOSED))
def test_every_task_is_there(task: str) -> None:
    module, _, function = task.partition(":")
    assert callable(getattr(importlib.import_module(f"bench.{module}"), function))


def test_tasks_are_found_in_the_text() -> None:
    assert len(WRITTEN) > 30


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_is_there(stage: str) -> None:
    owner, name = located(STAGES[stage])
    assert callable(getattr(owner, name))


def test_a_profile_sees_every_stage() -> None:
    """A function that was moved and is still there by its old name would not be timed."""
    assert set(ours_profiled(rows=1e4)["stages"]) == set(STAGES)
