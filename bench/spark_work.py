"""What `bench spark` runs, each in a process of its own: a job by DuckDB, and on a cluster."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from bench.publish_work import column
from voile.schema import Attribute, Range, Schema, Values

TICKS = os.sysconf("SC_CLK_TCK")
SERVERS: list[Any] = []
"""Servers of Apache Spark: their guards make their processes nobody's children."""
WRITTEN_DOWN = 0.5
"""Seconds in which Spark writes down what its tasks did."""
REGIONS = tuple(f"region {i:02d}" for i in range(20))
GRADES = tuple(f"grade {i}" for i in range(8))
PEOPLE = Schema((
    Attribute("age", "integer", Range(0, 99)),
    Attribute("region", "categorical", Values(REGIONS)),
    Attribute("grade", "categorical", Values(GRADES)),
    Attribute("sex", "categorical", Values(("f", "m"))),
    Attribute("hours", "integer", Range(0, 79)),
    Attribute("visits", "integer", Range(0, 9999)),
))  # fmt: skip
"""2.6·10¹⁰ possible tuples."""
QUESTION = "select region, count(*), avg(hours) from people where age >= 30 group by region"


def make(rows: int, path: str) -> dict[str, Any]:
    """A table of people who do not exist, in a file of row groups that executors share."""
    con = duckdb.connect(config={"memory_limit": "2GB"})
    columns = ", ".join(column(attribute) for attribute in PEOPLE)
    con.execute(
        f"COPY (SELECT {columns} FROM range({rows})) TO '{path}' "
        "(FORMAT parquet, ROW_GROUP_SIZE 500000)"
    )
    return {"bytes": Path(path).stat().st_size}


# ---------------------------------------------------------------------- jobs


def view(table: Any, folder: Path) -> Any:
    """A view with about two rows of noise for each row."""
    import voile

    return voile.publish(
        table, method="alphabeta", schema=PEOPLE, prior_factor=10, posterior=0.2, max_view_ratio=3,
        to=folder / "view.voile", register=False,
    )  # fmt: skip


def marginals(table: Any, folder: Path) -> Any:
    """Noisy marginals of up to two of four columns."""
    import voile

    domain = PEOPLE.select(["age", "region", "grade", "sex"])
    return voile.publish(
        table, method="marginals", schema=domain, epsilon=1.0, order=2,
        to=folder / "marginals.voile", register=False,
    )  # fmt: skip


def perturbed(table: Any, folder: Path) -> Any:
    """Every value kept with chance one half."""
    import voile

    domain = PEOPLE.select(["age", "region", "grade", "sex", "hours"])
    return voile.perturb(table, 0.5, schema=domain, to=folder / "rows.voile", register=False)


def classes(table: Any, folder: Path) -> Any:
    """Mondrian's classes of 50 rows, of four columns."""
    import voile

    return voile.publish(
        table, method="mondrian", qi=["age", "region", "sex"], sensitive=["grade"], k=50,
        identifiers=["hours", "visits"], error_model=False, to=folder / "classes.voile",
        register=False, cuts="median",
    )  # fmt: skip


def fingerprint(table: Any, folder: Path) -> Any:
    """What the register keeps of the rows, under a key that is nobody's."""
    from voile.register import sketch
    from voile.register.keys import FingerprintKey

    del folder
    return sketch.fingerprint(table, FingerprintKey(bytes(32)))


JOBS: dict[str, Callable[[Any, Path], Any]] = {
    "view": view, "marginals": marginals, "perturb": perturbed, "k-anonymize": classes,
    "fingerprint": fingerprint,
}  # fmt: skip


