"""Full-domain generalization: one level for each column, the best that meets the requirements.

Every row shows the nodes that its values lie in at the chosen levels. Rows of classes that fail
may be suppressed, up to a limit. The search is exact: see docs/mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import numpy.typing as npt

from voile.errors import PromiseError, UsageError, spelled
from voile.options import choices
from voile.privacy.requirements import Requirement
from voile.recoding.grouping import Grouping, check_whole
from voile.recoding.rollup import (
    Judge,
    LevelCosts,
    Loss,
    Node,
    RollUp,
    Verdict,
    costs_of,
    outer_sum,
    rounded,
)
from voile.recoding.units import Codes, Units
from voile.schema.hierarchy import Levels

# ---------------------------------------------------------------------- the search
# The search for the best levels among all combinations of them.


Key = tuple[float, int, int]
"""The loss, the sum of the levels, the number of the combination: the least is the best."""


BLOCK = 4096


class LevelSearch:
    """Exact search with two kinds of pruning.

    Levels that are hopeless rule out all finer ones; and no loss is below its bound,
    which never falls from finer to coarser levels. Combinations are taken by their bounds, and
    each that is still open is looked at from a chain of coarser ones above it, halved again and
    again: a hopeless one far up rules out most.
    """

    def __init__(self, shape: Node, counting: RollUp, judge: Judge, costs: LevelCosts) -> None:
        self._shape = shape
        self._counting = counting
        self._judge = judge
        self._costs = costs
        self._bounds = costs.bounds()
        self._closed = np.zeros(shape, dtype=np.bool_)
        """Combinations that need not be checked: hopeless, checked, or not better."""
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
        """The combinations that are still open, by their bounds."""
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
        """Find where the chain above the combination stops being hopeless.

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
        """The combination and coarser ones, each one level up where the bound grows least."""
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


# ---------------------------------------------------------------------- the best levels


Suppressed = choices.Suppressed
MOST_NODES = 10_000_000


@dataclass(frozen=True, eq=False)
class FullDomain:
    """The chosen levels, and the classes into which they group these rows."""

    levels: Node
    """The level of each quasi-identifier, in their order."""
    units: Units
    """The units, with positions in each column's nested order."""
    grouping: Grouping
    """Their classes; suppressed rows, where there are any, are the last class."""
    shown: npt.NDArray[np.bool_]
    """(classes,): those that are shown; not the removed rows, nor places that have no rows."""
    suppressed_rows: int
    loss: float
    nodes: int
    """How many combinations of levels there are."""
    checked: int
    """For how many of them classes were counted."""


def full_domain(
    units: Units,
    levels: Sequence[Levels],
    requirements: Sequence[Requirement],
    *,
    suppression: float = 0.0,
    loss: Loss = "ncp",
    suppressed: Suppressed = "removed",
) -> FullDomain:
    """The levels with the least loss whose classes meet the requirements.

    `units` are given by the codes of the schema, not by positions. Up to a share `suppression` of
    the rows may be in classes that fail. They are 'removed', and the rest must meet the
    requirements as a table of its own; or 'shown' as one class with '*' everywhere, which must
    then meet the requirements as any other. Of levels with equal loss,
    the lower ones are chosen, then those that keep earlier columns finer.
    """
    check_arguments(units, levels, suppression, suppressed)
    if suppression == 0:
        monotone = [requirement for requirement in requirements if requirement.monotone]
        check_whole(units, monotone)
    counting = RollUp(units, levels)
    judge = Judge(units, requirements, suppression, shown=suppressed == "shown")
    costs = costs_of(loss, units, levels)
    search = LevelSearch(tuple(found.height + 1 for found in levels), counting, judge, costs)
    best = search.run()
    if best is None:
        raise refusal(requirements, suppression)
    cells = counting.cells(best)
    verdict = judge(cells)
    grouping, shown = classes_at(counting, levels, best, verdict, shown=suppressed == "shown")
    return FullDomain(
        levels=best,
        units=replace(units, codes=in_nested_order(units, levels)),
        grouping=grouping,
        shown=shown,
        suppressed_rows=int(cells.rows[~verdict.kept].sum()),
        loss=search.best_key[0],
        nodes=math.prod(found.height + 1 for found in levels),
        checked=search.checked,
    )


