"""Every kind of source gives the same rows, and every refusal says what is wrong."""

from __future__ import annotations

import bz2
import contextlib
import datetime as dt
import gzip
import lzma
import os
import sqlite3
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

from tests.support.postgres import SECRET
from voile.engines import connect
from voile.engines.duckdb.sources import attach
from voile.engines.duckdb.sources.common import SOURCE
from voile.errors import TableError, UsageError
from voile.options.reading import ReadingOptions
from voile.query.quoting import quote_identifier, quote_literal
from voile.schema import Attribute, Schema, Values

NAMES = ['weird "name"', "naïve col", "select", "Born on", "weight, kg"]
ROWS = [
    (None, None, None, None, None),
    (1, "Zoë, \"the\" 'first'", True, dt.date(1970, 1, 1), 0.5),
    (2**40, "two\nlines; 日本", False, dt.date(2024, 2, 29), -1e-300),
    (-3, "?", True, dt.date(1899, 12, 31), 1e300),
    (None, "x", None, None, 61.0),
]
TYPES = [pa.int64(), pa.string(), pa.bool_(), pa.date32(), pa.float64()]
TABLE = pa.table(
    [
        pa.array(column, type=kind)
        for column, kind in zip(zip(*ROWS, strict=True), TYPES, strict=True)
    ],
    names=NAMES,
)
DUCKDB_TYPES = ["BIGINT", "VARCHAR", "BOOLEAN", "DATE", "DOUBLE"]

Con = duckdb.DuckDBPyConnection


@pytest.fixture
def con() -> Iterator[Con]:
    with duckdb.connect() as connection:
        yield connection


def rows(con: Con) -> list[tuple[Any, ...]]:
    return con.execute(f"FROM {SOURCE}").fetchall()


def described(con: Con) -> dict[str, str]:
    return {name: kind for name, kind, *_ in con.execute(f"DESCRIBE {SOURCE}").fetchall()}


def as_text(delimiter: str = ",") -> bytes:
    def field(value: object) -> str:
        if value is None:
            return ""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        quoted = isinstance(value, str)
        return '"' + text.replace('"', '""') + '"' if quoted else text

    lines = [delimiter.join(map(field, row)) for row in [tuple(NAMES), *ROWS]]
    return ("\n".join(lines) + "\n").encode()


# ------------------------------------------------------------------ one writer for each source


def write_bytes(name: str, content: Callable[[], bytes]) -> Callable[[Path], object]:
    def write(folder: Path) -> object:
        (folder / name).write_bytes(content())
        return folder / name

    return write


def write_zip(folder: Path) -> object:
    with zipfile.ZipFile(folder / "people.zip", "w") as archive:
        archive.writestr("deep/", "")
        archive.writestr("deep/people.tsv", as_text("\t"))
        archive.writestr("__MACOSX/deep/._people.tsv", b"junk")
    return str(folder / "people.zip")


def write_zst(folder: Path) -> object:
    with pa.output_stream(str(folder / "people.csv.zst"), compression="zstd") as stream:
        stream.write(as_text())
    return folder / "people.csv.zst"


def write_text_parts(folder: Path) -> object:
    head, *lines = as_text().decode().splitlines(keepends=True)
    (folder / "people-1.csv").write_text(head + lines[0] + lines[1])
    (folder / "people-2.csv").write_text(head + "".join(lines[2:]))
    (folder / "people-0.csv").write_text(head)
    return str(folder / "people-*.csv")


def write_parquet(name: str) -> Callable[[Path], object]:
    def write(folder: Path) -> object:
        pq.write_table(TABLE, folder / name)
        return folder / name

    return write


def write_parquet_folder(folder: Path) -> object:
    (folder / "people" / "deep").mkdir(parents=True)
    (folder / "people" / "_temporary").mkdir()
    pq.write_table(TABLE.slice(0, 2), folder / "people" / "a.parquet")
    pq.write_table(TABLE.slice(2), folder / "people" / "deep" / "b.pq")
    pq.write_table(TABLE, folder / "people" / "_temporary" / "c.parquet")
    (folder / "people" / "_SUCCESS").touch()
    return folder / "people"


def write_parquet_parts(folder: Path) -> object:
    write_parquet_folder(folder)
    return str(folder / "people" / "**" / "[ab].p*")


