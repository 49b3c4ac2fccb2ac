"""Buckets of any shape, found by local search: for bucketizing only.

Two kinds of steps. Exchanging two rows with the same sensitive record between two buckets leaves
all histograms as they are, and with them every requirement. Moving a row to another bucket changes
two histograms, so both buckets are checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from voile.arrays import Floats, Ints
from voile.errors import UsageError, spelled
from voile.privacy.divergence import jensen_shannon
from voile.privacy.requirements import Requirement
from voile.recoding.grouping import Grouping, bounding, check_classes, failing_classes
from voile.recoding.mondrian import mondrian
from voile.recoding.units import Codes, Counts, Units

# ---------------------------------------------------------------------- questions and scores
# The queries that buckets are made for (sensitive values of populations), and the loss on them.
#
# Bucketized, a population y of units that lie in several buckets is estimated to have the sensitive
# distribution Σ_B |B ∩ y|·p_B / |y|, where p_B is the bucket's. The loss is the mean over all
# populations of the Jensen–Shannon divergence from the true distribution.


BINS = 8
"""Columns of more than twice as many positions are queried in this many intervals."""
SUPPORT = 0.01
"""Populations of a smaller share of the rows are not queried, unless they are given."""


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
    """The codes, or intervals of about equally many units where there are many positions."""
    if size <= 2 * BINS:
        return codes
    ends = np.quantile(codes, np.arange(1, BINS) / BINS, method="inverted_cdf")
    return np.searchsorted(np.unique(ends), codes).astype(np.int32)


@dataclass(frozen=True, eq=False)
class BucketHistograms:
    """An assignment of units to buckets, with the sums that the search reads often."""

    classes: npt.NDArray[np.int64]
    counts: Counts
    """(buckets, sensitive records)"""
    estimated: Floats
    """(populations, sensitive records): distributions."""
    loss: float

    @cached_property
    def rows(self) -> Counts:
        """(buckets,): rows."""
        rows: Counts = self.counts.sum(axis=1)
        return rows

    @cached_property
    def shares(self) -> Floats:
        """(buckets, sensitive records): p_B."""
        return self.counts / self.rows[:, None]


@dataclass(frozen=True, eq=False)
class BucketScorer:
    """Computes the loss of an assignment, and the direction in which it falls."""

    questions: Questions
    values: npt.NDArray[np.int64]
    """(units,): the number of each one's sensitive record."""
    number: int
    """Of buckets."""

    @cached_property
    def records(self) -> int:
        """How many different sensitive records there are."""
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

    def buckets(self, classes: npt.NDArray[np.int64]) -> BucketHistograms:
        """An assignment with its estimates and its loss."""
        keys = classes * self.records + self.values
        counts = np.bincount(keys, minlength=self.number * self.records)
        counts = counts.reshape(self.number, self.records)
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        within = self._table(classes, self.number)
        estimated = self.questions.incidence @ (within @ shares) / self.sizes
        loss = float(jensen_shannon(self.true, estimated).mean()) if len(estimated) else 0.0
        return BucketHistograms(classes, counts, estimated, loss)

    def slope(self, buckets: BucketHistograms) -> Floats:
        """(atoms, sensitive records): how the loss grows with the estimate for one row there.

        ∂JS(P, r)/∂r(s) = ½·ln(2r(s)/(P(s) + r(s))), and a row of a population is 1/|y| of r.
        """
        shown, true = buckets.estimated, self.true
        ratio = np.divide(2 * shown, shown + true, out=np.ones_like(shown), where=shown > 0)
        found: Floats = self.questions.incidence.T @ (np.log(ratio) / 2 / self.sizes)
        return found / max(len(shown), 1)

    def _table(self, which: npt.NDArray[np.int64], number: int) -> Counts:
        """(atoms, number): rows of each atom, by a number of each unit."""
        atoms = int(self.questions.atom.max()) + 1
        keys = self.questions.atom.astype(np.int64) * number + which
        return np.bincount(keys, minlength=atoms * number).reshape(atoms, number)


# ---------------------------------------------------------------------- the search


__all__ = ["Questions", "free_shape", "values_and_pairs"]

TINY = 1e-15
"""A step must promise more than this."""
MOVED = 0.05
"""At most this share of the rows of two buckets moves between them in a round, times the pace."""


