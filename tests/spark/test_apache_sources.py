"""What Apache Spark reads beside Parquet: Hive's tables, ORC, JDBC, and frames of the caller's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.engines.conftest import people
from tests.spark.cluster import ApacheSpark, end_client, missing
from tests.support.postgres import SECRET
from tests.support.soak import SOAK
from tests.wire.test_clients import driver
from voile.engines.spark import SparkSource
from voile.errors import TableError

pytestmark = pytest.mark.skipif(not SOAK, reason="runs in a soak: a server of its own")

ROWS = 2000
NAMES = ["age", "sex", "income", "member", "day"]
HOW: dict[str, Any] = {
    "method": "alphabeta", "prior": 0.02, "posterior": 0.3, "columns": ["age", "sex", "member"],
    "simulate_seed": 3, "name": "people", "register": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheSpark]:
    """With a Hive metastore of its own, and the driver of PostgreSQL where there is one."""
    if reason := missing():
        pytest.skip(reason)
    place = tmp_path_factory.mktemp("sources") / "server"
    jars = {} if (jar := driver()) is None else {"spark.jars": jar}
    spark = ApacheSpark.start(place, {"spark.sql.catalogImplementation": "hive", **jars})
    try:
        yield spark
    finally:
        end_client(spark.address)
        spark.stop()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "people.parquet"
    pq.write_table(people(ROWS, nulls=0.0).select(NAMES), path, row_group_size=500)
    return path


@pytest.fixture
def session(server: ApacheSpark) -> Iterator[Any]:
    """One of the caller's own."""
    from pyspark.sql.connect.session import SparkSession

    found = SparkSession.builder.remote(server.address).create()
    yield found
    found.stop()


def files(release: Any) -> dict[str, str]:
    return {file.path: file.sha256 for file in release.manifest.files}


def test_a_table_of_hive_is_published(server: ApacheSpark, table: Path, session: Any) -> None:
    """One of its own format, and one of ORC; the metastore is another session's, too."""
    session.sql("create database warehouse").toArrow()
    session.read.parquet(str(table)).createOrReplaceTempView("given")
    session.sql("create table warehouse.people stored as textfile as select * from given").toArrow()
    session.sql("create table warehouse.orc stored as orc as select * from given").toArrow()
    known = files(voile.publish(str(table), **HOW))
    for name in ("warehouse.people", "warehouse.orc", "spark_catalog.warehouse.people"):
        found = voile.read(SparkSource(server.address, name))
        assert len(found) == ROWS
        assert [found.kind(column) for column in NAMES] == [
            "integer", "categorical", "numeric", "boolean", "date",
        ]  # fmt: skip
        assert files(voile.publish(SparkSource(server.address, name), **HOW)) == known


def test_files_of_orc_are_published(
    server: ApacheSpark, table: Path, session: Any, tmp_path: Path
) -> None:
    session.read.parquet(str(table)).write.orc(str(tmp_path / "rows.orc"))
    known = files(voile.publish(str(table), **HOW))
    for what in (f"{tmp_path}/rows.orc", f"orc:{tmp_path}/rows.orc"):
        assert files(voile.publish(SparkSource(server.address, what), **HOW)) == known


@pytest.mark.skipif(driver() is None, reason="needs PostgreSQL's driver for Java")
def test_a_table_of_postgresql_is_published_by_jdbc(
    server: ApacheSpark, table: Path, postgres: Callable[..., str]
) -> None:
    rows: pa.Table = pq.read_table(table)
    values = ", ".join(
        f"({row['age']}, '{row['sex'].replace(chr(39), chr(39) * 2)}', {row['income']}, "
        f"{row['member']}, date '{row['day']}')"
        for row in rows.to_pylist()
    )
    url = postgres(
        "create table people (age int, sex text, income float8, member bool, day date)",
        f"insert into people values {values}",
    )
    parts = urlsplit(url)
    place = f"jdbc:postgresql://127.0.0.1:{parts.port}{parts.path}?user=me&password={SECRET}"
    found = voile.read(SparkSource(server.address, f"{place}::people"))
    assert (len(found), found.name) == (ROWS, "people")
    made = voile.publish(SparkSource(server.address, f"{place}::people"), **HOW)
    assert files(made) == files(voile.publish(str(table), **HOW))
    with pytest.raises(TableError, match="the cluster refused") as said:
        voile.read(SparkSource(server.address, f"{place}::nobody"))
    assert SECRET not in f"{said.value} {said.value.hint}"


def test_frames_of_a_callers_session_are_published_again_and_again(
    table: Path, session: Any
) -> None:
    """Our modules come with the first; a frame need not be a table."""
    known = files(voile.publish(str(table), **HOW))
    frame = session.read.parquet(str(table))
    for rows in (frame, frame.repartition(7), frame.where("age >= 0")):
        assert files(voile.publish(rows, **HOW)) == known
    release = voile.publish(frame, **HOW)
    sql = "select sex, count(*) from people group by sex"
    assert release.query(sql, engine=session).rows == release.query(sql).rows
