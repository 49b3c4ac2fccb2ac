"""What a server told, by its questions: against every pair of tuples, and exact posteriors."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from rich.console import Console
from scipy import stats
from typer.testing import CliRunner

from tests.support.sampling import FALSE_ALARM
from tests.support.soak import rounds
from voile.cli import app
from voile.errors import UsageError
from voile.evaluate.reconstruction.server import read_ids
from voile.noise.keyed import members, row_hashes
from voile.privacy.interactive.laws import NoiseLaw, noise_law
from voile.privacy.interactive.promise import needed
from voile.schema import Attribute, Range, Schema, Values
from voile.serve import distances
from voile.serve.ledger.base import LOST, Entry, Ledger, StoredEntry
from voile.serve.query_service import QueryService
from voile.serve.question import QuestionReader
from voile.serve.self_audit import ExposureBound, SelfAudit, audit, rise_adaptive, self_audit
from voile.serve.setting import DeclaredSubset, Setting
from voile.terminal.serving import self_audit_view

Row = tuple[str, int, str]
SCHEMA = Schema((
    Attribute("sex", "categorical", Values(("f", "m"))),
    Attribute("age", "integer", Range(0, 3)),
    Attribute("town", "categorical", Values(("a", "b", "c"))),
))  # fmt: skip
TUPLES: list[Row] = list(itertools.product(("f", "m"), range(4), ("a", "b", "c")))
Part = Callable[[Row], dict[Any, int]]
"""What a row adds to each group of a question."""


def setting(noise: str = "gaussian", **changes: Any) -> Setting:
    given: dict[str, Any] = {
        "id": "0" * 32, "name": "people", "schema": SCHEMA, "people": 40, "declared": True,
        "queries": 30, "delta": 1.0, "eta": 0.01, "noise": noise, "variance": 50.0,
        "subsets": (DeclaredSubset("old", "age >= 2", 20),),
    }  # fmt: skip
    return Setting(**(given | changes))


QUESTIONS: dict[str, Part] = {
    "select count(*) from people where sex = 'f'": lambda r: {0: int(r[0] == "f")},
    "select count(*) from people where age > 1 and town = 'a'": lambda r: {
        0: int(r[1] > 1 and r[2] == "a")
    },
    "select town, count(*) from people group by town": lambda r: {r[2]: 1},
    "select sum(age) from people": lambda r: {0: r[1]},
    "select sex, sum(age) from people where town <> 'c' group by sex": lambda r: {
        r[0]: r[1] * (r[2] != "c")
    },
    "select count(*) from people": lambda _: {0: 1},
}


class Remembered:
    """A ledger of questions with answers, as far as it is read here."""

    def __init__(self) -> None:
        self.kept: list[StoredEntry] = []

    def add(self, question: str, answer: str) -> None:
        number = len(self.kept) + 1
        self.kept.append(StoredEntry(number, Entry(str(number), question, answer), "x", 0.0, ""))

    def entries(self, after: int = 0, most: int = 1000) -> list[StoredEntry]:
        return self.kept[after : after + most]


@lru_cache(maxsize=8)
def reader_of(how: Setting) -> QuestionReader:
    return QuestionReader(how)


def asked(
    how: Setting, questions: Sequence[tuple[str, Any]], numbers: Sequence[Any] | None = None
) -> Remembered:
    """A ledger in which every question has one total."""
    reader, found = reader_of(how), Remembered()
    for place, (sql, subset) in enumerate(questions):
        (total,) = reader.read(sql, subset).totals
        told = [0] * total.question["cells"] if numbers is None else numbers[place]
        found.add(json.dumps(total.question), json.dumps([int(n) for n in told]))
    return found


def audited(how: Setting, ledger: Remembered, ids: Sequence[str] | None = None) -> SelfAudit:
    return audit(how, cast(Ledger, ledger), ids)


def laws(how: Setting, questions: Sequence[tuple[str, Any]]) -> list[NoiseLaw]:
    reader = reader_of(how)
    return [reader.read(sql, subset).totals[0].law for sql, subset in questions]


def between(part: Part, a: Row, b: Row) -> float:
    """By brute force: the squares of what changes in all groups."""
    one, two = part(a), part(b)
    return sum((one.get(key, 0) - two.get(key, 0)) ** 2 for key in {*one, *two})


def per_step(law: NoiseLaw) -> float:
    return 1 / law.parameter**2 if law.kind == "geometric" else 1 / law.variance


# ---------------------------------------------------------------------- distances


@pytest.mark.parametrize("noise", ["gaussian", "geometric", "binomial"])
def test_the_worst_pair_is_that_of_all_pairs(noise: str) -> None:
    how = setting(noise)
    rng = np.random.default_rng(1)
    for _ in range(6):
        chosen = [list(QUESTIONS)[i] for i in rng.integers(0, len(QUESTIONS), 7)]
        questions = [(sql, "all") for sql in chosen]
        scales = [per_step(law) for law in laws(how, questions)]
        best = max(
            sum(between(QUESTIONS[sql], a, b) * scale
                for sql, scale in zip(chosen, scales, strict=True))
            for a, b in itertools.combinations(TUPLES, 2)
        )  # fmt: skip
        found = audited(how, asked(how, questions))
        assert found.exact
        assert found.worst.squared == pytest.approx(best, rel=1e-9)


def test_declared_subsets_count_whom_they_choose() -> None:
    how = setting()
    questions = [("select count(*) from people where sex = 'f'", "old"),
                 ("select count(*) from people", "old")]  # fmt: skip
    scale = 1 / laws(how, questions)[0].variance
    found = audited(how, asked(how, questions))
    assert found.worst.squared == pytest.approx(2 * scale)  # an old woman, or nobody old
    assert [lot.columns for lot in found.together] == [("sex", "age")]


def test_questions_about_other_columns_add_up_and_what_everybody_adds_tells_nothing() -> None:
    how = setting()
    questions = [("select count(*) from people where sex = 'f'", "all"),
                 ("select count(*) from people where age = 0", "all"),
                 ("select count(*) from people", "all")]  # fmt: skip
    found = audited(how, asked(how, questions))
    scale = 1 / laws(how, questions)[0].variance
    assert sorted(found.parts) == pytest.approx([0, scale, scale])
    assert found.worst.squared == pytest.approx(2 * scale)
    assert found.planned.squared == pytest.approx(how.queries / how.variance)
    told = found.to_dict()["columns"]
    assert [one["columns"] for one in told[:2]] in ([["sex"], ["age"]], [["age"], ["sex"]])


def test_halves_count_some_people_and_not_others() -> None:
    how = setting()
    sql = "select count(*) from people where sex = 'f'"
    seeds = [f"s{i}" for i in range(8)]
    questions = [*((sql, {"half": seed}) for seed in seeds), (sql, "all")]
    found = audited(how, asked(how, questions))
    scale = 1 / laws(how, questions)[0].variance
    hashes = row_hashes(range(how.people))
    times = 1 + np.sum([members(hashes, seed) for seed in seeds], axis=0)
    assert found.squares == pytest.approx(times * scale)
    assert found.known_by == "row number"
    people = found.to_dict()["people"]
    assert people["looked_at"] == how.people
    assert people["largest"]["distance_squared"] == pytest.approx(times.max() * scale)
    assert people["most_exposed"][0]["id"] == str(int(np.argmax(times)))
    named = setting(id_column="person")
    theirs = audited(named, asked(named, questions), ["x7", "x9"])
    own = row_hashes(["x7", "x9"])
    assert theirs.squares == pytest.approx(
        (1 + np.sum([members(own, seed) for seed in seeds], axis=0)) * scale
    )
    unknown = audited(named, asked(named, questions))
    assert (unknown.known_by, unknown.ids) == ("random", ())
    assert 5 <= unknown.squares.mean() / scale <= 9


@pytest.mark.parametrize("noise", ["gaussian", "binomial"])
def test_people_with_several_rows_by_every_pair_of_lots_of_rows(noise: str) -> None:
    """Up to two rows each, replaced by up to two others."""
    how = setting(noise, per_person=2, people=20)
    chosen = ["select count(*) from people where sex = 'f'", "select count(*) from people",
              "select town, count(*) from people group by town"]  # fmt: skip
    questions = [(sql, "all") for sql in chosen]
    scales = [per_step(law) for law in laws(how, questions)]
    few: list[Row] = [("f", 0, "a"), ("f", 0, "b"), ("m", 0, "a"), ("m", 0, "c")]
    held = [list(rows) for count in range(3)
            for rows in itertools.combinations_with_replacement(few, count)]  # fmt: skip

    def total(sql: str, rows: list[Row], key: Any) -> int:
        return sum(QUESTIONS[sql](row).get(key, 0) for row in rows)

    best = max(
        sum(scale * sum((total(sql, a, key) - total(sql, b, key)) ** 2 for key in (0, *"abc"))
            for sql, scale in zip(chosen, scales, strict=True))
        for a, b in itertools.combinations(held, 2)
    )  # fmt: skip
    assert audited(how, asked(how, questions)).worst.squared == pytest.approx(best)


def test_large_domains_are_bounded_and_never_below_the_exact(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    how = setting()
    questions = [(sql, "all") for sql in QUESTIONS]
    exact = audited(how, asked(how, questions))
    for name in ("MOST_TUPLES", "MOST_SEEN"):
        with monkeypatch.context() as patch:
            patch.setattr(distances, name, 4)
            rough = audited(how, asked(how, questions))
        assert not rough.exact
        assert exact.worst.squared <= rough.worst.squared <= exact.planned.squared + 1e-9
        assert (rough.squares >= exact.squares - 1e-12).all()


def test_lost_answers_are_taken_for_the_worst_and_no_answers_tell_nothing() -> None:
    how = setting()
    ledger = asked(how, [("select count(*) from people where sex = 'f'", "all")])
    before = audited(how, ledger)
    ledger.add(LOST, "null")
    found = audited(how, ledger)
    assert (found.answers, found.lost) == (1, 1)
    assert found.worst.squared == pytest.approx(before.worst.squared + 1 / how.variance)
    assert found.squares == pytest.approx(before.squares + 1 / how.variance)
    nothing = audited(how, Remembered())
    assert nothing.worst.to_dict() == {
        "distance_squared": 0.0, "rise": 0.0, "rise_adaptive": 0.0, "passed": 0.0
    }  # fmt: skip
    assert nothing.left_over.too_large is None


def test_no_row_is_looked_at() -> None:
    class Guarded:
        def totals(self, asked: Any) -> Any:
            raise AssertionError(f"{asked}: a row was looked at")

        def is_at_hand(self, request: Any) -> bool:  # noqa: ARG002
            return False

    how = setting()
    ledger = asked(how, [(sql, "all") for sql in QUESTIONS])
    service = QueryService(how, Guarded(), cast(Ledger, ledger))
    found = self_audit(service)
    assert found["answers"] == len(QUESTIONS)
    json.dumps(found, allow_nan=False)


# ---------------------------------------------------------------------- exact posteriors


def walks(law: NoiseLaw, shifts: Sequence[int], runs: int, seed: int) -> Any:
    """What conf of the truth against its alternative rises by, answer by answer, exactly."""
    rng = np.random.default_rng(seed)
    reach = law.deviation(1e-12)
    values = np.arange(-reach, reach + 1)
    masses = law.pmf(values)
    noise = rng.choice(values, size=(runs, len(shifts)), p=masses / masses.sum())
    # The truth gives the answer noise; the alternative would need noise + shift for it.
    steps = law.log_pmf(noise) - law.log_pmf(noise + np.array(shifts))
    return np.cumsum(np.where(np.isfinite(steps), steps, np.inf), axis=1)


RUNS = 40_000
TIGHT = {"binomial": 1.35, "gaussian": 1.35, "geometric": 50}
"""How many times less often than with chance η each law may pass: few steps are not yet normal, and
the bound for geometric noise, whose losses have few sizes, is Azuma's."""


