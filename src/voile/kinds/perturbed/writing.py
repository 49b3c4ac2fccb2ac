"""Perturbing rows and writing them, wherever they lie.

Rows are dealt into blocks by their tuples, and within a block they are in the order of D: so a row
is known by its tuple and which copy of it it is, and its coins do not depend on where it lay or in
what order rows were read. Perturbed rows are dealt into files by what they show. What is here runs
on many machines: see voile.engines.jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from voile.engines.jobs import MadeKeys
from voile.kinds.parquet import write_part
from voile.kinds.perturbed.retention import OWN_VALUES, ColumnNoise, Local, WholeRows
from voile.noise.subkeys import Streams
from voile.schema import Keys, Schema, TupleIndex

Codes = npt.NDArray[Any]
BLOCK_ROWS = 2**18
"""Rows of a block, about: what is perturbed at once."""
FILE_ROWS = 2**22
"""Rows of a file, about."""


def blocks_of(rows: int) -> int:
    """Into how many blocks rows are dealt."""
    return max(1, -(-rows // BLOCK_ROWS))


def files_of(rows: int) -> int:
    """Into how many files rows are written."""
    return max(1, -(-rows // FILE_ROWS))


@dataclass(frozen=True)
class RowPerturber:
    """Perturbs the rows of a block."""

    mechanism: Local
    sizes: tuple[int, ...]
    parts: int

    @property
    def starts(self) -> None:
        """Blocks are no ranges: many rows may have the same first values."""
        return

    @cached_property
    def index(self) -> TupleIndex:
        """The numbering of the domain's tuples."""
        return TupleIndex(self.sizes)

    @property
    def _streams(self) -> list[str]:
        if isinstance(self.mechanism, WholeRows):
            return ["rows"]
        return [f"column {number}" for number in range(len(self.sizes))]

    def purposes(self) -> Iterator[tuple[str, int]]:
        """Of which coins are tossed."""
        return ((name, part) for part in range(self.parts) for name in self._streams)

    def made(self, part: int, keys: Keys, coins: Streams) -> MadeKeys:
        """Each row of a block kept or replaced, and how many stayed as they were."""
        codes: list[Any] = self.index.decode(keys)
        streams = [coins.stream(name, part) for name in self._streams]
        if isinstance(self.mechanism, WholeRows):
            shown = self.mechanism.perturb(codes, streams[0])
        else:
            shown = [
                noise.perturb(code, stream)
                for noise, code, stream in zip(self.mechanism.columns, codes, streams, strict=True)
            ]
        return MadeKeys(self.index.encode(shown), kept_figures(self.mechanism, codes, shown))


@dataclass(frozen=True)
class RowWriter:
    """Writes rows as they are, dealt into files by what they show, each in order."""

    schema: Schema
    parts: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the domain."""
        return tuple(self.schema.sizes)

    @property
    def starts(self) -> None:
        """Files are no ranges: many rows may have the same first values."""
        return

    def purposes(self) -> Iterator[tuple[str, int]]:
        """No coins are tossed."""
        return iter(())

    def write(
        self,
        part: int,  # noqa: ARG002  (all are written alike)
        keys: Iterator[Keys],
        coins: Streams,  # noqa: ARG002
        out: BinaryIO,
    ) -> dict[str, float]:
        """One file."""
        return {"rows": write_part(out, self.schema, keys)}


# ---------------------------------------------------------------------- as many as should be


def kept_figures(
    mechanism: Local, before: Sequence[Codes], after: Sequence[Codes]
) -> dict[str, float]:
    """By column, how many values stayed as they were, and how many should: to be added up."""
    if isinstance(mechanism, WholeRows):
        same = np.logical_and.reduce([a == b for a, b in zip(before, after, strict=True)])
        kept = mechanism.retention + (1 - mechanism.retention) / mechanism.size
        return figures_of(0, int(same.sum()), np.full(1, kept), np.full(1, len(same)))
    found: dict[str, float] = {}
    columns = zip(mechanism.columns, before, after, strict=True)
    for number, (noise, true, seen) in enumerate(columns):
        same_here = int(np.count_nonzero(true == seen))
        found |= figures_of(number, same_here, *unchanged(noise, true))
    return found


def figures_of(
    number: int, same: int, chances: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]
) -> dict[str, float]:
    """What stayed, with the mean and the variance of what should."""
    return {
        f"same {number}": float(same),
        f"mean {number}": float(chances @ counts),
        f"variance {number}": float((chances * (1 - chances)) @ counts),
    }


def unchanged(noise: ColumnNoise, true: Codes) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The chances that values are seen where they were, kept or drawn again; of how many each.

    Never of the size of the domain, which may be far larger than the table.
    """
    if noise.replace == "uniform":
        masses, counts = np.full(1, 1 / noise.size), np.full(1, len(true))
    else:
        values, counts = np.unique(true, return_counts=True)
        own = noise.replace in OWN_VALUES
        masses = counts / max(1, len(true)) if own else noise.masses()[values]
    return noise.retention + (1 - noise.retention) * masses, counts