def write_arrow_file(folder: Path) -> object:
    with pa.ipc.new_file(folder / "people.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=2)
    return folder / "people.arrow"


def write_arrow_stream(folder: Path) -> object:
    with pa.ipc.new_stream(folder / "people.ipc", TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=2)
    return folder / "people.ipc"


def write_feather(folder: Path) -> object:
    pf.write_feather(TABLE, folder / "people.feather", compression="zstd")
    return folder / "people.feather"


def write_duckdb(folder: Path) -> object:
    with duckdb.connect(str(folder / "base.db")) as base:
        base.register("t", TABLE)
        base.execute("CREATE TABLE people AS FROM t")
    return folder / "base.db"


def write_duckdb_schema(folder: Path) -> object:
    with duckdb.connect(str(folder / "it's a base.duckdb")) as base:
        base.register("t", TABLE)
        base.execute('CREATE SCHEMA "o\'ther"; CREATE TABLE "o\'ther".people AS FROM t')
        base.execute("CREATE TABLE people AS SELECT 1 AS a")
        base.execute('CREATE VIEW v AS SELECT * FROM "o\'ther".people')
    return f"{folder}/it's a base.duckdb::o'ther.PEOPLE"


def write_sqlite(name: str, before: int = 0) -> Callable[[Path], object]:
    def write(folder: Path) -> object:
        columns = ", ".join(map(quote_identifier, NAMES))
        kinds = ["INTEGER", "TEXT", "BOOLEAN", "DATE", "REAL"]
        declared = ", ".join(
            f"{quote_identifier(n)} {k}" for n, k in zip(NAMES, kinds, strict=True)
        )
        values: list[tuple[object, ...]] = [(None,) * 5] * before
        values += [(a, b, c, None if d is None else d.isoformat(), e) for a, b, c, d, e in ROWS]
        with contextlib.closing(sqlite3.connect(folder / name)) as base, base:
            base.execute(f"CREATE TABLE all_people (id INTEGER PRIMARY KEY, {declared})")
            base.executemany(
                f"INSERT INTO all_people ({columns}) VALUES (?, ?, ?, ?, ?)",
                values,
            )
            base.execute(f"CREATE VIEW people AS SELECT {columns} FROM all_people")
        return f"{folder / name}::people"

    return write


def polars_frame(_: Path) -> object:
    return pl.DataFrame(TABLE)


def pandas_frame(_: Path) -> object:
    frame = TABLE.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    frame[NAMES[1]] = frame[NAMES[1]].astype(object)
    return frame.set_index(pd.Index(list("edcba"), name="index"))


class OneShot:
    """Something that has nothing but the Arrow protocol, and can be read only once."""

    def __init__(self) -> None:
        self.reader = TABLE.to_reader()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader.__arrow_c_stream__(requested_schema)


SOURCES: dict[str, Callable[[Path], object]] = {
    "csv": write_bytes("people.csv", as_text),
    "csv with semicolons": write_bytes("people.csv", lambda: as_text(";")),
    "csv with BOM": write_bytes("PEOPLE.CSV", lambda: b"\xef\xbb\xbf" + as_text()),
    "csv with CRLF": write_bytes(
        "people.csv", lambda: as_text().replace(b"\n", b"\r\n").replace(b"two\r\n", b"two\n")
    ),
    "tsv": write_bytes("people.tsv", lambda: as_text("\t")),
    "txt": write_bytes("people.txt", lambda: as_text("|")),
    "csv.gz": write_bytes("people.csv.gz", lambda: gzip.compress(as_text())),
    "tsv.gz": write_bytes("people.tsv.gz", lambda: gzip.compress(as_text("\t"))),
    "csv.zst": write_zst,
    "csv.bz2": write_bytes("people.csv.bz2", lambda: bz2.compress(as_text())),
    "csv.xz": write_bytes("people.csv.xz", lambda: lzma.compress(as_text())),
    "zip": write_zip,
    "csv parts": write_text_parts,
    "name like a pattern": write_bytes("people.[a]*'?.csv", as_text),
    "parquet": write_parquet("people.parquet"),
    "pq": write_parquet("people[1].PQ"),
    "parquet folder": write_parquet_folder,
    "parquet parts": write_parquet_parts,
    "arrow file": write_arrow_file,
    "arrow stream": write_arrow_stream,
    "feather": write_feather,
    "duckdb": write_duckdb,
    "duckdb schema": write_duckdb_schema,
    "sqlite": write_sqlite("odd name?#%é.sqlite"),
    "pandas": pandas_frame,
    "polars": polars_frame,
    "polars lazy": lambda _: pl.DataFrame(TABLE).lazy(),
    "pyarrow table": lambda _: TABLE,
    "pyarrow batch": lambda _: TABLE.combine_chunks().to_batches()[0],
    "pyarrow reader": lambda _: TABLE.to_reader(max_chunksize=2),
    "pyarrow dataset": lambda _: ds.dataset(TABLE),
    "arrow protocol": lambda _: OneShot(),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_table_twice(kind: str, con: Con, tmp_path: Path) -> None:
    spec = SOURCES[kind](tmp_path)
    name = attach(con, spec)
    in_memory = not isinstance(spec, str | Path)
    assert name.lower() in ({"table"} if in_memory else {"people", "people_1"})
    assert described(con) == dict(zip(NAMES, DUCKDB_TYPES, strict=True))
    assert rows(con) == ROWS
    assert rows(con) == ROWS
    quoted = quote_identifier(NAMES[0])
    assert con.execute(f"SELECT sum({quoted}) FROM {SOURCE}").fetchall() == [(2**40 - 2,)]


@pytest.mark.parametrize("kind", SOURCES)
def test_casts_do_not_depend_on_the_source(kind: str, con: Con, tmp_path: Path) -> None:
    attach(con, SOURCES[kind](tmp_path))
    text, number = (quote_identifier(NAMES[i]) for i in (1, 4))
    found = con.execute(f"SELECT TRY_CAST({text} AS BIGINT), {number}::TEXT FROM {SOURCE}")
    assert found.fetchall() == [(None, None if r[4] is None else str(r[4])) for r in ROWS]


def test_attaching_again_replaces_what_was_attached(con: Con, tmp_path: Path) -> None:
    kinds = [
        "csv",
        "parquet",
        "duckdb",
        "pyarrow table",
        "sqlite",
        "pandas",
        "arrow stream",
        "duckdb",
    ]
    for i, kind in enumerate(kinds):
        attach(con, pa.table({"a": [i]}))
        assert rows(con) == [(i,)]
        folder = tmp_path / str(i)
        folder.mkdir()
        attach(con, SOURCES[kind](folder))
        assert rows(con) == ROWS


def test_a_connection_can_be_used_after_a_refusal(con: Con, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("a,b\n1\n1,2,3\n")
    (tmp_path / "bad.parquet").write_text("a,b\n1\n1,2,3\n" * 20)
    for name in ("bad.csv", "bad.parquet", "none.csv"):
        with pytest.raises((TableError, UsageError)):
            attach(con, tmp_path / name)
        assert attach(con, TABLE) == "table"
        assert rows(con) == ROWS


def test_relative_paths_and_home(con: Con, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet("people.parquet")(tmp_path)
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for spec in ("people.parquet", "~/people.parquet", "sub/../people.parquet", "."):
        attach(con, spec)
        monkeypatch.chdir(tmp_path / "sub")
        assert rows(con) == ROWS
        monkeypatch.chdir(tmp_path)


def test_a_relation_of_the_same_connection(con: Con) -> None:
    assert attach(con, con.sql("SELECT 1 AS a UNION ALL SELECT 2")) == "table"
    assert rows(con) == [(1,), (2,)]


# --------------------------------------------------------------------------------- text files


def text_file(folder: Path, content: str, name: str = "t.csv") -> Path:
    (folder / name).write_text(content)
    return folder / name


def test_null_text_is_read_as_null(con: Con, tmp_path: Path) -> None:
    path = text_file(tmp_path, "a,b\n1,?\n?,it's\n3,\n")
    attach(con, path)
    assert rows(con) == [("1", "?"), ("?", "it's"), ("3", None)]
    attach(con, path, ReadingOptions(null_text=["?", "it's"]))
    assert rows(con) == [(1, None), (None, None), (3, None)]
    assert described(con)["a"] == "BIGINT"


def test_types_come_from_the_whole_file(con: Con, tmp_path: Path) -> None:
    attach(con, text_file(tmp_path, "a,b,zip\n" + "1,2,01234\n" * 60_000 + "x,2.5,9\n"))
    assert described(con) == {"a": "VARCHAR", "b": "DOUBLE", "zip": "VARCHAR"}
    assert con.execute(f"SELECT count(*), min(zip) FROM {SOURCE}").fetchall() == [(60_001, "01234")]


def test_types_come_from_all_parts(con: Con, tmp_path: Path) -> None:
    for i, part in enumerate(("1,,", "2,7,", "3,1.5,x")):
        text_file(tmp_path, f"a,b,c\n{part}\n", f"part-{i}.csv")
    assert attach(con, str(tmp_path / "part-*.csv")) == "part"
    assert rows(con) == [(1, None, None), (2, 7.0, None), (3, 1.5, "x")]


def test_a_header_over_text_columns_is_a_header(con: Con, tmp_path: Path) -> None:
    attach(con, text_file(tmp_path, "city,country\nOslo,Norway\n"))
    assert described(con) == {"city": "VARCHAR", "country": "VARCHAR"}
    assert rows(con) == [("Oslo", "Norway")]


def test_a_header_without_rows_is_a_table(con: Con, tmp_path: Path) -> None:
    attach(con, text_file(tmp_path, "a,b\n"))
    assert list(described(con)) == ["a", "b"]
    assert rows(con) == []


def test_no_row_is_taken_for_a_comment_or_a_preamble(con: Con, tmp_path: Path) -> None:
    attach(con, text_file(tmp_path, "a,b\n#1,2\n#3,4\nx,5\n"))
    assert rows(con) == [("#1", 2), ("#3", 4), ("x", 5)]


def test_one_column_of_text(con: Con, tmp_path: Path) -> None:
    attach(con, text_file(tmp_path, '"a,b"\nO\'Brien\n5" pipe\n'))
    assert described(con) == {"a,b": "VARCHAR"}
    assert rows(con) == [("O'Brien",), ('5" pipe',)]


def test_no_temporary_file_remains(
    con: Con, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    attach(con, SOURCES["csv.xz"](tmp_path))
    assert rows(con) == ROWS
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv is empty"),
        ("\n \n", "t.csv is empty"),
        ("39,State-gov,77516\n50,Private,83311\n", "a column of .*t.csv is named 39, a number"),
        ("a,1.5e3\n1,2\n", "is named 1.5e3, a number"),
    ],
)
def test_bad_headers(content: str, message: str, con: Con, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message) as caught:
        attach(con, text_file(tmp_path, content))
    if "empty" not in message:
        assert "header='no'" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a,b\n1,2\n1,2,3\n", "CSV Error on Line: 3: Expected Number of Columns: 2 Found: 3"),
        (b"a,b\n1,2\n1\n", "CSV Error on Line: 3: Expected Number of Columns: 2 Found: 1"),
        (b"# note\na,b\n1,2\n", "line 1 has 1 cell, and line 2 has 2"),
        (b'a,b\n"x"y,1\n', "CSV Error on Line: 2: Value with unterminated quote found"),
        ("a,b\né,1\n".encode("latin-1"), "CSV Error on Line: 2: .*not utf-8 encoded"),
    ],
)
def test_bad_lines(content: bytes, reason: str, con: Con, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(TableError, match=f"t.csv cannot be read: .*{reason}"):
        attach(con, tmp_path / "t.csv")


def test_the_bad_part_is_named(con: Con, tmp_path: Path) -> None:
    text_file(tmp_path, "a,b\n1,2\n", "p1.csv")
    (tmp_path / "p2.csv.bz2").write_bytes(bz2.compress(b"a,b\n1,2,3\n"))
    with pytest.raises(TableError, match=r"^.*/p2.csv.bz2 cannot be read: .*on Line: 2: Expected"):
        attach(con, str(tmp_path / "p*"))


def test_parts_with_other_columns(con: Con, tmp_path: Path) -> None:
    text_file(tmp_path, "a,b\n1,2\n", "p1.csv")
    text_file(tmp_path, "b,a\n1,2\n", "p2.csv")
    with pytest.raises(TableError, match=r"p2.csv does not have the column names of p1.csv"):
        attach(con, str(tmp_path / "p?.csv"))


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2", ".xz"])
def test_what_is_not_compressed(suffix: str, con: Con, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=rf"t.csv\{suffix} cannot be read: "):
        attach(con, text_file(tmp_path, "a,b\n1,2\n" * 20, f"t.csv{suffix}"))


def test_what_is_cut_off(con: Con, tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(os.urandom(9000).hex().encode())[:-50])
    (tmp_path / "t.csv.bz2").write_bytes(bz2.compress(b"a,b\n1,2\n")[:-5])
    for name in ("t.csv.gz", "t.csv.bz2"):
        with pytest.raises(TableError, match=f"{name} cannot be read: "):
            attach(con, tmp_path / name)


def test_archives_that_are_not_one_table(con: Con, tmp_path: Path) -> None:
    path = text_file(tmp_path, "a,b\n", "not.zip")
    with pytest.raises(TableError, match=r"not.zip cannot be read: it is not packed"):
        attach(con, path)
    for names in ((), ("a.csv", "b.csv"), ("a.json",)):
        with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
            for name in names:
                archive.writestr(name, "a,b\n1,2\n")
        held = ", ".join(names) or "no file"
        with pytest.raises(UsageError, match=f"t.zip holds {held}\n  hint: a .zip is read if"):
            attach(con, tmp_path / "t.zip")


# ------------------------------------------------------------------------ Parquet, Arrow, frames


def test_folders_named_for_values_hold_columns(con: Con, tmp_path: Path) -> None:
    for year in (2023, 2024):
        folder = tmp_path / "run=7" / "sales" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"a": [year % 100]}), folder / "x.parquet")
    sales = tmp_path / "run=7" / "sales"
    for spec in (f"{sales}/*/x.parquet", f"{sales}/year=*/x.parquet"):
        attach(con, spec)
        assert con.execute(f"SELECT a, year FROM {SOURCE}").fetchall() == [(23, 2023), (24, 2024)]
    attach(con, sales / "year=2023" / "x.parquet")
    assert rows(con) == [(23,)]


