"""What the two ways to show classes have in common: sums over rows of which a part is open."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from voile.answering.classes.cells import CellQuery
from voile.arrays import Floats, Ints

Pairs = Sequence[tuple[int, int]]
Covariances = dict[tuple[int, int], Floats]


@dataclass(frozen=True, eq=False)
class Moments:
    """Of every group, under the assumption about what is open."""

    means: Floats
    """(groups, terms)"""
    covariances: tuple[Covariances, ...]
    """Of each two terms; where there are several, each of them bounds the true one from above."""


@dataclass(frozen=True, eq=False)
class Extremes:
    """What Σ slope·total can be at least and at most, for each group."""

    low: Floats
    high: Floats
    low_terms: Floats
    """(groups, terms): the totals where it is lowest."""
    high_terms: Floats
    tight: bool = True
    """Whether some data that agree with the release reach both ends."""


class OpenSums(ABC):
    """The sums that a query asks for, as far as a release leaves them open."""

    asked: CellQuery

    @abstractmethod
    def moments(self, pairs: Pairs) -> Moments: ...

    @abstractmethod
    def extremes(self, slope: Floats, *, terms: bool = False) -> Extremes:
        """Over all data that agree with the release; `slope` is (groups, terms).

        With `terms`, those of no slope are told at the ends too.
        """

    @abstractmethod
    def row_ratios(self, top: Floats, bottom: Floats) -> tuple[Floats, Floats]:
        """The lowest and highest ratio of two forms (groups, terms) that one row can have.

        No ratio of two totals lies beyond, if each row without a bottom has no top.
        """


def ratio_ends(above: Floats, below: Floats, group: Ints, groups: int) -> tuple[Floats, Floats]:
    """The ends of the ratios in each group; unbounded where they do not bound those of sums."""
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    some = below > 0
    ratio = above[some] / below[some]
    np.minimum.at(low, group[some], ratio)
    np.maximum.at(high, group[some], ratio)
    free = (below < 0) | ((below == 0) & (above != 0))
    low[group[free]], high[group[free]] = -np.inf, np.inf
    return low, high
