"""Counting rows into the cells of every table, for every half, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from voile.compiled import compiled
from voile.noise import Key
from voile.noise.keyed import first_side
from voile.progress import Progress

Counts = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
MEMORY = 2**28
"""Bytes of cell numbers that are held at once."""


def counted(
    codes: Sequence[npt.NDArray[np.generic]],
    sizes: Sequence[int],
    sets: Sequence[tuple[int, ...]],
    halves: int,
    key: Key,
    progress: Progress,
) -> Iterator[Counts]:
    """For each set of columns the true counts of its cells: (halves, 2, cells), or (1, cells)."""
    rows = len(codes[0])
    at_once = max(1, MEMORY // (4 * rows))
    progress.start("counting", len(sets) * max(1, halves))
    for start in range(0, len(sets), at_once):
        some = sets[start : start + at_once]
        starts = np.cumsum([0, *(prod(sizes[j] for j in one) for one in some)])
        cells = np.empty((rows, len(some)), np.int32)
        for place, one in enumerate(some):
            cells[:, place] = cell_numbers(codes, sizes, one) + starts[place]
        whole = np.zeros(int(starts[-1]), np.int64)
        tally(cells, np.arange(rows), whole)
        first = np.zeros((halves, len(whole)), np.int64)
        for half in range(halves):
            tally(cells, first_side(key, half, rows), first[half])
            progress.advance(len(some))
        for low, high in pairwise(starts.tolist()):
            one_side = first[:, low:high]
            yield (
                np.stack([one_side, whole[low:high] - one_side], axis=1)
                if halves
                else whole[None, low:high]
            )


def cell_numbers(
    codes: Sequence[npt.NDArray[np.generic]], sizes: Sequence[int], columns: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """The cell of every row in the table of some columns."""
    found: npt.NDArray[np.int64] = np.zeros(len(codes[0]), np.int64)
    for j in columns:
        found = found * sizes[j] + codes[j].astype(np.int64)
    return found


@compiled
def tally(cells: Codes, rows: npt.NDArray[np.int64], into: Counts) -> None:
    """Add one for each of the rows to its cell of every table."""
    for row in rows:
        for place in range(cells.shape[1]):
            into[cells[row, place]] += 1
