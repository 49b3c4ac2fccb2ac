"""The certified frontier: against enumeration, against scipy, and against real bucketizations."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.support.paths import TESTS
from tests.support.soak import rounds
from voile.arrays import Floats
from voile.errors import UsageError
from voile.evaluate.frontier import certify
from voile.evaluate.frontier.kernels import least_in_ball, least_in_balls
from voile.evaluate.frontier.mixture import MixtureProblem, RecodingMixture
from voile.evaluate.frontier.subject import read_subject
from voile.evaluate.losses import Populations, jensen_shannon, populations
from voile.schema.hierarchy import Levels

ORACLE = json.loads((TESTS / "oracle" / "frontier.json").read_text())
QI = ["age", "workclass", "education", "marital_status", "race", "sex"]


def flat(size: int) -> Levels:
    codes = np.arange(size, dtype=np.int32)
    labels = tuple(map(str, range(size)))
    return Levels((codes, np.zeros(size, dtype=np.int32)), (labels, ("*",)), codes)


def some_table(seed: int, values: int = 3) -> tuple[Any, Populations]:
    """Two quasi-identifiers of three and two values; counts by cell and sensitive value."""
    generator = np.random.default_rng(seed)
    cells = np.array([[a, b] for a in range(3) for b in range(2)], dtype=np.int32).T.copy()
    counts = generator.integers(0, 6, (6, values)) + (
        np.arange(6)[:, None] % values == np.arange(values)
    )
    return counts, populations(cells, [flat(3), flat(2)], 1, counts.astype(np.int64))


def divergence(left: Floats, right: Floats) -> float:
    """JS by its definition."""
    middle = (left + right) / 2
    total = 0.0
    for one in (left, right):
        total += 0.5 * sum(a * np.log(a / m) for a, m in zip(one, middle, strict=True) if a > 0)
    return float(total)


# ------------------------------------------------------------------ one ball


@pytest.mark.parametrize("radius", [1e-4, 0.01, 0.1, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_least_in_a_ball_is_the_least_and_its_bound_is_below(seed: int, radius: float) -> None:
    """Over a fine grid of the simplex of three values; the bound leaves no more than rounding."""
    generator = np.random.default_rng(seed)
    overall, slopes = generator.dirichlet(np.ones(3)), generator.normal(size=3)
    slopes -= slopes.min()
    point = np.empty(3)
    bound, price = least_in_ball(slopes, overall, radius, point)
    assert point.min() >= 0 and point.sum() == pytest.approx(1)
    assert divergence(overall, point) <= radius + 1e-12
    assert bound <= point @ slopes + 1e-12
    assert bound == pytest.approx(point @ slopes, abs=1e-8)
    assert price >= 0
    steps = np.linspace(0, 1, 201)
    grid = np.array([[a, b, 1 - a - b] for a in steps for b in steps if a + b <= 1 + 1e-12])
    grid = np.clip(grid, 0, 1)
    inside = jensen_shannon(overall, grid) <= radius
    assert (grid[inside] @ slopes >= bound - 1e-12).all()
    for other in (radius / 2, radius * 1.5):  # one bound for every radius
        inside = jensen_shannon(overall, grid) <= other
        assert (grid[inside] @ slopes >= bound + price * (radius - other) - 1e-12).all()


def test_least_in_a_ball_agrees_with_scipy() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    generator = np.random.default_rng(5)
    for _ in range(10):
        overall, slopes = generator.dirichlet(np.ones(6)), generator.normal(size=6)
        slopes -= slopes.min()
        point = np.empty(6)
        bound, _ = least_in_ball(slopes, overall, 0.05, point)
        found = optimize.minimize(
            lambda p, s=slopes: p @ s, overall, jac=lambda _, s=slopes: s, method="SLSQP",
            bounds=[(1e-12, 1)] * 6,
            constraints=[
                {"type": "eq", "fun": lambda p: p.sum() - 1},
                {"type": "ineq", "fun": lambda p, q=overall: 0.05 - divergence(q, p)},
            ],
            options={"maxiter": 500, "ftol": 1e-12},
        )  # fmt: skip
        assert bound == pytest.approx(found.fun, abs=1e-5)
        assert bound <= found.fun + 1e-7


def test_equal_slopes_and_large_balls() -> None:
    overall = np.array([0.5, 0.3, 0.2])
    points = np.empty((2, 3))
    slopes = np.array([[0.7, 0.7, 0.7], [0.0, 1.0, 2.0]])
    bound, price = least_in_balls(slopes, overall, 0.69, points)
    assert points[0] == pytest.approx(overall)
    assert points[1] == pytest.approx([1, 0, 0])
    assert bound == pytest.approx(0.7) and price == 0


# ------------------------------------------------------------------ the whole problem


@pytest.mark.parametrize("seed", range(rounds(1, 3)))
@pytest.mark.parametrize("radius", [0.005, 0.03])
def test_the_optimum_of_small_tables_agrees_with_scipy(seed: int, radius: float) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    counts, found = some_table(seed)
    rows, overall = counts.sum(axis=1), counts.sum(axis=0) / counts.sum()
    members = [found.members[a:b] for a, b in pairwise(found.starts)]
    assert len(found.counts) == 6  # every cell is an atom, in the same order

    def loss(flat_points: Floats) -> float:
        points = flat_points.reshape(6, 3)
        return float(np.mean([
            divergence(counts[m].sum(axis=0) / rows[m].sum(), rows[m] @ points[m] / rows[m].sum())
            for m in members
        ]))  # fmt: skip

    constraints = [
        {"type": "eq", "fun": lambda p, i=i: p.reshape(6, 3)[i].sum() - 1} for i in range(6)
    ] + [
        {"type": "ineq", "fun": lambda p, i=i: radius - divergence(overall, p.reshape(6, 3)[i])}
        for i in range(6)
    ]
    best = optimize.minimize(
        loss, np.tile(overall, 6), method="SLSQP", bounds=[(1e-9, 1)] * 18,
        constraints=constraints, options={"maxiter": 300, "ftol": 1e-11},
    )  # fmt: skip
    frontier = certify(found, [radius], gap=1e-4, steps=300)
    (ours,) = frontier.points
    assert ours.lower <= best.fun + 1e-7
    assert best.fun - 1e-6 <= ours.u_loss <= ours.lower + 1e-3 * frontier.trivial + 1e-9


def test_no_bucketization_is_below_and_every_line_holds_at_every_p_loss() -> None:
    """Random bucketizations, which also part the rows of a cell; bounds above some would show."""
    counts, found = some_table(7)
    frontier = certify(found, [0.002, 0.01, 0.03, 0.1])
    rows = counts.sum(axis=1)
    members = [found.members[a:b] for a, b in pairwise(found.starts)]
    people = np.array([(c, s) for c in range(6) for s in range(3) for _ in range(counts[c, s])])
    generator = np.random.default_rng(1)
    overall = counts.sum(axis=0) / counts.sum()
    nearest: Any = np.inf
    for _ in range(rounds(700, 1500)):
        bucket = generator.integers(0, generator.integers(1, 5), len(people))
        told = np.zeros((6, 3))
        worst = 0.0
        for b in np.unique(bucket):
            here = people[bucket == b]
            share = np.bincount(here[:, 1], minlength=3) / len(here)
            worst = max(worst, divergence(overall, share))
            told += np.bincount(here[:, 0], minlength=6)[:, None] * share
        loss = np.mean([
            divergence(counts[m].sum(axis=0) / rows[m].sum(), told[m].sum(axis=0) / rows[m].sum())
            for m in members
        ])  # fmt: skip
        for point in frontier.points:
            assert loss >= point.bound.at(worst) - 1e-12
        assert loss >= frontier.lower(worst) - 1e-12
        nearest = min(nearest, loss - frontier.lower(worst))
    assert nearest < 0.02  # the bound is not idle: some come near


def test_what_is_reached_is_in_the_ball_and_has_the_loss_that_is_told() -> None:
    _, found = some_table(3)
    problem = MixtureProblem(found)
    mixture = RecodingMixture(problem, problem.shrunk(0.01))
    for _ in range(10):
        line, corner = mixture.bound(0.01)
        mixture.add(corner)
        mixture.improve()
        points = mixture.points
        assert jensen_shannon(problem.overall, points).max() <= 0.01 + 1e-12
        assert points.sum(axis=1) == pytest.approx(np.ones(len(points)))
        estimates = found.sums(points * problem.rows) / problem.support
        assert problem.loss(mixture.estimates) == pytest.approx(
            float(jensen_shannon(found.true, estimates).mean())
        )
        assert line.at(0.01) <= problem.loss(mixture.estimates) + 1e-12


def test_the_ends_are_trivial_and_exact() -> None:
    counts, found = some_table(2)
    overall = counts.sum(axis=0) / counts.sum()
    frontier = certify(found, [float(np.log(2))], gap=1e-6, steps=200)
    trivial = float(np.mean([divergence(p, overall) for p in found.true]))
    assert frontier.trivial == pytest.approx(trivial)
    assert frontier.lower(0.0) == frontier.upper(0.0) == frontier.trivial
    assert frontier.points[0].u_loss == pytest.approx(0, abs=2e-3 * trivial)
    assert frontier.lower(float(np.log(2))) == pytest.approx(0, abs=1e-9)


def test_the_bound_falls_with_p_loss_and_stays_below_what_is_reached() -> None:
    _, found = some_table(4)
    frontier = certify(found, [0.002, 0.01, 0.05])
    grid = np.linspace(0, 0.1, 60)
    lower = [frontier.lower(p) for p in grid]
    upper = [frontier.upper(p) for p in grid]
    assert all(a >= b - 1e-12 for a, b in pairwise(lower))
    assert all(a <= b + 1e-12 for a, b in zip(lower, upper, strict=True))


def test_a_value_that_no_row_has_changes_nothing() -> None:
    counts, found = some_table(6)
    cells = np.array([[a, b] for a in range(3) for b in range(2)], dtype=np.int32).T.copy()
    wider = np.hstack([counts, np.zeros((6, 1), dtype=np.int64)])
    again = populations(cells, [flat(3), flat(2)], 1, wider)
    assert certify(again, [0.02]).points[0].u_loss == pytest.approx(
        certify(found, [0.02]).points[0].u_loss
    )


@pytest.mark.parametrize("wrong", [0.0, -0.1, float("nan")])
def test_p_losses_that_cannot_be_certified(wrong: float) -> None:
    _, found = some_table(0)
    with pytest.raises(UsageError, match="cannot be certified"):
        certify(found, [wrong])


def test_adult_has_the_known_optimum() -> None:
    """.0084, .0037 and .0011 at P_loss .03, .05 and .075, certified within a few per cent."""
    subject = read_subject("dataset:adult/frontier", sensitive="occupation", qi=QI)
    assert subject.populations.number == ORACLE["populations"]["minSup"]["0.05"]
    frontier = certify(subject.populations, [0.03, 0.05, 0.075])
    assert frontier.trivial == pytest.approx(ORACLE["populations"]["U_trivial"], abs=1e-6)
    for point, known in zip(frontier.points, (0.0084, 0.0037, 0.0011), strict=True):
        assert round(point.u_loss, 4) == known
        assert point.lower <= point.u_loss <= point.lower + 0.05 * known


def test_slopes_that_tie_up_to_rounding_have_a_bound() -> None:
    """Two slopes that differ in the last digit leave no variance to divide by."""
    slopes, overall = np.array([5.55e-17, 0.0, 0.1733]), np.array([0.5, 0.3077, 0.1923])
    point = np.empty(3)
    bound, price = least_in_ball(slopes, overall, 0.1, point)
    assert np.isfinite([bound, price]).all()
    assert bound <= slopes @ point + 1e-15
    assert jensen_shannon(overall, point / point.sum()) <= 0.1 + 1e-9