def test_parquet_parts_of_other_types_and_columns(con: Con, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["y"], "a": [2.5]}), tmp_path / "2.parquet")
    attach(con, tmp_path)
    assert rows(con) == [(1.0, "x"), (2.5, "y")]
    pq.write_table(pa.table({"a": [1], "c": ["x"]}), tmp_path / "3.parquet")
    with pytest.raises(TableError, match=r"3.parquet does not have the columns of 1.parquet"):
        attach(con, tmp_path)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather", "t.ipc"])
def test_text_that_is_named_otherwise(name: str, con: Con, tmp_path: Path) -> None:
    path = text_file(tmp_path, "a,b\n1,2\n" * 50, name)
    with pytest.raises(TableError, match=f"{name} cannot be read: ") as caught:
        attach(con, path)
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "column name 'a' appears twice"),
        (["a", "A"], "column name 'A' and 'a' differ only by case"),
        (["a", ""], "column 2 of .* has no name"),
    ],
)
def test_names_that_duckdb_would_change(
    names: list[str], message: str, con: Con, tmp_path: Path
) -> None:
    table = pa.table([[1], [2]], names=names)
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.ipc.new_file(tmp_path / "f.arrow", table.schema) as writer:
        writer.write_table(table)
    with pa.ipc.new_stream(tmp_path / "s.arrow", table.schema) as writer:
        writer.write_table(table)
    frame = pd.DataFrame([[1, 2]], columns=names)
    files = [tmp_path / name for name in ("t.parquet", "f.arrow", "s.arrow")]
    for spec in (*files, table, table.to_reader(), frame):
        with pytest.raises(TableError, match=message):
            attach(con, spec)


