"""The glossary: its terms are sorted, the pages use them, and each leads to what explains it."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT

DOCS = ROOT / "docs"
GLOSSARY = DOCS / "glossary.md"
ENTRY = re.compile(r"^\*\*(.+?)\*\*: (.+?)\s\[Read\]\((.+?)\)$", re.MULTILINE | re.DOTALL)
GREEK = {
    "α": "alpha", "γ": "gamma", "δ": "delta", "ε": "epsilon", "η": "eta", "μ": "mu", "ρ": "rho",
    "ℓ": "l",
}  # fmt: skip
LINKED_FROM = (
    "README.md", "docs/index.md", "docs/tour.md", "docs/choosing.md", "docs/concepts/index.md",
    "docs/mathematics/index.md",
)  # fmt: skip


def entries() -> list[tuple[str, str, str]]:
    """Term, what it means, and where that is explained."""
    return ENTRY.findall(GLOSSARY.read_text(encoding="utf-8"))


def written(term: str) -> str:
    """`ε (epsilon)` is written ε on the pages."""
    return re.sub(r"^(\S) \(.+\)$", r"\1", term)


def in_latin(term: str) -> list[str]:
    """The words to sort a term by."""
    spelled = [f" {GREEK[sign]} " if sign in GREEK else sign for sign in written(term).lower()]
    return re.findall(r"[a-z]+", "".join(spelled))


def anchors(text: str) -> set[str]:
    """As Sphinx makes them: letters, digits, underscores and hyphens, in small letters."""
    titles = re.findall(r"^#{1,3} (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_term_has_one_entry_and_they_are_sorted() -> None:
    terms = [term for term, _, _ in entries()]
    assert terms == re.findall(r"^\*\*(.+?)\*\*", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    assert len(terms) > 60
    assert terms == sorted(terms, key=in_latin)
    assert len({*map(written, terms)}) == len(terms)


def untrue(term: str, target: str) -> str:
    """What is wrong with where a term leads, if anything."""
    page, _, anchor = target.partition("#")
    text = (DOCS / page).read_text(encoding="utf-8")
    words = r"\W+".join(map(re.escape, re.findall(r"\w+", written(term))))
    if anchor and anchor not in anchors(text):
        return f"{term}: {page} has no section {anchor}"
    if not re.search(rf"(?<!\w){words}", text, re.IGNORECASE):
        return f"{page} does not say {term!r}"
    return ""


def test_every_term_leads_to_a_page_that_uses_it() -> None:
    assert [found for term, _, target in entries() if (found := untrue(term, target))] == []
    assert untrue("Release", "limits.md#nowhere") == "Release: limits.md has no section nowhere"
    assert untrue("Quince", "limits.md#privacy") == "limits.md does not say 'Quince'"


def test_a_meaning_is_a_few_plain_sentences() -> None:
    for term, meaning, _ in entries():
        sentences = re.split(r"(?<=[.:;])\s", meaning)
        assert meaning.endswith("."), term
        assert len(sentences) <= 4, term
        assert max(len(one.split()) for one in sentences) <= 35, term


@pytest.mark.parametrize("page", LINKED_FROM)
def test_pages_lead_to_the_glossary(page: str) -> None:
    found = re.findall(r"\]\((\S*glossary\.md)\)", (ROOT / page).read_text(encoding="utf-8"))
    assert found and ((ROOT / page).parent / found[0]).resolve() == GLOSSARY
