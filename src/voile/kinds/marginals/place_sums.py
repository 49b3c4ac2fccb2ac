"""Sums of places within bins, wherever the rows lie: a job, see voile.engines.jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from voile.arrays import Floats, Ints
from voile.arrow import arrow_array, numpy_array
from voile.engines.jobs import whole_numbers
from voile.schema.places import NumberPlaces

STEPS = 2**16
"""Parts of a bin that places within it are rounded to."""


@dataclass(frozen=True)
class PlaceSums:
    """The sums of places of each column, by bin: a job, see voile.engines.jobs."""

    columns: tuple[tuple[str, NumberPlaces], ...]
    """Names, and the bins of each."""

    @property
    def output(self) -> pa.Schema:
        """The column, the bin, and the steps."""
        return whole_numbers(("column", "bin"))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Of all these rows at once."""
        found = [np.zeros(places.size, dtype=np.int64) for _, places in self.columns]
        for batch in batches:
            for k, (name, places) in enumerate(self.columns):
                numbers = numpy_array(batch.column(name).drop_null()).astype(np.float64)
                found[k] += steps_by_bin(numbers, places)
        for k, sums in enumerate(found):
            columns = [np.full(len(sums), k, np.int64), np.arange(len(sums)), sums]
            yield pa.table([arrow_array(c) for c in columns], schema=self.output)


def steps_by_bin(numbers: Floats, places: NumberPlaces) -> Ints:
    """Σ round(STEPS·(place − ½)) over the numbers of each bin: each adds at most STEPS/2."""
    bins = places.stretches(numbers)
    steps = np.rint(STEPS * (places.places(numbers, bins) - 0.5))
    steps = np.clip(steps, -STEPS // 2, STEPS // 2)
    return np.bincount(bins, steps, minlength=places.size).astype(np.int64)
