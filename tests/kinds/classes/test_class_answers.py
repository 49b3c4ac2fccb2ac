"""Answers from grouped releases against every table that agrees with them, and the oracle."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from tests.support.class_rows import Grouped, Truth, mean_and_variance
from tests.support.soak import rounds
from voile.estimate import Estimate
from voile.kinds.classes import pairing
from voile.kinds.classes.answering import answer_classes
from voile.query import parse
from voile.schema import Attribute, Range, Schema, Values

SCHEMA = Schema(
    (
        Attribute("age", "integer", Range(20, 23), null=True),
        Attribute("town", "categorical", Values(("A", "B", "C"))),
        Attribute("job", "categorical", Values(("x", "y", "z"))),
        Attribute("pay", "integer", Range(0, 3)),
    )
)
ORDERS = {"town": np.array([2, 0, 1])}


def table(
    rows: list[tuple[int, int, int, int]], classes: list[int], hidden: tuple[str, ...]
) -> Grouped:
    return Grouped(SCHEMA, np.array(rows).T.copy(), np.array(classes), hidden, ORDERS)


GENERALIZED = table(
    [(0, 0, 0, 3), (2, 0, 1, 0), (1, 2, 1, 2), (3, 1, 2, 1), (4, 1, 0, 2)],
    [0, 0, 1, 2, 2],
    ("age", "town"),
)
BUCKETIZED = table(
    [
        (0, 0, 0, 3),
        (2, 0, 1, 0),
        (2, 1, 1, 0),
        (4, 2, 2, 1),
        (1, 1, 0, 2),
        (3, 1, 2, 2),
        (0, 2, 0, 1),
    ],
    [0, 0, 0, 0, 1, 1, 1],
    ("job", "pay"),
)
CASES = {"generalize": GENERALIZED, "bucketize": BUCKETIZED}

TOTALS = [
    "select count(*) from t",
    "select count(*) from t where age <= 21",
    "select count(*) from t where job = 'x'",
    "select count(*) from t where age <= 21 and job = 'x'",
    "select count(*) from t where age <= 21 or job = 'x'",
    "select count(*) from t where not (town = 'A' and job <> 'y')",
    "select count(*) from t where age is null and pay > 0",
    "select count(*) from t where (age < 22 and job = 'x') or (age >= 22 and job = 'y')",
    "select count(*) from t where age - 20 < pay",
    "select count(age) from t where town <> 'C'",
    "select sum(pay) from t where town = 'A'",
    "select sum(age) from t where job = 'x'",
    "select sum(age * pay) from t",
    "select sum(age - 21) from t where town = 'B' or pay = 2",
    "select sum(pay) filter (where age > 20) from t",
]
GROUPED = [
    "select town, count(*) from t group by town",
    "select job, count(*) from t where age >= 21 group by job",
    "select age, job, count(*) from t group by age, job",
    "select town, sum(pay) from t where age is not null group by town",
    "select pay > 1, sum(age) from t group by pay > 1",
]
RATIOS = [
    "select avg(pay) from t where town = 'A'",
    "select avg(age) from t where job = 'x'",
    "select avg(age) from t",
    "select sum(age) / count(*) from t where pay >= 1",
    "select count(*) filter (where age < 22) / count(*) from t where job <> 'z'",
]
QUANTILES = [
    "select median(age) from t",
    "select median(pay) from t where age < 23",
    "select percentile_disc(0.5) within group (order by pay) from t where town <> 'B'",
    "select percentile_disc(0.3) within group (order by age) from t where job <> 'y'",
]


@lru_cache
def truth(recode: str) -> Truth:
    return Truth(SCHEMA, list(CASES[recode].agreeing(recode)))


def told(recode: str, sql: str) -> dict[tuple[Any, ...], Estimate]:
    answer = CASES[recode].answer(sql, recode)
    found = {}
    for row in answer.rows:
        *keys, estimate = row.values()
        found[tuple(keys)] = estimate
    return found


@pytest.mark.parametrize("recode", CASES)
@pytest.mark.parametrize("sql", [*TOTALS, *GROUPED])
def test_totals_of_all_that_agrees(recode: str, sql: str) -> None:
    """Mean, variance, least and most over every table that agrees, each as likely."""
    expected, found = truth(recode).answers(sql), told(recode, sql)
    assert set(found) == set(expected or {(): []})
    for group, values in expected.items():
        mean, variance = mean_and_variance(values)
        numbers = [0 if v is None else v for v in values]
        assert found[group].value == pytest.approx(mean, abs=1e-9)
        assert found[group].stderr ** 2 == pytest.approx(variance, abs=1e-9)
        assert found[group].certain == pytest.approx((min(numbers), max(numbers)), abs=1e-9)


@pytest.mark.parametrize("recode", CASES)
@pytest.mark.parametrize("sql", RATIOS)
def test_ratios_of_all_that_agrees(recode: str, sql: str) -> None:
    """The certain bounds of an average are reached by some table, and passed by none."""
    (values,) = truth(recode).answers(sql).values()
    known = [float(v) for v in values if v is not None and not math.isnan(v)]
    (found,) = told(recode, sql).values()
    assert found.certain == pytest.approx((min(known), max(known)), abs=1e-9)
    assert min(known) - 1e-9 <= found.value <= max(known) + 1e-9


@pytest.mark.parametrize("recode", CASES)
@pytest.mark.parametrize("sql", QUANTILES)
def test_quantiles_of_all_that_agrees(recode: str, sql: str) -> None:
    (values,) = truth(recode).answers(sql).values()
    known = [float(v) for v in values if v is not None]
    (found,) = told(recode, sql).values()
    assert found.certain is not None
    low, high = found.certain
    assert low <= min(known) and max(known) <= high
    if "disc" in sql:
        assert (low, high) == (min(known), max(known))


# ---------------------------------------------------------------------- are bounds reached?

CONDITIONS = [
    "age < 22 and job = 'x'",
    "age < 22 or job = 'y'",
    "(age < 22 and job = 'x') or (age >= 22 and job = 'y')",
    "age - 20 + pay > 2",
    "pay > 1",
]
STATISTICS = [
    "avg(age)",
    "avg(pay)",
    "avg(age) - avg(pay)",
    "median(age)",
    "median(pay)",
    "percentile_disc(0.4) within group (order by age)",
    "median(age) - avg(pay)",
    "count(*) filter (where (age < 22) = (job = 'x')) / count(*)",
    "count(*) / (count(*) + 1)",
    "sum(abs(age - 20 - pay))",
]
EXACT_AVERAGES = {"avg(age)", "avg(pay)", "sum(abs(age - 20 - pay))"}


def small(seed: int, recode: str) -> Grouped:
    """Boxes of at most two ages and two towns, or buckets of three and two rows."""
    rng = np.random.default_rng(seed)
    general = recode == "generalize"
    sizes = (2, 2, 3, 4) if general else (5, 3, 3, 4)
    rows = rng.integers(0, sizes, (4 if general else 5, 4))
    rows[2:, 0] += 2 * general
    hidden = ("age", "town") if general else ("job", "pay")
    classes = np.array([0, 0, 1, 1] if general else [0, 0, 0, 1, 1])
    return Grouped(SCHEMA, rows.T.copy(), classes, hidden, ORDERS)


def defined(values: list[Any]) -> list[float]:
    return [float(v) for v in values if v is not None and math.isfinite(v)]


@pytest.mark.parametrize(
    ("recode", "assigned"), [("generalize", True), ("bucketize", True), ("bucketize", False)]
)
def test_bounds_are_those_of_all_that_agrees_or_say_so(
    recode: str, assigned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where buckets are too large to assign record by record."""
    if not assigned:
        monkeypatch.setattr(pairing, "MOST_ASSIGNED", 0)
    loose, proper = 0, 0
    for seed in range(rounds(3, 6)):
        grouped = small(seed, recode)
        worlds = Truth(SCHEMA, list(grouped.agreeing(recode)))
        for condition, what in itertools.product(CONDITIONS, STATISTICS):
            sql = f"select town, {what} from t where {condition} group by town"
            answer = grouped.answer(sql, recode)
            said = any("may reach" in note for note in answer.notes)
            found = {row["town"]: list(row.values())[1] for row in answer.rows}
            for (town,), values in worlds.answers(sql).items():
                known = defined(values)
                if what.startswith(("sum", "count(*) /")) and None in values:
                    known.append(0.0)
                if not known:
                    continue
                low, high = found[town].certain
                assert low <= min(known) + 1e-9 and max(known) <= high + 1e-9, sql
                tight = (low, high) == pytest.approx((min(known), max(known)), abs=1e-9)
                assert tight or said, (sql, town, low, high, min(known), max(known))
                if assigned and what in EXACT_AVERAGES:
                    assert tight, sql
                loose += not tight
                proper += low < high and tight
    assert loose > 0 and proper > 40


