"""Shares of a whole and subtotals, of every kind of release: as the queries that they are made of.

A share must have the estimate and the interval that the same ratio has when it is written by hand,
and each grouping of a ROLLUP those of its own query.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import voile
from voile.errors import QueryError
from voile.estimate import Estimate
from voile.release import Release

KINDS: dict[str, dict[str, Any]] = {
    "view": {"prior": 0.01, "posterior": 0.2},
    "marginals": {"method": "marginals", "epsilon": 1.0, "schema": "active"},
    "counts": {"method": "conjuncts", "arity": 2, "direct": True, "noise": "gaussian"},
    "classes": {"method": "mondrian", "k": 5, "qi": ["region", "age"], "sensitive": ["answer"]},
    "perturbed": {},
}
by_kind = pytest.mark.parametrize("kind", KINDS)


@lru_cache
def table() -> pa.Table:
    rng = np.random.default_rng(20)
    rows = 4000
    region = rng.choice(["north", "east", "south"], rows, p=[0.5, 0.3, 0.2])
    answer = np.where(rng.random(rows) < np.where(region == "north", 0.7, 0.4), "yes", "no")
    return pa.table({"region": region, "answer": answer, "age": rng.integers(20, 50, rows)})


@lru_cache
def release(kind: str) -> Release:
    options: dict[str, Any] = {"simulate_seed": 1}
    if kind == "perturbed":
        made: Release = voile.perturb(table(), 0.5, **options)
        return made
    found: Release = voile.publish(table(), **(options | KINDS[kind]))
    return found


def numbers(value: Estimate) -> list[float]:
    return [value.value, value.stderr, *value.interval()]


def same(left: Estimate, right: Estimate) -> bool:
    pairs = zip(numbers(left), numbers(right), strict=True)
    return all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in pairs)


@by_kind
def test_a_share_is_the_ratio_of_a_part_and_the_whole(kind: str) -> None:
    asked = release(kind).query(
        "select region, answer, count(*) / sum(count(*)) over () as s, "
        "count(*) / sum(count(*)) over (partition by region) as within from t group by all"
    )
    assert len(asked.rows) == 6
    for row in asked.rows:
        part = f"region = '{row['region']}' and answer = '{row['answer']}'"
        whole = release(kind).query(f"select count(*) filter (where {part}) / count(*) from t")
        assert same(row["s"], whole.scalar)
        within = release(kind).query(
            f"select count(*) filter (where answer = '{row['answer']}') / count(*) from t "
            f"where region = '{row['region']}'"
        )
        assert math.isclose(row["within"].value, within.value, rel_tol=1e-6)
    assert math.isclose(sum(row["s"].value for row in asked.rows), 1, abs_tol=0.02)


@by_kind
def test_a_share_of_the_table_beside_where(kind: str) -> None:
    asked = release(kind).query(
        "select count(*) / (select count(*) from t) as s from t where answer = 'yes'"
    )
    alone = "select count(*) filter (where answer = 'yes') / count(*) from t"
    assert same(asked.scalar, release(kind).query(alone).scalar)


@by_kind
def test_each_grouping_is_the_answer_of_its_own_query(kind: str) -> None:
    asked = release(kind).query("select region, answer, count(*) as n from t group by cube(1, 2)")
    assert len(asked.rows) == 6 + 3 + 2 + 1
    for columns in (["region", "answer"], ["region"], ["answer"], []):
        names = ", ".join(columns)
        sql = f"select {names}, count(*) as n from t group by {names}"
        own = release(kind).query(sql if names else "select count(*) as n from t")
        for row in own.rows:
            missing = {"region", "answer"} - set(columns)
            (found,) = [
                one
                for one in asked.rows
                if all(one[c] == row[c] for c in columns) and all(one[c] is None for c in missing)
            ]
            assert same(found["n"], row["n"])


def test_simultaneous_intervals_hold_for_all_groupings_at_once() -> None:
    sql = "select region, count(*) as n from t group by rollup(region)"
    one, all_ = (release("view").query(sql, simultaneous=s) for s in (False, True))
    assert "all 4 groups at once" in all_.covers
    widths = [[b - a for a, b in (r["n"].interval() for r in x.rows)] for x in (one, all_)]
    assert all(narrow < wide for narrow, wide in zip(*widths, strict=True))


def test_what_cannot_be_explained_at_once_says_so() -> None:
    with pytest.raises(QueryError, match="not explained"):
        release("view").explain("select region, count(*) / sum(count(*)) over () from t group by 1")
    assert release("view").explain("select region, count(*) from t group by rollup(region)")
