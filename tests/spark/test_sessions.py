"""Sessions of a cluster: which table is meant, what executors must have, and what ends with them.

Sail runs Python in this process, so that what an executor answers or holds can be made up.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

import voile
from tests.engines.conftest import people
from voile.engines.spark import SparkSource, session, work
from voile.engines.spark.session import LOCAL, Cluster, ClusterAddress, cluster_at
from voile.engines.spark.vault import HELD
from voile.errors import TableError, UsageError
from voile.noise.subkeys import Subkeys

KEYS = Subkeys({work.SALT: b"a salt of the tests"})


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster that no other test uses."""
    monkeypatch.setattr(session, "_KNOWN", {})
    found = cluster_at(LOCAL)
    yield found
    for known in session._KNOWN.values():
        known.session.stop()


# ---------------------------------------------------------------------- which session


def forget(known: Any) -> None:
    """What a server does with a session that rests, or when it is started again."""
    from pyspark.errors import PySparkException

    def gone(*_: Any) -> None:
        raise PySparkException("[INVALID_HANDLE.SESSION_CLOSED] The handle is invalid.")

    known.client.config = gone


@pytest.mark.parametrize("end", [lambda known: known.stop(), forget])
def test_a_session_that_ended_is_not_used_again(fresh: Cluster, end: Callable[[Any], None]) -> None:
    assert cluster_at(LOCAL) is fresh
    end(fresh.session)
    again = cluster_at(LOCAL)
    assert again is not fresh and again.session.range(3).count() == 3
    assert cluster_at(LOCAL) is again


def test_the_address_of_a_callers_session_has_its_port(fresh: Cluster) -> None:
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.session import SparkSession

    port = fresh.session.client._builder.endpoint.rpartition(":")[2]
    own = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    try:
        assert str(Cluster.of_frame(own.range(1)).address) == f"sc://127.0.0.1:{port}"
    finally:
        own.stop()
    for text, host, encrypted in (
        ("sc://cluster:15009/;use_ssl=true", "cluster", True),
        ("sc://[::1]:15009", "::1", False),
    ):
        client = SimpleNamespace(_builder=DefaultChannelBuilder(text))
        found = ClusterAddress.read(session.address_of(SimpleNamespace(client=client)))
        assert (found.host, found.port, found.encrypted) == (host, 15009, encrypted)
    for builder in (SimpleNamespace(), SimpleNamespace(endpoint="unix:/tmp/spark.sock")):
        client = SimpleNamespace(_builder=builder)
        found = ClusterAddress.read(session.address_of(SimpleNamespace(client=client)))
        with pytest.raises(UsageError, match="would go unencrypted to sc://unknown"):
            found.check_private()


def test_a_table_of_the_catalogue_may_end_like_a_file(fresh: Cluster, tmp_path: Path) -> None:
    pq.write_table(people(30).select(["age"]), tmp_path / "rows.parquet")
    sql = fresh.session.sql
    sql("create database warehouse").toArrow()
    sql(
        "create table warehouse.json using parquet "
        f"location '{(tmp_path / 'rows.parquet').as_uri()}'"
    ).toArrow()
    assert fresh.frame("warehouse.json").count() == 30
    with (tmp_path / "rows.json").open("w") as out:
        out.write('{"a": 1}\n{"a": 2}\n')
    assert fresh.frame(str(tmp_path / "rows.json")).count() == 2
    assert fresh.frame(f"json:{tmp_path / 'rows.json'}").count() == 2


# ---------------------------------------------------------------------- what executors have


def answering(**said: Any) -> Callable[..., Any]:
    """A probe that finds an executor which has what is needed but for what is said."""
    found = {"host": "worker-7", "python": "/usr/bin/python3", "missing": [], "refused": "",
             "version": list(sys.version_info[:2])} | said  # fmt: skip
    text = json.dumps(found)

    def ask(batches: Any) -> Any:
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"found": [text]})

    return lambda *_: ask


def raising(error: Exception) -> Callable[..., Any]:
    """A probe that Spark's own worker ends with an error."""

    def ask(batches: Any) -> Any:
        yield from batches
        raise error

    return lambda *_: ask


