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

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from voile.arrays import Floats
from voile.refine.coins import Coins
from voile.refine.kernels import expect, log_densities
from voile.refine.mixture import Mixture
from voile.refine.rows import Layout, Rows

T = TypeVar("T")

PSEUDO = 1.0
"""Rows of prior belief per component and attribute: the weight of one record."""
CHUNKS = 4
"""Parts of the rows that run side by side; fixed, so that sums do not depend on the machine."""
JITTER = 0.5
"""Spread of the logarithms by which random starts differ from independence."""
FEW = 20_000
"""Rows that are not worth a second thread."""
ALONE = 50
"""Steps for the model without components, which converges within a few."""


@dataclass(frozen=True)
class Known:
    """What the release tells: A·n expected rows of signal, and μ copies of noise per tuple."""

    rows: float
    excess: float
    noise: float

    def mass(self, rows: Rows, mix: Floats) -> Floats:
        return rows.share * self.excess * self.rows * mix


class Fitter:
    """EM on the cores of this machine."""

    def __init__(self, layout: Layout, known: Known, pool: ThreadPoolExecutor) -> None:
        self.layout = layout
        self.known = known
        self.pool = pool

    def step(self, rows: Rows, fit: Mixture, base: Sequence[Floats]) -> tuple[Mixture, float]:
        """One step of EM, and Σ log λ of the fit that it started from."""
        stacked = self.layout.stack(fit.tables)
        mass, noise = self.known.mass(rows, fit.mix), rows.share * self.known.noise

        def part(first: int, last: int) -> tuple[float, Floats]:
            counts = np.zeros_like(stacked)
            return expect(rows.cells, stacked, mass, noise, first, last, counts), counts

        done = self.each(rows, part)
        sums = self.layout.unstack(sum((counts for _, counts in done), np.zeros_like(stacked)))
        return maximised(fit, sums, base), sum(likelihood for likelihood, _ in done)

    def log_densities(self, rows: Rows, fit: Mixture) -> Floats:
        """log λ of every row."""
        stacked = self.layout.stack(fit.tables)
        mass, noise = self.known.mass(rows, fit.mix), rows.share * self.known.noise
        out = np.empty(len(rows))

        def part(first: int, last: int) -> None:
            log_densities(rows.cells, stacked, mass, noise, first, last, out)

        self.each(rows, part)
        return out

    def each(self, rows: Rows, part: Callable[[int, int], T]) -> list[T]:
        """What `part` makes of each chunk of the rows, in order."""
        ends = chunks(len(rows))
        if len(ends) == 1:
            return [part(*ends[0])]
        return list(self.pool.map(lambda pair: part(*pair), ends))

    def run(self, rows: Rows, fit: Mixture, base: Sequence[Floats], steps: int) -> Mixture:
        for _ in range(steps):
            fit, _ = self.step(rows, fit, base)
        return fit

    def independent(self, rows: Rows) -> Mixture:
        """The fit with one component: where all others start from and fall back to."""
        even = [np.full(size, 1 / size) if size else np.empty(0) for size in self._widths()]
        start = Mixture(self.known.rows, np.ones(1), tuple(table[None] for table in even))
        return self.run(rows, start, even, ALONE)

    def start(self, base: Sequence[Floats], components: int, seed: int, number: int) -> Mixture:
        """Random components around independence."""
        rng = Coins.STARTS.thrown(seed, components, number)
        mix = np.full(components, 1 / components)
        tables = [
            table[None] * np.exp(JITTER * rng.standard_normal((components, len(table))))
            for table in base
        ]
        return Mixture(self.known.rows, mix, tuple(map(shares, tables)))

    def _widths(self) -> list[int]:
        modelled = set(self.layout.modelled)
        return [size if j in modelled else 0 for j, size in enumerate(self.layout.sizes)]


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
