"""The compiled loops of finding large populations, and of sums over them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.compiled import compiled
from voile.recoding.units import Codes, Counts

Truths = npt.NDArray[np.bool_]


@compiled
def with_capacity(numbers: Codes, needed: int) -> Codes:
    """The same numbers in an array of at least so many places."""
    if needed <= numbers.size:
        return numbers
    larger = np.empty(max(needed, 2 * numbers.size), dtype=np.int32)
    larger[: numbers.size] = numbers
    return larger


@compiled
def item_rows(
    kinds: Codes, rows: Counts, atoms: Codes, has: Truths, number: int, found: Counts
) -> None:
    """Into `found`: how many rows of these atoms have each item of a column."""
    by_kind = np.zeros(has.shape[1], dtype=np.int64)
    for atom in atoms:
        by_kind[kinds[atom]] += rows[atom]
    for i in range(number):
        total = 0
        for kind in range(has.shape[1]):
            if has[i, kind]:
                total += by_kind[kind]
        found[i] = total


@compiled
def mine(
    kinds: Codes, rows: Counts, has: Truths, numbers: Counts, least: int, most: int
) -> tuple[Codes, Codes, Codes, Counts, Counts, Codes]:
    """Every conjunction of at most one item per column that at least `least` rows meet.

    Depth first, columns in their order, so that a population comes right after the one that it
    narrows by one item. kinds[j, a] is the kind of value that atom a has in column j, and
    has[j, i, kind] whether item i of that column has it. Returns for each population its last
    column, that column's item, how many items it has, its rows, and where its atoms start in the
    last array. Stops once it has more than `most` places.
    """
    columns, atoms = kinds.shape
    lists = np.empty((columns + 1, atoms), dtype=np.int32)
    lists[0] = np.arange(atoms)
    lengths = np.zeros(columns + 1, dtype=np.int64)
    lengths[0] = atoms
    supports = np.zeros((columns + 1, columns, has.shape[1]), dtype=np.int64)
    at_column = np.zeros(columns + 1, dtype=np.int64)  # the next extension to try, by depth
    at_item = np.zeros(columns + 1, dtype=np.int64)
    column, item, size = np.empty(64, np.int32), np.empty(64, np.int32), np.empty(64, np.int32)
    support, starts = np.empty(64, np.int64), np.zeros(65, np.int64)
    members, used, count, depth = np.empty(1024, np.int32), 0, 0, 0
    for j in range(columns):
        item_rows(kinds[j], rows, lists[0], has[j], numbers[j], supports[0, j])
    while depth >= 0 and used <= most:
        j, i = at_column[depth], at_item[depth]
        if j == columns:
            depth -= 1
            continue
        if i == numbers[j]:
            at_column[depth] += 1
            at_item[depth] = 0
            continue
        at_item[depth] += 1
        if supports[depth, j, i] < least:
            continue
        length = 0
        for place in range(lengths[depth]):
            atom = lists[depth, place]
            if has[j, i, kinds[j, atom]]:
                lists[depth + 1, length] = atom
                length += 1
        lengths[depth + 1] = length
        if count == column.size:
            column, item = with_capacity(column, count + 1), with_capacity(item, count + 1)
            size = with_capacity(size, count + 1)
            support = np.concatenate((support, np.empty(count, np.int64)))
            starts = np.concatenate((starts, np.empty(count, np.int64)))
        members = with_capacity(members, used + length)
        members[used : used + length] = lists[depth + 1, :length]
        used += length
        column[count], item[count], size[count] = j, i, depth + 1
        support[count], starts[count + 1] = supports[depth, j, i], used
        count += 1
        if j + 1 < columns:
            depth += 1
            at_column[depth], at_item[depth] = j + 1, 0
            found = lists[depth, :length]
            for other in range(j + 1, columns):
                item_rows(
                    kinds[other], rows, found, has[other], numbers[other], supports[depth, other]
                )
    return (
        column[:count], item[:count], size[:count], support[:count], starts[: count + 1],
        members[:used],
    )  # fmt: skip


@compiled
def sums_over(starts: Counts, members: Codes, values: Floats, found: Floats) -> None:
    """Into found[y]: the sum of the values of population y's atoms."""
    for y in range(found.shape[0]):
        into = found[y]
        for place in range(starts[y], starts[y + 1]):
            row = values[members[place]]
            for s in range(into.size):
                into[s] += row[s]


@compiled
def spread_over(starts: Counts, members: Codes, values: Floats, found: Floats) -> None:
    """Into found[atom]: the sum of the values of the populations that the atom is in."""
    for y in range(values.shape[0]):
        row = values[y]
        for place in range(starts[y], starts[y + 1]):
            into = found[members[place]]
            for s in range(row.size):
                into[s] += row[s]
