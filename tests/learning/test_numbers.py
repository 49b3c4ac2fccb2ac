"""Bounds and bins of numbers: whatever the noise, a domain; with little of it, a good one."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import voile
from tests.support.sampling import FALSE_ALARM
from voile.engines.column_jobs import histogram
from voile.learning import LearningBudget, learn_schema
from voile.learning.grids import decimal, digits, grid_of
from voile.learning.numbers import NoisyCells, bounded, domain_of_cells, heavy_level, refined
from voile.noise import Key
from voile.schema import Attribute, Bins, DayBins, Range, Values, WholeBins

CLEAR = LearningBudget("gaussian", 0.5, 1e-9)


def learnt(values: Any, *, nulls: Any = "error", seed: int = 1) -> Attribute:
    """The attribute of one column."""
    table = voile.read(pa.table({"x": values}))
    return learn_schema(table, ["x"], CLEAR, Key.from_seed(seed), nulls=nulls).schema["x"]


KINDS = st.sampled_from(["integer", "numeric", "date"])


@settings(max_examples=60, deadline=None)
@given(KINDS, st.integers(0, 2**32), st.integers(0, 5000), st.floats(0.5, 500))
def test_any_noise_gives_a_domain(kind: Any, seed: int, rows: int, scale: float) -> None:
    """Edges increase, are the grid's, and every number has exactly one code."""
    draw = np.random.default_rng(seed)
    grid = grid_of(kind)
    numbers = np.floor(draw.normal(draw.uniform(-1e4, 1e4), 10 ** draw.uniform(0, 3), rows))
    edges = tuple(grid.coarse())
    for stage in range(3):
        counts = histogram(edges, numbers)
        assert counts.sum() == rows
        cells = NoisyCells(edges, counts + draw.normal(0, scale, len(counts)), scale)
        if stage < 2:
            edges = refined(bounded(cells) if stage == 0 else cells, grid, scale)
            assert all(a < b for a, b in itertools.pairwise(edges))
    domain = domain_of_cells(kind, cells, max(1, rows)).domain
    attribute = Attribute("x", kind, domain, public="learnt", clamp=True)
    assert 1 <= attribute.size <= 129
    if isinstance(domain, Bins):
        assert domain.edges[0] >= edges[0]
        assert domain.edges[-1] <= edges[-1]


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("most", [3 * 10**15, 9 * 10**18])
@pytest.mark.parametrize("among", [0.0, 0.5])
def test_whole_numbers_beyond_what_doubles_hold_are_with_the_last(
    sign: int, most: int, among: float
) -> None:
    """Account numbers of 16 digits: bins end at 10¹⁵, where every whole number is a double."""
    draw = np.random.default_rng(5)
    small = draw.random(3000) < among
    values = sign * np.where(
        small, draw.integers(0, 90, 3000), draw.integers(most // 2, most, 3000)
    )
    attribute = learnt(values)
    assert isinstance(attribute.domain, WholeBins)
    assert max(map(abs, attribute.domain.edges)) == 1e15


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["integer", "numeric"]), st.integers(-6, 9), st.integers(2, 60))
def test_cells_are_cut_at_round_numbers(kind: Any, power: int, parts: int) -> None:
    """At most so many parts, strictly inside, with few digits."""
    low, high = decimal(1, max(power, 0 if kind == "integer" else power)), decimal(2, max(power, 0))
    if not low < high:
        return
    inside = grid_of(kind).inside(low, high, parts)
    assert len(inside) < parts
    assert all(low < edge < high for edge in inside)
    assert all(digits(edge) <= 4 for edge in inside)


def test_small_whole_numbers_stay_single() -> None:
    """Children, ratings, hours and years are not binned."""
    draw = np.random.default_rng(3)
    for low, high in ((0, 5), (1, 7), (0, 23), (1987, 2012)):
        domain = learnt(draw.integers(low, high + 1, 20_000)).domain
        assert isinstance(domain, Range)
        numbers = list(domain)
        assert low in numbers
        assert high in numbers
        assert domain.size <= high - low + 20


def test_constants_zeros_and_gaps() -> None:
    """One value, values all NULL, numbers that are mostly 0, and tiny and huge ones."""
    assert learnt(np.full(5000, 7)).domain in (Range(7, 8), Range(6, 7))
    assert tuple(learnt(np.full(5000, 2.5)).domain) == (2.5,)
    assert learnt(pa.array([None] * 500, pa.int64()), nulls="as-value").null
    draw = np.random.default_rng(4)
    zeros = np.where(draw.random(20_000) < 0.8, 0.0, draw.lognormal(8, 1, 20_000))
    bins = learnt(zeros).domain
    assert isinstance(bins, Bins)
    assert bins.edges[0] == 0
    assert bins.edges[1] <= 10
    for factor in (1e-6, 1e9, -1.0):
        found = learnt(draw.lognormal(0, 1, 20_000) * factor).domain
        assert isinstance(found, Bins)
        inside = found.edges[0] <= factor * 1.0 <= found.edges[-1]
        assert inside
        assert found.size >= 10


