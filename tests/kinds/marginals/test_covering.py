"""Larger tables that stand for several: what is wanted is covered, at no higher cost."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from voile.kinds.marginals import covering as module
from voile.kinds.marginals.covering import MOST_CELLS, MOST_COLUMNS, covering
from voile.kinds.marginals.measuring import maximal, pure_plan
from voile.kinds.marginals.residuals import Columns, balanced, component_weights, subsets

SIZES = [(2,) * 8, (3,) * 7, (5, 4, 3, 2, 6, 2, 9, 2), (40, 2, 30, 2, 3), (12, 16, 20), (2, 1, 3)]


def weights_of(sizes: tuple[int, ...], order: int) -> dict[Columns, float]:
    tables = [s for k in range(1, order + 1) for s in combinations(range(len(sizes)), k)]
    return balanced(sizes, tables)


def cost(sizes: tuple[int, ...], weights: dict[Columns, float], tables: list[Columns]) -> float:
    """T²·Σ v_c/G_c, by its definition."""
    total = 0.0
    for c, value in component_weights(sizes, weights).items():
        if all(sizes[i] > 1 for i in c):
            parts = [
                1 / math.prod(sizes[i] for i in s if i not in c) for s in tables if set(c) <= set(s)
            ]
            total += value / math.fsum(parts)
    return len(tables) ** 2 * total


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_every_table_is_covered_at_no_higher_cost(sizes: tuple[int, ...], order: int) -> None:
    weights = weights_of(sizes, order)
    wanted = maximal(sizes, weights)
    found = covering(sizes, weights, wanted)
    assert all(any(set(s) <= set(t) for t in found) for s in wanted)
    assert len(found) == len(set(found)) <= len(wanted)
    assert cost(sizes, weights, found) <= cost(sizes, weights, wanted) * (1 + 1e-9)
    for table in set(found) - set(wanted):
        assert len(table) <= MOST_COLUMNS
        assert math.prod(sizes[i] for i in table) <= MOST_CELLS
    assert covering(sizes, weights, wanted) == found


def test_columns_of_few_values_gain_much() -> None:
    """Ten columns of two values: less than a fifth of the variance, as a plan has it."""
    sizes = (2,) * 10
    weights = weights_of(sizes, 3)
    wanted = maximal(sizes, weights)
    found = pure_plan(sizes, weights, epsilon=1.0, unit="add-remove").residual_plan()
    each = 2 * len(wanted) ** 2  # equal rates, wide noise: a table's own; others help a little
    assert found.cell_variance((0, 1, 2)) < each / 5


def test_the_cost_is_kept_as_tables_are_replaced() -> None:
    sizes = (5, 4, 3, 2, 6, 2, 9, 2)
    weights = weights_of(sizes, 3)
    values = component_weights(sizes, weights)
    found = module._Merging(sizes, values, maximal(sizes, weights)).merged()
    assert found.cost == pytest.approx(cost(sizes, weights, sorted(found.tables)))


def test_every_component_that_is_wanted_is_measured() -> None:
    for sizes in SIZES:
        weights = weights_of(sizes, 3)
        plan = pure_plan(sizes, weights, epsilon=1.0, unit="exchange").residual_plan()
        for s in maximal(sizes, weights):
            assert all(c in plan.variances for c in subsets(s))


def test_very_many_tables_stay_as_they_are() -> None:
    sizes = (3,) * 60
    weights = weights_of(sizes, 2)
    wanted = maximal(sizes, weights)
    assert covering(sizes, weights, wanted) == wanted
