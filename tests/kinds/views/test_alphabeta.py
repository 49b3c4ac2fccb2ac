"""The mechanism: what it publishes follows its law, and what it estimates is right."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.sampling import assert_fits, fits, proportion_at_least
from voile.answering.count_law import (
    Binomial,
    NegativeBinomial,
    first_true,
    probabilities,
    saddle_point,
)
from voile.engines.members import LocalMembers
from voile.errors import TableError
from voile.kinds.views.alphabeta import as_set
from voile.mechanisms import AlphaBeta
from voile.noise import Key
from voile.privacy import DGamma, Form, plan
from voile.schema import TupleIndex


def view(
    mechanism: AlphaBeta, index: TupleIndex, members: npt.NDArray[Any], seed: int
) -> npt.NDArray[Any]:
    """The published keys of a table given as keys, in one range."""
    key = Key.from_seed(seed)
    noise = mechanism.noise_rows(index, key, 0, 0, index.limbs[0].size)
    return np.concatenate(list(mechanism.view(np.sort(members), noise, key, 0)))


def published_counts(mechanism: AlphaBeta, copies: int, size: int, seed: int) -> Any:
    """How often each published count occurs when every tuple of D has `copies` records."""
    members = np.repeat(np.arange(size, dtype=np.uint64), copies)
    keys = view(mechanism, TupleIndex([size]), members, seed)
    return np.bincount(np.bincount(keys.astype(np.int64), minlength=size))


def law(mechanism: AlphaBeta, copies: int, most: int) -> Any:
    """P(published count = j) for a tuple with `copies` records, from SciPy's distributions."""
    j = np.arange(most)
    kept = stats.binom.pmf(j, copies, mechanism.retention)
    if mechanism.form == "set":
        noise = stats.binom.pmf(j, 1 - copies, mechanism.noise)
    else:
        noise = stats.geom.pmf(j + 1, 1 - mechanism.noise)
    return np.convolve(kept, noise)[:most]


@pytest.mark.parametrize(("form", "copies"), [("set", 0), ("set", 1)] + [
    ("multiset", c) for c in (0, 1, 2, 5)
])  # fmt: skip
def test_published_counts_follow_the_stated_law_and_no_other(form: Form, copies: int) -> None:
    mechanism = AlphaBeta(0.6, 0.15, form)
    counts = published_counts(mechanism, copies, 200_000, seed=copies + 1)
    assert_fits(counts, law(mechanism, copies, len(counts)))
    for wrong in (
        AlphaBeta(0.6 * 1.06, 0.15, form) if copies else AlphaBeta(0.6, 0.15 * 1.06, form),
        AlphaBeta(0.6 * 0.94, 0.15, form) if copies else AlphaBeta(0.6, 0.15 * 0.94, form),
    ):
        assert not fits(counts, law(wrong, copies, len(counts)))


def test_audit_on_neighbouring_tables() -> None:
    """The likelihood ratio measured on samples stays within [1−a, R], and too little noise shows.

    Clopper–Pearson bounds at 10⁻⁶ each: a rejection means something.
    """
    promise = DGamma(0.05, 0.4)
    planned = plan(promise, "multiset", retention=0.5)
    size = 300_000

    def lower_bound(mechanism: AlphaBeta) -> float:
        """A lower confidence bound on the largest likelihood ratio of one record."""
        without = published_counts(mechanism, 0, size, seed=21)
        with_it = published_counts(mechanism, 1, size, seed=22)
        ratios = []
        for j in range(min(len(without), len(with_it), 4)):
            low = stats.beta.ppf(1e-6, with_it[j], size - with_it[j] + 1)
            high = stats.beta.ppf(1 - 1e-6, without[j] + 1, size - without[j])
            ratios.append(low / high)
        return float(max(ratios))

    allowed = float(promise.ratio_high)
    honest = AlphaBeta(planned.retention, planned.noise)
    assert 0.9 * allowed < lower_bound(honest) <= allowed
    assert lower_bound(AlphaBeta(planned.retention, planned.noise * 0.7)) > allowed


def test_no_perturbation_publishes_the_table() -> None:
    index = TupleIndex([5, 7])
    members = np.sort(np.random.default_rng(0).integers(0, 35, 1000).astype(np.uint64))
    assert (view(AlphaBeta(1.0, 0.0), index, members, 1) == members).all()


def test_the_view_is_in_the_order_of_the_domain() -> None:
    index = TupleIndex([100, 100])
    members = np.random.default_rng(0).integers(0, 10_000, 3000).astype(np.uint64)
    for form in ("set", "multiset"):
        rows = view(AlphaBeta(0.5, 0.1, form), index, np.unique(members), 1)
        assert (np.sort(rows) == rows).all()
        if form == "set":
            assert len(np.unique(rows)) == len(rows)


