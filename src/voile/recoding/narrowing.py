"""The cuts that leave the narrowest boxes: one cut through a node, or a box taken out of it.

For every column the node's lines fall into groups, one for each position. The least and largest
positions of the other columns are found for each group in one pass; what a cut leaves on either
side is then a running minimum and maximum over the groups, from below and from above.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from voile.arrays import Floats
from voile.compiled import compiled
from voile.privacy.requirements.kernels import meets
from voile.privacy.requirements.rules import Rules
from voile.recoding.nodes import (
    SPARSE,
    Lines,
    Workspace,
    exchange,
    extent,
    in_order,
    sorted_order,
    tally,
)
from voile.recoding.units import Codes, Counts

TINY = 1e-9
"""By which a cut must be better than another one to be taken instead."""
DEEPEST = 16
"""How many cuts may lie around a box that is taken out of a node."""


class Groups(NamedTuple):
    """The lines of a node by their positions in one column; arrays that every node reuses."""

    of_line: Codes
    """The group of each line."""
    position: Counts
    """(groups,): the position in the column."""
    rows: Counts
    low: Codes
    """(columns, groups): the least position of the group's lines."""
    high: Codes
    below: Floats
    """(groups,): how wide the box of this group and of those below it is."""
    above: Floats
    """The same of the groups above it."""
    active: Counts
    """The columns that can be cut."""
    least: Counts
    """(columns,): the least position of the node."""
    largest: Counts


@compiled
def groups_for(lines: Lines) -> Groups:
    """Arrays that are large enough for every node."""
    columns, most = lines.sizes.size, 1
    for size in lines.sizes:
        most = max(most, min(size, SPARSE * lines.unit.size + 1))
    return Groups(
        np.empty(lines.unit.size, dtype=np.int32), np.empty(most, dtype=np.int64),
        np.empty(most, dtype=np.int64), np.empty((columns, most), dtype=np.int32),
        np.empty((columns, most), dtype=np.int32), np.empty(most), np.empty(most),
        np.empty(columns, dtype=np.int64), np.empty(columns, dtype=np.int64),
        np.empty(columns, dtype=np.int64),
    )  # fmt: skip


@compiled
def activate(lines: Lines, start: int, stop: int, groups: Groups) -> int:
    """List the columns in which the lines differ; return how many they are."""
    extent(lines, start, stop, False, groups.least, groups.largest)
    number = 0
    for column in range(lines.sizes.size):
        if groups.largest[column] > groups.least[column]:
            groups.active[number] = column
            number += 1
    return number


@compiled
def width_of(lines: Lines, groups: Groups, active: int) -> float:
    """The sum over the columns of how wide the node's box is, as a share of the domain."""
    wide = 0.0
    for a in range(active):
        column = groups.active[a]
        wide += (groups.largest[column] - groups.least[column]) / (lines.sizes[column] - 1)
    return wide


@compiled
def number_groups(lines: Lines, start: int, stop: int, column: int, groups: Groups) -> int:
    """Put each line into the group of its position in the column; return how many there are."""
    codes = lines.columns[column, start:stop]
    low, high = groups.least[column], groups.largest[column]
    if high - low <= SPARSE * codes.size:
        for i in range(codes.size):
            groups.of_line[i] = np.int64(codes[i]) - low
        for g in range(high - low + 1):
            groups.position[g] = low + g
        return high - low + 1
    number = -1
    for i in sorted_order(codes):
        if number < 0 or np.int64(codes[i]) != groups.position[number]:
            number += 1
            groups.position[number] = np.int64(codes[i])
        groups.of_line[i] = number
    return number + 1


@compiled
def measure_groups(
    lines: Lines, start: int, stop: int, column: int, active: int, groups: Groups
) -> int:
    """Fill the groups of one column; return how many there are."""
    number = number_groups(lines, start, stop, column, groups)
    of_line = groups.of_line[: stop - start]
    groups.rows[:number] = 0
    if lines.weights.size == 0:
        for g in of_line:
            groups.rows[g] += 1
    else:
        weights = lines.weights[start:stop]
        for i in range(of_line.size):
            groups.rows[of_line[i]] += weights[i]
    groups.below[:number] = 0.0
    groups.above[:number] = 0.0
    for a in range(active):
        other = groups.active[a]
        low, high = groups.low[other], groups.high[other]
        if other == column:
            for g in range(number):
                low[g] = groups.position[g] if groups.rows[g] else lines.sizes[other]
                high[g] = groups.position[g] if groups.rows[g] else -1
        else:
            low[:number] = lines.sizes[other]
            high[:number] = -1
            codes = lines.columns[other, start:stop]
            for i in range(of_line.size):
                g, code = of_line[i], np.int32(codes[i])
                low[g] = min(low[g], code)
                high[g] = max(high[g], code)
        add_widths(low[:number], high[:number], lines.sizes[other], groups)
    return number


