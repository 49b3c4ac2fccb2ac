"""What lies in a release beside its rows is looked at: other files, texts, bytes, signs of zero."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.support.forging import forged, sealed
from tests.support.paths import TESTS
from tests.support.running import voile as run
from voile.kinds.manifest import DATA_PACKAGE, MANIFEST, README
from voile.kinds.verification import examine

FIXTURES = TESTS / "fixtures" / "version1"
PART = "data/part-00000.parquet"
PLAIN: dict[str, Any] = {
    "compression": "zstd", "store_schema": False, "write_statistics": False,
}  # fmt: skip


@pytest.fixture
def view(tmp_path: Path) -> Path:
    to = tmp_path / "view.voile"
    shutil.copytree(FIXTURES / "view.voile", to)
    return to


def problem(folder: Path) -> str:
    """What is wrong; the files are not whole."""
    found = examine(folder)
    assert found.whole is False and not found.ok
    return found.problems[0]


# ---------------------------------------------------------------------- descriptions


def changed_package(**keys: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda package: package | keys


def changed_resource(**keys: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda package: package | {"resources": [package["resources"][0] | keys]}


PACKAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "elsewhere": changed_resource(path=["https://example.org/x.parquet"]),
    "also elsewhere": changed_resource(path=[PART, "/etc/passwd"]),
    "the manifest": changed_resource(path=[PART, MANIFEST]),
    "none": changed_resource(path=[]),
    "a number": changed_resource(path=7),
    "rows within": changed_resource(data=[{"age": 41}]),
    "no resources": changed_package(resources=None),
    "other keys": changed_package(contributors=["everybody"]),
    "a list": lambda package: [package],
}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_data_package_of_other_files(view: Path, name: str) -> None:
    package = json.loads((view / DATA_PACKAGE).read_text("utf-8"))
    (view / DATA_PACKAGE).write_text(json.dumps(PACKAGES[name](package)), "utf-8")
    assert "datapackage.json" in problem(sealed(view))


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 200_000, b"9" * 5000])
def test_a_data_package_that_is_no_json(view: Path, content: bytes) -> None:
    (view / DATA_PACKAGE).write_bytes(content)
    assert "datapackage.json" in problem(sealed(view))


@pytest.mark.parametrize("name", [README, DATA_PACKAGE])
def test_descriptions_are_files_of_the_manifest(view: Path, name: str) -> None:
    data = json.loads((view / MANIFEST).read_bytes())
    (view / name).unlink()
    files = [entry for entry in data["files"] if entry["path"] != name]
    assert "does not name" in problem(sealed(view, files=files))


# ---------------------------------------------------------------------- Parquet files


def test_texts_beside_the_columns(view: Path) -> None:
    """Whatever stands there: the private rows, or a promise."""
    table = pq.read_table(view / PART, partitioning=None)
    with pq.ParquetWriter(view / PART, table.schema, **PLAIN) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"true rows": "41,Teacher"})
    assert "key-value metadata of the file" in problem(sealed(view))


@pytest.mark.parametrize("where", ["before", "between", "after"])
def test_bytes_that_belong_to_no_column(view: Path, where: str) -> None:
    """Between the first mark and the columns, between two columns, and before the footer."""
    raw = (view / PART).read_bytes()
    footer = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    hidden = b"41,Teacher\r\n"
    if where == "after":
        content = raw[:footer] + hidden + raw[footer:]
    else:  # columns move, and the footer says so
        table = pq.read_table(view / PART, partitioning=None)
        content = moved(table, 0 if where == "before" else 1, hidden)
    (view / PART).write_bytes(content)
    assert pq.read_table(view / PART, partitioning=None).num_rows > 0
    assert hidden in (view / PART).read_bytes()
    assert "belong to no column" in problem(sealed(view))


def moved(table: pa.Table, column: int, hidden: bytes) -> bytes:
    """A file in which something stands before that column: the offsets behind it are larger."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **PLAIN)
    raw: bytes = sink.getvalue().to_pybytes()
    footer = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    group = pq.read_metadata(pa.BufferReader(raw)).row_group(0)
    tail = raw[footer:-8]
    for j in reversed(range(column, group.num_columns)):
        chunk = group.column(j)
        for at in {chunk.data_page_offset, chunk.dictionary_page_offset or 0} - {0}:
            old, new = zigzag(at), zigzag(at + len(hidden))
            assert len(old) == len(new)
            tail = tail.replace(old, new)
    first = group.column(column)
    at = first.dictionary_page_offset or first.data_page_offset
    return raw[:at] + hidden + raw[at:footer] + tail + raw[-8:]


def zigzag(number: int) -> bytes:
    """A field of 64 bits, as the footer has it."""
    number, found = number * 2, b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return b"\x26" + found + bytes([number])


