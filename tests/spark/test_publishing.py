"""Publishing from a cluster, on Sail in this process: commands, frames, secrets, refusals."""

from __future__ import annotations

import gc
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.exceptions import InvalidTag
from typer.testing import CliRunner

import voile
from tests.engines.conftest import people
from tests.engines.test_executors import WITHOUT
from voile.cli import app
from voile.engines.jobs import KeyCounts
from voile.engines.spark import SparkSource, session, without_secrets, work
from voile.engines.spark.session import LOCAL, ClusterAddress, cluster_at, packed_modules
from voile.engines.spark.table import SparkTable
from voile.engines.spark.vault import HELD
from voile.errors import ReleaseError, SchemaError, TableError, UsageError
from voile.evaluate.risk import disclosure
from voile.evaluate.risk.assess import risk
from voile.evaluate.risk.people import most_exposed
from voile.kinds.people import PURPOSE
from voile.noise import Key
from voile.noise.subkeys import Subkeys
from voile.schema import Attribute, Range, Schema, TupleIndex, Values

NAMES = ["age", "sex", "member", "income"]
VIEW: dict[str, Any] = {"prior": 0.02, "posterior": 0.3, "simulate_seed": 1, "columns": NAMES}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("spark") / "people.parquet"
    pq.write_table(people(3000, nulls=0.0), path, row_group_size=700)
    return path


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.output


def told(*words: str) -> Any:
    return json.loads(run(*words, "--json"))


def rows_of(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / "data").iterdir())]


# ---------------------------------------------------------------------- commands


def test_a_table_is_inspected_published_verified_and_asked_on_a_cluster(
    table: Path, tmp_path: Path
) -> None:
    seen, known = told("inspect", str(table), "--spark", LOCAL), told("inspect", str(table))
    assert seen["rows"] == known["rows"] == 3000
    for one, other in zip(seen["attributes"], known["attributes"], strict=True):
        assert {**one, "type": ""} == {**other, "type": ""}
    assert "--spark local" in seen["next"]
    target = tmp_path / "people.voile"
    flags = ("--columns", ",".join(NAMES), "--no-register", "--simulate-seed", "7")
    run("publish", str(table), "--spark", LOCAL, "-o", str(target), *flags)
    run("publish", str(table), "-o", str(tmp_path / "known.voile"), *flags)
    assert rows_of(target) == rows_of(tmp_path / "known.voile")
    assert told("verify", str(target), "--spark", LOCAL)["ok"]
    sql = "select sex, count(*) from people where age < 21 group by sex"
    there, here = (told("query", str(target), sql, *more) for more in (("--spark", LOCAL), ()))
    assert there == here


def test_a_codebook_is_written_of_a_table_that_stays_there(table: Path, tmp_path: Path) -> None:
    """The one of this machine, with which the table is then published there."""
    for name, more in (("there", ("--spark", LOCAL)), ("here", ())):
        flags = ("--columns", ",".join(NAMES), *more)
        run("schema", str(table), "-o", str(tmp_path / f"{name}.yaml"), *flags)
    assert (tmp_path / "there.yaml").read_text() == (tmp_path / "here.yaml").read_text()
    done = told("publish", str(table), "--spark", LOCAL, "--schema", str(tmp_path / "there.yaml"),
                "--no-register", "--yes", "-o", str(tmp_path / "people.voile"))  # fmt: skip
    assert voile.open(done["release"]).schema.names == NAMES
    words = ["schema", str(table), "-o", str(table), "--overwrite", "--spark", LOCAL]
    assert "is the table itself" in str(CliRunner().invoke(app, words).exception)


def test_the_command_that_is_told_next_publishes(table: Path, tmp_path: Path) -> None:
    words = told("inspect", str(table), "--spark", LOCAL)["next"]
    import shlex

    _, *rest = shlex.split(words)
    done = told(*rest, "-o", str(tmp_path / "next.voile"), "--no-register", "--yes")
    assert voile.open(done["release"]).manifest.name == "people"


