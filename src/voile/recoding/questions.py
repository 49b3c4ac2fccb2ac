"""What a bucketized table will be asked: the sensitive values of populations, and how well it does.

Bucketized, a population y of units that lie in several buckets is estimated to have the sensitive
distribution Σ_B |B ∩ y|·p_B / |y|, where p_B is the bucket's. The loss is the mean over all
populations of the Jensen–Shannon divergence from the true distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from voile.arrays import Floats
from voile.privacy.divergence import jensen_shannon
from voile.recoding.units import Codes, Counts, Units

BINS = 8
"""Columns of more than twice as many positions are asked about in so many intervals."""
SUPPORT = 0.01
"""Populations of a smaller share of the rows are not asked about, unless they are given."""


@dataclass(frozen=True, eq=False)
class Questions:
    """Populations, as sets of atoms: units that every population has all or none of."""

    atom: Codes
    """(units,): 0 … atoms−1."""
    starts: Counts
    members: Codes
    """The atoms of population y are members[starts[y]:starts[y + 1]]."""

    @cached_property
    def incidence(self) -> Any:
        """(populations, atoms): 1 where the population has the atom."""
        shape = (len(self.starts) - 1, int(self.atom.max(initial=-1)) + 1)
        ones = np.ones(len(self.members))
        return sparse.csr_matrix((ones, self.members, self.starts), shape=shape)


def values_and_pairs(units: Units) -> Questions:
    """Every value of a quasi-identifier and every pair of values, where enough rows have them."""
    binned = [_binned(codes, size) for codes, size in zip(units.codes, units.sizes, strict=True)]
    atoms, atom = np.unique(np.stack(binned), axis=1, return_inverse=True)
    rows = np.bincount(atom.ravel(), units.weights)
    least = SUPPORT * units.rows
    members = []
    for of in [*((j,) for j in range(len(atoms))), *combinations(range(len(atoms)), 2)]:
        _, which = np.unique(atoms[list(of)], axis=1, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(which.ravel()))[:-1])
        members += [part for part in parts if rows[part].sum() >= least]
    starts = np.cumsum([0, *map(len, members)], dtype=np.int64)
    return Questions(
        atom.ravel().astype(np.int32), starts, np.concatenate(members).astype(np.int32)
    )


def _binned(codes: Codes, size: int) -> Codes:
    """Intervals that about as many units lie in, of columns that have many positions."""
    if size <= 2 * BINS:
        return codes
    ends = np.quantile(codes, np.arange(1, BINS) / BINS, method="inverted_cdf")
    return np.searchsorted(np.unique(ends), codes).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Buckets:
    """An assignment of units to buckets, with what the search asks of it again and again."""

    classes: npt.NDArray[np.int64]
    counts: Counts
    """(buckets, sensitive records)"""
    estimated: Floats
    """(populations, sensitive records): distributions."""
    loss: float

    @cached_property
    def rows(self) -> Counts:
        rows: Counts = self.counts.sum(axis=1)
        return rows

    @cached_property
    def shares(self) -> Floats:
        """(buckets, sensitive records): p_B."""
        return self.counts / self.rows[:, None]


@dataclass(frozen=True, eq=False)
class Scoring:
    """The loss of assignments, and in which direction it falls."""

    questions: Questions
    values: npt.NDArray[np.int64]
    """(units,): the number of each one's sensitive record."""
    number: int
    """Of buckets."""

    @cached_property
    def records(self) -> int:
        return int(self.values.max()) + 1

    @cached_property
    def sizes(self) -> Floats:
        """(populations, 1): rows."""
        rows = np.bincount(self.questions.atom)
        sizes: Floats = np.maximum(self.questions.incidence @ rows, 1)[:, None]
        return sizes

    @cached_property
    def true(self) -> Floats:
        """(populations, sensitive records): the distribution of each population."""
        found: Floats = self.questions.incidence @ self._table(self.values, self.records)
        return found / self.sizes

    def buckets(self, classes: npt.NDArray[np.int64]) -> Buckets:
        """An assignment with its estimates and its loss."""
        keys = classes * self.records + self.values
        counts = np.bincount(keys, minlength=self.number * self.records)
        counts = counts.reshape(self.number, self.records)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        within = self._table(classes, self.number)
        estimated = self.questions.incidence @ (within @ shares) / self.sizes
        loss = float(jensen_shannon(self.true, estimated).mean()) if len(estimated) else 0.0
        return Buckets(classes, counts, estimated, loss)

    def slope(self, buckets: Buckets) -> Floats:
        """(atoms, sensitive records): how the loss grows with what is told of one row there.

        ∂JS(P, r)/∂r(s) = ½·ln(2r(s)/(P(s) + r(s))), and a row of a population is 1/|y| of r.
        """
        told, true = buckets.estimated, self.true
        ratio = np.divide(2 * told, told + true, out=np.ones_like(told), where=told > 0)
        found: Floats = self.questions.incidence.T @ (np.log(ratio) / 2 / self.sizes)
        return found / max(len(told), 1)

    def _table(self, which: npt.NDArray[np.int64], number: int) -> Counts:
        """(atoms, number): rows of each atom, by a number of each unit."""
        atoms = int(self.questions.atom.max()) + 1
        keys = self.questions.atom.astype(np.int64) * number + which
        return np.bincount(keys, minlength=atoms * number).reshape(atoms, number)
