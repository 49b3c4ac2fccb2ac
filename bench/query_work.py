"""Random queries on a release beside the bare count in DuckDB."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np

from bench.adult import NAME, PROMISE
from bench.publish_work import listed
from voile.publishing import publish
from voile.schema import Schema

SEED = 20070923


def milliseconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - start)


def queries(prior_factor: float, count: int) -> dict[str, Any]:
    """Each query once, ours and the bare one in turn, so that nothing is remembered."""
    release = publish(NAME, **PROMISE | {"prior_factor": prior_factor})
    conditions = random_conditions(release.schema, count + 1)
    con = duckdb.connect()
    view = f"read_parquet({listed(release)})"

    def ours_for(where: str) -> float:
        sql = f"SELECT count(*) FROM t WHERE {where}"
        return milliseconds(lambda: release.query(sql).to_dict())

    def bare_for(where: str) -> float:
        sql = f"SELECT count(*) FROM {view} WHERE {where}"
        return milliseconds(lambda: con.execute(sql).fetchall())

    pairs = [(ours_for(where), bare_for(where)) for where in conditions]
    ours, bare = np.array(pairs[1:]).T
    return {
        "rows": release.manifest.rows,
        "count": count,
        "first": pairs[0][0],
        "p50": [float(np.median(ours)), float(np.median(bare))],
        "p99": [float(np.quantile(ours, 0.99)), float(np.quantile(bare, 0.99))],
        "slowest": conditions[1 + int(np.argmax(ours))],
    }


def random_conditions(schema: Schema, count: int) -> list[str]:
    """Conditions on one to six attributes, with AND, OR and NOT."""
    rng = random.Random(SEED)  # noqa: S311  (the same queries in every run)
    return [condition(schema, rng) for _ in range(count)]


def condition(schema: Schema, rng: random.Random) -> str:
    """A random condition on a few attributes."""
    names = rng.sample(schema.names, rng.randint(1, 6))
    text = atom(schema, names[0], rng)
    for name in names[1:]:
        text = f"({text}) {rng.choice(['AND', 'AND', 'OR'])} {atom(schema, name, rng)}"
    return text


def atom(schema: Schema, name: str, rng: random.Random) -> str:
    """A random condition on one attribute."""
    values: list[Any] = list(schema[name])
    if schema[name].kind == "integer":
        low = rng.choice(values)
        return f"{name} BETWEEN {low} AND {low + rng.randint(0, 20)}"
    chosen = rng.sample(values, rng.randint(1, min(3, len(values))))
    listed_values = ", ".join("'" + str(v).replace("'", "''") + "'" for v in chosen)
    return f"{rng.choice(['', '', 'NOT '])}{name} IN ({listed_values})"