@compiled
def add_widths(low: Codes, high: Codes, size: int, groups: Groups) -> None:
    """Add the share of one column that the groups up to each one span, and those above it."""
    number, share = low.size, 1.0 / (size - 1)
    least, largest = low[0], high[0]
    for g in range(number):
        least, largest = min(least, low[g]), max(largest, high[g])
        groups.below[g] += (largest - least) * share
    least, largest = low[number - 1], high[number - 1]
    for g in range(number - 1, 0, -1):
        least, largest = min(least, low[g]), max(largest, high[g])
        groups.above[g - 1] += (largest - least) * share


# ---------------------------------------------------------------------- one cut


@compiled
def narrowest_cut(
    lines: Lines, start: int, stop: int, work: Workspace, rules: Rules, groups: Groups, least: int
) -> tuple[int, int]:
    """The column and the position of the allowed cut that leaves the narrowest boxes.

    That is the least Σ rows · width of both sides. Column −1 if no cut is allowed. Of cuts that are
    equally good the first is taken: columns as given, positions from below.
    """
    best, best_column, best_position = np.inf, -1, -1
    active = activate(lines, start, stop, groups)
    rows = 0
    for a in range(active):
        column = groups.active[a]
        number = measure_groups(lines, start, stop, column, active, groups)
        if a == 0:
            rows = groups.rows[:number].sum()
        if not promising(groups, number, rows, best, least):
            continue
        if work.node.size == 0:
            best, position = best_by_rows(groups, number, rows, best, rules, work)
        else:
            best, position = best_by_values(
                lines, start, stop, column, number, rows, best, rules, work, groups
            )
        if position >= 0:
            best_column, best_position = column, position
    return best_column, best_position


@compiled
def promising(groups: Groups, number: int, rows: int, best: float, least: int) -> bool:
    """Whether any cut between the groups has enough rows on both sides and beats the best."""
    below = 0
    for g in range(number - 1):
        below += groups.rows[g]
        if (
            groups.rows[g] > 0
            and below >= least
            and rows - below >= least
            and below * groups.below[g] + (rows - below) * groups.above[g] < best - TINY
        ):
            return True
    return False


@compiled
def best_by_rows(
    groups: Groups, number: int, rows: int, best: float, rules: Rules, work: Workspace
) -> tuple[float, int]:
    """The best allowed cut of a column where nothing is asked of sensitive values; else −1."""
    below, found = 0, -1
    for g in range(number - 1):
        if groups.rows[g] == 0:
            continue
        below += groups.rows[g]
        loss = below * groups.below[g] + (rows - below) * groups.above[g]
        if (
            loss < best - TINY
            and meets(rules, work.part, below, 0)
            and meets(rules, work.rest, rows - below, 0)
        ):
            best, found = loss, groups.position[g]
    return best, found


@compiled
def best_by_values(
    lines: Lines, start: int, stop: int, column: int, number: int, rows: int, best: float,
    rules: Rules, work: Workspace, groups: Groups,
) -> tuple[float, int]:  # fmt: skip
    """The same where sensitive values count; `work.node` has their histogram."""
    begin_walk(work)
    order = in_order(lines, start, stop, column, groups.least[column], groups.largest[column])
    below, place, found = 0, 0, -1
    for g in range(number - 1):
        if groups.rows[g] == 0:
            continue
        below += groups.rows[g]
        place = walk(lines, order, place, column, groups.position[g], work)
        loss = below * groups.below[g] + (rows - below) * groups.above[g]
        if (
            loss < best - TINY
            and meets(rules, work.part, below, 0)
            and meets(rules, work.rest, rows - below, 0)
        ):
            best, found = loss, groups.position[g]
    return best, found


@compiled
def begin_walk(work: Workspace) -> None:
    """All lines of the node are still to come."""
    for value in range(work.node.size):
        work.part[value] = 0
        work.rest[value] = work.node[value]


