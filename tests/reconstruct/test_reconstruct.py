"""Reconstruction: the kernels against dense matrices, the maximum against its certificate."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.paths import TESTS
from tests.support.soak import rounds
from voile.arrays import Floats
from voile.errors import QueryError, UsageError
from voile.reconstruct import (
    Axis,
    Dense,
    Fit,
    Transition,
    condition_number,
    em_steps,
    em_until,
    expectation,
    expected,
    invert,
    maximum_likelihood,
    project,
    unbiased,
)

ORACLE = {
    check["id"]: check
    for check in json.loads((TESTS / "oracle/olap_sulq.json").read_text())["checks"]
}
ADULT = ORACLE["adult.basic"]["expected"]


def matching(*beginnings: str, ending: str = "") -> list[str]:
    return [key for key in ORACLE if key.startswith(beginnings) and key.endswith(ending)]


def binary(retentions: list[float], chances: list[float]) -> list[Transition]:
    return [Axis(p, np.array([1 - b, b])) for p, b in zip(retentions, chances, strict=True)]


def adult_axes(k: int, p: float) -> list[Transition]:
    return binary([p] * k, ADULT["b"][:k])


def true_states(k: int) -> Floats:
    return np.array(ORACLE[f"adult.true_states.k{k}"]["expected"], dtype=float)


def whole_matrix(axes: list[Transition]) -> Floats:
    """A itself: the Kronecker product of the axes' matrices."""
    whole: Floats = np.ones((1, 1))
    for axis in axes:
        whole = np.kron(whole, axis.matrix()).astype(np.float64)
    return whole


def perturbed(x: npt.NDArray[np.int64], axes: list[Transition], rng: np.random.Generator) -> Floats:
    """What is seen of x rows: from each true class a multinomial draw from its row of A."""
    return np.asarray(rng.multinomial(x, whole_matrix(axes)).sum(axis=0), dtype=float)


def log_likelihood(y: Floats, x: Floats, axes: list[Transition]) -> float:
    w = (x.reshape(-1) @ whole_matrix(axes)) / y.sum()
    some = y.reshape(-1) > 0
    return float(y.reshape(-1)[some] @ np.log(w[some]) / y.sum())


# ------------------------------------------------------------------ axes and kernels


@st.composite
def any_axis(draw: st.DrawFn, most: int = 5) -> Transition:
    classes = draw(st.integers(1, most))
    parts = st.lists(st.integers(0, 9), min_size=classes, max_size=classes)
    kind = draw(st.sampled_from(["binary", "replaced", "dense"]))
    if kind == "dense":
        rows = np.array([draw(parts) for _ in range(classes)], dtype=float)
        rows += 10 * classes * np.eye(classes)
        return Dense(rows / rows.sum(axis=1, keepdims=True))
    weights = np.array(draw(parts), dtype=float) if kind == "replaced" else np.array([1.0, 2.0])
    weights[0] += weights.sum() == 0
    retention = draw(st.sampled_from([0.05, 0.3, 0.5, 0.9, 1.0]))
    return Axis(retention, weights / weights.sum())


ANY_AXES = st.lists(any_axis(), min_size=0, max_size=5)


@settings(max_examples=rounds(40, 100), deadline=None)
@given(axes=ANY_AXES, seed=st.integers(0, 2**32 - 1))
def test_the_four_ways_are_those_of_the_kronecker_product(
    axes: list[Transition], seed: int
) -> None:
    whole = whole_matrix(axes)
    x = np.random.default_rng(seed).normal(size=len(whole))
    shape = tuple(axis.classes for axis in axes)
    inverse = np.linalg.inv(whole)
    for way, dense in (
        (expected, x @ whole),
        (invert, x @ inverse),
        (expectation, whole @ x),
        (unbiased, inverse @ x),
    ):
        result = way(x.reshape(shape), axes)
        assert result.shape == shape
        tolerance = 1e-9 * max(1.0, float(np.abs(dense).max()))
        np.testing.assert_allclose(result.reshape(-1), dense, atol=tolerance)