def run_job(job: str, path: str, engine: str) -> dict[str, Any]:
    """One job by one engine: seconds, CPU-seconds of all processes, and their peaks."""
    with reached(engine) as address, tempfile.TemporaryDirectory(prefix="voile-bench-") as folder:
        table = source(path, address)
        if job == "question":
            release = marginal_view(path, Path(folder))
            task: Callable[[], Any] = lambda: release.query(  # noqa: E731
                QUESTION, **({} if address is None else {"engine": address})
            )
        else:
            task = lambda: JOBS[job](table, Path(folder))  # noqa: E731
            if job == "fingerprint":
                len(table)  # which publishing counts in any case
                fingerprint(source("dataset:scores", None), Path(folder))  # loads Numba
        before, cpu, start = shuffled(), cpu_of_all(), time.perf_counter()
        done = task()
        seconds, used = time.perf_counter() - start, cpu_of_all() - cpu
        rows = 0 if job in ("fingerprint", "question") else done.manifest.rows
        size = sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file())
        return {
            "seconds": seconds, "cpu": used, "rows_out": rows, "bytes_out": size,
            "rate": 1 / seconds, "others": peaks_of_others(), "shuffled": shuffled() - before,
        }  # fmt: skip


def marginal_view(path: str, folder: Path) -> Any:
    """A release of rows to be asked, made by DuckDB."""
    import voile

    name = Path(path).with_suffix(".asked.voile")
    if not name.exists():
        domain = PEOPLE.select(["age", "region", "grade", "sex", "hours"])
        return voile.perturb(path, 0.5, schema=domain, to=name, register=False, name="people")
    del folder
    return voile.open(name, check=False)


def source(path: str, address: str | None) -> Any:
    """The table by an engine."""
    import voile

    if address is None:
        return voile.read(path)
    from voile.engines.spark import SparkSource

    return voile.read(SparkSource(address, path))


@contextmanager
def reached(engine: str) -> Iterator[str | None]:
    """An engine's address, with a session that has begun; None for DuckDB."""
    if engine == "duckdb":
        yield None
        return
    from voile.engines.spark.session import cluster_at

    if engine == "sail":
        cluster_at("local").prepare()
        yield "local"
        return
    from tests.spark.cluster import ApacheSpark

    server = ApacheSpark.start(Path(tempfile.mkdtemp(prefix="voile-spark-")) / "server")
    SERVERS.append(server)
    cluster = cluster_at(server.address)
    try:
        cluster.prepare()
        yield server.address
        cluster.session.stop()  # else the client looks for its server for minutes when it ends
    finally:
        server.stop()


# ---------------------------------------------------------------------- all processes


def shuffled() -> int:
    """Bytes that tasks of Apache Spark have written for others to fetch, as its events say."""
    found, last = shuffle_bytes(), -1
    while SERVERS and found != last:
        time.sleep(WRITTEN_DOWN)
        found, last = shuffle_bytes(), found
    return found


def shuffle_bytes() -> int:
    """The same, as far as it is written down."""
    ended = [event for server in SERVERS for event in server.recorded("TaskEnd")]
    metrics = filter(None, (event.get("Task Metrics") for event in ended))  # a lost task has none
    return sum(one["Shuffle Write Metrics"]["Shuffle Bytes Written"] for one in metrics)


def others() -> list[int]:
    """The processes that work for this one: its own, and those of a server that it started."""
    from tests.spark.cluster import members

    served = (pid for server in SERVERS for pid in members(server.session))
    return [*descendants(os.getpid()), *served]


def descendants(of: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = [], [of]
    while left:
        here = parents.get(left.pop(), [])
        found += here
        left += here
    return found


def cpu_of_all() -> float:
    """CPU-seconds of this process and of all that it has started, living or ended."""
    total = 0.0
    for pid in [os.getpid(), *others()]:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(fields[i]) for i in (11, 12, 13, 14)) / TICKS
    return total


def peaks_of_others() -> dict[str, int]:
    """The largest peak of memory of each kind of process that this one has started, in bytes."""
    found: dict[str, int] = {}
    for pid in others():
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            name = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        peak = next((int(line.split()[1]) * 1024 for line in status.splitlines()
                     if line.startswith("VmHWM")), 0)  # fmt: skip
        words = b" ".join(name)
        kind = ("executor" if b"CoarseGrainedExecutorBackend" in words
                else "python worker" if b"pyspark" in words and b"java" not in name[0]
                else "server" if b"java" in name[0] else "other")  # fmt: skip
        found[kind] = max(found.get(kind, 0), peak)
    return found
