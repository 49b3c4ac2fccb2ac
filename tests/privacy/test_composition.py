"""Totals of several releases, against the exact loss of small mechanisms that are composed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from tests.support.soak import rounds
from voile.privacy.composition import (
    PrivacyLoss,
    RatioRange,
    compose,
    compose_beliefs,
    epsilon_of_concentrated,
    rho_of_pure,
)
from voile.privacy.gaussian import delta_of, epsilon_of, mu_of_pure

Pair = tuple[np.ndarray, np.ndarray]
"""The law of what a mechanism publishes on each of two neighbouring tables."""


def together(pairs: Sequence[Pair]) -> Pair:
    """The laws of all of them, each with its own coins."""
    left, right = np.ones(1), np.ones(1)
    for p, q in pairs:
        left, right = np.outer(left, p).ravel(), np.outer(right, q).ravel()
    return left, right


def exact_delta(pair: Pair, epsilon: float) -> float:
    """The least δ of (ε, δ)-DP between two laws, both ways."""
    p, q = pair
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p)))


def response(epsilon: float) -> Pair:
    """Randomized response: keeps exactly ε."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    return np.array([p, 1 - p]), np.array([1 - p, p])


def geometric(epsilon: float, most: int = 6) -> Pair:
    """Geometric noise on 0 and on 1, moved to the ends of a window: keeps ε."""
    at, r = np.arange(-most, most + 2), math.exp(-epsilon)
    found = []
    for centre in (0, 1):
        law = (1 - r) / (1 + r) * r ** np.abs(at - centre)
        law[0], law[-1] = r ** (centre - at[0]) / (1 + r), r ** (at[-1] - centre) / (1 + r)
        found.append(law)
    return found[0], found[1]


def gaussian(rho: float, most: int = 8) -> Pair:
    """Discrete Gaussian noise on 0 and on 1, moved to the ends of a window: keeps ρ = 1/2σ²."""
    at = np.arange(-600, 602)
    found = []
    for centre in (0, 1):
        law = np.exp(-rho * (at - centre) ** 2.0)
        inside = np.clip(at, -most, most + 1) + most
        found.append(np.bincount(inside, weights=law / law.sum()))
    return found[0], found[1]


def normal(mu: float, cells: int = 14) -> Pair:
    """Normal noise on 0 and on μ, published as the cell in which it lies: keeps μ-GDP."""
    edges = np.linspace(-4, 4 + mu, cells)
    below = [np.array([math.erfc((c - x) / math.sqrt(2)) / 2 for x in edges]) for c in (0.0, mu)]
    first, second = (np.diff(np.concatenate(([0.0], law, [1.0]))) for law in below)
    return first, second


def leaky(epsilon: float, delta: float) -> Pair:
    """With probability δ the truth, else randomized response: keeps (ε, δ) and no ε."""
    p, q = response(epsilon)
    return (
        np.array([delta, 0.0, *((1 - delta) * p)]),
        np.array([0.0, delta, *((1 - delta) * q)]),
    )


def test_totals_are_never_below_the_exact_loss_of_composed_mechanisms() -> None:
    """Each random set of mechanisms keeps the (ε, δ) that is stated for it, at many δ."""
    rng = np.random.default_rng(20180)
    for _ in range(rounds(40, 2_000)):
        pairs, losses = [], []
        for _ in range(rng.integers(1, 5)):
            epsilon, rho = float(rng.uniform(0.02, 2)), float(rng.uniform(0.001, 0.4))
            delta = float(10 ** rng.uniform(-6, -2))
            pair, loss = [
                (response(epsilon), PrivacyLoss(epsilon)),
                (geometric(epsilon), PrivacyLoss(epsilon)),
                (gaussian(rho), PrivacyLoss(rho=rho)),
                (leaky(epsilon, delta), PrivacyLoss(approximate=(epsilon, delta))),
                (normal(2 * rho), PrivacyLoss(mu=2 * rho)),
            ][rng.integers(5)]
            pairs.append(pair)
            losses.append(loss)
        law = together(pairs)
        for wanted in (0.0, 1e-9, 1e-4, 0.05):
            total = compose(losses, wanted)
            if total.epsilon is not None:
                assert exact_delta(law, total.epsilon) <= total.delta + 1e-12
            if total.pure is not None:
                assert exact_delta(law, total.pure) <= 1e-12


def test_the_test_notices_a_total_that_is_too_small() -> None:
    """Power: one tenth less than the sum of pure ε is refuted by randomized response."""
    law = together([response(0.5)] * 6)
    total = compose([PrivacyLoss(0.5)] * 6)
    assert exact_delta(law, 0.9 * (total.epsilon or 0)) > 1e-3


