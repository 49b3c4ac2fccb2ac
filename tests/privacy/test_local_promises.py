"""What local perturbation promises, by exact enumeration and by an independent oracle."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from decimal import MAX_EMAX, Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.paths import TESTS
from voile.engines import connect
from voile.errors import UsageError
from voile.privacy import convert, parse_wish
from voile.privacy.guarantees import Amplification, Breach, SBreach
from voile.privacy.guarantees.theorems import ratio_of
from voile.privacy.local import (
    amplification,
    belief_after,
    belief_in,
    cell_beliefs,
    common_retention,
    epsilon_of,
    equal_shares,
    exp_down,
    first_breach,
    identity_retention,
    joint_bound,
    joint_retention,
    known_prior_retention,
    largest_rho1,
    least_relative_prior,
    local_epsilon,
    local_promise,
    local_statements,
    perturbed,
    prevents,
    rare_values,
    relative_prior_bound,
    relative_priors,
    retention_against,
    retention_for_ratio,
    row_amplification,
    row_bound,
    row_retention,
    worst_breach,
)

Masses = Sequence[Fraction]
UNEVEN = [Fraction(n, 10) for n in (1, 2, 3, 4)]
EVEN = [Fraction(1, 3)] * 3
TENTHS = Breach(0.1, 0.95)
OLAP = ("age", "fnlwgt", "hours_per_week", "education_num")
DOMAINS = {"age": (17, 90), "fnlwgt": (10_000, 1_500_000), "hrs": (1, 100), "edu": (1, 16)}
"""Of the paper's section 7."""


@pytest.fixture(scope="module")
def oracle() -> dict[str, dict[str, Any]]:
    path = TESTS / "oracle" / "olap_sulq.json"
    return {check["id"]: check for check in json.loads(path.read_text())["checks"]}


@pytest.fixture(scope="module")
def adult() -> dict[str, Any]:
    rows = connect("dataset:adult/olap").run(f"select {', '.join(OLAP)} from adult")
    columns = np.array(rows, dtype=np.float64).T
    return dict(zip(DOMAINS, columns, strict=True))


def chance(p: Fraction, masses: Masses, x: int, y: int) -> Fraction:
    """P(y|x), as the mechanism is defined."""
    return p * (x == y) + (1 - p) * masses[y]


def ratios(p: Fraction, masses: Masses) -> Iterator[Fraction]:
    values = range(len(masses))
    for y, x, other in product(values, repeat=3):
        yield chance(p, masses, x, y) / chance(p, masses, other, y)


def subsets(size: int) -> Iterator[tuple[int, ...]]:
    for count in range(1, size):
        yield from combinations(range(size), count)


def priors(size: int, parts: int) -> Iterator[list[Fraction]]:
    """Every distribution whose chances are multiples of 1/parts."""
    for counts in product(range(parts + 1), repeat=size - 1):
        if sum(counts) <= parts:
            yield [Fraction(c, parts) for c in (*counts, parts - sum(counts))]


# ---------------------------------------------------------------------- γ and ε


