"""Text, Parquet and Arrow files, folders and patterns of them."""

from __future__ import annotations

import bz2
import csv
import difflib
import glob
import io
import lzma
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from voile.engines.duckdb.sources.common import (
    ARROW,
    DATABASES,
    PACKED,
    PARQUET,
    READS,
    SOURCE,
    TEXT,
    Connection,
    check_names,
    copy_stream,
    listed,
    make_view,
    paths,
    reading,
)
from voile.engines.duckdb.sources.databases import attach_duckdb, attach_sqlite
from voile.errors import TableError, UsageError
from voile.files import temporary_folder
from voile.query.quoting import quote_identifier, quote_literal

_HEADER_HINT = "the first line of a text file must hold the column names"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def files_of(text: str) -> list[Path]:
    """The files that a table's name stands for; none if it is not made of files, or not there."""
    try:
        return [] if "://" in text else _find(_path_and_table(text)[0])[1]
    except (UsageError, OSError, ValueError):
        return []


def _path_and_table(text: str) -> tuple[str, str]:
    """FILE::TABLE apart, unless a file has that very name."""
    path, _, table = text.rpartition("::")
    return (text, "") if not path or Path(text).exists() else (path, table)


def attach_path(con: Connection, text: str, null_text: Sequence[str]) -> str:
    """Name what a path, a folder or a pattern holds `source`; the table's name."""
    path, table = _path_and_table(text)
    root, files = _find(path)
    kinds = {_kind(file) for file in files}
    kind = kinds.pop()
    if kinds or (len(files) > 1 and kind not in {"text", "parquet"}):
        raise UsageError(
            f"{path} names {len(files)} files that do not make one table",
            hint="several files are read together if all are text files or all are Parquet",
        )
    if kind in {"duckdb", "sqlite"}:
        return (attach_duckdb if kind == "duckdb" else attach_sqlite)(con, files[0], table)
    if table:
        raise UsageError(f"{path} is not a database, so '::{table}' names nothing in it")
    if kind == "text":
        _attach_text(con, files, null_text)
    elif kind == "parquet":
        _attach_parquet(con, root, files)
    else:
        _attach_arrow(con, files[0])
    return re.split(r"[.*?\[]", Path(path).resolve().name)[0] or root.name


def _find(text: str) -> tuple[Path, list[Path]]:
    """The files that a path, a folder or a pattern names, and the folder that was looked in."""
    path = Path(text).expanduser().absolute()
    if path.is_file():
        return path.parent, [path]
    if path.is_dir():
        # Spark and others keep what is not part of the table under names with _ or . in front.
        found = (p for p in sorted(path.rglob("*")) if p.suffix.lower() in PARQUET and p.is_file())
        files = [p for p in found if not re.search(r"(^|/)[._]", p.relative_to(path).as_posix())]
        if not files:
            raise UsageError(
                f"folder {text} holds no Parquet files",
                hint=f"other files are named themselves, e.g. '{text.rstrip('/')}/*.csv'",
            )
        return path, files
    if not glob.has_magic(text):
        raise _missing(text, path)
    root = next(folder for folder in path.parents if folder.is_dir())
    found = (p for p in sorted(root.glob(str(path.relative_to(root)))) if p.is_file())
    files = [p for p in found if not p.name.startswith(".")]
    if not files:
        raise UsageError(f"no file matches {text}")
    return root, files


def _missing(text: str, path: Path) -> UsageError:
    if not path.parent.is_dir():
        return UsageError(f"there is no file {text}", hint=f"there is no folder {path.parent}")
    names = [entry.name for entry in path.parent.iterdir()]
    near = " or ".join(map(repr, difflib.get_close_matches(path.name, names)))
    return UsageError(f"there is no file {text}", hint=f"did you mean {near}?" if near else "")


def _kind(file: Path) -> str:
    """What a file is: by its first bytes if a database, whose names vary, else by its name."""
    with file.open("rb") as stream:
        magic = stream.read(16)
    last = file.suffix.lower()
    if not magic:
        raise TableError(f"{file} is empty", hint="name a file that holds a table")
    if magic == b"SQLite format 3\0" or magic[8:12] == b"DUCK":
        return "duckdb" if magic[8:12] == b"DUCK" else "sqlite"
    if last in DATABASES:
        raise TableError(f"{file} is neither a DuckDB nor a SQLite database")
    if last == ".zip" or (Path(file.stem).suffix.lower() if last in PACKED else last) in TEXT:
        return "text"
    if last in PARQUET + ARROW:
        return "parquet" if last in PARQUET else "arrow"
    raise UsageError(f"{file} is not of a kind that is read", hint=f"what is read: {READS}")


def _attach_text(con: Connection, files: Sequence[Path], null_text: Sequence[str]) -> None:
    with temporary_folder() as folder:
        plain = [_unpacked(file, folder / str(i)) for i, file in enumerate(files)]
        delimiter, names = _header(plain[0], files[0])
        for file, shown in zip(plain[1:], files[1:], strict=True):
            if _header(file, shown) != (delimiter, names):
                raise TableError(f"{shown} does not have the column names of {files[0].name}")
        # Skipped lines and comments are switched off: the sniffer would drop rows silently.
        options = (
            f"delim = {quote_literal(delimiter)}, quote = '\"', header = true, skip = 0, "
            f"comment = '', strict_mode = true, nullstr = {listed(['', *null_text])}, "
            "hive_partitioning = false"
        )
        _copy_text(con, dict(zip(plain, files, strict=True)), names, options)


