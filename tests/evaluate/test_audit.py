"""The audit: exact limits, a stated false-alarm rate, and power against too little noise."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from tests.support.sampling import FALSE_ALARM
from voile.cli import app
from voile.errors import UsageError
from voile.evaluate.audit.bounds import audit, certain_ratio, compare, least_chance
from voile.evaluate.audit.method import MOST_DIGITS, audit_method, keys, one_view, publish_often
from voile.mechanisms import AlphaBeta
from voile.noise import Gaps, Key
from voile.privacy import DGamma, LikelihoodRatio
from voile.publishing import publish_table

RUNS = 20_000


# ---------------------------------------------------------------------- the limits


@pytest.mark.parametrize("runs", [20, 1000, 25_000])
@pytest.mark.parametrize("failure", [1e-2, 1e-6])
def test_limits_are_clopper_and_pearsons(runs: int, failure: float) -> None:
    for seen in (0, 1, runs // 3, runs - 1, runs):
        wanted = stats.beta.ppf(failure, seen, runs - seen + 1) if seen else 0.0
        assert least_chance(seen, runs, failure) == pytest.approx(wanted, rel=1e-8)
    above = stats.beta.ppf(1 - failure, 5 + 1, runs - 5)
    below = stats.beta.ppf(failure, 12, runs - 12 + 1)
    assert certain_ratio(12, 5, runs, failure) == pytest.approx(below / above, rel=1e-6)


def test_the_bound_of_a_known_pair_of_laws_holds_at_the_stated_rate() -> None:
    """Laws over four views; the largest ratio is 3. Exceeded in at most `failure` of the trials."""
    rng = np.random.default_rng(17)
    top, bottom = [0.3, 0.3, 0.3, 0.1], [0.1, 0.2, 0.3, 0.4]
    promised = LikelihoodRatio(Fraction(1, 4), Fraction(3))
    alarms, bounds = 0, []
    for _ in range(400):
        found = compare(
            rng.choice(4, 600, p=top), rng.choice(4, 600, p=bottom), promised=promised, failure=0.1
        )
        alarms += found.broken
        bounds.append(found.high.bound)
    # 400 trials at a failure of at most 0.1: a sound audit exceeds 80 alarms with probability 1e-9.
    assert stats.binom.sf(80, 400, 0.1) < FALSE_ALARM
    assert alarms <= 80
    assert np.median(bounds) > 1.5  # and not the empty bound of 1


def test_events_are_those_of_the_promise() -> None:
    views = np.repeat([0, 1, 2], [1000, 500, 500])
    other = np.repeat([0, 1, 2], [100, 950, 950])
    rng = np.random.default_rng(1)
    found = compare(rng.permutation(views), rng.permutation(other),
                    promised=LikelihoodRatio(Fraction(1, 2), None))  # fmt: skip
    assert found.high.event == (0,)
    assert not found.high.broken  # nothing is promised
    assert found.low.bound < 0.65
    assert set(found.low.event) == {1, 2}


# ---------------------------------------------------------------------- the sampler


@pytest.mark.parametrize("rows", ["multiset", "set"])
@pytest.mark.parametrize("adversary", ["independent", "exclusive"])
def test_a_sound_sampler_passes_and_thirty_per_cent_too_little_noise_is_caught(
    rows: Any, adversary: str
) -> None:
    """Failure 10⁻⁶: a sound one fails with at most that. Power: all four weak ones are caught.

    At prior 0.05 the certain bound of 40,000 runs is within about 15 % of the true ratio, and 30 %
    less noise raises that by 40 %.
    """
    options: dict[str, Any] = {
        "rows": rows, "adversary": adversary, "prior": 0.05, "posterior": 0.4,
        "runs": 40_000, "failure": FALSE_ALARM, "simulate_seed": 7,
    }  # fmt: skip
    sound = audit_method(**options).found
    assert not sound.broken
    assert sound.high.promised is not None
    assert sound.high.bound > 0.8 * sound.high.promised  # it looked where the ratio is largest
    assert audit_method(**options, weaken=0.7).found.broken


def test_the_mechanism_is_held_to_what_it_states() -> None:
    found = audit_method(retention=0.5, noise=0.05, runs=RUNS, simulate_seed=2)
    stated = AlphaBeta(0.5, 0.05).likelihood_ratio()
    assert stated.high is not None
    assert found.found.high.promised == float(stated.high)
    assert not found.found.broken
    exchanged = audit_method(
        retention=0.5, noise=0.05, adversary="exclusive", runs=RUNS, simulate_seed=2
    )
    assert exchanged.found.high.promised == float(stated.high / stated.low)
    assert exchanged.found.low.promised == float(stated.low / stated.high)


def test_other_records_with_the_same_values_weaken_the_evidence() -> None:
    alone, crowded = (
        audit_method(noise=0.05, others=k, runs=RUNS, simulate_seed=5).found for k in (0, 3)
    )
    assert not alone.broken and not crowded.broken
    assert crowded.high.bound < 0.8 * alone.high.bound


def test_runs_side_by_side_have_the_law_of_single_runs() -> None:
    """The same law as publishing the small table by itself; fits rejects a sound one with 10⁻⁶."""
    from tests.support.sampling import assert_fits

    mechanism = AlphaBeta(0.6, 0.2)
    found = publish_often(one_view(mechanism), [0, 2], RUNS, keys(3, 0))
    digits = MOST_DIGITS
    counts = np.stack([(found >> (digits * i)) & (2**digits - 1) for i in (2, 1, 0)])
    kept = np.array(
        [0.4 * 0.8 * 0.2**j + 0.6 * (0.8 * 0.2 ** (j - 1) if j else 0) for j in range(8)]
    )
    noise = 0.8 * 0.2 ** np.arange(8)
    for place, law in ((0, kept), (1, noise), (2, kept)):
        assert_fits(np.bincount(counts[place], minlength=8)[:8], law)
    both = np.bincount(counts[0] * 8 + counts[1], minlength=64)[:64]
    assert_fits(both, np.outer(kept, noise).ravel())


# ---------------------------------------------------------------------- anything that publishes


def test_any_callable_is_audited() -> None:
    """Randomised response, right and with too much truth; fixed seeds, false alarms 10⁻⁶."""
    rng = np.random.default_rng(9)
    promised = LikelihoodRatio(Fraction(1, 3), Fraction(3))

    def respond(truth: float) -> Any:
        return lambda answer: bool(answer) ^ bool(rng.random() > truth)

    honest = audit(respond(0.75), 1, 0, promised=promised, runs=4000, failure=FALSE_ALARM)
    assert honest.verdict == "consistent"
    assert 2 < honest.high.bound <= 3
    assert 1 / 3 <= honest.low.bound < 1 / 2
    eager = audit(respond(0.85), 1, 0, promised=promised, runs=4000, failure=FALSE_ALARM)
    assert eager.verdict == "broken"


def pipeline(tables: Any, runs: int) -> Any:
    """Views of many small tables from a few whole publications, files and all."""
    import pandas as pd

    side = 2000
    domain = {"attributes": [
        {"name": "run", "kind": "integer", "range": [0, side - 1]},
        {"name": "x", "kind": "categorical", "values": ["a", "b"]},
    ]}  # fmt: skip
    seeds = itertools.count(1000)
    found: list[list[tuple[int, int]]] = []
    for table in tables:
        views: list[tuple[int, int]] = []
        while len(views) < runs:
            frame = pd.DataFrame([(i, x) for i in range(side) for x in table], columns=["run", "x"])
            release = publish_table(
                frame, schema=domain, prior=0.1, posterior=0.5, retention=0.6,
                simulate_seed=next(seeds),
            ).release  # fmt: skip
            rows = release.to_pandas()
            counts = np.zeros((side, 2), int)
            np.add.at(counts, (rows["run"], (rows["x"] == "b").astype(int)), 1)
            views += [(int(a), int(b)) for a, b in counts]
        found.append(views)
    return found


def test_the_whole_pipeline_keeps_its_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """publish_table, its files and their reader: 20,000 runs on each of two tables.

    False alarms 10⁻⁶. Where 30 % of the noise is missing, it is caught.
    """
    promise = DGamma(0.1, 0.5)
    promised = LikelihoodRatio(promise.ratio_low, promise.ratio_high)
    tables = (["a", "b"], ["b"])
    sound = compare(*pipeline(tables, 20_000), promised=promised, failure=FALSE_ALARM)
    assert not sound.broken
    assert sound.high.bound > 0.7 * float(promise.ratio_high)

    monkeypatch.setattr(
        "voile.kinds.views.alphabeta.Gaps", lambda p, form, bits: Gaps(0.7 * p, form, bits)
    )
    monkeypatch.setattr("voile.kinds.views.publishing.check_noise", lambda *_: None)
    weak = compare(*pipeline(tables, 20_000), promised=promised, failure=FALSE_ALARM)
    assert weak.broken


# ---------------------------------------------------------------------- the command


def test_the_command_says_broken_with_exit_code_1() -> None:
    line = ["audit", "alphabeta", "--prior", "0.05", "--posterior", "0.4", "--runs", "20000",
            "--simulate-seed", "1", "--json"]  # fmt: skip
    sound = CliRunner().invoke(app, line)
    assert sound.exit_code == 0, sound.output
    assert json.loads(sound.stdout)["verdict"] == "consistent"
    weak = CliRunner().invoke(app, [*line, "--weaken", "0.7"])
    assert weak.exit_code == 1
    assert json.loads(weak.stdout)["high"]["broken"]
    seen = CliRunner().invoke(app, line[:-1])
    assert "consistent" in seen.stdout
    told = " ".join(seen.stdout.split())
    assert "not of any release" in told and "(failure" in told and "on purpose" not in told
    weakened = CliRunner().invoke(app, [*line[:-1], "--weaken", "0.7"])
    assert "taken away on purpose (--weaken 0.7)" in " ".join(weakened.stdout.split())
    assert "on purpose" in json.loads(weak.stdout)["scope"]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"method": "magic"}, "'magic' is not known"),
        ({"rows": "bag"}, "'bag' is not known"),
        ({"adversary": "wicked"}, "'wicked' is not known"),
        ({"weaken": 0.0}, "weaken 0"),
        ({"weaken": 1.5}, "weaken 1.5"),
        ({"runs": 3}, "3 runs"),
        ({"failure": 2.0}, "failure 2"),
        ({"noise": 0.1, "prior": 0.1}, "a promise and the noise"),
        ({"noise": 1.5}, "out of range"),
        ({"retention": 1.5, "noise": 0.1}, "out of range"),
        ({"others": -1}, "others -1"),
        ({"others": 1, "rows": "set"}, "a set has no other records"),
        ({"prior": 0.5, "posterior": 0.2}, "not below posterior"),
    ],
)
def test_wrong_wishes_are_named(options: dict[str, Any], complaint: str) -> None:
    from voile.errors import VoileError

    with pytest.raises(VoileError, match=complaint):
        audit_method(**options)
    with pytest.raises(UsageError, match="as often"):
        compare([1] * 30, [1] * 31, promised=LikelihoodRatio(Fraction(1), Fraction(1)))


def test_fresh_keys_differ_and_simulated_ones_do_not() -> None:
    mechanism = AlphaBeta(0.5, 0.2)
    again = [publish_often(one_view(mechanism), [0], 2000, keys(4, 0)).tolist() for _ in range(2)]
    assert (
        again[0] == again[1] != publish_often(one_view(mechanism), [0], 2000, keys(4, 1)).tolist()
    )
    fresh = [
        publish_often(one_view(mechanism), [0], 2000, keys(None, 0)).tolist() for _ in range(2)
    ]
    assert fresh[0] != fresh[1]
    assert isinstance(keys(None, 0)(0), Key)


@pytest.mark.parametrize(
    "options",
    [
        {"method": "shaped"},
        {"method": "shaped", "adversary": "exclusive"},
        {"method": "series", "prior": 0.05},
        {"method": "series", "rows": "set", "views": 2},
    ],
)
def test_shaped_noise_and_series_are_audited(options: dict[str, Any]) -> None:
    """Sound as they are, at 10⁻⁶; caught with 30 % of the noise missing."""
    wish = {"runs": 60_000, "failure": FALSE_ALARM, "simulate_seed": 11, **options}
    sound = audit_method(**wish).found
    assert not sound.broken
    assert audit_method(**wish, weaken=0.7).found.broken
    if options["method"] == "shaped":  # and near what is promised
        assert sound.high.bound > 0.75 * (sound.high.promised or math.inf)