@pytest.mark.parametrize("noise", TIGHT)
def test_the_bound_is_passed_with_chance_eta_and_no_more(noise: str) -> None:
    """A person in 20 of 30 questions, who is told apart by all of them; then by half of them.

    The conf of an adversary who knows every other row is exact. The rate of passing the bound is
    η up to the law's distance from the normal one; a fifth is allowed, beside a false alarm of
    10⁻⁶. A bound for three quarters of D² is passed visibly more often.
    """
    eta, queries = 0.02, 30
    variance = needed(noise, 1.0, eta, queries).variance
    how = setting(noise, variance=variance, eta=eta, queries=queries)
    sql = "select count(*) from people where sex = 'f'"
    ledger = asked(how, [(sql, "all")] * 20)
    worst = audited(how, ledger).worst
    (law,) = laws(how, [(sql, "all")])
    ends = walks(law, [1] * 20, RUNS, 5)[:, -1]
    passed = int((ends > worst.rise).sum())
    most = stats.binom.isf(FALSE_ALARM, RUNS, 1.2 * eta)
    least = stats.binom.ppf(FALSE_ALARM, RUNS, eta / TIGHT[noise])
    assert least <= passed <= most, passed / RUNS
    less = replace(worst, squared=worst.squared * (0.75 if worst.normal else 0.4))
    assert (ends > less.rise).sum() > most
    assert (walks(law, [1] * 10, RUNS, 6)[:, -1] > worst.rise).sum() < least


