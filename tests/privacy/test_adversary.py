"""What an adversary learns: closed forms beside sums over all tables and all views of tiny domains.

The enumerations are in exact fractions. The law of a view is written out from the mechanism's
description, tuple by tuple, and not taken from the code under test.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from voile.arrays import Floats
from voile.mechanisms import AlphaBeta
from voile.privacy import DGamma, plan
from voile.privacy.adversary import (
    Evidence,
    Joint,
    Population,
    best_edges,
    exclusive,
    independent,
    is_bounded,
    leaks,
    log_ratio,
    mutual_information,
    normalised,
    product,
    tree,
)

A, Q = Fraction(3, 5), Fraction(1, 7)
MECHANISMS = [AlphaBeta(float(A), float(Q), "multiset"), AlphaBeta(float(A), float(Q), "set")]
MOST = 3
"""Views of the multiset form are followed up to so many copies of a tuple."""

Belief = dict[tuple[int, ...], Fraction]
"""Tables, as numbers of records of each tuple, with what is believed of them."""


def law(form: str, records: int, copies: int) -> Fraction:
    """P(copies published | records in the table) of one tuple, from the description."""
    if form == "set":
        chance = A if records else Q
        return chance if copies == 1 else 1 - chance
    return sum(
        (
            math.comb(records, i) * A**i * (1 - A) ** (records - i) * (1 - Q) * Q ** (copies - i)
            for i in range(min(records, copies) + 1)
        ),
        start=Fraction(0),
    )


def views(form: str, tuples: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(2 if form == "set" else MOST + 1), repeat=tuples))


def posterior(form: str, belief: Belief, view: Sequence[int], place: int, records: int = 1) -> Any:
    """P(the table holds so many records of the tuple at `place` | view): a sum over tables."""
    weight = {
        table: p * math.prod(law(form, x, j) for x, j in zip(table, view, strict=True))
        for table, p in belief.items()
    }
    found = sum(w for table, w in weight.items() if table[place] == records)
    return found / sum(weight.values())


def evidence_of(mechanism: AlphaBeta, view: Sequence[int]) -> Evidence:
    return lambda records: mechanism.log_likelihood(np.array(view), records, [])


# ---------------------------------------------------------------------- the likelihood


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.form)
def test_the_likelihood_is_the_law_of_the_description(mechanism: AlphaBeta) -> None:
    for records in range(2 if mechanism.form == "set" else 6):
        counts = np.array([1, 0, 1] if mechanism.form == "set" else [4, 0, 1, 4, 2, 9])
        found = np.exp(mechanism.log_likelihood(counts, records, []))
        wanted = [float(law(mechanism.form, records, int(j))) for j in counts]
        assert found == pytest.approx(wanted, rel=1e-12)


def test_likelihoods_at_the_ends() -> None:
    """Without noise, with all records kept, with large counts: no NaN and no overflow."""
    exact = AlphaBeta(1.0, 0.0)
    assert exact.log_likelihood(np.array([0, 1, 2]), 1, []).tolist() == [-np.inf, 0, -np.inf]
    assert AlphaBeta(0.5, 0.1, "set").log_likelihood(np.array([2]), 1, []).tolist() == [-np.inf]
    small = AlphaBeta(0.5, 1e-12).log_likelihood(np.array([40, 2000]), 1500, [])
    assert np.isfinite(small).all() and (small < 0).all()
    assert len(exact.log_likelihood(np.array([], dtype=np.int64), 1, [])) == 0


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.form)
def test_ratios_stay_within_the_stated_bounds_and_attain_them(mechanism: AlphaBeta) -> None:
    bounds = mechanism.likelihood_ratio()
    assert bounds.high is not None
    counts = np.arange(2 if mechanism.form == "set" else 12)
    ratio = np.exp(log_ratio(lambda k: mechanism.log_likelihood(counts, k, [])))
    assert ratio.min() == pytest.approx(float(bounds.low), rel=1e-12)
    assert ratio.max() == pytest.approx(float(bounds.high), rel=1e-12)


def test_no_other_record_with_the_same_values_is_the_worst_case() -> None:
    """Exactly: whatever is seen, the ratio is largest with no others; and none is below 1−a."""
    for copies in range(8):
        ratios = [law("multiset", c + 1, copies) / law("multiset", c, copies) for c in range(6)]
        assert ratios[0] == max(ratios)
        assert all(ratio >= 1 - A for ratio in ratios)
        assert ratios[0] == (1 - A if copies == 0 else 1 - A + A / Q)
    mechanism = MECHANISMS[0]
    counts = np.arange(8)
    for others in range(6):
        found = np.exp(log_ratio(lambda k: mechanism.log_likelihood(counts, k, []), others))
        wanted = [law("multiset", others + 1, j) / law("multiset", others, j) for j in range(8)]
        assert found == pytest.approx([float(w) for w in wanted], rel=1e-12)


# ---------------------------------------------------------------------- every kind of adversary


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.form)
def test_independent_posteriors_equal_the_sum_over_all_tables(mechanism: AlphaBeta) -> None:
    priors = [Fraction(1, 10), Fraction(2, 3), Fraction(1, 50)]
    belief: Belief = {
        table: math.prod(p if x else 1 - p for x, p in zip(table, priors, strict=True))  # type: ignore[misc]
        for table in itertools.product(range(2), repeat=3)
    }
    for view in views(mechanism.form, 3):
        ratio = log_ratio(evidence_of(mechanism, view))
        found = independent(np.array([float(p) for p in priors]), ratio)
        for i in range(3):
            exact = posterior(mechanism.form, belief, view, i)
            assert found[i] == pytest.approx(float(exact), rel=1e-12)


def test_known_others_equal_the_sum_over_all_tables() -> None:
    """A person's record beside two others with the same values, and a third that is uncertain."""
    prior, third = Fraction(1, 10), Fraction(1, 3)
    belief: Belief = {}
    for mine, theirs in itertools.product(range(2), repeat=2):
        chance = (prior if mine else 1 - prior) * (third if theirs else 1 - third)
        belief[mine + 2, theirs] = chance
    for view in views("multiset", 2):
        ratio = log_ratio(evidence_of(MECHANISMS[0], view), others=2)[:1]
        exact = posterior("multiset", belief, view, 0, records=3)
        assert independent(np.array([0.1]), ratio)[0] == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.form)
