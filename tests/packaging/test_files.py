"""Files that other tools read: they agree with pyproject.toml, and name what there is."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from typing import Any

import pytest
import yaml

from tests.support.paths import ROOT
from voile import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA_NAMES = {"duckdb": "python-duckdb", "opt-einsum": "opt_einsum",
               "prompt-toolkit": "prompt_toolkit"}  # fmt: skip


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def requirements(lines: list[str]) -> dict[str, str]:
    found = (re.fullmatch(r"([A-Za-z0-9_.-]+?)\s*([<>=].*)?", line) for line in lines)
    return {match[1]: match[2] or "" for match in found if match}


def test_the_citation_is_of_this_version() -> None:
    found: dict[str, Any] = yaml.safe_load(text("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors", "version"} <= set(found)
    assert found["version"] == __version__ == PROJECT["version"]
    assert found["license"] == PROJECT["license"]


def test_conda_asks_for_what_the_core_asks_for() -> None:
    recipe = text("conda/meta.yaml")
    plain = "\n".join(
        line.replace("{{ version }}", __version__).replace("{{ PYTHON }}", "python")
        for line in recipe.splitlines()
        if not line.startswith("{%")
    )
    found = yaml.safe_load(plain)
    asked = requirements(found["requirements"]["run"])
    python = asked.pop("python")
    core = requirements(PROJECT["dependencies"])
    assert asked == {CONDA_NAMES.get(name, name): version for name, version in core.items()}
    assert python == PROJECT["requires-python"]
    assert f'version = "{__version__}"' in recipe
    for path in found["about"]["license_file"]:
        assert (ROOT / path).is_file()


def test_hooks_run_what_is_installed_here_and_fetch_nothing() -> None:
    found = yaml.safe_load(text(".pre-commit-config.yaml"))
    assert [one["repo"] for one in found["repos"]] == ["local"]
    hooks = found["repos"][0]["hooks"]
    assert {"ruff-check", "ruff-format", "mypy", "lint-imports"} <= {one["id"] for one in hooks}
    for hook in hooks:
        program, *words = hook["entry"].split()
        assert hook["language"] == "system"
        assert program.startswith(".venv/bin/")
        assert shutil.which(
            program.removeprefix(".venv/bin/"), path=str(ROOT / ".venv" / "bin")
        ) or (not (ROOT / ".venv").exists()), program
        assert all((ROOT / word).exists() for word in words if word.startswith("tests/"))


def test_the_container_is_nobody_and_has_what_the_wheel_needs() -> None:
    container, taken = text("docker/Dockerfile"), text("docker/Dockerfile.dockerignore")
    assert re.search(r"^USER 10001$", container, re.MULTILINE)
    assert "--without-pip" in container
    for word in re.findall(r"^COPY (?!--)(.+) \S+$", container, re.MULTILINE):
        for path in word.split():
            assert (ROOT / path).exists()
            assert f"!{path}\n" in taken
    extras = re.search(r"'\.\[(.+)\]'", container)
    assert extras is not None
    assert set(extras[1].split(",")) == {"studio", "server", "postgres"}
    assert container.index("USER") < container.index("ENTRYPOINT")


@pytest.mark.parametrize("extra", ["server", "studio"])
def test_what_serves_brings_no_pictures_of_paper(extra: str) -> None:
    """The program that draws them is a third of such an image."""
    left, seen = [extra], set[str]()
    while left:
        for line in PROJECT["optional-dependencies"][left.pop()]:
            inner = re.fullmatch(r"voile\[(\w+)\]", line)
            left += [inner[1]] if inner else []
            seen.add(line)
    assert not [line for line in seen if line.startswith("vl-convert")]
    assert [line for line in seen if line.startswith("scipy")]


def test_links_of_the_security_page_lead_somewhere() -> None:
    for path in re.findall(r"\]\(([^)]+)\)", text("SECURITY.md")):
        assert (ROOT / path).is_file(), path


def test_the_javascript_package_has_both_modules() -> None:
    package = json.loads(text("clients/js/package.json"))
    assert set(package["exports"]) == {".", "./server"}
    for entry in package["exports"].values():
        for path in entry.values():
            assert path.removeprefix("./") in package["files"]
    assert package["version"] == __version__
