"""Thinning, and the law of a model's error: by simulation with power, and by brute force."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tests.kinds.marginals.noisy_tables import (
    marginal,
    measured,
    planned,
    related_columns,
    tables_up_to,
)
from tests.support.soak import rounds
from voile.answering.count_law import whole_interval
from voile.arrays import Floats
from voile.kinds.marginals.errors import (
    CAUTION,
    FAR,
    NUMBER,
    TURNS,
    ErrorLaw,
    Examined,
    Trial,
    ValueSelections,
    drawn_selections,
    examined,
    learnt,
    nonnegative,
    thinned,
)
from voile.kinds.marginals.mixture import fit
from voile.kinds.marginals.residuals import NoisyMarginals, ResidualPlan, centred

SIZES = (6, 4, 3, 5)


def some_law(**given: float) -> ErrorLaw:
    """e = 2·unit·x for small x, c a fifth of the variance for large x."""
    error = [0.0] * NUMBER
    error[len(TURNS)] = 2.0
    shared = [0.0] * (2 * len(TURNS))
    shared[len(TURNS) + 1] = 0.2
    fields = {"rows": 1e6, "rows_variance": 0.0, "unit": 5.0, "scale": 20.0, "caution": CAUTION}
    return ErrorLaw(
        **{**fields, **given},
        error=tuple(error),
        shared=tuple(shared),
        unmeasured=tuple(4 * e for e in error),
        order=3,
    )


def standardized_product(halves_of: float, seed: int, tilt: float = 0.5) -> float:
    """Σ of products of the two halves' noises, in standard deviations if they are independent.

    `halves_of` scales what is drawn to split: 1 is right.
    """
    chosen = planned(SIZES, 3, 0.5)
    codes = related_columns(500, SIZES, 1)
    noisy = measured(codes, chosen, seed)
    drawn = ResidualPlan(SIZES, {c: v * halves_of for c, v in chosen.variances.items()})
    halves = thinned(NoisyMarginals(drawn, noisy.residuals), tilt, np.random.default_rng(seed + 1))
    total = freedom = 0.0
    for c in chosen.components:
        true = centred(marginal(codes, SIZES, c))
        one, other = (h.residuals[c] - true for h in (halves.first, halves.second))
        spread = chosen.variances[c] * math.sqrt((1 + tilt**2) * (1 + tilt**-2))
        total += float((one * other).sum()) / spread
        freedom += chosen.cells(c) * chosen.weight(c)
    return total / math.sqrt(freedom)


def test_halves_are_uncorrelated_and_too_little_or_too_much_is_seen() -> None:
    # Gaussian and uncorrelated is independent. False alarm: 3e-6 for ± 4.5 · √30.
    many = range(1, 1 + rounds(30, 300))
    limit = 4.5 * math.sqrt(len(many))
    assert abs(sum(standardized_product(1.0, 10 * s) for s in many)) < limit
    assert sum(standardized_product(0.7, 10 * s) for s in many) > limit
    assert sum(standardized_product(1.3, 10 * s) for s in many) < -limit


def test_halves_are_unbiased_and_rebuild_the_whole() -> None:
    noisy = measured(related_columns(500, SIZES, 1), planned(SIZES, 2, 0.5), 2)
    halves = thinned(noisy, 0.5, np.random.default_rng(3))
    for c, residual in noisy.residuals.items():
        both = halves.first.residuals[c] + 0.25 * halves.second.residuals[c]
        assert np.allclose(both / 1.25, residual)
        assert halves.first.plan.variances[c] == pytest.approx(1.25 * noisy.plan.variances[c])
        assert halves.second.plan.variances[c] == pytest.approx(5 * noisy.plan.variances[c])


def variance_by_brute_force(chosen: ResidualPlan, columns: tuple[int, ...], f: Floats) -> float:
    """Σ_c σ_c²·‖C_c f‖², each C_c f as a whole table."""
    total = 0.0
    for number in range(len(columns) + 1):
        for places in combinations(range(len(columns)), number):
            variance = chosen.variances.get(tuple(columns[j] for j in places), 0.0)
            rest = tuple(j for j in range(len(columns)) if j not in places)
            total += variance * float((centred(f.mean(axis=rest)) ** 2).sum())
    return total


@pytest.mark.parametrize("columns", [(1,), (0, 2), (0, 1, 3)])
def test_selections_by_brute_force(columns: tuple[int, ...]) -> None:
    chosen = planned(SIZES, 3, 0.5)
    some = drawn_selections(SIZES, columns, 7, np.random.default_rng(1))
    table = np.random.default_rng(2).random([SIZES[i] for i in columns])
    sums, variances = some.of(table), some.variances(chosen)
    for r in range(7):
        f = np.array(1.0)
        for chosen_values in some.chosen:
            f = np.multiply.outer(f, chosen_values[r])
        assert sums[r] == pytest.approx(float((f * table).sum()))
        assert variances[r] == pytest.approx(variance_by_brute_force(chosen, columns, f))
    single = ValueSelections(columns, tuple(np.eye(SIZES[i])[:1] for i in columns))
    noisy = NoisyMarginals(chosen, {})
    assert single.variances(chosen)[0] == pytest.approx(noisy.cell_variance(columns))


def test_the_law_is_unbiased_and_a_law_from_the_fit_alone_is_not() -> None:
    # Sums over cells of e and c against the truth, release by release. The limit is 4.5 standard
    # errors of the mean over releases, as they scatter: false alarm about 1e-3 for 12, fixed seeds.
    tables = tables_up_to(4, 3)
    off_error, off_shared, off_naive = [], [], []
    for seed in range(rounds(12, 60)):
        codes = related_columns(3000, SIZES, 1)
        noisy = measured(codes, planned(SIZES, 3, 0.05), 100 + seed)
        rng = np.random.default_rng(seed)
        half = thinned(noisy, 0.5, rng).first
        one, other = (fit(n, products=10, steps=150, seed=seed) for n in (noisy, half))
        seen = examined(noisy, one, [Trial(one, half, 0.5, other)], tables, 1, rng)
        places = np.cumsum([0, *(marginal(codes, SIZES, s).size + 1 for s in tables)])[:-1]
        error = shared = naive = true_error = true_shared = 0.0
        for start, s in zip(places, tables, strict=True):
            x, m, y = marginal(codes, SIZES, s), one.table(s), noisy.table(s)
            cells = slice(start, start + x.size)
            total = noisy.plan.variances[()] * (m / one.rows) ** 2
            error += float(seen.error[cells].sum() + total.sum())
            shared += float(seen.shared[cells].sum() + total.sum())
            naive += float(((y - m) ** 2).sum() - x.size * noisy.cell_variance(s))
            true_error += float(((m - x) ** 2).sum())
            true_shared += float(((m - x) * (y - x)).sum())
        off_error.append((error - true_error) / true_error)
        off_shared.append((shared - true_shared) / true_error)
        off_naive.append((naive - true_error) / true_error)
    for off, fair in ((off_error, True), (off_shared, True), (off_naive, False)):
        limit = 4.5 * np.std(off, ddof=1) / math.sqrt(len(off))
        assert bool(abs(np.mean(off)) < limit) is fair
    assert np.std(off_error) < 0.5  # the test above has something to say


def test_the_weights_are_the_best_and_the_error_is_theirs() -> None:
    rng = np.random.default_rng(1)
    law = some_law()
    m, v = np.full(400_000, 4.0), np.full(400_000, 30.0)
    e, c = (float(z[0]) for z in law.model(m[:1], v[:1]))
    assert 0 < c < min(e, 30.0)
    errors = rng.multivariate_normal([0, 0], [[e, c], [c, 30.0]], 400_000)
    truth = m - errors[:, 0]
    estimate, error = law.weighed(truth + errors[:, 1], m, v)
    found = float(((estimate - truth) ** 2).mean())
    # Five standard errors of a mean square of 400,000 normals.
    assert found == pytest.approx(float(error[0]) / CAUTION, rel=5 * math.sqrt(2 / 400_000))
    for w in (0.0, 0.2, 0.9, 1.0):
        other = m + w * (truth + errors[:, 1] - m)
        assert ((other - truth) ** 2).mean() > found


def test_a_model_that_is_far_off_is_not_believed() -> None:
    law = some_law()
    estimate, error = law.weighed(np.array([300.0]), np.array([0.5]), np.array([25.0]))
    assert estimate[0] > 280
    assert error[0] > 20
    near, _ = law.weighed(np.array([0.5 + FAR]), np.array([0.5]), np.array([25.0]))
    assert near[0] < 3


def test_all_rows_are_as_uncertain_as_their_number() -> None:
    law = some_law(rows=1000.0, rows_variance=49.0)
    e, c = law.model(np.array([1000.0]), np.array([49.0]))
    assert e[0] == pytest.approx(49.0, rel=1e-3)
    assert c[0] == pytest.approx(49.0, rel=1e-3)
    assert law.beyond(np.array([1000.0]), 4)[0] == pytest.approx(49.0, rel=1e-3)


def test_more_columns_beyond_the_measured_are_less_certain() -> None:
    law = some_law()
    four, five = (law.beyond(np.array([100.0]), k)[0] for k in (4, 5))
    assert five == pytest.approx(2 * four)


def test_a_known_law_is_learnt() -> None:
    rng = np.random.default_rng(5)
    law = some_law(rows=1e9)
    x, v = np.exp(rng.uniform(0, 7, 60_000)), np.full(60_000, 25.0)
    e, c = law.model(x, v)
    seen = Examined(x, v, v, e + rng.normal(0, 25 + e), c + rng.normal(0, 10, len(x)))
    error, shared = learnt(seen, 1e9, 5.0)
    again = replace(law, error=error, shared=shared)
    at = np.array([5.0, 50.0, 500.0])
    for one, other in zip(again.model(at, v[:3]), law.model(at, v[:3]), strict=True):
        assert np.allclose(one, other, rtol=0.15)


@pytest.mark.parametrize(("estimate", "error"), [(0.0, 0.0), (0.02, 0.02), (3.0, 4.0), (1e6, 9.0)])
def test_intervals_are_whole_and_hold_the_estimate(estimate: float, error: float) -> None:
    low, high = whole_interval(np.array([estimate]), np.array([error]))
    assert 0 <= low[0] <= estimate <= high[0]
    assert low[0] == round(low[0])
    assert high[0] == round(high[0])
    assert high[0] - low[0] >= 2 * 1.95 * math.sqrt(error) - min(estimate, 2) - 1e-6 or low[0] == 0


@pytest.mark.parametrize("mean", [0.1, 0.5, 2.0, 10.0, 200.0])
def test_intervals_cover_counts_that_scatter_more_than_poisson(mean: float) -> None:
    rng = np.random.default_rng(3)
    counts = rng.poisson(rng.gamma(2 * mean, 0.5, 50_000))
    low, high = whole_interval(np.array([mean]), np.array([counts.var()]))
    covered = ((counts >= low[0]) & (counts <= high[0])).mean()
    assert covered > 0.945


def test_an_unlucky_draw_does_not_make_a_model_certain() -> None:
    """E (y − m)² = 0.7·v says that e is 0.3·v or more, though c is estimated at only 0.1·v."""
    counts, variances = np.geomspace(5, 500, 400), np.full(400, 100.0)
    shared = 0.1 * variances
    seen = Examined(counts, variances, variances, (0.7 - 1) * variances + 2 * shared, shared)
    error, _ = learnt(seen, 1e6, 10.0)
    law = replace(some_law(unit=10.0), error=error)
    found, _ = law.model(counts[200:], variances[200:])
    assert (found >= 0.2 * variances[200:]).all()
    assert (found <= 0.45 * variances[200:]).all()


def test_coefficients_are_found_where_the_usual_way_goes_in_circles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No release fails for it."""

    def circling(*_: object) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("scipy.optimize.nnls", circling)
    basis = np.random.default_rng(1).random((30, 3))
    found = nonnegative(basis, basis @ np.array([1.0, 0.0, 2.0]), np.ones(30))
    assert found == pytest.approx([1.0, 0.0, 2.0], abs=1e-3)
