"""Means within bins: what a row moves, what that costs, and what averages gain."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import special, stats

import voile
from tests.support.soak import rounds
from voile.answering.bin_shapes import with_open_ends
from voile.arrays import Floats, Ints
from voile.errors import ReleaseError
from voile.kinds.marginals.measuring import (
    Measurement,
    MeasurementPlan,
    Noise,
    PlaceMeasurement,
    Unit,
    place_noise,
    place_scale,
)
from voile.kinds.marginals.place_sums import STEPS, steps_by_bin
from voile.kinds.marginals.places import PAYS, SHARE, PlaceBudget
from voile.kinds.marginals.plausibility import of_places
from voile.kinds.plausibility import judge
from voile.noise import Key
from voile.privacy.gaussian import delta_of
from voile.release import verify
from voile.schema import Attribute, Bins, Range, WholeBins
from voile.schema.places import NumberPlaces, places_of

UNITS: tuple[Unit, ...] = ("add-remove", "exchange")
NOISES: tuple[Noise, ...] = ("gaussian", "geometric")
PLACES = {
    "numbers": NumberPlaces((0.0, 1.0, 4.0, 9.0), whole=False),
    "whole": NumberPlaces((0.0, 1.0, 4.0, 9.0), whole=True),
}
NUMBERS = {"numbers": np.array([-5, 0, 0.25, 0.999, 1, 2.5, 3.9999, 4, 8.75, 9, 1e12]),
           "whole": np.arange(-3.0, 14.0)}  # fmt: skip


def sums(kind: str, numbers: Floats) -> Ints:
    return steps_by_bin(numbers, PLACES[kind])


def shifts(kind: str, unit: Unit) -> list[Ints]:
    """What every neighbour moves, row by row; rows that both tables have cancel."""
    each = [sums(kind, np.array([x])) for x in NUMBERS[kind]]
    if unit == "add-remove":
        return each
    return [a - b for a, b in product(each, each)]


def plan_of(
    noise: Noise, unit: Unit, scale: float, bins: int = 3, rows: int = 1
) -> MeasurementPlan:
    """Nothing else is measured, except what no neighbour changes or what hardly costs."""
    table = Measurement((), 0.0 if unit == "exchange" else 2.0**39)
    return MeasurementPlan((bins,), noise, unit, (table,), rows_per_person=rows,
                           places=(PlaceMeasurement(0, bins, scale),))  # fmt: skip


# ---------------------------------------------------------------------- what a row moves


@pytest.mark.parametrize("kind", list(PLACES))
def test_sums_are_those_of_each_row(kind: str) -> None:
    numbers = NUMBERS[kind]
    np.testing.assert_array_equal(
        sums(kind, numbers), np.sum([sums(kind, np.array([x])) for x in numbers], axis=0)
    )
    assert not sums(kind, np.empty(0)).any()


@pytest.mark.parametrize("kind", list(PLACES))
def test_no_neighbour_moves_more_than_the_account_has(kind: str) -> None:
    """By enumeration: |shift| in both norms; with numbers some neighbour reaches the bound."""
    for unit, most in (("add-remove", STEPS / 2), ("exchange", float(STEPS))):
        moved = shifts(kind, unit)  # type: ignore[arg-type]
        lengths = [float(np.sqrt((s.astype(float) ** 2).sum())) for s in moved]
        totals = [float(np.abs(s).sum()) for s in moved]
        assert max(lengths) <= most and max(totals) <= most
        if kind == "numbers":
            assert max(lengths) == most


# ---------------------------------------------------------------------- what it costs


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("rows", [1, 3])
def test_pure_epsilon_of_means_is_exact(unit: Unit, rows: int) -> None:
    """The largest log ratio over all outcomes and neighbours of c rows: c times that of one."""
    scale = place_scale("geometric", unit, 0.7)
    plan = plan_of("geometric", unit, scale, rows=rows)
    alone = replace(plan, places=())
    cost = (plan.pure_epsilon or 0.0) - (alone.pure_epsilon or 0.0)
    assert cost == pytest.approx(0.7 * rows, rel=1e-9)
    worst = 0.0
    for shift in shifts("numbers", unit):
        # ln P(k − a)/P(k − b) = (|k − b| − |k − a|)/scale, largest beyond both
        worst = max(worst, float(np.abs(rows * shift / scale).sum()))
    assert worst == pytest.approx(cost, rel=1e-9)
    assert worst <= cost * (1 + 1e-12)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("rho", [0.02, 0.5])
def test_delta_of_means_by_enumeration_is_within_the_account(unit: Unit, rho: float) -> None:
    """All outcomes of the rounded law of the figure that moves most; the account is tight."""
    scale = place_scale("gaussian", unit, rho)
    plan = plan_of("gaussian", unit, scale)
    shift = max((s for s in shifts("numbers", unit) if (s != 0).sum() == 1),
                key=lambda s: int(np.abs(s).max()))  # fmt: skip
    moved = int(np.abs(shift).max())
    reach = math.ceil(8 * scale)
    values = np.arange(-reach, moved + reach + 1)
    first, second = (rounded_masses(values - at, scale) for at in (0, moved))
    for epsilon in (0.0, 0.3, 1.0):
        exact = float(np.maximum(first - math.exp(epsilon) * second, 0).sum())
        assert exact <= plan.delta_at(epsilon) * (1 + 1e-6) + 1e-12
        assert exact >= 0.99 * delta_of(math.sqrt(2 * rho), epsilon) - 1e-12


def rounded_masses(values: Ints, scale: float) -> Floats:
    return np.asarray(special.ndtr((values + 0.5) / scale) - special.ndtr((values - 0.5) / scale))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("unit", UNITS)
def test_means_add_to_what_tables_cost(noise: Noise, unit: Unit) -> None:
    """And a person with c rows costs c times the ε, or c² times the ρ."""
    scale = place_scale(noise, unit, 0.1)
    for rows in (1, 4):
        plan = MeasurementPlan((3,), noise, unit, (Measurement((0,), 5.0),), rows_per_person=rows,
                               places=(PlaceMeasurement(0, 3, scale),))  # fmt: skip
        alone = replace(plan, places=())
        if noise == "geometric":
            assert plan.pure_epsilon == pytest.approx((alone.pure_epsilon or 0) + 0.1 * rows)
        else:
            assert plan.rho == pytest.approx(alone.rho + 0.1 * rows**2)
            assert plan.mu == pytest.approx(math.sqrt(2 * plan.rho))


@pytest.mark.parametrize("noise", NOISES)
def test_an_audit_passes_what_is_drawn_and_catches_30_percent_too_little(noise: Noise) -> None:
    """Neighbours that differ by a row at the end of a bin, told apart by sampling.

    Bounds of 1e-6 each: sound noise fails with 2e-6. A scale of 0.7 has Pr[S] − e·Pr'[S] well
    above what is stated, ten deviations of what is sampled or more.
    """
    amount = 0.9 if noise == "geometric" else 0.5
    plan = plan_of(noise, "add-remove", place_scale(noise, "add-remove", amount), bins=1)
    stated = plan.delta_at(1.0) + (1e-9 if noise == "geometric" else 0.0)
    for times, sound in ((1.0, True), (0.7, False)):
        narrow = tuple(replace(p, scale=p.scale * times) for p in plan.places)
        size = rounds(20_000, 400_000)
        drawn = replace(plan, sizes=(size,), places=(replace(narrow[0], bins=size),))
        (noise_drawn,) = place_noise(drawn, Key.from_seed(5).stream("places"))
        scale = narrow[0].scale
        cut = STEPS / 2 if noise == "geometric" else scale**2 / (STEPS / 2) + STEPS / 4
        seen = int((noise_drawn + STEPS // 2 >= cut).sum())
        other = int((noise_drawn >= cut).sum())
        low = stats.beta.ppf(1e-6, seen, size - seen + 1)
        high = stats.beta.ppf(1 - 1e-6, other + 1, size - other)
        assert (low - math.e * high <= stated) == sound


# ---------------------------------------------------------------------- where it pays


def test_means_are_measured_where_rows_are_many() -> None:
    budget = PlaceBudget("gaussian", "add-remove", 0.0137)
    assert budget.paying((0, 20), None) == [1]
    assert budget.paying((0, 20), 100.0) == []
    assert budget.paying((0, 20), 1e6) == [1]
    assert budget.share((0, 0), 1e6) == 0.0
    assert budget.share((0, 20), 1e6) == SHARE
    least = next(n for n in range(100, 100_000, 100) if budget.paying((20,), float(n)))
    assert budget.deviation(1) * math.sqrt(20) / least == pytest.approx(PAYS, rel=0.1)
    few = budget.paying((30, 2), least * 1.2)
    assert few in ([1], [0, 1])  # the column of the most bins is given up first
    assert budget.reach(1, 1e9) > budget.reach(1, float(least))


def test_ends_that_stand_for_more_reach_further() -> None:
    bins = Attribute("x", "numeric", Bins((0.0, 1.0, 10.0, 50.0)), clamp=True)
    places = places_of(bins)
    assert places is not None
    assert places.edges[0] == 0.0 and places.edges[-1] == 90.0  # no number was below 0
    fixed = places_of(Attribute("x", "numeric", Bins((0.0, 1.0, 10.0, 50.0))))
    assert fixed is not None and fixed.edges == (0.0, 1.0, 10.0, 50.0)
    ages = places_of(Attribute("n", "integer", Range(5, 71), clamp=True))
    assert ages is not None and (ages.edges[0], ages.edges[-1]) == (0.0, 104.0)
    assert ages.widths[1:-1].max() == 1 and ages.size == 67
    assert places_of(Attribute("n", "integer", Range(5, 71))) is None
    whole = places_of(Attribute("n", "integer", WholeBins((-4.0, 0.0, 2.0, 4.0)), clamp=True))
    assert whole is not None and whole.edges[0] < -4


def test_ends_that_are_full_have_wide_intervals() -> None:
    """What is further out than places were measured is unknown where the end is full."""
    own, ends = np.full(3, 0.01), (1.0, 2.0)
    places = NumberPlaces((0.0, 1.2, 1.6, 5.0), whole=False)
    low, high = (with_open_ends(own, np.array([1.0, 0.5, q]), places, ends) for q in (0.05, 0.95))
    np.testing.assert_allclose(low, own, rtol=0.05)
    assert high[2] > 10 and high[1] == own[1]
    closed = with_open_ends(own, np.array([0.0, 0.5, 1.0]), places, (0.0, 5.0))
    np.testing.assert_array_equal(closed, own)


def test_ends_that_hold_the_listed_number_alone_are_not_open() -> None:
    """The place of 1 in a stretch of 1 and 2 is ¼: nothing lies further out."""
    own, places = np.full(2, 0.01), NumberPlaces((0.0, 1.0, 2.0), whole=True)
    found = with_open_ends(own, np.array([0.5, 0.25]), places, (0.0, 1.0))
    np.testing.assert_array_equal(found, own)
    assert with_open_ends(own, np.array([0.5, 0.7]), places, (0.0, 1.0))[1] > 1


# ---------------------------------------------------------------------- releases

ROWS = 20_000
BINS = [0.0, 5, 10, 20, 40, 80, 160, 1000]


def columns() -> dict[str, Any]:
    draw = np.random.default_rng(3)
    group = draw.integers(0, 3, ROWS)
    spent = np.minimum(draw.exponential(30 + 15 * group), 1000).round(2)
    spent[draw.random(ROWS) < 0.1] = 40.0  # heaped at a lower edge, which no neighbour predicts
    return {"grp": np.array(["a", "b", "c"])[group], "spent": spent}


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("places") / "book.yaml"
    path.write_text(
        "attributes:\n- {name: grp, kind: categorical, values: [a, b, c]}\n"
        f"- {{name: spent, kind: numeric, bins: {BINS}}}\n",
        encoding="utf-8",
    )
    return str(path)


def published(book: str, **options: Any) -> Any:
    given: dict[str, Any] = {"epsilon": 1.0, "order": 2, "simulate_seed": 4, "schema": book}
    table = pa.table(columns())
    return voile.publish(table, "marginals", name="t", register=False, **{**given, **options})


@pytest.fixture(scope="module")
def release(book: str) -> Any:
    return published(book)


def test_the_release_states_what_it_measured(release: Any, book: str) -> None:
    p = release.manifest.parameters
    assert [one.column for one in p.means] == ["spent"]
    assert (p.means[0].low, p.means[0].high) == (0.0, 1000.0)
    assert release.manifest.guarantee.epsilon <= 1.0
    assert release.manifest.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)
    assert verify(release.path)
    without = published(book, bin_means=False)
    assert not without.manifest.parameters.means
    assert "means" not in without.manifest.model_dump()["parameters"]
    assert len(release.place_sums[0]) == len(BINS) - 1


@pytest.mark.parametrize("pure", [False, True])
def test_sums_are_the_true_ones_with_their_noise(book: str, pure: bool) -> None:
    """Each of 7 figures is off by 6 deviations with 4e-9 (normal), or 4e-4 (geometric)."""
    found = published(book, pure=pure)
    plan = found.manifest.plan
    noise = math.sqrt(plan.place_variance(plan.places[0]))
    true = steps_by_bin(columns()["spent"], NumberPlaces(tuple(BINS), whole=False))
    off = (found.place_sums[0] - true) / STEPS / noise
    assert np.abs(off).max() < (6 if not pure else 10)
    assert np.abs(off).max() > 0.01


def test_averages_are_sharper_and_still_covered(release: Any, book: str) -> None:
    """At 0.999 each of 8 intervals misses by chance once in 125 runs; the seed is fixed."""
    without, data = published(book, bin_means=False), columns()
    true = {g: float(data["spent"][data["grp"] == g].mean()) for g in ("a", "b", "c")}
    ask = "select grp, avg(spent) as x from t group by grp"
    for one in (release, without):
        for row in one.query(ask, confidence=0.999).rows:
            low, high = row["x"].interval()
            assert low <= true[row["grp"]] <= high
    widths = [
        np.mean([row["x"].stderr for row in one.query(ask).rows]) for one in (release, without)
    ]
    assert widths[0] < widths[1] / 2
    whole = release.query("select avg(spent) from t").scalar
    assert whole.stderr < without.query("select avg(spent) from t").scalar.stderr / 4
    assert abs(whole.value - float(data["spent"].mean())) < 5 * whole.stderr


def test_learnt_ends_do_not_bias_averages() -> None:
    """The last bin holds what the learner cut off; its mean says how far out that is."""
    draw = np.random.default_rng(8)
    ages = np.clip(draw.normal(45, 18, 30_000), 0, 110).round().astype(int)
    long = draw.lognormal(3, 1.2, 30_000).round(1)
    table = pa.table({"age": ages, "long": long, "sex": draw.integers(0, 2, 30_000)})
    for seed in range(rounds(2, 20)):
        found = voile.publish(table, simulate_seed=seed, register=False, name="t")
        for name, values in (("age", ages), ("long", np.minimum(long, reach_of(found, "long")))):
            estimate = found.query(f"select avg({name}) from t", confidence=0.999).scalar
            low, high = estimate.interval()
            assert low <= float(values.mean()) <= high


def reach_of(release: Any, name: str) -> float:
    means = {one.column: one.high for one in release.manifest.parameters.means}
    return float(means[name])


def changed(release: Any, tmp_path: Path, **entries: Any) -> Path:
    """A copy whose manifest says something else of its means."""
    folder = tmp_path / "changed"
    release.save(folder)
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["parameters"]["means"][0] |= entries
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "entries", [{"scale": 1.0}, {"column": "grp"}, {"high": 2000.0}, {"low": 1.0}, {"steps": 3}]
)
def test_means_that_do_not_fit_are_refused(
    release: Any, tmp_path: Path, entries: dict[str, Any]
) -> None:
    with pytest.raises(ReleaseError):
        verify(changed(release, tmp_path, **entries))


def test_sums_beyond_what_rows_could_add_are_found(release: Any) -> None:
    judge(of_places(release))
    part = pq.read_table(release.path / "data" / "part-00000.parquet")
    assert part.num_rows == release.manifest.rows
    broken = release.place_sums[0].copy()
    broken[0] = STEPS * ROWS
    object.__setattr__(release, "_figures", [*release.figures, broken])
    try:
        with pytest.raises(ReleaseError, match="means within bins of spent"):
            judge(of_places(release))
    finally:
        del release.__dict__["_figures"]
