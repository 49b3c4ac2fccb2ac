"""Answers and releases in tools that speak Arrow's PyCapsule protocol."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import voile
from voile.errors import UsageError

FRAME = pd.DataFrame({"age": [30, 31, 32, 33] * 50, "sex": ["f", "m"] * 100})
COUNTS = "select sex, count(*) from t group by sex"


@pytest.fixture(scope="module")
def classes() -> Any:
    return voile.publish(
        FRAME, name="t", method="mondrian", k=5, qi=["age"], sensitive=["sex"], register=False
    )


def test_an_answer_is_a_table_of_every_tool(classes: Any) -> None:
    answer = classes.query(COUNTS)
    names = ["sex", "count", "count_stderr", "count_low", "count_high"]
    rows = answer.flat()
    frame = pl.DataFrame(answer)
    assert frame.columns[:5] == names and frame.to_dicts() == rows
    assert pa.table(answer).to_pylist() == rows
    assert pa.schema(answer) == answer.to_arrow().schema
    found = duckdb.sql("select sex from answer order by sex")
    assert found is not None and found.fetchall() == [("f",), ("m",)]


def test_an_answer_without_rows_keeps_its_columns(classes: Any) -> None:
    answer = classes.query("select sex, count(*) from t group by sex having count(*) < 0")
    assert not answer.rows
    assert pa.table(answer).column_names == answer.to_arrow().column_names


def test_rows_that_are_shown_are_a_table(classes: Any) -> None:
    assert pl.DataFrame(classes).height == 200
    assert pa.table(classes).equals(classes.to_arrow())
    found = duckdb.sql("select count(*) from classes")
    assert found is not None and found.fetchall() == [(200,)]


def test_perturbed_rows_are_a_table() -> None:
    release = voile.perturb(FRAME, name="t", retention=0.5, register=False, simulate_seed=1)
    assert pa.table(release).equals(release.to_arrow())


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"prior": 0.01, "retention": 0.5}, "mean nothing by themselves", "release.query"),
        (
            {"method": "marginals", "schema": "active", "epsilon": 1},
            "have no rows of people",
            r"release.rows\(\)",
        ),
    ],
)
def test_rows_that_mean_nothing_are_refused(
    options: dict[str, Any], message: str, hint: str
) -> None:
    release = voile.publish(FRAME, name="t", register=False, simulate_seed=1, **options)
    for ask in (pa.table, pa.schema):
        with pytest.raises(UsageError, match=f"(?s){message}.*{hint}"):
            ask(release)
