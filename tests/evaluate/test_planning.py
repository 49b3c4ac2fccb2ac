"""Plans before publishing: what they foresee comes true, forwards and backwards."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.signal import fftconvolve

from tests.support.running import voile
from voile.arrays import Floats
from voile.cli import app
from voile.errors import PromiseError, TableError, UsageError, VoileError
from voile.evaluate.planning import foresight
from voile.evaluate.planning.expected import (
    EXACT_BELOW,
    MEAN_OF_ABSOLUTE,
    PlannedSelections,
    affordable_order,
    expected_errors,
    normal_errors,
)
from voile.evaluate.planning.foresight import plan_table
from voile.evaluate.planning.strongest import PromiseSearch, halved, round_off
from voile.mechanisms import AlphaBeta
from voile.privacy import DGamma, plan
from voile.publishing import publish_table
from voile.schema import TupleIndex

ADULT = "dataset:adult/boundary"
NORMAL_1E_6 = 4.9
"""A normal variable is farther from its mean, in standard deviations, once in a million."""
SD_OF_ABSOLUTE = math.sqrt(1 - 2 / math.pi)


def write_people(folder: Path, rows: int = 600) -> str:
    rng = np.random.default_rng(5)
    path = folder / "people.csv"
    ages = rng.integers(0, 20, rows)
    towns = rng.choice(["north", "south", "west"], rows, p=[0.6, 0.3, 0.1])
    sick = rng.integers(0, 2, rows)
    lines = [f"{a},{t},{s}" for a, t, s in zip(ages, towns, sick, strict=True)]
    path.write_text("\n".join(["age,town,sick", *lines]) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_people(tmp_path_factory.mktemp("planning"))


def small(people: str, **options: Any) -> foresight.Foresight:
    return plan_table(people, **({"prior": 0.05, "posterior": 0.4} | options))


# ---------------------------------------------------------------------- the law of a count

QUARTERS = [Fraction(1, 4), Fraction(1, 2), Fraction(7, 8)]


def added(left: list[Any], right: list[Any]) -> list[Any]:
    """The law of a sum of two independent counts, as long as the left one's."""
    return [
        sum(left[i] * right[k - i] for i in range(max(0, k - len(right) + 1), k + 1))
        for k in range(len(left))
    ]


def coin_by_coin(form: str, a: Any, noise: Any, truth: int, domain: int, most: int) -> list[Any]:
    """P(n_V = k) for k < most, one coin or one tuple's noise after the other."""
    law = [a * 0 + 1] + [a * 0] * (most - 1)
    for _ in range(truth):
        law = added(law, [1 - a, a])
    for _ in range(domain - (truth if form == "set" else 0)):
        geometric = [(1 - noise) * noise**j for j in range(most)]
        law = added(law, [1 - noise, noise] if form == "set" else geometric)
    return law


def mean_error(form: str, a: Any, noise: Any, truth: int, domain: int, most: int = 60) -> Any:
    """E|estimate − truth| by its definition."""
    law = coin_by_coin(form, a, noise, truth, domain, most)
    excess, each = (a - noise, noise) if form == "set" else (a, noise / (1 - noise))
    return sum(p * abs((k - each * domain) / excess - truth) for k, p in enumerate(law))


@pytest.mark.parametrize("form", ["multiset", "set"])
@pytest.mark.parametrize("a", QUARTERS)
@pytest.mark.parametrize("noise", [Fraction(1, 100), Fraction(1, 5)])
def test_expected_errors_are_those_of_the_law(
    form: Literal["multiset", "set"], a: Fraction, noise: Fraction
) -> None:
    """Exact fractions, all coins one by one; (1/5)⁵⁰ of the noise is beyond the sixty points."""
    cases = [(x, n) for n in (1, 2, 4) for x in range(4) if form == "multiset" or x <= n]
    truth, domain = np.array(cases, float).T
    found = expected_errors(AlphaBeta(float(a), float(noise), form), truth, domain)
    wanted = [float(mean_error(form, a, noise, x, n)) for x, n in cases]
    assert found == pytest.approx(wanted, rel=1e-9)