@compiled
def walk(
    lines: Lines, order: Counts, place: int, column: int, upto: int, work: Workspace
) -> int:
    """Take the lines up to a position from the rest to the part; return where others begin."""
    columns = lines.sizes.size
    while place < order.size and np.int64(lines.columns[column, order[place]]) <= upto:
        i = order[place]
        count = 1 if lines.weights.size == 0 else lines.weights[i]
        for a in range(lines.starts.size - 1):
            value = lines.starts[a] + np.int64(lines.columns[columns + a, i])
            work.part[value] += count
            work.rest[value] -= count
        place += 1
    return place


# ---------------------------------------------------------------------- a box out of a node
# Where no cut leaves two sides that are allowed, a box may: it meets the requirements, and so do the
# lines around it. The box is found cut by cut, each of which keeps one side.


@compiled
def bring_forward(
    lines: Lines, start: int, stop: int, column: int, low: int, high: int, pairs: Codes
) -> int:
    """Put the lines from one position to another first; return where the others begin."""
    codes = lines.columns[column, start:stop]
    inside = 0
    for i in range(codes.size):
        inside += int(codes[i] >= low) & int(codes[i] <= high)
    found = 0
    for i in range(inside):
        pairs[0, found] = i
        found += 1 - (int(codes[i] >= low) & int(codes[i] <= high))
    number = found
    found = 0
    for i in range(inside, codes.size):
        if found == number:
            break
        pairs[1, found] = i
        found += int(codes[i] >= low) & int(codes[i] <= high)
    for other in range(lines.columns.shape[0]):
        exchange(lines.columns[other, start:stop], pairs, number)
    exchange(lines.unit[start:stop], pairs, number)
    if lines.weights.size > 0:
        exchange(lines.weights[start:stop], pairs, number)
    return start + inside


@compiled
def take_box(
    lines: Lines, start: int, stop: int, rows: int, work: Workspace, rules: Rules, groups: Groups,
    whole: Counts, outer: Counts, least: int,
) -> int:  # fmt: skip
    """Put the lines of the best box first, and return where the others begin; `start` if none.

    `work.node` has the histogram of the node. A box of n rows is worth n · (width of the node −
    width of the box).
    """
    active = activate(lines, start, stop, groups)
    wide, end, best, taken = width_of(lines, groups, active), stop, 0.0, start
    whole[:] = work.node
    for _ in range(DEEPEST):
        active = activate(lines, start, end, groups)
        next_column, next_low, next_high, next_worth = -1, 0, 0, 0.0
        box_column, box_low, box_high, box_worth = -1, 0, 0, best
        for a in range(active):
            column = groups.active[a]
            number = measure_groups(lines, start, end, column, active, groups)
            inner = groups.rows[:number].sum()
            begin_walk(work)
            order = in_order(lines, start, end, column, groups.least[column], groups.largest[column])
            below, place = 0, 0
            for g in range(number - 1):
                if groups.rows[g] == 0:
                    continue
                below += groups.rows[g]
                place = walk(lines, order, place, column, groups.position[g], work)
                for side in range(2):
                    own = below if side == 0 else inner - below
                    if own < least or rows - own < least:
                        continue
                    worth = own * (wide - (groups.below[g] if side == 0 else groups.above[g]))
                    if worth <= next_worth + TINY and worth <= box_worth + TINY:
                        continue
                    part = work.part if side == 0 else work.rest
                    if not meets(rules, part, own, 0):
                        continue
                    low = groups.least[column] if side == 0 else groups.position[g] + 1
                    high = groups.position[g] if side == 0 else groups.largest[column]
                    if worth > next_worth + TINY:
                        next_column, next_low, next_high, next_worth = column, low, high, worth
                    if worth > box_worth + TINY:
                        for value in range(outer.size):
                            outer[value] = whole[value] - part[value]
                        if meets(rules, outer, rows - own, 0):
                            box_column, box_low, box_high, box_worth = column, low, high, worth
        if box_column >= 0:
            best = box_worth
            # the box is a part of these lines: remember it by putting it first, and go on inside
            taken = bring_forward(
                lines, start, end, box_column, box_low, box_high, work.misplaced
            )
            end = taken
        elif next_column >= 0:
            end = bring_forward(
                lines, start, end, next_column, next_low, next_high, work.misplaced
            )
        else:
            break
        inner, _ = tally(lines, start, end, work.node)
        if inner * wide <= best + TINY or inner < least:
            break
    return taken
