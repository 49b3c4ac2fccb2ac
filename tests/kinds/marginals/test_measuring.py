"""What is measured: the account by enumeration, estimates by brute force, audits on neighbours."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy import special, stats

from tests.kinds.marginals.test_residuals import covariance_of, marginal_matrix
from tests.support.soak import rounds, some
from voile.arrays import Floats, Ints
from voile.errors import PromiseError, UsageError
from voile.kinds.marginals.measuring import (
    LARGEST_TABLE,
    MOST_ROWS,
    Measurement,
    MeasurementPlan,
    Noise,
    Unit,
    concentrated_delta,
    gaussian_plan,
    noise_for,
    noisy_rows,
    pure_plan,
    rho_for,
    whole_figures,
)
from voile.kinds.marginals.residuals import Columns, balanced, whole_centred
from voile.noise import Key
from voile.noise.geometric import geometric_variance
from voile.noise.normal import rounded_variance
from voile.privacy.composition import epsilon_of_concentrated
from voile.privacy.gaussian import delta_of

UNITS: tuple[Unit, ...] = ("add-remove", "exchange")
NOISES: tuple[Noise, ...] = ("gaussian", "geometric")
Rows = tuple[tuple[int, ...], ...]


def tables_up_to(columns: int, order: int) -> list[Columns]:
    return [s for k in range(1, order + 1) for s in combinations(range(columns), k)]


def a_plan(
    noise: Noise, unit: Unit, sizes: tuple[int, ...], budget: float, order: int = 2
) -> MeasurementPlan:
    weights = balanced(sizes, tables_up_to(len(sizes), order))
    if noise == "gaussian":
        return gaussian_plan(sizes, weights, rho=budget, unit=unit)
    return pure_plan(sizes, weights, epsilon=budget, unit=unit)


def counts(rows: Rows, sizes: tuple[int, ...], columns: Columns) -> Ints:
    found = np.zeros([sizes[i] for i in columns], dtype=np.int64)
    for row in rows:
        found[tuple(row[i] for i in columns)] += 1
    return found


def figures(plan: MeasurementPlan, rows: Rows) -> Ints:
    """All true figures, one after another."""
    parts = [whole_figures(plan, m, counts(rows, plan.sizes, m.columns)) for m in plan.measurements]
    return np.concatenate([p.ravel() for p in parts])


def scales(plan: MeasurementPlan) -> Floats:
    """The scale of each figure."""
    return np.concatenate([np.full(plan.cells(m), m.scale) for m in plan.measurements])


def neighbours(sizes: tuple[int, ...], unit: Unit) -> list[tuple[Rows, Rows]]:
    """All pairs of neighbours, but for the rows that both have: these cancel."""
    domain = list(product(*map(range, sizes)))
    if unit == "add-remove":
        return [((), (t,)) for t in domain] + [((t,), ()) for t in domain]
    return [((a,), (b,)) for a in domain for b in domain if a != b]


def masses(noise: Noise, scale: float, values: Ints) -> Floats:
    """Of the noise that is drawn."""
    if noise == "geometric":
        return np.asarray(np.exp(-np.abs(values) / scale) * math.tanh(0.5 / scale))
    k = np.abs(values)
    upper = special.ndtr(-(k - 0.5) / scale) - special.ndtr(-(k + 0.5) / scale)
    return np.asarray(upper)


def laws(plan: MeasurementPlan, one: Rows, other: Rows) -> tuple[Floats, Floats]:
    """The exact laws of all figures for two tables, outcome by outcome."""
    first, second = np.ones(1), np.ones(1)
    for a, b, scale in zip(figures(plan, one), figures(plan, other), scales(plan), strict=True):
        if scale == 0:
            assert a == b
            continue
        far = math.ceil((7 if plan.noise == "gaussian" else 18) * scale) + 2
        values = np.arange(min(a, b) - far, max(a, b) + far + 1)
        first = np.outer(first, masses(plan.noise, scale, values - a)).ravel()
        second = np.outer(second, masses(plan.noise, scale, values - b)).ravel()
    return first, second


# ---------------------------------------------------------------------- the account


@pytest.mark.parametrize(
    ("sizes", "unit", "rho"),
    [((2,), "add-remove", 0.5), ((2,), "add-remove", 8.0), ((2,), "exchange", 0.05),
     ((3,), "exchange", 0.8), ((3,), "add-remove", 2.0), ((2, 1), "exchange", 3.0)],
)  # fmt: skip
def test_delta_by_enumeration_is_within_the_account(
    sizes: tuple[int, ...], unit: Unit, rho: float
) -> None:
    """All outcomes of the rounded law: rounding only helps, and by little where noise is wide."""
    plan = a_plan("gaussian", unit, sizes, rho)
    worst = dict.fromkeys((0.0, 0.3, 1.0, 3.0), 0.0)
    for one, other in some(neighbours(sizes, unit), 2):
        first, second = laws(plan, one, other)
        assert first.sum() == pytest.approx(1, abs=1e-9)
        for epsilon in worst:
            exact = float(np.maximum(first - math.exp(epsilon) * second, 0).sum())
            worst[epsilon] = max(worst[epsilon], exact)
    for epsilon, exact in worst.items():
        assert exact <= plan.delta_at(epsilon) * (1 + 1e-6) + 1e-10
    if rho <= 0.5:
        assert worst[0.3] >= 0.8 * plan.delta_at(0.3)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sizes", [(2, 2), (2, 3, 2), (3, 1, 4)])
def test_renyi_divergence_by_enumeration_is_within_rho(sizes: tuple[int, ...], unit: Unit) -> None:
    """Figures are independent, so that their divergences add up, exactly; all neighbours."""
    plan = a_plan("gaussian", unit, sizes, 0.3)
    assert plan.rho == pytest.approx(0.3, rel=1e-9)
    assert plan.rho <= 0.3
    worst = 0.0
    for one, other in some(neighbours(sizes, unit), 12):
        for order in (1.5, 4.0):
            total = 0.0
            moved = zip(figures(plan, one), figures(plan, other), scales(plan), strict=True)
            for a, b, scale in moved:
                if a == b:
                    continue
                values = np.arange(-math.ceil(30 * scale), math.ceil(30 * scale) + 1)
                p, q = masses("gaussian", scale, values), masses("gaussian", scale, values + a - b)
                inside = (p > 1e-200) & (q > 1e-200)
                powers = order * np.log(p[inside]) + (1 - order) * np.log(q[inside])
                total += math.log(np.exp(powers).sum())
            worst = max(worst, total / (order - 1) / order)
    assert worst <= plan.rho * (1 + 1e-6)
    assert worst >= 0.9 * plan.rho or unit == "exchange"


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sizes", [(2, 2), (3, 1), (2, 2, 2)])
def test_pure_epsilon_is_exact(sizes: tuple[int, ...], unit: Unit) -> None:
    """The largest log ratio over all outcomes and neighbours is ε, no more and no less."""
    plan = a_plan("geometric", unit, sizes, 1.3)
    assert plan.pure_epsilon == pytest.approx(1.3, rel=1e-9)
    assert plan.pure_epsilon is not None and plan.pure_epsilon <= 1.3
    worst = 0.0
    for one, other in neighbours(sizes, unit):
        total = 0.0
        for a, b, scale in zip(figures(plan, one), figures(plan, other), scales(plan), strict=True):
            if a != b:
                values = np.arange(-50, 51)
                p, q = (masses("geometric", scale, values - x) for x in (a, b))
                total += float(np.abs(np.log(p / q)).max())
        worst = max(worst, total)
    assert worst == pytest.approx(plan.pure_epsilon, rel=1e-9)


@pytest.mark.parametrize("unit", UNITS)
def test_pure_delta_by_enumeration_is_within_the_account(unit: Unit) -> None:
    plan = a_plan("geometric", unit, (2,), 1.0)
    for one, other in neighbours((2,), unit):
        first, second = laws(plan, one, other)
        for epsilon in (0.0, 0.4, 1.0):
            exact = float(np.maximum(first - math.exp(epsilon) * second, 0).sum())
            assert exact <= plan.delta_at(epsilon) + 1e-8


def test_the_look_at_the_rows_is_in_the_account() -> None:
    weights = balanced((3,), [(0,)])
    plan = gaussian_plan((3,), weights, rho=0.5, unit="add-remove", rows_scale=3.0)
    without = replace(plan, rows_scale=None)
    assert plan.rho == pytest.approx(0.5)
    assert plan.rho - without.rho == pytest.approx(1 / 18)
    pure = pure_plan((3,), weights, epsilon=0.5, unit="add-remove", rows_scale=3.0)
    assert pure.pure_epsilon == pytest.approx(0.5)
    assert [m.scale for m in pure.measurements] == pytest.approx([6.0])


def test_choosing_tables_is_in_the_account() -> None:
    """With a choice, what holds is the conversion of zCDP, which needs more."""
    weights = balanced((3, 4), [(0, 1)])
    plan = gaussian_plan((3, 4), weights, rho=0.5, unit="add-remove", selection_rho=0.1)
    assert plan.rho == pytest.approx(0.5)
    assert plan.measured_rho == pytest.approx(0.4)
    assert plan.mu is None
    alone = gaussian_plan((3, 4), weights, rho=0.5, unit="add-remove")
    assert plan.epsilon_at(1e-6) > alone.epsilon_at(1e-6)
    assert plan.epsilon_at(1e-6) == pytest.approx(epsilon_of_concentrated(0.5, 1e-6), rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.2858, 50.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-3])
def test_rho_for_is_the_largest(epsilon: float, delta: float) -> None:
    for chosen in (False, True):
        rho = rho_for(epsilon, delta, chosen=chosen)

        def at(rho: float, chosen: bool = chosen) -> float:
            if chosen:
                return concentrated_delta(rho, epsilon)
            return delta_of(math.sqrt(2 * rho), epsilon)

        assert at(rho) <= delta < at(rho * 1.001)
    assert rho_for(epsilon, delta) > rho_for(epsilon, delta, chosen=True)


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 7.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 10.0])
def test_gaussian_delta_is_the_integral(mu: float, epsilon: float) -> None:
    """∫ max(0, φ(x − μ) − e^ε·φ(x)) dx, by quadrature from where it is positive."""
    start = epsilon / mu + mu / 2
    x = np.linspace(start, start + 40, 400_001)
    value = stats.norm.pdf(x - mu) - math.exp(epsilon) * stats.norm.pdf(x)
    expected = float(np.trapezoid(value, x))
    assert delta_of(mu, epsilon) == pytest.approx(expected, rel=1e-4, abs=1e-290)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
def test_what_is_planned_is_what_was_asked_for(noise: Noise, unit: Unit, epsilon: float) -> None:
    """Also at tiny and huge budgets; ε(δ) and δ(ε) are each other's inverse."""
    budget = rho_for(epsilon, 1e-9) if noise == "gaussian" else epsilon
    plan = a_plan(noise, unit, (9, 4, 1, 30, 2), budget, order=3)
    delta = 1e-9 if noise == "gaussian" else 0.0
    assert plan.delta_at(epsilon) <= delta
    assert plan.epsilon_at(delta) == pytest.approx(epsilon, rel=1e-6)
    assert plan.epsilon_at(delta) <= epsilon * (1 + 1e-12)
    smaller = plan.epsilon_at(1e-3)
    assert plan.delta_at(smaller) == pytest.approx(min(1e-3, plan.delta_at(0.0)), rel=1e-6)


