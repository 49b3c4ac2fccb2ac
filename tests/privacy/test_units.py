"""Promises that hold up to a small probability, for both units, by listing every event.

A mechanism is its laws on three tables: one without a record, one with a record more, and one with
another record more. Adding or removing compares the first with each of the others, exchanging
compares these two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from tests.support.soak import rounds
from voile.arrays import Floats
from voile.errors import PromiseError, UsageError
from voile.privacy import convert, parse_guarantee, parse_target
from voile.privacy.gaussian import any_rise_chance, delta_of, epsilon_of, mu_of_pure
from voile.privacy.guarantees import ApproximateDp, DeltaT, Dp, Gdp, Target, Unit, Zcdp
from voile.privacy.guarantees.theorems import NothingFollows

UNITS: tuple[Unit, ...] = ("add-remove", "swap")
ORDERS = 1 + np.geomspace(1e-4, 1e4, 400)
ROUNDING = 1 + 1e-7
NORMAL = NormalDist()


@dataclass(frozen=True)
class Mechanism:
    """The laws of what is published, on the three tables."""

    without: Floats
    one: Floats
    other: Floats

    def pairs(self, unit: Unit) -> list[tuple[Floats, Floats]]:
        """Laws on neighbouring tables, both ways."""
        found = [(self.one, self.other)]
        if unit == "add-remove":
            found = [(self.without, self.one), (self.without, self.other)]
        return [pair for p, q in found for pair in ((p, q), (q, p))]

    def rest(self, unit: Unit, epsilon: float) -> float:
        """The least δ of (ε, δ)."""
        return max(float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
                   for p, q in self.pairs(unit))  # fmt: skip

    def concentration(self, unit: Unit) -> float:
        """The least ρ at the orders that are tried."""
        found = 0.0
        for p, q in self.pairs(unit):
            exponents = ORDERS[:, None] * np.log(p) + (1 - ORDERS[:, None]) * np.log(q)
            top = exponents.max(axis=1)
            logs = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
            found = max(found, float((logs / ((ORDERS - 1) * ORDERS)).max()))
        return found

    def mu(self, unit: Unit) -> float:
        """The least μ: between two convex curves the corners decide, and they are events."""
        found = 0.0
        for p, q in self.pairs(unit):
            for size in range(1, len(p)):
                for event in combinations(range(len(p)), size):
                    a, b = (min(max(float(x[list(event)].sum()), 1e-300), 1 - 1e-16)
                            for x in (p, q))  # fmt: skip
                    found = max(found, NORMAL.inv_cdf(a) - NORMAL.inv_cdf(b))
        return found

    def ratio(self, unit: Unit) -> float:
        """The least ε."""
        return max(float(np.log(p / q).max()) for p, q in self.pairs(unit))

    def rises(self, unit: Unit, rise: float) -> float:
        """P[log-odds rise by more]."""
        return max(float(p[np.log(p / q) > rise].sum()) for p, q in self.pairs(unit))


def random_mechanisms(number: int) -> Iterator[Mechanism]:
    """Laws on up to five outcomes: nearly alike, far apart, and with rare outcomes."""
    rng = np.random.default_rng(19)
    for _ in range(number):
        outcomes, width = int(rng.integers(2, 6)), float(rng.choice([0.05, 0.5, 2.0]))
        base = np.log(rng.dirichlet([0.5] * outcomes) + 1e-7)
        laws = np.exp(base + width * rng.standard_normal((3, outcomes)))
        yield Mechanism(*(laws / laws.sum(axis=1, keepdims=True)))


def normal(mu: float, places: int = 4001) -> Mechanism:
    """Normal noise on a figure that one record raises by μ and another lowers by μ, in cells."""
    edges = np.linspace(-12 - mu, 12 + mu, places)
    laws = []
    for centre in (0.0, mu, -mu):
        below = np.array([math.erfc((centre - x) / math.sqrt(2)) / 2 for x in edges])
        above = np.array([math.erfc((x - centre) / math.sqrt(2)) / 2 for x in edges])
        inner = np.where(edges[1:] < centre, np.diff(below), -np.diff(above))
        law = np.concatenate(([below[0]], inner, [above[-1]]))
        laws.append(np.maximum(law, 1e-300))
    return Mechanism(laws[0], laws[1], laws[2])


def derived(source: Any, kind: Any, **fixed: Any) -> Any:
    """What follows, as a guarantee; None where nothing does."""
    try:
        return convert(source, Target(kind, fixed)).guarantee
    except PromiseError:
        return None


ABOUT = {"swap": "record", "add-remove": "presence"}


def holds(claim: Any, mechanism: Mechanism) -> bool:
    """By the definition of each kind."""
    match claim:
        case Zcdp(rho=rho, unit=unit):
            return mechanism.concentration(unit) <= rho * ROUNDING + 1e-12
        case Gdp(mu=mu, unit=unit):
            return mechanism.mu(unit) <= mu * ROUNDING + 1e-9
        case ApproximateDp(epsilon=epsilon, delta=delta, unit=unit):
            return mechanism.rest(unit, epsilon) <= delta * ROUNDING + 1e-13
        case Dp(epsilon=epsilon, unit=unit):
            return mechanism.ratio(unit) <= epsilon * ROUNDING + 1e-12
        case DeltaT(delta=delta, eta=eta, about=about):
            unit = "swap" if about == "record" else "add-remove"
            return mechanism.rises(unit, delta * ROUNDING) <= eta * ROUNDING + 1e-13
    raise AssertionError(claim)


def premises(mechanism: Mechanism, unit: Unit) -> Iterator[Any]:
    """The strongest promises that a mechanism keeps."""
    yield Dp(mechanism.ratio(unit) * (1 + 1e-12), unit)
    yield Zcdp(mechanism.concentration(unit) * (1 + 1e-4), unit)
    yield Gdp(mechanism.mu(unit) * (1 + 1e-12), unit)
    for epsilon in (0.0, 0.1, 1.0):
        rest = mechanism.rest(unit, epsilon)
        if rest < 1:
            yield ApproximateDp(epsilon, rest, unit)


def conclusions(source: Any, rest: float) -> Iterator[Any]:
    """All that follows for the same unit and for exchanging."""
    for unit in dict.fromkeys((source.unit, "swap")):
        yield derived(source, Dp, unit=unit)
        yield derived(source, Zcdp, unit=unit)
        yield derived(source, Gdp, unit=unit)
        for delta in (1e-6, 1e-3, 0.05, max(rest, 1e-12)):
            yield derived(source, ApproximateDp, delta=delta, unit=unit)
        for rise in (0.05, 0.5, 2.0, 6.0):
            yield derived(source, DeltaT, delta=rise, about=ABOUT[unit])
    if isinstance(source, ApproximateDp):
        yield derived(source, ApproximateDp)


@pytest.mark.parametrize("unit", UNITS)
def test_every_conversion_holds_on_every_mechanism(unit: Unit) -> None:
    found = dict.fromkeys(("Dp", "Zcdp", "Gdp", "ApproximateDp", "DeltaT"), 0)
    for mechanism in random_mechanisms(rounds(20, 3_000)):
        for source in premises(mechanism, unit):
            assert holds(source, mechanism), source
            rest = source.delta if isinstance(source, ApproximateDp) else 1e-9
            for claim in conclusions(source, rest):
                if claim is not None:
                    assert holds(claim, mechanism), (source, claim)
                    found[type(claim).__name__] += 1
    assert min(found.values()) >= 20


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_normal_noise_meets_its_conversions_with_equality(mu: float) -> None:
    """And so anything a hundredth stronger is false of it: the checks can fail."""
    mechanism = normal(mu)
    for unit in UNITS:
        factor = 2 if unit == "swap" else 1
        source = Gdp(mu, "add-remove")
        rho = derived(source, Zcdp, unit=unit).rho
        assert rho == pytest.approx((factor * mu) ** 2 / 2)
        orders = mechanism.concentration(unit)
        assert 0.99 * rho < orders <= rho * ROUNDING
        for delta in (1e-6, 1e-3, 0.2):
            claim = derived(source, ApproximateDp, delta=delta, unit=unit)
            assert holds(claim, mechanism)
            if claim.epsilon > 0:
                less = ApproximateDp(0.99 * claim.epsilon, delta, claim.unit)
                assert not holds(less, mechanism)


def test_thirty_per_cent_too_little_noise_is_caught() -> None:
    quiet = normal(1.0 / 0.7)
    for target in ("approximate-dp(delta=1e-6, unit=add-remove)", "approximate-dp(delta=1e-6)"):
        claim = convert(parse_guarantee("gdp(mu=1, unit=add-remove)"), parse_target(target))
        assert holds(claim.guarantee, normal(1.0))
        assert not holds(claim.guarantee, quiet)


@pytest.mark.parametrize("mu", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("rise", [0.5, 1.0, 5.0])
def test_what_is_computed_from_normal_noise_reaches_the_bound_of_beliefs(
    mu: float, rise: float
) -> None:
    """Publish no more than whether the figure is above a threshold: the bound is met."""
    eta = any_rise_chance(mu, rise)
    threshold = NORMAL.inv_cdf(1 - eta) + mu if eta > 1e-12 else None
    if threshold is None:
        return
    with_record, without = (1 - NORMAL.cdf(threshold - centre) for centre in (mu, 0.0))
    assert with_record == pytest.approx(eta, rel=1e-4)
    if without > 1e-13:
        assert math.log(with_record / without) == pytest.approx(rise, rel=1e-2)


def test_two_events_reach_the_rest_of_exchanging() -> None:
    """P₁(E) = e^ε·P₀(E) + δ and P₀(E) = e^ε·P₂(E) + δ: nothing stronger than 2ε holds."""
    epsilon, delta, least = 0.5, 0.01, 0.02
    without = math.exp(epsilon) * least + delta
    one = math.exp(epsilon) * without + delta
    mechanism = Mechanism(*(np.array([x, 1 - x]) for x in (without, one, least)))
    source = ApproximateDp(epsilon, delta, "add-remove")
    assert holds(source, mechanism)
    claim = derived(source, ApproximateDp)
    assert (claim.epsilon, claim.unit) == (2 * epsilon, "swap")
    assert claim.delta == pytest.approx((1 + math.exp(epsilon)) * delta)
    assert holds(claim, mechanism)
    assert not holds(ApproximateDp(2 * epsilon, 2 * delta), mechanism)
    assert not holds(ApproximateDp(2 * epsilon * 0.999, claim.delta), mechanism)


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 1.0, 5.0, 30.0])
def test_randomized_response_needs_the_mu_of_its_epsilon(epsilon: float) -> None:
    mu = derived(Dp(epsilon, "add-remove"), Gdp, unit="add-remove").mu
    assert mu == mu_of_pure(epsilon)
    no = 1 / (1 + math.exp(epsilon))
    assert -2 * NORMAL.inv_cdf(no) == pytest.approx(mu, rel=1e-8)


def test_exchanging_says_nothing_of_adding() -> None:
    """Publish the number of rows: laws are equal for exchanging, and exclude each other else."""
    rows = Mechanism(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    assert rows.rest("swap", 0.0) == 0
    assert rows.rest("add-remove", 50.0) == 1
    for source in ("zcdp(rho=0.1)", "approximate-dp(epsilon=1, delta=1e-6)", "gdp(mu=0.1)",
                   "dp(epsilon=1, unit=swap)"):  # fmt: skip
        for kind in ("zcdp", "approximate-dp", "gdp"):
            fixed = "delta=1e-3, " * (kind == "approximate-dp") + "unit=add-remove"
            with pytest.raises(PromiseError, match="number of rows"):
                convert(parse_guarantee(source), parse_target(f"{kind}({fixed})"))


def test_a_unit_that_is_left_out_is_exchanging() -> None:
    assert parse_guarantee("zcdp(rho=0.1)") == parse_guarantee("zcdp(rho=0.1, unit=swap)")
    assert parse_guarantee("gdp(mu=0.1, unit=swap)").to_dict() == {"kind": "gdp", "mu": 0.1}
    added = parse_guarantee("zcdp(rho=0.1, unit=add-remove)")
    assert added.to_dict() == {"kind": "zcdp", "rho": 0.1, "unit": "add-remove"}
    assert "With any one record or without it" in added.explain()
    assert convert(added, parse_target("zcdp")).guarantee.to_dict() == {"kind": "zcdp", "rho": 0.4}
    same = convert(added, parse_target("approximate-dp(delta=1e-6, unit=add-remove)"))
    assert same.guarantee.to_dict()["unit"] == "add-remove"


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("gdp(mu=1, unit=add-remove)", "d-gamma(d=0.01)", "no ε bounds that"),
        ("gdp(mu=1)", "breach(rho1=0.1)", "no ε bounds that"),
        ("gdp(mu=1)", "dp", "no ε bounds that"),
        ("gdp(mu=60, unit=add-remove)", "gdp", "μ would be 120"),
        ("dp(epsilon=5000, unit=swap)", "gdp", "too large"),
        ("approximate-dp(epsilon=5, delta=0.1, unit=add-remove)", "approximate-dp", "δ would be"),
        ("approximate-dp(epsilon=1, delta=1e-6, unit=add-remove)",
         "approximate-dp(delta=2e-6)", "more than 2e-06"),
        ("gdp(mu=5)", "delta-T(delta=0)", "with any probability"),
    ],
)  # fmt: skip
def test_what_does_not_follow_says_why(source: str, target: str, words: str) -> None:
    with pytest.raises(PromiseError, match=words):
        convert(parse_guarantee(source), parse_target(target))


def test_a_wrong_mu_or_unit_is_named() -> None:
    for text, words in (("gdp(mu=-1)", "mu = -1"), ("gdp(mu=101)", "mu = 101"),
                        ("zcdp(rho=1, unit=exchange)", "unit = 'exchange'")):  # fmt: skip
        with pytest.raises(UsageError, match=words):
            parse_guarantee(text)


def test_the_formulas_of_one_unit_are_those_of_the_other() -> None:
    for kind, name, value in (("dp", "epsilon", 0.7), ("zcdp", "rho", 0.2), ("gdp", "mu", 0.6)):
        for target in (Zcdp, ApproximateDp):
            fixed = {"delta": 1e-5} if target is ApproximateDp else {}
            both = [
                derived(parse_guarantee(f"{kind}({name}={value}, unit={unit})"), target,
                        unit=unit, **fixed)
                for unit in UNITS
            ]  # fmt: skip
            left, right = (None if one is None else {**one.values, "unit": ""} for one in both)
            assert left == right


def test_exact_numbers_agree_with_the_curve() -> None:
    claim = derived(Gdp(0.5, "add-remove"), ApproximateDp, delta=1e-9, unit="add-remove")
    assert claim.epsilon == epsilon_of(0.5, 1e-9)
    assert delta_of(0.5, claim.epsilon) <= 1e-9
    assert not isinstance(claim, NothingFollows)
