"""The items that populations are made of: values of a column and coarser values.

A node that has one child is the same set of values as that child: one item, the finer of the
two. A node that is the whole column says nothing and is no item.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.recoding.units import Codes, Counts
from voile.schema.hierarchy import Levels


@dataclass(frozen=True, eq=False)
class Items:
    """The frequent items of one column, from fine to coarse."""

    level: Codes
    node: Codes
    has: npt.NDArray[np.bool_]
    """(items, codes): whether the item has the value."""
    labels: tuple[str, ...]

    @property
    def number(self) -> int:
        return len(self.level)


def frequent_items(levels: Levels, codes: Codes, weights: Counts, least: int) -> Items:
    """The items that at least so many rows have; cells are given by their codes and weights."""
    found: list[tuple[int, int]] = []
    has = [np.zeros((0, levels.size), dtype=np.bool_)]
    for level in range(levels.height):
        nodes = levels.nodes[level]
        number = int(nodes.max()) + 1
        if number == 1:
            break  # this level, and every coarser one, is everything
        rows = np.bincount(nodes[codes], weights, number)
        wanted = np.flatnonzero((rows >= least) & (children(levels, level) > 1))
        found += [(level, int(node)) for node in wanted]
        has.append(nodes[None, :] == wanted[:, None])
    places = np.array(found, dtype=np.int32).reshape(-1, 2)
    labels = tuple(levels.labels[level][node] for level, node in found)
    return Items(places[:, 0], places[:, 1], np.concatenate(has), labels)


def children(levels: Levels, level: int) -> npt.NDArray[np.int64]:
    """How many nodes of the finer level each node joins; values, the finest, count as two."""
    nodes = levels.nodes[level]
    if level == 0:
        return np.full(int(nodes.max()) + 1, 2)
    finer = levels.nodes[level - 1].astype(np.int64)
    number = int(finer.max()) + 1
    pairs = np.unique(nodes * number + finer)
    return np.bincount(pairs // number, minlength=int(nodes.max()) + 1)
