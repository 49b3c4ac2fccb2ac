"""The manual page is what the commands say of themselves, and is roff that readers take."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib

import pytest
from tools import man

from tests.support.paths import ROOT
from voile.cli import PANELS

REQUESTS = {".TH", ".SH", ".SS", ".TP", ".B", ".BR"}


def test_the_manual_is_what_the_commands_say_of_themselves() -> None:
    if os.environ.get("VOILE_WRITE"):
        man.write()
    assert man.PAGE.read_text(encoding="utf-8") == man.manual(), "VOILE_WRITE=1 writes it anew"


def test_every_command_is_in_it() -> None:
    page = man.PAGE.read_text(encoding="utf-8")
    for panel, names in PANELS.items():
        assert f".SH {panel.upper()}" in page
        for name in names:
            assert rf".SS \fBvoile {name}" in page, name
    assert "install\\-completion" in page


def test_it_is_well_formed() -> None:
    """Plain ASCII; lines that begin with a sign of roff are requests that we mean."""
    page = man.PAGE.read_bytes().decode("ascii")
    for line in page.splitlines():
        if line.startswith((".", "'")):
            assert line.split(" ")[0] in REQUESTS, line
        escapes = re.findall(r"\\(.)", line)
        assert set(escapes) <= set("-efb&["), line
        assert line.count(r"\fB") + line.count(r"\fI") == line.count(r"\fR"), line
    paragraphs = re.findall(r"^\.TP\n(.*)\n(.*)$", page, re.MULTILINE)
    assert len(paragraphs) > 300
    assert all(head and said and not said.startswith(".") for head, said in paragraphs)


@pytest.mark.parametrize(
    "words", ["groff -man -Tutf8 -ww -z", "mandoc -T lint -W error"], ids=["groff", "mandoc"]
)
def test_programs_that_read_it_have_nothing_to_say(words: str) -> None:
    program, *options = words.split()
    if shutil.which(program) is None:
        pytest.skip(f"no {program} is installed, which no wheel has")
    done = subprocess.run(
        [program, *options, str(man.PAGE)], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_wheel_installs_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared == {"man/voile.1": "share/man/man1/voile.1"}
