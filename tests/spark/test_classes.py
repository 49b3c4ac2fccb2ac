"""Classes of tables on a cluster that differ too much for the driver: the bytes of DuckDB's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.engines.conftest import people
from voile.engines.jobs import CellCounts, CodedJob, DealtRows
from voile.engines.spark import SparkSource
from voile.engines.spark.session import LOCAL
from voile.engines.spark.table import SparkTable
from voile.errors import TableError
from voile.kinds.classes import reading
from voile.schema import Schema

ADULT: dict[str, Any] = {
    "qi": ["age", "sex", "education", "race"], "sensitive": ["salary"],
    "insensitive": ["hours_per_week"],
}  # fmt: skip
PEOPLE: dict[str, Any] = {"qi": ["age", "sex", "day", "o'dd \"name\""], "sensitive": ["member"],
          "insensitive": ["income"]}  # fmt: skip
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "adult, k": ("adult", ADULT | {"k": 10}),
    "adult, t": ("adult", ADULT | {"t": 0.1, "k": 5}),
    "adult, l and buckets": ("adult", ADULT | {"l": 1.2, "recode": "bucketize"}),
    "adult, hierarchies": ("adult", ADULT | {"k": 7, "cuts": "hierarchy"}),
    "people, NULL as a value": ("people", PEOPLE | {"k": 10, "nulls": "as-value"}),
    "people, NULL dropped": ("people", PEOPLE | {"k": 5, "t": 0.3, "nulls": "drop"}),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tables")
    names = [*ADULT["qi"], *ADULT["sensitive"], *ADULT["insensitive"]]
    rows: dict[str, pa.Table] = {
        "adult": voile.read("dataset:adult").rows(names)[0],
        "people": people(3000),
    }
    for name, table in rows.items():
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=700)
    return {name: folder / f"{name}.parquet" for name in rows}


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes were counted on each level."""
    found, known = list[int](), SparkTable.coded_sums

    def coded_sums(self: SparkTable, schema: Schema, job: CodedJob, **more: Any) -> pa.Table:
        if isinstance(job, DealtRows) and isinstance(job.job, CellCounts):
            found.append(job.job.sizes[0])
        return known(self, schema, job, **more)

    def keys(*_: Any, **__: Any) -> None:
        raise AssertionError("all rows were asked for")

    monkeypatch.setattr(SparkTable, "coded_sums", coded_sums)
    monkeypatch.setattr(SparkTable, "keys", keys)
    return found


def written(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file()}


@pytest.mark.parametrize("asked", ASKED)
def test_first_cuts_on_a_cluster_give_the_same_release(
    asked: str,
    tables: dict[str, Path],
    tmp_path: Path,
    levels: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, options = ASKED[asked]
    monkeypatch.setattr(reading, "MOST_HELD", 4000 if name == "adult" else 300)
    for place, source in (
        ("here", str(tables[name])), ("there", SparkSource(LOCAL, str(tables[name]))),
    ):  # fmt: skip
        voile.publish(
            source, to=tmp_path / f"{place}.voile", method="mondrian", simulate_seed=1,
            register=False, error_model=False,
            **{"cuts": "median"} | options,
        )  # fmt: skip
    assert len(levels) >= 3
    here, there = (written(tmp_path / f"{place}.voile") for place in ("here", "there"))
    assert sorted(here) == sorted(there)
    assert not [file for file in here if here[file] != there[file]]


def test_the_driver_says_what_it_cannot_hold(
    tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = SparkSource(LOCAL, str(tables["adult"]))
    different = voile.read(str(tables["adult"])).run(
        "select count(*) from (select distinct * from t)"
    )[0][0]
    monkeypatch.setattr(reading, "MOST_HELD", different - 1)
    with pytest.raises(TableError, match=rf"{different:,} different ones are more than") as told:
        voile.publish(source, method="fulldomain", k=10, error_model=False, **ADULT)
    assert "method='mondrian'" in (told.value.hint or "")
    monkeypatch.setattr(reading, "MOST_HELD", different)
    voile.publish(source, method="trivial", k=10, error_model=False, register=False, **ADULT)
    monkeypatch.setattr(reading, "MOST_SINGLE", 48_841)
    with pytest.raises(TableError, match="deals out single rows"):
        voile.publish(source, method="anatomy", l=1.2, **ADULT)
