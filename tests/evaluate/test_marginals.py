"""Noisy marginals in the family: planned, attacked, measured, registered, converted."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import voile
from tests.support.running import told
from tests.support.running import voile as run
from voile.errors import UsageError
from voile.evaluate.planning.marginals import plan_marginals, rounded_up
from voile.privacy.gaussian import any_rise_chance
from voile.release import MarginalRelease


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)
    n = 2000
    age = rng.integers(2, 9, n) * 10
    frame = pd.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "job": np.where(rng.random(n) < age / 120, "office", rng.choice(["field", "none"], n)),
        }
    )
    path = tmp_path_factory.mktemp("marginals") / "people.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def release(table: Path) -> MarginalRelease:
    found: MarginalRelease = voile.publish(
        table, method="marginals", schema="active", epsilon=1, order=2
    )
    return found


# ---------------------------------------------------------------------- plans


def test_a_plan_foresees_the_noise_of_the_tables(table: Path) -> None:
    """What is computed is what the answer then says; the command publishes it."""
    sql = "select count(*) as n from people where age > 50 and sex = 'f'"
    plan = plan_marginals(table, schema="active", source=str(table), on=[sql], epsilon=1, order=2)
    made = voile.publish(table, method="marginals", schema="active", epsilon=1, order=2)
    answer = made.query(sql, refine=False).to_pandas().iloc[0]
    (question,) = plan.questions
    assert question.tables == pytest.approx(answer["n_stderr"])
    assert plan.command.endswith("--method marginals --schema active --epsilon 1 --order 2")
    assert [one.columns for one in plan.noise] == [1, 2]
    everything, *_ = plan.errors
    assert everything.tables is not None
    assert everything.weighed is not None
    assert everything.weighed <= 1.2 * everything.tables


@pytest.mark.parametrize("pure", [False, True])
def test_backwards_from_an_error(table: Path, pure: bool) -> None:
    """The ε that is named keeps the error, and a tenth less does not."""
    sql = "select count(*) as n from people where sex = 'f'"
    wanted = 10.0
    plan = plan_marginals(
        table, schema="active", on=[sql], max_error=wanted, epsilon=1, order=2, pure=pure
    )
    assert plan.needed is not None
    assert plan.needed.epsilon is not None

    def error(epsilon: float) -> float:
        made = voile.publish(
            table, method="marginals", schema="active", epsilon=epsilon, order=2, pure=pure
        )
        spread = made.query(sql, refine=False).to_pandas()["n_stderr"].iloc[0]
        return float(spread) * math.sqrt(2 / math.pi)

    assert error(plan.needed.epsilon) <= wanted
    assert error(0.85 * plan.needed.epsilon) > wanted


def test_numbers_are_rounded_up() -> None:
    """To two digits, never below."""
    for epsilon in (0.0123, 0.5, 0.501, 1.0, 9.99, 12.3):
        found = rounded_up(epsilon)
        assert epsilon <= found * (1 + 1e-9)
        assert found <= 1.1 * epsilon + 1e-12


def test_the_command_plans_and_refuses_what_means_nothing(table: Path) -> None:
    """Options of views are refused with marginals, and the other way round."""
    found = told(
        [
            "plan",
            str(table),
            "--method",
            "marginals",
            "--schema",
            "active",
            "--epsilon",
            "1",
            "--order",
            "2",
        ]
    )
    assert found["epsilon"] == pytest.approx(1.0)
    assert {"rows", "noise", "errors", "questions", "needed", "command"} <= found.keys()
    for wrong in (["--posterior", "0.2"], ["--local"], ["-o", "x.png"]):
        done = run("plan", str(table), "--method", "marginals", "--schema", "active", *wrong)
        assert done.returncode == 2
        assert "means nothing" in done.stderr
    wrong = ["--order", "2", "--max-error", "5"]
    assert "is about noisy marginals" in run("plan", str(table), *wrong).stderr
    assert run("plan", str(table), "--schema", "active", "--order", "2").returncode == 0
    assert "is not planned" in run("plan", str(table), "--method", "mondrian").stderr
    with pytest.raises(UsageError, match="max_error"):
        plan_marginals(table, schema="active", max_error=-1)


# ---------------------------------------------------------------------- workloads


def test_a_workload_says_which_tables_there_are(table: Path, tmp_path: Path) -> None:
    """The sets of columns that its questions read, and single columns for the model."""
    questions = tmp_path / "questions.sql"
    questions.write_text(
        "-- what matters\nselect sex, count(*) from people group by sex;\n\n"
        "select avg(age) from people where job = 'office'\n",
        encoding="utf-8",
    )
    made = voile.publish(table, method="marginals", schema="active", epsilon=1, workload=questions)
    measured = {tuple(m.columns) for m in made.manifest.parameters.measurements}
    assert {("sex",), ("age", "job")} <= measured
    assert ("age", "sex") not in measured
    assert made.manifest.parameters.tables == "workload"


@pytest.mark.parametrize(
    ("text", "why"),
    [("", "no questions"), ("select nothing from", "question 1"), ("select x from people", "x")],
)
def test_a_workload_that_cannot_be_read_is_named(
    table: Path, tmp_path: Path, text: str, why: str
) -> None:
    """The question, its number, and what is wrong with it."""
    questions = tmp_path / "questions.sql"
    questions.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=why):
        voile.publish(table, method="marginals", schema="active", epsilon=1, workload=questions)
    with pytest.raises(UsageError, match="cannot be read"):
        voile.publish(
            table, method="marginals", schema="active", epsilon=1, workload=tmp_path / "none.sql"
        )


# ---------------------------------------------------------------------- beliefs and losses


def test_beliefs_are_bounded_for_everybody(table: Path, release: MarginalRelease) -> None:
    """By the exact law of normal noise; with pure ε always."""
    found = release.belief_bounds()
    mu = release.manifest.guarantee.mu
    assert mu is not None
    for one in found.bounds:
        rise = math.log(one.posterior / (1 - one.posterior) * (1 - one.prior) / one.prior)
        assert any_rise_chance(mu, rise) <= one.eta * (1 + 1e-6)  # that a row is there
        assert any_rise_chance(2 * mu, rise) >= one.eta * (1 - 1e-6)  # what it says, at most
    pure = voile.publish(table, method="marginals", schema="active", epsilon=1, order=1, pure=True)
    half = next(one for one in pure.belief_bounds().bounds if one.prior == 0.5)
    assert half.eta == 0
    assert half.posterior == pytest.approx(1 / (1 + math.exp(-2)), rel=1e-6)


def test_the_attack_needs_no_targets(release: MarginalRelease, tmp_path: Path) -> None:
    """Whom it is after makes no difference, and naming them is refused."""
    path = str(release.save(tmp_path / "r.voile").path)
    assert told(["attack", path])["unit"] == "add-remove"
    done = run("attack", path, "--targets", "x.csv")
    assert done.returncode == 2
    assert "holds for everybody" in done.stderr


def test_losses_are_measured(table: Path, release: MarginalRelease, tmp_path: Path) -> None:
    """More ε loses less utility and permits more belief."""
    weak = voile.publish(table, method="marginals", schema="active", epsilon=8, order=2)
    found = []
    for made in (release, weak):
        path = str(made.save(tmp_path / f"{made.manifest.guarantee.epsilon:.0f}.voile").path)
        found.append(told(["loss", str(table), path, "--sensitive", "job", "--queries", "0"]))
    assert found[0]["p_loss"] < found[1]["p_loss"]
    assert found[0]["u_loss"] > found[1]["u_loss"]


# ---------------------------------------------------------------------- register and conversions


def test_the_register_adds_releases_up(table: Path, tmp_path: Path) -> None:
    """Two releases: μ² adds up, and so the total is below the sum of both ε."""
    register = tmp_path / "register.db"
    for name in ("a", "b"):
        done = run(
            "publish", str(table), "--method", "marginals", "--schema", "active",
            "--epsilon", "1", "--order", "1",
            "-o", str(tmp_path / f"{name}.voile"), "--register", str(register), "--json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    account: dict[str, Any] = json.loads(done.stdout)["register"]
    totals = [
        float(v) for k, v in walk(account) if k == "epsilon" and isinstance(v, int | float) and v
    ]
    assert any(1.2 < total < 2.0 for total in totals)


def walk(data: Any) -> list[tuple[str, Any]]:
    """Every key and value, however deep."""
    if isinstance(data, dict):
        return [(k, v) for k, v in data.items()] + [w for v in data.values() for w in walk(v)]
    return [w for v in data for w in walk(v)] if isinstance(data, list) else []


def test_what_follows_is_listed(release: MarginalRelease) -> None:
    """ρ, (ε, δ) and μ, with their unit."""
    kinds = {one.data["kind"]: one.data for one in release.promised()}
    assert kinds.keys() == {"approximate-dp", "zcdp", "gdp"}
    assert all(data["unit"] == "add-remove" for data in kinds.values())
