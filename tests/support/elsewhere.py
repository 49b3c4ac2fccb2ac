"""Tables whose rows lie elsewhere, without a cluster: jobs run here, and rows are not at hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Never

import pyarrow as pa

from voile.engines.duckdb.table import DuckTable
from voile.engines.jobs import CodedJob
from voile.schema import Schema


class Elsewhere(DuckTable):
    """DuckDB's rows, of which only what jobs make may be had."""

    at_hand = False
    piece = 7
    """Sums that come at a time."""

    def ordered_sums(
        self, schema: Schema, job: CodedJob, *, drop_nulls: bool
    ) -> Iterator[pa.Table]:
        found = self.coded_sums(schema, job, drop_nulls=drop_nulls)
        for start in range(0, max(1, found.num_rows), self.piece):
            yield found.slice(start, self.piece)

    def keys(self, *_: Any, **__: Any) -> Never:
        raise AssertionError("all rows were asked for")

    def columns_of_codes(self, *_: Any, **__: Any) -> Never:
        raise AssertionError("all rows were asked for")


class Counted(Elsewhere):
    """The same, with the number of nodes that each level of first cuts has counted."""

    def __init__(self, source: object) -> None:
        super().__init__(source)
        self.levels: list[int] = []

    def coded_sums(self, schema: Schema, job: CodedJob, **more: Any) -> pa.Table:
        sizes = getattr(getattr(job, "job", None), "sizes", None)
        if hasattr(getattr(job, "job", None), "sets") and sizes is not None:
            self.levels.append(sizes[0])
        return super().coded_sums(schema, job, **more)