# ---------------------------------------------------------------------- audit


def distinguished(plan: MeasurementPlan, drawn: MeasurementPlan, unit: Unit) -> float:
    """A lower bound on δ(1) = Pr[S] − e·Pr'[S] of what is drawn, by sampling.

    S is where the log ratio is above 1, by the stated noise or by noise that is 30 % narrower.
    """
    one, other = max(
        neighbours(plan.sizes, unit),
        key=lambda pair: float(
            (((figures(plan, pair[0]) - figures(plan, pair[1])) / _nonzero(plan)) ** 2).sum()
        ),
    )
    shift = (figures(plan, one) - figures(plan, other)) / _nonzero(plan) ** 2
    size = rounds(20_000, 400_000)
    noise = np.stack([
        _many(drawn.noise, float(s), size, k) for k, s in enumerate(scales(drawn))
    ])  # fmt: skip
    base = shift @ noise
    lift = float(shift @ (figures(plan, one) - figures(plan, other)))
    best = 0.0
    for ratio in (1.0, 0.49):
        threshold = ratio + lift / 2
        seen, other_seen = int((base + lift > threshold).sum()), int((base > threshold).sum())
        low = stats.beta.ppf(1e-6, seen, size - seen + 1) if seen else 0.0
        high = stats.beta.ppf(1 - 1e-6, other_seen + 1, size - other_seen)
        best = max(best, float(low - math.e * high))
    return best