@pytest.mark.parametrize("masses", [UNEVEN, EVEN, [Fraction(1, 2)] * 2])
@pytest.mark.parametrize("p", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_the_amplification_is_the_largest_quotient_of_chances(p: Fraction, masses: Masses) -> None:
    assert amplification(p, min(masses)) == max(ratios(p, masses))


def test_a_rows_amplification_is_the_largest_quotient_over_whole_rows() -> None:
    columns = [(Fraction(1, 4), UNEVEN), (Fraction(2, 3), EVEN)]
    rows = list(product(range(4), range(3)))

    def of_row(x: tuple[int, ...], y: tuple[int, ...]) -> Any:
        return math.prod(chance(p, m, a, b) for (p, m), a, b in zip(columns, x, y, strict=True))

    largest = max(of_row(x, y) / of_row(other, y) for x, other, y in product(rows, repeat=3))
    assert row_amplification(amplification(p, min(m)) for p, m in columns) == largest


def test_one_coin_for_a_whole_row_is_a_column_of_tuples() -> None:
    even = [Fraction(1, 12)] * 12
    p = Fraction(1, 5)
    assert amplification(p, Fraction(1, 12)) == max(ratios(p, even)) == 1 + p * 12 / (1 - p)


def test_what_has_no_bound_and_what_has_nothing_to_tell() -> None:
    assert amplification(0.5, 0) is None
    assert amplification(1, Fraction(1, 4)) is None
    assert amplification(0, Fraction(1, 4)) == 1
    assert amplification(1, 1) == 1
    assert row_amplification([Fraction(2), None]) is None
    assert local_epsilon(1, Fraction(1, 4)) == math.inf
    assert belief_after(0.1, None) == 1
    assert not prevents(None, TENTHS)


@pytest.mark.parametrize("p", [0.1, 0.8])
def test_epsilons_of_the_oracle(p: float, oracle: dict[str, Any]) -> None:
    expected = oracle[f"ldp.eps.p{p:g}"]["expected"]
    sizes = {"age": 74, "fnlwgt": 1_490_001, "hrs": 100, "edu": 16, "bucket10": 10}
    sizes["binary(b=.5)"] = 2
    found = {name: local_epsilon(p, Fraction(1, size)) for name, size in sizes.items()}
    rows = {
        "row4": ["age", "fnlwgt", "hrs", "edu"],
        "row_age_hrs_edu": ["age", "hrs", "edu"],
        "row4_bucket10": ["bucket10"] * 4,
    }
    for name, columns in rows.items():
        each = [amplification(p, Fraction(1, sizes[column])) for column in columns]
        found[name] = epsilon_of(row_amplification(each))
    assert found == pytest.approx(expected, abs=1e-9)


@given(
    most=st.fractions(Fraction(101, 100), 1000),
    size=st.integers(2, 10**6),
)
def test_the_largest_retention_keeps_the_ratio_and_the_next_number_does_not(
    most: Fraction, size: int
) -> None:
    p = retention_for_ratio(most, Fraction(1, size))
    kept, broken = (amplification(q, Fraction(1, size)) for q in (p, math.nextafter(p, 1)))
    assert kept is not None and broken is not None
    assert kept <= most < broken


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 1.0, 9.0, 800.0, 9999.0])
@pytest.mark.parametrize("sizes", [[2], [74, 16, 100], [1, 5, 10**9]])
def test_shared_retentions_keep_a_rows_epsilon_and_leave_next_to_nothing(
    epsilon: float, sizes: list[int]
) -> None:
    masses = [Fraction(1, size) for size in sizes]
    most = exp_down(epsilon)
    assert epsilon_of(most) <= epsilon
    for shares in (equal_shares(most, masses), (common_retention(most, masses),) * len(sizes)):
        each = [amplification(p, m) for p, m in zip(shares, masses, strict=True)]
        if epsilon > 700:  # a float below 1 cannot come nearer
            assert row_amplification(each) is None or max(shares) > 0.999999
            continue
        ratio = row_amplification(each)
        assert ratio is not None and ratio <= most
        assert epsilon_of(ratio) == pytest.approx(epsilon, rel=1e-4)
    shared = zip(equal_shares(most, masses), masses, strict=True)
    told = [local_epsilon(p, m) for p, m in shared if m < 1]
    if epsilon < 700:
        assert told == pytest.approx([epsilon / len(told)] * len(told), rel=1e-4)


@pytest.mark.parametrize("digits", [1, 299, 300, 302, 400, 6_000, 40_000])
def test_every_ratio_has_an_epsilon_that_is_not_below_its_logarithm(digits: int) -> None:
    """Logarithms to 60 digits; also beyond all floats, and for fractions of many digits."""
    for ratio in (Fraction(10**digits), Fraction(7 * 10**digits + 1, 3), Fraction(
            11**digits * 10, 10**digits + 7)):  # fmt: skip
        with localcontext() as context:
            context.prec = 60
            context.Emax = MAX_EMAX
            exact = Decimal(ratio.numerator).ln() - Decimal(ratio.denominator).ln()
            found = Decimal(epsilon_of(ratio))
            assert exact <= found <= exact * (1 + Decimal("1e-14"))