def test_expected_errors_at_the_ends() -> None:
    one = np.ones(1)
    assert expected_errors(AlphaBeta(1.0, 0.0), one, one) == [0]
    assert expected_errors(AlphaBeta(0.5, 0.0), one, one) == pytest.approx([1])
    assert expected_errors(AlphaBeta(0.5, 0.25), 0 * one, 0 * one) == [0]
    # Noise on very many tuples has Poisson's law, of mean 1: E|N − 1| = 2/e.
    far = expected_errors(AlphaBeta(1.0, 1e-30), 0 * one, 1e30 * one)
    assert far == pytest.approx([2 / math.e])
    # And on one tuple that is hardly ever hit, twice the chance of that.
    assert expected_errors(AlphaBeta(1.0, 1e-25), 0 * one, one) == pytest.approx([2e-25])


@pytest.mark.parametrize("form", ["multiset", "set"])
def test_the_formula_for_large_deviations_is_near_the_law(
    form: Literal["multiset", "set"],
) -> None:
    """From 4 rows on: within 0.03 %, or within 1 % where few tuples have much noise each."""
    rng = np.random.default_rng(3)
    off: dict[bool, list[float]] = {False: [], True: []}
    normal_off = []
    for _ in range(200):
        a = 1 - 10 ** rng.uniform(-3, -0.1)
        noise = rng.uniform(0.001, 0.95 if form == "multiset" else 0.9 * a)
        domain = float(round(10 ** rng.uniform(0, 4)))
        most = domain if form == "set" else 2000
        truth = float(round(min(most, rng.choice([0, 1, 20, 300, 2000]))))
        mechanism = AlphaBeta(a, noise, form)
        case = np.array([truth]), np.array([domain])
        deviation = float(np.sqrt(mechanism.variance(*case))[0]) * mechanism.excess
        if not EXACT_BELOW <= deviation < 12:
            continue
        (found,) = expected_errors(mechanism, *case)
        wanted = by_convolution(mechanism, truth, domain)
        few = form == "multiset" and domain <= 10
        off[few].append(abs(found / wanted - 1))
        normal_off.append(abs(float(normal_errors(mechanism, *case)[0]) / wanted - 1))
    assert len(off[False]) > 15
    assert max(off[False]) < 3e-4
    assert max(off[True], default=0) < 1e-2
    assert max(normal_off) < 0.1
    assert max(normal_off) > 1e-3


def by_convolution(mechanism: AlphaBeta, truth: float, domain: float) -> float:
    places = np.arange(12000)
    kept = stats.binom.pmf(places, truth, mechanism.retention)
    if mechanism.form == "set":
        noise = stats.binom.pmf(places, domain - truth, mechanism.noise)
    else:
        noise = stats.nbinom.pmf(places, domain, 1 - mechanism.noise)
    law = np.maximum(fftconvolve(kept, noise), 0)
    mean = mechanism.excess * truth + mechanism.noise_mean * domain
    return float(law @ np.abs(np.arange(len(law)) - mean)) / mechanism.excess


# ---------------------------------------------------------------------- monotone


@pytest.mark.parametrize("form", ["multiset", "set"])
def test_a_narrower_likelihood_ratio_has_a_larger_error(
    form: Literal["multiset", "set"],
) -> None:
    """docs/mathematics, section 17, in exact fractions; elsewhere either may be larger."""
    noises = [Fraction(1, 50), Fraction(1, 10), Fraction(1, 5)]
    known = {
        (a, noise): (
            AlphaBeta(float(a), float(noise), form).likelihood_ratio(),
            [mean_error(form, a, noise, x, n, 40) for x, n in [(0, 1), (1, 1), (1, 3), (2, 3)]],
        )
        for a in QUARTERS
        for noise in noises
    }
    nested = others = 0
    for wide, errors in known.values():
        for narrow, larger in known.values():
            assert wide.high is not None
            assert narrow.high is not None
            if wide.low <= narrow.low and narrow.high <= wide.high:
                nested += 1
                assert all(
                    x <= y + Fraction(1, 10**15) for x, y in zip(errors, larger, strict=True)
                )
            else:
                others += any(x > y for x, y in zip(errors, larger, strict=True))
    assert nested > len(known)
    assert others > 0


