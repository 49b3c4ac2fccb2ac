"""Counting the classes of full-domain generalization from those of a finer one.

At chosen levels a class is all rows with the same nodes. Its counts are sums of the counts of any
finer levels, so that rows are looked at only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.recoding.units import Codes, Counts, Units
from voile.schema.hierarchy import Levels

Numbers = npt.NDArray[np.int64]
Node = tuple[int, ...]
"""The level of each quasi-identifier."""

LARGEST_KEY = 2**62
KEPT_NUMBERS = 2**24
"""How many numbers of finer counts are kept to sum up from."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The classes at some levels: their nodes and what they count."""

    levels: Node
    nodes: Codes
    """(quasi-identifiers, classes): the number of the node at its level."""
    rows: Counts
    population: Counts | None
    counts: tuple[Counts, ...]
    """For each sensitive attribute (classes, values)."""

    @property
    def number(self) -> int:
        return len(self.rows)

    @property
    def numbers(self) -> int:
        """How many numbers it takes to keep them."""
        return self.nodes.size + sum(counts.size for counts in self.counts)


class RollUp:
    """Counts at any levels, from the smallest finer ones that were kept."""

    def __init__(self, units: Units, levels: Sequence[Levels]) -> None:
        self._units = units
        self._levels = levels
        heights = [found.height for found in levels]
        self._parents = [
            [parents(found, fine) for fine in range(height + 1)]
            for found, height in zip(levels, heights, strict=True)
        ]
        nodes, self.cell_of_unit = distinct(units.codes, units.sizes)
        self._cells = nodes
        self._kept: list[Cells] = []
        self._room = KEPT_NUMBERS

    def cells(self, levels: Node) -> Cells:
        """The classes at these levels."""
        finer = [kept for kept in self._kept if all(map(int.__le__, kept.levels, levels))]
        source = min(finer, key=lambda kept: kept.number, default=None)
        found = self._from_units(levels) if source is None else self._summed(source, levels)
        if source is not found and found.numbers <= self._room:
            self._kept.append(found)
            self._room -= found.numbers
        return found

    def class_of_unit(self, levels: Node) -> tuple[Codes, Codes]:
        """The nodes of each class at these levels, and the class of each unit."""
        nodes, of_cell = distinct(self._generalized(self._cells, None, levels), self._sizes(levels))
        return nodes, of_cell[self.cell_of_unit]

    def _from_units(self, levels: Node) -> Cells:
        nodes, classes = self.class_of_unit(levels)
        found = self._units.histograms(classes, nodes.shape[1])
        return Cells(levels, nodes, found.rows, found.population, found.counts)

    def _summed(self, source: Cells, levels: Node) -> Cells:
        if source.levels == levels:
            return source
        coarser = self._generalized(source.nodes, source.levels, levels)
        nodes, classes = distinct(coarser, self._sizes(levels))
        order = np.argsort(classes, kind="stable")
        starts = np.searchsorted(classes[order], np.arange(nodes.shape[1]))
        population = source.population

        def summed(counts: Counts) -> Counts:
            return np.add.reduceat(counts[order], starts, axis=0)

        return Cells(
            levels,
            nodes,
            summed(source.rows),
            None if population is None else summed(population),
            tuple(summed(counts) for counts in source.counts),
        )

    def _generalized(self, nodes: Codes, from_levels: Node | None, levels: Node) -> Codes:
        fine = from_levels or (0,) * len(levels)
        return np.array(
            [
                self._parents[j][fine[j]][coarse][line]
                for j, (line, coarse) in enumerate(zip(nodes, levels, strict=True))
            ],
            dtype=np.int32,
        ).reshape(nodes.shape)

    def _sizes(self, levels: Node) -> list[int]:
        return [len(f.labels[level]) for f, level in zip(self._levels, levels, strict=True)]


def parents(levels: Levels, fine: int) -> dict[int, Codes]:
    """For each coarser level, the node there of every node of the fine level."""
    _, member = np.unique(levels.nodes[fine], return_index=True)
    return {level: levels.nodes[level][member] for level in range(fine, levels.height + 1)}


def distinct(columns: Codes, sizes: Sequence[int]) -> tuple[Codes, Codes]:
    """The different combinations in columns of numbers, and for each place which one it has."""
    number = columns.shape[1]
    keys, span = np.zeros(number, dtype=np.int64), 1
    for codes, size in zip(columns, sizes, strict=True):
        if span * size > LARGEST_KEY:
            found, keys = np.unique(keys, return_inverse=True)
            span = len(found)
        keys = keys * size + codes
        span *= size
    if span <= 4 * number:
        first = np.full(span, -1, dtype=np.int64)
        first[keys[::-1]] = np.arange(number - 1, -1, -1)
        present = first >= 0
        which = (np.cumsum(present) - 1)[keys]
        return np.ascontiguousarray(columns[:, first[present]]), which.astype(np.int32)
    _, index, which = np.unique(keys, return_index=True, return_inverse=True)
    return np.ascontiguousarray(columns[:, index]), which.astype(np.int32)