def test_frames_keep_categories_and_drop_the_index(con: Con) -> None:
    frame = pd.DataFrame({"c": pd.Categorical(["x", "y", None]), "n": [1.5, None, 2.0]})
    attach(con, frame.sort_values("n", ascending=False))
    assert described(con) == {"c": "VARCHAR", "n": "DOUBLE"}
    assert rows(con) == [(None, 2.0), ("x", 1.5), ("y", None)]
    attach(con, pl.DataFrame({"c": pl.Series(["x", None], dtype=pl.Categorical)}))
    assert rows(con) == [("x",), (None,)]
    attach(con, pd.DataFrame([[1, 2]]))
    assert list(described(con)) == ["0", "1"]


def test_objects_that_are_not_tables(con: Con) -> None:
    with pytest.raises(UsageError, match=r"the list is not a table\n  hint: a pandas, polars or"):
        attach(con, [1, 2])
    with pytest.raises(TableError, match="the DataFrame has no columns"):
        attach(con, pd.DataFrame())
    with pytest.raises(TableError, match="the Series cannot be read: "):
        attach(con, pl.Series("a", [1]))
    with pytest.raises(
        TableError, match=r"the DataFrame cannot be read: .*column o with type object"
    ):
        attach(con, pd.DataFrame({"o": pd.Series([1, "x"], dtype=object)}))


