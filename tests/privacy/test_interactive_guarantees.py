"""Theorems between promises about noisy answers, by enumeration, with what breaks wrong ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from voile.arrays import Floats
from voile.errors import PromiseError, UsageError
from voile.privacy import convert, parse_guarantee, parse_wish
from voile.privacy.interactive.laws import KINDS, noise_law


def claimed(source: str, wish: str, name: str) -> float:
    return float(convert(parse_guarantee(source), parse_wish(wish)).guarantee.to_dict()[name])


def transcripts(kind: str, variance: float, answers: int) -> tuple[Floats, Floats]:
    """The chance of every transcript of so many counts, of one table and of its neighbour."""
    law = noise_law(kind, variance)
    seen = np.arange(-60, 61)
    one, other = np.exp(law.log_pmf(seen)), np.exp(law.log_pmf(seen - 1))
    p, q = one, other
    for _ in range(answers - 1):
        p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, other).ravel()
    return p, q


def rest(p: Floats, q: Floats, epsilon: float) -> float:
    """The least δ of (ε, δ)."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answers", [1, 2])
def test_noisy_answers_are_approximately_private(kind: str, answers: int) -> None:
    source = f"noisy-answers(T={answers}, variance=9, noise={kind})"
    p, q = transcripts(kind, 9, answers)
    for delta in (1e-2, 1e-4):
        epsilon = claimed(source, f"approximate-dp(delta={delta})", "epsilon")
        assert rest(p, q, epsilon) <= delta
        assert rest(p, q, 0.85 * epsilon) > delta


@pytest.mark.parametrize("kind", KINDS)
def test_odds_rise_no_more_often_than_the_theorem_says(kind: str) -> None:
    """Two hypotheses, two answers: and a fifth of the chance would be too little."""
    p, q = transcripts(kind, 9, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = np.log(p / q)
    for delta in (0.35, 0.6):
        eta = claimed(
            f"noisy-answers(T=2, variance=9, noise={kind})", f"delta-T(delta={delta})", "eta"
        )
        seen = float(p[rise > delta].sum())
        assert seen <= eta
        assert seen > 0.2 * eta


def test_gaussian_answers_are_zcdp() -> None:
    """Rényi's divergence at every order is at most α·ρ, and not at most 0.98 of it."""
    rho = claimed("noisy-answers(T=2, variance=4, noise=gaussian)", "zcdp", "rho")
    assert rho == pytest.approx(2 / 8, rel=1e-6)
    p, q = transcripts("gaussian", 4, 2)
    here = (p > 0) & (q > 0)
    for order in (1.5, 2.0, 5.0, 20.0):
        moment = np.exp(order * np.log(p[here]) - (order - 1) * np.log(q[here])).sum()
        divergence = math.log(moment) / (order - 1)
        assert 0.98 * order * rho < divergence <= order * rho * (1 + 1e-9)


def test_geometric_answers_are_purely_private() -> None:
    source = "noisy-answers(T=2, variance=4, noise=geometric)"
    epsilon = claimed(source, "dp", "epsilon")
    p, q = transcripts("geometric", 4, 2)
    assert math.log((p / q).max()) == pytest.approx(epsilon, rel=1e-6)
    rho = claimed(source, "zcdp", "rho")
    for order in (1.5, 2.0, 10.0):
        moment = np.exp(order * np.log(p) + (1 - order) * np.log(q)).sum()
        assert math.log(moment) / (order - 1) <= order * rho


def test_binomial_answers_have_no_epsilon_and_no_rho() -> None:
    source = "noisy-answers(T=5, variance=100)"
    for wish in ("dp", "zcdp", "indistinguishable", "dp(unit=swap)"):
        with pytest.raises(PromiseError):
            convert(parse_guarantee(source), parse_wish(wish))
    with pytest.raises(PromiseError, match="one hypothesis alone"):
        convert(parse_guarantee(source), parse_wish("zcdp"))
    with pytest.raises(PromiseError, match="only one hypothesis"):
        convert(
            parse_guarantee("noisy-answers(T=5, variance=1)"),
            parse_wish("approximate-dp(delta=1e-6)"),
        )


@pytest.mark.parametrize("rho", [0.01, 0.125, 2.0])
def test_zcdp_conversions_hold_for_the_normal_law(rho: float) -> None:
    """N(0, 1) against N(μ, 1) with ρ = μ²/2 keeps ρ-zCDP with equality."""
    mu = math.sqrt(2 * rho)
    x = np.linspace(-12, 12 + mu, 200_001)
    step = x[1] - x[0]
    q, p = (np.exp(-((x - m) ** 2) / 2) / math.sqrt(2 * math.pi) * step for m in (0.0, mu))
    epsilon = claimed(f"zcdp(rho={rho})", "approximate-dp(delta=1e-5)", "epsilon")
    assert rest(p, q, epsilon) <= 1e-5
    assert rest(p, q, 0.5 * epsilon) > 1e-5
    delta = rho + 3 * mu
    eta = claimed(f"zcdp(rho={rho})", f"delta-T(delta={delta})", "eta")
    seen = float(p[x * mu - mu * mu / 2 > delta].sum())
    assert 0.05 * eta < seen <= eta


def test_the_rest_bounds_rising_odds_with_equality() -> None:
    """One event, likelier by just more than e^δ: (ε, δ')-DP, and η as the theorem says."""
    epsilon, delta, eta = 0.5, 1.25, 0.03
    p = np.array([eta, 1 - eta])
    q = np.array([eta * math.exp(-delta - 1e-9), 0.0])
    q[1] = 1 - q[0]
    spent = max(rest(p, q, epsilon), rest(q, p, epsilon))
    found = claimed(
        f"approximate-dp(epsilon={epsilon}, delta={spent})", f"delta-T(delta={delta})", "eta"
    )
    assert found == pytest.approx(eta, rel=1e-6)


def test_rising_odds_of_any_property_by_enumeration() -> None:
    """Random mechanisms on three values, properties of one or two of them, spread priors."""
    rng = np.random.default_rng(5)
    tight = 0.0
    for _ in range(200):
        laws = rng.dirichlet([0.6] * 4, size=3)
        epsilon, delta = 0.3, 1.1
        spent = max(rest(a, b, epsilon) for a in laws for b in laws)
        try:
            eta = claimed(
                f"approximate-dp(epsilon={epsilon}, delta={min(spent, 0.999)})",
                f"delta-T(delta={delta})", "eta",
            )  # fmt: skip
        except PromiseError:
            continue
        prior = rng.dirichlet([1.0] * 3)
        for held in ([0], [1], [0, 2]):
            out = [i for i in range(3) if i not in held]
            p = prior[held] @ laws[held] / prior[held].sum()
            q = prior[out] @ laws[out] / prior[out].sum()
            seen = float(p[np.log(p / q) > delta].sum())
            assert seen <= eta * (1 + 1e-9)
            tight = max(tight, seen / eta)
    assert tight > 0.6


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.4, 1.0, 3.0, 10.0, 100.0])
def test_pure_privacy_is_concentrated_by_the_hyperbolic_tangent(epsilon: float) -> None:
    """Laws on three answers within ε: none beyond ρ at any order; randomized response needs it."""
    rho = claimed(f"dp(epsilon={epsilon}, unit=swap)", "zcdp", "rho")
    assert rho <= min(epsilon, epsilon**2 / 2) * (1 + 1e-8)
    orders = 1 + np.geomspace(1e-4, 1e4, 60)
    # Of z = dP/dQ in {e^ε, e^ε·u, e^−ε} with the weights of Q that give it the mean 1.
    reached = 0.0
    for between in np.linspace(-1, 1, 41):
        for share in (0.0, 0.1, 0.5, 0.9):
            logs = np.array([epsilon, between * epsilon, -epsilon])
            # x + y = 1 − share, and x·e^ε + y·e^−ε = 1 − share·e^(u·ε), divided by e^ε
            rest = math.exp(-epsilon) - share * math.exp(logs[1] - logs[0])
            x = (rest - (1 - share) * math.exp(-2 * epsilon)) / -math.expm1(-2 * epsilon)
            weights = np.array([x, share, 1 - share - x])
            if weights.min() < 0:
                continue
            with np.errstate(divide="ignore"):
                exponents = np.log(weights) + orders[:, None] * logs
            top = exponents.max(axis=1)
            divergence = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
            assert (divergence <= (orders - 1) * orders * rho + 1e-12).all()
            reached = max(reached, float((divergence / ((orders - 1) * orders)).max()))
    assert reached == pytest.approx(rho, rel=1e-3)


