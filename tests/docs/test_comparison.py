"""docs/comparison.md: the tools that people ask about, and figures that were really measured."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
MEASURED = PAGE.partition("## Measured, at equal promises\n")[2].partition("\n## ")[0]
SOURCES = ("bench/RESULTS.md", "docs/decisions/0041-cuts-that-lose-less.md")
TOOLS = (
    "ARX", "sdcMicro", "sdcTable", "τ-Argus", "OpenDP", "DP Wizard", "SmartNoise", "Tumult", "MST",
    "AIM", "PrivSyn", "SDV", "pure-LDP", "Multi-Freq-LDPy", "anjana", "pyCANON",
)  # fmt: skip
FIGURE = re.compile(r"(?<![\d.,])\d+(?:\.\d+)?(?![\d.])")


def known() -> set[str]:
    """All figures of the benchmarks' results and of the decision that the page names."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in SOURCES]
    return {figure for text in texts for figure in FIGURE.findall(text)}


def quoted() -> list[tuple[str, str]]:
    """Each figure of ours or of another tool that the page states, with its line."""
    rows = [line.split(" | ") for line in MEASURED.splitlines() if line.startswith("| ")][1:]
    return [(figure, row[0]) for row in rows for figure in FIGURE.findall(" ".join(row[1:3]))]


def test_figures_are_those_of_the_benchmarks() -> None:
    found, there = quoted(), known()
    assert len(found) > 30
    stale = [f"{figure}: {line}" for figure, line in found if figure not in there]
    assert not stale, f"not in {' or '.join(SOURCES)}; write what was measured last: {stale}"


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_a_paragraph_and_a_source(tool: str) -> None:
    one_by_one = PAGE.partition("## One by one\n")[2].partition("\n## ")[0]
    paragraphs = re.findall(r"^\*\*([^*]+)\*\*", one_by_one, re.MULTILINE)
    assert any(tool in heading for heading in paragraphs), tool
    sources = PAGE.partition("\n## Pages\n")[2]
    rows = [line.split(" | ") for line in sources.splitlines() if line.startswith("| ")]
    assert any(tool in row[0] and "<https://" in row[1] for row in rows), tool


def test_it_says_what_was_not_run() -> None:
    not_run = MEASURED.partition("**Not run:**")[2]
    measured = {row.split(" | ")[-1] for row in MEASURED.splitlines() if row.startswith("| ")}
    for tool in TOOLS:
        named = any(tool in cell for cell in measured)
        assert named or tool in not_run, tool


def test_the_request_of_arx_s_users_is_pointed_to() -> None:
    assert "https://github.com/arx-deidentifier/arx/issues/102" in PAGE
