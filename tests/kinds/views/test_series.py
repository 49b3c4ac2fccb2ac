"""Many views of one changing table: what a history tells, and what can be estimated from it.

Laws are enumerated in exact fractions on the courses and histories of one tuple. Counts of the
multiset form are unbounded; they are cut off, and what is cut off is bounded.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.support.paths import TESTS
from tests.support.sampling import assert_fits, fits, proportion_at_least
from tests.support.soak import rounds
from voile.errors import PromiseError, UsageError
from voile.kinds.views.series import Scores, Series, SeriesEstimator, SeriesHistory, read_texts
from voile.kinds.views.series_scores import (
    Chain,
    best_parts,
    best_weights,
    combined,
    increments,
    single,
)
from voile.noise import Key
from voile.privacy import DGamma, Form
from voile.privacy.series import SeriesNoise, plan_series
from voile.schema import TupleIndex

ORACLE = {
    check["id"]: check
    for check in json.loads((TESTS / "oracle" / "alphabeta.json").read_text(encoding="utf-8"))[
        "checks"
    ]
}
ADULT = DGamma(30162 * 10 / 648023040, 0.2)
SMALL = DGamma(0.05, 0.3)
FORMS: tuple[Form, ...] = ("multiset", "set")

Law = dict[int, Fraction]


# ---------------------------------------------------------------------- the laws, spelled out


def law(series: SeriesNoise, view: int, records: int, most: int, *, seen: bool) -> Law:
    """P(count) of a tuple at a view, from the mechanism's description."""
    a = Fraction(series.retention)
    noise = Fraction(series.seen if seen else series.unseen[view])
    if series.form == "set":
        shown = a if records else noise
        return {0: 1 - shown, 1: shown}
    kept = [math.comb(records, k) * a**k * (1 - a) ** (records - k) for k in range(records + 1)]
    return {
        y: sum((kept[k] * (1 - noise) * noise ** (y - k) for k in range(min(y, records) + 1)),
               Fraction(0))
        for y in range(most + 1)
    }  # fmt: skip


def histories(
    series: SeriesNoise, course: tuple[int, ...], most: int
) -> dict[tuple[int, ...], Fraction]:
    """P(history) of a tuple with these numbers of records at the views."""
    found: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for view, records in enumerate(course):
        laws = {s: law(series, view, records, most, seen=s) for s in (False, True)}
        found = {
            (*history, y): chance * p
            for history, chance in found.items()
            for y, p in laws[any(history)].items()
        }
    return found


