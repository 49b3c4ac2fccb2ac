"""The process that reads a file: what it hands over, and what becomes of one that fails."""

from __future__ import annotations

import importlib.util
import signal
import tempfile
from pathlib import Path

import pytest

from voile.errors import TableError, UsageError
from voile.foreign import ENDINGS, PACKAGES
from voile.foreign.reading import refusal, rows_of

FILE = Path("t.xlsx")


def test_a_process_that_was_killed_is_said_to_want_memory() -> None:
    for status in (-signal.SIGKILL, -signal.SIGABRT, 3):
        assert "needs more memory" in refusal(FILE, status, "", "").message
    assert refusal(FILE, 1, "", "…\nValueError: odd\n").message == (
        "t.xlsx cannot be read: ValueError: odd"
    )


def test_errors_are_handed_over_as_they_were() -> None:
    said = '{"error": "UsageError", "message": "wrong", "hint": "right"}'
    found = refusal(FILE, 1, said, "")
    assert isinstance(found, UsageError)
    assert (found.message, found.hint) == ("wrong", "right")
    assert isinstance(refusal(FILE, 1, said.replace("Usage", "Table"), ""), TableError)


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_not_installed_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    reading = rows_of(tmp_path / f"t{ending}", "", {})
    with pytest.raises(UsageError, match=PACKAGES[ending]) as refused, reading:
        pass
    assert refused.value.hint == "pip install 'voile[files]'"


def test_no_module_of_the_folder_is_run_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file from a stranger may lie beside modules that are called as the reader's own."""
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["age"])
    book.active.append([30])
    book.save(tmp_path / "people.xlsx")
    for name in ("python_calamine", "token", "json"):
        (tmp_path / f"{name}.py").write_text("open('run', 'w').close(); raise SystemExit(9)\n")
    (tmp_path / "temporary").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with rows_of(Path("people.xlsx"), "", {}) as rows:
        assert rows.read_all().num_rows == 1
        assert not list((tmp_path / "temporary").iterdir())
    assert not (tmp_path / "run").exists()
