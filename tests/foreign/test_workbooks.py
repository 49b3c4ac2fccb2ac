"""Workbooks: which sheet, which row names the columns, and what the cells hold."""

from __future__ import annotations

import datetime as dt
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import voile
from tests.support.running import told
from tests.support.running import voile as run
from voile.errors import VoileError
from voile.foreign import ForeignTable, archives
from voile.foreign.workbooks import letters, read_workbook

Rows = Sequence[Any]
HEAD = ["ward", "age"]


def workbook(
    path: Path, sheets: Mapping[str, Rows], change: Callable[[Any], None] | None = None
) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    if change is not None:
        change(book)
    book.save(path)
    return path


def read(path: Path, rows: Rows, change: Any = None, sheet: str = "", **how: Any) -> ForeignTable:
    return read_workbook(workbook(path / "t.xlsx", {"One": rows}, change), sheet, how)


def values(found: ForeignTable) -> dict[str, list[Any]]:
    plain: dict[str, list[Any]] = found.rows.to_pydict()
    return plain


def test_cells_say_what_they_are(tmp_path: Path) -> None:
    day, moment = dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4)
    found = read(tmp_path, [
        ["text", "whole", "real", "day", "moment", "truth", "code", "mixed", "days"],
        ["a", 1, 1.5, day, moment, True, "007", 1, day],
        [None, 2.0, None, None, moment, False, "012", "NA", dt.datetime(2020, 1, 3)],
    ])  # fmt: skip
    types = dict(zip(found.rows.column_names, map(str, found.rows.schema.types), strict=True))
    assert types == {
        "text": "string", "whole": "int64", "real": "double", "day": "date32[day]",
        "moment": "timestamp[us]", "truth": "bool", "code": "string", "mixed": "string",
        "days": "date32[day]",
    }  # fmt: skip
    assert values(found)["whole"] == [1, 2]
    assert values(found)["code"] == ["007", "012"]
    assert values(found)["mixed"] == ["1", "NA"]
    assert list(found.mixed) == ["mixed"]
    assert values(found)["days"] == [day, dt.date(2020, 1, 3)]


def test_names_that_lack_repeat_or_are_none(tmp_path: Path) -> None:
    found = read(tmp_path, [["a", None, "A"], [1, 2, 3]])
    assert found.rows.column_names == ["a", "column2", "A_2"]
    assert len(found.notes) == 2
    found = read(tmp_path, [[5, 1.5], [6, 2.5]], header="no")
    assert values(found) == {"column1": [5, 6], "column2": [1.5, 2.5]}
    with pytest.raises(VoileError, match=r"a column of sheet 'One' of .* is named 5"):
        read(tmp_path, [[5, 1.5], [6, 2.5]])


def test_titles_are_refused_with_the_rows_to_leave_out(tmp_path: Path) -> None:
    rows = [["Visits"], [], HEAD, ["a", 1], ["b", 2], ["c", 3]]
    with pytest.raises(VoileError, match=r"row 1 of sheet 'One' .* and row 3") as refused:
        read(tmp_path, rows)
    assert "skip=2" in refused.value.hint
    assert values(read(tmp_path, rows, skip=2)) == {"ward": ["a", "b", "c"], "age": [1, 2, 3]}


def test_rows_and_columns_of_nothing_are_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, [[None, *HEAD, None], [], [None, "a", 1], [], [None, "b", 2], []])
    assert values(found) == {"ward": ["a", "b"], "age": [1, 2]}
    assert list(found.notes) == ["2 empty rows left out"]


def test_merged_cells_are_the_same_value_in_each_row(tmp_path: Path) -> None:
    rows = [HEAD, ["a", 1], [None, 2], ["b", 3]]
    found = read(tmp_path, rows, lambda book: book["One"].merge_cells("A2:A3"))
    assert values(found)["ward"] == ["a", "a", "b"]
    assert list(found.notes) == ["1 merged cell read as the same value in each of its rows"]
    with pytest.raises(VoileError, match="cells A2:B2 of sheet 'One'"):
        read(tmp_path, rows, lambda book: book["One"].merge_cells("A2:B2"))
    titled = [["Title"], *rows]
    merged = read(tmp_path, titled, lambda book: book["One"].merge_cells("A1:B1"), skip=1)
    assert values(merged)["age"] == [1, 2, 3]


def with_formula(book: Any) -> None:
    book["One"]["B3"] = "=B2+1"


def test_formulas_have_the_value_that_was_saved_or_are_refused(tmp_path: Path) -> None:
    rows = [HEAD, ["a", 1], ["b", None]]
    with pytest.raises(VoileError, match=r"cell B3 of sheet 'One' .* never computed"):
        read(tmp_path, rows, with_formula)
    file = tmp_path / "t.xlsx"
    replaced(file, "xl/worksheets/sheet1.xml", b"<v />", b"<v>2</v>")
    assert values(read_workbook(file, "", {}))["age"] == [1, 2]


def replaced(file: Path, part: str, old: bytes, new: bytes) -> None:
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert old in parts[part]
    parts[part] = parts[part].replace(old, new)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


