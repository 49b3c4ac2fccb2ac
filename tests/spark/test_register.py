"""The register's fingerprint of rows on a cluster: made there, and the one that DuckDB gives."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.engines.conftest import people
from tests.spark.cluster import ApacheSpark
from voile.engines.spark import SparkSource, session
from voile.engines.spark.session import LOCAL, cluster_at
from voile.engines.spark.table import SparkTable
from voile.engines.spark.vault import HELD
from voile.errors import TableError
from voile.noise.subkeys import Subkeys
from voile.register import Register
from voile.register.gathering import SAMPLE
from voile.register.keys import FingerprintKey
from voile.register.sketch import RowSketch, fingerprint

KEY = FingerprintKey(b"a key of the tests, 32 bytes....")
ROWS = 6000


def sprinkled(rng: np.random.Generator, values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values, every twentieth of them NULL."""
    return pa.array(values, kind, mask=rng.random(len(values)) < 0.05)


def every_type() -> pa.Table:
    rng = np.random.default_rng(1)
    whole, some = rng.integers(-50, 50, ROWS), rng.normal(size=ROWS)
    spelled = ["Ulm", " ulm ", "BONN", "", "Zürich", "\u00c5rhus", "a\u0000b", "x" * 300]
    day = dt.date(1950, 1, 1)
    moment = dt.datetime(1999, 12, 31, 22, 0, 0, 123456)
    moments = [moment + dt.timedelta(minutes=int(i)) for i in rng.integers(0, 9**7, ROWS)]
    columns = {
        "id": pa.array(np.arange(ROWS)),
        "Town ": sprinkled(rng, [spelled[i % 8] for i in whole], pa.string()),
        "free text": sprinkled(rng, [f"{i:x} {i}" for i in range(ROWS)], pa.string()),
        "short": sprinkled(rng, whole.tolist(), pa.int16()),
        "long": sprinkled(rng, (whole * 10**15).tolist(), pa.int64()),
        "unsigned": sprinkled(rng, (whole + 2**40).tolist(), pa.uint64()),
        "float": sprinkled(rng, some.tolist(), pa.float32()),
        "dotted.name": sprinkled(rng, np.round(some, 1).tolist(), pa.float64()),
        "odd": pa.array(np.tile([0.0, -0.0, np.nan, np.inf, 1e300, 5e-324], ROWS // 6)),
        "money": sprinkled(rng, [Decimal(int(i)).scaleb(-2) for i in whole], pa.decimal128(12, 2)),
        "big": sprinkled(rng, [Decimal(int(i)) for i in whole], pa.decimal128(20, 0)),
        "day": sprinkled(rng, [day + dt.timedelta(int(i)) for i in whole * 300], pa.date32()),
        "at": sprinkled(rng, moments, pa.timestamp("us")),
        "in UTC": sprinkled(rng, moments, pa.timestamp("us", "UTC")),
        "is": sprinkled(rng, (whole > 0).tolist(), pa.bool_()),
        "none": pa.nulls(ROWS, pa.string()),
        "list": pa.array([[int(i)] for i in whole], pa.list_(pa.int64())),
        "raw": pa.array([bytes([65 + i % 9, 255 if i % 700 == 0 else 66]) for i in range(ROWS)]),
    }
    return pa.table(columns)


TABLES: dict[str, pa.Table] = {
    "every type": every_type(),
    "texts": every_type().select(["Town ", "free text"]),
    "rows that repeat": every_type().select(["is", "short"]),
    "people": people(9000),
    "empty": every_type().slice(0, 0),
    "one row": every_type().slice(5, 1),
}  # fmt: skip


def stored(table: pa.Table, folder: Path, rows: int) -> str:
    """A table in a file of small row groups, which tasks share."""
    path = folder / "rows.parquet"
    pq.write_table(table, path, row_group_size=rows)
    return str(path)


@pytest.mark.parametrize("name", TABLES)
def test_a_sketch_is_that_of_duckdb(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows do not come to the driver, and partitions do not matter."""
    place = stored(TABLES[name], tmp_path, 400)
    here = fingerprint(voile.read(place), KEY)[0]
    monkeypatch.setattr(SparkTable, "unordered", lambda *_: pytest.fail("rows came here"))
    table: Any = voile.read(SparkSource(LOCAL, place))
    there = fingerprint(table, KEY)[0]
    assert there.rows == TABLES[name].num_rows
    assert there.pack() == here.pack()
    for parts in (1, 7):
        dealt = table.of(table.frame.repartition(parts))
        assert fingerprint(dealt, KEY)[0].pack() == here.pack()


def test_the_test_would_see_a_value_that_differs(tmp_path: Path) -> None:
    table = TABLES["every type"]
    here = fingerprint(voile.read(stored(table, tmp_path, 400)), KEY)[0]
    for place, name in enumerate(table.column_names):
        if name in ("list", "none"):
            continue
        first = table.column(name).combine_chunks()
        other = pa.concat_arrays([first.slice(1), first.slice(0, 1)])
        turned = table.set_column(place, name, other)
        if turned.equals(table):
            continue
        path = stored(turned, tmp_path, 400)
        assert fingerprint(voile.read(SparkSource(LOCAL, path)), KEY)[0].pack() != here.pack()


def known_sketches() -> list[RowSketch]:
    """Of tables that have rows, columns or neither in common with `people`."""
    table = TABLES["people"]
    others = [
        table.slice(2000), table.select(table.column_names[:4]).slice(10), table.slice(0, 3000),
        table.append_column("id", pa.array(np.arange(table.num_rows))).slice(1),
        people(5000).set_column(0, "age", pa.array(np.arange(5000))), TABLES["texts"],
    ]  # fmt: skip
    return [fingerprint(voile.read(other), KEY)[0] for other in others]


def test_what_tables_have_in_common_is_what_duckdb_finds(tmp_path: Path) -> None:
    place, known = stored(TABLES["people"], tmp_path, 500), known_sketches()
    here = fingerprint(voile.read(place), KEY, known)
    there = fingerprint(voile.read(SparkSource(LOCAL, place)), KEY, known)
    assert there[1] == here[1]
    assert there[0].pack() == here[0].pack()
    assert sum(one is not None and one.is_same for one in there[1]) >= 3
    assert len(there[0].hashes) == SAMPLE


def test_counts_of_sampled_rows_are_those_of_the_table(tmp_path: Path) -> None:
    """Of 97 different rows every one is in the sample; Arrow counts them."""
    table = TABLES["rows that repeat"]
    sketch = fingerprint(voile.read(SparkSource(LOCAL, stored(table, tmp_path, 100))), KEY)[0]
    counted = table.group_by(table.column_names).aggregate([([], "count_all")])
    assert sorted(sketch.counts.tolist()) == sorted(counted["count_all"].to_pylist())


def test_a_register_recognises_a_table_of_a_cluster(tmp_path: Path) -> None:
    """Published by DuckDB first, and from a cluster, with a column less, then."""
    table = people(4000, nulls=0.0)
    register = Register.open(tmp_path / "register.db")
    how: dict[str, Any] = {"method": "marginals", "register": register}
    voile.publish(stored(table, tmp_path, 4000), to=tmp_path / "a.voile", name="one", **how)
    less = tmp_path / "less.parquet"
    pq.write_table(table.drop_columns(["day"]).slice(3), less, row_group_size=500)
    voile.publish(SparkSource(LOCAL, str(less)), to=tmp_path / "b.voile", name="two", **how)
    (account,) = register.accounts()
    assert len(account.left) == 2


# ---------------------------------------------------------------------- secrets


def test_secrets_are_not_in_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job is empty; what it needs is held while it runs, and no longer."""
    plans: list[bytes] = []
    real = session.carried

    def seen(job: Any) -> Any:
        plans.append(pickle.dumps(job))
        return real(job)

    monkeypatch.setattr(session, "carried", seen)
    sketch = fingerprint(people_there(tmp_path), KEY, known_sketches())[0]
    secrets = [KEY.secret, KEY.derive("values")[:16], KEY.derive("rows")[:8]]
    secrets += [one.tobytes() for one in (sketch.columns[:2], sketch.hashes[:2])]
    assert plans and not any(secret in plan for plan in plans for secret in secrets)
    assert not HELD


def people_there(folder: Path) -> Any:
    return voile.read(SparkSource(LOCAL, stored(TABLES["people"], folder, 500)))


def test_a_part_that_is_lost_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table: Any = people_there(tmp_path)
    real = table.cluster.table

    def less(frame: Any) -> pa.Table:
        found = real(frame)
        return found.slice(1) if "content" in found.column_names else found

    monkeypatch.setattr(table.cluster, "table", less)
    with pytest.raises(TableError, match="had 9,000 rows when it was counted"):
        fingerprint(table, KEY)


def test_a_server_that_takes_no_secrets_gets_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There rows come to the driver."""
    table: Any = people_there(tmp_path)
    expected = fingerprint(table, KEY)[0]
    monkeypatch.setattr(type(table.cluster), "takes_secrets", False)
    monkeypatch.setattr(table.cluster, "coins", lambda *_: pytest.fail("secrets were sent"))
    assert fingerprint(table, KEY)[0].pack() == expected.pack()


@pytest.mark.soak
def test_apache_spark_gives_the_same(
    apache_spark: ApacheSpark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys travel sealed, and apart from what opens them."""
    sealed: list[tuple[bytes, bytes]] = []
    real = Subkeys.sealed

    def watched(self: Subkeys) -> tuple[bytes, bytes]:
        sealed.append(real(self))
        return sealed[-1]

    monkeypatch.setattr(Subkeys, "sealed", watched)
    known = known_sketches()
    for name in ("people", "every type"):
        place = stored(TABLES[name], tmp_path, 500)
        here = fingerprint(voile.read(place), KEY, known)
        there = fingerprint(voile.read(SparkSource(apache_spark.address, place)), KEY, known)
        assert there[0].pack() == here[0].pack()
        assert there[1] == here[1]
    assert len(sealed) == 2
    assert cluster_at(apache_spark.address).takes_secrets
    assert all(KEY.derive("values")[:16] not in content for content, _ in sealed)