def test_gaussian_losses_add_up_exactly() -> None:
    """Nine mechanisms of μ = 0.2 are one of 0.6, which costs less than by ρ; a tenth less not."""
    total = compose([PrivacyLoss(mu=0.2)] * 9, 1e-6)
    assert total.epsilon == pytest.approx(epsilon_of(0.6, 1e-6))
    assert total.rho == pytest.approx(0.18) and total.pure is None
    assert total.epsilon is not None
    assert total.epsilon < epsilon_of_concentrated(0.18, 1e-6)
    assert delta_of(0.6, 0.9 * total.epsilon) > 1.5e-6


def test_pure_and_gaussian_losses_take_the_best_of_all_ways() -> None:
    losses = [PrivacyLoss(mu=0.2), PrivacyLoss(0.1)]
    found = compose(losses, 1e-6).epsilon
    apart = epsilon_of(0.2, 1e-6) + 0.1
    together_ = epsilon_of(math.hypot(0.2, mu_of_pure(0.1)), 1e-6)
    assert found is not None and found <= min(apart, together_) * (1 + 1e-9)
    mixed = compose([PrivacyLoss(mu=0.2), PrivacyLoss(rho=0.02)], 1e-6)
    assert mixed.epsilon == pytest.approx(epsilon_of_concentrated(0.04, 1e-6))


def test_many_small_losses_cost_less_by_concentration() -> None:
    total = compose([PrivacyLoss(0.01)] * 1_000, 1e-9)
    assert total.pure == pytest.approx(10)
    assert total.epsilon is not None and total.epsilon < 3
    assert total.delta <= 1e-9


def test_a_few_large_losses_are_added_and_small_ones_concentrated() -> None:
    losses = [PrivacyLoss(4.0), *[PrivacyLoss(0.01)] * 1_000]
    small = compose(losses[1:], 1e-9).epsilon
    assert small is not None
    found = compose(losses, 1e-9).epsilon
    assert found is not None and found <= 4 + small + 1e-9


def test_without_a_delta_only_pure_losses_add_up() -> None:
    assert compose([PrivacyLoss(1.0), PrivacyLoss(0.5)]).epsilon == pytest.approx(1.5)
    assert compose([PrivacyLoss(1.0), PrivacyLoss(rho=0.1)]).epsilon is None
    assert compose([]).epsilon == 0


def test_an_unbounded_release_leaves_no_total() -> None:
    assert compose([PrivacyLoss(1.0), PrivacyLoss()], 1e-6).epsilon is None


def test_promises_with_a_delta_of_their_own_add_both() -> None:
    total = compose([PrivacyLoss(approximate=(0.5, 1e-6))] * 3, 1e-9)
    assert total.epsilon == pytest.approx(1.5)
    assert total.delta == pytest.approx(3e-6)  # more than was wanted, and it says so


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_concentrated_losses_convert_below_the_usual_formula(rho: float, delta: float) -> None:
    found = epsilon_of_concentrated(rho, delta)
    assert found <= rho + 2 * math.sqrt(rho * -math.log(delta)) * (1 + 1e-9)
    grid = np.exp(np.linspace(-12, 18, 20_000))  # α − 1
    bound = (1 + grid) * rho + (
        -math.log(delta) + grid * (np.log(grid) - np.log1p(grid)) - np.log1p(grid)
    ) / grid
    assert found == pytest.approx(max(0.0, float(bound.min())), rel=1e-5, abs=1e-9)


def test_rho_of_pure_bounds_every_order() -> None:
    """D_α ≤ α·ρ for randomized response, which is the worst mechanism that keeps ε."""
    for epsilon in (0.01, 0.3, 1.0, 3.0, 12.0):
        p, q = response(epsilon)
        for order in (1.0001, 1.5, 2.0, 5.0, 50.0):
            renyi = math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)
            assert renyi <= order * rho_of_pure(epsilon) * (1 + 1e-9)


# ---------------------------------------------------------------------- beliefs


def test_beliefs_after_all_releases_stay_within_the_total() -> None:
    """Every outcome of two mechanisms, every prior up to d: Bayes' rule by enumeration."""
    for first, second in itertools.product((0.2, 1.0, 2.0), repeat=2):
        d = 0.01
        ranges = [
            RatioRange(1 / Fraction(math.exp(e)), Fraction(math.exp(e))) for e in (first, second)
        ]
        found = compose_beliefs(d, ranges)
        assert found is not None
        law = together([response(first), response(second)])
        for prior in (d, d / 3):
            after = prior * law[0] / (prior * law[0] + (1 - prior) * law[1])
            assert after.max() <= found.posterior + 1e-12
            assert after.min() >= found.prior / found.posterior * prior - 1e-12


def test_there_may_be_no_bound_on_beliefs() -> None:
    assert compose_beliefs(0.5, [RatioRange(Fraction(1, 100), Fraction(100))] * 2) is None
