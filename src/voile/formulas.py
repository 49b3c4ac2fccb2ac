"""Cells of CSV files that a spreadsheet would compute: texts that begin with = + - @, tab or CR.

CSV has no way to say that a cell is text. Where that is wanted, such a text gets an apostrophe in
front, which spreadsheets take for 'this is text'. Plain numbers are left as they are.
"""

from __future__ import annotations

import re
from typing import Any

PATTERN = r"^[=+\-@\t\r\n＝＋－＠]"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def is_formula(cell: Any) -> bool:
    """Whether a spreadsheet may take the cell for something to compute."""
    return isinstance(cell, str) and bool(re.match(PATTERN, cell)) and not re.match(NUMBER, cell)


def as_text(cell: Any) -> Any:
    """The cell so that a spreadsheet takes it for what it is."""
    return f"'{cell}" if is_formula(cell) else cell


def note(cells: int) -> str:
    """What to say of a CSV file that has such cells."""
    begin = "1 cell begins" if cells == 1 else f"{cells:,} cells begin"
    return (
        f"{begin} with =, +, -, @, a tab or a carriage return: a spreadsheet may compute "
        f"what is text"
    )
