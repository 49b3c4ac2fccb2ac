"""Random selection queries, by which two halves of a view examine each other's fits.

A query restricts one to six attributes, each to one value (drawn as the table has them, or any),
to a random set of values or to a range. Queries come in batches of 64, so that a row of the view
is checked against a batch by one machine word per group of attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints, Words
from voile.refine.coins import Coins
from voile.refine.em import Fitter
from voile.refine.kernels import tally
from voile.refine.mixture import Mixture
from voile.refine.rows import Layout, Rows

BATCH = 64
WIDEST = 2**16
"""Attributes with more values than this are not asked about; their masks would fill the memory."""
MOST_ATTRIBUTES = 6

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Batch:
    """64 queries: `masks[j][q, v]` is whether query q selects value v of attribute j."""

    masks: dict[int, Mask]

    @property
    def share(self) -> Floats:
        """Which share of the domain each query selects."""
        share = np.ones(BATCH)
        for mask in self.masks.values():
            share *= mask.mean(axis=1)
        return share

    def words(self, layout: Layout) -> Words:
        """The queries as bits, for every cell of the stacked tables."""
        everything = np.uint64(2**64 - 1)
        stacked = np.empty(layout.cells, np.uint64)
        for g, group in enumerate(layout.groups):
            joint = np.full(1, everything)
            for j in group:
                bits = (
                    as_words(self.masks[j])
                    if j in self.masks
                    else np.full(layout.sizes[j], everything)
                )
                joint = (joint[:, None] & bits[None]).reshape(-1)
            stacked[layout.edges[g] : layout.edges[g + 1]] = joint
        return stacked

    def count(self, fitter: Fitter, rows: Rows) -> Ints:
        """How many of the rows each query selects."""
        words = self.words(rows.layout)

        def part(first: int, last: int) -> Ints:
            counts = np.zeros(BATCH, np.int64)
            tally(rows.cells, words, first, last, counts)
            return counts

        return sum(fitter.each(rows, part), np.zeros(BATCH, np.int64))


def as_words(mask: Mask) -> Words:
    """Bit q of word v is mask[q, v]."""
    packed = np.packbits(mask.T, axis=1, bitorder="little")
    return np.ascontiguousarray(packed).view("<u8").reshape(-1).astype(np.uint64)


def batches(layout: Layout, fit: Mixture, count: int, seed: int) -> Iterator[Batch]:
    """Random queries about values that the fit expects, and about any."""
    asked = [j for j in layout.modelled if layout.sizes[j] <= WIDEST]
    rng = Coins.PROBES.thrown(seed)
    for _ in range(count if asked else 0):
        masks = {j: np.ones((BATCH, layout.sizes[j]), np.bool_) for j in asked}
        restricted = set()
        for q in range(BATCH):
            component = int(rng.choice(fit.components, p=fit.mix))
            width = int(rng.integers(1, min(MOST_ATTRIBUTES, len(asked)) + 1))
            for j in rng.choice(asked, size=width, replace=False).tolist():
                masks[j][q] = condition(rng, fit.tables[j][component])
                restricted.add(j)
        yield Batch({j: mask for j, mask in masks.items() if j in restricted})


def condition(rng: np.random.Generator, chances: Floats) -> Mask:
    """Which values of an attribute a query selects: one, some of them, or a range."""
    size = len(chances)
    kind = rng.random()
    mask = np.zeros(size, np.bool_)
    if kind < 0.5:
        mask[min(size - 1, int(np.searchsorted(np.cumsum(chances), rng.random())))] = True
    elif kind < 0.6:
        mask[rng.integers(size)] = True
    elif kind < 0.8:
        mask[:] = rng.random(size) < rng.random()
        mask[rng.integers(size)] = True
    else:
        low, high = np.sort(rng.integers(0, size, 2))
        mask[low : high + 1] = True
    return mask
