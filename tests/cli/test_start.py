"""Starting fast: what a command imports before it knows what to do.

Modules are counted, not milliseconds: a count is the same on a busy machine.
"""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest
import typer

import voile.cli
from voile.cli.common import commands, flat
from voile.cli.program import HOMES, built, listed, name_of

HEAVY = {
    "altair", "cryptography", "duckdb", "fastapi", "numba", "numpy", "opt_einsum", "pandas",
    "polars", "prompt_toolkit", "pyarrow", "pydantic", "scipy", "sklearn", "sqlglot", "uvicorn",
    "yaml",
}  # fmt: skip

WATCH = """
import sys
from voile.cli import main
sys.argv = ["voile", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""


def imported(*arguments: str) -> set[str]:
    """The names of all modules that are imported when the command has run."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout, "the command said nothing"
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_the_program_imports_nothing_heavy(arguments: list[str]) -> None:
    found = imported(*arguments)
    assert not HEAVY & {name.split(".")[0] for name in found}
    assert "typer" in found


@pytest.mark.parametrize(
    "arguments", [["publish", "--help"], ["serve", "run", "--help"], ["datasets"]]
)
def test_a_command_imports_nothing_heavy_of_its_own(arguments: list[str]) -> None:
    """Typer reads the values of options with Pydantic; the rest is up to us."""
    assert {name.split(".")[0] for name in imported(*arguments)} & HEAVY <= {"pydantic"}


def test_help_imports_no_command() -> None:
    """The list of commands is made from the listing; no module of theirs is read."""
    homes = {f"voile.cli.{home}" for home in HOMES.values()}
    assert not homes & imported("--help")
    assert homes & imported("datasets") == {"voile.cli.tables"}


def test_help_imports_few_modules_of_ours() -> None:
    ours = {name for name in imported("--help") if name.split(".")[0] == "voile"}
    assert ours == {
        "voile", "voile.cli", "voile.cli.common", "voile.cli.program",
        "voile.errors", "voile.terminal",
    }  # fmt: skip


def test_heavy_modules_would_be_seen() -> None:
    found = imported("inspect", "dataset:adult/boundary")
    assert {"duckdb", "numpy"} <= found


def test_tables_are_looked_at_without_scipys_statistics() -> None:
    """They take a second to import, and only servers' noise has a use for them."""
    assert "scipy.stats" not in imported("inspect", "dataset:adult/boundary")


@pytest.mark.parametrize("name", HOMES)
def test_the_listing_says_what_the_help_says(name: str) -> None:
    first = built(name).help.split("\n\n")[0].replace("\n", " ")
    assert listed(name).help == first


def test_every_command_is_listed() -> None:
    for module in pkgutil.iter_modules(voile.cli.__path__):
        if module.name != "__main__":
            importlib.import_module(f"voile.cli.{module.name}")
    known = {name_of(one) for one in commands.registered_commands}
    known |= {str(one.name) for one in commands.registered_groups}
    assert known == set(HOMES)
    assert set(HOMES) == {words.split()[0] for words in flat(typer.main.get_command(voile.cli.app))}


def test_building_every_command_imports_nothing_heavy() -> None:
    """Where a command's options are written, nothing is computed; their models are Pydantic's."""
    program = "import sys; from voile.cli.program import HOMES, built\n"
    program += "for name in HOMES: built(name)\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    found = set(done.stdout.split())
    assert {f"voile.cli.{home}" for home in HOMES.values()} <= found
    assert HEAVY & {name.split(".")[0] for name in found} <= {"pydantic"}


def test_tables_are_looked_at_without_a_parser_of_queries() -> None:
    found = imported("inspect", "dataset:adult/boundary")
    assert not {"sqlglot", "opt_einsum"} & found
    assert "voile.query.quoting" in found
