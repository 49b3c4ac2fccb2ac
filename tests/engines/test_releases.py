"""The same rows, key and options give the same release, whichever engine reads the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import voile
from tests.engines.conftest import Tables, people
from voile.engines import connect

ROWS: pa.Table = people(3000, nulls=0.0).select(["age", "sex", "member", "income"])
CLASSES: dict[str, Any] = {
    "qi": ["age", "member"], "sensitive": "sex", "insensitive": ["income"], "k": 20,
}  # fmt: skip
MADE: dict[str, Callable[..., Any]] = {
    "view": lambda table, to: voile.publish(
        table, to=to, prior=0.02, posterior=0.3, simulate_seed=1
    ),
    "shaped view": lambda table, to: voile.publish(
        table, to=to, prior=0.02, posterior=0.3, noise_prior="product", simulate_seed=1
    ),
    "perturbed": lambda table, to: voile.perturb(table, 0.5, to=to, simulate_seed=1),
    "counts": lambda table, to: voile.publish(
        table, to=to, method="conjuncts", arity=2, simulate_seed=1
    ),
    "classes": lambda table, to: voile.publish(table, to=to, method="mondrian", **CLASSES),
}


def written(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.mark.parametrize("kind", MADE)
def test_a_release_does_not_depend_on_the_engine(made: Tables, tmp_path: Path, kind: str) -> None:
    MADE[kind](connect(ROWS), tmp_path / "known.voile")
    MADE[kind](made.table(ROWS), tmp_path / "found.voile")
    known, found = written(tmp_path / "known.voile"), written(tmp_path / "found.voile")
    assert sorted(known) == sorted(found)
    assert not [name for name in known if known[name] != found[name]]


def test_a_generalized_table_does_not_depend_on_the_engine(made: Tables) -> None:
    known = voile.generalize(connect(ROWS), keep_order=True, **CLASSES)
    found = voile.generalize(made.table(ROWS), keep_order=True, **CLASSES)
    assert found.table.equals(known.table)
