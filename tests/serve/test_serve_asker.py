"""Answers: right without noise, covered with it, charged once, never more than there is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.serve.test_serve_questions import DOMAIN, some_rows
from tests.support.answered import asker_of, no_noise
from tests.support.sampling import proportion_at_least
from tests.support.soak import rounds
from voile.errors import UsageError
from voile.noise.keyed import Key
from voile.noise.whole import draw
from voile.privacy.interactive.laws import NoiseLaw
from voile.serve.creation import begin
from voile.serve.ledger.base import ExhaustedError
from voile.serve.opened import opened
from voile.serve.query_service import QueryService

TRUE = [
    "select count(*) as x from t where age > 2",
    "select count(*) as x from t where age > debt and (sex = 'Male' or share is null)",
    "select sum(debt) as x from t",
    "select sum(share) as x from t where age < 3",
    "select sum(share * age) as x from t",
    "select avg(age) as x from t where sex = 'Male'",
    "select avg(share) as x from t",
    "select var_pop(debt) as x from t",
    "select sum(age) / count(*) + 1 as x from t",
    "select count(share) as x from t",
    "select count(*) filter (where age = 1) as x from t where debt < 1",
    "select sex, count(*) as x from t group by sex order by sex",
    "select age, sex, sum(debt) as x from t group by 1, 2 order by 1, 2",
    "select age % 2 as odd, avg(share) as x from t group by 1 order by 1",
    "select share, count(*) as x from t group by share order by share nulls last",
]


@pytest.fixture(scope="module")
def people() -> pa.Table:
    return pa.Table.from_pylist(some_rows(np.random.default_rng(3), 4000))


@pytest.fixture(scope="module", params=["binomial", "gaussian"])
def noiseless(
    request: pytest.FixtureRequest, people: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[QueryService]:
    """One server for all questions: what it answers does not depend on what was asked before."""
    folder = tmp_path_factory.mktemp("noiseless") / "s"
    with asker_of(folder, people, schema=DOMAIN, noise=request.param, noiseless=True) as found:
        yield found


@pytest.mark.parametrize("sql", TRUE)
def test_without_noise_answers_are_the_truth(
    sql: str, people: pa.Table, noiseless: QueryService
) -> None:
    con = duckdb.connect()
    con.register("t", people)
    truth = con.execute(sql).fetchall()
    told = noiseless.ask("ana", sql).answer
    assert len(told.rows) == len(truth)
    loose = 1e-4  # shares are summed in steps of about a millionth
    for row, true in zip(told.rows, truth, strict=True):
        *keys, estimate = row.values()
        assert tuple(keys) == true[:-1]
        assert estimate.value == pytest.approx(true[-1], rel=loose, abs=loose)


def test_intervals_hold_the_truth_as_often_as_they_say(tmp_path: Path) -> None:
    """Many servers' worth of noise; sound intervals fail this with probability 10⁻⁶ each."""
    t = pa.Table.from_pylist(some_rows(np.random.default_rng(4), 3000))
    con = duckdb.connect()
    con.register("t", t)
    asked = {
        "select count(*) as x from t where age > 2": 0,
        "select sum(debt) as x from t where sex = 'Male'": 0,
        "select avg(age) as x from t where debt > -2": 0,
        "select count(*) filter (where age = 1) - count(*) filter (where debt > 0) as x from t": 0,
        "select sum(share) / sum(age) as x from t": 0,
    }  # fmt: skip
    truth = {sql: con.execute(sql).fetchall()[0][0] for sql in asked}
    runs = rounds(60, 200)
    with asker_of(tmp_path / "s", t, schema=DOMAIN, queries=40) as found:
        reader = found._reader
        for run in range(runs):
            key = Key.from_seed(run)
            count = iter(range(10**6))

            def noise(law: NoiseLaw, size: int) -> list[int]:
                # Each draw has a key of its own: one key's stream begins anew every time.
                return draw(law, size, Key.from_seed(1000 * run + next(count)))  # noqa: B023

            again = Again(found, noise)
            for sql in asked:
                low, high = again.answer(reader.read(sql), 0.95).interval()
                asked[sql] += low <= truth[sql] <= high
            assert key.simulated
    for sql, held in asked.items():
        assert proportion_at_least(held, runs, 0.95), (sql, held / runs)
    assert any(held < runs for held in asked.values())  # they are not all as wide as can be


