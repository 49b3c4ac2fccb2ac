"""The error of a fit, found by letting two halves of the view examine each other.

The rows of the view are split by coin. What is fitted to one half is compared with the plain
estimates of the other on thousands of random queries. With x the model's count, p the plain one
and V its variance,

    E[(p_B − x_A)²] = V_B + M_A − 2·Cov(p_B, x_A),

where M_A is the mean squared error of the model. The full fit errs about as the mean of both half
fits does, whose error is, exactly, M = (M_A + M_B)/2 − (x_A − x_B)²/4. The covariance is there
because the halves exclude each other (what one kept, the other did not): it is ρ·Cov(p_A, p_B),
with ρ, how far a fit follows the plain estimate, the slope of x_A − x_B on p_A − p_B.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats, Ints, Words
from voile.kinds.views.refinement.em import CoinPurpose, Fitter, PackedLayout, PackedRows
from voile.kinds.views.refinement.kernels import tally
from voile.kinds.views.refinement.mixture import Mixture, terms

# ---------------------------------------------------------------------- probes
# Random selection queries, by which two halves of a view examine each other's fits.
#
# A query restricts one to six attributes, each to one value (drawn as the table has them, or any),
# to a random set of values or to a range. Queries come in batches of 64, so that a row of the view
# is checked against a batch by one machine word per group of attributes.


BATCH = 64
WIDEST = 2**16
"""Attributes with more values than this are not probed; their masks would fill the memory."""
MOST_ATTRIBUTES = 6

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ProbeBatch:
    """64 queries: `masks[j][q, v]` is whether query q selects value v of attribute j."""

    masks: dict[int, Mask]

    @property
    def share(self) -> Floats:
        """Which share of the domain each query selects."""
        share = np.ones(BATCH)
        for mask in self.masks.values():
            share *= mask.mean(axis=1)
        return share

    def words(self, layout: PackedLayout) -> Words:
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

    def count(self, fitter: Fitter, rows: PackedRows) -> Ints:
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


def batches(layout: PackedLayout, fit: Mixture, count: int, seed: int) -> Iterator[ProbeBatch]:
    """Random queries about values that the fit expects, and about any."""
    probed = [j for j in layout.modelled if layout.sizes[j] <= WIDEST]
    rng = CoinPurpose.PROBES.thrown(seed)
    for _ in range(count if probed else 0):
        masks = {j: np.ones((BATCH, layout.sizes[j]), np.bool_) for j in probed}
        restricted = set()
        for q in range(BATCH):
            component = int(rng.choice(fit.components, p=fit.mix))
            width = int(rng.integers(1, min(MOST_ATTRIBUTES, len(probed)) + 1))
            for j in rng.choice(probed, size=width, replace=False).tolist():
                masks[j][q] = condition(rng, fit.tables[j][component])
                restricted.add(j)
        yield ProbeBatch({j: mask for j, mask in masks.items() if j in restricted})


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


# ---------------------------------------------------------------------- residuals


BATCHES = 128
ROUNDS = 8
RATIOS = np.array([0.1, 0.3, 1, 3, 10, 30])
"""Edges of x/σ between which queries are taken as similar."""
FEW = 30
"""Fewer similar queries than this say nothing about ρ."""
CAUTION = 1.0
"""Standard errors added to each coefficient of M: what is not known is taken as worse."""


@dataclass(frozen=True)
class ProbeNoise:
    """What the release states about its noise, for shares of the view's rows."""

    retention: float
    excess: float
    rows: float
    """Expected noise rows of the whole view, μ·m."""
    dispersion: float
    """Variance over mean of the noise copies of a tuple."""

    def plain(self, seen: Floats, domain: Floats, share: float) -> Floats:
        """The estimate from `seen` rows of a share of the view; `domain` is a share of D."""
        return (seen / share - self.rows * domain) / self.excess

    def variance(self, x: Floats, domain: Floats, share: float = 1.0) -> Floats:
        """Of that estimate: records and noise rows are thinned to the share."""
        kept = self.retention * (1 / share - self.retention)
        noise = self.dispersion + 1 / share - 1
        return np.asarray(x * kept + self.rows * domain * noise) / self.excess**2

    def covariance(self, x: Floats, domain: Floats) -> Floats:
        """Of the estimates from two shares that exclude each other."""
        noise = self.rows * domain * (self.dispersion - 1)
        return np.asarray(noise - x * self.retention**2) / self.excess**2


