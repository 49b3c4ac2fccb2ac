"""Starting fast: what a command imports before it knows what to do.

Modules are counted, not milliseconds: a count is the same on a busy machine.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
import typer

import voile.cli
from tests.support.paths import TESTS
from voile.cli.common import commands, flat
from voile.cli.program import HOMES, built, listed, name_of

HEAVY = {
    "altair", "cryptography", "duckdb", "fastapi", "numba", "numpy", "opt_einsum", "pandas",
    "polars", "prompt_toolkit", "pyarrow", "pydantic", "scipy", "sklearn", "sqlglot", "uvicorn",
    "yaml",
}  # fmt: skip

WATCH = """
import json, sys
from voile.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["voile", *arguments]
    try:
        main()
    except SystemExit:
        pass
    print("MODULES", *sys.modules, flush=True)
"""


def imported(*arguments: str) -> set[str]:
    """The names of all modules that are imported when the command has run."""
    return imported_by(arguments)[0]


def imported_by(*commands: Sequence[str]) -> list[set[str]]:
    """The same after each of several commands, which one process runs in order."""
    done = subprocess.run(
        [sys.executable, "-c", WATCH, json.dumps(commands)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    *said, rest = re.split(r"^MODULES .*\n", done.stdout, flags=re.MULTILINE)
    assert len(said) == len(commands) and not rest
    assert all(said), "a command said nothing"
    listed = re.findall(r"^MODULES (.*)$", done.stdout, re.MULTILINE)
    return [set(names.split()) for names in listed]


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
        "voile.errors", "voile.system", "voile.system.here", "voile.system.posix",
        "voile.terminal", "voile.terminal.escaping",
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


# ---------------------------------------------------------------------- a command's own work

RELEASES = TESTS / "fixtures" / "version1"
ANSWERING = (
    "voile.answering", "voile.query.domain", "voile.query.parser", "sqlglot", "opt_einsum",
    *(f"voile.kinds.{kind}.{part}" for kind in ("classes", "counts", "perturbed", "views")
      for part in ("answering", "estimator", "explanation", "joints", "tensors", "refinement")),
)  # fmt: skip
"""What answers queries."""
SLOW = ("altair", "cryptography", "fastapi", "numba", "pandas", "polars", "scipy", "sklearn")
KINDS = ("classes", "counts", "perturbed", "views")


def under(names: Iterable[str], roots: Iterable[str]) -> set[str]:
    """The modules that are one of these, or inside of one."""
    return {name for name in names for root in roots if f"{name}.".startswith(f"{root}.")}


def others(kind: str) -> list[str]:
    return [f"voile.kinds.{other}" for other in KINDS if other != kind]


RELEASED = [
    ("views", "view.voile"),
    ("perturbed", "perturbed.voile"),
    ("classes", "mondrian.voile"),
    ("classes", "anatomy.voile"),
    ("counts", "counts.voile"),
    ("counts", "counts-direct.voile"),
]
"""A release of each kind; two where they are answered in different ways."""
QUERIES = [
    "SELECT count(*) FROM people",
    "SELECT sex, count(*) AS n FROM people WHERE sex <> 'x' GROUP BY sex ORDER BY n",
    "SELECT CASE WHEN sex = 'Male' THEN 0.5 ELSE 1.5 END AS half, count(*) FROM people GROUP BY 1",
]
UNASKED = (
    "voile.privacy.planner", "voile.evaluate", "voile.kinds.publishing", "voile.kinds.evaluation",
)  # fmt: skip
"""What no question needs."""


@pytest.mark.parametrize(("kind", "release"), RELEASED)
def test_a_query_imports_its_own_kind_and_nothing_slow(kind: str, release: str) -> None:
    """What any of the queries imports is there when all have been answered."""
    after = imported_by(*(["query", str(RELEASES / release), sql] for sql in QUERIES))
    assert f"voile.kinds.{kind}.answering" in after[0]
    found = after[-1]
    assert not under(found, [*others(kind), *SLOW, *UNASKED])
    if kind != "classes":
        assert not under(found, ["voile.recoding"])
    assert len(found) < 730


def test_a_query_of_a_view_imports_no_theorem() -> None:
    found = imported("query", str(RELEASES / "view.voile"), "SELECT count(*) FROM people")
    assert not under(found, ["voile.privacy.guarantees"])


@pytest.mark.parametrize("command", ["verify", "describe"])
@pytest.mark.parametrize(("kind", "release"), RELEASED)
def test_a_release_is_checked_without_what_answers(command: str, kind: str, release: str) -> None:
    """The promise of tables of counts is computed again with SciPy's special functions."""
    found = imported(command, str(RELEASES / release))
    assert f"voile.kinds.{kind}.release" in found
    needed = {"scipy"} if (command, kind) == ("verify", "counts") else set()
    assert not under(found, [*others(kind), *ANSWERING, *(set(SLOW) - needed), "scipy.stats"])
    assert len(found) < 730


def test_a_table_is_inspected_without_what_answers() -> None:
    found = imported("inspect", "dataset:adult/boundary")
    assert not under(found, [*others("views"), *ANSWERING, *SLOW])


def test_the_shell_publishes_a_view_without_what_answers(tmp_path: Path) -> None:
    """Only the options of other kinds are read, for the flags."""
    to = str(tmp_path / "view.voile")
    found = imported("publish", "dataset:adult/boundary", "--method", "alphabeta",
                     "--simulate-seed", "1", "-o", to)  # fmt: skip
    assert "voile.kinds.views.publishing" in found
    assert not under(found, [*ANSWERING, "pandas", "polars", "altair"])
    flags = {f"voile.kinds.{kind}.{part}" for kind in KINDS for part in ("kind", "options")}
    assert under(found, others("views")) <= {*others("views"), *flags}


def test_python_publishes_a_view_without_what_answers_and_other_kinds(tmp_path: Path) -> None:
    program = "import sys, voile\n"
    program += (
        "voile.publish('dataset:adult/boundary', 'alphabeta', simulate_seed=1, to=sys.argv[1])\n"
    )
    program += "print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "view.voile")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = set(done.stdout.split())
    assert "voile.kinds.views.publishing" in found
    assert not under(found, [*others("views"), *ANSWERING, "pandas", "polars", "altair"])


def test_tables_are_looked_at_without_a_parser_of_queries() -> None:
    found = imported("inspect", "dataset:adult/boundary")
    assert not {"sqlglot", "opt_einsum"} & found
    assert "voile.query.quoting" in found
