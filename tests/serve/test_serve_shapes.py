"""A question that is put together from what was read before is the one that a worker would read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.test_serve_questions import SETTING, some_rows
from tests.support.answered import asker_of
from tests.support.soak import rounds
from voile.engines.lookups import CodedRows
from voile.errors import VoileError
from voile.serve.question import Question, QuestionReader, selected
from voile.serve.shapes import KnownQuestions, ShapeReader, same_totals

ROWS = pa.Table.from_pylist(some_rows(np.random.default_rng(5), 400))
FRAMES = [
    ("select count(*) from t where ", ""),
    ("SELECT COUNT(*) AS n, sum(age) FROM t WHERE ", ""),
    ("select avg(debt), count(share) from t where ", " "),
    ("select sex, count(*) from t where ", " group by sex order by 2 desc limit 1"),
    ("select age % 2, sum(debt * age) from t where ", " group by 1"),
    ("select variance(share) from t\nwhere ", ""),
]
READER = QuestionReader(SETTING)
LEARNT = ShapeReader(SETTING)


def shared(reader: QuestionReader, sql: str) -> Question:
    return reader.read(sql).without_expected()


for _before, _after in FRAMES:
    _sql = f"{_before}debt > 0{_after}"
    LEARNT.learn(_sql, shared(READER, _sql))


def comparisons() -> st.SearchStrategy[str]:
    whole = st.integers(0, 6).map(str)
    text = st.sampled_from(["'Male'", "'Female'"])
    number = st.sampled_from(["age", "AGE", '"age"', "debt"])
    sign = st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="])
    negated = st.sampled_from(["", "not "])
    return st.one_of(
        st.tuples(number, sign, whole).map(lambda p: f"{p[0]} {p[1]} {p[2]}"),
        st.tuples(number, negated, whole, whole).map(
            lambda p: f"{p[0]} {p[1]}between {p[2]} and {p[3]}"
        ),
        st.tuples(number, negated, st.lists(whole, min_size=1, max_size=3)).map(
            lambda p: f"{p[0]} {p[1]}in ({', '.join(p[2])})"
        ),
        st.tuples(st.sampled_from(["=", "<>"]), text).map(lambda p: f"sex {p[0]} {p[1]}"),
        st.tuples(negated, st.lists(text, min_size=1, max_size=2)).map(
            lambda p: f"sex {p[0]}in ({','.join(p[1])})"
        ),
    )


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(" and ".join),
        st.lists(inner, min_size=2, max_size=3).map(" or ".join),
        inner.map(lambda p: f"({p})"),
        inner.map(lambda p: f"not ({p})"),
        inner.map(lambda p: f"not {p}" if p[0] != "n" else f"( {p} )"),
    ),
    max_leaves=6,
)


def kept(question: Question) -> dict[str, Any]:
    """All of a question that is used after it was read."""
    return {
        "query": question.query,
        "words": [(a.text, a.start) for a in question.query.atoms],
        "rows": question.rows, "groups": question.groups.keys, "order": question.order,
        "sizes": question.sizes, "stored": question.stored, "reordered": question.reordered,
        "notes": question.notes, "shape": (question.shape.digest, question.shape.meanings),
    }  # fmt: skip


@settings(max_examples=rounds(120, 5000), deadline=None)
@given(frame=st.sampled_from(FRAMES), condition=CONDITIONS)
def test_it_is_the_question_that_a_worker_reads(frame: tuple[str, str], condition: str) -> None:
    sql = f"{frame[0]}{condition}{frame[1]}"
    quick = LEARNT.read(sql, selected(SETTING, "all"))
    if quick is None:  # nothing is decided then, not even a refusal
        return
    slow = shared(READER, sql)
    assert kept(quick) == kept(slow)
    assert same_totals(quick.totals, slow.totals)
    half = selected(SETTING, {"half": "x"})
    assert same_totals(quick.about(half).totals, slow.about(half).totals)
    again = LEARNT.read(sql, half)
    assert again is not None
    assert same_totals(again.totals, slow.about(half).totals)


@settings(max_examples=rounds(20, 500), deadline=None)
@given(condition=CONDITIONS)
def test_most_conditions_need_no_worker(condition: str) -> None:
    sql = f"select count(*) from t where {condition}"
    assert LEARNT.read(sql, selected(SETTING, "all")) is not None


def test_answers_and_charges_are_the_same(tmp_path: Path) -> None:
    conditions = ["age > 2", "age > 2 and sex = 'Male'", "not (age <= 2)", "debt in (1, 2)",
                  "age between 1 and 3 or debt < 0", "sex in ('Male') and age > 2"]  # fmt: skip
    with asker_of(tmp_path / "server", ROWS, noiseless=True) as service:
        known = KnownQuestions(service.setting)
        first = "select count(*), sum(age) from t where debt > 0"
        known.keep(first, service.read(first).without_expected(), 1)
        charged = 0
        for condition in conditions:
            sql = f"select count(*), sum(age) from t where {condition}"
            quick = known.known(sql, "all")
            assert quick is not None
            found = service.answer("anna", quick)
            charged += found.charged
            again = service.ask("anna", sql)  # as SQL reads it: nothing new
            assert again.charged == 0
            assert found.answer.to_dict()["rows"] == again.answer.to_dict()["rows"]
            rows = service._rows
            assert isinstance(rows, CodedRows)
            truth = rows._by_row(quick.sums(quick.totals)).tolist()
            assert rows.totals(quick.sums(quick.totals)).tolist() == truth
        assert charged == service.ledger.budgets("anna").everyone.used
        assert charged == 8  # two of the six mean what others mean


LEFT = [
    "select count(*) from t where age > 2 -- a comment",
    "select count(*) from t where age > 2 /* a comment */",
    "select count(*) from t where age + 1 > 2",
    "select count(*) from t where age > 2.5",
    "select count(*) from t where age > 0x2",
    "select count(*) from t where age > 2e0",
    "select count(*) from t where age > -1",
    "select count(*) from t where age > debt",
    "select count(*) from t where 2 < age",
    "select count(*) from t where sex = 'Ma''le'",
    "select count(*) from t where sex = E'Male'",
    "select count(*) from t where sex = 'male'",
    "select count(*) from t where sex > 'Female'",
    "select count(*) from t where sex = 1",
    "select count(*) from t where age = '1'",
    "select count(*) from t where age = 1234567890123456",
    "select count(*) from t where share > 1",
    "select count(*) from t where age is null",
    "select count(*) from t where t.age > 1",
    "select count(*) from t where Age > 1",
    "select count(*) from t where age > 1 xor debt > 1",
    "select count(*) from t where age > 1 = true",
    "select count(*) from t where (age > 1",
    "select count(*) from t where age > 1)",
    "select count(*) from t where age not > 1",
    "select count(*) from t where age between 1 or 2",
    "select count(*) from t where age in ()",
    "select count(*) from t where",
    "select count(*) from t where age > 1; select 1",
    "select count(*) from t where age > 1 having count(*) > 1",
    "select count(*) from t where nothing > 1",
    "select count(*) from t where " + " and ".join(["age > 1"] * 30),
    "select count(*) from t where " + "(" * 20 + "age > 1" + ")" * 20,
    "select count(*) from t where age > 1" + " " * 2000,
    "select sex, count(*) from t where sex = 'Male' group by sex order by 2 desc limit 1",
    "select sex, count(*) from t where age = 1 and age = 2 group by sex order by 2 desc limit 1",
    "select count(*) from t",
]


@pytest.mark.parametrize("sql", LEFT)
def test_what_is_left_to_the_workers(sql: str) -> None:
    assert LEARNT.read(sql, selected(SETTING, "all")) is None


def test_another_frame_is_another_question() -> None:
    there = "select count(*) from t where age > 1"
    assert LEARNT.read(there, selected(SETTING, "all")) is not None
    for sql in (there.replace("count(*)", "count(age)"), there + " limit 1"):
        assert LEARNT.read(sql, selected(SETTING, "all")) is None


NOT_LEARNT = [
    "select count(*) from t where age > 2 having count(*) > 1",
    "select sex, count(*) from t where sex = 'Male' group by sex",
    "select sex, count(*) from t where age > 2 group by rollup (sex)",
    "select sex, count(*) / sum(count(*)) over () from t where age > 2 group by sex",
    "select count(*) filter (where sex = 'Male') from t where age > 2",
    "select count(*) from t where sex = 'male'",
]


@pytest.mark.parametrize("sql", NOT_LEARNT)
def test_frames_that_are_not_kept(sql: str) -> None:
    reader = ShapeReader(SETTING)
    reader.learn(sql, shared(READER, sql))
    assert reader.read(sql, selected(SETTING, "all")) is None


def test_a_frame_is_kept_only_if_its_first_question_comes_out_the_same() -> None:
    sql = "select count(*) from t where age > 2"
    question = shared(READER, sql)
    (total,) = question.totals
    wrong = replace(question, totals=(replace(total, key="0" * 64),))
    reader = ShapeReader(SETTING)
    reader.learn(sql, wrong)
    assert reader.read(sql, selected(SETTING, "all")) is None
    reader.learn(sql, question)
    assert reader.read(sql, selected(SETTING, "all")) is not None


def test_declared_subsets_are_left_to_the_workers(tmp_path: Path) -> None:
    with asker_of(tmp_path / "server", ROWS, subsets={"young": "age < 2"}) as service:
        known = KnownQuestions(service.setting)
        sql = "select count(*) from t where debt > {}"
        known.keep(sql.format(0), service.read(sql.format(0)).without_expected(), 1)
        assert known.known(sql.format(1), "all") is not None
        assert known.known(sql.format(1), "young") is None
        with pytest.raises(VoileError, match="no subset"):
            known.known(sql.format(1), "old")
        for_young = service.read(sql.format(1), "young").without_expected()
        known.keep(sql.format(1), for_young, 1)
        again = known.known(sql.format(1), "young")
        assert again is not None
        assert same_totals(again.totals, for_young.totals)
        assert json.dumps(for_young.rows.subset) == '"young"'
