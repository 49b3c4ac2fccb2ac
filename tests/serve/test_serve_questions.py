"""Questions as totals: what they mean, what they cost, what one person can do to them."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.support.answered import SCHEMA, Untouchable, asker_of, parts_of
from voile.engines import connect
from voile.engines.counted import read_counted, write_counted
from voile.engines.duckdb.rows import DuckRows
from voile.errors import QueryError, TableError, UsageError, VoileError
from voile.noise.keyed import id_hash, members, row_hashes
from voile.schema import Schema
from voile.serve.query_service import QueryService
from voile.serve.question import QuestionReader
from voile.serve.setting import Setting

DOMAIN = Schema.from_dict(SCHEMA)
SETTING = Setting(
    id="0" * 32, name="t", schema=DOMAIN, people=8, declared=True, queries=100, delta=1.0, eta=1e-6,
    noise="gaussian", variance=100.0,
)  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "sex": ["Female", "Male"],
    "age": list(range(5)),
    "debt": list(range(-3, 3)),
    "share": [0.25, 0.5, 1.75, None],
}


def some_rows(generator: np.random.Generator, count: int) -> list[dict[str, Any]]:
    return [
        {name: values[generator.integers(len(values))] for name, values in VALUES.items()}
        for _ in range(count)
    ]


def asking(**changed: Any) -> QuestionReader:
    return QuestionReader(replace(SETTING, **changed))


# ---------------------------------------------------------------------- what questions mean

SAME = [
    ("age > 2", "not age <= 2"),
    ("age > 2", "age >= 3"),
    ("age > 2", "2 < age and age > 1"),
    ("age > 2 and sex = 'Male'", "sex = 'Male' and age in (3, 4)"),
    ("sex = 'Male' or age = 1", "age = 1 or not (sex <> 'Male')"),
    ("sex in ('Male', 'Female')", "true"),
    ("age = 1 and age = 2", "debt = 0 and false"),
    ("age % 2 = 0 and (sex = 'Male' and debt > 0)",
     "(debt >= 1 and age in (0, 2, 4)) and sex = 'Male'"),
    ("share is null", "not share is not null"),
]  # fmt: skip
DIFFERENT = [
    ("age > 2", "age > 3"),
    ("age > 2", "debt > 2"),
    ("share > 0.5", "not share <= 0.5 or share is null"),
    ("age > 2 and sex = 'Male'", "age > 2 or sex = 'Male'"),
    ("age > debt", "age >= debt"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_conditions_that_mean_the_same_have_one_key(one: str, other: str) -> None:
    found = {key(asking(), f"select count(*) from t where {sql}") for sql in (one, other)}
    assert len(found) == 1


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_conditions_that_differ_have_two(one: str, other: str) -> None:
    found = {key(asking(), f"select count(*) from t where {sql}") for sql in (one, other)}
    assert len(found) == 2


def key(reader: QuestionReader, sql: str, subset: Any = "all") -> tuple[str, ...]:
    return tuple(total.key for total in reader.read(sql, subset).totals)


def test_what_is_not_the_condition_matters_too() -> None:
    reader = asking()
    sql = "select count(*) from t where age > 2"
    assert key(reader, sql) != key(reader, sql, {"half": "a"})
    assert key(reader, sql, {"half": "b"}) != key(reader, sql, {"half": "a"})
    assert key(reader, sql) != key(reader, "select sum(age) from t where age > 2")
    assert key(reader, "select sum(age) from t") != key(reader, "select sum(age + 1) from t")
    assert key(reader, "select sum(2 * age) from t") == key(reader, "select sum(age + age) from t")
    grouped = "select count(*) from t group by"
    assert key(reader, f"{grouped} sex, age") == key(reader, f"{grouped} age, sex")
    assert key(reader, f"{grouped} sex") != key(reader, f"{grouped} age")


def test_an_average_is_a_sum_and_a_count_and_shares_them() -> None:
    reader = asking()
    (average,) = {key(reader, "select avg(age) from t where sex = 'Male'")}
    assert len(average) == 2
    assert set(average) == {
        *key(reader, "select sum(age) from t where sex = 'Male'"),
        *key(reader, "select count(*) from t where sex = 'Male'"),
    }
    assert len(set(key(reader, "select variance(age), avg(age), count(*) from t"))) == 3


# ---------------------------------------------------------------------- what one person can do

QUESTIONS = [
    "select count(*) from t where age > 2",
    "select count(*) from t where age > debt or share is null",
    "select count(*) from t group by sex",
    "select count(*) from t where debt > 0 group by sex, age",
    "select sum(debt) from t",
    "select sum(debt) from t where sex = 'Male'",
    "select sum(age) from t where age > 2",
    "select sum(share) from t",
    "select sum(share * age) from t where sex = 'Male'",
    "select sum(debt) from t group by sex",
    "select sum(debt) from t where age > 2 group by sex, age",
    "select avg(age), variance(debt) from t where sex = 'Female'",
    "select count(*) filter (where age = 1), count(share) from t",
]


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("noise", ["gaussian", "binomial"])
def test_no_person_changes_a_total_by_more_than_is_said(sql: str, noise: str) -> None:
    """Every replacement of one row of a table by any tuple of the domain, by brute force."""
    question = asking(noise=noise).read(sql)
    tuples: list[dict[str, Any]] = [
        dict(zip(VALUES, values, strict=True)) for values in itertools.product(*VALUES.values())
    ]
    # Totals are sums over rows: the change is the difference of two rows' parts.
    parts = parts_of(spread(tuples), DOMAIN, question)
    for place, total in enumerate(question.totals):
        part = parts[:, :, place]
        steps = np.abs(part[:, None, :] - part[None, :, :])
        assert steps.any()
        assert steps.sum(axis=2).max() <= total.change.l1
        assert (steps**2).sum(axis=2).max() <= total.change.l2_squared


def spread(tuples: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Enough of the domain's tuples: every seventh, and the corners."""
    corners = [t for t in tuples if t["age"] in (0, 4) and t["debt"] in (-3, 2)]
    return [*tuples[::7], *corners]


