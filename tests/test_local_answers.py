"""Answers from perturbed rows against enumeration, DuckDB, dense matrices and the oracle."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.local_rows import EachRow, Small
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


@pytest.mark.parametrize("sql", [*TOTALS, *GROUPED])
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
