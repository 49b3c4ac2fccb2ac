"""The search for the best levels among all combinations of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from voile.recoding.feasible import Judge, Verdict
from voile.recoding.level_costs import Costs, outer_sum, rounded
from voile.recoding.rollup import Node, RollUp

Key = tuple[float, int, int]
"""The loss, the sum of the levels, the number of the combination: the least is the best."""


BLOCK = 4096


class Search:
    """Exact search with two kinds of pruning.

    What is hopeless at some levels is hopeless at all finer ones; and no loss is below its bound,
    which never falls from finer to coarser levels. Combinations are taken by their bounds, and
    each that is still open is looked at from a chain of coarser ones above it, halved again and
    again: a hopeless one far up rules out most.
    """

    def __init__(self, shape: Node, counting: RollUp, judge: Judge, costs: Costs) -> None:
        self._shape = shape
        self._counting = counting
        self._judge = judge
        self._costs = costs
        self._bounds = costs.bounds()
        self._closed = np.zeros(shape, dtype=np.bool_)
        """Combinations that need no look: hopeless, looked at, or not better."""
        self._verdicts: dict[Node, Verdict] = {}
        self.best: Node | None = None
        self.best_key: Key = (np.inf, 0, 0)

    @property
    def checked(self) -> int:
        """For how many combinations classes were counted."""
        return len(self._verdicts)

    def run(self) -> Node | None:
        """The feasible combination with the least key; None where none is feasible."""
        for node in self._open():
            if self._key(node, float(self._bounds[node])) < self.best_key:
                self._look_from_above(node)
        return self.best

    def _open(self) -> Iterator[Node]:
        """The combinations by their bounds, without those that have become needless to look at."""
        heights = outer_sum([np.arange(size, dtype=np.int64) for size in self._shape])
        order = np.lexsort((heights.ravel(), self._bounds.ravel()))
        closed, bounds = self._closed.reshape(-1), self._bounds.reshape(-1)
        for block in np.split(order, range(BLOCK, len(order), BLOCK)):
            rest = block
            while True:
                is_open = ~closed[rest] & (bounds[rest] <= self.best_key[0])
                if not is_open.any():
                    break
                first = int(np.argmax(is_open))
                yield self._node(int(rest[first]))
                rest = rest[first + 1 :]

    def _node(self, number: int) -> Node:
        return tuple(int(level) for level in np.unravel_index(number, self._shape))

    def _key(self, node: Node, loss: float) -> Key:
        return rounded(loss), sum(node), int(np.ravel_multi_index(node, self._shape))

    def _look_from_above(self, node: Node) -> None:
        """Find where the chain above the combination stops to be hopeless.

        Then the combination itself is ruled out, or it was the last to be looked at.
        """
        chain = list(self._chain(node))
        low, high = 0, len(chain) - 1
        while low <= high:
            middle = (low + high) // 2
            if self._look(chain[middle]).hopeless:
                low = middle + 1
            else:
                high = middle - 1

    def _chain(self, node: Node) -> Iterator[Node]:
        """The combination and ever coarser ones, a level at a time, where the bound grows least."""
        yield node
        top = tuple(size - 1 for size in self._shape)
        while node != top:
            above = [
                (*node[:j], level + 1, *node[j + 1 :])
                for j, level in enumerate(node)
                if level < top[j]
            ]
            node = min(above, key=lambda found: float(self._bounds[found]))
            yield node

    def _look(self, node: Node) -> Verdict:
        """Count the classes, and note what follows for others."""
        if node in self._verdicts:
            return self._verdicts[node]
        cells = self._counting.cells(node)
        found = self._judge(cells)
        self._verdicts[node] = found
        self._closed[node] = True
        below = tuple(slice(0, level + 1) for level in node)
        above = tuple(slice(level, None) for level in node)
        np.maximum(self._bounds[above], self._costs.bound(cells), out=self._bounds[above])
        if found.hopeless:
            self._closed[below] = True
        elif found.feasible:
            if not self._judge.suppresses:
                self._closed[above] = True  # they lose as much or more
            key = self._key(node, self._costs.loss(cells, found.kept))
            if key < self.best_key:
                self.best, self.best_key = node, key
        return found