def _nonzero(plan: MeasurementPlan) -> Floats:
    """Scales; where nothing moves, any."""
    found = scales(plan)
    return np.where(found == 0, 1.0, found)


def _many(noise: Noise, scale: float, size: int, index: int) -> Ints:
    if scale == 0:
        return np.zeros(size, dtype=np.int64)
    one = MeasurementPlan((size,), noise, "add-remove", (Measurement((0,), scale),))
    return next(noise_for(one, Key.from_seed(17).stream("audit", index)))


@pytest.mark.parametrize("unit", UNITS)
def test_an_audit_passes_what_is_drawn_and_catches_30_percent_too_little(unit: Unit) -> None:
    """Bounds of 1e-6 each: a sound plan fails with 4e-6; 30 % too little is caught, surely so.

    At δ(1) = 0.02 the narrower noise has δ(1) of about 0.09, twenty deviations of what is sampled.
    """
    plan = a_plan("gaussian", unit, (2, 2), rho_for(1.0, 0.02))
    narrow = replace(
        plan, measurements=tuple(replace(m, scale=0.7 * m.scale) for m in plan.measurements)
    )
    stated = plan.delta_at(1.0)
    assert stated == pytest.approx(0.02, rel=1e-6)
    assert distinguished(plan, plan, unit) <= stated
    assert distinguished(plan, narrow, unit) > stated
    assert narrow.delta_at(1.0) > 2 * stated  # and the account of the narrower scales says so


