"""What is read of a Parquet footer without Arrow is what Arrow reads of a sound one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.paths import TESTS
from voile.errors import ReleaseError
from voile.kinds.footers import checked_metadata, row_groups

FILES = sorted((TESTS / "fixtures" / "version1").rglob("*.parquet"))


def compared(path: Path) -> None:
    sound = pq.read_metadata(path)
    with path.open("rb") as file:
        found = row_groups(file.fileno(), path.name, sound.num_rows)
    assert len(found) == sound.num_row_groups
    for i, group in enumerate(found):
        assert group.rows == sound.row_group(i).num_rows
        for j, (begin, end) in enumerate(group.columns):
            chunk = sound.row_group(i).column(j)
            first = chunk.dictionary_page_offset or chunk.data_page_offset
            assert (begin, end - begin) == (first, chunk.total_compressed_size)
    assert checked_metadata(path, path.name, sound.num_rows).num_columns == sound.num_columns


@pytest.mark.parametrize("path", FILES, ids=lambda path: "/".join(path.parts[-3:]))
def test_of_every_file_that_voile_has_written(path: Path) -> None:
    compared(path)


@pytest.mark.parametrize(
    "options",
    [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}, {"write_statistics": False},
     {"row_group_size": 999}, {"compression": "none"}, {"write_page_index": True}],
)  # fmt: skip
def test_of_files_however_they_were_written(options: dict[str, object], tmp_path: Path) -> None:
    texts = [None if i % 7 == 0 else f"text {i % 50}" for i in range(5000)]
    table = pa.table({"n": range(5000), "x": [i / 3 for i in range(5000)], "t": texts,
                      "b": [i % 2 == 0 for i in range(5000)]})  # fmt: skip
    pq.write_table(table, tmp_path / "x.parquet", **options)
    compared(tmp_path / "x.parquet")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1PAR1", b"PAR1" + b"\0" * 4 + b"PAR1"])
def test_what_is_no_parquet_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(ReleaseError, match=r"x\.parquet"):
        checked_metadata(tmp_path / "x.parquet", "x.parquet", 5)
