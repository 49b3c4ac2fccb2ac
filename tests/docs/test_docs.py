"""The documentation is true: its commands and its Python run, and nothing is left out of it.

A page's blocks run in order in one temporary folder. In ```console and ```bash blocks, lines that
begin with `$ voile` are run; a trailing `# exit 1` states another exit code than 0. What stands
below such a line must be printed, but for its numbers and for `…`; in a block whose fence says
`varies`, coins decide about words, too. ```python blocks share a namespace, with blocks whose
fence says `cell`: cells of a notebook. A block whose fence says `file=NAME` is written to that
file. Blocks in an HTML comment run too: that is how a page sets up what it need not show.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from tools import cli_reference

from tests.support import running
from tests.support.paths import ROOT, TESTS
from tests.support.printed import not_printed
from tests.support.soak import SOAK
from voile.cli import PANELS
from voile.kinds.manifest import Manifest
from voile.kinds.registry import manifest_schema
from voile.signing.statements import SignatureFile

DOCS = ROOT / "docs"
BUILT = DOCS / "_build"
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if BUILT not in page.parents),
]
SCHEMA = DOCS / "reference" / "manifest.schema.json"


@dataclass(frozen=True)
class Block:
    """A fenced block: what stands after the fence, its lines, and the line where they begin."""

    info: str
    lines: tuple[str, ...]
    start: int

    @property
    def language(self) -> str:
        return self.info.split()[0] if self.info else ""

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def is_cell(self) -> bool:
        return "cell" in self.info.split()

    @property
    def file(self) -> str | None:
        found = re.search(r"\bfile=(\S+)", self.info)
        return found[1] if found else None


def blocks(page: Path) -> Iterator[Block]:
    fence, info, start, held = "", "", 0, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if not fence:
            if opened := re.match(r"(`{3,})(.*)$", line):
                fence, info, start, held = opened[1], opened[2].strip(), number + 1, []
        elif line.strip() == fence:
            yield Block(info, tuple(held), start)
            fence = ""
        else:
            held.append(line)
    assert not fence, f"{page}:{start}: the block is not closed"


def commands(block: Block) -> Iterator[tuple[list[str], int, int]]:
    """Arguments, exit code and line of each `$ voile` line; a backslash continues a line."""
    if block.language not in ("console", "bash"):
        return
    lines = iter(enumerate(block.lines, start=block.start))
    for number, first in lines:
        line = first
        while line.endswith("\\"):
            line = line[:-1] + next(lines)[1]
        if line.startswith("$ voile"):
            expected = re.search(r"\s#\s*exit (\d+)$", line)
            spoken = line[: expected.start()] if expected else line
            yield shlex.split(spoken)[2:], int(expected[1]) if expected else 0, number


def shown(block: Block, number: int) -> list[str]:
    """What the page shows of the output of the command in that line."""
    if "varies" in block.info.split():
        return []
    first = number - block.start
    while block.lines[first].endswith("\\"):
        first += 1
    return list(takewhile(lambda line: not line.startswith("$ "), block.lines[first + 1 :]))


def voile(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return running.voile(*arguments, cwd=folder, columns=88)


def background(arguments: list[str], folder: Path) -> subprocess.Popen[str]:
    """A command that serves until the page has ended; a line of JSON says that it is ready."""
    served = subprocess.Popen(
        [sys.executable, "-m", "voile.cli", *arguments, "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert served.stdout
    assert json.loads(served.stdout.readline())["url"], arguments
    return served


def stop(served: list[subprocess.Popen[str]]) -> None:
    for process in served:
        process.terminate()
        process.communicate(timeout=20)


def run_cell(text: str, namespace: dict[str, Any], request: pytest.FixtureRequest) -> None:
    """A cell of a notebook, where magic words work; the page's namespace is the notebook's."""
    shell_class = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    if not shell_class.initialized():
        request.addfinalizer(shell_class.clear_instance)
    shell = shell_class.instance(user_ns=namespace)
    shell.run_cell(text).raise_error()


def title(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def runs(block: Block) -> bool:
    return bool(block.file or block.is_cell or block.language == "python" or list(commands(block)))


LONG = (
    "docs/guides/mine.md", "docs/guides/reconstruction.md", "docs/guides/reproduce.md",
    "docs/reference/cli/interactive-answers.md",
)  # fmt: skip
"""Pages that take long: they run in a soak. Tests of their commands run every time."""


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(map(runs, blocks(page))) and (SOAK or title(page) not in LONG)],
    ids=title,
)
def test_every_command_and_every_python_block_runs(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    if not SOAK:  # how far answers from classes are off is measured with fewer questions
        monkeypatch.setattr("voile.kinds.classes.errors.LEAST_QUESTIONS", 20)
        monkeypatch.setattr("voile.kinds.classes.errors.MOST_QUESTIONS", 20)
    namespace: dict[str, Any] = {"__name__": "docs"}
    served: list[subprocess.Popen[str]] = []
    request.addfinalizer(lambda: stop(served))
    known = page.read_text(encoding="utf-8")
    for block in blocks(page):
        if block.file:
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            # Empty lines in front make tracebacks point at the page.
            code = compile("\n" * (block.start - 1) + block.text, str(page), "exec")
            exec(code, namespace)  # noqa: S102  (the project's own documentation)
        if block.is_cell:
            run_cell(block.text, namespace, request)
        for arguments, expected, line in commands(block):
            if arguments[-1] == "&":
                served.append(background(arguments[:-1], tmp_path))
                continue
            done = voile(arguments, tmp_path)
            assert done.returncode == expected, (
                f"{title(page)}:{line}: voile {shlex.join(arguments)}\n"
                f"exit code {done.returncode}, not {expected}\n{done.stdout}{done.stderr}"
            )
            untrue = not_printed(shown(block, line), done.stdout + done.stderr)
            assert not untrue, f"{title(page)}:{line}: {untrue}\n{done.stdout}{done.stderr}"
            if "--json" in arguments and page.parent == cli_reference.FOLDER:
                for key in top_keys(json.loads(done.stdout)):
                    assert f"`{key}`" in known, f"{title(page)}: {arguments[0]} has {key!r}"


def test_what_is_shown_must_be_printed_but_for_its_numbers() -> None:
    printed = "┃ rows ┃ 1,234.5 ± 7 ┃\ntoken 0fff527c94a5 of iris\nkept, all of it"
    true = ["│ rows │ 12 ± 3 │", "token 84447799458a of iris", "kept, … it", "…", ""]
    assert not not_printed(true, printed)
    untrue = ["columns 12 ± 3", "rows 12 ± 3 ± 4", "of it … kept", "token of iris"]
    assert not_printed(untrue, printed) == untrue


def top_keys(result: Any) -> set[str]:
    return set(result) if isinstance(result, dict) else {key for item in result for key in item}


# ---------------------------------------------------------------------- the command line


def test_the_cli_reference_is_what_the_commands_say_of_themselves() -> None:
    """Write it anew with VOILE_WRITE=1."""
    if os.environ.get("VOILE_WRITE"):
        cli_reference.write()
    for file, wanted in cli_reference.reference().items():
        assert file.exists(), f"{title(file)} is missing; write it with VOILE_WRITE=1"
        written = file.read_text(encoding="utf-8")
        assert written == wanted, f"{title(file)} is not --help's; write it with VOILE_WRITE=1"
    pages = set(cli_reference.FOLDER.glob("*.md"))
    assert pages == set(map(cli_reference.page_of, PANELS)), "a page of no panel"


def cli_prose() -> dict[str, str]:
    """What the pages say of each command by hand."""
    generated = re.compile(r"<!-- \w+: generated .*?<!-- end -->", re.DOTALL)
    found: dict[str, str] = {}
    for panel in PANELS:
        page = cli_reference.page_of(panel).read_text(encoding="utf-8")
        found |= cli_reference.sections(generated.sub("", page))[1]
    return found


@pytest.mark.parametrize("name", cli_reference.commands())
def test_what_is_said_of_a_cli_command_by_hand_is_about_its_options(name: str) -> None:
    command, text = cli_reference.commands()[name], cli_prose()[name]
    options = {spelt for p in command.params for spelt in p.opts if spelt.startswith("-")}
    assert command.help
    forms = re.findall(rf"^```text\n(voile {name} .*?)```", text, re.MULTILINE | re.DOTALL)
    spelt = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(forms)))
    for note in re.findall(r"^- (`-[^:]*):", text, re.MULTILINE):
        spelt |= set(re.findall(r"`(-[a-z-]+)`", note))
    assert spelt <= options, f"voile {name} has no {sorted(spelt - options)}"


# ---------------------------------------------------------------------- files and names


def test_the_manifest_schema_is_the_generated_one() -> None:
    """Write it anew with VOILE_WRITE=1."""
    wanted = json.dumps(manifest_schema(), ensure_ascii=False, indent=2) + "\n"
    if os.environ.get("VOILE_WRITE"):
        SCHEMA.write_text(wanted, encoding="utf-8")
    assert SCHEMA.read_text(encoding="utf-8") == wanted


def test_the_schema_of_signatures_in_the_manifests_folder_is_the_generated_one() -> None:
    page = SCHEMA.with_name("signature.schema.json")
    wanted = json.dumps(SignatureFile.model_json_schema(), ensure_ascii=False, indent=2) + "\n"
    if os.environ.get("VOILE_WRITE"):
        page.write_text(wanted, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == wanted


def test_every_key_of_the_manifest_is_documented() -> None:
    page = (DOCS / "reference" / "release-format.md").read_text(encoding="utf-8")
    rows = " ".join(re.findall(r"^\| (`[^|]*)\|", page, re.MULTILINE))
    for key in Manifest.model_fields:
        assert f"`{key}" in rows, f"release-format.md does not explain {key!r}"


def test_tests_that_are_named_exist() -> None:
    there = {
        name
        for file in TESTS.rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    for page in PAGES:
        named = set(re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8")))
        assert named <= there, f"{title(page)} names {sorted(named - there)}"


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=title
)
def test_links_lead_to_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{title(page)}: {target}"


QUICK = """
import sys
import furo
from sphinx.cmd.build import main
from sphinx.search.en import SearchEnglish
furo._compute_navigation_tree = lambda context: ""
SearchEnglish.stem = lambda self, word: word.lower()
sys.exit(main(sys.argv[1:]))
"""
"""Sphinx without the tree of all pages in each page, and without the stems of words to search for.

Like names in tables of contents, they neither warn nor load, and take much of the time.
"""


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("sphinx", "myst_parser", "furo")),
    reason="needs the extra 'docs'",
)
def test_pages_build_without_a_warning_and_load_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = tmp_path / "html"
    wanted = ["-W", "-q", "-b", "html", "-D", "toc_object_entries=0"]
    sphinx = ["-m", "sphinx"] if SOAK else ["-c", QUICK]
    command = [sys.executable, *sphinx, *wanted, str(DOCS), str(built)]
    done = subprocess.run(
        [*command, "-d", str(tmp_path / "trees")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    remote = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]*")
    pages = list(built.rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        found = remote.search(page.read_text(encoding="utf-8"))
        assert not found, f"{page.name}: {found and found[0]}"
    for sheet in built.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", text), sheet.name