def test_rows_are_perturbed_and_risk_is_measured_on_a_cluster(table: Path, tmp_path: Path) -> None:
    flags = ("--retention", "0.5", "--columns", ",".join(NAMES), "--no-register",
             "--simulate-seed", "3")  # fmt: skip
    for name, more in (("there", ("--spark", LOCAL)), ("here", ())):
        run("perturb", str(table), "-o", str(tmp_path / f"{name}.voile"), *flags, *more)
    assert rows_of(tmp_path / "there.voile") == rows_of(tmp_path / "here.voile")
    asked = ("risk", str(table), "--qi", "age,sex", "--sensitive", "member")
    assert told(*asked, "--spark", LOCAL) == told(*asked)


def test_risk_brings_no_more_combinations_here_than_fit(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted there first; only a table with more rows than fit is counted."""
    names = ["age", "sex", "member"]
    source = SparkSource(LOCAL, str(table))
    different = voile.read(str(table)).different_combinations(names)
    brought: list[int] = []
    known = SparkTable.combinations

    def combinations(self: SparkTable, names: list[str]) -> Iterator[pa.RecordBatch]:
        brought.append(len(names))
        return known(self, names)

    monkeypatch.setattr(SparkTable, "combinations", combinations)
    monkeypatch.setattr(disclosure, "MOST_HELD", different)
    asked: dict[str, Any] = {"qi": names[:2], "sensitive": names[2:]}
    assert risk(source, **asked).to_dict() == risk(str(table), **asked).to_dict()
    assert brought == [3]
    monkeypatch.setattr(disclosure, "MOST_HELD", different - 1)
    for measure in (risk, most_exposed):
        with pytest.raises(
            TableError, match=rf"{different} different ones of .* more than"
        ) as told:
            measure(source, **asked)
        assert "name fewer columns with qi=" in told.value.hint
    assert brought == [3]
    risk(str(table), **asked)  # on this machine no limit is needed


def test_a_release_is_put_behind_a_url(table: Path, tmp_path: Path) -> None:
    url = (tmp_path / "stored.voile").as_uri()
    flags = ("--columns", ",".join(NAMES), "--no-register", "--yes")
    done = told("publish", str(table), "--spark", LOCAL, "-o", url, *flags)
    assert done["release"] == url
    assert not (tmp_path / "stored.voile" / "_voile_partial.json").exists()
    sql = "select count(*) from people"
    assert told("query", url, sql, "--spark", LOCAL) == told("query", url, sql)
    with pytest.raises(UsageError, match="cannot replace a folder at once"):
        voile.publish(SparkSource(LOCAL, str(table)), to=url, overwrite=True, **VIEW)


def test_a_frame_is_published(table: Path) -> None:
    frame = cluster_at(LOCAL).session.read.parquet(str(table))
    found, known = (voile.publish(source, **VIEW) for source in (frame, str(table)))
    assert rows_of(found.path) == rows_of(known.path)
    sql = "select count(*) from t where sex = 'Male'"
    asked = [found.query(sql, engine=one) for one in (None, LOCAL, cluster_at(LOCAL))]
    assert len({answer.value for answer in asked}) == 1


def test_other_formats_that_the_cluster_reads(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("age,town\n17,Ulm\n18,Bonn\n,Ulm\n")
    (tmp_path / "rows.json").write_text('{"age": 17, "town": "Ulm"}\n{"age": null, "town": "x"}\n')
    for name, rows in (("rows.csv", 3), ("rows.json", 2)):
        found = voile.read(SparkSource(LOCAL, str(tmp_path / name)))
        assert (len(found), found.kind("age"), found.kind("town")) == (
            rows, "integer", "categorical",
        )  # fmt: skip
        assert found.null_counts(["age", "town"]) == {"age": 1}
    explicit = voile.read(SparkSource(LOCAL, f"csv:{tmp_path / 'rows.csv'}"))
    assert len(explicit) == 3 and explicit.name == "rows"
    session_ = cluster_at(LOCAL).session
    rows = session_.read.parquet(str(written(tmp_path)))
    for kind in ("delta", "iceberg"):
        place = tmp_path / kind / "people"
        rows.write.format(kind).save(str(place))
        lake = voile.read(SparkSource(LOCAL, f"{kind}:{place}"))
        assert (len(lake), lake.name, lake.kind("x")) == (2, "people", "integer")
    assert len(voile.read(SparkSource(LOCAL, f"{tmp_path / 'delta' / 'people'}/"))) == 2
    rows.createOrReplaceTempView("in_the_catalogue")
    assert len(voile.read(SparkSource(LOCAL, "in_the_catalogue"))) == 2
    rows.createOrReplaceTempView("with-dashes")
    assert len(voile.read(SparkSource(LOCAL, "`with-dashes`"))) == 2


def written(folder: Path) -> Path:
    pq.write_table(pa.table({"x": [1, 2]}), folder / "x.parquet")
    return folder / "x.parquet"


# ---------------------------------------------------------------------- refusals


WRONG = [
    ("sc://evil:15002/?;use_ssl=true", "no address of a Spark Connect server"),
    ("sc://evil:15002/#;use_ssl=true", "no address of a Spark Connect server"),
    ("sc://evil:15002/;user_id=a#b;use_ssl=true", "no address of a Spark Connect server"),
    ("sc://user:token=secret@h:1/", "no address of a Spark Connect server"),
    ("sc://h:1/;token=secret==;use_ssl=true", "no address of a Spark Connect server"),
    ("spark.example", "no address of a Spark Connect server"),
    ("http://127.0.0.1:80", "no address of a Spark Connect server"),
    ("sc://10.1.2.3:15002", "would go unencrypted"),
    ("sc://10.1.2.3:15002/;use_ssl=false", "would go unencrypted"),
    ("127.0.0.1:15002", "'127.0.0.1:15002' is no address of a Spark Connect server"),
    ("", "'' is no address of a Spark Connect server"),
    ("token=secret", "'…' is no address of a Spark Connect server"),
    ("sc://127.0.0.1:99999", "no address of a Spark Connect server"),
    ("sc://127.0.0.1:1", "no Spark Connect server answers"),
    ("sc://localhost:1/;use_ssl=true;token=secret", "no Spark Connect server answers"),
]


@pytest.mark.parametrize(("address", "why"), WRONG)
def test_addresses_that_are_refused(address: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as told_:
        voile.read(SparkSource(address, "people"))
    assert "token=secret" not in str(told_.value)
    assert told_.value.hint


def test_what_a_cluster_cannot_do_is_told_before_anything_is_written(
    table: Path, tmp_path: Path
) -> None:
    there = SparkSource(LOCAL, str(table))
    target = tmp_path / "none.voile"
    refused: list[tuple[dict[str, Any], str]] = [
        ({"method": "conjuncts", "arity": 2, "columns": NAMES}, "halves are of single rows"),
        ({**VIEW, "series": "s", "views": 3}, "stay on the cluster"),
        ({**VIEW, "columns": ["nobody"]}, "has no column 'nobody'"),
        ({**VIEW, "columns": [*NAMES, "day"], "schema": SHORT}, "."),
    ]
    for options, why in refused:
        with pytest.raises(voile.VoileError, match=why) as told_:
            voile.publish(there, to=target, **options)
        assert told_.value.hint
    for options in ({"replace": "swap"}, {"row_key": 'o\'dd "name"', "columns": NAMES}):
        with pytest.raises(UsageError, match="needs all rows at once"):
            voile.perturb(there, 0.5, to=target, **options)
    with pytest.raises(TableError, match="the cluster refused"):
        voile.read(SparkSource(LOCAL, "no_such_table"))
    with pytest.raises(TableError, match=r"in '.*missing\.parquet'|the cluster refused"):
        voile.read(SparkSource(LOCAL, str(tmp_path / "missing.parquet")))
    with pytest.raises(UsageError, match="for text files that Voile reads itself"):
        voile.read(there, decimal=",")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("dataset:adult", "'dataset:adult' is nothing that a cluster reads"),
        ("postgresql://u:secret@host/db::people", "'postgresql://…@host/db::people' is nothing"),
        ("jdbc:postgresql://h/db?user=u&password=secret::people", "the cluster refused"),
        ("noformat:s3a://u:secret@bucket/rows", "the cluster refused"),
        ("", "'' names no table and no files"),
        ("  ", "names no table and no files"),
        ("delta:", "'delta:' names no table and no files"),
        ("my-db.people", "the cluster refused"),
        ("/no/such/folder?token=secret", r"in '/no/such/folder\?token=…'|the cluster refused"),
    ],
)
def test_what_no_cluster_reads_is_told_without_its_passwords(what: str, why: str) -> None:
    with pytest.raises((UsageError, TableError), match=why) as told_:
        voile.read(SparkSource(LOCAL, what))
    assert told_.value.hint and "secret" not in f"{told_.value} {told_.value.hint}"


def test_a_token_is_in_no_command_that_is_suggested(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = "sc://127.0.0.1:1/;use_ssl=true;token=secret;x-api-key=secret"
    monkeypatch.setattr(session, "_KNOWN", {given: cluster_at(LOCAL)})
    shown = run("inspect", str(table), "--spark", given)
    shown += run("inspect", str(table), "--spark", given, "--json")
    shown += run("publish", str(table), "--spark", given, "--epsilon", "1e-7", code=1)
    assert "secret" not in shown
    assert shown.count("sc://127.0.0.1:1/;use_ssl=true;token=…;x-api-key=…") >= 2
    assert "secret" not in f"{SparkSource(given, 's3a://u:secret@b/')} {ClusterAddress.read(given)}"


@pytest.mark.parametrize(
    "text", ["s3a://bucket/key=3/a@b.parquet", "warehouse.people", "delta:s3a://b/token=a/"]
)
def test_what_is_no_secret_is_shown(text: str) -> None:
    assert without_secrets(text) == text


def test_an_estimate_of_different_values_is_never_above_the_rows(tmp_path: Path) -> None:
    ids = pa.table({"id": np.arange(20_000), "half": pa.array([None, 1.5] * 10_000)})
    pq.write_table(ids, tmp_path / "ids.parquet")
    one, half = voile.read(SparkSource(LOCAL, str(tmp_path / "ids.parquet"))).profiles(
        ["id", "half"]
    )
    assert 19_000 < one.distinct <= 20_000 and half.distinct == 1


SHORT = Schema((Attribute("age", "integer", Range(17, 18)),))


def test_a_value_outside_the_domain_stops_every_kind(table: Path, tmp_path: Path) -> None:
    there = SparkSource(LOCAL, str(table))
    wishes: list[dict[str, Any]] = [
        {"method": "alphabeta", "prior": 0.02, "posterior": 0.3},
        {"method": "alphabeta", "prior": 0.02, "posterior": 0.3, "rows": "set", "distinct": True},
        {"method": "marginals", "epsilon": 1.0},
        {"method": "conjuncts", "arity": 1, "direct": True},
    ]
    for options in wishes:
        with pytest.raises(SchemaError, match=r"column 'age': .* is not in the schema's domain"):
            voile.publish(there, to=tmp_path / "x.voile", schema=SHORT, **options)
    with pytest.raises(SchemaError, match="column 'age'"):
        voile.perturb(there, 0.5, schema=SHORT, to=tmp_path / "x.voile")
    assert not list(tmp_path.iterdir())


def test_an_executor_that_lacks_a_package_is_told_of(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = voile.read(SparkSource(LOCAL, str(table)))
    monkeypatch.setattr(session, "NEEDED", (*session.NEEDED, "no_such_package"))
    monkeypatch.setattr(cluster_at(LOCAL), "_ready", False)
    with pytest.raises(UsageError, match="lacks no_such_package") as told_:
        found.complete_rows(["age"])
    assert "cryptography" in told_.value.hint
    monkeypatch.setattr(session, "NEEDED", session.NEEDED[:-1])
    assert found.complete_rows(["age"]) == 3000


@pytest.mark.parametrize("options", ["use_ssl=true", "token=secret"])
def test_a_server_without_tls_is_told_of_at_once(options: str) -> None:
    """Spark's client would try for ten minutes."""

    def serve() -> None:
        with server.accept()[0] as way:
            way.sendall(b"\0" * 64)

    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=serve)
        answering.start()
        place = f"sc://127.0.0.1:{server.getsockname()[1]}/;{options}"
        with pytest.raises(UsageError, match="does not answer with TLS") as told_:
            voile.read(SparkSource(place, "people"))
        answering.join()
    assert "secret" not in str(told_.value) and "port" in told_.value.hint


