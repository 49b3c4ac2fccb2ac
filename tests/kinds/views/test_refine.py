"""Refinement: EM against brute force, the choice of the model, its error, its file."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from voile.arrays import Floats
from voile.errors import ReleaseError, UsageError
from voile.evaluate.workload import Selections, selection_counts
from voile.kinds.views.refinement import em, fit
from voile.kinds.views.refinement.em import (
    LARGEST,
    PSEUDO,
    Fitter,
    KnownNoise,
    PackedLayout,
    PackedRows,
    shares,
)
from voile.kinds.views.refinement.examine import ProbeNoise, batches, non_negative
from voile.kinds.views.refinement.fit import Refinement, refine
from voile.kinds.views.refinement.mixture import ErrorModel, Mixture, average
from voile.kinds.views.refinement.storage import load, save

Codes = list[npt.NDArray[np.int64]]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


def random_codes(rng: np.random.Generator, sizes: tuple[int, ...], count: int) -> Codes:
    return [rng.integers(0, size, count) for size in sizes]


def random_mixture(
    rng: np.random.Generator, sizes: tuple[int, ...], components: int, rows: float
) -> Mixture:
    mix = rng.dirichlet(np.ones(components))
    tables = tuple(rng.dirichlet(np.ones(size), components) for size in sizes)
    return Mixture(rows, mix, tables)


def rows_of(codes: Codes, sizes: tuple[int, ...], share: float = 1.0) -> PackedRows:
    layout = PackedLayout(sizes)
    return PackedRows(layout, layout.pack(codes), share)


# ---------------------------------------------------------------------- EM


def step_by_hand(
    codes: Codes, fit: Mixture, mass: float, noise: float, base: list[Floats]
) -> tuple[Mixture, float]:
    """EM as the textbook has it: row by row, component by component."""
    sums = [np.zeros_like(table) for table in fit.tables]
    mix, likelihood = np.zeros(fit.components), 0.0
    for row in zip(*codes, strict=True):
        part = np.array(
            [
                mass * fit.mix[k] * math.prod(t[k, v] for t, v in zip(fit.tables, row, strict=True))
                for k in range(fit.components)
            ]
        )
        total = part.sum() + noise
        likelihood += math.log(total)
        mix += part / total
        for table, value in zip(sums, row, strict=True):
            table[:, value] += part / total
    tables = [shares(table + PSEUDO * share) for table, share in zip(sums, base, strict=True)]
    return Mixture(fit.rows, mix / mix.sum(), tuple(tables)), likelihood


@pytest.mark.parametrize("noise", [0.0, 0.01, 3.0])
@pytest.mark.parametrize("sizes", [(3,), (2, 3, 2), (60, 50, 2, 1, 4)])
def test_a_step_is_the_textbooks(
    sizes: tuple[int, ...], noise: float, pool: ThreadPoolExecutor
) -> None:
    rng = np.random.default_rng(7)
    codes = random_codes(rng, sizes, 150)
    start = random_mixture(rng, sizes, 3, 90.0)
    base = [table[0] for table in random_mixture(rng, sizes, 1, 1.0).tables]
    fitter = Fitter(PackedLayout(sizes), KnownNoise(90.0, 0.5, noise), pool)
    found, likelihood = fitter.step(rows_of(codes, sizes, 0.8), start, base)
    expected, by_hand = step_by_hand(codes, start, 0.8 * 0.5 * 90, 0.8 * noise, base)
    assert likelihood == pytest.approx(by_hand)
    assert fitter.log_densities(rows_of(codes, sizes, 0.8), start).sum() == pytest.approx(by_hand)
    np.testing.assert_allclose(found.mix, expected.mix, atol=1e-6)
    for ours, theirs in zip(found.tables, expected.tables, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_no_step_lowers_the_likelihood(pool: ThreadPoolExecutor) -> None:
    sizes = (4, 3, 5)
    rng = np.random.default_rng(3)
    rows = rows_of(random_codes(rng, sizes, 400), sizes)
    fit = random_mixture(rng, sizes, 4, 300.0)
    base = [np.full(size, 1 / size) for size in sizes]
    fitter = Fitter(PackedLayout(sizes), KnownNoise(300.0, 0.7, 2.0), pool)
    objective = []
    for _ in range(60):
        prior = sum(
            float((share * np.log(table)).sum())
            for share, table in zip(base, fit.tables, strict=True)
        )
        fit, likelihood = fitter.step(rows, fit, base)
        objective.append(likelihood + PSEUDO * prior)
    assert (np.diff(objective) > -1e-4).all()
    assert objective[-1] > objective[0] + 1


def test_densities_survive_very_large_domains(pool: ThreadPoolExecutor) -> None:
    """λ of 10⁻⁹⁰⁰ and less, beside the logarithms of the chances summed by hand."""
    sizes = (2000,) * 300
    rng = np.random.default_rng(1)
    codes = random_codes(rng, sizes, 20)
    fit = random_mixture(rng, sizes, 2, 10.0)
    for noise in (0.0, 1e-307):
        fitter = Fitter(PackedLayout(sizes), KnownNoise(10.0, 1.0, noise), pool)
        found = fitter.log_densities(rows_of(codes, sizes), fit)
        logs = sum(
            np.log(table[:, column]) for table, column in zip(fit.tables, codes, strict=True)
        )
        logs += np.log(10 * fit.mix)[:, None]
        expected = np.logaddexp.reduce(logs, axis=0)
        if noise:
            expected = np.logaddexp(expected, math.log(noise))
        np.testing.assert_allclose(found, expected)
        after, _ = fitter.step(rows_of(codes, sizes), fit, [table[0] for table in fit.tables])
        assert all(np.isfinite(table).all() for table in after.tables)


def test_rows_that_are_noise_as_good_as_surely_change_no_step(pool: ThreadPoolExecutor) -> None:
    """What is left out is few records of all, by the fit's own chances, and steps stay the same."""
    sizes, rows = (30, 20, 10), 2000.0
    rng = np.random.default_rng(11)
    peaked = tuple(np.sort(rng.dirichlet(np.full(size, 0.2), 2), axis=1) for size in sizes)
    fit = Mixture(rows, np.array([0.4, 0.6]), peaked)
    which = rng.choice(2, 1600, p=fit.mix)
    records = [np.array([rng.choice(t.shape[1], p=t[k]) for k in which]) for t in peaked]
    noise = random_codes(rng, sizes, 60_000)
    codes = [np.concatenate(pair) for pair in zip(records, noise, strict=True)]
    fitter = Fitter(PackedLayout(sizes), KnownNoise(rows, 0.8, 10.0), pool)
    view = rows_of(codes, sizes)
    near, densities = fitter.likely(view, fit)
    assert len(near) < len(view) / 2
    np.testing.assert_array_equal(densities, fitter.log_densities(near, fit))
    chances = 1 - 10.0 / np.exp(fitter.log_densities(view, fit))
    left_out = chances.sum() - (1 - 10.0 / np.exp(densities)).sum()
    assert left_out <= em.SPARE * chances.sum() * (1 + 1e-9)
    base = [table.mean(axis=0) for table in peaked]
    whole, part = (fitter.step(some, fit, base)[0] for some in (view, near))
    for ours, theirs in zip(part.tables, whole.tables, strict=True):
        assert np.abs(ours - theirs).sum(axis=1).max() < 4 * em.SPARE
    silent = Fitter(PackedLayout(sizes), KnownNoise(rows, 0.8, 0.0), pool)
    assert silent.likely(view, fit)[0] is view  # without noise all rows are records


