"""The paper's workload: every selection query Ai=a and Aj=b and Ak=c, and its errors.

Rastogi, Suciu and Hong (VLDB 2007) measure a release by all selections of up to three attributes
(Figures 2 and 3), not by a sample of them, so that no query is favoured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from voile.errors import UsageError

__all__ = ["MAX_QUERIES", "Selections", "cumulative_error", "selection_counts"]

Array = npt.NDArray[Any]

# Counts and domains take 16 bytes a query, so this is where a laptop's memory ends.
MAX_QUERIES = 200_000_000
"""More selections than this are refused: their counts would not fit into memory."""


@dataclass(frozen=True)
class Selections:
    """Every query's count: subset after subset, in C order of the values within a subset.

    `domain` is how many tuples of the whole domain product satisfy each query: the noise of an
    estimate grows with it.
    """

    subsets: tuple[tuple[int, ...], ...]
    counts: Array
    domain: npt.NDArray[np.float64]
    sizes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.counts)

    def locate(self, index: int) -> tuple[tuple[int, int], ...]:
        """The query at `index` as (attribute, value code) pairs, to name it."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        for subset in self.subsets:
            shape = tuple(self.sizes[i] for i in subset)
            if index < math.prod(shape):
                values = np.unravel_index(index, shape)
                return tuple((i, int(value)) for i, value in zip(subset, values, strict=True))
            index -= math.prod(shape)
        raise IndexError(index)


def selection_counts(
    codes: Sequence[Array],
    sizes: Sequence[int],
    order: int = 3,
    weights: Array | None = None,
) -> Selections:
    """Count every selection of 1 to `order` attributes; `weights` are per-row multiplicities.

    Counts are integers unless the weights are not, which lets a release's per-row estimates be
    summed by the same code that counts the truth.
    """
    sizes = tuple(int(size) for size in sizes)
    columns = _checked(codes, sizes, weights)
    if order < 1:
        raise UsageError(f"order must be at least 1, not {order}")
    subsets = tuple(
        subset
        for k in range(1, min(order, len(sizes)) + 1)
        for subset in combinations(range(len(sizes)), k)
    )
    cells = [math.prod(sizes[i] for i in subset) for subset in subsets]
    if sum(cells) > MAX_QUERIES:
        raise UsageError(
            f"{sum(cells):,} selection queries are more than {MAX_QUERIES:,}",
            hint="lower the order, or leave out the attributes with the largest domains",
        )
    counts = [_count(columns, sizes, subset, weights) for subset in subsets]
    # Python's integers: the product of many domains overflows int64 without a sound.
    satisfying = [float(math.prod(sizes) // cell) if cell else 0.0 for cell in cells]
    return Selections(
        subsets=subsets,
        counts=np.concatenate(counts) if counts else np.zeros(0, np.int64),
        domain=np.repeat(np.array(satisfying, np.float64), cells),
        sizes=sizes,
    )


def cumulative_error(
    truth: Array, estimate: Array, thresholds: Sequence[float]
) -> npt.NDArray[np.float64]:
    """Mean |estimate - truth| over the queries with truth >= threshold; NaN where there is none."""
    truth, estimate = np.asarray(truth), np.asarray(estimate)
    if truth.ndim != 1 or truth.shape != estimate.shape:
        raise UsageError(
            f"truth and estimate must be two lists of one length, not {truth.shape} and "
            f"{estimate.shape}"
        )
    rank = np.argsort(truth, kind="stable")
    error = np.abs(estimate[rank].astype(np.float64) - truth[rank].astype(np.float64))
    # Summed from the largest truth down, each threshold's mean is one look-up.
    above = np.append(np.cumsum(error[::-1])[::-1], 0.0)
    start = np.searchsorted(truth[rank], np.asarray(thresholds, np.float64), side="left")
    queries = len(truth) - start
    mean: npt.NDArray[np.float64] = np.full(len(start), np.nan)
    np.divide(above[start], queries, out=mean, where=queries > 0)
    return mean


def _checked(
    codes: Sequence[Array], sizes: tuple[int, ...], weights: Array | None
) -> list[npt.NDArray[np.int64]]:
    """The columns as int64; a code out of range would be counted silently under another query."""
    if len(codes) != len(sizes):
        raise UsageError(f"{len(codes)} columns but {len(sizes)} domain sizes")
    columns = []
    for i, (column, size) in enumerate(zip(codes, sizes, strict=True)):
        coded = np.asarray(column)
        if coded.ndim != 1 or (coded.size and not np.issubdtype(coded.dtype, np.integer)):
            raise UsageError(f"column {i} is not a list of integer codes")
        if coded.size and not (coded.min() >= 0 and coded.max() < size):
            raise UsageError(
                f"column {i} has codes from {coded.min()} to {coded.max()}, not in range({size})"
            )
        columns.append(coded.astype(np.int64, copy=False))
    lengths = {len(column) for column in columns}
    if weights is not None:
        lengths.add(len(weights))
    if len(lengths) > 1:
        raise UsageError(f"columns and weights differ in length: {sorted(lengths)}")
    return columns


def _count(
    columns: Sequence[npt.NDArray[np.int64]],
    sizes: tuple[int, ...],
    subset: tuple[int, ...],
    weights: Array | None,
) -> Array:
    key = columns[subset[0]]
    for i in subset[1:]:
        key = key * sizes[i] + columns[i]
    counts = np.bincount(key, weights, minlength=math.prod(sizes[i] for i in subset))
    # bincount sums weights as floats, which is exact for multiplicities that sum below 2**53.
    whole = weights is not None and np.issubdtype(np.asarray(weights).dtype, np.integer)
    return np.rint(counts).astype(np.int64) if whole else counts
