"""The process that reads a file: what it hands over, and what becomes of one that fails."""

from __future__ import annotations

import importlib.util
import signal
from pathlib import Path

import pytest

from voile.errors import TableError, UsageError
from voile.foreign import ENDINGS, PACKAGES
from voile.foreign.reading import refusal, to_arrow

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
    with pytest.raises(UsageError, match=PACKAGES[ending]) as refused:
        to_arrow(tmp_path / f"t{ending}", "", {}, tmp_path / "t.arrow")
    assert refused.value.hint == "pip install 'voile[files]'"