@pytest.mark.parametrize(
    ("sql", "l1", "l2_squared"),
    [
        ("select count(*) from t where age > 2", 1, 1),
        ("select count(*) from t group by sex", 2, 2),
        ("select sum(debt) from t", 5, 25),  # −3 … 2
        ("select sum(age) from t where sex = 'Male'", 4, 16),
        ("select sum(age) from t where age > 2", 4, 16),  # 0, 3 or 4
        ("select sum(age) from t group by sex", 8, 32),
        ("select sum(debt) from t group by sex", 8, 32),  # one group by 5, or two by 3: two by 4
    ],
)
def test_changes_are_no_larger_than_needed(sql: str, l1: int, l2_squared: int) -> None:
    (total,) = asking().read(sql).totals
    assert (total.change.l1, total.change.l2_squared) == (l1, l2_squared)


def test_people_with_several_rows_change_more() -> None:
    reader = asking(per_person=3)
    (count,) = reader.read("select count(*) from t where age > 2").totals
    (groups,) = reader.read("select count(*) from t group by sex").totals
    (everyone,) = reader.read("select count(*) from t").totals
    assert (count.change.l1, count.change.l2_squared) == (3, 9)
    assert (groups.change.l1, groups.change.l2_squared) == (6, 18)
    assert everyone.change.l1 == 3  # who has fewer rows is counted less often


def test_a_declared_subset_may_be_left_by_its_values() -> None:
    """Who is in a half never changes; who is in a declared subset may."""
    from voile.serve.setting import DeclaredSubset

    reader = asking(subsets=(DeclaredSubset("men", "sex = 'Male'", 4),))
    (half,) = reader.read("select sum(debt) from t", {"half": "x"}).totals
    (men,) = reader.read("select sum(debt + 4) from t", "men").totals
    (all_,) = reader.read("select sum(debt + 4) from t").totals
    assert half.change.l1 == 5
    assert all_.change.l1 == 5  # 1 … 6
    assert men.change.l1 == 6  # or not there: 0