def test_pure_privacy_is_every_other_kind() -> None:
    rho = claimed("dp(epsilon=0.4, unit=swap)", "zcdp", "rho")
    assert rho == pytest.approx(0.4 * math.tanh(0.2))
    assert claimed("dp(epsilon=0.4, unit=swap)", "approximate-dp", "epsilon") == 0.4
    assert claimed("approximate-dp(epsilon=0.4, delta=0)", "dp", "epsilon") == 0.4
    assert claimed("dp(epsilon=0.4)", "zcdp", "rho") == pytest.approx(
        0.8 * math.tanh(0.4)
    )  # a swap is 2ε
    assert claimed("zcdp(rho=0)", "dp", "epsilon") == 0


@pytest.mark.parametrize(
    ("source", "wish", "error", "words"),
    [
        ("zcdp(rho=0.1)", "dp", PromiseError, "no ε bounds that"),
        ("approximate-dp(epsilon=1, delta=1e-6)", "dp", PromiseError, "even the record itself"),
        ("zcdp(rho=0.1)", "approximate-dp", UsageError, "for every delta"),
        ("zcdp(rho=2)", "delta-T(delta=1)", PromiseError, "with any probability"),
        ("zcdp(rho=0.1)", "noisy-answers", PromiseError, "not by which noise"),
        ("noisy-answers(T=5, variance=9)", "noisy-answers(noise=gaussian)", PromiseError, "which"),
        ("zcdp(rho=0.1)", "dp(unit=add-remove)", PromiseError, "number of rows"),
        ("zcdp(rho=0.1)", "k", PromiseError, "rows may stand alone"),
        ("k(k=5)", "zcdp", PromiseError, "rule out"),
        ("noisy-answers(T=0, variance=9)", "zcdp", UsageError, "T = 0"),
        ("noisy-answers(T=5, variance=0)", "zcdp", UsageError, "variance = 0"),
        ("noisy-answers(T=5, variance=9, noise=laplace)", "zcdp", UsageError, "'laplace'"),
        ("approximate-dp(epsilon=1, delta=1)", "dp", UsageError, "delta = 1"),
    ],
)
def test_what_does_not_follow_is_refused(
    source: str, wish: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        convert(parse_guarantee(source), parse_wish(wish))