@pytest.mark.parametrize("shape", [(2,) * 13, (2, 2, 700, 2), (1500, 3), (3, 300, 5), (4097,)])
def test_long_axes_and_many_short_ones_pass_through_the_blocks(shape: tuple[int, ...]) -> None:
    """Against one matrix product per axis; sizes beyond the strips and blocks of the kernels."""
    rng = np.random.default_rng(4)
    axes = [Axis(0.4, rng.dirichlet(np.ones(classes))) for classes in shape]
    x = rng.random(shape)
    histogram = function = x
    for j, axis in enumerate(axes):
        matrix = axis.matrix()
        histogram = np.moveaxis(np.tensordot(histogram, matrix, axes=(j, 0)), -1, j)
        function = np.moveaxis(np.tensordot(function, matrix, axes=(j, 1)), -1, j)
    np.testing.assert_allclose(expected(x, axes), histogram, rtol=1e-10)
    np.testing.assert_allclose(expectation(x, axes), function, rtol=1e-10)
    np.testing.assert_allclose(invert(histogram, axes), x, atol=1e-9)
    np.testing.assert_allclose(unbiased(function, axes), x, atol=1e-7)


def test_twenty_binary_axes_and_back() -> None:
    x = np.random.default_rng(5).random((2,) * 20)
    axes = binary([0.6] * 20, [0.3] * 20)
    seen = expected(x, axes)
    assert math.isclose(seen.sum(), x.sum(), rel_tol=1e-12)
    np.testing.assert_allclose(invert(seen, axes), x, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(axes=ANY_AXES, seed=st.integers(0, 2**32 - 1))
def test_functions_are_dual_to_histograms(axes: list[Transition], seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, f = rng.random((2, len(whole_matrix(axes))))
    ways = float(y @ unbiased(f, axes).reshape(-1)), float(invert(y, axes).reshape(-1) @ f)
    assert math.isclose(*ways, rel_tol=1e-9, abs_tol=1e-9 * np.abs(unbiased(f, axes)).max())


def test_the_inverse_is_unbiased_exactly() -> None:
    """E[g(Y)|X=x] = f(x) by enumeration in fractions; of the transposed matrix it is not."""
    p, masses = Fraction(3, 10), [Fraction(1, 8), Fraction(5, 8), Fraction(2, 8)]
    f = [Fraction(0), Fraction(1), Fraction(0)]
    mean = sum(m * v for m, v in zip(masses, f, strict=True))
    g = [(v - (1 - p) * mean) / p for v in f]
    axis = Axis(float(p), np.array(masses, dtype=float))
    np.testing.assert_allclose(unbiased(np.array(f, dtype=float), [axis]), np.array(g, dtype=float))

    def chance(x: int, y: int) -> Fraction:
        return p * (x == y) + (1 - p) * masses[y]

    for x in range(3):
        assert sum(chance(x, y) * g[y] for y in range(3)) == f[x]
    assert any(sum(chance(y, x) * g[y] for y in range(3)) != f[x] for x in range(3))


def test_public_axes_and_single_classes_change_nothing() -> None:
    x = np.arange(24.0).reshape(2, 3, 1, 4)
    axes: list[Transition] = [Axis(1.0, np.full(c, 1 / c)) for c in (2, 3)]
    axes += [Axis(0.2, np.ones(1)), Dense(np.eye(4))]
    for way in (expected, invert, expectation, unbiased):
        np.testing.assert_array_equal(way(x, axes), x)
    assert condition_number(axes, 2) == 1


def test_the_callers_arrays_stay_as_they_are() -> None:
    masses, x = np.array([0.5, 0.5]), np.array([3.0, 1.0])
    axis = Axis(0.5, masses)
    masses[0] = 9
    expected(x, [axis])
    maximum_likelihood(x, [axis])
    np.testing.assert_array_equal(axis.masses, [0.5, 0.5])
    np.testing.assert_array_equal(x, [3.0, 1.0])
    with pytest.raises(ValueError, match="read-only"):
        axis.masses[0] = 9


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Axis(0.0, np.ones(1)), "retention of 0 "),
        (lambda: Axis(1.5, np.ones(1)), r"retention of 1\.5"),
        (lambda: Axis(math.nan, np.ones(1)), "retention of nan"),
        (lambda: Axis(0.5, np.array([0.5, 0.4])), r"2 classes sum to 0\.9"),
        (lambda: Axis(0.5, np.array([1.5, -0.5])), "sum to 1"),
        (lambda: Axis(0.5, np.array([math.nan, 1])), "sum to nan"),
        (lambda: Axis(0.5, np.empty(0)), "0 classes"),
        (lambda: Axis(0.5, np.eye(2)), "2 dimensions where 1"),
        (lambda: Dense(np.ones((2, 3)) / 3), "2 by 3"),
        (lambda: Dense(np.ones((2, 2))), "does not sum to 1"),
        (lambda: invert(np.ones(2), [Dense(np.full((2, 2), 0.5))]), "no inverse"),
        (lambda: expected(np.ones(3), binary([0.5], [0.5])), r"shape \(3,\).*\(2,\)"),
        (lambda: condition_number([], 3), "norm 3"),
        (lambda: em_until([1.0, 2.0], binary([0.5], [0.5]), 0.0), "never stops"),
        (lambda: maximum_likelihood([-1.0, 2.0], binary([0.5], [0.5])), "seen -1 times"),
        (lambda: maximum_likelihood([math.inf, 2.0], binary([0.5], [0.5])), "seen inf times"),
        (lambda: maximum_likelihood([0.0, 5.0], binary([0.5], [0.5]), start=[-1, 2]), "-1"),
        (lambda: maximum_likelihood([5.0, 1.0], [Dense(np.array([[0, 1], [0, 1.0]]))]), "none can"),
        (lambda: project([-1.0, 0.5]), "total -0.5"),
    ],
)
def test_what_is_wrong_is_named(wrong: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        wrong()


# ------------------------------------------------------------------ condition numbers


@pytest.mark.parametrize("key", matching("cond."))
def test_condition_numbers_of_the_oracle(key: str) -> None:
    name, p, k = ORACLE[key]["inputs"]["key"].rsplit("_", 2)
    count, retention = int(k[1:]), float(p[1:])
    axes = (
        binary([retention] * count, [0.5] * count)
        if name == "b.5"
        else adult_axes(count, retention)
    )
    number = condition_number(axes, 1 if name == "adult1" else 2)
    assert abs(number - ORACLE[key]["expected"]) <= ORACLE[key]["tol"]


@settings(max_examples=60, deadline=None)
@given(axes=st.lists(any_axis(4), min_size=0, max_size=3), norm=st.sampled_from([1, 2, math.inf]))
def test_condition_numbers_are_those_of_the_whole_matrix(
    axes: list[Transition], norm: float
) -> None:
    whole = whole_matrix(axes)
    assert math.isclose(condition_number(axes, norm), np.linalg.cond(whole, norm), rel_tol=1e-9)


# ------------------------------------------------------------------ the paper's examples


def given_example(key: str) -> tuple[Floats, list[Transition]]:
    inputs = ORACLE[key]["inputs"]
    return np.array(inputs["y"]), binary(inputs["p"], inputs["b"])


@pytest.mark.parametrize("key", matching("det.", ending="x_inversion"))
def test_inversions_of_the_oracle(key: str) -> None:
    y, axes = given_example(key)
    np.testing.assert_allclose(
        invert(y, axes).reshape(-1), ORACLE[key]["expected"], atol=ORACLE[key]["tol"]
    )


@pytest.mark.parametrize("key", matching("det.", ending="var_hat_inversion"))
def test_variances_of_the_oracle(key: str) -> None:
    """Σ_v y_v g(v)² − Σ_v y_v (A⁻¹f²)(v), for each cell's own f."""
    y, axes = given_example(key)
    variances = []
    for f in np.eye(y.size):
        g = unbiased(f, axes).reshape(-1)
        variances.append(y @ g**2 - y @ unbiased(f**2, axes).reshape(-1))
    np.testing.assert_allclose(variances, ORACLE[key]["expected"], atol=ORACLE[key]["tol"])


@pytest.mark.parametrize("key", [key for key in matching("det.") if ".em_iter" in key])
def test_steps_of_em_of_the_oracle(key: str) -> None:
    y, axes = given_example(key)
    x = em_steps(y, axes, ORACLE[key]["inputs"]["iterations"]).reshape(-1)
    np.testing.assert_allclose(x, ORACLE[key]["expected"], atol=ORACLE[key]["tol"])


@pytest.mark.parametrize("key", [key for key in matching("det.") if ".em_stop" in key])
def test_the_papers_stopping_rule_of_the_oracle(key: str) -> None:
    y, axes = given_example(key)
    want = ORACLE[key]["expected"]
    x, steps = em_until(y, axes, ORACLE[key]["inputs"]["tol"])
    assert steps == want["iterations"]
    np.testing.assert_allclose(x.reshape(-1), want["x"], atol=ORACLE[key]["tol"]["x"])


@pytest.mark.parametrize("key", matching("det.", ending="mle_constrained"))
def test_maxima_of_the_oracle(key: str) -> None:
    y, axes = given_example(key)
    fit = maximum_likelihood(y, axes, gap=1e-11)
    np.testing.assert_allclose(
        fit.counts.reshape(-1), ORACLE[key]["expected"], atol=ORACLE[key]["tol"]
    )


@pytest.mark.parametrize("key", matching("det.", ending="mle_loglik_per_row"))
def test_likelihoods_of_the_oracle(key: str) -> None:
    fit = maximum_likelihood(*given_example(key), gap=1e-10)
    assert abs(fit.log_likelihood - ORACLE[key]["expected"]) <= ORACLE[key]["tol"]


def test_the_printed_entries_are_the_transpose() -> None:
    """§4.2.1 prints R_{r,bit(i,r)}, the source's bit; the destination's is right."""
    check = ORACLE["matrix.printed_is_transpose"]
    axes = binary([check["inputs"]["p"]] * 2, check["inputs"]["b"])
    np.testing.assert_allclose(whole_matrix(axes), check["expected"]["A"], atol=check["tol"])
    printed = np.empty((4, 4))
    for i, j in itertools.product(range(4), repeat=2):
        bits = zip(axes, f"{i:02b}", f"{j:02b}", strict=True)
        printed[i, j] = math.prod(
            (1 - a.retention) * a.masses[int(s)] + a.retention * (s == d)
            for a, s, d in bits
            if isinstance(a, Axis)
        )
    np.testing.assert_allclose(printed, whole_matrix(axes).T)
    assert not np.allclose(printed.sum(axis=1), 1)


# ------------------------------------------------------------------ Figures 4, 5, 7 and 8


def design_variances(x: Floats, axes: list[Transition]) -> Floats:
    """Of every cell of the inversion, given the true counts: Σ_c x_c·((A g²)(c) − f(c)²)."""
    cells = []
    for f in np.eye(x.size):
        g = unbiased(f, axes)
        cells.append(x @ (expectation(g**2, axes).reshape(-1) - f**2))
    return np.array(cells)


@pytest.mark.parametrize(
    "key", matching("fig4578.", ending="_expected") + matching("fig4578.", ending="ones")
)
def test_exact_values_of_the_figures(key: str) -> None:
    check = ORACLE[key]
    k, p = check["inputs"]["k"], check["inputs"]["p"]
    x, axes = true_states(k), adult_axes(k, p)
    if key.endswith("sd_all_ones"):
        value = math.sqrt(design_variances(x, axes)[-1])
    elif key.endswith("randomized_expected"):
        value = np.abs(expected(x, axes).reshape(-1) - x).sum() / x.sum()
    else:
        value = math.sqrt(2 / math.pi) * np.sqrt(design_variances(x, axes)).sum() / x.sum()
    assert abs(value - check["expected"]) <= check["tol"]


ESTIMATORS: dict[str, Callable[[Floats, list[Transition]], Floats]] = {
    "inv": invert,
    "proj": lambda y, axes: project(invert(y, axes)),
    "em3": lambda y, axes: em_until(y, axes, 1e-3)[0],
    "em4": lambda y, axes: em_until(y, axes, 1e-4)[0],
    "mle": lambda y, axes: maximum_likelihood(y, axes).counts,
}


REPETITIONS = 300
"""Of each simulation. The oracle's values are means of 20, and its tolerances allow for that."""


@cache
def mean_distance(k: int, p: float, estimator: str) -> float:
    """Of the estimated from the true counts: the mean L1 of rows perturbed anew each time."""
    x, axes = true_states(k), adult_axes(k, p)
    total = 0.0
    for number in range(REPETITIONS):
        y = perturbed(x.astype(np.int64), axes, np.random.default_rng([k, round(10 * p), number]))
        total += float(np.abs(ESTIMATORS[estimator](y, axes).reshape(-1) - x).sum() / x.sum())
    return total / REPETITIONS


@pytest.mark.parametrize(
    "key",
    [key for key in matching("fig4578.") if key.rsplit(".", 1)[1] in ESTIMATORS],
)
def test_simulated_values_of_the_figures(key: str) -> None:
    inputs, estimator = ORACLE[key]["inputs"], key.rsplit(".", 1)[1]
    mean = mean_distance(inputs["k"], inputs["p"], estimator)
    assert abs(mean - ORACLE[key]["expected"]) <= ORACLE[key]["tol"]


# ------------------------------------------------------------------ the maximum


def random_example(seed: int) -> tuple[Floats, list[Transition]]:
    """Any axes and seen counts: public ones, classes without mass, few rows and very many."""
    rng = np.random.default_rng(seed)
    axes: list[Transition] = []
    for classes in rng.integers(1, 5, rng.integers(1, 5)):
        masses = rng.dirichlet(np.full(classes, rng.choice([0.3, 1, 5])))
        if classes > 1 and rng.random() < 0.2:
            masses[0], masses[1] = 0, masses[0] + masses[1]
        retention = float(rng.choice([0.02, 0.1, 0.3, 0.5, 0.9, 1.0]))
        axes.append(Axis(retention, masses))
        if rng.random() < 0.15:
            axes[-1] = Dense(rng.dirichlet(np.ones(classes), classes))
    rows, cells = int(rng.choice([1, 3, 20, 1000, 10**8])), math.prod(a.classes for a in axes)
    x = rng.multinomial(rows, rng.dirichlet(np.full(cells, rng.choice([0.05, 1, 10]))))
    w = expected(x, axes).reshape(-1) + (0.1 if rng.random() < 0.2 else 0)
    return rng.multinomial(rows, w / w.sum()).astype(float), axes


def dense_slope(y: Floats, x: Floats, axes: list[Transition]) -> Floats:
    """A(y/xA), by the whole matrix."""
    whole = whole_matrix(axes)
    w = x.reshape(-1) @ whole
    return whole @ np.divide(y, w, out=np.zeros_like(y), where=y > 0)


@pytest.mark.parametrize("seed", range(120))
def test_the_maximum_meets_the_conditions_of_optimality(seed: int) -> None:
    """For a concave L these suffice: x ≥ 0, Σx = n, no slope above 1, none below where x > 0."""
    y, axes = random_example(seed)
    way: list[Fit] = []
    fit = maximum_likelihood(y, axes, gap=1e-9, progress=way.append)
    x, n = fit.counts.reshape(-1), y.sum()
    assert x.min() >= 0
    assert math.isclose(x.sum(), n, rel_tol=1e-9)
    slope = dense_slope(y, x, axes)
    assert slope.max() <= 1 + 1e-9 + 1e-12
    assert x @ np.abs(1 - slope) <= 2.1e-9 * n  # Σx(1−g) = 0, and x·max(g−1, 0) ≤ gap·n
    assert fit.gap <= 1e-9
    assert abs(fit.log_likelihood - log_likelihood(y, x, axes)) < 1e-9
    heights = [point.log_likelihood for point in way]
    assert all(after >= before - 1e-13 for before, after in itertools.pairwise(heights))


@pytest.mark.parametrize("seed", range(40))
def test_the_gap_is_never_below_what_is_missing(seed: int) -> None:
    """On the way to the maximum and at random points; the rows that EM still moves may be."""
    y, axes = random_example(seed)
    way: list[Fit] = []
    best = maximum_likelihood(y, axes, gap=1e-10, progress=way.append).log_likelihood
    for point in way:
        assert point.gap >= best - point.log_likelihood - 1e-12
    rng = np.random.default_rng(seed)
    for _ in range(20):
        x = rng.dirichlet(np.full(y.size, 0.5)) * y.sum() + 1e-9
        gap = dense_slope(y, x, axes).max() - 1
        assert gap >= best - log_likelihood(y, x, axes) - 1e-8


def test_em_that_hardly_moves_may_be_far_from_the_maximum() -> None:
    """The paper's stopping rule certifies nothing: a thousand times as many rows are misplaced."""
    y, axes = given_example("det.k3_negative.mle_constrained")
    tolerance = 1e-5
    stopped, _ = em_until(y, axes, tolerance)
    best = maximum_likelihood(y, axes, gap=1e-11)
    assert np.abs(stopped - best.counts).sum() > 1000 * tolerance * y.sum()


def test_a_non_negative_inversion_is_the_maximum() -> None:
    y, axes = given_example("det.k2.x_inversion")
    fit = maximum_likelihood(y, axes)
    assert fit.steps == 1
    np.testing.assert_allclose(fit.counts, invert(y, axes), rtol=1e-12)
    share = y / y.sum()
    assert math.isclose(fit.log_likelihood, float(share @ np.log(share)), rel_tol=1e-12)


def test_converged_em_is_the_maximum() -> None:
    y, axes = given_example("det.k3_negative.mle_constrained")
    np.testing.assert_allclose(
        em_steps(y, axes, 100_000), maximum_likelihood(y, axes, gap=1e-12).counts, atol=0.01
    )


def test_nothing_seen_and_only_public_columns() -> None:
    axes: list[Transition] = [Axis(1.0, np.full(3, 1 / 3)), *binary([0.3], [0.5])]
    empty = maximum_likelihood(np.zeros((3, 2)), axes)
    assert (empty.counts == 0).all()
    assert (empty.steps, empty.gap, empty.log_likelihood) == (0, 0.0, 0.0)
    assert em_until(np.zeros((3, 2)), axes, 1e-3)[1] == 0
    y = np.array([[9.0, 0.0], [0.0, 0.0], [5.0, 5.0]])
    counts = maximum_likelihood(y, axes, gap=1e-12).counts
    np.testing.assert_allclose(counts.sum(axis=1), [9, 0, 10])
    public = [Axis(1.0, np.full(c, 1 / c)) for c in (3, 2)]
    np.testing.assert_array_equal(maximum_likelihood(y, public).counts, y)


def test_a_transition_without_inverse_still_has_a_maximum() -> None:
    axes: list[Transition] = [Dense(np.array([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0.2, 0.8]]))]
    y = np.array([40.0, 60.0, 80.0])
    fit = maximum_likelihood(y, axes)
    np.testing.assert_allclose(expected(fit.counts, axes), y, rtol=1e-3)


