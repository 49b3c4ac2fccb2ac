"""A model with honest error bars: coverage on simulated and shipped tables, and odd tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.kinds.marginals.noisy_tables import (
    marginal,
    measured,
    planned,
    related_columns,
    tables_up_to,
)
from tests.support.soak import rounds
from voile.answering.count_law import whole_interval
from voile.arrays import Floats, Ints
from voile.engines import connect
from voile.kinds.domain import choose_schema
from voile.kinds.marginals.errors import drawn_selections
from voile.kinds.marginals.mixture import ProductMixture
from voile.kinds.marginals.modelling import (
    Model,
    distance,
    independent_share,
    model_of,
    reduced,
    some_tables,
    tried,
)
from voile.kinds.marginals.residuals import NoisyMarginals

EDGES = [0.5, 5.5, 20.5, 100.5, 500.5, 2000.5]
"""Between classes of true counts."""


def covered(
    codes: Sequence[Ints], noisy: NoisyMarginals, model: Model, narrowed: float = 1.0
) -> tuple[Floats, Floats]:
    """By class of true counts: how many cells and selections are covered, of how many."""
    sizes, rng = noisy.plan.sizes, np.random.default_rng(11)
    hit, all_of = np.zeros(7), np.zeros(7)
    for c in noisy.plan.components:
        if not c:
            continue
        x, y, m = marginal(codes, sizes, c), noisy.table(c), model.mixture.table(c)
        some = drawn_selections(sizes, c, 10, rng)
        cell = np.full(x.size, noisy.cell_variance(c))
        for truth, unbiased, counts, variance in (
            (x.ravel(), y.ravel(), m.ravel(), cell),
            (some.of(x), some.of(y), some.of(m), some.variances(noisy.plan)),
        ):
            estimate, error = model.law.weighed(unbiased, counts, variance)
            low, high = whole_interval(estimate, error * narrowed**2)
            inside = (truth >= low - 1e-6) & (truth <= high + 1e-6)
            place = np.digitize(truth, EDGES)
            hit += np.bincount(place, inside, minlength=7)
            all_of += np.bincount(place, minlength=7)
    return hit, all_of


def shipped(columns: Sequence[str]) -> tuple[list[Ints], list[int]]:
    """Codes of some columns of Adult."""
    table = connect("dataset:adult/boundary")
    schema, _ = choose_schema(table, list(columns), None, "error")
    codes, _ = table.columns_of_codes(schema, drop_nulls=False)
    return [np.asarray(c, np.int64) for c in codes], [a.size for a in schema]


@pytest.mark.parametrize("which", ["simulated", "adult"])
def test_intervals_cover_in_every_class_of_counts(which: str) -> None:
    # Cells of a release share their noise and the estimate of its error: in one release of ten
    # a class is covered to 87 %, in the others to 95 to 100 %. 92 % is the limit for the sum over
    # releases, and bars of a third the width fail it in every class that is asked.
    releases = rounds(4 if which == "adult" else 2, 12)
    if which == "adult":
        codes, sizes = shipped(
            ["workclass", "education", "marital_status", "race", "sex", "salary"]
        )
    else:
        sizes = [8, 5, 4, 6, 3]
        codes = related_columns(20_000, sizes, 1)
    hit, all_of, narrow = np.zeros(7), np.zeros(7), np.zeros(7)
    for seed in range(releases):
        noisy = measured(codes, planned(sizes, 3, 0.1), 50 + seed)
        model = model_of(noisy, seed=seed)
        found, number = covered(codes, noisy, model)
        hit, all_of = hit + found, all_of + number
        narrow += covered(codes, noisy, model, narrowed=1 / 3)[0]
    asked = all_of > 200
    asked[0] = False  # counts of 0 are covered by every interval that begins there
    assert asked.sum() >= 5
    assert (hit[asked] / all_of[asked] > 0.92).all()
    assert (narrow[asked][1:] / all_of[asked][1:] < 0.92).all()


def test_the_weighed_answers_are_better_than_either() -> None:
    sizes = [8, 5, 4, 6, 3]
    codes = related_columns(20_000, sizes, 1)
    noisy = measured(codes, planned(sizes, 3, 0.01), 9)
    model = model_of(noisy, seed=1)
    unbiased = alone = both = 0.0
    for c in tables_up_to(5, 3):
        x, y = marginal(codes, sizes, c), noisy.table(c)
        variance = np.full(x.shape, noisy.cell_variance(c))
        estimate, _ = model.law.weighed(y, model.mixture.table(c), variance)
        unbiased += float(((y - x) ** 2).sum())
        alone += float(((model.mixture.table(c) - x) ** 2).sum())
        both += float(((estimate - x) ** 2).sum())
    assert both < unbiased
    assert both < 1.05 * alone


def test_questions_beyond_the_measured_tables_are_covered() -> None:
    sizes = [8, 5, 4, 6, 3]
    codes = related_columns(20_000, sizes, 1)
    inside = number = 0
    rng = np.random.default_rng(4)
    for seed in range(rounds(2, 12)):
        noisy = measured(codes, planned(sizes, 2, 0.1), 70 + seed)
        model = model_of(noisy, seed=seed)
        for c in [(0, 1, 2), (1, 2, 3), (0, 3, 4), (0, 1, 2, 3), (1, 2, 3, 4)]:
            some = drawn_selections(sizes, c, 40, rng)
            truth, m = some.of(marginal(codes, sizes, c)), some.of(model.mixture.table(c))
            low, high = whole_interval(m, model.law.beyond(m, len(c)))
            inside += int(((truth >= low - 1e-6) & (truth <= high + 1e-6)).sum())
            number += len(truth)
    assert inside / number > 0.93


def test_the_same_seed_makes_the_same_model() -> None:
    noisy = measured(related_columns(500, [4, 3, 2], 1), planned([4, 3, 2], 2, 0.5), 2)
    one, same, other = (model_of(noisy, seed=seed) for seed in (1, 1, 2))
    assert one.law == same.law
    assert np.array_equal(one.mixture.table((0, 1, 2)), same.mixture.table((0, 1, 2)))
    assert not np.array_equal(one.mixture.table((0, 1, 2)), other.mixture.table((0, 1, 2)))


@pytest.mark.parametrize(
    ("rows", "sizes", "order", "rho"),
    [
        (0, [3, 4, 5], 3, 0.1),
        (1, [3, 4, 5], 3, 0.1),
        (50, [3, 4, 5], 3, 1e-6),
        (500, [3, 4, 5], 3, 300.0),
        (500, [7], 1, 0.1),
        (500, [1], 1, 0.1),
        (500, [1, 4, 3], 2, 0.1),
        (500, [3, 4], 1, 0.1),
    ],
)
def test_odd_tables_have_a_model_with_finite_bars(
    rows: int, sizes: list[int], order: int, rho: float
) -> None:
    codes = related_columns(rows, sizes, 1)
    noisy = measured(codes, planned(sizes, order, rho), 3)
    model = model_of(noisy, seed=1)
    assert model.mixture.weights.sum() == pytest.approx(1)
    hit, all_of = covered(codes, noisy, model)
    assert hit.sum() >= 0.8 * all_of.sum()  # one release, whose few cells share their noise
    for number in (2, 4):
        assert np.isfinite(model.law.beyond(np.array([0.0, 0.3, 10.0, 1e5]), number)).all()


def test_geometric_noise_is_not_taken_for_a_wrong_model() -> None:
    noisy = measured(related_columns(500, [4, 3, 2], 1), planned([4, 3, 2], 2, 0.5), 2)
    one, other = model_of(noisy, seed=1), model_of(noisy, noise="geometric", seed=1)
    assert replace(one.law, far=other.law.far) == other.law
    assert other.law.far > one.law.far


def test_independent_columns_are_found_to_be_independent() -> None:
    rng = np.random.default_rng(1)
    sizes = [6, 5, 4]
    codes = [rng.integers(0, n, 300) for n in sizes]
    noisy = measured(codes, planned(sizes, 3, 0.01), 2)
    model = model_of(noisy, seed=1)
    product = ProductMixture(
        model.mixture.rows,
        np.ones(1),
        tuple((model.mixture.weights @ part)[None] for part in model.mixture.parts),
    )
    far = np.abs(model.mixture.table((0, 1)) - product.table((0, 1))).sum()
    assert far < 0.5 * np.abs(noisy.table((0, 1)) - product.table((0, 1))).sum()
    assert independent_share(product, noisy) == 0
    assert distance(product, noisy) < math.inf


def test_components_can_be_left_out() -> None:
    noisy = measured(related_columns(500, [4, 3, 2], 1), planned([4, 3, 2], 2, 0.5), 2)
    less = reduced(noisy, [(0, 1)])
    assert set(less.residuals) == set(noisy.residuals) - {(0, 1)} == set(less.plan.variances)
    assert some_tables(noisy, np.random.default_rng(1)) == tables_up_to(3, 2)


def test_work_is_bounded_where_cells_are_many() -> None:
    sizes = [10] * 60
    chosen = planned(sizes, 2, 0.5)
    residuals = {c: np.zeros([sizes[i] for i in c]) for c in chosen.components}
    wide, narrow = (
        NoisyMarginals(chosen, residuals),
        measured(related_columns(500, [4, 3], 1), planned([4, 3], 2, 0.5), 2),
    )
    assert tried(wide)[-1].products < tried(narrow)[-1].products
    assert tried(wide)[0].products == tried(narrow)[0].products
    assert isinstance(model_of(narrow, seed=1), Model)