class Again:
    """Answers as the server would give them if it were begun anew, with noise of a seed."""

    def __init__(self, service: QueryService, noise: Any) -> None:
        self._asker = QueryService(service.setting, service._rows, service.ledger, noise)

    def answer(self, question: Any, confidence: float) -> Any:
        from voile.serve.ledger.base import StoredEntry

        entries = self._asker._answers(question, self._asker._asked(question))
        kept = {entry.key: StoredEntry(1, entry, "", 0.0, "") for entry in entries}
        return self._asker._assembled(question, kept, confidence)


def test_a_smaller_interval_would_miss(tmp_path: Path) -> None:
    """The power of the test above: at 0.6 an interval holds the truth too seldom for 0.95."""
    t = pa.Table.from_pylist(some_rows(np.random.default_rng(4), 3000))
    truth = sum(row["age"] > 2 for row in t.to_pylist())
    held, runs = 0, rounds(60, 150)
    with asker_of(tmp_path / "s", t, schema=DOMAIN, queries=40) as found:
        question = found._reader.read("select count(*) from t where age > 2")
        for run in range(runs):
            again = Again(found, lambda law, size: draw(law, size, Key.from_seed(run)))  # noqa: B023
            low, high = again.answer(question, 0.6).interval()
            held += low <= truth <= high
    assert not proportion_at_least(held, runs, 0.95)


# ---------------------------------------------------------------------- charges


def test_the_same_question_is_answered_once_and_for_everyone(tmp_path: Path) -> None:
    t = pa.Table.from_pylist(some_rows(np.random.default_rng(5), 300))
    with asker_of(tmp_path / "s", t, schema=DOMAIN, queries=5) as found:
        first = found.ask("ana", "select count(*) from t where age > 2")
        second = found.ask("ben", "select count(*) from t where not (age < 3)")
        assert (first.charged, second.charged) == (1, 0)
        assert first.answer.value == second.answer.value
        assert first.numbers == second.numbers == (1,)
        average = found.ask("ben", "select avg(debt) from t where age >= 3")
        assert (average.charged, average.left) == (1, 3)  # the count is known
        assert found.cost("ana", "select sum(debt) from t where age > 2").new == 0


def test_what_is_public_is_exact_and_free(tmp_path: Path) -> None:
    rows = some_rows(np.random.default_rng(5), 300)
    t = pa.Table.from_pylist(rows)
    subsets = {"men": "sex = 'Male'"}
    with asker_of(tmp_path / "s", t, schema=DOMAIN, queries=9, subsets=subsets) as found:
        everyone = found.ask("ana", "select count(*) from t where age >= 0")
        assert (everyone.answer.value, everyone.answer.stderr, everyone.charged) == (300, 0, 0)
        assert everyone.answer.interval() == (300, 300)
        nobody = found.ask("ana", "select count(*) from t where age > 2 and age < 2")
        assert (nobody.answer.value, nobody.answer.stderr, nobody.charged) == (0, 0, 0)
        assert "no tuple" in nobody.notes[-1]
        men = found.ask("ana", "select count(*) from t", "men")
        assert (men.answer.value, men.charged) == (sum(r["sex"] == "Male" for r in rows), 0)
        half = found.ask("ana", "select count(*) from t", {"half": "x"})
        assert (half.answer.value, half.charged) == (half.subset_rows, 0)
        average = found.cost("ana", "select avg(age) from t")
        assert (average.new, average.known) == (1, 0)  # the sum alone
        assert found.ask("ana", "select avg(age) from t").charged == 1
        assert len(found.ledger.entries()) == 1