@pytest.mark.parametrize("adversary", ["independent", "exclusive"])
@pytest.mark.parametrize("form", ["multiset", "set"])
@pytest.mark.parametrize("more", [{}, {"retention": 0.3}, {"max_view_ratio": 5.0}], ids=str)
def test_a_weaker_promise_has_a_wider_likelihood_ratio(
    adversary: Any, form: Literal["multiset", "set"], more: dict[str, Any]
) -> None:
    def bounds(prior: float, posterior: float) -> tuple[float, float]:
        made = plan(DGamma(prior, posterior, adversary), form, domain_ratio=Fraction(100), **more)
        ratio = AlphaBeta(made.retention, made.noise, form).likelihood_ratio()
        assert ratio.high is not None
        return float(ratio.low), float(ratio.high)

    priors, posteriors = np.geomspace(1e-6, 0.3, 40), np.linspace(0.31, 0.99, 40)
    for line in ([bounds(0.01, g) for g in posteriors], [bounds(d, 0.5) for d in priors[::-1]]):
        lows, highs = np.array(line).T
        assert (np.diff(lows) <= 1e-12 * lows[1:]).all()
        assert (np.diff(highs) >= -1e-12 * highs[1:]).all()
        assert highs[-1] > 1.5 * highs[0]


@pytest.mark.parametrize("on", [[], ["select age, town, count(*) from people group by age, town"]])
def test_computed_errors_fall_on_a_fine_scan(people: str, on: list[str]) -> None:
    """Through the change from sums to the formula, and whatever the mean's distance to integers."""
    ground = small(people, on=on).ground
    errors = np.array([ground.error(0.05, g) for g in np.linspace(0.06, 0.99, 200)])
    assert (np.diff(errors) <= 2e-4 * errors[1:]).all()
    assert errors[0] > 10 * errors[-1]


def test_what_a_search_finds_was_tried_itself() -> None:
    """Errors that fall and rise again: what comes out allows the wish all the same."""
    tried: dict[float, float] = {}

    def made(number: float) -> Any:
        tried[number] = 10 - number + 0.4 * math.sin(60 * number)
        return SimpleNamespace(expected_error=tried[number])

    search = PromiseSearch(lambda x: round(x, 2), made, 9.0)
    for wished in np.linspace(1.5, 9.0, 40):
        found = search.strongest(0.0, wished)
        assert found is not None
        assert found.expected_error <= wished
        assert found.expected_error in tried.values()
    assert search.strongest(0.0, 0.3) is None
    assert search.least_error == tried[9.0]


# ---------------------------------------------------------------------- against the oracle


OPTIONS: dict[str, dict[str, Any]] = {
    "multiset": {"prior_factor": 10, "posterior": 0.2},
    "set": {"rows": "set", "distinct": True},
}


def by_size(found: foresight.Foresight, errors: Floats) -> list[float]:
    """Means over the selections that count 0, 100 and 1000 or more."""
    work = found.ground.workload
    assert isinstance(work, PlannedSelections)
    rows = [work.truth >= least for least in (0, 100, 1000)]
    return [float(np.average(errors[row], weights=work.often[row])) for row in rows]


@pytest.mark.parametrize("form", ["multiset", "set"])
def test_errors_of_all_selections_are_the_oracles(
    form: str, oracle: dict[str, dict[str, Any]]
) -> None:
    """The normal value is the oracle's; the exact one fits what its eight releases had."""
    check = oracle[f"fig3.ab_{form}_tight"]
    places = [check["inputs"]["xs"].index(least) for least in (0, 100, 1000)]
    theory, seen, spread = (
        [check["expected"][name][i] for i in places]
        for name in ("normal_theory", "mean_abs_error_Q>=x", "seed_sd")
    )
    options = OPTIONS[form]
    if form == "set":
        options = options | {"prior": oracle["params.adult"]["expected"]["d"]}
    found = plan_table(ADULT, retention=0.5, **options)
    work = found.ground.workload
    assert isinstance(work, PlannedSelections)
    normal = normal_errors(found.mechanism, work.truth, work.domain)
    assert by_size(found, normal) == pytest.approx(theory, rel=1e-9)
    means = [line.mean or 0 for line in found.errors]
    assert means == pytest.approx(theory, rel=2e-4)
    for mean, observed, deviation in zip(means, seen, spread, strict=True):
        assert abs(mean - observed) < 4 * deviation / math.sqrt(check["inputs"]["seeds"])
    assert found.expected_error == means[0]


def test_the_oracles_short_table(oracle: dict[str, dict[str, Any]]) -> None:
    found = plan_table(ADULT, prior_factor=10, posterior=0.2, retention=0.5)
    work = found.ground.workload
    assert isinstance(work, PlannedSelections)
    normal = by_size(found, normal_errors(found.mechanism, work.truth, work.domain))
    short = oracle["fig3.theory_multiset"]["expected"]
    wanted = [short[least][0] for least in ("0", "100", "1000")]
    assert normal == pytest.approx(wanted, rel=1e-9)
    assert [line.numbers for line in found.errors] == [304364, 4944, 546]