def test_a_server_behind_a_proxy_is_left_to_sparks_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection of our own is made to it; to others it is."""

    def refused(*_: object) -> None:
        raise OSError("no way leads there")

    monkeypatch.setattr(socket, "create_connection", refused)
    for name in session.PROXIES:
        monkeypatch.delenv(name, raising=False)
    far, here = (
        ClusterAddress.read(f"sc://{host}:15002/;use_ssl=true") for host in ("cluster", "127.0.0.1")
    )
    for proxy, passed, reached in (
        ("", "", False), ("http://proxy:3128", "", True), ("http://proxy:3128", "cluster", False),
    ):  # fmt: skip
        monkeypatch.setenv("https_proxy", proxy)
        monkeypatch.setenv("no_proxy", passed)
        assert far.by_proxy is reached and not here.by_proxy
        if reached:
            far.check_reached()
        else:
            with pytest.raises(UsageError, match="no Spark Connect server answers at sc://cluster"):
                far.check_reached()
        with pytest.raises(UsageError, match="no Spark Connect server answers"):
            here.check_reached()


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x15\x03\x03\x00\x02", b"", None]
)
def test_another_service_at_the_port_is_refused_at_once(
    said: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A web server, one that takes TLS alone, one that hangs up, and one that says nothing."""
    monkeypatch.setattr(session, "REACHED_IN", 0.5)
    over = threading.Event()

    def serve() -> None:
        way, _ = listening.accept()
        with way:
            way.recv(100)
            if said is None:
                over.wait(20)
            else:
                way.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        other = threading.Thread(target=serve)
        other.start()
        port = listening.getsockname()[1]
        with pytest.raises(UsageError, match="not as Spark Connect without TLS does") as refused:
            ClusterAddress.read(f"sc://127.0.0.1:{port}").check_reached()
        over.set()
        other.join(20)
    assert refused.value.hint and f"sc://127.0.0.1:{port}/;use_ssl=true" in refused.value.hint