MISMATCH = RuntimeError(
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: "
    "3.12, PySpark cannot run with different minor versions."
)
PROBES: dict[str, tuple[Callable[..., Any], str, str]] = {
    "a package": (
        answering(missing=["numpy", "cryptography"]), "worker-7 lacks numpy, cryptography\n",
        "its Python, /usr/bin/python3, needs numpy, pyarrow, cryptography",
    ),
    "the version": (
        answering(version=[3, 9]), r"worker-7 has Python 3\.9, and jobs are made by 3\.",
        "PYSPARK_PYTHON",
    ),
    "our modules": (
        answering(refused="another version of Voile is loaded there"),
        "does not take our modules: another version of Voile is loaded there", "restart it",
    ),
    "a package that Spark itself needs": (
        raising(ModuleNotFoundError("No module named 'pandas'")),
        "the cluster refused: ModuleNotFoundError: No module named 'pandas'\n",
        "install pandas in the Python of the executors",
    ),
    "the version, as Spark sees it": (
        raising(MISMATCH), "the cluster refused: RuntimeError: .*version: 3.9", "PYSPARK_PYTHON"
    ),
}  # fmt: skip


@pytest.mark.parametrize("lacking", PROBES)
def test_what_executors_lack_is_told_before_any_row_is_read(
    fresh: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    pq.write_table(people(30), tmp_path / "people.parquet")
    source = SparkSource(LOCAL, str(tmp_path / "people.parquet"))
    made, why, hint = PROBES[lacking]
    ran: list[object] = []
    known = Cluster.table

    def counted(self: Cluster, frame: Any) -> pa.Table:
        ran.append(frame)
        return known(self, frame)

    monkeypatch.setattr(Cluster, "table", counted)
    monkeypatch.setattr(session, "probe", made)
    for ask in (voile.read, voile.publish):
        ran.clear()
        with pytest.raises((UsageError, TableError), match=why) as told:
            ask(source)
        assert hint in told.value.hint
        assert len(ran) == 1, "the probe alone"
    monkeypatch.setattr(session, "probe", answering())
    assert len(voile.read(source)) == 30
    assert fresh is cluster_at(LOCAL)


# ---------------------------------------------------------------------- keys that travelled


@pytest.fixture
def artifacts(fresh: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The artifacts of a server that takes some, where its executors find them."""
    folder = tmp_path / "artifacts"
    folder.mkdir()
    address = ClusterAddress.read(f"sc://{fresh.session.client._builder.endpoint}")
    monkeypatch.setattr(fresh, "address", address)
    monkeypatch.setattr(fresh, "_ready", True)
    monkeypatch.setattr(fresh, "_refuses_artifacts", False)
    monkeypatch.setattr(
        fresh, "_add", lambda name, content, **_: (folder / name).write_bytes(content)
    )
    there = SimpleNamespace(get=lambda name: str(folder / name))
    monkeypatch.setattr(pyspark, "SparkFiles", there, raising=False)  # a client has none
    return folder


def opened(cluster: Cluster, vault: Any) -> list[str]:
    salted = cluster.run(cluster.session.range(0, 1, 1, 1), work.SaltRow(vault), work.TEXTS)
    found: list[str] = cluster.table(salted).column(0).to_pylist()
    return found


def test_keys_are_deleted_from_executors_after_use(fresh: Cluster, artifacts: Path) -> None:
    with fresh.coins(KEYS) as vault:
        assert opened(fresh, vault) == ["a salt of the tests"]
        assert len(list(artifacts.iterdir())) == 1
    assert not list(artifacts.iterdir())


def test_keys_are_deleted_from_executors_after_a_failure(fresh: Cluster, artifacts: Path) -> None:
    with pytest.raises(KeyboardInterrupt), fresh.coins(KEYS):
        assert len(list(artifacts.iterdir())) == 1
        raise KeyboardInterrupt
    assert not list(artifacts.iterdir())


def test_keys_of_rows_that_are_read_later_go_with_the_next(fresh: Cluster, artifacts: Path) -> None:
    """A finalizer asks no server: it could be called in the middle of an answer."""
    first = fresh.lend(KEYS)
    assert opened(fresh, first) == ["a salt of the tests"]
    fresh.spent(first)
    assert len(list(artifacts.iterdir())) == 1
    with fresh.coins(Subkeys({work.SALT: b"another"})):
        assert len(list(artifacts.iterdir())) == 2
    assert not list(artifacts.iterdir()) and not HELD


def test_a_server_that_is_lost_hides_no_error(
    fresh: Cluster, artifacts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh, "address", ClusterAddress.read("sc://127.0.0.1:1"))
    with pytest.raises(ZeroDivisionError), fresh.coins(KEYS):
        _ = 1 / 0
    assert len(list(artifacts.iterdir())) == 1


def test_a_session_that_had_keys_ends_with_the_process(fresh: Cluster, artifacts: Path) -> None:
    """Then the server deletes its own copies; others are left to themselves."""
    fresh.end()
    assert not fresh.session.is_stopped
    with fresh.coins(KEYS):
        pass
    fresh.end()
    assert fresh.session.is_stopped
    fresh.end()
    assert not list(artifacts.iterdir())
