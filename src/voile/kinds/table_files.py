"""Tables in CSV and Parquet files of a user's own: checked beforehand, safe for spreadsheets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from voile.errors import UsageError
from voile.files import check_free, check_utf8
from voile.formulas import NUMBER, PATTERN, as_text


def text_columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """The columns of texts, by name."""
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        coded = pa.types.is_dictionary(column.type)
        plain = column.cast(column.type.value_type) if coded else column
        if pa.types.is_string(plain.type) or pa.types.is_large_string(plain.type):
            found[name] = plain
    return found


def formula_cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which texts a spreadsheet might compute."""
    begins = pc.match_substring_regex(column, PATTERN)
    return pc.and_not(begins, pc.match_substring_regex(column, NUMBER))


def without_formulas(table: pa.Table) -> pa.Table:
    """The table with an apostrophe before such texts, and before such names of columns."""
    for name, column in text_columns(table).items():
        marked = pc.binary_join_element_wise("'", column, "")
        safe = pc.if_else(formula_cells(column), marked, column)
        table = table.set_column(table.column_names.index(name), name, safe)
    return table.rename_columns([as_text(name) for name in table.column_names])


def check_file(path: Path, *, overwrite: bool) -> None:
    """Refuse before any work is done."""
    check_utf8(path)
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(f"{str(path)!r} is neither a .csv nor a .parquet file", hint="name it so")
    check_free(path, overwrite=overwrite)
    if not path.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {str(path.absolute().parent)!r}", hint="make it first"
        )