def test_a_view_that_comes_in_batches_is_the_same_view(people: Simulated) -> None:
    count = len(people.codes[0])
    halves = [[column[part] for column in people.codes] for part in (slice(999), slice(999, count))]
    found = refine(halves, people.sizes, seen=count, **people.known)
    assert same(found, people.refine())


def test_packing_keeps_every_attribute() -> None:
    sizes = (7, 400, 3, 2500, 1, 2, 2)
    rng = np.random.default_rng(5)
    layout = PackedLayout(sizes)
    assert [j for group in layout.groups for j in group] == list(range(len(sizes)))
    codes = random_codes(rng, sizes, 1000)
    counts = np.zeros((layout.cells, 1))
    for cells in layout.pack(codes):
        np.add.at(counts[:, 0], cells, 1)
    for table, column, size in zip(layout.unstack(counts), codes, sizes, strict=True):
        assert table[0].tolist() == np.bincount(column, minlength=size).tolist()


# ---------------------------------------------------------------------- simulated views


@dataclass(frozen=True)
class Simulated:
    """A table and a view of it, as the multiset form publishes."""

    truth: Codes
    codes: Codes
    sizes: tuple[int, ...]
    known: dict[str, Any]

    def refine(self, **more: Any) -> Refinement:
        return refine([self.codes], self.sizes, seen=len(self.codes[0]), **{**self.known, **more})

    def counts(self) -> tuple[Selections, Floats, Floats]:
        """Every selection's true count, its plain estimate and the variance of that."""
        true = selection_counts(self.truth, self.sizes)
        seen = selection_counts(self.codes, self.sizes).counts
        k, a = self.known, self.known["retention"]
        plain = (seen - k["noise_mean"] * true.domain) / k["excess"]
        kept = np.maximum(plain, 0) * a * (1 - a)
        return true, plain, (kept + true.domain * k["noise_variance"]) / k["excess"] ** 2


