"""Errors of sums, averages, ratios, quantiles and groups: honest at every size.

Many views of one table are simulated at once, cell by cell of a small domain. They enter the
estimator as if they were groups, so that one call gives all their intervals.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.support.sampling import proportion_at_least
from tests.support.trees import expression_of
from voile.answering.arithmetic import Affine, AffineRatio, as_ratio, evaluate
from voile.answering.columns import NORMAL, edge
from voile.answering.quantiles import increasing, point, woodruff
from voile.answering.totals import ListedGroups, Totals, product, with_products
from voile.arrays import Floats
from voile.kinds.views.answering import ViewDistribution, cumulated
from voile.kinds.views.deviation import geometric_scale
from voile.kinds.views.estimator import ViewEstimator
from voile.mechanisms import AlphaBeta
from voile.query.aggregate import Call, Constant, Formula, Quantile, Total, covariance, square_root
from voile.query.predicate import Term

VALUE = expression_of('"x"', ("x",))
COUNT, SUM, SQUARES = Term(), Term(None, (VALUE,)), Term(None, (VALUE, VALUE))
MEAN = Call("/", (Total(SUM), Total(COUNT)))
STDDEV = square_root(covariance(Total(SQUARES), Total(SUM), Total(SUM), Total(COUNT), sample=False))

CELLS = 40
WEIGHTS = np.linspace(-3, 20, CELLS)
FEW = np.zeros(CELLS, dtype=np.int64)
FEW[[3, 17, 30]] = 1
MANY = np.arange(CELLS) * 40
MECHANISMS = {
    "noisy": AlphaBeta(0.5, 0.2),
    "sparse": AlphaBeta(0.9, 0.01),
    "set": AlphaBeta(0.8, 0.15, "set"),
}


def views(mechanism: AlphaBeta, table: Any, count: int, seed: int) -> Floats:
    """Published counts of each cell, for so many views of one table."""
    rng = np.random.default_rng(seed)
    shape = (count, len(table))
    kept = rng.binomial(np.broadcast_to(table, shape), mechanism.retention)
    if mechanism.form == "set":
        noise = rng.binomial(np.broadcast_to(1 - table, shape), mechanism.noise)
    else:
        noise = rng.geometric(1 - mechanism.noise, shape) - 1
    found: Floats = (kept + noise).astype(np.float64)
    return found


def estimator(
    mechanism: AlphaBeta, seen: Floats, formula: Formula, weights: Floats = WEIGHTS
) -> ViewEstimator:
    used = (COUNT, SUM, SQUARES)
    terms = tuple(dict.fromkeys([*used, *with_products([used])]))
    powers = {term: weights ** len(term.values) for term in terms}
    view = np.stack([seen @ powers[t] for t in terms], axis=1)
    domain = np.stack([np.full(len(seen), powers[t].sum()) for t in terms], axis=1)
    groups = ListedGroups(((),) * len(seen), (), len(seen), complete=True)
    totals = Totals(groups, terms, view, domain, np.zeros_like(domain), domain, ())
    ranges = {t: (float(powers[t].min()), float(powers[t].max())) for t in terms}
    assert formula is not None
    return ViewEstimator(ranges, totals, mechanism, None)


def truth_of(formula: Formula, table: Any) -> float:
    totals = {
        term: np.array([float((table * WEIGHTS ** len(term.values)).sum())])
        for term in (COUNT, SUM, SQUARES)
    }
    return float(evaluate(formula, totals, {}, (COUNT, SUM, SQUARES), 1).value[0])


def tables_for(mechanism: AlphaBeta) -> list[Any]:
    return [FEW] if mechanism.form == "set" else [FEW, MANY]


# ---------------------------------------------------------------------- intervals


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize(
    "formula",
    [Total(SUM), Call("-", (Total(SUM), Call("*", (Constant(2), Total(COUNT))))), MEAN,
     Call("*", (Constant(100), Call("/", (Total(COUNT), Call("+", (Total(COUNT), Constant(5)))))))],
    ids=["sum", "difference", "average", "share"],
)  # fmt: skip
def test_intervals_of_sums_and_ratios_cover_as_stated(name: str, formula: Formula) -> None:
    """False alarms 10⁻⁶; tables with three rows as well as with thirty thousand."""
    mechanism = MECHANISMS[name]
    for table in tables_for(mechanism):
        truth = truth_of(formula, table)
        seen = views(mechanism, table, 4000, seed=1)
        column = estimator(mechanism, seen, formula).column(formula)
        for confidence in (0.95, 0.6):
            low, high = column.interval(confidence)
            covered = int(((low <= truth) & (truth <= high)).sum())
            assert proportion_at_least(covered, len(seen), confidence), (covered, len(seen))


def test_intervals_of_a_wrong_mechanism_do_not_cover() -> None:
    """Power: a wrong retention shows in sums, wrong noise in averages."""
    table = np.where(np.arange(CELLS) >= CELLS - 5, 400, 0)
    seen = views(AlphaBeta(0.5, 0.8), table, 4000, seed=2)
    cases: list[tuple[Formula, AlphaBeta]] = [
        (Total(SUM), AlphaBeta(0.55, 0.8)),
        (MEAN, AlphaBeta(0.5, 0.4)),
    ]
    for formula, wrong in cases:
        low, high = estimator(wrong, seen, formula).column(formula).interval(0.95)
        truth = truth_of(formula, table)
        covered = int(((low <= truth) & (truth <= high)).sum())
        assert not proportion_at_least(covered, len(seen), 0.95)


def test_intervals_of_many_rows_are_hardly_wider_than_normal_ones() -> None:
    mechanism, formula = MECHANISMS["noisy"], Total(SUM)
    column = estimator(mechanism, views(mechanism, MANY * 100, 50, seed=3), formula).column(formula)
    low, high = column.interval(0.95)
    assert ((high - low) / column.stderr < 2 * 1.96 * 1.12).all()
    low, high = estimator(mechanism, views(mechanism, FEW, 50, seed=3), formula).column(
        formula
    ).interval(0.95)  # fmt: skip
    assert np.isfinite(low).all()


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("formula", [Total(COUNT), Total(SUM), MEAN, STDDEV])
def test_standard_errors_are_those_of_the_estimates(name: str, formula: Formula) -> None:
    """The spread of 4,000 estimates agrees with the mean stated variance to 8 %."""
    mechanism = MECHANISMS[name]
    table = np.ones(CELLS, dtype=np.int64) if mechanism.form == "set" else MANY * 10
    column = estimator(
        mechanism, views(mechanism, table, 4000, seed=4), formula
    ).column(formula)  # fmt: skip
    if name == "set" and formula in (MEAN, STDDEV):
        return  # forty rows are too few for the delta method
    assert np.std(column.value) == pytest.approx(np.sqrt((column.stderr**2).mean()), rel=0.08)
    assert column.value.mean() == pytest.approx(
        truth_of(formula, table), abs=5 * float(np.std(column.value)) / math.sqrt(4000) + 0.02
    )


def test_spreads_are_covered_about_as_stated_and_say_so() -> None:
    mechanism, table = MECHANISMS["noisy"], MANY * 10
    column = estimator(
        mechanism, views(mechanism, table, 4000, seed=5), STDDEV
    ).column(STDDEV)  # fmt: skip
    assert column.covers == NORMAL
    low, high = column.interval(0.95)
    covered = ((low <= truth_of(STDDEV, table)) & (truth_of(STDDEV, table) <= high)).mean()
    assert 0.935 < covered < 0.965


def test_an_average_over_almost_nobody_is_unknown_or_unbounded_but_in_range() -> None:
    mechanism = MECHANISMS["noisy"]
    column = estimator(
        mechanism, views(mechanism, np.zeros(CELLS, dtype=np.int64), 200, seed=6), MEAN
    ).column(MEAN)  # fmt: skip
    low, high = column.interval(0.95)
    assert (low == -3).mean() > 0.5 and (high == 20).mean() > 0.5
    assert np.isnan(column.value).any()
    known = column.value[~np.isnan(column.value)]
    assert (known >= -3).all() and (known <= 20).all()


def test_a_sampled_domain_widens_counts_and_sums() -> None:
    mechanism = MECHANISMS["noisy"]
    seen = views(mechanism, MANY, 2000, seed=7)
    base = estimator(mechanism, seen, Total(SUM))
    # As if the domain's sums had been sampled: each view sees another error of known size.
    rng = np.random.default_rng(8)
    relative = 0.5
    domain = base.totals.domain * (1 + relative * rng.standard_normal((len(seen), 1)))
    totals = Totals(
        base.totals.groups, base.totals.terms, base.totals.view, np.maximum(domain, 0.0),
        np.abs(relative * base.totals.domain), np.maximum(domain, 0.0), (),
    )  # fmt: skip
    sampled = ViewEstimator(base.ranges, totals, mechanism, None)
    for formula in (Total(SUM), Total(COUNT)):
        column = sampled.column(formula)
        low, high = column.interval(0.95)
        truth = truth_of(formula, MANY)
        covered = int(((low <= truth) & (truth <= high)).sum())
        assert proportion_at_least(covered, len(seen), 0.95)
        assert (column.stderr > base.column(formula).stderr).all()


# ---------------------------------------------------------------------- the constants behind them


@pytest.mark.parametrize("q", [1e-6, 1e-3, 0.05, 0.2, 0.5, 0.8, 0.99])
def test_bernstein_and_berry_esseen_constants(q: float) -> None:
    """ln E e^{s(N−μ)} ≤ s²v/(2(1−cs)) for all s, and E|N−μ|³ ≤ v(1+2.5μ)."""
    mean = q / (1 - q)
    variance, scale = mean * (1 + mean), geometric_scale(q)
    s = np.linspace(1e-6, 1 / scale * (1 - 1e-9), 20_001)[:-1]
    cumulant = -np.log1p(-mean * np.expm1(s)) - mean * s
    assert (cumulant <= s**2 * variance / (2 * (1 - scale * s)) * (1 + 1e-6)).all()
    j = np.arange(int(80 / (1 - q)) + 80, dtype=np.float64)
    third = float(((1 - q) * q**j * np.abs(j - mean) ** 3).sum())
    assert third <= variance * (1 + 2.5 * mean) * (1 + 1e-9)
    # Power: a tenth less would not do.
    low = 0.9 * scale
    s = np.linspace(1e-6, min(1 / low, -math.log(q)) * (1 - 1e-9), 20_001)[:-1]
    cumulant = -np.log1p(-mean * np.expm1(s)) - mean * s
    assert (cumulant > s**2 * variance / (2 * (1 - low * s)) * (1 + 1e-6)).any()


# ---------------------------------------------------------------------- quantiles


@pytest.mark.parametrize("share", [0.5, 0.1, 0.95])
@pytest.mark.parametrize("name", ["noisy", "sparse"])
def test_intervals_of_quantiles_cover_as_stated(name: str, share: float) -> None:
    mechanism = MECHANISMS[name]
    for table in (FEW, np.minimum(MANY, 60)):
        seen = views(mechanism, table, 2000, seed=9)
        found = ViewDistribution(
            WEIGHTS, seen, np.ones_like(seen), np.zeros_like(seen), np.ones_like(seen)
        )  # fmt: skip
        asked = Quantile(share, interpolated=False, value=VALUE)
        low, high = woodruff(cumulated(found, mechanism, share), asked, 0.05)
        truth = WEIGHTS[np.searchsorted(np.cumsum(table), share * table.sum() - 1e-9)]
        covered = int(((low <= truth) & (truth <= high)).sum())
        assert proportion_at_least(covered, len(seen), 0.95)
    assert (high - low).mean() < 12  # and they say something


def test_quantiles_of_exact_counts_are_sqls() -> None:
    rng = np.random.default_rng(10)
    for _ in range(300):
        counts = rng.integers(0, 3, 12)
        rows = np.repeat(np.arange(12.0), counts)
        if not len(rows):
            continue
        for share in (0.1, 0.25, 0.5, 0.9):
            cont = point(counts.astype(float), np.arange(12.0), Quantile(share, True, VALUE))
            assert cont == pytest.approx(np.quantile(rows, share))
            disc = point(counts.astype(float), np.arange(12.0), Quantile(share, False, VALUE))
            assert disc == np.quantile(rows, share, method="inverted_cdf")


def test_the_nearest_increasing_sequence() -> None:
    assert increasing(np.array([1.0, 3, 2, 4])).tolist() == [1, 2.5, 2.5, 4]
    assert increasing(np.array([-1.0, -3, 2])).tolist() == [0, 0, 2]


# ---------------------------------------------------------------------- formulas


def test_ratios_are_recognised() -> None:
    a, b = Term(None, (VALUE,)), Term()
    assert as_ratio(MEAN) == AffineRatio(Affine(0.0, ((a, 1.0),)), Affine(0.0, ((b, 1.0),)))
    share = Call("+", (Constant(1), Call("*", (Constant(100), MEAN))))
    assert as_ratio(share) == AffineRatio(
        Affine(0.0, ((b, 1.0), (a, 100.0))), Affine(0.0, ((b, 1.0),))
    )  # fmt: skip
    assert as_ratio(Call("/", (MEAN, MEAN))) == AffineRatio(
        Affine(0.0, ((a, 1.0),)), Affine(0.0, ((a, 1.0),))
    )
    for other in (STDDEV, Call("*", (MEAN, MEAN)), Call("+", (MEAN, Total(SUM)))):
        assert as_ratio(other) is None


def test_slopes_are_derivatives() -> None:
    order = (COUNT, SUM, SQUARES)
    at = {COUNT: np.array([40.0]), SUM: np.array([130.0]), SQUARES: np.array([900.0])}
    formulas: list[Formula] = [
        STDDEV, MEAN, Call("ln", (Total(SUM),)), Call("exp", (MEAN,)),
        Call("pow", (Total(SUM), Constant(1.5))), Call("abs", (Call("neg", (MEAN,)),)),
        Call("pow", (Constant(2.0), MEAN)),
    ]  # fmt: skip
    for formula in formulas:
        slope = evaluate(formula, at, {}, order, 1).slope[0]
        for i, term in enumerate(order):
            up, down = ({**at, term: at[term] + h} for h in (1e-4, -1e-4))
            numeric = (
                evaluate(formula, up, {}, order, 1).value
                - evaluate(formula, down, {}, order, 1).value
            ) / 2e-4  # fmt: skip
            assert slope[i] == pytest.approx(float(numeric[0]), rel=1e-5, abs=1e-9)


def test_edges_are_found_or_infinite() -> None:
    start, step = np.array([1.0, 2.0, 5.0]), np.full(3, 1e-6)
    limit = np.array([3.0, 2.000001, np.inf])
    found = edge(lambda x: x > limit, start, step, 1.0)
    assert found[:2] == pytest.approx(limit[:2])
    assert np.isinf(found[2])


def test_products_of_terms_do_not_depend_on_order() -> None:
    other = expression_of('"y"', ("y",))
    left, right = Term(None, (VALUE,)), Term(None, (other,))
    assert product(left, right) == product(right, left)