def ratios(series: SeriesNoise, most: int, *, others: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """The least and the largest ratio over histories and courses of one more record."""
    views = series.views
    courses = (
        list(itertools.product((0, 1), repeat=views))[1:] if series.changing else [(1,) * views]
    )
    without = histories(series, others, most)
    found = [
        p / without[history]
        for course in courses
        for history, p in histories(
            series, tuple(x + y for x, y in zip(course, others, strict=True)), most
        ).items()
        if without[history]
    ]
    return min(found), max(found)


def made(
    form: Form, retention: float, unseen: tuple[float, ...], seen: float, *, changing: bool = True
) -> SeriesNoise:
    return SeriesNoise(form, retention, unseen, seen, changing)


# ---------------------------------------------------------------------- the promise


@pytest.mark.parametrize("changing", [True, False])
@pytest.mark.parametrize(
    ("form", "retention", "unseen", "seen"),
    [
        ("set", 0.5, 0.0625, 0.25),
        ("set", 0.75, 0.125, 0.5),
        ("multiset", 0.5, 0.0625, 0.25),
        ("multiset", 0.75, 0.25, 0.625),
    ],
)
@pytest.mark.parametrize("views", [1, 2, 3])
def test_the_ratio_of_a_history_is_what_enumeration_finds(
    form: Form, retention: float, unseen: float, seen: float, views: int, changing: bool
) -> None:
    fade = 1.0 if changing else 1 - retention
    series = made(form, retention, tuple(unseen * fade**j for j in range(views)), seen,
                  changing=changing)  # fmt: skip
    low, high = ratios(series, 3, others=(0,) * views)
    stated = series.likelihood_ratio()
    assert stated.high == high
    assert stated.low == low
    for before in range(1, views):  # what earlier views told follows from the same numbers
        assert (
            series.likelihood_ratio(before)
            == SeriesNoise(
                form, retention, series.unseen[:before], seen, changing
            ).likelihood_ratio()
        )


@pytest.mark.parametrize("others", [(1, 1), (2, 0), (0, 3), (3, 1)])
def test_other_records_of_the_tuple_do_not_widen_the_bounds(others: tuple[int, ...]) -> None:
    series = made("multiset", 0.5, (0.0625, 0.0625), 0.25)
    low, high = ratios(series, 6, others=others)
    stated = series.likelihood_ratio()
    assert stated.high is not None
    assert stated.low <= low
    assert high <= stated.high


@pytest.mark.parametrize("views", [1, 2, 3])
@pytest.mark.parametrize(
    ("series", "most"),
    [
        (made("set", 0.5, (0.0625,) * 3, 0.25), 1),
        (made("multiset", 0.75, (0.125,) * 3, 0.5), 2),
        (made("multiset", 0.5, (0.5,) * 3, 0.25), 2),  # more noise on the unseen
    ],
)
def test_who_follows_a_row_through_edits(series: SeriesNoise, most: int, views: int) -> None:
    """Every course of a person over as many tuples as views, against nobody; exact."""
    never = histories(series, (0,) * views, most)
    found = []
    for course in itertools.product(range(-1, views), repeat=views):  # -1: not there
        low = high = Fraction(1)
        for t in range(views):  # tuples are independent
            there = histories(series, tuple(int(at == t) for at in course), most)
            ratios_ = [p / never[history] for history, p in there.items()]
            low, high = low * min(ratios_), high * max(ratios_)
        found.append((low, high))
    stated = series.followed(views)
    assert stated.high == max(high for _, high in found)
    assert stated.low == min(low for low, _ in found)
    alone = series.likelihood_ratio(views)
    assert alone.high is not None
    more = views > 1 and series.unseen[0] < series.seen
    assert (stated.high > alone.high) == more


def test_edits_on_adult_as_the_documentation_has_them() -> None:
    """Large factors multiply: by hand, from the parameters."""
    series = plan_series(ADULT, "multiset", 4, changing=True)
    a, q = series.retention, series.unseen[0]
    odds = ADULT.prior / (1 - ADULT.prior) * (1 - a + a / q) ** 2
    after = float(series.followed(2).posterior(ADULT.prior))
    assert after == pytest.approx(odds / (1 + odds), rel=1e-9)
    assert after == pytest.approx(0.921, abs=5e-4)
    stays = plan_series(ADULT, "multiset", 4, changing=False)
    assert stays.followed() == stays.likelihood_ratio()


def test_whole_views_of_a_whole_domain() -> None:
    """Definition 2.3 itself: two tuples, an independent adversary, every pair of views."""
    series = plan_series(SMALL, "set", 2, changing=True)
    d, gamma = Fraction(SMALL.prior), Fraction(SMALL.posterior)
    never = histories(series, (0, 0), 1)
    courses = [(1, 1), (1, 0), (0, 1)]
    worst = Fraction(0)
    for other in [(0, 0), *courses]:
        beside = histories(series, other, 1)
        for course in courses:
            there = histories(series, course, 1)
            for first, second in itertools.product(never, never):
                with_it, without = there[first] * beside[second], never[first] * beside[second]
                posterior = d * with_it / (d * with_it + (1 - d) * without)
                assert d / gamma * d <= posterior <= gamma
                worst = max(worst, posterior)
    assert worst > gamma * Fraction(999_999, 1_000_000)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("changing", [True, False])
@pytest.mark.parametrize("adversary", ["independent", "exclusive"])
@pytest.mark.parametrize("views", [2, 3, 5, 12])
def test_every_plan_keeps_its_promise_and_wastes_little(
    form: Form, changing: bool, adversary: Any, views: int
) -> None:
    promise = DGamma(ADULT.prior, ADULT.posterior, adversary)
    series = plan_series(promise, form, views, changing=changing)
    ratio = series.likelihood_ratio()
    assert series.views == views
    assert promise.kept_by(ratio)
    reached = (
        ratio.posterior(promise.prior)
        if adversary == "independent"
        else ratio.linked_posterior(promise.prior)
    )
    # In the set form the lower bound has a little room, which the plan leaves to the adversary.
    assert float(reached) == pytest.approx(0.2, rel=1e-9 if form == "multiset" else 0.06)
    less = SeriesNoise(form, series.retention, tuple(0.9 * q for q in series.unseen), series.seen,
                       changing)  # fmt: skip
    assert form == "set" or not promise.kept_by(less.likelihood_ratio())


def test_algorithm_4_as_printed_breaks_its_promise_at_the_second_view() -> None:
    check = ORACLE["alg4.privacy_adult"]
    promise = DGamma(check["inputs"]["d"], check["inputs"]["gamma"])
    kept = check["inputs"]["S"]
    for row in check["expected"]:
        v, i = row["v"], row["i"]
        tight = kept / float(promise.ratio_high)
        beta = {
            "tight": tight,
            "loose": promise.prior / promise.posterior,
            "tight_fixed": tight * math.exp((v - 1) / v),
        }.get(row["beta"])
        if beta is None:
            continue
        printed = made("set", kept, tuple(beta * (1 - kept) ** j for j in range(v)),
                       kept * math.exp(-1 / v), changing=False)  # fmt: skip
        ratio = printed.likelihood_ratio(i)
        assert ratio.high is not None
        assert float(ratio.high) == pytest.approx(row["maxLR"], rel=1e-9), row
        assert float(ratio.low) == pytest.approx(row["minLR"], rel=1e-9), row
        assert float(ratio.posterior(promise.prior)) == pytest.approx(row["posterior"], rel=1e-9)


def test_a_tiny_domain_after_two_views() -> None:
    expected = ORACLE["alg4.tiny_bruteforce"]["expected"]
    promise, v = DGamma(expected["d"], expected["g"]), expected["v"]
    kept = 0.5
    for growth, posterior in (
        (1.0, "brute_post_after2"),
        (math.exp((v - 1) / v), "fixed_beta_post"),
    ):
        beta = kept / float(promise.ratio_high) * growth
        series = made("set", kept, (beta, beta * (1 - kept)), kept * math.exp(-1 / v),
                      changing=False)  # fmt: skip
        reached = series.likelihood_ratio().posterior(promise.prior)
        assert float(reached) == pytest.approx(expected[posterior], rel=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_faded_noise_breaks_the_promise_where_records_are_added(form: Form) -> None:
    faded = plan_series(ADULT, form, 4, changing=False)
    assert ADULT.kept_by(faded.likelihood_ratio())
    under_updates = SeriesNoise(form, faded.retention, faded.unseen, faded.seen, changing=True)
    ratio = under_updates.likelihood_ratio()
    assert not ADULT.kept_by(ratio)
    # A record that is added just before the last view is hidden by the least noise of all.
    a, last = Fraction(faded.retention), Fraction(faded.unseen[-1])
    added = a / last if form == "set" else 1 - a + a / last
    assert ratio.high is not None
    assert ratio.high >= added
    assert float(ratio.posterior(ADULT.prior)) > 0.9


def test_wishes_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(UsageError, match="views=1 "):
        plan_series(ADULT, "set", 1, changing=True)
    with pytest.raises(PromiseError, match=r"retention 0\.9 is too large for 4 views"):
        plan_series(ADULT, "multiset", 4, changing=True, retention=0.9)


def test_plans_at_the_edge_of_what_floats_hold() -> None:
    rng = np.random.default_rng(11)
    for number in range(rounds(12, 40)):
        posterior = float(rng.choice([0.01, 0.2, 0.9]))
        prior = posterior * 10 ** -float(rng.uniform(0.3, 240))
        form, views = FORMS[number % 2], int(rng.integers(2, 7))
        promise = DGamma(prior, posterior)
        series = plan_series(promise, form, views, changing=bool(number % 3))
        assert promise.kept_by(series.likelihood_ratio())
        scores = combined(series, views)
        assert 0 < scores.noise_variance <= series.single_variance(views) * 1.001
        assert all(map(math.isfinite, (scores.empty, scores.kept_variance, scores.scale)))


def test_the_planner_does_better_than_the_growth_of_algorithm_4() -> None:
    def error(series: SeriesNoise) -> float:
        return sum(series.single_variance(view) for view in range(1, series.views + 1))

    for form in FORMS:
        best = plan_series(ADULT, form, 4, changing=True)
        printed = plan_series(ADULT, form, 4, changing=True, growth=math.exp(1 / 4))
        assert error(best) < 0.95 * error(printed)
        for change in (0.9, 1.1):
            other = plan_series(ADULT, form, 4, changing=True,
                                retention=min(best.retention * change, 0.7))  # fmt: skip
            assert error(best) < error(other) * 1.001


# ---------------------------------------------------------------------- the estimators


def exact_mean(
    series: SeriesNoise, scores: Scores, course: tuple[int, ...], most: int
) -> tuple[float, float]:
    """Mean and variance of the score of a tuple, over every history."""
    found = histories(series, course, most)
    chances = np.array([float(p) for p in found.values()])
    g = scores.of(np.array(list(found), np.uint32))[0]
    mean = float(chances @ g)
    return mean, float(chances @ g**2) - mean**2


CASES = [
    (made("set", 0.5, (0.02, 0.02, 0.02), 0.3), 1),
    (made("set", 0.75, (0.1, 0.025, 0.00625), 0.5, changing=False), 1),
    (made("multiset", 0.5, (0.05, 0.05, 0.05), 0.2), 14),
    (made("multiset", 0.7, (0.06, 0.018, 0.0054), 0.2, changing=False), 14),
]


@pytest.mark.parametrize(("series", "most"), CASES)
@pytest.mark.parametrize("view", [1, 2, 3])
def test_the_last_view_alone_is_unbiased_whatever_the_table_did(
    series: SeriesNoise, most: int, view: int
) -> None:
    scores = single(series, view)
    copies = (0, 1) if series.form == "set" else (0, 1, 2)
    for course in itertools.product(copies, repeat=view):
        mean, _ = exact_mean(series, scores, course, most)
        assert mean == pytest.approx(course[-1], abs=1e-5)


@pytest.mark.parametrize(("series", "most"), CASES)
def test_the_variance_given_the_past_is_as_stated(series: SeriesNoise, most: int) -> None:
    scores = single(series, 3)
    for past in ((0, 0), (1, 0), (0, 1)):
        seen = any(past)
        spread = float(scores.of(np.array([[*past, 0]], np.uint32))[1][0])
        for records in (0, 1) if series.form == "set" else (0, 1, 2):
            chances = law(series, 2, records, most, seen=seen)
            counts = np.array([[*past, y] for y in chances], np.uint32)
            g, p = scores.of(counts)[0], np.array([float(x) for x in chances.values()])
            variance = float(p @ g**2) - float(p @ g) ** 2
            noise = scores.noise_variance * (1 + spread)
            low = noise + records * scores.least_kept_variance
            high = noise + records * scores.kept_variance
            assert low - 1e-4 <= variance <= high + 1e-9
            assert records or variance == pytest.approx(noise, rel=1e-4)


@pytest.mark.parametrize(("series", "most"), CASES)
@pytest.mark.parametrize("view", [1, 2, 3])
def test_the_combination_is_unbiased_for_records_that_stay(
    series: SeriesNoise, most: int, view: int
) -> None:
    scores = combined(series, view)
    for records in (0, 1) if series.form == "set" else (0, 1, 2, 3):
        mean, variance = exact_mean(series, scores, (records,) * view, most)
        assert mean == pytest.approx(records, abs=1e-5)
        low = scores.noise_variance + records * scores.least_kept_variance
        high = scores.noise_variance + records * scores.kept_variance
        assert low * (1 - 1e-4) <= variance <= high * (1 + 1e-9)
        assert records or variance == pytest.approx(scores.noise_variance, rel=1e-4)


@pytest.mark.parametrize(("series", "most"), CASES[:2])
def test_what_changes_do_to_the_combination_is_bounded(series: SeriesNoise, most: int) -> None:
    scores = combined(series, 3)
    worst = 0.0
    for course in itertools.product((0, 1), repeat=3):
        mean, variance = exact_mean(series, scores, course, most)
        changes, after = sum(x != y for x, y in itertools.pairwise(course)), course[-1]
        assert abs(mean - after) <= changes * scores.drift + 1e-5
        stays = scores.noise_variance + after * scores.kept_variance
        assert variance <= stays + changes * scores.changed_variance + 1e-9
        worst = max(worst, abs(mean - after))
    assert worst > 0.5 * scores.drift  # the bound is not idle


def test_equal_records_that_leave_at_once_are_not_one_at_a_time() -> None:
    """Why multisets that change are not combined: what one change adds does not add up."""
    series = plan_series(DGamma(ADULT.prior, 0.2, "exclusive"), "multiset", 3, changing=True)
    added, nothing = increments(series, 2), combined(series, 2).noise_variance
    one, ten = (Chain(series, (x, 0), added).variance() - nothing for x in (1, 10))
    assert one > 0
    assert nothing + ten > 2.5 * (nothing + 10 * one)


def test_no_other_unbiased_combination_has_less_variance() -> None:
    """Moves along the directions that keep it unbiased do not help."""
    rng = np.random.default_rng(3)
    series = CASES[0][0]
    g, share = best_weights(series, 3), 1e-4
    always, never = (
        np.array([float(p) for p in histories(series, (x,) * 3, 1).values()]) for x in (1, 0)
    )
    mixed = share * always + (1 - share) * never
    assert always @ g == pytest.approx(1)
    assert never @ g == pytest.approx(0, abs=1e-12)
    constraints = np.stack([always, never])
    for _ in range(50):
        step = rng.standard_normal(8)
        step -= constraints.T @ np.linalg.solve(constraints @ constraints.T, constraints @ step)
        assert mixed @ (g + 1e-3 * step) ** 2 > mixed @ g**2


@pytest.mark.parametrize("changing", [True, False])
def test_the_parts_of_the_multiset_form_obey_their_equations(changing: bool) -> None:
    series = plan_series(ADULT, "multiset", 5, changing=changing)
    parts = best_parts(series, 5)
    assert parts.unseen[0] + parts.seen[1:].sum() == pytest.approx(1)
    assert parts.unseen[1:] - parts.seen[1:] + parts.staying[:-1] == pytest.approx(0, abs=1e-9)
    assert parts.staying[-1] == pytest.approx(0, abs=1e-9)
    # Any other solution has more variance where there is no record.
    rng = np.random.default_rng(5)
    least = combined(series, 5).noise_variance
    a = series.retention
    for _ in range(20):
        seen, staying = parts.seen.copy(), parts.staying.copy()
        seen[1:] += 0.05 * rng.standard_normal(4)
        staying[:-1] += 0.05 * rng.standard_normal(4)
        unseen = np.append(1 - seen[1:].sum(), seen[1:] - staying[:-1])

        def added(j: int, is_seen: bool, counts: Any, u: Any = unseen, s: Any = seen,
                  c: Any = staying) -> Any:  # fmt: skip
            q = series.seen if is_seen else series.unseen[j]
            plain = (counts - q / (1 - q)) / a
            stays = (1 - a) / a * ((counts == 1) - q * (counts == 0))
            return s[j] * plain if is_seen else u[j] * plain + c[j] * stays

        assert Chain(series, (0,) * 5, added).variance() > least


def test_errors_of_the_oracle() -> None:
    """The combination of faded views, against the first view alone."""
    check = ORACLE["alg4.estimator"]
    promise, kept = ADULT, 0.5
    for row in check["expected"]:
        v, i = row["v"], row["i"]
        growth = {"tight": 1.0, "tight_fixed": math.exp((v - 1) / v)}.get(row["beta"])
        if growth is None or i > 10:
            continue
        beta = kept / float(promise.ratio_high) * growth
        series = made("set", kept, tuple(beta * (1 - kept) ** j for j in range(v)),
                      kept * math.exp(-1 / v), changing=False)  # fmt: skip
        g = best_weights(series, i, check["inputs"]["lam"])
        never = np.array([float(p) for p in chances(series, 0, i)])
        first = beta * (1 - beta) / (kept - beta) ** 2
        ratio = math.sqrt(float(never @ g**2) / first)
        assert ratio == pytest.approx(row["sd_ratio_BLUE_all"], rel=1e-6), row


def chances(series: SeriesNoise, there: int, views: int) -> list[float]:
    found = [(1.0, False)]
    for j in range(views):
        step = []
        for p, seen in found:
            shown = series.retention if there else series.seen if seen else series.unseen[j]
            step += [(p * (1 - shown), seen), (p * shown, True)]
        found = step
    return [p for p, _ in found]


@pytest.mark.parametrize("changing", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_more_views_of_a_table_that_stays_lower_the_error(form: Form, changing: bool) -> None:
    series = plan_series(ADULT, form, 4, changing=changing)
    errors = [combined(series, view).noise_variance for view in range(1, 5)]
    assert errors == sorted(errors, reverse=True)
    for view in range(2, 5):
        assert combined(series, view).noise_variance < 0.5 * series.single_variance(view)


def test_bernsteins_scale_holds_beyond_the_grid_on_which_it_was_found() -> None:
    for changing in (True, False):
        series = plan_series(ADULT, "multiset", 3, changing=changing)
        scores = combined(series, 3)
        added = increments(series, 3)
        for records in (0, 1, 3, 5, 20, 60):
            chain = Chain(series, (records,) * 3, added)
            variance = scores.noise_variance + scores.kept_variance * records
            assert chain.variance() <= variance * (1 + 1e-9)
            for s in np.linspace(-0.97, 0.97, 31) / scores.scale:
                bound = s**2 * variance / (2 * (1 - scores.scale * abs(s)))
                assert chain.log_generating(float(s)) - s * records <= bound * 1.02 + 1e-9


# ---------------------------------------------------------------------- drawing views

RUNS, CELLS = 3000, 20
INDEX = TupleIndex((RUNS, CELLS))
"""So many copies of a domain of twenty tuples, to be perturbed at once."""


def drawn(series: SeriesNoise, tables: list[list[int]], seed: int) -> SeriesHistory:
    """A series of tables, the same in every copy, drawn as publishing does in two ranges of D."""
    history = SeriesHistory.empty(INDEX)
    copies = CELLS * np.arange(RUNS, dtype=np.uint64)[:, None]
    for number, table in enumerate(tables, start=1):
        mechanism = Series(series, number, len(history.keys), history.keys)
        key = Key.from_seed(1000 * seed + number)
        members = np.sort((copies + np.array(table, np.uint64)).ravel())
        rows = []
        ends = (0, 8008, RUNS * CELLS)
        for i, (first, last) in enumerate(itertools.pairwise(ends)):
            noise = mechanism.noise_rows(INDEX, key, i, first, last)
            mine = members[(members >= first) & (members < last)]
            rows += list(mechanism.view(mine, noise, key, i))
        shown = np.concatenate(rows)
        assert (np.sort(shown) == shown).all()
        history = history.with_view(shown)
    return history


@pytest.mark.parametrize(
    "series",
    [made("set", 0.5, (0.1, 0.1), 0.3), made("multiset", 0.5, (0.15, 0.15), 0.3)],
    ids=["set", "multiset"],
)
def test_drawn_histories_follow_the_law_and_no_other(series: SeriesNoise) -> None:
    """Tuples that are never there, added at view 2, gone at view 2, always there."""
    history = drawn(series, [[3, 12], [7, 12]], seed=1)
    courses = {3: (1, 0), 7: (0, 1), 12: (1, 1), 0: (0, 0), 19: (0, 0)}
    cells = list(itertools.product(range(4), repeat=2))
    wrong = SeriesNoise(series.form, series.retention, (0.12, 0.12), 0.35, changing=True)
    rejected = 0
    for t, course in courses.items():
        shown = history.counts[history.keys % CELLS == t].tolist()
        seen = [shown.count(list(cell)) for cell in cells]
        seen[0] = RUNS - len(shown)
        expected, other = (histories(s, course, 3) for s in (series, wrong))
        assert_fits(seen, [float(expected.get(cell, 0)) for cell in cells])
        rejected += not fits(seen, [float(other.get(cell, 0)) for cell in cells])
    assert rejected >= 2


def test_histories_grow_and_are_read_back() -> None:
    history = SeriesHistory.empty(INDEX)
    for rows in ([1, 1, 4], [4, 9], [1]):
        history = history.with_view(np.array(rows, np.uint64))
    assert history.keys.tolist() == [1, 4, 9]
    assert history.counts.tolist() == [[2, 0, 1], [1, 1, 0], [0, 1, 0]]
    texts, which = history.texts()
    assert [texts[i] for i in which] == ["2,0,1", "1,1,0", "0,1,0"]
    assert (read_texts(texts, 3)[which] == history.counts).all()
    assert read_texts([], 3).shape == (0, 3)
    assert read_texts(["4294967295,0,1"], 3).tolist() == [[2**32 - 1, 0, 1]]
    for wrong in ("1,2", "1,2,3,4", "0,0,0", "a,b,c", "-1,2,0", "99999999999,1,0", "4294967296,1,0",
                  ",".join("1" * 400), "1" * 400, "1_0,1,0", "٣,1,0", "01,1,0", " 1,1,0", "1,1,",
                  ""):  # fmt: skip
        with pytest.raises(ValueError, match="history"):
            read_texts(["1,0,0", wrong], 3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["current", "combined"])
def test_intervals_cover_as_stated(form: Form, name: str) -> None:
    """A table of 20 tuples; counts of 12 of them, from three views.

    It changes by two rows, but for the combination of multisets, which is for tables that stay.
    """
    series = (made("set", 0.6, (0.05,) * 3, 0.35) if form == "set"
              else made("multiset", 0.6, (0.08,) * 3, 0.35))  # fmt: skip
    scores = single(series, 3) if name == "current" else combined(series, 3)
    stays = (name, form) == ("combined", "multiset")
    mechanism = SeriesEstimator(
        scores, series.retention, changes=0 if stays or name == "current" else 2
    )
    before = [2, 5, 10 if stays else 9, 16]
    history = drawn(series, [before, before, [2, 5, 10, 16]], seed=2)
    inside = history.keys % CELLS < 12
    g, spread = scores.of(history.counts[inside])
    copy = (history.keys[inside] // CELLS).astype(int)
    view = np.bincount(copy, g - scores.empty, RUNS).astype(float)
    spread = 12 + np.bincount(copy, spread, RUNS).astype(float)
    domain = np.full(RUNS, 12.0)
    value = mechanism.total(view, domain)
    off = mechanism.deviation(view, domain, spread, np.ones(RUNS), 0.1)
    assert proportion_at_least(int((np.abs(value - 3) <= off).sum()), RUNS, 0.9)
    assert abs(value.mean() - 3) <= mechanism.drift + 5 * value.std() / math.sqrt(RUNS)
    if name == "current":  # the stated variance is that of the estimates
        stated = mechanism.variance(np.full(RUNS, 3.0), spread).mean()
        assert stated == pytest.approx(value.var(), rel=0.2)
    # Noise that is larger than stated is not covered: the bound is not idle.
    tight = mechanism.deviation(view, domain, spread, np.ones(RUNS), 0.1) / 8
    assert not proportion_at_least(int((np.abs(value - 3) <= tight).sum()), RUNS, 0.9)