def simulated(truth: Codes, sizes: tuple[int, ...], *, a: float, copies: float) -> Simulated:
    """Each row kept with chance a, and `copies` rows of noise for each row of the table."""
    rng = np.random.default_rng(11)
    rows, domain = len(truth[0]), math.prod(sizes)
    mean = copies * rows / domain
    kept = rng.random(rows) < a
    noise = rng.poisson(copies * rows)
    codes = [
        np.concatenate([column[kept], rng.integers(0, size, noise)])
        for column, size in zip(truth, sizes, strict=True)
    ]
    known = {
        "noise_mean": mean,
        "excess": a,
        "retention": a,
        "noise_variance": mean,
        "rows": rows,
        "domain": domain,
    }
    return Simulated(truth, codes, sizes, known)


def correlated(rows: int, sizes: tuple[int, ...]) -> Codes:
    """A table that is no mixture of few products: cuts of correlated normal numbers."""
    rng = np.random.default_rng(2)
    loads = rng.normal(0, 1, (2, len(sizes)))
    values = rng.normal(0, 1, (rows, 2)) @ loads + rng.normal(0, 0.6, (rows, len(sizes)))
    cuts = [np.cumsum(rng.dirichlet(np.ones(size)))[:-1] for size in sizes]
    return [
        np.searchsorted(np.quantile(values[:, j], cut), values[:, j]) for j, cut in enumerate(cuts)
    ]


@pytest.fixture(scope="module")
def people() -> Simulated:
    sizes = (20, 8, 6, 12, 3)
    return simulated(correlated(6000, sizes), sizes, a=0.5, copies=10)


@pytest.fixture(scope="module")
def refined(people: Simulated) -> Refinement:
    return people.refine()


def test_a_known_mixture_is_found() -> None:
    sizes = (8, 8, 8)
    tables = [np.vstack([np.repeat([0.24, 0.01], 4), np.repeat([0.01, 0.24], 4)])] * 3
    rng = np.random.default_rng(4)
    which = rng.random(10_000) < 0.3
    truth = [
        np.where(which, rng.choice(8, which.size, p=t[0]), rng.choice(8, which.size, p=t[1]))
        for t in tables
    ]
    found = simulated(truth, sizes, a=0.5, copies=1).refine()
    assert found.report["components"] >= 2
    real = Mixture(10_000.0, np.array([0.3, 0.7]), tuple(tables)).marginal([0, 1, 2])
    ours = found.mixture.marginal([0, 1, 2])
    assert np.abs(ours - real).sum() < 0.15 * 10_000
    assert found.mixture.mix.sum() == pytest.approx(1)


