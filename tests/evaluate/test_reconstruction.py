"""Dinur and Nissim's attack: fits by other solvers, the known shares, ceilings, servers."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog, lsq_linear
from typer.testing import CliRunner

from tests.support.sampling import FALSE_ALARM
from tests.support.watched import WatchedProgress
from voile.cli import app
from voile.errors import PromiseError, QueryError, TableError, UsageError
from voile.evaluate.reconstruction.command import attack, read_noises, read_questions
from voile.evaluate.reconstruction.fitting import (
    NormalEquations,
    ceiling,
    distance_squared,
    least_squares,
    linear_program,
    normal_ceiling,
    signs_of,
)
from voile.evaluate.reconstruction.server import ServerTruth, attack_server, known_truth
from voile.evaluate.reconstruction.simulating import Attempt, Noise, simulate, spread_of
from voile.noise.keyed import members, row_hashes
from voile.schema import Attribute, Schema, Values

SURE = float(stats.norm.isf(FALSE_ALARM / 2))
"""Standard deviations beyond which a sound attack lands with probability 10⁻⁶."""
SETTING = Noise("setting", setting=(1.0, 1e-6))


def system(seed: int, rows: int, questions: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    counted = rng.random((questions, rows)) < 0.5
    secret = rng.random(rows) < 0.5
    return counted, secret, counted @ secret + rng.normal(0, 0.3 * math.sqrt(rows), questions)


# ---------------------------------------------------------------------- the fits


@pytest.mark.parametrize(("rows", "questions"), [(12, 5), (20, 60), (40, 41), (60, 300)])
def test_least_squares_in_the_box_agrees_with_scipy(rows: int, questions: int) -> None:
    counted, _, answers = system(rows, rows, questions)
    free = np.column_stack([counted, np.ones(questions)])  # the total is a number of its own
    low, high = np.append(np.zeros(rows), -np.inf), np.append(np.ones(rows), np.inf)
    best = lsq_linear(free, answers, bounds=(low, high), tol=1e-14)

    def loss(values: Any) -> float:
        rest = answers - counted @ values
        return float(((rest - rest.mean()) ** 2).sum())

    found = least_squares(counted, answers)
    assert ((found >= 0) & (found <= 1)).all()
    assert loss(found) == pytest.approx(2 * best.cost, rel=1e-4, abs=1e-4)
    if questions > 2 * rows:  # then the best is the only one
        assert found == pytest.approx(best.x[:rows], abs=3e-3)


def test_normal_equations_give_the_same_fit_for_mixtures_of_columns() -> None:
    counted, _, answers = system(1, 30, 200)
    noise = np.random.default_rng(2).normal(0, 1, 200)
    equations = NormalEquations(30, 2)
    for part in np.array_split(np.arange(200), 7):
        equations.add(signs_of(counted[part]), np.column_stack([answers, noise])[part])
    mixed = equations.fitted(np.array([[1.0, 0.0], [1.0, 2.5]]))
    assert mixed[0] == pytest.approx(least_squares(counted, answers), abs=2e-3)
    assert mixed[1] == pytest.approx(least_squares(counted, answers + 2.5 * noise), abs=2e-3)


@pytest.mark.parametrize(("rows", "questions"), [(10, 30), (40, 120), (30, 20)])
def test_the_linear_program_by_its_dual_is_as_good_as_by_itself(rows: int, questions: int) -> None:
    counted, _, answers = system(rows, rows, questions)
    left, one = counted.astype(float), np.eye(questions)
    direct = linprog(
        np.append(np.zeros(rows), np.ones(questions)),
        A_ub=np.block([[left, -one], [-left, -one]]), b_ub=np.append(answers, -answers),
        bounds=[(0, 1)] * rows + [(0, None)] * questions,
    )  # fmt: skip
    found = linear_program(counted, answers)
    assert ((found >= 0) & (found <= 1)).all()
    assert np.abs(counted @ found - answers).sum() == pytest.approx(direct.fun, rel=1e-7)


def test_without_noise_both_methods_find_every_row() -> None:
    noises = [Noise("none", roots=0.0)]
    assert simulate(300, [600], noises, seed=1).attempts[0].recovered == 1
    assert simulate(60, [120], noises, seed=1, method="lp").attempts[0].recovered == 1


# ---------------------------------------------------------------------- the known shares

KNOWN = {"0.25√n": 0.966, "1√n": 0.693, "V = T": 0.597, "δ = 1, η = 1e-6": 0.527}
"""Of 1,000 rows by 4,000 questions, from one column each: what another implementation found."""
LONGER = 0.93
"""With noise of √n and 32,000 questions."""
RUNS = 5


def agrees(found: float, known: float, runs: int = RUNS, rows: int = 1_000) -> bool:
    """Whether a mean over runs and one known run can have the same expected share.

    Rows come back nearly independently, so a share of p has variance p(1 − p)/rows.
    """
    spread = math.sqrt(known * (1 - known) / rows * (1 + 1 / runs))
    return abs(found - known) <= SURE * spread


def test_the_known_shares_come_back_with_normal_noise_and_not_with_uniform() -> None:
    noises = read_noises("0.25,1", "T", "1,1e-6")
    found = simulate(1_000, [4_000], noises, runs=RUNS, seed=7)
    shares = {a.noise: a.recovered for a in found.attempts}
    assert all(agrees(shares[name], known) for name, known in KNOWN.items()), shares
    longer = simulate(1_000, [32_000], noises[1:2], seed=7).attempts[0].recovered
    assert agrees(longer, LONGER, runs=1)
    uniform = simulate(1_000, [4_000], noises[:2], law="uniform", runs=RUNS, seed=7)
    assert not agrees(uniform.attempts[0].recovered, KNOWN["0.25√n"])
    assert not agrees(uniform.attempts[1].recovered, KNOWN["1√n"])


def test_the_attack_succeeds_below_root_n_and_fails_at_a_servers_setting() -> None:
    noises = [Noise("small", roots=0.1), Noise("root", roots=1.0), SETTING]
    small, root, setting = simulate(400, [12_800], noises, runs=4, seed=3).attempts
    assert small.recovered == 1
    assert root.recovered > 0.9
    assert setting.recovered < setting.ceiling + SURE * math.sqrt(0.25 / 1_600)
    assert setting.ceiling == pytest.approx(0.529, abs=5e-4)  # whatever T is
    assert simulate(400, [100], [SETTING], seed=3).attempts[0].ceiling == setting.ceiling


def test_lp_recovers_about_as_much_as_least_squares() -> None:
    noises = [Noise("quarter", roots=0.25), SETTING]
    quarter, setting = simulate(150, [600], noises, method="lp", runs=3, seed=5).attempts
    assert quarter.recovered > 0.85
    assert setting.recovered < setting.ceiling + SURE * math.sqrt(0.25 / 450)


def test_simulations_repeat_with_a_seed_and_differ_without() -> None:
    one, two = (simulate(200, [200], [SETTING], runs=2, seed=1).to_dict() for _ in range(2))
    assert one == two
    assert simulate(200, [200], [SETTING], runs=2, seed=2).to_dict()["attempts"] != one["attempts"]
    free = [simulate(500, [500], [SETTING]).attempts[0].recovered for _ in range(3)]
    assert len(set(free)) > 1
    assert simulate(200, [200], [SETTING], runs=1, seed=1).attempts[0].stderr is None


# ---------------------------------------------------------------------- ceilings


@pytest.mark.parametrize("share", [0.5, 0.25, 0.9])
@pytest.mark.parametrize("distance", [0.05, 0.7, 4.0])
def test_the_normal_ceiling_is_the_mass_of_the_likelier_side(distance: float, share: float) -> None:
    grid = np.linspace(-9, 9 + distance, 400_001)
    likelier = np.maximum(
        share * stats.norm.pdf(grid - distance), (1 - share) * stats.norm.pdf(grid)
    )
    assert normal_ceiling(distance, share) == pytest.approx(np.trapezoid(likelier, grid), abs=1e-8)


def test_ceilings_by_enumeration_of_a_small_uniform_law() -> None:
    """Counts 0 and 1 with noise uniform on [−E, E], seen K times: exactly by overlaps."""
    size, times = 1.5, 3
    overlap = (2 * size - 1) / (2 * size)  # where an answer allows both
    assert ceiling("uniform", size, times) == pytest.approx(1 - 0.5 * overlap**times)
    assert ceiling("uniform", 0.4, 1) == 1  # noise below ½ hides nothing
    assert ceiling("normal", 0, 1) == 1
    assert normal_ceiling(0, 0.3) == 0.7


def test_nobody_is_above_the_ceiling() -> None:
    noises = [Noise(str(size), roots=size) for size in (0.25, 0.5, 1.0, 2.0)]
    for law in ("normal", "uniform"):
        for attempt in simulate(300, [300, 1_200], noises, law=law, runs=4, seed=2).attempts:
            room = SURE * math.sqrt(attempt.ceiling * (1 - attempt.ceiling) / 1_200) + 1e-9
            assert attempt.recovered <= attempt.ceiling + room, (law, attempt)


def test_distances_are_the_variances_of_log_ratios() -> None:
    """Against sums over the laws themselves; for wide noise mean and variance are D²/2 and D²."""
    from voile.privacy.interactive.laws import noise_law

    for kind in ("binomial", "gaussian", "geometric"):
        law, k = noise_law(kind, 400.0), np.arange(-390, 391)
        ratios, masses = law.log_pmf(k) - law.log_pmf(k - 1), law.pmf(k)
        mean = float((masses * ratios).sum())
        square = distance_squared(kind, law.variance)
        assert 2 * mean == pytest.approx(square, rel=0.03), kind
        assert float((masses * ratios**2).sum()) - mean**2 == pytest.approx(square, rel=0.03), kind


# ---------------------------------------------------------------------- a server


@dataclass(frozen=True)
class Said:
    answer: float | None
    charged: int
    remaining: int


@dataclass
class Pretended:
    """A server of people by their ids, with a budget and noise."""

    holds: Mapping[str, bool]
    budget_left: int
    sd: float = 0.0
    kept: dict[str, float] = field(default_factory=dict)
    asked: int = 0
    per_person: int = 1
    id_column: str | None = "person"

    def about(self) -> dict[str, Any]:
        schema = Schema((Attribute("state", "categorical", Values(("ill", "well"))),))
        return {
            "name": "people", "rows": len(self.holds), "per_person": self.per_person,
            "id_column": self.id_column, "noise": "binomial", "variance": max(self.sd, 0.01) ** 2,
            "queries": 10_000, "schema": schema.to_dict(),
        }  # fmt: skip

    def budget(self) -> dict[str, Any]:
        return {"remaining": self.budget_left}

    def ask(self, sql: str, subset: Any = "all") -> Said:
        assert sql == "select count(*) from \"people\" where (state = 'ill')"
        self.asked += 1
        seed = subset["half"]
        if seed in self.kept:
            return Said(self.kept[seed], 0, self.budget_left)
        if not self.budget_left:
            raise PromiseError("the budget is spent")
        self.budget_left -= 1
        there = members(row_hashes(self.holds), seed)
        true = sum(held for held, inside in zip(self.holds.values(), there, strict=True) if inside)
        noise = np.random.default_rng(self.asked).normal(0, self.sd) if self.sd else 0.0
        self.kept[seed] = true + noise
        return Said(self.kept[seed], 1, self.budget_left)


def pretended(rows: int = 60, budget: int = 200, sd: float = 0.0) -> Pretended:
    coins = np.random.default_rng(rows).random(rows) < 0.4
    return Pretended({f"p{i}": bool(coin) for i, coin in enumerate(coins)}, budget, sd)


def truth_of(server: Pretended) -> ServerTruth:
    return ServerTruth(tuple(server.holds), np.array(list(server.holds.values())))


@pytest.mark.parametrize("method", ["lsq", "lp"])
def test_a_server_without_noise_gives_everything_away(method: str) -> None:
    server = pretended()
    found = attack_server(server, "state = 'ill'", truth_of(server), questions=150, method=method)
    assert found.recovered == 1
    assert (found.questions, found.charged, found.remaining) == (150, 150, 50)
    assert found.guess == pytest.approx(max(np.mean(list(server.holds.values())), 0.5), abs=0.2)


def test_a_servers_noise_hides_what_its_ceiling_says() -> None:
    server = pretended(200, 400, sd=20 * math.sqrt(10))
    found = attack_server(server, "state = 'ill'", truth_of(server), questions=400)
    assert found.recovered is not None
    assert found.ceiling is not None
    assert found.recovered < found.ceiling + SURE * math.sqrt(0.25 / 200)
    assert found.ceiling < 0.67
    assert found.roots == pytest.approx(math.sqrt(4_000 / 200))


def test_never_more_is_asked_than_the_budget_and_the_number_of_questions_allow() -> None:
    server = pretended(budget=50)
    found = attack_server(server, "state = 'ill'", truth_of(server), questions=1_000)
    assert (found.questions, found.charged, found.remaining) == (50, 50, 0)
    assert server.asked == 51  # one was refused
    again = attack_server(server, "state = 'ill'", truth_of(server), questions=40)
    assert (again.questions, again.charged) == (40, 0)  # stored answers are free
    assert server.asked == 91
    with pytest.raises(PromiseError, match="allows 0 questions"):
        attack_server(pretended(budget=0), "state = 'ill'", truth_of(server), questions=10)


def test_without_the_truth_guesses_are_not_judged() -> None:
    server = pretended()
    found = attack_server(server, "state = 'ill'", ServerTruth(tuple(server.holds)), questions=150)
    assert (found.recovered, found.guess, found.ceiling) == (None, None, None)
    assert ((found.values > 0.5) == list(server.holds.values())).all()


@pytest.mark.parametrize(
    ("change", "said", "error"),
    [
        ({"per_person": 3}, "up to 3 rows", UsageError),
        ({"holds": {"p1": True}}, "60 ids were given, and the server has 1 row", TableError),
    ],
)
def test_servers_that_cannot_be_attacked_are_not_asked(
    change: dict[str, Any], said: str, error: type[Exception]
) -> None:
    whole = pretended()
    given: dict[str, Any] = {"holds": whole.holds, "budget_left": 9} | change
    server = Pretended(**given)
    with pytest.raises(error, match=said):
        attack_server(server, "state = 'ill'", truth_of(whole), questions=5)
    assert server.asked == 0


def test_ids_come_from_the_table_a_file_or_the_rows_numbers(tmp_path: Path) -> None:
    server = pretended(4)
    table = tmp_path / "people.csv"
    rows = [f"{one},{'ill' if held else 'well'}" for one, held in server.holds.items()]
    table.write_text("person,state\n" + "\n".join([*rows, rows[0]]) + "\n")  # one person twice
    known = known_truth(server.about(), "state = 'ill'", table=str(table))
    assert known.ids == tuple(server.holds)
    assert known.holds is not None
    assert known.holds.tolist() == list(server.holds.values())
    both = known_truth(server.about(), "state = 'ill' or state = 'well'", table=str(table))
    assert both.holds is not None
    assert both.holds.all()
    listed = tmp_path / "ids.txt"
    listed.write_text("\n".join(server.holds))
    assert known_truth(server.about(), "state = 'ill'", ids=listed).ids == tuple(server.holds)
    server.id_column = None
    assert known_truth(server.about(), "state = 'ill'").ids == ("0", "1", "2", "3")
    numbered = known_truth(server.about(), "state = 'ill'", table=str(table))
    assert numbered.ids == ("0", "1", "2", "3", "4")


def test_what_is_no_condition_or_has_no_ids_is_refused(tmp_path: Path) -> None:
    server = pretended(4)
    with pytest.raises(UsageError, match="draws halves by the column 'person'"):
        known_truth(server.about(), "state = 'ill'")
    with pytest.raises(QueryError, match="no column 'sate'"):
        known_truth(server.about(), "sate = 'ill'")
    twice = tmp_path / "ids.txt"
    twice.write_text("p1\np1\n")
    with pytest.raises(UsageError, match="has an id twice"):
        known_truth(server.about(), "state = 'ill'", ids=twice)
    with pytest.raises(UsageError, match="No such file"):
        known_truth(server.about(), "state = 'ill'", ids=tmp_path / "none")
    twice.write_text("p1\np2\np3\np4\n")
    with pytest.raises(UsageError, match="not one number"):
        attack(server, "state = 'ill'", "3,4", method="lsq", table=None, ids=twice)


# ---------------------------------------------------------------------- a real one


@pytest.mark.parametrize(("delta", "eta", "weak"), [(60.0, 0.01, True), (1.0, 1e-6, False)])
def test_the_real_thing_in_one_process(
    tmp_path: Path, delta: float, eta: float, *, weak: bool
) -> None:
    """A steward tests two settings on the same table: one far too weak, one as promised."""
    from voile.serve.creation import begin
    from voile.serve.ledger.base import ExhaustedError
    from voile.serve.opened import opened
    from voile.serve.query_service import QueryService

    class InProcess:
        def __init__(self, service: QueryService) -> None:
            self._asker = service

        def about(self) -> dict[str, Any]:
            return self._asker.setting.to_public()

        def budget(self) -> dict[str, Any]:
            return {"remaining": self._asker.ledger.budgets("eve").left}

        def ask(self, sql: str, subset: Any = "all") -> Said:
            try:
                found = self._asker.ask("eve", sql, subset).to_dict()
            except ExhaustedError as error:
                raise PromiseError(error.message) from None
            return Said(found["answer"], found["charged"], found["remaining"])

    rng = np.random.default_rng(4)
    table = tmp_path / "people.csv"
    lines = [f"p{i},{'ill' if rng.random() < 0.5 else 'well'}" for i in range(80)]
    table.write_text("person,state\n" + "\n".join(lines) + "\n")
    begin(tmp_path / "server", str(table), queries=250, delta=delta, eta=eta, id_column="person",
          name="people")  # fmt: skip
    with opened(tmp_path / "server") as service:
        found = attack(InProcess(service), "state = 'ill'", "all", method="lsq", table=str(table),
                       ids=None)  # fmt: skip
        assert len(service.ledger.entries()) == 250
    assert (found.questions, found.remaining) == (250, 0)
    assert found.recovered is not None
    assert found.ceiling is not None
    if weak:
        assert found.recovered > 0.9
    else:
        assert found.ceiling < 0.53 + 0.06  # the share of the commoner value is .5 to .56 here
        assert found.recovered < found.ceiling + SURE * math.sqrt(0.25 / 80)


# ---------------------------------------------------------------------- the command


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["attack", "reconstruct", *words])


def test_the_command_tells_json_and_draws(tmp_path: Path) -> None:
    pytest.importorskip("altair")
    picture = tmp_path / "r.svg"
    words = "--rows 100 --questions 100,400 --noise 0.25,1 --setting 1,1e-6 --runs 2 --json"
    done = run(*words.split(), "--simulate-seed", "1", "-o", str(picture))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert set(found) == {
        "rows", "share", "law", "method", "runs", "seed", "guess", "attempts"
    }  # fmt: skip
    assert [(a["questions"], a["noise"]) for a in found["attempts"]] == [
        (count, name) for count in (100, 400) for name in ("0.25√n", "1√n", "δ = 1, η = 1e-6")
    ]
    drawn = picture.read_text(encoding="utf-8")
    assert all(word in drawn for word in ("guessing", "√n", "a server with", "400 questions"))
    again = run("--rows", "100", "-o", str(picture))
    assert isinstance(again.exception, UsageError)
    assert "exists already" in again.exception.message


def test_noise_is_read_in_three_units() -> None:
    found = read_noises("0.5", "100,T,2T", "1,1e-6")
    assert [n.size(400, 900) for n in found[:4]] == pytest.approx([10, 10, 30, math.sqrt(1_800)])
    # V/T = 23.58 at (1, 10⁻⁶)
    assert found[4].size(400, 900) == pytest.approx(math.sqrt(23.5844424515199 * 900))
    assert [n.name for n in read_noises(None, None, None)][-2:] == ["V = T", "δ = 1, η = 1e-6"]
    assert read_questions(None, 50) == [200]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--noise", "a"), "'a' is not a number"),
        (("--noise", "-1"), "'-1' is not a number of at least 0"),
        (("--noise", "nan"), "'nan' is not a number"),
        (("--variance", "TT"), "'T' is not a number"),
        (("--setting", "1"), "is not δ,η"),
        (("--setting", "1,0.7"), "η = 0.7"),
        (("--questions", "4k"), "'4k' is not a whole number"),
        (("--questions", "1"), "1 questions are not between 2"),
        (("--rows", "20000"), "20,000 rows are not between 2 and 10,000"),
        (("--rows", "1000", "--method", "lp"), "1,000 rows are not between 2 and 500"),
        (("--method", "guess"), "there is no method 'guess'"),
        (("--law", "cauchy"), "there is no law 'cauchy'"),
        (("--share", "1"), "a share of 1"),
        (("--runs", "0"), "0 runs"),
        (("--rows", "9000", "--questions", "900000"), "take too long"),
        (("--truth", "t.csv"), "--truth is for the attack on a server"),
        (("--url", "http://127.0.0.1:1", "--noise", "1"), "--noise is for simulations"),
        (("--url", "http://127.0.0.1:1"), "nobody said what to find"),
        (("--url", "http://127.0.0.1:1", "--column", "x"), "nobody said how many answers"),
        (("--insecure",), "--insecure is for the attack on a server"),
        (("--questions", "all"), "'all' is not a whole number"),
        (("-o", "r.gif"), "ends in .gif"),
    ],
)
def test_wrong_options_are_refused(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert isinstance(done.exception, UsageError)
    assert said in done.exception.message
    assert done.exception.hint


@pytest.mark.parametrize(
    "words",
    ["--rows 5", "--variance T", "--setting 1,1e-6", "--law normal", "--share 0.5", "--runs 5",
     "--simulate-seed 1", "-o r.png", "--overwrite"],
)  # fmt: skip
def test_options_of_simulations_are_refused_for_a_server(words: str) -> None:
    """Whatever they say, and before the server is asked for anything: there is none here."""
    attacked = ("--url", "http://127.0.0.1:1", "--column", "x", "--questions", "all")
    option, *value = words.split()
    done = run(*attacked, option, *value)
    assert isinstance(done.exception, UsageError)
    assert done.exception.message == f"{option} is for simulations, and --url for a server"


def test_a_server_is_asked_as_often_as_was_said(tmp_path: Path) -> None:
    server, listed = pretended(20, budget=30), tmp_path / "ids.txt"
    listed.write_text("\n".join(server.holds))
    seen = WatchedProgress()
    options: dict[str, Any] = {"method": "lsq", "table": None, "ids": listed}
    some = attack(server, "state = 'ill'", "5", progress=seen, **options)
    assert (some.questions, server.budget_left) == (5, 25)
    assert seen.steps == [("asking", 5)] and seen.done == [1] * 5
    rest = attack(server, "state = 'ill'", "all", **options)
    assert (rest.questions, rest.charged, server.budget_left) == (30, 25, 0)


def test_few_runs_are_not_surer_than_independent_rows() -> None:
    """Runs that came out alike by chance; runs that did not; and runs that found everything."""
    alike = np.array([[0.54, 0.3, 1.0], [0.54, 0.7, 1.0]])
    found = spread_of(alike, 400)
    assert found == pytest.approx([math.sqrt(0.54 * 0.46 / 800), 0.2, 0.0])
    assert found[0] == pytest.approx(math.sqrt(0.25 / 800), rel=0.01)
    for attempt in simulate(200, [200], [SETTING], runs=2, seed=1).attempts:
        assert attempt.stderr is not None
        assert attempt.stderr >= 0.99 * math.sqrt(0.25 / 400)


def test_attempts_know_their_size_in_several_units() -> None:
    one = Attempt("x", 10, 6.0, "uniform", 9, 0.5, None, 0.6)
    assert (one.roots, one.variance) == (2.0, 12.0)
