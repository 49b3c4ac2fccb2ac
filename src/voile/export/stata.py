"""Tables for Stata: codes with value labels, dates as dates, and the words as notes.

pyreadstat writes no notes, so they are put where the format has its place for them: the section of
characteristics, behind which the map of the file says where everything lies.
"""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from voile.errors import UsageError
from voile.export.tables import Place, PlacedTable, Written, checked_rows, parts_of
from voile.extras import check_installed
from voile.kinds.exported import ExportTable
from voile.schema import Attribute, Values
from voile.system import here as system

MOST_LABELS = 65_536
"""Of a set of value labels."""
LONGEST_NAME, LONGEST_LABEL, LONGEST_NOTE = 32, 80, 60_000
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
RESERVED = frozenset({
    "_all", "_b", "byte", "_coef", "_cons", "double", "float", "if", "in", "int", "long", "_n",
    "_N", "_pi", "_pred", "_rc", "_skip", "strL", "using", "with",
})  # fmt: skip
RELEASE = 15
"""The version of Stata whose format is written: 118, of Stata 14 and later."""
MAP, SECTIONS, CHARACTERISTICS = b"<map>", 14, 8
FIXED = 129
"""Bytes of a name in a characteristic."""


def write_dta(placed: Sequence[PlacedTable], place: Place, text: str) -> Written:
    """Each table as a file of its own."""
    check_installed("writing .dta", ("pyreadstat", "pandas"), "files")
    notes: list[str] = []
    rows = 0
    for one in placed:
        beside = place(one.path)
        written, said = write_table(one.table, beside, [one.table.about, *paragraphs(text)])
        checked_rows(one.path, written, rows_in(beside))
        notes += said
        rows += written
    return rows, notes, 0


def paragraphs(text: str) -> list[str]:
    """The parts of a text between empty lines, each of a length that a note may have."""
    found = [part.strip() for part in text.split("\n\n") if part.strip()]
    return [cut(part, LONGEST_NOTE) for part in found]


def cut(text: str, size: int) -> str:
    """As much of a text as fits into so many bytes."""
    return text.encode()[:size].decode(errors="ignore")


def rows_in(path: Path) -> int:
    """How many rows a file says that it holds, read again."""
    import pyreadstat  # noqa: PLC0415  (an optional package)

    columns, _ = pyreadstat.read_dta(str(path), output_format="dict")
    return len(next(iter(columns.values()), ()))


def write_table(table: ExportTable, path: Path, words: Sequence[str]) -> tuple[int, list[str]]:
    """One table, and what its names were changed to."""
    import pandas as pd  # noqa: PLC0415  (optional packages)
    import pyreadstat  # noqa: PLC0415

    rows = pa.concat_tables([part.cast(table.columns) for part in parts_of(table)])
    names = stata_names(rows.column_names)
    columns: dict[str, Any] = {}
    labels: dict[str, dict[int | float, str]] = {}
    for given, name in names.items():
        columns[name], found = column_of(rows.column(given), table.attributes.get(given), given)
        if found:
            labels[name] = found
    with path.open("wb"):  # where it cannot be written, the error says so
        pass
    pyreadstat.write_dta(
        pd.DataFrame(columns),
        str(path),
        file_label=cut(f"{table.name}: exported from Voile, see notes", LONGEST_LABEL),
        column_labels=[cut(given, LONGEST_LABEL) for given in names],
        variable_value_labels=labels,
        version=RELEASE,
    )
    add_notes(path, words)
    changed = [f"{given!r} is called {name}" for given, name in names.items() if given != name]
    return rows.num_rows, changed