@dataclass(frozen=True)
class ProbeResiduals:
    """For each query: the count x, σ², a squared residual that should be `known` + M, and ρ."""

    x: Floats
    variance: Floats
    squared: Floats
    known: Floats
    follows: Floats


def residuals(
    fitter: Fitter,
    noise: ProbeNoise,
    halves: tuple[PackedRows, PackedRows],
    fits: tuple[Mixture, Mixture],
    seed: int,
) -> ProbeResiduals:
    """Ask both halves the same random queries."""
    counted = [np.empty((5, 0))]
    for batch in batches(halves[0].layout, fits[0], BATCHES, seed):
        masks = {j: mask.astype(np.float64) for j, mask in batch.masks.items()}
        seen = [batch.count(fitter, rows).astype(np.float64) for rows in halves]
        counted.append(np.stack([batch.share, *seen, *(fit.count(masks) for fit in fits)]))
    domain, seen_a, seen_b, x_a, x_b = np.concatenate(counted, axis=1)
    x, share = (x_a + x_b) / 2, halves[0].share
    p_a, p_b = noise.plain(seen_a, domain, share), noise.plain(seen_b, domain, share)
    own, shared = noise.variance(x, domain, share), noise.covariance(x, domain)
    variance = noise.variance(x, domain)
    rho = followed(x, variance, (x_a - x_b) * (p_a - p_b), 2 * (own - shared))
    squared = ((p_b - x_a) ** 2 + (p_a - x_b) ** 2) / 2 - (x_a - x_b) ** 2 / 4
    return ProbeResiduals(x, variance, squared, own - 2 * rho * shared, rho)


def followed(x: Floats, variance: Floats, together: Floats, spread: Floats) -> Floats:
    """ρ of each query: the slope among queries of similar x/σ."""
    place = np.digitize(x / np.sqrt(np.maximum(variance, 1e-12)), RATIOS)
    size = len(RATIOS) + 1
    weight = 1 / np.maximum(spread, 1e-12)
    above = np.bincount(place, weight * together, minlength=size)
    below = np.bincount(place, weight * spread, minlength=size)
    slope = np.where(np.bincount(place, minlength=size) < FEW, 0, above / np.maximum(below, 1e-12))
    return np.asarray(slope.clip(0, 1)[place])


def law(found: ProbeResiduals) -> tuple[Floats, Floats]:
    """Coefficients of the terms of M, none negative, and their standard errors."""
    if not len(found.x):
        return np.ones(3), np.zeros(3)  # nothing is known, so the plain estimate has its say
    parts = terms(found.x, found.variance)
    weights, errors = np.array([1.0, 0.1, 0.0]), np.zeros(3)
    for _ in range(ROUNDS):
        # The standard deviation of the mean of two squared normal residuals.
        spread = np.maximum(found.known + weights @ parts, 1e-9)
        weights, errors = non_negative(parts / spread, (found.squared - found.known) / spread)
    return weights, errors


def non_negative(parts: Floats, found: Floats) -> tuple[Floats, Floats]:
    """Least squares with coefficients of at least 0, and the error of each one alone."""
    best, least = np.zeros(len(parts)), np.inf
    for free in product([False, True], repeat=len(parts)):
        chosen = np.array(free)
        weights = np.zeros(len(parts))
        if chosen.any():
            weights[chosen] = np.linalg.lstsq(parts[chosen].T, found, rcond=None)[0]
        loss = float(((found - weights @ parts) ** 2).sum())
        if (weights >= 0).all() and loss < least:
            best, least = weights, loss
    return best, 1 / np.sqrt(np.maximum((parts**2).sum(axis=1), 1e-12))
