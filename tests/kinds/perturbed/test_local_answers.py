"""Answers from perturbed rows against enumeration, DuckDB, dense matrices and the oracle."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.query.test_sql import (
    ANSWERED,
    ROWS,
    Exact,
    adult,
    alike,
    exact,
    for_duckdb,
    is_point,
    plain,
    told,
)
from tests.support.local_rows import Column, EachRow, InMemory, Small, Study
from tests.support.soak import rounds, some
from tests.support.sqlfiles import PEOPLE, Case, as_table, people, view_of
from voile.errors import QueryError, ReleaseError, VoileError
from voile.kinds.perturbed import answering as module
from voile.kinds.perturbed.answering import LocalEvidence, answer_local
from voile.kinds.perturbed.axes import AxisNoise, LocalSource
from voile.kinds.perturbed.covariances import is_pure
from voile.kinds.perturbed.publishing import write
from voile.kinds.perturbed.retention import ColumnNoise, Retention
from voile.query import parse
from voile.query.aggregate import Total
from voile.release import LocalRelease
from voile.schema import Attribute, Interval, Range, Schema, Values

# ---------------------------------------------------------------------- every tuple of a domain

SCHEMA = Schema(
    (
        Attribute("sex", "categorical", Values(("F", "M"))),
        Attribute("age", "integer", Range(1, 3), null=True),
        Attribute("score", "numeric", Interval(-0.5, 1.0, 0.5)),
        Attribute("land", "categorical", Values(("A", "B"))),
    )
)
PARTS = {
    "sex": (Fraction(3, 10), (1, 1)),
    "age": (Fraction(1, 2), (5, 1, 2, 4)),
    "score": (Fraction(1, 4), (1, 1, 1, 1)),
    "land": (Fraction(1), (1, 1)),
}


@pytest.fixture(scope="module")
def columns(tmp_path_factory: pytest.TempPathFactory) -> Small:
    return Small(EachRow(SCHEMA, tmp_path_factory.mktemp("columns")), PARTS)


@pytest.fixture(scope="module")
def whole(columns: Small) -> Small:
    return Small(columns.rows, PARTS, joint=Fraction(2, 5))


TOTALS = [
    "select count(*) from t",
    "select count(*) from t where sex = 'F'",
    "select count(*) from t where sex = 'F' and age >= 2 and score < 0.7 and land = 'A'",
    "select count(*) from t where sex = 'F' or age = 1 or score > 0.5",
    "select count(*) from t where not (sex = 'F' and age in (1, 3))",
    "select count(*) from t where (sex = 'M' and age < 3) or (sex = 'F' and land = 'B')",
    "select count(*) from t where age between 1 and 2 and age <> 2",
    "select count(*) from t where age is null",
    "select count(*) from t where age is not null and score is not null",
    "select count(age), count(*) from t",
    "select count(*) from t where score < 2 * age - 2",
    "select count(*) from t where score < age and sex = 'M' and age > 1",
    "select count(*) from t where case when sex = 'F' then age > 1 else score > 0 end",
    "select count(*) from t where coalesce(age, 0) = 0 or score = 1",
    "select count(*) from t where 1 = 1",
    "select count(*) from t where age > 7",
    "select count(*) from t where land = 'A'",
    "select count(*) filter (where age > 1), count(*) filter (where sex = 'F') from t",
    "select sum(age) from t",
    "select sum(score), count(*) from t where sex = 'F'",
    "select sum(age * age - 3) from t where land = 'B'",
    "select sum(age * score) from t",
    "select sum(age * score) from t where sex = 'F'",
    "select sum(age), sum(score), sum(age * score), sum(age * age) from t",
    "select sum(age) from t where age >= 2 and score > 0",
    "select sum(score) filter (where age = 2), sum(age) filter (where score < 0) from t",
    "select sum(age + score) from t where age + score > 1",
    "select sum(1 / score) from t where score <> 0",
    "select sum(case when sex = 'F' then age else score end) from t",
    "select sum(2) from t where age = 1",
]
GROUPED = [
    "select sex, count(*) from t group by sex",
    "select age, count(*), sum(score) from t group by age",
    "select land, count(*), count(*) filter (where sex = 'F') from t group by land",
    "select score, sex, count(*) from t group by score, sex",
    "select score, sex, count(*) from t where age > 1 group by score, sex",
    "select land, sex, sum(score) from t where age is not null group by land, sex",
    "select sex, land, sum(score * age) from t group by sex, land",
    "select age > 1 as old, count(*), sum(age) from t group by old",
    "select age, count(*) from t where age < 3 and score > 0 group by age",
    "select age + score as total, count(*) from t group by total",
    "select land, age + score as total, count(*) from t where sex = 'F' group by land, total",
    "select if(age > 1, sex, land) as key, count(*), sum(score) from t group by key",
    "select sex, age, score, land, count(*) from t group by sex, age, score, land",
]  # fmt: skip


@pytest.mark.parametrize("sql", some([*TOTALS, *GROUPED], 20))
@pytest.mark.parametrize("how", ["columns", "whole"])
def test_totals_and_covariances_are_unbiased(
    sql: str, how: str, request: pytest.FixtureRequest
) -> None:
    """Σ_y P(y|x)·g(y) = f(x), and Σ_y P(y|x)·cov(y) = E[g·h] − f·k, for every x."""
    small: Small = request.getfixturevalue(how)
    found = small.ask(sql)
    means = np.einsum("xy,ygt->xgt", small.chances, found.estimates)
    np.testing.assert_allclose(means, found.truth, atol=1e-9)
    for (a, b), covariance in found.covariances.items():
        g, h = found.estimates[:, :, a], found.estimates[:, :, b]
        exact = small.chances @ (g * h) - found.truth[:, :, a] * found.truth[:, :, b]
        np.testing.assert_allclose(small.chances @ covariance, exact, atol=1e-8)


def test_a_wrong_retention_would_be_seen(columns: Small) -> None:
    kept = {**PARTS, "age": (Fraction(11, 20), PARTS["age"][1])}
    other = Small(columns.rows, kept)
    found = columns.ask("select count(*) from t where age > 1 and sex = 'F'")
    means = np.einsum("xy,ygt->xgt", other.chances, found.estimates)
    assert np.abs(means - found.truth).max() > 0.01


DENSE = [TOTALS[2], TOTALS[10], TOTALS[12], TOTALS[23], GROUPED[4], GROUPED[6], GROUPED[10]]


@pytest.mark.parametrize("sql", DENSE)
@pytest.mark.parametrize("how", ["columns", "whole"])
def test_estimates_are_those_of_the_dense_matrix(
    sql: str, how: str, request: pytest.FixtureRequest
) -> None:
    """P(y|x) as one matrix over all tuples, inverted."""
    small: Small = request.getfixturevalue(how)
    found = small.ask(sql)
    dense = np.linalg.solve(small.chances, found.truth.reshape(len(small.chances), -1))
    np.testing.assert_allclose(found.estimates.reshape(dense.shape), dense, atol=1e-8)


BOUNDED = [*(TOTALS[i] for i in (3, 11, 19, 21, 23)), *(GROUPED[i] for i in (1, 2, 5, 8, 10))]


@pytest.mark.parametrize("sql", BOUNDED)
@pytest.mark.parametrize("how", ["columns", "whole"])
def test_bounds_of_one_row_hold(sql: str, how: str, request: pytest.FixtureRequest) -> None:
    """|g(y) − f(x)| and the variance of g, on tuples that agree on the public column."""
    small: Small = request.getfixturevalue(how)
    found = small.ask(sql)
    land = small.rows.codes[:, -1]
    alike = (land[:, None] == land) if how == "columns" else np.ones((len(land),) * 2, np.bool_)
    variance = np.einsum("xy,ygt->xgt", small.chances, found.estimates**2) - found.truth**2
    for term in range(found.truth.shape[2]):
        off = np.abs(found.estimates[:, None, :, term] - found.truth[None, :, :, term])
        assert (np.where(alike[..., None], off, 0) <= found.largest[:, None, :, term] + 1e-9).all()
        spread = np.where(alike[..., None], variance[None, :, :, term], 0)
        assert (spread <= found.widest[:, None, :, term] ** 2 + 1e-9).all()
        mean = small.chances @ found.squares[term, term]
        assert (mean >= variance[:, :, term] - 1e-9).all()
    assert (found.largest > 0).any()


def test_bounds_are_reached(columns: Small) -> None:
    """Where one column decides, no bound is larger than it has to be."""
    found = columns.ask("select sum(age) from t where age is not null")
    off = np.abs(found.estimates[:, None] - found.truth[None]).max()
    assert found.largest.max() == pytest.approx(off)
    variance = columns.chances @ (found.estimates[:, 0, 0] ** 2) - found.truth[:, 0, 0] ** 2
    assert found.widest.max() ** 2 == pytest.approx(variance.max())


def test_what_no_coin_decides_is_exact(columns: Small) -> None:
    found = columns.ask("select count(*), sum(if(land = 'A', 2, 1)), count(age) from t")
    for term in (0, 1):
        assert not found.covariances[term, term].any()
        assert not found.squares[term, term].any()
        assert not found.largest[:, :, term].any()
    assert found.squares[2, 2].all()


# ---------------------------------------------------------------------- many rows


WIDE = Schema(
    (
        Attribute("sex", "categorical", Values(("F", "M"))),
        Attribute("age", "integer", Range(1, 10), null=True),
        Attribute("pay", "numeric", Interval(0.0, 100.0, 0.5)),
        Attribute("kind", "categorical", Values(tuple("abcdefgh"))),
        Attribute("land", "categorical", Values(("A", "B", "C"))),
    )
)


def study(rows: InMemory, *, seed: int, count: int = 300) -> Study:
    """A table drawn by chance, perturbed by chances drawn by chance."""
    rng = np.random.default_rng(seed)
    codes = [
        np.minimum((rng.random(count) ** 1.5 * a.size).astype(np.int64), a.size - 1)
        for a in rows.schema
    ]
    parts = tuple(rng.integers(1, 9, 11).tolist())
    p = rng.uniform(0.2, 0.95, 4)
    how = (Column(p[0]), Column(p[1], parts), Column(p[2]), Column(p[3]), Column(1.0))
    found = Study(rows, tuple(codes), how)
    found.perturb(seed)
    return found


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> InMemory:
    return InMemory(WIDE, tmp_path_factory.mktemp("wide"))


PURE = [
    "select kind, count(*) from t group by kind",
    "select kind, land, count(*), sum(pay) from t where age > 3 group by kind, land",
    "select land, age, sex, count(*) from t where pay < 30 group by land, age, sex",
    "select land, count(*), avg(pay) from t where sex = 'F' group by land",
    "select kind, avg(pay), stddev(pay), count(*) filter (where age > 2) from t group by kind",
    "select floor(age / 3) as k, land, sum(pay) from t where sex = 'F' group by k, land",
]


@pytest.mark.parametrize("sql", PURE)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_groups_at_once_are_the_groups_one_by_one(
    sql: str, seed: int, wide: InMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = study(wide, seed=seed).source()
    query = parse(sql, WIDE, {})
    assert is_pure(LocalEvidence(query, source).request())
    fast = LocalEvidence(query, source).totals
    monkeypatch.setattr(module, "is_pure", lambda _: False)
    slow = LocalEvidence(query, source).totals
    np.testing.assert_allclose(fast.estimates, slow.estimates, rtol=1e-9, atol=1e-7)
    for pair, covariance in slow.covariances.items():
        scale = np.abs(slow.squares[pair]).max()
        np.testing.assert_allclose(fast.covariances[pair], covariance, atol=1e-9 * scale)
        # Squares, of which bounds are made, are taken around different numbers.
    assert fast.laws == slow.laws
    assert (fast.largest >= slow.largest * (1 - 1e-9)).all()  # bounds may be wider, never narrower
    assert (fast.widest >= slow.widest * (1 - 1e-9)).all()


def test_a_sum_is_the_sum_over_the_values(wide: InMemory) -> None:
    """Powers of phi give what every value counted by itself gives."""
    asked = study(wide, seed=5)
    summed = asked.ask("select sum(pay), sum(pay * pay) from t where sex = 'F' and age > 2")
    listed = asked.ask("select pay, count(*) from t where sex = 'F' and age > 2 group by pay")
    pay = np.array([row["pay"] for row in listed.rows])
    counts = np.array([row["count"].value for row in listed.rows])
    first, second = summed.rows[0].values()
    assert first.value == pytest.approx(pay @ counts)
    assert second.value == pytest.approx(pay**2 @ counts)


def test_groups_add_up_to_the_whole(wide: InMemory) -> None:
    asked = study(wide, seed=6)
    total = asked.ask("select count(*) from t where pay < 40").rows[0]["count"].value
    for keys in ("kind", "land, sex", "age + pay", "kind, age"):
        parts = asked.ask(f"select {keys}, count(*) from t where pay < 40 group by all")
        assert sum(row["count"].value for row in parts.rows) == pytest.approx(total)


# ---------------------------------------------------------------------- nothing perturbed


@pytest.fixture(scope="module")
def unperturbed(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, str], tuple[Exact, LocalSource]]:
    @lru_cache
    def setting(name: str) -> tuple[Exact, int]:
        folder = tmp_path_factory.mktemp(name)
        if name == "adult":
            found = adult(folder)
        else:
            rows = people(ROWS)
            view = view_of(PEOPLE, rows, folder)
            found = exact(PEOPLE, view, name, as_table(PEOPLE, rows))
        (count,) = found.truth.execute(f"select count(*) from {name}").fetchone() or (0,)
        return found, count

    def found(name: str, how: str) -> tuple[Exact, LocalSource]:
        table, count = setting(name)
        return table, LocalSource(
            table.source.engine,
            table.source.domain,
            table.schema,
            count,
            {a.name: AxisNoise(1.0) for a in table.schema} if how != "whole" else {},
            joint=1.0 if how == "whole" else None,
            method="em" if how == "em" else "inversion",
        )

    return found


SOME = {"columns": ANSWERED[::2], "em": ANSWERED[::12], "whole": ANSWERED[::12]}


@pytest.mark.parametrize(
    ("how", "case"),
    [(how, case) for how, some in SOME.items() for case in some],
    ids=[f"{how}-{case.name}" for how, some in SOME.items() for case in some],
)
def test_unperturbed_rows_give_what_sql_gives(
    how: str, case: Case, unperturbed: Callable[[str, str], tuple[Exact, LocalSource]]
) -> None:
    table, source = unperturbed(case.table, how)
    query = parse(case.sql, table.schema, table.tables)
    try:
        found = answer_local(query, source, 0.95, simultaneous=False)
    except QueryError as error:
        assert how == "whole"
        assert "quantiles are not estimated where whole rows" in error.message
        return
    expected = table.truth.execute(for_duckdb(case)).fetchall()
    sums = [isinstance(c.source, Total) and bool(c.source.term.values) for c in query.columns]
    mine = [[plain(value) for value in row.values()] for row in found.rows]
    theirs = [[told(v, is_sum=s) for v, s in zip(row, sums, strict=True)] for row in expected]
    if not query.order:
        mine, theirs = sorted(mine, key=repr), sorted(theirs, key=repr)
    assert len(mine) == len(theirs)
    for left, right in zip(mine, theirs, strict=True):
        assert all(map(alike, left, right)), f"{left} is not {right}"
    assert all(is_point(v) for row in found.rows for v in row.values())


# ---------------------------------------------------------------------- wrong inputs


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> LocalRelease:
    rng = np.random.default_rng(3)
    schema = Schema(
        (
            Attribute("sex", "categorical", Values(("F", "M"))),
            Attribute("age", "integer", Range(1, 9000)),
            Attribute("pay", "numeric", Interval(0.0, 99999.9, 0.1)),
            Attribute("debt", "numeric", Interval(0.0, 99999.9, 0.1)),
        )
    )
    codes = [rng.integers(0, a.size, 500) for a in schema]
    noise = Retention(tuple(ColumnNoise(a.size, 0.5) for a in schema))
    target = tmp_path_factory.mktemp("release") / "r"
    return write(codes, schema, noise, target, name="t", nulls="error", overwrite=False)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("select count(*) from t where pay < debt", "1,000,000,000,000 combinations of values"),
        ("select sum(pay * debt) from t", "more values than the memory allows"),
        ("select pay, count(*) from t group by pay", "1,000,000 groups, more than 50,000"),
        ("select age, pay, count(*) from t group by all", "combinations of classes apart"),
        ("select median(pay) from t", "a quantile over 1,000,000 values"),
        ("select median(age) from t", "a quantile over 9,000 values"),
        ("select count(*) from t where wage > 3", "wage"),
        ("select sum(sex) from t", "only numbers have sums"),
        ("select sum(1 / (age - 5)) from t", "not a finite number"),
        ("select age, count(*) filter (where age > 5 and sex = 'F' and pay < 3) from t "
         "where floor(pay / 100) % 7 = 1 or floor(debt / 100) % 9 = 2 or age % 3000 = debt % 30 "
         "group by age", "combinations of values"),
        ("select " + ", ".join(f"count(*) filter (where age = {i})" for i in range(60)) + " from t",
         "more than 60 conditions on age"),
        ("delete from t", "not a question"),
        ("select", ""),
    ],
)  # fmt: skip
def test_what_is_too_much_or_wrong_is_refused(sql: str, says: str, release: LocalRelease) -> None:
    with pytest.raises(QueryError) as caught:
        release.query(sql)
    assert says in caught.value.message
    assert caught.value.hint


def test_other_wrong_wishes_are_refused(release: LocalRelease) -> None:
    sql = "select count(*) from t where age < 100"
    for wish, says in [
        ({"method": "guess"}, "method 'guess' is not known"),
        ({"method": ""}, "method '' is not known"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": 0.0}, "confidence"),
        ({"refine": True}, "not refined"),
        ({"memory": "1"}, "memory"),
        ({"tables": {"2": None}}, ""),
    ]:
        with pytest.raises(VoileError) as caught:
            release.query(sql, **wish)  # type: ignore[arg-type]
        assert says in caught.value.message
    with pytest.raises(QueryError, match="cannot hold at once"):
        release.query("select age, count(*) from t group by age", 1 - 1e-12, simultaneous=True)


def test_rows_that_were_tampered_with_are_refused(release: LocalRelease, tmp_path: Path) -> None:
    """Whatever an answer would be made of."""
    copy = tmp_path / "copy"
    shutil.copytree(release.path, copy)
    (part,) = (copy / "data").glob("*.parquet")
    rows = pq.read_table(part)
    ages = rows["age"].to_numpy().copy()
    ages[:100] = 10**6
    pq.write_table(
        rows.set_column(1, "age", pa.array(ages, rows.schema.field("age").type)),
        part,
        write_statistics=False,
    )
    for asked in ("age, count(*)", "sum(age)", "count(*) filter (where age < 7)", "count(*)"):
        sql = f"select {asked} from t" + (" group by age" if asked.startswith("age") else "")
        with pytest.raises(ReleaseError):
            LocalRelease.open(copy).query(sql)


# ---------------------------------------------------------------------- numbers of any size


FAR = Schema(
    (
        Attribute("price", "numeric", Values((1.0, 2.0, 1e12))),
        Attribute("at", "integer", Range(1_700_000_000, 1_700_000_010)),
        Attribute("bought", "integer", Range(0, 1)),
    )
)


@pytest.mark.parametrize(
    ("sql", "retentions", "truth"),
    [
        # A public factor whose largest value nobody has: its size says nothing about the rest.
        ("select sum(price * bought) from t", {"bought": 0.4}, 1500.0),
        # Far from 0: squares of the values have more digits than a float.
        ("select sum(at) from t", {"at": 0.4}, 3000 * 1_700_000_003.0),
        ("select sum(at) from t where bought = 1", {"at": 0.4}, 1500 * 1_700_000_003.0),
    ],
)
def test_errors_of_sums_do_not_depend_on_where_zero_is(
    sql: str, retentions: dict[str, float], truth: float
) -> None:
    """The stated error is the spread over the seeds, within four standard errors of a spread."""
    rows = 3000
    table = pd.DataFrame({"price": np.ones(rows), "at": np.full(rows, 1_700_000_003),
                          "bought": np.arange(rows) % 2})  # fmt: skip
    found, stated = [], []
    for seed in range(rounds(12, 60)):
        release = voile.perturb(table, retentions, schema=FAR, simulate_seed=seed)
        answer = release.query(sql).scalar
        found.append(answer.value - truth)
        stated.append(answer.stderr)
    spread = float(np.std(found))
    assert spread > 10
    assert np.mean(stated) == pytest.approx(spread, rel=4 / math.sqrt(2 * len(found)))
    assert abs(np.mean(found)) < 5 * spread / math.sqrt(len(found))


def test_a_condition_on_too_long_a_column_is_refused_at_once() -> None:
    long = Schema((Attribute("x", "numeric", Interval(0.0, 1e6, 1e-3)),))
    release = voile.perturb(pd.DataFrame({"x": [1.0, 2.5]}), 0.5, schema=long)
    with pytest.raises(QueryError, match="has to be computed on"):
        release.query("select count(*) from t where x < 500000")
