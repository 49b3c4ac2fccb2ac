"""What evaluation asks of a release: the truth that it is measured against, and what it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from voile.arrays import Floats
from voile.kinds.blocks import Orders, Points, Told, points
from voile.kinds.posteriors import Posterior
from voile.privacy.divergence import shares
from voile.recoding.grouping import Shown
from voile.recoding.units import Codes, Counts
from voile.schema import Schema


@dataclass(frozen=True, eq=False)
class Truth:
    """The private table: its different combinations of quasi-identifiers, with their rows."""

    schema: Schema
    """Of the quasi-identifiers, then the sensitive column."""
    cells: Codes
    counts: Counts
    """(cells, sensitive values)"""
    columns: Sequence[Codes]
    """Every row's values of all columns of the release but the sensitive one."""
    places: Mapping[str, Codes] = field(default_factory=dict)
    """For columns whose domain in the release is narrower: the code of each of its values here."""

    @property
    def qi(self) -> tuple[str, ...]:
        return tuple(self.schema.names[:-1])

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.schema.sizes[:-1])

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    @property
    def overall(self) -> Floats:
        return shares(self.counts.sum(axis=0))

    @property
    def told(self) -> Told:
        """What the table itself tells."""
        return (Points(self.counts.astype(np.float64), self.cells),)

    def by_position(self, orders: Sequence[Codes]) -> list[Counts]:
        """For each quasi-identifier the rows that have each value, in the column's order."""
        rows = self.counts.sum(axis=1)
        return [
            np.bincount(codes, rows, size).astype(np.int64)[order]
            for codes, size, order in zip(self.cells, self.sizes, orders, strict=True)
        ]

    @property
    def sensitive(self) -> str:
        return self.schema.names[-1]

    @cached_property
    def others(self) -> Codes:
        """(columns, people): different combinations of all columns but the sensitive one."""
        rows = np.stack([*self.columns, np.zeros(len(self.columns[0]), dtype=np.int32)])
        return points(rows, 1, np.ones(rows.shape[1])).codes


@dataclass(frozen=True, eq=False)
class ShownClasses:
    """Classes of rows, as a release shows them."""

    shown: Shown
    orders: Orders
    left_out: int
    """Rows that no class holds."""


@dataclass(frozen=True, eq=False)
class LossEvidence:
    """All that losses ask of a release."""

    told: Told
    """What it tells about rows, as blocks."""
    posterior: Posterior
    """What it lets one believe about a person."""
    classes: ShownClasses | None = None
    """Where it shows classes."""


class CountedSelections(Protocol):
    """Every selection of up to a few attributes, counted on rows."""

    @property
    def counts(self) -> Floats:
        """The rows that each selection has."""
        ...

    @property
    def domain(self) -> Floats:
        """The tuples of the domain that each has."""
        ...

    @property
    def subsets(self) -> Sequence[Sequence[int]]:
        """The attributes of each group of selections, in order."""
        ...
