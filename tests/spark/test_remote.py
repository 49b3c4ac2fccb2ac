"""Releases behind URLs: opened with and without a cluster, put there whole or not at all."""

from __future__ import annotations

import gc
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import voile
from tests.engines.conftest import people
from tests.engines.test_executors import WITHOUT
from tests.spark.cluster import ApacheSpark
from tests.spark.test_rows import assert_same, published
from tests.support.forging import forged
from tests.support.object_store import ObjectStore, object_store
from tests.support.running import told
from tests.support.running import voile as run
from voile.engines.spark.row_jobs import EncodeRows
from voile.engines.spark.rows import SparkRows
from voile.engines.spark.session import Cluster, cluster_at, packed_modules
from voile.errors import ReleaseError, UsageError, VoileError
from voile.kinds import looks, staging, stored
from voile.kinds.manifest import MANIFEST, SIGNATURE
from voile.kinds.parts import LookAtParts, PartTerms
from voile.kinds.perturbed import plausibility as row_plausibility
from voile.kinds.stored import MARKER, clean_remote, put_remote
from voile.kinds.verification import examine, verify
from voile.kinds.views import plausibility as view_plausibility
from voile.release import Release, sign
from voile.signing import SigningKey
from voile.storage import StoredFolder

SQL = "select sex, count(*), avg(pay) from t where age > 33 group by sex"
ENGINES = (None, "local")
PART = "data/part-00000.parquet"
REMOTE = ("view", "view, shaped", "view, series", "perturbed", "marginals", "counts",
          "classes, mondrian", "classes, anatomy")  # fmt: skip
LEFT = ("view", "view, shaped", "perturbed")
"""Kinds whose rows stay where they are, if there is an engine."""


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return cluster_at("local")


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return published("view", tmp_path_factory.mktemp("view"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Rows in several files."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.integers(0, 9, 5000), "y": rng.choice([*"abc"], 5000)})
    made = voile.perturb(frame, 0.5, name="t", simulate_seed=1)
    return made.save(tmp_path_factory.mktemp("rows") / "rows.voile")


def put(release: Any, folder: Path, name: str = "there.voile") -> str:
    return put_remote(release.path, (folder / name).as_uri())


def flip(path: Path, at: int = 30) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


# ---------------------------------------------------------------------- opening


@pytest.mark.parametrize("name", REMOTE)
def test_opened_from_where_it_lies(name: str, tmp_path: Path, cluster: Cluster) -> None:
    made = published(name, tmp_path)
    url = put(made, tmp_path)
    for engine in (None, cluster):
        release = voile.open(url, engine=engine)
        assert release.left == ({PART} if engine and name in LEFT else frozenset())
        (note,) = release.notes
        assert "bytes of file://" in note and ("stay there" in note) == bool(release.left)
        assert release.manifest == made.manifest
        assert_same(made.query(SQL).to_dict(), release.query(SQL).to_dict(), 1e-12)
        for file in release.manifest.files:
            assert (release.path / file.path).exists() == (file.path not in release.left)
        if release.left:
            assert isinstance(release._view, SparkRows)
        found = examine(url, engine=engine)
        assert found.ok and found.whole and found.terms, found.problems
        assert found.rows_plausible == examine(made.path).rows_plausible


def test_what_was_left_is_brought_when_it_is_needed(
    view: Any, tmp_path: Path, cluster: Cluster
) -> None:
    release = voile.open(put(view, tmp_path), engine=cluster)
    assert not (release.path / PART).exists()
    assert release.to_arrow().equals(view.to_arrow())
    assert (release.path / PART).exists()


def test_an_engine_for_a_release_that_was_fetched(view: Any, tmp_path: Path) -> None:
    release = voile.open(put(view, tmp_path))
    assert_same(view.query(SQL).to_dict(), release.query(SQL, engine="local").to_dict(), 1e-12)
    assert isinstance(release.counted_by("local")._view, SparkRows)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_mirror_goes_with_the_release(view: Any, tmp_path: Path, engine: str | None) -> None:
    release = voile.open(put(view, tmp_path), engine=engine)
    home = release.path.parent
    other = release.counted_by("local")
    del release
    gc.collect()
    assert home.exists()  # somebody holds it by its engine
    other.query(SQL)
    del other
    gc.collect()
    assert not home.exists()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_part_that_was_changed(view: Any, tmp_path: Path, engine: str | None) -> None:
    url = put(view, tmp_path)
    flip(tmp_path / "there.voile" / PART)
    with pytest.raises(ReleaseError, match=f"{PART} was changed after the release was written"):
        voile.open(url, engine=engine)
    found = examine(url, engine=engine)
    assert not found.ok
    assert found.problems == (f"{PART} was changed after the release was written",)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["README.md", "datapackage.json", PART])
def test_files_that_are_cut_or_missing(
    view: Any, tmp_path: Path, engine: str | None, name: str
) -> None:
    url = put(view, tmp_path)
    file = tmp_path / "there.voile" / name
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ReleaseError, match="does not have"):
        voile.open(url, engine=engine, check=False)
    file.unlink()
    with pytest.raises(ReleaseError, match="is missing from"):
        voile.open(url, engine=engine, check=False)


