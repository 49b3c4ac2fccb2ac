"""Anatomy's buckets by brute force, what it refuses, and which row goes where."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.support.sampling import assert_fits, fits
from voile.errors import PromiseError, UsageError
from voile.noise import Key
from voile.privacy.requirements import K, L, Requirement, Semantic, T
from voile.recoding.anatomy import anatomy, deal
from voile.recoding.grouping import joined, trivial
from voile.recoding.units import Units


def rows_of(values: list[int], size: int) -> Units:
    """Rows with these sensitive values; the one quasi-identifier is the row's number."""
    number = len(values)
    return Units(
        np.arange(number, dtype=np.int32)[None, :], (number,),
        np.array([values], dtype=np.int32), (size,), np.ones(number, dtype=np.int64),
    )  # fmt: skip


def slow_deal(counts: list[int], l: int) -> list[Counter[int]]:  # noqa: E741
    """How many of each value are left after each bucket, from the paper's words."""
    left, out = dict(enumerate(counts)), []
    while sum(count > 0 for count in left.values()) >= l:
        for value in sorted(left, key=lambda value: -left[value])[:l]:
            left[value] -= 1
        out.append(Counter(left.values()))
    return out


def test_buckets_hold_different_values_on_random_tables() -> None:
    draw = np.random.default_rng(7)
    tried = residues = 0
    for seed in range(300):
        l, size = int(draw.integers(1, 6)), int(draw.integers(1, 9))  # noqa: E741
        values = draw.integers(0, size, int(draw.integers(1, 40))).tolist()
        units = rows_of(values, size)
        stream = Key.from_seed(seed).stream("anatomy")
        if max(Counter(values).values()) * l > len(values):
            with pytest.raises(PromiseError, match=f"ℓ = {l} is more than the table has"):
                anatomy(units, l, stream)
            continue
        tried += 1
        grouping = anatomy(units, l, stream)
        assert grouping.number == len(values) // l
        buckets = [
            [values[i] for i in np.flatnonzero(grouping.classes == b)]
            for b in range(grouping.number)
        ]
        assert sum(map(len, buckets)) == len(values)
        assert all(l <= len(bucket) == len(set(bucket)) < 2 * l for bucket in buckets)
        assert L(l).met(grouping.histograms(units)).all()
        residues += any(len(bucket) > l for bucket in buckets)
    assert tried > 100 and residues > 30


def test_the_most_frequent_values_go_first() -> None:
    draw = np.random.default_rng(8)
    for _ in range(100):
        counts = draw.integers(0, 8, int(draw.integers(1, 8)))
        l = int(draw.integers(1, 5))  # noqa: E741
        buckets, number = deal(counts, l)
        of_row = np.repeat(np.arange(len(counts)), counts)
        slow = slow_deal(counts.tolist(), l)
        assert number == len(slow)
        for bucket, expected in enumerate(slow):
            left = [
                int(np.count_nonzero((of_row == v) & ((buckets > bucket) | (buckets < 0))))
                for v in range(len(counts))
            ]
            assert Counter(left) == expected


def test_which_row_of_a_value_goes_where_is_uniform() -> None:
    """Four rows of one value and four of another, ℓ = 2: the partner of row 0 is any of four."""
    units = rows_of([0, 0, 0, 0, 1, 1, 1, 1], 2)
    partners = np.zeros(4, dtype=np.int64)
    for seed in range(2000):
        classes = anatomy(units, 2, Key.from_seed(seed).stream("anatomy")).classes
        partners[int(np.flatnonzero(classes[4:] == classes[0])[0])] += 1
    assert_fits(partners, np.full(4, 0.25))
    assert not fits(partners, np.array([0.3, 0.25, 0.25, 0.2]))


@pytest.mark.parametrize(
    "requirements",
    [[K(7)], [T(0.1)], [L(2.5, "entropy")], [K(5), T(0.2)], [Semantic(1.0, "ignored")]],
    ids=lambda of: of[-1].spelling,
)
def test_buckets_that_fail_are_joined(requirements: list[Requirement]) -> None:
    draw = np.random.default_rng(9)
    for seed in range(20):
        values = draw.choice(5, 120, p=[0.3, 0.25, 0.2, 0.15, 0.1]).tolist()
        units = rows_of(values, 5)
        stream = Key.from_seed(seed).stream("anatomy")
        grouping = anatomy(units, 2, stream, requirements=requirements)
        histograms = grouping.histograms(units)
        assert histograms.rows.sum() == 120 and (histograms.rows > 0).all()
        assert all(r.met(histograms).all() for r in [L(2), *requirements])


def test_joining_leaves_what_is_met_alone() -> None:
    units = rows_of([0, 1, 0, 1, 0, 1, 0], 2)
    classes = np.array([0, 0, 1, 1, 2, 2, 3], dtype=np.int32)
    same, number = joined(units, classes, 4, [])
    assert number == 4 and (same == classes).all()
    found, number = joined(units, classes, 4, [K(2)])
    assert number == 3 and found.tolist() == [0, 0, 1, 1, 2, 2, 0]


def test_one_class_of_all_tells_nothing_else() -> None:
    units = rows_of([0, 1, 1], 2)
    grouping = trivial(units, [K(3)])
    assert grouping.number == 1
    assert (grouping.low.tolist(), grouping.high.tolist()) == ([[0]], [[2]])
    with pytest.raises(PromiseError, match="k = 4 is more than the whole table has: 3"):
        trivial(units, [K(4)])


def test_refusals_name_the_value() -> None:
    units, stream = rows_of([0, 1, 1, 1], 2), Key.from_seed(1).stream("anatomy")
    with pytest.raises(PromiseError, match=r"value 'Sales' .* has 3 of 4 rows") as refused:
        anatomy(units, 2, stream, labels=["Tech", "Sales"])
    assert refused.value.hint == "ask for ℓ ≤ 1"
    with pytest.raises(UsageError, match=r"ℓ = 2\.5 is no whole number") as fractional:
        anatomy(units, 2.5, stream)
    assert "ℓ = 3" in fractional.value.hint
    with pytest.raises(UsageError, match="whole number from 1"):
        anatomy(units, 0, stream)
    heavy = Units(
        units.codes, units.sizes, units.sensitive, units.sensitive_sizes, 2 * units.weights
    )
    with pytest.raises(UsageError, match="one by one"):
        anatomy(heavy, 1, stream)
    with pytest.raises(PromiseError, match="k = 9"):
        anatomy(units, 1, stream, requirements=[K(9)])
