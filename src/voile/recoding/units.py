"""The rows as the grouping algorithms see them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.privacy.requirements import Histograms
from voile.schema import TupleIndex

Codes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Units:
    """Rows, with equal ones as one unit with a weight.

    Codes of quasi-identifiers are positions in the column's order: 0 … size−1.
    """

    codes: Codes
    """(quasi-identifiers, units), each row contiguous."""
    sizes: tuple[int, ...]
    """How many positions each quasi-identifier has."""
    sensitive: Codes
    """(sensitive attributes, units); there may be none."""
    sensitive_sizes: tuple[int, ...]
    weights: Counts
    """(units,): the rows that a unit stands for; 0 for one that only a public table has."""
    population: Counts | None = None
    """(units,): how many rows of a public table lie there, where one is given."""

    @property
    def rows(self) -> int:
        """How many rows the units stand for."""
        return int(self.weights.sum())

    @property
    def overall(self) -> tuple[Counts, ...]:
        """For each sensitive attribute, how many rows have each value."""
        return tuple(
            np.bincount(codes, self.weights, size).astype(np.int64)
            for codes, size in zip(self.sensitive, self.sensitive_sizes, strict=True)
        )

    def histograms(self, classes: Codes, number: int) -> Histograms:
        """The histograms of a grouping, given by each unit's class and the number of classes."""
        counts = tuple(
            np.bincount(classes.astype(np.int64) * size + codes, self.weights, number * size)
            .astype(np.int64)
            .reshape(number, size)
            for codes, size in zip(self.sensitive, self.sensitive_sizes, strict=True)
        )
        rows = np.bincount(classes, self.weights, number).astype(np.int64)
        population = self.population
        if population is not None:
            population = np.bincount(classes, population, number).astype(np.int64)
        return Histograms(rows, counts, self.overall, population)


DENSE = 2**25
"""Domains up to this are counted in one array; larger ones are sorted."""


def units_of_rows(
    codes: Sequence[npt.NDArray[Any]],
    sizes: Sequence[int],
    sensitive: Sequence[npt.NDArray[Any]],
    sensitive_sizes: Sequence[int],
    weights: Counts | None = None,
) -> tuple[Units, Codes]:
    """Rows as units, and which unit each row is; one may stand for several, by its weight."""
    index = TupleIndex([*sizes, *sensitive_sizes])
    keys = index.encode([*codes, *sensitive])
    if math.prod(index.sizes) <= DENSE:
        count = np.bincount(keys.astype(np.int64), weights).astype(np.int64)
        found = np.flatnonzero(count)
        place = np.empty(len(count), dtype=np.int32)
        place[found] = np.arange(len(found), dtype=np.int32)
        of_row, rows, unique = place[keys], count[found], found.astype(keys.dtype)
    else:
        unique, inverse = np.unique(keys, return_inverse=True)
        rows = np.bincount(inverse, weights).astype(np.int64)
        of_row = inverse.astype(np.int32)
    parts = np.array(index.decode(unique), dtype=np.int32).reshape(len(index.sizes), -1)
    units = Units(
        codes=np.ascontiguousarray(parts[: len(sizes)]),
        sizes=tuple(sizes),
        sensitive=np.ascontiguousarray(parts[len(sizes) :]),
        sensitive_sizes=tuple(sensitive_sizes),
        weights=rows,
    )
    return units, of_row
