"""Sheets of workbooks: which one is meant, which row names the columns, what the cells hold.

A cell says itself whether it is a number, a date or a text, so a column of texts stays one. A
column of numbers with a few texts in it is what a text file would have there: it is handed on as
texts, and looked at as such.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import python_calamine as calamine

from voile.errors import TableError, UsageError, did_you_mean, spelled
from voile.foreign import ForeignTable
from voile.foreign.archives import check_archive, scan_sheet
from voile.foreign.headers import has_header, names_of
from voile.units import counted

MOST_WHOLE = 2**53
"""Whole numbers beyond it are not all numbers of a workbook."""
OTHERS = {"truth": pa.bool_(), "time": pa.time64("us"), "length": pa.duration("us"),
          "text": pa.string()}  # fmt: skip
"""Arrow's types of cells that are neither numbers nor days."""
Cell = Any
Cells = list[Cell]
Numbered = list[tuple[int, Cells]]
"""Rows with their numbers in the sheet."""


def read_workbook(file: Path, sheet: str, options: Mapping[str, Any]) -> ForeignTable:
    """A sheet as a table; `options` are those of reading that were given."""
    check_archive(file)
    try:
        with calamine.CalamineWorkbook.from_path(str(file)) as book:
            chosen = chosen_sheet(book, sheet, file)
            rows = [(number, list(row)) for number, row in enumerate(chosen.iter_rows(), start=1)]
            name, first = chosen.name, (chosen.start or (0, 0))[1]
            merged = chosen.merged_cell_ranges or []
    except calamine.PasswordError:
        raise TableError(
            f"{file} is encrypted", hint="save it without a password, where you keep such files"
        ) from None
    except calamine.CalamineError as error:
        raise TableError(
            f"{file} cannot be read: {error}",
            hint="open it in a spreadsheet program, and save it again",
        ) from None
    where = f"sheet {name!r} of {file}"
    notes = [] if file.suffix.lower() == ".ods" else checked_cells(file, name, where)
    body = SheetBody(rows, first, where)
    notes += body.fill_merged(merged, int(options.get("skip", 0)))
    return body.table(options, notes)


def checked_cells(file: Path, sheet: str, where: str) -> list[str]:
    """Notes on cells that hold errors; refused where formulas have no value."""
    found = scan_sheet(file, sheet)
    if found.uncomputed:
        raise TableError(
            f"cell {found.first_uncomputed} of {where} is a formula that was never computed "
            f"({counted(found.uncomputed, 'such cell')})",
            hint="open it in a spreadsheet program and save it: then its values are in the file",
        )
    if not found.errors:
        return []
    return [
        f"{counted(found.errors, 'cell')} with an error such as #N/A, the first {found.first_error}"
        ", read as NULL"
    ]


def chosen_sheet(book: Any, wanted: str, file: Path) -> Any:
    """The sheet that is meant: the named one, or the only one that is shown and holds anything."""
    kinds = {one.name: one for one in book.sheets_metadata}
    tables = [n for n, one in kinds.items() if one.typ == calamine.SheetTypeEnum.WorkSheet]
    if wanted:
        folded = {name.lower(): name for name in tables} | {name: name for name in tables}
        found = folded.get(wanted) or folded.get(wanted.lower())
        if found is None:
            raise UsageError(
                f"there is no sheet {wanted!r} in {file}", hint=did_you_mean(wanted, tables)
            )
        return filled(book.get_sheet_by_name(found), file)
    shown = [n for n in tables if kinds[n].visible == calamine.SheetVisibleEnum.Visible]
    if len(shown) == 1:
        return filled(book.get_sheet_by_name(shown[0]), file)
    sheets = [book.get_sheet_by_name(name) for name in shown]
    full = [sheet for sheet in sheets if sheet.start is not None]
    if len(full) == 1:
        return full[0]
    names = [sheet.name for sheet in full]
    if not names:
        raise TableError(f"{file} holds no cells", hint="name a file that holds a table")
    raise UsageError(
        f"{file} holds {len(names)} sheets: {', '.join(names)}",
        hint=f"add ::sheet to say which, such as ::{names[0]}",
    )


def filled(sheet: Any, file: Path) -> Any:
    """The sheet, refused where it holds nothing."""
    if sheet.start is None:
        raise TableError(
            f"sheet {sheet.name!r} of {file} holds no cells", hint="name a sheet that holds a table"
        )
    return sheet


def letters(column: int) -> str:
    """A column as a spreadsheet calls it: 0 is A."""
    found = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        found = chr(65 + rest) + found
    return found