def test_an_average_over_an_either_or_has_the_bounds_of_every_permutation() -> None:
    """Five rows in one bucket; enumeration has 1.5 and 2, single rows 0 and 3."""
    rows = [(1, 0, 1, 2), (3, 1, 1, 1), (3, 1, 0, 0), (0, 1, 0, 2), (3, 0, 0, 1)]
    grouped = table(rows, [0] * 5, ("job", "pay"))
    sql = "select avg(age) from t where (age < 23 and job = 'x') or (age >= 23 and job = 'y')"
    (values,) = Truth(SCHEMA, list(grouped.agreeing("bucketize"))).answers(sql).values()
    answer = grouped.answer(sql, "bucketize")
    assert (min(defined(values)), max(defined(values))) == (21.5, 22.0)
    assert answer.scalar.certain == pytest.approx((21.5, 22.0))
    assert not any("may reach" in note for note in answer.notes)


def test_a_difference_of_averages_is_bounded_by_those_of_both() -> None:
    """Each average is over rows that may be none: totals alone would bound nothing."""
    rows = [(3, 1, 0, 0), (4, 2, 0, 1), (1, 0, 0, 1), (1, 0, 1, 0), (4, 0, 2, 2), (0, 1, 0, 0)]
    grouped = table(rows, [0, 0, 0, 1, 1, 1], ("job", "pay"))
    sql = "select town, {} from t where age - 20 + pay > 2 group by town"
    whole, age, pay = (
        {row["town"]: list(row.values())[1].certain for row in answer.rows}
        for answer in (
            grouped.answer(sql.format(what), "bucketize")
            for what in ("avg(age) - avg(pay)", "avg(age)", "avg(pay)")
        )
    )
    assert whole
    for town, (low, high) in whole.items():
        assert math.isfinite(low) and math.isfinite(high)
        assert low >= age[town][0] - pay[town][1] - 1e-9
        assert high <= age[town][1] - pay[town][0] + 1e-9


