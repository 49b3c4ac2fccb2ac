"""Anatomy: buckets of ℓ rows with different sensitive values, whatever their quasi-identifiers.

Xiao and Tao, *Anatomy: Simple and Effective Privacy Preservation*, VLDB 2006. Its buckets are only
ever bucketized: as boxes they would be almost useless.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voile.compiled import compiled
from voile.errors import PromiseError, UsageError, spelled
from voile.noise import Stream
from voile.noise.replacement import swap
from voile.privacy.requirements import Requirement
from voile.recoding.grouping import Grouping, bounding, check_whole, joined
from voile.recoding.units import Codes, Counts, Units


def anatomy(
    units: Units,
    l: float,  # noqa: E741  (the requirement's name)
    stream: Stream,
    *,
    attribute: int = 0,
    requirements: Sequence[Requirement] = (),
    labels: Sequence[str] | None = None,
) -> Grouping:
    """Buckets whose rows all have different values of the sensitive attribute.

    One unit for each row. Which row of a value goes to which bucket is drawn from the stream.
    `requirements` are others that buckets must meet: those that fail are joined until they do.
    `labels` are the values in words, for errors.
    """
    number = _whole(l)
    if (units.weights != 1).any():
        raise UsageError(
            "Anatomy deals rows one by one, and some units stand for several or none",
            hint="give one unit for each row",
        )
    check_whole(units, requirements)
    _check_eligible(units, number, attribute, labels)
    values = units.sensitive[attribute]
    size = units.sensitive_sizes[attribute]
    shuffled = swap(np.arange(len(values), dtype=np.int64), 0.0, stream)
    narrow = np.uint16 if size <= 1 << 16 else np.int32
    grouped = shuffled[np.argsort(values[shuffled].astype(narrow), kind="stable")]
    counts = np.bincount(values, minlength=size)
    buckets, made = deal(counts, number)
    _place_residues(buckets, values[grouped], made, stream)
    classes = np.empty(len(values), dtype=np.int32)
    classes[grouped] = buckets
    classes, made = joined(units, classes, made, requirements)
    return bounding(units, classes, made)


def _whole(l: float) -> int:  # noqa: E741
    if l != int(l) or l < 1:
        raise UsageError(
            f"Anatomy makes buckets of ℓ rows, and ℓ = {l:g} is no whole number from 1 on",
            hint=f"take ℓ = {max(1, int(np.ceil(l)))}, or {spelled('method', 'mondrian')}",
        )
    return int(l)


def _check_eligible(
    units: Units, l: int, attribute: int, labels: Sequence[str] | None  # noqa: E741
) -> None:  # fmt: skip
    """Refuse if a value has more than 1/ℓ of the rows: some bucket would have it twice."""
    counts, rows = units.overall[attribute], units.rows
    most = int(counts.argmax())
    if counts[most] * l > rows:
        value = repr(labels[most]) if labels is not None else f"number {most}"
        raise PromiseError(
            f"ℓ = {l} is more than the table has: value {value} of sensitive attribute "
            f"{attribute + 1} has {counts[most]:,} of {rows:,} rows, more than 1/{l}",
            hint=f"ask for ℓ ≤ {rows // counts[most]}",
        )


@compiled
def deal(counts: Counts, l: int) -> tuple[Codes, int]:  # noqa: E741
    """Take one row of each of the ℓ most frequent values into a bucket, until fewer are left.

    Rows are numbered by value, those of a value one after the other; the bucket of each, −1 for
    those left over, and how many buckets there are. Values are kept in the order of what is left
    of them (as negative numbers, the most frequent first). Of those that tie at the ℓ-th place
    the last in that order are taken: then it stays sorted, and a bucket costs ℓ steps however
    many values there are.
    """
    order = np.argsort(-counts, kind="mergesort")
    negative = -counts[order]
    next_row = (np.cumsum(counts) - counts)[order]
    out = np.full(counts.sum(), -1, dtype=np.int32)
    number = 0
    while l <= negative.size and negative[l - 1] < 0:
        first = np.searchsorted(negative, negative[l - 1], side="left")
        end = np.searchsorted(negative, negative[l - 1], side="right")
        for step in range(l):
            place = step if step < first else end - l + step
            out[next_row[place]] = number
            next_row[place] += 1
            negative[place] += 1
        number += 1
    return out, number


def _place_residues(buckets: Codes, values: Codes, number: int, stream: Stream) -> None:
    """Put each remaining row into a random bucket among those that do not have its value.

    No two remaining rows have the same value.
    """
    for row in np.flatnonzero(buckets < 0):
        taken = np.zeros(number, dtype=np.bool_)
        taken[buckets[(values == values[row]) & (buckets >= 0)]] = True
        free = np.flatnonzero(~taken)
        buckets[row] = swap(free, 0.0, stream)[0]
