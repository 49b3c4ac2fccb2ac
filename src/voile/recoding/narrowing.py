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
    people: Counts
    """The rows of a public table, where there is one."""
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
        np.empty(most, dtype=np.int64), np.zeros(most, dtype=np.int64),
        np.empty((columns, most), dtype=np.int32), np.empty((columns, most), dtype=np.int32),
        np.empty(most), np.empty(most),
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
        return int(high - low + 1)
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
    of_line, weights = groups.of_line[: stop - start], lines.weights[start:stop]
    count_rows(lines, start, stop, number, groups)
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
                if weights.size > 0 and weights[i] == 0:
                    continue
                g, code = of_line[i], np.int32(codes[i])
                low[g] = min(low[g], code)
                high[g] = max(high[g], code)
        add_widths(low[:number], high[:number], lines.sizes[other], groups)
    return number


@compiled
def count_rows(lines: Lines, start: int, stop: int, number: int, groups: Groups) -> None:
    """Count the rows, and the public rows, of each group."""
    of_line, public = groups.of_line[: stop - start], lines.population[start:stop]
    groups.rows[:number] = 0
    if lines.weights.size == 0:
        for g in of_line:
            groups.rows[g] += 1
    else:
        weights = lines.weights[start:stop]
        for i in range(of_line.size):
            groups.rows[of_line[i]] += weights[i]
    if public.size > 0:
        groups.people[:number] = 0
        for i in range(of_line.size):
            groups.people[of_line[i]] += public[i]


@compiled
def add_widths(low: Codes, high: Codes, size: int, groups: Groups) -> None:
    """Add the share of one column that the groups up to each one span, and those above it."""
    number, share = low.size, 1.0 / (size - 1)
    least, largest = low[0], high[0]
    for g in range(number):
        least, largest = min(least, low[g]), max(largest, high[g])
        groups.below[g] += max(largest - least, 0) * share
    least, largest = low[number - 1], high[number - 1]
    for g in range(number - 1, 0, -1):
        least, largest = min(least, low[g]), max(largest, high[g])
        groups.above[g - 1] += max(largest - least, 0) * share


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
    for a in range(active):
        column = groups.active[a]
        number = measure_groups(lines, start, stop, column, active, groups)
        if promising(groups, number, best, least):
            best, position = narrowest_of_column(
                lines, start, stop, column, number, best, rules, work, groups
            )
            if position >= 0:
                best_column, best_position = column, position
    return best_column, best_position


@compiled
def promising(groups: Groups, number: int, best: float, least: int) -> bool:
    """Whether any cut between the groups has enough rows on both sides and beats the best."""
    below, above = 0, groups.rows[:number].sum()
    for g in range(number - 1):
        below += groups.rows[g]
        above -= groups.rows[g]
        if (
            below >= least
            and above >= least
            and below * groups.below[g] + above * groups.above[g] < best - TINY
        ):
            return True
    return False


