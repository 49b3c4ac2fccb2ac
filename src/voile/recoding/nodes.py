"""The compiled loops over the units of one node of Mondrian's tree.

Units lie in narrow columns: the positions of the quasi-identifiers, then the codes of the
sensitive attributes. A unit's place in all columns is a line, and a node is a run of lines. Cutting
a node moves lines, so that each node's lines stay together: every pass reads memory in order,
however deep the node is. Histograms are counted in a `Workspace`, which is made once for the whole
tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from voile.compiled import compiled
from voile.recoding.units import Codes, Counts

SPARSE = 8
"""A range of positions that is wider than this many times the node's units is sorted, not
counted: counting would be slow in small nodes of wide columns, where most positions are empty."""


class Lines(NamedTuple):
    """The units, in the order in which the cuts have put them so far."""

    columns: npt.NDArray[Any]
    """(quasi-identifiers + sensitive attributes, units): uint16 where all domains allow it."""
    unit: Codes
    """Which unit each line is."""
    weights: Counts
    """Rows of each unit; empty where every unit is one row."""
    population: Counts
    """Public rows of each unit; empty where there are none and every unit has rows."""
    sizes: Counts
    """(quasi-identifiers,): how many positions each has."""
    starts: Counts
    """(sensitive attributes + 1,): where each begins in a histogram of all of them."""


class Workspace(NamedTuple):
    """Arrays that every node reuses."""

    node: Counts
    """The histogram of the node's sensitive values, one attribute after the other."""
    part: Counts
    """That of a part of it."""
    rest: Counts
    """That of the rest."""
    low: Counts
    """(quasi-identifiers,): the least position of the node's rows."""
    high: Counts
    order: Counts
    """The columns to be tried, the first first."""
    cuts: Counts
    """The last position of each part but the last."""
    positions: Counts
    """Rows at each position of a column."""
    misplaced: Codes
    """(2, half of the units): pairs of lines to be exchanged."""


@compiled
def workspace_for(lines: Lines) -> Workspace:
    """Arrays that are large enough for every node."""
    values, columns, widest = lines.starts[-1], lines.sizes.size, 0
    for size in lines.sizes:
        widest = max(widest, size)
    return Workspace(
        np.zeros(values, dtype=np.int64), np.zeros(values, dtype=np.int64),
        np.zeros(values, dtype=np.int64), np.zeros(columns, dtype=np.int64),
        np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64),
        np.zeros(widest, dtype=np.int64), np.zeros(widest, dtype=np.int64),
        np.empty((2, lines.unit.size // 2 + 1), dtype=np.int32),
    )  # fmt: skip


@compiled
def exchange(values: npt.NDArray[Any], pairs: Codes, number: int) -> None:
    """Swap values in pairs of places."""
    first, second = pairs[0], pairs[1]
    for k in range(number):
        held = values[first[k]]
        values[first[k]] = values[second[k]]
        values[second[k]] = held


@compiled
def divide(lines: Lines, start: int, stop: int, column: int, cut: int, pairs: Codes) -> int:
    """Put the lines up to the cut first; return where the others begin.

    Lists of misplaced lines are made without branches, which a processor could not predict.
    """
    codes = lines.columns[column, start:stop]
    below = 0
    for i in range(codes.size):
        below += int(codes[i] <= cut)
    found = 0
    for i in range(below):
        pairs[0, found] = i
        found += int(codes[i] > cut)
    number = found
    found = 0
    for i in range(below, codes.size):
        if found == number:
            break
        pairs[1, found] = i
        found += int(codes[i] <= cut)
    for other in range(lines.columns.shape[0]):
        exchange(lines.columns[other, start:stop], pairs, number)
    exchange(lines.unit[start:stop], pairs, number)
    if lines.weights.size > 0:
        exchange(lines.weights[start:stop], pairs, number)
    if lines.population.size > 0:
        exchange(lines.population[start:stop], pairs, number)
    return start + below


@compiled
def extent(lines: Lines, start: int, stop: int, counted: bool, low: Counts, high: Counts) -> None:
    """The least and largest position in each column, of all lines or of those that count rows."""
    for column in range(lines.sizes.size):
        codes = lines.columns[column, start:stop]
        if counted and lines.population.size > 0:
            weights = lines.weights[start:stop]
            low[column], high[column] = lines.sizes[column], -1
            for i in range(codes.size):
                if weights[i] > 0:
                    low[column] = min(low[column], np.int64(codes[i]))
                    high[column] = max(high[column], np.int64(codes[i]))
        else:
            least, largest = codes[0], codes[0]
            for i in range(codes.size):
                least = min(least, codes[i])
                largest = max(largest, codes[i])
            low[column], high[column] = least, largest


@compiled
def tally(lines: Lines, start: int, stop: int, histogram: Counts) -> tuple[int, int]:
    """Fill the histogram of all sensitive attributes; return rows and public rows."""
    clear(histogram, histogram.size)
    columns = lines.sizes.size
    for a in range(lines.starts.size - 1):
        codes = lines.columns[columns + a, start:stop]
        counts = histogram[lines.starts[a] : lines.starts[a + 1]]
        if lines.weights.size > 0:
            weights = lines.weights[start:stop]
            for i in range(codes.size):
                counts[codes[i]] += weights[i]
        else:
            for i in range(codes.size):
                counts[codes[i]] += 1
    rows = stop - start if lines.weights.size == 0 else total(lines.weights[start:stop])
    return rows, 0 if lines.population.size == 0 else total(lines.population[start:stop])


@compiled
def tally_between(
    lines: Lines, start: int, stop: int, column: int, above: int, upto: int, histogram: Counts
) -> tuple[int, int]:
    """As `tally`, of the lines whose position in the column is above one and up to another."""
    clear(histogram, histogram.size)
    places = lines.columns[column, start:stop]
    weights, public = lines.weights[start:stop], lines.population[start:stop]
    for a in range(lines.starts.size - 1):
        codes = lines.columns[lines.sizes.size + a, start:stop]
        counts = histogram[lines.starts[a] : lines.starts[a + 1]]
        for i in range(places.size):
            inside = int(places[i] <= upto) & int(places[i] > above)
            counts[codes[i]] += inside * weights[i] if weights.size > 0 else inside
    rows, population = 0, 0
    for i in range(places.size):
        inside = int(places[i] <= upto) & int(places[i] > above)
        rows += inside * weights[i] if weights.size > 0 else inside
        if public.size > 0:
            population += inside * public[i]
    return rows, population


@compiled
def clear(values: Counts, upto: int) -> None:
    """Set the first values to 0."""
    for i in range(upto):
        values[i] = 0


@compiled
def total(values: Counts) -> int:
    """The sum of the values."""
    found = 0
    for value in values:
        found += value
    return found


@compiled
def sorted_order(codes: npt.NDArray[Any]) -> Counts:
    """The numbers of the codes in ascending order, by Shell's sort: short, and quick to compile."""
    order = np.empty(codes.size, dtype=np.int64)
    for i in range(codes.size):
        order[i] = i
    gap = 1
    while gap < codes.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, codes.size):
            held, place = order[i], i
            while place >= gap and codes[order[place - gap]] > codes[held]:
                order[place] = order[place - gap]
                place -= gap
            order[place] = held
        gap //= 3
    return order


