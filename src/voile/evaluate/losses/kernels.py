"""The compiled loops of what a release tells of populations, cells and queries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Words
from voile.compiled import compiled
from voile.recoding.units import Codes, Counts

Truths = npt.NDArray[np.bool_]


@compiled
def sums_of_blocks(
    column: Codes, item: Codes, size: Codes, overlap: Floats, counts: Floats, found: Floats
) -> None:
    """Add to found[y]: Σ over blocks of their rows times the share of the block that lies in y.

    overlap[j, i, block] is the share of the block that has item i of column j. In the order of
    `mine` a population's share is that of the one which it narrows, times one more.
    """
    share = np.ones((overlap.shape[0] + 1, overlap.shape[2]))
    for y in range(column.size):
        above, here = share[size[y] - 1], share[size[y]]
        factor, into = overlap[column[y], item[y]], found[y]
        for block in range(here.size):
            here[block] = above[block] * factor[block]
        for block in range(here.size):
            if here[block] != 0.0:
                for s in range(into.size):
                    into[s] += here[block] * counts[block, s]


@compiled
def box_densities(
    cells: Codes,
    low: Codes,
    high: Codes,
    counts: Floats,
    first: Counts,
    last: Counts,
    found: Floats,
) -> None:
    """Add to found[c, s]: Σ of the rows of boxes that have the cell, divided by their positions.

    The cells that can be in box b are those in [first[b], last[b]).
    """
    for b in range(low.shape[0]):
        size = 1.0
        for j in range(low.shape[1]):
            size *= high[b, j] - low[b, j] + 1
        for c in range(first[b], last[b]):
            inside = True
            for j in range(low.shape[1]):
                if cells[j, c] < low[b, j] or cells[j, c] > high[b, j]:
                    inside = False
                    break
            if inside:
                for s in range(found.shape[1]):
                    found[c, s] += counts[b, s] / size


@compiled
def answers_of_points(
    codes: Codes, counts: Floats, asked: Words, starts: Counts, found: Floats
) -> None:
    """Add to found[query]: the rows of the points that the query selects.

    asked[starts[j] + code] has a bit for each query: whether it selects that value of column j.
    The last column is the sensitive one.
    """
    selected = np.empty(asked.shape[1], dtype=np.uint64)
    for b in range(codes.shape[1]):
        selected[:] = asked[starts[0] + codes[0, b]]
        for j in range(1, codes.shape[0]):
            selected &= asked[starts[j] + codes[j, b]]
        for s in range(counts.shape[1]):
            if counts[b, s] == 0.0:
                continue
            for w in range(selected.size):
                word = selected[w] & asked[starts[-1] + s, w]
                query = 64 * w
                while word:
                    if word & np.uint64(1):
                        found[query] += counts[b, s]
                    word >>= np.uint64(1)
                    query += 1
