"""Text, Parquet and Arrow files, folders and patterns of them."""

from __future__ import annotations

import difflib
import glob
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from voile.engines.duckdb.sources.common import (
    ARROW,
    DATABASES,
    PACKED,
    PARQUET,
    READS,
    SOURCE,
    SPREADSHEETS,
    TEXT,
    Connection,
    check_names,
    copy_stream,
    make_view,
    paths,
    reading,
)
from voile.engines.duckdb.sources.databases import attach_duckdb, attach_sqlite
from voile.engines.duckdb.sources.foreign import attach_foreign
from voile.engines.duckdb.sources.text import TextNotes, attach_text
from voile.engines.duckdb.sources.typed import refuse_options
from voile.errors import TableError, UsageError
from voile.foreign import ENDINGS
from voile.options.reading import ReadingOptions
from voile.storage import is_url


def files_of(text: str) -> list[Path]:
    """The files that a table's name stands for; none if it is not made of files, or not there."""
    try:
        return [] if is_url(text) else _find(_path_and_table(text)[0])[1]
    except (UsageError, OSError, ValueError):
        return []


def _path_and_table(text: str) -> tuple[str, str]:
    """FILE::TABLE apart, unless a file has that very name."""
    path, _, table = text.rpartition("::")
    return (text, "") if not path or Path(text).exists() else (path, table)


def attach_path(con: Connection, text: str, options: ReadingOptions, made: TextNotes) -> str:
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
    if kind == "foreign":
        attach_foreign(con, files[0], table, options, made)
        return re.split(r"[.*?\[]", files[0].name)[0]
    if kind != "text":
        refuse_options(options, path)
    if kind in {"duckdb", "sqlite"}:
        return (attach_duckdb if kind == "duckdb" else attach_sqlite)(con, files[0], table)
    if table:
        raise UsageError(
            f"{path} is not a database, so '::{table}' names nothing in it",
            hint=f"name the file alone: {path}",
        )
    if kind == "text":
        attach_text(con, files, options, made)
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
                hint=_folder_hint(text, path),
            )
        return path, files
    if not glob.has_magic(text):
        raise _missing(text, path)
    root = next(folder for folder in path.parents if folder.is_dir())
    found = (p for p in sorted(root.glob(str(path.relative_to(root)))) if p.is_file())
    files = [p for p in found if not p.name.startswith(".")]
    if not files:
        beside = tables_beside(path)
        raise UsageError(f"no file matches {text}", hint=f"there is {beside}" if beside else "")
    return root, files


def _folder_hint(text: str, path: Path) -> str:
    """What in a folder without Parquet files could be named instead."""
    endings = {p.suffix.lower() for p in path.iterdir() if p.is_file()}
    found = next((ending for ending in TEXT if ending in endings), ".csv")
    return f"other files are named themselves, e.g. '{text.rstrip('/')}/*{found}'"


def _missing(text: str, path: Path) -> UsageError:
    if not path.parent.is_dir():
        above = next(folder for folder in path.parents if folder.is_dir())
        near = f"; did you mean {path.name!r} in {above}?" if (above / path.name).exists() else ""
        hint = f"there is no folder {path.parent}{near}"
        return UsageError(f"there is no file {text}", hint=hint)
    names = [entry.name for entry in path.parent.iterdir()]
    near = " or ".join(map(repr, difflib.get_close_matches(path.name, names)))
    return UsageError(f"there is no file {text}", hint=f"did you mean {near}?" if near else "")


def tables_beside(path: Path) -> str:
    """Some files of the ending that a pattern has, where it looks."""
    folder = next(folder for folder in path.parents if folder.is_dir())
    found = sorted(p.name for p in folder.iterdir() if p.suffix and p.suffix == path.suffix)
    return ", ".join(map(repr, found[:5])) + (", …" if len(found) > 5 else "")


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
    if last in TEXT and magic.startswith(b"PAR1"):
        return "parquet"
    if last in ENDINGS:
        return "foreign"
    if last in SPREADSHEETS:
        hint = f"save it as {file.with_suffix('.xlsx').name}, and read that"
        raise UsageError(f"{file} is of a kind of spreadsheet that is not read", hint=hint)
    if last in PARQUET + ARROW:
        return "parquet" if last in PARQUET else "arrow"
    raise UsageError(f"{file} is not of a kind that is read", hint=f"what is read: {READS}")


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
