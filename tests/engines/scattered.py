"""An engine whose rows lie in many places: small batches, which come in no order.

It stands for engines of many machines. What is made of its batches must not depend on where they
end or on which comes first.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from voile.arrays import Ints
from voile.engines.duckdb import DuckDb
from voile.engines.duckdb.rows import DuckRows
from voile.engines.duckdb.table import DuckTable
from voile.engines.table import CodedBatch, RowBatch
from voile.schema import Schema

SIZE = 37


def pieces(count: int) -> Iterator[slice]:
    return (slice(start, min(start + SIZE, count)) for start in range(0, max(count, 1), SIZE))


class ScatteredTable(DuckTable):
    """DuckDB's rows, dealt out anew in every scan."""

    def coded(self, schema: Schema, **more: Any) -> Iterator[CodedBatch]:
        found = []
        for batch in super().coded(schema, **more):
            for piece in pieces(len(batch.codes[0])):
                keys = None if batch.row_keys is None else batch.row_keys[piece]
                codes = [code[piece] for code in batch.codes]
                found.append(CodedBatch(codes, keys, batch.first + piece.start))
        random.shuffle(found)
        yield from found

    def batches(self, names: Sequence[str], *, drop_nulls: bool = False) -> Iterator[RowBatch]:
        found = [
            RowBatch(batch.rows[piece], batch.places[piece])
            for batch in super().batches(names, drop_nulls=drop_nulls)
            for piece in pieces(len(batch.places))
        ]
        random.shuffle(found)
        yield from found

    def combinations(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        found = [b[piece] for b in super().combinations(names) for piece in pieces(b.num_rows)]
        random.shuffle(found)
        yield from found


class ScatteredRows(DuckRows):
    """DuckDB's rows of a release, in no order."""

    def coded(self) -> Iterator[list[Ints]]:
        found = [
            [code[piece] for code in batch]
            for batch in super().coded()
            for piece in pieces(len(batch[0]))
        ]
        random.shuffle(found)
        yield from found


class Scattered(DuckDb):
    """Reads what DuckDB reads."""

    name = "scattered"

    def table_type(self) -> type[ScatteredTable]:
        return ScatteredTable

    def open_rows(
        self, parts: Sequence[Path], schema: Schema, *, scores: Any = None, beside: Any = None
    ) -> ScatteredRows:
        return ScatteredRows(parts, schema, scores, beside)
