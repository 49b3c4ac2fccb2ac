"""Losing less where values are required: wide classes are cut anew, and rows move to narrow ones.

Two steps, both of which keep every requirement. *Cutting anew* pools the widest classes and cuts
the pool again: it has fewer rows than the table had, so other cuts are allowed. *Moving* gives
the rows of one combination of quasi-identifiers to another class whose box they widen little. Rows
with equal quasi-identifiers stay together, so that the class is a function of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from voile.arrays import Floats, Ints
from voile.compiled import compiled
from voile.privacy.requirements import Requirement
from voile.privacy.requirements.kernels import meets
from voile.privacy.requirements.rules import Rules
from voile.recoding.grouping import Grouping, bounding
from voile.recoding.units import Codes, Counts, Units
from voile.schema import TupleIndex

POOLED = (1.0, 0.7, 1.3)
"""Classes that are wider than so many times the mean width of a row are cut anew, in this order,
until that gains nothing."""
PASSES = 3
"""How often every combination is tried in other classes, unless none moves any more."""
MOST = 2**26
"""Rows move if the histograms of all classes together have at most so many counts."""
TINY = 1e-9

Cut = Callable[[Units], Codes]
"""Cuts units that meet the requirements: the class of each."""


def regrouped(
    units: Units, grouping: Grouping, requirements: Sequence[Requirement], rules: Rules, cut: Cut
) -> Grouping:
    """Classes that lose less, or the same ones; all requirements must be monotone."""
    if any(not requirement.monotone for requirement in requirements):
        return grouping
    for share in POOLED:
        before, grouping = grouping, cut_anew(units, grouping, share, cut)
        if grouping is before:
            break
    values = sum(units.sensitive_sizes)
    if grouping.number * values > MOST:
        return grouping
    cells = cells_of(units)
    for _ in range(PASSES):
        moved, grouping = moved_cells(units, cells, grouping, rules)
        if not moved:
            break
    return grouping


def widths_of(units: Units, grouping: Grouping) -> Floats:
    """(classes,): how wide each box is, as the sum over columns of its share of the domain."""
    ends = np.maximum(np.array(units.sizes) - 1, 1)
    found: Floats = ((grouping.high - grouping.low) / ends).sum(axis=1)
    return found


def rows_of(units: Units, classes: Codes, number: int) -> Ints:
    """(classes,): the rows of each."""
    return np.bincount(classes, units.weights, number).astype(np.int64)


def cut_anew(units: Units, grouping: Grouping, share: float, cut: Cut) -> Grouping:
    """Pool the classes that are wider than a share of the mean width, and cut the pool again."""
    wide, rows = widths_of(units, grouping), rows_of(units, grouping.classes, grouping.number)
    lost = wide * rows
    pooled = wide > share * lost.sum() / max(int(rows.sum()), 1)
    which = np.flatnonzero(pooled[grouping.classes])
    if np.count_nonzero(pooled) < 2:
        return grouping
    pool = replace(
        units,
        codes=np.ascontiguousarray(units.codes[:, which]),
        sensitive=np.ascontiguousarray(units.sensitive[:, which]),
        weights=units.weights[which],
    )
    classes = cut(pool)
    number = int(classes.max()) + 1
    anew = bounding(pool, classes, number)
    if (widths_of(pool, anew) * rows_of(pool, classes, number)).sum() >= lost[pooled].sum() - TINY:
        return grouping
    kept = ~pooled
    place = (np.cumsum(kept) - 1).astype(np.int32)
    joined = place[grouping.classes]
    joined[which] = classes + np.int32(kept.sum())
    return Grouping(
        joined,
        np.concatenate([grouping.low[kept], anew.low]),
        np.concatenate([grouping.high[kept], anew.high]),
    )


# ---------------------------------------------------------------------- moving cells


@dataclass(frozen=True, eq=False)
class CellUnits:
    """The units of each combination of quasi-identifiers, which is a cell."""

    order: Ints
    """The units, by cell."""
    starts: Ints
    """(cells + 1,): where each cell begins in that order."""


def cells_of(units: Units) -> CellUnits:
    """The units by combination."""
    keys = TupleIndex(list(units.sizes)).encode(list(units.codes))
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return CellUnits(order.astype(np.int64), np.append(first, len(keys)).astype(np.int64))


def moved_cells(
    units: Units, cells: CellUnits, grouping: Grouping, rules: Rules
) -> tuple[int, Grouping]:
    """Try to move every cell to a narrower class, those of wide classes first; how many did."""
    wide = widths_of(units, grouping)
    of_cell = grouping.classes[cells.order[cells.starts[:-1]]].astype(np.int64)
    turn = np.argsort(-wide[of_cell], kind="stable")
    histograms = grouping.histograms(units)
    counts = np.hstack([*histograms.counts, np.zeros((grouping.number, 0), np.int64)])
    hulls = hulls_of(grouping.low, grouping.high, histograms.rows, wide)
    lists = CellLists(
        cells.order, cells.starts, units.codes,
        np.array([*units.sensitive], dtype=np.int32).reshape(-1, len(units.weights)),
        units.weights, 1 / np.maximum(np.array(units.sizes, dtype=np.float64) - 1, 1),
    )  # fmt: skip
    moved = move_cells(lists, turn, of_cell, hulls, counts, histograms.rows.copy(), rules)
    if not moved:
        return 0, grouping
    classes = np.empty(len(units.weights), dtype=np.int64)
    classes[cells.order] = np.repeat(of_cell, np.diff(cells.starts))
    used, place = np.unique(classes, return_inverse=True)
    return moved, bounding(units, place.ravel().astype(np.int32), len(used))


class CellLists(NamedTuple):
    """What the compiled loop reads of the units."""

    order: Counts
    starts: Counts
    codes: Codes
    sensitive: Codes
    weights: Counts
    shares: Floats
    """(columns,): what one position is of a column's width."""


