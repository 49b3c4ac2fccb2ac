"""Marginal counts of rows: of their codes in memory, or wherever the engine leaves the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from voile.arrays import Ints
from voile.compiled import compiled
from voile.engines.jobs import CellCounts, check_same
from voile.engines.table import Table
from voile.kinds.marginals.residuals import Columns
from voile.progress import Progress
from voile.schema import Schema

Codes = npt.NDArray[Any]
"""Whole numbers from 0 on, of any width."""


class MarginalCounter(Protocol):
    """Counts the rows of a table by some of its columns."""

    sizes: tuple[int, ...]
    rows: int

    def counts(self, columns: Columns) -> Ints:
        """How many rows have each combination of values of some columns."""
        ...

    def expect(self, sets: Sequence[Columns]) -> None:
        """These sets will be counted, in this order."""
        ...


def counter_of(
    table: Table, schema: Schema, *, drop_nulls: bool, progress: Progress
) -> MarginalCounter:
    """What counts a table, in memory where its rows may be taken there."""
    if not table.at_hand:
        return TableCounter(table, schema, drop_nulls=drop_nulls)
    codes, _ = table.columns_of_codes(schema, drop_nulls=drop_nulls, progress=progress)
    return CodeCounter(codes, schema.sizes, len(codes[0]))


AT_ONCE = 2**22
"""Cells that are counted in one pass over a table."""


class TableCounter:
    """Counts rows where they lie, many sets of columns in a pass."""

    def __init__(self, table: Table, schema: Schema, *, drop_nulls: bool) -> None:
        self._table, self._schema, self._drop_nulls = table, schema, drop_nulls
        self.sizes = tuple(schema.sizes)
        self.rows = table.used_rows(schema, drop_nulls=drop_nulls)
        self._expected: list[Columns] = []
        self._found: dict[Columns, Ints] = {}

    def expect(self, sets: Sequence[Columns]) -> None:
        """These sets will be counted: so they are counted together."""
        self._expected = list(sets)

    def counts(self, columns: Columns) -> Ints:
        """How many rows have each combination of values of some columns; once for each set."""
        if not columns:
            return np.array(self.rows, dtype=np.int64)
        if columns not in self._found:
            sets = self._next(columns)
            job = CellCounts(self.sizes, tuple(sets))
            found = self._table.coded_sums(self._schema, job, drop_nulls=self._drop_nulls)
            tables = job.tables(found)
            check_same(self._table.name, self.rows, tables)
            self._found |= dict(zip(sets, tables, strict=True))
        return self._found[columns]

    def _next(self, columns: Columns) -> list[Columns]:
        """A set and those that are likely to be asked for after it, as many as fit."""
        following = self._expected
        if columns not in following:
            order = len(columns)
            following = list(combinations(range(len(self.sizes)), order))
        start = following.index(columns)
        found: list[Columns] = []
        cells = 0
        for some in following[start:]:
            cells += math.prod(self.sizes[i] for i in some)
            if found and cells > AT_ONCE:
                break
            if some and some not in self._found:
                found.append(some)
        return found


class CodeCounter:
    """Counts rows that are given as codes, column by column."""

    def __init__(self, codes: Sequence[Codes], sizes: Sequence[int], rows: int) -> None:
        self._codes = [narrow(code, size) for code, size in zip(codes, sizes, strict=True)]
        self.sizes, self.rows = tuple(sizes), rows

    def expect(self, sets: Sequence[Columns]) -> None:
        """Nothing is gained by knowing: the codes are in memory."""

    def counts(self, columns: Columns) -> Ints:
        """How many rows have each combination of values of some columns."""
        shape = [self.sizes[i] for i in columns]
        if not columns:
            return np.array(self.rows, dtype=np.int64)
        *others, last = columns
        cell = self._codes[others[0]] if others else np.zeros(self.rows, np.uint8)
        for i in others[1:]:
            cell = cell.astype(np.int64) * self.sizes[i] + self._codes[i]
        found = np.zeros(math.prod(shape), dtype=np.int64)
        count_pairs(cell, self._codes[last], self.sizes[last], found)
        return found.reshape(shape)


def narrow(code: Codes, size: int) -> Codes:
    """In as few bytes as hold the codes: many columns are counted from memory."""
    if len(code) and not (int(code.min()) >= 0 and int(code.max()) < size):
        raise ValueError(f"codes of a column of {size} values are not from 0 to {size - 1}")
    width = np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32
    return np.ascontiguousarray(code, dtype=width)


@compiled
def count_pairs(first: Codes, second: Codes, size: int, found: Ints) -> None:
    """Add up the rows of every pair of codes, in the order of a table."""
    for row in range(len(first)):
        found[np.int64(first[row]) * size + np.int64(second[row])] += 1
