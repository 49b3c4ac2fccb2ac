"""The types of the public interface: each that a signature names is there; checkers see them."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
import typing
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, assert_type

import pandas as pd
import pytest

import voile
from tests.docs.test_public_api import PUBLIC, exported, only_for_types, targets
from voile.errors import VoileError
from voile.estimate import Answer, Estimate
from voile.export import ExportResult, export
from voile.release import ClassRelease, LocalRelease, Release
from voile.schema import Schema


@functools.cache
def names_for_types(module: str) -> dict[str, Any]:
    """What a module imports for checkers alone, imported."""
    source = inspect.getsource(importlib.import_module(module))
    # Unions of trees name themselves, wherever they are used.
    found: dict[str, Any] = dict(vars(importlib.import_module("voile.query.predicate")))
    for statement in only_for_types(ast.parse(source).body):
        for name in targets(statement):
            found[name] = getattr(importlib.import_module(module), name)
        if isinstance(statement, ast.ImportFrom):
            home = importlib.import_module(str(statement.module))
            for alias in statement.names:
                found[alias.asname or alias.name] = getattr(home, alias.name)
        elif isinstance(statement, ast.Import):
            for alias in statement.names:
                top = importlib.import_module(alias.name if alias.asname else
                                              alias.name.partition(".")[0])  # fmt: skip
                found[alias.asname or alias.name.partition(".")[0]] = top
    return found


def callables(module: str) -> Iterator[tuple[str, Any]]:
    """Functions, classes and their methods that a module makes public."""
    for name in exported(module):
        member = getattr(importlib.import_module(module), name)
        if inspect.isclass(member) and member.__module__.startswith("voile"):
            yield name, member
            for inner, found in vars(member).items():
                function = found.fget if isinstance(found, property) else found
                function = getattr(function, "__func__", getattr(function, "func", function))
                if inspect.isfunction(function) and not inner.startswith("_"):
                    yield f"{name}.{inner}", function
        elif inspect.isfunction(member):
            yield name, member


@pytest.mark.parametrize("module", PUBLIC)
def test_every_type_that_a_signature_names_is_there(module: str) -> None:
    for name, member in callables(module):
        function = inspect.unwrap(member) if inspect.isfunction(member) else member
        home = function.__module__
        if home not in sys.modules or not home.startswith("voile"):
            continue
        try:
            typing.get_type_hints(function, localns=names_for_types(home))
        except NameError as error:
            pytest.fail(f"{module}.{name}: {error}")


def test_checkers_are_told_that_there_are_types() -> None:
    assert (files("voile") / "py.typed").is_file()


def test_code_as_users_write_it(tmp_path: Path) -> None:
    """It runs here; `make check` has mypy read it, strictly, and refuses a type that is another."""
    frame = pd.DataFrame({"age": [20, 21, 22, 23] * 25, "sex": ["f", "m"] * 50})
    release = voile.perturb(frame, 0.7, name="t", register=False, simulate_seed=1)
    assert_type(release, LocalRelease)
    answer = release.query("select sex, count(*) as n from t group by sex")
    assert_type(answer, Answer)
    row = answer.rows[0]["n"]
    assert isinstance(row, Estimate)
    assert_type(row.value, float)
    assert_type(row.interval(0.9), tuple[float, float])
    assert_type(release.query("select count(*) from t").value, float)
    assert_type(answer.to_csv(), str)
    assert_type(release.schema, Schema)
    saved = release.save(tmp_path / "t.voile")
    assert_type(saved, LocalRelease)
    opened = voile.open(tmp_path / "t.voile")
    assert_type(opened, Release)
    assert_type(export(opened, tmp_path / "t.parquet"), ExportResult)
    classes = voile.publish(frame, "mondrian", k=5, qi=["age"], sensitive=["sex"], register=False)
    assert_type(classes, ClassRelease)
    table = voile.read(frame)
    assert_type(len(table), int)
    assert_type(table.infer(["age"], "error"), Schema)
    try:
        voile.open(tmp_path / "none.voile")
    except VoileError as error:
        assert_type(error.hint, str)
