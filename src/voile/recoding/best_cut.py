"""The best of all cuts of a node, at every position of every column, not only the medians.

Each column's lines are walked once in the order of their positions. What is left of the walk is a
candidate part, and its histogram changes by one line at a time.
"""

from __future__ import annotations

import numpy as np

from voile.arrays import Floats
from voile.compiled import compiled
from voile.privacy.requirements.kernels import meets
from voile.privacy.requirements.rules import Rules
from voile.recoding.nodes import Lines, Room, extent, in_order
from voile.recoding.units import Counts

INFORMATION = 1
"""The cut that tells most about the sensitive attributes."""
CERTAINTY = 2
"""The cut that leaves the narrowest boxes."""


@compiled
def weight(lines: Lines, i: int) -> int:
    """How many rows line i stands for."""
    return 1 if lines.weights.size == 0 else lines.weights[i]


@compiled
def surprise(count: int) -> float:
    """count·ln(count): sums of it are what entropies of counts are made of."""
    return count * np.log(count) if count > 0 else 0.0


@compiled
def information_gains(lines: Lines, order: Counts, room: Room) -> Floats:
    """Before each line of the order, by how much Σ rows·H(sensitive | part) falls if cut there.

    Summed over the sensitive attributes. For one of them rows·H = g(rows) − Σ g(count) with
    g(x) = x·ln x, and a line changes one count of each side.
    """
    gains = np.zeros(order.size)
    attributes, columns = lines.starts.size - 1, lines.sizes.size
    for value in range(room.node.size):
        room.part[value] = 0
        room.rest[value] = room.node[value]
    total = 0
    for value in range(lines.starts[0], lines.starts[1] if attributes else 0):
        total += room.node[value]
    whole = attributes * surprise(total)
    for value in range(room.node.size):
        whole -= surprise(room.node[value])
    sides, rows = whole - attributes * surprise(total), 0
    for place in range(order.size):
        gains[place] = whole - sides - attributes * (surprise(rows) + surprise(total - rows))
        i = order[place]
        count = weight(lines, i)
        rows += count
        for a in range(attributes):
            value = lines.starts[a] + np.int64(lines.columns[columns + a, i])
            sides += surprise(room.part[value]) + surprise(room.rest[value])
            room.part[value] += count
            room.rest[value] -= count
            sides -= surprise(room.part[value]) + surprise(room.rest[value])
    return gains


@compiled
def uncertainty(lines: Lines, low: Counts, high: Counts) -> float:
    """The sum over the columns of how wide a box is, as a share of the domain."""
    total = 0.0
    for column in range(lines.sizes.size):
        if lines.sizes[column] > 1 and high[column] >= low[column]:
            total += (high[column] - low[column]) / (lines.sizes[column] - 1)
    return total


@compiled
def uncertainties(lines: Lines, order: Counts, backwards: bool) -> Floats:
    """Before each line of the order, rows·uncertainty of the lines before it; or from it on."""
    out = np.zeros(order.size)
    low, high = np.empty_like(lines.sizes), np.empty_like(lines.sizes)
    for column in range(lines.sizes.size):
        low[column], high[column] = lines.sizes[column], -1
    rows = 0
    for step in range(order.size):
        place = order.size - 1 - step if backwards else step
        i = order[place]
        if not backwards:
            out[place] = rows * uncertainty(lines, low, high)
        count = weight(lines, i)
        rows += count
        if count > 0:
            for column in range(lines.sizes.size):
                code = np.int64(lines.columns[column, i])
                low[column] = min(low[column], code)
                high[column] = max(high[column], code)
        if backwards:
            out[place] = rows * uncertainty(lines, low, high)
    return out


@compiled
def best_cut(
    lines: Lines, start: int, stop: int, room: Room, rules: Rules, way: int
) -> tuple[int, int]:
    """The column and the position of the best cut both parts of which meet the requirements.

    Column −1 if there is none. Of cuts that are equally good the first is taken: columns as
    given, positions from below.
    """
    best, best_column, best_position = -np.inf, -1, -1
    columns = lines.sizes.size
    low, high = np.empty_like(lines.sizes), np.empty_like(lines.sizes)
    extent(lines, start, stop, False, low, high)
    for column in range(columns):
        if room.high[column] <= room.low[column]:
            continue
        order = in_order(lines, start, stop, column, low[column], high[column])
        if way == INFORMATION:
            gains = information_gains(lines, order, room)
        else:
            gains, after = uncertainties(lines, order, False), uncertainties(lines, order, True)
            for place in range(gains.size):
                gains[place] = -gains[place] - after[place]
        best, position = best_position_of(lines, order, column, gains, best, room, rules)
        if position >= 0:
            best_column, best_position = column, position
    return best_column, best_position


@compiled
def best_position_of(
    lines: Lines, order: Counts, column: int, gains: Floats, best: float, room: Room, rules: Rules
) -> tuple[float, int]:
    """The best allowed cut of one column, if it is better than the best so far; else −1."""
    columns, found = lines.sizes.size, -1
    for value in range(room.node.size):
        room.part[value] = 0
        room.rest[value] = room.node[value]
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
            and meets(rules, room.part, rows, population)
            and meets(rules, room.rest, all_rows - rows, all_population - population)
        ):
            best = gains[place]
            found = int(np.int64(lines.columns[column, order[place - 1]]))
        count = weight(lines, i)
        rows += count
        if lines.population.size > 0:
            population += lines.population[i]
        for a in range(lines.starts.size - 1):
            value = lines.starts[a] + np.int64(lines.columns[columns + a, i])
            room.part[value] += count
            room.rest[value] -= count
    return best, found
