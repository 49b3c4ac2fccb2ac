"""Which tables of counts get geometric noise: larger ones that cover those that are wanted.

With T tables, each gets 1/T of ε, and the variance of its cells grows like T². A table of more
columns may stand for several of fewer (PriView: Qardaji, Yang and Li, SIGMOD 2014): its cells are
added up, which multiplies their variance by the values of the columns that are left out. So where
columns have few values, fewer and larger tables are better. With equal rates, the weighted sum of
variances is in proportion to
  T²·Σ_c v_c/G_c,   G_c = Σ_{s⊇c} 1/Π_{i∈s∖c} n_i
and what is sought here is a set of tables that makes it small. Any set is sound: the account is
that of the set. Sizes alone decide, so that nothing is disclosed.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from voile.kinds.marginals.residuals import Columns, component_weights, subsets

MOST_COLUMNS = 5
"""Of a table that is measured."""
MOST_CELLS = 2**16
"""Of a table that stands for others."""
MOST_BLOCKS = 5000
"""Sets of columns among which a covering is sought."""
MOST_MERGED = 1500
"""Tables times columns that are merged without a covering to begin with: that takes long."""


def covering(
    sizes: Sequence[int], weights: Mapping[Columns, float], tables: Sequence[Columns]
) -> list[Columns]:
    """Tables that cover the given ones, with the least cost of those that are tried."""
    columns = sorted({i for s in tables for i in s})
    starts = [
        _covered(sizes, tables, columns, size)
        for size in (4, 5)
        if math.comb(len(columns), size) <= MOST_BLOCKS
    ]
    if len(tables) * len(columns) <= MOST_MERGED:
        starts.append(list(tables))
    if len(tables) < 2 or not starts:
        return list(tables)
    values = component_weights(sizes, weights)
    found = [_Merging(sizes, values, start).merged() for start in starts]
    best = min(found, key=lambda one: one.cost)
    return sorted(best.tables, key=lambda s: (len(s), s))


def _product(sizes: Sequence[int], columns: Iterable[int]) -> int:
    return math.prod(sizes[i] for i in columns)


def _covered(
    sizes: Sequence[int], tables: Sequence[Columns], columns: Sequence[int], size: int
) -> list[Columns]:
    """Tables of so many columns that cover, one by one, the most that is left; and what stays.

    What a table would cover shrinks as others are taken: only the best is computed again.
    """
    left = set(tables)
    found: list[Columns] = []

    def value(block: Columns) -> float:
        own = [s for s in subsets(block) if s in left]
        cells = _product(sizes, block)
        return sum(_product(sizes, s) / cells for s in own) if len(own) > 1 else 0.0

    blocks = [u for u in combinations(columns, size) if _product(sizes, u) <= MOST_CELLS]
    heap = [(-value(u), u) for u in blocks]
    heapq.heapify(heap)
    while heap:
        _, block = heapq.heappop(heap)
        now = value(block)
        if not now:
            continue
        if heap and now < -heap[0][0]:
            heapq.heappush(heap, (-now, block))
            continue
        found.append(block)
        left -= set(subsets(block))
    return [*found, *sorted(left)]


class _Merging:
    """Tables are replaced by a table with one column more, as long as the cost falls."""

    def __init__(
        self, sizes: Sequence[int], values: Mapping[Columns, float], tables: Iterable[Columns]
    ) -> None:
        self.sizes, self.values, self.tables = sizes, values, set(tables)
        self.known: dict[Columns, float] = {}
        for s in self.tables:
            self._add(s, 1.0)
        self.total = math.fsum(v / self.known[c] for c, v in values.items() if c in self.known)

    @property
    def cost(self) -> float:
        """T²·Σ v_c/G_c."""
        return len(self.tables) ** 2 * self.total

    def _add(self, table: Columns, sign: float) -> None:
        cells = _product(self.sizes, table)
        for c in subsets(table):
            if c in self.values:
                part = sign * _product(self.sizes, c) / cells
                self.known[c] = self.known.get(c, 0.0) + part

    def merged(self) -> _Merging:
        """Replace tables until nothing is better.

        Of a candidate, how many tables it replaces and by how much the sum changes is kept, and
        computed again after a replacement that shares more than one column with it.
        """
        changes = {u: self._change(u) for s in self.tables for u in self._wider(s)}
        while changes:
            table = min(changes, key=lambda u: self._after(changes[u]))
            changes[table] = self._change(table)
            now = self._after(changes[table])
            if now > min(map(self._after, changes.values())):
                continue
            if now >= self.cost * (1 - 1e-9):
                break
            self._replace(table)
            del changes[table]
            for wider in self._wider(table):
                changes.setdefault(wider, (0, 0.0))
            for u in changes:
                if len(set(u) & set(table)) > 1:
                    changes[u] = self._change(u)
        return self

    def _after(self, change: tuple[int, float]) -> float:
        """The cost with fewer tables and another sum."""
        return (len(self.tables) - change[0]) ** 2 * (self.total + change[1])

    def _wider(self, table: Columns) -> list[Columns]:
        found = [
            tuple(sorted((*table, i))) for i, n in enumerate(self.sizes) if n > 1 and i not in table
        ]
        return [
            u for u in found if len(u) <= MOST_COLUMNS and _product(self.sizes, u) <= MOST_CELLS
        ]

    def _inside(self, table: Columns) -> list[Columns]:
        return [s for s in subsets(table) if s in self.tables]

    def _change(self, table: Columns) -> tuple[int, float]:
        """By how many tables and by how much in the sum: this table in place of those in it."""
        inside = [(frozenset(s), _product(self.sizes, s)) for s in self._inside(table)]
        cells, total = _product(self.sizes, table), 0.0
        for c in subsets(table):
            if c in self.known:
                less = sum(1 / n for s, n in inside if s.issuperset(c)) - 1 / cells
                known = self.known[c]
                after = max(known - less * _product(self.sizes, c), 1e-300)
                total += self.values[c] * (1 / after - 1 / known)
        return len(inside) - 1, total

    def _replace(self, table: Columns) -> None:
        for s in self._inside(table):
            self._add(s, -1.0)
            self.tables.discard(s)
        self._add(table, 1.0)
        self.tables.add(table)
        self.total = math.fsum(v / self.known[c] for c, v in self.values.items() if c in self.known)
