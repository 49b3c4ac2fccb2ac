"""The privacy side as tasks: other kinds of noise, series, plans, attacks, audits."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.adult import NAME, PROMISE
from voile.evaluate.attack import attack
from voile.evaluate.audit.method import audit_method
from voile.evaluate.planning.foresight import plan_table
from voile.publishing import publish_table


def timed(work: Callable[[], Any], times: int) -> dict[str, Any]:
    """The best of several runs in one process."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - start)
    return {"seconds": min(seconds), "rate": 1 / min(seconds), "found": found}


def publishing(times: int, **options: Any) -> dict[str, Any]:
    """A release of Adult with these options."""
    done = timed(lambda: publish_table(NAME, **PROMISE, **options).release.manifest.rows, times)
    return done | {"rows": done["found"]}


def series(times: int) -> dict[str, Any]:
    """The second view of a series of four: its noise must not betray what the first has shown."""
    seconds = []
    for _ in range(times):
        with tempfile.TemporaryDirectory(prefix="voile-bench-") as folder:
            options = PROMISE | {"series": "adult", "always_fresh": True}
            publish_table(NAME, to=Path(folder) / "1.voile", **options)
            start = time.perf_counter()
            rows = publish_table(NAME, to=Path(folder) / "2.voile", **options).release.manifest.rows
            seconds.append(time.perf_counter() - start)
    return {"seconds": min(seconds), "rate": 1 / min(seconds), "rows": rows}


def plan(times: int) -> dict[str, Any]:
    """Expected errors of all 304,364 selections, and how they change with γ and k."""
    return timed(lambda: plan_table(NAME, source=NAME).expected_error, times)


def attacking(times: int, known: list[str]) -> dict[str, Any]:
    """One person of whom these attributes are known."""
    release = publish_table(NAME, **PROMISE).release
    names = release.schema.names
    row = release.to_arrow().slice(0, 1).to_pylist()[0]
    with tempfile.TemporaryDirectory(prefix="voile-bench-") as folder:
        path = Path(folder) / "targets.csv"
        cells = [str(row[name]) if name in known else "" for name in names]
        path.write_text(",".join(names) + "\n" + ",".join(cells) + "\n")
        return timed(lambda: attack(release, path).tally.tuples, times)


def attacking_people(count: int) -> dict[str, Any]:
    """So many people of whom two attributes are not known."""
    release = publish_table(NAME, **PROMISE).release
    rows = release.to_arrow().slice(0, count)
    unknown = {"occupation", "salary"}
    columns = {
        name: rows[name].cast(pa.string()) for name in rows.column_names if name not in unknown
    }
    names = pa.array([f"person {i}" for i in range(len(rows))])
    return timed(lambda: len(attack(release, pa.table(columns | {"name": names})).people), 1)


def audit(times: int, runs: int) -> dict[str, Any]:
    """An audit of αβ by so many runs on either side."""
    return timed(lambda: audit_method(runs=runs).found.verdict, times)
