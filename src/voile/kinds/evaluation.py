"""What evaluation needs of a release: its evidence about people, and the truth beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from voile.arrays import Floats
from voile.kinds.blocks import Orders, Points, RowBlocks, points
from voile.privacy import LikelihoodRatio
from voile.privacy.divergence import jensen_shannon, shares
from voile.recoding.grouping import Shown
from voile.recoding.units import Codes, Counts
from voile.schema import Schema

# ----------------------------------------------------------------------
# p_loss: how far a release may move a belief away from what everybody knows
# How far may a belief about one person's sensitive value, given the release, lie from the whole
# table's distribution Q, which trivial anonymization shows too? The adversary knows Q, and all else
# that the release has about the person, and applies Bayes' rule to the known law of the mechanism:
#
# classes          the distribution in the person's class.
# a noisy view     posterior(s) ∝ Q(s) · P(what is shown of the tuple (q, s) | it has one more
# record)
#                  / P(the same | it has not). q are all other columns of the release.
# perturbed rows   posterior(s) ∝ Q(s) · P(s′ | s), for one who knows which row is the person's; s′
#                  is the value that it shows. With whole rows, for a row that shows the true q.
#
# `measured` is the worst over the people of the table, or over the values that are shown.
# `permitted` is the worst that the mechanism could ever show.


ALL_SUBSETS = 16
"""Up to so many sensitive values every subset of them is tried."""
STEPS = 10_000


@dataclass(frozen=True)
class Posterior:
    """How far beliefs about one person come to lie from Q."""

    measured: float
    permitted: float | None
    """None where all that there is is shown, as with classes."""


def worst_divergence(overall: Floats, ratio: LikelihoodRatio) -> float:
    """The largest JS(Q, posterior) where each value's likelihood may change by such a ratio.

    JS is convex, so it is largest where each ratio is at one of its ends. With the higher end on
    values of total share a it depends on a alone. Where there are too many subsets of values, a is
    taken to be any number: a bound that is not attained.
    """
    there = overall[overall > 0]
    if len(there) < 2:
        return 0.0
    if len(there) <= ALL_SUBSETS:
        masses = np.zeros(1)
        for share in there:
            masses = np.concatenate([masses, masses + share])
        masses = np.sort(masses)[1:-1]  # neither none of the values nor all
    else:
        masses = np.linspace(there.min(), 1 - there.min(), STEPS)
    low = float(ratio.low)
    if ratio.high is None or low == 0:
        return float(two_values(masses, np.full(len(masses), 1.0)).max())
    high = float(ratio.high)
    return float(two_values(masses, masses * high / (masses * high + (1 - masses) * low)).max())


def two_values(before: Floats, after: Floats) -> Floats:
    """JS between a distribution and one in which a part's share has gone from one to another."""
    return jensen_shannon(
        np.stack([before, 1 - before], axis=1), np.stack([after, 1 - after], axis=1)
    )


def revealed(overall: Floats) -> float:
    """P_loss of the table itself: JS between Q and knowing the rarest value."""
    there = overall[overall > 0]
    return float(two_values(np.array([there.min()]), np.ones(1))[0]) if len(there) else math.nan


def class_losses(shown: Shown, attribute: int = 0) -> Floats:
    """(classes,): JS between the whole table's distribution and each class's."""
    histograms = shown.histograms
    overall = shares(histograms.overall[attribute])
    return jensen_shannon(overall, shares(histograms.counts[attribute]))


def p_loss(shown: Shown, attribute: int = 0) -> float:
    """The largest of all classes: the person about whom most is disclosed."""
    rows = shown.histograms.rows
    return float(class_losses(shown, attribute)[rows > 0].max(initial=0.0))


# ----------------------------------------------------------------------
# the private table, and the evidence of a release that losses are computed from


@dataclass(frozen=True, eq=False)
class Truth:
    """The private table: its different combinations of quasi-identifiers, with their rows."""

    schema: Schema
    """Of the quasi-identifiers, then the sensitive column."""
    cells: Codes
    counts: Counts
    """(cells, sensitive values)"""
    columns: Sequence[Codes]
    """Every row's values of all columns of the release but the sensitive one."""
    places: Mapping[str, Codes] = field(default_factory=dict)
    """For columns whose domain in the release is narrower: the code of each of its values here."""

    @property
    def qi(self) -> tuple[str, ...]:
        """The quasi-identifiers."""
        return tuple(self.schema.names[:-1])

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the quasi-identifiers' domains."""
        return tuple(self.schema.sizes[:-1])

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.counts.sum())

    @property
    def overall(self) -> Floats:
        """Q, the distribution of the sensitive column over all rows."""
        return shares(self.counts.sum(axis=0))

    @property
    def blocks(self) -> RowBlocks:
        """The rows of the table itself."""
        return (Points(self.counts.astype(np.float64), self.cells),)

    def by_position(self, orders: Sequence[Codes]) -> list[Counts]:
        """For each quasi-identifier the rows that have each value, in the column's order."""
        rows = self.counts.sum(axis=1)
        return [
            np.bincount(codes, rows, size).astype(np.int64)[order]
            for codes, size, order in zip(self.cells, self.sizes, orders, strict=True)
        ]

    @property
    def sensitive(self) -> str:
        """The sensitive column."""
        return self.schema.names[-1]

    @cached_property
    def others(self) -> Codes:
        """(columns, people): different combinations of all columns but the sensitive one."""
        rows = np.stack([*self.columns, np.zeros(len(self.columns[0]), dtype=np.int32)])
        return points(rows, 1, np.ones(rows.shape[1])).codes


@dataclass(frozen=True, eq=False)
class ShownClasses:
    """Classes of rows, as a release shows them."""

    shown: Shown
    orders: Orders
    left_out: int
    """Rows that no class holds."""


@dataclass(frozen=True, eq=False)
class LossEvidence:
    """What a release shows of rows and people, from which its losses are computed."""

    blocks: RowBlocks
    """What it shows of its rows."""
    posterior: Posterior
    """The belief about a person that it permits."""
    classes: ShownClasses | None = None
    """Where it shows classes."""


class CountedSelections(Protocol):
    """Every selection of up to a few attributes, counted on rows."""

    @property
    def counts(self) -> Floats:
        """The rows that each selection has."""
        ...

    @property
    def domain(self) -> Floats:
        """The tuples of the domain that each has."""
        ...

    @property
    def subsets(self) -> Sequence[Sequence[int]]:
        """The attributes of each group of selections, in order."""
        ...