class Hulls(NamedTuple):
    """Boxes of classes, and of neighbouring classes together, as a binary tree in an array.

    Node i has the nodes 2i and 2i + 1 below it; the classes are the last nodes.
    """

    low: Codes
    """(nodes, columns)"""
    high: Codes
    rows: Counts
    """The least rows of any class."""
    width: Floats
    """The least width."""


def hulls_of(low: Codes, high: Codes, rows: Counts, width: Floats) -> Hulls:
    """The tree over classes, which lie near those before and after them."""
    number, columns = low.shape
    leaves = 1 << max(number - 1, 1).bit_length()
    huge = np.iinfo(np.int32).max // 2
    hulls = Hulls(
        np.full((2 * leaves, columns), huge, np.int32),
        np.full((2 * leaves, columns), -1, np.int32),
        np.full(2 * leaves, huge, np.int64),
        np.full(2 * leaves, np.inf),
    )  # fmt: skip
    here = slice(leaves, leaves + number)
    hulls.low[here], hulls.high[here], hulls.rows[here], hulls.width[here] = low, high, rows, width
    while leaves > 1:
        below, leaves = slice(leaves, 2 * leaves), leaves // 2
        here = slice(leaves, 2 * leaves)
        hulls.low[here] = np.minimum(hulls.low[below][::2], hulls.low[below][1::2])
        hulls.high[here] = np.maximum(hulls.high[below][::2], hulls.high[below][1::2])
        hulls.rows[here] = np.minimum(hulls.rows[below][::2], hulls.rows[below][1::2])
        hulls.width[here] = np.minimum(hulls.width[below][::2], hulls.width[below][1::2])
    return hulls


@compiled
def move_cells(
    cells: CellLists, turn: Counts, of_cell: Counts, hulls: Hulls, counts: Counts, rows: Counts,
    rules: Rules,
) -> int:  # fmt: skip
    """Move cells, one after the other, where the loss falls most; return how many moved.

    A class that has lost rows is taken to be as wide as before: the loss falls at least so much.
    """
    moved, leaves = 0, hulls.rows.size // 2
    own, left = np.zeros(counts.shape[1], np.int64), np.zeros(counts.shape[1], np.int64)
    cell = np.empty(hulls.low.shape[1], np.int32)
    stack, bounds = np.empty(64, np.int64), np.empty(64)
    for which in turn:
        here = of_cell[which]
        wide = hulls.width[leaves + here]
        number = add_cell(cells, which, own, cell, rules.starts)
        if wide * number <= TINY:
            continue
        for value in range(own.size):
            left[value] = counts[here, value] - own[value]
        if rows[here] > number and not meets(rules, left, rows[here] - number, 0):
            continue
        there = nearest_class(
            cells, cell, number, wide, here, hulls, counts, rows, rules, own, left, stack, bounds
        )
        if there < 0:
            continue
        moved += 1
        of_cell[which] = there
        for value in range(own.size):
            counts[here, value] -= own[value]
            counts[there, value] += own[value]
        rows[here] -= number
        rows[there] += number
        lower_rows(hulls, leaves + here, rows[here])
        hulls.rows[leaves + there] = rows[there]
        widen_hulls(hulls, leaves + there, cell, cells.shares)
        if rows[here] == 0:  # nobody is there any more, and nobody goes there
            hulls.width[leaves + here] = np.inf
    return moved