def test_refined_counts_are_better_and_their_error_is_honest(
    people: Simulated, refined: Refinement
) -> None:
    true, plain, variance = people.counts()
    model = np.concatenate([refined.mixture.marginal(s).ravel() for s in true.subsets])
    value, stated = refined.error.combine(plain, variance, model)
    wrong = np.abs(value - true.counts)
    assert wrong.mean() < 0.33 * np.abs(plain - true.counts).mean()
    large = true.counts >= 500
    assert wrong[large].mean() < np.abs(plain - true.counts)[large].mean()
    covered = wrong <= 1.96 * stated
    edges = np.array([0, 1, 3, 10, 30, 100, 300, 1000, 6001])
    strata = np.digitize(value, edges)
    by_size = np.array([covered[strata == s].mean() for s in range(1, len(edges))])
    assert by_size.mean() > 0.93
    assert (by_size > 0.85).all()
    # An error stated ten times too large would be honest, too, and useless.
    assert np.sqrt((stated**2).mean()) < 3 * np.sqrt((wrong**2).mean())


def test_without_noise_the_plain_count_stands() -> None:
    sizes = (5, 4)
    case = simulated(correlated(500, sizes), sizes, a=1.0, copies=0)
    true, plain, variance = case.counts()
    found = case.refine()
    model = np.concatenate([found.mixture.marginal(s).ravel() for s in true.subsets])
    value, stated = found.error.combine(plain, variance, model)
    assert value.tolist() == true.counts.tolist()
    assert not stated.any()


def test_the_same_seed_gives_the_same_on_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(em, "FEW", 100)
    sizes = (6, 5)
    case = simulated(correlated(400, sizes), sizes, a=0.5, copies=2)
    first, second = case.refine(threads=1), case.refine(threads=3)
    other = case.refine(seed=1)
    assert same(first, second)
    assert not same(first, other)


def same(a: Refinement, b: Refinement) -> bool:
    fits = zip((a.mixture, *a.halves), (b.mixture, *b.halves), strict=True)
    return np.array_equal(a.error.weights, b.error.weights) and all(
        np.array_equal(x.mix, y.mix) and all(map(np.array_equal, x.tables, y.tables))
        for x, y in fits
    )


def test_a_large_view_is_sampled(people: Simulated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "MOST_ROWS", 30_000)
    found = people.refine()
    assert found.report["rows"] == len(people.codes[0])
    assert found.report["fitted_rows"] == pytest.approx(30_000, rel=0.05)
    true, plain, _ = people.counts()
    model = np.concatenate([found.mixture.marginal(s).ravel() for s in true.subsets])
    assert np.abs(model - true.counts).mean() < 0.5 * np.abs(plain - true.counts).mean()


def test_every_step_is_reported_to_its_end() -> None:
    steps: list[tuple[str, int]] = []
    done: list[int] = []

    class Watching:
        def start(self, what: str, total: int) -> None:
            steps.append((what, total))
            done.append(0)

        def advance(self, count: int) -> None:
            done[-1] += count

    sizes = (3, 2)
    simulated(correlated(100, sizes), sizes, a=0.5, copies=2).refine(progress=Watching())
    assert [what for what, _ in steps] == ["choosing the model", "fitting", "examining"]
    assert [total for _, total in steps] == done


def test_the_number_of_rows_is_estimated_where_it_is_not_public() -> None:
    sizes = (6, 5, 4)
    found = simulated(correlated(2000, sizes), sizes, a=0.5, copies=5).refine(rows=None)
    spread = math.sqrt(found.error.whole)
    assert abs(found.mixture.rows - 2000) < 4 * spread
    value, stated = found.error.combine(
        np.array([found.mixture.rows]), np.array([spread**2]), np.array([found.mixture.rows])
    )
    assert abs(value[0] - 2000) < 4 * stated[0]


# ---------------------------------------------------------------------- degenerate input

PLAIN: dict[str, Any] = {"noise_mean": 0.1, "excess": 0.5, "retention": 0.5, "noise_variance": 0.11}


@pytest.mark.parametrize(
    ("codes", "sizes", "rows"),
    [
        ([[0]], [1], 1),
        ([[2]], [5], None),
        ([[]], [4], 10),
        ([[], []], [4, 2], None),
        ([[1, 1, 0], [0, 2, 1]], [2, 3], 4),
        ([[0, 1, 1, 1, 0]], [2], 9),
    ],
)
def test_tiny_views(codes: list[list[int]], sizes: list[int], rows: int | None) -> None:
    columns = [np.array(column, np.int64) for column in codes]
    found = refine(
        [columns], sizes, seen=len(columns[0]), **PLAIN, rows=rows, domain=math.prod(sizes)
    )
    assert_sound(found, sizes)


