"""The order, the private choice of pairs, and the weights of a workload."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from voile.arrays import Ints
from voile.kinds.marginals import choosing
from voile.kinds.marginals.choosing import (
    ChosenTables,
    MeasuringBudget,
    all_tables,
    choose,
    chosen_order,
    relative_error,
    workload_weights,
)
from voile.kinds.marginals.counting import CodeCounter
from voile.kinds.marginals.measuring import (
    Noise,
    Unit,
    gaussian_plan,
    noise_for,
    rho_for,
    whole_figures,
)
from voile.kinds.marginals.residuals import Columns, NoisyMarginals
from voile.noise import Key

DELTA = 1e-9
CASES: list[tuple[Noise, Unit]] = [
    ("gaussian", "add-remove"),
    ("gaussian", "exchange"),
    ("geometric", "add-remove"),
    ("geometric", "exchange"),
]


def a_budget(epsilon: float, noise: Noise = "gaussian", unit: Unit = "add-remove") -> Any:
    if noise == "geometric":
        return MeasuringBudget(noise, unit, epsilon, epsilon)
    chosen = rho_for(epsilon, DELTA, chosen=True)
    return MeasuringBudget(noise, unit, rho_for(epsilon, DELTA), chosen)


def coded(rows: int, columns: int, seed: int = 1) -> list[Ints]:
    """Columns of three values; 0 and 1, 2 and 3, 4 and 5 are nearly the same."""
    rng = np.random.default_rng(seed)
    found = [rng.integers(0, 3, rows) for _ in range(columns)]
    for i in (1, 3, 5):
        same = rng.random(rows) < 0.8
        found[i] = np.where(same, found[i - 1], found[i])
    return found


def counter(rows: int, columns: int) -> CodeCounter:
    return CodeCounter(coded(rows, columns), [3] * columns, rows)


def chosen_of(counted: CodeCounter, budget: Any, seed: int = 1) -> ChosenTables:
    stream = Key.from_seed(seed).stream("choose")
    return choose(counted.counts, counted.sizes, counted.rows, budget, stream)


def estimated(counted: CodeCounter, chosen: ChosenTables) -> NoisyMarginals:
    """The rest of the measurements, and what they say."""
    plan, start = chosen.plan, len(chosen.figures)
    noise = noise_for(plan, Key.from_seed(2).stream("rest"), start)
    rest = [
        whole_figures(plan, m, counted.counts(m.columns)) + z
        for m, z in zip(plan.measurements[start:], noise, strict=True)
    ]
    return plan.estimated([*chosen.figures, *rest], chosen.rows_figure)


# ---------------------------------------------------------------------- order


def test_the_order_grows_with_rows_and_budget() -> None:
    sizes = (5, 4, 3, 6, 2, 7, 3, 4)
    by_rows = [chosen_order(sizes, n, a_budget(1.0)) for n in (100, 1000, 4000, 10_000, 10**6)]
    assert by_rows == sorted(by_rows) and {by_rows[0], by_rows[-1]} == {1, 3} and 2 in by_rows
    by_budget = [chosen_order(sizes, 5000, a_budget(e)) for e in (0.01, 0.3, 1.0, 3.0, 50.0)]
    assert by_budget == sorted(by_budget) and {by_budget[0], by_budget[-1]} == {1, 3}


def test_the_order_is_where_counts_are_clear() -> None:
    sizes, budget = (5, 4, 3, 6, 2, 7, 3, 4), a_budget(1.0)
    for rows in (1000.0, 4000.0, 10_000.0):
        order = chosen_order(sizes, rows, budget)
        for higher in range(order + 1, 4):
            plan = choose(no_counts, sizes, 0, budget, Key.from_seed(1).stream("x"), order=higher)
            assert relative_error(plan.plan, higher, rows) > choosing.ENOUGH[higher]
        if order > 1:
            plan = choose(no_counts, sizes, 0, budget, Key.from_seed(1).stream("x"), order=order)
            assert relative_error(plan.plan, order, rows) <= choosing.ENOUGH[order]


def no_counts(columns: Columns) -> Ints:
    raise AssertionError(f"the counts of {columns} were looked at")


@pytest.mark.parametrize(("noise", "unit"), CASES)
@pytest.mark.parametrize("rows", [0, 1, 500, 40_000])
def test_few_columns_are_chosen_by_a_look_at_the_rows_alone(
    noise: Noise, unit: Unit, rows: int
) -> None:
    """All within the budget; where records are exchanged the number of rows is public."""
    budget = a_budget(1.0, noise, unit)
    found = choose(no_counts, (4, 3, 1, 5, 2), rows, budget, Key.from_seed(4).stream("look"))
    assert found.how == "all" and found.figures == ()
    assert (found.rows_figure is None) == (unit == "exchange")
    if found.rows_figure is not None:
        assert abs(found.rows_figure - rows) < (8 if noise == "gaussian" else 30) * (
            found.plan.rows_scale or 0
        )
    assert found.plan.epsilon_at(DELTA if noise == "gaussian" else 0.0) <= 1 + 1e-9
    again = choose(no_counts, (4, 3, 1, 5, 2), rows, budget, Key.from_seed(4).stream("look"))
    assert again.plan == found.plan and again.rows_figure == found.rows_figure


@pytest.mark.parametrize("sizes", [(), (1,), (1, 1, 1), (6,)])
def test_small_domains_have_order_1(sizes: tuple[int, ...]) -> None:
    found = choose(no_counts, sizes, 1000, a_budget(1.0), Key.from_seed(4).stream("look"))
    assert found.order == 1 and found.plan.epsilon_at(DELTA) <= 1


def test_large_tables_are_not_chosen() -> None:
    """Three columns of 2,000 values would have 8·10⁹ cells."""
    found = choose(
        no_counts, (2000, 2000, 2000), 10**9, a_budget(10.0), Key.from_seed(4).stream("look")
    )
    assert found.order == 2


def test_very_many_tables_are_not_chosen() -> None:
    """100 columns have 161,700 sets of three: too many to store, however many rows there are."""
    found = choose(no_counts, (2,) * 100, 10**9, a_budget(1.0), Key.from_seed(4).stream("look"))
    assert found.order == 2 and found.how == "all"


def test_the_quick_estimate_never_refuses_what_is_clear() -> None:
    for sizes in ((2,) * 6, (2, 3, 50, 4), (30, 30, 30), (5, 4, 3, 6, 2, 7, 3, 4)):
        budget = a_budget(1.0)
        make = choosing._Maker(sizes, budget, budget.whole, None, wide=False)
        for order in (2, 3):
            exact = relative_error(make.all(order), order, 1000.0)
            assert make._least_error(order, 1000.0) <= exact


# ---------------------------------------------------------------------- many columns


@pytest.mark.parametrize(("noise", "unit"), CASES)
def test_pairs_that_depend_are_chosen_within_the_budget(noise: Noise, unit: Unit) -> None:
    """26 columns, 325 pairs: the three that depend are among those that are chosen."""
    counted = counter(4000 if noise == "gaussian" else 20_000, 26)
    budget = a_budget(1.0 if unit == "add-remove" else 1.2, noise, unit)
    found = chosen_of(counted, budget)
    pairs = {c for c in found.plan.residual_plan().variances if len(c) == 2}
    assert found.how == "selected" and found.order == 2
    assert {(0, 1), (2, 3), (4, 5)} <= pairs and len(pairs) < 325
    if noise == "gaussian":
        assert found.plan.rho <= budget.with_choice
        assert found.plan.rho == pytest.approx(budget.with_choice, rel=0.02)
        assert found.plan.selection_rho == pytest.approx(0.1 * budget.with_choice)
        assert found.plan.mu is None
    else:
        assert found.plan.pure_epsilon == pytest.approx(budget.whole)
        assert found.plan.selection_epsilon == pytest.approx(0.1 * budget.whole)
    noisy = estimated(counted, found)
    for s in [(0, 1), (7,)]:
        off = noisy.table(s) - counted.counts(s)
        assert np.abs(off).max() < 6 * noisy.cell_variance(s) ** 0.5


def test_the_choice_repeats_from_a_key() -> None:
    counted, budget = counter(3000, 22), a_budget(1.2)
    one, two = (chosen_of(counted, budget) for _ in "ab")
    assert one.plan == two.plan
    assert all(np.array_equal(a, b) for a, b in zip(one.figures, two.figures, strict=True))
    assert chosen_of(counted, budget, seed=2).plan != one.plan


@pytest.mark.parametrize("unit", ["add-remove", "exchange"])
def test_a_record_changes_scores_by_no_more_than_is_accounted_for(unit: Unit) -> None:
    rows, columns = 60, 20
    codes = coded(rows, columns)
    budget = a_budget(1.0, "gaussian", unit)
    make = choosing._Maker((3,) * columns, budget, budget.whole, None, wide=True)
    pairs = list(combinations(range(columns), 2))
    expected = [np.array([21.3, 20.1, 17.9]) for _ in range(columns)]

    def scores(some: list[Ints]) -> Ints:
        counts = CodeCounter(some, [3] * columns, len(some[0])).counts
        chooser = choosing._Chooser(make, counts, 60.0, Key.from_seed(1).stream("x"), Watched())
        return chooser._scores(pairs, expected, 10)

    base, most = scores(codes), 0
    for row in range(0, rows, 6):
        if unit == "add-remove":
            other = [np.delete(c, row) for c in codes]
        else:
            other = [np.where(np.arange(rows) == row, (c + 1) % 3, c) for c in codes]
        most = max(most, int(np.abs(scores(other) - base).max()))
    assert most == (1 if unit == "add-remove" else 2)


class Watched:
    """Progress that counts."""

    def __init__(self) -> None:
        self.total, self.done = 0, 0

    def start(self, what: str, total: int) -> None:
        assert what == "choosing tables"
        self.total += total

    def advance(self, count: int) -> None:
        self.done += count


def test_choosing_says_how_far_it_is() -> None:
    counted, watched = counter(3000, 22), Watched()
    stream = Key.from_seed(1).stream("choose")
    choose(counted.counts, counted.sizes, 3000, a_budget(1.2), stream, progress=watched)
    assert watched.total == watched.done == 22 * 21 // 2


def test_many_rows_need_no_choice_but_keep_its_account() -> None:
    """Whether anything is chosen depends on the rows, so that one account covers both."""
    budget = a_budget(1.0)
    stream = Key.from_seed(1).stream("look")
    found = choose(no_counts, (3,) * 24, 10**6, budget, stream)
    assert found.how == "all" and found.order >= 2
    assert found.plan.mu is None and 0 < found.plan.selection_rho < 1e-4 * budget.whole
    assert found.plan.rho <= budget.with_choice


def test_few_rows_of_many_columns_have_order_1() -> None:
    stream = Key.from_seed(1).stream("look")
    found = choose(no_counts, (3,) * 30, 50, a_budget(0.1), stream)
    assert found.how == "all" and found.order == 1


def test_a_hundred_columns() -> None:
    counted = counter(30_000, 100)
    found = chosen_of(counted, a_budget(0.5))
    assert found.how == "selected"
    assert {(0, 1), (2, 3), (4, 5)} <= {m.columns for m in found.plan.measurements}
    assert found.plan.epsilon_at(DELTA) <= 0.5


# ---------------------------------------------------------------------- workloads and counts


def test_what_a_workload_asks_for_gets_less_noise() -> None:
    sizes = (5, 4, 3, 6)
    weights = workload_weights(sizes, {(0, 1): 3.0, (1, 2, 3): 1.0})
    plan = gaussian_plan(sizes, weights, rho=0.5, unit="add-remove").residual_plan()
    all_pairs = choose(
        no_counts, sizes, 0, MeasuringBudget("gaussian", "add-remove", 0.5, 0.5),
        Key.from_seed(1).stream("x"), order=3,
    ).plan.residual_plan()  # fmt: skip
    assert plan.cell_variance((0, 1)) < 0.6 * all_pairs.cell_variance((0, 1))
    assert set(plan.variances) >= {(0,), (3,), (1, 2, 3)} and (0, 2) not in plan.variances
    other = gaussian_plan(
        sizes, workload_weights(sizes, {(0, 1): 1.0, (1, 2, 3): 3.0}), rho=0.5, unit="add-remove"
    ).residual_plan()
    assert other.cell_variance((1, 2, 3)) < plan.cell_variance((1, 2, 3))
    assert workload_weights(sizes, {}).keys() == {(0,), (1,), (2,), (3,)}


def test_counts_are_those_of_the_rows() -> None:
    codes = coded(500, 6)
    counted = CodeCounter(codes, [3] * 6, 500)
    for s in [(), *all_tables(6, 3), (0, 1, 2, 5)]:
        wanted = np.zeros([3] * len(s), dtype=np.int64)
        np.add.at(wanted, tuple(codes[i] for i in s), 1 if s else 500)
        assert np.array_equal(counted.counts(s), wanted)
    empty = CodeCounter([np.zeros(0, np.int64)] * 2, [3, 2], 0)
    assert empty.counts((0, 1)).tolist() == [[0, 0], [0, 0], [0, 0]]
    with pytest.raises(ValueError, match="column of 2 values"):
        CodeCounter([np.array([0, 2])], [2], 2)