def test_exclusive_posteriors_equal_the_sum_over_all_tables(mechanism: AlphaBeta) -> None:
    """Two sets of a partition: exactly one tuple of the first three, one of the last two."""
    weights = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    second = [Fraction(1, 4), Fraction(3, 4)]
    belief: Belief = {}
    for i, j in itertools.product(range(3), range(2)):
        table = tuple(int(k in (i, 3 + j)) for k in range(5))
        belief[table] = weights[i] * second[j]
    for view in itertools.product(range(2), repeat=5):
        ratio = log_ratio(evidence_of(mechanism, view))
        found = exclusive(np.log([float(w) for w in weights]), ratio[:3])
        for i in range(3):
            exact = posterior(mechanism.form, belief, view, i)
            assert found[i] == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.form)
def test_correlated_posteriors_equal_the_sum_over_all_tables(mechanism: AlphaBeta) -> None:
    chances = [Fraction(1, 2), Fraction(1, 16), Fraction(1, 16), Fraction(3, 8)]
    outcomes = [(0, 0), (1, 0), (0, 1), (1, 1)]
    belief: Belief = dict(zip(outcomes, chances, strict=True))
    joint = Joint(np.array(outcomes, np.bool_), np.array([float(c) for c in chances]), np.arange(2))
    assert joint.priors == pytest.approx([7 / 16, 7 / 16])
    for view in views(mechanism.form, 2):
        found = joint.posteriors(evidence_of(mechanism, view))
        for i in range(2):
            exact = posterior(mechanism.form, belief, view, i)
            assert found[i] == pytest.approx(float(exact), rel=1e-12)


def test_correlated_records_with_the_same_values_are_seen_together() -> None:
    """Joe and Jim have one tuple between them: the table holds it 0, 1 or 2 times."""
    chances = {(0, 0): Fraction(1, 2), (1, 0): Fraction(1, 8), (1, 1): Fraction(3, 8)}
    joint = Joint(
        np.array(list(chances), np.bool_),
        np.array([float(c) for c in chances.values()]),
        np.array([0, 0]),
    )
    for copies in range(MOST + 1):
        weight = {o: p * law("multiset", sum(o), copies) for o, p in chances.items()}
        exact = [sum(w for o, w in weight.items() if o[i]) / sum(weight.values()) for i in (0, 1)]
        found = joint.posteriors(evidence_of(MECHANISMS[0], [copies]))
        assert found == pytest.approx([float(e) for e in exact], rel=1e-12)


def test_what_cannot_be_is_not_a_number_and_certainty_stays() -> None:
    certain = np.array([0.0, 1.0, 0.3, 0.3])
    ratio = np.array([np.inf, -np.inf, np.inf, -np.inf])
    assert independent(certain, ratio).tolist() == [0, 1, 1, 0]
    assert normalised(np.array([0.0, np.inf, 1.0])).tolist() == [0, 1, 0]
    assert np.isnan(normalised(np.array([np.inf, np.inf]))).all()
    assert np.isnan(normalised(np.array([-np.inf, -np.inf]))).all()


# ---------------------------------------------------------------------- the promise