def column_of(
    column: Any, attribute: Attribute | None, name: str
) -> tuple[Any, dict[int | float, str]]:
    """A column as Stata holds it, and its value labels."""
    kind, missing = column.type, column.null_count > 0
    if pa.types.is_boolean(kind):
        return numbers(column.cast(pa.int8()), missing=missing), {0: "false", 1: "true"}
    if pa.types.is_date(kind):
        return np.array(column.to_pylist(), dtype=object), {}
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return numbers(column, missing=missing), {}
    texts = column.cast(pa.string())
    listed = labels_of(attribute, texts)
    if len(listed) > MOST_LABELS:
        return checked_texts(texts, name), {}
    places = {text: i for i, text in enumerate(listed, start=1)}
    codes = pa.array([None if t is None else places[t] for t in texts.to_pylist()], pa.int32())
    return numbers(codes, missing=missing), {code: text for text, code in places.items()}


def labels_of(attribute: Attribute | None, texts: Any) -> list[str]:
    """The values of a column of texts, in the order of the domain: also those of no row."""
    found = [text for text in texts.unique().to_pylist() if text is not None]
    if attribute is None or not isinstance(attribute.domain, Values):
        return sorted(found)
    listed = [str(value) for value in attribute.domain]
    return listed if set(found) <= set(listed) else sorted(found)


def checked_texts(texts: Any, name: str) -> Any:
    """Texts that have no labels; refused where one is longer than Stata's."""
    plain = ["" if text is None else text for text in texts.to_pylist()]
    if any(len(text.encode()) > 2045 for text in plain):
        raise UsageError(
            f"column {name!r} has texts of more than 2,045 bytes, which .dta has no place for",
            hint="export it as .parquet or .csv",
        )
    return np.array(plain, dtype=object)


def numbers(column: Any, *, missing: bool) -> Any:
    """Numbers, NaN where there is none; whole ones as Stata's long where they fit."""
    if missing:
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    found = column.to_numpy()
    if found.dtype.kind != "i":
        return found
    fits = not len(found) or (found.min() >= -(2**31) + 1 and found.max() <= 2**31 - 28)
    return found.astype(np.int32 if fits else np.float64)


def stata_names(given: Sequence[str]) -> dict[str, str]:
    """A name for each column that Stata takes, and no other has."""
    names: dict[str, str] = {}
    for name in given:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)[:LONGEST_NAME] or "_"
        plain = plain if NAME.fullmatch(plain) else f"_{plain}"[:LONGEST_NAME]
        if plain in RESERVED or re.fullmatch(r"str\d+", plain):
            plain = f"{plain[: LONGEST_NAME - 1]}_"
        found, number = plain, 1
        while found in names.values():
            number += 1
            end = f"_{number}"
            found = plain[: LONGEST_NAME - len(end)] + end
        names[name] = found
    return names


# ----------------------------------------------------------------------
# notes


def add_notes(path: Path, words: Sequence[str]) -> None:
    """Put notes into a file that has none."""
    block = b"".join(
        [characteristic("note0", str(len(words)))]
        + [characteristic(f"note{i}", text) for i, text in enumerate(words, start=1)]
    )
    beside = path.with_name(f"{path.name}.noted")
    try:
        with path.open("rb") as old, beside.open("wb") as new:
            head = old.read(4096)
            start = head.index(MAP) + len(MAP)
            places = list(struct.unpack_from(f"<{SECTIONS}Q", head, start))
            middle = places[CHARACTERISTICS] + len(b"<characteristics>")
            moved = [p + len(block) if i > CHARACTERISTICS else p for i, p in enumerate(places)]
            new.write(head[:start] + struct.pack(f"<{SECTIONS}Q", *moved))
            old.seek(start + 8 * SECTIONS)
            new.write(old.read(middle - old.tell()))
            new.write(block)
            shutil.copyfileobj(old, new)
        system.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def characteristic(name: str, text: str) -> bytes:
    """A note of the data set."""
    content = text.encode() + b"\0"
    fixed = b"_dta".ljust(FIXED, b"\0") + name.encode().ljust(FIXED, b"\0")
    return b"<ch>" + struct.pack("<I", len(fixed) + len(content)) + fixed + content + b"</ch>"