class SheetBody:
    """The cells of a sheet, by the rows' numbers in it."""

    def __init__(self, rows: Numbered, first: int, where: str) -> None:
        self.rows, self.first, self.where = rows, first, where

    def fill_merged(self, merged: Sequence[Any], skip: int) -> list[str]:
        """Give every cell of a merged column the value that is shown across it.

        Cells that are merged across columns are refused: nobody knows whose value it is.
        """
        filled = 0
        for (top, left), (bottom, right) in merged:
            if bottom < skip or top >= len(self.rows):
                continue
            place = f"{letters(left)}{top + 1}:{letters(right)}{bottom + 1}"
            if left != right:
                raise TableError(
                    f"cells {place} of {self.where} are merged across columns",
                    hint=f"leave out the rows above the names: {spelled('skip', bottom + 1)}; or "
                    "split the cells",
                )
            column = left - self.first
            value = self.rows[top][1][column]
            for row in range(top + 1, min(bottom + 1, len(self.rows))):
                self.rows[row][1][column] = value
            filled += 1
        if not filled:
            return []
        return [f"{counted(filled, 'merged cell')} read as the same value in each of its rows"]

    def table(self, options: Mapping[str, Any], notes: list[str]) -> ForeignTable:
        """The rows below the names, each column as what its cells are."""
        skip = int(options.get("skip", 0))
        full = [(n, row) for n, row in self.rows[skip:] if any(cell != "" for cell in row)]
        if not full:
            raise TableError(
                f"{self.where} has {counted(len(self.rows), 'row')}, and none is left",
                hint=f"leave out {spelled('skip', skip)}",
            )
        self.refuse_title(full)
        top, head = full[0]
        texts = [spelled_cell(cell) for cell in head]
        header = has_header(texts, self.where, options.get("header"))
        rows = full[1:] if header else full
        used = [i for i, t in enumerate(texts) if t.strip() or any(row[i] != "" for _, row in rows)]
        names, renamed = names_of([texts[i] for i in used], header=header)
        notes += renamed
        if rows and (gaps := rows[-1][0] - rows[0][0] + 1 - len(rows) + rows[0][0] - top - header):
            notes.append(f"{counted(gaps, 'empty row')} left out")
        columns, mixed = {}, []
        for name, i in zip(names, used, strict=True):
            column, is_mixed = arrow_column([row[i] for _, row in rows])
            columns[name] = column
            mixed += [name] if is_mixed else []
        return ForeignTable(pa.table(columns), notes, mixed)

    def refuse_title(self, full: Numbered) -> None:
        """Refuse a row of one cell above rows of several: a title, not names."""
        widths = [sum(cell != "" for cell in row) for _, row in full[:200]]
        usual = Counter(widths[1:]).most_common(1)[0][0] if len(widths) > 2 else 0
        if widths[0] == 1 < usual:
            first = next(
                number for (number, _), wide in zip(full, widths, strict=False) if wide > 1
            )
            raise TableError(
                f"row {full[0][0]} of {self.where} has 1 cell, and row {first} has several",
                hint=f"if the table begins in row {first}, add {spelled('skip', first - 1)}",
            )


# ---------------------------------------------------------------------- cells to columns


def arrow_column(cells: Sequence[Cell]) -> tuple[Any, bool]:
    """A column of one type, or of texts where types are mixed; and whether they are."""
    values = [None if cell == "" else cell for cell in cells]
    kinds = {kind_of(cell) for cell in values if cell is not None}
    if len(kinds) > 1:
        texts = [None if cell is None else spelled_cell(cell) for cell in values]
        return pa.array(texts, pa.string()), True
    kind = next(iter(kinds), "text")
    if kind in ("number", "date"):
        return (numbers if kind == "number" else days)(values), False
    return pa.array(values, OTHERS[kind]), False


def kind_of(cell: Cell) -> str:
    """What a cell holds."""
    if isinstance(cell, bool):
        return "truth"
    if isinstance(cell, int | float):
        return "number"
    if isinstance(cell, dt.date):  # and with a time of day
        return "date"
    if isinstance(cell, dt.time):
        return "time"
    return "length" if isinstance(cell, dt.timedelta) else "text"


def is_whole(number: float | None) -> bool:
    """Whether it is a whole number that a float holds exactly."""
    return number is None or (float(number).is_integer() and abs(number) <= MOST_WHOLE)


def numbers(values: Sequence[float | None]) -> Any:
    """Numbers; whole ones where all are."""
    if all(map(is_whole, values)):
        return pa.array([None if v is None else int(v) for v in values], pa.int64())
    known = (None if v is None or math.isnan(v) else float(v) for v in values)
    return pa.array(list(known), pa.float64())


def days(values: Sequence[Any]) -> Any:
    """Days; with times of day where there are any."""
    moments = [
        v if v is None or isinstance(v, dt.datetime) else dt.datetime.combine(v, dt.time())
        for v in values
    ]
    if all(v is None or v.time() == dt.time() for v in moments):
        return pa.array([None if v is None else v.date() for v in moments], pa.date32())
    return pa.array(moments, pa.timestamp("us"))


def spelled_cell(cell: Cell) -> str:
    """A cell as a text file would have it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and is_whole(cell):
        return str(int(cell))
    return cell.isoformat(sep=" ") if isinstance(cell, dt.datetime) else str(cell)