def test_what_is_changed_while_it_is_open(view: Any, tmp_path: Path) -> None:
    """The rows are hashed when they are opened; what is brought later is hashed again."""
    release = voile.open(put(view, tmp_path), engine="local")
    flip(tmp_path / "there.voile" / PART)
    with pytest.raises(ReleaseError, match="was changed after"):
        release.to_arrow()
    with pytest.raises(ReleaseError, match="was changed after"):
        verify(release)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_manifest_that_was_changed(view: Any, tmp_path: Path, engine: str | None) -> None:
    url = put(view, tmp_path)
    manifest = tmp_path / "there.voile" / MANIFEST
    data = json.loads(manifest.read_bytes())
    manifest.write_text(json.dumps(data | {"rows": data["rows"] + 1}))
    with pytest.raises(ReleaseError, match=r"manifest\.json was changed"):
        voile.open(url, engine=engine)
    data["files"][0]["path"] = "../../secret.parquet"
    manifest.write_text(json.dumps(data))
    with pytest.raises(ReleaseError):
        voile.open(url, engine=engine)
    manifest.write_bytes(b"[" * 200_000)
    with pytest.raises(ReleaseError, match="lists and objects"):
        voile.open(url, engine=engine)


def test_links_lead_nowhere(view: Any, tmp_path: Path) -> None:
    url = put(view, tmp_path)
    part = tmp_path / "there.voile" / PART
    shutil.move(part, tmp_path / "elsewhere")
    part.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ReleaseError, match="is missing from"):
        voile.open(url)


# ---------------------------------------------------------------------- verifying


@pytest.mark.parametrize("engine", ENGINES)
def test_files_that_do_not_belong(view: Any, tmp_path: Path, engine: str | None) -> None:
    url = put(view, tmp_path)
    (tmp_path / "there.voile" / "data" / "more.parquet").write_bytes(b"x")
    with pytest.raises(ReleaseError, match=r"data/more\.parquet does not belong"):
        verify(url, engine=engine)


FORGED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "values outside": (
        lambda t: t.set_column(0, "age", [[99] * t.num_rows]), "outside the domain"
    ),
    "other columns": (lambda t: t.rename_columns(["AGE", *t.column_names[1:]]), "the columns"),
    "another order": (lambda t: t.take([*range(t.num_rows - 1, -1, -1)]), "in the order"),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("what", FORGED)
