"""Data frames of R."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import lzma
import struct
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyreadr
import pytest

import voile
from voile.errors import VoileError
from voile.foreign.rdata import read_rdata

ATTRIBUTES, OBJECT, TAG = 0x200, 0x100, 0x400


def whole(number: int) -> bytes:
    return struct.pack(">i", number)


def word(text: str) -> bytes:
    return whole(0x00040009) + whole(len(text)) + text.encode()


def texts(*found: str) -> bytes:
    return whole(16) + whole(len(found)) + b"".join(map(word, found))


def pairs(**values: bytes) -> bytes:
    """A pairlist of attributes; dots stand for underscores, as R has row.names."""
    listed = (whole(2 | TAG) + whole(1) + word(name.replace("_", ".")) + value
              for name, value in values.items())  # fmt: skip
    return b"".join(listed) + whole(254)


def frame(rows: int, **columns: bytes) -> bytes:
    """A data frame as R's saveRDS writes it."""
    body = whole(19 | OBJECT | ATTRIBUTES) + whole(len(columns)) + b"".join(columns.values())
    numbered = whole(13) + whole(2) + whole(-(2**31)) + whole(-rows)
    said = pairs(names=texts(*columns), row_names=numbered, **{"class": texts("data.frame")})
    return b"X\n" + whole(2) + whole(0x30602) + whole(0x20300) + body + said


def days(*numbers: float) -> bytes:
    values = b"".join(struct.pack(">d", number) for number in numbers)
    body = whole(14 | OBJECT | ATTRIBUTES) + whole(len(numbers)) + values
    return body + pairs(**{"class": texts("Date")})


def factor(codes: list[int], levels: list[str]) -> bytes:
    body = whole(13 | OBJECT | ATTRIBUTES) + whole(len(codes)) + b"".join(map(whole, codes))
    return body + pairs(levels=texts(*levels), **{"class": texts("factor")})


def test_a_data_frame_as_r_writes_it(tmp_path: Path) -> None:
    file = tmp_path / "t.rds"
    content = frame(2, day=days(18263, 18264), size=factor([1, 3], ["small", "middle", "large"]))
    file.write_bytes(gzip.compress(content))
    found = read_rdata(file, "", {})
    assert found.rows["day"].to_pylist() == [dt.date(2020, 1, 2), dt.date(2020, 1, 3)]
    assert found.rows["size"].to_pylist() == ["small", "large"]
    assert found.categories == {"size": ["small", "middle", "large"]}
    table = voile.read(file)
    assert list(table.infer(["size"], "error")["size"]) == ["small", "middle", "large"]
    assert table.kind("day") == "date"


def labelled(*numbers: float) -> bytes:
    """A column of R's package haven."""
    values = b"".join(struct.pack(">d", number) for number in numbers)
    body = whole(14 | OBJECT | ATTRIBUTES) + whole(len(numbers)) + values
    of_labels = whole(14 | ATTRIBUTES) + whole(2) + struct.pack(">2d", 1, 2)
    named = of_labels + pairs(names=texts("male", "female"))
    return body + pairs(labels=named, **{"class": texts("haven_labelled", "vctrs_vctr", "double")})


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_labels_that_are_not_read_are_said(
    tmp_path: Path, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voile.foreign.rdata.BLOCK", 7)  # the class lies across blocks
    file = tmp_path / "t.rds"
    file.write_bytes(pack(frame(2, sex=labelled(1, 2))))
    found = read_rdata(file, "", {})
    assert found.rows["sex"].to_pylist() == [1, 2]
    assert "read as codes" in found.notes[0] and "haven::as_factor" in found.notes[0]
    file.write_bytes(pack(frame(2, size=factor([1, 2], ["haven", "labelled"]))))
    assert read_rdata(file, "", {}).notes == []


def test_numbers_texts_truth_values_and_gaps(tmp_path: Path) -> None:
    columns = {
        "whole": [1.0, 2.0],
        "real": [1.5, None],
        "text": ["é", None],
        "truth": [True, False],
    }
    file = tmp_path / "t.rds"
    pyreadr.write_rds(str(file), pd.DataFrame(columns))
    found = read_rdata(file, "", {})
    assert found.rows.schema.field("whole").type == pa.int64()
    assert found.rows["real"].to_pylist() == [1.5, None]
    assert found.rows["text"].to_pylist() == ["é", None]
    assert found.rows["truth"].to_pylist() == [True, False]


def test_the_object_is_named_or_the_only_one(tmp_path: Path) -> None:
    file = tmp_path / "t.RData"
    one, two = pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [2]})
    pyreadr.write_rdata(str(file), {"one": one, "two": two})
    with pytest.raises(VoileError, match="holds 2 objects: one, two"):
        read_rdata(file, "", {})
    assert read_rdata(file, "two", {}).rows.to_pydict() == {"b": [2]}
    with pytest.raises(VoileError, match="no object 'three'"):
        read_rdata(file, "three", {})


def test_what_holds_no_data_frame_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.rds"
    file.write_bytes(b"X\n" + b"\xff" * 50)
    with pytest.raises(VoileError, match=r"t\.rds cannot be read"):
        read_rdata(file, "", {})
