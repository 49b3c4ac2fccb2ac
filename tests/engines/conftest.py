"""The engines under test, and how each is given rows.

A new engine adds a line to SOURCES, and must pass every test of this folder.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.engines.scattered import Scattered
from voile.engines.registry import Engine, engines
from voile.engines.rows import ReleaseRows
from voile.engines.table import Table
from voile.kinds.parquet import write_part
from voile.schema import Attribute, Bins, Interval, Range, Schema, TupleIndex, Values

SOURCES: dict[str, Callable[[pa.Table], object]] = {
    "duckdb": lambda rows: rows,
    "scattered": lambda rows: rows,
}
"""A source of the engine that has these rows."""

ODD = 'o\'dd "name"'
NAMES = ("age", "sex", "income", "member", "day", ODD)


@dataclass(frozen=True)
class Tables:
    """Makes tables and rows of one engine."""

    engine: Engine

    def table(self, rows: pa.Table) -> Table:
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


@pytest.fixture(params=[*engines(), Scattered()], ids=lambda engine: engine.name)
def made(request: pytest.FixtureRequest) -> Tables:
    return Tables(request.param)


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