def test_noise_has_the_variance_that_the_change_needs() -> None:
    reader = asking(noise="binomial", variance=50.0)
    for sql in QUESTIONS:
        for total in reader.read(sql).totals:
            assert total.law.variance >= 50.0 * total.change.l2_squared
            assert total.law.variance <= 50.0 * total.change.l2_squared + 1


# ---------------------------------------------------------------------- refusals

REFUSED = [
    "select * from t", "select age from t", "select max(age) from t",
    "select count(distinct age) from t",
    "select median(age) from t", "select count(*) from t; drop table t", "delete from t",
    "select count(*) from t where nope = 1", "select count(*) from t where age",
    "select count(*) from t join u on t.age = u.age",
    "select count(*) from t where age in (select 1)",
    "select count(*) from read_csv('x')", "select sum(sex) from t", "",
    "select count(*) from t group by [age]",
    "select count(*) from t where random() < 0.5", "select sum(1e300 * age) from t",
]  # fmt: skip


@pytest.mark.parametrize("sql", REFUSED)
def test_refusals_do_not_touch_a_row(sql: str, tmp_path: Path) -> None:
    rows = pa.Table.from_pylist(some_rows(np.random.default_rng(1), 20))
    with asker_of(tmp_path / "server", rows, schema=DOMAIN) as found:
        blind = QueryService(found.setting, Untouchable(), found.ledger)
        with pytest.raises(VoileError) as caught:
            blind.ask("ana", sql)
        assert isinstance(caught.value, QueryError | UsageError)
        assert caught.value.hint
        assert not found.ledger.entries()


@pytest.mark.parametrize("subset", [3, ["x"], {"half": ""}, {"half": 3}, {"part": "x"}, "nobody"])
def test_subsets_that_are_none(subset: Any) -> None:
    with pytest.raises(UsageError, match=r"subset|seed"):
        asking().read("select count(*) from t", subset)


def test_too_many_groups_and_too_wide_conditions_are_refused() -> None:
    wide = Schema.from_dict(
        {"attributes": [{"name": n, "kind": "integer", "range": [0, 9_999]} for n in "ab"]}
    )
    reader = asking(schema=wide)
    with pytest.raises(QueryError, match="groups"):
        reader.read("select count(*) from t group by a, b")
    with pytest.raises(QueryError, match="too many to try"):
        reader.read("select count(*) from t where a * b > 7")
    assert reader.read("select count(*) from t where a > 7 and b < 3").totals


def test_what_takes_too_long_on_the_domain_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voile.serve.domain_evaluator.PATIENCE", 0.1)
    reader = asking()
    far = "length(regexp_replace(lpad(sex, 1000, 'ab'), '(a|b)+?c*', 'xy', 'g'))"
    with pytest.raises(QueryError, match="takes longer than"):
        reader.read(f"select count(*) from t where {far} > 3")
    assert reader.read("select count(*) from t where age > 3").totals  # and goes on


def test_time_that_is_up_before_the_first_step_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Late:
        def register(self, *_: object) -> None:
            raise duckdb.InterruptException("INTERRUPT Error: Interrupted!")

    reader = asking()
    monkeypatch.setattr("voile.serve.domain_evaluator.PATIENCE", 1e-9)
    with monkeypatch.context() as late:
        late.setattr(reader._evaluator.view.domain, "_con", Late())
        with pytest.raises(QueryError, match="takes longer than"):
            reader.read("select count(*) from t where age > 3")
    monkeypatch.setattr("voile.serve.domain_evaluator.PATIENCE", 60.0)
    assert reader.read("select count(*) from t where age > 3").totals  # and goes on


@pytest.mark.parametrize(
    "text",
    [
        "replace(lpad(sex, 1000, 'a'), 'a', lpad(sex, 1000, 'b'))",
        f"replace(replace(sex, 'a', '{'b' * 40}'), 'b', '{'c' * 50}')",
        f"replace(lpad(sex, 900, 'a'), 'a', '{'x' * 100}')",
        f"regexp_replace(lpad(sex, 900, 'a'), 'a', '{'x' * 100}', 'g')",
    ],
)
def test_texts_that_could_fill_the_memory_are_refused(text: str) -> None:
    with pytest.raises(QueryError, match="more than 10,000 characters"):
        asking().read(f"select count(*) from t where length({text}) > 3")


