"""Hierarchies suggested by rows: values with similar sensitive distributions are grouped.

The agglomerative information bottleneck: at each step the two groups are joined that lose least
information about the sensitive attribute, (wₐ + w_b)·JS(pₐ, p_b) with their shares as weights.
The result depends on the private rows, and discloses something about them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError, spelled
from voile.hierarchies.stacking import (
    LevelPartition,
    Numbers,
    check_fanout,
    check_values,
    renumbered,
    stacked,
)
from voile.schema import Attribute
from voile.schema.attribute import value_words
from voile.schema.hierarchy import Levels

MOST_VALUES = 2_000
WORDS = 60
"""Groups whose members take more characters are called by the first of them."""


def suggested(attribute: Attribute, counts: npt.NDArray[np.int64], fanout: int = 2) -> Levels:
    """Levels with 1/fanout, 1/fanout², … as many groups as there are values.

    `counts[value, sensitive value]` are rows, by codes. Ties go to the values that come first.
    """
    check_values(attribute)
    values = attribute.domain.size
    if values > MOST_VALUES:
        raise UsageError(
            f"{attribute.name!r} has {values:,} values, too many to compare them all",
            hint=f"use {spelled('mapping')}, {spelled('prefixes')} or {spelled('multiples')}",
        )
    check_fanout(fanout)
    numbers = [-(-values // fanout**level) for level in range(1, values.bit_length() + 1)]
    wanted = [number for number in dict.fromkeys(numbers) if number > 1]
    found = list(joinings(np.asarray(counts[:values], dtype=np.float64), wanted))
    partitions = [LevelPartition(groups, group_words(attribute, groups)) for groups in found]
    return in_order_of_likeness(stacked(attribute, partitions, derived=True))


def joinings(counts: Floats, wanted: list[int]) -> Iterator[Numbers]:
    """The groups at each wanted number of groups, the largest number first."""
    number = len(counts)
    groups = np.arange(number, dtype=np.int64)
    held = counts.copy()
    alive = np.ones(number, dtype=np.bool_)
    losses = np.array([losses_of_joining(held, a) for a in range(number)]).reshape(number, number)
    losses[np.tril_indices(number)] = np.inf  # each pair once, the earlier value first
    left = number
    for stop in wanted:
        while left > stop:
            first, second = np.unravel_index(int(np.argmin(losses)), losses.shape)
            groups[groups == second] = first
            held[first] += held[second]
            alive[second] = False
            losses[second, :] = losses[:, second] = np.inf
            anew = losses_of_joining(held, int(first))
            later = np.arange(number) > first
            losses[first, later & alive] = anew[later & alive]
            losses[~later & alive, first] = anew[~later & alive]
            losses[first, first] = np.inf
            left -= 1
        yield renumbered(groups)[1]


def losses_of_joining(counts: Floats, one: int) -> Floats:
    """The loss of joining one group with each of the others, in rows times nats."""
    both = counts + counts[one]
    gain = plogp(both).sum(axis=1) - plogp(both.sum(axis=1))
    alone = plogp(counts).sum(axis=1) - plogp(counts.sum(axis=1))
    losses: Floats = np.maximum(alone + alone[one] - gain, 0.0)
    return losses


def plogp(numbers: Floats) -> Floats:
    """x·ln x, 0 at 0."""
    return numbers * np.log(np.where(numbers > 0, numbers, 1.0))


def group_words(attribute: Attribute, groups: Numbers) -> list[str]:
    """Groups by their members, or by the first and how many there are."""
    words = value_words(attribute)
    found = []
    for group in range(int(groups.max()) + 1):
        members = np.flatnonzero(groups == group).tolist()
        text = " | ".join(words[code] for code in members)
        if len(text) > WORDS and len(members) > 1:
            text = f"{words[members[0]]} and {len(members) - 1} more"
        found.append(text)
    return found


def in_order_of_likeness(levels: Levels) -> Levels:
    """The same levels, with leaves in an order that keeps groups together."""
    return Levels(levels.nodes, levels.labels, levels.nested, levels.derived)
