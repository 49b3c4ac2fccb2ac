"""The Spark engine on Apache Spark: executors are processes of their own, and may be killed."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.engines.conftest import people
from tests.spark.cluster import EXECUTORS, ApacheSpark
from tests.support.soak import SOAK
from voile.engines.spark import SparkSource, session
from voile.engines.spark.members import SparkMembers
from voile.engines.spark.session import cluster_at
from voile.kinds.people import PURPOSE
from voile.noise import Key
from voile.noise.subkeys import Subkeys


@pytest.mark.soak
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


# ---------------------------------------------------------------------- releases


ROWS = 60_000
VIEW: dict[str, Any] = {"method": "alphabeta", "prior": 0.01, "posterior": 0.2}
NAMES = ["age", "sex", "income", "member"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("apache") / "people.parquet"
    pq.write_table(people(ROWS, nulls=0.0).select(NAMES), path, row_group_size=5000)
    return path


@pytest.fixture(autouse=True)
def many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voile.kinds.views.writing.RANGE_ROWS", 1)
    monkeypatch.setattr("voile.kinds.perturbed.writing.BLOCK_ROWS", 9000)
    monkeypatch.setattr("voile.kinds.perturbed.writing.FILE_ROWS", 20_000)


def files(release: Any) -> dict[str, str]:
    return {file.path: file.sha256 for file in release.manifest.files}


def cut_afar(rows: Any) -> Any:
    """Mondrian's classes, for a driver that holds fifty combinations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("voile.kinds.classes.reading.MOST_HELD", 50)
        return voile.publish(
            rows, method="mondrian", qi=["age", "income"], sensitive=["sex"], k=50, t=0.1,
            insensitive=["member"], error_model=False, simulate_seed=1, cuts="median",
        )  # fmt: skip


MADE: dict[str, Callable[[Any], Any]] = {
    "view": lambda rows: voile.publish(rows, simulate_seed=1, **VIEW),
    "perturbed": lambda rows: voile.perturb(rows, 0.5, simulate_seed=1),
    "marginals": lambda rows: voile.publish(rows, method="marginals", simulate_seed=1),
    "classes": lambda rows: voile.publish(
        rows, method="mondrian", qi=["age", "member"], sensitive=["sex"], k=50,
        identifiers=["income"], simulate_seed=1,
    ),
    "classes, first cuts": cut_afar,
}  # fmt: skip


@pytest.mark.parametrize("kind", MADE if SOAK else ["perturbed"])
def test_a_release_of_two_executors_is_that_of_one_machine(
    apache_spark: ApacheSpark, table: Path, kind: str
) -> None:
    there = MADE[kind](SparkSource(apache_spark.address, str(table)))
    here = MADE[kind](str(table))
    assert files(there) == files(here)
    if kind in ("view", "perturbed"):
        assert sum(name.startswith("data/") for name in files(here)) > 1
    sql = "select sex, count(*) from people where age < 21 group by sex"
    if kind != "marginals":
        assert here.query(sql, engine=apache_spark.address).rows == here.query(sql).rows


class AtWork:
    """Calls back when rows begin to be written."""

    def __init__(self, then: Callable[[], object]) -> None:
        self.then, self.called = then, False

    def start(self, what: str, total: int) -> None:  # noqa: ARG002
        if what == "writing" and not self.called:
            self.called = True
            threading.Timer(1.0, self.then).start()

    def advance(self, count: int) -> None:
        pass


def test_an_executor_that_is_killed_in_the_middle_changes_nothing(
    apache_spark: ApacheSpark, table: Path
) -> None:
    """Its tasks, and the shuffle files that it had, are made again, with the same coins."""
    killed: list[int] = []
    watch = AtWork(lambda: killed.append(apache_spark.kill_executor()))
    there = voile.publish(
        SparkSource(apache_spark.address, str(table)), simulate_seed=2, progress=watch, **VIEW
    )
    deadline = time.monotonic() + 20
    while not killed and time.monotonic() < deadline:
        time.sleep(0.05)
    assert killed
    assert files(there) == files(voile.publish(str(table), simulate_seed=2, **VIEW))


