"""Every theorem between promises, on random mechanisms over tiny domains by enumeration.

A premise is the strongest that the mechanism keeps; the conclusion must hold by its own
definition. For theorems that are called tight some mechanism breaks anything stronger.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.support.tiny import (
    Local,
    Tiny,
    alphabeta,
    holds,
    no_s_breach,
    random_law,
    random_local,
    random_tiny,
    reporter,
    retention,
)
from voile.privacy import DGamma, convert, parse_guarantee, parse_wish
from voile.privacy.guarantee import Guarantee
from voile.privacy.guarantees import (
    KINDS,
    Amplification,
    Breach,
    DeltaT,
    Dp,
    Indistinguishable,
    Relative,
    SBreach,
)
from voile.privacy.guarantees.theorems import BELIEF_THEOREMS, NothingFollows, Theorem

Mechanism = Tiny | Local
D = 0.05


def up(x: Fraction) -> float:
    """The next float: a premise must not be too strong by rounding."""
    return math.nextafter(float(x), math.inf)


def after(prior: float, ratio: Fraction) -> Fraction:
    return ratio * Fraction(prior) / (ratio * Fraction(prior) + 1 - Fraction(prior))


def strongest(name: str, mechanism: Mechanism) -> Guarantee | None:  # noqa: PLR0911
    """The strongest guarantee of a label that a mechanism keeps; None where there is none."""
    swap = mechanism.swap
    if isinstance(mechanism, Tiny):
        low, high = mechanism.low, mechanism.high
        both = max(high, 1 / low)
        needed = max(after(D, high), Fraction(D) / low)
        linked = max(needed, after(D, swap))
        match name:
            case "d-gamma[independent]":
                return DGamma(D, up(needed)) if needed < 1 else None
            case "d-gamma[exclusive]":
                return DGamma(D, up(linked), "exclusive") if linked < 1 else None
            case "relative":
                return Relative(D, up(Fraction(math.log(both))))
            case "dp[add-remove]":
                return Dp(up(Fraction(math.log(both))))
            case "breach[presence]":
                return Breach(D, up(after(D, both)), "presence")
            case "delta-T[presence]":
                return DeltaT(up(Fraction(math.log(both))), about="presence")
    match name:
        case "dp[swap]":
            return Dp(up(Fraction(math.log(swap))), "swap")
        case "indistinguishable":
            return Indistinguishable(up(Fraction(math.log(swap))))
        case "breach[record]":
            return Breach(D, up(after(D, swap)))
        case "delta-T[record]":
            return DeltaT(up(Fraction(math.log(swap))))
        case "amplification":
            return Amplification(up(swap)) if isinstance(mechanism, Local) else None
    return None


def stronger(guarantee: Guarantee) -> Guarantee:
    """The same with a claim that is a thousandth stronger."""
    data = guarantee.to_dict()
    name = KINDS[data.pop("kind")].claims[0]
    return type(guarantee).of({**data, name: data[name] * 0.999})


def mechanisms() -> Iterator[Mechanism]:
    """Random ones, and those in which a bound is met with equality."""
    rng = np.random.default_rng(20070923)
    for _ in range(8):
        yield random_tiny(rng)
    for _ in range(2):
        yield random_tiny(rng, size=3, count=2)
    for _ in range(4):
        yield random_local(rng)
    for gamma in (Fraction(1, 5), Fraction(1, 2)):
        promise = DGamma(D, float(gamma))
        low, high = promise.ratio_low, promise.ratio_high
        a = (1 - low) / (1 - low / high)
        yield alphabeta(a, a / high)
    for odds in (Fraction(2), Fraction(5)):
        yield alphabeta(odds / (1 + odds), 1 / (1 + odds))
    yield alphabeta(Fraction(1, 2), Fraction(1, 10))
    yield reporter(Fraction(3, 5), Fraction(1, 5))
    yield retention(Fraction(1, 3), [Fraction(1, 3)] * 3)


ALL = list(mechanisms())
CHOICES: dict[str, list[dict[str, Any]]] = {
    "d": [{"d": D}, {"d": D / 7}, {"d": 1.5 * D}],
    "rho1": [{"rho1": D}, {"rho1": 0.3}],
}


def conclusions(theorem: Theorem, premise: Guarantee) -> Iterator[Guarantee]:
    """What a theorem gives, for several choices of what is free."""
    wanted: list[dict[str, Any]] = [{}]
    for name in theorem.needs:
        wanted = CHOICES[name]
    for chosen in wanted:
        try:
            yield theorem.derive(premise, chosen)
        except NothingFollows:
            continue


def applies(theorem: Theorem, mechanism: Mechanism) -> Iterator[tuple[Guarantee, Guarantee]]:
    """Premise and conclusions of a theorem at a mechanism of the kind that it is about."""
    local = isinstance(mechanism, Local)
    if theorem.condition and "amplification" in theorem.source + theorem.target and not local:
        return
    premise = strongest(theorem.source, mechanism)
    if premise is not None:
        yield from ((premise, c) for c in conclusions(theorem, premise))


BY_ENUMERATION = [t for t in BELIEF_THEOREMS if t.target != "s-breach"]


def named(theorem: Theorem) -> str:
    return f"{theorem.source}->{theorem.target}"


@pytest.mark.parametrize("theorem", BY_ENUMERATION, ids=named)
def test_a_theorem_about_beliefs_holds_on_every_mechanism(theorem: Theorem) -> None:
    tried = 0
    for mechanism in ALL:
        for premise, conclusion in applies(theorem, mechanism):
            assert conclusion.label == theorem.target
            assert holds(premise, mechanism)
            assert holds(conclusion, mechanism), (premise, conclusion)
            tried += 1
    assert tried >= 5


@pytest.mark.parametrize("theorem", BY_ENUMERATION, ids=named)
def test_a_tight_theorem_about_beliefs_meets_equality(theorem: Theorem) -> None:
    """Some mechanism breaks the conclusion when that is made a thousandth stronger."""
    assert theorem.tight
    found = [c for m in ALL for _, c in applies(theorem, m) if breaks(c, m)]
    assert found
    if theorem.equivalent:
        assert len(found) == sum(1 for m in ALL for _ in applies(theorem, m))


def breaks(conclusion: Guarantee, mechanism: Mechanism) -> bool:
    try:
        return not holds(stronger(conclusion), mechanism)
    except Exception:  # a bound below what a guarantee can state is broken by anything
        return True


def test_the_strongest_premises_are_strongest() -> None:
    """What the tests start from: each holds by definition, and nothing stronger does."""
    for mechanism in ALL:
        for name in {t.source for t in BY_ENUMERATION}:
            premise = strongest(name, mechanism)
            if premise is not None:
                assert holds(premise, mechanism)
                assert breaks(premise, mechanism), premise


def test_s_breaches_follow_from_breaches() -> None:
    rng = np.random.default_rng(5)
    theorem = next(t for t in BELIEF_THEOREMS if t.target == "s-breach")
    for _ in range(10):
        p, replacing = Fraction(int(rng.integers(1, 9)), 10), random_law(rng, 3)
        premise = strongest("breach[record]", retention(p, replacing))
        assert premise is not None
        for s in (0.5, 2.0, 100.0):
            conclusion = theorem.derive(premise, {"s": s})
            assert isinstance(conclusion, SBreach)
            assert no_s_breach(conclusion, p, replacing)
    # The check can fail: what holds of rare sets only does not hold of frequent ones.
    uniform = [Fraction(1, 5)] * 5
    assert no_s_breach(SBreach(0.5, 0.1, 0.2), Fraction(1, 5), uniform)
    assert not no_s_breach(SBreach(3.0, 0.1, 0.2), Fraction(4, 5), uniform)


def test_amplification_and_breaches_are_the_same_both_ways() -> None:
    """γ ≤ ρ₂(1−ρ₁)/(ρ₁(1−ρ₂)) if and only if no breach is possible: Evfimievski et al."""
    rng = np.random.default_rng(2003)
    for _ in range(8):
        local = random_local(rng)
        for rho1, rho2 in ((0.05, 0.3), (0.2, 0.61), (0.1, 0.95)):
            allowed = (
                Fraction(rho2) * (1 - Fraction(rho1)) / (Fraction(rho1) * (1 - Fraction(rho2)))
            )
            assert holds(Breach(rho1, rho2), local) == (local.swap <= allowed)


def test_a_wrong_conclusion_is_caught() -> None:
    """Claims that one might expect and that are false: the checks can fail."""
    sharp = alphabeta(Fraction(5, 6), Fraction(1, 6))
    epsilon = math.log(5)
    gamma = up(Fraction(D) * 5)
    assert holds(Dp(epsilon), sharp)
    assert not holds(Dp(epsilon, "swap"), sharp)
    assert not holds(Dp(1.999 * epsilon, "swap"), sharp)
    assert holds(DGamma(D, gamma), sharp)
    assert not holds(DGamma(D, gamma, "exclusive"), sharp)
    assert not holds(DGamma(D, float(after(D, Fraction(5))) * 1.0001), sharp)
    assert not holds(Relative(D, math.log(gamma / D) * 0.999), sharp)


# ---------------------------------------------------------------------- the papers' numbers


def test_proposition_2_5_on_the_oracle(oracle: dict[str, dict[str, Any]]) -> None:
    expected = oracle["errata.prop25"]["expected"]
    found = convert(DGamma(0.01, 0.2), parse_wish("relative")).guarantee
    assert isinstance(found, Relative)
    assert math.exp(found.delta) == pytest.approx(expected["R"], rel=1e-8)
    back = convert(Relative(0.01, math.log(20)), parse_wish("d-gamma")).guarantee
    assert isinstance(back, DGamma)
    assert back.posterior / 0.01 == pytest.approx(expected["gamma/d"], rel=1e-8)


def test_proposition_3_5_is_loose(oracle: dict[str, dict[str, Any]]) -> None:
    expected = oracle["errata.prop35"]["expected"]
    relative = convert(DGamma(0.01, 0.2), parse_wish("relative")).guarantee
    found = convert(relative, parse_wish("indistinguishable"))
    assert isinstance(found.guarantee, Indistinguishable)
    assert found.guarantee.epsilon == pytest.approx(expected["2delta"], rel=1e-8)
    assert found.tight
    (printed,) = found.to_dict()["printed"]
    assert printed["epsilon"] == pytest.approx(expected["2delta+2ln2"], rel=1e-8)
    direct = convert(DGamma(0.01, 0.2), parse_wish("dp(unit=swap)"))
    values = [p["epsilon"] for p in direct.to_dict()["printed"]]
    assert values == pytest.approx([expected["2delta+2ln2"], expected["2delta"]], rel=1e-8)
    assert isinstance(direct.guarantee, Dp)
    assert expected["exact_max_log_ratio_swap"] < direct.guarantee.epsilon < expected["2delta"]
    half = alphabeta(Fraction(1, 2), Fraction(1, 2) / Fraction(99, 4))
    exact = math.log(half.swap)
    assert exact == pytest.approx(expected["exact_max_log_ratio_swap"], rel=1e-8)


def test_adult_in_terms_of_differential_privacy(oracle: dict[str, dict[str, Any]]) -> None:
    expected = oracle["dp.adult"]["expected"]
    adult = DGamma(10 * 30162 / 648023040, 0.2)
    alone = convert(adult, parse_wish("dp")).to_dict()
    assert alone["guarantee"]["unit"] == "add-remove"
    assert alone["guarantee"]["epsilon"] == pytest.approx(
        expected["tight"]["eps_addremove"], rel=1e-9
    )
    swapped = convert(adult, parse_wish("dp(unit=swap)")).guarantee.to_dict()
    assert swapped["epsilon"] == pytest.approx(expected["Smax"]["eps_swap"], rel=1e-9)
    linked = convert(adult, parse_wish("d-gamma(adversary=exclusive)")).guarantee.to_dict()
    assert linked["gamma"] == pytest.approx(expected["Smax"]["excl_posterior"], rel=1e-9)


def test_chains_are_as_strong_as_the_direct_way() -> None:
    """Of several ways the strongest is taken, and none is called tight without a reason."""
    source = parse_guarantee("d-gamma(d=0.01, gamma=0.2)")
    swap = convert(source, parse_wish("dp(unit=swap)"))
    assert [s.theorem.target for s in swap.steps] == ["dp[swap]"]
    same = convert(source, parse_wish("indistinguishable"))
    assert same.guarantee.to_dict()["epsilon"] == swap.guarantee.to_dict()["epsilon"]
    assert same.tight
    thrice = convert(source, parse_wish("s-breach(s=5, rho1=0.1)"))
    assert [s.theorem.target for s in thrice.steps] == ["dp[swap]", "breach[record]", "s-breach"]
    assert not thrice.tight
    assert "by itself" in thrice.condition
