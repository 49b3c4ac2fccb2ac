"""Tables as CSV and as Parquet, read again before they have their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from voile.errors import TableError
from voile.formulas import is_formula
from voile.kinds.exported import ExportTable
from voile.kinds.table_files import formula_cells, text_columns, without_formulas

Place = Callable[[Path], Path]
Written = tuple[int, list[str], int]
"""Rows, notes, and cells that a spreadsheet would compute."""


@dataclass(frozen=True)
class PlacedTable:
    """A table with the file that it goes to."""

    table: ExportTable
    path: Path


def checked_rows(path: Path, written: int, found: int) -> None:
    """Refuse a file that does not hold what was written to it: a disk may be full or broken."""
    if written != found:
        raise TableError(
            f"{str(path)!r} holds {found:,} rows after {written:,} were written",
            hint="look at the disk, and try again",
        )


def parts_of(table: ExportTable) -> Iterator[Any]:
    """Its rows, some at a time; at least one part, which may have none."""
    some = False
    for part in table.parts:
        some = True
        yield part
    if not some:
        yield table.columns.empty_table()


def write_csv(placed: Sequence[PlacedTable], place: Place, *, csv_safe: bool) -> Written:
    """Each table as a CSV file of its own."""
    rows = formulas = 0
    for one in placed:
        beside, written = place(one.path), 0
        with beside.open("wb") as file:
            for number, part in enumerate(parts_of(one.table)):
                shown = without_formulas(part) if csv_safe else part
                formulas += 0 if csv_safe else formulas_in([part], names=number == 0)
                pacsv.write_csv(shown, file, pacsv.WriteOptions(include_header=number == 0))
                written += part.num_rows
        options = pacsv.ParseOptions(newlines_in_values=True)
        with pacsv.open_csv(beside, parse_options=options, convert_options=as_text(one)) as read:
            checked_rows(one.path, written, sum(batch.num_rows for batch in read))
        rows += written
    return rows, [], formulas


def as_text(one: PlacedTable) -> Any:
    """Cells are not parsed: only counted."""
    return pacsv.ConvertOptions(column_types=dict.fromkeys(one.table.columns.names, pa.string()))


def formulas_in(tables: Iterable[Any], *, names: bool) -> int:
    """How many cells a spreadsheet might compute."""
    found = 0
    for table in tables:
        for column in text_columns(table).values():
            found += pc.sum(formula_cells(column)).as_py() or 0
        found += sum(map(is_formula, table.column_names)) if names else 0
    return found


def write_parquet(placed: Sequence[PlacedTable], place: Place, said: dict[bytes, bytes]) -> Written:
    """Each table as a Parquet file, whose metadata (`voile`) have the words."""
    rows = 0
    for one in placed:
        beside, written = place(one.path), 0
        columns = one.table.columns.with_metadata(said)
        with pq.ParquetWriter(beside, columns, compression="zstd") as writer:
            for part in parts_of(one.table):
                writer.write_table(part.cast(columns))
                written += part.num_rows
        with pq.ParquetFile(beside) as read:
            checked_rows(one.path, written, sum(b.num_rows for b in read.iter_batches()))
        rows += written
    return rows, [], 0