def test_a_domain_of_2_to_the_100() -> None:
    rng = np.random.default_rng(0)
    sizes = (2,) * 100
    latent = rng.random(300) < 0.5
    truth = [np.where(rng.random(300) < 0.9, latent, ~latent).astype(np.int64) for _ in sizes]
    codes = [np.concatenate([column, rng.integers(0, 2, 1500)]) for column in truth]
    known: dict[str, Any] = {"noise_mean": 1500 / 2**100, "excess": 1.0, "retention": 1.0}
    found = refine(
        [codes],
        sizes,
        seen=len(codes[0]),
        **known,
        noise_variance=1500 / 2**100,
        rows=300,
        domain=2**100,
    )
    assert_sound(found, sizes)
    both = found.mixture.marginal([3, 77])
    assert both[0, 0] + both[1, 1] == pytest.approx(300 * 0.82, rel=0.1)


def test_an_attribute_of_very_many_values_is_left_out() -> None:
    rng = np.random.default_rng(0)
    sizes = (LARGEST + 1, 3, 2**62)
    codes = [rng.integers(0, size, 300) for size in sizes]
    domain = math.prod(sizes)
    known: dict[str, Any] = {"noise_mean": 100 / domain, "excess": 1.0, "retention": 1.0}
    found = refine(
        [codes],
        sizes,
        seen=len(codes[0]),
        **known,
        noise_variance=100 / domain,
        rows=200,
        domain=domain,
    )
    assert found.mixture.left_out == (0, 2) == tuple(found.report["left_out"])
    assert found.mixture.tables[0].shape == (found.mixture.components, 0)
    assert found.mixture.marginal([1]).sum() == pytest.approx(200)
    only = refine([codes[:1]], sizes[:1], seen=len(codes[0]), **PLAIN, rows=200, domain=sizes[0])
    assert only.mixture.left_out == (0,)


def assert_sound(found: Refinement, sizes: Any) -> None:
    for mixture in (found.mixture, *found.halves):
        assert mixture.mix.sum() == pytest.approx(1)
        for table, size in zip(mixture.tables, sizes, strict=True):
            assert table.shape == (mixture.components, size)
            np.testing.assert_allclose(table.sum(axis=1), 1)
            assert (table > 0).all()
    value, stated = found.error.combine(
        np.array([-3.0, 0.0, 5.0]), np.array([0.0, 4.0, 9.0]), np.array([0.0, 0.0, 4.0])
    )
    assert np.isfinite([value, stated]).all()
    assert (value >= 0).all()
    assert (stated >= 0).all()


@pytest.mark.parametrize(
    ("codes", "sizes"),
    [([[0, 3]], [3]), ([[0, -1]], [3]), ([[0.5]], [3]), ([[0, 1], [0]], [2, 2]), ([[0]], [2, 2])],
)
def test_codes_outside_the_domain_are_refused(codes: list[Any], sizes: list[int]) -> None:
    with pytest.raises(UsageError):
        refine(
            [[np.array(c) for c in codes]],
            sizes,
            seen=2,
            **PLAIN,
            rows=2,
            domain=math.prod(sizes),
        )


# ---------------------------------------------------------------------- the error


def test_queries_are_counted_as_by_hand(pool: ThreadPoolExecutor) -> None:
    sizes = (70, 60, 3, 2)
    rng = np.random.default_rng(9)
    codes = random_codes(rng, sizes, 500)
    fitter = Fitter(PackedLayout(sizes), KnownNoise(1.0, 1.0, 0.0), pool)
    fit = random_mixture(rng, sizes, 3, 100.0)
    for batch in batches(PackedLayout(sizes), fit, 3, 0):
        selected = np.ones((64, 500), np.bool_)
        chance = np.tile(fit.mix, (64, 1))
        for j, mask in batch.masks.items():
            selected &= mask[:, codes[j]]
            chance *= np.stack([(mask * fit.tables[j][k]).sum(axis=1) for k in range(3)], axis=1)
        assert batch.count(fitter, rows_of(codes, sizes)).tolist() == selected.sum(axis=1).tolist()
        masks = {j: mask.astype(np.float64) for j, mask in batch.masks.items()}
        np.testing.assert_allclose(fit.count(masks), 100 * chance.sum(axis=1))
        assert (batch.share > 0).all()
        assert (batch.share < 1).any()


