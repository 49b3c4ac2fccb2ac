"""The compiled loops over the rows of one node of Mondrian's tree.

Units lie in a table of records, one line each: the positions of the quasi-identifiers, then the
codes of the sensitive attributes. A node is a run of lines. Cutting a node moves lines, so that
each node's lines stay together: every pass reads memory in order, however deep the node is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from voile.compiled import compiled
from voile.recoding.units import Codes, Counts

Records = npt.NDArray[Any]
"""(units, quasi-identifiers + sensitive attributes): uint16 where all domains allow it."""
Floats = npt.NDArray[np.float64]

SPARSE = 8
"""A range of positions that is wider than this many times the node's units is sorted, not
counted: narrow nodes of wide columns would else pay for positions that nobody has."""


class Lines(NamedTuple):
    """The units, in the order in which the cuts have put them so far."""

    records: Records
    index: Codes
    """Which unit each line is."""
    weights: Counts
    """Rows of each unit; empty where every unit is one row."""
    population: Counts
    """Public rows of each unit; empty where no public table is given."""
    sizes: Counts
    """(quasi-identifiers,): how many positions each has."""
    starts: Counts
    """(sensitive attributes + 1,): where each begins in a histogram of all of them."""


class Room(NamedTuple):
    """Arrays that every node uses anew."""

    node: Counts
    part: Counts
    rest: Counts
    """Histograms: of the node, of a part of it, and of what is left."""
    low: Counts
    high: Counts
    order: Counts
    cuts: Counts
    positions: Counts


@compiled
def room_for(lines: Lines) -> Room:
    values, columns, widest = lines.starts[-1], lines.sizes.size, lines.sizes.max()
    return Room(
        np.zeros(values, dtype=np.int64), np.zeros(values, dtype=np.int64),
        np.zeros(values, dtype=np.int64), np.zeros(columns, dtype=np.int64),
        np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64),
        np.zeros(widest, dtype=np.int64), np.zeros(widest, dtype=np.int64),
    )  # fmt: skip


@compiled
def weight(lines: Lines, i: int) -> int:
    """How many rows line i stands for."""
    return 1 if lines.weights.size == 0 else lines.weights[i]


@compiled
def exchange(lines: Lines, i: int, j: int) -> None:
    """Swap two lines."""
    for column in range(lines.records.shape[1]):
        held = lines.records[i, column]
        lines.records[i, column] = lines.records[j, column]
        lines.records[j, column] = held
    lines.index[i], lines.index[j] = lines.index[j], lines.index[i]
    if lines.weights.size > 0:
        lines.weights[i], lines.weights[j] = lines.weights[j], lines.weights[i]
    if lines.population.size > 0:
        lines.population[i], lines.population[j] = lines.population[j], lines.population[i]


@compiled
def divide(lines: Lines, start: int, stop: int, column: int, cut: int) -> int:
    """Put the lines up to the cut first; where the others begin."""
    i, j = start, stop - 1
    while True:
        while i <= j and lines.records[i, column] <= cut:
            i += 1
        while i <= j and lines.records[j, column] > cut:
            j -= 1
        if i >= j:
            return i
        exchange(lines, i, j)
        i += 1
        j -= 1


@compiled
def extent(lines: Lines, start: int, stop: int, counted: bool, low: Counts, high: Counts) -> None:
    """The least and largest position in each column, of all lines or of those that count rows."""
    for column in range(lines.sizes.size):
        low[column] = lines.sizes[column]
        high[column] = -1
    some = counted and lines.weights.size > 0
    for i in range(start, stop):
        if some and lines.weights[i] == 0:
            continue
        for column in range(lines.sizes.size):
            code = np.int64(lines.records[i, column])
            low[column] = min(low[column], code)
            high[column] = max(high[column], code)


@compiled
def tally(lines: Lines, start: int, stop: int, histogram: Counts) -> tuple[int, int]:
    """Fill the histogram of all sensitive attributes; rows and public rows of these lines."""
    histogram[:] = 0
    columns, rows, population = lines.sizes.size, 0, 0
    for i in range(start, stop):
        count = weight(lines, i)
        rows += count
        if lines.population.size > 0:
            population += lines.population[i]
        for a in range(lines.starts.size - 1):
            histogram[lines.starts[a] + np.int64(lines.records[i, columns + a])] += count
    return rows, population


@compiled
def tally_between(
    lines: Lines, start: int, stop: int, column: int, above: int, upto: int, histogram: Counts
) -> tuple[int, int]:
    """As `tally`, of the lines whose position in the column is above one and up to another."""
    histogram[:] = 0
    columns, rows, population = lines.sizes.size, 0, 0
    for i in range(start, stop):
        code = np.int64(lines.records[i, column])
        if code <= above or code > upto:
            continue
        count = weight(lines, i)
        rows += count
        if lines.population.size > 0:
            population += lines.population[i]
        for a in range(lines.starts.size - 1):
            histogram[lines.starts[a] + np.int64(lines.records[i, columns + a])] += count
    return rows, population


@compiled
def in_order(lines: Lines, start: int, stop: int, column: int, low: int, high: int) -> Counts:
    """The lines' numbers in the order of their positions in the column, which lie in low … high."""
    count = stop - start
    if high - low > SPARSE * count:
        return np.argsort(lines.records[start:stop, column].copy(), kind="mergesort") + start
    place = np.zeros(high - low + 2, dtype=np.int64)
    for i in range(start, stop):
        place[np.int64(lines.records[i, column]) - low + 1] += 1
    for value in range(1, place.size):
        place[value] += place[value - 1]
    ordered = np.empty(count, dtype=np.int64)
    for i in range(start, stop):
        value = np.int64(lines.records[i, column]) - low
        ordered[place[value]] = i
        place[value] += 1
    return ordered


@compiled
def median(
    lines: Lines, start: int, stop: int, column: int, low: int, high: int, rows: int, counts: Counts
) -> int:
    """The lower median: the least present position up to which at least half of the rows lie.

    If that is the largest present one, the next lower present one. `counts` is room for the
    column's positions. Lines that count no rows have no say.
    """
    if high - low > SPARSE * (stop - start):
        return sorted_median(lines, start, stop, column, high, rows)
    counts[: high - low + 1] = 0
    for i in range(start, stop):
        code = np.int64(lines.records[i, column]) - low
        if 0 <= code <= high - low:
            counts[code] += weight(lines, i)
    below, last = 0, low
    for position in range(low, high):
        if counts[position - low] == 0:
            continue
        below += counts[position - low]
        last = position
        if 2 * below >= rows:
            break
    return last


@compiled
def sorted_median(lines: Lines, start: int, stop: int, column: int, high: int, rows: int) -> int:
    """`median` by sorting, for few units in a wide range."""
    order = np.argsort(lines.records[start:stop, column].copy(), kind="mergesort") + start
    below, last = 0, -1
    for i in order:
        position = np.int64(lines.records[i, column])
        count = weight(lines, i)
        if count == 0 or position >= high:
            continue
        if position != last and last >= 0 and 2 * below >= rows:
            break
        below += count
        last = position
    return last
