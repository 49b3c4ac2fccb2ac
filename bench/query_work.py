"""Queries on a release beside the bare count in DuckDB."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import duckdb

from bench.adult import NAME
from bench.publish_work import listed
from voile.publishing import publish
from voile.release import Release

CONDITIONS = [
    "age >= 65",
    "native_country = 'Mexico'",
    "age BETWEEN 25 AND 34 AND sex = 'Female'",
    "education IN ('Bachelors', 'Masters', 'Doctorate') AND salary = '>50K'",
    "occupation = 'Sales' AND race = 'White' AND sex = 'Male'",
    "age < 30 AND marital_status LIKE 'Married%' AND workclass = 'Private'",
    "age > 40 AND sex = 'Male' AND education = 'HS-grad' AND occupation = 'Craft-repair'",
    "(age > 60 OR education = 'Doctorate') AND salary = '>50K' AND race = 'Black'",
]


def milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def queries(prior_factor: float, times: int) -> dict[str, Any]:
    release = publish(NAME, prior_factor=prior_factor, posterior=0.2)
    first = milliseconds(lambda: release.query(f"SELECT count(*) FROM t WHERE {CONDITIONS[0]}"))
    con = duckdb.connect()
    each = [compare(release, con, condition, times) for condition in CONDITIONS]
    return {
        "rows": release.manifest.rows,
        "first": first,
        "ours": statistics.median(one["ours"] for one in each),
        "bare": statistics.median(one["bare"] for one in each),
        "queries": each,
    }


def compare(
    release: Release, con: duckdb.DuckDBPyConnection, condition: str, times: int
) -> dict[str, Any]:
    """Medians of both, in turn and after one of each to warm up."""
    ours_sql = f"SELECT count(*) FROM t WHERE {condition}"
    bare_sql = f"SELECT count(*) FROM read_parquet({listed(release)}) WHERE {condition}"
    pairs = [
        (
            milliseconds(lambda: release.query(ours_sql)),
            milliseconds(lambda: con.execute(bare_sql).fetchall()),
        )
        for _ in range(times + 1)
    ]
    ours, bare = zip(*pairs[1:], strict=True)
    return {"where": condition, "ours": statistics.median(ours), "bare": statistics.median(bare)}
