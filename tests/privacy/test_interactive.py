"""Confidence, the laws of noise, and what promises need: by formula, oracle and enumeration."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from tests.support.paths import TESTS
from voile.errors import UsageError
from voile.privacy.interactive.confidence import breach, conf, variance_needed, walk_bound
from voile.privacy.interactive.laws import KINDS, Change, NoiseLaw, binomial_log_pmf, noise_law
from voile.privacy.interactive.losses import loss_of, loss_total, total_of
from voile.privacy.interactive.promise import account, breaches, epsilon_of_normal, needed

ORACLE = {
    one["id"]: one for one in json.loads((TESTS / "oracle/olap_sulq.json").read_text())["checks"]
}
SMALL = (NoiseLaw("binomial", 8), NoiseLaw("gaussian", 1.3), NoiseLaw("geometric", 1.1))


def masses(law: NoiseLaw, far: int = 40) -> dict[int, float]:
    return {k: float(p) for k in range(-far, far + 1) if (p := law.pmf([k])[0]) > 0}


def pair_losses(law: NoiseLaw, step: int) -> dict[float, float]:
    """Loss by chance, value by value: infinite where only the truth can answer so."""
    chances = masses(law)
    found: dict[float, float] = defaultdict(float)
    for k, p in chances.items():
        other = chances.get(k + step, 0.0)
        if other > 0 or p > 1e-12:  # what is cut off at ±40 is no atom
            found[round(math.log(p / other), 12) if other else math.inf] += p
    return found


def summed(one: dict[float, float], times: int) -> dict[float, float]:
    total = {0.0: 1.0}
    for _ in range(times):
        after: dict[float, float] = defaultdict(float)
        for (a, p), (b, q) in itertools.product(total.items(), one.items()):
            after[round(a + b, 9)] += p * q
        total = after
    return total


# ---------------------------------------------------------------------- the normal walk


@pytest.mark.parametrize("delta, eta", [(0.5, 1e-3), (1, 1e-6), (2, 0.01), (2, 1e-9)])
def test_variance_over_queries_is_the_oracles(delta: float, eta: float) -> None:
    expected = ORACLE[f"sulq.V_over_T.{delta:g}_{eta:g}"]
    for queries in (1, 100, 10**6):
        found = variance_needed(delta, eta, queries) / queries
        assert found == pytest.approx(expected["expected"], abs=expected["tol"])
    assert breach(delta, 100, variance_needed(delta, eta, 100)) == pytest.approx(eta, rel=1e-9)


def test_the_slides_variance_is_not_private() -> None:
    """With V = T conf is N(1/2, 1): above 1 with .31, moved by more than 1 with .37."""
    rises = breach(1, 100, 100)
    falls = norm.cdf((-1 - 0.5) / 1)
    assert rises == pytest.approx(norm.sf(0.5))
    assert rises + falls == pytest.approx(0.375, abs=0.001)
    assert variance_needed(1, 1e-6, 100) / 100 > 23


def test_anytime_halves_eta() -> None:
    assert variance_needed(1, 1e-6, 10, anytime=True) == variance_needed(1, 5e-7, 10)
    assert breach(1, 10, variance_needed(1, 1e-6, 10)) < walk_bound(
        1, 10, variance_needed(1, 1e-6, 10)
    )
    assert walk_bound(1, 10, variance_needed(1, 1e-6, 10)) <= 2e-6


def test_conf_is_the_logarithm_of_the_odds() -> None:
    assert conf(0.5) == 0
    assert conf(0.75) == pytest.approx(math.log(3))
    assert conf(1) == math.inf and conf(0) == -math.inf
    assert conf(1e-12) == pytest.approx(-conf(1 - 1e-12), rel=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: conf(1.5),
        lambda: variance_needed(0, 1e-6, 10),
        lambda: variance_needed(-1, 1e-6, 10),
        lambda: variance_needed(math.nan, 1e-6, 10),
        lambda: variance_needed(1, 0, 10),
        lambda: variance_needed(1, 0.7, 10),
        lambda: variance_needed(1, 1e-6, 0),
        lambda: noise_law("gauss", 10),
        lambda: noise_law("gaussian", -1),
        lambda: noise_law("binomial", 1e30, Change(10**6, 10**12)),
        lambda: needed("laplace", 1, 1e-6, 10),
        lambda: account("gaussian", 10, 5, at=0),
        lambda: noise_law("gaussian", 4).deviation(0),
    ],
)
def test_wrong_numbers_are_refused_with_a_hint(call: Any) -> None:
    with pytest.raises(UsageError) as raised:
        call()
    assert raised.value.hint


# ---------------------------------------------------------------------- laws


@pytest.mark.parametrize("law", SMALL)
def test_laws_are_distributions_with_their_variance(law: NoiseLaw) -> None:
    chances = masses(law)
    assert sum(chances.values()) == pytest.approx(1, abs=1e-12)
    assert sum(k * k * p for k, p in chances.items()) == pytest.approx(law.variance, rel=1e-12)
    for height in (0, 1, 3):
        assert law.tail(height) == pytest.approx(
            sum(p for k, p in chances.items() if k > height), rel=1e-9
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variance", [0.6, 3.0, 2358.4442, 4e9])
def test_a_law_has_at_least_the_variance_asked_for(kind: str, variance: float) -> None:
    law = noise_law(kind, variance)
    promised = law.parameter**2 if kind == "gaussian" else law.variance
    assert promised >= variance  # of a narrow discrete Gaussian, σ² is a little above its variance
    assert law.variance <= variance * (1 + 1e-9) + 0.5
    for miss in (0.3, 0.05, 1e-9):
        h = law.deviation(miss)
        assert 2 * law.tail(h) <= miss
        assert h == 0 or 2 * law.tail(h - 1) > miss


def test_binomials_are_exact_for_few_and_many_coins() -> None:
    for coins in (2, 8, 1000, 4094, 4096, 9434, 2**17):
        for k in (0, 1, coins // 64, math.isqrt(coins)):
            exact = Fraction(math.comb(coins, coins // 2 + k), 2**coins)
            found = binomial_log_pmf(coins, np.array([float(k)]))[0]
            log = math.log(exact.numerator) - math.log(exact.denominator)
            assert found == pytest.approx(log, abs=1e-9)


def test_a_change_widens_noise_in_proportion() -> None:
    for change in (Change(), Change(3, 9), Change(2, 2), Change(6, 18)):
        assert change.cells * change.step == change.l1
        assert change.cells * change.step**2 == change.l2_squared
        assert noise_law("binomial", 100, change).parameter == 400 * change.l2_squared
        ratio = noise_law("gaussian", 100, change).variance / 100
        assert ratio == pytest.approx(change.l2_squared)
        rate = 1 / noise_law("geometric", 100, change).parameter
        assert rate * change.l1 == pytest.approx(1 / noise_law("geometric", 100).parameter)
    for wrong in ((0, 0), (2, 5), (3, 2)):
        with pytest.raises(ValueError, match="whole changes"):
            Change(*wrong)


# ---------------------------------------------------------------------- losses, by enumeration


@pytest.mark.parametrize("law", SMALL)
@pytest.mark.parametrize("step, cells", [(1, 1), (2, 1), (1, 2)])
def test_sums_of_losses_are_those_of_enumeration(law: NoiseLaw, step: int, cells: int) -> None:
    """All answers to three questions, listed; two cells are two noisy numbers each."""
    change = Change(cells * step, cells * step**2)
    total = summed(pair_losses(law, step), 3 * cells)
    for rise in (0.4, 1.3, 2.05):
        found = loss_total(law, change, 3, rise)
        exact = sum(p for loss, p in total.items() if loss > rise)
        low, high = found.between(rise)
        assert low * (1 - 1e-6) <= exact <= high * (1 + 1e-6)
        assert exact == pytest.approx(found.above(rise), rel=1e-3)
        spent = sum(-math.expm1(rise - loss) * p for loss, p in total.items() if loss > rise)
        assert found.excess(rise) >= spent * (1 - 1e-6)  # pessimistic, and hardly
        assert found.excess(rise) == pytest.approx(spent, rel=1e-4)
        below = sum(p for loss, p in total.items() if loss < -rise)
        assert found.fallen(rise) == pytest.approx(below, rel=1e-3)


@pytest.mark.parametrize("law", SMALL)
def test_what_only_the_truth_can_answer_counts_as_a_breach(law: NoiseLaw) -> None:
    """R coins cannot be seen from the other side with chance 2^−R; the others always can."""
    total = loss_total(law, Change(), 4, 1.0)
    expected = 1 - (1 - 2.0**-8) ** 4 if law.kind == "binomial" else 0.0
    assert total.atom == pytest.approx(expected, rel=1e-12, abs=1e-25)
    assert account("binomial", 2, 4, at=0.01).epsilon == math.inf
    assert account("binomial", 2, 4, at=0.02).epsilon < math.inf


@pytest.mark.parametrize("law", SMALL)
def test_the_highest_point_is_breached_at_most_twice_as_often(law: NoiseLaw) -> None:
    """By dynamic programming over all walks; and the last point is not the highest."""
    steps, rise = pair_losses(law, 1), 1.05
    walks: dict[tuple[float, bool], float] = {(0.0, False): 1.0}
    for _ in range(5):
        after: dict[tuple[float, bool], float] = defaultdict(float)
        for ((at, was), p), (loss, q) in itertools.product(walks.items(), steps.items()):
            now = round(at + loss, 9)
            after[now, was or now > rise] += p * q
        walks = after
    ever = sum(p for (_, above), p in walks.items() if above)
    end = sum(p for (at, _), p in walks.items() if at > rise)
    assert end < ever <= 2 * end
    assert ever <= loss_total(law, Change(), 5, rise).any_breach(rise) * (1 + 1e-9)


@pytest.mark.parametrize("law", SMALL)
def test_any_property_is_bounded_by_enumeration(law: NoiseLaw) -> None:
    """Rows of four values, questions about any of them, priors spread at will; all answers."""
    rng = np.random.default_rng(7)
    worst, far = 0.0, 8
    seen = np.arange(-far, far + 2)
    for _ in range(40):
        prior = rng.dirichlet([0.5] * 4)
        asked = rng.integers(0, 2, (3, 4))  # f of each question on the four values
        held = np.array([True, bool(rng.integers(2)), False, False])  # g
        likely = [np.exp(law.log_pmf(seen[:, None] - asked[m])) for m in range(3)]
        joint = np.einsum("av,bv,cv->abcv", *likely)
        true, false = joint[..., held] @ prior[held], joint[..., ~held] @ prior[~held]
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = np.log(true / false) - math.log(prior[held].sum() / prior[~held].sum())
        worst = max(worst, float(true[rise > 0.8].sum() / prior[held].sum()))
    bound = loss_total(law, Change(), 3, 0.8).any_breach(0.8)
    assert 0.02 < worst <= bound


def test_pure_noise_never_breaches_beyond_its_sum() -> None:
    law = NoiseLaw("geometric", 5.0)
    assert loss_total(law, Change(), 4, 0.81).above(0.81) == 0
    assert loss_total(law, Change(), 4, 0.81).any_breach(0.81) == 0
    assert loss_total(law, Change(), 4, 0.79).above(0.79) == pytest.approx(
        (1 / (1 + math.exp(-0.2))) ** 4
    )


# ---------------------------------------------------------------------- promises and accounts


@pytest.mark.parametrize("ratio", [4, 1000])
def test_accounts_are_the_oracles(ratio: int) -> None:
    expected = ORACLE[f"sulq.acct.V_over_T_{ratio}"]["expected"]
    found = account("gaussian", 100 * ratio, 100)
    assert found.rho == pytest.approx(expected["rho"], abs=1e-9)
    assert found.mu == pytest.approx(expected["mu"], abs=1e-9)
    assert found.epsilon_zcdp == pytest.approx(expected["eps_zcdp_1e6"], abs=1e-6)
    assert found.epsilon_normal == pytest.approx(expected["eps_exact_1e6"], abs=1e-6)
    assert found.epsilon == pytest.approx(expected["eps_exact_1e6"], abs=1e-3)


@pytest.mark.parametrize("coins, queries", [(400, 100), (4000, 100), (4000, 1000)])
def test_binomial_accounts_are_the_oracles(coins: int, queries: int) -> None:
    check = ORACLE[f"sulq.binom_R{coins}_T{queries}"]
    binomial, normal = check["expected"]
    found = account("binomial", coins / 4, queries)
    assert found.epsilon == pytest.approx(binomial, abs=check["tol"])
    assert found.epsilon_normal == pytest.approx(normal, abs=1e-6)
    assert not found.rho_holds


def test_accounts_of_noise_that_is_too_small_are_larger() -> None:
    for kind in KINDS:
        least = account(kind, 1000, 50)
        assert account(kind, 900, 50).epsilon > 1.02 * least.epsilon
        assert account(kind, 1000, 60).epsilon > 1.05 * least.epsilon
        assert account(kind, 1000, 50, at=1e-9).epsilon > 1.2 * least.epsilon
        assert account(kind, 1000, 0).epsilon == 0


def test_geometric_accounts_by_the_binomial_law_of_signs() -> None:
    """T losses of ±ε: the exact δ at each ε, summed over how many are positive."""
    rate, queries = 0.05, 40
    law = NoiseLaw("geometric", 1 / rate)
    likelier = 1 / (1 + math.exp(-rate))
    for epsilon in (0.3, 0.9):
        exact = sum(
            math.comb(queries, n) * likelier**n * (1 - likelier) ** (queries - n) * gain
            for n in range(queries + 1)
            if (gain := -math.expm1(epsilon - rate * (2 * n - queries))) > 0
        )
        total = total_of(loss_of(law), queries, epsilon)
        assert total.excess(epsilon) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("queries", [1, 3, 30, 200])
@pytest.mark.parametrize("delta, eta", [(1.0, 1e-6), (0.5, 1e-3)])
def test_what_is_needed_keeps_the_promise_and_less_does_not(
    kind: str, queries: int, delta: float, eta: float
) -> None:
    found = needed(kind, delta, eta, queries)
    formula = variance_needed(delta, eta, queries)
    assert found.formula == formula
    assert found.breach <= eta
    assert found.breach_anytime == pytest.approx(2 * found.breach)
    assert found.breach_any <= (10 if kind == "geometric" else 3) * eta
    if kind == "geometric":
        assert found.variance <= 2.1 * formula
        assert breaches(kind, 0.8 * found.variance, queries, delta).end > eta
    else:
        assert formula <= found.variance <= formula * (1 + max(0.15 / queries, 0.0008))
        less = 0.6 if queries == 1 else 0.9
        assert breaches(kind, less * formula, queries, delta).end > eta


@pytest.mark.parametrize("kind", ["binomial", "gaussian"])
def test_histograms_and_sums_are_as_safe_as_counts(kind: str) -> None:
    """V of a unit change; larger and double changes have wider noise, and about the same loss."""
    found = needed(kind, 1.0, 1e-6, 40)
    for change in (Change(2, 2), Change(3, 9), Change(4, 8), Change(10, 100)):
        one = breaches(kind, found.variance, 40, 1.0, change)
        assert one.end <= found.breach <= 1e-6
        assert one.any_property <= found.breach_any
        narrow = loss_total(noise_law(kind, found.variance), change, 40, 1.0)
        assert narrow.above(1.0) > 1e-4  # had the noise not been widened


def test_the_widest_noise_is_summed_as_normal_noise() -> None:
    """Beyond two million points; just below that the exact law says the same."""
    found = breaches("gaussian", 4e10, 1000, 3.3e-4, Change(1, 1))
    wide = breaches("gaussian", 4e10, 1000, 3.3e-4, Change(10, 100))
    assert wide.end == pytest.approx(found.end, rel=1e-3)
    assert found.end == pytest.approx(breach(3.3e-4, 1000, 4e10), rel=1e-3)
    with pytest.raises(UsageError, match="1e-20"):
        needed("gaussian", 1.0, 1e-25, 10)


def test_anytime_promises_the_highest_point() -> None:
    found = needed("gaussian", 1.0, 1e-6, 20, anytime=True)
    assert found.breach_anytime <= 1e-6 < needed("gaussian", 1.0, 1e-6, 20).breach * 2


def test_epsilon_of_normal_noise_by_integration() -> None:
    for mu in (0.2, 0.5, 3.0):
        epsilon = epsilon_of_normal(mu, 1e-5)
        x = np.linspace(-12, 12 + mu, 400_001)
        gap = norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x)
        assert np.maximum(gap, 0).sum() * (x[1] - x[0]) == pytest.approx(1e-5, rel=1e-3)
