"""What rows and records of buckets can add up to at least and at most, however they are paired.

In each bucket that is a transportation problem: n_x rows of cell x meet m_s records of cell s, and
a pair pays w_xs. It has an exact solution

  where w_xs = u_x + v_s + α_x·β_s: rows in the order of α meet records in the order of β, or in
  the opposite order (the rearrangement inequality). That is so for conditions that are a product,
  a sum or an 'or' of one on the row and one on the record, and whenever only two kinds of rows,
  or of records, are distinguished;
  where a pair pays all or nothing, and few kinds of rows or records are distinguished: the most is
  a flow, as large as the smallest cut, and all cuts are tried.

  where buckets are few or small: as an assignment of each row to one record.

Otherwise w is taken apart into layers that pay all or nothing, and the sum of their bounds is one
that holds but need not be reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from voile.answering.columns import Flags
from voile.arrays import Floats, Ints

MOST_KINDS = 10
"""Kinds of rows, or of records, of which all subsets are tried."""
MOST_LAYERS = 64
MOST_ASSIGNED = 2**30
"""Steps to assign records to rows, n³ in a bucket of n rows, for all totals of a query."""
MOST_BUCKETS = 2**15
"""Buckets times totals of a query, likewise."""
SAME = 1e-9
CHUNK = 2**22


@dataclass(frozen=True, eq=False)
class BucketUnits:
    """Rows, or records, of one bucket and one cell; ascending by bucket."""

    bucket: Ints
    cell: Ints
    rows: Floats
    starts: Ints
    """Of every bucket."""

    def by_bucket(self, values: Floats) -> Floats:
        """Σ rows·value of the cell, for each bucket."""
        found = np.bincount(self.bucket, self.rows * values[self.cell], len(self.starts) - 1)
        return found.astype(np.float64)

    def kinds(self, kind: Ints, count: int) -> Floats:
        """(buckets, kinds): rows of each kind of cell."""
        key = self.bucket * count + kind[self.cell]
        size = (len(self.starts) - 1) * count
        return np.bincount(key, self.rows, size).astype(np.float64).reshape(-1, count)

    def ordered(self, rank: Ints) -> Ints:
        """The cell of every row, in each bucket by the rank of the cells."""
        key = self.bucket * (int(rank.max(initial=0)) + 1) + rank[self.cell]
        order = np.argsort(key, kind="stable")
        return np.repeat(self.cell[order], self.rows[order].astype(np.int64))


def units_of(
    bucket: npt.NDArray[np.integer], cell: Ints, rows: npt.ArrayLike, cells: int, buckets: int
) -> BucketUnits:
    """Rows or records of each bucket and cell, taken together."""
    key = bucket.astype(np.int64) * cells + cell
    found, index = np.unique(key, return_inverse=True)
    of_bucket, of_cell = np.divmod(found, cells)
    return BucketUnits(
        bucket=of_bucket,
        cell=of_cell,
        rows=np.bincount(index, rows, len(found)).astype(np.float64),
        starts=np.searchsorted(of_bucket, np.arange(buckets + 1)),
    )


@dataclass(frozen=True, eq=False)
class PairingEnds:
    """The least and the most, and what each of several payoffs adds up to there."""

    ends: tuple[float, float]
    terms: Floats
    """(2, payoffs); unknown where the ends need not be reached."""
    tight: bool


@dataclass(frozen=True, eq=False)
class Pairing:
    """Rows and records of all buckets, and the extremes of sums over their pairs."""

    lines: BucketUnits
    columns: BucketUnits
    sizes: Floats
    totals: int = 1
    """How many totals the query has, over all groups."""
    flows: dict[bytes, tuple[float, bool]] = field(default_factory=dict, repr=False)
    """What was found, by which pairs pay."""

    def extremes(self, weight: Floats, payoffs: Sequence[Floats]) -> PairingEnds:
        """Of Σ weight over all pairs; `payoffs` are the sums of which it is made."""
        curved = weight - weight[:1] - weight[:, :1] + weight[0, 0]
        most = np.abs(curved).max(initial=0.0)
        if most <= SAME * np.abs(weight).max(initial=0.0):
            curved, most = np.zeros_like(curved), 0.0
        i, j = np.unravel_index(np.abs(curved).argmax(), curved.shape)
        alpha, beta = curved[:, j], curved[i] / (curved[i, j] or 1.0)
        if np.abs(curved - np.outer(alpha, beta)).max(initial=0.0) > SAME * most:
            if self._is_small:
                return self._assigned(weight, payoffs)
            return self._layered(weight, len(payoffs))
        if len(payoffs) == 1 and two_valued(alpha) and two_valued(beta):
            return self._counted(weight, alpha, beta, payoffs[0])
        return self._rearranged(alpha, beta, weight, payoffs)

    def _counted(self, weight: Floats, alpha: Floats, beta: Floats, payoff: Floats) -> PairingEnds:
        """Where a of the rows meet b of the records: from max(0, a+b−n) to min(a, b) of them."""
        base = (
            self.lines.by_bucket(weight[:, 0]).sum()
            + self.columns.by_bucket(weight[0]).sum()
            - self.sizes.sum() * weight[0, 0]
        )
        a = self.lines.by_bucket((alpha != 0).astype(np.float64))
        b = self.columns.by_bucket((beta != 0).astype(np.float64))
        largest = np.abs(alpha).argmax()
        step = alpha[largest] * beta[np.abs(beta).argmax()]
        found = [base + step * x.sum() for x in (np.maximum(a + b - self.sizes, 0.0),
                                                 np.minimum(a, b))]  # fmt: skip
        low, high = float(min(found)), float(max(found))
        at = np.unravel_index(np.abs(weight).argmax(), weight.shape)
        factor = weight[at] / payoff[at] if weight[at] else 1.0
        return PairingEnds((low, high), np.array([[low / factor], [high / factor]]), tight=True)

    def _rearranged(
        self, alpha: Floats, beta: Floats, weight: Floats, payoffs: Sequence[Floats]
    ) -> PairingEnds:
        rows, rising = self.lines.ordered(ranks(alpha)), self.columns.ordered(ranks(beta))
        falling = self.columns.ordered(ranks(-beta))
        met = [(rows, falling), (rows, rising)]
        low, high = (float(weight[pair].sum()) for pair in met)
        terms = np.array([[payoff[pair].sum() for payoff in payoffs] for pair in met])
        return PairingEnds((low, high), terms.reshape(2, len(payoffs)), tight=True)

    # ------------------------------------------------------------------ what is no product

    @property
    def _is_small(self) -> bool:
        steps, buckets = (self.sizes**3).sum() * self.totals, len(self.sizes) * self.totals
        return bool(steps <= MOST_ASSIGNED and buckets <= MOST_BUCKETS)

    def _assigned(self, weight: Floats, payoffs: Sequence[Floats]) -> PairingEnds:
        """Each row gets one record of its bucket: the cheapest assignment, and the dearest."""
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415  (slow to import)

        rows, records = (
            np.repeat(units.cell, units.rows.astype(np.int64))
            for units in (self.lines, self.columns)
        )
        ends = np.concatenate([[0], np.cumsum(self.sizes.astype(np.int64))])
        given = np.empty((2, len(records)), np.int64)
        for first, last in pairwise(ends.tolist()):
            pays = weight[rows[first:last, None], records[None, first:last]]
            for side, highest in enumerate((False, True)):
                _, chosen = linear_sum_assignment(pays, maximize=highest)
                given[side, first:last] = records[first:last][chosen]
        low, high = (float(weight[rows, met].sum()) for met in given)
        terms = np.array([[payoff[rows, met].sum() for payoff in payoffs] for met in given])
        return PairingEnds((low, high), terms.reshape(2, len(payoffs)), tight=True)

    def _layered(self, weight: Floats, payoffs: int) -> PairingEnds:
        """Σ over the levels of weight of what pairs above each can be at least and at most."""
        levels = np.unique(weight)
        unknown = np.full((2, payoffs), np.nan)
        rows = self.sizes.sum()
        if len(levels) - 1 > MOST_LAYERS:
            return PairingEnds(self._sides(weight), unknown, tight=False)
        low = high = rows * levels[0]
        tight = len(levels) == 2
        for below, level in pairwise(levels):
            pays = weight >= level
            most, exact = self._flow(pays)
            least, exact_too = self._flow(~pays)
            low += (level - below) * (rows - least)
            high += (level - below) * most
            tight &= exact and exact_too
        return PairingEnds((float(low), float(high)), unknown, tight)

    def _sides(self, weight: Floats) -> tuple[float, float]:
        """Every row, or every record, with the partner that suits it best."""
        lows, highs = (
            [
                self.lines.by_bucket(best(weight, axis=1)).sum(),
                self.columns.by_bucket(best(weight, axis=0)).sum(),
            ]
            for best in (np.min, np.max)
        )
        return float(max(lows)), float(min(highs))

    def _flow(self, pays: Flags) -> tuple[float, bool]:
        """The most pairs that pay, over all buckets, and whether they can be reached."""
        key = pays.tobytes()
        if key not in self.flows:
            self.flows[key] = self._new_flow(pays)
        return self.flows[key]

    def _new_flow(self, pays: Flags) -> tuple[float, bool]:
        rows, of_row = np.unique(pays, axis=0, return_inverse=True)
        kinds, of_record = np.unique(rows, axis=1, return_inverse=True)
        n = self.lines.kinds(of_row.reshape(-1), len(kinds))
        m = self.columns.kinds(of_record.reshape(-1), kinds.shape[1])
        if len(kinds) > kinds.shape[1]:
            kinds, n, m = kinds.T, m, n
        if len(kinds) > MOST_KINDS:
            pay, paid = kinds.any(axis=1), kinds.any(axis=0)
            return float(np.minimum(n @ pay, m @ paid).sum()), False
        subsets = (np.arange(2 ** len(kinds))[:, None] >> np.arange(len(kinds))) & 1
        reached = (subsets @ kinds) > 0
        total, step = 0.0, max(1, CHUNK // len(subsets))
        for first in range(0, len(n), step):
            some = slice(first, first + step)
            cuts = n[some] @ (1.0 - subsets).T + m[some] @ reached.T.astype(np.float64)
            total += float(cuts.min(axis=1).sum())
        return total, True


def two_valued(values: Floats) -> bool:
    """Whether there is but one value besides 0."""
    other = values[values != 0]
    return len(other) == 0 or bool((other == other[0]).all())


def ranks(values: Floats) -> Ints:
    """The rank of each value among the different ones."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