def test_an_address_says_whether_rows_may_go_there() -> None:
    for text in (LOCAL, "sc://127.0.0.1:15002", "sc://localhost", "sc://[::1]:15002",
                 "sc://cluster:15002/;use_ssl=true;token=t"):  # fmt: skip
        ClusterAddress.read(text).check_private()
    assert (
        str(ClusterAddress.read("sc://cluster:15002/;use_ssl=true;token=t")) == "sc://cluster:15002"
    )
    for text in ("sc://cluster", "sc://127.0.0.1.example:15002", "sc://cluster/;use_ssl=no"):
        with pytest.raises(UsageError):
            ClusterAddress.read(text).check_private()


def test_a_table_that_changes_while_it_is_read_is_refused(table: Path, tmp_path: Path) -> None:
    """Rows are read more than once: counted, then published."""
    frame = cluster_at(LOCAL).session.read.parquet(str(table)).where("rand() < 0.5")
    for publish in (
        lambda: voile.perturb(frame, 0.5, columns=NAMES, to=tmp_path / "x.voile"),
        lambda: voile.publish(frame, to=tmp_path / "x.voile", **VIEW),
        lambda: voile.publish(
            frame, method="marginals", schema=SEXES, epsilon=1.0, to=tmp_path / "x.voile"
        ),
    ):
        with pytest.raises(TableError, match="rows when it was counted"):
            publish()
    assert not list(tmp_path.iterdir())