def test_columns_by_the_hundred_have_an_epsilon_and_promise_what_can_be_stated() -> None:
    ratio = amplification(0.999999, Fraction(1, 10**6))
    assert ratio is not None
    assert epsilon_of(ratio**500) == pytest.approx(500 * math.log(ratio), rel=1e-12)
    assert local_statements(ratio**500, simulated=False) == []
    kinds = [one.data["kind"] for one in local_statements(ratio**40, simulated=False)]
    assert kinds == ["dp", "delta-T"]


# ---------------------------------------------------------------------- (ρ₁, ρ₂) for every prior


def test_no_prior_and_no_property_exceeds_what_the_ratio_allows() -> None:
    """All properties of a value, all priors in sixths, all that can be seen; and it is attained."""
    p, masses = Fraction(1, 3), UNEVEN
    ratio = amplification(p, min(masses))
    assert ratio is not None
    nearest = Fraction(0)
    for prior in priors(4, 6):
        for q, y in product(subsets(4), range(4)):
            before = sum((prior[x] for x in q), Fraction(0))
            if not 0 < before < 1:
                continue
            joint = [prior[x] * chance(p, masses, x, y) for x in range(4)]
            after = sum((joint[x] for x in q), Fraction(0)) / sum(joint)
            limit = ratio * before / (ratio * before + 1 - before)
            assert after <= limit
            nearest = max(nearest, after / limit)
    assert nearest == 1


@pytest.mark.parametrize(("p", "kept"), [(0.3, True), (0.31, False)])
def test_a_breach_is_prevented_exactly_up_to_the_ratio(p: float, kept: bool) -> None:
    """ρ₂ is what the ratio at p = 0.3 makes of 1/10, so that 0.31 must fail, and is seen to."""
    ratio = amplification(Fraction(3, 10), Fraction(1, 4))
    rho2 = math.nextafter(float(belief_after(0.1, ratio)), 1)
    assert prevents(amplification(Fraction(p).limit_denominator(100), Fraction(1, 4)), Breach(
        0.1, rho2)) is kept  # fmt: skip
    prior = np.array([Fraction(1, 10), Fraction(9, 10), Fraction(0), Fraction(0)])
    masses = np.array([Fraction(1, 4)] * 4)
    first = np.array([True, False, False, False])
    after = belief_in(prior, [masses], [Fraction(p).limit_denominator(100)], first, [first])
    assert (after <= Fraction(rho2)) is kept


def test_the_promise_is_the_one_that_guarantees_convert() -> None:
    ratio = amplification(0.2, Fraction(1, 10))
    assert ratio is not None
    promise = local_promise(ratio)
    assert isinstance(promise, Amplification)
    found = convert(promise, parse_wish("breach(rho1=0.1)")).guarantee.to_dict()
    assert found["rho2"] == pytest.approx(float(belief_after(0.1, ratio)), rel=1e-12)
    swap = convert(promise, parse_wish("dp(unit=swap)")).guarantee.to_dict()
    assert swap["epsilon"] == pytest.approx(local_epsilon(0.2, Fraction(1, 10)), rel=1e-12)


# ---------------------------------------------------------------------- Theorem 4 and Lemma 1


def test_theorem_4_with_the_papers_example() -> None:
    bound = relative_prior_bound(Fraction(1, 5), TENTHS)
    assert bound is not None and float(bound) == pytest.approx(68)
    assert float(largest_rho1(Fraction(1, 5), 1, 0.95)) == pytest.approx(0.9375)
    assert retention_against(SBreach(68.0, 0.1, 0.95)) == pytest.approx(0.2, abs=1e-12)
    assert relative_prior_bound(0, TENTHS) is None