def test_datasets(con: Con) -> None:
    assert attach(con, "dataset:adult") == "adult"
    assert con.execute(f"SELECT count(*) FROM {SOURCE}").fetchall() == [(48_842,)]
    assert attach(con, "dataset:adult/boundary") == "adult"
    assert con.execute(f"SELECT count(*) FROM {SOURCE}").fetchall() == [(30_162,)]
    assert "fnlwgt" not in described(con)
    with pytest.raises(UsageError, match=r"'adlt'\n  hint: did you mean 'adult'"):
        attach(con, "dataset:adlt")


# ------------------------------------------------------------------------------ paths and names


def test_missing_files(con: Con, tmp_path: Path) -> None:
    text_file(tmp_path, "a\n1\n", "people.csv")
    with pytest.raises(UsageError, match=r"there is no file .*peple.csv\n.*mean 'people.csv'\?"):
        attach(con, tmp_path / "peple.csv")
    with pytest.raises(UsageError, match=r"there is no file .*zzz.db$"):
        attach(con, f"{tmp_path}/zzz.db::t")
    with pytest.raises(UsageError, match=r"there is no file .*\n  hint: there is no folder .*none"):
        attach(con, tmp_path / "none" / "people.csv")
    with pytest.raises(UsageError, match=r"no file matches .*q\*.csv"):
        attach(con, f"{tmp_path}/q*.csv")
    with pytest.raises(UsageError, match=r"no file matches .*none/\*.csv"):
        attach(con, f"{tmp_path}/none/*.csv")
    with pytest.raises(UsageError, match=r"folder .* holds no Parquet files"):
        attach(con, tmp_path)
    with pytest.raises(TableError, match=r"cannot be read: .*File name too long"):
        attach(con, "x" * 5000 + ".csv")


def test_files_of_no_known_kind(con: Con, tmp_path: Path) -> None:
    for name in ("t.json", "t", "t.gz", "t.json.gz", "t.parquet.gz"):
        with pytest.raises(
            UsageError, match=f"{name} is not of a kind that is read\n.*: .csv .tsv"
        ):
            attach(con, text_file(tmp_path, "x", name))
    with pytest.raises(
        UsageError, match=r"https:// is not read\n  hint: .*postgresql://"
    ) as caught:
        attach(con, f"https://me:{SECRET}@example.org/people.csv")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.arrow", "t.sqlite", "t.duckdb"])
