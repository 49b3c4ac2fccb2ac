"""Counts of the values of columns, wherever the rows lie: jobs, see voile.engines.jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voile.arrays import Floats, Ints
from voile.arrow import arrow_array, numpy_array
from voile.engines.jobs import HELD, SUM, grouped, whole_numbers

COLUMN = "column"


def numbers_of(column: pa.Array, kind: str) -> Floats:
    """The numbers of a column without NULLs, dates as days since 1970-01-01."""
    present = column.drop_null()
    if kind == "date":
        present = present.cast(pa.int32())
    return numpy_array(present).astype(np.float64)


def histogram(edges: Sequence[float], numbers: Floats) -> Ints:
    """How many numbers are in each cell; what lies beyond the ends is in the end cells."""
    cells = len(edges) - 1
    place = np.searchsorted(np.asarray(edges), numbers, side="right") - 1
    return np.bincount(np.clip(place, 0, cells - 1), minlength=cells).astype(np.int64)


@dataclass(frozen=True)
class ValueCounts:
    """How many rows each value of some columns has; NULL is not counted."""

    names: tuple[str, ...]
    numbers: bool
    """Columns of numbers; else of texts."""

    @property
    def output(self) -> pa.Schema:
        """The column, the value, and the rows."""
        value = pa.field("value", pa.float64() if self.numbers else pa.string())
        return pa.schema([pa.field(COLUMN, pa.int64()), value, pa.field(SUM, pa.int64())])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Of many batches their different values."""
        held: list[pa.Table] = []
        rows = 0
        for batch in batches:
            for place, name in enumerate(self.names):
                column = batch.column(name).drop_null()
                if self.numbers:
                    # −0 and 0 are one number: which of them a row has must not show.
                    column = arrow_array(numpy_array(column).astype(np.float64) + 0.0)
                found = pc.value_counts(column)
                number = arrow_array(np.full(len(found), place, np.int64))
                counts = found.field("counts").cast(pa.int64())
                held.append(pa.table([number, found.field("values"), counts], schema=self.output))
                rows += len(found)
            if rows > HELD:
                yield grouped(held, self.output)
                held, rows = [], 0
        if held:
            yield grouped(held, self.output)


@dataclass(frozen=True)
class CellsOfNumbers:
    """How many numbers of some columns each cell has."""

    columns: tuple[tuple[str, str, tuple[float, ...]], ...]
    """Names, kinds, and the edges of the cells."""

    @property
    def output(self) -> pa.Schema:
        """The column, the cell, and the rows."""
        return whole_numbers((COLUMN, "cell"))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Of all these rows at once."""
        counts = [np.zeros(len(edges) - 1, np.int64) for _, _, edges in self.columns]
        for batch in batches:
            for place, (name, kind, edges) in enumerate(self.columns):
                counts[place] += histogram(edges, numbers_of(batch.column(name), kind))
        for place, found in enumerate(counts):
            cells = np.flatnonzero(found)
            columns = [np.full(len(cells), place, np.int64), cells, found[cells]]
            yield pa.table([arrow_array(c) for c in columns], schema=self.output)