@compiled
def narrowest_of_column(
    lines: Lines, start: int, stop: int, column: int, number: int, best: float, rules: Rules,
    work: Workspace, groups: Groups,
) -> tuple[float, int]:  # fmt: skip
    """The best allowed cut of one column, if it is better than the best so far; else −1.

    `work.node` has the histogram of the node. It is walked only where something is asked of it.
    """
    begin_walk(work)
    order = np.empty(0, dtype=np.int64)
    if work.node.size > 0:
        order = in_order(lines, start, stop, column, groups.least[column], groups.largest[column])
    below, above, place, found = 0, groups.rows[:number].sum(), 0, -1
    people, others = 0, groups.people[:number].sum()
    for g in range(number - 1):
        if groups.rows[g] == 0 and (lines.population.size == 0 or groups.people[g] == 0):
            continue
        below, above = below + groups.rows[g], above - groups.rows[g]
        people, others = people + groups.people[g], others - groups.people[g]
        place = walk(lines, order, place, column, groups.position[g], work)
        loss = below * groups.below[g] + above * groups.above[g]
        if (
            below > 0
            and above > 0
            and loss < best - TINY
            and meets(rules, work.part, below, people)
            and meets(rules, work.rest, above, others)
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
def walk(lines: Lines, order: Counts, place: int, column: int, upto: int, work: Workspace) -> int:
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
# Where no cut leaves two sides that are allowed, a box may: it meets the requirements, and so do
# the lines around it. The box is found cut by cut, each of which keeps one side.


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


ONWARD, ALLOWED, FAILING = 0, 1, 2
"""The best side that meets the requirements; the best that is also allowed, for what it leaves
meets them, too; and the best that does not meet them, in which there may still be a box."""


class BoxSearch(NamedTuple):
    """What is looked for in a node, and its histograms."""

    node: Counts
    """The histogram of the whole node."""
    outer: Counts
    """That of the lines around a box."""
    rows: Counts
    """(1,): the rows of the node."""
    width: Floats
    """(1,): how wide its box is."""
    side: Counts
    """(3, 3): column and ends of a side: ONWARD, ALLOWED, FAILING; column −1 if there is none."""
    worth: Floats
    """(3,): what they are worth."""


@compiled
def search_for(work: Workspace) -> BoxSearch:
    """Arrays that every node reuses."""
    return BoxSearch(
        np.zeros_like(work.node), np.zeros_like(work.node), np.zeros(1, dtype=np.int64),
        np.zeros(1), np.zeros((3, 3), dtype=np.int64), np.zeros(3),
    )  # fmt: skip


@compiled
def take_box(
    lines: Lines, start: int, stop: int, rows: int, work: Workspace, rules: Rules, groups: Groups,
    search: BoxSearch, least: int,
) -> int:  # fmt: skip
    """Put the lines of the best box first, and return where the others begin; `start` if none.

    `work.node` has the histogram of the node, and loses it. A box of n rows is worth
    n · (width of the node − width of the box). Of each box the best side is gone on with: the best
    that is an allowed box, else the best that meets the requirements itself, else the best of all.
    """
    search.node[:] = work.node
    active = activate(lines, start, stop, groups)
    search.rows[0], search.width[0] = rows, width_of(lines, groups, active)
    end, best, taken = stop, 0.0, start
    for _ in range(DEEPEST):
        best_sides(lines, start, end, best, work, rules, groups, search, least)
        which = ALLOWED if search.side[ALLOWED, 0] >= 0 else ONWARD
        which = which if search.side[which, 0] >= 0 else FAILING
        column, low, high = search.side[which]
        if column < 0:
            break
        end = bring_forward(lines, start, end, column, low, high, work.misplaced)
        if which == ALLOWED:
            best, taken = search.worth[ALLOWED], end
        inner, _ = tally(lines, start, end, work.node)
        if inner * search.width[0] <= best + TINY:  # no box inside can be worth more
            break
    return taken


@compiled
def best_sides(
    lines: Lines, start: int, end: int, best: float, work: Workspace, rules: Rules,
    groups: Groups, search: BoxSearch, least: int,
) -> None:  # fmt: skip
    """Find the best sides of any cut."""
    search.side[:, 0] = -1
    search.worth[:] = 0.0
    search.worth[ALLOWED] = best
    active = activate(lines, start, end, groups)
    for a in range(active):
        column = groups.active[a]
        low, high = groups.least[column], groups.largest[column]
        number = measure_groups(lines, start, end, column, active, groups)
        begin_walk(work)
        order = in_order(lines, start, end, column, low, high)
        below, above, place = 0, groups.rows[:number].sum(), 0
        for g in range(number - 1):
            if groups.rows[g] == 0:
                continue
            below, above = below + groups.rows[g], above - groups.rows[g]
            position = groups.position[g]
            place = walk(lines, order, place, column, position, work)
            if below >= least and search.rows[0] - below >= least:
                judge(search, work.part, below, groups.below[g], column, low, position, rules)
            if above >= least and search.rows[0] - above >= least:
                judge(search, work.rest, above, groups.above[g], column, position + 1, high, rules)


@compiled
def judge(
    search: BoxSearch, part: Counts, rows: int, width: float, column: int, low: int, high: int,
    rules: Rules,
) -> None:  # fmt: skip
    """Note a side if it is better than the best so far and meets the requirements."""
    worth = rows * (search.width[0] - width)
    if worth <= search.worth[ONWARD] + TINY and worth <= search.worth[ALLOWED] + TINY:
        return
    if not meets(rules, part, rows, 0):
        note(search, FAILING, worth, column, low, high)
        return
    note(search, ONWARD, worth, column, low, high)
    for value in range(part.size):
        search.outer[value] = search.node[value] - part[value]
    if worth > search.worth[ALLOWED] + TINY and meets(
        rules, search.outer, search.rows[0] - rows, 0
    ):
        note(search, ALLOWED, worth, column, low, high)


@compiled
def note(search: BoxSearch, which: int, worth: float, column: int, low: int, high: int) -> None:
    """Note a side if it is the best of its kind so far."""
    if worth > search.worth[which] + TINY:
        search.worth[which] = worth
        search.side[which, 0], search.side[which, 1], search.side[which, 2] = column, low, high
