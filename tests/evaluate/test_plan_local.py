"""Plans of local perturbation: errors foreseen, wishes kept, the impossible refused."""

from __future__ import annotations

import json
import math
import re
import shlex
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from typer.testing import CliRunner

from tests.support.paths import TESTS
from voile.cli import app
from voile.errors import PromiseError, TableError, UsageError, VoileError
from voile.evaluate.planning import local_plot
from voile.evaluate.planning.local import plan_local
from voile.evaluate.planning.local_choice import (
    Condition,
    clients_needed,
    conjunction_variance,
    count_variance,
    identity_variance,
    largest_variance,
    reached_error,
    retention_needed,
    rows_by_hoeffding,
    rows_if_normal,
    shortened,
    worst_joint_variance,
    worst_variance,
)
from voile.evaluate.planning.local_measure import BinCut, RowSample, measure, tuple_beliefs
from voile.options import two_numbers
from voile.options.choices import Share
from voile.options.planning import LocalPlanOptions
from voile.privacy.guarantees import Breach, SBreach
from voile.privacy.local import (
    amplification,
    epsilon_of,
    joint_retention,
    prevents,
    row_amplification,
)
from voile.schema import Attribute, Range, Schema, Values

SIZES = {"age": 74, "sex": 2, "town": 5}
SMALL = Schema(
    (
        Attribute("age", "integer", Range(17, 90)),
        Attribute("sex", "categorical", Values(("F", "M")), ordered=False),
        Attribute("town", "categorical", Values(tuple("abcde")), ordered=False),
    )
)
ADULT = "dataset:adult/olap"
THREE = ["age", "hours_per_week", "education_num"]


@pytest.fixture(scope="module")
def oracle() -> dict[str, dict[str, Any]]:
    path = TESTS / "oracle" / "olap_sulq.json"
    return {check["id"]: check for check in json.loads(path.read_text())["checks"]}


def checks(oracle: dict[str, Any], start: str) -> list[dict[str, Any]]:
    found = [check for name, check in oracle.items() if name.startswith(start)]
    assert found
    return found


# ---------------------------------------------------------------------- errors foreseen


def factor(p: Fraction, b: Fraction, *, seen: bool) -> Fraction:
    """What a row counts towards a condition, by whether its perturbed value meets it."""
    return (seen - (1 - p) * b) / p


def moments(p: Fraction, b: Fraction, *, met: bool) -> tuple[Fraction, Fraction]:
    """E[g] and E[g²] of a row, from both of its outcomes."""
    chance = p * met + (1 - p) * b
    values = factor(p, b, seen=True), factor(p, b, seen=False)
    return (
        chance * values[0] + (1 - chance) * values[1],
        chance * values[0] ** 2 + (1 - chance) * values[1] ** 2,
    )


def test_the_variance_of_a_conjunction_is_that_of_its_outcomes_listed() -> None:
    p, b = [Fraction(1, 3), Fraction(3, 4)], [Fraction(1, 10), Fraction(2, 3)]
    fractions = np.array([[0.1, 0.2], [0.3, 0.4]])
    conditions = [Condition(float(x), float(y)) for x, y in zip(p, b, strict=True)]
    expected = 0.0
    for met in product((0, 1), repeat=2):
        each = [moments(p[j], b[j], met=bool(met[j])) for j in range(2)]
        assert each[0][0] * each[1][0] == math.prod(met)  # unbiased
        expected += fractions[met] * float(each[0][1] * each[1][1] - math.prod(met) ** 2)
    assert conjunction_variance(conditions, fractions) == pytest.approx(expected, rel=1e-12)