def test_delta_is_passed_with_the_chance_that_is_said() -> None:
    how = setting("gaussian", variance=12.0, eta=0.02, delta=1.0)
    sql = "select count(*) from people where sex = 'f'"
    worst = audited(how, asked(how, [(sql, "all")] * 6)).worst
    (law,) = laws(how, [(sql, "all")])
    passed = int((walks(law, [1] * 6, RUNS, 7)[:, -1] > 1.0).sum())
    low, high = stats.binom.ppf([FALSE_ALARM, 1 - FALSE_ALARM], RUNS, worst.passed)
    assert low * 0.93 <= passed <= high * 1.07


@pytest.mark.parametrize("noise", ["gaussian", "geometric"])
def test_the_adaptive_bound_holds_for_those_who_stop_at_their_best(noise: str) -> None:
    """They ask on until conf is as high as it gets, and also ask more sharply when they lose."""
    eta, queries = 0.02, 30
    law = noise_law(noise, needed(noise, 1.0, eta, queries).variance)
    square = per_step(law)
    planned = queries * square
    heights = walks(law, [1] * queries, RUNS, 8)
    bounds = [rise_adaptive((t + 1) * square, eta, planned) for t in range(queries)]
    most = stats.binom.isf(FALSE_ALARM, RUNS, eta)
    assert (heights > np.array(bounds)).any(axis=1).sum() <= most
    fixed = [ExposureBound((t + 1) * square, 1.0, eta, planned).rise for t in range(queries)]
    assert (heights > np.array(fixed)).any(axis=1).sum() > most  # which does not hold for these


