"""Promises hold whatever totals are asked for, and after fewer answers: all sums listed."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from tests.support.soak import some
from voile.arrays import Floats
from voile.privacy.interactive.confidence import variance_needed
from voile.privacy.interactive.laws import KINDS, Change, NoiseLaw, noise_law
from voile.privacy.interactive.losses import FINE, PAIR, UNIT, NormalGrid, loss_total
from voile.privacy.interactive.promise import account, breaches, needed

Listed = tuple[Floats, Floats]
SETTINGS = [(1.0, 1e-6), (2.0, 0.01), (3.0, 1e-4), (0.5, 1e-3)]


def listed(law: NoiseLaw, step: int) -> Listed:
    """Every loss of one noisy number and its chance; infinite where only the truth can be."""
    far = int(law.parameter) // 2 if law.kind == "binomial" else math.ceil(10 * law.parameter)
    if law.kind == "geometric":
        far *= 4
    far = min(far, math.ceil(10 * law.sd)) if law.kind == "binomial" else far
    k = np.arange(-far - step, far + step + 1)
    here = np.isfinite(law.log_pmf(k))
    true, other = law.log_pmf(k)[here], law.log_pmf(k + step)[here]
    return np.where(np.isfinite(other), true - other, np.inf), np.exp(true)


def joined(numbers: list[Listed]) -> tuple[Listed, Listed]:
    """All sums but of the last number; and that one, in order."""
    values, chances = np.zeros(1), np.ones(1)
    *first, last = sorted(numbers, key=lambda one: len(one[0]))
    for more, masses in first:
        values, chances = (values[:, None] + more).ravel(), (chances[:, None] * masses).ravel()
        seen = chances > 1e-24
        values, chances = values[seen], chances[seen]
    order = np.argsort(last[0])
    return (values, chances), (last[0][order], last[1][order])


def risen(numbers: list[Listed], rise: float) -> float:
    """Pr[sum of losses > rise]."""
    (values, chances), (last, masses) = joined(numbers)
    tails = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    start = np.searchsorted(last, rise - values + 1e-9, side="right")
    return float((chances * tails[start]).sum())


def spent(numbers: list[Listed], epsilon: float) -> float:
    """δ at ε: E[(1 − e^(ε − sum))⁺]."""
    (values, chances), (last, masses) = joined(numbers)
    start = np.searchsorted(last, epsilon - values, side="right")
    tails, others = (
        np.append(np.cumsum(m[::-1])[::-1], 0.0) for m in (masses, masses * np.exp(-last))
    )
    return float((chances * (tails[start] - np.exp(epsilon - values) * others[start])).sum())


def asked(kind: str, variance: float, questions: Any) -> list[Listed]:
    """Each question: the most that one changes it by, in how many groups, and what one does."""
    found = []
    for most, cells, done in questions:
        law = noise_law(kind, variance, Change(cells * most, cells * most**2))
        found += [listed(law, done)] * cells
    return found


SINGLE = [(s, c, d) for s in (1, 2, 3, 5, 10) for c in (1, 2) for d in {s, max(1, s - 1)}]
MIXED = [*itertools.combinations_with_replacement([(s, 1, s) for s in (1, 2, 3, 5, 20)], 2),
         ((5, 1, 4), (1, 1, 1)), ((1, 2, 1), (1, 1, 1)), ((2, 2, 2), (1, 1, 1))]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("delta, eta", some(SETTINGS, 2, seed=1))
def test_no_totals_breach_more_often_than_promised(kind: str, delta: float, eta: float) -> None:
    """One answer and two, to questions of all sorts, two sorts together; never above η."""
    once, twice = (needed(kind, delta, eta, queries).variance for queries in (1, 2))
    found = [risen(asked(kind, once, [one]), delta) for one in SINGLE]
    found += [risen(asked(kind, twice, both), delta) for both in MIXED]
    assert max(found) <= eta
    less = [risen(asked(kind, 0.8 * twice, both), delta) for both in MIXED]
    assert max(less) > eta


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("delta, eta", SETTINGS)
def test_no_totals_spend_more_than_the_account(kind: str, delta: float, eta: float) -> None:
    """The hockey stick of one question and of two sorts together, at what is said of all."""
    variance = needed(kind, delta, eta, 2).variance
    for at in (1e-3, 1e-6):
        found = account(kind, variance, 2, at=at)
        if math.isinf(found.epsilon):
            assert found.atom >= at
            continue
        most = max(spent(asked(kind, variance, both), found.epsilon) for both in MIXED)
        assert most <= at * (1 + 1e-6)
        assert most > 0.5 * at or found.epsilon_pure  # and not by far too much


def test_totals_that_the_formula_alone_does_not_cover() -> None:
    """With V of the normal law each of these is above η; that is what V is raised for."""
    for delta, eta, queries, questions, ratio in (
        (2.0, 0.01, 1, [(3, 2, 3)], 1.1),
        (1.0, 1e-6, 2, [(5, 1, 5), (1, 1, 1)], 1.03),
        (3.0, 1e-4, 2, [(2, 1, 2), (3, 1, 3)], 1.06),
    ):
        formula = variance_needed(delta, eta, queries)
        assert risen(asked("gaussian", formula, questions), delta) > ratio * eta
        found = needed("gaussian", delta, eta, queries)
        assert risen(asked("gaussian", found.variance, questions), delta) <= eta
        assert found.raised


@pytest.mark.parametrize("delta, eta", SETTINGS)
@pytest.mark.parametrize("queries", [1, 2, 7, 40])
def test_grid_is_the_worst_of_all_grids(delta: float, eta: float, queries: int) -> None:
    """T counts are one discrete Gaussian of variance T·V, k + place above δ; places tried."""
    variance = variance_needed(delta, eta, queries)
    grid, sd = NormalGrid(queries, variance), math.sqrt(queries * variance)
    start = (delta - queries / (2 * variance)) * variance  # δ, in steps of the sum of the noise
    k = np.arange(math.ceil(40 * sd))
    for place in (1e-9, 0.3, 0.8):
        chances = norm.pdf((start + place + k) / sd) / sd
        assert chances.sum() <= grid.above(delta) * (1 + 1e-9)
        lost = np.exp(-(place + k) / variance)
        assert (chances * (1 - lost)).sum() <= grid.excess(delta) * (1 + 1e-3)
        if place < 0.1:
            assert chances.sum() == pytest.approx(grid.above(delta), rel=1e-6)


def test_fine_grids_are_summed_as_integrals() -> None:
    """On both sides of the spacing at which sums become integrals, as listed sums."""
    spacings = []
    for delta, queries in itertools.product((0.1, 0.5, 1.0), (20, 30)):
        variance = 16 * queries  # u = ¼
        grid = NormalGrid(queries, variance)
        z = np.arange((delta - 1 / 32) * 4, 40, grid.spacing)
        assert grid.above(delta) == pytest.approx(grid.spacing * norm.pdf(z).sum(), rel=1e-6)
        between = z + grid.spacing / 2
        lost = grid.spacing * norm.pdf(between) * -np.expm1((z[0] - between) / 4)
        assert grid.excess(delta) == pytest.approx(lost.sum(), rel=1e-5)
        spacings.append(grid.spacing)
    assert min(spacings) < FINE < max(spacings)


@pytest.mark.parametrize("delta, eta", some(SETTINGS, 2, seed=4))
@pytest.mark.parametrize("queries", [100, 1000])
def test_many_answers_need_what_the_formula_says(delta: float, eta: float, queries: int) -> None:
    """Half a step of the sum is u/2T deviations: V is raised by about 2u²/(T·(2δ + u²))."""
    for kind in ("binomial", "gaussian"):
        found = needed(kind, delta, eta, queries)
        u = math.sqrt(queries / found.formula)
        raised = 2 * u * u / (queries * (2 * delta + u * u))
        assert 1 <= found.variance / found.formula <= 1 + 1.2 * raised + 1e-4
        assert max(breaches(kind, found.variance, queries, delta, c).end for c in (UNIT, PAIR,
                   Change(3, 9), Change(10, 100))) <= found.breach <= eta  # fmt: skip
    assert needed("gaussian", 1.0, 1e-6, queries).per_query == pytest.approx(23.584, rel=1e-3)


# ---------------------------------------------------------------------- fewer answers


def signs_above(rate: float, answers: int, rise: float) -> float:
    """Pr[sum of so many losses of ±ε > rise], by the binomial law of the signs."""
    most = math.floor((rise / rate + answers) / 2 + 1e-9)
    return float(binom.sf(most, answers, 1 / (1 + math.exp(-rate))))


@pytest.mark.parametrize("delta, eta", [*SETTINGS, (0.3, 0.1), (6.0, 1e-6)])
@pytest.mark.parametrize("queries", [2, 5, 8, 20, 50, 51, 101, 400])
def test_geometric_promises_hold_after_fewer_answers(
    delta: float, eta: float, queries: int
) -> None:
    """After every number of answers up to T; the most is after T or T − 1."""
    found = needed("geometric", delta, eta, queries)
    rate = 1 / noise_law("geometric", found.variance).parameter
    chances = [signs_above(rate, n, delta) for n in range(1, queries + 1)]
    assert max(chances) <= eta
    assert max(chances) == pytest.approx(max(chances[-2:]), rel=1e-9)
    assert found.breach == pytest.approx(max(chances), rel=1e-6, abs=1e-30)


@pytest.mark.parametrize(
    "delta, eta, queries, seen",
    [(1.0, 1e-6, 50, 1.647e-6), (1.0, 1e-6, 101, 1.396e-6), (2.0, 0.01, 50, 0.0135)],
)
def test_an_answer_less_may_breach_more(
    delta: float, eta: float, queries: int, seen: float
) -> None:
    """V with which T answers keep η and T − 1 do not: sums of ±ε change their grid."""
    law = noise_law("geometric", needed("geometric", delta, eta, queries).variance)
    rates = np.linspace(1 / law.parameter, 1.2 / law.parameter, 20_000)
    rate = max(r for r in rates if signs_above(r, queries, delta) <= eta)
    assert signs_above(rate, queries - 1, delta) == pytest.approx(seen, rel=2e-3)
    variance = 1 / (2 * math.sinh(rate / 2) ** 2)
    assert breaches("geometric", variance, queries, delta).end > eta


@pytest.mark.parametrize("kind", ["binomial", "gaussian"])
@pytest.mark.parametrize("delta, eta", some(SETTINGS, 2, seed=3))
def test_fewer_answers_do_not_breach_more(kind: str, delta: float, eta: float) -> None:
    for queries in (2, 5, 11, 30):
        variance = needed(kind, delta, eta, queries).variance
        for change in (UNIT, PAIR, Change(3, 9)):
            law = noise_law(kind, variance, change)
            found = [loss_total(law, change, n, delta).above(delta)
                     for n in range(max(1, queries - 3), queries + 1)]  # fmt: skip
            assert max(found) <= eta