def test_where_to_start_does_not_matter() -> None:
    y, axes = given_example("det.k3_negative.mle_constrained")
    best = maximum_likelihood(y, axes, gap=1e-11)
    for start in (np.eye(8)[4], best.counts, np.arange(8.0)):
        fit = maximum_likelihood(y, axes, gap=1e-11, start=start)
        np.testing.assert_allclose(fit.counts, best.counts, atol=0.01)


def test_what_was_not_reached_is_said() -> None:
    y, axes = given_example("det.k3_negative.mle_constrained")
    with pytest.raises(QueryError, match=r"of 8 cells was not reached: after 5 steps .* 1e-08 was"):
        maximum_likelihood(y, axes, most_steps=5)
    with pytest.raises(QueryError, match="was requested"):
        maximum_likelihood(y, axes, gap=-1.0, most_steps=2000)


@pytest.mark.parametrize(("k", "p", "most"), [(10, 0.3, 3000), (12, 0.5, 3000), (12, 0.1, 3000)])
def test_many_columns_converge_within_few_steps(k: int, p: float, most: int) -> None:
    """Correlated columns, 100,000 rows; plain EM is not near after as many steps."""
    rng = np.random.default_rng(k)
    chances = rng.beta(0.7, 0.7, (6, k))[rng.integers(0, 6, 100_000)]
    rows = rng.random(chances.shape) < chances
    replaced = rng.random(rows.shape) >= p
    rows[replaced] = rng.random(int(replaced.sum())) < 0.5
    y = np.bincount(rows @ (1 << np.arange(k)), minlength=2**k).astype(float)
    axes = binary([p] * k, [0.5] * k)
    fit = maximum_likelihood(y, axes, most_steps=most)
    assert fit.gap <= 1e-8
    slow = em_steps(y, axes, fit.steps, np.full(2**k, y.sum() / 2**k))
    seen = np.flatnonzero(y)
    ratio = np.zeros(2**k)
    ratio[seen] = y[seen] / expected(slow, axes).reshape(-1)[seen]
    assert expectation(ratio, axes).max() - 1 > 1e-6


