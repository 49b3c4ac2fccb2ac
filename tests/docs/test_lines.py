"""Pages can be read as text: their lines have 100 characters at most, but for what cannot wrap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

WIDTH = 100
WHOLE = ("|", "#", "![", "$$")
"""How a line begins that Markdown does not let wrap: tables, titles, pictures, formulas."""
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts),
]


def too_long(text: str) -> Iterator[str]:
    """Lines of prose that are longer; code, formulas, tables and bare addresses are no prose."""
    code = formula = False
    for number, line in enumerate(text.splitlines(), start=1):
        start = line.lstrip()
        if start.startswith("```"):
            code = not code
        elif start == "$$":
            formula = not formula
        elif code or formula or start.startswith(WHOLE) or " " not in start:
            continue
        elif len(line) > WIDTH:
            yield f"{number}: {len(line)} characters: {line[:60]} …"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lines_are_wrapped(page: Path) -> None:
    assert list(too_long(page.read_text(encoding="utf-8"))) == []


def test_a_long_line_is_found() -> None:
    words = "word " * 30
    code, formula = ["```text", words, "```"], ["$$", words, "$$"]
    page = [words, *code, f"| {words}|", f"- {words}", *formula, "a" * 120]
    assert [line.partition(":")[0] for line in too_long("\n".join(page))] == ["1", "6"]