def test_what_has_no_bound_is_null_in_json() -> None:
    sql = "select 1 / (count(*) - 2) from t where age < 22 and job = 'x'"
    answer = BUCKETIZED.answer(sql, "bucketize")
    assert answer.scalar.certain == (-math.inf, math.inf)
    assert any("may reach" in note for note in answer.notes)
    (row,) = json.loads(json.dumps(answer.to_dict(), allow_nan=False))["rows"]
    (told_,) = row.values()
    assert told_["certain_low"] is None and told_["certain_high"] is None


# ---------------------------------------------------------------------- medians


@pytest.mark.parametrize(
    ("pay", "median"), [((2, 3, 3), 3.0), ((3, 3, 2, 0), 2.5), ((1,), 1.0), ((0, 1), 0.5)]
)
def test_a_median_of_what_is_shown_is_known(pay: tuple[int, ...], median: float) -> None:
    rows = [(i % 4, i % 3, 0, p) for i, p in enumerate(pay)]
    grouped = table(rows, [0] * len(rows), ("age", "town"))
    answer = grouped.answer("select median(pay) from t where job = 'x'", "generalize")
    found = answer.scalar
    assert (found.value, found.stderr) == (median, 0.0)
    assert found.interval() == found.certain == (median, median)
    assert "leaves nothing of it open" in answer.covers


@pytest.mark.parametrize("rows", [3, 4])
def test_a_median_of_a_known_number_of_rows_is_between_those_of_all_low_and_all_high(
    rows: int,
) -> None:
    """With an odd number it is a value of one row, and no slack is left for a mean of two."""
    some = [(0, 0, 0, 0), (1, 0, 0, 0), (3, 0, 0, 0), (3, 0, 0, 0)][:rows]
    grouped = table(some, [0, 0, 1, 1][:rows], ("age", "town"))
    (values,) = (
        Truth(SCHEMA, list(grouped.agreeing("generalize")))
        .answers("select median(age) from t")
        .values()
    )
    answer = grouped.answer("select median(age) from t", "generalize")
    assert min(values) < max(values)
    assert answer.scalar.certain == (min(values), max(values))
    assert not any("may reach" in note for note in answer.notes)


# ---------------------------------------------------------------------- rows left out


@pytest.mark.parametrize("sql", ["select avg(pay) from t", "select avg(age) from t"])
def test_answers_without_some_rows_are_about_those_shown(sql: str) -> None:
    query = parse(sql, SCHEMA, {})
    source = GENERALIZED.source("generalize")
    whole, rest = (answer_classes(query, replace(source, removed=n), 0.95) for n in (0, 3))
    for told_ in (whole.covers, whole.scalar.covers, *whole.notes, whole.assumption):
        assert "that are shown" not in told_
    assert "of the rows that are shown" in rest.covers
    assert "before they were grouped" not in rest.covers + rest.scalar.covers
    assert "3 rows were left out" in rest.assumption
    for note in rest.notes:
        assert "exact" not in note or note.endswith("exact of the rows that are shown")
