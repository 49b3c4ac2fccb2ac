"""The audit of a server's noise: sound laws pass, too little noise is caught, limits are exact."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from tests.support.sampling import FALSE_ALARM
from voile.cli import app
from voile.errors import UsageError
from voile.evaluate.audit import audit_answers
from voile.evaluate.audit.answers import both_ways, certain_epsilon, losses
from voile.privacy.interactive.laws import KINDS, noise_law
from voile.privacy.interactive.losses import loss_of
from voile.privacy.interactive.promise import epsilon_of_normal

RUNS = 20_000


@pytest.mark.parametrize("law", KINDS)
@pytest.mark.parametrize("queries", [1, 10])
def test_sound_noise_passes_and_thirty_per_cent_too_little_is_caught(
    law: str, queries: int
) -> None:
    """A sound law is called broken with chance 10⁻⁶ at most; the seeds are fixed."""
    found = audit_answers(law, queries=queries, runs=RUNS, failure=FALSE_ALARM, simulate_seed=1)
    assert found.verdict == "consistent"
    assert all(0.3 < one.bound / one.promised < 1 for one in found.bounds)  # not an empty bound
    wrong = audit_answers(
        law, queries=queries, runs=4 * RUNS, weaken=0.7, failure=1e-3, simulate_seed=1
    )
    assert wrong.verdict == "broken"
    assert wrong.epsilon == found.epsilon  # held to what the full noise promises


def test_secret_coins_pass_too() -> None:
    """Without a seed the noise is that of a server; a false alarm has chance 10⁻⁶ at most."""
    for law in KINDS:
        found = audit_answers(law, queries=1, runs=RUNS // 5, failure=FALSE_ALARM)
        assert not found.broken
        assert not found.simulated


def test_alarms_are_as_rare_as_stated_with_a_promise_that_is_tight() -> None:
    """Two normal laws one deviation apart, held to their exact ε: 200 audits at a failure of .1.

    More than 45 alarms have a chance of 10⁻⁶ at most.
    """
    at = 0.02
    epsilon = epsilon_of_normal(1.0, at)
    rng, alarms = np.random.default_rng(8), 0
    for _ in range(200):
        one, other = rng.normal(0.5, 1, 2000), rng.normal(-0.5, 1, 2000)
        bounds = both_ways(one, other, epsilon, at, 0.1 / 4)
        alarms += any(bound.broken for bound in bounds)
    assert stats.binom.sf(45, 200, 0.1) < FALSE_ALARM
    assert alarms <= 45
    near = both_ways(rng.normal(0.5, 1, 10**6), rng.normal(-0.5, 1, 10**6), epsilon, at, 2.5e-4)
    assert all(0.85 * epsilon < bound.bound < epsilon for bound in near)


def test_the_bound_is_clopper_and_pearsons() -> None:
    above = stats.beta.ppf(1 - 1e-3, 40 + 1, 5000 - 40)
    below = stats.beta.ppf(1e-3, 700, 5000 - 700 + 1)
    found = certain_epsilon(700, 40, 5000, 0.05, 1e-3)
    assert found == pytest.approx(math.log((below - 0.05) / above), rel=1e-6)
    assert certain_epsilon(100, 90, 5000, 0.05, 1e-3) == 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_losses_have_the_exact_law(kind: str) -> None:
    """One answer: the mean of 50,000 is within 5.5 standard errors but for 4·10⁻⁸."""
    law = noise_law(kind, 9.0)
    exact = loss_of(law)
    drawn = np.concatenate(list(losses(law, law, 1, 1, 50_000, 3)))
    drawn = drawn[np.isfinite(drawn)]
    mean, variance = exact.moments()
    assert abs(float(drawn.mean()) - mean) < 5.5 * math.sqrt(variance / len(drawn))
    back = np.concatenate(list(losses(law, law, 0, 1, 50_000, 3)))
    back = back[np.isfinite(back)]
    assert abs(float(back.mean()) + mean) < 5.5 * math.sqrt(variance / len(back))


def test_answers_that_only_one_table_gives_are_the_worst() -> None:
    """Binomial noise of two coins: a count of 1 and 2 less, or none, gives the record away."""
    one = np.repeat([math.inf, 0.0], [600, 1400])
    other = np.repeat([-math.inf, 0.0], [600, 1400])
    rng = np.random.default_rng(5)
    forth, back = both_ways(rng.permutation(one), rng.permutation(other), 1.0, 0.01, 1e-3)
    assert forth.broken
    assert back.broken
    assert forth.without_record == back.with_record == 0


# ---------------------------------------------------------------------- the command


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["audit", *words])


def test_the_command_says_what_it_found() -> None:
    sound = run("answers", "--runs", "20000", "--simulate-seed", "1", "--json")
    assert sound.exit_code == 0
    told = json.loads(sound.stdout)
    assert told["verdict"] == "consistent"
    assert told["promise"]["kind"] == "differential-privacy"
    assert told["promise"]["delta"] == 0.01
    assert told["forth"]["promised"] == told["promise"]["epsilon"]
    weak = run("answers", "--weaken", "0.6", "--runs", "20000", "--simulate-seed", "1")
    assert weak.exit_code == 1
    assert "broken" in weak.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["answers", "--prior", "0.1"], "answers have no views: --prior"),
        (["answers", "--rows", "set"], "--rows"),
        (["series", "--queries", "5"], "series answers no questions: --queries"),
        (["answer"], "did you mean 'answers'?"),
        (["answers", "--law", "normal"], "there is no noise 'normal'"),
        (["answers", "--at", "0"], "is not between 0 and 1"),
        (["answers", "--weaken", "1.5"], "must lie in (0, 1]"),
        (["answers", "--queries", "0"], "tell nothing"),
        (["answers", "--queries", "1000000"], "too many to draw"),
        (["answers", "--runs", "5"], "too few"),
    ],
)
def test_what_is_typed_wrongly(words: list[str], message: str) -> None:
    found = run(*words)
    assert isinstance(found.exception, UsageError)
    assert message in f"{found.exception.message} {found.exception.hint}"


def test_no_epsilon_at_a_delta_that_ends_of_the_noise_exceed() -> None:
    with pytest.raises(UsageError, match="no ε is promised"):
        audit_answers("binomial", queries=1, delta=8.0, eta=0.01, at=1e-9)
