"""The method chosen for the steward: closed forms against simulation, and what is said of them."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import voile
from tests.support.running import voile as run
from voile.errors import PromiseError, UsageError
from voile.kinds.automatic import UselessError, best_of, choose_method
from voile.kinds.choosing import (
    MATTERS,
    MIDDLE,
    MODEL_ERROR,
    USEFUL,
    EpsilonPromise,
    MethodCandidate,
    PublicSize,
    compare,
    expected_error,
    from_columns,
    weighed,
)
from voile.kinds.marginals.choosing import (
    MOST_FIGURES,
    MeasuringBudget,
    chosen_order,
    figures,
)
from voile.kinds.options import AutomaticOptions
from voile.kinds.registry import built_in_kinds
from voile.privacy.guarantee import after
from voile.privacy.spent import NOTHING, Spent
from voile.progress import Silent

PROMISE = EpsilonPromise(1.0, 1e-9)


def people(rows: int, columns: int = 3, seed: int = 0) -> pd.DataFrame:
    """Columns of a few values each, the second of which follows the first."""
    rng = np.random.default_rng(seed)
    made = {f"c{i}": rng.integers(0, 4, rows) for i in range(columns)}
    if columns > 1:
        made["c1"] = np.where(rng.random(rows) < 0.5, made["c0"], made["c1"])
    return pd.DataFrame({name: values.astype(str) for name, values in made.items()})


def every(public: PublicSize, promise: EpsilonPromise = PROMISE) -> list[MethodCandidate]:
    return [one for kind in built_in_kinds() for one in kind.candidates(public, promise)]


# ---------------------------------------------------------------------- the closed form


def test_without_a_model_the_error_is_the_middle_of_the_noise() -> None:
    public = PublicSize((3, 4, 5), 10_000)
    noise = {1: 6.0, 2: 9.0}
    found = expected_error(public, lambda c, _: noise[len(c)], modelled=False)
    by_hand = sorted([MIDDLE * 6 / 100] * 3 + [MIDDLE * 9 / 100] * 3)
    assert found == pytest.approx((by_hand[2] + by_hand[3]) / 2)


def test_pairs_are_weighed_against_a_model_of_their_columns() -> None:
    public = PublicSize((3, 4, 5, 6), 10_000)
    found = expected_error(public, lambda c, _: 6.0 if len(c) == 1 else 50.0, modelled=True)
    alone, pair = MIDDLE * 6 / 100, MIDDLE * 50 / 100
    model = math.hypot(MODEL_ERROR, math.sqrt(MATTERS) * math.hypot(alone, alone))
    assert found == pytest.approx(1 / math.hypot(1 / pair, 1 / model))
    unmeasured = expected_error(public, lambda c, _: 6.0 if len(c) == 1 else None, modelled=True)
    assert unmeasured == pytest.approx(from_columns([alone, alone])) == pytest.approx(model)


def test_weighing_is_the_best_of_two_independent_estimates() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(0, 2, 200_000), rng.normal(0, 3, 200_000)
    best = min(np.std(w * one + (1 - w) * other) for w in np.linspace(0, 1, 101))
    assert weighed(2, 3) == pytest.approx(best, rel=0.01)


@pytest.mark.parametrize("sizes", [(2,), (2, 2), (4, 4, 4), (2,) * 6, (10,) * 6])
@pytest.mark.parametrize("rows", [1_000, 20_000])
def test_every_kind_states_the_noise_that_its_release_has(
    sizes: tuple[int, ...], rows: int
) -> None:
    """What a candidate foresees for single columns is what its plan of measurements draws."""
    from voile.kinds.marginals.options import MarginalOptions
    from voile.kinds.marginals.publishing import budget_of
    from voile.privacy.gaussian import epsilon_of

    found = every(PublicSize(sizes, rows))
    assert {"marginals", "alphabeta"} <= {one.method for one in found}
    for one in found:
        assert 0 < one.expected_error < math.inf
        if one.method != "alphabeta":
            given: Any = {"method": one.method, "epsilon": 1.0, **one.options}
            options = MarginalOptions(**given)
            budget = budget_of(options)
            if budget.noise == "geometric":
                assert budget.whole == pytest.approx(PROMISE.pure)
            else:
                assert budget.whole == pytest.approx(PROMISE.rho, rel=1e-6)
                assert epsilon_of(math.sqrt(2 * budget.whole), 1e-9) <= 1.0


def test_more_rows_a_weaker_promise_and_fewer_columns_never_err_more() -> None:
    def error(sizes: tuple[int, ...], rows: float, epsilon: float) -> float:
        return best_of(PublicSize(sizes, rows), EpsilonPromise(epsilon, 1e-9)).chosen.expected_error

    for rows in (500, 2_000, 10_000, 100_000):
        assert error((6,) * 6, 2 * rows, 1.0) <= error((6,) * 6, rows, 1.0)
        assert error((6,) * 6, rows, 2.0) <= error((6,) * 6, rows, 1.0)
        # Of few rows single columns are worse than pairs, which a model helps.
        assert rows < 10_000 or error((6,) * 3, rows, 1.0) <= error((6,) * 6, rows, 1.0)


def test_a_look_at_the_table_leaves_less() -> None:
    looked = EpsilonPromise(1.0, 1e-9, Spent(mu=0.05, delta=1e-10))
    assert looked.rho < PROMISE.rho and looked.pure == 0
    assert EpsilonPromise(1.0, 1e-9, Spent(epsilon=0.1)).pure == pytest.approx(0.9)
    assert EpsilonPromise(1.0, 1e-9, NOTHING, 3).pure == pytest.approx(1 / 3)
    assert EpsilonPromise(1.0, 1e-9, NOTHING, 3).rho == pytest.approx(PROMISE.rho / 9)


def test_what_cannot_be_chosen_is_listed_and_not_taken() -> None:
    public = PublicSize((2,), 100)
    best = MethodCandidate("alphabeta", 0.01, "a view", eligible=False)
    other = MethodCandidate("marginals", 0.2, "tables")
    choice = compare([best, other], public, PROMISE)
    assert choice.chosen is other
    assert [one.method for one in choice.considered] == ["marginals", "alphabeta"]


def test_columns_that_could_not_be_learnt_count_as_lost() -> None:
    def error(lost: int) -> float:
        sizes = (5,) * 4 + (1,) * lost
        public = PublicSize(sizes, 50_000, tuple(range(4, 4 + lost)))
        return best_of(public, PROMISE).chosen.expected_error

    assert error(0) < USEFUL and error(6) == math.inf
    assert error(1) == pytest.approx(error(0), rel=0.3)  # a few are noted, and the others of use


# ---------------------------------------------------------------------- publishing


@pytest.mark.parametrize(("rows", "wards"), [(1_000, 2), (3_000, 9)])
def test_few_columns_of_few_rows_are_learnt(rows: int, wards: int) -> None:
    """A ward of 330 rows is listed with probability 1 − 10⁻⁴: its threshold is about 225."""
    rng = np.random.default_rng(wards)
    table = pd.DataFrame({"ward": rng.permutation(np.arange(rows) % wards).astype(str),
                          "age": rng.integers(0, 60, rows)})  # fmt: skip
    found = choose_method(voile.read(table), AutomaticOptions(simulate_seed=1), Silent())
    assert found.schema.schema["ward"].size == wards + 1  # and 'other'
    assert found.choice.chosen.expected_error <= USEFUL
    promise = found.choice.promise
    assert promise.spent.delta <= promise.delta
    spent = promise.spent.epsilon_at(promise.delta)
    assert 0.1999 < spent < 0.3 + 1e-9  # more than a fifth where the noise is large beside the rows
    assert (spent > 0.21) == (rows == 1_000)


def test_a_column_of_which_nothing_is_listed_is_noted() -> None:
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"town": [str(i % 900) for i in range(2_000)],
                          "sex": rng.integers(0, 2, 2_000).astype(str)})  # fmt: skip
    asked = AutomaticOptions(simulate_seed=1, nulls="as-value", columns=["town", "sex"])
    (note,) = choose_method(voile.read(table), asked, Silent()).schema.notes
    assert note.startswith("no value of 'town' has enough rows to be listed: all are 'other'")


def test_tables_of_three_columns_are_measured_where_they_are_small_enough() -> None:
    budget = MeasuringBudget("gaussian", "add-remove", 0.01, 0.01)
    assert chosen_order([30] * 6, 10**8, budget) == 3
    assert figures([30] * 16, 3) > MOST_FIGURES[3]
    assert chosen_order([30] * 16, 10**8, budget) == 2


@pytest.mark.parametrize(("rows", "columns"), [(3_000, 1), (4_000, 3), (8_000, 6)])
def test_publishing_without_a_method_keeps_the_promise_and_says_why(
    tmp_path: Path, rows: int, columns: int
) -> None:
    frame = people(rows, columns)
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = run("publish", "t.csv", "--simulate-seed", "3", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["considered"][0]["method"] == found["method"]
    errors = [one["expected_error"] for one in found["considered"]]
    assert found["expected_error"] == errors[0] <= USEFUL
    assert found["method"] in ("marginals", "full-table", "alphabeta")
    promise = found["promise"]
    assert promise["epsilon"] == 1.0
    assert promise["delta"] == found["guarantee"]["delta"]
    for before, later in promise["beliefs"]:
        assert later == pytest.approx(after(before, 1.0), rel=1e-2)
    assert promise["value_beliefs"] == [[0.1, pytest.approx(0.451, abs=1e-3)]]
    assert 0 <= promise["except_with"] < 1e-6
    assert found["guarantee"]["epsilon"] <= 1.0 + 1e-9
    assert found["guarantee"]["delta"] <= 1e-9
    assert not any("which values" in one["what"] for one in found["disclosed"])
    release = voile.open(tmp_path / "t.voile")
    answer = release.query("select c0, count(*) from t group by c0")
    assert len(answer.rows) >= 4
    assert run("verify", "t.voile", cwd=tmp_path).returncode == 0


def test_the_words_of_the_papers_choose_the_view() -> None:
    table = voile.read("dataset:adult/boundary")
    release = voile.publish(table, prior=0.01, simulate_seed=1)
    assert release.manifest.method == "alphabeta"
    with pytest.raises(UsageError, match="two promises"):
        voile.publish(table, prior=0.01, epsilon=1.0)


def test_a_view_promises_the_epsilon_that_was_asked_for() -> None:
    release = voile.publish(people(500, 2), "alphabeta", epsilon=0.7, schema="active",
                            simulate_seed=1)  # fmt: skip
    assert release.manifest.guarantee.epsilon.add_remove == pytest.approx(0.7, rel=1e-9)
    assert release.manifest.public_rows is None


# ---------------------------------------------------------------------- advice


def test_what_is_of_no_use_is_refused_with_changes_that_help(tmp_path: Path) -> None:
    """Every command of the hint is run, and does what the hint says."""
    people(400, 12).to_csv(tmp_path / "few.csv", index=False)
    typed = ["publish", "few.csv", "--simulate-seed", "1"]
    done = run(*typed, cwd=tmp_path, columns=2000)
    assert done.returncode == 1
    assert "nothing of use" in done.stderr and not (tmp_path / "few.voile").exists()
    commands = [line.partition(": ")[2] for line in done.stderr.splitlines() if "voile " in line]
    assert any("--epsilon" in one or "--columns" in one for one in commands)
    for number, command in enumerate(commands):
        words = shlex.split(command[command.index("voile ") :])[1:]
        place = [] if words[0] == "serve" else ["-o", f"{number}.voile"]
        mended = run(*words, *place, cwd=tmp_path)
        assert mended.returncode == 0, (command, mended.stderr)


def test_changes_are_computed_and_help() -> None:
    with pytest.raises(UselessError) as refused:
        voile.publish(people(400, 12), simulate_seed=1)
    assert refused.value.changes
    for change in refused.value.changes:
        assert change.expected_error <= USEFUL
    release = voile.publish(people(400, 12), simulate_seed=1, yes=True)
    assert release.manifest.simulated


def test_a_promise_without_meaning_needs_a_word(tmp_path: Path) -> None:
    frame = people(2_000, 2)
    with pytest.raises(PromiseError, match="next to nothing"):
        voile.publish(frame, epsilon=20.0, to=tmp_path / "w.voile", register=False)
    assert not (tmp_path / "w.voile").exists()
    made: Any = voile.publish(frame, epsilon=20.0, weak=True, register=False)
    assert "The promise is weak" in made.describe()