def test_theorem_4_by_enumeration() -> None:
    """Every set of every prior in tenths: breached only from Theorem 4's s on, and some are."""
    p, masses = Fraction(1, 2), UNEVEN
    breach = Breach(0.3, 0.75)
    bound = relative_prior_bound(p, breach)
    least = Fraction(10**6)
    for prior in priors(4, 10):
        for s in subsets(4):
            before = sum((prior[x] for x in s), Fraction(0))
            mass = sum((masses[x] for x in s), Fraction(0))
            if not 0 < before <= Fraction(3, 10):
                continue
            array = np.array([x in s for x in range(4)])
            after = belief_in(np.array(prior), [np.array(masses)], [p], array, [array])
            if after >= Fraction(3, 4):
                least = min(least, before / mass)
    assert bound is not None and 10**6 > least >= bound


def test_theorem_4_is_reached_by_a_set_of_the_prior_rho1() -> None:
    """With m_S = ρ₁/s the belief is ρ₂; a little more retention exceeds it."""
    p = Fraction(1, 2)
    s = relative_prior_bound(p, Breach(0.25, 0.75))
    assert s is not None
    mass = Fraction(1, 4) / s
    prior, replaced = np.array([Fraction(1, 4), Fraction(3, 4)]), np.array([mass, 1 - mass])
    first = np.array([True, False])
    assert belief_in(prior, [replaced], [p], first, [first]) == Fraction(3, 4)
    more = belief_in(prior, [replaced], [p + Fraction(1, 1000)], first, [first])
    assert more > Fraction(3, 4)


def test_lemma_1_is_theorem_4_at_the_relative_prior_of_1() -> None:
    """ρ₁ < (ρ₂−p)/(1−p): identity replacement by the prior itself reaches it."""
    p, rho2 = Fraction(1, 4), Fraction(5, 8)
    rho1 = largest_rho1(p, 1, rho2)
    assert rho1 == (rho2 - p) / (1 - p) == Fraction(1, 2)
    prior, first = np.array([rho1, 1 - rho1]), np.array([True, False])
    assert belief_in(prior, [prior], [p], first, [first]) == rho2
    assert identity_retention(Breach(0.5, 0.625)) == 0.25


# ---------------------------------------------------------------------- Theorem 5


def test_theorem_5_with_the_papers_example_as_corrected() -> None:
    """139.6 at the paper's m = 0.1; the printed 273 only as m → 0."""
    fifths = [Fraction(1, 5)] * 2
    bounds = [joint_bound(fifths, [m, m], TENTHS) for m in (Fraction(1, 10), 0)]
    assert [float(bound or 0) for bound in bounds] == pytest.approx([139.59, 273.6], abs=0.01)


def test_the_first_breach_of_two_columns_is_at_233_or_at_54() -> None:
    """The least over equal masses, and as one of them tends to 1: below the printed 273."""
    fifths = [Fraction(1, 5)] * 2
    grid = [Fraction(i, 100_000) for i in range(1, 4000)]
    equal = [first_breach(fifths, [m, m], TENTHS) for m in grid]
    assert float(min(s for s in equal if s)) == pytest.approx(233.4, abs=0.2)
    nearly_all = 1 - Fraction(1, 10**9)
    uneven = [first_breach(fifths, [nearly_all, m], TENTHS) for m in grid]
    assert float(min(s for s in uneven if s)) == pytest.approx(54.3, abs=0.5)
    assert float(least_relative_prior(fifths, TENTHS) or 0) == pytest.approx(54.32, abs=0.01)
    # Beyond, a breach would need a prior above ρ₁.
    assert first_breach(fifths, [Fraction(1, 2)] * 2, TENTHS) is None


