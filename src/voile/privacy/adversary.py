"""What an adversary believes after it has seen a release: Bayes' rule, exactly.

An adversary is a belief about which records the table holds. What it sees enters only through
`Evidence`, the chance of what the view shows of each tuple. So an attack is the same for every
mechanism; a mechanism adds its `log_likelihood` and nothing else. All in logarithms, for chances of
single views are small. Proofs: docs/mathematics, section 18.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from voile.arrays import Bools, Floats
from voile.privacy.guarantee import DGamma

__all__ = [
    "Adversary", "Evidence", "Exclusive", "Independent", "Joint", "Leaks", "Likelihood",
    "exclusive", "independent", "is_bounded", "leaks", "log_ratio",
]  # fmt: skip

Codes = Sequence[npt.NDArray[Any]]

Evidence = Callable[[int], Floats]
"""ln P(what the view shows of each tuple | the table holds that many records of it)."""

ROUNDING = 1e-9
"""A leak is larger than what floats can blur: the promise's bounds are attained exactly."""


class Likelihood(Protocol):
    """All that an attack needs of a mechanism."""

    def log_likelihood(self, counts: npt.NDArray[Any], records: int, codes: Codes) -> Floats:
        """ln P(the view shows counts[i] copies of tuple i | the table holds `records` of it).

        codes[j][i] is the place of tuple i in the domain of attribute j. Where several views were
        published, `counts` has a column for each of them.
        """


# ---------------------------------------------------------------------- posteriors


def log_ratio(evidence: Evidence, others: int = 0) -> Floats:
    """ln of P(seen | with the record) / P(seen | without it), for each tuple.

    `others` is how many further records the adversary knows to have the same values. With none the
    ratio attains the mechanism's bounds, which is why that is the default. NaN where neither can
    have been published.
    """
    with np.errstate(invalid="ignore"):
        return evidence(others + 1) - evidence(others)


def independent(prior: Floats, ratio: Floats) -> Floats:
    """p·L / (p·L + 1 − p): what it believes of one record does not depend on the others.

    Beliefs of 0 and of 1 are not beliefs to be changed by evidence.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        odds = np.log(prior) - np.log1p(-prior) + ratio
        posterior = 1 / (1 + np.exp(-odds))
    certain = (prior == 0) | (prior == 1)
    return np.where(certain, prior, posterior)


def exclusive(log_weights: Floats, ratio: Floats) -> Floats:
    """w_j·L_j / Σ w_i·L_i: exactly one of these tuples is in the table."""
    return normalised(log_weights + ratio)


def normalised(log_weights: Floats) -> Floats:
    """Weights that add up to 1; NaN where all are 0, or where two are infinite."""
    top = log_weights.max()
    certain = np.isposinf(log_weights)
    if certain.sum() == 1:
        return certain.astype(np.float64)
    if not np.isfinite(top):
        return np.full_like(log_weights, np.nan)
    weights = np.exp(log_weights - top)
    shares: Floats = weights / weights.sum()
    return shares


# ---------------------------------------------------------------------- adversaries


class Adversary(Protocol):
    """A belief about some tuples, before and after what the view shows of them."""

    @property
    def priors(self) -> Floats:
        """The belief in each tuple before the release."""

    def posteriors(self, evidence: Evidence) -> Floats:
        """The belief in each tuple after the release."""


@dataclass(frozen=True)
class Independent:
    """One record says nothing about another (VLDB 2007, Definition 2.2)."""

    priors: Floats
    others: int = 0

    def posteriors(self, evidence: Evidence) -> Floats:
        """Each belief, changed by the evidence about its own tuple alone."""
        return independent(self.priors, log_ratio(evidence, self.others))


@dataclass(frozen=True)
class Exclusive:
    """Exactly one of the tuples is a person's record (Definition 6.2); weights are in logs."""

    log_weights: Floats
    others: int = 0

    @property
    def priors(self) -> Floats:
        """The weights as probabilities that add up to 1."""
        return normalised(self.log_weights)

    def posteriors(self, evidence: Evidence) -> Floats:
        """Each belief, changed by the evidence about all of the tuples."""
        return exclusive(self.log_weights, log_ratio(evidence, self.others))


@dataclass(frozen=True)
class Joint:
    """Any belief about a few named records: which of them are in the table, with what chance.

    memberships[o, i] is whether outcome o has record i; chances[o] is that outcome's prior.
    places[i] is where the tuple of record i stands in the evidence: records with the same values
    are seen together.
    """

    memberships: Bools
    chances: Floats
    places: npt.NDArray[np.int64]

    @property
    def priors(self) -> Floats:
        """The chance of each record by itself."""
        return np.asarray(self.chances @ self.memberships, np.float64)

    def posteriors(self, evidence: Evidence) -> Floats:
        """What is believed of each record afterwards: a sum over the outcomes."""
        tuples, where = np.unique(self.places, return_inverse=True)
        same = np.equal.outer(where, np.arange(len(tuples)))
        records = self.memberships.astype(np.int64) @ same.astype(np.int64)
        table = np.stack([evidence(k)[tuples] for k in range(int(records.max(initial=0)) + 1)])
        seen = np.take_along_axis(table, records, axis=0).sum(axis=1)
        with np.errstate(divide="ignore"):
            shares = normalised(np.log(self.chances) + seen)
        return np.asarray(shares @ self.memberships, np.float64)