@pytest.mark.parametrize("kind", [int, float])
def test_nearly_all_zeros_leave_a_place_for_the_others(kind: type) -> None:
    """Noise hides what the others are, not that they are there: they count beside the zeros."""
    draw = np.random.default_rng(8)
    others = draw.integers(1, 60, 4_000)
    numbers: Any = np.where(draw.random(4_000) < 0.97, 0, others).astype(kind)
    budget = LearningBudget("gaussian", 0.0001, 1e-9)
    table = voile.read(pa.table({"x": numbers}))
    for seed in range(20):
        schema = learn_schema(table, ["x"], budget, Key.from_seed(seed)).schema
        batch = next(iter(table.coded(schema, drop_nulls=False)))
        codes = batch.codes[0]
        assert schema["x"].size >= 2
        assert len(set(codes[numbers == 0])) == 1
        assert not set(codes[numbers == 0]) & set(codes[numbers > 0])


def test_heavy_numbers_are_bins_of_their_own_and_dates_have_months() -> None:
    """40 hours among all others; days of a few years."""
    draw = np.random.default_rng(5)
    hours = np.where(draw.random(20_000) < 0.4, 40, draw.integers(1, 400, 20_000))
    domain = learnt(hours).domain
    assert isinstance(domain, WholeBins)
    assert any(low <= 40 <= high for low, high in zip(domain.lows, domain.highs, strict=True))
    days = [dt.date(2019, 1, 1) + dt.timedelta(int(d)) for d in draw.integers(0, 1000, 20_000)]
    found = learnt(pa.array(days)).domain
    assert isinstance(found, DayBins)
    assert found.edges[0] <= (dt.date(2019, 1, 31) - dt.date(1970, 1, 1)).days


def test_numbers_that_few_values_cover_are_listed() -> None:
    """Ages at middles of classes, as surveys have them; another number is the nearest of these."""
    draw = np.random.default_rng(6)
    found = learnt(draw.choice([17.5, 22.0, 27.0, 32.0], 8000))
    assert found.domain == Values((17.5, 22.0, 27.0, 32.0))
    table = voile.read(pa.table({"x": [17.0, 26.0, 100.0]}))
    schema = voile.Schema((found,))
    batch = next(iter(table.coded(schema, drop_nulls=False)))
    assert batch.codes[0].tolist() == [0, 2, 3]


@pytest.mark.parametrize("rows", [500, 5000, 100_000])
def test_averages_of_long_tails_are_near(rows: int) -> None:
    """Middles of bins give the average of what was clamped within a tenth of its deviation."""
    numbers = np.random.default_rng(rows).lognormal(3, 1, rows)
    found = learnt(numbers).domain
    assert isinstance(found, Bins)
    clamped = np.clip(numbers, found.edges[0], found.edges[-1])
    middles = found.middles[found.encode(clamped)]
    assert abs(middles.mean() - numbers.mean()) < 0.15 * numbers.std()


YEARS = (1650.0, 1970.0, *map(float, range(1979, 1990)))


@pytest.mark.parametrize("kind", ["integer", "date"])
def test_noise_far_out_does_not_make_bins_of_a_few_years(kind: Any) -> None:
    """A cell of two deviations from 1650 on would."""
    counts = np.array([45.0, 10.0, *[532.0] * 10])
    found = domain_of_cells(kind, NoisyCells(YEARS, counts, 22.0), 5_320).domain
    assert isinstance(found, Range)
    assert found.size == 10


def test_a_short_tail_is_kept_although_noise_might_explain_it() -> None:
    edges = (*map(float, range(9)), 21.0)
    counts = np.array([532.0] * 8 + [45.0])
    found = domain_of_cells("integer", NoisyCells(edges, counts, 22.0), 5_320).domain
    assert isinstance(found, Range)
    assert found.high == 20


@pytest.mark.parametrize("length", [1, 2, 6])
def test_sums_of_geometric_noise_are_sure_as_seldom_as_normal_ones(length: int) -> None:
    sums = np.random.default_rng(3).laplace(size=(1_000_000, length)).sum(axis=1)
    for normal in (2.0, 3.0):
        share = float(stats.norm.sf(normal))
        level = heavy_level(normal, length)
        assert level > normal
        over = int((sums > level * np.sqrt(2 * length)).sum())
        assert stats.binomtest(over, len(sums), share).pvalue > FALSE_ALARM


def test_a_domain_does_not_reach_to_billions_because_noise_has_heavy_tails() -> None:
    """By the level of normal noise two of these 40 do, and means are nonsense."""
    nights = voile.read(pa.table({"x": np.random.default_rng(5).poisson(3, 6000)}))
    budget = LearningBudget("geometric", 0.05, 1e-9)
    for seed in range(40):
        domain = learn_schema(nights, ["x"], budget, Key.from_seed(seed)).schema["x"].domain
        assert isinstance(domain, Range | WholeBins)
        ends: Any = (domain.low, domain.high) if isinstance(domain, Range) else domain.edges
        assert ends[0] >= -50 and ends[-1] <= 100, (seed, domain)
