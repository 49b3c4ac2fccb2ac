"""The Spark engine on Apache Spark: executors are processes of their own, and may be killed."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tests.spark.cluster import EXECUTORS, ApacheSpark


def test_tasks_run_in_the_processes_of_both_executors(apache_spark: ApacheSpark) -> None:
    from pyspark.sql.connect.session import SparkSession

    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import time

        rows = sum(batch.num_rows for batch in batches)
        time.sleep(1)  # long enough that no executor takes both tasks
        yield pa.RecordBatch.from_pydict({"pid": [os.getpid()], "rows": [rows]})

    session = SparkSession.builder.remote(apache_spark.address).create()
    try:
        counted = session.range(1000, numPartitions=EXECUTORS).mapInArrow(
            where, "pid long, rows long"
        )
        found = counted.toArrow().to_pydict()
    finally:
        session.stop()
    assert sum(found["rows"]) == 1000
    assert len(set(found["pid"])) == EXECUTORS
    assert len(apache_spark.executors()) == EXECUTORS
