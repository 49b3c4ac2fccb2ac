"""The workload's counts against counting by hand, one row and one query at a time."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voile.errors import UsageError
from voile.evaluate import workload
from voile.evaluate.workload import cumulative_error, selection_counts

ADULT = (72, 7, 16, 7, 5, 2, 41, 14, 2)

Table = tuple[list[tuple[int, ...]], list[int], list[int]]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    rows = draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), max_size=20))
    weights = draw(st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows)))
    return rows, sizes, weights


def columns(rows: list[tuple[int, ...]], width: int) -> list[npt.NDArray[np.int64]]:
    return [np.array([row[i] for row in rows], np.int64) for i in range(width)]


def by_hand(
    rows: list[tuple[int, ...]], sizes: list[int], order: int, weights: list[int]
) -> list[tuple[tuple[tuple[int, int], ...], int, int]]:
    """Each query as (what it selects, its count, the domain's tuples that satisfy it)."""
    domain = list(itertools.product(*(range(size) for size in sizes)))
    queries = []
    for k in range(1, min(order, len(sizes)) + 1):
        for subset in itertools.combinations(range(len(sizes)), k):
            for values in itertools.product(*(range(sizes[i]) for i in subset)):
                wanted = tuple(zip(subset, values, strict=True))
                hits = [all(row[i] == v for i, v in wanted) for row in rows]
                count = sum(w for w, hit in zip(weights, hits, strict=True) if hit)
                tuples = sum(all(row[i] == v for i, v in wanted) for row in domain)
                queries.append((wanted, count, tuples))
    return queries


@given(tables(), st.integers(1, 4))
def test_counts_are_those_counted_by_hand(table: Table, order: int) -> None:
    rows, sizes, _ = table
    found = selection_counts(columns(rows, len(sizes)), sizes, order)
    expected = by_hand(rows, sizes, order, [1] * len(rows))
    assert [found.locate(i) for i in range(len(found))] == [query for query, _, _ in expected]
    assert found.counts.tolist() == [count for _, count, _ in expected]
    assert found.domain.tolist() == [tuples for _, _, tuples in expected]
    assert found.counts.dtype == np.int64


@given(tables())
def test_weights_are_multiplicities(table: Table) -> None:
    rows, sizes, weights = table
    coded = columns(rows, len(sizes))
    found = selection_counts(coded, sizes, 3, np.array(weights, np.int64))
    assert found.counts.tolist() == [count for _, count, _ in by_hand(rows, sizes, 3, weights)]
    assert found.counts.dtype == np.int64
    repeated = selection_counts([np.repeat(column, weights) for column in coded], sizes, 3)
    assert np.array_equal(found.counts, repeated.counts)


def test_weights_may_be_negative_or_fractions() -> None:
    found = selection_counts([np.array([0, 0, 1])], [3], 1, np.array([0.5, -2.0, 4.0]))
    assert found.counts.tolist() == [-1.5, 4.0, 0.0]


def test_adult_has_the_papers_number_of_queries() -> None:
    rng = np.random.default_rng(7)
    coded = [rng.integers(0, size, 1000) for size in ADULT]
    found = selection_counts(coded, ADULT)
    per_order = [
        sum(math.prod(ADULT[i] for i in s) for s in found.subsets if len(s) == k) for k in (1, 2, 3)
    ]
    assert per_order == [166, 10_054, 294_144]
    assert len(found.counts) == len(found.domain) == sum(per_order) == 304_364
    # Within every subset each row satisfies exactly one query.
    assert found.counts.sum() == 1000 * len(found.subsets)
    assert found.domain[0] == math.prod(ADULT) // 72
    assert found.locate(304_363) == ((6, 40), (7, 13), (8, 1))


def test_small_codes_do_not_overflow() -> None:
    column = np.array([199, 3], np.uint8)
    found = selection_counts([column, column, column], [200, 200, 200], 3)
    assert found.counts[-1] == 1
    assert found.counts.sum() == 14


def test_domain_survives_products_beyond_int64() -> None:
    found = selection_counts([np.zeros(1, np.int64)] * 70, [2] * 70, 1)
    assert found.domain[0] == 2.0**69


@pytest.mark.parametrize(
    ("codes", "sizes", "order", "weights"),
    [
        ([[0, 3]], [3], 1, None),
        ([[0, -1]], [3], 1, None),
        ([[0.5, 1.0]], [3], 1, None),
        ([[0, 1], [0]], [2, 2], 1, None),
        ([[0, 1]], [2], 1, [1]),
        ([[0, 1]], [2, 2], 1, None),
        ([[0, 1]], [2], 0, None),
    ],
)
def test_what_cannot_be_counted_is_refused(
    codes: Any, sizes: list[int], order: int, weights: Any
) -> None:
    wrapped = None if weights is None else np.array(weights)
    with pytest.raises(UsageError):
        selection_counts([np.array(column) for column in codes], sizes, order, wrapped)


def test_too_many_queries_are_refused_before_memory_is_taken() -> None:
    size = workload.MAX_QUERIES
    with pytest.raises(UsageError, match="selection queries"):
        selection_counts([np.zeros(1, np.int64)] * 2, [size, size], 2)


def test_locate_refuses_what_is_not_there() -> None:
    found = selection_counts([np.array([0, 1])], [2], 1)
    for index in (-1, 2):
        with pytest.raises(IndexError):
            found.locate(index)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(-50, 99)), max_size=30),
    st.lists(st.integers(0, 60), max_size=8),
)
def test_cumulative_error_is_the_mean_above_each_threshold(
    pairs: list[tuple[int, int]], thresholds: list[int]
) -> None:
    truth = np.array([t for t, _ in pairs], np.int64)
    estimate = np.array([e for _, e in pairs], np.int64)
    found = cumulative_error(truth, estimate, thresholds)
    for threshold, mean in zip(thresholds, found, strict=True):
        errors = [abs(e - t) for t, e in pairs if t >= threshold]
        assert math.isnan(mean) if not errors else mean == pytest.approx(np.mean(errors))


def test_cumulative_error_refuses_lists_of_different_length() -> None:
    with pytest.raises(UsageError):
        cumulative_error(np.zeros(3), np.zeros(4), [0])
