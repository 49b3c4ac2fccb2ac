"""Text files as the world writes them: read where it is sure, asked about where it is not."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import io
import re
import sqlite3
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voile
from voile.engines.duckdb.sources import cells
from voile.engines.duckdb.sources.common import SOURCE
from voile.engines.table import Table
from voile.errors import VoileError
from voile.options.reading import ReadingOptions
from voile.schema import Schema

D = dt.date


def read(folder: Path, content: str | bytes, name: str = "t.csv", **how: Any) -> Table:
    data = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(data)
    return voile.read(folder / name, **how)


def values(table: Table, column: str) -> list[Any]:
    rows, _ = table.rows([column])
    found: list[Any] = rows.column(0).to_pylist()
    return found


@pytest.mark.parametrize(
    ("content", "column", "expected"),
    [
        ("a;b\nx;1,5\ny;2\n", "b", [1.5, 2.0]),
        ("a;b\nx;1.234,5\ny;12,25\n", "b", [1234.5, 12.25]),
        ("a;b\n0,5;1.234\n1,25;56.789\n", "b", [1234, 56789]),
        ('a,b\nx,"1,234,567"\ny,12\n', "b", [1234567, 12]),
        ('a,b\nx,"1,234"\ny,12\n', "b", [1234, 12]),
        ("a\tb\nx\t1 234,5\ny\t7,5\n", "b", [1234.5, 7.5]),
        ("b\n31/12/2020\n01/02/2020\n", "b", [D(2020, 12, 31), D(2020, 2, 1)]),
        ("b\n12/31/2020\n01/02/2020\n", "b", [D(2020, 12, 31), D(2020, 1, 2)]),
        ("b;c\n31.12.2020;01.02.2020\n1.2.2020;2.2.2020\n", "c", [D(2020, 2, 1), D(2020, 2, 2)]),
        ("b\n2020-12-31\n2020-02-01\n", "b", [D(2020, 12, 31), D(2020, 2, 1)]),
        ("b\n31-Dec-2020\n1-Feb-2020\n", "b", [D(2020, 12, 31), D(2020, 2, 1)]),
        ('b\n"Dec 31, 2020"\n"February 1, 2020"\n', "b", [D(2020, 12, 31), D(2020, 2, 1)]),
        ("b,c\n555.0,1\n,2\n12.0,3\n", "b", [555, None, 12]),
        ("b\n007\n012\n", "b", ["007", "012"]),
        ("c,1960,1961,1962\nA,1.5,2,3\n", "1960", [1.5]),
        (",x\n0,5\n1,6\n", "column1", [0, 1]),
        ("\n\na,b\n1,2\n", "b", [2]),
        ('a,b\n1,"x\ny"\n2,"z, ""q"""\n', "b", ["x\ny", 'z, "q"']),
        ("name;height, cm;weight, kg\nx;1;2\ny;3;4\n", "height, cm", [1, 3]),
        ("a|b\n1|2\n", "b", [2]),
    ],
)
def test_what_is_sure_is_read(
    content: str, column: str, expected: list[Any], tmp_path: Path
) -> None:
    assert values(read(tmp_path, content), column) == expected


def test_names_that_are_missing_or_taken_are_made(tmp_path: Path) -> None:
    table = read(tmp_path, "a,A,,column3\n1,2,3,4\n")
    assert list(table.columns) == ["a", "A_2", "column3_2", "column3"]
    assert len(table.notes) == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_encodings_that_show_themselves(encoding: str, tmp_path: Path) -> None:
    table = read(tmp_path, "name,n\nZoë,1\n".encode(encoding))
    assert values(table, "name") == ["Zoë"]
    assert list(table.columns) == ["name", "n"]


def test_packed_files_are_known_by_their_bytes(tmp_path: Path) -> None:
    assert values(read(tmp_path, gzip.compress(b"a,b\n1,2\n")), "b") == [2]


R = '"","age","sex","ok"\n"1",33,"m",TRUE\n"2",NA,"f",NA\n"3",41,NA,FALSE\n'


def test_na_is_never_silent(tmp_path: Path) -> None:
    table = read(tmp_path, R)
    found = {finding.column: finding for finding in table.findings()}
    assert {n: (f.what, dict(f.texts), f.stops) for n, f in found.items()} == {
        "age": ("missing", {"NA": 1}, True),
        "ok": ("missing", {"NA": 1}, True),
        "sex": ("missing", {"NA": 1}, False),
    }
    with pytest.raises(VoileError, match="column 'age' holds numbers, and 'NA' in 1 row") as stop:
        table.infer(["age", "sex"], "error")
    assert "add na=True" in str(stop.value)
    table.infer(["sex"], "error")  # a category may be called NA