def test_the_plan_of_adult(oracle: dict[str, dict[str, Any]]) -> None:
    found = plan_table(ADULT, prior_factor=10, posterior=0.2, source=ADULT).to_dict()
    assert found["prior"] == pytest.approx(oracle["params.adult"]["expected"]["d"], rel=1e-12)
    # docs/mathematics, sections 6 and 12: errata's 6.2858, 0.991, and 41 rows for each row.
    assert found["epsilon"] == pytest.approx(6.2858, abs=1e-4)
    assert found["linked_posterior"] == pytest.approx(0.991, abs=5e-4)
    assert found["expected_rows"] / found["rows"] == pytest.approx(41, rel=1e-3)
    assert found["command"] == f"voile publish {ADULT} --prior-factor 10 --posterior 0.2"
    assert found["strongest"] is None
    assert found["limits"] == []
    assert "for the steward" in found["notes"][0]
    assert json.loads(json.dumps(found)) == found


# ---------------------------------------------------------------------- against releases


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A thousand rows in a million cells."""
    rows = np.random.default_rng(1).integers(0, 100, (1000, 3))
    path = tmp_path_factory.mktemp("sparse") / "sparse.csv"
    np.savetxt(path, rows, fmt="%d", delimiter=",", header="a,b,c", comments="")
    return str(path), {
        "attributes": [{"name": name, "kind": "integer", "range": [0, 99]} for name in "abc"]
    }


def test_errors_of_small_cells_come_true(sparse: tuple[str, dict[str, Any]]) -> None:
    """A release's mean over a million cells; the normal value is two thirds above it."""
    path, schema = sparse
    found = plan_table(path, schema=schema)
    release = publish_table(path, schema=schema, simulate_seed=0).release
    index = TupleIndex((100, 100, 100))
    table = index.decode(found.ground.prepared.members)
    view = release.to_pandas()[list("abc")].to_numpy().T
    errors = []
    for which in [w for k in (1, 2, 3) for w in combinations(range(3), k)]:
        cells, places = 100 ** len(which), 100.0 ** (3 - len(which))
        seen, truth = (
            np.bincount(sum(rows[c].astype(np.int64) * 100**i for i, c in enumerate(which)),
                        minlength=cells)
            for rows in (view, table)
        )  # fmt: skip
        errors.append(
            np.abs(found.mechanism.total(seen.astype(np.float64), np.full(cells, places)) - truth)
        )
    observed = float(np.concatenate(errors).mean())
    assert found.expected_error == pytest.approx(observed, rel=0.02)
    work = found.ground.workload
    assert isinstance(work, PlannedSelections)
    normal = normal_errors(found.mechanism, work.truth, work.domain)
    assert np.average(normal, weights=work.often) > 1.6 * observed


def test_a_rare_tuple_asks_for_no_weaker_promise(sparse: tuple[str, dict[str, Any]]) -> None:
    """One tuple with no record is off by its noise: 2q/a on average, while E N ≤ 1."""
    path, schema = sparse
    table = np.loadtxt(path, dtype=int, delimiter=",", skiprows=1)
    a = next(x for x in range(100) if not ((table == (x, 50, 7)).all(axis=1)).any())
    sql = f"select count(*) from t where a = {a} and b = 50 and c = 7"
    found = plan_table(path, schema=schema, prior=5e-4, posterior=0.2, on=[sql], max_error=0.01)
    mechanism = found.mechanism
    assert found.expected_error == pytest.approx(2 * mechanism.noise / mechanism.retention)
    assert found.expected_error == pytest.approx(0.0040, abs=5e-5)
    best = found.strongest
    assert best is not None
    assert best.smallest_posterior is not None
    assert best.smallest_posterior.promise.posterior < 0.2
    assert 0.0099 < best.smallest_posterior.expected_error <= 0.01