def test_empty_files(name: str, con: Con, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    with pytest.raises(TableError, match=f"{name} is empty\n"):
        attach(con, tmp_path / name)


def test_an_empty_compressed_file(con: Con, tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(TableError, match=r"t.csv.gz is empty\n"):
        attach(con, tmp_path / "t.csv.gz")


def test_files_that_do_not_belong_together(con: Con, tmp_path: Path) -> None:
    write_parquet("a.parquet")(tmp_path)
    write_arrow_file(tmp_path)
    write_feather(tmp_path)
    for pattern, count in (("*", 3), ("people.*", 2)):
        with pytest.raises(UsageError, match=f"names {count} files that do not make one table"):
            attach(con, f"{tmp_path}/{pattern}")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("adult.csv", "adult"),
        ("my data-set.v2.csv", "my_data_set"),
        ("Données été.csv", "Donnees_ete"),
        ("2024.csv", "table"),
        ("日本.csv", "table"),
        ("_x.csv", "x"),
        ("order.csv", "order_table"),
    ],
)
def test_short_names(file: str, name: str, con: Con, tmp_path: Path) -> None:
    assert attach(con, text_file(tmp_path, "a\n1\n", file)) == name


def test_short_names_of_folders_and_patterns(con: Con, tmp_path: Path) -> None:
    folder = tmp_path / "people.d"
    folder.mkdir()
    write_parquet("a-1.parquet")(folder)
    for spec in (folder, f"{folder}/*.parquet", f"{folder}/**/[ab]*"):
        assert attach(con, spec) == ("people" if spec == folder else "people_d")
    assert attach(con, f"{folder}/a-*.parquet") == "a"


def test_quoting() -> None:
    assert quote_identifier('a"b') == '"a""b"'
    assert quote_literal("it's") == "'it''s'"


# ---------------------------------------------------------------------------------- databases


def test_a_database_is_known_by_its_bytes(con: Con, tmp_path: Path) -> None:
    base, _, table = str(write_sqlite("people.duckdb")(tmp_path)).partition("::")
    attach(con, f"{base}::{table}")
    assert rows(con) == ROWS
    with pytest.raises(TableError, match=r"t.db is neither a DuckDB nor a SQLite database"):
        attach(con, text_file(tmp_path, "a,b\n1,2\n" * 9, "t.db"))


