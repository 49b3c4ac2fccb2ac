"""What runs on executors for a release's rows: values to codes, and how often tuples occur."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from voile.arrays import Ints
from voile.arrow import arrow_array
from voile.engines.encode import OUTSIDE, codes, column_type
from voile.schema import Attribute, Keys, TupleIndex

Batches = Iterator[pa.RecordBatch]
PLACE, COUNT = "place", "n"


@dataclass(frozen=True)
class EncodeRows:
    """Every row's place in each attribute's domain."""

    attributes: tuple[Attribute, ...]

    @property
    def output(self) -> pa.Schema:
        """A column of whole numbers for each attribute, in order."""
        return pa.schema([pa.field(f"c{i}", pa.int64()) for i in range(len(self.attributes))])

    def __call__(self, batches: Batches) -> Batches:
        """The columns of a batch are those of the attributes."""
        for batch in batches:
            columns = [arrow_array(code) for code in self.codes_of(batch)]
            yield pa.RecordBatch.from_arrays(columns, schema=self.output)

    def codes_of(self, batch: pa.RecordBatch) -> list[Ints]:
        """The codes of a batch."""
        return [
            codes(column.cast(column_type(attribute)), attribute)
            for column, attribute in zip(batch.columns, self.attributes, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class CountTuples:
    """How many rows are each of some tuples."""

    rows: EncodeRows
    wanted: Keys
    """Different keys, in order."""

    @property
    def output(self) -> pa.Schema:
        """The place of a key among those that are wanted, and some of the rows that have it."""
        return pa.schema([pa.field(PLACE, pa.int64()), pa.field(COUNT, pa.int64())])

    def __call__(self, batches: Batches) -> Batches:
        """Counted in one array for all rows of a partition."""
        index = TupleIndex([attribute.size for attribute in self.rows.attributes])
        found = np.zeros(len(self.wanted), np.int64)
        for batch in batches:
            coded = self.rows.codes_of(batch)
            inside = np.logical_and.reduce([code != OUTSIDE for code in coded])
            keys = index.encode([code[inside] for code in coded])
            at = np.searchsorted(self.wanted, keys)
            at, keys = at[at < len(self.wanted)], keys[at < len(self.wanted)]
            found += np.bincount(at[self.wanted[at] == keys], minlength=len(found))
        seen = np.flatnonzero(found)
        columns = [arrow_array(seen.astype(np.int64)), arrow_array(found[seen])]
        yield pa.RecordBatch.from_arrays(columns, schema=self.output)