def test_errors_come_true_when_published_many_times(people: str) -> None:
    """Twenty releases, sixty cells each; a sound plan fails this with probability 10⁻⁶.

    Cells are independent, and their errors nearly normal. A plan that is 25 % off is caught.
    """
    sql = "select age, town, count(*) as c from people group by age, town"
    found = small(people, on=[sql])
    (line,) = found.errors
    assert line.numbers == 60
    counts = true_counts(found)
    errors = []
    for seed in range(20):
        release = publish_table(people, prior=0.05, posterior=0.4, simulate_seed=seed).release
        assert release.mechanism == found.mechanism
        values = [row["c"].value for row in release.query(sql).rows]
        errors += [abs(v - count) for v, count in zip(values, counts, strict=True)]
    spread = NORMAL_1E_6 * SD_OF_ABSOLUTE / MEAN_OF_ABSOLUTE / math.sqrt(len(errors))
    assert line.mean is not None
    assert float(np.mean(errors)) == pytest.approx(line.mean, rel=spread)
    assert spread < 0.125


def true_counts(found: foresight.Foresight) -> list[int]:
    """Of every age and town, in the order of the domain."""
    sizes = found.ground.prepared.schema.sizes
    age, town, _ = TupleIndex(sizes).decode(found.ground.prepared.members)
    counts = np.bincount(age.astype(np.int64) * sizes[1] + town, minlength=sizes[0] * sizes[1])
    return [int(count) for count in counts]


@pytest.mark.parametrize(
    "options",
    [{}, {"retention": 0.5}, {"prior_factor": 1.0}, {"adversary": "exclusive"},
     {"columns": ["age", "education", "sex", "native_country"], "prior": 0.01}],
    ids=str,
)  # fmt: skip
def test_sizes_come_true(options: dict[str, Any]) -> None:
    """Bytes within 10 %; rows within five standard deviations."""
    found = plan_table(ADULT, **options)
    manifest = publish_table(ADULT, simulate_seed=1, **options).release.manifest
    size = sum(file.bytes for file in manifest.files if file.path.endswith(".parquet"))
    assert found.size.bytes == pytest.approx(size, rel=0.1)
    spread = math.sqrt(found.mechanism.variance(found.rows, float(found.domain_size)))
    assert abs(manifest.rows - found.size.rows) < 5 * spread * found.mechanism.excess
    assert manifest.parameters.retention == found.mechanism.retention
    assert manifest.parameters.noise == found.mechanism.noise


def test_queries_have_the_errors_of_their_sums(people: str) -> None:
    """Counts by their law; else Σ w² by hand, over the table and over the domain."""
    found = small(
        people,
        on=["select count(*) from p where age < 5 and sick = 1", "select sum(age) from p"],
    )
    schema, members = found.ground.prepared.schema, found.ground.prepared.members
    age, _, sick = TupleIndex(schema.sizes).decode(members)
    mechanism = found.mechanism
    truth = np.array([float(((age < 5) & (sick == 1)).sum())])
    (count,) = expected_errors(mechanism, truth, np.array([5.0 * 3]))
    ages = np.arange(20.0)
    total = mechanism.variance(float((age.astype(float) ** 2).sum()), float((ages**2).sum() * 6))
    wanted = [count, MEAN_OF_ABSOLUTE * math.sqrt(total)]
    assert [line.mean for line in found.errors] == pytest.approx(wanted, rel=1e-9)
    assert found.expected_error == max(line.largest or 0 for line in found.errors)


def test_errors_in_per_cent_are_of_the_numbers_themselves(people: str) -> None:
    grouped = small(people, on=["select town, count(*) from t group by town"])
    truth = pd.read_csv(people)["town"].value_counts()
    one_by_one = [
        (small(people, on=[f"select count(*) from t where town = '{town}'"]).errors[0], count)
        for town, count in truth.items()
    ]
    shares = [(line.mean or 0) / count for line, count in one_by_one]
    assert [line.relative for line, _ in one_by_one] == pytest.approx(shares)
    assert grouped.errors[0].relative == pytest.approx(sum(shares) / len(shares))
    factor = grouped.prior_factor
    for points, own in ((grouped.by_posterior, 0.4), (grouped.by_prior_factor, factor)):
        (here,) = [point for point in points if point.at == own]
        assert here.relative == (grouped.errors[0].relative,)
    assert small(people, on=["select count(*) from t where 1 = 0"]).errors[0].relative is None


def test_all_selections_have_a_mean_in_per_cent(people: str) -> None:
    found = small(people)
    work = found.ground.workload
    assert isinstance(work, PlannedSelections)
    some = work.truth > 0
    shares = expected_errors(found.mechanism, work.truth, work.domain)[some] / work.truth[some]
    wanted = np.repeat(shares, work.often[some].astype(int)).mean()
    assert found.errors[0].relative == pytest.approx(wanted)
    at_least_100 = found.errors[1]
    assert (at_least_100.relative or 0) <= (at_least_100.largest or 0) / 100