def test_a_forged_release_is_seen(view: Any, tmp_path: Path, engine: str | None, what: str) -> None:
    change, said = FORGED[what]
    folder = forged(view, tmp_path / "forged.voile", change)
    for place in (folder, folder.as_uri()):
        with pytest.raises(ReleaseError, match=said):
            verify(place, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_no_chance_makes_are_seen(rows: Any, tmp_path: Path, engine: str | None) -> None:
    folder = forged(rows, tmp_path / "forged.voile", lambda t: t.set_column(0, "x", [[0] * len(t)]))
    for place in (folder, folder.as_uri()):
        found = examine(place, engine=engine)
        assert found.whole and found.terms and found.rows_plausible is False, found.problems


def test_statistics_are_seen_where_the_rows_lie(view: Any, tmp_path: Path) -> None:
    folder = forged(view, tmp_path / "forged.voile", lambda rows: rows, statistics=True)
    for open_ in (voile.open, verify):
        with pytest.raises(ReleaseError, match="has statistics"):
            open_(folder.as_uri(), engine="local")


BOUNDS: dict[str, Any] = {"method": "alphabeta", "prior": 0.02, "posterior": 0.3}
MANY: dict[str, dict[str, Any]] = {
    "view": BOUNDS,
    "view, shaped": {
        "method": "alphabeta",
        "prior": 0.02,
        "retention": 0.5,
        "noise_prior": "product",
    },
    "set": {**BOUNDS, "rows": "set", "distinct": True},
}


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are too many to be brought here: whoever tries fails."""
    monkeypatch.setattr(staging, "MOST_LOOKED_AT", 10)

    def brought(*_: Any) -> Any:
        raise AssertionError("all rows were brought here")

    monkeypatch.setattr(Release, "_rows_here", property(brought))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was counted of rows: of each set of cells, and of tuples by how often they repeat."""
    found: list[Any] = []
    for module, name in ((view_plausibility, "repetitions"), (row_plausibility, "surprise")):
        known = getattr(module, name)

        def noted(one: Any, *more: Any, known: Any = known, **named: Any) -> Any:
            cells = getattr(one, "cells", [one])
            repeated = getattr(one, "repeated", np.zeros(0)).tolist()
            found.append((repeated, [some.seen.tolist() for some in cells]))
            return known(one, *more, **named)

        monkeypatch.setattr(module, name, noted)
    return found


@pytest.mark.parametrize("kind", [*MANY, "perturbed"])
def test_many_rows_are_counted_where_they_lie(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: list[Any],
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    """As they are counted here: however files are dealt out, and with tuples at their ends."""
    monkeypatch.setattr("voile.kinds.views.writing.RANGE_ROWS", 1)
    monkeypatch.setattr("voile.kinds.perturbed.writing.FILE_ROWS", 300)
    monkeypatch.setattr("voile.kinds.perturbed.writing.BLOCK_ROWS", 100)
    monkeypatch.setattr(looks, "AT_A_TIME", 70)
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.integers(0, 20, 1500), "y": rng.choice([*"abcdefgh"], 1500),
                         "z": rng.integers(0, 30, 1500)})  # fmt: skip
    how: dict[str, Any] = {"name": "t", "simulate_seed": 1, "to": tmp_path / "made.voile"}
    if kind == "perturbed":
        made = voile.perturb(rows, 0.5, **how)
    else:
        made = voile.publish(rows, **MANY[kind], **how)
    assert len([file for file in made.manifest.files if file.rows]) > 3
    counted.clear()
    made.check_plausible()
    known = counted.copy()
    assert known
    release = voile.open(put(made, tmp_path), engine="local")
    request.getfixturevalue("far")
    for tasks in (1, 3, 64):
        monkeypatch.setattr(looks, "MOST_TASKS", tasks)
        counted.clear()
        assert release.check_plausible()
        assert counted == known


@pytest.mark.usefixtures("far")
def test_many_rows_that_no_chance_makes_are_seen(view: Any, rows: Any, tmp_path: Path) -> None:
    flat = forged(rows, tmp_path / "flat.voile", lambda t: t.set_column(0, "x", [[0] * len(t)]))
    found = examine(flat.as_uri(), engine="local")
    assert found.whole and found.rows_plausible is False, found.problems
    turned = forged(view, tmp_path / "turned.voile", FORGED["another order"][0])
    with pytest.raises(ReleaseError, match="in the order of the domain"):
        verify(turned.as_uri(), engine="local")


