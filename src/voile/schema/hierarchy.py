"""Hierarchies: the coarser values that a column's values may be replaced by.

A hierarchy is a path for each value: the value itself, then ever coarser labels, the last of
which is the same for all ('*'). Bound to an attribute it becomes `Levels`: arrays of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Nodes = npt.NDArray[np.int32]

EVERYTHING = "*"
"""The label of the one node at the top."""


@dataclass(frozen=True, eq=False)
class Levels:
    """A hierarchy over the codes 0 … size−1 of an attribute, from fine to coarse.

    nodes[h][code] is the number of the node of level h that the code lies in. Level 0 are the
    codes themselves, the last level is one node, and each level joins nodes of the one before.
    """

    nodes: tuple[Nodes, ...]
    labels: tuple[tuple[str, ...], ...]
    """labels[h][node]; those of level 0 are the values in words."""
    leaves: Nodes
    """The codes in the order in which the hierarchy lists them: how its author orders values."""

    @property
    def height(self) -> int:
        """The number of the top level."""
        return len(self.nodes) - 1

    @property
    def size(self) -> int:
        return len(self.nodes[0])

    @cached_property
    def nested(self) -> Nodes:
        """The codes in an order in which every node is an interval; `leaves` where it is one."""
        place = np.empty(self.size, dtype=np.int64)
        place[self.leaves] = np.arange(self.size)
        keys = [place]
        for nodes in self.nodes[1:]:
            first = np.full(int(nodes.max()) + 1, self.size)
            np.minimum.at(first, nodes, place)
            keys.append(first[nodes])
        return np.lexsort(keys).astype(np.int32)  # the last key, the coarsest level, counts most
