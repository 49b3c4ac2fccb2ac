"""Every public function that returns a parameter for a promise, against brute force, at corners.

At the parameter that is returned an independent posterior, ratio or tail keeps the promise; where
the function says that it is the largest, or the least, one a little beyond does not. Corners:
retentions near 0 and 1, ρ₁ near ρ₂, one value and many, huge domains, tiny masses. What is swept is
found by looking at the modules: a new function without a sweep fails the first test.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from decimal import MAX_EMAX, Decimal, localcontext
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import voile.privacy
from tests.support.soak import some
from voile.errors import PromiseError
from voile.evaluate.planning.local_choice import (
    against_sets,
    alone,
    choose,
    largest,
)
from voile.kinds.counts.manifest import promise_for_delta, promise_for_rho, promised
from voile.kinds.views.options import ViewOptions
from voile.kinds.views.promise import promise_for
from voile.options.planning import LocalPlanOptions
from voile.privacy import DGamma, LikelihoodRatio, convert, gaussian, parse_guarantee, parse_target
from voile.privacy import consequences as all_consequences
from voile.privacy.guarantee import round_up
from voile.privacy.guarantees import Breach, SBreach
from voile.privacy.guarantees.theorems import ratio_of
from voile.privacy.interactive import account, needed, needed_for_epsilon
from voile.privacy.interactive.confidence import breach as normal_breach
from voile.privacy.interactive.confidence import variance_needed, walk, walk_bound
from voile.privacy.interactive.laws import noise_law
from voile.privacy.local import (
    amplification,
    belief_after,
    common_retention,
    epsilon_of,
    equal_shares,
    exp_down,
    first_breach,
    identity_retention,
    joint_bound,
    joint_retention,
    known_prior_retention,
    largest_along,
    largest_rho1,
    least_relative_prior,
    local_epsilon,
    local_promise,
    local_statements,
    prevents,
    relative_prior_bound,
    retention_against,
    retention_for_ratio,
    row_amplification,
    row_bound,
    row_retention,
    worst_breach,
)
from voile.privacy.planner import (
    Form,
    largest_retention,
    least_noise,
    most_protected,
    plan,
    plan_shaped,
    promise_everywhere,
    promise_where_likely,
    protected_priors,
    within_view,
)
from voile.privacy.planner import needed as mean_needed
from voile.privacy.series import SeriesNoise, plan_series
from voile.schema.index import Product

Test = Callable[..., None]
SWEPT: set[str] = set()


def sweep(*functions: Callable[..., Any]) -> Callable[[Test], Test]:
    """This test sweeps these functions."""
    SWEPT.update(f"{function.__module__}.{function.__name__}" for function in functions)
    return lambda test: test


POSTERIORS = "gives a posterior, not a parameter; against Bayes' rule in test_adversary"
BELIEFS = "gives a posterior, not a parameter; against Bayes' rule in test_local_promises"
WORDS = "gives words or reads them"
PARTS = "a part of what is swept"
PEOPLE = "against exact likelihoods of people with several rows, in test_people"
COMPOSED = "against exact losses of composed mechanisms, in test_composition"
NOT_SWEPT = {
    "voile.privacy.composition.compose": COMPOSED,
    "voile.privacy.composition.compose_beliefs": COMPOSED,
    "voile.privacy.guarantees.answer_theorems.epsilon_of_concentrated": COMPOSED,
    "voile.privacy.adversary.exclusive": POSTERIORS,
    "voile.privacy.adversary.independent": POSTERIORS,
    "voile.privacy.adversary.is_bounded": POSTERIORS,
    "voile.privacy.adversary.leaks": POSTERIORS,
    "voile.privacy.adversary.log_ratio": POSTERIORS,
    "voile.privacy.guarantees.parse_guarantee": WORDS,
    "voile.privacy.guarantees.parse_target": WORDS,
    "voile.privacy.guarantees.spelled": WORDS,
    "voile.privacy.guarantees.statements.not_promised": WORDS,
    "voile.privacy.guarantees.statements.statements": "exact bounds, in test_conversions",
    "voile.privacy.interactive.confidence.conf": "log-odds, by definition",
    "voile.privacy.local.amplification.locally_not_promised": WORDS,
    "voile.privacy.local.posteriors.belief_in": BELIEFS,
    "voile.privacy.local.posteriors.cell_beliefs": BELIEFS,
    "voile.privacy.local.posteriors.perturbed": BELIEFS,
    "voile.privacy.local.posteriors.rare_values": "counts",
    "voile.privacy.local.posteriors.relative_priors": "measures a histogram",
    "voile.privacy.meaning.alphabeta_law": "a law, for small domains",
    "voile.privacy.meaning.constant_law": "a law, for small domains",
    "voile.privacy.meaning.identity_law": "a law, for small domains",
    "voile.privacy.meaning.meaning": "lists all tables itself",
    "voile.privacy.meaning.replacement_law": "a law, for small domains",
    "voile.privacy.meaning.statistical_difference": "a distance",
    "voile.privacy.planner.best_retention": PARTS,
    "voile.privacy.planner.check_retention": PARTS,
    "voile.privacy.planner.room_for": PARTS,
    "voile.privacy.requirements.requirement_from_dict": WORDS,
    "voile.privacy.requirements.requirements_of": WORDS,
    "voile.privacy.series.noise_variance": "an error, not a promise",
    "voile.kinds.views.promise.check_size": "a limit of size",
    "voile.kinds.views.promise.linked_list": WORDS,
    "voile.kinds.views.promise.weak_prior": WORDS,
    "voile.kinds.views.promise.weakened": WORDS,
    "voile.kinds.counts.manifest.conjunct_disclosed": WORDS,
    "voile.kinds.counts.manifest.change_of": PEOPLE,
    "voile.kinds.counts.manifest.rows_of": PEOPLE,
    "voile.kinds.counts.manifest.unit_of": WORDS,
    "voile.kinds.views.promise.of_one_record": PEOPLE,
    "voile.kinds.counts.manifest.conjunct_statements": WORDS,
    "voile.kinds.counts.manifest.conjuncts_not_promised": WORDS,
    "voile.kinds.counts.manifest.raised": PARTS,
    "voile.kinds.counts.manifest.table_file": WORDS,
    **dict.fromkeys(
        (
            f"voile.evaluate.planning.local_choice.{name}"
            for name in (
                "check_error",
                "check_reach",
                "clients_needed",
                "conjunction_variance",
                "count_variance",
                "deviations",
                "identity_variance",
                "largest_variance",
                "least_for_error",
                "reached_error",
                "retention_needed",
                "rows_by_hoeffding",
                "rows_if_normal",
                "worst_joint_variance",
                "worst_variance",
            )
        ),
        "an error, not a promise",
    ),
    **dict.fromkeys(
        (
            f"voile.evaluate.planning.local_choice.{name}"
            for name in (
                "breach_of",
                "breach_of_sets",
                "check_promise",
                "in_words",
                "rounded_up",
                "row_ratio",
                "shortened",
                "weaker",
            )
        ),
        PARTS,
    ),
}
"""Public functions that are not swept, and why."""
WITHOUT_A_LIST = (
    "voile.privacy.planner", "voile.kinds.views.promise", "voile.kinds.counts.manifest",
    "voile.evaluate.planning.local_choice",
)  # fmt: skip
"""Modules without `__all__` whose functions plan or promise."""


def public() -> Iterator[str]:
    """Every function that voile.privacy offers, and those of the modules that plan."""
    found = pkgutil.walk_packages(voile.privacy.__path__, "voile.privacy.")
    for name in ("voile.privacy", *(module.name for module in found)):
        module = importlib.import_module(name)
        for one in getattr(module, "__all__", ()):
            function = inspect.unwrap(getattr(module, one))
            if inspect.isfunction(function):
                yield f"{function.__module__}.{function.__name__}"
    for name in WITHOUT_A_LIST:
        for one, function in inspect.getmembers(importlib.import_module(name)):
            plain = inspect.unwrap(function) if callable(function) else function
            if inspect.isfunction(plain) and plain.__module__ == name and one[0] != "_":
                yield f"{name}.{one}"


def test_every_function_that_returns_a_parameter_is_swept() -> None:
    offered = set(public())
    assert offered - SWEPT == NOT_SWEPT.keys()
    assert offered >= SWEPT


# ---------------------------------------------------------------------- γ of a column and of a row

CHANCES = [0.0, 1e-300, 1e-12, 0.3, 0.5, 1 - 1e-9, math.nextafter(1, 0), 1.0]
SIZES = [1, 2, 3, 74, 10**9, 2**200]


def exact_log(ratio: Fraction) -> Decimal:
    """To 60 digits."""
    with localcontext() as context:
        context.prec, context.Emax = 60, MAX_EMAX
        return Decimal(ratio.numerator).ln() - Decimal(ratio.denominator).ln()


def ratio_of_values(p: Fraction, sizes: Sequence[int]) -> Fraction | None:
    """P(y|x)/P(y|x'), the most over rows: every column that can differ shows its own value."""
    ratio = Fraction(1)
    for size in sizes:
        if size == 1:
            continue
        other = (1 - p) / size
        if other == 0:
            return None
        ratio *= (p + other) / other
    return ratio


@sweep(amplification, row_amplification, local_epsilon, epsilon_of, local_promise)
def test_sweep_of_the_ratio_of_a_row() -> None:
    for p, sizes in product(CHANCES, ([1], [2], [2**200], [1, 3], [74, 2, 10**9])):
        columns = [amplification(p, Fraction(1, size)) for size in sizes]
        row, expected = row_amplification(columns), ratio_of_values(Fraction(p), sizes)
        assert row == expected, (p, sizes)
        if row is None:
            assert local_epsilon(p, Fraction(1, max(sizes))) == epsilon_of(row) == math.inf
            continue
        log, found = exact_log(row), Decimal(epsilon_of(row))
        assert log <= found <= log * (1 + Decimal("1e-14")) + Decimal("1e-15")
        if row < 10**300:
            assert row <= Fraction(local_promise(row).gamma) <= row * (1 + Fraction(1, 2**50))


RATIOS = [
    Fraction(1), 1 + Fraction(1, 10**15), Fraction(11, 10), Fraction(3), Fraction(10**12),
    Fraction(10**250),
]  # fmt: skip


def beyond(p: float, by: float) -> float:
    """A little more retention: by this share of what is kept, or of what is not, the smaller."""
    return min(p * (1 + by) + 1e-300, 1 - (1 - p) * (1 - by))


@sweep(retention_for_ratio, equal_shares, common_retention, largest_along)
def test_sweep_of_retentions_for_a_ratio() -> None:
    for most, size in product(RATIOS, SIZES):
        p = retention_for_ratio(most, Fraction(1, size))
        kept = ratio_of_values(Fraction(p), [size])
        assert kept is not None and kept <= most if size > 1 else p == 1
        if size > 1 and p < 1:
            more = ratio_of_values(Fraction(math.nextafter(p, 1)), [size])
            assert more is None or more > most, (most, size)
    for most, sizes in product(RATIOS, ([1], [2, 2], [1, 74, 10**6], [3] * 9)):
        masses = [Fraction(1, size) for size in sizes]
        common = common_retention(most, masses)
        kept = ratio_of_values(Fraction(common), sizes)
        assert kept is not None and kept <= most
        more = ratio_of_values(Fraction(math.nextafter(common, 2)), sizes)
        assert common == 1 or more is None or more > most
        shares = equal_shares(most, masses)
        each = [ratio_of_values(Fraction(p), [n]) for p, n in zip(shares, sizes, strict=True)]
        assert math.prod(one for one in each if one is not None) <= most
        ratios = [one for one, n in zip(each, sizes, strict=True) if n > 1 and one is not None]
        if most > 1 + Fraction(1, 10**12) and ratios and max(shares) < 1 - 1e-9:
            share = float(exact_log(most)) / len(ratios)
            logs = [float(exact_log(ratio)) for ratio in ratios]
            assert logs == pytest.approx([share] * len(logs), rel=1e-3)
    assert largest_along(lambda p: p <= 0.3) == 0.3
    assert largest_along(lambda p: p == 0) == 0
    assert largest_along(lambda _: True) == 1


@sweep(exp_down)
def test_sweep_of_the_ratio_below_an_epsilon() -> None:
    for epsilon in (1e-300, 1e-16, 1e-9, 0.5, 1.0, 36.7, 699.9, 700.1, 5000.0):
        found = exp_down(epsilon)
        log = exact_log(found)
        assert log <= Decimal(epsilon)
        if epsilon > 1e-9:
            assert log >= Decimal(epsilon) * (1 - Decimal("1e-6")), epsilon


# ---------------------------------------------------------------------- (ρ₁, ρ₂) for every prior

BREACHES = [
    (0.1, 0.95), (1e-6, 0.5), (0.5, 0.5 + 1e-9), (0.3, 0.3), (0.9, 0.999999), (1e-9, 1e-8),
    (0.01, 0.02), (0.999, 0.9999),
]  # fmt: skip


@sweep(prevents, belief_after, local_statements)
def test_sweep_of_beliefs_for_every_prior() -> None:
    for (rho1, rho2), p, size in product(BREACHES, CHANCES, SIZES):
        ratio = ratio_of_values(Fraction(p), [size])
        before = Fraction(rho1)
        if ratio is None:
            assert not prevents(ratio, Breach(rho1, rho2))
            continue
        # All who are not believed in have another value; y is seen.
        seen, other = ratio, Fraction(1)
        after = before * seen / (before * seen + (1 - before) * other)
        assert belief_after(rho1, ratio) == after
        assert prevents(ratio, Breach(rho1, rho2)) == (after <= Fraction(rho2))
        for statement in local_statements(ratio, simulated=False):
            data: Any = statement.data
            match data["kind"]:
                case "amplification":
                    assert Fraction(data["gamma"]) >= ratio
                case "dp" | "delta-T":
                    assert Decimal(data.get("epsilon", data.get("delta"))) >= exact_log(ratio)
                case "breach":
                    start = Fraction(data["rho1"])
                    reached = start * ratio / (start * ratio + 1 - start)
                    assert reached <= Fraction(data["rho2"]) < 1


# ---------------------------------------------------------------------- (s, ρ₁, ρ₂) for sets

RELATIVE = [1e-6, 0.05, 0.1, 1.0, 20.0, 1e6]
NEARLY_ALL = 1 - 1e-12


def product_masses(columns: int) -> list[list[float]]:
    """All alike, and all but one of nearly everything; from next to nothing on."""
    grid = [*np.geomspace(1e-15, 0.5, 120), *(1 - np.geomspace(0.5, 1e-12, 60))]
    alike = [[m] * columns for m in grid]
    corner = [[NEARLY_ALL] * (columns - 1) + [m] for m in grid]
    mixed = [[m, *[0.3] * (columns - 1)] for m in grid] if columns > 1 else []
    return alike + corner + mixed


def product_likelihoods(p: float, masses: Sequence[float]) -> tuple[float, float]:
    """P[Y∈S₁×…×S_k] of someone in all of them, and of someone in none."""
    return (
        math.prod((1 - p) * m + p for m in masses),
        math.prod((1 - p) * m for m in masses),
    )


def after_hearing(prior: float, member: float, other: float) -> float:
    """P[X∈S | Y∈S] where everyone else is outside of every column's set."""
    joint = prior * member
    return joint / (joint + (1 - prior) * other) if joint else 0.0


def worst_product(p: float, columns: int, s: float, rho1: float) -> float:
    """The largest belief in a product set with a relative prior below s."""
    kink = min(NEARLY_ALL, rho1 / s)  # from here on the prior is ρ₁
    kinks = [[kink ** (1 / columns)] * columns, [NEARLY_ALL] * (columns - 1) + [kink]]
    worst = 0.0
    for masses in product_masses(columns) + kinks:
        prior = min(rho1, s * math.prod(masses))
        worst = max(worst, after_hearing(prior, *product_likelihoods(p, masses)))
    return worst


def every_set(p: float, columns: int, s: float, rho1: float) -> float:
    """The largest belief in any set of rows: rare, odd and other values, all sets listed."""
    worst = 0.0
    for rare, odd in ((1e-9, 1e-9), (1e-3, 1e-9), (0.4, 1e-6), (1 - 1e-6, 1e-7), (0.3, 0.3)):
        mass = [rare, odd, 1 - rare - odd]
        rows = list(product(range(3), repeat=columns))
        one = np.array([[p * (x == y) + (1 - p) * mass[y] for y in range(3)] for x in range(3)])
        chance = np.array([[math.prod(one[a, b] for a, b in zip(x, y, strict=True))
                            for y in rows] for x in rows])  # fmt: skip
        weight = np.array([math.prod(mass[v] for v in y) for y in rows])
        sets = np.array(list(product((0.0, 1.0), repeat=len(rows)))[1:-1])
        hit = sets @ chance.T
        member = np.where(sets > 0, hit, 0).max(axis=1)
        other = np.where(sets > 0, np.inf, hit).min(axis=1)
        prior = np.minimum(rho1, s * (sets @ weight))
        worst = max(worst, float((prior * member / (prior * member + (1 - prior) * other)).max()))
    return worst


@sweep(joint_retention, least_relative_prior)
@pytest.mark.parametrize("columns", [1, 2, 5])
def test_sweep_of_retentions_against_products(columns: int) -> None:
    for (rho1, rho2), s in product(BREACHES, RELATIVE):
        p = joint_retention(SBreach(s, rho1, rho2), columns)
        where = (rho1, rho2, s, columns, p)
        slack = 1 + 1e-9
        assert worst_product(p, columns, s, rho1) <= rho2 * slack, where
        if p < 1 and rho1 < rho2 * (1 - 1e-6) and p < 1 - 1e-9:
            assert worst_product(beyond(p, 0.05), columns, s, rho1) > rho2, where
        bound = least_relative_prior([p] * columns, Breach(rho1, rho2))
        assert bound is None or float(bound) >= s * (1 - 1e-12)


@sweep(joint_bound, first_breach)
def test_sweep_of_products_of_given_masses() -> None:
    chances = [1e-12, 0.01, 0.2, 0.95, 0.999999]
    masses = [(1e-12,), (0.5,), (1 - 1e-9,), (1e-6, 0.9), (0.01, 0.01), (1 - 1e-9, 1e-3, 0.5)]
    for (rho1, rho2), p, m in product(BREACHES, chances, masses):
        breach, alike = Breach(rho1, rho2), [p] * len(m)
        first, printed = first_breach(alike, m, breach), joint_bound(alike, m, breach)
        likelihoods = product_likelihoods(p, m)
        at_most = after_hearing(rho1, *likelihoods)
        if first is None:  # even the largest prior is not breached
            assert at_most <= rho2 * (1 + 1e-9)
        else:
            prior = float(first) * math.prod(m)
            assert after_hearing(prior, *likelihoods) == pytest.approx(rho2, rel=1e-6)
            assert prior <= rho1 * (1 + 1e-9)
        if printed is not None:
            prior = min(rho1, float(printed) * math.prod(m))
            assert after_hearing(prior, *likelihoods) <= rho2 * (1 + 1e-9)
            assert first is None or first >= printed * (1 - Fraction(1, 10**9))
        if len(m) == 3 or p not in (0.2, 0.95):
            continue
        s = float(min(printed or 1, 10**9))
        kept = joint_retention(SBreach(s, rho1, rho2), len(m), max(m))
        prior = min(rho1, s * math.prod(m))
        assert after_hearing(prior, *product_likelihoods(kept, m)) <= rho2 * (1 + 1e-9)


@sweep(row_retention, row_bound, retention_against, relative_prior_bound)
@pytest.mark.parametrize("columns", [1, 2])
def test_sweep_of_retentions_against_sets_of_any_shape(columns: int) -> None:
    for (rho1, rho2), s in product(BREACHES, RELATIVE):
        breach = SBreach(s, rho1, rho2)
        p = row_retention(breach, columns)
        where = (rho1, rho2, s, columns, p)
        assert p <= joint_retention(breach, columns) * (1 + 1e-12), where
        assert every_set(p, columns, s, rho1) <= rho2 * (1 + 1e-9), where
        assert columns > 1 or p == retention_against(breach)
        # Where s is at least ρ₁ it is the largest: S holds what is rare in some column and odd in
        # none, with the mass ρ₁/s; others are odd in all.
        if s > rho1 and rho1 < rho2 * (1 - 1e-6) and p < 1 - 1e-9:
            mass, q = rho1 / s, (1 - beyond(p, 0.01)) ** columns
            assert after_hearing(rho1, q * mass + 1 - q, q * mass) > rho2, where
        bound = row_bound([p] * columns, Breach(rho1, rho2))
        assert bound is None or float(bound) >= s * (1 - 1e-9), where
        if columns == 1 and p:
            assert relative_prior_bound(p, Breach(rho1, rho2)) == bound


@sweep(against_sets, largest, alone, choose)
def test_sweep_of_planned_retentions() -> None:
    for (rho1, rho2), s, sizes in product(BREACHES, RELATIVE, ([1], [2], [10**6] * 2)):
        p = against_sets(SBreach(s, rho1, rho2), [Fraction(1, size) for size in sizes])
        by_ratio = ratio_of_values(Fraction(p), sizes)
        safe = by_ratio is not None and by_ratio <= ratio_of(rho1, rho2)
        assert safe or every_set(p, len(sizes), s, rho1) <= rho2 * (1 + 1e-9), (rho1, rho2, s, p)
    for epsilon, sizes in product([1e-6, 1.0, 300.0], ([2], [2, 74, 10**9], [1, 5])):
        for share in ("epsilon", "retention"):
            options = LocalPlanOptions(epsilon=epsilon, share=share)
            for found in (largest(options, sizes), choose(options, sizes, None)):
                columns = [ratio_of_values(Fraction(p), [n])
                           for p, n in zip(found, sizes, strict=True)]  # fmt: skip
                row = math.prod(one for one in columns if one is not None)
                assert None not in columns and exact_log(Fraction(row)) <= Decimal(epsilon)
            for p, size in zip(alone(options, sizes) or (), sizes, strict=True):
                ratio = ratio_of_values(Fraction(p), [size])
                assert ratio is not None and exact_log(ratio) <= Decimal(epsilon)


@sweep(largest_rho1, identity_retention)
def test_sweep_of_identity_replacement() -> None:
    for rho1, rho2 in BREACHES:
        p = identity_retention(Breach(rho1, rho2))
        # The prior itself replaces: a set of the prior ρ₁ has the mass ρ₁.
        assert after_hearing(rho1, p + (1 - p) * rho1, (1 - p) * rho1) <= rho2 * (1 + 1e-9)
        if rho1 < rho2 * (1 - 1e-6) and p < 1 - 1e-9:
            more = beyond(p, 0.01)
            assert after_hearing(rho1, more + (1 - more) * rho1, (1 - more) * rho1) > rho2
    for p, s, rho2 in product([1e-9, 0.2, 0.999], RELATIVE, [1e-6, 0.5, 0.95]):
        rho1 = float(largest_rho1(p, s, rho2))
        if 0 < rho1 / s <= 1 and rho1 <= rho2:
            mass = rho1 / s
            reached = after_hearing(rho1, p + (1 - p) * mass, (1 - p) * mass)
            assert reached == pytest.approx(rho2, rel=1e-6)


@sweep(known_prior_retention, worst_breach)
def test_sweep_of_retentions_for_a_known_prior() -> None:
    rng = np.random.default_rng(18)
    shapes: list[tuple[int, ...]] = [(1,), (2,), (7,), (1, 1), (2, 3), (1, 4), (2, 2, 2)]
    for shape, (rho1, rho2), spread in product(shapes, BREACHES, [0.02, 1.0]):
        prior = rng.dirichlet(np.full(math.prod(shape), spread)).reshape(shape)
        masses = [rng.dirichlet(np.full(n, 1.0)) for n in shape]
        kept = known_prior_retention(prior, masses, Breach(rho1, rho2))
        assert belief_by_listing(prior, masses, kept, rho1) <= rho2 * (1 + 1e-9), (shape, kept)
        p = kept[0]
        if 0 < p < 1 - 1e-9:
            more = [beyond(p, 0.01)] * len(shape)
            assert belief_by_listing(prior, masses, more, rho1) > rho2 * (1 - 1e-9), (shape, kept)
        worst = worst_breach(prior, masses, kept, rho1)
        listed = belief_by_listing(prior, masses, kept, rho1)
        assert (worst.after if worst else 0.0) == pytest.approx(listed, rel=1e-9)


def test_values_that_are_never_drawn_are_not_kept() -> None:
    """A value that only its owners can show is certain when it is seen."""
    breach, never = Breach(0.1, 0.95), [np.array([0.0, 1.0])]
    assert known_prior_retention(np.array([0.05, 0.95]), never, breach) == (0.0,)
    kept = known_prior_retention(np.diag([0.05, 0.95]), never * 2, breach)
    assert kept == (0.0, 0.0)


def belief_by_listing(
    prior: Any, masses: Sequence[Any], retentions: Sequence[float], rho1: float
) -> float:
    """The largest P[X=c | Y=c] of cells with a prior of at most ρ₁, cell by cell."""
    cells, worst = list(np.ndindex(*prior.shape)), 0.0
    for y in cells:
        if not 0 < prior[y] <= rho1:
            continue
        joint = [
            prior[x] * math.prod(
                p * (a == b) + (1 - p) * m[b]
                for p, m, a, b in zip(retentions, masses, x, y, strict=True)
            )
            for x in cells
        ]  # fmt: skip
        worst = max(worst, joint[cells.index(y)] / math.fsum(joint))
    return worst


# ---------------------------------------------------------------------- one view


PRIORS = [1e-15, 1e-6, 0.01, 0.1, 0.1999999, 0.4999]
POSTERIORS_ASKED = [1e-5, 0.2, 0.5, 0.999999]
FORMS: tuple[Form, ...] = ("multiset", "set")


def promises() -> Iterator[DGamma]:
    for d, gamma in product(PRIORS, POSTERIORS_ASKED):
        if d < gamma:
            yield DGamma(d, gamma, "independent")
            yield DGamma(d, gamma, "exclusive")


def ratios_of_a_view(form: Form, a: float, noise: float) -> list[Fraction]:
    """P(what is seen | one record more)/P(the same | without it), listed; up to two others."""
    keep, q = Fraction(a), Fraction(noise)
    if form == "set":
        return [(1 - keep) / (1 - q), keep / q]
    found = []
    for others in range(3):
        fewer, more = (
            [seen_times(keep, q, records, times) for times in range(6)]
            for records in (others, others + 1)
        )
        found += [with_it / without for with_it, without in zip(more, fewer, strict=True)]
    return found


def seen_times(keep: Fraction, q: Fraction, records: int, times: int) -> Fraction:
    """P(a tuple is seen so often): records that are kept, and a geometric number of copies."""
    return sum(
        (
            math.comb(records, kept) * keep**kept * (1 - keep) ** (records - kept)
            * (1 - q) * q ** (times - kept)
            for kept in range(min(records, times) + 1)
        ),
        Fraction(0),
    )  # fmt: skip


def keeps(promise: DGamma, ratios: Sequence[Fraction]) -> bool:
    """By Bayes' rule, with the prior d, and how far any belief may fall."""
    d, gamma = Fraction(promise.prior), Fraction(promise.posterior)
    low, high = min(ratios), max(ratios)
    against = low if promise.adversary == "exclusive" else Fraction(1)
    after = d * high / (d * high + (1 - d) * against)
    return after <= gamma and low >= d / gamma


@sweep(plan, least_noise, largest_retention)
@pytest.mark.parametrize("form", FORMS)
def test_sweep_of_plans_of_a_view(form: Form) -> None:
    planned = 0
    for promise in promises():
        most = largest_retention(promise, form)
        for retention in (None, most / 2, most):
            try:
                found = plan(promise, form, retention=retention)
            except PromiseError:
                continue  # d is so near γ that only noise would be left
            planned += 1
            a, noise = found.retention, found.noise
            assert keeps(promise, ratios_of_a_view(form, a, noise)), (promise, found)
            assert Fraction(noise) >= least_noise(promise, form, Fraction(a))
            less = ratios_of_a_view(form, a, noise * (1 - 1e-6))
            assert not keeps(promise, less), (promise, found)
        more = beyond(most, 1e-3)
        if promise.adversary == "independent" and most < more < 1:
            noise = round_up(least_noise(promise, form, Fraction(more)))
            assert not keeps(promise, ratios_of_a_view(form, more, noise)), promise
    assert planned > 60


@sweep(within_view)
@pytest.mark.parametrize("form", FORMS)
def test_sweep_of_views_of_a_given_size(form: Form) -> None:
    for promise, most, domain in product(promises(), [0.5, 2.0, 100.0], [2, 10**4, 10**9]):
        try:
            found = plan(promise, form, max_view_ratio=most, domain_ratio=Fraction(domain))
        except PromiseError:
            continue
        a, noise = found.retention, found.noise
        mean = noise / (1 - noise) if form == "multiset" else noise
        assert a + mean * domain <= most * (1 + 1e-6)
        assert keeps(promise, ratios_of_a_view(form, a, noise))
        assert within_view(promise, form, a, most, Fraction(domain)) == a
        if a < found.largest_retention and promise.adversary == "independent":
            more = beyond(a, 1e-3)
            noise = float(least_noise(promise, form, Fraction(more)))
            mean = noise / (1 - noise) if form == "multiset" else noise
            assert more + mean * domain > most
    linked = DGamma(0.1999999, 0.2, "exclusive")  # allows a millionth of the records at most
    with pytest.raises(PromiseError) as refused:
        within_view(linked, "multiset", largest_retention(linked, "multiset"), 0.01, Fraction(2))
    assert "max_view_ratio=-" not in str(refused.value.hint)


@sweep(promise_for)
def test_sweep_of_the_promise_that_a_factor_means() -> None:
    for rows, size, factor in product([1, 1000], [10**7, 2**100], [1.0, 10.0, 1e3]):
        promise = promise_for(Fraction(rows, size), ViewOptions(prior_factor=factor, posterior=0.6))
        assert promise.prior == pytest.approx(factor * rows / size, rel=1e-15)
        assert (promise.posterior, promise.adversary) == (0.6, "independent")
    with pytest.raises(PromiseError, match="not below"):
        promise_for(Fraction(1, 10), ViewOptions(prior_factor=10))


def shaped_after(promise: DGamma, a: float, mean: float, belief: float) -> float:
    """What a belief in a tuple with such mean noise can become."""
    q = mean / (1 + mean)
    low, high = 1 - a, 1 - a + a / q
    against = low if promise.adversary == "exclusive" else 1.0
    return belief * high / (belief * high + (1 - belief) * against)


@sweep(mean_needed, most_protected, protected_priors, promise_everywhere)
def test_sweep_of_noise_that_protects_a_belief() -> None:
    for promise, share in product(promises(), [1e-9, 0.3, 0.999]):
        top = largest_retention(promise, "multiset")
        for a in (1e-6, top / 2, top):
            most = most_protected(promise, a)
            belief = share * most
            mean = mean_needed(promise, a, belief)
            reached = shaped_after(promise, a, mean, belief)
            assert reached == pytest.approx(promise.posterior, rel=1e-6)
            assert shaped_after(promise, a, 1e15, min(most * 1.01, 0.9999999)) > promise.posterior
            found = float(protected_priors(promise, a, np.array([mean]))[0])
            assert found == pytest.approx(belief, rel=1e-6)
            ratio = LikelihoodRatio(1 - Fraction(a), 1 + Fraction(a) / Fraction(mean))
            stated = promise_everywhere(promise, ratio).prior
            assert stated <= promise.prior
            assert shaped_after(promise, a, mean, stated) <= promise.posterior * (1 + 1e-9)


@sweep(plan_shaped, promise_where_likely)
def test_sweep_of_shaped_noise() -> None:
    whole = 2**32
    skewed = (whole - 3, 1, 1, 1)
    priors: list[tuple[Product, list[int]]] = [
        (Product((skewed, None)), [4, 3]),
        (Product(((whole,),)), [1]),
        (Product((skewed, skewed)), [4, 4]),
    ]
    for promise, (prior, sizes), floor in product(promises(), priors, [1e-3, 1.0]):
        expected = promise.prior * math.prod(sizes)
        if promise.prior > 0.3 or expected > 1:
            continue
        found = plan_shaped(promise, expected, prior, sizes, floor_share=floor)
        factor, cap = promise_where_likely(promise, found.retention, found.strength, found.cap)
        even = floor * promise.prior
        for chances in product(*(np.broadcast_to(c, n) for c, n in
                                 zip(prior.chances(sizes), sizes, strict=True))):  # fmt: skip
            s = math.prod(map(float, chances))
            mean = found.floor + min(found.strength * s, found.cap)
            for belief in (min(factor * s, cap), even):
                if belief > 0:
                    after = shaped_after(promise, found.retention, mean, belief)
                    assert after <= promise.posterior * (1 + 1e-9), (promise, s)
        assert factor <= expected * (1 + 1e-9)
        # The floor is the least: with a little less, the even belief is not protected by it.
        less = shaped_after(promise, found.retention, found.floor * (1 - 1e-3), even)
        assert less > promise.posterior * (1 - 1e-12)


# ---------------------------------------------------------------------- many views


def ratios_of_histories(series: SeriesNoise) -> list[Fraction]:
    """P(history | in the series)/P(history | never), every course of presence and every history."""
    a = Fraction(series.retention)
    courses = product((False, True), repeat=series.views) if series.changing else [
        (True,) * series.views
    ]  # fmt: skip
    times = (0, 1) if series.form == "set" else (0, 1, 2)
    found = []
    for course, history in product(list(courses), list(product(times, repeat=series.views))):
        ratio, seen = Fraction(1), False
        for there, shown, unseen in zip(course, history, series.unseen, strict=True):
            q = Fraction(series.seen if seen else unseen)
            if there and series.form == "set":
                ratio *= a / q if shown else (1 - a) / (1 - q)
            elif there:
                ratio *= seen_times(a, q, 1, shown) / seen_times(a, q, 0, shown)
            seen = seen or shown > 0
        found.append(ratio)
    return found


@sweep(plan_series)
@pytest.mark.parametrize("form", FORMS)
def test_sweep_of_series(form: Form) -> None:
    for d, gamma, changing in product([1e-9, 1e-3, 0.05], [0.2, 0.9], [True, False]):
        promise = DGamma(d, gamma, "exclusive" if changing and d < 0.01 else "independent")
        for views in (2, 3):
            try:
                found = plan_series(promise, form, views, changing=changing)
            except PromiseError:
                continue
            ratios = ratios_of_histories(found)
            assert keeps(promise, ratios), (promise, found)
            bounds = found.likelihood_ratio()
            assert (max(ratios), min(ratios)) == (bounds.high, bounds.low)


# ---------------------------------------------------------------------- noisy answers


def answers_by_listing(kind: str, variance: float, cells: int) -> tuple[Any, Any]:
    """Chances of all answers of so many counts that are all one higher, and if they were not."""
    law = noise_law(kind, variance)
    reach = int(40 * law.sd) + 60 if kind != "binomial" else int(law.parameter // 2)
    one = law.pmf(np.arange(-reach - 1, reach + 2))
    p, q = one[:-1], one[1:]  # of the answer k, where the count is k's, and where it is one less
    joint_p, joint_q = p, q
    for _ in range(cells - 1):
        joint_p, joint_q = (np.multiply.outer(x, y).ravel() for x, y in
                            ((joint_p, p), (joint_q, q)))  # fmt: skip
    return joint_p, joint_q


def rise_beyond(p: Any, q: Any, delta: float) -> float:
    """P[conf rises by more than δ]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(p) - np.log(q)
    return float(p[(p > 0) & (loss > delta * (1 + 1e-12))].sum())


def rest_at(p: Any, q: Any, epsilon: float) -> float:
    """The δ of (ε, δ)."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@sweep(needed, noise_law)
@pytest.mark.parametrize("kind", ["binomial", "gaussian", "geometric"])
def test_sweep_of_noise_for_answers(kind: str) -> None:
    corners = [(0.3, 0.4, 2), (1.0, 1e-3, 2), (8.0, 1e-9, 2)]
    for delta, eta, queries in corners:
        try:
            variance = needed(kind, delta, eta, queries).variance
        except PromiseError:
            continue
        if variance * queries < 5e3:
            p, q = answers_by_listing(kind, variance, queries)
            for x, y in ((p, q), (q, p)):
                assert rise_beyond(x, y, delta) <= eta * (1 + 1e-6) + 1e-15, (delta, eta, queries)


@sweep(needed_for_epsilon)
@pytest.mark.parametrize("kind", ["binomial", "gaussian", "geometric"])
def test_sweep_of_noise_for_epsilon(kind: str) -> None:
    """All answers of one count or two, by listing: δ is kept, and by 30 % less noise it is not."""
    corners = [(0.2, 0.3, 1), (1.0, 1e-2, 2), (4.0, 1e-6, 1), (9.0, 1e-9, 2)]
    for epsilon, delta, queries in some(corners, 2 if kind == "binomial" else 4):
        variance = needed_for_epsilon(kind, epsilon, delta, queries).variance
        for part in (1.0, 0.7):
            p, q = answers_by_listing(kind, part * variance, queries)
            rest = max(rest_at(p, q, epsilon), rest_at(q, p, epsilon))
            broken = rest > delta * (1 + 1e-9) + 1e-15
            if part == 1:
                assert not broken, (epsilon, delta, queries)
            elif kind != "binomial" or variance > 2:  # few coins are rounded up to more
                assert broken, (epsilon, delta, queries)


@sweep(account)
@pytest.mark.parametrize("kind", ["binomial", "gaussian", "geometric"])
def test_sweep_of_accounts(kind: str) -> None:
    for variance, charges, at in [(0.3, 2, 1e-4), (4.0, 2, 0.5), (100.0, 1, 1e-9), (4.0, 1, 1e-6)]:
        spent = account(kind, variance, charges, at=at)
        p, q = answers_by_listing(kind, variance, charges)
        if math.isfinite(spent.epsilon):
            rest = max(rest_at(p, q, spent.epsilon), rest_at(q, p, spent.epsilon))
            assert rest <= at * (1 + 1e-6) + 1e-15, (variance, charges, at)
        if spent.epsilon_pure is not None:
            assert float(np.log(p / q).max()) <= spent.epsilon_pure * (1 + 1e-9)
        if spent.rho_holds:
            here = (p > 0) & (q > 0)
            for order in (1.01, 2.0, 30.0):
                logs = order * np.log(p[here]) + (1 - order) * np.log(q[here])
                divergence = (logs.max() + math.log(np.exp(logs - logs.max()).sum())) / (order - 1)
                assert divergence <= order * spent.rho * (1 + 1e-6) + 1e-12


@sweep(gaussian.delta_of, gaussian.epsilon_of, gaussian.mu_for, gaussian.composed, gaussian.tail)
def test_sweep_of_normal_noise() -> None:
    """Against two normal laws on a fine grid; two figures together are one that is further."""
    x = np.arange(-40.0, 40.0, 1e-3)
    for first, second in [(1e-3, 0.0), (0.3, 0.4), (2.0, 0.1), (6.0, 6.0)]:
        mu = gaussian.composed([first, second])
        assert mu == pytest.approx(math.sqrt(first**2 + second**2))
        p, q = (np.exp(-((x - centre) ** 2) / 2) / math.sqrt(2 * math.pi) * 1e-3
                for centre in (mu, 0.0))  # fmt: skip
        for epsilon in (0.0, mu**2 / 2, mu * 3):
            rest = rest_at(p, q, epsilon)
            assert gaussian.delta_of(mu, epsilon) == pytest.approx(rest, rel=1e-5, abs=1e-13)
        for delta in (1e-9, 1e-3, 0.5):
            epsilon = gaussian.epsilon_of(mu, delta)
            assert rest_at(p, q, epsilon) <= delta * (1 + 1e-6) + 1e-15
            if epsilon > 0:
                assert rest_at(p, q, 0.999 * epsilon) > delta
                assert gaussian.mu_for(epsilon, delta) == pytest.approx(mu, rel=1e-6)
        seen = float(p[x > mu + 1].sum())
        assert gaussian.tail(1.0) == pytest.approx(seen, rel=1e-2)


@sweep(gaussian.rise_chance, gaussian.rise_of, gaussian.any_rise_chance, gaussian.any_rise_of)
def test_sweep_of_beliefs_under_normal_noise() -> None:
    """Two records, by the law of the loss; any property, by the worst event that is published."""
    x = np.arange(-30.0, 40.0, 1e-3)
    for mu, eta in product([0.05, 0.5, 3.0], [1e-9, 1e-3, 0.3]):
        p, q = (np.exp(-((x - centre) ** 2) / 2) / math.sqrt(2 * math.pi) * 1e-3
                for centre in (mu, 0.0))  # fmt: skip
        rise, most = gaussian.rise_of(mu, eta), gaussian.any_rise_of(mu, eta)
        assert rise <= most
        assert gaussian.any_rise_chance(mu, most) <= eta
        if rise > 0:
            seen = rise_beyond(p, q, rise)
            assert seen == pytest.approx(eta, rel=1e-2)
            assert gaussian.rise_chance(mu, rise) == pytest.approx(eta, rel=1e-6)
            assert gaussian.any_rise_chance(mu, rise) > eta
        above_p, above_q = (np.cumsum(law[::-1])[::-1] for law in (p, q))
        with np.errstate(divide="ignore", invalid="ignore"):
            events = np.log(above_p) - np.log(above_q)
        reached = float(above_p[np.nan_to_num(events) > most].max(initial=0.0))
        assert reached <= eta * (1 + 1e-6)
        assert float(above_p[np.nan_to_num(events) > 0.99 * most].max()) > eta


@sweep(gaussian.mu_of_pure)
def test_sweep_of_the_mu_of_a_pure_epsilon() -> None:
    for epsilon in (1e-9, 1e-3, 0.999, 1.0, 20.0, 700.0):
        mu = gaussian.mu_of_pure(epsilon)
        no = 1 / (1 + math.exp(epsilon))
        assert math.erfc(mu / math.sqrt(8)) / 2 <= no
        assert math.erfc(mu * (1 - 1e-6) / math.sqrt(8)) / 2 > no or epsilon < 1e-6


@sweep(variance_needed, normal_breach, walk, walk_bound)
def test_sweep_of_the_normal_walk() -> None:
    rng = np.random.default_rng(18)
    for delta, eta, queries in product([1e-3, 1.0, 30.0], [1e-15, 1e-6, 0.499], [1, 10**6]):
        variance = variance_needed(delta, eta, queries)
        mean, deviation = walk(queries, variance)
        tail = math.erfc((delta - mean) / deviation / math.sqrt(2)) / 2
        assert tail == pytest.approx(eta, rel=1e-6)
        assert normal_breach(delta, queries, variance) == pytest.approx(tail, rel=1e-9)
        always = variance_needed(delta, eta, queries, anytime=True)
        assert 2 * normal_breach(delta, queries, always) <= eta * (1 + 1e-9)
        assert tail <= walk_bound(delta, queries, variance) <= 2 * tail * (1 + 1e-9) + 1e-300
    # Twenty thousand walks of fifty steps: a share of walk_bound exceeds δ, five deviations.
    steps = rng.normal(50 / (2 * 40) / 50, math.sqrt(1 / 40), (20_000, 50))
    share = float((steps.cumsum(axis=1).max(axis=1) > 1.5).mean())
    bound = walk_bound(1.5, 50, 40)
    assert share <= bound + 5 * math.sqrt(bound / 20_000)  # a false alarm in 3·10⁶
    assert float(ndtr(0)) == 0.5


@sweep(promise_for_delta, promise_for_rho, promised)
@pytest.mark.parametrize("kind", ["binomial", "gaussian"])
def test_sweep_of_tables_of_counts(kind: str) -> None:
    """One table in which a row changes its cell: two counts change, by one each."""
    found = [promise_for_delta(kind, 3.0, 1e-6, 1), promise_for_delta(kind, 0.5, 0.1, 1)]
    for rho, eta in [(0.05, 0.2), (2.0, 1e-3)]:
        try:
            found.append(promise_for_rho(kind, rho, eta, 1))
        except PromiseError:
            continue
        assert found[-1].rho == pytest.approx(rho) and found[-1].unit_variance == 1 / (2 * rho)
    for one in found:
        again = promised(kind, one.unit_variance, one.delta, one.eta, 1)
        assert again.breach <= one.eta * (1 + 1e-9)
        p, q = answers_by_listing(kind, 2 * one.unit_variance, 2)
        assert rise_beyond(p, q, one.delta) <= one.eta * (1 + 1e-6)
        if one.epsilon is not None:
            assert rest_at(p, q, one.epsilon) <= one.epsilon_delta * (1 + 1e-6) + 1e-15


# ---------------------------------------------------------------------- conversions


def two_outcomes(epsilon: float) -> tuple[Fraction, Fraction]:
    """Randomized response that just keeps ε: the chances of 'yes', if it is so and if not."""
    ratio = exp_down(epsilon)
    return ratio / (1 + ratio), 1 / (1 + ratio)


@sweep(convert, all_consequences)
def test_sweep_of_conversions_from_pure_privacy() -> None:
    """Randomized response keeps ε, and all that follows from it; theorems: test_guarantees."""
    for epsilon in (1e-12, 1e-3, 1.0, 20.0, 500.0):
        yes, no = two_outcomes(epsilon)
        source = parse_guarantee(f"dp(epsilon={epsilon!r}, unit=swap)")
        for text in ("breach(rho1=0.1)", "breach(rho1=1e-9)", "zcdp", "delta-T",
                     "approximate-dp", "amplification", "approximate-dp(delta=1e-6)"):  # fmt: skip
            try:
                data: Any = convert(source, parse_target(text)).guarantee.to_dict()
            except PromiseError:
                continue
            check_conclusion(data, yes, no, epsilon)
        for one in all_consequences(source).follows:
            check_conclusion(one.guarantee.to_dict(), yes, no, epsilon)


def check_conclusion(data: Any, yes: Fraction, no: Fraction, epsilon: float) -> None:
    """By the definition of each kind, for the coin that says yes with these chances."""
    match data["kind"]:
        case "breach":
            rho1 = Fraction(data["rho1"])
            assert rho1 * yes / (rho1 * yes + (1 - rho1) * no) <= Fraction(data["rho2"])
        case "amplification":
            assert yes / no <= Fraction(data["gamma"])
        case "zcdp":
            for order in (1 + 1e-6, 1.5, 2.0, 100.0):
                log_cosh = [abs(x) + math.log1p(math.exp(-2 * abs(x))) for x in (
                    epsilon * (order - 0.5), epsilon / 2)]  # fmt: skip
                divergence = (log_cosh[0] - log_cosh[1]) / (order - 1)
                assert divergence <= order * data["rho"] * (1 + 1e-6) + 1e-9
            assert data["rho"] <= min(epsilon, epsilon**2 / 2) * (1 + 1e-8)
        case "approximate-dp":
            assert yes - exp_down(data["epsilon"]) * no <= Fraction(data["delta"]) + Fraction(
                1, 10**12
            )
        case "delta-T":
            assert epsilon <= data["delta"] * (1 + 1e-9) or data["eta"] >= float(yes)
