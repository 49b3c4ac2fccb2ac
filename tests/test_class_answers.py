"""Answers from grouped releases against every table that agrees with them, and the oracle."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from tests.class_rows import Grouped, Truth, mean_and_variance
from voile.estimate import Estimate
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
