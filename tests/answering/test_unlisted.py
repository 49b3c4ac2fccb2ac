"""Conditions that may hold of values which a learnt domain does not list."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import voile

ROWS = 3_000
BOOK = """attributes:
- {name: kind, kind: categorical, values: [a, b, other], other: other}
- {name: income, kind: numeric, bins: [1, 2, 3, 8], clamp: true}
- {name: kids, kind: integer, range: [0, 3], clamp: true}
- {name: day, kind: date, bins: ['2023-01-01', '2023-02-01', '2023-03-01'], clamp: true}
"""


def columns_of_table() -> dict[str, Any]:
    """Every column has rows that its domain does not list."""
    draw = np.random.default_rng(5)
    return {
        "kind": draw.choice(["a", "b", "c", "rare"], ROWS, p=[0.5, 0.3, 0.15, 0.05]),
        "income": draw.gamma(1.5, 2.5, ROWS),
        "kids": draw.poisson(1.2, ROWS),
        "day": np.datetime64("2023-01-10") + draw.integers(0, 80, ROWS),
    }


@pytest.fixture(scope="module")
def columns() -> dict[str, Any]:
    return columns_of_table()


@pytest.fixture(scope="module")
def release(columns: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("unlisted")
    (folder / "book.yaml").write_text(BOOK, encoding="utf-8")
    yield voile.publish(
        pa.table(columns), to=folder / "release", method="marginals", epsilon=8,
        schema=str(folder / "book.yaml"), order=2, simulate_seed=3, name="t",
    )  # fmt: skip


CONDITIONS = (
    ("income < 0.5", lambda t: t["income"] < 0.5),
    ("income > 10", lambda t: t["income"] > 10),
    ("income between 9 and 11", lambda t: (t["income"] >= 9) & (t["income"] <= 11)),
    ("income / 2 > 4.2", lambda t: t["income"] / 2 > 4.2),
    ("kids > 3", lambda t: t["kids"] > 3),
    ("kids = 5", lambda t: t["kids"] == 5),
    ("kind = 'c'", lambda t: t["kind"] == "c"),
    ("kind like 'ra%'", lambda t: t["kind"] == "rare"),
    ("kind in ('a', 'c')", lambda t: np.isin(t["kind"], ["a", "c"])),
    ("day >= '2023-03-10'", lambda t: t["day"] >= np.datetime64("2023-03-10")),
)


@pytest.mark.parametrize(("sql", "holds"), CONDITIONS)
def test_counts_of_unlisted_values_are_not_certainly_none(
    release: Any, columns: dict[str, Any], sql: str, holds: Any
) -> None:
    exact = int(holds(columns).sum())
    for asked in (f"select count(*) as n from t where {sql}",
                  f"select count(*) filter (where {sql}) as n, count(*) as m from t"):  # fmt: skip
        answer = release.query(asked, confidence=0.999)
        low, high = answer.rows[0]["n"].interval()
        assert low <= exact <= high < ROWS
        assert exact > 0
        assert "does not list" in answer.notes[-1]
        assert not any("no tuple" in note for note in answer.notes)
    assert answer.rows[0]["m"].stderr < 100  # a count that has no such condition stays sharp


def test_other_statistics_of_unlisted_values_have_no_interval(release: Any) -> None:
    answer = release.query("select sum(kids) as s from t where kind = 'c'")
    assert all(math.isnan(end) for end in answer.scalar.interval())


@pytest.mark.parametrize(
    "sql", ["kids = 3", "kids >= 1", "kind = 'a'", "kind <> 'a'", "income >= 3", "income < 2"]
)
def test_what_listed_values_decide_stays_sharp(release: Any, sql: str) -> None:
    answer = release.query(f"select count(*) from t where {sql}")
    assert not answer.notes
    assert answer.stderr < 100


@pytest.mark.parametrize(
    ("sql", "holds"),
    [
        ("income >= 1", lambda t: t["income"] >= 1),
        ("income > 0.5", lambda t: t["income"] > 0.5),
        ("kids < 4", lambda t: t["kids"] < 4),
        ("day < '2023-03-10'", lambda t: t["day"] < np.datetime64("2023-03-10")),
    ],
)
def test_conditions_that_unlisted_values_may_fail_are_not_certainly_met(
    release: Any, columns: dict[str, Any], sql: str, holds: Any
) -> None:
    exact = int(holds(columns).sum())
    assert exact < 0.98 * ROWS
    cases = f"select avg(case when {sql} then 1 else 0 end) * {ROWS} as n from t"
    for asked in (f"select count(*) as n from t where {sql}", cases,
                  f"select sum(case when {sql} then 1 else 0 end) as n from t"):  # fmt: skip
        answer = release.query(asked, confidence=0.999)
        low, high = answer.rows[0]["n"].interval()
        assert low <= exact <= high
        assert any("may not hold" in note for note in answer.notes)


@pytest.mark.parametrize(
    ("between", "apart"),
    [
        ("income between 3 and 12", "income >= 3 and income <= 12"),
        ("income between 1 and 4", "income >= 1 and income <= 4"),
        ("kids between 1 and 4", "kids >= 1 and kids <= 4"),
        ("day between '2023-01-05' and '2023-03-10'",
         "day >= '2023-01-05' and day <= '2023-03-10'"),
        ("(kids between 2 and 5)", "kids > 1 and kids < 6"),
        ("kids between 0 and 2", "kids >= 0 and kids <= 2"),
    ],
)  # fmt: skip
def test_between_is_as_sure_as_both_comparisons(release: Any, between: str, apart: str) -> None:
    for counted in ("select count(*) as n from t where {}",
                    "select count(*) filter (where {}) as n from t"):  # fmt: skip
        one = release.query(counted.format(between)).rows[0]["n"]
        other = release.query(counted.format(apart)).rows[0]["n"]
        assert one.value == other.value
        np.testing.assert_allclose(one.interval(), other.interval())


def test_a_sum_of_ones_and_zeros_is_a_count(release: Any) -> None:
    """However it is written, and whatever stands beside it."""
    counts = ("count(*) filter (where income > 2.5)",
              "sum(case when income > 2.5 then 1 else 0 end)",
              "sum(case when income > 2.5 then 1 end)",
              "2 * count(*) - sum(case when (income > 2.5) then 1.0 else 2 end)")  # fmt: skip
    found = [release.query(f"select {one} as n from t").rows[0]["n"] for one in counts]
    together = release.query(f"select {', '.join(counts[:3])} from t").rows[0]
    for one in (*found[1:], *together.values()):
        assert one.value == pytest.approx(found[0].value)
    for one in (*found[1:3], *together.values()):
        np.testing.assert_allclose(one.interval(), found[0].interval())


def test_groups_at_the_ends_say_what_they_stand_for(release: Any) -> None:
    notes = release.query("select kids, day, count(*) from t group by 1, 2").notes
    assert "kids was published between 0 and 3" in notes[0]
    assert "groups of day are its bins" in notes[1]
    assert "begin at 2023-01-01, 2023-02-01" in notes[1]
