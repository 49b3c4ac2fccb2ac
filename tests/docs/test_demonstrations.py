"""The attacks of docs/guides/demonstrations.md come out as the papers say: sums over all tables."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import voile
from tests.support.sampling import FALSE_ALARM
from voile.mechanisms import AlphaBeta
from voile.noise import Key
from voile.privacy import DGamma, plan
from voile.privacy.adversary import Evidence, Exclusive, Independent, Joint
from voile.schema import TupleIndex

ADULT = DGamma(prior=10 * 30162 / 648023040, posterior=0.2)


def seen(mechanism: AlphaBeta, *counts: int) -> Evidence:
    return lambda records: mechanism.log_likelihood(np.array(counts), records, [])


def together(views: Sequence[Evidence]) -> Evidence:
    """Views of one table with coins of their own: their chances multiply."""
    return lambda records: np.sum([view(records) for view in views], axis=0)


def test_joes_score_under_2_diversity() -> None:
    """By enumeration: Joe and two others, whose scores anyone may have; the view is the three.

    A scale of 20 scores stands for 100, which does not matter: only the group's scores count.
    """
    scores = range(1, 21)
    group = Counter([19, 18, 3])  # two high ones and a low one
    weight = {s: Fraction(1, 100) if s > 17 else Fraction(1) for s in scores}
    posterior: Counter[int] = Counter()
    for mine, second, third in itertools.product(scores, repeat=3):
        if Counter([mine, second, third]) == group:
            posterior[mine] += weight[mine]  # type: ignore[assignment]
    total = sum(posterior.values())
    assert Fraction(posterior[3]) / total == Fraction(100, 102)

    belief = Exclusive(np.log(np.where(np.arange(1, 101) > 95, 0.01, 1.0)))
    with np.errstate(divide="ignore"):
        in_group = np.log(np.isin(np.arange(1, 101), [99, 97, 82]))
    after = belief.posteriors(lambda records: in_group if records else np.zeros(100))
    assert belief.priors[81] == pytest.approx(1 / 95.05)
    assert after[81] == pytest.approx(100 / 102)
    assert after[[96, 98]] == pytest.approx([1 / 102, 1 / 102])


def test_alphabeta_hides_joes_score() -> None:
    """Whatever is seen of the hundred tuples, 82 stays below γ; with the promise of another it may
    not: against independent adversaries alone, an exclusive one gets further."""
    weights = np.log(np.where(np.arange(1, 101) > 95, 0.01, 1.0))
    belief = Exclusive(weights)
    found = plan(DGamma(0.0106, 0.2, "exclusive"), "multiset")
    mechanism = AlphaBeta(found.retention, found.noise)
    only = belief.posteriors(seen(mechanism, *[int(s == 82) for s in range(1, 101)]))
    assert only[81] == pytest.approx(0.1988, abs=5e-5)
    assert only[81] <= 0.2
    weaker = plan(DGamma(0.0106, 0.2, "independent"), "multiset")
    broken = AlphaBeta(weaker.retention, weaker.noise)
    assert belief.posteriors(seen(broken, *[int(s == 82) for s in range(1, 101)]))[81] > 0.3


def test_correlated_brothers() -> None:
    """Exactly, over the four tables: 0.0009·L² and so on, L the ratio of a tuple that is seen."""
    found = plan(DGamma(0.001, 0.2), "multiset")
    mechanism = AlphaBeta(found.retention, found.noise)
    ratio = mechanism.likelihood_ratio().high
    assert ratio is not None
    both, one = Fraction("0.0009") * ratio**2, Fraction("0.0001") * ratio
    exact = (both + one) / (both + 2 * one + Fraction("0.9989"))
    outcomes = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], np.bool_)
    brothers = Joint(outcomes, np.array([0.0009, 0.0001, 0.0001, 0.9989]), np.arange(2))
    assert brothers.priors == pytest.approx([0.001, 0.001])
    after = brothers.posteriors(seen(mechanism, 1, 1))
    assert after == pytest.approx([float(exact)] * 2, rel=1e-9)
    assert round(after[0], 4) == 0.9821 and after[0] > 3 / 4  # Theorem 6.1
    alone = Independent(np.array([0.001])).posteriors(seen(mechanism, 1))
    assert alone[0] == pytest.approx(0.2) and alone[0] <= 0.2 * (1 + 1e-12)


def test_negative_leakage_under_exclusions(oracle: dict[str, dict[str, Any]]) -> None:
    wanted = oracle["errata.excl_neg"]["expected"]
    mechanism = AlphaBeta(0.5, 0.05, "set")
    joe = Exclusive(np.zeros(8))
    one = joe.posteriors(seen(mechanism, 1, *[0] * 7)) / joe.priors
    others = joe.posteriors(seen(mechanism, *[1] * 7, 0)) / joe.priors
    alone = Independent(np.array([1e-12])).posteriors(seen(mechanism, 0)) / 1e-12
    assert one[1] == pytest.approx(wanted["ratio"], rel=1e-9)
    assert others[7] == pytest.approx(wanted["worst_ratio"], rel=1e-9)
    assert alone[0] == pytest.approx(wanted["indep_neg"], rel=1e-9)
    bounds = mechanism.likelihood_ratio()
    assert bounds.high is not None
    limit = wanted["formula b(1-S)/(S(1-b))"]  # what it tends to as the set grows
    assert float(bounds.low / bounds.high) == pytest.approx(limit, rel=1e-9)


def test_independent_republication(oracle: dict[str, dict[str, Any]]) -> None:
    """Posterior against the number of views; the same as for copies that are each told apart."""
    found = plan(ADULT, "set", retention=0.5)
    mechanism = AlphaBeta(found.retention, found.noise, "set")
    prior = Independent(np.array([ADULT.prior]))
    wanted = oracle["dup.options"]["expected"]["E_group"]
    for views in (1, 2, 3):
        after = prior.posteriors(together([seen(mechanism, 1)] * views))
        assert after[0] == pytest.approx(wanted[str(views)], rel=1e-9)


def test_republished_releases_leak_for_real() -> None:
    """Twenty real views of a small table: members are believed, others are not, at any γ."""
    found = plan(DGamma(0.01, 0.2), "multiset", retention=0.5)
    mechanism = AlphaBeta(found.retention, found.noise)
    index = TupleIndex([1000])
    members = np.arange(0, 1000, 50, dtype=np.uint64)
    shown = []
    for seed in range(20):
        key = Key.from_seed(seed)
        noise = mechanism.noise_rows(index, key, 0, 0, 1000)
        view = np.concatenate(list(mechanism.view(members, noise, key, 0)))
        shown.append(np.bincount(view.astype(np.int64), minlength=1000))
    prior = Independent(np.full(1000, 0.01))
    once = prior.posteriors(seen(mechanism, *shown[0]))
    assert once.max() <= 0.2 * (1 + 1e-9)
    always = prior.posteriors(together([seen(mechanism, *view) for view in shown]))
    inside = np.isin(np.arange(1000), members.astype(np.int64))
    assert always[inside].min() > 0.9
    assert always[~inside].max() < 0.2


def test_a_tuple_seen_twice_is_real(oracle: dict[str, dict[str, Any]]) -> None:
    """The set algorithm on Adult's rows: what it shows twice is real; 1,860 tuples, as computed.

    The number of tuples shown twice is a sum of independent coins: within five standard deviations
    but for 10⁻⁶.
    """
    wanted = oracle["dup.options"]["expected"]["B_naive_multiset"]
    table = voile.read("dataset:adult/boundary")
    schema = table.infer(list(table.columns), "error")
    rows = table.keys(schema, drop_nulls=False)
    tuples, copies = np.unique(rows, return_counts=True)
    twice = 1 - 0.5**copies - copies * 0.5**copies
    assert twice.sum() == pytest.approx(wanted["E_tuples_exposed_with_certainty"], rel=1e-9)
    assert (twice * copies).sum() == pytest.approx(wanted["E_records_covered"], rel=1e-9)

    mechanism = AlphaBeta(0.5, plan(ADULT, "set", retention=0.5).noise, "set")
    index, key = TupleIndex(schema.sizes), Key.from_seed(11)
    noise = mechanism.noise_rows(index, key, 0, 0, index.limbs[0].size)
    view = np.concatenate(list(mechanism.view(rows, noise, key, 0)))
    shown, often = np.unique(view, return_counts=True)
    exposed = shown[often >= 2]
    assert np.isin(exposed, tuples).all()
    spread = math.sqrt((twice * (1 - twice)).sum())
    assert FALSE_ALARM > 2 * 2.9e-7  # five standard deviations
    assert abs(len(exposed) - twice.sum()) < 5 * spread


def test_frapp_on_the_tuple_level(oracle: dict[str, dict[str, Any]]) -> None:
    """Exactly, in fractions of the printed parameters: more copies, more belief."""
    case = oracle["frapp.p"]
    n, m, gamma = case["inputs"]["n"], case["inputs"]["m"], Fraction(1, 5)
    d = Fraction(10 * n, m)
    ratio = gamma * (1 - d / n) / ((d / n) * (1 - gamma))
    p = float(ratio / (ratio + m - 1))
    assert p == pytest.approx(case["expected"]["p_record"], rel=1e-6)
    other = (1 - p) / (m - 1)

    def by_chance(copies: int, records: int) -> float:
        chance: float = other**copies * (1 - other) ** (records - copies)
        return math.comb(records, copies) * chance

    believed = []
    for copies in range(4):
        without = by_chance(copies, n)
        kept = p * by_chance(copies - 1, n - 1) if copies else 0.0
        with_it = (1 - p) * by_chance(copies, n - 1) + kept
        prior = float(d)
        believed.append(prior * with_it / (prior * with_it + (1 - prior) * without))
        assert believed[-1] == pytest.approx(case["expected"][str(copies)], rel=1e-6)
    assert believed[1] == pytest.approx(0.2, abs=1e-3) and believed[2] > 0.33
    multiset = plan(ADULT, "multiset", retention=0.5)
    counts = seen(AlphaBeta(multiset.retention, multiset.noise), 1, 2, 3, 100)
    after = Independent(np.full(4, ADULT.prior)).posteriors(counts)
    assert after == pytest.approx([0.2] * 4, rel=1e-9)
