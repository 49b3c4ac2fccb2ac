"""Tables in memory are read as DuckDB reads the same table in a file."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from voile.engines.duckdb.memory import MemoryColumns
from voile.engines.table import Nulls, Table
from voile.register.gathering import SAMPLE, SketchedRows
from voile.register.keys import FingerprintKey
from voile.register.sketch import fingerprint

ROWS = 600
RNG = np.random.default_rng(7)
TEXTS = pa.array(["", "b", None, "É ", "a"])


def column(kind: pa.DataType, low: int, high: int, *, gaps: bool = True) -> pa.Array:
    numbers = RNG.integers(low, high, ROWS)
    return pa.array(numbers, mask=(numbers == low) & gaps).cast(kind)


TABLE = pa.table(
    {
        "text": TEXTS.take(column(pa.int32(), 0, 5, gaps=False)),
        "large": TEXTS.take(column(pa.int32(), 0, 5)).cast(pa.large_string()),
        "listed": pa.DictionaryArray.from_arrays(column(pa.int8(), 0, 5), TEXTS),
        "own": pa.array([f"p{number}" for number in range(ROWS)]),
        "whole": column(pa.int16(), -40, 40),
        "far": pa.array(RNG.integers(-(2**60), 2**60, ROWS)),
        "day": column(pa.int32(), -9_000, -8_900).cast(pa.date32()),
        "truth": column(pa.int8(), 0, 3).cast(pa.bool_()),
        "number": pa.array(np.where(RNG.random(ROWS) < 0.1, np.nan, RNG.integers(0, 9, ROWS) / 4)),
    }
)
CHUNKED = pa.concat_tables([TABLE.slice(0, 7), TABLE.slice(7, 300), TABLE.slice(307)])
FEW = ["text", "large", "listed", "whole", "day", "number"]


@pytest.fixture(params=["whole", "chunked"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Table, Table]:
    """In memory, and in a file that DuckDB reads."""
    names = TABLE.column_names
    plain = [c.cast(pa.string()) if n in ("listed", "large") else c
             for n, c in zip(names, TABLE.columns, strict=True)]  # fmt: skip
    pq.write_table(pa.table(plain, names=names), tmp_path / "table.parquet")
    table = TABLE if request.param == "whole" else CHUNKED
    assert MemoryColumns.of(table) is not None
    return voile.read(table), voile.read(tmp_path / "table.parquet")


@pytest.mark.parametrize("drop", [False, True])
def test_it_is_read_as_duckdb_reads_it(both: tuple[Table, Table], drop: bool) -> None:
    memory, file = both
    names = list(file.columns)
    assert memory.columns == file.columns
    assert len(memory) == len(file)
    assert memory.null_counts(names) == file.null_counts(names)
    assert memory.complete_rows(FEW) == file.complete_rows(FEW) < ROWS
    assert memory.profiles(FEW, drop_nulls=drop) == file.profiles(FEW, drop_nulls=drop)
    (rows, places), (theirs, known) = (t.rows(FEW, drop_nulls=drop) for t in both)
    assert rows.schema.types == theirs.schema.types
    np.testing.assert_equal(rows.to_pydict(), theirs.to_pydict())
    assert places.tolist() == known.tolist()


@pytest.mark.parametrize("nulls", ["drop", "as-value"])
def test_codes_are_the_same(both: tuple[Table, Table], nulls: Nulls) -> None:
    memory, file = both
    schema = file.infer(FEW, nulls)
    assert memory.infer(FEW, nulls) == schema
    mine, theirs = (t.columns_of_codes(schema, drop_nulls=nulls == "drop")[0] for t in both)
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_fingerprints_are_the_same(both: tuple[Table, Table]) -> None:
    key = FingerprintKey(bytes(32))
    mine, theirs = (fingerprint(table, key)[0].pack() for table in both)
    assert mine == theirs


def test_other_types_are_left_to_duckdb() -> None:
    moment = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    for odd in ([moment], [[1]], [{"a": 1}], [None]):
        assert MemoryColumns.of(pa.table({"a": ["x"], "odd": odd})) is None
    assert MemoryColumns.of("table.parquet") is None


@pytest.mark.parametrize("different", [3, SAMPLE - 1, SAMPLE, 20_000, 2**40])
def test_samples_have_the_smallest_hashes(different: int) -> None:
    drawn = np.random.default_rng(different).integers(0, different, 30_000).astype(np.uint64)
    hashes = drawn * np.uint64(2**64 // different)
    sample = SketchedRows(1)
    for part in np.array_split(hashes, 3):
        sample.add(part, [(part >> np.uint64(32)).astype(np.uint32)])
    found, counts = np.unique(hashes, return_counts=True)
    assert sample.hashes.tolist() == found[:SAMPLE].tolist()
    assert sample.counts.tolist() == counts[:SAMPLE].tolist()
    assert sample.values[:, 0].tolist() == (found[:SAMPLE] >> np.uint64(32)).tolist()