def check_arguments(
    units: Units, levels: Sequence[Levels], suppression: float, suppressed: str
) -> None:
    """Refuse a share of suppressed rows, or levels, that make no sense."""
    if not 0 <= suppression < 1:
        raise UsageError(
            f"suppression {suppression:g} is not a share of the rows",
            hint="give a number of at least 0 and below 1, such as 0.01",
        )
    if suppressed not in get_args(Suppressed):
        raise UsageError(f"suppressed {suppressed!r} is not known", hint="use 'removed' or 'shown'")
    if not levels:
        raise UsageError("no quasi-identifiers are given", hint=spelled("qi", ["age", "sex"]))
    if [found.size for found in levels] != list(units.sizes):
        raise UsageError(
            "the levels are not those of the quasi-identifiers", hint="give one for each, in order"
        )
    nodes = math.prod(found.height + 1 for found in levels)
    if nodes > MOST_NODES:
        raise UsageError(
            f"there are {nodes:,} combinations of levels, more than can be searched",
            hint="use fewer quasi-identifiers or hierarchies with fewer levels, "
            f"or group by {spelled('method', 'mondrian')}",
        )
    if not units.rows:
        raise PromiseError("there are no rows to group", hint="give a table that has rows")


def refusal(requirements: Sequence[Requirement], suppression: float) -> PromiseError:
    """The error when no combination of levels meets the requirements."""
    wanted = ", ".join(requirement.spelling for requirement in requirements)
    return PromiseError(
        f"no combination of levels meets {wanted}"
        + (f" with at most {suppression:.6g} of the rows suppressed" if suppression else ""),
        hint=f"ask for less, allow more suppression, or group by {spelled('method', 'mondrian')}",
    )


def classes_at(
    counting: RollUp, levels: Sequence[Levels], node: Node, verdict: Verdict, *, shown: bool
) -> tuple[Grouping, npt.NDArray[np.bool_]]:
    """The classes at these levels, suppressed ones as a single class; and which are shown."""
    nodes, classes = counting.class_of_unit(node)
    ends = [extents(found, level) for found, level in zip(levels, node, strict=True)]
    low = np.array([first[line] for (first, _), line in zip(ends, nodes, strict=True)])
    high = np.array([last[line] for (_, last), line in zip(ends, nodes, strict=True)])
    visible = verdict.kept & (counting.cells(node).rows > 0)
    if verdict.kept.all():
        return Grouping(classes, rows_first(low), rows_first(high)), visible
    kept = verdict.kept
    number = int(kept.sum())
    renumbered = np.where(kept, np.cumsum(kept) - 1, number).astype(np.int32)
    everything = np.array([[found.size - 1] for found in levels])
    grouping = Grouping(
        renumbered[classes],
        rows_first(np.hstack([low[:, kept], np.zeros_like(everything)])),
        rows_first(np.hstack([high[:, kept], everything])),
    )
    return grouping, np.append(visible[kept], shown)


def extents(levels: Levels, level: int) -> tuple[Codes, Codes]:
    """The first and the last position of every node of a level, in the nested order."""
    nodes = levels.nodes[level][levels.nested]
    starts = np.flatnonzero(np.diff(nodes, prepend=-1))  # every node is one run
    first, last = (np.empty(len(starts), dtype=np.int32) for _ in range(2))
    first[nodes[starts]] = starts
    last[nodes[starts]] = np.append(starts[1:], len(nodes)) - 1
    return first, last


def rows_first(columns: npt.NDArray[np.int32]) -> Codes:
    """The transpose, with each class's positions side by side in memory."""
    return np.ascontiguousarray(columns.T, dtype=np.int32)


def in_nested_order(units: Units, levels: Sequence[Levels]) -> Codes:
    """The units' codes as positions in each column's nested order."""
    found = np.empty_like(units.codes)
    for line, codes, column in zip(found, units.codes, levels, strict=True):
        place = np.empty(column.size, dtype=np.int32)
        place[column.nested] = np.arange(column.size, dtype=np.int32)
        line[:] = place[codes]
    return found