# ---------------------------------------------------------------------- estimates


def linear_map(plan: MeasurementPlan, columns: Columns) -> Floats:
    """From all figures to the cells of a rebuilt table, by units."""
    lengths = [plan.cells(m) for m in plan.measurements]
    ends = np.cumsum(lengths)[:-1]
    found = []
    for unit in np.eye(sum(lengths), dtype=np.int64):
        noisy = plan.estimated(np.split(unit, ends))
        found.append(noisy.table(columns).ravel())
    return np.array(found).T


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sizes", [(2, 3, 4), (3, 1, 2)])
def test_estimates_are_unbiased_and_have_the_stated_covariances(
    noise: Noise, unit: Unit, sizes: tuple[int, ...]
) -> None:
    plan = a_plan(noise, unit, sizes, 2.0)
    rng = np.random.default_rng(3)
    rows = tuple(tuple(int(rng.integers(n)) for n in sizes) for _ in range(40))
    data = counts(rows, sizes, tuple(range(len(sizes)))).ravel()
    variance = rounded_variance if noise == "gaussian" else geometric_variance
    each = np.array([variance(s) if s else 0.0 for s in scales(plan)])
    for s in [(), *tables_up_to(len(sizes), 2)]:
        onto = linear_map(plan, s)
        assert np.allclose(onto @ figures(plan, rows), marginal_matrix(sizes, s) @ data)
        stated = covariance_of(plan.residual_plan(), s)
        assert np.allclose((onto * each) @ onto.T, stated, rtol=1e-9, atol=1e-12)
        assert np.allclose(np.diag(stated), plan.residual_plan().cell_variance(s))


def test_several_measurements_of_the_same_are_combined_by_their_variances() -> None:
    plan = pure_plan((4,), {(0,): 1.0}, epsilon=1.0, unit="add-remove", rows_scale=2.0)
    variance = plan.residual_plan().variances[()]
    b = plan.measurements[0].scale
    parts = geometric_variance(2.0), 4 * geometric_variance(b)
    assert variance == pytest.approx(1 / (1 / parts[0] + 1 / parts[1]))
    found = plan.estimated([np.array([10, 0, 0, 0])], 20)
    expected = (20 / parts[0] + 10 / parts[1]) * variance
    assert float(found.residuals[()]) == pytest.approx(expected)