@pytest.mark.usefixtures("far")
def test_many_rows_that_change_while_they_are_counted(
    view: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = voile.open(put(view, tmp_path), engine="local")
    flip(tmp_path / "there.voile" / PART)
    with pytest.raises(ReleaseError, match=f"{PART} was changed after the release was written"):
        release.check_plausible()
    (tmp_path / "there.voile" / PART).unlink()
    with pytest.raises(ReleaseError, match="cannot be read"):
        release.check_plausible()
    monkeypatch.setattr(looks.CountRows, "__call__", lambda *_: iter(()))
    with pytest.raises(ReleaseError, match="did not count all rows"):
        release.check_plausible()


def test_signatures_come_along(view: Any, tmp_path: Path) -> None:
    shutil.copytree(view.path, tmp_path / "signed.voile")
    key = SigningKey.new("me")
    sign(tmp_path / "signed.voile", key)
    url = put_remote(tmp_path / "signed.voile", (tmp_path / "there.voile").as_uri())
    assert (tmp_path / "there.voile" / SIGNATURE).exists()
    for engine in ENGINES:
        assert verify(url, signer=key.fingerprint, engine=engine)
    with pytest.raises(ReleaseError, match="is not signed by"):
        verify(url, signer=SigningKey.new("you").fingerprint)


# ---------------------------------------------------------------------- putting it there


class Gone(BaseException):
    """The process was killed."""


class Dying(StoredFolder):
    """A store that is not reached any more after so many changes."""

    left = 0

    def step(self) -> None:
        if Dying.left <= 0:
            raise Gone
        Dying.left -= 1

    def write(self, name: str, content: bytes) -> None:
        self.step()
        super().write(name, content)

    def upload(self, path: Path, name: str) -> str:
        self.step()
        return super().upload(path, name)

    def delete(self, name: str) -> None:
        if self.size(name) is not None:
            self.step()
            super().delete(name)


class Halved(Dying):
    """The last file that is written is cut in half."""

    def upload(self, path: Path, name: str) -> str:
        if Dying.left <= 0:
            place = Path(self.uri(name))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        return super().upload(path, name)

    def write(self, name: str, content: bytes) -> None:
        if Dying.left <= 0:
            place = Path(self.uri(name))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content[: len(content) // 2])
        super().write(name, content)


@pytest.mark.parametrize("kind", [Dying, Halved])
def test_killed_at_every_step(
    rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Dying]
) -> None:
    """Until the manifest is there nothing opens; the next run removes what was left."""
    steps = len(rows.manifest.files) + 2
    for alive in range(steps):
        url = (tmp_path / f"{kind.__name__}-{alive}.voile").as_uri()
        Dying.left = alive
        with monkeypatch.context() as patch:
            patch.setattr(stored, "StoredFolder", kind)
            with pytest.raises(Gone):
                put_remote(rows.path, url)
        with pytest.raises(ReleaseError, match=r"is not complete|no manifest") as said:
            voile.open(url)
        if StoredFolder.of(url).size(MARKER) is not None:
            assert "was killed, or goes on" in str(said.value)
        if alive == 0 and kind is Halved:  # half a marker is nobody's
            with pytest.raises(UsageError, match="is not the marker of a run"):
                put_remote(rows.path, url)
            continue
        put_remote(rows.path, url)
        assert verify(url).manifest == rows.manifest
        assert MARKER not in StoredFolder.of(url).names()
    Dying.left = steps  # all but the removal of the marker
    url = (tmp_path / f"{kind.__name__}-late.voile").as_uri()
    with monkeypatch.context() as patch:
        patch.setattr(stored, "StoredFolder", kind)
        with pytest.raises(Gone):
            put_remote(rows.path, url)
    assert MARKER in StoredFolder.of(url).names()
    assert verify(url).manifest == rows.manifest
    assert clean_remote(url)
    assert verify(url).manifest == rows.manifest
    assert not clean_remote(url)


def test_an_ordinary_error_leaves_nothing(
    rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = (tmp_path / "there.voile").as_uri()

    def broken(_self: StoredFolder, _path: Path, name: str) -> str:
        raise UsageError(f"no room for {name}")

    monkeypatch.setattr(StoredFolder, "upload", broken)
    with pytest.raises(UsageError, match="no room"):
        put_remote(rows.path, url)
    assert StoredFolder.of(url).names() == []
    assert not (tmp_path / "there.voile").exists()


def test_a_file_that_changes_meanwhile(rows: Any, tmp_path: Path) -> None:
    shutil.copytree(rows.path, tmp_path / "mine.voile")
    flip(tmp_path / "mine.voile" / PART)
    with pytest.raises(ReleaseError, match="was changed after"):
        put_remote(tmp_path / "mine.voile", (tmp_path / "there.voile").as_uri())
    assert not (tmp_path / "there.voile").exists()


def test_two_runs_at_one_place(
    rows: Any, view: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that another took the place from gives up; what it did meanwhile is seen."""
    url = (tmp_path / "there.voile").as_uri()
    upload = StoredFolder.upload
    done: list[str] = []

    def meanwhile(self: StoredFolder, path: Path, name: str) -> str:
        if not done:
            done.append(name)
            put_remote(view.path, url)
        return upload(self, path, name)

    monkeypatch.setattr(stored, "AT_ONCE", 1)
    monkeypatch.setattr(StoredFolder, "upload", meanwhile)
    with pytest.raises(UsageError, match=r"another run writes to"):
        put_remote(rows.path, url)
    assert done == [PART]
    with pytest.raises(ReleaseError, match=f"{PART} was changed"):
        voile.open(url)
    StoredFolder.of(url).upload(view.path / PART, PART)  # all else is the other's
    assert verify(url).manifest == view.manifest


def test_places_that_are_taken(rows: Any, tmp_path: Path) -> None:
    url = put(rows, tmp_path)
    with pytest.raises(UsageError, match="exists already") as said:
        put_remote(rows.path, url)
    assert "another name" in said.value.hint
    with pytest.raises(UsageError, match="cannot replace a folder at once"):
        put_remote(rows.path, url, overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"is not empty: 'notes\.txt' is there"):
        put_remote(rows.path, (tmp_path / "other").as_uri())
    assert (tmp_path / "other" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "said",
    [
        b"{}", b"[]", b"nothing", b"null",
        b'{"format": "voile-partial", "manifest": "", "files": ["../kept"]}',
        b'{"format": "voile-partial", "manifest": "", "files": ["/kept"]}',
        b'{"format": "voile-partial", "manifest": "", "files": [3]}',
        b'{"format": "voile-partial", "manifest": 5, "files": []}',
        b"[" * 100_000,
    ],
    ids=lambda said: said[:70].decode(),
)  # fmt: skip
def test_markers_of_others(rows: Any, tmp_path: Path, said: bytes) -> None:
    (tmp_path / "kept").write_text("kept")
    home = tmp_path / "there.voile"
    home.mkdir()
    (home / MARKER).write_bytes(said)
    for call in (lambda: put_remote(rows.path, home.as_uri()), lambda: clean_remote(home.as_uri())):
        with pytest.raises(UsageError, match="is not the marker of a run"):
            call()
    assert (tmp_path / "kept").read_text() == "kept"


# ---------------------------------------------------------------------- an object store


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with object_store() as found:
        for name, value in {
            "AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "something",
            "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT": f"http://{found.address}", "AWS_ALLOW_HTTP": "true",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        yield found


def test_an_object_store(view: Any, store: ObjectStore) -> None:
    """Written, opened, counted and verified where it lies, by Arrow and by Sail."""
    url = store.url(f"bucket-{store.address[-4:]}/some/people.voile")
    put_remote(view.path, url)
    place = url.partition("?")[0].removeprefix("s3a://")
    files = {f"{place}/{file.path}" for file in view.manifest.files} | {f"{place}/{MANIFEST}"}
    assert set(store.names()) == files
    for engine in ENGINES:
        store.asked.clear()
        release = voile.open(url, engine=engine)
        assert_same(view.query(SQL).to_dict(), release.query(SQL).to_dict(), 1e-12)
        read = {line.removeprefix("GET ") for line in store.asked if line.startswith("GET ")}
        assert {name for name in read if name.endswith(".parquet")} == {f"{place}/{PART}"}
        assert verify(url, engine=engine).manifest == view.manifest
    content = bytearray(store.objects[f"{place}/{PART}"])
    content[30] ^= 1
    store.objects[f"{place}/{PART}"] = bytes(content)
    for engine in ENGINES:
        with pytest.raises(ReleaseError, match="was changed after"):
            voile.open(url, engine=engine)


def test_an_object_store_that_fails(
    rows: Any, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for alive in range(len(rows.manifest.files) + 2):
        place = f"bucket/{alive}.voile"
        Dying.left = alive
        with monkeypatch.context() as patch:
            patch.setattr(stored, "StoredFolder", Dying)
            with pytest.raises(Gone):
                put_remote(rows.path, store.url(place))
        with pytest.raises(ReleaseError, match=r"is not complete|no manifest"):
            voile.open(store.url(place))
        put_remote(rows.path, store.url(place))
        assert voile.open(store.url(place)).manifest == rows.manifest


# ---------------------------------------------------------------------- executors


@pytest.mark.soak
def test_apache_spark_looks_at_files_where_they_lie(
    view: Any, tmp_path: Path, apache_spark: ApacheSpark
) -> None:
    url = put(view, tmp_path)
    release = voile.open(url, engine=apache_spark.address)
    assert release.left == {PART}
    assert_same(view.query(SQL).to_dict(), release.query(SQL).to_dict(), 1e-12)
    assert verify(release)
    flip(tmp_path / "there.voile" / PART)
    with pytest.raises(ReleaseError, match="was changed after"):
        voile.open(url, engine=apache_spark.address)


def test_jobs_need_no_more_than_what_is_carried(view: Any, tmp_path: Path) -> None:
    """Executors have NumPy and Arrow, and our modules from the connection."""
    (tmp_path / "carried.zip").write_bytes(packed_modules())
    (file,) = (f for f in view.manifest.files if f.path == PART)
    terms = PartTerms(file.path, file.sha256, file.rows or 0, 100, view.columns_of(PART))
    jobs = LookAtParts(view.path.as_uri(), (terms,)), EncodeRows(tuple(view.schema))
    (tmp_path / "jobs").write_bytes(pickle.dumps(jobs))
    code = f"""{WITHOUT}
sys.path = [{str(tmp_path / "carried.zip")!r}, *sys.path, {str(Path(pa.__file__).parents[1])!r}]
import pickle
import pyarrow as pa
import pyarrow.parquet as pq
import voile
assert "carried.zip" in voile.__file__
with open({str(tmp_path / "jobs")!r}, "rb") as file:
    look, encode = pickle.load(file)
(seen,) = look(iter([pa.RecordBatch.from_pydict({{"id": [0]}})]))
assert seen.to_pydict() == {{"part": [0], "sha256": [{file.sha256!r}], "fault": [""]}}, seen
coded = encode(iter(pq.ParquetFile({str(view.path / PART)!r}).iter_batches()))
print(sum(batch.num_rows for batch in coded))
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False,
        cwd=tmp_path, env={},
    )  # fmt: skip
    assert done.stdout == f"{view.manifest.rows}\n", done.stderr


# ---------------------------------------------------------------------- commands


def test_commands(view: Any, tmp_path: Path) -> None:
    url = put(view, tmp_path)
    expected = told(["query", str(view.path), SQL])
    assert told(["query", url, SQL]) == expected
    assert_same(told(["query", url, SQL, "--spark", "local"]), expected, 1e-12)
    assert_same(told(["query", str(view.path), SQL, "--spark", "local"]), expected, 1e-12)
    said = run("query", url, SQL)
    assert "bytes of file://" in said.stderr and "were fetched" in said.stderr
    for more in ([], ["--spark", "local"]):
        assert told(["describe", url, *more]) == told(["describe", str(view.path)])
        assert_same(
            told(["explain", url, SQL, *more]), told(["explain", str(view.path), SQL]), 1e-12
        )
        checked = told(["verify", url, *more])
        assert checked["ok"] and checked["release"] == url
    assert told(["guarantees", url]) == told(["guarantees", str(view.path)])
    flip(tmp_path / "there.voile" / PART)
    for more in ([], ["--spark", "local"]):
        refused = run("verify", url, *more)
        assert refused.returncode == 1 and "was changed after" in refused.stderr


# ---------------------------------------------------------------------- wrong inputs


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("file:///no/such/release.voile", "has no manifest.json"),
        ("file://elsewhere/release.voile", "names no folder of this machine"),
        ("file:///", "names no folder of this machine"),
        ("ftp://host/release.voile", "cannot be reached"),
        ("what://host/release.voile", "cannot be reached"),
        ("s3://", "characters that not all readers take"),
        ("s3a://bucket/a b.voile", "characters that not all readers take"),
        ("s3a://bucket/*.voile", "characters that not all readers take"),
        ("s3a://bucket/a%20b.voile", "characters that not all readers take"),
        ("s3a://key:secret@bucket/people.voile", "has a password"),
        (Path("s3a://bucket/people.voile"), "there is no release"),
    ],
    ids=str,
)
def test_urls_that_are_none(url: Any, said: str, rows: Any) -> None:
    with pytest.raises(VoileError, match=said) as refused:
        voile.open(url)
    assert refused.value.hint
    assert "secret" not in str(refused.value)
    if isinstance(url, str) and not url.startswith("file:///no"):
        with pytest.raises(UsageError, match=said):
            put_remote(rows.path, url)


