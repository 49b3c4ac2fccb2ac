"""Whether the classes on the two sides of a split differ by more than chance.

Two things make sides differ that are alike: the rows were perturbed, and they are a sample of
all that could have been there. The best of many cuts differs most, so what is asked of it grows
with how many there were to choose from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from voile.arrays import Floats
from voile.kinds.perturbed.joint import JointCounts
from voile.mining.binning import Binning
from voile.mining.counts import Counts
from voile.mining.tree import Path, Split

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
    """Standard errors that the best cut exceeds with probability at most `miss` if all is chance.

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


# --------------------------- which way to cut a node in two: Gini's impurity from estimated counts


Mask = npt.NDArray[np.bool_]

SURE = 2.0
"""Standard errors above nothing from which rows are sure to be there."""
LEAST_GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class Cut:
    """Bins that go to the one side, and how much impurity that takes away."""

    chosen: Mask
    gain: float


def best_cut(counts: Floats, errors: Floats, *, ordered: bool, min_support: float) -> Cut | None:
    """The best cut of `counts` (bins × classes), or None where no cut leaves enough on each side:
    the least support, and more than what may be nobody.

    Ordered bins are cut between neighbours. Others are first put in the order of their share of
    the most frequent class; with two classes the best of all sets of bins is then among the
    cuts between neighbours (Breiman and others, 1984, Theorem 4.5).
    """
    order = np.arange(len(counts)) if ordered else by_share(counts, errors)
    # Sums first: a sum of estimates is an estimate, and its error is less than its parts'.
    first = np.cumsum(counts[order], axis=0)[:-1]
    second = counts.sum(axis=0) - first
    # Rows of both classes before clipping: 800 less 600 is no support of 800.
    variances = (errors[order] ** 2).sum(axis=1)
    one = np.cumsum(variances)[:-1]
    enough = np.ones(len(first), np.bool_)
    for side, variance in ((first, one), (second, variances.sum() - one)):
        least = np.maximum(max(min_support, LEAST_GAIN), SURE * np.sqrt(np.maximum(variance, 0.0)))
        enough &= side.sum(axis=1) >= least
    gains = gain(np.maximum(first, 0.0), np.maximum(second, 0.0))
    if not enough.any():
        return None
    best = int(np.argmax(np.where(enough, gains, -np.inf)))
    chosen = np.zeros(len(counts), np.bool_)
    chosen[order[: best + 1]] = True
    return Cut(chosen, float(gains[best]))


def by_share(counts: Floats, errors: Floats) -> npt.NDArray[np.int64]:
    """Bins from the largest share of the most frequent class to the smallest.

    A bin that may well be empty has no share of its own and gets everybody's: ordered by noise,
    such bins would make a cut look good.
    """
    everybody = np.maximum(counts.sum(axis=0), 0.0)
    most = int(np.argmax(everybody))
    clipped = np.maximum(counts, 0.0)
    totals = clipped.sum(axis=1)
    sure = totals > SURE * np.sqrt((errors**2).sum(axis=1))
    common = everybody[most] / max(everybody.sum(), LEAST_GAIN)
    shares = np.where(sure, clipped[:, most] / np.where(sure, totals, 1.0), common)
    return np.argsort(-shares, kind="stable").astype(np.int64)


def most_unlike(first: Floats, second: Floats) -> int:
    """The class whose shares of two sides differ most, for what they would differ by chance."""
    both = np.maximum(first + second, 0.0)
    shares = both / max(both.sum(), LEAST_GAIN)
    differ = np.abs(first / max(first.sum(), LEAST_GAIN) - second / max(second.sum(), LEAST_GAIN))
    return int(np.argmax(differ / np.sqrt(np.maximum(shares * (1 - shares), LEAST_GAIN))))


def gini(counts: Floats) -> Floats:
    """1 − Σ share², over the last axis; 0 where there is nothing."""
    totals = counts.sum(axis=-1, keepdims=True)
    shares = counts / np.where(totals > 0, totals, 1.0)
    return np.where(totals[..., 0] > 0, 1.0 - (shares**2).sum(axis=-1), 0.0)


