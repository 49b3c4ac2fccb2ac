"""The most that answers tell, over all changes that questions can have.

Which total is asked for decides on which grid the sum of losses lies, and so how far above δ its
next point is. Sums of normal steps that lie on no grid are between those on the best and the
worst. `Grid` is the normal law on the coarsest grid that any questions have, that of counts, at its
worst place: no discrete Gaussian answers tell more (docs/mathematics, section 33). Laws that are
not normal are looked at one by one as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from voile.arrays import Floats
from voile.privacy.interactive.confidence import walk
from voile.privacy.interactive.laws import Change, Kind, noise_law
from voile.privacy.interactive.losses import TOUCHING, Total, least_bound, loss_total

UNIT, PAIR = Change(), Change(2, 2)
"""A count, and a histogram: who changes group changes two counts."""
CHANGES = tuple(Change(c * s, c * s * s) for s in (1, 2, 3, 5, 10) for c in (1, 2))
"""Of one group or two, by some steps each; the wider the noise, the nearer to the normal law."""
FEW = 30
"""So many answers, and fewer, are looked at for all of these; more for a count and a histogram."""
FINE = 0.01
"""Sums on a finer grid, in deviations, are integrals and Euler's and Maclaurin's next term."""
PLACES = 64
"""Places of the grid that are tried."""
FAR = 40.0


@dataclass(frozen=True)
class Grid:
    """S ~ N(T/2V, T/V), on a grid of spacing 1/V: that of T counts, wherever it lies."""

    answers: int
    variance: float
    atom: float = 0.0
    most: float = math.inf

    @cached_property
    def deviation(self) -> float:
        return walk(self.answers, self.variance)[1]

    @property
    def spacing(self) -> float:
        """In deviations."""
        return self.deviation / self.answers

    def above(self, value: float) -> float:
        """Pr[S > value] with a point of the grid just above it, where it is largest."""
        z, h = self._from(value), self.spacing
        if h < FINE:
            more = h / 2 + h * h * z / 12
            return min(1.0, float(ndtr(-z) + more * density(z)))
        return min(1.0, float(h * density(self._points(z)).sum()))

    def between(self, value: float) -> tuple[float, float]:
        return self.above(value), self.above(value)

    def excess(self, epsilon: float) -> float:
        """E[(1 − e^(ε − S))⁺], where the grid lies worst: between two points, if it is fine."""
        z, h, u = self._from(epsilon), self.spacing, self.deviation
        if h < FINE:
            far = math.exp(epsilon + float(log_ndtr(-z - u)))
            return float(ndtr(-z) - far + h * h * u * density(z) / 24)
        at = self._points(z) + h * np.arange(PLACES)[:, None] / PLACES
        return min(1.0, float((h * density(at) * -np.expm1(u * (z - at))).sum(axis=1).max()))

    def _from(self, value: float) -> float:
        return value / self.deviation - self.deviation / 2

    def _points(self, z: float) -> Floats:
        start = max(z, -FAR)
        return np.asarray(np.arange(start, max(FAR, start + self.spacing), self.spacing))


def density(z: npt.ArrayLike) -> Floats:
    """Of the normal law."""
    return np.asarray(np.exp(-np.square(z) / 2) / math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class Worst:
    """Several laws of the sum of losses, and the largest of what they say."""

    laws: tuple[Total | Grid, ...]

    @property
    def atom(self) -> float:
        return max(law.atom for law in self.laws)

    def above(self, value: float) -> float:
        return max(law.above(value) for law in self.laws)

    def between(self, value: float) -> tuple[float, float]:
        lows, highs = zip(*(law.between(value) for law in self.laws), strict=True)
        return max(lows), max(highs)

    def excess(self, epsilon: float) -> float:
        return max(law.excess(epsilon) for law in self.laws)

    def any_breach(self, rise: float) -> float:
        """Pr[conf of any property ever rises by more], at most: see `Total.any_breach`."""
        if max(law.most for law in self.laws) <= rise + TOUCHING:
            return self.atom
        return least_bound(self.excess, rise)


def sums(
    kind: Kind, variance: float, answers: int, near: float, change: Change | None = None
) -> Iterator[Total | Grid]:
    """Laws of the sum of losses of at most so many answers, of which the worst counts.

    Those of one change, or of all. With geometric noise an answer less is a law of its own: losses
    are ±ε, so that sums of T and of T − 1 of them lie on two grids that exclude each other.
    """
    if change is None and kind != "geometric":
        yield Grid(answers, variance)
    if change is not None:
        looked: tuple[Change, ...] = (change,)
    else:
        looked = CHANGES if answers <= FEW else (UNIT, PAIR)
    fewest = max(1, answers - 1) if kind == "geometric" else answers
    for one in looked:
        for number in range(answers, fewest - 1, -1):
            yield loss_total(noise_law(kind, variance, one), one, number, near)