def test_members_in_chunks_are_merged_as_if_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    index = TupleIndex([1000])
    members = np.random.default_rng(0).integers(0, 1000, 5000).astype(np.uint64)
    mechanism = AlphaBeta(0.5, 0.3)
    key = Key.from_seed(3)
    noise = mechanism.noise_rows(index, key, 0, 0, 1000)
    for chunk in (7, 1000):
        monkeypatch.setattr("voile.kinds.views.alphabeta.CHUNK", chunk)
        rows = np.concatenate(list(mechanism.view(np.sort(members), noise, key, 0)))
        assert (np.sort(rows) == rows).all()
        counts = np.bincount(rows.astype(int), minlength=1000)
        noise_counts = np.bincount(noise.astype(int), minlength=1000)
        copies = np.bincount(members.astype(int), minlength=1000)
        assert (counts >= noise_counts).all()
        assert (counts <= noise_counts + copies).all()
        assert abs((counts - noise_counts).sum() - 2500) < 6 * math.sqrt(1250)


def test_several_words_publish_like_one() -> None:
    """A domain cut into words (by attributes too large for one) obeys the same law."""
    sizes = [2**40, 2**40]
    index = TupleIndex(sizes)
    assert len(index.limbs) == 2
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, size, 20_000) for size in sizes]
    mechanism = AlphaBeta(0.5, 5000 / 2.0**80)
    rows = view(mechanism, index, index.encode(codes), 5)
    expected = 0.5 * 20_000 + 5000
    assert abs(len(rows) - expected) < 6 * math.sqrt(20_000 / 4 + 5000)
    found = set(zip(*(c.tolist() for c in index.decode(rows)), strict=True))
    real = set(zip(*(c.tolist() for c in codes), strict=True))
    assert abs(len(found & real) - 10_000) < 6 * math.sqrt(5000)
    assert all(0 <= code < size for t in found for code, size in zip(t, sizes, strict=True))


def test_words_that_are_not_powers_of_two_hold_only_real_tuples() -> None:
    sizes = [3, 2**61, 5, 7, 11]
    index = TupleIndex(sizes)
    expected = 30_000
    mechanism = AlphaBeta(0.5, expected / math.prod(sizes))
    rows = view(mechanism, index, np.empty(0, dtype=index.key_type), 6)
    assert abs(len(rows) - expected) < 6 * math.sqrt(expected)
    for code, size in zip(index.decode(rows), sizes, strict=True):
        assert code.min() >= 0
        assert code.max() < size
        if size < 20:
            assert_fits(np.bincount(code, minlength=size), np.full(size, 1 / size))


def test_a_set_with_repetitions_is_refused() -> None:
    members = LocalMembers([5], np.array([1, 2, 2, 3, 3, 3], dtype=np.uint64))
    with pytest.raises(TableError, match="3 of 6 rows repeat"):
        as_set(members, drop_repetitions=False)
    assert as_set(members, drop_repetitions=True).keys.tolist() == [1, 2, 3]


