"""The tests notice when a central line is broken: see tools/mutate.py, and `make soak` for all."""

from __future__ import annotations

import ast
import dataclasses
import os
from pathlib import Path

import pytest
from tools import mutate
from tools.mutate import FAILED, MUTATIONS, PASSED, Mutation, MutationError, SourceCopy

from tests.support.paths import TESTS
from tests.support.soak import some

TRIED = some(MUTATIONS, 2)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> SourceCopy:
    return SourceCopy(tmp_path_factory.mktemp("mutations"))


def test_without_a_mutation_its_tests_pass(copy: SourceCopy) -> None:
    assert copy.control(TRIED).code == PASSED


@pytest.mark.parametrize("mutation", TRIED, ids=lambda one: one.name)
def test_a_mutation_is_caught(copy: SourceCopy, mutation: Mutation) -> None:
    done = copy.tried(mutation)
    assert done.code == FAILED, f"{mutation.name} survives: {mutation.harm}"
    assert done.failed.startswith(tuple(f"tests/{test}" for test in mutation.tests))


def test_a_mutation_that_changes_nothing_survives(copy: SourceCopy) -> None:
    """And one that cannot be imported is not taken for caught. The copy is whole afterwards."""
    file = copy.folder / "voile" / "noise" / "keyed.py"
    before = file.read_bytes()
    (known,) = mutate.chosen(["known-key"])
    harmless = dataclasses.replace(known, instead=f"{known.text}  # as before")
    assert copy.tried(harmless).code == PASSED
    with pytest.raises(MutationError, match=r"cannot be run[\s\S]*SyntaxError"):
        copy.tried(dataclasses.replace(known, instead="return return"))
    assert file.read_bytes() == before == (mutate.SOURCE / "noise" / "keyed.py").read_bytes()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda one: one.name)
def test_its_line_and_its_tests_are_there(mutation: Mutation) -> None:
    """What is broken can be compiled; a test of each name is in its file."""
    source = (mutate.SOURCE / mutation.file).read_text(encoding="utf-8")
    broken = mutation.broken(source)
    assert broken != source
    compile(broken, mutation.file, "exec")
    assert mutation.tests
    for test in mutation.tests:
        file, name = test.split("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert name.split("[")[0] in functions


def test_twenty_central_lines_and_more_are_listed() -> None:
    areas = [one.area for one in MUTATIONS]
    assert len(MUTATIONS) >= 24
    assert len({one.name for one in MUTATIONS}) == len(MUTATIONS)
    for area in ("noise", "promises", "ledger", "verification", "intervals"):
        assert areas.count(area) >= 5


@pytest.mark.parametrize("source", ["x = 1\n", "found.append(one - other)\n" * 2])
def test_a_line_that_is_not_there_once_is_an_error(source: str) -> None:
    (mutation,) = mutate.chosen(["one-sided-noise"])
    with pytest.raises(MutationError, match=r"one-sided-noise: .*geometric\.py has .* not once"):
        mutation.broken(source)


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(MutationError, match="no mutation 'nothing'"):
        mutate.chosen(["nothing"])
    assert mutate.chosen([]) == list(MUTATIONS)


def test_the_page_is_the_list() -> None:
    """Write it anew with VOILE_WRITE=1."""
    if os.environ.get("VOILE_WRITE"):
        Path(mutate.PAGE).write_text(mutate.page(), encoding="utf-8")
    assert mutate.PAGE.read_text(encoding="utf-8") == mutate.page(), "VOILE_WRITE=1 writes it anew"
