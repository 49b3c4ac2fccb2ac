"""EM stopped where it fits as the truth would: the mean misfit by enumeration, and the stop."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from voile.reconstruct import Axis, Dense, em_steps, expected, maximum_likelihood
from voile.reconstruct.axes import Transition
from voile.reconstruct.maximum import mean_misfit, misfit, stopped_em


def enumerated(x: tuple[int, ...], chances: list[list[Fraction]]) -> Fraction:
    """The mean of Pearson's misfit over every way in which the rows can be seen, exactly."""
    cells = range(len(x))
    w = [sum((x[c] * chances[c][v] for c in cells), Fraction(0)) for v in cells]
    truth = [c for c in cells for _ in range(x[c])]
    mean = Fraction(0)
    for seen in product(cells, repeat=len(truth)):
        chance = Fraction(1)
        for c, v in zip(truth, seen, strict=True):
            chance *= chances[c][v]
        mean += chance * sum((seen.count(v) - w[v]) ** 2 / w[v] for v in cells if w[v])
    return mean


@pytest.mark.parametrize("x", [(3, 1, 0), (0, 5, 1), (2, 2, 2)])
def test_the_mean_misfit_is_that_of_all_ways_to_see_the_rows(x: tuple[int, ...]) -> None:
    p, masses = Fraction(2, 5), [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    chances = [[p * (c == v) + (1 - p) * masses[v] for v in range(3)] for c in range(3)]
    exact = float(enumerated(x, chances))
    counts = np.array(x, np.float64)
    axis = Axis(0.4, np.array([1 / 2, 1 / 3, 1 / 6]))
    axes: list[list[Transition]] = [[axis], [Dense(axis.matrix())]]
    for given in axes:
        w = expected(counts, given)
        assert mean_misfit(counts, w, given) == pytest.approx(exact, abs=1e-12)
    # Another retention has another mean; cells − 1 is that of rows drawn anew, and too large.
    wrong: list[Transition] = [Axis(0.5, axis.masses)]
    assert abs(mean_misfit(counts, expected(counts, wrong), wrong) - exact) > 0.01
    assert exact < 2


def test_two_columns_multiply() -> None:
    axes: list[Transition] = [Axis(0.3, np.array([0.5, 0.5])), Axis(0.6, np.array([0.2, 0.3, 0.5]))]
    x = np.array([[4.0, 0.0, 3.0], [1.0, 7.0, 2.0]])
    dense: list[Transition] = [
        Dense(np.kron(axes[0].matrix(), axes[1].matrix()).astype(np.float64))
    ]
    flat = x.reshape(-1)
    assert mean_misfit(x, expected(x, axes).reshape(-1), axes) == pytest.approx(
        mean_misfit(flat, expected(flat, dense), dense), abs=1e-12
    )


def test_it_is_the_first_step_of_em_that_is_plausible() -> None:
    rng = np.random.default_rng(4)
    axes: list[Transition] = [Axis(0.3, np.full(20, 0.05)), Axis(1.0, np.full(2, 0.5))]
    truth = rng.multinomial(5000, rng.dirichlet(np.ones(40))).reshape(20, 2)
    y = rng.poisson(expected(truth.astype(np.float64), axes)).astype(np.float64)
    found = stopped_em(y, axes)
    assert found.counts.sum() == pytest.approx(y.sum())
    assert found.counts == pytest.approx(em_steps(y, axes, found.steps))

    def plausible(steps: int) -> bool:
        x = em_steps(y, axes, steps)
        w = expected(x, axes).reshape(-1)
        return misfit(y.reshape(-1), w) <= mean_misfit(x, w, axes)

    assert found.steps > 1
    assert plausible(found.steps)
    assert not any(plausible(steps) for steps in range(found.steps))
    assert maximum_likelihood(y, axes).log_likelihood >= found.log_likelihood


def test_where_nothing_was_perturbed_nothing_is_changed() -> None:
    y = np.array([[3.0, 0.0], [5.0, 9.0]])
    public: list[Transition] = [Axis(1.0, np.full(2, 0.5))] * 2
    assert stopped_em(y, public).counts.tolist() == y.tolist()
    assert stopped_em(y, public).steps == 0
    assert stopped_em(np.zeros((2, 2)), public).counts.tolist() == [[0, 0], [0, 0]]


def test_it_is_nearer_to_the_truth_than_the_maximum_over_many_small_cells() -> None:
    """Twenty tables of smooth counts: the maximum explains the noise, too."""
    rng = np.random.default_rng(6)
    axes: list[Transition] = [Axis(0.2, np.full(20, 0.05)), Axis(0.2, np.full(20, 0.05))]
    bell = np.exp(-((np.arange(20) - 8) ** 2) / 30)
    truth = 30_000 * np.outer(bell, bell[::-1]) / bell.sum() ** 2
    stopped, most = [], []
    for _ in range(20):
        y = rng.multinomial(30_000, (expected(truth, axes) / truth.sum()).reshape(-1))
        seen = y.reshape(20, 20).astype(np.float64)
        stopped.append(np.abs(stopped_em(seen, axes).counts - truth).sum() / 30_000)
        most.append(np.abs(maximum_likelihood(seen, axes, gap=1e-5).counts - truth).sum() / 30_000)
    assert np.mean(stopped) < 0.5 * np.mean(most)
