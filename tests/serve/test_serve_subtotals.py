"""Shares of a whole and several groupings on a server: answers, charges, and what is audited."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from tests.support.answered import SCHEMA, asker_of
from voile.estimate import Estimate
from voile.serve.query_service import QueryService
from voile.serve.self_audit import self_audit
from voile.serve.worker import encoded
from voile.serve.workers import unpickled

ROWS = 300


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    generator = np.random.default_rng(5)
    return pd.DataFrame({
        "sex": generator.choice(["Female", "Male"], ROWS),
        "age": generator.integers(0, 5, ROWS),
        "debt": generator.integers(-3, 3, ROWS),
        "share": generator.choice([0.25, 0.5, 1.75], ROWS),
    })  # fmt: skip


@pytest.fixture
def exact(tmp_path: Path, frame: pd.DataFrame) -> Iterator[QueryService]:
    with asker_of(tmp_path / "s", frame, schema=SCHEMA, noiseless=True, name="t") as found:
        yield found


QUESTIONS = [
    # SQL, and how many totals are charged: how many rows there are is public
    ("select sex, age, count(*) as n from t group by rollup (sex, age)", 2),
    ("select sex, age, count(*) as n from t where debt > 0 group by rollup (sex, age)", 3),
    ("select sex, age, sum(debt) as n from t group by cube (sex, age)", 4),
    ("select age, avg(debt) as n from t group by grouping sets ((age), ())", 3),
    ("select sex, count(*) * 100.0 / sum(count(*)) over () as n from t group by sex", 1),
    ("select sex, count(*) * 100.0 / sum(count(*)) over () as n from t where age > 1 "
     "group by sex", 2),
    ("select sex, age, count(*) / sum(count(*)) over (partition by sex) as n from t "
     "group by sex, age", 2),
    ("select age, count(*) / (select count(*) from t) as n from t where sex = 'Male' "
     "group by age having n > 0.05 order by n desc", 1),
    ("select sex, sum(debt) / sum(sum(debt)) over () as n from t group by sex", 2),
]  # fmt: skip


def shown(value: Any) -> Any:
    return value.value if isinstance(value, Estimate) else value


def rows_of(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in found), key=str)


@pytest.mark.parametrize(("sql", "charge"), QUESTIONS)
def test_without_noise_they_are_what_sql_says(
    exact: QueryService, frame: pd.DataFrame, sql: str, charge: int
) -> None:
    cost = exact.cost("ann", sql)
    assert (cost.new, cost.known) == (charge, 0)
    reply = exact.ask("ann", sql)
    assert reply.charged == charge
    with duckdb.connect() as raw:
        truth = raw.register("t", frame).sql(sql).fetchall()
    found = [tuple(shown(value) for value in row.values()) for row in reply.answer.rows]
    for mine, theirs in zip(rows_of(found), rows_of(truth), strict=True):
        assert mine[:-1] == theirs[:-1]
        assert mine[-1] == pytest.approx(float(theirs[-1]), abs=1e-9)
    again = exact.ask("bob", sql)
    assert again.charged == 0 and again.numbers == reply.numbers


def test_parts_that_were_asked_before_are_free(exact: QueryService) -> None:
    exact.ask("ann", "select sex, count(*) from t where age > 1 group by sex")
    exact.ask("ann", "select count(*) from t where 1 < age")
    shares = "select sex, count(*) / sum(count(*)) over () from t where age > 1 group by sex"
    assert exact.cost("ann", shares).new == 0
    rollup = "select sex, count(*) from t where age > 1 group by rollup (sex)"
    reply = exact.ask("ann", rollup)
    assert reply.charged == 0 and any("2 groupings" in note for note in reply.notes)


def test_what_is_charged_is_said(exact: QueryService) -> None:
    notes = exact.cost("ann", QUESTIONS[5][0]).notes
    assert any("charged by itself" in note for note in notes)
    assert not any("charged by itself" in note for note in exact.cost("ann", QUESTIONS[4][0]).notes)


def test_a_worker_sends_the_whole_question(exact: QueryService) -> None:
    for sql, charge in QUESTIONS:
        sent = unpickled(encoded(exact.read(sql).without_expected()))
        assert exact.cost_of("ann", sent).new == charge


def test_intervals_cover_and_the_audit_reads_every_part(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    """100 intervals at 0.95 or more: fewer than 85 hits have a probability below 1e-4."""
    hits = 0
    truth = frame[frame.debt > -3].groupby("age").size() / (frame.debt > -3).sum()
    sql = "select age, count(*) / sum(count(*)) over () as n from t where debt > -3 group by age"
    for number in range(20):
        folder = tmp_path / str(number)
        options: dict[str, Any] = {"queries": 50, "delta": 5.0, "noise": "gaussian"}
        with asker_of(folder, frame, schema=SCHEMA, name="t", **options) as asked:
            for row in asked.ask("ann", sql).answer.rows:
                low, high = row["n"].interval()
                hits += low <= truth[row["age"]] <= high
            if number == 0:
                asked.ask("ann", "select sex, age, count(*) from t group by rollup (sex, age)")
                asked.ask("ann", "select age, count(*) from t group by grouping sets ((age), ())")
                left = self_audit(asked)["residuals"]
                assert left["freedom"] > 0 and left["too_large"] > 1e-6
    assert hits >= 85