# ------------------------------------------------------------------ projection


@settings(max_examples=rounds(40, 100), deadline=None)
@given(cells=st.lists(st.integers(-20, 40), min_size=1, max_size=6).filter(lambda v: sum(v) >= 0))
def test_the_projection_is_the_nearest(cells: list[int]) -> None:
    """Against all supports, in fractions: x − t on the support, 0 elsewhere."""
    nearest = min(
        candidates(cells), key=lambda z: sum((a - b) ** 2 for a, b in zip(z, cells, strict=True))
    )
    np.testing.assert_allclose(project(cells), np.array(nearest, dtype=float), atol=1e-12)


def candidates(cells: list[int]) -> list[list[Fraction]]:
    """For each support, the nearest point of the same total, if it is not negative."""
    points = []
    for support in itertools.product([False, True], repeat=len(cells)):
        if not any(support):
            continue
        kept = sum(v for v, s in zip(cells, support, strict=True) if s)
        shift = Fraction(kept - sum(cells), sum(support))
        point = [v - shift if s else Fraction(0) for v, s in zip(cells, support, strict=True)]
        if min(point) >= 0:
            points.append(point)
    return points


def test_a_projection_keeps_the_shape_and_what_is_already_there() -> None:
    x = np.array([[3.0, -1.0], [0.0, 6.0]])
    assert project(x).shape == (2, 2)
    np.testing.assert_allclose(project(x), [[2.5, 0], [0, 5.5]])
    np.testing.assert_array_equal(project(np.abs(x)), np.abs(x))
    np.testing.assert_array_equal(project([2.0, -2.0]), [0.0, 0.0])