@compiled
def add_cell(cells: CellLists, which: int, own: Counts, cell: Codes, starts: Counts) -> int:
    """Fill the histogram and the positions of a cell; return its rows."""
    number = 0
    own[:] = 0
    for k in range(cells.starts[which], cells.starts[which + 1]):
        i = cells.order[k]
        number += cells.weights[i]
        for a in range(cells.sensitive.shape[0]):
            own[starts[a] + cells.sensitive[a, i]] += cells.weights[i]
    first = cells.order[cells.starts[which]]
    for column in range(cell.size):
        cell[column] = cells.codes[column, first]
    return number


@compiled
def distance(hulls: Hulls, node: int, cell: Codes, shares: Floats) -> float:
    """By how much a box must be widened at least to hold the cell."""
    apart = 0.0
    for column in range(cell.size):
        below = hulls.low[node, column] - cell[column]
        above = cell[column] - hulls.high[node, column]
        apart += max(0, below, above) * shares[column]
    return apart


@compiled
def nearest_class(
    cells: CellLists, cell: Codes, number: int, wide: float, here: int, hulls: Hulls,
    counts: Counts, rows: Counts, rules: Rules, own: Counts, both: Counts, stack: Counts,
    bounds: Floats,
) -> int:  # fmt: skip
    """The class in which a cell loses least, less than where it is; −1 if there is none.

    With R rows and the width u, a class at a distance of d changes the loss by R·d + n·(u + d) when
    it gets n rows; of several classes together these are at least their least R, u and d.
    """
    leaves, best, found, depth = hulls.rows.size // 2, number * wide - TINY, -1, 1
    stack[0], bounds[0] = 1, 0.0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if bounds[depth] >= best:
            continue
        if node >= leaves:
            there = node - leaves
            if there == here:
                continue
            for value in range(own.size):
                both[value] = counts[there, value] + own[value]
            if meets(rules, both, rows[there] + number, 0):
                best, found = bounds[depth], there
            continue
        first = lost_at(hulls, 2 * node, cell, number, cells.shares)
        second = lost_at(hulls, 2 * node + 1, cell, number, cells.shares)
        near = 2 * node if first <= second else 2 * node + 1
        if max(first, second) < best:
            stack[depth], bounds[depth] = 4 * node + 1 - near, max(first, second)
            depth += 1
        if min(first, second) < best:
            stack[depth], bounds[depth] = near, min(first, second)
            depth += 1
    return found


@compiled
def lost_at(hulls: Hulls, node: int, cell: Codes, number: int, shares: Floats) -> float:
    """What is lost more if a cell goes there; of several classes a lower bound."""
    apart = distance(hulls, node, cell, shares)
    lost: float = hulls.rows[node] * apart + number * (hulls.width[node] + apart)
    return lost


@compiled
def lower_rows(hulls: Hulls, node: int, rows: int) -> None:
    """A class has fewer rows: all that hold it have at most so many at least."""
    while node > 0:
        hulls.rows[node] = min(hulls.rows[node], rows)
        node //= 2


@compiled
def widen_hulls(hulls: Hulls, node: int, cell: Codes, shares: Floats) -> None:
    """Widen the box of a class, and of all that hold it, so that they have the cell."""
    first, wide = True, 0.0
    while node > 0:
        for column in range(cell.size):
            hulls.low[node, column] = min(hulls.low[node, column], cell[column])
            hulls.high[node, column] = max(hulls.high[node, column], cell[column])
            wide += (hulls.high[node, column] - hulls.low[node, column]) * shares[column]
        if first:
            hulls.width[node] = wide
            first = False
        node //= 2
