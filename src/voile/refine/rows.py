"""Rows of a view packed for EM: a few look-ups a row instead of one per attribute.

Attributes are taken together in groups whose joint table fits the processor's cache; a row is then
one place in each group's table. Within a component attributes are independent, so a group's table
is the product of its attributes' tables, and sums of it give back the attributes'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError
from voile.refine.kernels import Cells

GROUP = 2500
"""Largest joint table of a group, in cells; one attribute alone may have more."""
LARGEST = 2**20
"""An attribute with more values than this is left out of the model, which takes it as uniform."""


@dataclass(frozen=True)
class Layout:
    """Which attributes are modelled, and how they are grouped."""

    sizes: tuple[int, ...]
    limit: int = GROUP

    @classmethod
    def suited(cls, sizes: tuple[int, ...], rows: int) -> Layout:
        """Smaller groups for few rows: their tables are multiplied out at every step."""
        return cls(sizes, min(GROUP, max(16, rows // 100)))

    @cached_property
    def modelled(self) -> tuple[int, ...]:
        return tuple(j for j, size in enumerate(self.sizes) if size <= LARGEST)

    @property
    def uniform_tuples(self) -> int:
        """Tuples of the attributes that are left out: what a tuple of the others stands for."""
        return math.prod(size for size in self.sizes if size > LARGEST)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        groups: list[list[int]] = []
        product = self.limit + 1
        for j in self.modelled:
            if product * self.sizes[j] > self.limit:
                groups.append([])
                product = 1
            groups[-1].append(j)
            product *= self.sizes[j]
        return tuple(map(tuple, groups))

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(self.sizes[j] for j in group) for group in self.groups)

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """Where each group's table begins in the stack of all, and where the last one ends."""
        return (0, *np.cumsum([math.prod(shape) for shape in self.shapes], dtype=int).tolist())

    @property
    def cells(self) -> int:
        return self.edges[-1]

    def pack(self, codes: Sequence[npt.NDArray[Any]]) -> Cells:
        """Each row's place in the stack, a row of the result per group."""
        packed = np.empty((len(self.groups), len(codes[0])), np.int32)
        for g, group in enumerate(self.groups):
            place = np.zeros(packed.shape[1], np.int64)
            for j in group:
                place *= self.sizes[j]
                place += codes[j].astype(np.int64, copy=False)
            packed[g] = place + self.edges[g]
        return packed

    def stack(self, tables: Sequence[Floats]) -> Floats:
        """The joint tables of all groups, one below the other: (cells, components)."""
        components = tables[0].shape[0]
        stacked = np.empty((self.cells, components))
        for g, group in enumerate(self.groups):
            joint = np.ones((1, components))
            for j in group:
                joint = (joint[:, None, :] * tables[j].T[None]).reshape(-1, components)
            stacked[self.edges[g] : self.edges[g + 1]] = joint
        return stacked

    def unstack(self, stacked: Floats) -> tuple[Floats, ...]:
        """Each attribute's table of sums (components, size); empty where it is not modelled."""
        components = stacked.shape[1]
        tables = [np.empty((components, 0)) for _ in self.sizes]
        for g, (group, shape) in enumerate(zip(self.groups, self.shapes, strict=True)):
            joint = stacked[self.edges[g] : self.edges[g + 1]].reshape(*shape, components)
            for axis, j in enumerate(group):
                others = tuple(a for a in range(len(group)) if a != axis)
                tables[j] = np.ascontiguousarray(joint.sum(axis=others).T)
        return tuple(tables)


@dataclass(frozen=True)
class Rows:
    """A share of a view's rows, each row of the view being among them by that chance."""

    layout: Layout
    cells: Cells
    share: float = 1.0

    def __len__(self) -> int:
        return int(self.cells.shape[1])

    def where(self, chosen: npt.NDArray[np.bool_], share: float) -> Rows:
        """The chosen rows, `share` of these by chance."""
        return Rows(self.layout, np.ascontiguousarray(self.cells[:, chosen]), self.share * share)


def checked(
    codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int]
) -> tuple[list[npt.NDArray[Any]], tuple[int, ...]]:
    """Codes out of range would read memory that is not theirs, so none gets through."""
    columns = [np.asarray(column) for column in codes]
    if not columns or len(columns) != len(sizes) or len({len(column) for column in columns}) > 1:
        raise UsageError("a view has one column of codes per attribute, all of one length")
    for j, (column, size) in enumerate(zip(columns, sizes, strict=True)):
        if column.ndim != 1 or (column.size and not np.issubdtype(column.dtype, np.integer)):
            raise UsageError(f"column {j} of the view is not a list of integer codes")
        if column.size and not (column.min() >= 0 and column.max() < size):
            raise UsageError(f"column {j} of the view has codes that are not in range({size})")
    return columns, tuple(int(size) for size in sizes)