def test_one_conditions_variance_has_a_formula() -> None:
    for p, b, f in product((0.1, 0.5, 0.9), (0.0, 0.3, 1.0), (0.0, 0.25, 1.0)):
        condition = Condition(p, b)
        both = conjunction_variance([condition], np.array([1 - f, f]))
        assert count_variance(condition, f) == pytest.approx(both, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("f", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("retentions", [(0.2, 0.6, 0.9), (0.1, 0.2, 0.3)])
@pytest.mark.parametrize("masses", [(0.5, 0.5, 0.5), (0.01, 0.9, 0.2), (0.97, 0.99, 0.9)])
def test_the_largest_variance_is_that_of_the_worst_table(
    f: float, masses: tuple[float, ...], retentions: tuple[float, ...]
) -> None:
    """Of all tables whose other rows have one pattern; mixtures of them lie between."""
    conditions = [Condition(p, b) for p, b in zip(retentions, masses, strict=True)]
    found = []
    for pattern in product((0, 1), repeat=3):
        if pattern == (1, 1, 1):
            continue
        fractions = np.zeros((2, 2, 2))
        fractions[pattern], fractions[1, 1, 1] = 1 - f, f
        found.append(conjunction_variance(conditions, fractions))
    assert largest_variance(conditions, f) == pytest.approx(max(found), rel=1e-9)
    assert largest_variance(conditions) >= max(found) * (1 - 1e-12)


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.7, 0.95])
def test_the_worst_condition_in_the_worst_table(p: float) -> None:
    grid = np.linspace(0, 1, 2001)
    found = max(count_variance(Condition(p, b), f) for b in grid.tolist() for f in (0.0, 0.5, 1.0))
    assert found <= worst_variance(p) * (1 + 1e-12)
    assert found == pytest.approx(worst_variance(p), rel=1e-5)


@pytest.mark.parametrize("retentions", [(0.2, 0.6), (0.3, 0.45), (0.7, 0.9), (0.1, 0.5, 0.8)])
def test_the_worst_conditions_on_several_columns(retentions: tuple[float, ...]) -> None:
    """Of all masses on a grid and all tables of one kind of row; half of each domain is less."""
    grid = np.linspace(0, 1, 41 if len(retentions) == 2 else 21).tolist()
    found = max(
        largest_variance([Condition(p, b) for p, b in zip(retentions, masses, strict=True)])
        for masses in product(grid, repeat=len(retentions))
    )
    worst = worst_joint_variance(retentions)
    assert found <= worst * (1 + 1e-12)
    assert found == pytest.approx(worst, rel=0.01)
    assert largest_variance([Condition(p, 0.5) for p in retentions]) < worst
    assert worst_joint_variance(retentions[:1]) == worst_variance(retentions[0])


def test_variances_of_the_oracle(oracle: dict[str, Any]) -> None:
    """One value of a uniform column, and a range of Adult's, at the retention in the name."""
    adult = oracle["adult.basic"]["expected"]
    columns = {"age": (74, 0), "hrs": (100, 2), "edu": (16, 3)}
    for check in checks(oracle, "ldp.var."):
        name, p = check["inputs"]["key"].split("_p")
        size, place = columns[name]
        value = count_variance(Condition(float(p), 1 / size), 1 / size)
        assert value == pytest.approx(check["expected"]["grr_val"], rel=1e-9)
        within = Condition(float(p), adult["b_integer"][place])
        assert count_variance(within, adult["f"][place]) == pytest.approx(
            check["expected"]["ret_range"], rel=1e-6
        )


def test_standard_errors_of_conjunctions_on_adult(oracle: dict[str, Any]) -> None:
    masses = oracle["adult.basic"]["expected"]["b"]
    rows = oracle["adult.basic"]["expected"]["n"]
    seen = 0
    for check in oracle.values():
        if not check["id"].endswith("sd_all_ones"):
            continue
        k, p = check["inputs"]["k"], check["inputs"]["p"]
        counts = np.array(oracle[f"adult.true_states.k{k}"]["expected"]).reshape((2,) * k)
        variance = conjunction_variance([Condition(p, b) for b in masses[:k]], counts / rows)
        assert math.sqrt(variance * rows) == pytest.approx(check["expected"], rel=1e-6)
        seen += 1
    assert seen > 5


def test_identity_and_uniform_replacement_of_the_oracle(oracle: dict[str, Any]) -> None:
    adult = oracle["adult.basic"]["expected"]
    check = oracle["alt.single.age.25-45.p0.2"]
    uniform = count_variance(Condition(0.2, adult["b"][0]), adult["f"][0])
    identity = identity_variance(0.2, adult["f"][0])
    found = [math.sqrt(v / adult["n"]) for v in (uniform, identity, 0.0)]
    assert found == pytest.approx(check["expected"], abs=1e-9)


