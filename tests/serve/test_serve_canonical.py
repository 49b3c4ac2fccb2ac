"""One question, however it is written, is charged once; another one is charged."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tests.serve.test_serve_questions import DOMAIN, VALUES, asking, key, some_rows
from tests.support.answered import asker_of
from tests.support.soak import rounds
from voile.query import parse
from voile.query.predicate import as_node
from voile.query.text import written
from voile.serve import canonical
from voile.serve.ledger.base import Entry

ROWS = pa.Table.from_pylist(some_rows(np.random.default_rng(11), 300))
QUESTION = "select count(*) from t where (age > 2 and sex = 'Male') or (age > 2 and debt < 0)"
REWRITTEN = [
    "select count(*) from t where age > 2 and (sex = 'Male' or debt < 0)",
    "select count(*) from t where (debt < 0 or sex = 'Male') and 2 < age",
    "select count(*) from t where not (age <= 2 or (sex <> 'Male' and debt >= 0))",
    "select count(*) from t where not not (age > 2 and not (not sex = 'Male' and not debt < 0))",
    "select count(*) from t where age between 3 and 4 and (sex = 'Male' or debt between -3 and -1)",
    "select count(*) from t where age in (3, 4) and (sex in ('Male') or debt in (-1, -2, -3))",
    "select count(*) from t where age >= 3 and (sex like 'Male' or debt < 0)",
    "select count(*) from t where age > 1 + 1 and (sex like 'M%' or debt + 5 < 5)",
    "select count(*) from t where case when age > 2 then sex = 'Male' or debt < 0 else false end",
    "select count(*) from t where age > 2 and case when sex = 'Male' then true else debt < 0 end",
    "select count(*) from t where age > 2 and (upper(sex) = 'MALE' or sign(debt) = -1)",
    "select count(*) from t where (age = 3 or age = 4) and not (sex = 'Female' and debt > -1)",
    "select count(*) filter (where age > 2) from t where sex = 'Male' or debt < 0",
    "select count(1) from t where age > 2 and (sex = 'Male' or debt < 0)",
    "select sum(1) from t where age > 2 and (sex = 'Male' or debt < 0)",
    "select sum(case when age > 2 and (sex = 'Male' or debt < 0) then 1 else 0 end) from t",
    "select sum(case when sex = 'Male' or debt < 0 then 1 end) from t where age > 2",
    "select count(*) from t where age > 2 and (sex = 'Male' or debt < 0) and (share > 1 or true)",
    "select count(*) from rows where age > 2 and (sex = 'Male' xor (debt < 0 and sex <> 'Male'))",
    "select count(*) from t where (age > 2 and sex = 'Male') or (age > 2 and debt < 0 and 1 = 1)",
    "select count(*) from t where coalesce(nullif(age > 2, false), false) "
    "and greatest((sex = 'Male')::int, (debt < 0)::int) = 1",
]  # fmt: skip
NEAR = [
    "select count(*) from t where age >= 2 and (sex = 'Male' or debt < 0)",
    "select count(*) from t where age > 2 and (sex = 'Male' or debt <= 0)",
    "select count(*) from t where age > 2 and (sex = 'Male' or debt < -1)",
    "select count(*) from t where age > 2 and (sex = 'Female' or debt < 0)",
    "select count(*) from t where age > 2 and sex = 'Male' and debt < 0",
    "select count(*) from t where age > 2 or (sex = 'Male' and debt < 0)",
    "select count(*) from t where age > 2 and (sex = 'Male' xor debt < 0)",
    "select count(*) from t where not (age > 2 and (sex = 'Male' or debt < 0))",
    "select count(*) from t where age > 2 and (sex = 'Male' or debt < 0) and share > 0",
    "select sum(age) from t where age > 2 and (sex = 'Male' or debt < 0)",
    "select sum(2) from t where age > 2 and (sex = 'Male' or debt < 0)",
    "select count(*) from t where age > 2 and (sex = 'Male' or debt < 0) group by sex",
]


def test_one_question_however_it_is_written_is_charged_once(tmp_path: Path) -> None:
    """With its noise: all are told the same number."""

    with asker_of(tmp_path / "s", ROWS, schema=DOMAIN, queries=100) as found:
        first = found.ask("ana", QUESTION)
        for sql in REWRITTEN:
            again = found.ask("bob", sql)
            assert (again.charged, again.answer.value) == (0, first.answer.value), sql
        assert found.ledger.budgets("").everyone.used == 1
    assert len(REWRITTEN) >= 16


def test_questions_that_differ_are_charged(tmp_path: Path) -> None:
    with asker_of(tmp_path / "s", ROWS, schema=DOMAIN, queries=100) as found:
        found.ask("ana", QUESTION)
        for sql in NEAR:
            assert found.ask("ana", sql).charged == 1, sql


SUMS = [
    ("select sum(age) from t where age > 2", "select sum(case when age > 2 then age end) from t"),
    ("select sum(age) from t", "select sum(age) from t where age > 0"),
    ("select sum(age * debt) from t", "select sum(debt * age + 0) from t where debt <> 0"),
    ("select sum(share) from t", "select sum(share * 2 / 2) from t where share is not null"),
    ("select count(share) from t", "select count(*) from t where share >= 0"),
    ("select sex, count(*) from t group by sex",
     "select left(sex, 1) || substr(sex, 2) as s, count(*) from t group by s"),
    ("select age, sex, count(*) from t group by age, sex",
     "select sex, age + 0 as a, count(*) from t group by 1, 2"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SUMS)
def test_sums_and_groups_are_compared_by_what_rows_add(one: str, other: str) -> None:
    assert key(asking(), one) == key(asking(), other)


def test_groups_are_stored_in_one_order_whatever_they_are_called(tmp_path: Path) -> None:
    """And shown in the order of each question: no group gets another's number."""
    ways = [
        "select age as a, sex as s, count(*) as n from t group by 1, 2",
        "select sex as s, 0 + age as a, count(*) as n from t group by 1, 2",
        "select lower(sex) = 'male' as s, age * 1 as a, count(*) as n from t group by 1, 2",
    ]
    true = {(a, s): sum(r["age"] == a and r["sex"] == s for r in ROWS.to_pylist())
            for a in VALUES["age"] for s in VALUES["sex"]}  # fmt: skip
    with asker_of(tmp_path / "s", ROWS, schema=DOMAIN, noiseless=True) as found:
        charged = []
        for sql in ways:
            reply = found.ask("ana", sql)
            charged.append(reply.charged)
            for row in reply.answer.rows:
                sex = {True: "Male", False: "Female"}.get(row["s"], row["s"])
                assert row["n"].value == true[row["a"], sex], sql
    assert charged == [1, 0, 1]  # keys that are shown differently are another question


