"""Writing a view: every range of D perturbed on its own, wherever its records lie.

What is here runs on many machines: see voile.engines.jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

import numpy as np

from voile.engines.jobs import KeyReader
from voile.kinds.parquet import write_part
from voile.kinds.views.alphabeta import Publishing
from voile.noise.subkeys import Streams
from voile.schema import Keys, Schema, TupleIndex

RANGE_ROWS = 2**20
"""Expected noise rows of a range of D, the unit of work."""
FILE_RANGES = 4


@dataclass(frozen=True)
class ViewWriter:
    """Perturbs and writes, a file for each few ranges of D.

    The ranges depend on the domain and the parameters alone, so that the same key gives the same
    bytes on any machine, and so that the files disclose nothing about the private rows.
    """

    mechanism: Publishing
    schema: Schema

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the domain."""
        return tuple(self.schema.sizes)

    @cached_property
    def index(self) -> TupleIndex:
        """The numbering of the domain's tuples."""
        return TupleIndex(self.schema.sizes)

    @cached_property
    def cuts(self) -> list[int]:
        """Ranges of the first word of D, each with about RANGE_ROWS rows of noise."""
        return self.mechanism.cuts(self.index, RANGE_ROWS)

    @property
    def ranges(self) -> int:
        """How many ranges there are."""
        return len(self.cuts) - 1

    @property
    def parts(self) -> int:
        """How many files there are."""
        return math.ceil(self.ranges / FILE_RANGES)

    @property
    def starts(self) -> Keys:
        """The first key of each file."""
        firsts = self.cuts[:-1][::FILE_RANGES]
        return np.concatenate([self.index.first_key(cut) for cut in firsts])

    def purposes(self) -> Iterator[tuple[str, int]]:
        """Of which coins are tossed."""
        for number in range(self.ranges):
            yield from self.mechanism.purposes(number)

    def write(
        self, part: int, keys: Iterator[Keys], coins: Streams, out: BinaryIO
    ) -> dict[str, float]:
        """One file, and how many rows of noise were drawn for it."""
        drawn: list[int] = []
        reader = KeyReader(keys)

        def batches() -> Iterator[Keys]:
            for i in range(part * FILE_RANGES, min((part + 1) * FILE_RANGES, self.ranges)):
                first, last = self.cuts[i], self.cuts[i + 1]
                noise = self.mechanism.noise_rows(self.index, coins, i, first, last)
                drawn.append(len(noise))
                end = None if i + 1 == self.ranges else self.index.first_key(last)
                yield from self.mechanism.view(reader.before(end), noise, coins, i)

        rows = write_part(out, self.schema, batches())
        return {"rows": rows, "noise": sum(drawn)}
