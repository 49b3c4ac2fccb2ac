"""`voile sulq simulate`: walks agree with the exact law; what is wrong is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from voile.cli import app
from voile.errors import UsageError
from voile.evaluate.sulq import Setup, simulate
from voile.evaluate.sulq.simulation import Simulation
from voile.privacy.interactive.laws import KINDS

FALSE_ALARM = 1e-6


@pytest.fixture(scope="module", params=KINDS)
def found(request: pytest.FixtureRequest) -> Simulation:
    return simulate(Setup(queries=40, noise=request.param, eta=1e-4, walkers=20_000), seed=4)


def test_walks_breach_as_often_as_the_exact_law_says(found: Simulation) -> None:
    """Both noises; a sound simulation fails with 10⁻⁶ each."""
    for one in (found.chosen, found.beside):
        seen = round(one.measured.end * found.setup.walkers)
        walkers = found.setup.walkers
        assert stats.binomtest(seen, walkers, one.bounds.end).pvalue > FALSE_ALARM
        assert one.measured.anytime >= one.measured.end
    seen = round(found.beside.measured.end * found.setup.walkers)
    wrong = 1.1 * found.beside.bounds.end  # so many walkers tell it apart
    assert stats.binomtest(seen, found.setup.walkers, wrong).pvalue < FALSE_ALARM
    assert found.beside.measured.anytime_low > found.beside.measured.end


def test_led_walks_find_rare_breaches(found: Simulation) -> None:
    """The weighed share is within five standard errors, and within a tenth, of the exact chance."""
    for one in (found.chosen, found.beside):
        end, ever = one.rare_end, one.rare_anytime
        assert abs(end.chance - one.bounds.end) < 5 * end.error
        assert end.error < 0.05 * one.bounds.end
        assert end.chance < ever.chance <= one.bounds.anytime + 5 * ever.error
        assert ever.chance <= one.bounds.any_property + 5 * ever.error


def test_the_promise_is_kept_with_the_noise_it_needs_and_not_with_the_slides(
    found: Simulation,
) -> None:
    assert found.keeps
    assert found.chosen.bounds.end <= 1e-4 * (1 + 1e-3)
    assert found.beside.variance == 40
    assert found.beside.bounds.end > 0.25
    printed = simulate(Setup(queries=40, noise=found.setup.noise, variance=40, walkers=50), seed=1)
    assert not printed.keeps
    assert printed.beside.variance == printed.needed.variance


def test_the_walk_has_the_moments_of_its_law() -> None:
    """Mean 1/2V and variance 1/V a step: five standard errors of 30,000 walkers."""
    setup = Setup(queries=50, noise="gaussian", variance=500.0, walkers=30_000)
    ends = simulate(setup, seed=9).chosen.walks.ends
    error = math.sqrt(0.1 / 30_000)
    assert abs(ends.mean() - 0.05) < 5 * error
    assert abs(ends.var() / 0.1 - 1) < 5 * math.sqrt(2 / 30_000)


def test_half_of_the_questions_tell_half_as_much() -> None:
    whole, half = (
        simulate(Setup(queries=50, noise="binomial", variance=100.0, membership=word,
                       walkers=20_000), seed=2)
        for word in ("all", "half")
    )  # fmt: skip
    assert half.chosen.walks.ends.mean() < 0.7 * whole.chosen.walks.ends.mean()
    assert half.chosen.bounds.end < whole.chosen.bounds.end
    seen = round(half.chosen.measured.end * 20_000)
    assert stats.binomtest(seen, 20_000, half.chosen.bounds.end).pvalue > FALSE_ALARM


def test_the_slides_numbers() -> None:
    """V = T = 100, δ = 1: above δ with .31 at the end, moved by more than δ with .37."""
    bounds = simulate(Setup(walkers=100), seed=1).beside.bounds
    assert bounds.end == pytest.approx(stats.norm.sf(0.5), abs=0.002)
    assert bounds.either == pytest.approx(0.375, abs=0.002)


def test_seeds_repeat_walks() -> None:
    setup = Setup(queries=5, walkers=100)
    one, two = (simulate(setup, seed=s).chosen.walks.ends for s in (1, 1))
    other = simulate(setup, seed=2).chosen.walks.ends
    fresh = simulate(setup)
    assert np.array_equal(one, two) and not np.array_equal(one, other)
    assert not fresh.simulated and not np.array_equal(one, fresh.chosen.walks.ends)


def test_answers_that_tell_everything_are_counted() -> None:
    """Two coins: an answer is impossible under the other hypothesis with a quarter."""
    found = simulate(Setup(queries=3, variance=0.5, walkers=4000), seed=3)
    assert np.isinf(found.chosen.walks.ends).any()
    seen = round(found.chosen.measured.end * 4000)
    assert stats.binomtest(seen, 4000, found.chosen.bounds.end).pvalue > FALSE_ALARM
    assert json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"queries": 0}, {"delta": 0}, {"delta": -1.0}, {"eta": 0}, {"eta": 0.6},
        {"noise": "laplace"}, {"variance": 0.0}, {"variance": 1e20}, {"prior": 0.0},
        {"prior": 1.0}, {"membership": "none"}, {"walkers": 1}, {"walkers": 10**7},
        {"walkers": 10**6, "queries": 10**4}, {"delta": math.nan}, {"variance": math.inf},
    ],
)  # fmt: skip
def test_wrong_setups_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        Setup(**wrong)
    assert raised.value.hint


def run(*args: str) -> Any:
    return CliRunner().invoke(app, ["sulq", "simulate", "--simulate-seed", "1", *args])


def test_the_command_prints_json_with_stable_keys() -> None:
    found = run("--queries", "20", "--walkers", "500", "--json")
    assert found.exit_code == 0
    data = json.loads(found.stdout)
    assert set(data) == {
        "queries", "delta", "eta", "noise", "prior", "belief_limit", "walkers", "membership",
        "simulated", "keeps", "variance_needed", "variance_formula", "variance", "law", "measured",
        "weighed", "bounds", "change", "beside",
    }  # fmt: skip
    assert data["belief_limit"] == pytest.approx(math.e / (1 + math.e))
    assert data["beside"]["variance"] == 20


def test_the_command_says_which_noise_keeps_the_promise() -> None:
    assert "keeps the promise" in run("--queries", "20", "--walkers", "500").stdout
    bad = run("--queries", "20", "--walkers", "500", "--variance", "20").stdout
    assert "does not keep the promise" in bad


@pytest.mark.parametrize("delta", [0.05, 0.3, 3.0])
def test_limits_are_named_outside_of_what_is_drawn(delta: float) -> None:
    """To the right of the last panel, and apart from each other however near the limits are."""
    from voile.evaluate.sulq.plot import SIDE, draw

    found = simulate(Setup(queries=8, delta=delta, noise="geometric", walkers=50), seed=1)
    marks = [layer for layer in layers_of(draw(found).to_dict()) if "text" in layer["mark"]]
    assert [layer["mark"]["text"] for layer in marks] == ["+δ", "−δ"] * 2
    assert all(layer["encoding"]["x"] == {"value": SIDE} for layer in marks)
    assert all(layer["mark"]["align"] == "left" for layer in marks)
    assert {layer["mark"]["dy"] for layer in marks} == {-6, 6}


def layers_of(part: dict[str, Any]) -> list[dict[str, Any]]:
    """All that is drawn, from left to right."""
    inside = part.get("hconcat") or part.get("layer")
    return [one for each in inside for one in layers_of(each)] if inside else [part]


def test_the_command_draws(tmp_path: Path) -> None:
    path = tmp_path / "walks.svg"
    few = ("--queries", "5", "--walkers", "50")
    assert run(*few, "-o", str(path)).exit_code == 0
    text = path.read_text()
    assert text.startswith("<svg") and "As printed in the slides" in text
    assert "Orange: walks" in text and "Red" not in text
    again = run(*few, "-o", str(path))
    assert isinstance(again.exception, UsageError) and "exists already" in str(again.exception)
    assert isinstance(run(*few, "-o", str(tmp_path / "walks.txt")).exception, UsageError)