def test_adaptive_bounds_grow_with_distance_and_stay_near_the_others() -> None:
    squares = np.linspace(1e-4, 0.05, 300)
    rises = [rise_adaptive(float(s), 1e-6, 0.0424) for s in squares]
    assert (np.diff(rises) > 0).all()
    for square, rise in zip(squares, rises, strict=True):
        fixed = ExposureBound(float(square), 1.0, 1e-6, 0.0424).rise
        assert fixed < rise < 1.9 * fixed


# ---------------------------------------------------------------------- what answers leave over


def overlapping(how: Setting, sd: float, seed: int) -> Remembered:
    """Histograms, their margins, and a half, of the same random people."""
    rng = np.random.default_rng(seed)
    people = [TUPLES[i] for i in rng.integers(0, len(TUPLES), how.people)]
    inside = members(row_hashes(range(how.people)), "h")
    towns = np.array([sum(row[2] == town for row in people) for town in "abc"])
    sexes = np.array([sum(row[0] == sex for row in people) for sex in "fm"])
    both = np.array(
        [sum(row[0] == s and row[2] == t for row in people) for s in "fm" for t in "abc"]
    )
    women = np.array([sum(row[0] == "f" for row in people)])
    half = np.array([sum(r[0] == s for r, one in zip(people, inside, strict=True) if one)
                     for s in "fm"])  # fmt: skip
    told: list[tuple[str, Any, Any]] = [
        ("select town, count(*) from people group by town", "all", towns),
        ("select sex, count(*) from people group by sex", "all", sexes),
        ("select sex, town, count(*) from people group by sex, town", "all", both),
        ("select count(*) from people where sex = 'f'", "all", women),
        ("select sex, count(*) from people group by sex", {"half": "h"}, half),
    ]
    scales = [law.sd * sd for law in laws(how, [(sql, subset) for sql, subset, _ in told])]
    noisy = [np.round(truth + rng.normal(0, scale, len(truth)))
             for (_, _, truth), scale in zip(told, scales, strict=True)]  # fmt: skip
    return asked(how, [(sql, subset) for sql, subset, _ in told], noisy)


def test_what_answers_leave_over_is_noise_of_the_size_that_was_said() -> None:
    """Its squares follow χ², so chances are uniform; noise of half or twice the size is caught."""
    how = setting("gaussian", variance=400.0, people=60)
    found = [audited(how, overlapping(how, 1.0, seed)).left_over for seed in range(rounds(8, 20))]
    # 3 + 2 + 6 + 1 answers about 6 counts whose sum is known; 2 of a half whose sum is known.
    assert {one.freedom for one in found} == {(3 + 2 + 6 + 1 + 1 - 6) + (2 + 1 - 2)}
    squares = sum(one.squares for one in found)
    freedom = sum(one.freedom for one in found)
    assert FALSE_ALARM < stats.chi2.sf(squares, freedom) < 1 - FALSE_ALARM
    quiet = [audited(how, overlapping(how, 0.5, seed)).left_over for seed in range(rounds(5, 8))]
    loud = [audited(how, overlapping(how, 2.0, seed)).left_over for seed in range(rounds(5, 8))]
    whole = {"quiet": sum(quiet[1:], quiet[0]), "loud": sum(loud[1:], loud[0])}
    assert cast(float, whole["quiet"].too_small) < FALSE_ALARM
    assert cast(float, whole["loud"].too_large) < FALSE_ALARM