# ----------------------------------------------------------------------
# pairs of rows and records that share a bucket, and sums over them


MOST_FITTED = 2**25
"""Pairs that a model is fitted to."""
DENSE = 2**23
"""Sums by owner and group that are kept whether there is anything to sum or not."""


@dataclass(frozen=True, eq=False)
class FittedPairs:
    """How many rows of each unit are expected to have each record of their bucket.

    A unit is what rows of one bucket that are alike in all shown columns have in common.
    """

    row_unit: Ints
    """(rows,): which unit each row belongs to."""
    unit_bucket: Ints
    unit: Ints
    """(pairs,)"""
    record: Ints
    rows: Floats


@dataclass(frozen=True, eq=False)
class Owners:
    """Lines, columns or buckets of pairs."""

    rows: Floats
    bucket: Ints
    """Numbered over the chunk."""

    def products(self, scale: Floats, owner: Ints, group: Ints, groups: int) -> PairProducts:
        """Ready to sum products of pairs, by owner and group."""
        key = owner * groups + group
        span = len(self.rows) * groups
        if span <= DENSE:
            found, index = np.arange(span), key
        else:
            found, index = np.unique(key, return_inverse=True)
        at, of_group = np.divmod(found, groups)
        return PairProducts(index, scale[self.bucket[at]] / self.rows[at], of_group, groups)