def test_counts_over_a_sampled_domain_keep_the_normal_value() -> None:
    wide = {"attributes": [{"name": n, "kind": "integer", "range": [0, 1999]} for n in "pqrs"]}
    zeros = pd.DataFrame(np.zeros((200, 4), dtype=np.int64), columns=list("pqrs"))
    sql = "select count(*) from t where p * q + r * s < 10"
    found = plan_table(zeros, schema=wide, prior=1e-13, posterior=0.2, on=[sql])
    mechanism = found.mechanism
    # From the records alone, Binomial(200, a); what the domain's noise adds is more than that.
    (kept,) = expected_errors(mechanism, np.array([200.0]), np.zeros(1))
    assert kept < found.expected_error < math.inf


def test_an_average_that_noise_drowns_is_said_to_be_so(people: str) -> None:
    found = small(people, prior=0.395, on=["select town, avg(age) from p group by town"])
    (line,) = found.errors
    assert line.unbounded > 0
    assert found.to_dict()["expected_error"] is None
    assert found.expected_error == math.inf


def test_an_average_of_no_rows_has_no_error(people: str) -> None:
    found = small(people, on=["select avg(age) from p where age < 0"])
    assert (found.errors[0].mean, found.errors[0].unbounded) == (None, 0)
    assert found.to_dict()["expected_error"] is None
    with pytest.raises(UsageError, match="nothing that could be off"):
        small(people, on=["select avg(age) from p where age < 0"], max_error=1.0)


def test_without_noise_nothing_is_off(people: str) -> None:
    found = small(people, on=["select count(*), avg(age), median(age) from p"])
    errors = found.ground.workload.errors(AlphaBeta(1.0, 0.0))
    assert [line.largest for line in errors] == [0, 0, 0]


# ---------------------------------------------------------------------- curves


@pytest.mark.parametrize("adversary", ["independent", "exclusive"])
@pytest.mark.parametrize("more", [{}, {"max_view_ratio": 3.0}, {"rows": "set", "distinct": True}])
def test_a_weaker_promise_has_a_smaller_error(
    people: str, adversary: str, more: dict[str, Any]
) -> None:
    found = small(people, adversary=adversary, posterior=0.6, **more)
    by_posterior = [point.expected_error for point in found.by_posterior]
    by_factor = [point.expected_error for point in found.by_prior_factor]
    assert len(by_posterior) > 10
    assert len(by_factor) > 10
    assert by_posterior == sorted(by_posterior, reverse=True)
    assert by_factor == sorted(by_factor)
    assert found.expected_error in by_posterior
    assert min(by_factor, key=lambda e: abs(e - found.expected_error)) == pytest.approx(
        found.expected_error
    )


# ---------------------------------------------------------------------- backwards


@pytest.mark.parametrize("adversary", ["independent", "exclusive"])
@pytest.mark.parametrize("on", [[], ["select town, count(*) from people group by town"]])
def test_backwards_undoes_forwards(people: str, adversary: str, on: list[str]) -> None:
    """The error of a promise, wished for, gives the promise back: to the digits that are told."""
    options: dict[str, Any] = {"prior_factor": 1.0, "posterior": 0.3, "adversary": adversary}
    options |= {"schema": wide_schema(), "on": on}
    error = plan_table(people, **options).expected_error
    found = plan_table(people, max_error=error * (1 + 1e-9), **options).strongest
    assert found is not None
    assert found.smallest_posterior is not None
    assert found.largest_prior is not None
    assert found.smallest_posterior.promise.posterior == pytest.approx(0.3, rel=2e-3)
    assert found.largest_prior.prior_factor == pytest.approx(1.0, rel=2e-3)
    for best in (found.smallest_posterior, found.largest_prior):
        assert best.expected_error <= error * (1 + 1e-9)
        assert best.expected_error == pytest.approx(error, rel=5e-3)


def wide_schema() -> dict[str, Any]:
    return {
        "attributes": [
            {"name": "age", "kind": "integer", "range": [0, 99]},
            {"name": "town", "kind": "categorical", "values": ["east", "north", "south", "west"]},
            {"name": "sick", "kind": "integer", "range": [0, 9]},
        ]
    }


