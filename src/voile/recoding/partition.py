"""What Mondrian leaves: classes, the cuts that made them, and where new rows belong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from voile.compiled import compiled
from voile.recoding.grouping import Grouping
from voile.recoding.growing import Tree
from voile.recoding.units import Codes


@dataclass(frozen=True, eq=False)
class Regions:
    """Boxes of positions, one for each class: disjoint, and together the whole domain.

    A box whose first position is above its last is empty; only relaxed cuts leave such.
    """

    low: Codes
    """(classes, quasi-identifiers)"""
    high: Codes


@dataclass(frozen=True, eq=False)
class Partition:
    """A grouping by cuts.

    The boxes of `grouping` bound the units of each class. `regions` are what the cuts leave, and
    hold those boxes, unless cuts are relaxed: then rows at a cut may be on either side of it.
    """

    grouping: Grouping
    tree: Tree
    sizes: tuple[int, ...]

    @cached_property
    def regions(self) -> Regions:
        low, high = regions_of(self.tree, np.array(self.sizes, dtype=np.int32))
        here = self.tree.column < 0
        order = np.argsort(self.tree.child[here])
        return Regions(low[here][order], high[here][order])

    def locate(self, codes: Codes) -> Codes:
        """The class in whose region each row lies; codes are (quasi-identifiers, rows)."""
        return located(self.tree, np.ascontiguousarray(codes, dtype=np.int32))


@compiled
def regions_of(tree: Tree, sizes: Codes) -> tuple[Codes, Codes]:
    """(nodes, columns): the box of every node. A node comes before its children."""
    low = np.zeros((tree.column.size, sizes.size), dtype=np.int32)
    high = np.empty_like(low)
    for j in range(sizes.size):
        high[0, j] = sizes[j] - 1
    for node in range(tree.column.size):
        column = tree.column[node]
        if column < 0:
            continue
        left, right = tree.child[node], tree.child[node] + 1
        for j in range(sizes.size):
            low[left, j] = low[right, j] = low[node, j]
            high[left, j] = high[right, j] = high[node, j]
        high[left, column] = min(high[node, column], tree.cut[node])
        low[right, column] = max(low[node, column], tree.cut[node] + 1)
    return low, high


@compiled
def located(tree: Tree, codes: Codes) -> Codes:
    """Down the tree, for each row."""
    out = np.empty(codes.shape[1], dtype=np.int32)
    for i in range(codes.shape[1]):
        node = 0
        while tree.column[node] >= 0:
            below = codes[tree.column[node], i] <= tree.cut[node]
            node = tree.child[node] if below else tree.child[node] + 1
        out[i] = tree.child[node]
    return out