def gain(first: Floats, second: Floats) -> Floats:
    """By how much the two sides are purer than what they come from, on average over rows."""
    both = first + second
    totals = np.maximum(both.sum(axis=-1), LEAST_GAIN)
    parts = first.sum(axis=-1) * gini(first) + second.sum(axis=-1) * gini(second)
    return np.asarray(gini(both) - parts / totals)


# ----------- the counts of a node: what is asked of all rows so that only those of the node answer


Whole = npt.NDArray[np.int64]

INVERSION = "inversion"
"""What is proven is proven by estimates without bias, whose errors are known."""


@dataclass(frozen=True, eq=False)
class NodeCounts:
    """Counts of the rows that a path leads to, by `method`; their errors are inversion's."""

    counts: Counts
    classes: Binning
    binnings: Mapping[str, Binning]
    method: str

    def by_class(self, path: Path) -> Floats:
        """Counts of the node's rows by class."""
        return self._joint(path, {self.classes.name: self.classes.bins}).counts

    def by_bin(self, path: Path, candidate: Binning) -> tuple[Floats, Floats, Mask]:
        """Counts of a column's bins × classes with their errors, and which bins these are."""
        name, inside = candidate.name, inside_of(path, candidate)
        # Bins off the path are one: what is there only matters as what is mistaken for the rest.
        fine = np.where(inside, np.cumsum(inside) - 1, inside.sum())
        asked = {name: fine[candidate.bins], self.classes.name: self.classes.bins}
        found = self._joint(without(path, name), asked)
        kept = slice(0, int(inside.sum()))
        return found.counts[kept], found.stderr[kept], inside

    def by_side(self, path: Path, split: Split) -> Floats:
        """Counts of the two sides × classes, yes first."""
        asked = {self.classes.name: self.classes.bins}
        return self._sides(path, split, asked, self.method).counts

    def side_errors(self, path: Path, split: Split) -> Floats:
        """Standard errors of the rows of the two sides."""
        return self._sides(path, split, {}, INVERSION).stderr

    def fourfold(self, path: Path, split: Split, place: int) -> Fourfold:
        """The two sides by being of a class or not."""
        own = {self.classes.name: self._rest(place)}
        found = self._sides(path, split, own, INVERSION)
        classes, sides = self._joint(path, own, INVERSION).stderr, self.side_errors(path, split)
        part = max(float(found.part.max()), 1.0)
        whole = self.error(path)
        return Fourfold(found.counts, found.stderr**2, sides**2, classes**2, whole**2, part)

    def error(self, path: Path) -> float:
        """The standard error of a node's rows; how many there are in all is known."""
        return float(self._joint(path, {}, INVERSION).stderr) if path else 0.0

    def share_error(self, path: Path, rows: float, shares: tuple[float, ...], place: int) -> float:
        """The standard error of a class's share."""
        asked = {self.classes.name: self._rest(place)}
        own, rest = self._joint(path, asked, INVERSION).stderr
        return share_error(shares[place], rows, (float(own), float(rest), self.error(path)))

    def _rest(self, place: int) -> Whole:
        """0 for a class, 1 for all others."""
        return np.not_equal(self.classes.bins, place).astype(np.int64)

    def _sides(
        self, path: Path, split: Split, asked: Mapping[str, Whole], method: str
    ) -> JointCounts:
        """The sides come first; bins off the path, if there are any, are a third."""
        name, candidate = split.binning.name, split.binning
        side = np.where(split.chosen, 0, np.where(inside_of(path, candidate), 1, 2))
        cells = {name: side[candidate.bins], **asked}
        return self._joint(without(path, name), cells, method).at((slice(0, 2),))

    def _joint(
        self, path: Path, asked: Mapping[str, Whole], method: str | None = None
    ) -> JointCounts:
        """Counts over what is asked, of the rows that the path leads to."""
        cells = {
            name: mask[self.binnings[name].bins].astype(np.int64) for name, mask in path.items()
        }
        found = self.counts.joint_counts({**cells, **asked}, method or self.method)
        return found.at((1,) * len(path))


def inside_of(path: Path, candidate: Binning) -> Mask:
    """The bins of a column that lead to a node."""
    return path.get(candidate.name, np.ones(candidate.size, np.bool_))


def without(path: Path, name: str) -> Path:
    """The path without one column."""
    return {column: mask for column, mask in path.items() if column != name}