@dataclass(frozen=True, eq=False)
class PairProducts:
    """Sums over the pairs of an owner and a group."""

    index: Ints
    """Of every pair: which sum it belongs to."""
    factor: Floats
    """Of every sum."""
    group: Ints
    groups: int

    def of(self, left: Floats, right: Floats) -> Floats:
        """Σ factor·V·W of each group."""
        v = np.bincount(self.index, left, len(self.factor))
        w = np.bincount(self.index, right, len(self.factor))
        return np.bincount(self.group, self.factor * v * w, self.groups).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Chunk:
    """Pairs of units and records of some buckets."""

    bucket: Ints
    unit: Ints
    """The line within the bucket, numbered over the chunk."""
    record: Ints
    shown: Ints
    """The shown cell."""
    open: Ints
    expected: Floats
    """f"""
    lines: Owners
    """What the pairs of a line have in common: n_x and the bucket."""
    columns: Owners
    """m_s"""
    buckets: Owners
    """n"""


def owners(units: BucketUnits, first: int, last: int) -> Owners:
    """The units of the buckets from first to before last."""
    some = slice(units.starts[first], units.starts[last])
    return Owners(units.rows[some], units.bucket[some] - first)


def pairs_of(lines: Ints, columns: Ints, first: int, last: int) -> tuple[Ints, Ints, Ints]:
    """Bucket, unit and record of every pair, of the buckets from first to before last.

    `lines` and `columns` are where the units and the records of each bucket begin.
    """
    tall, wide = np.diff(lines)[first:last], np.diff(columns)[first:last]
    many = tall * wide
    bucket = np.repeat(np.arange(first, last), many)
    place = np.arange(len(bucket)) - np.repeat(np.cumsum(many) - many, many)
    across = np.repeat(wide, many)
    return bucket, lines[bucket] + place // across, columns[bucket] + place % across