def test_answers_with_very_many_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take time to make, also when they are free."""
    monkeypatch.setattr("voile.serve.question.MOST_ESTIMATES", 60)
    sums = ", ".join(f"sum(age + {n})" for n in range(7))
    reader = asking()
    assert reader.read(f"select sex, age, {sums[:-13]} from t group by sex, age").totals
    with pytest.raises(QueryError, match="10 groups with 7 numbers each, more than 60"):
        reader.read(f"select sex, age, {sums} from t group by sex, age")


def test_short_texts_are_answered() -> None:
    for text in ("replace(sex, 'a', 'bb')", "lpad(sex, 20, ' ')", "upper(sex) || '!'",
                 "regexp_replace(sex, 'a+', 'b')"):  # fmt: skip
        assert asking().read(f"select count(*) from t where length({text}) > 3").totals


# ---------------------------------------------------------------------- rows


def test_halves_are_those_that_everybody_can_draw(tmp_path: Path) -> None:
    ids = [f"p{i}" for i in range(500)]
    table = pa.table({"who": ids, "age": [i % 5 for i in range(500)]})
    schema = Schema.from_dict({"attributes": [{"name": "age", "kind": "integer", "range": [0, 4]}]})
    with asker_of(tmp_path / "s", table, schema=schema, id_column="who", noiseless=True) as found:
        for seed in ("a", "b", "c"):
            half = members(row_hashes(ids), seed)
            told = found.ask("ana", "select count(*) from t where age > 2", {"half": seed})
            assert told.answer.value == sum(half[i] and i % 5 > 2 for i in range(500))
            assert 190 < half.sum() < 310  # six standard deviations
            assert told.subset_rows == half.sum()


def test_the_hash_of_a_row_is_the_documented_one() -> None:
    import hashlib

    text = hashlib.sha256(b"voile row p7").digest()[:8]
    assert id_hash("p7") == int.from_bytes(text, "big")


def test_only_so_many_rows_of_a_person_are_kept(tmp_path: Path) -> None:
    table = pa.table({"who": ["a"] * 5 + ["b"] * 2 + ["c"], "age": [1] * 8})
    schema = Schema.from_dict({"attributes": [{"name": "age", "kind": "integer", "range": [0, 4]}]})
    path = tmp_path / "t.duckdb"
    assert write_counted(path, connect(table), schema, key="who", per_key=2) == (5, 3)
    with pytest.raises(TableError, match=r"5 of 8 rows repeat"):
        write_counted(tmp_path / "u.duckdb", connect(table), schema, key="who")


def test_which_rows_of_a_person_are_kept_is_chance_and_not_order(tmp_path: Path) -> None:
    """Each of 5 rows of 400 people is kept 80 times, give or take 6 standard deviations of 8."""
    schema = Schema.from_dict({"attributes": [{"name": "age", "kind": "integer", "range": [0, 4]}]})
    ages, people = list(range(5)) * 400, np.repeat(np.arange(400), 5).astype(str)
    rising = pa.table({"who": people, "age": ages})
    found = []
    for number, table in enumerate((rising, rising.take(list(range(1999, -1, -1))))):
        path = tmp_path / f"{number}.duckdb"
        write_counted(path, connect(table), schema, key="who", per_key=1, salt="s")
        kept = read_counted(path, schema)
        found.append(dict(zip(kept.hashes.tolist(), kept._columns["age"].tolist(), strict=True)))
    assert found[0] == found[1]
    counts = np.bincount(list(found[0].values()), minlength=5)
    assert (np.abs(counts - 80) < 48).all()


def test_numbers_outside_declared_bounds_are_refused_or_clamped(tmp_path: Path) -> None:
    table = pa.table({"age": [1, 9, -7, None]})
    schema = Schema.from_dict(
        {"attributes": [{"name": "age", "kind": "integer", "range": [0, 4], "null": True}]}
    )
    with pytest.raises(VoileError, match="row 2"):
        write_counted(tmp_path / "a.duckdb", connect(table), schema)
    write_counted(tmp_path / "b.duckdb", connect(table), schema, clamp=True)
    found = read_counted(tmp_path / "b.duckdb", schema)
    assert found._columns["age"].tolist() == [1, 4, 0, 5]  # 5 is NULL


def test_sums_that_could_not_be_exact_are_refused() -> None:
    """A sum past what whole numbers hold would turn over, whatever noise is added."""
    many = asking(people=200_000)
    with pytest.raises(QueryError, match="more than can be added exactly"):
        many.read(f"select sum(age * {2**53 // 200_000}) from t")
    assert many.read("select sum(age * 1000000) from t").totals


def test_always_true_conditions_are_no_conditions() -> None:
    """The same key, and the same noise."""
    reader = asking()
    (plain,) = reader.read("select sum(debt + 10) from t").totals
    (true,) = reader.read("select sum(debt + 10) from t where age >= 0").totals
    (some,) = reader.read("select sum(debt + 10) from t where age >= 1").totals
    assert (plain.key, plain.change, plain.law) == (true.key, true.change, true.law)
    assert plain.change.l1 == 5
    assert some.change.l1 == 12  # or not there


def test_one_key_is_one_noise() -> None:
    """Whatever is stored under a key was made, and is read, in the same way."""
    reader = asking(noise="binomial")
    found: dict[str, Any] = {}
    for where in (*(sql for pair in SAME for sql in pair), "true", "age >= 0"):
        for what in ("count(*)", "sum(age)", "sum(debt)", "sum(share)", "avg(age)"):
            for total in reader.read(f"select {what} from t where {where}").totals:
                made = (total.change, total.law, total.summand.scale)
                assert found.setdefault(total.key, made) == made, (what, where)


def test_nan_is_refused_and_null_does_not_count(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="finite"):
        asking().read("select sum(sqrt(debt)) from t")
    rows = pa.Table.from_pylist(some_rows(np.random.default_rng(3), 200))
    with asker_of(tmp_path / "s", rows, schema=DOMAIN, noiseless=True) as found:
        told = found.ask("ana", "select sum(case when age > 2 then age end) from t").answer.value
    assert told == sum(row["age"] for row in rows.to_pylist() if row["age"] > 2)


def test_no_expression_is_computed_on_rows(tmp_path: Path) -> None:
    """Rows are looked up by their codes: the question's SQL is not there any more."""
    rows = pa.Table.from_pylist(some_rows(np.random.default_rng(3), 2000))
    sql = "select sex, sum(age * debt) from t where levenshtein(sex, 'Mole') < age group by sex"
    with asker_of(tmp_path / "s", rows, schema=DOMAIN, noiseless=True) as found:
        found._reader.read(sql)
        domain = found._reader._evaluator.view
        assert isinstance(domain, DuckRows)
        domain._con.close()  # nothing is left that could compute SQL
        told = found.ask("ana", sql).answer
    near = {"Female": 5, "Male": 1}
    for row in told.rows:
        true = sum(r["age"] * r["debt"] for r in rows.to_pylist()
                   if r["sex"] == row["sex"] and near[r["sex"]] < r["age"])  # fmt: skip
        assert row["sum"].value == true


def test_what_the_ledger_keeps_is_json_without_a_row(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist(some_rows(np.random.default_rng(2), 50))
    with asker_of(tmp_path / "server", rows, schema=DOMAIN) as found:
        found.ask("ana", "select sex, sum(debt) from t where age > 1 group by sex")
        (kept,) = found.ledger.entries()
        question = json.loads(kept.entry.question)
        assert set(question) == {
            "subset", "where", "groups", "values", "low", "high", "scale", "cells", "l1",
            "l2_squared", "noise", "variance", "sql",
        }  # fmt: skip
        assert len(json.loads(kept.entry.answer)) == question["cells"] == 2