# ---------------------------------------------------------------------- how many clients


def test_clients_of_theorem_1_of_the_oracle(oracle: dict[str, Any]) -> None:
    for check in checks(oracle, "thm1."):
        i, expected = check["inputs"], check["expected"]
        found = clients_needed(i["p"], i["eps"], i["delta"], i["b"], i["f"])
        assert abs(found.theorem1 - expected["n_thm1"]) <= 1
        assert abs(found.hoeffding - expected["n_hoeffding"]) <= 1
        assert abs(found.normal - expected["n_normal"]) <= 1
        variance = count_variance(Condition(i["p"], i["b"]), i["f"])
        assert math.sqrt(variance / found.theorem1) == pytest.approx(expected["sd_thm1"], abs=1e-6)


@pytest.mark.parametrize("b", [0.05, 0.5, 0.8])
@pytest.mark.parametrize("f", [0, 1])
def test_so_many_clients_are_enough_and_half_as_many_are_not(b: float, f: int) -> None:
    """All rows alike, so that what is seen is one binomial count, whose law is exact."""
    p, error, miss = 0.3, 0.05, 0.05

    def misses(n: int) -> float:
        t = p * f + (1 - p) * b
        low, high = n * t - n * p * error, n * t + n * p * error
        law = stats.binom(n, t)
        return float(law.cdf(math.ceil(low) - 1) + law.sf(math.floor(high)))

    found = clients_needed(p, error, miss, b, f)
    assert misses(found.hoeffding) <= miss
    assert misses(found.normal) == pytest.approx(miss, abs=0.012)
    assert misses(found.normal // 2) > 2 * miss
    worst = clients_needed(p, error, miss)
    assert found.normal <= clients_needed(p, error, miss, b).normal <= worst.normal
    assert worst.normal <= worst.hoeffding <= worst.theorem1


@pytest.mark.parametrize("retentions", [(0.5, 0.3), (0.7, 0.9), (0.6, 0.8, 0.4)])
def test_what_a_row_counts_lies_within_hoeffdings_range(retentions: tuple[float, ...]) -> None:
    """At most Π 1/p, reached by a condition that no replaced value meets; and so many rows do."""
    widest = 0.0
    for masses in product(np.linspace(0, 1, 9).tolist(), repeat=len(retentions)):
        ends = [((1 - (1 - p) * b) / p, -(1 - p) * b / p)
                for p, b in zip(retentions, masses, strict=True)]  # fmt: skip
        counted = [math.prod(outcome) for outcome in product(*ends)]
        widest = max(widest, max(counted) - min(counted))
    assert widest == pytest.approx(1 / math.prod(retentions))
    rows = rows_by_hoeffding(retentions, 0.05, 0.95)
    assert 2 * math.exp(-2 * rows * (0.05 / widest) ** 2) == pytest.approx(0.05, rel=0.01)


def test_rows_for_one_condition_are_too_few_for_two() -> None:
    """All rows meet both; 4,000 tables. Each rate is within ±0.02 but for a chance of 10⁻⁸."""
    p, masses, error = (0.5, 1 / 3), (0.001, 0.25), 0.05
    generator = np.random.default_rng(8)

    def misses(rows: int) -> float:
        chances = [q + (1 - q) * b for q, b in zip(p, masses, strict=True)]
        both = chances[0] * chances[1]
        one, other = chances[0] - both, chances[1] - both
        counts = generator.multinomial(rows, [both, one, other, 1 - both - one - other], 4_000)
        met = [(1 - (1 - q) * b) / q for q, b in zip(p, masses, strict=True)]
        not_met = [-(1 - q) * b / q for q, b in zip(p, masses, strict=True)]
        weights = [met[0] * met[1], met[0] * not_met[1], not_met[0] * met[1],
                   not_met[0] * not_met[1]]  # fmt: skip
        means = counts @ np.array(weights) / rows
        return float(np.mean(np.abs(means - 1) > error))

    for_one = clients_needed(min(p), error, 0.05)
    for_two = rows_if_normal(worst_joint_variance(p), error, 0.95)
    assert misses(for_one.normal) > 0.1
    assert misses(for_two) < 0.07
    assert misses(rows_by_hoeffding(p, error, 0.95)) < 0.02


def test_the_least_retention_reaches_the_error_and_less_does_not() -> None:
    for rows, error in [(1_000, 0.05), (1_000, 0.005), (10**6, 0.01)]:
        p = retention_needed(rows, error, 0.95)
        assert reached_error(rows, p, 0.95) == pytest.approx(error)
        assert reached_error(rows, p * 0.99, 0.95) > error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [((0.0, 0.1, 0.1), "retention"), ((0.5, 0.0, 0.1), "error"), ((0.5, 0.1, 1.0), "confidence")],
)
def test_clients_for_nonsense_are_refused(arguments: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        clients_needed(*arguments)


# ---------------------------------------------------------------------- measured on a table


@pytest.mark.parametrize("sizes", [(3, 2, 4), (1000, 2, 4)])
def test_beliefs_in_tuples_are_bayes_rule_by_enumeration(sizes: tuple[int, ...]) -> None:
    """Every tuple of a small table, by summing over all original tuples, in fractions.

    With 1,000 values the first column alone tells all nine tuples apart.
    """
    p = [Fraction(1, 2), Fraction(1, 5), Fraction(2, 3)]
    rng = np.random.default_rng(3)
    rows: Any = np.unique(np.stack([rng.integers(0, n, 9) for n in sizes]), axis=1)
    counts = rng.integers(1, 6, rows.shape[1])
    shares = [Fraction(c, int(counts.sum())) for c in counts.tolist()]

    def chance(x: Any, y: Any) -> Any:
        return math.prod(
            p[j] * bool(x[j] == y[j]) + (1 - p[j]) / sizes[j] for j in range(len(sizes))
        )

    expected = []
    tuples: list[list[int]] = rows.T.tolist()
    for i, y in enumerate(tuples):
        joint = [share * chance(x, y) for x, share in zip(tuples, shares, strict=True)]
        expected.append(float(joint[i] / sum(joint)))
    weights, kept = np.array(shares, dtype=float), [float(x) for x in p]
    found = tuple_beliefs([rows[j] for j in range(3)], weights, [1 / n for n in sizes], kept)
    assert found == pytest.approx(expected, rel=1e-12)
    # A column alone: rows with equal values are one value.
    one = tuple_beliefs([rows[1]], weights, [0.5], [0.2])
    second: list[int] = rows[1].tolist()
    share = float(sum(s for s, x in zip(shares, second, strict=True) if x == second[0]))
    assert one[0] == pytest.approx(share * 0.6 / (0.2 * share + 0.4), rel=1e-12)


def test_cuts_are_equal_intervals_values_and_null() -> None:
    age = BinCut(SMALL["age"])
    assert len(age.masses) == 10
    assert age.masses.sum() == pytest.approx(1)
    assert set(np.diff(age.edges)) == {7, 8}
    assert age.name(0) == "17 … 23"
    assert age.cells(np.array([0, 6, 7, 73])).tolist() == [0, 0, 1, 9]
    town = BinCut(Attribute("town", "categorical", Values(tuple("abc")), null=True, ordered=False))
    assert [town.name(i) for i in range(4)] == ["a", "b", "c", "None"]
    assert town.masses.tolist() == [0.25] * 4


def test_what_is_measured_is_what_enumeration_gives() -> None:
    """A table of two columns that hang together, its worst cell found by hand."""
    schema = SMALL.select(["sex", "town"])
    keys = np.array([0] * 50 + [1] * 30 + [7] * 5 + [9] * 15, dtype=np.uint64)
    measured = measure(RowSample.of(keys, schema), [0.5, 0.5], Breach(0.1, 0.3))
    pair = next(one for one in measured.sets if len(one.columns) == 2)
    assert pair.cell == ("M", "c")
    assert [pair.before, pair.largest_relative] == pytest.approx([0.05, 5.0])
    shares = {(0, 0): 0.5, (0, 1): 0.3, (1, 2): 0.05, (1, 4): 0.15}

    def chance(x: tuple[int, int]) -> float:
        return (0.5 * (x[0] == 1) + 0.25) * (0.5 * (x[1] == 2) + 0.1)

    seen = sum(share * chance(x) for x, share in shares.items())
    assert pair.after == pytest.approx(0.05 * chance((1, 2)) / seen)
    assert pair.breached == (pair.after > 0.3)
    assert pair.exact_retention is not None and pair.exact_retention < 0.5
    row = measured.values[-1]
    assert row.columns == ("sex", "town")
    assert row.largest == pytest.approx(max(one.largest for one in measured.values[-1:]))


# ---------------------------------------------------------------------- wishes


def ratio_of_row(retentions: tuple[float, ...], sizes: list[int]) -> Fraction:
    each = [amplification(p, Fraction(1, n)) for p, n in zip(retentions, sizes, strict=True)]
    found = row_amplification(each)
    assert found is not None
    return found


@pytest.mark.parametrize("share", ["epsilon", "retention"])
@pytest.mark.parametrize("epsilon", [0.1, 3.0, 12.0])
def test_a_rows_epsilon_is_kept_and_used_up(share: Share, epsilon: float) -> None:
    found = plan_local(schema=SMALL, epsilon=epsilon, share=share)
    assert epsilon_of(ratio_of_row(found.retentions, SMALL.sizes)) <= epsilon
    assert found.beliefs.epsilon == pytest.approx(epsilon, rel=1e-4)
    assert (len(set(found.retentions)) == 1) is (share == "retention")
    assert found.alone is not None and min(found.alone) > max(0, min(found.retentions))


def test_an_epsilon_of_every_column() -> None:
    found = plan_local(schema=SMALL, epsilon_column=1.0)
    assert [c.beliefs.epsilon for c in found.columns] == pytest.approx([1.0] * 3, rel=1e-5)
    assert all(column.beliefs.epsilon <= 1 for column in found.columns)
    assert found.beliefs.epsilon == pytest.approx(3, rel=1e-5)


def test_a_breach_for_every_prior_and_one_of_rare_sets() -> None:
    breach = Breach(0.1, 0.5)
    strict = plan_local(schema=SMALL, breach=breach)
    assert prevents(ratio_of_row(strict.retentions, SMALL.sizes), breach)
    more = tuple(p * 1.001 for p in strict.retentions)
    assert not prevents(ratio_of_row(more, SMALL.sizes), breach)
    loose = plan_local(schema=SMALL, breach=breach, relative=2.0)
    alike = plan_local(schema=SMALL, breach=breach, share="retention")
    assert loose.retentions[0] > alike.retentions[0]
    assert any("sees the row itself" in note for note in loose.notes)
    wide = Schema((Attribute("weight", "integer", Range(1, 10**6)),))
    theorem4 = plan_local(schema=wide, breach=Breach(0.1, 0.95), relative=68.0)
    assert list(theorem4.retentions) == pytest.approx([0.2], abs=2e-6)
    # No set of a small domain with a prior of ρ₁ reaches s: ε allows more than Theorem 4.
    two = plan_local(schema=SMALL.select(["sex"]), breach=breach, relative=2.0)
    assert list(two.retentions) == pytest.approx([0.8], abs=2e-6)


@pytest.mark.parametrize(
    "wish", [{"epsilon": 3.0}, {"breach": Breach(0.1, 0.5)}, {"retention": 0.3}], ids=str
)
def test_one_coin_for_the_row_keeps_the_same_wish(wish: dict[str, Any]) -> None:
    found = plan_local(schema=SMALL, **wish)
    assert found.whole_row is not None
    ratio = amplification(found.whole_row, Fraction(1, SMALL.size))
    assert found.options.epsilon is None or epsilon_of(ratio) <= found.options.epsilon
    assert found.options.breach is None or prevents(ratio, Breach(*found.options.breach))
    assert epsilon_of(ratio) == pytest.approx(found.beliefs.epsilon, rel=1e-5)
    if found.options.retention:  # as short as it is shown, and not above the row's
        assert ratio is not None and found.beliefs.ratio is not None
        assert ratio <= found.beliefs.ratio
        assert found.whole_row < found.options.retention


@pytest.mark.parametrize(
    ("rho2", "s", "columns", "size"),
    [(0.95, 20, 2, 400), (0.95, 200, 2, 4000), (0.5, 20, 2, 400), (0.5, 20, 4, 800)],
)
def test_a_planned_retention_protects_sets_that_are_no_products(
    rho2: float, s: float, columns: int, size: int
) -> None:
    """S: some column has one of a few values. x in all of these, other people in none of them."""
    breach = Breach(0.1, rho2)
    wide = Schema(tuple(Attribute(f"c{i}", "integer", Range(1, size)) for i in range(columns)))
    planned = plan_local(schema=wide, breach=breach, relative=s).retentions[0]

    def worst(p: Fraction) -> Fraction:
        found = Fraction(0)
        for few in range(1, 6):
            mass = Fraction(few, size)
            inside = 1 - (1 - p - (1 - p) * mass) ** columns
            outside = 1 - (1 - (1 - p) * mass) ** columns
            prior = min(Fraction(1, 10), Fraction(s) * (1 - (1 - mass) ** columns))
            found = max(found, prior * inside / (prior * inside + (1 - prior) * outside))
        return found

    assert worst(Fraction(planned)) <= Fraction(rho2)
    by_theorem_5 = joint_retention(SBreach(s, 0.1, rho2), columns)
    assert by_theorem_5 > planned
    assert worst(Fraction(by_theorem_5)) > Fraction(rho2)


def test_an_error_alone_gives_the_least_retention() -> None:
    found = plan_local(schema=SMALL, error=0.02, rows=50_000)
    (p,) = set(found.retentions)
    assert reached_error(50_000, p, 0.95) <= 0.02 < reached_error(50_000, p * 0.9999, 0.95)
    assert found.clients is not None and found.clients.normal <= 50_000
    assert found.alone is None and found.whole_row is None


def test_errors_of_a_plan_are_those_of_its_least_retained_columns() -> None:
    found = plan_local(schema=SMALL, epsilon=6.0, rows=100_000, error=0.1)
    least = sorted(found.retentions)
    for k, error in enumerate(found.errors, start=1):
        variance = math.prod(1 + worst_variance(p) for p in least[:k]) - 1
        assert error.to_dict()["stderr"] == pytest.approx(math.sqrt(variance * 100_000))
        needed = error.rows_needed
        assert needed is not None
        assert 1.96 * math.sqrt(variance / needed) == pytest.approx(0.1, rel=1e-3)
        assert error.rows_hoeffding is not None and error.rows_hoeffding > needed
    assert found.clients is not None
    first = found.errors[0]
    assert (found.clients.normal, found.clients.hoeffding) == (
        first.rows_needed,
        first.rows_hoeffding,
    )
    assert any("condition on one column" in note for note in found.notes)


@pytest.mark.parametrize(
    "wish",
    [
        {"epsilon": 1.0},
        {"epsilon": 1.0, "share": "retention"},
        {"epsilon_column": 0.1},
        {"breach": "0.1,0.2"},
        {"breach": "0.1,0.2", "relative": 50.0},
        {"retention": 0.01},
        {"retention": 0.2},
    ],
    ids=str,
)
def test_an_error_out_of_reach_is_refused_and_each_hint_is_feasible(wish: dict[str, Any]) -> None:
    asked = wish | {"breach": two_numbers("--breach", wish["breach"])} if "breach" in wish else wish
    common: dict[str, Any] = {"schema": SMALL, "rows": 2_000, "error": 0.05}
    with pytest.raises(PromiseError, match=r"not ±0\.05") as refused:
        plan_local(**(common | asked))
    hints = dict(re.findall(r"([a-z_]+)=([\d.e+-]+)", refused.value.hint))
    assert "rows" in hints and len(hints) >= 2
    for name, value in hints.items():
        key = name.replace("-", "_")
        number = int(value) if key == "rows" else float(value)
        kept = asked if key in ("rows", "error") else {"share": wish.get("share", "epsilon")}
        plan_local(**(common | kept | {key: number}))


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({}, "no promise, retention or error is given"),
        ({"epsilon": 1.0, "retention": 0.5}, "two promises"),
        ({"relative": 2.0, "epsilon": 1.0}, "about a breach"),
        ({"epsilon": -1.0}, "epsilon = -1"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon_column": math.nan}, "epsilon"),
        ({"retention": 1.0}, "retention=1.0 must lie in (0, 1)"),
        ({"retention": 0.0}, "retention=0.0 must"),
        ({"epsilon": 1.0, "error": 2.0}, "error=2.0"),
        ({"epsilon": 1.0, "confidence": 1.0}, "confidence=1.0"),
        ({"epsilon": 1.0, "share": "half"}, "share='half'"),
        ({"error": 0.01}, "without a number of rows"),
        ({"epsilon": 1.0, "rows": 0}, "rows=0"),
        ({"epsilon": 1.0, "columns": ["age", "age"]}, "named twice"),
        ({"breach": Breach(0.1, 0.9), "relative": -1.0}, "s = -1"),
    ],
    ids=str,
)
def test_wishes_without_sense_are_refused(wish: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)) as refused:
        plan_local(schema=SMALL, **wish)
    assert refused.value.hint