def _copy_text(
    con: Connection, files: Mapping[Path, Path], names: Sequence[str], options: str
) -> None:
    """Copy the files, given with what the user calls them, into a temporary table.

    A view would not do: DuckDB 2.0 pushes casts down into the file, so that TRY_CAST raises and
    a number cast to text is spelled as in the file; and every scan would sniff the types again.
    """
    whole = f"sample_size = -1, files_to_sniff = -1, names = {listed(names)}"
    rows = f"read_csv({paths(files)}, {options}, {whole})"
    try:
        con.execute(f"CREATE TEMP TABLE {SOURCE} AS FROM {rows}")
        if spelled := _spelled_otherwise(con, rows):
            columns = ", ".join(f"{quote_literal(name)}: 'VARCHAR'" for name in spelled)
            kept = f"read_csv({paths(files)}, {options}, {whole}, types = {{{columns}}})"
            con.execute(f"CREATE OR REPLACE TEMP TABLE {SOURCE} AS FROM {kept}")
    except duckdb.Error:
        # A sniffer that fails says no more than that; reading it all as text says where and why.
        columns = ", ".join(f"{quote_literal(name)}: 'VARCHAR'" for name in names)
        plain = f"{options}, escape = '\"', auto_detect = false, columns = {{{columns}}}"
        for file, shown in files.items():
            with reading(str(shown)):
                con.execute(f"SELECT count(*) FROM read_csv({paths([file])}, {plain})").fetchall()
        raise


def _spelled_otherwise(con: Connection, rows: str) -> list[str]:
    """Columns taken for truth values whose texts are not 'true' and 'false'.

    A column of F alone, or of yes and no, is text until a codebook says that it is not.
    """
    described = con.execute(f"DESCRIBE {SOURCE}").fetchall()
    truths = [str(name) for name, kind, *_ in described if kind == "BOOLEAN"]
    if not truths:
        return []
    texts = f"{rows[:-1]}, all_varchar = true)"
    spelled = ", ".join(
        f"bool_and(lower({quote_identifier(name)}) IN ('true', 'false'))" for name in truths
    )
    plain = con.execute(f"SELECT {spelled} FROM {texts}").fetchone() or ()
    return [name for name, is_plain in zip(truths, plain, strict=True) if is_plain is False]


def _unpacked(file: Path, folder: Path) -> Path:
    """A file that DuckDB can read: itself, or a copy in `folder`."""
    suffix = file.suffix.lower()
    if suffix not in {".bz2", ".xz", ".zip"}:
        return file
    folder.mkdir()
    if suffix == ".zip":
        with zipfile.ZipFile(file) as archive, _only_member(archive, file) as packed:
            return _save(packed, folder / f"table{Path(packed.name).suffix}")
    with (bz2.open if suffix == ".bz2" else lzma.open)(file) as packed:
        return _save(packed, folder / file.stem)


def _only_member(archive: zipfile.ZipFile, file: Path) -> IO[bytes]:
    names = [name for name in archive.namelist() if not re.search(r"/$|^__MACOSX/", name)]
    if len(names) != 1 or Path(names[0]).suffix.lower() not in TEXT:
        raise UsageError(
            f"{file} holds {', '.join(names) or 'no file'}",
            hint=f"a .zip is read if it holds one file and that is {' or '.join(TEXT)}",
        )
    return archive.open(names[0])


def _save(packed: Any, target: Path) -> Path:
    with target.open("wb") as copy:
        shutil.copyfileobj(packed, copy)
    return target


def _header(file: Path, shown: Path) -> tuple[str, list[str]]:
    """The delimiter, that which parts the first line into the most names, and those names."""
    packing = {".gz": "gzip", ".zst": "zstd"}.get(file.suffix.lower())
    with pa.input_stream(str(file), compression=packing) as stream:
        text = stream.read(2**20).decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise TableError(
            f"{shown} is empty", hint="the first line names the columns, each other line is a row"
        )
    tabs = ".tsv" in (file.suffix.lower(), Path(file.stem).suffix.lower())
    delimiter, names = "", list[str]()
    for candidate in "\t" if tabs else ",;\t|":
        found = next(csv.reader(io.StringIO(text, newline=""), delimiter=candidate), [])
        if len(found) > len(names):
            delimiter, names = candidate, [name.strip() for name in found]
    check_names(names, str(shown), hint=_HEADER_HINT)
    number = next(filter(_NUMBER.fullmatch, names), None)
    if number is not None:
        raise TableError(f"a column of {shown} is named {number}, a number", hint=_HEADER_HINT)
    return delimiter, names


def _attach_parquet(con: Connection, root: Path, files: Sequence[Path]) -> None:
    schemas = []
    for file in files:
        with reading(str(file)):
            schemas.append(pq.read_schema(file))
        check_names(schemas[-1].names, str(file))
        if set(schemas[-1].names) != set(schemas[0].names):
            raise TableError(f"{file} does not have the columns of {files[0].name}")
    # A folder such as year=2024 holds a column, but only below the folder that the user named.
    hive = any("=" in str(file.parent.relative_to(root)) for file in files)
    union = any(schema.types != schemas[0].types for schema in schemas)
    options = f"hive_partitioning = {hive}, union_by_name = {union}"
    make_view(con, f"FROM read_parquet({paths(files)}, {options})")


def _attach_arrow(con: Connection, file: Path) -> None:
    import pyarrow.dataset as ds  # noqa: PLC0415  (slow to load, and rarely needed)

    with file.open("rb") as stream:
        has_footer = stream.read(6) == b"ARROW1"
    if has_footer:  # batches can be found, and read when they are wanted
        with pa.ipc.open_file(file) as batches:
            check_names(batches.schema.names, str(file))
        con.register(SOURCE, ds.dataset(file, format="ipc"))
    else:
        with file.open("rb") as stream, pa.ipc.open_stream(stream) as batches:
            check_names(batches.schema.names, str(file))
            copy_stream(con, batches)