@pytest.mark.parametrize("masses", [(0.01, 0.02), (0.9, 0.001), (0.05, 0.05)])
def test_the_first_breach_is_one_and_there_is_none_before(masses: tuple[float, float]) -> None:
    """By a prior that lies in S₁×S₂ or outside of both; and with more rows in one of them, less."""
    p = [Fraction(1, 5), Fraction(1, 4)]
    breach = Breach(0.9, 0.95)
    m = [Fraction(x).limit_denominator(1000) for x in masses]
    s = first_breach(p, m, breach)
    assert s is not None
    prior = s * m[0] * m[1]
    cells = [np.array([x, 1 - x]) for x in m]
    members = np.array([[True, False], [False, False]])
    seen = [np.array([True, False])] * 2

    def after(joint: list[list[Fraction]]) -> Any:
        return belief_in(np.array(joint), cells, p, members, seen)

    zero = Fraction(0)
    assert after([[prior, zero], [zero, 1 - prior]]) == Fraction(0.95)
    less = prior * Fraction(99, 100)
    assert after([[less, zero], [zero, 1 - less]]) < Fraction(0.95)
    half = (1 - prior) / 2
    assert after([[prior, half], [zero, half]]) < Fraction(0.95)


def test_no_masses_give_an_earlier_breach_than_the_bound_for_all() -> None:
    p = [Fraction(1, 5), Fraction(1, 3), Fraction(1, 10)]
    bound = least_relative_prior(p, TENTHS)
    assert bound is not None
    steps = [Fraction(1, 1000), Fraction(1, 100), Fraction(1, 10), Fraction(1, 2)]
    steps += [1 - Fraction(1, 10**9)]
    found = [s for m in product(steps, repeat=3) if (s := first_breach(p, m, TENTHS))]
    assert found and min(found) >= bound
    # Nearly all of the others, and the mass for the column that is retained most: it is approached.
    ratio = ratio_of(0.1, 0.95) * math.prod(1 - x for x in p)
    mass = p[1] / (ratio - (1 - p[1])) * (1 - Fraction(1, 10**6))
    near = first_breach(p, [steps[-1], mass, steps[-1]], TENTHS)
    assert near is not None and float(near / bound) == pytest.approx(1, abs=1e-4)
    assert least_relative_prior([0, 0], TENTHS) is None
    assert least_relative_prior([0.5, 1], TENTHS) == 0  # a column that is shown as it is


def test_one_columns_bound_for_all_masses_is_theorem_4() -> None:
    """Wherever Theorem 4 is at least ρ₁; below it the exact bound is larger, and reached."""
    for p in (Fraction(1, 5), Fraction(1, 2), Fraction(99, 100)):
        assert least_relative_prior([p], TENTHS) == relative_prior_bound(p, TENTHS)
    exact, printed = (f([0.999], TENTHS) for f in (least_relative_prior, row_bound))
    assert (float(exact or 0), float(printed or 0)) == pytest.approx((0.0186, 0.017), abs=5e-5)


@pytest.mark.parametrize("p", [0.2, 0.6, 0.95, 0.99])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_least_relative_prior_is_the_least_of_a_scan(p: float, columns: int) -> None:
    """Masses from nearly none to nearly all of each column, by Bayes' rule alone."""
    bound = least_relative_prior([p] * columns, TENTHS)
    assert bound is not None
    grid = np.concatenate([np.geomspace(1e-5, 0.5, 150), 1 - np.geomspace(0.5, 1e-7, 60)])
    if columns == 3:
        grid = grid[::3]
    masses = np.meshgrid(*[grid] * columns, indexing="ij")
    seen_of_others = np.prod([(1 - p) * m for m in masses], axis=0)
    seen_of_members = np.prod([(1 - p) * m + p for m in masses], axis=0)
    odds = 19 * seen_of_others / seen_of_members  # that end at .95
    prior = odds / (1 + odds)
    least = float((prior / np.prod(masses, axis=0))[prior <= 0.1].min())
    assert float(bound) <= least * (1 + 1e-9)
    assert least == pytest.approx(float(bound), rel=0.25 if columns == 3 else 0.1)