@pytest.mark.parametrize("wrong", [(0, 0.1), (1.1, 0.1), (0.5, 1.0), (0.5, -0.1)])
def test_impossible_parameters_are_not_constructed(wrong: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        AlphaBeta(*wrong)
    with pytest.raises(ValueError, match="must be below retention"):
        AlphaBeta(0.1, 0.2, "set")


# ---------------------------------------------------------------------- estimates


def test_estimates_and_variances_of_the_oracle(oracle: dict[str, Any]) -> None:
    given_ = oracle["estimator.examples"]
    beta = given_["inputs"]["beta"]
    mechanism = AlphaBeta(given_["inputs"]["alpha"] + beta, beta, "set")
    for example in given_["expected"]:
        estimate = mechanism.estimate(example["n_V"], example["n_D"])
        assert estimate.value == pytest.approx(example["estimate"], rel=1e-10)
        variance = mechanism.variance(example["true_Q"], example["n_D"])
        assert variance == pytest.approx(example["variance"], rel=1e-10)


def test_intervals_of_the_oracle(oracle: dict[str, Any]) -> None:
    given_ = oracle["ci.examples"]
    beta = given_["inputs"]["beta"]
    mechanism = AlphaBeta(given_["inputs"]["alpha"] + beta, beta, "set")
    for example in given_["expected"]:
        estimate = mechanism.estimate(example["n_V"], example["n_D"])
        assert list(estimate.interval(0.95)) == example["exact95_int"]


def test_theorem_4_4_on_adult(oracle: dict[str, Any]) -> None:
    expected = oracle["errata.rho_adult"]["expected"]
    tight = oracle["params.adult"]["expected"]["tight"]
    mechanism = AlphaBeta(0.5, tight["beta"], "set")
    for epsilon in (0.05, 0.01):
        bound = mechanism.utility(30162, 648023040, epsilon)
        # The oracle's noise variance is β; ours is β(1−β).
        assert bound.rho == pytest.approx(expected[str(epsilon)]["rho_tight_2(r+1)"], rel=1e-3)
        assert bound.error == pytest.approx(bound.rho * math.sqrt(30162))


def tail_of_sum(kept: Binomial, noise: Binomial, limit: float) -> float:
    """P(|kept + noise − mean| ≥ limit)."""
    first, chances = probabilities(kept)
    start, others = probabilities(noise)
    law_of_sum = np.convolve(chances, others)
    off = first + start + np.arange(len(law_of_sum)) - kept.mean - noise.mean
    return float(law_of_sum[np.abs(off) >= limit].sum())


def test_theorem_4_4_against_the_exact_tail(oracle: dict[str, Any]) -> None:
    """The chance of an error of ρ√n or more, by our law of a published count, is the oracle's.

    It is below ε from n = 100 on; the theorem's Gaussian form fails for the tiniest tables.
    """
    for case in oracle["errata.thm44"]["expected"]:
        n, m, gamma = case["n"], case["m"], case["gamma"]
        prior = case["k"] * n / m
        tight = DGamma(prior, gamma).ratio_high
        beta = 0.5 / float(tight) if case["beta"] == "tight" else prior / gamma
        mechanism = AlphaBeta(0.5, beta, "set")
        if n > 100:
            continue  # a maximum over 30,163 values of x; only ρ is compared there, on Adult
        limit = case["rho"] * math.sqrt(n) * mechanism.excess
        tail = max(
            tail_of_sum(Binomial(x, 0.5), Binomial(m - x, beta), limit) for x in range(n + 1)
        )
        assert tail == pytest.approx(case["exact_tail"], rel=1e-6)
        assert (tail <= case["eps"]) == case["ok"]
        if n >= 100:
            assert case["ok"]
        assert mechanism.utility(n, m, case["eps"]).error <= case["rho"] * math.sqrt(n) * 1.001


@pytest.mark.parametrize("form", ["set", "multiset"])
@pytest.mark.parametrize("seed", range(4))
def test_random_schemas_tables_and_queries(form: Form, seed: int) -> None:
    """The whole mechanism, many times over: unbiased, and intervals that cover.

    Queries are arbitrary subsets of D. Bounds are five standard errors and 10⁻⁶.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 8, rng.integers(1, 4)).tolist()
    index, size, trials = TupleIndex(sizes), math.prod(sizes), 800
    members = rng.integers(0, size, rng.integers(1, 200)).astype(np.uint64)
    members = np.unique(members) if form == "set" else np.sort(members)
    mechanism = AlphaBeta(rng.uniform(0.3, 0.95), rng.uniform(0.01, 0.25), form)
    queries = rng.random((4, size)) < rng.random((4, 1))
    truth = queries @ np.bincount(members.astype(int), minlength=size)
    seen = np.array(
        [
            queries @ np.bincount(view(mechanism, index, members, 1000 * seed + t).astype(int),
                                  minlength=size)
            for t in range(trials)
        ]
    )  # fmt: skip
    for q, domain in enumerate(queries.sum(axis=1)):
        answers = {n: mechanism.estimate(int(n), int(domain)) for n in np.unique(seen[:, q])}
        values = np.array([answers[n].value for n in seen[:, q]])
        sigma = math.sqrt(mechanism.variance(truth[q], domain))
        assert abs(values.mean() - truth[q]) <= 5 * sigma / math.sqrt(trials)
        covers = {n: a.interval(0.9)[0] <= truth[q] <= a.interval(0.9)[1]
                  for n, a in answers.items()}  # fmt: skip
        assert proportion_at_least(sum(covers[n] for n in seen[:, q]), trials, 0.9)


@pytest.mark.parametrize("form", ["set", "multiset"])
@pytest.mark.parametrize(
    ("truth", "domain"), [(0, 1), (1, 1), (2, 100), (0, 30), (40, 60), (300, 5000)]
)
def test_unbiased_with_the_stated_variance_and_coverage(
    form: Form, truth: int, domain: int
) -> None:
    """Counts drawn from SciPy's laws: mean, variance and coverage, tiny counts included."""
    mechanism = AlphaBeta(0.6, 0.05, form)
    rng = np.random.default_rng(truth * 1000 + domain)
    trials = 20_000
    kept = rng.binomial(truth, mechanism.retention, trials)
    if form == "set":
        noise = rng.binomial(domain - truth, mechanism.noise, trials)
    else:
        noise = rng.negative_binomial(domain, 1 - mechanism.noise, trials)
    seen, often = np.unique(kept + noise, return_counts=True)
    answers = [mechanism.estimate(int(count), domain) for count in seen]
    values = np.repeat([answer.value for answer in answers], often)
    variance = mechanism.variance(truth, domain)
    # Five standard errors: a false alarm once in two million.
    assert abs(values.mean() - truth) < 5 * math.sqrt(variance / trials)
    if variance:
        spread = np.sqrt(((values - truth) ** 4).mean() - variance**2)
        assert abs(((values - truth) ** 2).mean() - variance) < 5 * spread / math.sqrt(trials)
    for confidence in (0.8, 0.95):
        intervals = [answer.interval(confidence) for answer in answers]
        covered = [low <= truth <= high for low, high in intervals]
        assert proportion_at_least(int(often[covered].sum()), trials, confidence)


def test_intervals_are_not_needlessly_wide() -> None:
    mechanism = AlphaBeta(0.5, 0.00093, "set")
    estimate = mechanism.estimate(9100, 9_000_320)
    low, high = estimate.interval(0.95)
    assert high - low < 1.02 * 2 * 1.96 * estimate.stderr


def test_interval_widens_with_confidence_and_stays_possible() -> None:
    mechanism = AlphaBeta(0.6, 0.05)
    estimate = mechanism.estimate(4, 100, rows=7)
    widths = []
    for confidence in (0.5, 0.9, 0.99, 0.999999):
        low, high = estimate.interval(confidence)
        assert 0 <= low <= high <= 7
        widths.append(high - low)
    assert widths == sorted(widths)


def test_no_noise_gives_the_count_itself() -> None:
    estimate = AlphaBeta(1.0, 0.0).estimate(17, 1000)
    assert estimate.value == 17
    assert estimate.stderr == 0
    assert estimate.interval(0.99) == (17, 17)


def test_huge_domains_do_not_overflow() -> None:
    mechanism = AlphaBeta(0.9, 1e-60)
    estimate = mechanism.estimate(1000, 10**62)
    assert estimate.value == pytest.approx((1000 - 100) / 0.9)
    low, high = estimate.interval(0.95)
    assert low < estimate.value < high
    assert high - low < 6 * estimate.stderr


@given(st.integers(0, 3000), st.floats(0.01, 0.99))
def test_binomial_probabilities_equal_scipys(trials: int, chance: float) -> None:
    first, made = probabilities(Binomial(trials, chance))
    truth = stats.binom.pmf(np.arange(first, first + len(made)), trials, chance)
    assert np.abs(made - truth).max() < 1e-11
    assert 1 - truth.sum() < 1e-11


@given(st.integers(1, 3000), st.floats(0.001, 0.9))
def test_negative_binomial_probabilities_equal_scipys(cells: int, q: float) -> None:
    first, made = probabilities(NegativeBinomial(cells, q))
    truth = stats.nbinom.pmf(np.arange(first, first + len(made)), cells, 1 - q)
    assert np.abs(made - truth).max() < 1e-11
    assert 1 - truth.sum() < 1e-9


@pytest.mark.parametrize("point", [0.9, 0.97, 1.0, 1.02, 1.1])
def test_saddle_point_equals_the_exact_sum(point: float) -> None:
    """At variances a thousand times smaller than where it is used, it is right to 10⁻⁴."""
    kept, noise = Binomial(4000, 0.6), NegativeBinomial(20_000, 0.1)
    seen = round(point * (kept.mean + noise.mean))
    j = np.arange(4001)
    exact = float(
        (stats.binom.pmf(j, 4000, 0.6) * stats.nbinom.sf(seen - 1 - j, 20_000, 0.9)).sum()
    )
    assert saddle_point(kept, noise, seen, "at least") == pytest.approx(exact, rel=1e-4, abs=1e-12)


@pytest.mark.parametrize("cells", [1e9, 1e12, 1e15])
@pytest.mark.parametrize("q", [1e-4, 4e-3, 0.5])
def test_saddle_point_is_a_smooth_probability_at_any_size(cells: float, q: float) -> None:
    kept, noise = Binomial(1000, 0.9), NegativeBinomial(cells, q)
    deviation = math.sqrt(noise.variance)
    steps = np.linspace(-3, 3, 601)
    chances = [
        saddle_point(kept, noise, round(kept.mean + noise.mean + z * deviation), "at least")
        for z in steps
    ]
    assert np.abs(np.array(chances) - stats.norm.sf(steps)).max() < 2e-3
    assert (np.diff(chances) < 0).all()


@given(st.integers(0, 500), st.floats(-100, 700), st.integers(0, 500))
def test_first_true_finds_the_turn(turn: int, guess: float, largest: int) -> None:
    found = first_true(lambda x: x >= turn, guess, 0, largest)
    assert found == min(turn, largest)
