"""Releases that are small on disk and large in memory: refused within bounds of memory and time.

Each is opened and verified in a process of its own, of which the largest memory is measured.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from tests.support.forging import sealed
from tests.support.paths import TESTS
from tests.support.soak import rounds, some
from voile.errors import ReleaseError
from voile.kinds import opening
from voile.kinds.footers import PAGE_BYTES
from voile.kinds.manifest import MANIFEST, File, file_entry
from voile.kinds.release import read_manifest

VIEW = TESTS / "fixtures" / "version1" / "view.voile"
PART = "data/part-00000.parquet"
MEMORY, SECONDS = 500, 10.0
"""Megabytes and CPU-seconds that opening or verifying anything may take."""
CHILD = """
import json, resource, sys
import voile
found = []
for what in (voile.open, voile.verify):
    try:
        what(sys.argv[1])
        found.append("opened")
    except voile.errors.VoileError as error:
        found.append(error.message)
used = resource.getrusage(resource.RUSAGE_SELF)
# ru_maxrss would count what the process had that this one was forked from.
[most] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(json.dumps([found, int(most) / 1024, used.ru_utime + used.ru_stime]))
"""


def opened_apart(folder: Path) -> list[str]:
    """What opening and verifying say, within the bounds."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    said, memory, seconds = json.loads(done.stdout)
    assert memory < MEMORY, (memory, said)
    assert seconds < SECONDS, (seconds, said)
    return list(said)


def view(tmp_path: Path) -> Path:
    to = tmp_path / "bomb.voile"
    shutil.copytree(VIEW, to)
    return to


# ---------------------------------------------------------------------- manifests


def stated(**changes: Any) -> Callable[[], bytes]:
    return lambda: json.dumps(
        json.loads((VIEW / MANIFEST).read_bytes()) | changes, indent=1, ensure_ascii=False
    ).encode()


MANIFESTS: dict[str, Callable[[], bytes]] = {
    "deep": lambda: b"[" * 30_000_000,
    "deep objects": lambda: b'{"a":' * 90_000,
    "lists": lambda: b"[" + b"[]," * 30_000_000 + b"[]]",
    "objects": lambda: b"[" + b"{}," * 3_000_000 + b"{}]",
    "numbers": lambda: b"[" + b"1," * 4_500_000 + b"1]",
    "keys": lambda: b"{" + b",".join(b'"%d":1' % i for i in range(900_000)) + b"}",
    "a number": lambda: b"[" + b"9" * 30_000_000 + b"]",
    "a text": lambda: b'["' + b"x" * 90_000_000 + b'"]',
    "wrong entries": stated(disclosed=[True] * 590_000),
    "wrong files": stated(files=[{"path": "x"}] * 9_000),
    "many files": stated(files=[{}] * 20_000),
    "many attributes": stated(attributes=[{"name": "a"}] * 20_000),
    "values": stated(attributes=[{"name": "a", "kind": "integer", "values": [*range(590_000)]}]),
    "bins": stated(attributes=[{"name": "a", "kind": "numeric", "bins": [*range(590_000)]}]),
    "a name": stated(name="x" * 10**7),
    "a version": stated(version=10**4000),
    "null bytes": lambda: b"\0" * 100_000_000,
}


@pytest.mark.parametrize("name", some([*MANIFESTS], 3))
def test_a_manifest_of_any_kind_is_refused_within_bounds(name: str, tmp_path: Path) -> None:
    folder = view(tmp_path)
    (folder / MANIFEST).write_bytes(MANIFESTS[name]())
    assert all("manifest.json" in said or "version" in said for said in opened_apart(folder))


@pytest.mark.parametrize("name", [name for name in MANIFESTS if name not in ("values", "bins")])
def test_it_is_refused_before_it_is_parsed_or_at_the_first_error(name: str) -> None:
    raw = MANIFESTS[name]()[: opening.MANIFEST_BYTES + 1]
    begin = time.process_time()
    with pytest.raises(ReleaseError):
        read_manifest(raw)
    assert time.process_time() - begin < SECONDS / 2


def test_a_release_with_a_hundred_thousand_listed_values_opens(tmp_path: Path) -> None:
    values = [f"place {i}" for i in range(100_000)]
    table = pa.table({"place": values[:2000] * 2, "member": [True, False] * 2000})
    schema = {"attributes": [{"name": "place", "kind": "categorical", "values": values},
                             {"name": "member", "kind": "boolean"}]}  # fmt: skip
    release = voile.perturb(table, to=tmp_path / "x.voile", schema=schema, retention=0.5)
    assert opened_apart(release.path) == ["opened", "opened"]