def test_nearly_everything_is_breached_below_rho1() -> None:
    """Two columns of 100 values, S of 99 × 99 of them: found by a hostile review."""
    inside = np.array([True, False])
    masses = [np.array([Fraction(99, 100), Fraction(1, 100)])] * 2
    prior = np.array([[Fraction(4, 100), Fraction(0)], [Fraction(0), Fraction(96, 100)]])
    both = np.outer(inside, inside)

    def after(p: float) -> Any:
        return belief_in(prior, masses, [Fraction(p)] * 2, both, [inside] * 2)

    assert float(after(0.99)) == pytest.approx(0.998, abs=5e-4)
    breach = SBreach(0.1, 0.1, 0.95)
    p = joint_retention(breach, 2)
    assert after(p) <= Fraction(0.95)
    assert p < joint_retention(breach, 2, 0.1) < 1
    assert p >= row_retention(breach, 2)


# ---------------------------------------------------------------------- sets of any shape


def likelihoods(p: Sequence[Fraction], m: Sequence[Masses], rows: set[tuple[int, ...]]) -> Any:
    """The largest P[Y∈S | X=x] of rows x in S, and the smallest of those that are not."""
    every = list(product(*(range(len(masses)) for masses in m)))

    def of(x: tuple[int, ...]) -> Any:
        return sum(math.prod(chance(p[j], m[j], x[j], y[j]) for j in range(len(p))) for y in rows)

    return max(of(x) for x in rows), min(of(x) for x in every if x not in rows)


def mass_of(m: Sequence[Masses], rows: set[tuple[int, ...]]) -> Any:
    return sum(math.prod(m[j][y[j]] for j in range(len(m))) for y in rows)


@pytest.mark.parametrize(
    ("p", "m"),
    [
        ((Fraction(1, 5), Fraction(1, 2)), (EVEN, EVEN)),
        ((Fraction(1, 20), Fraction(1, 20)), ([Fraction(1, 50), Fraction(49, 50)], UNEVEN)),
        ((Fraction(1, 9),) * 3, ([Fraction(1, 30), Fraction(29, 30)],) * 3),
    ],
)
def test_no_set_of_rows_is_breached_before_the_bound_for_all_sets(
    p: Sequence[Fraction], m: Sequence[Masses]
) -> None:
    """Every set of rows there is, with the worst prior: one row in it, and one that is not."""
    rho1, rho2 = Fraction(1, 10), Fraction(1, 2)
    bound = row_bound(p, Breach(float(rho1), float(rho2)))
    assert bound is not None
    every = list(product(*(range(len(masses)) for masses in m)))
    for code in range(1, 2 ** len(every) - 1):
        rows = {x for i, x in enumerate(every) if code >> i & 1}
        high, low = likelihoods(p, m, rows)
        prior = min(rho1, bound * mass_of(m, rows))
        assert prior * high * (1 - rho2) <= rho2 * (1 - prior) * low * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("columns", [2, 3])
@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(1, 2)])
def test_some_set_of_rows_reaches_the_bound_for_all_sets(columns: int, p: Fraction) -> None:
    """S: some column is rare, and none is odd. x is rare in all, other people are odd in all."""
    breach = Breach(0.1, 0.75)
    bound = row_bound([p] * columns, breach)
    products = least_relative_prior([p] * columns, breach)
    assert bound is not None and products is not None and bound < products
    mass = Fraction(1, 10) / bound
    rare, odd = Fraction(mass) / columns, Fraction(1, 10**6)
    m = [[rare, odd, 1 - rare - odd]] * columns
    rows = {x for x in product(range(3), repeat=columns) if 0 in x and 1 not in x}
    high, low = likelihoods([p] * columns, m, rows)
    prior = min(Fraction(1, 10), bound * mass_of(m, rows))
    assert float(prior * high / (prior * high + (1 - prior) * low)) == pytest.approx(0.75, abs=0.02)
    more = likelihoods([p * Fraction(12, 10)] * columns, m, rows)
    assert prior * more[0] / (prior * more[0] + (1 - prior) * more[1]) > Fraction(0.75)


