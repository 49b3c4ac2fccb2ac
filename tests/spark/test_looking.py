"""What a cluster says of columns: as much as one machine, and little of it comes to the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from voile.engines.jobs import TypedJob
from voile.engines.spark import SparkSource
from voile.engines.spark.session import LOCAL, Cluster, Frame
from voile.engines.spark.table import SparkTable
from voile.errors import TableError
from voile.learning import LearningBudget, learn_schema, values
from voile.noise import Key

ROWS = 20_000
BUDGET = LearningBudget("gaussian", 0.01, 1e-10)
NAMES = ["town", "name", "pay", "empty", "member", "age"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of which nearly all differ beside those that repeat, in forty row groups."""
    draw = np.random.default_rng(1)
    towns = ["Ulm", "Bonn", "Zürich", "Ōsaka", "𝔘lm", ""]
    rows = pa.table({
        "town": draw.choice(towns, ROWS, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05]),
        "name": [f"n{i}" if i % 3 else "frequent" for i in range(ROWS)],
        "pay": np.round(draw.lognormal(3, 1, ROWS), 1),
        "empty": pa.nulls(ROWS, pa.string()),
        "member": draw.random(ROWS) < 0.3,
        "age": draw.integers(18, 66, ROWS),
    })  # fmt: skip
    path = tmp_path_factory.mktemp("looking") / "people.parquet"
    pq.write_table(rows, path, row_group_size=ROWS // 40)
    return path


@pytest.mark.parametrize("at_once", [2**18, 1000])
def test_a_domain_learnt_there_is_that_of_one_machine(
    table: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Also where the values come in several blocks, each with its own noise."""
    monkeypatch.setattr(values, "AT_ONCE", at_once)
    monkeypatch.setattr("voile.learning.coins.AT_ONCE", at_once)
    held: list[int] = []
    known = values.words_of
    monkeypatch.setattr(values, "words_of", lambda some: (held.append(len(some)), known(some))[1])  # type: ignore[func-returns-value]
    names = [name for name in NAMES if name != "empty"]
    for nulls in ("as-value", "error"):
        there, here = (
            learn_schema(voile.read(source), names, BUDGET, Key.from_seed(3), nulls=nulls)
            for source in (SparkSource(LOCAL, str(table)), str(table))
        )
        assert there == here
        assert "frequent" in there.schema["name"].domain and "Ōsaka" in there.schema["town"].domain
    assert max(held) <= at_once and sum(held) > 2 * ROWS // 3


def test_a_column_of_nothing_is_learnt_there_as_here(table: Path) -> None:
    names = ["empty", "town", "pay"]
    there, here = (
        learn_schema(voile.read(source), names, BUDGET, Key.from_seed(3), nulls="as-value")
        for source in (SparkSource(LOCAL, str(table)), str(table))
    )
    assert there == here


def test_more_values_than_may_pass_are_refused_by_name(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one machine they are held already."""
    monkeypatch.setattr(values, "MOST_VALUES", 9999)
    source = SparkSource(LOCAL, str(table))
    names = ["town", "pay", "name"]
    with pytest.raises(TableError, match="column 'name' has more than 9,999 different") as told:
        learn_schema(voile.read(source), names, BUDGET, Key.from_seed(3))
    assert "columns=" in told.value.hint and "schema=" in told.value.hint
    learn_schema(voile.read(source), names[:2], BUDGET, Key.from_seed(3))
    learn_schema(voile.read(str(table)), names, BUDGET, Key.from_seed(3))


@pytest.mark.parametrize("change", [lambda t: t.slice(1).take([1, 0]), lambda t: t.take([0, 0])])
def test_an_order_that_a_server_lost_is_an_error(
    table: Path, monkeypatch: pytest.MonkeyPatch, change: Any
) -> None:
    """Else a value could be counted twice."""
    known = SparkTable.ordered_typed_sums

    def disordered(self: SparkTable, names: list[str], job: TypedJob, **more: Any) -> Any:
        for part in known(self, names, job, **more):
            yield change(part)

    monkeypatch.setattr(SparkTable, "ordered_typed_sums", disordered)
    with pytest.raises(RuntimeError, match="did not come in the order"):
        learn_schema(voile.read(SparkSource(LOCAL, str(table))), ["town"], BUDGET, Key.from_seed(3))


def test_profiles_bring_each_value_once_however_many_tasks_have_it(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brought: list[int] = []
    known = Cluster.table

    def counted(self: Cluster, frame: Frame) -> pa.Table:
        found = known(self, frame)
        brought.append(found.num_rows)
        return found

    monkeypatch.setattr(Cluster, "table", counted)
    source = voile.read(SparkSource(LOCAL, str(table)))
    assert isinstance(source, SparkTable)
    frame = source.frame.repartition(16)
    there, here = (one.profiles(NAMES) for one in (source.of(frame), voile.read(str(table))))
    for one, other in zip(there, here, strict=True):
        assert (one.values, one.counts, one.distinct, one.low, one.high, one.nulls) == (
            other.values, other.counts, other.distinct, other.low, other.high, other.nulls
        )  # fmt: skip
    different = sum(profile.distinct for profile in here)
    assert different < max(brought) <= different + 16
