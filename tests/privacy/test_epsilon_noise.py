"""The noise that keeps (ε, δ)-differential privacy over T answers, by the law that is drawn."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.sampling import FALSE_ALARM
from voile.arrays import Floats
from voile.errors import PromiseError, UsageError
from voile.evaluate.audit.answers import both_ways, losses
from voile.privacy.gaussian import mu_for
from voile.privacy.interactive.laws import KINDS, Change, noise_law
from voile.privacy.interactive.promise import (
    account,
    breaches,
    needed,
    needed_for_epsilon,
    rise_within,
)


def answers(kind: str, variance: float, change: Change, queries: int) -> tuple[Floats, Floats]:
    """The chance of all answers to such totals, of one table and of its neighbour, by listing."""
    law = noise_law(kind, variance, change)
    reach = int(law.parameter) // 2 if kind == "binomial" else int(16 * law.sd) + 9
    seen = np.arange(-reach - change.step, reach + change.step + 1)
    one, other = law.pmf(seen), law.pmf(seen + change.step)
    p, q = one, other
    for _ in range(queries * change.cells - 1):
        p, q = np.multiply.outer(p, one).ravel(), np.multiply.outer(q, other).ravel()
    return p, q


def rest(p: Floats, q: Floats, epsilon: float) -> float:
    """The least δ, both ways."""
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p)))


@pytest.mark.parametrize("kind", ["binomial", "gaussian"])
def test_a_hundred_answers_need_what_the_exact_curve_says(kind: str) -> None:
    """17.85 where (δ,T)-privacy needs 23.6."""
    found = needed_for_epsilon(kind, 1.0, 1e-6, 100)
    assert found.per_query == pytest.approx(17.85, abs=0.005)
    assert found.per_query == pytest.approx(1 / mu_for(1.0, 1e-6) ** 2, rel=1e-4)
    assert found.spent <= found.delta
    assert needed(kind, 1.0, 1e-6, 100).per_query == pytest.approx(23.6, abs=0.05)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("change", "epsilon", "delta", "queries"),
    [
        (Change(), 1.5, 1e-3, 1),
        (Change(), 2.5, 0.02, 2),
        (Change(2, 2), 1.5, 1e-3, 1),
        (Change(3, 9), 1.5, 1e-3, 1),
        (Change(3, 9), 2.5, 0.02, 2),
    ],
)
def test_all_answers_together_keep_epsilon_and_delta(
    kind: str, change: Change, epsilon: float, delta: float, queries: int
) -> None:
    """Counts, histograms and sums: every answer listed; with 30 % less variance it is broken."""
    variance = needed_for_epsilon(kind, epsilon, delta, queries).variance
    p, q = answers(kind, variance, change, queries)
    assert p.sum() == pytest.approx(1, abs=1e-9)
    assert rest(p, q, epsilon) <= delta * (1 + 1e-9)
    p, q = answers(kind, 0.7 * variance, change, queries)
    if change == Change():
        assert rest(p, q, epsilon) > delta


@pytest.mark.parametrize("kind", KINDS)
def test_thirty_per_cent_too_little_noise_is_caught_by_drawing_it(kind: str) -> None:
    """60,000 pairs of transcripts of ten answers, held to ε = 1 at δ = 0.02.

    Sound noise is called broken with chance 10⁻⁶ at most; the seeds are fixed.
    """
    epsilon, delta, queries, runs = 1.0, 0.02, 10, 60_000
    variance = needed_for_epsilon(kind, epsilon, delta, queries).variance
    for part, broken in ((1.0, False), (0.7, True)):
        law = noise_law(kind, part * variance)
        one, other = (
            np.concatenate(list(losses(law, law, here, queries, runs, 11))) for here in (1, 0)
        )
        found = both_ways(one, other, epsilon, delta, (1e-3 if broken else FALSE_ALARM) / 4)
        assert any(bound.broken for bound in found) is broken


@pytest.mark.parametrize("kind", KINDS)
def test_the_account_agrees_and_less_noise_costs_more(kind: str) -> None:
    found = needed_for_epsilon(kind, 1.0, 1e-6, 40)
    assert account(kind, found.variance, 40, at=1e-6).epsilon <= 1 + 1e-6
    assert account(kind, 0.7 * found.variance, 40, at=1e-6).epsilon > 1.1
    fewer = account(kind, found.variance, 39, at=1e-6)
    assert fewer.epsilon <= 1 + 1e-6
    data = found.to_dict()
    assert data["per_query"] == found.variance / 40
    assert data["raised"] == (found.variance > found.formula)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("queries", [1, 50])
def test_the_rise_that_follows_is_kept_and_a_smaller_one_is_not(kind: str, queries: int) -> None:
    variance = needed_for_epsilon(kind, 1.5, 1e-3, queries).variance
    rise = rise_within(kind, variance, queries, 1e-3)
    assert breaches(kind, variance, queries, rise).end <= 1e-3
    assert breaches(kind, variance, queries, 0.9 * rise).end > 1e-3


@pytest.mark.parametrize(
    ("epsilon", "delta", "queries", "words"),
    [
        (0.0, 1e-6, 5, "ε = 0"),
        (-1.0, 1e-6, 5, "ε = -1"),
        (math.nan, 1e-6, 5, "ε = nan"),
        (math.inf, 1e-6, 5, "ε = inf"),
        (1.0, 0.0, 5, "δ = 0"),
        (1.0, 1.0, 5, "δ = 1"),
        (1.0, 1e-30, 5, "δ = 1e-30"),
        (1.0, 1e-6, 0, "T = 0"),
    ],
)
def test_what_is_no_promise_is_refused(
    epsilon: float, delta: float, queries: int, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        needed_for_epsilon("gaussian", epsilon, delta, queries)


def test_coins_that_give_a_row_away_too_often_are_refused() -> None:
    variance = needed_for_epsilon("binomial", 1.5, 1e-3, 1).variance
    with pytest.raises(PromiseError, match="only one hypothesis"):
        rise_within("binomial", variance, 1, 1e-9)


def test_one_answer_and_a_huge_number_of_them() -> None:
    for queries in (1, 10**5):
        found = needed_for_epsilon("gaussian", 0.1, 1e-12, queries)
        assert found.formula <= found.variance < 1.001 * found.formula
