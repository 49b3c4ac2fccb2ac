"""Mondrian beside a slow one written from its definition, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.grouped import adult, frontier_oracle
from tests.support.random_units import (
    REQUIREMENTS,
    WAYS,
    check_partition,
    classes_of,
    feasible,
    halving,
    random_units,
    reference,
)
from tests.support.soak import rounds, some
from voile.errors import PromiseError, UsageError
from voile.kinds.evaluation import p_loss
from voile.privacy.requirements import K, L, Presence, Requirement, Semantic, T
from voile.recoding.free_shape import free_shape
from voile.recoding.grouping import shown
from voile.recoding.mondrian import Cuts, mondrian
from voile.recoding.units import Units

ORACLE: dict[str, list[float]] = frontier_oracle()["curves"]["R1 edunum"]
ORACLE_REQUIREMENT: dict[str, Callable[[float], Requirement]] = {
    "k": lambda bound: K(int(bound)), "l": L, "t": T, "d": Semantic,
}  # fmt: skip
# ---------------------------------------------------------------------- the oracle


@pytest.mark.parametrize("name", ORACLE)
def test_classes_and_losses_on_adult_are_the_oracles(name: str) -> None:
    units, _, _ = adult()
    kind, _, bound = name.partition(":")
    requirement = ORACLE_REQUIREMENT[kind](float(bound))
    grouping = mondrian(units, [requirement]).grouping
    classes, loss, *_ = ORACLE[name]
    assert grouping.number == classes
    assert p_loss(shown(units, grouping, "bucketize")) == pytest.approx(loss, abs=1e-6)
    assert requirement.met(grouping.histograms(units)).all()


def test_rows_that_are_alike_may_be_one_unit() -> None:
    units, _, _ = adult()
    stacked = np.vstack([units.codes, units.sensitive])
    unique, which, weights = np.unique(stacked, axis=1, return_inverse=True, return_counts=True)
    fewer = Units(
        np.ascontiguousarray(unique[:-1]), units.sizes, np.ascontiguousarray(unique[-1:]),
        units.sensitive_sizes, weights.astype(np.int64),
    )  # fmt: skip
    rows = mondrian(units, [K(10), T(0.2)])
    alike = mondrian(fewer, [K(10), T(0.2)])
    assert (alike.grouping.classes[which.ravel()] == rows.grouping.classes).all()
    assert (alike.grouping.low == rows.grouping.low).all()


# ---------------------------------------------------------------------- the definition


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=lambda of: of[-1].spelling)
def test_classes_are_those_of_the_definition(requirements: list[Requirement]) -> None:
    tried = 0
    for seed in range(40):
        units = random_units(seed, weighted=bool(seed % 2))
        if not feasible(units, requirements):
            continue
        tried += 1
        partition = mondrian(units, requirements)
        assert classes_of(partition) == reference(units, requirements)
        check_partition(units, partition)
    assert tried >= 5


def test_units_of_a_public_table_travel_with_the_regions() -> None:
    tried = cut = 0
    for seed in range(60):
        units = random_units(seed, weighted=True, public=True)
        requirements = [K(3), Presence(0.2, 0.8)]
        if not feasible(units, requirements):
            continue
        tried += 1
        partition = mondrian(units, requirements)
        assert classes_of(partition) == reference(units, requirements)
        check_partition(units, partition)
        cut += partition.grouping.number > 1
    assert tried > 20 and cut > 5


def test_units_without_rows_need_no_public_table() -> None:
    for seed in range(20):
        units = random_units(seed, weighted=True, public=True)
        without = Units(
            units.codes, units.sizes, units.sensitive, units.sensitive_sizes, units.weights
        )
        assert classes_of(mondrian(without, [K(3)])) == reference(without, [K(3)])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 2)), min_size=2),
    k=st.integers(1, 4),
    way=st.sampled_from(WAYS),
)
def test_any_table_is_partitioned(rows: list[tuple[int, int, int]], k: int, way: Cuts) -> None:
    table = np.array(rows, dtype=np.int32).T
    units = Units(
        np.ascontiguousarray(table[:2]), (6, 3), np.ascontiguousarray(table[2:]), (3,),
        np.ones(len(rows), dtype=np.int64),
    )  # fmt: skip
    if len(rows) < k:
        with pytest.raises(PromiseError, match=f"k = {k}"):
            mondrian(units, [K(k)], cuts=way)
        return
    partition = mondrian(units, [K(k)], cuts=way)
    check_partition(units, partition)
    assert np.bincount(partition.grouping.classes).min() >= k
    if way == "median":
        assert classes_of(partition) == reference(units, [K(k)])


@pytest.mark.parametrize("factor", some([8_000, 100_000], 1))
def test_wide_sparse_columns_are_cut_at_the_same_places(factor: int) -> None:
    """Positions that are far apart are sorted, not counted: the cuts must not change.

    Beyond 2¹⁶ positions they are also held in wider numbers.
    """
    for seed in range(rounds(2, 20)):
        units = random_units(seed, weighted=True)
        apart = Units(
            units.codes * factor, tuple((size - 1) * factor + 1 for size in units.sizes),
            units.sensitive, units.sensitive_sizes, units.weights,
        )  # fmt: skip
        for way in WAYS:
            near = mondrian(units, [K(4)], cuts=way).grouping
            far = mondrian(apart, [K(4)], cuts=way).grouping
            assert (near.classes == far.classes).all()
            assert (near.low * factor == far.low).all()


# ---------------------------------------------------------------------- what cannot be


@pytest.mark.parametrize(
    ("requirement", "has"),
    [(K(100), "60"), (L(3.0), "2"), (L(4, "distinct"), "3"), (T(0.0), None)],
)
def test_what_the_whole_table_does_not_have_is_refused(
    requirement: Requirement, has: str | None
) -> None:
    units = Units(
        np.zeros((1, 60), dtype=np.int32), (3,),
        np.array([[0] * 30 + [1] * 20 + [2] * 10], dtype=np.int32), (3,),
        np.ones(60, dtype=np.int64),
    )  # fmt: skip
    if has is None:
        assert mondrian(units, [requirement]).grouping.number == 1  # the whole is as the whole
        return
    with pytest.raises(PromiseError) as refused:
        mondrian(units, [requirement])
    assert requirement.spelling in refused.value.message and has in refused.value.message


def test_wrong_calls_are_refused() -> None:
    units = random_units(1, weighted=True)
    with pytest.raises(UsageError, match="several or none"):
        mondrian(units, [K(2)], relaxed=True)
    with pytest.raises(UsageError, match="several or none"):
        free_shape(units, [K(2)])
    levels = [halving(size) for size in units.sizes]
    with pytest.raises(UsageError, match="hierarchy cuts"):
        mondrian(units, [K(2)], cuts="information", levels=levels)
    rows = random_units(0)
    with pytest.raises(UsageError, match="halved"):
        mondrian(rows, [K(2)], relaxed=True, levels=[halving(size) for size in rows.sizes])
    nobody = Units(
        rows.codes[:, :0], rows.sizes, rows.sensitive[:, :0], rows.sensitive_sizes, rows.weights[:0]
    )
    with pytest.raises(PromiseError, match="no rows"):
        mondrian(nobody, [K(2)])