def test_na_is_read_with_one_flag(tmp_path: Path) -> None:
    table = read(tmp_path, R, na=True)
    assert [values(table, name) for name in ("age", "sex", "ok")] == [
        [33, None, 41],
        ["m", "f", None],
        [True, None, False],
    ]
    assert list(table.findings()) == []
    kept = read(tmp_path, R, na=False)
    assert values(kept, "age") == ["33", "NA", "41"]
    kept.infer(["age"], "error")


@pytest.mark.parametrize(
    "text", ["NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "-", ".", "?"]
)
def test_cousins_of_na_among_numbers(text: str, tmp_path: Path) -> None:
    content = f"x,y\n1,a\n{text},b\n2.5,c\n"
    (finding,) = read(tmp_path, content).findings()
    assert (finding.what, dict(finding.texts), finding.stops) == ("missing", {text: 1}, True)
    assert values(read(tmp_path, content, na=True), "x") == [1.0, None, 2.5]


def test_values_that_look_like_na_are_kept(tmp_path: Path) -> None:
    codes = ["NA", "DE", "FR", "US", "GB", "IT", "ES", "PT", "NO"]
    content = "country,rh\n" + "".join(f"{code},{'-+'[i % 2]}\n" for i, code in enumerate(codes))
    table = read(tmp_path, content, na=True)
    assert values(table, "country") == codes
    assert set(values(table, "rh")) == {"-", "+"}
    assert {f.what for f in table.findings()} == {"maybe-missing"}


def test_sentinels_are_offered(tmp_path: Path) -> None:
    content = "age,days,z\n1,999,-3\n2,999,-9\n-999,999,2\n3,5,4\n"
    found = {f.column: f for f in read(tmp_path, content).findings()}
    assert {n: (f.what, f.settled_by) for n, f in found.items()} == {
        "age": ("sentinel", (("null_text", "-999"),)),
        "days": ("sentinel", (("null_text", "999"),)),
    }


def test_what_can_be_read_in_two_ways_is_asked(tmp_path: Path) -> None:
    content = 'n,day\n"1,234",11/12/2020\n"2,999",01/02/2020\n'
    asked = {f.column: f.settled_by for f in read(tmp_path, content).findings() if f.stops}
    assert asked == {
        "n": (("decimal", ","), ("thousands", ","), ("decimal", ".")),
        "day": (("dates", "dmy"), ("dates", "mdy"), ("dates", "text")),
    }
    first = read(tmp_path, content, decimal=",", dates="dmy")
    assert (values(first, "n"), values(first, "day")) == (
        [1.234, 2.999],
        [D(2020, 12, 11), D(2020, 2, 1)],
    )
    second = read(tmp_path, content, thousands=",", dates="mdy")
    assert (values(second, "n"), values(second, "day")) == (
        [1234, 2999],
        [D(2020, 11, 12), D(2020, 1, 2)],
    )
    last = read(tmp_path, content, decimal=".", dates="text")
    assert list(last.findings()) == []


def test_years_of_two_digits_are_not_guessed(tmp_path: Path) -> None:
    content = "day\n31/12/20\n01/02/20\n"
    assert read(tmp_path, content).kind("day") == "categorical"
    assert values(read(tmp_path, content, dates="dmy"), "day") == [D(2020, 12, 31), D(2020, 2, 1)]


def test_options_as_words() -> None:
    options = ReadingOptions(null_text=["-9", "a b"], na=True, separator="tab", dates="dmy", skip=2)
    assert options.words() == [
        "--null-text=-9", "--null-text", "a b", "--na", "--separator", "tab", "--dates", "dmy",
        "--skip", "2",
    ]  # fmt: skip
    assert options.separator == "\t"


def zipped(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


LATIN = "a,b\n1,x\n2,Zoë\n".encode("latin-1")
WRONG: list[tuple[str, str | bytes, dict[str, Any], str, dict[str, Any] | str]] = [
    # name, content, options, what the message says, and options that mend it or words of the hint
    ("t.csv", LATIN, {}, "Line: 3: byte 13", {"encoding": "cp1252"}),
    ("t.csv", b"a,b\n1,\x81\n", {}, "Line: 2: byte 7", {"encoding": "latin-1"}),
    ("t.csv", LATIN, {"encoding": "utf-16"}, "cannot be read as utf-16", "encoding="),
    ("t.csv", b"a,b\n1,\x81\n", {"encoding": "cp1252"}, "byte 7", {"encoding": "latin-1"}),
    ("t.csv", "a,b\n1,2\n1\n", {}, "Line: 3: .* Found: 1", {"bad_rows": "drop"}),
    ("t.csv", "a,b\n1,2\n1,2,3\n", {}, "Line: 3: .* Found: 3", {"bad_rows": "drop"}),
    ("t.csv", 'a,b\n1,2\n"x"y,1\n', {}, "Line: 3: .*unterminated quote", {"bad_rows": "drop"}),
    ("t.csv", "My report\na,b\n1,2\n", {}, "line 1 has 1 cell, and line 2 has 2", {"skip": 1}),
    ("t.csv", "My report\n\na,b\n1,2\n", {}, "line 1 has 1 cell, and line 3 has 2", {"skip": 2}),
    ("t.csv", "a,b\n1,2\n", {"skip": 9}, "9 lines or fewer", "leave out skip=9"),
    ("t.csv", "39,x,77\n50,y,83\n", {}, "is named 39, a number", {"header": "no"}),
    ("t.csv", "a,1.5e3\n1,2\n", {}, "is named 1.5e3, a number", {"header": "yes"}),
    ("t.csv", "", {}, "t.csv is empty", "name a file"),
    ("t.csv", "\n \n", {}, "t.csv is empty", "first line names the columns"),
    ("t.csv", b"\x7fELF" * 9 + b"\0\1" + b"x" * 200, {}, "is a zero byte", "write the table"),
    ("t.csv", zipped({"a.csv": "x\n1\n", "b.csv": "x\n1\n"}), {}, "holds a.csv, b.csv", "one file"),
    ("t.xls", b"\xd0\xcf\x11\xe0", {}, "kind of spreadsheet that is not read", "t.xlsx"),
    ("t.csv", zipped({"[Content_Types].xml": "", "b": ""}), {}, "is a spreadsheet", "t.xlsx"),
    ("t.sas", "a", {}, "not of a kind that is read", ".csv"),
    ("t.csv", "a,b\n1,2\n", {"separator": "ab"}, "'ab' is not one character", "separator=';'"),
    ("t.csv", "a,b\n1,2\n", {"encoding": "klingon"}, "encoding='klingon' is not known", "cp1252"),
    ("t.csv", "a,b\n1,2\n", {"dates": "ddmm"}, "dates='ddmm' is not known", "dmy"),
    ("t.csv", "a,b\n1,2\n", {"header": "maybe"}, "header='maybe' is not known", "yes or no"),
    ("t.csv", "a,b\n1,2\n", {"decimal": ";"}, "decimal=';' is not known", "use . or ,"),
    ("t.csv", "a,b\n1,2\n", {"thousands": "x"}, "thousands='x' is not known", "a space"),
    ("t.csv", "a,b\n1,2\n", {"decimal": ",", "thousands": ","}, "same character", "thousands='.'"),
    ("t.csv", "a,b\n1,2\n", {"skip": -1}, "skip=-1 must be at least 0", "0 leaves none"),
    ("t.csv", "a,b\n1,2\n", {"bad_rows": "keep"}, "bad_rows='keep' is not known", "drop"),
    ("t.csv.gz", "a,b\n1,2\n" * 20, {}, "t.csv.gz cannot be read: it is not packed", "mv .*t.csv"),
    ("t.parquet", "a,b\n1,2\n" * 20, {}, "t.parquet cannot be read", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "how", "message", "mended"), WRONG)
def test_wrong_inputs_are_answered(
    name: str,
    content: str | bytes,
    how: dict[str, Any],
    message: str,
    mended: dict[str, Any] | str,
    tmp_path: Path,
) -> None:
    with pytest.raises(VoileError, match=message) as refused:
        read(tmp_path, content, name, **how)
    if isinstance(mended, str):
        assert re.search(mended, refused.value.hint)
        return
    ((option, value),) = mended.items()
    assert f"{option}={value!r}" in refused.value.hint
    assert len(read(tmp_path, content, name, **how | mended)) >= 1


TYPED = pa.table(
    {
        "age": ["33", "NA", "41"], "height": ["1,5", "2,25", "3"], "day": ["31/12/2020"] * 3,
        "zip": ["12345", "54321", "11111"], "sex": ["m", "NA", "f"], "n": [1, -999, 3],
    }
)  # fmt: skip


def typed_sources(folder: Path) -> Iterator[object]:
    """The same table in a Parquet file, two databases, and memory."""
    pq.write_table(TYPED, folder / "t.parquet")
    yield folder / "t.parquet"
    yield TYPED
    yield TYPED.to_pandas().astype({"sex": "category"})
    with duckdb.connect(folder / "t.duckdb") as con:
        con.register("typed", TYPED)
        con.execute("CREATE TABLE t AS FROM typed")
    yield folder / "t.duckdb"
    with contextlib.closing(sqlite3.connect(folder / "t.sqlite")) as base, base:
        base.execute("CREATE TABLE t (age TEXT, height TEXT, day TEXT, zip TEXT, sex TEXT, n INT)")
        rows = [tuple(row.values()) for row in TYPED.to_pylist()]
        base.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
    yield folder / "t.sqlite"


def test_texts_of_typed_sources_are_read_as_options_say(tmp_path: Path) -> None:
    for source in typed_sources(tmp_path):
        plain = voile.read(source)
        assert values(plain, "age") == ["33", "NA", "41"]  # its owner calls it text
        assert [(f.column, f.what, f.stops) for f in plain.findings()] == [
            ("age", "missing", False)
        ]
        table = voile.read(source, na=True, decimal=",", dates="dmy", null_text="-999")
        assert {name: values(table, name) for name in TYPED.column_names} == {
            "age": [33, None, 41],
            "height": [1.5, 2.25, 3.0],
            "day": [D(2020, 12, 31)] * 3,
            "zip": [12345, 54321, 11111],  # whole numbers with decimal commas, too
            "sex": ["m", None, "f"],
            "n": [1, None, 3],
        }
        assert list(table.findings()) == []
        only = voile.read(source, na=True)
        assert values(only, "age") == [33, None, 41]
        assert values(only, "zip") == TYPED["zip"].to_pylist()
        assert values(only, "height") == TYPED["height"].to_pylist()


@pytest.mark.parametrize(
    "option", [{"separator": ";"}, {"encoding": "cp1252"}, {"header": "no"}, {"skip": 2}]
)
def test_how_a_text_file_is_written_is_refused_elsewhere(
    option: dict[str, Any], tmp_path: Path
) -> None:
    for source in ("dataset:scores", TYPED, next(iter(typed_sources(tmp_path)))):
        with pytest.raises(VoileError, match="says how a text file is written") as refused:
            voile.read(source, **option)
        assert "leave out" in refused.value.hint


def test_a_codebook_names_the_flag_for_na(tmp_path: Path) -> None:
    content = "age\n33\nNA\n41\n"
    schema = Schema.from_dict(
        {"attributes": [{"name": "age", "kind": "integer", "range": [0, 99], "null": True}]}
    )
    table = read(tmp_path, content)
    with pytest.raises(VoileError, match="row 2, column 'age': 'NA'") as refused:
        table.check_kinds(schema)
    assert refused.value.hint.endswith("if 'NA' stands for NULL, add na=True")
    read(tmp_path, content, na=True).check_kinds(schema)


def test_columns_are_counted_together_as_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One query for many columns finds what one for each does."""
    made = {
        "a": ["1,5", "NA", "x", "1.234,5"], "b": ["31/12/2020", "1.2.20", "", "Dec 1, 2020"],
        "c": ["true", "false", "?", "TRUE"], "d": ["2020-01-02T10:00", "12 345", "-.5", "1e3"],
        "e": ["", "", "", ""], "f g": ["some text 12", "+7", "-,5", "2 Feb 2021 10:30"],
    }  # fmt: skip
    con = duckdb.connect()
    con.register("made", pa.table(made))
    con.execute(f"CREATE TEMP TABLE {SOURCE} AS FROM made")
    together = cells.count(con, list(made), SOURCE, 4)
    monkeypatch.setattr(cells, "TOGETHER", 1)
    monkeypatch.setattr(cells, "ANY_BEGINNING", "(?s).*")
    monkeypatch.setattr(cells, "ANY_DATE", "(?s).*")
    assert cells.count(con, list(made), SOURCE, 4) == together
    assert [found.filled for found in together] == [4, 3, 4, 4, 0, 4]


def test_options_do_not_change_what_is_plain(tmp_path: Path) -> None:
    """Where all is plain, our reading of texts gives what DuckDB's sniffer gives."""
    lines = [f"{i},{i / 8},{'ab'[i % 2]},{str(i % 3 == 0).lower()},2020-01-{i % 28 + 1:02}"
             for i in range(200)]  # fmt: skip
    content = "n,x,t,b,d\n" + "\n".join(lines) + "\n"
    sniffed, ours = read(tmp_path, content), read(tmp_path, content, dates="ymd")
    assert dict(sniffed.columns) == dict(ours.columns)
    for name in sniffed.columns:
        assert values(sniffed, name) == values(ours, name)