@pytest.mark.parametrize("wished", [2.0, 5.0, 15.0])
def test_nothing_stronger_allows_the_error(people: str, wished: float) -> None:
    found = plan_table(people, schema=wide_schema(), max_error=wished, prior=0.2, posterior=0.5)
    best, ground = found.strongest, found.ground
    assert best is not None
    if best.smallest_posterior:
        posterior = best.smallest_posterior.promise.posterior
        assert ground.error(0.2, posterior) <= wished
        assert ground.error(0.2, posterior * 0.998) > wished
    if best.largest_prior:
        prior = best.largest_prior.promise.prior
        assert ground.error(prior, 0.5) <= wished
        assert ground.error(prior * 1.002, 0.5) > wished
    assert best.smallest_posterior or best.largest_prior


def test_the_line_that_is_printed_publishes(people: str, tmp_path: Path) -> None:
    found = plan_table(
        people,
        source=people,
        columns=["age", "town"],
        prior_factor=0.02,
        posterior=0.3,
        max_error=40.0,
    )
    best = found.strongest
    assert best is not None
    assert best.smallest_posterior is not None
    line = found.command(best.smallest_posterior.options)
    target = tmp_path / "made.voile"
    done = run([*shlex.split(line)[1:], "-o", str(target), "--json"])
    assert done.returncode == 0, done.stderr
    parameters = json.loads(done.stdout)["parameters"]
    assert parameters["retention"] == best.smallest_posterior.mechanism.retention
    assert parameters["noise"] == best.smallest_posterior.mechanism.noise


def test_a_command_has_all_that_was_asked(people: str) -> None:
    found = small(
        people, source="a b.csv", rows="set", distinct=True, nulls="drop", retention=0.5,
        adversary="exclusive", columns=["age", "town"], posterior=0.7, null_text=("?", "n a"),
    )  # fmt: skip
    assert found.to_dict()["command"] == (
        "voile publish 'a b.csv' --prior 0.05 --posterior 0.7 --adversary exclusive "
        "--retention 0.5 --columns age,town --rows set --distinct --nulls drop "
        "--null-text '?' --null-text 'n a'"
    )


def test_where_nothing_works_it_says_so_with_the_theorems(people: str) -> None:
    with pytest.raises(PromiseError) as refusal:
        small(people, max_error=1e-6)
    assert "below what αβ can have on this table" in refusal.value.message
    assert "Theorem 2.6" in refusal.value.message
    assert "no constant is known" in refusal.value.message
    nearest = float(refusal.value.hint.split("max_error=")[1].split(",")[0])
    again = small(people, max_error=nearest).strongest
    assert again is not None
    assert again.smallest_posterior or again.largest_prior


def test_a_promise_beyond_the_boundary_is_named(tmp_path: Path) -> None:
    """Two columns of a million values: priors of 10 % cannot be kept below 20 % by anything."""
    path = tmp_path / "far.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i * 31 % 1000}\n" for i in range(100)))
    whole = [{"name": name, "kind": "integer", "range": [0, 10**5]} for name in "ab"]
    far: dict[str, Any] = {
        "schema": {"attributes": whole},
        "posterior": 0.2,
        "on": ["select count(*) from t"],
    }
    found = plan_table(path, prior=0.04, **far)
    assert found.limits[0].theorem.startswith("VLDB 2007, Theorem 3.3")
    assert plan_table(path, prior=1e-6, **far).limits == ()
    exclusive = plan_table(path, prior=1e-6, adversary="exclusive", **far)
    assert [limit.theorem for limit in exclusive.limits] == ["VLDB 2007, Theorem 6.6"]


def test_arbitrary_correlations_are_refused_with_the_theorem(people: str) -> None:
    with pytest.raises(PromiseError, match=r"Theorem 6\.1"):
        small(people, adversary="arbitrary")


def test_halving_and_rounding() -> None:
    assert halved(0.0, 10.0, lambda x: x >= 3) == pytest.approx(3)
    assert halved(10.0, 0.0, lambda x: x <= 3) == pytest.approx(3)
    assert round_off(0.123456, math.ceil) == 0.1235
    assert round_off(0.123456, math.floor) == 0.1234
    assert round_off(98765.4, math.ceil) == 98770
    assert round_off(2.0, math.floor) == 2.0


def test_orders_that_can_be_counted() -> None:
    for sizes in [(72, 7, 16, 7), (3000, 3000, 3), (10**6, 10**6), (5, 4), (2000, 2000, 2000)]:
        cells = [
            sum(math.prod(s) for k in range(1, order + 1) for s in combinations(sizes, k))
            for order in (1, 2, 3)
        ]
        wanted = max(i + 1 for i, count in enumerate(cells) if count <= 5_000_000)
        assert affordable_order(sizes) == wanted
    with pytest.raises(UsageError, match="too many to foresee"):
        affordable_order((10**9, 2))


