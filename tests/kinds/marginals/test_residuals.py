"""Marginals in pieces, against brute force: matrices, all exchanges, all plans nearby."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from voile.arrays import Floats, Ints
from voile.kinds.marginals.residuals import (
    Columns,
    NoisyMarginals,
    ResidualPlan,
    balanced,
    centred,
    closure,
    plan,
    whole_centred,
)

SIZES = (2, 3, 4)
TABLES: list[Columns] = [(0, 1), (1, 2), (0, 2)]


def marginal_matrix(sizes: tuple[int, ...], columns: Columns) -> Floats:
    """Rows are cells of the marginal, columns are tuples of the domain."""
    found: Floats = np.ones((1, 1))
    for i, size in enumerate(sizes):
        found = np.asarray(
            np.kron(found, np.eye(size) if i in columns else np.ones((1, size))), dtype=np.float64
        )
    return found


def residual_matrix(sizes: tuple[int, ...], component: Columns) -> Floats:
    found: Floats = np.ones((1, 1))
    for i, size in enumerate(sizes):
        whole = np.eye(size) - 1 / size if i in component else np.ones((1, size))
        found = np.asarray(np.kron(found, whole), dtype=np.float64)
    return found


def some_plan(rho: float = 0.7) -> ResidualPlan:
    return plan(SIZES, balanced(SIZES, TABLES), rho)


def test_components_are_all_subsets_of_the_tables() -> None:
    assert closure([(0, 1), (2,)]) == [(), (0,), (1,), (2,), (0, 1)]


def test_rho_is_what_a_record_moves() -> None:
    """Add or remove: every record moves the measured components by the same norm."""
    found = some_plan()
    assert found.rho == pytest.approx(0.7)
    for t in range(math.prod(SIZES)):
        moved = sum(
            (residual_matrix(SIZES, c)[:, t] ** 2).sum() / (2 * v)
            for c, v in found.variances.items()
        )
        assert moved == pytest.approx(found.rho)


@pytest.mark.parametrize("sizes", [(2, 3, 4), (2, 2, 2), (5, 1, 2)])
def test_rho_of_an_exchange_is_the_worst_over_all_pairs(sizes: tuple[int, ...]) -> None:
    found = plan(sizes, balanced(sizes, TABLES), 0.4)
    worst = 0.0
    for a, b in product(range(math.prod(sizes)), repeat=2):
        moved = 0.0
        for c, v in found.variances.items():
            r = residual_matrix(sizes, c)
            moved += ((r[:, a] - r[:, b]) ** 2).sum() / (2 * v)
        worst = max(worst, moved)
    assert found.exchange_rho == pytest.approx(worst)


def test_whole_numbers_are_the_centred_table_times_its_cells() -> None:
    table: Ints = np.random.default_rng(0).integers(0, 50, (3, 4, 2))
    assert np.allclose(whole_centred(table) / table.size, centred(table.astype(float)))


def test_tables_are_rebuilt_without_noise() -> None:
    rng = np.random.default_rng(1)
    data = rng.integers(0, 9, math.prod(SIZES)).astype(float)
    found = some_plan()
    residuals = {
        c: (residual_matrix(SIZES, c) @ data).reshape([SIZES[i] for i in c])
        for c in found.components
    }
    noisy = NoisyMarginals(found, residuals)
    for s in closure(TABLES):
        wanted = (marginal_matrix(SIZES, s) @ data).reshape([SIZES[i] for i in s])
        assert np.allclose(noisy.table(s), wanted)


def covariance_of(found: ResidualPlan, s: Columns) -> Floats:
    """Of the cells of a rebuilt table, from the noise of each component."""
    sizes = found.sizes
    cells = math.prod(sizes[i] for i in s)
    total = np.zeros((cells, cells))
    for c, v in found.variances.items():
        if set(c) <= set(s):
            spread: Floats = np.ones((1, 1))
            for i in s:
                n = sizes[i]
                spread = np.asarray(
                    np.kron(spread, np.eye(n) - 1 / n if i in c else np.full((n, n), n**-2.0)),
                    dtype=np.float64,
                )
            total += v * spread
    return total


@pytest.mark.parametrize("s", TABLES)
def test_variances_of_cells_are_those_of_the_matrix(s: Columns) -> None:
    found = some_plan()
    assert np.allclose(np.diag(covariance_of(found, s)), found.cell_variance(s))
    assert NoisyMarginals(found, {}).cell_variance(s) == found.cell_variance(s)


def test_covariances_are_those_of_noise_on_every_component() -> None:
    """The matrix that tests compare with, from the linear map of all noise to a rebuilt table."""
    found, s = some_plan(), (1, 2)
    total = np.zeros((12, 12))
    for c, v in found.variances.items():
        shape = [SIZES[i] for i in c]
        for cell in range(found.cells(c)):
            unit = np.zeros(found.cells(c))
            unit[cell] = 1.0
            residual = centred(unit.reshape(shape))
            moved = NoisyMarginals(found, {c: residual}).table(s).ravel()
            total += v * np.outer(moved, moved) if set(c) <= set(s) else 0.0
    assert np.allclose(total, covariance_of(found, s))


def test_the_plan_is_the_best_for_its_weights() -> None:
    """Any other way to spend the same ρ has a larger weighted sum of variances."""
    weights = balanced(SIZES, TABLES)
    best, rng = some_plan(), np.random.default_rng(4)

    def cost(found: ResidualPlan) -> float:
        noisy = NoisyMarginals(found, {})
        return sum(
            w * noisy.cell_variance(s) * math.prod(SIZES[i] for i in s) for s, w in weights.items()
        )

    for _ in range(50):
        moved = {c: v * math.exp(0.2 * rng.normal()) for c, v in best.variances.items()}
        other = ResidualPlan(SIZES, moved)
        scaled = {c: v * other.rho / best.rho for c, v in moved.items()}
        other = ResidualPlan(SIZES, scaled)
        assert other.rho == pytest.approx(best.rho) and cost(other) > cost(best)


def test_a_column_of_one_value_is_not_measured() -> None:
    found = plan((1, 4), balanced((1, 4), [(0, 1)]), 1.0)
    assert sorted(found.variances) == [(), (1,)]
    assert NoisyMarginals(found, {(): np.array(8.0), (1,): np.zeros(4)}).table((0, 1)).shape == (
        1,
        4,
    )