def test_other_wrong_inputs(rows: Any, view: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a URL"):
        put_remote(rows.path, str(tmp_path / "there.voile"))
    with pytest.raises(ReleaseError, match="has no manifest"):
        put_remote(tmp_path, (tmp_path / "there.voile").as_uri())
    with pytest.raises(UsageError, match="is saved to a folder of this machine"):
        view.save("s3a://bucket/people.voile")
    with pytest.raises(UsageError, match=r"is a table perturbed .*, and this is for a noisy view"):
        type(view).open(put(rows, tmp_path))
    store = StoredFolder.of(tmp_path.as_uri())
    for name in ("../x", "/x", "a//b", ".", "a\\b", ""):
        with pytest.raises(UsageError, match="no name of a file"):
            store.size(name)
    with pytest.raises(FileNotFoundError):
        store.read("none", 10)
    with pytest.raises(FileNotFoundError):
        store.fetch("none", tmp_path / "copy")
    assert isinstance(Release.open(put(rows, tmp_path, "again.voile")), Release)


def test_a_folder_of_files(tmp_path: Path) -> None:
    store = StoredFolder.of((tmp_path / "there").as_uri())
    assert store.names() == []
    store.write("a/b.txt", b"0123456789")
    assert store.names() == ["a/b.txt"]
    assert store.size("a/b.txt") == 10
    assert store.size("a") is None
    assert store.read("a/b.txt", 4) == b"0123"
    assert store.uri("a/b.txt") == str(tmp_path / "there" / "a" / "b.txt")
    digest = store.fetch("a/b.txt", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"0123456789"
    assert store.upload(tmp_path / "copy", "c") == digest
    store.fetch("c", tmp_path / "cut", 3)
    assert (tmp_path / "cut").read_bytes() == b"012"
    store.delete("a/b.txt")
    store.delete("a/b.txt")
    assert store.names() == ["c"]


def test_a_marker_that_names_other_files_removes_none(tmp_path: Path) -> None:
    """It may be anybody's: what no release has is not ours to remove."""
    place = tmp_path / "people.voile"
    place.mkdir()
    (place / "thesis.txt").write_text("years of work")
    said = {"format": "voile-partial", "run": "0", "manifest": "0", "files": ["thesis.txt"]}
    (place / "_voile_partial.json").write_text(json.dumps(said))
    with pytest.raises(UsageError, match="not the marker of a run"):
        voile.publish(ROWS_TO_PUT, to=place.as_uri(), prior=0.02, posterior=0.3)
    assert (place / "thesis.txt").read_text() == "years of work"


ROWS_TO_PUT = people(300, nulls=0.0).select(["age", "sex", "member"])