# ---------------------------------------------------------------------- the command line


def run(arguments: list[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return voile(*arguments, cwd=folder)


def test_what_a_steward_sees(people: str) -> None:
    done = run(["plan", people, "--prior", "0.05", "--posterior", "0.4", "--max-error", "5"])
    assert done.returncode == 0, done.stderr
    for words in ("retention", "expected error", "selections that count 100 or more", "smallest γ"):
        assert words in done.stdout
    assert "for the steward, not for publication" in done.stderr.replace("\n", " ")
    assert done.stdout.splitlines()[-1].startswith("voile publish ")


def test_pictures(people: str, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    from voile.evaluate.pages import write_report
    from voile.evaluate.planning import plot
    from voile.evaluate.planning.boundary import boundary_of, draw
    from voile.evaluate.planning.page import boundary_report, plan_report

    path = tmp_path / "plan.svg"
    sql = "select town, count(*), avg(age) from p group by town"
    found = small(people, on=[sql, sql], max_error=50)
    drawn = (lambda: plan_report(found)), (lambda: plot.draw(found))
    write_report(path, *drawn, overwrite=False)
    picture = path.read_text()
    assert picture.startswith("<svg")
    assert "not for publication" in picture
    assert "requested: 50" in picture
    with pytest.raises(UsageError, match="exists already"):
        write_report(path, *drawn, overwrite=False)
    plane = boundary_of(people)
    both = (lambda: boundary_report(plane, "voile plan people")), (lambda: draw(plane))
    write_report(tmp_path / "boundary.html", *both, overwrite=False)
    page = (tmp_path / "boundary.html").read_text()
    assert "excluded: d ≥ γ" in page
    assert 'src="http' not in page


@pytest.mark.parametrize(
    ("wrong", "kind", "words"),
    [
        ({"max_error": 0.0}, UsageError, "max_error=0.0 must be above 0"),
        ({"max_error": math.nan}, UsageError, "max_error=nan"),
        ({"on": ["select age from p"]}, UsageError, "age"),
        ({"on": ["select count(*) from p where hight > 3"]}, UsageError, "hight"),
        ({"prior_factor": 3.0}, UsageError, "prior= and prior_factor= were both given"),
        ({"posterior": 1.5}, UsageError, "posterior γ = 1.5"),
        ({"prior": 0.5}, PromiseError, "prior d = 0.5 is not below posterior"),
        ({"retention": 0.99}, PromiseError, "retention 0.99 is too large"),
        ({"adversary": "nosy"}, UsageError, "adversary='nosy' is not known"),
        ({"columns": ["age", "hight"]}, UsageError, "no column 'hight'"),
        ({"rows": "set"}, TableError, "repeat another row"),
        ({"noise_prior": "product"}, UsageError, "noise that has a shape"),
        ({"depth": 3}, UsageError, "there is no option 'depth'"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_wishes_are_refused(
    people: str, wrong: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(VoileError) as refusal:
        small(people, **wrong)
    assert words in refusal.value.message
    assert refusal.value.hint
    assert refusal.value.exit_code == (2 if kind is UsageError else 1)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["plan", "nowhere.csv"], 2, "nowhere.csv"),
        (["plan", "PEOPLE", "-o", "plan.bmp"], 2, "ends in .bmp"),
        (["plan", "PEOPLE", "-o", "there/is/none.png"], 2, "there is no folder"),
        (["plan", "PEOPLE", "--nulls", "maybe"], 2, "--nulls maybe is not known"),
        (["plan", "PEOPLE", "--adversary", "arbitrary"], 1, "Theorem 6.1"),
        (["boundary", "PEOPLE", "--columns", "hight"], 2, "no column 'hight'"),
        (["boundary", "PEOPLE", "--posterior", "0"], 2, "posterior γ = 0"),
    ],
    ids=str,
)
def test_wrong_commands_are_refused(
    people: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    arguments: list[str], code: int, words: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with pytest.raises(VoileError) as refusal:
        app([people if a == "PEOPLE" else a for a in arguments], standalone_mode=False)
    assert refusal.value.exit_code == code
    assert words in refusal.value.message
    assert not list(tmp_path.iterdir())