# ---------------------------------------------------------------------- any questions at all

ATOMS = [
    "age > 2", "age <= 1", "age % 2 = 0", "age = 3", "sex = 'Male'", "sex like 'F%'", "debt > 0",
    "debt < age - 2", "share > 0.3", "share is null", "debt in (-3, 0, 2)", "age + debt = 2",
]  # fmt: skip


def condition(chance: random.Random, depth: int) -> str:
    if not depth or chance.random() < 0.2:
        return chance.choice(ATOMS)
    kind = chance.choice(["and", "or", "not", "case"])
    one, other = condition(chance, depth - 1), condition(chance, depth - 1)
    if kind == "not":
        return f"not ({one})"
    if kind == "case":
        return f"case when {one} then {other} else {condition(chance, depth - 1)} end"
    return f"({one}) {kind} ({other})"


def test_two_counts_share_a_key_exactly_if_they_are_equal_on_the_domain() -> None:
    """Brute force: every condition on all 240 tuples, by DuckDB alone."""
    chance, reader = random.Random(7), asking()  # noqa: S311
    con = duckdb.connect()
    tuples = [dict(zip(VALUES, t, strict=True)) for t in itertools.product(*VALUES.values())]
    con.register("t", pa.Table.from_pylist(tuples))
    by_key: dict[Any, tuple[Any, ...]] = {}
    by_truth: dict[tuple[Any, ...], Any] = {}
    for _ in range(rounds(150, 5000)):
        where = condition(chance, chance.choice([1, 1, 2]))
        truth = tuple(row[0] is True for row in con.execute(f"select {where} from t").fetchall())
        found = key(reader, f"select count(*) from t where {where}")
        assert by_key.setdefault(found, truth) == truth, where
        assert by_truth.setdefault(truth, found) == found, where
    assert len(by_key) > 30
    con.close()