def test_with_several_rows_a_person_the_number_of_rows_is_not_public(tmp_path: Path) -> None:
    rows = [{"who": i // 2} | row for i, row in enumerate(some_rows(np.random.default_rng(5), 60))]
    t = pa.Table.from_pylist(rows)
    with asker_of(tmp_path / "s", t, schema=DOMAIN, person="who", per_person=2) as found:
        assert found.ask("ana", "select count(*) from t").charged == 1


def test_notes_come_before_anything_is_spent(tmp_path: Path) -> None:
    t = pa.Table.from_pylist(some_rows(np.random.default_rng(5), 300))
    with asker_of(tmp_path / "s", t, schema=DOMAIN, queries=9) as found:
        told = found.cost("ana", "select count(*) from t where sex = 'Mael'")
        assert told.new == 0
        assert any("Mael" in note for note in told.notes)
        assert set(told.notes) <= set(
            found.ask("ana", "select count(*) from t where sex = 'Mael'").notes
        )


def test_never_one_more(tmp_path: Path) -> None:
    t = pa.Table.from_pylist(some_rows(np.random.default_rng(6), 300))
    folder = tmp_path / "s"
    with asker_of(folder, t, schema=DOMAIN, queries=10) as found:
        for i in range(10):
            found.ask("ana", f"select count(*) from t where age > {i % 4} and debt > {i // 4 - 3}")
        with pytest.raises(ExhaustedError, match="needs 1 of the budget of the server"):
            found.ask("ana", "select count(*) from t where age = 0")
        assert found.ask("ana", "select count(*) from t where age > 0 and debt > -3").charged == 0
    with opened(folder) as again:
        with pytest.raises(ExhaustedError):
            again.ask("ana", "select count(*) from t where age = 0")
        assert len(again.ledger.entries()) == 10


def test_a_question_of_several_totals_is_charged_whole_or_not(tmp_path: Path) -> None:
    t = pa.Table.from_pylist(some_rows(np.random.default_rng(6), 300))
    with asker_of(tmp_path / "s", t, schema=DOMAIN, queries=2) as found:
        with pytest.raises(ExhaustedError, match="needs 3"):
            found.ask("ana", "select variance(age) from t where debt > 0")
        assert not found.ledger.entries()
        assert found.ask("ana", "select avg(age) from t where debt > 0").charged == 2


def test_budgets_of_analysts_bound_them(tmp_path: Path) -> None:
    t = pa.Table.from_pylist(some_rows(np.random.default_rng(6), 300))
    with asker_of(tmp_path / "s", t, schema=DOMAIN, queries=20) as found:
        found.ledger.issue("ana", queries=2)
        found.ask("ana", "select count(*) from t where age = 0")
        found.ask("ana", "select count(*) from t where age = 1")
        with pytest.raises(ExhaustedError, match="ana"):
            found.ask("ana", "select count(*) from t where age = 2")
        assert found.ask("ben", "select count(*) from t where age = 2").left == 17


def test_many_at_once_never_exceed_the_budget(tmp_path: Path) -> None:
    t = pa.Table.from_pylist(some_rows(np.random.default_rng(7), 300))
    told: list[int] = []
    with asker_of(tmp_path / "s", t, schema=DOMAIN, queries=30) as found:

        def work(start: int) -> None:
            for i in range(start, start + 10):
                try:
                    reply = found.ask(
                        "ana", "select count(*) from t where age > 2", {"half": str(i)}
                    )
                    told.append(reply.charged)
                except ExhaustedError:
                    pass

        threads = [threading.Thread(target=work, args=(10 * i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        entries = found.ledger.entries()
    assert sum(told) == len(entries) == 30


# ---------------------------------------------------------------------- beginning and opening


def test_a_server_is_begun_whole_or_not_at_all(tmp_path: Path) -> None:
    t = pa.Table.from_pylist(some_rows(np.random.default_rng(8), 30))
    for options in (
        {"queries": 0}, {"delta": 0.0}, {"eta": 0.7}, {"noise": "loud"}, {"person": "nobody"},
        {"per_person": 2}, {"subsets": {"all": "age > 1"}}, {"subsets": {"x": "nope > 1"}},
        {"columns": ["nope"]}, {"id_column": "sex"},
    ):  # fmt: skip
        with pytest.raises(Exception, match=r".") as caught:
            begin(tmp_path / "s", t, **({"queries": 10, "delta": 1.0} | options))
        assert getattr(caught.value, "hint", ""), options
        assert not list(tmp_path.iterdir()), options
    begin(tmp_path / "s", t, schema=DOMAIN, queries=10, delta=1.0)
    with pytest.raises(UsageError, match="exists already"):
        begin(tmp_path / "s", t, schema=DOMAIN, queries=10, delta=1.0)


def test_the_folder_is_its_owners_only(tmp_path: Path) -> None:
    t = pa.Table.from_pylist(some_rows(np.random.default_rng(8), 30))
    begin(tmp_path / "s", t, schema=DOMAIN, queries=10, delta=1.0)
    assert (tmp_path / "s").stat().st_mode & 0o077 == 0
    for path in (tmp_path / "s").iterdir():
        assert path.stat().st_mode & 0o077 == 0, path


def test_another_table_is_not_answered_from(tmp_path: Path) -> None:
    generator = np.random.default_rng(9)
    for name in ("s", "other"):
        rows = pa.Table.from_pylist(some_rows(generator, 30))
        begin(tmp_path / name, rows, schema=DOMAIN, queries=10, delta=1.0)
    (tmp_path / "other" / "table.duckdb").replace(tmp_path / "s" / "table.duckdb")
    with pytest.raises(UsageError, match="is not the table"), opened(tmp_path / "s"):
        pass


def test_subsets_have_public_sizes(tmp_path: Path) -> None:
    rows = some_rows(np.random.default_rng(10), 400)
    t = pa.Table.from_pylist(rows)
    with asker_of(
        tmp_path / "s", t, schema=DOMAIN, subsets={"men": "sex = 'Male'"}, noiseless=True
    ) as found:
        men = [row for row in rows if row["sex"] == "Male"]
        reply = found.ask("ana", "select count(*) from t where age > 2", "men")
        assert reply.subset_rows == len(men)
        assert reply.answer.value == sum(row["age"] > 2 for row in men)


# ---------------------------------------------------------------------- PostgreSQL


def test_a_table_and_a_ledger_of_postgresql(postgres: Callable[..., str], tmp_path: Path) -> None:
    """Both by URL: the table is taken in once, answers are charged over there."""
    rows = some_rows(np.random.default_rng(11), 40)
    url = postgres(
        "CREATE TABLE people (sex text, age bigint, debt bigint, share double precision)",
        *(
            f"INSERT INTO people VALUES ('{r['sex']}', {r['age']}, {r['debt']}, "
            f"{'NULL' if r['share'] is None else r['share']})"
            for r in rows
        ),
    )
    folder = tmp_path / "s"
    begin(folder, f"{url}::people", schema=DOMAIN, queries=2, delta=1.0, ledger=url)
    assert not (folder / "ledger.sqlite").exists()
    with opened(folder) as found:
        service = QueryService(found.setting, found._rows, found.ledger, no_noise)
        told = service.ask("ana", "select count(*) from people where age > 2").answer
        assert told.value == sum(row["age"] > 2 for row in rows)
        service.ask("ana", "select count(*) from people where age > 3")
    with opened(folder) as again, pytest.raises(ExhaustedError):
        again.ask("ana", "select count(*) from people where age > 1")
