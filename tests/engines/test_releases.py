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
from voile.errors import UsageError

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
    "set view": lambda table, to: voile.publish(
        table, to=to, prior=0.02, posterior=0.3, rows="set", distinct=True, simulate_seed=1
    ),
    "whole rows": lambda table, to: voile.perturb(
        table, 0.5, to=to, whole_rows=True, simulate_seed=1
    ),
    "counts": lambda table, to: voile.publish(
        table, to=to, method="conjuncts", arity=2, direct=True, simulate_seed=1
    ),
    "halves": lambda table, to: voile.publish(
        table, to=to, method="conjuncts", arity=2, simulate_seed=1
    ),
    "marginals": lambda table, to: voile.publish(
        table, to=to, method="marginals", epsilon=1.0, simulate_seed=1
    ),
    "best": lambda table, to: voile.publish(table, to=to, simulate_seed=1),
    "people": lambda table, to: voile.publish(
        table, to=to, person="age", rows_per_person=9, simulate_seed=1, yes=True
    ),
    "classes": lambda table, to: voile.publish(
        table, to=to, method="mondrian", simulate_seed=1, **CLASSES
    ),
    "buckets": lambda table, to: voile.publish(
        table, to=to, method="anatomy", simulate_seed=1, l=2, **(CLASSES | {"k": None})
    ),
    "levels": lambda table, to: voile.publish(
        table, to=to, method="fulldomain", simulate_seed=1, **CLASSES
    ),
}


def written(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.mark.parametrize("kind", MADE)
def test_a_release_does_not_depend_on_the_engine(made: Tables, tmp_path: Path, kind: str) -> None:
    MADE[kind](connect(ROWS), tmp_path / "known.voile")
    if kind == "halves" and not made.table(ROWS).at_hand:
        with pytest.raises(UsageError, match="halves are of single rows"):
            MADE[kind](made.table(ROWS), tmp_path / "found.voile")
        return
    MADE[kind](made.table(ROWS), tmp_path / "found.voile")
    known, found = written(tmp_path / "known.voile"), written(tmp_path / "found.voile")
    assert sorted(known) == sorted(found)
    assert not [name for name in known if known[name] != found[name]]


@pytest.mark.parametrize("kind", ["view", "set view", "shaped view", "perturbed", "whole rows"])
def test_many_parts_do_not_depend_on_the_engine(
    made: Tables, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges, blocks and files are made on their own: of none a row is lost or drawn twice."""
    monkeypatch.setattr("voile.kinds.views.writing.RANGE_ROWS", 1)
    monkeypatch.setattr("voile.kinds.perturbed.writing.BLOCK_ROWS", 100)
    monkeypatch.setattr("voile.kinds.perturbed.writing.FILE_ROWS", 500)
    MADE[kind](connect(ROWS), tmp_path / "known.voile")
    MADE[kind](made.table(ROWS), tmp_path / "found.voile")
    known, found = written(tmp_path / "known.voile"), written(tmp_path / "found.voile")
    assert sum(name.startswith("data/") for name in known) > 1
    assert known == found


def test_a_generalized_table_does_not_depend_on_the_engine(made: Tables) -> None:
    known = voile.generalize(connect(ROWS), keep_order=True, **CLASSES)
    found = voile.generalize(made.table(ROWS), keep_order=True, **CLASSES)
    if made.keeps_order:
        assert found.table.equals(known.table)
    else:
        assert in_order(found.table).equals(in_order(known.table))


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names])