# ---------------------------------------------------------------------- Parquet files


def with_part(folder: Path, content: bytes, rows: int) -> Path:
    """The release with that file as its rows, sealed."""
    (folder / PART).write_bytes(content)
    data = json.loads((folder / MANIFEST).read_bytes())
    data["files"] = [
        entry if entry["path"] != PART
        else file_entry(folder, folder / PART, rows).model_dump(mode="json")
        for entry in data["files"]
    ]  # fmt: skip
    data["rows"] = rows
    (folder / MANIFEST).write_text(json.dumps(data), encoding="utf-8")
    return resealed(folder)


def resealed(folder: Path) -> Path:
    """The manifest as it is, in its one spelling and with its digest."""
    from voile.kinds.registry import kind_of

    data = json.loads((folder / MANIFEST).read_bytes())
    manifest = kind_of(data["method"]).manifest.model_validate(data)
    (folder / MANIFEST).write_text(manifest.sealed().text(), encoding="utf-8")
    return folder


def framed(footer: bytes) -> bytes:
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def groups_footer(size: int, chunks: int) -> bytes:
    """A footer of row groups with as many empty column chunks each, three bytes a chunk."""
    schema = b"\x19\x2c" + b"\x48\x01r\x15\x02\x00" + b"\x15\x04\x25\x00\x18\x01a\x00"
    group = b"\x19\xfc" + varint(chunks) + b"\x26\x00\x00" * chunks + b"\x16\x00\x16\x00\x00"
    count = size // len(group)
    return b"\x15\x02" + schema + b"\x16\x00\x19\xfc" + varint(count) + group * count + b"\x00"


FOOTERS: dict[str, bytes] = {
    "a megabyte of chunks": groups_footer(10**6, 1000),
    "eight megabytes of chunks": groups_footer(8 * 10**6, 1000),
    "eight megabytes of groups": groups_footer(8 * 10**6, 1),
    "ninety megabytes": b"\x19" * 90_000_000,
    "a list without end": b"\x15\x02\x19\xfc\xff\xff\xff\x7f",
    "a text without end": b"\x15\x02\x48\xff\xff\xff\x7f",
    "structures in structures": b"\x1c" * 900_000,
    "nothing": b"",
}


@pytest.mark.parametrize("name", some([*FOOTERS], 3))
def test_a_footer_of_any_kind_is_refused_within_bounds(name: str, tmp_path: Path) -> None:
    folder = with_part(view(tmp_path), framed(FOOTERS[name]), 1000)
    assert all(PART in said for said in opened_apart(folder))


def test_a_page_that_unpacks_to_much_is_refused(tmp_path: Path) -> None:
    """Forty million zeros are a page of some kilobytes, and 320 MB in memory."""
    folder = view(tmp_path)
    names = voile.open(folder).schema.names
    zeros = pa.table({name: np.zeros(5_000_000, dtype=np.int64) for name in names})
    sink = pa.BufferOutputStream()
    pq.write_table(zeros, sink, use_dictionary=False, compression="zstd", data_page_size=2**30,
                   row_group_size=2**30, max_rows_per_page=2**30,
                   write_statistics=False)  # fmt: skip
    content = sink.getvalue().to_pybytes()
    assert len(content) < 10**6
    assert PAGE_BYTES < 5_000_000 * 8
    said = opened_apart(with_part(folder, content, 5_000_000))
    assert all("unpacks" in one for one in said)


def test_pages_of_a_few_values_unpack_to_little(tmp_path: Path) -> None:
    """Thirty pages of one text each, of 30 MB: a few kilobytes, and a gigabyte in memory."""
    folder = view(tmp_path)
    names = voile.open(folder).schema.names
    text = pa.array(["a" * (30 * 2**20)], pa.large_string())
    rows = pa.table({name: pa.concat_arrays([text] * 30) for name in names[:1]})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, use_dictionary=False, compression="zstd", data_page_size=1,
                   write_batch_size=1, write_statistics=False)  # fmt: skip
    said = opened_apart(with_part(folder, sink.getvalue().to_pybytes(), 30))
    assert all("unpacks to 31,457" in one for one in said)