@pytest.mark.soak
def test_a_driver_that_is_killed_leaves_nothing_that_opens(
    apache_spark: ApacheSpark, table: Path, tmp_path: Path
) -> None:
    words = ["publish", str(table), "--spark", apache_spark.address, "--method", "alphabeta",
             "--prior", "0.01", "--posterior", "0.2", "--no-register",
             "-o", str(tmp_path / "people.voile")]  # fmt: skip
    command = [sys.executable, "-m", "voile.cli", *words]
    running = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".people.voile.partial-*/data")):
        assert time.monotonic() < deadline and running.poll() is None
        time.sleep(0.02)
    running.kill()
    running.wait()
    assert not (tmp_path / "people.voile").exists()
    for left in tmp_path.iterdir():
        with pytest.raises(voile.VoileError):
            voile.open(left)
    subprocess.run(command, check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    voile.verify(tmp_path / "people.voile")


def test_no_key_is_in_plans_event_logs_pages_or_files_of_the_cluster(
    apache_spark: ApacheSpark, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What opens the sealed keys is in the plan, which shows that the search would find a key."""
    sealed: list[bytes] = []
    openers: list[bytes] = []
    real = Subkeys.sealed

    def watched(self: Subkeys) -> tuple[bytes, bytes]:
        found = real(self)
        sealed.append(found[0])
        openers.append(found[1])
        return found

    monkeypatch.setattr(Subkeys, "sealed", watched)
    client = cluster_at(apache_spark.address).session.client
    plans: list[bytes] = []
    asked = client._execute_and_fetch_as_iterator

    def seen(request: Any, *more: Any, **named: Any) -> Any:
        plans.append(request.SerializeToString())
        return asked(request, *more, **named)

    monkeypatch.setattr(client, "_execute_and_fetch_as_iterator", seen)
    voile.publish(SparkSource(apache_spark.address, str(table)), simulate_seed=9, **VIEW)
    if SOAK:
        kept = ("age", "sex", "member")
        how: dict[str, Any] = {"method": "marginals", "person": "income", "simulate_seed": 9}
        there, here = (
            voile.publish(rows, columns=kept, **how)
            for rows in (SparkSource(apache_spark.address, str(table)), str(table))
        )
        assert files(there) == files(here)
        assert any(b"voile_mark" in plan for plan in plans), "the rows of people were kept there"
    secrets = [Key.from_seed(9).derived(name, i) for name in ("noise", "keep") for i in range(9)]
    secrets.append(Key.from_seed(9).stream(PURPOSE).words(4).tobytes())
    assert sealed and openers
    assert any(openers[0] in plan for plan in plans), "the search can find what is in a plan"
    assert any(sealed[0] in part for part in apache_files(apache_spark)), "and what is in a file"
    read = pages(apache_spark)
    assert {"jobs/", "stages/", "environment/", "executors/"} <= set(read)
    assert any(b"mapinarrow" in text.lower() for text in read.values()), "they show our jobs"
    for text in (*plans, *apache_files(apache_spark), *read.values()):
        for secret in secrets:
            assert not any(form in text for form in forms(secret))


def forms(secret: bytes) -> list[bytes]:
    return [secret, secret.hex().encode(), base64.b64encode(secret)[:-4]]


def apache_files(spark: ApacheSpark) -> Iterator[bytes]:
    """Everything that the cluster has written: event logs, logs, artifacts, spilled rows."""
    for path in spark.folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and "home" not in path.parts[-2:]:
            with contextlib.suppress(OSError):
                yield path.read_bytes()


def pages(spark: ApacheSpark) -> dict[str, bytes]:
    """The pages of the cluster, and what its browser's scripts fetch to fill them."""
    listed = urllib.request.urlopen(f"{spark.ui}/api/v1/applications", timeout=10).read()  # noqa: S310
    home = f"api/v1/applications/{json.loads(listed)[0]['id']}"
    found = {}
    for page in ("jobs/", "stages/", "storage/", "environment/", "executors/", "SQL/", "connect/",
                 f"{home}/jobs", f"{home}/stages?details=true", f"{home}/environment",
                 f"{home}/allexecutors",
                 f"{home}/sql?details=true&planDescription=true&length=1000"):  # fmt: skip
        with contextlib.suppress(urllib.error.HTTPError):  # a version may not have it
            found[page] = urllib.request.urlopen(f"{spark.ui}/{page}", timeout=60).read()  # noqa: S310
    return found


@pytest.mark.soak
def test_keys_are_deleted_from_executors_and_with_the_session(
    apache_spark: ApacheSpark, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it fails. What is left is a sealed copy of the server's own, until it ends."""
    monkeypatch.setattr(session, "_KNOWN", {})
    cluster = cluster_at(apache_spark.address)
    sealed: list[bytes] = []
    left: list[Path] = []
    add = cluster._add

    def added(name: str, content: bytes, **how: bool) -> None:
        add(name, content, **how)
        if "file" in how:
            sealed.append(content)

    def with_keys(folder: str) -> list[Path]:
        return [
            path
            for path in (apache_spark.folder / folder).rglob("voile-*.bin")
            if path.is_file() and not path.is_symlink() and path.read_bytes() in sealed
        ]

    monkeypatch.setattr(cluster, "_add", added)
    delete = cluster.delete_spent

    def watched() -> None:
        left.extend(with_keys("home/work"))
        delete()

    monkeypatch.setattr(cluster, "delete_spent", watched)
    source = SparkSource(apache_spark.address, str(table))
    voile.perturb(source, 0.5)
    assert sealed and left, "executors had the keys"
    assert not with_keys("home/work")
    before = len(sealed)
    with monkeypatch.context() as patch:
        patch.setattr(SparkMembers, "_check_read", raising)
        with pytest.raises(ZeroDivisionError):
            voile.perturb(source, 0.5)
    assert len(sealed) > before and not with_keys("home/work")
    assert len(with_keys("temporary")) == len(sealed), "the server's own, as long as the session"
    cluster.end()
    assert not with_keys("temporary")


def raising(*_: object) -> None:
    raise ZeroDivisionError