def free_shape(
    units: Units,
    requirements: Sequence[Requirement],
    questions: Questions | None = None,
    *,
    start: Grouping | None = None,
    rounds: int = 200,
) -> Grouping:
    """Buckets that meet the requirements and answer the questions well.

    One unit for each row. Starts from `start`, by default Mondrian's classes by certainty, and from
    then on the loss never grows. Without questions those of `values_and_pairs` are used. The
    result depends on the units and the number of rounds alone, not on the clock.
    """
    if (units.weights != 1).any() or units.population is not None:
        raise UsageError(
            "free shapes deal rows one by one, and some units stand for several or none",
            hint="give one unit for each row, and no public table",
        )
    if not len(units.sensitive):
        raise UsageError(
            "free shapes are for bucketizing, and there is no sensitive attribute",
            hint=f"name one, or group by {spelled('method', 'mondrian')}",
        )
    if start is None:
        start = mondrian(units, requirements, cuts="certainty").grouping
    _, values = np.unique(units.sensitive, axis=1, return_inverse=True)
    scorer = BucketScorer(
        questions or values_and_pairs(units), values.ravel().astype(np.int64), start.number
    )
    found = scorer.buckets(start.classes.astype(np.int64))
    pace = [0.3, 0.3]
    for turn in range(rounds if start.number > 1 else 0):
        partner = paired(start.number, turn // 2)
        slope = scorer.slope(found)
        if turn % 2:
            classes = move(units, requirements, scorer, found, slope, partner, pace[1])
        else:
            classes = exchange(scorer, found, slope, partner, pace[0])
        tried = scorer.buckets(classes)
        better = tried.loss < found.loss
        pace[turn % 2] = min(1.0, 1.2 * pace[turn % 2]) if better else max(0.01, pace[turn % 2] / 2)
        if better:
            found = tried
    grouping = bounding(units, found.classes.astype(np.int32), start.number)
    check_classes(units, grouping, requirements)
    return grouping


def paired(number: int, turn: int) -> Ints:
    """(buckets,): the partner of each bucket in this round, or −1; in the end all pairs meet."""
    even = number + number % 2
    ring = np.concatenate([[0], 1 + (np.arange(even - 1) + turn) % (even - 1)])
    partner = np.empty(even, dtype=np.int64)
    partner[ring] = ring[::-1]
    return np.where(partner < number, partner, -1)[:number]


def exchange(
    scorer: BucketScorer, found: BucketHistograms, slope: Floats, partner: Ints, pace: float
) -> Ints:
    """Exchange rows with the same sensitive record where that promises a smaller loss.

    For two buckets the best is known: those who would gain most by going change places with each
    other, one by one, until the next pair would lose.
    """
    here, there = found.classes, partner[found.classes]
    costs = slope @ found.shares.T
    atom = scorer.questions.atom
    rows = np.flatnonzero(there >= 0)
    here, there, atom = here[rows], there[rows], atom[rows]
    gain = costs[atom, here] - costs[atom, there]
    group = np.minimum(here, there) * scorer.records + scorer.values[rows]
    first, second = here < there, here > there
    one, rank_one = _ranked(np.flatnonzero(first), group, gain)
    two, rank_two = _ranked(np.flatnonzero(second), group, gain)
    stride = len(group) + 1
    _, a, b = np.intersect1d(
        group[one] * stride + rank_one, group[two] * stride + rank_two, return_indices=True
    )
    one, two = one[a], two[b]
    both = gain[one] + gain[two]
    best = np.argsort(-both, kind="stable")[: int(np.ceil(pace * np.count_nonzero(both > TINY)))]
    classes = found.classes.copy()
    classes[rows[one[best]]] = there[one[best]]
    classes[rows[two[best]]] = there[two[best]]
    return classes


def _ranked(rows: Ints, group: Ints, gain: Floats) -> tuple[Ints, Ints]:
    """The rows ordered by group and falling gain, and the rank of each in its group."""
    ordered = rows[np.lexsort((-gain[rows], group[rows]))]
    return ordered, _ranks(group[ordered])


def _ranks(sorted_groups: Ints) -> Ints:
    """0, 1, 2, … in each run of equal numbers."""
    return np.arange(len(sorted_groups)) - np.searchsorted(sorted_groups, sorted_groups)


def move(
    units: Units,
    requirements: Sequence[Requirement],
    scorer: BucketScorer,
    found: BucketHistograms,
    slope: Floats,
    partner: Ints,
    pace: float,
) -> Ints:
    """Move rows to the partner of their bucket where that promises a smaller loss.

    Of each two buckets the best moves are made; half as many, again and again, until both meet
    the requirements.
    """
    here, there = found.classes, partner[found.classes]
    promise = promises(scorer, found, slope, here, there)
    rows = np.flatnonzero(promise < -TINY)
    pair = np.minimum(here, there)[rows]
    order = np.lexsort((promise[rows], pair))
    rows, pair = rows[order], pair[order]
    rank = _ranks(pair)
    both = found.rows + np.where(partner >= 0, found.rows[partner], 0)
    quota = np.maximum(1, MOVED * pace * both).astype(np.int64)
    while True:
        moved = rows[rank < quota[pair]]
        classes = here.copy()
        classes[moved] = there[moved]
        histograms = units.histograms(classes.astype(np.int32), scorer.number)
        wrong = failing_classes(histograms, requirements)
        if not len(wrong) or not len(moved):
            return classes
        quota[np.minimum(wrong, partner[wrong])] //= 2


def promises(
    scorer: BucketScorer, found: BucketHistograms, slope: Floats, here: Ints, there: Ints
) -> Floats:
    """(units,): by how much the loss would change, to first order, if one row moved.

    A bucket's part of the first-order loss is g·p, where g is the sum of its rows' slopes; the
    move changes both.
    """
    atom, values, rows, counts = scorer.questions.atom, scorer.values, found.rows, found.counts
    pulls = np.zeros((scorer.number, slope.shape[1]))
    for record in range(slope.shape[1]):
        pulls[:, record] = np.bincount(here, slope[atom, record], scorer.number)
    whole = (pulls * counts).sum(axis=1)
    costs = slope @ counts.T
    own = slope[atom, values]
    left = (whole[here] - costs[atom, here] - pulls[here, values] + own) / np.maximum(
        rows[here] - 1, 1
    )
    joined = (whole[there] + costs[atom, there] + pulls[there, values] + own) / (rows[there] + 1)
    before = whole[here] / rows[here] + whole[there] / rows[there]
    allowed = (there >= 0) & (rows[here] > 1)
    return np.where(allowed, left + joined - before, 0.0)
