"""Publishing on a cluster beside DuckDB: CPU, memory and shuffles from 10⁶ to 10⁸ rows."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.child import Outcome, TaskError, run
from bench.result import Result

NAME = "spark"
JOBS = ("view", "marginals", "perturb", "k-anonymize", "fingerprint", "question")
GROWTH = 1.2
"""How much more a row may cost in a table of ten times the rows, and a driver's memory too."""


def benchmark(*, quick: bool, rounds: int) -> list[Result]:
    """Every job by DuckDB, on Sail, and on Apache Spark where it is there."""
    del rounds  # once: hours else
    sizes = [10**5, 10**6] if quick else [10**6, 10**7, 10**8]
    engines = ["duckdb", "sail", *(["apache"] if apache_there() else [])]
    found: dict[tuple[str, str, int], Outcome] = {}
    with tempfile.TemporaryDirectory(prefix="voile-bench-") as folder:
        for size in sizes:
            path = str(Path(folder) / f"people{size}.parquet")
            run("spark_work:make", rows=size, path=path)
            for job in JOBS:
                for engine in engines:
                    try:
                        found[job, engine, size] = run(
                            "spark_work:run_job", job=job, path=path, engine=engine
                        )
                    except TaskError as error:
                        print(error)
    return [
        result
        for (job, engine, size), done in found.items()
        if engine != "duckdb"
        for result in results(job, engine, size, done, found)
    ]


def apache_there() -> bool:
    """Whether Apache Spark can be started here."""
    from tests.spark.cluster import ApacheSpark

    return ApacheSpark.available()


def results(
    job: str, engine: str, size: int, done: Outcome, found: dict[tuple[str, str, int], Outcome]
) -> list[Result]:
    """CPU-seconds beside DuckDB's, and what a row costs beside a table of a tenth of the rows."""
    peer = found.get((job, "duckdb", size))
    before = found.get((job, engine, size // 10))
    details: dict[str, Any] = {
        **done.value, "peak": done.peak,
        "duckdb": None if peer is None else {**peer.value, "peak": peer.peak},
    }  # fmt: skip
    listed = [
        Result(
            NAME, f"{job}, {size:,} rows, {engine}: CPU", "s", done.value["cpu"],
            None if peer is None else peer.value["cpu"], "DuckDB", peak_memory=done.peak,
            others=done.others, details=details,
        )
    ]  # fmt: skip
    if before is not None:
        grown = done.value["cpu"] / before.value["cpu"] / 10
        listed.append(
            Result(
                NAME, f"{job}, {size:,} rows, {engine}: CPU a row beside {size // 10:,}", "s",
                done.value["cpu"] / size, before.value["cpu"] / (size // 10), "a tenth of the rows",
                aim=f"≤ {GROWTH:g} ×", met=grown <= GROWTH, others=done.others,
            )
        )  # fmt: skip
    if engine == "apache":  # of Sail nothing says it
        listed.append(
            Result(
                NAME, f"{job}, {size:,} rows, {engine}: shuffled", "bytes", done.value["shuffled"],
                others=done.others, details={"a row": done.value["shuffled"] / size},
            )
        )  # fmt: skip
    if before is not None and engine == "apache":  # Sail's executors are in the driver's process
        listed.append(
            Result(
                NAME, f"{job}, {size:,} rows, {engine}: the driver's peak beside {size // 10:,}",
                "bytes", done.peak, before.peak, "a tenth of the rows", f"≤ {GROWTH:g} ×",
                done.peak <= GROWTH * before.peak, done.peak, done.others,
            )
        )  # fmt: skip
    return listed