@pytest.mark.parametrize("noise", NOISES)
def test_drawn_figures_spread_as_stated(noise: Noise) -> None:
    """The sum of squared errors over variances lies within quantiles of 1e-6 on either side."""
    plan = a_plan(noise, "add-remove", (6, 5, 4), 3.0)
    names = [(0, 1), (2,), ()]
    squares: dict[Columns, list[float]] = {s: [] for s in names}
    truth = figures(plan, ())
    ends = np.cumsum([plan.cells(m) for m in plan.measurements])[:-1]
    for seed in range(rounds(150, 3000)):
        drawn = list(noise_for(plan, Key.from_seed(seed).stream("m")))
        parts = np.split(truth, ends)
        noisy = plan.estimated([p + z.ravel() for p, z in zip(parts, drawn, strict=True)])
        for s in names:
            squares[s].append(float((noisy.table(s) ** 2).mean()) / noisy.cell_variance(s))
    for s in names:
        error = np.std(squares[s]) / math.sqrt(len(squares[s]))
        assert abs(np.mean(squares[s]) - 1) < 5 * error


def test_noise_repeats_from_a_key() -> None:
    plan = a_plan("gaussian", "add-remove", (3, 2), 1.0)
    one, two = (list(noise_for(plan, Key.from_seed(2).stream("m"))) for _ in "ab")
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    looks = {noisy_rows(50, n, 9.0, Key.from_seed(2).stream("r")) for n in NOISES for _ in "ab"}
    assert len(looks) == 2


# ---------------------------------------------------------------------- edges


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sizes", [(), (1,), (1, 1), (5,), (1, 2)])
def test_small_domains(noise: Noise, unit: Unit, sizes: tuple[int, ...]) -> None:
    plan = a_plan(noise, unit, sizes, 0.5)
    rows: Rows = (tuple(0 for _ in sizes),) * 7
    ends = np.cumsum([plan.cells(m) for m in plan.measurements])[:-1]
    noisy = plan.estimated(np.split(figures(plan, rows), ends))
    assert float(noisy.table(())) == pytest.approx(7)
    every = tuple(range(len(sizes)))
    assert np.allclose(noisy.table(every), counts(rows, sizes, every))
    if unit == "exchange":
        assert noisy.cell_variance(()) == 0
        assert (plan.rho == 0) == all(n == 1 for n in sizes)


def test_what_cannot_be_measured_is_refused_with_its_name() -> None:
    with pytest.raises(UsageError, match=r"5000 × 5000"):
        a_plan("gaussian", "add-remove", (5000, 5000), 1.0)
    with pytest.raises(PromiseError, match=r"noise of scale .* cannot be drawn"):
        a_plan("gaussian", "add-remove", (3000, 3000), 1e-15)
    with pytest.raises(PromiseError, match="leaves nothing"):
        gaussian_plan((3,), {(0,): 1.0}, rho=0.1, unit="add-remove", selection_rho=0.1)
    with pytest.raises(PromiseError, match="leaves nothing"):
        pure_plan((3,), {(0,): 1.0}, epsilon=0.5, unit="add-remove", rows_scale=2.0)
    with pytest.raises(PromiseError, match=r"no \(1, 0\)-differential privacy"):
        rho_for(1.0, 0.0)
    with pytest.raises(ValueError, match="column 1 has 0 values"):
        gaussian_plan((3, 0), {(0, 1): 1.0}, rho=1.0, unit="add-remove")
    with pytest.raises(ValueError, match="without noise"):
        MeasurementPlan((3,), "gaussian", "add-remove", (Measurement((), 0.0),))
    with pytest.raises(ValueError, match="ascending"):
        MeasurementPlan((3, 3), "gaussian", "exchange", (Measurement((1, 0), 1.0),))
    plan = a_plan("gaussian", "add-remove", (2,), 1.0)
    with pytest.raises(UsageError, match="rows cannot be measured"):
        whole_figures(plan, plan.measurements[1], np.array([2**40, 0]))
    with pytest.raises(ValueError, match="tables of figures"):
        plan.estimated([])


def test_the_largest_figures_fit_into_64_bits() -> None:
    """N_c times the rows is at most 2⁶⁰: here few cells and many rows, against long numbers."""
    shape, rows = (2, 2, 2, 2, 8), 2**60 // 128
    assert LARGEST_TABLE * MOST_ROWS <= 2**60
    rng = np.random.default_rng(2)
    corner = np.zeros(shape, dtype=np.int64)
    corner[0, 0, 0, 0, 0] = rows
    corners = corner // 2 + corner[::-1, ::-1, ::-1, ::-1, ::-1] // 2
    spread = rng.multinomial(rows, rng.dirichlet(np.ones(128))).reshape(shape)
    for counted in (corner, corners, spread):
        assert np.array_equal(whole_centred(counted), whole_centred(counted.astype(object)))