# ---------------------------------------------------------------------- the promise


@dataclass(frozen=True)
class Leaks:
    """What a promise of (d, γ) says about each belief."""

    covered: Bools
    """The prior is at most d. A larger one is outside of what is promised."""
    above: Bools
    """It is now above γ, whatever it was."""
    positive: Bools
    """It was at most d and is now above γ."""
    negative: Bools
    """It was at most d and has fallen below d/γ times what it was."""


def leaks(
    promise: DGamma, prior: Floats, posterior: Floats, protected: Floats | None = None
) -> Leaks:
    """Where (d, γ) would be broken (VLDB 2007, Definition 2.3), up to the rounding of floats.

    `protected` is d for each tuple, where it differs.
    """
    most = promise.prior if protected is None else protected
    covered = prior <= most * (1 + ROUNDING)
    least = promise.prior / promise.posterior * (1 - ROUNDING)
    above = posterior > promise.posterior * (1 + ROUNDING)
    return Leaks(
        covered=covered,
        above=above,
        positive=covered & above,
        negative=covered & (posterior < least * prior),
    )


def is_bounded(promise: DGamma, prior: Floats) -> bool:
    """Whether this is a d-bounded adversary: every prior is at most d, or 1 (Definition 2.1)."""
    return bool((leaks(promise, prior, prior).covered | (prior == 1)).all())


# ---------------------------------------------------------------------- the population
# What an adversary may know of the population: chances of tuples from a few marginals.
#
# A tree of attributes: each one depends on at most one other, P(t) = Π_j P(t_j | t_parent(j)).
# Without any edge it is the product of the marginals. The best tree is that of Chow and Liu (1968):
# the one whose edges have the most mutual information.


Pair = tuple[int, int]
"""Two attributes by their numbers, the smaller one first."""
PairCounts = Callable[[Pair], Floats]
"""Counts of the values of two attributes, with a row for each value of the first."""


@dataclass(frozen=True)
class Population:
    """A law over the domain: a tree of attributes, or their product where no one has a parent.

    tables[j] is ln P(value of j), or, with a parent, ln P(value of j | value of the parent) with a
    row for each value of the parent.
    """

    parents: tuple[int | None, ...]
    tables: tuple[Floats, ...]

    def log_chance(self, codes: Codes) -> Floats:
        """ln P of tuples, given by the places of their values."""
        found = np.zeros(len(codes[0]))
        for j, (parent, table) in enumerate(zip(self.parents, self.tables, strict=True)):
            found += table[codes[j]] if parent is None else table[codes[parent], codes[j]]
        return found

    def log_prior(self, codes: Codes, rows: float) -> Floats:
        """ln of the chance that a table of so many draws holds the tuple: 1 − (1 − P)^rows."""
        chance = np.exp(self.log_chance(codes))
        with np.errstate(divide="ignore"):
            return np.log(-np.expm1(rows * np.log1p(-np.minimum(chance, 1.0))))


def product(counts: Sequence[Floats]) -> Population:
    """Attributes that have nothing to do with one another."""
    return Population((None,) * len(counts), tuple(np.log(smoothed(c)) for c in counts))


def tree(counts: Sequence[Floats], pairs: Sequence[Pair], both: PairCounts) -> Population:
    """The tree of attributes nearest to these counts, of edges among the given pairs.

    Counts of pairs are fetched one after the other, and not all kept: they may be large.
    """
    weights = {pair: mutual_information(both(pair)) for pair in pairs}
    parents: list[int | None] = [None] * len(counts)
    tables = [np.log(smoothed(c)) for c in counts]
    for parent, child in best_edges(len(counts), weights):
        table = both((parent, child)) if parent < child else both((child, parent)).T
        parents[child] = parent
        tables[child] = np.log(np.apply_along_axis(smoothed, 1, table))
    return Population(tuple(parents), tuple(tables))


def best_edges(attributes: int, weights: Mapping[Pair, float]) -> list[Pair]:
    """Edges of the heaviest spanning forest, from parent to child (Prim's algorithm)."""
    reached: list[int] = []
    edges: list[tuple[int, int]] = []
    for _ in range(attributes):
        out = [
            (weight, i, j)
            for (a, b), weight in weights.items()
            for i, j in ((a, b), (b, a))
            if i in reached and j not in reached and weight > 0
        ]
        if out:
            _, parent, child = max(out)
            edges.append((parent, child))
        else:  # the first of all, or of another part of a forest
            child = next(j for j in range(attributes) if j not in reached)
        reached.append(child)
    return edges


def mutual_information(counts: Floats) -> float:
    """The mutual information of two attributes, in natural units."""
    both = counts / counts.sum()
    apart = np.outer(both.sum(axis=1), both.sum(axis=0))
    seen = both > 0
    return float((both[seen] * np.log(both[seen] / apart[seen])).sum())


def smoothed(counts: Floats) -> Floats:
    """Chances of values; one imaginary record is spread evenly, so that none is impossible."""
    shares: Floats = (counts + 1 / len(counts)) / (counts.sum() + 1)
    return shares
