"""Tasks that Spark does twice: a copy of a slow one, and those whose shuffle was lost.

The release has the same bytes. Both are seen to have happened in what Spark records of its jobs.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import voile
from tests.engines.conftest import people
from tests.spark.cluster import ApacheSpark, end_client, missing
from voile.engines.spark import SparkSource, session
from voile.engines.spark.work import FileWork

pytestmark = pytest.mark.soak  # a server of its own

ROWS = 10_000
VIEW: dict[str, Any] = {
    "method": "alphabeta", "prior": 0.01, "posterior": 0.2, "simulate_seed": 5, "register": False,
}  # fmt: skip
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.efficiency.enabled": "false",
    "spark.executor.memory": "1g",
    "spark.executor.cores": "1",
    "spark.sql.shuffle.partitions": "6",
}
HOSTS = ("127.0.0.1", "127.0.0.2")
"""Spark runs no copy of a task on the host that has the task."""
SLOW = 120
"""Seconds that the first attempt at a task takes, in which its copy is long done."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheSpark]:
    """Apache Spark that copies slow tasks at once."""
    if reason := missing():
        pytest.skip(reason)
    place = tmp_path_factory.mktemp("spark") / "server"
    spark = ApacheSpark.start(place, SPECULATION, hosts=HOSTS)
    try:
        yield spark
    finally:
        end_client(spark.address)
        spark.stop()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("again") / "people.parquet"
    names = ["age", "sex", "income", "member"]
    pq.write_table(people(ROWS, nulls=0.0).select(names), path, row_group_size=2000)
    return path


@pytest.fixture(autouse=True)
def many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voile.kinds.views.writing.RANGE_ROWS", 1)


def slowed(seconds: float, part: int | None, begun: Path) -> Callable[[Any], Any]:
    """Jobs as they are carried, but first attempts at writing a part, or any, take longer."""
    mark = str(begun)

    def carried(job: Any) -> Any:
        slow = isinstance(job, FileWork)

        def run(batches: Any) -> Any:
            import json
            import time
            from pathlib import Path

            from pyspark import TaskContext

            context = TaskContext.get()
            again, task = context.attemptNumber(), (context.stageId(), context.partitionId())

            def held() -> Any:
                for batch in batches:
                    first = slow and not again and batch.num_rows
                    if first and part in (None, batch.column(0)[0].as_py()):
                        Path(mark).write_text(json.dumps(task))
                        time.sleep(seconds)
                    yield batch

            return job(held())

        return run

    return carried


def files(release: Any) -> dict[str, str]:
    return {file.path: file.sha256 for file in release.manifest.files}


def test_a_copy_of_a_slow_task_makes_the_same_release(
    server: ApacheSpark, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "carried", slowed(SLOW, 0, tmp_path / "begun"))
    there = voile.publish(SparkSource(server.address, str(table)), **VIEW)
    slow = tuple(json.loads((tmp_path / "begun").read_text()))
    assert files(there) == files(voile.publish(str(table), **VIEW))
    assert sum(name.startswith("data/") for name in files(there)) > 1
    until = time.monotonic() + SLOW
    while slow not in ousted(server) and time.monotonic() < until:
        # The task that was copied is ended after the release, and written down with the next job.
        time.sleep(1)
        session.cluster_at(server.address).session.range(1).count()
    assert slow in ousted(server), "a copy came first, and the task that it copies was ended"


def ousted(server: ApacheSpark) -> set[tuple[int, int]]:
    """Tasks whose copies came first, by stage and place; none failed for another reason."""
    ended = [(event["Stage ID"], event["Task Info"]) for event in server.recorded("TaskEnd")]
    assert not any(one["Failed"] for _, one in ended)
    copied = {(stage, one["Index"]) for stage, one in ended
              if one["Speculative"] and not one["Killed"]}  # fmt: skip
    killed = {(stage, one["Index"]) for stage, one in ended
              if one["Killed"] and not one["Speculative"]}  # fmt: skip
    return copied & killed


def test_a_lost_shuffle_is_made_again(
    server: ApacheSpark, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor is killed when keys are dealt out, and before all of them are fetched."""
    begun, killed = tmp_path / "begun", list[int]()
    monkeypatch.setattr(session, "carried", slowed(4, None, begun))
    server.await_executors()

    def kill_when_dealt() -> None:
        while not begun.exists():
            time.sleep(0.1)
        killed.append(server.kill_executor())

    threading.Thread(target=kill_when_dealt, daemon=True).start()
    there = voile.publish(SparkSource(server.address, str(table)), **VIEW)
    assert killed
    assert files(there) == files(voile.publish(str(table), **VIEW))
    stages = [event["Stage Info"] for event in server.recorded("StageSubmitted")]
    assert any(one["Stage Attempt ID"] > 0 for one in stages), "a stage was done again"