def test_answers_that_do_not_overlap_leave_nothing_over() -> None:
    how = setting()
    once = asked(how, [("select count(*) from people where sex = 'f'", "all")], [[7]])
    assert audited(how, once).left_over.freedom == 0
    everyone = asked(how, [("select count(*) from people", "all")], [[47]])
    left = audited(how, everyone).left_over  # 40 people, noise of variance 50
    assert left.freedom == 1
    assert left.squares == pytest.approx(49 / 50, rel=1e-6)
    geometric = setting("geometric")
    told = asked(geometric, [("select count(*) from people", "all")], [[47]])
    assert audited(geometric, told).left_over.freedom == 0


# ---------------------------------------------------------------------- a server's folder


def test_the_command_on_a_real_server(tmp_path: Path) -> None:
    from voile.serve.creation import begin
    from voile.serve.opened import opened

    rng = np.random.default_rng(1)
    table, ids = tmp_path / "people.csv", tmp_path / "ids.txt"
    rows = [f"p{i},{rng.choice(['f', 'm'])},{rng.integers(20, 60)}" for i in range(50)]
    table.write_text("person,sex,age\n" + "\n".join(rows) + "\n")
    ids.write_text("\n".join(f"p{i}" for i in range(50)))
    folder = tmp_path / "server"
    begin(folder, str(table), queries=40, delta=1.0, id_column="person", name="people")
    with opened(folder) as service:
        for i in range(10):
            service.ask("ann", "select count(*) from people where sex = 'f'", {"half": str(i)})
        service.ask("ann", "select sex, count(*), avg(age) from people group by sex")
        inside = self_audit(service)
    done = CliRunner().invoke(app, ["serve", "audit", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found == inside
    assert set(found) == {
        "server", "id", "queries", "answers", "lost", "kinds", "exact", "delta", "eta", "noise",
        "variance", "planned", "worst", "columns", "people", "residuals",
    }  # fmt: skip
    assert found["people"]["known_by"] == "random"
    assert found["worst"]["distance_squared"] < found["planned"]["distance_squared"]
    told = CliRunner().invoke(app, ["serve", "audit", str(folder), "--ids", str(ids)])
    assert told.exit_code == 0, told.output
    assert "people, by their ids" in " ".join(told.output.split())


@pytest.mark.parametrize(
    ("count", "said"),
    [(13, "names 13 people, and the server has 40: the other 27 were not looked at"),
     (50, "names 50 people, and the server has 40: at least 10 of these ids are nobody's"),
     (40, None), (None, None)],
)  # fmt: skip
def test_how_many_of_the_people_a_file_names_is_said(count: int | None, said: str | None) -> None:
    how = setting(id_column="person")
    ledger = asked(how, [("select count(*) from people where sex = 'f'", {"half": "h"})])
    ids = None if count is None else [f"p{i}" for i in range(count)]
    found = audited(how, ledger, ids)
    people = found.to_dict()["people"]
    assert (people["of"], people["named"]) == (40, count)
    console = Console(width=200, no_color=True)
    with console.capture() as shown:
        console.print(self_audit_view(found))
    assert said is None or said in shown.get()
    assert ("the server has" in shown.get()) == (said is not None)


def test_folders_and_ids_that_are_none_are_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["serve", "audit", str(tmp_path)])
    assert isinstance(done.exception, UsageError)
    assert "is no server's folder" in done.exception.message
    empty = tmp_path / "ids.txt"
    empty.touch()
    with pytest.raises(UsageError, match="is empty"):
        read_ids(empty)


def test_bounds_are_the_formula() -> None:
    """(δ, η) = (1, 10⁻⁶): V/T = 23.5844…, where D² = T/V gives δ and η back."""
    bound = ExposureBound(1 / 23.5844424515199, 1.0, 1e-6, 1 / 23.5844424515199)
    assert bound.rise == pytest.approx(1, abs=1e-6)
    assert bound.passed == pytest.approx(1e-6, rel=1e-4)
    assert math.isclose(bound.rise_adaptive, 0.0212 + 0.2059 * math.sqrt(2 * math.log(2e6)),
                        rel_tol=1e-3)  # fmt: skip
