"""Mondrian's tree, grown depth first: compiled, with no Python per row or per node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from voile.arrays import Floats
from voile.compiled import compiled
from voile.privacy.requirements.kernels import meets
from voile.privacy.requirements.rules import Rules
from voile.recoding.narrowing import Groups, groups_for, narrowest_cut, search_for, take_box
from voile.recoding.nodes import (
    Lines,
    Workspace,
    clear,
    divide,
    extent,
    in_order,
    median,
    tally,
    tally_between,
    workspace_for,
)
from voile.recoding.units import Codes, Counts

# ---------------------------------------------------------------------- the best cut
# The best of all cuts of a node, at every position of every column, not only the medians.
#
# Each column's lines are walked once in the order of their positions. What is left of the walk is a
# candidate part, and its histogram changes by one line at a time.

INFORMATION = 1
"""The cut with the largest information gain about the sensitive attributes."""
CERTAINTY = 2
"""The cut that leaves the narrowest boxes."""
BOXES = 3
"""The same; where no cut is allowed, a box is taken out of the node."""


@compiled
def weight(lines: Lines, i: int) -> int:
    """How many rows line i stands for."""
    return 1 if lines.weights.size == 0 else lines.weights[i]


@compiled
def surprise(count: int) -> float:
    """count·ln(count): the terms that entropies of counts are sums of."""
    return count * np.log(count) if count > 0 else 0.0


@compiled
def information_gains(lines: Lines, order: Counts, work: Workspace) -> Floats:
    """Before each line of the order, by how much Σ rows·H(sensitive | part) falls if cut there.

    Summed over the sensitive attributes. For one of them rows·H = g(rows) − Σ g(count) with
    g(x) = x·ln x, and a line changes one count of each side.
    """
    gains = np.zeros(order.size)
    attributes, columns = lines.starts.size - 1, lines.sizes.size
    for value in range(work.node.size):
        work.part[value] = 0
        work.rest[value] = work.node[value]
    total = 0
    for value in range(lines.starts[0], lines.starts[1] if attributes else 0):
        total += work.node[value]
    whole = attributes * surprise(total)
    for value in range(work.node.size):
        whole -= surprise(work.node[value])
    sides, rows = whole - attributes * surprise(total), 0
    for place in range(order.size):
        gains[place] = whole - sides - attributes * (surprise(rows) + surprise(total - rows))
        i = order[place]
        count = weight(lines, i)
        rows += count
        for a in range(attributes):
            value = lines.starts[a] + np.int64(lines.columns[columns + a, i])
            sides += surprise(work.part[value]) + surprise(work.rest[value])
            work.part[value] += count
            work.rest[value] -= count
            sides -= surprise(work.part[value]) + surprise(work.rest[value])
    return gains


@compiled
def most_informative_cut(
    lines: Lines, start: int, stop: int, work: Workspace, rules: Rules
) -> tuple[int, int]:
    """The column and the position of the best cut whose parts both meet the requirements.

    Column −1 if there is none. Of cuts that are equally good the first is taken: columns as
    given, positions from below.
    """
    best, best_column, best_position = -np.inf, -1, -1
    columns = lines.sizes.size
    low, high = np.empty_like(lines.sizes), np.empty_like(lines.sizes)
    extent(lines, start, stop, False, low, high)
    for column in range(columns):
        if work.high[column] <= work.low[column]:
            continue
        order = in_order(lines, start, stop, column, low[column], high[column])
        gains = information_gains(lines, order, work)
        best, position = best_position_of(lines, order, column, gains, best, work, rules)
        if position >= 0:
            best_column, best_position = column, position
    return best_column, best_position


@compiled
def best_position_of(
    lines: Lines,
    order: Counts,
    column: int,
    gains: Floats,
    best: float,
    work: Workspace,
    rules: Rules,
) -> tuple[float, int]:
    """The best allowed cut of one column, if it is better than the best so far; else −1."""
    columns, found = lines.sizes.size, -1
    for value in range(work.node.size):
        work.part[value] = 0
        work.rest[value] = work.node[value]
    rows, population, all_rows, all_population = 0, 0, 0, 0
    for i in order:
        all_rows += weight(lines, i)
        if lines.population.size > 0:
            all_population += lines.population[i]
    for place in range(order.size):
        i = order[place]
        code = np.int64(lines.columns[column, i])
        if (
            0 < rows < all_rows
            and code != lines.columns[column, order[place - 1]]
            and gains[place] > best + 1e-9
            and meets(rules, work.part, rows, population)
            and meets(rules, work.rest, all_rows - rows, all_population - population)
        ):
            best = gains[place]
            found = int(np.int64(lines.columns[column, order[place - 1]]))
        count = weight(lines, i)
        rows += count
        if lines.population.size > 0:
            population += lines.population[i]
        for a in range(lines.starts.size - 1):
            value = lines.starts[a] + np.int64(lines.columns[columns + a, i])
            work.part[value] += count
            work.rest[value] -= count
    return best, found


# ---------------------------------------------------------------------- the tree


class CutTree(NamedTuple):
    """A tree of cuts; its leaves, from left to right, are the classes 0, 1, ….

    Node i sends positions up to cut[i] of column[i] to node child[i], and others to the node after
    that. A leaf has column −1, and its class for a child.
    """

    column: Codes
    cut: Codes
    child: Codes


@compiled
def by_width(sizes: Counts, low: Counts, high: Counts, order: Counts) -> int:
    """Order the columns that can be cut, widest first, ties as given; return their number."""
    widths = np.empty(sizes.size)
    number = 0
    for column in range(sizes.size):
        if high[column] <= low[column]:
            continue
        width = (high[column] - low[column]) / (sizes[column] - 1)
        place = number
        while place > 0 and widths[place - 1] < width:
            widths[place] = widths[place - 1]
            order[place] = order[place - 1]
            place -= 1
        widths[place] = width
        order[place] = column
        number += 1
    return number


@compiled
def child_cuts(
    lines: Lines, start: int, stop: int, column: int, breaks: Codes, work: Workspace
) -> int:
    """Cut a column into the children of the hierarchy's lowest node that has all rows.

    breaks[p] is the coarsest level on which positions p−1 and p are in different nodes. Children
    without rows stay with the one before. Writes the cuts, and returns how many they are.
    """
    low, high = work.low[column], work.high[column]
    level = 0
    for position in range(low + 1, high + 1):
        level = max(level, breaks[position])
    clear(work.positions, high - low + 1)
    for i in range(start, stop):
        if lines.weights.size == 0 or lines.weights[i] > 0:
            work.positions[np.int64(lines.columns[column, i]) - low] = 1
    number, seen = 0, False
    for position in range(low + 1, high + 1):
        seen = seen or work.positions[position - 1 - low] > 0
        if breaks[position] == level and seen:
            work.cuts[number] = position - 1
            number += 1
            seen = False
    return number


@compiled
def all_meet(
    lines: Lines, start: int, stop: int, column: int, number: int, rows: int, population: int,
    rules: Rules, work: Workspace,
) -> bool:  # fmt: skip
    """Whether every part of a cut into number + 1 parts meets the requirements."""
    for value in range(work.node.size):
        work.rest[value] = work.node[value]
    above = -1
    for c in range(number):
        part_rows, part_population = tally_between(
            lines, start, stop, column, above, work.cuts[c], work.part
        )
        if not meets(rules, work.part, part_rows, part_population):
            return False
        for value in range(work.rest.size):
            work.rest[value] -= work.part[value]
        rows -= part_rows
        population -= part_population
        above = work.cuts[c]
    return meets(rules, work.rest, rows, population)


@compiled
def halve(
    lines: Lines, start: int, stop: int, column: int, cut: int, rules: Rules, work: Workspace
) -> int:
    """Order the lines around the median and cut in the middle; 0 if that is not allowed."""
    equal = divide(lines, start, stop, column, cut - 1, work.misplaced)
    divide(lines, equal, stop, column, cut, work.misplaced)
    middle = start + (stop - start) // 2
    first, _ = tally(lines, start, middle, work.part)
    if not meets(rules, work.part, first, 0):
        return 0
    second, _ = tally(lines, middle, stop, work.rest)
    return middle if meets(rules, work.rest, second, 0) else 0


@compiled
def cuts_of(
    lines: Lines, start: int, stop: int, column: int, rows: int, breaks: Codes, work: Workspace
) -> int:
    """Where a column would be cut: writes the cuts, and returns how many they are."""
    if breaks.shape[1] > 0 and breaks[column, 0] >= 0:
        return child_cuts(lines, start, stop, column, breaks[column], work)
    work.cuts[0] = median(
        lines, start, stop, column, work.low[column], work.high[column], rows, work.positions
    )
    return 1


@compiled
def propose(
    lines: Lines, start: int, stop: int, rows: int, population: int, rules: Rules,
    best: int | None, relaxed: bool, least: int, breaks: Codes, work: Workspace, groups: Groups,
) -> tuple[int, int, int]:  # fmt: skip
    """The cut to make: column, number of cuts (in work.cuts), and the middle where it is relaxed.

    Column −1 if no cut leaves parts that all meet the requirements. `best` is
    INFORMATION, CERTAINTY or BOXES, or None for the median of the widest column.
    """
    if best is not None:  # where it is None the compiler leaves the others out
        if best == INFORMATION:
            column, cut = most_informative_cut(lines, start, stop, work, rules)
        else:
            column, cut = narrowest_cut(lines, start, stop, work, rules, groups, least)
        work.cuts[0] = cut
        return column, 1, 0
    for place in range(by_width(lines.sizes, work.low, work.high, work.order)):
        column = work.order[place]
        number = cuts_of(lines, start, stop, column, rows, breaks, work)
        if relaxed:
            middle = halve(lines, start, stop, column, work.cuts[0], rules, work)
            if middle:
                return column, 1, middle
        elif all_meet(lines, start, stop, column, number, rows, population, rules, work):
            return column, number, 0
    return -1, 0, 0


@compiled
def longer(values: Counts) -> Counts:
    """The same numbers in an array twice as long."""
    out = np.empty((values.shape[0], 2 * values.shape[1]), dtype=values.dtype)
    for row in range(values.shape[0]):
        for place in range(values.shape[1]):
            out[row, place] = values[row, place]
    return out


@compiled
def put(table: Counts, place: int, first: int, second: int, third: int) -> None:
    """Fill a column of three numbers."""
    table[0, place] = first
    table[1, place] = second
    table[2, place] = third


@compiled
def grow(
    lines: Lines, rules: Rules, best: int | None, relaxed: bool, least: int, breaks: Codes
) -> tuple[Counts, Counts]:
    """Cut until no cut is allowed; return the tree's columns, and where each class ends.

    A node of fewer than 2·least rows is not tried: each side needs `least`. `breaks` has a row for
    each column, −1 at the first position of a column that is cut without a hierarchy; it is empty
    if all are. With BOXES the tree does not say where boxes were taken out, and is none.
    """
    work, groups = workspace_for(lines), groups_for(lines)
    search = search_for(work)
    tree, used = np.empty((3, 64), dtype=np.int64), 1
    stops, classes = np.empty((1, 64), dtype=np.int64), 0
    stack, depth = np.empty((3, 64), dtype=np.int64), 1
    put(stack, 0, 0, len(lines.unit), 0)
    while depth > 0:
        depth -= 1
        start, stop, node = stack[0, depth], stack[1, depth], stack[2, depth]
        rows, population = tally(lines, start, stop, work.node)
        column, number, middle = -1, 0, 0
        if rows >= 2 * least:
            extent(lines, start, stop, True, work.low, work.high)
            column, number, middle = propose(
                lines,
                start,
                stop,
                rows,
                population,
                rules,
                best,
                relaxed,
                least,
                breaks,
                work,
                groups,
            )
        if column < 0 and best is not None and best == BOXES and rows >= 2 * least:
            taken = take_box(lines, start, stop, rows, work, rules, groups, search, least)
            if taken > start:
                if depth + 2 > stack.shape[1]:
                    stack = longer(stack)
                put(stack, depth, taken, stop, node)
                put(stack, depth + 1, start, taken, node)
                depth += 2
                continue
        if column < 0:
            put(tree, node, -1, -1, classes)
            if classes == stops.shape[1]:
                stops = longer(stops)
            stops[0, classes] = stop
            classes += 1
            continue
        while used + 2 * number > tree.shape[1]:
            tree = longer(tree)
        while depth + number + 1 > stack.shape[1]:
            stack = longer(stack)
        top = depth + number
        for c in range(number):
            cut = work.cuts[c]
            begin = middle or divide(lines, start, stop, column, cut, work.misplaced)
            if middle and cut == work.high[column]:
                cut -= 1
            put(tree, node, column, cut, used)
            put(stack, top, start, begin, used)
            start, node, top, used = begin, used + 1, top - 1, used + 2
        put(stack, top, start, stop, node)
        depth += number + 1
    return tree[:, :used], stops[0, :classes]


@compiled
def boxes(lines: Lines, stops: Counts) -> tuple[Codes, Codes]:
    """(classes, columns): the least and largest position of each class's lines."""
    low = np.empty((stops.size, lines.sizes.size), dtype=np.int32)
    high = np.empty_like(low)
    least, largest = np.empty_like(lines.sizes), np.empty_like(lines.sizes)
    start = 0
    for number in range(stops.size):
        extent(lines, start, stops[number], False, least, largest)
        for column in range(lines.sizes.size):
            low[number, column] = least[column]
            high[number, column] = largest[column]
        start = stops[number]
    return low, high