def test_retentions_for_all_sets_prevent_the_breach_and_hardly_more_would_not() -> None:
    for columns in (1, 2, 5):
        breach = SBreach(20, 0.1, 0.5)
        p = row_retention(breach, columns)
        kept, broken = (row_bound([q] * columns, Breach(0.1, 0.5)) for q in (p, p * 1.0001))
        assert kept is not None and broken is not None
        assert kept >= 20 > broken
    assert row_retention(breach, 1) == retention_against(breach)


# ---------------------------------------------------------------------- products again


def test_retentions_of_figures_13_and_14(oracle: dict[str, Any]) -> None:
    checks = [check for name, check in oracle.items() if name.startswith("fig13_14.")]
    assert len(checks) > 10
    for check in checks:
        columns, s, rho1 = (part[1:] for part in check["inputs"]["key"].split("_"))
        breach = SBreach(float(s), float(rho1), 0.95)
        found = [joint_retention(breach, int(columns), mass) for mass in (0, 0.1)]
        assert found == pytest.approx(check["expected"], abs=1e-6), check["id"]


def test_joint_retentions_prevent_the_breach_and_hardly_more_would_not() -> None:
    breach = SBreach(26.2, 0.1, 0.95)
    p = joint_retention(breach, 2)
    kept, broken = (least_relative_prior([q, q], TENTHS) for q in (p, p * 1.0001))
    assert kept is not None and broken is not None
    assert kept >= Fraction(26.2) > broken


# ---------------------------------------------------------------------- known priors


def test_seeing_the_value_tells_more_than_hearing_of_the_set(oracle: dict[str, Any]) -> None:
    check = oracle["breach.compound"]
    i = check["inputs"]
    prior = np.array([i["p0"], i["p1"], 1 - i["p0"] - i["p1"]])
    masses = np.array([i["m0"], i["m1"], 1 - i["m0"] - i["m1"]])
    both, first = np.array([True, True, False]), np.array([True, False, False])
    found = [belief_in(prior, [masses], [i["p"]], both, [seen]) for seen in (both, first)]
    assert found == pytest.approx(check["expected"], abs=1e-9)


def test_beliefs_of_cells_are_bayes_rule_by_enumeration() -> None:
    p = [Fraction(1, 4), Fraction(3, 5)]
    masses = [UNEVEN, EVEN]
    counts = np.arange(12).reshape(4, 3) % 5
    prior = {
        (i, j): Fraction(int(counts[i, j]), int(counts.sum())) for i in range(4) for j in range(3)
    }
    cells = cell_beliefs(
        counts / counts.sum(), [np.array(m, dtype=float) for m in masses], [float(x) for x in p]
    )
    seen = perturbed(
        counts / counts.sum(), [np.array(m, dtype=float) for m in masses], [float(x) for x in p]
    )
    for y in prior:
        joint = {
            x: prior[x] * chance(p[0], masses[0], x[0], y[0]) * chance(p[1], masses[1], x[1], y[1])
            for x in prior
        }
        total = sum(joint.values())
        assert seen[y] == pytest.approx(float(total), rel=1e-12)
        assert cells[y] == pytest.approx(float(joint[y] / total), rel=1e-12)


def ten_cells(adult: dict[str, Any], names: Sequence[str]) -> Any:
    """The share of Adult in ten equal intervals of each domain."""
    columns = np.stack([adult[name] for name in names])
    found, _ = np.histogramdd(columns.T, bins=10, range=[DOMAINS[name] for name in names])
    return found / found.sum()


@pytest.mark.parametrize(
    "names", ["age", "age+fnlwgt", "fnlwgt+hrs", "age+fnlwgt+hrs", "age+fnlwgt+edu"]
)
def test_relative_priors_of_adult(
    names: str, adult: dict[str, Any], oracle: dict[str, Any]
) -> None:
    columns = names.split("+")
    prior = ten_cells(adult, columns)
    found = relative_priors(prior * 32561, [np.full(10, 0.1)] * len(columns))
    largest, median, cell = oracle[f"adult_s.{names}"]["expected"]
    assert found.largest == pytest.approx(largest, abs=1e-6)
    assert found.median == pytest.approx(median, abs=1e-6)
    assert found.share == pytest.approx(cell, abs=1e-6)
    assert found.cells == prior.size
    assert found.to_dict()["place"] == list(found.place)