def test_another_writer(view: Path) -> None:
    """Its name is a text of any length, too."""
    raw = (view / PART).read_bytes()
    assert raw.count(b"parquet-cpp-arrow version") == 1
    (view / PART).write_bytes(
        raw.replace(b"parquet-cpp-arrow version", b"the true age is 41; 42; 4")
    )
    assert "another writer" in problem(sealed(view))


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.voile")), ids=lambda path: path.stem)
def test_sound_releases_have_nothing_of_that_kind(path: Path) -> None:
    found = examine(path)
    assert found.ok and found.whole, found.problems


# ---------------------------------------------------------------------- signs of zero


def signs(table: pa.Table, name: str) -> pa.Table:
    """One zero in two is -0.0, which no comparison tells from 0.0."""
    place = table.column_names.index(name)
    values = np.array(table.column(name)).copy()
    zeros = np.flatnonzero(values == 0)[::2]
    assert len(zeros)
    values[zeros] = -0.0
    return table.set_column(place, table.schema.field(place), pa.array(values, pa.float64()))


TEMPERATURES = pa.table({
    "temp": [0.0, 1.5] * 100, "age": [i % 10 for i in range(200)], "d": ["x", "y", "z", "x"] * 50,
})  # fmt: skip


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"prior": 0.01}, "data/"),
        ({"method": "mondrian", "qi": ["age", "temp"], "sensitive": ["d"], "k": 5}, "data/"),
        ({"method": "anatomy", "qi": ["age", "d"], "sensitive": ["temp"], "l": 2}, "sensitive/"),
        ({"method": "conjuncts", "delta": 5.0, "direct": True}, "data/"),
    ],
    ids=["view", "classes", "buckets", "counts"],
)  # fmt: skip
def test_a_zero_has_the_sign_that_is_listed(
    options: dict[str, Any], where: str, tmp_path: Path
) -> None:
    release = voile.publish(TEMPERATURES, to=tmp_path / "z.voile", simulate_seed=3, **options)

    def changed(table: pa.Table) -> pa.Table:
        return signs(table, "temp") if "temp" in table.column_names else table

    folder = forged(release, tmp_path / "f.voile", changed, where, rows=release.manifest.rows)
    assert "zeros of both signs" in problem(folder)


def test_a_table_with_negative_zeros_is_published(tmp_path: Path) -> None:
    table = TEMPERATURES.set_column(0, "temp", pa.array([-0.0, 1.5] * 100))
    release = voile.publish(table, prior=0.01, to=tmp_path / "z.voile", simulate_seed=3)
    assert examine(release.path).ok


# ---------------------------------------------------------------------- collected rows


def test_rows_that_are_stated_to_be_collected_are_not_called_plausible(tmp_path: Path) -> None:
    """One word in a manifest turns the look at the rows off; then that is said."""
    table = pa.table(
        {"age": [i % 10 for i in range(2000)], "sick": [i % 2 == 0 for i in range(2000)]}
    )
    release = voile.perturb(table, 0.5, to=tmp_path / "p.voile", simulate_seed=1)
    parameters = release.manifest.parameters.model_dump() | {"collected": True}
    guarantee = release.manifest.guarantee.model_dump()
    guarantee["unit"] = local_unit(release, guarantee)
    folder = forged(
        release, tmp_path / "true.voile", lambda old: table.cast(old.schema),
        parameters=parameters, guarantee=guarantee,
    )  # fmt: skip
    found = examine(folder)
    assert found.ok, found.problems
    assert found.rows_plausible is None and found.rows_unseen is not None
    assert found.rows_unseen.startswith("the rows were not looked at because")
    shown = run("verify", str(folder))
    assert "the rows were not looked at because" in " ".join(shown.stdout.split())
    told = json.loads(run("verify", str(folder), "--json").stdout)
    assert told["rows_plausible"] is None and told["rows_unseen"] == found.rows_unseen


def local_unit(release: Any, guarantee: dict[str, Any]) -> str:
    """What the guarantee of collected rows is about."""
    from voile.kinds.perturbed.manifest import local_guarantee

    found = local_guarantee(release.mechanism, release.schema, collected=True)
    assert found.unit != guarantee["unit"]
    return found.unit


def test_a_guarantee_without_one_of_its_columns_is_not_described(tmp_path: Path) -> None:
    """It opens, for terms are looked at by verifying; an error of Python came through."""
    shutil.copytree(FIXTURES / "combined.voile", tmp_path / "c.voile")
    guarantee = json.loads((tmp_path / "c.voile" / MANIFEST).read_bytes())["guarantee"]
    guarantee["columns"].popitem()
    folder = sealed(tmp_path / "c.voile", guarantee=guarantee)
    with pytest.raises(voile.errors.ReleaseError, match="does not fit together"):
        voile.open(folder).describe()
    assert examine(folder).terms is False