def test_a_promise_that_leaves_nothing_is_refused() -> None:
    for wish in ({"epsilon": 0.0}, {"breach": Breach(0.5, 0.5)}):
        with pytest.raises(PromiseError, match="leaves nothing") as refused:
            plan_local(schema=SMALL, **wish)
        assert refused.value.hint


def test_an_error_that_only_raw_rows_have_is_refused() -> None:
    with pytest.raises(PromiseError, match="sent as they are") as refused:
        plan_local(schema=SMALL, error=1e-5, rows=5)
    error = float(re.findall(r"error=([\d.]+)", refused.value.hint)[0])
    assert max(plan_local(schema=SMALL, error=error, rows=5).retentions) < 1


@pytest.mark.parametrize("text", ["0.1", "0.1;0.9", "a,b", "0.1,0.5,0.9", ""])
def test_breaches_that_are_not_two_numbers_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not two numbers"):
        two_numbers("--breach", text)


def test_retentions_are_short_and_on_the_safe_side() -> None:
    for number in (0.123456789, 1e-9 / 3, 0.9999999):
        down, up = shortened(number, math.floor), shortened(number, math.ceil)
        assert down <= number <= up
        assert down == pytest.approx(number, rel=1e-5)
        assert len(f"{down:.17g}".lstrip("0.")) >= len(repr(down).lstrip("0.")) <= 12


