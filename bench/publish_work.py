"""Publishing end to end, as tasks."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from bench.adult import NAME, PROMISE, wider_schema
from voile.publishing import publish_table
from voile.release import Release
from voile.schema import Attribute, Range, Schema

SKEW = 2
"""Values are drawn as ⌊size·u²⌋ for uniform u: some are frequent, as in tables of people."""


def publish_adult(times: int) -> dict[str, Any]:
    """Adult's release, again and again in one process: the first and the best time."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        done = publish_table(NAME, **PROMISE)
        seconds.append(time.perf_counter() - start)
    rows = done.release.manifest.rows
    return {
        "rate": rows / min(seconds),
        "seconds": min(seconds),
        "first": seconds[0],
        "rows_in": done.rows_in,
        "rows": rows,
    }


def copy_adult(times: int) -> dict[str, Any]:
    """DuckDB reading the rows of that release and writing them as Parquet, and nothing else."""
    release = publish_table(NAME, **PROMISE).release
    con = duckdb.connect()
    seconds = []
    with tempfile.TemporaryDirectory(prefix="voile-bench-") as folder:
        for _ in range(times):
            start = time.perf_counter()
            con.execute(
                f"COPY (FROM read_parquet({listed(release)})) TO '{folder}/copy.parquet' "
                "(FORMAT parquet, COMPRESSION zstd)"
            )
            seconds.append(time.perf_counter() - start)
    return {"rate": release.manifest.rows / min(seconds), "seconds": min(seconds)}


def listed(release: Release) -> str:
    """The release's Parquet files as a list in SQL."""
    paths = [str(release.path / f.path) for f in release.manifest.files if f.rows is not None]
    return "[" + ", ".join("'" + path.replace("'", "''") + "'" for path in paths) + "]"


# ---------------------------------------------------------------------- a large table


def make_large(rows: int, path: str) -> dict[str, Any]:
    """A table of people who do not exist, with Adult's values."""
    con = duckdb.connect(config={"memory_limit": "2GB"})
    columns = ", ".join(column(attribute) for attribute in wider_schema())
    con.execute(f"COPY (SELECT {columns} FROM range({rows})) TO '{path}' (FORMAT parquet)")
    return {"bytes": Path(path).stat().st_size}


def column(attribute: Attribute) -> str:
    """SQL that draws a column's values, the first ones most often."""
    place = f"CAST(floor(pow(random(), {SKEW}) * {attribute.size}) AS INTEGER)"
    if isinstance(attribute.domain, Range):
        value = f"{attribute.domain.low} + {place}"
    else:
        values = ", ".join("'" + str(v).replace("'", "''") + "'" for v in attribute)
        value = f"list_extract([{values}], 1 + {place})"
    return f'{value} AS "{attribute.name}"'


def publish_large(path: str, declared: bool) -> dict[str, Any]:
    """A view of about three rows per row, at the usual promise."""
    schema: Schema | None = wider_schema() if declared else None
    watch = Stopwatch()
    with tempfile.TemporaryDirectory(prefix="voile-bench-") as folder:
        start = time.perf_counter()
        done = publish_table(
            path,
            to=Path(folder) / "large.voile",
            prior_factor=10,
            posterior=0.2,
            max_view_ratio=3,
            schema=schema,
            progress=watch,
        )
        seconds = time.perf_counter() - start
    rows = done.release.manifest.rows
    return {
        "rate": done.rows_in / seconds,
        "seconds": seconds,
        "rows_in": done.rows_in,
        "rows": rows,
        "steps": watch.steps(start, start + seconds),
    }


class Stopwatch:
    """Listens to the progress of publishing and notes when each step began and last moved."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}
        self._moved: dict[str, float] = {}
        self._step = ""

    def start(self, what: str, total: int) -> None:  # noqa: ARG002  (the protocol's)
        """Note that a step begins."""
        self._step = what
        self._began[what] = self._moved[what] = time.perf_counter()

    def advance(self, count: int) -> None:  # noqa: ARG002  (the protocol's)
        """Note that the step has moved."""
        self._moved[self._step] = time.perf_counter()

    def steps(self, start: float, end: float) -> dict[str, float]:
        """Seconds: looking at the table, reading it, sorting it, writing, verifying."""
        reading, writing = self._began["reading"], self._began["writing"]
        read, written = self._moved["reading"], self._moved["writing"]
        return {
            "checking the table": reading - start,
            "reading": read - reading,
            "sorting, planning": writing - read,
            "writing": written - writing,
            "closing, verifying": end - written,
        }
