"""CRYPTO 2004: the pieces against brute force and the oracle; wrong results must be called so."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.support.paths import TESTS
from voile.reproduce.crypto04 import (
    FIGURES,
    adult,
    published,
    reconstruction,
    split,
    tester,
    walk,
)
from voile.reproduce.figure import Finding, Run
from voile.serve import simulated

QUICK = Run(quick=True)


@pytest.fixture(scope="module")
def oracle() -> dict[str, Any]:
    path = TESTS / "oracle" / "olap_sulq.json"
    return {check["id"]: check["expected"] for check in json.loads(path.read_text())["checks"]}


def unsound(finding: Finding) -> list[str]:
    return [check.what for check in finding.checks if not check.sound]


def test_all_are_listed_with_pieces_that_can_be_kept() -> None:
    assert [figure.name for figure in FIGURES] == [
        f"crypto04-{name}" for name in ("walk", "tester", "split", "published", "reconstruction")
    ]
    for figure in FIGURES:
        assert len(figure.what) < 72
        quick, full = figure.parts(QUICK), figure.parts(Run())
        assert len({part.key for part in quick}) == len(quick) <= len(full)


def test_adults_properties_are_the_oracles(oracle: dict[str, Any]) -> None:
    p, q, both, _ = oracle["sulq8.truth_white_male"]
    found = adult.share("white"), adult.share("male"), adult.share("white", "male")
    assert found == pytest.approx((p, q, both))
    counts = adult.combinations_counted()
    assert counts.sum() == 32_561
    for place, name in enumerate(adult.PROPERTIES):
        assert counts.take(1, axis=place).sum() == adult.properties()[name].sum()


# ---------------------------------------------------------------------- the walk


@pytest.fixture(scope="module")
def walks() -> list[Any]:
    return [walk.walked(1e-3, 1), *(walk.walked(1e-6, seed) for seed in (1, 2, 3, 4))]


def test_walks_are_as_the_oracle_says(walks: list[Any], oracle: dict[str, Any]) -> None:
    assert walks[1]["ratio"] == pytest.approx(oracle["sulq.V_over_T.1_1e-06"], rel=1e-9)
    assert walks[1]["slides"]["exact_either"] == pytest.approx(0.375, abs=0.001)
    finding = walk.conclude(QUICK, json.loads(json.dumps(walks)))
    assert unsound(finding) == []
    assert finding.picture().to_dict()


def lowered(results: list[Any], name: str, factor: float) -> list[Any]:
    changed = copy.deepcopy(results)
    for one in changed:
        for noise in ("slides", "needed"):
            value = one[noise][name]
            one[noise][name] = [factor * x for x in value] if isinstance(value, list) else (
                factor * value)  # fmt: skip
    return changed


@pytest.mark.parametrize(
    ("name", "factor", "caught"),
    [
        ("above", 0.8, "rises"),
        ("either", 1.2, "moves"),
        ("mean", 1.3, "mean"),
        ("sd", 0.9, "standard deviation"),
        ("rare", 1.3, "(δ, T)-privacy with the noise"),
        ("rare_ever", 2.0, "at some step"),
        ("above", 0.001, "noise of variance T"),
    ],
)
def test_wrong_walks_are_called_wrong(
    walks: list[Any], name: str, factor: float, caught: str
) -> None:
    found = unsound(walk.conclude(QUICK, lowered(walks, name, factor)))
    assert any(caught in what for what in found)


# ---------------------------------------------------------------------- the tester


def test_halves_have_the_moments_of_all_halves_listed() -> None:
    """Ten rows: the means of products over all 1,024 halves, and over 200,000 drawn ones.

    A mean of 200,000 products is within 5.5 of its standard errors but for 4·10⁻⁸.
    """
    counts = [3, 2, 1, 4]
    alpha = np.repeat([1, 1, 0, 0], counts)
    beta = np.repeat([1, 0, 1, 0], counts)
    inside = np.array(list(product((0, 1), repeat=10)))
    size = inside.sum(axis=1)
    one = inside @ alpha - size * alpha.mean()
    other = inside @ beta - size * beta.mean()
    excess, more, _ = tester.halves_of(counts, 200_000, np.random.default_rng(1))
    for listed, drawn in ((one * other, excess * more), (one**2, excess**2)):
        error = float(drawn.std()) / math.sqrt(len(drawn))
        assert abs(float(drawn.mean() - listed.mean())) < 5.5 * error
    # Four times the mean product over n is the covariance of the columns.
    covariance = float(np.mean(alpha * beta) - alpha.mean() * beta.mean())
    assert 4 / 10 * float((one * other).mean()) == pytest.approx(covariance)


def test_cells_have_the_wanted_implication() -> None:
    both, a, b, _ = tester.cells(10_000, 0.4, 0.3, 0.2)
    assert (both + a, both + b) == (4000, 3000)
    assert both / 4000 - 0.3 == pytest.approx(0.2)


def test_the_tester_and_its_checks() -> None:
    parts = tester.parts(QUICK)
    results = json.loads(json.dumps([part.work(**part.given) for part in parts]))
    finding = tester.conclude(QUICK, results)
    assert unsound(finding) == []
    assert finding.picture().to_dict()

    def caught(change: Callable[[list[Any]], None]) -> str:
        wrong = copy.deepcopy(results)
        change(wrong)
        return " ".join(unsound(tester.conclude(QUICK, wrong)))

    def more_accepted(wrong: list[Any]) -> None:
        for one in wrong[3:]:
            one["accepted"][-1] *= 2000

    def nearer(wrong: list[Any]) -> None:
        for one in wrong[3:]:
            one["other"] = [0.5 * x for x in one["other"]]

    def guessing(wrong: list[Any]) -> None:
        wrong[0]["right"] = [0.5, 0.5]
        for one in wrong[1:3]:
            one["right"] = [0.5] * len(one["right"])

    assert "as written" in caught(more_accepted) and "is found" in caught(more_accepted)
    assert "two bells" in caught(nearer)
    assert "distinguished from" in caught(guessing) and "covariance" in caught(guessing)


# ---------------------------------------------------------------------- split databases


def test_simulated_servers_repeat_themselves_and_charge() -> None:
    options: dict[str, Any] = {"columns": ["salary"], "queries": 3, "delta": 4.0}
    sql = "select count(*) from adult where salary = '>50K'"
    told = []
    subsets: list[Any] = ["all", {"half": "1"}]
    for order in (subsets, subsets[::-1]):
        with simulated("dataset:adult/train", seed=5, **options) as server:
            told.append({str(subset): server.ask(sql, subset).answer for subset in order})
            assert server.ask(sql).charged == 0
            assert server.budget()["remaining"] == 1
    assert told[0] == told[1]
    with simulated("dataset:adult/train", seed=6, **options) as server:
        assert server.ask(sql).answer != told[0]["all"]


def mined(value: float, spread: float, seed: int) -> dict[str, Any]:
    """What a run would give whose errors are `spread` times the stated."""
    rng = np.random.default_rng(seed)
    true, stderr = split.truths(), 0.02
    z = spread * rng.normal()
    found = {w: [t + value + z * stderr, stderr, t + value + (z - 1.96) * stderr,
                 t + value + (z + 1.96) * stderr] for w, t in true.items()}  # fmt: skip
    delta = adult.share("married", "rich") / adult.share("married") - adult.share("rich")
    middle = delta + value + z * stderr
    return {
        "promise": next(iter(split.PROMISES)), "halves": split.SHOWN, "variance": 300.0,
        "found": found, "implied": [middle, middle - 1.96 * stderr, middle + 1.96 * stderr],
    }  # fmt: skip


def test_split_checks_have_power() -> None:
    moments = split.third_moments(1)
    sound = [moments, *(mined(0.0, 1.0, seed) for seed in range(30))]
    finding = split.conclude(QUICK, sound)
    assert unsound(finding) == []
    assert finding.picture().to_dict()
    assert finding.tables["errors"]["error"][0] == pytest.approx(0.02, rel=0.5)
    wide = unsound(split.conclude(QUICK, [moments, *(mined(0.0, 2.2, s) for s in range(30))]))
    assert "the standard error that is stated (ours)" in wide
    biased = " ".join(
        unsound(split.conclude(QUICK, [moments, *(mined(0.06, 1.0, s) for s in range(30))]))
    )
    assert "any Boolean function" in biased and "Δ = " in biased
    noisy = [moments, *({**mined(0.0, 1.0, s), "variance": 9000.0} for s in range(30))]
    assert any("noise beside" in what for what in unsound(split.conclude(QUICK, noisy)))
    assert any("three columns" in w for w in unsound(split.conclude(QUICK, [[0.1], *sound[1:]])))


def test_two_servers_are_mined_with_the_stated_error() -> None:
    """Within five errors but for 10⁻⁶."""
    promise = next(iter(split.PROMISES))
    found = split.mined(promise, 40, [split.BOTH], 3)
    value, stderr, *_ = found["found"][split.BOTH]
    assert abs(value - split.truths()[split.BOTH]) < 5 * stderr
    assert found["variance"] == pytest.approx(41, rel=0.02)  # V = T, the first count included


# ---------------------------------------------------------------------- published statistics


def test_the_slides_halves_are_unbiased_and_err_as_stated() -> None:
    """Without noise and with all 2ⁿ halves the covariance is exact: here by its own formula."""
    found = [published.as_on_slides(seed) for seed in range(6)]
    assert np.mean([one["slides"] for one in found]) == pytest.approx(0.0715, rel=0.2)
    for one in found:
        assert one["averaged"] < one["slides"]


def test_ways_to_part_four_columns_find_the_same_conjunct() -> None:
    """From many halves without noise every way comes near every conjunct of uneven columns."""
    rng = np.random.default_rng(2)
    true = adult.combinations_counted()
    number = 4000
    halves = rng.binomial(true, 0.5, (number, *true.shape)).astype(np.float64)
    size = halves.reshape(number, -1).sum(axis=1)
    four, tables = (0, 2, 3, 7), {}
    for some in ((0, 2), (0, 3), (0, 7), (2, 3), (2, 7), (3, 7)):
        share = published.margin(true, some).ravel() / published.ROWS
        counts = published.margin(halves, some, 1).reshape(number, -1)
        # off_by divides by the slides' number of halves.
        scale = math.sqrt((published.SLIDES - 1) / (number - 1))
        tables[some] = (share, scale * (counts - np.outer(size, share)))
    off = published.off_by(tables, four, true)
    assert float(np.abs(off).max()) < 5.5 * 0.25 / math.sqrt(number)


def results_of(slides: float, averaged: float, halves: float, direct: float) -> list[Any]:
    wobble = (0.97, 1.0, 1.03, 1.01)
    return [
        *({"slides": slides * w, "averaged": averaged * w} for w in wobble),
        {"halves": halves, "figures": 12320.0, "halves_published": 55.0},
        *({"direct": direct * (0.995 + 0.01 * (w > 1)), "figures": 1120.0,
           "halves_published": 0.0} for w in wobble),
    ]  # fmt: skip


def test_published_checks_have_power() -> None:
    finding = published.conclude(QUICK, results_of(0.071, 0.048, 0.025, 0.00035))
    assert unsound(finding) == []
    assert finding.picture().to_dict()
    for wrong, caught in (
        ((0.05, 0.048, 0.025, 0.00035), "slides' halves"),
        ((0.071, 0.03, 0.025, 0.00035), "three ways"),
        ((0.071, 0.048, 0.025, 0.0005), "as released"),
        ((0.071, 0.048, 0.055, 0.00035), "Voile's halves"),
        ((0.02, 0.048, 0.025, 0.00035), "within 0.05"),
    ):
        assert any(
            caught in what for what in unsound(published.conclude(QUICK, results_of(*wrong)))
        )
    fewer = results_of(0.071, 0.048, 0.025, 0.00035)
    fewer[4]["figures"] = 12000.0
    assert any("figures published" in w for w in unsound(published.conclude(QUICK, fewer)))


def test_savings_are_counts_of_figures() -> None:
    saved = published.savings()
    row = next(i for i, k in enumerate(saved["k"]) if (k, saved["d"][i]) == (16, 2))
    assert saved["figures_direct"][row] == 1820 * 16
    assert saved["figures_halves"][row] == saved["t"][row] * 120 * 4
    assert published.slides_saving(17, 2) < 1 <= published.slides_saving(16, 2)


# ---------------------------------------------------------------------- reconstruction


def test_databases_that_fit_are_those_of_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five rows: each database compared with each answer, one by one."""
    monkeypatch.setattr(reconstruction, "SMALL", 5)
    found = reconstruction.all_tried(4)
    everything = list(product((0, 1), repeat=5))
    secret = everything[int(np.random.default_rng([4, 6]).integers(32))]

    def count(rows: Sequence[int], of: Sequence[int]) -> int:
        return sum(r * o for r, o in zip(rows, of, strict=True))

    for share, limit in zip(found, reconstruction.LIMITS, strict=True):
        reach, worst = 5 * limit, 0
        answers = {}
        for q in everything:
            middle, true = sum(q) / 2, count(q, secret)
            answers[q] = true + min(max(middle - true, -reach), reach)
        for other in everything:
            if all(abs(count(q, other) - a) <= reach + 1e-9 for q, a in answers.items()):
                worst = max(worst, sum(x != y for x, y in zip(other, secret, strict=True)))
        assert share == pytest.approx(1 - worst / 5)