def test_only_one_of_the_promises_is_a_wish_by_error() -> None:
    assert LocalPlanOptions(error=0.1).is_by_error
    assert not LocalPlanOptions(error=0.1, retention=0.5).is_by_error


# ---------------------------------------------------------------------- with a table


def test_a_plan_of_a_table_measures_it() -> None:
    found = plan_local(ADULT, columns=THREE, breach=Breach(0.1, 0.95), relative=26.0)
    assert found.rows == 32_561
    assert found.measured is not None
    data = found.to_dict()
    assert [len(one["columns"]) for one in data["measured"]["sets"]] == [1, 1, 1, 2, 2, 2, 3]
    assert not any(one["breached"] for one in data["measured"]["sets"])
    assert data["measured"]["values"][-1]["columns"] == THREE
    assert found.command is not None and "--columns age,hours_per_week,education_num" in (
        found.command
    )
    assert any("for the steward" in note for note in found.notes)
    assert json.loads(json.dumps(data)) == data


def test_a_column_of_which_nothing_can_be_counted_is_named() -> None:
    found = plan_local(ADULT, epsilon=4.0)
    assert any(note.startswith("nothing can be counted of 'fnlwgt'") for note in found.notes)


def test_tables_that_cannot_be_planned_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a table nor a codebook"):
        plan_local(epsilon=1.0)
    empty = pd.DataFrame({"age": np.array([], dtype=np.int64)})
    with pytest.raises(VoileError):
        plan_local(empty, epsilon=1.0)
    with pytest.raises(TableError, match="no rows"):
        plan_local(empty, schema=SMALL.select(["age"]), epsilon=1.0)
    with pytest.raises(UsageError, match="agee"):
        plan_local(ADULT, columns=["agee"], epsilon=1.0)
    with pytest.raises(UsageError, match="no schema file"):
        plan_local(schema=tmp_path / "none.yaml", epsilon=1.0)


