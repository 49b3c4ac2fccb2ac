"""Gaussian differential privacy against the formula in decimals, and against sums over grids."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext, localcontext
from itertools import product

import pytest

from voile.privacy import gaussian
from voile.privacy.gaussian import (
    any_rise_chance,
    any_rise_of,
    delta_of,
    epsilon_of,
    mu_for,
    rise_chance,
    rise_of,
)

DIGITS = 400
MUS = (1e-9, 1e-3, 0.05, 0.3, 0.4999, 0.5, 0.7, 1.0, 1.86, 5.0, 12.0)
PLACES = (-0.5, -0.4, 0.0, 0.1, 1.0, 2.9, 3.0, 3.1, 7.0, 11.0)
"""Of a = ε/μ − μ/2: as parts of μ below 0, as they are above."""


def pi() -> Decimal:
    """By Machin's formula."""

    def inverse(x: int) -> Decimal:
        total, power, k = Decimal(0), Decimal(1) / x, 0
        while abs(power) > Decimal(10) ** -(DIGITS + 5):
            total += power / (2 * k + 1) * (-1) ** k
            power /= x * x
            k += 1
        return total

    return 4 * (4 * inverse(5) - inverse(239))


def exact_tail(x: Decimal) -> Decimal:
    """Φ(−x) = 1/2 − φ(x)·Σ x^(2k+1)/(2k+1)!!, in decimals."""
    term, total, k = x, x, 0
    while abs(term) > Decimal(10) ** -DIGITS:
        k += 1
        term *= x * x / (2 * k + 1)
        total += term
    return Decimal("0.5") - total * (-x * x / 2).exp() / (2 * pi()).sqrt()


def exact_delta(mu: float, epsilon: float) -> Decimal:
    """The formula, as it is written."""
    m, e = Decimal(mu), Decimal(epsilon)
    return exact_tail(e / m - m / 2) - e.exp() * exact_tail(e / m + m / 2)


def cases() -> list[tuple[float, float]]:
    """(μ, ε), in the middle, at both ends, and where a way of computing begins."""
    found = []
    for mu, place in product(MUS, PLACES):
        low = place * mu if place < 0 else place
        found.append((mu, max(0.0, (low + mu / 2) * mu)))
    return found


@pytest.mark.parametrize(("mu", "epsilon"), cases())
def test_delta_is_the_formula_in_every_digit_that_counts(mu: float, epsilon: float) -> None:
    with localcontext() as context:
        context.prec = DIGITS
        exact = exact_delta(mu, epsilon)
        assert abs(Decimal(delta_of(mu, epsilon)) / exact - 1) < Decimal(gaussian.SAFETY) / 4
    assert getcontext().prec != DIGITS


@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-9, 1e-6, 0.1, 0.6, 0.99])
@pytest.mark.parametrize("mu", MUS)
def test_epsilon_is_the_least_that_keeps_delta(mu: float, delta: float) -> None:
    epsilon = epsilon_of(mu, delta)
    assert delta_of(mu, epsilon) <= delta
    if epsilon > 0:
        assert delta_of(mu, epsilon * (1 - 1e-9)) > delta


@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-9, 1e-6, 0.1, 0.99])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.01, 1.0, 6.2858, 50.0, 700.0])
def test_mu_is_the_largest_that_keeps_epsilon_and_delta(epsilon: float, delta: float) -> None:
    mu = mu_for(epsilon, delta)
    assert delta_of(mu, epsilon) <= delta < delta_of(mu * (1 + 1e-9), epsilon)
    assert epsilon_of(mu, delta) <= epsilon * (1 + 1e-6) + 1e-9


def test_a_hundred_answers_at_epsilon_1_need_a_variance_of_17_85_each() -> None:
    assert 1 / mu_for(1.0, 1e-6) ** 2 == pytest.approx(17.85, abs=0.005)


def test_delta_is_the_hockey_stick_of_two_normal_laws() -> None:
    """∫ max(0, p − e^ε·q), summed over a fine grid."""
    for mu, epsilon in [(0.3, 0.1), (1.0, 1.0), (2.0, 0.0), (3.0, 5.0)]:
        width = 1e-3
        total = math.fsum(
            max(0.0, density(x - mu) - math.exp(epsilon) * density(x)) * width
            for x in (width * k for k in range(-9000, 13000))
        )
        assert total == pytest.approx(delta_of(mu, epsilon), rel=1e-5, abs=1e-9)


def density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def test_no_noise_hides_everything_and_nothing_hides_the_other() -> None:
    assert delta_of(0.0, 0.0) == epsilon_of(0.0, 1e-9) == rise_of(0.0, 1e-9) == 0.0
    assert delta_of(200.0, 0.0) == 1.0
    assert delta_of(1.0, math.inf) == 0.0
    for mu, epsilon in [(-1.0, 1.0), (1.0, -1.0), (math.nan, 1.0)]:
        with pytest.raises(ValueError, match="below 0"):
            delta_of(mu, epsilon)
    for delta in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="between 0 and 1"):
            epsilon_of(1.0, delta)
        with pytest.raises(ValueError, match="between 0 and 1"):
            mu_for(1.0, delta)


@pytest.mark.parametrize("eta", [1e-30, 1e-6, 0.05, 0.4])
@pytest.mark.parametrize("mu", [1e-6, 0.3, 1.0, 8.0])
def test_log_odds_rise_by_no_more_than_stated(mu: float, eta: float) -> None:
    rise = rise_of(mu, eta)
    assert rise_chance(mu, rise) <= eta < rise_chance(mu, rise * (1 - 1e-9))
    with localcontext() as context:
        context.prec = DIGITS
        exact = exact_tail(Decimal(rise) / Decimal(mu) - Decimal(mu) / 2)
    assert float(exact) == pytest.approx(eta, rel=1e-9)


@pytest.mark.parametrize("mu", [1e-9, 1e-3, 0.3, 0.5, 4.0])
@pytest.mark.parametrize("place", [-7.0, -1.0, 0.0, 2.9, 3.1, 7.0, 11.0])
def test_the_bound_for_any_property_is_the_formula(mu: float, place: float) -> None:
    """Φ(−a) = e^rise·Φ(−a − μ), from a to the rise in decimals, and back; never too small."""
    with localcontext() as context:
        context.prec = DIGITS
        eta = exact_tail(Decimal(place))
        rise = float((eta / exact_tail(Decimal(place) + Decimal(mu))).ln())
        found = Decimal(any_rise_chance(mu, rise))
        assert eta * (1 - Decimal("1e-14")) <= found <= eta * (1 + Decimal("1e-7"))
    if 1e-30 < float(eta) < 0.999:
        assert any_rise_of(mu, float(eta)) == pytest.approx(rise, rel=1e-6)


def test_losses_add_up_as_lengths_do() -> None:
    assert gaussian.composed([3.0, 4.0]) == 5.0
    assert gaussian.composed([]) == 0.0