@pytest.mark.parametrize("names", ["age+fnlwgt", "age+fnlwgt+hrs"])
def test_the_exact_largest_retention_for_adult(
    names: str, adult: dict[str, Any], oracle: dict[str, Any]
) -> None:
    prior = ten_cells(adult, names.split("+"))
    masses = [np.full(10, 0.1)] * prior.ndim
    for rho1, expected in oracle[f"exact_maxp_{names}"]["expected"]:
        found = known_prior_retention(prior, masses, Breach(rho1, 0.95))
        assert found == pytest.approx([expected] * prior.ndim, abs=2e-4)


def test_the_largest_retention_for_a_known_prior_is_the_largest() -> None:
    rng = np.random.default_rng(7)
    breach = Breach(0.2, 0.6)
    for shape in [(6,), (4, 3), (3, 2, 4)]:
        prior = rng.dirichlet(np.ones(math.prod(shape))).reshape(shape)
        masses = [rng.dirichlet(np.ones(n)) for n in shape]
        for proportions in (None, [1.0, 0.5, 0.25][: len(shape)]):
            kept = known_prior_retention(prior, masses, breach, proportions)
            worst = worst_breach(prior, masses, kept, breach.rho1)
            assert worst is not None and worst.after <= breach.rho2
            more = worst_breach(prior, masses, [p * 1.001 for p in kept], breach.rho1)
            assert more is not None and more.after > breach.rho2
            if proportions and len(shape) > 1:
                assert kept[1] / kept[0] == pytest.approx(0.5)


def test_values_that_are_believed_already_are_no_breach() -> None:
    prior, masses = np.array([0.7, 0.3]), [np.array([0.5, 0.5])]
    assert worst_breach(prior, masses, [0.5], 0.2) is None
    assert known_prior_retention(prior, masses, Breach(0.2, 0.9)) == (1.0,)


def test_every_fnlwgt_is_nearly_certain_if_it_is_seen(adult: dict[str, Any]) -> None:
    """Definition 5 speaks of Y ∈ S; whoever sees y itself is told by hardly anything replaced."""
    values, counts = np.unique(adult["fnlwgt"], return_counts=True)
    beliefs = []
    for share in np.unique(counts) / counts.sum():
        prior, mass = np.array([share, 1 - share]), np.array([1, 1_490_000]) / 1_490_001
        first = np.array([True, False])
        beliefs.append(belief_in(prior, [mass], [0.3], first, [first]))
    assert len(values) > 20_000
    assert min(beliefs) > 0.951


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UsageError, match="does not fit"):
        perturbed(np.full((2, 3), 1 / 6), [np.full(2, 0.5)], [0.5])


# ---------------------------------------------------------------------- frequent and rare values


def test_relative_priors_of_reconstructed_counts_and_of_impossible_values() -> None:
    found = relative_priors(np.array([-5.0, 30.0, 10.0]), [np.array([0.5, 0.25, 0.25])])
    assert (found.largest, found.median, found.place) == (3.0, 1.0, (1,))
    never = relative_priors(np.array([1, 9, 0]), [np.array([0.0, 1.0, 0.0])])
    assert (never.largest, never.place, never.cells) == (math.inf, (0,), 2)
    assert relative_priors(np.zeros(4), [np.full(4, 0.25)]).largest == 0.0


def test_rare_values_are_those_that_occur_fewer_times() -> None:
    counts = np.array([0, 4, 5, 1, 100])
    found = rare_values(counts)
    assert found is not None
    assert (found.codes, found.rows, found.at_least) == ((1, 3), 5, 5)
    assert "'age': 2 values occur fewer than 5 times, in 5 rows" in found.in_words("age")
    assert rare_values(counts, at_least=1) is None
