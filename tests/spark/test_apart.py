"""Sail in a process of its own, which takes no artifacts and has no Voile: modules go by value."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import voile
from tests.engines.conftest import people
from tests.engines.test_executors import ABSENT
from tests.spark.cluster import end_client
from voile.engines.spark import SparkSource, session
from voile.engines.spark.by_value import bringing, brought
from voile.engines.spark.session import packed_modules
from voile.engines.spark.table import NO_SECRETS
from voile.errors import UsageError
from voile.register.keys import FingerprintKey
from voile.register.sketch import fingerprint

NAMES = ["age", "sex", "member", "income"]
SERVER = """
import sys

class Absent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Absent)
from pysail.spark import SparkConnectServer
server = SparkConnectServer(ip="127.0.0.1", port=0)
server.start(background=True)
print(server.listening_address[1], flush=True)
sys.stdin.read()
"""


@contextmanager
def sail(absent: tuple[str, ...], folder: Path) -> Iterator[str]:
    """The address of a server whose Python lacks some packages; it ends with us."""
    code = SERVER.format(absent=absent)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=folder,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        address = f"sc://127.0.0.1:{int(process.stdout.readline())}"
        try:
            yield address
        finally:
            end_client(address)
            process.kill()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Without Voile, Numba, DuckDB and what else executors need not have."""
    hidden = ("voile", *(name for name in ABSENT if name != "pandas"))
    with sail(hidden, tmp_path_factory.mktemp("sail")) as found:
        yield found


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("apart") / "people.parquet"
    pq.write_table(people(3000, nulls=0.0).select(NAMES), path, row_group_size=700)
    return path


def files(release: Any) -> dict[str, str]:
    return {file.path: file.sha256 for file in release.manifest.files}


PUBLISHED: dict[str, dict[str, Any]] = {
    "marginals": {"method": "marginals"},
    "counts": {"method": "conjuncts", "arity": 1, "direct": True},
    "classes": {"method": "mondrian", "qi": ["age", "member"], "sensitive": ["sex"], "k": 50,
                "identifiers": ["income"]},
}  # fmt: skip


@pytest.mark.parametrize("kind", PUBLISHED)
def test_what_needs_no_coins_there_is_published(address: str, table: Path, kind: str) -> None:
    there, here = (
        voile.publish(source, simulate_seed=1, **PUBLISHED[kind])
        for source in (SparkSource(address, str(table)), str(table))
    )
    assert files(there) == files(here)


def test_columns_are_looked_at_there(address: str, table: Path) -> None:
    """With what travels alone: each look is a job of its own."""
    there, here = voile.read(SparkSource(address, str(table))), voile.read(str(table))
    assert there.duplicates(NAMES) == here.duplicates(NAMES) > 0
    assert there.duplicates(["sex"]) == here.duplicates(["sex"])
    assert there.null_counts(NAMES) == here.null_counts(NAMES) == {}
    assert there.complete_rows(NAMES) == 3000
    assert there.different_combinations(NAMES) == here.different_combinations(NAMES)
    for one, other in zip(there.profiles(NAMES), here.profiles(NAMES), strict=True):
        assert (one.values, one.counts, one.low) == (other.values, other.counts, other.low)
    schema = here.infer(NAMES, "error")
    there.check_kinds(schema)
    assert there.rounded(schema) == here.rounded(schema)
    assert there.different_tuples(schema, drop_nulls=False) == here.different_tuples(
        schema, drop_nulls=False
    )


def test_a_release_is_asked_there(address: str, table: Path) -> None:
    release = voile.perturb(str(table), 0.5, simulate_seed=1)
    sql = "select sex, count(*) from people where age < 21 group by sex"
    assert release.query(sql, engine=address).rows == release.query(sql).rows


def test_what_needs_coins_there_is_refused(address: str, table: Path) -> None:
    source = SparkSource(address, str(table))
    with pytest.raises(UsageError, match="takes no artifacts, by which keys of random") as told:
        voile.perturb(source, 0.5)
    assert "use local" in told.value.hint and "marginals" in told.value.hint
    with pytest.raises(UsageError, match="takes no artifacts"):
        voile.publish(source, method="alphabeta", prior=0.02, posterior=0.3)


def test_rows_of_people_are_kept_here_without_the_salt_there(
    address: str, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.Cluster, "coins", lambda *_: pytest.fail("secrets were sent"))
    how: dict[str, Any] = {"person": "income", "method": "marginals", "simulate_seed": 1}
    there = voile.publish(SparkSource(address, str(table)), to=table.parent / "kept.voile", **how)
    assert files(there) == files(voile.publish(str(table), to=table.parent / "here.voile", **how))


def test_rows_are_recognised_here_without_keys_there(
    address: str, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = FingerprintKey(b"a key of the tests, 32 bytes....")
    found = voile.read(SparkSource(address, str(table)))
    assert list(found.notes) == [NO_SECRETS]
    monkeypatch.setattr(
        session.Cluster, "coins", lambda *_: pytest.fail("keys would have gone there")
    )
    there, here = (fingerprint(one, key)[0].pack() for one in (found, voile.read(str(table))))
    assert there == here


def test_another_version_that_is_there_is_refused(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process has one Voile: whose modules came first."""
    with sail(("voile",), tmp_path) as address:
        assert len(voile.read(SparkSource(address, str(table)))) == 3000
        monkeypatch.setattr(session, "packed_modules", lambda: packed_modules() + b" ")
        with pytest.raises(UsageError, match="another version of Voile is loaded") as told:
            session.connected(session.ClusterAddress.read(address)).prepare()
        assert "restart it" in told.value.hint


def test_a_process_that_has_this_version_uses_its_own() -> None:
    """As Sail in a process of Voile's does."""
    before = list(sys.meta_path)
    bringing(packed_modules())()
    run = brought(iter, bringing(packed_modules()))
    assert list(run(iter([1, 2]))) == [1, 2]
    assert sys.meta_path == before


def test_loops_are_compiled_without_a_file(tmp_path: Path) -> None:
    """Numba keeps machine code beside a file; modules that were brought lie in none."""
    code = """
import pickle, sys
content = open(sys.argv[1], "rb").read()
sys.path = [p for p in sys.path if "src" not in p]
sys.meta_path = [f for f in sys.meta_path if "editable" not in str(f).lower()]
pickle.loads(content)()
import numpy as np
from voile.register import hashes
assert not hasattr(hashes, "__file__") and hashes.__carried__
found = np.empty(1, np.uint64)
hashes.sip_hashes(np.arange(15, dtype=np.uint8), np.array([0, 15]),
                  np.frombuffer(bytes(range(16)), np.uint64), found)
assert "numba" in sys.modules
print(hex(int(found[0])))
"""
    from pyspark import cloudpickle

    (tmp_path / "bring").write_bytes(cloudpickle.dumps(bringing(packed_modules())))
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "bring")], cwd=tmp_path, check=False,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "0xa129ca6149be45e5\n", done.stderr
