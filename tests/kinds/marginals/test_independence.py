"""What a model supposes of pairs that were not measured, or with much noise."""

from __future__ import annotations

import numpy as np
import pytest

from voile.arrays import Floats
from voile.kinds.marginals.independence import LEAST, LEAST_VARIANCE, with_independence
from voile.kinds.marginals.residuals import (
    Columns,
    NoisyMarginals,
    ResidualPlan,
    centred,
    closure,
)

FIRST, SECOND = np.array([500.0, 300.0, 200.0]), np.array([900.0, 100.0])


def noisy_of(
    tables: dict[Columns, Floats],
    variance: float,
    noise: float = 0.0,
) -> NoisyMarginals:
    """Two columns of 3 and 2 values, of which these tables are known."""
    rng = np.random.default_rng(2)
    residuals = {
        c: centred(table + noise * rng.standard_normal(table.shape) * (len(c) == 2))
        for c, table in tables.items()
    }
    plan = ResidualPlan((3, 2), dict.fromkeys(residuals, variance))
    return NoisyMarginals(plan, residuals)


SINGLES: dict[Columns, Floats] = {
    (): np.array(1000.0), (0,): FIRST, (1,): SECOND
}  # fmt: skip


def test_a_pair_that_was_not_measured_is_that_of_independent_columns() -> None:
    found = with_independence(noisy_of(SINGLES, 4.0))
    assert list(found.residuals) == closure([(0, 1)])
    assert np.allclose(found.table((0, 1)), np.outer(FIRST, SECOND) / 1000)
    assert found.plan.variances[(0, 1)] == pytest.approx(0.02**2 * 1000**2 / 6)


def test_a_pair_that_depends_keeps_its_figures() -> None:
    truth = np.array([[500.0, 0.0], [300.0, 0.0], [100.0, 100.0]])
    found = with_independence(noisy_of({**SINGLES, (0, 1): truth}, 4.0))
    assert np.allclose(found.table((0, 1)), truth, atol=1.0)
    assert found.plan.variances[(0, 1)] == pytest.approx(4.0, rel=0.01)


def test_a_pair_that_is_all_noise_is_drawn_to_independence() -> None:
    truth = np.outer(FIRST, SECOND) / 1000
    noisy = noisy_of({**SINGLES, (0, 1): truth}, 1e6, noise=1.0)
    found = with_independence(noisy)
    share = LEAST / (1 + LEAST)
    assert found.plan.variances[(0, 1)] == pytest.approx(share * 1e6)
    measured, drawn = (x.residuals[(0, 1)] - centred(truth) for x in (noisy, found))
    assert np.allclose(drawn, share * measured)


def test_what_was_measured_exactly_or_with_three_columns_stays() -> None:
    truth = np.outer(FIRST, SECOND) / 1000 + np.array([[1.0, -1.0], [0.0, 0.0], [-1.0, 1.0]])
    exact = noisy_of({**SINGLES, (0, 1): truth}, 0.0)
    assert np.array_equal(with_independence(exact).residuals[(0, 1)], exact.residuals[(0, 1)])
    assert set(with_independence(exact).plan.variances.values()) == {LEAST_VARIANCE}
    rng = np.random.default_rng(1)
    residuals = {c: centred(rng.normal(size=[2] * len(c))) for c in closure([(0, 1, 2)]) if c}
    residuals[()] = np.array(50.0)
    noisy = NoisyMarginals(ResidualPlan((2, 2, 2), dict.fromkeys(residuals, 9.0)), residuals)
    assert all(
        np.array_equal(r, noisy.residuals[c]) for c, r in with_independence(noisy).residuals.items()
    )


def test_columns_of_one_value_and_counts_below_0() -> None:
    plan = ResidualPlan((1, 2, 2), {(): 4.0, (1,): 4.0, (2,): 4.0})
    residuals = {(): np.array(-3.0), (1,): np.array([1.0, -1.0]), (2,): np.array([-9.0, 9.0])}
    found = with_independence(NoisyMarginals(plan, residuals))
    assert set(found.residuals) == {(), (1,), (2,), (1, 2)}
    assert all(np.isfinite(r).all() for r in found.residuals.values())