@pytest.mark.parametrize(("rows", "columns"), [(30_000, 1), (3_000, 12)])
def test_long_values_of_a_dictionary_are_not_copied(
    rows: int, columns: int, tmp_path: Path
) -> None:
    """A text of 60,000 characters is in the file once, and would be in memory once for a row."""
    text, names = "a" * 60_000, [f"w{i}" for i in range(columns)]
    table = pa.table({name: [text, "b"] * 50 for name in names})
    release = voile.publish(table, prior=0.01, to=tmp_path / "long.voile", simulate_seed=1)
    coded = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
    fields = [pa.field(name, coded.type, nullable=False) for name in names]
    pq.write_table(
        pa.table([coded] * columns, schema=pa.schema(fields)), release.path / PART,
        compression="zstd", store_schema=False, write_statistics=False,
    )  # fmt: skip
    assert (release.path / PART).stat().st_size < 10_000
    assert opened_apart(sealed(release.path))[0] == "opened"


def test_a_file_with_other_rows_than_stated_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    folder = view(tmp_path)
    content = (folder / PART).read_bytes()
    rows = pq.read_metadata(folder / PART).num_rows
    with pytest.raises(ReleaseError, match=f"has {rows} rows, not {rows + 1}"):
        voile.open(with_part(folder, content, rows + 1))


def test_more_rows_than_bytes_can_hold_are_refused() -> None:
    """A bomb of 240 million equal rows has some 200 kB; fifty million are no bomb."""
    entry = {"path": PART, "sha256": "0" * 64}
    opening.check_density(File(bytes=50_000, rows=50_000_000, **entry))
    opening.check_density(File(bytes=10**7, rows=10**9, **entry))
    with pytest.raises(ReleaseError, match="240,000,000 rows in 200,000 bytes"):
        opening.check_density(File(bytes=200_000, rows=240_000_000, **entry))


@pytest.mark.parametrize("method", some(["view", "perturbed", "mondrian"], 2))
def test_many_equal_rows_are_counted_within_bounds(method: str, tmp_path: Path) -> None:
    """Rows that cost nothing on disk are read as a stream."""
    folder = tmp_path / "bomb.voile"
    shutil.copytree(VIEW.with_name(f"{method}.voile"), folder)
    first = pq.read_table(folder / PART, partitioning=None).slice(0, 1)
    group = pa.table([pa.repeat(c[0], 2**20) for c in first.columns], schema=first.schema)
    count = rounds(12, 60) if method in ("mondrian", "anatomy") else rounds(5, 60)
    with pq.ParquetWriter(
        folder / PART, first.schema, compression="zstd", store_schema=False, write_statistics=False
    ) as w:
        for _ in range(count):
            w.write_table(group)
    sealed(folder)
    assert opened_apart(folder)[0] == "opened"


@pytest.mark.parametrize(
    ("method", "where", "count"),
    [("anatomy", "sensitive", 3), ("anatomy", "sensitive", 12), ("mondrian", "classes", 3),
     ("mondrian", "classes", 12), ("series", "history", 12)],
)  # fmt: skip
def test_files_beside_the_rows_are_read_within_bounds(
    method: str, where: str, count: int, tmp_path: Path
) -> None:
    """They are read as a whole: millions of equal rows, of which a byte holds hundreds."""
    folder = tmp_path / "bomb.voile"
    shutil.copytree(VIEW.with_name(f"{method}.voile"), folder)
    part = folder / where / "part-00000.parquet"
    first = pq.read_table(part, partitioning=None).slice(0, 1)
    group = pa.table([pa.repeat(c[0], 2**20) for c in first.columns], schema=first.schema)
    with pq.ParquetWriter(
        part, first.schema, compression="zstd", store_schema=False, write_statistics=False
    ) as w:
        for _ in range(count):
            w.write_table(group)
    said = opened_apart(sealed(folder, f"{where}/"))
    assert said[0] == "opened" and where in said[1]


def test_long_texts_beside_the_rows_are_not_copied(tmp_path: Path) -> None:
    """A sensitive value of 60,000 characters that a hundred thousand records have."""
    text = "a" * 60_000
    table = pa.table({"age": [i % 10 for i in range(100)], "d": [text, "b"] * 50})
    release = voile.publish(
        table, method="anatomy", l=2, qi=["age"], sensitive=["d"], to=tmp_path / "l.voile"
    )
    part = release.path / "sensitive" / "part-00000.parquet"
    old = pq.read_table(part, partitioning=None)
    coded = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int32)), pa.array([text]))
    columns = [coded if n == "d" else pa.repeat(old[n][0], 100_000) for n in old.column_names]
    fields = [
        pa.field(name, column.type, nullable=False)
        for name, column in zip(old.column_names, columns, strict=True)
    ]
    long = pa.table(columns, schema=pa.schema(fields))
    pq.write_table(long, part, compression="zstd", store_schema=False, write_statistics=False)
    said = opened_apart(sealed(release.path, "sensitive/"))
    assert said == ["opened", "sensitive/ lists a value of a class twice"]