SEXES = Schema((Attribute("sex", "categorical", Values(("", "Female", "Male", "O'Hara"))),))


def test_odd_names_moments_and_wide_domains_are_as_elsewhere(tmp_path: Path) -> None:
    """Names with dots, times of day, NaN beside NULL, and domains beyond 64 bits."""
    import datetime as dt

    count = 400
    moments = [dt.datetime(2020, 1, 1 + i % 3, i % 24, i % 60) for i in range(count)]
    rows = pa.table({
        "a.b": np.arange(count) % 7, "part": np.arange(count) % 3, "n": np.arange(count) % 2,
        "at": pa.array(moments, pa.timestamp("us")),
        "x": pa.array([None if i % 5 == 0 else float("nan") if i % 5 == 1 else i % 5 / 4
                       for i in range(count)]),
        **{f"w{j}": np.arange(count) * (j + 3) % 1000 for j in range(9)},
    })  # fmt: skip
    path = tmp_path / "odd.parquet"
    pq.write_table(rows, path)
    there, here = voile.read(SparkSource(LOCAL, str(path))), voile.read(str(path))
    names = list(rows.column_names)
    assert there.duplicates(["at"]) == here.duplicates(["at"])
    assert there.duplicates(["x", "n"]) == here.duplicates(["x", "n"])
    asked = ("risk", str(path), "--qi", "at,x,n")
    assert told(*asked, "--spark", LOCAL) == told(*asked)
    made = [
        voile.perturb(source, 0.5, columns=names, nulls="as-value", simulate_seed=1)
        for source in (there, here)
    ]
    assert rows_of(made[0].path) == rows_of(made[1].path)
    assert len(TupleIndex(made[0].schema.sizes).limbs) > 1


