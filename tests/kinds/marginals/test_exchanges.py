"""The worst exchange of a record, against all ways to change columns."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest

from tests.support.soak import rounds
from voile.kinds.marginals import exchanges
from voile.kinds.marginals.exchanges import worst_exchange
from voile.kinds.marginals.residuals import Columns, balanced, plan


def by_trying(sizes: tuple[int, ...], precisions: dict[Columns, float]) -> float:
    """The most over all ways to change columns of two values and more."""
    best = 0.0
    for changes in product(*((0, 1) if n > 1 else (0,) for n in sizes)):
        moved = 0.0
        for c, w in precisions.items():
            own = math.prod(1 - 1 / sizes[i] for i in c)
            moved += w * (own - math.prod(1 - 1 / sizes[i] - changes[i] for i in c))
        best = max(best, moved)
    return best


def random_case(seed: int) -> tuple[tuple[int, ...], dict[Columns, float]]:
    rng = np.random.default_rng(seed)
    number = int(rng.integers(3, 8))
    sizes = tuple(int(n) for n in rng.choice([1, 2, 2, 2, 3, 5], number))
    components = [
        c
        for k in (1, 2, 3)
        for c in combinations(range(number), k)
        if rng.random() < 0.7 and all(sizes[i] > 1 for i in c)
    ]
    return sizes, {c: float(np.exp(rng.normal())) for c in components}


@pytest.mark.parametrize("seed", range(rounds(12, 200)))
def test_few_columns_are_exact_and_many_are_bounded(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, precisions = random_case(seed)
    exact = by_trying(sizes, precisions)
    assert worst_exchange(sizes, precisions) == pytest.approx(exact)
    monkeypatch.setattr(exchanges, "MOST_SEARCHED", -1)
    bound = worst_exchange(sizes, precisions)
    assert exact <= bound <= 1.6 * exact + 1e-12


@pytest.mark.parametrize("sizes", [(2,) * 8, (2, 2, 2, 2, 3, 3, 3), (2, 3, 4, 5, 6, 7)])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_all_tables_of_an_order_are_exact_by_numbers_of_changes(
    sizes: tuple[int, ...], order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = list(combinations(range(len(sizes)), order))
    found = plan(sizes, balanced(sizes, tables), 1.0)
    precisions = {c: 1 / v for c, v in found.variances.items() if c}
    exact = by_trying(sizes, precisions)
    monkeypatch.setattr(exchanges, "MOST_SEARCHED", -1)
    assert worst_exchange(sizes, precisions) == pytest.approx(exact)
    assert found.exchange_rho == pytest.approx(exact)


@pytest.mark.parametrize("size", [2, 3, 10])
def test_a_hundred_columns_cost_about_twice_what_adding_costs(size: int) -> None:
    """Every exchange is a removal and an addition: at most 4 times; many columns come near to 2."""
    sizes = (size,) * 100
    found = plan(sizes, balanced(sizes, list(combinations(range(100), 2))), 1.0)
    without_total = found.rho - 1 / (2 * found.variances[()])
    assert 1.9 * without_total < found.exchange_rho < 2.3 * without_total


def test_nothing_changes_where_columns_have_one_value() -> None:
    assert worst_exchange((1, 1), {}) == 0.0
    assert worst_exchange((), {}) == 0.0