def test_beyond_what_is_affordable_only_laws_over_more_columns_are_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(canonical, "JOINT", 1)
    reader = asking()
    same = "select count(*) from t where (sex = 'Male' or debt < 0) and age in (3, 4)"
    assert key(reader, REWRITTEN[0]) == key(reader, same)
    assert key(reader, REWRITTEN[0]) != key(reader, QUESTION)  # charged twice, and documented
    for sql in NEAR:
        assert key(reader, sql) != key(reader, REWRITTEN[0])


# ---------------------------------------------------------------------- ledgers of earlier versions


def earlier_key(where: Any, groups: list[str], cells: list[list[str]]) -> str:
    """As version 0.1 made it: SHA-256 of canonical JSON, written down here once more."""

    def digest(value: Any) -> str:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    change = [1, 1] if len(cells) == 1 else [2, 2]
    return digest(
        {"subset": "all", "where": where, "groups": groups, "values": [], "range": [1.0, 1.0],
         "change": change, "cells": digest(cells)}
    )  # fmt: skip


def test_what_was_answered_by_an_earlier_version_stays_free(tmp_path: Path) -> None:
    bits = np.packbits(np.array([age > 2 for age in VALUES["age"]])).tobytes()
    form = ["age", hashlib.sha256(bits).hexdigest()]
    old = Entry(earlier_key(form, [], [[]]), json.dumps({"sql": "x"}), "[123]")
    with asker_of(tmp_path / "s", ROWS, schema=DOMAIN, queries=10) as found:
        found.ledger.record("ana", [old])
        for where in ("age > 2", "age in (3, 4)"):
            sql = f"select count(*) from t where {where}"
            reply = found.ask("ana", sql)
            assert (reply.answer.value, reply.charged) == (123, 0)
            assert found.cost("ana", sql).known == 1


@pytest.mark.parametrize("half", ["cast(age as integer) // 2", "abs(age) // 2"])
def test_groups_that_an_earlier_version_stored_are_found_in_its_order(
    tmp_path: Path, half: str
) -> None:
    """It sorted group expressions by their words; each group keeps its own number."""
    sql = f"select {half} as h, debt, count(*) as n from t group by {half}, debt"
    cells = list(itertools.product(VALUES["debt"], [0, 1, 2]))
    numbers = {cell: 100 + place for place, cell in enumerate(cells)}
    with asker_of(tmp_path / "s", ROWS, schema=DOMAIN, queries=10) as found:
        question = found.read(sql)
        words = sorted(group.canonical for group in question.query.groups)
        assert words[0] == '"debt"'
        assert question.reordered is not None  # now by the columns that matter: age, debt
        key = earlier_key("true", words, [[str(part) for part in cell] for cell in cells])
        answer = json.dumps([*numbers.values()])
        found.ledger.record("ana", [Entry(key, json.dumps({"sql": "x"}), answer)])
        reply = found.ask("ana", sql)
        assert reply.charged == 0
        for row in reply.answer.rows:
            assert row["n"].value == numbers[row["debt"], row["h"]]


@pytest.mark.parametrize("sql", [*REWRITTEN, *NEAR, "select count(*) from t where true and null"])
def test_a_condition_is_in_words_what_its_tree_is(sql: str) -> None:
    predicate = parse(sql, DOMAIN, called="t").predicate
    if predicate is not None:  # it may stand in the total itself
        assert canonical.in_words(predicate) == written(as_node(predicate))
