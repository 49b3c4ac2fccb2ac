"""The technical report: exact parts against brute force; verdicts that a wrong value breaks."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from voile.mechanisms import AlphaBeta
from voile.reproduce import Run
from voile.reproduce.tr07 import fig1, fig2, thm41, thm42
from voile.reproduce.verdict import Check

QUICK = Run(quick=True)


def failing(checks: tuple[Check, ...]) -> list[str]:
    return [check.what for check in checks if not check.sound]


# ---------------------------------------------------------------------- Figure 1


def sizes(planned: float = 1.0) -> list[dict[str, Any]]:
    return [
        {
            "printed": fig1.FACTOR / posterior + 0.5,
            "planned": planned * fig1.expected(fig1.tight(posterior))[0],
            "expected_printed": fig1.expected(fig1.loose(posterior)),
            "expected_planned": fig1.expected(fig1.tight(posterior)),
        }
        for posterior in fig1.QUICK
    ]


def test_expected_sizes_are_the_formulas() -> None:
    """n(α + k/γ) for the printed β, n·(½ + ½·k(1−γ)/γ) or nearly for the tight one."""
    for posterior in (0.1, 0.5, 0.9):
        mean, spread = fig1.expected(fig1.loose(posterior))
        assert mean == pytest.approx(0.5 + 5 / posterior, rel=1e-3)
        assert 0 < spread < 0.1
        mean, _ = fig1.expected(fig1.tight(posterior))
        assert mean == pytest.approx(0.5 + 2.5 * (1 - posterior) / posterior, rel=1e-2)


def test_figure_1_fails_where_views_have_another_size() -> None:
    right = [fig1.curve(), *sizes()]
    assert failing(fig1.conclude(QUICK, right).checks) == []
    wrong = failing(fig1.conclude(QUICK, [fig1.curve(), *sizes(planned=1.02)]).checks)
    assert wrong == [f"with the tight β at γ = {p:g}" for p in (0.1, 0.2, 0.5)]


def test_a_view_that_was_made_has_the_expected_size() -> None:
    found = fig1.sizes(0.5, 9)
    for kind in ("printed", "planned"):
        mean, spread = found[f"expected_{kind}"]
        assert abs(found[kind] - mean) < 5 * spread  # a false alarm in two million
        assert abs(found[kind] - 1.05 * mean) > 5 * spread


# ---------------------------------------------------------------------- Figure 2


def test_figure_2_fails_where_the_band_is_another() -> None:
    one = {"cells": [[0, 0]], "queries": [5], "in_band": 0.99976, "in_band_large": 0.943,
           "off_small": 4.5, "negative_small": 0.49, "off_large": 0.018}  # fmt: skip
    known = fig2.case_study()
    assert known["view"] == pytest.approx(20.9, abs=0.05)
    assert failing(fig2.conclude(QUICK, [known, one, one]).checks) == []
    narrow = {**one, "in_band_large": 0.9}
    wrong = failing(fig2.conclude(QUICK, [known, narrow, narrow]).checks)
    assert wrong == ["share within it, Q(I) ≥ 1000"]
    printed = {**known, "share": 4.65e-3, "prior": 4.65e-3}
    assert failing(fig2.checks(printed, [one])) == ["n/m", "d = 10·n/m"]


# ---------------------------------------------------------------------- Theorem 4.1


@pytest.mark.parametrize(("alpha", "beta"), [((1, 2), (1, 30)), ((9, 10), (1, 5))])
def test_extremes_are_those_of_bayes_rule(alpha: tuple[int, int], beta: tuple[int, int]) -> None:
    """Tuples are independent, so that a tuple's posterior depends on itself alone."""
    found = thm41.extremes(alpha, beta)
    keep, insert = Fraction(*alpha), Fraction(*beta)
    d, least = thm41.PRIOR, thm41.NEARLY_NONE
    seen = keep * d / (keep * d + insert * (1 - d))
    missed = (1 - keep) / ((1 - keep) * least + (1 - insert) * (1 - least))
    assert found["posterior"] == pytest.approx(float(seen), rel=1e-12)
    assert found["ratio"] == pytest.approx(float(missed), rel=1e-9)


def test_theorem_41_fails_where_the_algorithm_tells_more() -> None:
    results = [part.work(**part.given) for part in thm41.parts(QUICK)]
    assert failing(thm41.conclude(QUICK, results).checks) == []
    more = [{**one, "posterior": one["posterior"] * 1.01} for one in results]
    wrong = failing(thm41.conclude(QUICK, more).checks)
    assert "largest posterior at the least β" in wrong
    less = [{**one, "ratio": one["ratio"] * 0.99} for one in results]
    assert "exact largest α" in failing(thm41.conclude(QUICK, less).checks)


# ---------------------------------------------------------------------- Theorem 4.2


@pytest.mark.parametrize(("members", "domain"), [(0, 5), (2, 6), (4, 7), (3, 3)])
def test_a_miss_has_the_chance_of_all_views_listed(members: int, domain: int) -> None:
    mechanism = AlphaBeta(0.5, 0.125, "set")
    for error in (0.3, 1.0, 2.5):
        missed = 0.0
        for view in product((0, 1), repeat=domain):
            chances = [0.5] * members + [0.125] * (domain - members)
            chance = math.prod(p if v else 1 - p for p, v in zip(chances, view, strict=True))
            value = mechanism.estimate(sum(view), domain).value
            missed += chance * (abs(value - members) >= error * (1 - 1e-12))
        assert thm42.miss(mechanism, members, domain, error) == pytest.approx(missed, abs=1e-12)


def test_theorem_42_fails_where_the_bound_is_broken() -> None:
    results = [part.work(**part.given) for part in thm42.parts(QUICK)]
    assert failing(thm42.conclude(QUICK, results).checks) == []
    broken = [{**one, thm42.RIGHT: 0.06} for one in results]
    assert failing(thm42.conclude(QUICK, broken).checks) == ["the right bound for all r (ours)"]
    sound = [{**one, thm42.PRINTED: 0.01} for one in results]
    assert failing(thm42.conclude(QUICK, sound).checks) == ["the printed bound for r < ⅔"]


def test_both_forms_meet_at_two_thirds() -> None:
    assert thm42.printed(thm42.TURN) == pytest.approx(thm42.right(thm42.TURN))
    assert thm42.printed(0.5) < thm42.right(0.5)
    assert thm42.printed(1.0) > thm42.right(1.0)
