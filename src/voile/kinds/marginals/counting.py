"""Marginal counts of coded rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Ints
from voile.compiled import compiled
from voile.kinds.marginals.residuals import Columns

Codes = npt.NDArray[Any]
"""Whole numbers from 0 on, of any width."""


class MarginalCounter:
    """Counts rows that are given as codes, column by column."""

    def __init__(self, codes: Sequence[Codes], sizes: Sequence[int], rows: int) -> None:
        self._codes = [narrow(code, size) for code, size in zip(codes, sizes, strict=True)]
        self.sizes, self.rows = tuple(sizes), rows

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
