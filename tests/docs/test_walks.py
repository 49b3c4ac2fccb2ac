"""The walks of docs/walks: what their pages say that is no command of Voile's.

The commands of Voile and the Python on them are run with all other pages, by test_docs.py.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_docs import DOCS, Block, blocks, shown
from tests.support.postgres import find_program
from tests.support.printed import not_printed
from tests.support.processes import started
from tests.support.running import voile

WALKS = DOCS / "walks"
PAGES = sorted(page for page in WALKS.glob("*.md") if page.stem != "index")


def test_every_walk_is_listed_and_ends_with_what_to_do_next() -> None:
    index = (WALKS / "index.md").read_text(encoding="utf-8")
    assert len(PAGES) == 7
    for page in PAGES:
        assert f"]({page.name})" in index and f"\n{page.stem}\n" in index
        headings = re.findall("^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings[-1] == "What to do next", page.name


# ---------------------------------------------------------------------- an analyst's psql


def typed(block: Block, program: str) -> Iterator[tuple[dict[str, str], list[str], int]]:
    """The variables, the arguments and the line of each `$ … program …` line."""
    for number, first in enumerate(block.lines, start=block.start):
        if re.match(rf"\$ ([A-Z_]+=\S* |[A-Z_]+=\".*?\" )*{program} ", first):
            at, line = number - block.start, first
            while line.endswith("\\"):
                at += 1
                line = line[:-1] + block.lines[at]
            words = shlex.split(line)[1:]
            begin = words.index(program)
            variables = dict(word.split("=", 1) for word in words[:begin])
            yield variables, words[begin + 1 :], number


def test_what_the_analyst_types_in_psql(tmp_path: Path, made: str) -> None:
    psql, page = find_program("psql"), WALKS / "analyst.md"
    with started("wire", made, "--port", "0", "--trust", "--json") as (_, data):
        lines = [(block, *each) for block in blocks(page) for each in typed(block, "psql")]
        assert len(lines) == 3
        for block, variables, arguments, number in lines:
            here = [one.replace("port=5434", f"port={data['port']}") for one in arguments]
            done = subprocess.run(
                [psql, "-X", *here], capture_output=True, text=True, timeout=60, check=False,
                cwd=tmp_path, env=os.environ | variables,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            untrue = not_printed(shown(block, number), done.stdout)
            assert not untrue, f"line {number}: {untrue}\n{done.stdout}"


@pytest.fixture
def made(tmp_path: Path) -> str:
    """The release that the analyst has."""
    columns = "age,sex,education,salary"
    done = voile(
        "publish", "dataset:adult/boundary", "--columns", columns, "-o", str(tmp_path / "a.voile"),
        "--name", "adult",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return str(tmp_path / "a.voile")


# ---------------------------------------------------------------------- an operator's unit


def test_systemd_takes_the_operators_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze") or pytest.skip("systemd-analyze is not installed")
    (unit,) = [each for each in blocks(WALKS / "operator.md") if each.language == "ini"]
    assert "/opt/voile/bin/voile" in unit.text
    place = tmp_path / "counts.service"

    def verified(text: str) -> str:
        place.write_text(text, encoding="utf-8")
        done = subprocess.run(
            [analyze, "verify", "--man=no", str(place)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        return "\n".join(line for line in done.stderr.splitlines() if str(place.name) in line)

    here = unit.text.replace("/opt/voile/bin/voile", sys.executable)
    assert not verified(here)
    assert "Unknown" in verified(here.replace("LimitNOFILE", "LimitFiles"))