def attempts(seed: int) -> list[dict[str, Any]]:
    """As a run gives them: what is right, with the spread of runs."""
    right = {(n if isinstance(n, str) else f"{n:g}", q): r for n, q, r in reconstruction.RIGHT}
    right |= {("0.1", 4000): 0.999, ("4", 4000): 0.54}
    names = [*(f"{roots:g}" for roots in reconstruction.ROOTS), reconstruction.AS_PRINTED,
             reconstruction.SERVER]  # fmt: skip
    return [
        {"noise": name, "questions": asked, "roots": 1.0, "most": 0.9,
         "recovered": right.get((name, asked), 0.51) + 0.005 * (seed - 1.5)}
        for asked in reconstruction.QUESTIONS for name in names
    ]  # fmt: skip


def test_attacks_are_told_by_noise_and_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconstruction, "ROWS", 100)
    found = reconstruction.attacked([100, 400], 1)
    assert [(one["noise"], one["questions"]) for one in found] == [
        (one["noise"], asked) for asked in (100, 400) for one in attempts(0)[:8]
    ]
    assert found[8]["recovered"] > 0.9 > found[15]["recovered"]


def test_reconstruction_checks_have_power() -> None:
    runs, worst = [attempts(seed) for seed in range(4)], [1.0, 1.0, 1.0, 1.0, 0.1, 0.0, 0.0]
    finding = reconstruction.conclude(QUICK, [worst, *runs])
    assert unsound(finding) == []
    assert finding.picture().to_dict()
    wrong = copy.deepcopy(runs)
    for run in wrong:
        for one in run:
            one["recovered"] = 0.5 + 0.8 * (one["recovered"] - 0.5)
    found = " ".join(unsound(reconstruction.conclude(QUICK, [worst, *wrong])))
    assert "0.25·√n" in found
    assert "32,000" in found
    assert "polynomial" in found
    for run in wrong:
        for one in run:
            one["recovered"] = 0.7
    assert any("bounded" in w for w in unsound(reconstruction.conclude(QUICK, [worst, *wrong])))
    less = reconstruction.conclude(QUICK, [[0.1] * 7, *runs])
    assert any("unlimited" in what for what in unsound(less))
