"""Nothing is left out: sections of the mathematics, errata, guarantees, questions, dependencies."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.support.paths import ROOT, TESTS
from voile.privacy.guarantees import KINDS

MATHEMATICS = ROOT / "docs" / "mathematics"
CONCEPTS = ROOT / "docs" / "concepts"
INDEX = MATHEMATICS / "index.md"
LAST = 49
"""Sections keep their numbers; a new one is added at the end, and to the index."""


def sections() -> dict[int, tuple[Path, str, str]]:
    """The page, the title and the text of every section; no number may be there twice."""
    found: dict[int, tuple[Path, str, str]] = {}
    for page in sorted(MATHEMATICS.glob("*.md")):
        parts = re.split(r"^## (\d+)\. (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for number, title, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
            assert int(number) not in found, f"section {number} is in {page.name}, too"
            found[int(number)] = page, title, text
    return found


def names_of_tests() -> set[str]:
    files = TESTS.rglob("test_*.py")
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return set(re.findall(r"^def (test_\w+)", text, re.MULTILINE))


def test_no_section_is_missing() -> None:
    assert set(sections()) == set(range(1, LAST + 1))


def test_every_section_names_a_test_that_exists() -> None:
    there = names_of_tests()
    for number, (page, _, text) in sections().items():
        named = set(re.findall(r"`(test_\w+)`", text))
        assert named & there, f"section {number} in {page.name} names no test"


def test_the_index_leads_to_every_section() -> None:
    index = INDEX.read_text(encoding="utf-8")
    for number, (page, title, _) in sections().items():
        # As Sphinx makes anchors: letters, digits and hyphens, in small letters.
        anchor = re.sub(r"[^\w\- ]", "", f"{number} {title}".lower()).replace(" ", "-")
        assert f"| [{number}. {title}]({page.name}#{anchor}) |" in index


def test_the_readers_guide_says_of_every_page_what_it_proves_and_for_whom() -> None:
    guide = INDEX.read_text(encoding="utf-8").partition("## All sections")[0]
    rows = re.findall(r"^\| \[.+?\]\((\S+\.md)\) \| (.+) \| (.+) \| .*\|$", guide, re.MULTILINE)
    pages = {page.name for page in MATHEMATICS.glob("*.md")} - {"index.md", "errata.md"}
    assert sorted(page for page, _, _ in rows) == sorted(pages)


def test_every_erratum_names_a_test_or_says_why_there_is_none() -> None:
    there = names_of_tests()
    text = (MATHEMATICS / "errata.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "| tests |" not in line]
    assert len(rows) > 35
    for row in rows:
        section, named = row.split(" | ")[-2:]
        assert section == "–" or int(section) in range(1, LAST + 1), row
        assert set(re.findall(r"`(test_\w+)`", named)) & there or section == "–" or "](" in named, (
            row
        )


def test_sections_that_are_cited_exist() -> None:
    cited = re.compile(r"(?:docs/mathematics,? (?:sections? |§)?|Mathematics §)(\d+)")
    files = [*(ROOT / "src").rglob("*.py"), *TESTS.rglob("*.py")]
    found = [
        (file, int(number))
        for file in files
        for number in cited.findall(re.sub(r"\s*\n\s*", " ", file.read_text(encoding="utf-8")))
    ]
    assert len(found) > 40
    assert not [(file.name, number) for file, number in found if not 1 <= number <= LAST]


@pytest.mark.parametrize("kind", [*KINDS])
def test_every_kind_of_guarantee_has_a_page_beside_the_list(kind: str) -> None:
    pages = [page for page in CONCEPTS.glob("*.md") if page.name != "guarantees.md"]
    written = re.compile(rf"[`\"]{re.escape(kind)}\(")
    assert any(written.search(page.read_text(encoding="utf-8")) for page in pages), kind


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "reference" / "dependencies.md").read_text(encoding="utf-8")
    told = set(re.findall(r"[\w-]+", page.replace("_", "-").lower()))
    extras = [one for group in project["optional-dependencies"].values() for one in group]
    for wanted in [*project["dependencies"], *extras]:
        name = re.split(r"[<>=\[]", wanted)[0].lower()
        assert name in told, f"{name}: why?"


def test_every_question_has_a_short_answer_that_leads_on() -> None:
    text = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    asked = re.findall(r"^\*\*([^*]+)\*\* (.+?)\n\n", text, re.MULTILINE | re.DOTALL)
    assert len(asked) >= 15
    for question, answer in asked:
        assert question.endswith("?") and "](" in answer, question
        assert len(answer.split()) <= 60, question
    pages = {f"questions/{page.name}" for page in (ROOT / "docs" / "questions").glob("*.md")}
    linked = set(re.findall(r"\]\((questions/[^)#]+)\)", text))
    listed = {f"{name}.md" for name in re.findall(r"^(questions/\S+)$", text, re.MULTILINE)}
    assert pages == linked == listed
