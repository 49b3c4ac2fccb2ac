"""Means within bins: which columns they are measured of, with which noise, and their sums.

What decides is public: the domain, the declared or noisy number of rows n, and the budget. With
noise of standard deviation s (in rows) on the sums of places, the mean of a column of B bins that
are equally wide and full is off by s·√B/n widths. Without, it is off by COMMON and OWN of a width
(docs/mathematics, section 44), about 0.16. Means are measured where the first is at most PAYS.

Numbers beyond the ends of a learnt domain have places as well, as far out as REACHES says: an end
that reaches further makes the noise on its sum weigh more, by s/n of what it reaches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from voile.arrays import Ints
from voile.arrow import numpy_array
from voile.engines.table import Table
from voile.kinds.marginals.measuring import (
    MeasurementPlan,
    Noise,
    PlaceMeasurement,
    Unit,
    place_scale,
)
from voile.kinds.marginals.place_sums import STEPS, PlaceSums
from voile.schema import Schema
from voile.schema.places import NumberPlaces, hidden_bins, places_of, reached

SHARE = 0.05
"""Of the budget: means within bins of all columns together."""
PAYS = 0.08
"""The largest standard error of a column's mean, in widths of bins, at which they are measured."""
REACHES = (4.0, 2.0, 1.0, 0.5)
"""How far beyond the ends places go, in parts of the way from the middle to the end."""
FAR = 0.002
"""What noise at the farthest place may add to the mean, in parts of that way."""


@dataclass(frozen=True)
class PlacedColumn:
    """A column whose means within bins are measured."""

    column: int
    name: str
    places: NumberPlaces
    scale: float
    """Of the noise on each sum, in steps."""

    @property
    def measurement(self) -> PlaceMeasurement:
        """As the plan has it."""
        return PlaceMeasurement(self.column, self.places.size, self.scale)


def measurable(schema: Schema, table: Table) -> tuple[int, ...]:
    """The hidden bins of each column; 0 where the table has something else than numbers."""
    return tuple(
        hidden_bins(a) if table.kind(a.name) in ("integer", "numeric") else 0 for a in schema
    )


@dataclass(frozen=True)
class PlaceBudget:
    """What means within bins may cost, and which columns it is for."""

    noise: Noise
    unit: Unit
    amount: float
    """ρ, or ε, of all that is measured."""

    def paying(self, bins: Sequence[int], rows: float | None) -> list[int]:
        """The columns of which means are worth measuring, for about so many rows.

        Fewer columns have less noise each: those of the most bins are given up first. Where
        nothing is known of the number of rows, all are.
        """
        found = sorted((i for i, number in enumerate(bins) if number), key=lambda i: bins[i])
        while found and rows is not None:
            if self.deviation(len(found)) * bins[found[-1]] ** 0.5 <= PAYS * rows:
                break
            found.pop()
        return sorted(found)

    def share(self, bins: Sequence[int], rows: float | None) -> float:
        """Of the budget that is kept for means."""
        return SHARE if self.paying(bins, rows) else 0.0

    def scale(self, columns: int) -> float:
        """Of the noise, where so many columns share."""
        return place_scale(self.noise, self.unit, SHARE * self.amount / columns)

    def deviation(self, columns: int) -> float:
        """Of the noise on a sum of places, in rows."""
        times = 1.0 if self.noise == "gaussian" else 2**0.5
        return times * self.scale(columns) / STEPS

    def placed(
        self, schema: Schema, bins: Sequence[int], rows: float | None
    ) -> tuple[PlacedColumn, ...]:
        """The columns with their noise, and how far places reach."""
        paying, attributes = self.paying(bins, rows), list(schema)
        if not paying:
            return ()
        scale, times = self.scale(len(paying)), self.reach(len(paying), rows)
        found = []
        for i in paying:
            places = places_of(attributes[i], reached(attributes[i], times))
            assert places is not None  # noqa: S101  (it hides some)
            found.append(PlacedColumn(i, attributes[i].name, places, scale))
        return tuple(found)

    def reach(self, columns: int, rows: float | None) -> float:
        """How far beyond the ends places go."""
        if rows is None:
            return 1.0
        noise = self.deviation(columns) / rows
        return next((times for times in REACHES if times * noise <= FAR), REACHES[-1])


def place_sums(
    table: Table, names: Sequence[str], columns: Sequence[PlacedColumn], *, drop_nulls: bool
) -> list[Ints]:
    """The true sums of places of each column, by bin, in steps; NULL has no place."""
    found = [np.zeros(one.places.size, dtype=np.int64) for one in columns]
    if not columns:
        return found
    read = list(names) if drop_nulls else [one.name for one in columns]
    summed = table.typed_sums(
        read, PlaceSums(tuple((one.name, one.places) for one in columns)), drop_nulls=drop_nulls
    )
    column, place, steps = (numpy_array(summed.column(name)) for name in summed.column_names)
    for k in range(len(columns)):
        here = column == k
        found[k][place[here]] = steps[here]
    return found


def with_places(plan: MeasurementPlan, columns: Sequence[PlacedColumn]) -> MeasurementPlan:
    """The plan that measures these means as well."""
    return replace(plan, places=tuple(one.measurement for one in columns))