# ---------------------------------------------------------------------- secrets and files


def test_keys_are_held_while_a_release_is_made_and_no_longer(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[bytes] = []
    client = cluster_at(LOCAL).session.client
    real = client.to_table_as_iterator

    def watched(plan: Any, *more: Any) -> Any:
        plans.append(plan.SerializeToString())
        return real(plan, *more)

    held: list[int] = []
    whole = Subkeys.stream

    def stream(self: Subkeys, purpose: str, index: int = 0) -> Any:
        held.append(len(HELD))
        return whole(self, purpose, index)

    monkeypatch.setattr(client, "to_table_as_iterator", watched)
    monkeypatch.setattr(Subkeys, "stream", stream)
    options = {name: value for name, value in VIEW.items() if name != "simulate_seed"}
    voile.publish(SparkSource(LOCAL, str(table)), **options, simulate_seed=5)
    assert held and min(held) == 1 and not HELD
    secrets = [Key.from_seed(5).derived(name, 0) for name in ("noise", "keep")]
    assert plans
    for plan in plans:
        for secret in secrets:
            assert secret not in plan and secret.hex().encode() not in plan


def test_the_salt_by_which_rows_of_a_person_are_kept_is_in_no_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on one machine, and without a word of the salt on the way."""
    rng = np.random.default_rng(2)
    rows = people(2000, nulls=0.1).select(["age", "sex", "member"])
    rows = rows.append_column("who", pa.array(rng.integers(0, 600, 2000)))
    pq.write_table(rows, tmp_path / "visits.parquet", row_group_size=500)
    plans: list[bytes] = []
    client = cluster_at(LOCAL).session.client
    whole = client._execute_and_fetch_as_iterator

    def watched(request: Any, *more: Any, **named: Any) -> Any:
        plans.append(request.SerializeToString())
        return whole(request, *more, **named)

    monkeypatch.setattr(client, "_execute_and_fetch_as_iterator", watched)
    options: dict[str, Any] = {
        "person": "who", "rows_per_person": 2, "method": "marginals", "epsilon": 1.0,
        "nulls": "as-value", "simulate_seed": 8,
    }  # fmt: skip
    place = str(tmp_path / "visits.parquet")
    there = voile.publish(SparkSource(LOCAL, place), to=tmp_path / "a.voile", **options)
    here = voile.publish(place, to=tmp_path / "b.voile", **options)
    assert [f.sha256 for f in there.manifest.files] == [f.sha256 for f in here.manifest.files]
    salt = Key.from_seed(8).stream(PURPOSE).words(4).tobytes()
    assert any(b"voile_mark" in plan for plan in plans), "the rows were hashed there"
    assert not any(form in plan for plan in plans for form in (salt, salt.hex().encode()))
    gc.collect()
    assert not HELD


def test_subkeys_give_the_coins_of_the_key_and_no_others() -> None:
    key = Key.from_seed(1)
    some = Subkeys.of(key, [("noise", 3), ("keep", 3)])
    sealed, opener = some.sealed()
    opened = Subkeys.opened(sealed, opener)
    for keys in (some, opened):
        assert (keys.stream("noise", 3).words(9) == key.stream("noise", 3).words(9)).all()
        with pytest.raises(KeyError):
            keys.stream("noise", 4)
    secret = key.derived("noise", 3)
    assert secret not in sealed and secret.hex().encode() not in sealed
    with pytest.raises(InvalidTag):
        Subkeys.opened(sealed, bytes(32))
    import pickle

    with pytest.raises(TypeError, match="sealed"):
        pickle.dumps(some)
    assert secret.hex() not in repr(some)


def test_the_modules_that_travel_hold_no_secret_and_are_the_same_each_time() -> None:
    assert packed_modules() == packed_modules()


def test_a_file_that_does_not_come_whole_is_refused(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces that are lost, twice there or out of order: nothing is released."""
    cluster = cluster_at(LOCAL)
    real = cluster.rows

    def changed(how: Any) -> Any:
        def rows(frame: Any) -> Any:
            parts = list(real(frame))
            return how(parts) if parts and "piece" in parts[0].column_names else parts

        return rows

    monkeypatch.setattr(work, "PIECE", 2**10)
    there = SparkSource(LOCAL, str(table))
    for how in (
        lambda parts: parts[1:],
        lambda parts: [*parts, *parts],
        lambda parts: parts[::-1],
        lambda _: [],
    ):
        monkeypatch.setattr(cluster, "rows", changed(how))
        with pytest.raises(ReleaseError, match=r"did not come whole|of 1 files"):
            voile.publish(there, to=tmp_path / "x.voile", **VIEW)
        assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- what runs there


def test_keys_that_lost_their_order_are_not_taken() -> None:
    """Coins depend on the order: a server that forgets it must not pass unseen."""
    index = TupleIndex([10, 10])
    batches = [work.parted(index, np.array(keys, np.uint64), 1, None) for keys in ([5, 9], [3, 7])]
    reader = work.PartReader(iter(batches), index, ordered=True)
    with pytest.raises(RuntimeError, match="lost the order"):
        for _, keys in reader.parts():
            list(keys)
    reader = work.PartReader(iter(batches), index, ordered=False)
    assert [np.concatenate(list(keys)).tolist() for _, keys in reader.parts()] == [[3, 5, 7, 9]]


def test_a_tuple_that_very_many_rows_have_is_read_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(work, "MOST_CELLS", 10)
    index = TupleIndex([10])
    keys = np.repeat(np.array([1, 2, 7], np.uint64), [3, 95, 8])
    reader = work.PartReader(iter([work.parted(index, keys, 1, None)]), index, ordered=True)
    ((number, found),) = ((n, list(keys)) for n, keys in reader.parts())
    assert number == 0 and max(map(len, found)) <= 11
    assert np.concatenate(found).tolist() == keys.tolist()


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        (pa.array(["1", " 2 ", "+3", "x", "1.5", None, "99999999999999999999"]), "integer",
         [1, 2, 3, None, None, None, None]),
        (pa.array([1.0, 2.5, float("nan"), 1e300, None]), "integer", [1, None, None, None, None]),
        (pa.array([0.1, -0.0, float("nan")], pa.float32()), "numeric", [0.1, 0.0, None]),
        (pa.array(["1e3", ".5", "nan", "1,5"]), "numeric", [1000.0, 0.5, None, None]),
        (pa.array(["true", "FALSE", "yes"]), "boolean", [True, False, None]),
        (pa.array([3, None], pa.int8()), "categorical", ["3", None]),
    ],
)  # fmt: skip
def test_columns_are_read_as_their_kind(column: Any, kind: str, expected: list[Any]) -> None:
    reading = work.Reading(kind)
    assert reading.typed(column).to_pylist() == expected
    nan_is_null = kind == "numeric"
    lost = [e is None and v is not None and not (nan_is_null and isinstance(v, float)) for e, v in
            zip(expected, column.to_pylist(), strict=True)]  # fmt: skip
    assert reading.lost(column).tolist() == lost


