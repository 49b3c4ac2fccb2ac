"""Workflow files: their commands exist, need no make, and cover what the docs say is supported."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.paths import ROOT
from tests.support.windows import CHANGED

FOLDER = ROOT / ".github" / "workflows"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCS = (ROOT / "docs" / "reference" / "systems.md").read_text(encoding="utf-8")


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(FOLDER.glob("*.yml")):
        yield from yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items()


JOBS = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs()}
"""What each job runs, in its order."""
PROGRAMS = {"lint-imports": "import-linter", "mypy": "mypy", "pytest": "pytest", "ruff": "ruff",
            "voile": "voile"}  # fmt: skip
"""Which distribution brings a program, or a module that is run."""


def lines() -> list[str]:
    return [line for each in JOBS.values() for line in each]


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


@pytest.mark.parametrize("job", JOBS)
def test_a_job_installs_what_it_runs(job: str) -> None:
    there = {"pip"}
    for line in JOBS[job]:
        program, *rest = shlex.split(line)
        if program == "python" and rest[0] != "-m":
            assert (ROOT / rest[0]).is_file()
            continue
        module = rest[1] if program == "python" else program
        if module == "pip":
            there |= {canonicalize_name(one.name) for one in asked_for(line)}
        else:
            assert PROGRAMS[module] in there, line
        for word in rest[2:]:
            if word.startswith("tests/") or word.endswith(".txt"):
                assert (ROOT / word).exists(), word


def asked_for(line: str) -> Iterator[Requirement]:
    """What a line of pip installs, without what that brings."""
    words = shlex.split(line)
    rest = words[words.index("install") + 1 :]
    for place, word in enumerate(rest):
        if word.startswith("."):
            yield Requirement(f"voile{word.removeprefix('.')}")
        elif rest[place - 1] == "-r":
            pinned = re.findall(r"^([\w.-]+)==", (ROOT / word).read_text("utf-8"), re.MULTILINE)
            yield from map(Requirement, pinned)
        elif not word.startswith("-"):
            yield Requirement(word)


def brought(asked: Iterator[Requirement]) -> set[str]:
    """These, and all that they bring, by what is installed here and by our own pyproject.toml."""
    left, seen = list(asked), set[tuple[str, str]]()
    while left:
        one = left.pop()
        for extra in {"", *one.extras}:
            key = (canonicalize_name(one.name), extra)
            if key in seen:
                continue
            seen.add(key)
            found = map(Requirement, needed(*key))
            left += [each for each in found if applies(each, extra)]
    return {name for name, _ in seen}


def applies(one: Requirement, extra: str) -> bool:
    return one.marker is None or one.marker.evaluate({"extra": extra})


def needed(name: str, extra: str) -> list[str]:
    if name == "voile":
        optional: list[str] = PROJECT["optional-dependencies"].get(extra, [])
        return [*PROJECT["dependencies"], *optional]
    try:
        return requires(name) or []
    except PackageNotFoundError:  # of another system, or not installed here
        return []


HIDING = """
import json, sys
from importlib.machinery import PathFinder
absent, find = set(json.loads(sys.argv.pop(1))), PathFinder.find_spec
PathFinder.find_spec = classmethod(lambda _, name, path=None, target=None: (
    None if name.partition(".")[0] in absent else find(name, path, target)
))
"""
PYTEST = """
import pytest
import _pytest.tmpdir
_pytest.tmpdir.get_user_id = lambda: None  # on Windows there are none
sys.modules.pop("tests.support.windows", None)  # loaded before fcntl was taken away
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def hidden() -> list[str]:
    """Modules that are installed here, and not by what the job of many systems installs."""
    there = brought(one for line in JOBS["install"] if " pip " in line for one in asked_for(line))
    return [
        module
        for module, distributions in packages_distributions().items()
        if not {canonicalize_name(each) for each in distributions} & there
    ]


def run_hidden(*words: str, on_windows: bool) -> subprocess.CompletedProcess[str]:
    paths = [str(CHANGED)] * on_windows + [str(ROOT)]
    return subprocess.run(
        [sys.executable, "-c", HIDING + PYTEST, json.dumps(hidden()), *words], cwd=ROOT, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1",
                          "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        check=False, capture_output=True, timeout=120,
    )  # fmt: skip


def test_what_the_job_lacks_is_hidden() -> None:
    """The next tests would prove nothing if nothing were."""
    absent = set(hidden())
    assert not absent & {"pytest", "hypothesis", "numpy", "scipy", "fastapi", "altair", "voile"}
    for module in ("playwright", "ruff", "sklearn"):
        assert module in absent or module not in packages_distributions()


@pytest.mark.parametrize("on_windows", [False, True], ids=["posix", "windows"])
def test_the_jobs_tests_load_with_what_it_installs(on_windows: bool) -> None:
    if on_windows and not Path("/proc/self/fd").is_dir():
        pytest.skip("the simulation sees in /proc which files are open")
    paths = [word for line in JOBS["install"] if "-m pytest " in line
             for word in shlex.split(line) if word.startswith("tests/")]  # fmt: skip
    assert len(paths) > 3
    done = run_hidden("--collect-only", *paths, on_windows=on_windows)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert all(path in done.stdout for path in paths)


def test_tests_of_systems_pass_where_the_system_is_as_windows() -> None:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("the simulation sees in /proc which files are open")
    paths = ("tests/system/test_flush.py", "tests/system/test_places.py", "tests/test_files.py",
             "tests/system/test_windows.py", "tests/packaging/test_files.py")  # fmt: skip
    done = run_hidden(*paths, "-k", "not clock and not thread", on_windows=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.soak  # installs four environments: minutes, and all their wheels
def test_the_job_passes_in_a_fresh_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path)], check=True)
    scripts = tmp_path / ("Scripts" if os.name == "nt" else "bin")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    for line in JOBS["install"]:
        program, *words = shlex.split(line)
        done = subprocess.run(
            [str(scripts / program), *words], cwd=ROOT, check=False, capture_output=True,
            text=True, env=clean | {"VOILE_SOAK": ""},
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


def test_the_docs_say_which_commands_these_are() -> None:
    for line in lines():
        assert line in DOCS, line


def test_what_is_tried_when_installed_is_named_as_the_extras_are() -> None:
    from tools import try_install

    extras = set(PROJECT["optional-dependencies"])
    tried = set(try_install.EXTRA_COMMANDS) | set(try_install.UNREACHED)
    assert tried == (extras - {"dev", "bench", "docs"}) | {"core"}
    assert {word for one in try_install.WITH.values() for word in one.split(",")} <= extras
    kinds = {one.split(".")[-2] for one in _built_in()}
    assert kinds == {"views", "classes", "perturbed", "counts", "marginals"}
    assert kinds <= set(try_install.PUBLISHED)


def _built_in() -> list[str]:
    from voile.kinds.registry import built_in_kinds

    return [type(kind).__module__ for kind in built_in_kinds()]