@compiled
def in_order(lines: Lines, start: int, stop: int, column: int, low: int, high: int) -> Counts:
    """The lines' numbers in the order of their positions in the column, which lie in low … high."""
    codes = lines.columns[column, start:stop]
    if high - low > SPARSE * codes.size:
        ordered = sorted_order(codes)
        for i in range(codes.size):
            ordered[i] += start
        return ordered
    place = np.zeros(high - low + 2, dtype=np.int64)
    for i in range(codes.size):
        place[np.int64(codes[i]) - low + 1] += 1
    for position in range(1, place.size):
        place[position] += place[position - 1]
    ordered = np.empty(codes.size, dtype=np.int64)
    for i in range(codes.size):
        code = np.int64(codes[i]) - low
        ordered[place[code]] = start + i
        place[code] += 1
    return ordered


@compiled
def median(
    lines: Lines, start: int, stop: int, column: int, low: int, high: int, rows: int, counts: Counts
) -> int:
    """The lower median: the least present position up to which at least half of the rows lie.

    If that is the largest present one, the next lower present one. `counts` has a
    place for each of the column's positions. Lines without rows are ignored.
    """
    codes, weights = lines.columns[column, start:stop], lines.weights[start:stop]
    if high - low > SPARSE * codes.size:
        return sorted_median(codes, weights, high, rows)
    clear(counts, high - low + 1)
    if weights.size == 0:
        for i in range(codes.size):
            counts[np.int64(codes[i]) - low] += 1
    else:
        for i in range(codes.size):
            if weights[i] > 0:
                counts[np.int64(codes[i]) - low] += weights[i]
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
def sorted_median(codes: npt.NDArray[Any], weights: Counts, high: int, rows: int) -> int:
    """`median` by sorting, for few units in a wide range."""
    below, last = 0, -1
    for i in sorted_order(codes):
        position = int(np.int64(codes[i]))
        count = 1 if weights.size == 0 else weights[i]
        if count == 0 or position >= high:
            continue
        if position != last and 2 * below >= rows:
            break
        below += count
        last = position
    return last