def test_days_are_those_of_utc() -> None:
    import datetime as dt

    moments = [dt.datetime(2020, 1, 1, 23, 59), dt.datetime(1969, 12, 31, 0, 1)]
    days = [dt.date(2020, 1, 1), dt.date(1969, 12, 31)]
    for zone in (None, "UTC", "Asia/Tokyo"):
        column = pa.array(moments, pa.timestamp("us", zone))
        assert work.Reading("date").typed(column).to_pylist() == days
    texts = pa.array(["2020-01-01", "2020-13-01", "1.1.2020"])
    assert work.Reading("date").typed(texts).to_pylist() == [days[0], None, None]


def test_sums_do_not_depend_on_where_batches_end() -> None:
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, 5, 1000), rng.integers(0, 7, 1000)]
    from voile.engines.jobs import CellCounts, added_up

    for job in (KeyCounts((5, 7)), CellCounts((5, 7), ((0,), (1,), (0, 1)))):
        whole = added_up(job(iter([codes])), job.output)
        parts = [[c[i : i + 37] for c in codes] for i in range(0, 1000, 37)]
        assert added_up(job(iter(parts)), job.output).equals(whole)


JOBS = (
    "voile.engines.spark.work", "voile.engines.spark.vault", "voile.engines.jobs",
    "voile.engines.column_jobs", "voile.kinds.views.writing", "voile.kinds.views.shaped",
    "voile.kinds.perturbed.writing", "voile.kinds.marginals.place_sums", "voile.noise.subkeys",
    "voile.register.gathering", "voile.kinds.looks",
)  # fmt: skip


def test_what_travels_is_enough_for_every_job(tmp_path: Path) -> None:
    """An executor has the modules that travel, and few packages of its own."""
    (tmp_path / "carried.zip").write_bytes(packed_modules())
    code = f"""{WITHOUT}
import importlib
sys.path = [{str(tmp_path / "carried.zip")!r}, *(p for p in sys.path if "src" not in p)]
sys.meta_path = [f for f in sys.meta_path if "editable" not in str(f).lower()]
for name in {JOBS!r}:
    assert ".zip" in importlib.import_module(name).__file__, name
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
