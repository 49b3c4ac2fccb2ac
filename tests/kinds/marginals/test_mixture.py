"""The mixture of products: marginals by brute force, slopes by differences, rows from a seed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tests.kinds.marginals.noisy_tables import (
    marginal,
    measured,
    planned,
    related_columns,
    tables_up_to,
)
from tests.support.sampling import assert_fits, fits
from voile.arrays import Floats
from voile.kinds.marginals.mixture import MixtureFit, ProductMixture, fit, rows_of, shrunk, together
from voile.kinds.marginals.residuals import balanced, centred, plan

SIZES = (5, 3, 2, 4)


def some_mixture(products: int = 3, seed: int = 1) -> ProductMixture:
    rng = np.random.default_rng(seed)
    parts = tuple(rng.dirichlet(np.ones(n), products) for n in SIZES)
    return ProductMixture(1000.0, rng.dirichlet(np.ones(products)), parts)


def whole_table(mixture: ProductMixture) -> Floats:
    """Every tuple, one product at a time."""
    total = np.zeros(SIZES)
    for k, weight in enumerate(mixture.weights):
        product = np.array(weight * mixture.rows)
        for part in mixture.parts:
            product = np.multiply.outer(product, part[k])
        total += product
    return total


@pytest.mark.parametrize("columns", [c for k in range(5) for c in combinations(range(4), k)])
def test_marginals_are_sums_of_the_whole_table(columns: tuple[int, ...]) -> None:
    mixture = some_mixture()
    rest = tuple(i for i in range(4) if i not in columns)
    expected = whole_table(mixture).sum(axis=rest)
    assert np.allclose(mixture.table(columns), expected)
    assert np.allclose(mixture.component(columns), centred(expected))


def test_totals_over_classes_of_values() -> None:
    mixture = some_mixture()
    classes = np.array([0, 1, 1, 0, 2]), np.array([1, 0, 1])
    weights = np.random.default_rng(2).random((2, 3, 2))
    shares = [mixture.class_shares(i, c) for i, c in zip((0, 1), classes, strict=True)]
    found = mixture.totals((0, 1), shares, weights)
    spread = weights[:, classes[0]][:, :, classes[1]]
    assert np.allclose(found, (spread * mixture.table((0, 1))).sum(axis=(1, 2)))


def test_an_average_and_a_share_of_independent_columns() -> None:
    one, other = some_mixture(3, 1), some_mixture(2, 5)
    both = together([one, other])
    assert np.allclose(both.table((0, 3)), (one.table((0, 3)) + other.table((0, 3))) / 2)
    less = shrunk(one, 0.25)
    product = np.multiply.outer(one.table((0,)), one.table((3,))) / one.rows
    assert np.allclose(less.table((0, 3)), 0.75 * one.table((0, 3)) + 0.25 * product)
    assert shrunk(one, 0.0) is one


@pytest.mark.parametrize("tables", ["all", "some"])
def test_slopes_are_those_of_the_loss(tables: str) -> None:
    # `some`: leading columns that are not next to each other, and a component of four columns.
    chosen = tables_up_to(4, 3) if tables == "all" else [(0, 1, 2, 3), (0, 3)]
    measured_plan = plan(SIZES, balanced(SIZES, chosen), 0.5)
    noisy = measured(related_columns(300, SIZES, 1), measured_plan, 2)
    descent = MixtureFit(noisy, products=3, seed=4)
    _, slopes = descent.slopes()
    step = 0.02
    for place, slope in enumerate(slopes):
        differences = np.zeros(slope.shape)
        for index in np.ndindex(*slope.shape):
            kept = descent.logits[place][index]
            descent.logits[place][index] = kept + step
            above = descent.slopes()[0]
            descent.logits[place][index] = kept - step
            below = descent.slopes()[0]
            descent.logits[place][index] = kept
            differences[index] = (above - below) / (2 * step)
        # Singles and steps of 0.02 agree to a percent; a slope that is 5 % off fails.
        assert np.linalg.norm(differences - slope) < 0.02 * np.linalg.norm(slope) + 1e-3


def test_marginals_without_noise_are_fitted() -> None:
    codes = related_columns(5000, SIZES, 3)
    noisy = measured(codes, planned(SIZES, 3, 1e6), 1)
    mixture = fit(noisy, products=12, steps=400, seed=1)
    for columns in tables_up_to(4, 3):
        true = marginal(codes, SIZES, columns)
        far = np.abs(mixture.table(columns) - true).sum() / 2 / 5000
        assert far < 0.02, columns


def test_rows_are_those_of_the_model_and_of_the_seed() -> None:
    mixture = some_mixture()
    number = 20_000
    rows = rows_of(mixture, number, np.random.default_rng(7))
    again = rows_of(mixture, number, np.random.default_rng(7))
    assert all(np.array_equal(a, b) for a, b in zip(rows, again, strict=True))
    for columns in [(0,), (1, 3), (0, 1, 2)]:
        assert_fits(
            marginal(rows, SIZES, columns).ravel(), mixture.table(columns).ravel() / mixture.rows
        )
    other = some_mixture(3, 2)
    assert not fits(marginal(rows, SIZES, (1, 3)).ravel(), other.table((1, 3)).ravel() / other.rows)


def test_no_rows_are_drawn_when_none_are_asked_for() -> None:
    assert [len(c) for c in rows_of(some_mixture(), 0, np.random.default_rng(1))] == [0] * 4