# ---------------------------------------------------------------------- the command and the picture


@pytest.fixture(scope="module")
def codebook(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("local") / "people.yaml"
    SMALL.save(path)
    return str(path)


def run(line: str) -> Any:
    return CliRunner().invoke(app, ["plan", *shlex.split(line)])


def test_the_command_shows_a_plan_and_its_json(codebook: str) -> None:
    shown = run(f"--local --schema {codebook} --epsilon 3 --rows 10000 --error 0.5")
    assert shown.exit_code == 0, shown.output
    for words in ("ε = 3", "town", "rows needed", "Hoeffding"):
        assert words in shown.output
    told = run(f"--local --schema {codebook} --epsilon 3 --json")
    data = json.loads(told.stdout)
    assert data["wish"]["epsilon"] == 3.0
    assert data["measured"] is None and data["rows"] is None
    assert data["command"].startswith(f"voile spec {codebook} -o SPEC --retention age=")


def test_a_table_on_the_command_line() -> None:
    shown = run(f"--local {ADULT} --columns {','.join(THREE)} --breach 0.1,0.95 --relative 26")
    assert shown.exit_code == 0, shown.output
    assert "measured" in shown.output and "voile perturb" in shown.output


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{table} --epsilon-column 3", "local perturbation"),
        ("--epsilon-column 3", "local perturbation"),
        ("--epsilon 3", "no table is named"),
        ("", "no table"),
        ("--local --epsilon 3", "neither a table nor a codebook"),
        ("--local --schema {book} --epsilon 3 --posterior 0.2", "--posterior means nothing"),
        ("--local --schema {book} --epsilon 3 --on x", "--on means nothing"),
        ("--local --schema {book} --epsilon 3 --rows many", "--rows 'many'"),
        ("--local --schema {book} --breach 0.9,0.1", "rho1 = 0.9 is above"),
        ("--local --schema {book} --breach 0.9", "not two numbers"),
        ("--local --schema {book} --epsilon 3 --columns ages", "'ages'"),
        ("--local --schema {book} --epsilon 3 --plot x.gif", "x.gif"),
        ("--local --schema {book} --epsilon 0.01 --rows 100 --error 0.01", "not ±0.01"),
    ],
)
def test_what_the_command_refuses(line: str, words: str, codebook: str) -> None:
    done = run(line.format(table=ADULT, book=codebook))
    assert isinstance(done.exception, VoileError), done.output
    assert words in done.exception.message
    assert done.exception.hint