def test_errors_in_cells_are_null_and_said(tmp_path: Path) -> None:
    def change(book: Any) -> None:
        book["One"]["B3"] = "#N/A"
        book["One"]["B3"].data_type = "e"

    found = read(tmp_path, [HEAD, ["a", 1], ["b", None]], change)
    assert values(found)["age"] == [1, None]
    assert list(found.notes) == ["1 cell with an error such as #N/A, the first B3, read as NULL"]


def test_the_sheet_is_named_or_the_only_one(tmp_path: Path) -> None:
    two = {"One": [HEAD, ["a", 1]], "Two words": [HEAD, ["b", 2]], "Empty": []}
    file = workbook(tmp_path / "t.xlsx", two)
    with pytest.raises(VoileError, match="holds 2 sheets: One, Two words") as refused:
        read_workbook(file, "", {})
    assert "::One" in refused.value.hint
    assert values(read_workbook(file, "two words", {}))["age"] == [2]
    with pytest.raises(VoileError, match="no sheet 'Onee'") as refused:
        read_workbook(file, "Onee", {})
    assert "'One'" in refused.value.hint
    with pytest.raises(VoileError, match=r"sheet 'Empty' .* holds no cells"):
        read_workbook(file, "Empty", {})

    def hide(book: Any) -> None:
        book["Two words"].sheet_state = "hidden"

    file = workbook(tmp_path / "t.xlsx", two, hide)
    assert values(read_workbook(file, "", {}))["age"] == [1]
    assert values(read_workbook(file, "Two words", {}))["age"] == [2]


ODS = """<?xml version="1.0"?><office:document-content
 xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>
<table:table table:name="One">{rows}</table:table></office:spreadsheet></office:body>
</office:document-content>"""
MANIFEST = (
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
)
CELL = (
    '<table:table-cell office:value-type="{kind}"{value}><text:p>{text}</text:p></table:table-cell>'
)


def test_open_document_sheets(tmp_path: Path) -> None:
    def text(word: str) -> str:
        return CELL.format(kind="string", value="", text=word)

    number = CELL.format(kind="float", value=' office:value="30"', text="30")
    rows = "".join(
        f"<table:table-row>{cells}</table:table-row>"
        for cells in (text("ward") + text("age"), text("a") + number)
    )
    file = tmp_path / "t.ods"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", MANIFEST)
        archive.writestr("content.xml", ODS.format(rows=rows))
    assert values(read_workbook(file, "", {})) == {"ward": ["a"], "age": [30]}


def test_what_is_large_or_damaged_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = workbook(tmp_path / "t.xlsx", {"One": [HEAD, ["a", 1]]})
    raw = file.read_bytes()
    file.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(VoileError, match="is not a workbook that can be unpacked"):
        read_workbook(file, "", {})
    file.write_bytes(raw)
    monkeypatch.setattr(archives, "MOST_BYTES", 1000)
    with pytest.raises(VoileError, match=r"unpacked, more than"):
        read_workbook(file, "", {})


def test_a_part_that_is_larger_than_it_says_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.xlsx"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 10_000_000)
    size = (10_000_000).to_bytes(4, "little")
    assert size in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(size, (10).to_bytes(4, "little")))
    with pytest.raises(VoileError, match="is not a workbook that can be unpacked"):
        archives.check_archive(file)


def test_columns_as_a_spreadsheet_calls_them() -> None:
    assert [letters(i) for i in (0, 25, 26, 701, 702, 16383)] == [
        "A",
        "Z",
        "AA",
        "ZZ",
        "AAA",
        "XFD",
    ]


def test_a_workbook_is_a_table_like_any_other(tmp_path: Path) -> None:
    rows = [[*HEAD, "score"], *([f"w{i % 3}", 20 + i % 5, "NA" if i % 9 == 0 else i / 2]
                                for i in range(90))]  # fmt: skip
    file = workbook(tmp_path / "visits.xlsx", {"One": rows, "Two": [["x"], [1]]})
    table = voile.read(f"{file}::One")
    assert (table.name, len(table), list(table.columns)) == ("visits", 90, [*HEAD, "score"])
    with pytest.raises(VoileError, match="'score' holds numbers, and 'NA' in 10 rows"):
        table.infer(list(table.columns), "as-value")
    cleaned = voile.read(f"{file}::One", na=True)
    assert cleaned.null_counts(["score"]) == {"score": 10}
    assert cleaned.kind("score") == "numeric"
    shown = told(["inspect", f"{file}::One"])
    assert shown["findings"][0]["flags"] == ["--na"]
    assert "--na" in shown["next"]
    refused = run("inspect", f"{file}::One", "--separator", ";")
    assert refused.returncode == 2
    assert "--separator" in refused.stderr


def test_two_cells_far_apart_do_not_take_all_memory(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = 1, 2
    book.save(tmp_path / "far.xlsx")
    with pytest.raises(VoileError, match=r"far.xlsx needs more memory"):
        voile.read(tmp_path / "far.xlsx")
