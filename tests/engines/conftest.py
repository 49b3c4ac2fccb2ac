"""The engines under test, and how each is given rows.

A new engine adds a line to SOURCES, and must pass every test of this folder.
"""

from __future__ import annotations

import atexit
import datetime as dt
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.engines.scattered import Scattered
from tests.spark.cluster import ApacheSpark, turn
from tests.spark.conftest import apache_spark  # noqa: F401  (a fixture)
from voile.engines.registry import Engine, engines
from voile.engines.rows import ReleaseRows
from voile.engines.spark import Spark, SparkSource
from voile.engines.spark.session import LOCAL, cluster_at
from voile.engines.table import Table
from voile.kinds.parquet import write_part
from voile.schema import Attribute, Bins, Interval, Range, Schema, TupleIndex, Values


@dataclass(frozen=True)
class OnCluster(Spark):
    """Spark's engine with one cluster for releases as well: Sail in this process, or Apache's."""

    address: str = LOCAL

    def open_rows(
        self, parts: Sequence[Path], schema: Schema, *, scores: Any = None, beside: Any = None
    ) -> ReleaseRows:
        from voile.engines.spark.rows import SparkRows

        cluster = cluster_at(self.address)
        return SparkRows(cluster, [str(p) for p in parts], schema, scores, beside)


def files_of(rows: pa.Table, address: str = LOCAL) -> SparkSource:
    """A file that a cluster on this machine reads, of several row groups where rows are many."""
    folder = Path(tempfile.mkdtemp(prefix="voile-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    pq.write_table(rows, folder / "table.parquet", row_group_size=1000)
    return SparkSource(address, str(folder / "table.parquet"))


SOURCES: dict[str, Callable[[pa.Table], object]] = {
    "duckdb": lambda rows: rows,
    "scattered": lambda rows: rows,
    "spark": files_of,
}
"""A source of the engine that has these rows."""

ODD = 'o\'dd "name"'
NAMES = ("age", "sex", "income", "member", "day", ODD)


@dataclass(frozen=True)
class Tables:
    """Makes tables and rows of one engine."""

    engine: Engine

    @property
    def keeps_order(self) -> bool:
        """Whether rows are numbered as the source has them."""
        return self.engine.name != "spark"

    def where(self, row: int, column: str) -> str:
        """How a message says where a value is."""
        return f"row {row}, column {column!r}" if self.keeps_order else f"^column {column!r}"

    def ordered(self, rows: pa.Table) -> pa.Table:
        """Rows in the order in which the engine numbers them."""
        if self.keeps_order:
            return rows
        keys = [(name, "ascending", "at_start") for name in rows.column_names]
        return rows.take(pc.sort_indices(rows, sort_keys=keys))

    def table(self, rows: pa.Table) -> Table:
        if isinstance(self.engine, OnCluster):
            return self.engine.table_type()(files_of(rows, self.engine.address))
        return self.engine.table_type()(SOURCES[self.engine.name](rows))

    def rows(
        self, folder: Path, schema: Schema, parts: Sequence[Sequence[Any]], **more: Any
    ) -> ReleaseRows:
        """A release whose files hold these codes, a list of columns for each file."""
        index, files = TupleIndex(schema.sizes), []
        for number, codes in enumerate(parts):
            files.append(folder / f"part-{number}.parquet")
            write_part(files[-1], schema, [index.encode(codes)])
        return self.engine.open_rows(files, schema, **more)


TESTED = [OnCluster() if engine.name == "spark" else engine for engine in engines()]
APACHE = pytest.param("apache", id="apache", marks=pytest.mark.soak)


@pytest.fixture(params=[*TESTED, Scattered(), APACHE], ids=lambda engine: engine.name)
def made(request: pytest.FixtureRequest) -> Iterator[Tables]:
    """Apache Spark is started where a soak finds Java and `.spark`; one worker asks at a time."""
    if request.param != "apache":
        yield Tables(request.param)
        return
    spark: ApacheSpark = request.getfixturevalue("apache_spark")
    with turn(spark.folder / "turn"):
        spark.await_executors()
        yield Tables(OnCluster(spark.address))


def people(count: int, seed: int = 0, *, nulls: float = 0.1) -> pa.Table:
    """Rows of every kind of column, a share of them NULL in each."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind, mask=rng.random(count) < nulls)

    ages = rng.integers(17, 25, count).tolist()
    days = [dt.date(2024, 1, 30) + dt.timedelta(int(d)) for d in rng.integers(0, 4, count)]
    columns = [
        some(ages, pa.int32()),
        some(rng.choice(["Female", "Male", "O'Hara", ""], count).tolist(), pa.string()),
        some((rng.integers(-4, 5, count) / 4).tolist(), pa.float64()),
        some((rng.random(count) < 0.3).tolist(), pa.bool_()),
        some(days, pa.date32()),
        some(rng.integers(0, 3, count).tolist(), pa.int64()),
    ]
    return pa.table(columns, names=list(NAMES))


def frame(rows: pa.Table) -> pd.DataFrame:
    """The rows as Python has them, NULL as None: what is expected is counted on these."""
    return pd.DataFrame(
        {n: pd.Series(rows[n].to_pylist(), dtype=object) for n in rows.column_names}
    )


def domain(*, null: bool) -> Schema:
    """A domain for `people`."""
    texts = ("", "Female", "Male", "O'Hara")
    days = Range(dt.date(2024, 1, 30), dt.date(2024, 2, 2))
    return Schema(
        (
            Attribute("age", "integer", Range(17, 24), null=null),
            Attribute("sex", "categorical", Values(texts), null=null),
            Attribute("income", "numeric", Bins((-1.0, -0.5, 0.0, 0.5, 1.0)), null=null),
            Attribute("member", "boolean", Values((False, True)), null=null),
            Attribute("day", "date", days, null=null),
            Attribute(ODD, "integer", Range(0, 2), null=null),
        )
    )


def code_of(attribute: Attribute, value: Any) -> int:
    """The place of a value in its domain, by looking at each."""
    if value is None:
        assert attribute.null
        return attribute.size - 1
    match attribute.domain:
        case Bins(edges):
            inside = [i for i in range(len(edges) - 1) if edges[i] <= value < edges[i + 1]]
            return inside[0] if inside else len(edges) - 2
        case Interval() as grid:
            points = [(grid.first + i * grid.stride) / grid.per for i in range(grid.size)]
            return min(range(grid.size), key=lambda i: (abs(points[i] - value), -i))
        case _:
            return list(attribute.domain).index(value)


def codes_of(rows: pa.Table, schema: Schema) -> list[np.ndarray[Any, Any]]:
    """Every row's codes, in the order of the rows."""
    listed = {name: rows[name].to_pylist() for name in schema.names}
    return [np.array([code_of(a, v) for v in listed[a.name]], dtype=np.int64) for a in schema]