def test_variances_of_shares_of_a_view() -> None:
    """By simulation: 40,000 views of a query with 60 records and 500 tuples of the domain."""
    rng = np.random.default_rng(12)
    a, q, x, tuples, draws = 0.6, 0.3, 60, 500, 40_000
    noise = ProbeNoise(a, a, rows=tuples * q / (1 - q), dispersion=1 / (1 - q))
    kept = rng.multinomial(x, [0.4 * a, 0.4 * a, 1 - 0.8 * a], draws)
    added = rng.negative_binomial(tuples, 1 - q, draws)
    first = rng.binomial(added, 0.4)
    second = rng.binomial(added - first, 0.4 / 0.6)
    one = np.ones(1)
    p_a = noise.plain((kept[:, 0] + first).astype(float), one, 0.4)
    p_b = noise.plain((kept[:, 1] + second).astype(float), one, 0.4)
    spread = float(noise.variance(np.array(x), one, 0.4)[0])
    assert p_a.mean() == pytest.approx(x, abs=5 * math.sqrt(spread / draws))
    assert p_a.var() == pytest.approx(spread, rel=5 * math.sqrt(2 / draws))
    both = float(noise.covariance(np.array(x), one)[0])
    assert np.cov(p_a, p_b)[0, 1] == pytest.approx(both, abs=5 * spread / math.sqrt(draws))
    full = x * a * (1 - a) + tuples * q / (1 - q) ** 2
    assert float(noise.variance(np.array(x), one)[0]) == pytest.approx(full / a**2)


def test_combining() -> None:
    error = ErrorModel(np.array([1.0, 0.0, 0.0]), 0.0, rows=1000.0, whole=1e6)
    plain, variance = np.array([-50.0, 120.0, 990.0]), np.array([400.0, 100.0, 1e6])
    value, stated = error.combine(plain, variance, np.array([0.0, 100.0, 1000.0]))
    assert value[0] == 0  # never negative, however low the plain estimate
    assert value[1] == pytest.approx(110)
    assert stated[1] == pytest.approx(math.sqrt(50))
    assert value[2] == 1000  # all rows: their number is public
    assert stated[2] == 0
    follows = ErrorModel(np.array([1.0, 0.0, 0.0]), 0.4, rows=1000.0, whole=1e6)
    assert follows.combine(plain, variance, np.array([0.0, 100.0, 1000.0]))[1][1] > stated[1]
    assert (follows.combine(plain, variance, plain.clip(0))[1] <= np.sqrt(variance)).all()


def test_least_squares_without_negative_coefficients() -> None:
    rng = np.random.default_rng(6)
    parts = rng.random((3, 200))
    weights, _ = non_negative(parts, np.array([2.0, 0.0, 0.5]) @ parts)
    np.testing.assert_allclose(weights, [2.0, 0.0, 0.5], atol=1e-9)
    weights, _ = non_negative(parts, -parts[0])
    assert weights.tolist() == [0, 0, 0]


def test_an_average_is_the_average() -> None:
    rng = np.random.default_rng(8)
    fits = [random_mixture(rng, (3, 4), k, 50.0) for k in (2, 3)]
    mean = (fits[0].marginal([0, 1]) + fits[1].marginal([0, 1])) / 2
    np.testing.assert_allclose(average(fits).marginal([0, 1]), mean)


# ---------------------------------------------------------------------- its file


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Refinement, Path]:
    sizes = (3, 2, 2)
    found = simulated(correlated(300, sizes), sizes, a=0.5, copies=2).refine()
    path = tmp_path_factory.mktemp("refined") / "refined.npz"
    save(found, path, of="abc")
    return found, path