def test_damaged_databases(con: Con, tmp_path: Path) -> None:
    (tmp_path / "t.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    (tmp_path / "t.duckdb").write_bytes(b"x" * 8 + b"DUCK" + b"x" * 5000)
    for name in ("t.sqlite", "t.duckdb"):
        with pytest.raises(TableError, match=f"{name} cannot be read: "):
            attach(con, tmp_path / name)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_the_table_of_a_database(kind: str, con: Con, tmp_path: Path) -> None:
    path = tmp_path / f"b.{kind}"
    base: Any = sqlite3.connect(path) if kind == "sqlite" else duckdb.connect(str(path))
    with contextlib.closing(base):
        if kind == "sqlite":
            base.execute("CREATE TABLE x (a)")
            base.execute("DROP TABLE x")
    with pytest.raises(TableError, match=f"b.{kind} holds no tables"):
        attach(con, path)
    con.execute("DETACH DATABASE IF EXISTS voile_database")
    base = sqlite3.connect(path) if kind == "sqlite" else duckdb.connect(str(path))
    with contextlib.closing(base):
        for i, name in enumerate(("people", "Places")):
            base.execute(f"CREATE TABLE {name} AS SELECT {i} AS a")
            base.commit() if kind == "sqlite" else None
    listed = "(people, Places|Places, people)"
    with pytest.raises(UsageError, match=rf"holds 2 tables: {listed}\n  hint: add ::table"):
        attach(con, path)
    for wanted in ("Places", "places", "main.places"):
        assert attach(con, f"{path}::{wanted}") == "Places"
        assert rows(con) == [(1,)]
    with pytest.raises(UsageError, match=r"no table 'peple' in .*\n.*did you mean 'people'\?"):
        attach(con, f"{path}::peple")
    with pytest.raises(UsageError, match=r"t.csv is not a database, so '::x' names nothing in it"):
        attach(con, f"{text_file(tmp_path, 'a')}::x")


def test_a_duckdb_file_is_not_written_to(con: Con, tmp_path: Path) -> None:
    path = Path(str(write_duckdb(tmp_path)))
    before = path.read_bytes()
    attach(con, path)
    with pytest.raises(duckdb.Error, match="read-only"):
        con.execute("CREATE TABLE voile_database.main.x AS SELECT 1")
    con.close()
    assert path.read_bytes() == before


def test_sqlite_types_do_not_depend_on_the_first_rows(con: Con, tmp_path: Path) -> None:
    attach(con, write_sqlite("p.sqlite", before=3000)(tmp_path))
    assert described(con) == dict(zip(NAMES, DUCKDB_TYPES, strict=True))
    assert rows(con)[3000:] == ROWS


def sqlite_table(folder: Path, declared: str, *values: object) -> Path:
    with contextlib.closing(sqlite3.connect(folder / "t.db")) as base, base:
        base.execute("DROP TABLE IF EXISTS t")
        base.execute(f"CREATE TABLE t (a {declared})")
        base.executemany("INSERT INTO t VALUES (?)", [(value,) for value in values])
    return folder / "t.db"


@pytest.mark.parametrize(
    ("declared", "values", "kind", "read"),
    [
        ("INTEGER", [1, 2.5], "DOUBLE", [1.0, 2.5]),
        ("INTEGER", [None], "BIGINT", [None]),
        ("FLOAT", [None], "DOUBLE", [None]),
        ("", [None], "VARCHAR", [None]),
        ("VARCHAR(9)", [], "VARCHAR", []),
        ("DATE", [], "DATE", []),
        ("DATE", ["31/12/2024"], "VARCHAR", ["31/12/2024"]),
        ("DATE", [1_700_000_000], "BIGINT", [1_700_000_000]),
        ("BOOLEAN", [0, 1, 2], "BIGINT", [0, 1, 2]),
        ("BLOB", [b"\0", None], "BLOB", [b"\0", None]),
        (
            "TIMESTAMP",
            ["2024-01-02 03:04:05", "2024-01-02 03:04:05.5"],
            "TIMESTAMP",
            [dt.datetime(2024, 1, 2, 3, 4, 5), dt.datetime(2024, 1, 2, 3, 4, 5, 500_000)],
        ),
    ],
)
def test_sqlite_types(
    declared: str, values: list[object], kind: str, read: list[object], con: Con, tmp_path: Path
) -> None:
    assert attach(con, sqlite_table(tmp_path, declared, *values)) == "t"
    assert described(con) == {"a": kind}
    assert rows(con) == [(value,) for value in read]


def test_sqlite_columns_of_mixed_types(con: Con, tmp_path: Path) -> None:
    message = (
        "column \"a\" of table 't' of .*t.db mixes integer and text values\n  hint: make a view"
    )
    with pytest.raises(TableError, match=message):
        attach(con, sqlite_table(tmp_path, "INTEGER", *range(3000), "x"))


# --------------------------------------------------------------------------------- PostgreSQL


def postgres_people(name: str) -> list[str]:
    kinds = ["bigint", "text", "boolean", "date", "numeric(310, 5)"]
    columns = ", ".join(f"{quote_identifier(n)} {k}" for n, k in zip(NAMES, kinds, strict=True))
    values = []
    for row in ROWS:
        texts = ["NULL" if value is None else quote_literal(str(value)) for value in row]
        values.append(f"({', '.join(texts)})")
    return [
        f"CREATE TABLE {name} ({columns})",
        f"INSERT INTO {name} VALUES {', '.join(values)}",
    ]


def test_postgres_gives_the_same_table_twice(con: Con, postgres: Callable[..., str]) -> None:
    url = postgres(*postgres_people("people"))
    expected = [(*row[:4], 0.0 if row[4] == -1e-300 else row[4]) for row in ROWS]
    for spec in (f"{url}::people", url, url.replace("postgresql", "postgres") + "::public.people"):
        assert attach(con, spec) == "people"
        assert described(con) == dict(zip(NAMES, DUCKDB_TYPES, strict=True))
        assert rows(con) == expected
        assert rows(con) == expected


def test_postgres_tables_in_schemas(con: Con, postgres: Callable[..., str]) -> None:
    url = postgres(
        "CREATE TABLE people AS SELECT 1 AS a",
        'CREATE SCHEMA "o\'ther"',
        'CREATE TABLE "o\'ther".people AS SELECT 2 AS a',
        'CREATE MATERIALIZED VIEW "o\'ther"."Seen" AS SELECT 3 AS a',
    )
    for table, name, value in (("people", "people", 1), ("o'ther.people", "people", 2)):
        assert attach(con, f"{url}::{table}") == name
        assert rows(con) == [(value,)]
    assert attach(con, f"{url}::o'ther.seen") == "Seen"
    with pytest.raises(UsageError, match=r"holds 3 tables: people, o'ther.Seen, o'ther.people"):
        attach(con, url)
    with pytest.raises(UsageError, match=r"no table 'peopel' in .*\n.*did you mean 'people'\?"):
        attach(con, f"{url}::peopel")


def test_postgres_types(con: Con, postgres: Callable[..., str]) -> None:
    url = postgres(
        "CREATE TYPE mood AS ENUM ('glad', 'sad')",
        "CREATE DOMAIN price AS numeric(9, 2)",
        """CREATE TABLE t AS SELECT 1.25::numeric AS n, 1.5::price AS p, 2.5::money AS m,
        'sad'::mood AS mood, 'ab'::char(5) AS c, '1.2.3.4'::inet AS ip, '{"a": 1}'::jsonb AS j,
        3::smallint AS i, '2024-01-02 03:04:05'::timestamp AS s, ARRAY[1, 2] AS l""",
    )
    attach(con, f"{url}::t")
    found = rows(con)
    stamp = dt.datetime(2024, 1, 2, 3, 4, 5)
    text = ("sad", "ab", "1.2.3.4/32", '{"a": 1}')
    assert found == [(1.25, 1.5, 2.5, *text, 3, stamp, "{1,2}")]


def test_postgres_names_and_empty_tables(con: Con, postgres: Callable[..., str]) -> None:
    url = postgres('CREATE TABLE t (a int, "A" int)', "CREATE TABLE e (a numeric, b date)")
    with pytest.raises(
        TableError, match="column name 'A' and 'a' differ only by case in table 't'"
    ):
        attach(con, f"{url}::t")
    attach(con, f"{url}::e")
    assert described(con) == {"a": "DOUBLE", "b": "DATE"}
    assert rows(con) == []


def test_postgres_errors_keep_the_password(con: Con, postgres: Callable[..., str]) -> None:
    url = postgres()
    wrong = url.replace("mine", "none")
    with pytest.raises(TableError, match=r"'none' on 127.0.0.1:\d+ cannot be read: .*not exist"):
        attach(con, f"{wrong}::t")
    with pytest.raises(TableError, match=r"database 'mine' .* holds no tables"):
        attach(con, url)
    other = url.replace("me:", "me:not-")
    with pytest.raises(TableError, match="password authentication failed") as caught:
        attach(con, f"{other}::t")
    assert SECRET not in str(caught.value)
    assert quote(SECRET) not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@host/mine::t",
        "postgresql://me:s3cr3t/x@host/mine",
        "postgresql://me:s3cr3t%zz@host/mine::t",
        "postgresql://me:s3cr3t::t",
        "postgresql://me:a::s3cr3t@host/mine",
        "postgresql://me:a b s3cr3t@host/mine::t",
    ],
)
def test_postgres_urls_that_would_be_quoted_back(url: str, con: Con) -> None:
    with pytest.raises(UsageError, match="the PostgreSQL URL is not well formed") as caught:
        attach(con, url)
    assert "s3cr3t" not in str(caught.value)