@pytest.mark.parametrize("kind", ["svg", "html", "png"])
def test_a_plan_is_drawn(kind: str, codebook: str, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    path = tmp_path / f"plan.{kind}"
    done = run(f"--local --schema {codebook} --epsilon 3 --rows 10000 --plot {path}")
    assert done.exit_code == 0, done.output
    assert path.stat().st_size > 5_000
    again = run(f"--local --schema {codebook} --epsilon 3 --rows 10000 --plot {path}")
    assert isinstance(again.exception, UsageError)


def test_what_is_drawn_are_the_plans_own_numbers() -> None:
    pytest.importorskip("altair")
    found = plan_local(schema=SMALL, epsilon=3.0, rows=10_000, error=0.9)
    names, lines, points = local_plot.belief_data(found)
    assert names[0] == "age (74 values)" and names[-1] == local_plot.WHOLE_ROW
    assert {point["retention"] for point in points} == set(found.retentions)
    for point, column in zip(points, sorted(found.columns, key=lambda c: c.size), strict=True):
        assert point["belief"] == pytest.approx(column.beliefs.after[1])
    assert all(0.1 <= line["belief"] <= 1 for line in lines)
    chart = local_plot.draw(found).to_dict()
    assert "requested: ±0.9" in json.dumps(chart, ensure_ascii=False)
    alone = plan_local(schema=SMALL.select(["age"]), retention=0.3)
    assert local_plot.belief_data(alone)[0] == ["age (74 values)"]
    assert "1 column," in json.dumps(local_plot.draw(alone).to_dict())