def test_what_was_saved_is_loaded(stored: tuple[Refinement, Path]) -> None:
    found, path = stored
    again = load(path, of="abc")
    assert again is not None
    assert same(found, again)
    assert again.report == json.loads(json.dumps(found.report))
    assert again.error.combine(np.ones(2), np.ones(2), np.ones(2))[0].tolist() == [1, 1]
    assert vars(again.error).keys() == vars(found.error).keys()
    assert (again.error.follows, again.error.rows) == (found.error.follows, found.error.rows)
    assert load(path, of="abc", sizes=(3, 2, 2)) is not None
    with pytest.raises(ReleaseError, match="another domain"):
        load(path, of="abc", sizes=(3, 2, 3))
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert load(path.with_name("other.npz"), of="abc") is None


def test_a_file_of_another_release_or_of_an_earlier_format_is_not_used(
    stored: tuple[Refinement, Path], tmp_path: Path
) -> None:
    assert load(stored[1], of="abd") is None
    with np.load(stored[1]) as arrays:
        content = dict(arrays)
    about = json.loads(str(content["about"]))
    del about["sha256"]
    earlier = tmp_path / "earlier.npz"
    np.savez(earlier, **{**content, "about": np.array(json.dumps(about | {"format": 1}))})
    assert load(earlier, of="abc") is None


def test_a_file_with_other_numbers_is_refused(
    stored: tuple[Refinement, Path], tmp_path: Path
) -> None:
    """Each of them a refinement that could be read: only the digest tells."""
    with np.load(stored[1]) as arrays:
        content = dict(arrays)
    about = json.loads(str(content["about"]))
    changes = [
        {"full_rows": content["full_rows"] + 1},
        {"weights": content["weights"][::-1]},
        {"full_0": content["half_a_0"], "half_a_0": content["full_0"]},
        {"about": np.array(json.dumps(about | {"report": {}}))},
    ]
    path = tmp_path / "changed.npz"
    for change in changes:
        np.savez(path, **{**content, **change})
        with pytest.raises(ReleaseError, match="was changed"):
            load(path, of="abc")
    np.savez(path, **content)
    assert load(path, of="abc") is not None


@pytest.mark.parametrize("cut", [0, 10, 500])
def test_a_broken_file_is_refused(
    stored: tuple[Refinement, Path], tmp_path: Path, cut: int
) -> None:
    path = tmp_path / "cut.npz"
    path.write_bytes(stored[1].read_bytes()[:cut])
    with pytest.raises(ReleaseError):
        load(path, of="abc")


def test_a_flipped_bit_is_refused_or_harmless(
    stored: tuple[Refinement, Path], tmp_path: Path
) -> None:
    whole, path = stored[1].read_bytes(), tmp_path / "flipped.npz"
    rng = np.random.default_rng(1)
    refused = 0
    for place in rng.integers(0, len(whole), 200):
        broken = bytearray(whole)
        broken[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(broken)
        try:
            found = load(path, of="abc")
            assert found is not None
            assert same(found, stored[0])
        except ReleaseError:
            refused += 1
    assert refused > 100


class Trap:
    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle was loaded",))


def test_a_pickle_is_refused(stored: tuple[Refinement, Path], tmp_path: Path) -> None:
    path = tmp_path / "pickled.npz"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ReleaseError):
        load(path, of="abc")
    with np.load(stored[1]) as arrays:
        content = dict(arrays)
    np.savez(path, **{**content, "full_mix": np.array([Trap()], dtype=object)})
    with pytest.raises(ReleaseError):
        load(path, of="abc")


@pytest.mark.parametrize(
    "change",
    [
        {"full_mix": np.array([0.5, 0.5, 0.5])},
        {"full_1": np.ones((1, 2))},
        {"full_1": None},
        {"half_a_2": np.zeros((4, 7))},
        {"half_b_rows": np.array([1.0, 2.0])},
        {"full_rows": np.array(math.nan)},
        {"weights": np.ones(2)},
        {"weights": -np.ones(3)},
        {"about": np.array("not JSON")},
        {"about": np.array('{"format": 3, "of": "abc"}')},
        {"about": None},
    ],
)
def test_a_malformed_file_is_refused(
    stored: tuple[Refinement, Path], tmp_path: Path, change: dict[str, Any]
) -> None:
    with np.load(stored[1]) as arrays:
        content = {**arrays, **change}
    path = tmp_path / "malformed.npz"
    np.savez(path, **{name: array for name, array in content.items() if array is not None})
    with pytest.raises(ReleaseError):
        load(path, of="abc")
