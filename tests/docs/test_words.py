"""One word for one thing: words that the project no longer uses, and what it says instead.

They are looked for in the documentation, in the help of every command, in the pages of the servers,
and in every text of the source that people read. Names of files, keys on disk and in JSON, and code
are exempt: others rely on them.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools import cli_reference

from tests.support.paths import ROOT

DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "voile"
MATHEMATICS = DOCS / "mathematics"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
RETIRED = {
    r"wish(?:es|ed)?": "ask for, request",
    r"told(?!\s+(?:apart|so|the|to)\b)": "disclosed, known",
    r"rooms?": "space; a package, a folder, a place",
    r"houses?": "package, folder, place",
    r"(?<!fair )coins?(?! toss)": "random choice, random number, noise",
    r"likeliest": "most likely",
    r"chapters?": "file, page, section",
    r"hangs? together": "correlated, joined",
    r"but for a chance": "except with probability",
}
"""Patterns of whole words, each with what to say instead; CONTRIBUTING.md lists them, too."""
KEPT = {MATHEMATICS: r"(?<!fair )coins?(?! toss)"}
"""In proofs a coin is one random bit with a stated probability, as the field writes."""
ON_DISK = {"kinds/views/manifest.py", "kinds/perturbed/manifest.py"}
"""Sentences of manifests: `verify` computes them anew, and earlier releases have them so."""
PAGES = [
    ROOT / "README.md",
    CONTRIBUTING,
    *sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts),
    *sorted((DOCS / "notebooks").glob("*.ipynb")),
]
TEMPLATES = sorted(SOURCE.rglob("*.html"))


def retired(text: str, kept: str | None = None) -> list[str]:
    """The retired words of a text, each with what to say instead."""
    return [
        f"{found[0]!r} in {' '.join(text[max(0, found.start() - 30) : found.end() + 30].split())!r}"
        f": say {instead}"
        for pattern, instead in RETIRED.items()
        if pattern != kept
        for found in re.finditer(rf"(?<![\w-])(?:{pattern})(?![\w-])", text, re.IGNORECASE)
    ]


def prose(page: Path) -> str:
    """What a page says, without comments, code, names in a line, and where links lead."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(one["source"]) for one in cells if one["cell_type"] == "markdown")
    if page == CONTRIBUTING:
        text = re.sub(r"^\|.*\|$", "", text, flags=re.MULTILINE)
    text = re.sub(
        r"<!--.*?-->|^```(?:\{toctree\}|diff|python|text file=).*?^```",
        "",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    return re.sub(r"(?<!`)`[^`\n]+`(?!`)|\]\([^)]*\)", "", text)


def read_by_people(source: str) -> Iterator[str]:
    """The texts of several words in a module that are no docstrings."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in docstrings:
            text = node.value if isinstance(node.value, str) else ""
            if re.search(r"\s", text):
                yield re.sub(r"`[^`\n]+`", "", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_use_no_retired_word(page: Path) -> None:
    kept = next((words for folder, words in KEPT.items() if folder in page.parents), None)
    assert retired(prose(page), kept) == []


def test_help_uses_no_retired_word() -> None:
    known = cli_reference.commands()
    assert len(known) > 40
    for name, command in known.items():
        texts = [command.help, command.epilog, *(getattr(p, "help", "") for p in command.params)]
        assert [found for text in texts for found in retired(text or "")] == [], name


def test_messages_use_no_retired_word() -> None:
    files = sorted(SOURCE.rglob("*.py"))
    assert len(files) > 400
    found = {
        file.relative_to(SOURCE).as_posix(): words
        for file in files
        for text in read_by_people(file.read_text(encoding="utf-8"))
        if (words := retired(text))
    }
    assert set(found) <= ON_DISK, found


def test_pages_of_servers_use_no_retired_word() -> None:
    assert TEMPLATES
    for file in TEMPLATES:
        shown = re.sub(r"<[^>]*>|\{[%{#].*?[%}#]\}", " ", file.read_text(encoding="utf-8"))
        assert retired(shown) == [], file.name


def test_contributors_are_told_which_words_are_retired() -> None:
    lines = CONTRIBUTING.read_text(encoding="utf-8").splitlines()
    rows = [line.split("|")[3] for line in lines if line.startswith("|") and line.count("|") == 4]
    for pattern in RETIRED:
        assert any(re.search(rf"\b(?:{pattern})\b", row) for row in rows), pattern


def test_a_retired_word_is_found() -> None:
    assert len(retired("It was told by Coins; a wish.")) == 3
    assert retired("told apart; told to ask; fair coins; a coin toss; Priv-house-serv") == []
    assert retired("one coin", KEPT[MATHEMATICS]) == []
    source = '"""A coin."""\nraise E("no coins here")\nhint = f"a wish of {x}"\nkey = "wish"\n'
    assert [text for text in read_by_people(source) if retired(text)] == [
        "no coins here", "a wish of ",
    ]  # fmt: skip
