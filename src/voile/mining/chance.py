"""Whether the classes on the two sides of a split differ by more than chance.

Two things make sides differ that are alike: the rows were perturbed, and they are a sample of
all that could have been there. The best of many cuts differs most, so what is asked of it grows
with how many there were to choose from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from voile.arrays import Floats

FEW = 5.0
"""Below so many expected rows in a cell a normal approximation proves nothing (Cochran)."""
MOST_SETS = 500
"""Unordered bins whose sets are counted; of more, Scheffé's bound is sure to be the narrower."""


@dataclass(frozen=True, eq=False)
class Fourfold:
    """Rows of a node by side of a split and by being of a class or not, estimated by inversion.

    The variances are those of the perturbing alone, of every cell, of the two sides, of the class
    and its complement, and of the whole node. `part` is the most that one row can do to a cell.
    """

    counts: Floats
    cells: Floats
    sides: Floats
    classes: Floats
    whole: float
    part: float = 1.0

    def apart(self) -> float:
        """By how many standard errors the first side has more of the class, or less, than chance.

        0 where so few rows are expected in a cell that nothing is proven.
        """
        rows = float(self.counts.sum())
        if rows <= 0:
            return 0.0
        side, share = float(self.counts[0].sum()) / rows, float(self.counts[:, 0].sum()) / rows
        if rows * min(side, 1 - side) * min(share, 1 - share) < FEW:
            return 0.0
        excess = float(self.counts[0, 0]) - rows * side * share
        drawn = rows * side * (1 - side) * share * (1 - share)
        error = math.sqrt(drawn + max(self.perturbed(side, share), 0.0))
        return math.copysign(without_skew(abs(excess), error, self.part), excess)

    def perturbed(self, side: float, share: float) -> float:
        """The variance of Σ w·cell with the weights w = (1[side] − side)·(1[class] − share).

        Covariances of neighbours are (variance of the sum − variances)/2. The two pairs at the
        corners have the same weight, so the sum of theirs is enough, and the whole has it.
        """
        (a, b), (c, d) = self.cells
        along = (self.sides - self.cells.sum(axis=1)) / 2
        across = (self.classes - self.cells.sum(axis=0)) / 2
        corners = (self.whole - self.cells.sum()) / 2 - along.sum() - across.sum()
        rest, others = 1 - side, 1 - share
        own = (rest * others) ** 2 * a + (rest * share) ** 2 * b
        own += (side * others) ** 2 * c + (side * share) ** 2 * d
        shared = side * rest * share * others * corners
        shared -= share * others * (rest**2 * along[0] + side**2 * along[1])
        shared -= side * rest * (others**2 * across[0] + share**2 * across[1])
        return float(own + 2 * shared)


def without_skew(excess: float, error: float, part: float) -> float:
    """The deviations z of a normal quantity that are as unlikely as this excess.

    A count of few rows goes in steps and is skewed: it exceeds z·error more often than a normal one
    does. Half a step is taken off. After Cornish and Fisher the rest is z·error + (z² − 1)·part/6,
    where the skewness is at most part/error.
    """
    excess = max(excess - part / 2, 0.0)
    if excess <= error:
        return excess / error
    third = part / 3
    # third·z²/2 + error·z − (excess + third/2) = 0, the root above 0 without cancellation
    least = excess + third / 2
    return 2 * least / (error + math.sqrt(error**2 + 2 * third * least))


def deviations(bins: int, *, ordered: bool, columns: int, classes: int, miss: float) -> float:
    """Standard errors that the best cut exceeds with a chance of at most `miss` if all is chance.

    The chance is shared by the columns, by the classes that may differ (two differ together), and
    by the cuts: those between ordered bins, or all ways to part the others. Of many unordered bins
    no contrast at all exceeds the root of χ² (Scheffé), for whose tail Laurent and Massart's
    bound is taken.
    """
    each = miss / (columns * (classes if classes > 2 else 1))
    many = math.inf
    if ordered or bins <= MOST_SETS:
        cuts = bins - 1 if ordered else 2 ** (bins - 1) - 1
        many = -NormalDist().inv_cdf(each / (2 * cuts))
    if ordered:
        return many
    free, tail = bins - 1, -math.log(each)
    return min(many, math.sqrt(free + 2 * math.sqrt(free * tail) + 2 * tail))


def share_error(share: float, rows: float, errors: tuple[float, float, float]) -> float:
    """The standard error of a class's share of a node, by the delta method.

    `errors` are those of the class, of the other classes together, and of the node: their
    covariance follows, as they add up. A share is never off by more than 1.
    """
    own, rest, both = (error**2 for error in errors)
    if rows <= 0:
        return 1.0 if both else 0.0
    covariance = (both - own - rest) / 2
    variance = (1 - share) ** 2 * own + share**2 * rest - 2 * share * (1 - share) * covariance
    return min(math.sqrt(max(variance, 0.0)) / rows, 1.0)
