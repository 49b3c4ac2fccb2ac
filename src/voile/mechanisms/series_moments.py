"""Exact moments of a sum over the views of a series, for one tuple.

A tuple's law over the views is a chain with two states: unseen, until a view shows it, then seen.
A sum of increments, each a function of the state and of the count that a view shows, has moments
and a generating function that follow by walking the chain. Counts are cut off where less than
10⁻¹⁸ of their law remains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.privacy.series import SeriesNoise

REST = 1e-18
Increment = Callable[[int, bool, npt.NDArray[np.int64]], Floats]
"""What view j (from 0), a state (whether seen) and counts add to the sum."""


@dataclass(frozen=True)
class Chain:
    """One tuple with `records[j]` records at view j, and the sum that is taken along."""

    noise: SeriesNoise
    records: Sequence[int]
    increment: Increment

    def moments(self, powers: int) -> Floats:
        """E G^k for k = 0 … powers."""
        unseen = np.zeros(powers + 1)
        unseen[0] = 1.0
        seen = np.zeros(powers + 1)
        for j in range(len(self.records)):
            chances, added = self._view(j, seen=False)
            absent, shown = (power_sums(chances[part], added[part], powers)
                             for part in (slice(0, 1), slice(1, None)))  # fmt: skip
            again = power_sums(*self._view(j, seen=True), powers)
            unseen, seen = (
                convolved(unseen, absent),
                convolved(unseen, shown) + convolved(seen, again),
            )
        return unseen + seen

    @np.errstate(over="ignore")
    def log_generating(self, s: float) -> float:
        """ln E exp(s·G); ∞ where that is larger than any float."""
        unseen, seen = 1.0, 0.0
        for j in range(len(self.records)):
            chances, added = self._view(j, seen=False)
            terms = chances * np.exp(s * added)
            now = unseen * float(terms[1:].sum())
            if seen:
                again_chances, again = self._view(j, seen=True)
                now += seen * float(again_chances @ np.exp(s * again))
            unseen, seen = unseen * float(terms[0]), now
        return math.log(unseen + seen)

    def variance(self) -> float:
        _, first, second = self.moments(2)
        return float(second - first**2)

    def _view(self, j: int, *, seen: bool) -> tuple[Floats, Floats]:
        noise = self.noise.seen if seen else self.noise.unseen[j]
        chances = law(self.noise, noise, self.records[j])
        return chances, self.increment(j, seen, np.arange(len(chances)))


def law(series: SeriesNoise, noise: float, records: int) -> Floats:
    """P(count = 0, 1, …) of a tuple with so many records and this noise."""
    a = series.retention
    if series.form == "set":
        chance = a if records else noise
        return np.array([1 - chance, chance])
    size = records + 2 + math.ceil(math.log(REST) / math.log(noise))
    copies = (1 - noise) * noise ** np.arange(size)
    kept = np.array(
        [math.comb(records, k) * a**k * (1 - a) ** (records - k) for k in range(records + 1)]
    )
    return np.convolve(copies, kept)[:size]


def power_sums(chances: Floats, added: Floats, powers: int) -> Floats:
    """Σ P·x^k for k = 0 … powers."""
    return np.array([float(chances @ added**k) for k in range(powers + 1)])


def convolved(left: Floats, right: Floats) -> Floats:
    """Moments of a sum of independent parts."""
    return np.array(
        [
            sum(math.comb(k, j) * left[j] * right[k - j] for j in range(k + 1))
            for k in range(len(left))
        ]
    )
