"""Writing the view: every range of D perturbed on its own, on all cores."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from voile.errors import ReleaseError
from voile.kinds.manifest import File, file_entry
from voile.kinds.parquet import write_part
from voile.mechanisms import Publishing
from voile.noise import Key
from voile.progress import Progress
from voile.schema import Keys, Schema, TupleIndex

RANGE_ROWS = 2**20
"""Expected noise rows of a range of D, the unit of work."""
FILE_RANGES = 4


@dataclass(frozen=True)
class ViewWriter:
    """Perturbs and writes, a file for each few ranges of D.

    The ranges depend on the domain and the parameters alone, so that the same key gives the same
    bytes on any machine, and so that the files tell nothing about the private rows.
    """

    folder: Path
    mechanism: Publishing
    schema: Schema
    key: Key
    progress: Progress

    @cached_property
    def index(self) -> TupleIndex:
        return TupleIndex(self.schema.sizes)

    @cached_property
    def cuts(self) -> list[int]:
        """Ranges of the first word of D, each with about RANGE_ROWS rows of noise."""
        return self.mechanism.cuts(self.index, RANGE_ROWS)

    def write(self, members: Keys) -> list[File]:
        """Write the view of these records, given as sorted keys."""
        ranges = len(self.cuts) - 1
        starts = [np.searchsorted(members, self.index.first_key(cut))[0] for cut in self.cuts[:-1]]
        parts = np.split(members, starts[1:])
        (self.folder / "data").mkdir()
        expected = self.mechanism.expected_noise(self.schema.size)
        self.progress.start("writing", round(expected) + len(members))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            numbers = range(math.ceil(ranges / FILE_RANGES))
            written = list(pool.map(lambda number: self._write_file(number, parts), numbers))
        check_noise(self.mechanism, sum(noise for _, noise in written), self.schema.size)
        return [file for file, _ in written]

    def _write_file(self, number: int, parts: list[Keys]) -> tuple[File, int]:
        """One file, and how many rows of noise were drawn for it."""
        path = self.folder / "data" / f"part-{number:05d}.parquet"
        drawn: list[int] = []

        def batches() -> Iterator[Keys]:
            for i in range(number * FILE_RANGES, min((number + 1) * FILE_RANGES, len(parts))):
                first, last = self.cuts[i], self.cuts[i + 1]
                noise = self.mechanism.noise_rows(self.index, self.key, i, first, last)
                drawn.append(len(noise))
                yield from self.mechanism.view(parts[i], noise, self.key, i)
                self.progress.advance(len(noise) + len(parts[i]))

        rows = write_part(path, self.schema, batches())
        return file_entry(self.folder, path, rows), sum(drawn)


def check_noise(mechanism: Publishing, drawn: int, size: int) -> None:
    """The noise that was drawn must be what the promise needs, up to ten standard deviations.

    A sound sampler fails this less than once in 10²⁰ releases; one with a few per cent too
    little noise always does on tables of the usual size.
    """
    mean, spread = mechanism.expected_noise(size), mechanism.noise_deviation(size)
    if abs(drawn - mean) > 10 * spread + 50:
        raise ReleaseError(
            f"{drawn:,} noise rows were drawn where {mean:,.0f} ± {spread:,.0f} are needed",
            hint="nothing was released; please report this",
        )
