"""EM for a mixture of product distributions that is seen through known noise.

The view is (nearly) a Poisson sample: tuple t is expected λ(t) = A·n·P(t) + μ times, with A·n and
the noise μ known from the release and P(t) = Σ_k π_k Π_j p_kj(t_j). A row of the view at t came
from component k with chance A·n·π_k·Π_j p_kj(t_j)/λ(t), and was noise with the rest (E step);
π and p are the shares of these chances (M step). A Dirichlet prior adds PSEUDO rows with the
table's overall distribution to each component and attribute: no p becomes 0, and a component that
hardly any row supports falls back to independence. Neither step lowers

    Σ_rows log λ  +  PSEUDO · Σ_kj Σ_v base_j(v) · log p_kj(v).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.errors import UsageError
from voile.kinds.views.refinement.kernels import Cells, expect, log_densities
from voile.kinds.views.refinement.mixture import Mixture

# ---------------------------------------------------------------------- coins
# Coins of the refinement. They hide nothing: the same seed gives the same refinement.


class CoinPurpose(IntEnum):
    """What coins are thrown for; each purpose has its own."""

    HELD_OUT = 0
    PROBES = 1
    HALVES = 2
    SAMPLE = 3
    STARTS = 4

    def thrown(self, seed: int, *which: int) -> np.random.Generator:
        """The coins of this purpose, from a seed."""
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(self, *which)))


# ---------------------------------------------------------------------- rows
# Rows of a view packed for EM: a few look-ups a row instead of one per attribute.
#
# Attributes are taken together in groups whose joint table fits the processor's cache; a row is
# then one place in each group's table. Within a component attributes are independent, so a
# group's table is the product of its attributes' tables, and sums of it give back the
# attributes'.


GROUP = 2500
"""Largest joint table of a group, in cells; one attribute alone may have more."""
LARGEST = 2**20
"""An attribute with more values than this is left out of the model, which takes it as uniform."""


@dataclass(frozen=True)
class PackedLayout:
    """Which attributes are modelled, and how they are grouped."""

    sizes: tuple[int, ...]
    limit: int = GROUP

    @classmethod
    def suited(cls, sizes: tuple[int, ...], rows: int) -> PackedLayout:
        """Smaller groups for few rows: their tables are multiplied out at every step."""
        return cls(sizes, min(GROUP, max(16, rows // 100)))

    @cached_property
    def modelled(self) -> tuple[int, ...]:
        """The attributes that the model has tables of."""
        return tuple(j for j, size in enumerate(self.sizes) if size <= LARGEST)

    @property
    def uniform_tuples(self) -> int:
        """Tuples of the attributes that are left out: what a tuple of the others stands for."""
        return math.prod(size for size in self.sizes if size > LARGEST)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The attributes that are taken together."""
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
        """The shape of each group's joint table."""
        return tuple(tuple(self.sizes[j] for j in group) for group in self.groups)

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """Where each group's table begins in the stack of all, and where the last one ends."""
        return (0, *np.cumsum([math.prod(shape) for shape in self.shapes], dtype=int).tolist())

    @property
    def cells(self) -> int:
        """How many cells all tables have together."""
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
class PackedRows:
    """A share of a view's rows, each row of the view being among them by that chance."""

    layout: PackedLayout
    cells: Cells
    share: float = 1.0

    def __len__(self) -> int:
        return int(self.cells.shape[1])

    def where(self, chosen: npt.NDArray[np.bool_], share: float) -> PackedRows:
        """The chosen rows, `share` of these by chance."""
        return PackedRows(
            self.layout, np.ascontiguousarray(self.cells[:, chosen]), self.share * share
        )

    def spread(self, most: int) -> PackedRows:
        """At most so many of the rows, at equal distances."""
        stride = -(-len(self) // most)
        if stride <= 1:
            return self
        cells = np.ascontiguousarray(self.cells[:, ::stride])
        return PackedRows(self.layout, cells, self.share / stride)


def checked(codes: Sequence[npt.NDArray[Any]], sizes: Sequence[int]) -> list[npt.NDArray[Any]]:
    """Codes out of range would read memory that is not theirs, so none gets through."""
    columns = [np.asarray(column) for column in codes]
    if not columns or len(columns) != len(sizes) or len({len(column) for column in columns}) > 1:
        raise UsageError("a view has one column of codes per attribute, all of one length")
    for j, (column, size) in enumerate(zip(columns, sizes, strict=True)):
        if column.ndim != 1 or (column.size and not np.issubdtype(column.dtype, np.integer)):
            raise UsageError(f"column {j} of the view is not a list of integer codes")
        if column.size and not (column.min() >= 0 and column.max() < size):
            raise UsageError(f"column {j} of the view has codes that are not in range({size})")
    return columns


# ---------------------------------------------------------------------- EM


T = TypeVar("T")

PSEUDO = 1.0
"""Rows of prior belief per component and attribute: the weight of one record."""
CHUNKS = 4
"""Parts of the rows that run side by side; fixed, so that sums do not depend on the machine."""
JITTER = 0.5
"""Spread of the logarithms by which random starts differ from independence."""
FEW = 20_000
"""Rows that are not worth a second thread, nor leaving some out."""
ALONE = 50
"""Steps for the model without components, which converges within a few."""
ENOUGH = 300_000
"""Rows that are looked at to find out which others are worth it."""


@dataclass(frozen=True)
class KnownNoise:
    """What the release states: A·n expected rows of signal, and μ copies of noise per tuple."""

    rows: float
    excess: float
    noise: float

    def mass(self, rows: PackedRows, mix: Floats) -> Floats:
        """The expected rows of each component among these rows."""
        return rows.share * self.excess * self.rows * mix


class Fitter:
    """EM on the cores of this machine."""

    def __init__(self, layout: PackedLayout, known: KnownNoise, pool: ThreadPoolExecutor) -> None:
        self.layout = layout
        self.known = known
        self.pool = pool

    def step(self, rows: PackedRows, fit: Mixture, base: Sequence[Floats]) -> tuple[Mixture, float]:
        """One step of EM, and Σ log λ of the fit that it started from."""
        stacked = self.layout.stack(fit.tables)
        mass, noise = self.known.mass(rows, fit.mix), rows.share * self.known.noise

        def part(first: int, last: int) -> tuple[float, Floats]:
            counts = np.zeros_like(stacked)
            return expect(rows.cells, stacked, mass, noise, first, last, counts), counts

        done = self.each(rows, part)
        sums = self.layout.unstack(sum((counts for _, counts in done), np.zeros_like(stacked)))
        return maximised(fit, sums, base), sum(likelihood for likelihood, _ in done)

    def log_densities(self, rows: PackedRows, fit: Mixture) -> Floats:
        """log λ of every row."""
        stacked = self.layout.stack(fit.tables)
        mass, noise = self.known.mass(rows, fit.mix), rows.share * self.known.noise
        out = np.empty(len(rows))

        def part(first: int, last: int) -> None:
            log_densities(rows.cells, stacked, mass, noise, first, last, out)

        self.each(rows, part)
        return out

    def likely(self, rows: PackedRows, fit: Mixture) -> tuple[PackedRows, Floats]:
        """The rows that may be records under a fit, and log λ of each.

        All others are noise as good as surely: together they are fewer records than SPARE of all.
        Most rows of a view are such, and steps of EM need not look at them.
        """
        found = self.log_densities(rows, fit)
        noise = rows.share * self.known.noise
        if noise == 0 or not np.isfinite(noise) or len(rows) < FEW:
            return rows, found
        chances = -np.expm1(np.minimum(math.log(noise) - found, 0.0))
        near = chances >= least_chance(chances)
        return rows.where(near, 1.0), found[near]

    def each(self, rows: PackedRows, part: Callable[[int, int], T]) -> list[T]:
        """What `part` makes of each chunk of the rows, in order."""
        ends = chunks(len(rows))
        if len(ends) == 1:
            return [part(*ends[0])]
        return list(self.pool.map(lambda pair: part(*pair), ends))

    def run(self, rows: PackedRows, fit: Mixture, base: Sequence[Floats], steps: int) -> Mixture:
        """The fit after so many steps of EM."""
        for _ in range(steps):
            fit, _ = self.step(rows, fit, base)
        return fit

    def independent(self, rows: PackedRows) -> Mixture:
        """The fit with one component: where all others start from and fall back to.

        Found in some of many rows, and then in those of all that may be records.
        """
        even = [np.full(size, 1 / size) if size else np.empty(0) for size in self._widths()]
        fit = Mixture(self.known.rows, np.ones(1), tuple(table[None] for table in even))
        few = rows.spread(ENOUGH)
        fit = self.run(few, fit, even, ALONE)
        return fit if few is rows else self.run(self.likely(rows, fit)[0], fit, even, ALONE)

    def start(self, base: Sequence[Floats], components: int, seed: int, number: int) -> Mixture:
        """Random components around independence."""
        rng = CoinPurpose.STARTS.thrown(seed, components, number)
        mix = np.full(components, 1 / components)
        tables = [
            table[None] * np.exp(JITTER * rng.standard_normal((components, len(table))))
            for table in base
        ]
        return Mixture(self.known.rows, mix, tuple(map(shares, tables)))

    def _widths(self) -> list[int]:
        modelled = set(self.layout.modelled)
        return [size if j in modelled else 0 for j, size in enumerate(self.layout.sizes)]


SPARE = 5e-4
"""Of all records, those that may lie among the rows that EM does not look at."""
CHANCES = np.logspace(-12, -2, 81)
"""Below which of these a row's chance of being a record is small is found by adding up chances."""


def least_chance(chances: Floats) -> float:
    """The chance below which rows are left out: at most SPARE of all records are among them."""
    place = np.searchsorted(CHANCES, chances, side="right")
    below = np.bincount(place, chances, minlength=len(CHANCES) + 1).cumsum()
    spared = int(np.searchsorted(below[:-1], SPARE * below[-1], side="right"))
    return float(CHANCES[spared - 1]) if spared else 0.0


def maximised(fit: Mixture, sums: Sequence[Floats], base: Sequence[Floats]) -> Mixture:
    """The M step. Where nothing was seen at all, the mix stays as it is."""
    seen = next((table.sum(axis=1) for table in sums if table.size), fit.mix)
    mix = seen / seen.sum() if seen.sum() > 0 else fit.mix
    tables = [shares(table + PSEUDO * share) for table, share in zip(sums, base, strict=True)]
    return Mixture(fit.rows, mix, tuple(tables))


def shares(table: Floats) -> Floats:
    """Rows that sum to 1."""
    return table / table.sum(axis=1, keepdims=True) if table.size else table


def chunks(count: int) -> list[tuple[int, int]]:
    """[first, last) of each part of the rows."""
    parts = 1 if count < FEW else CHUNKS
    edges = [count * i // parts for i in range(parts + 1)]
    return list(pairwise(edges))
