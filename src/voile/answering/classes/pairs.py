"""Pairs of rows and records that share a bucket, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voile.answering.classes.pairing import BucketUnits
from voile.arrays import Floats, Ints

MOST_FITTED = 2**25
"""Pairs that a model is fitted to."""
DENSE = 2**23
"""Sums by owner and group that are kept whether there is anything to sum or not."""


@dataclass(frozen=True, eq=False)
class Fitted:
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