def test_postgres_servers_that_are_not_there(con: Con) -> None:
    pytest.importorskip("adbc_driver_postgresql")
    for url in (
        "postgresql://me:s3cr3t@127.0.0.1:1/mine::t",
        "postgresql://[::1]:1/mine?password=s3cr3t",
        "postgresql://127.0.0.1:1/mine?password=s3cr3t&s3cr3t=1",
    ):
        with pytest.raises(
            TableError, match=r"PostgreSQL database 'mine' on .* cannot be"
        ) as caught:
            attach(con, url)
        assert "s3cr3t" not in str(caught.value)


def test_postgres_without_its_driver(con: Con, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(UsageError, match=r"pip install 'voile\[postgres\]'"):
        attach(con, "postgresql://me@host/mine::t")


def test_a_broken_line_is_named_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "open.csv").write_text('a,b\n1,"secret\n3,4\n5,6\n')
    with pytest.raises(TableError, match=r"Line: 2: .*unterminated quote") as caught:
        attach(duckdb.connect(), tmp_path / "open.csv")
    assert "secret" not in str(caught.value)
    assert "3,4" not in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (["F", "F", ""], "VARCHAR", ["F", "F", None]),
        (["yes", "no"], "VARCHAR", ["yes", "no"]),
        (["t", "f"], "VARCHAR", ["t", "f"]),
        (["True", "FALSE", "true"], "BOOLEAN", [True, False, True]),
        (["true", "true"], "BOOLEAN", [True, True]),
    ],
)
def test_only_true_and_false_are_taken_for_truth_values(
    con: Con, tmp_path: Path, texts: list[str], kind: str, values: list[Any]
) -> None:
    """DuckDB would take F for false, and a table of women for one of falsehoods."""
    lines = "".join(f"{text},{i}\n" for i, text in enumerate(texts))
    file = tmp_path / "a.csv"
    file.write_text(f"sex,id\n{lines}", encoding="utf-8")
    attach(con, file)
    assert described(con)["sex"] == kind
    assert rows(con) == [(value, i) for i, value in enumerate(values)]


@pytest.mark.parametrize(
    "attribute",
    [
        Attribute("smokes", "boolean", Values((False, True))),
        Attribute("smokes", "categorical", Values(("no", "yes"))),
    ],
)
def test_a_codebook_says_whether_yes_is_a_truth_value(tmp_path: Path, attribute: Attribute) -> None:
    file = tmp_path / "a.csv"
    file.write_text("smokes\n" + "yes\nno\nno\n" * 20, encoding="utf-8")
    table, schema = connect(file), Schema((attribute,))
    table.check_kinds(schema)
    (codes,), _ = table.columns_of_codes(schema, drop_nulls=False)
    assert np.bincount(codes).tolist() == [40, 20]
