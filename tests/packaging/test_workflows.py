"""Workflow files: their commands exist, need no make, and cover what the docs say is supported."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.paths import ROOT

FOLDER = ROOT / ".github" / "workflows"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCS = (ROOT / "docs" / "reference" / "systems.md").read_text(encoding="utf-8")
CHEAP = ("python -m voile --version",)
"""Lines that are run here as they stand."""


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(FOLDER.glob("*.yml")):
        yield from yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items()


def lines() -> list[str]:
    return [step["run"] for _, job in jobs() for step in job["steps"] if "run" in step]


def test_there_is_one_for_every_system_and_python() -> None:
    covered = {
        (system, python)
        for _, job in jobs()
        for system in job["strategy"]["matrix"]["system"]
        for python in job["strategy"]["matrix"].get("python", [])
    }
    named = [c.rsplit(" :: ")[-1] for c in PROJECT["classifiers"] if "Python :: 3." in c]
    systems = ("ubuntu-latest", "macos-latest", "windows-latest")
    assert covered == {(system, python) for system in systems for python in named}
    assert named == ["3.11", "3.12", "3.13", "3.14"]
    said = {c.rsplit(" :: ")[-1] for c in PROJECT["classifiers"] if c.startswith("Operating")}
    assert said == {"Linux", "MacOS", "Windows"}


def test_no_line_needs_make() -> None:
    assert len(lines()) > 8
    assert not [line for line in lines() if re.search(r"\bmake\b|\.venv|\bsudo\b", line)]


@pytest.mark.parametrize("line", lines())
def test_the_command_exists(line: str) -> None:
    program, *rest = shlex.split(line)
    if program == "lint-imports":
        assert importlib.util.find_spec("importlinter")
        return
    assert program == "python"
    if rest[0] != "-m":
        assert (ROOT / rest[0]).is_file()
        return
    assert importlib.util.find_spec(rest[1]), rest[1]
    for word in rest[2:]:
        if word.startswith("tests/") or word.endswith(".txt"):
            assert (ROOT / word).exists(), word
        if word.startswith(".["):
            extras = set(word.removeprefix(".[").removesuffix("]").split(","))
            assert extras <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("line", CHEAP)
def test_the_line_does_its_work(line: str) -> None:
    assert line in lines()
    words = shlex.split(line)
    done = subprocess.run(
        [sys.executable, *words[1:]], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert "voile" in done.stdout


def test_the_docs_say_which_commands_these_are() -> None:
    for line in lines():
        assert line in DOCS, line


def test_what_is_tried_when_installed_is_named_as_the_extras_are() -> None:
    from tools import try_install

    extras = set(PROJECT["optional-dependencies"])
    assert set(try_install.EXTRA_COMMANDS) - {"core"} <= extras
    assert {word for one in try_install.WITH.values() for word in one.split(",")} <= extras
    kinds = {one.split(".")[-2] for one in _built_in()}
    assert kinds == {"views", "classes", "perturbed", "counts", "marginals"}
    assert kinds <= set(try_install.PUBLISHED)


def _built_in() -> list[str]:
    from voile.kinds.registry import built_in_kinds

    return [type(kind).__module__ for kind in built_in_kinds()]