def test_d_bounded_adversaries_never_leak_and_others_do() -> None:
    """At prior d the posterior is γ and no leak; with less noise it is one."""
    promise = DGamma(0.01, 0.2)
    found = plan(promise, "multiset")
    counts = np.array([0, 1, 5])

    def after(noise: float, prior: float) -> tuple[Floats, Floats]:
        mechanism = AlphaBeta(found.retention, noise)
        before = np.full(3, prior)
        ratio = log_ratio(lambda k: mechanism.log_likelihood(counts, k, []))
        return before, independent(before, ratio)

    before, belief = after(found.noise, promise.prior)
    kept = leaks(promise, before, belief)
    assert kept.covered.all() and not kept.positive.any() and not kept.negative.any()
    assert belief.max() == pytest.approx(promise.posterior, rel=1e-9)
    tiny = leaks(promise, *after(found.noise, 1e-12))
    assert not tiny.positive.any() and not tiny.negative.any()
    broken = leaks(promise, *after(found.noise * 0.7, promise.prior))
    assert broken.positive.tolist() == [False, True, True]
    less = leaks(promise, before, np.full(3, 0.9 * promise.prior**2 / promise.posterior))
    assert less.negative.all()
    outside = leaks(promise, *after(found.noise, 0.02))
    assert not outside.covered.any() and not outside.positive.any()
    assert is_bounded(promise, np.array([0.01, 1.0, 0.0]))
    assert not is_bounded(promise, np.array([0.011, 1.0]))


# ---------------------------------------------------------------------- models of the population


def tree_counts(rng: np.random.Generator) -> Any:
    """A law over three attributes in which the second depends on the first, the third on it."""
    first = rng.dirichlet(np.ones(2))
    second = rng.dirichlet(np.ones(3), size=2)
    third = rng.dirichlet(np.ones(4), size=3)
    return np.einsum("a,ab,bc->abc", first, second, third)


def marginals(law: Any, scale: float) -> tuple[list[Any], dict[tuple[int, int], Any]]:
    axes = range(law.ndim)
    singles = [scale * law.sum(axis=tuple(k for k in axes if k != j)) for j in axes]
    pairs = {
        (i, j): scale * law.sum(axis=tuple(k for k in axes if k not in (i, j)))
        for i, j in itertools.combinations(axes, 2)
    }
    return singles, pairs


def information(pairs: dict[tuple[int, int], Any]) -> dict[tuple[int, int], float]:
    return {edge: mutual_information(both) for edge, both in pairs.items()}


def test_the_tree_finds_a_tree_and_a_product_does_not() -> None:
    law = tree_counts(np.random.default_rng(5))
    singles, pairs = marginals(law, 1e9)
    codes = np.unravel_index(np.arange(law.size), law.shape)
    found = np.exp(tree(singles, list(pairs), pairs.__getitem__).log_chance(codes))
    assert found == pytest.approx(law.ravel(), rel=1e-5)
    apart = np.exp(product(singles).log_chance(codes))
    assert apart.sum() == pytest.approx(1)
    assert np.abs(apart - law.ravel()).max() > 0.02
    assert {frozenset(edge) for edge in best_edges(3, information(pairs))} == {
        frozenset((0, 1)),
        frozenset((1, 2)),
    }


def test_the_tree_is_the_best_of_all_trees() -> None:
    """By brute force: the sum of mutual information over all spanning trees of four attributes."""
    rng = np.random.default_rng(8)
    _, pairs = marginals(rng.dirichlet(np.ones(36)).reshape(2, 3, 2, 3), 1000)
    weight = information(pairs)

    def spans(edges: Sequence[tuple[int, int]]) -> bool:
        reached = {0}
        for _ in edges:
            for i, j in edges:
                if i in reached or j in reached:
                    reached |= {i, j}
        return len(reached) == 4

    best = max(
        sum(weight[e] for e in edges) for edges in itertools.combinations(weight, 3) if spans(edges)
    )
    chosen = best_edges(4, weight)
    assert sum(weight[min(e), max(e)] for e in chosen) == pytest.approx(best)
    assert len({child for _, child in chosen}) == 3


def test_a_forest_where_pairs_are_not_known() -> None:
    law = tree_counts(np.random.default_rng(5))
    singles, pairs = marginals(law, 1000)
    only = {(0, 2): pairs[0, 2]}
    assert best_edges(3, information(only)) in ([(0, 2)], [(2, 0)])
    found = tree(singles, list(only), only.__getitem__)
    assert [parent is None for parent in found.parents].count(True) == 2
    codes = np.unravel_index(np.arange(law.size), law.shape)
    assert np.exp(found.log_chance(codes)).sum() == pytest.approx(1)


def test_a_prior_from_a_model_is_the_chance_of_being_drawn() -> None:
    """1 − (1−P)^n, also where it is tiny or near 1."""
    model = Population((None,), (np.log(np.array([1e-15, 0.4, 0.6 - 1e-15])),))
    found = np.exp(model.log_prior([np.arange(3)], 100))
    assert found == pytest.approx([1e-13, 1 - 0.6**100, 1 - 0.4**100], rel=1e-9)
