"""What an answer from published tables is computed from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.engines.rows import PublicDomain
from voile.query.domain import DomainSums
from voile.schema import Schema

Counts = npt.NDArray[np.int64]
Set = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Tables:
    """Every d-way table of a schema, of all rows or of both sides of every half."""

    schema: Schema
    arity: int
    halves: int
    """0: there is one table of each set of columns, of all rows."""
    rows: int
    variance: float
    """Of the noise on every figure."""
    load: Callable[[Set], Counts]
    """(sides, cells) without halves, where the only side is all rows; else (halves, 2, cells)."""

    @property
    def sets(self) -> list[Set]:
        return list(combinations(self.schema.names, self.arity))

    def shape(self, some: Set) -> tuple[int, ...]:
        return tuple(self.schema[name].size for name in some)

    @property
    def leaning(self) -> int:
        """By how many rows the first side of every half is larger."""
        return self.rows % 2

    @property
    def apart(self) -> int:
        """m: two different rows are on the same side with E[s·s'] = −1/m."""
        return self.rows - 1 + self.leaning

    @property
    def total_variance(self) -> float:
        """Of the noise on the count of a cell, from all halves together."""
        return self.variance if not self.halves else 2 * self.variance / self.halves

    def totals(self, some: Set) -> Floats:
        """The counts of all rows, made to sum to the number of rows, which is public."""
        found = self.load(some).astype(np.float64)
        found = found.sum(axis=1).mean(axis=0) if self.halves else found.reshape(-1)
        return np.asarray(found - (found.sum() - self.rows) / found.size)

    def contrasts(self, some: Set) -> Floats:
        """(halves, cells): one side less the other, made to sum to what is public."""
        found = self.load(some)
        apart = (found[:, 0] - found[:, 1]).astype(np.float64)
        return np.asarray(
            apart - (apart.sum(axis=1, keepdims=True) - self.leaning) / apart.shape[1]
        )


@dataclass(frozen=True, eq=False)
class ConjunctSource:
    """The tables of a release, and the engine that knows its domain."""

    engine: PublicDomain
    domain: DomainSums
    schema: Schema
    tables: Tables

    @property
    def rows(self) -> int:
        return self.tables.rows
