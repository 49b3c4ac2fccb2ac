"""Writes the manual page man/voile.1 from the commands' own help.

`VOILE_WRITE=1 pytest tests/packaging -k manual` writes it, the test compares. A wheel installs it
as share/man/man1/voile.1, where `man voile` finds it if the environment's folder is on MANPATH.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from tools.cli_reference import commands, spelled, value

from voile import __version__
from voile.cli import PANELS, app

PAGE = Path(__file__).resolve().parent.parent / "man" / "voile.1"
HEAD = "Publish tables about people so that anyone can count, within a promise to each of them."
TAIL = r"""
.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
The promise, or the data, says no.
.TP
.B 2
It was called in a wrong way.
.SH ENVIRONMENT
.TP
.B VOILE_REGISTER
The steward's register: a file, or the address of a PostgreSQL.
.TP
.B VOILE_REGISTER_KEY
The file of the register's key.
.TP
.B VOILE_TOKEN
The token of
.BR "voile ask" .
.SH SEE ALSO
The documentation in the folder docs of the source."""


def text(words: str) -> str:
    """Prose as roff takes it: nothing in it is a request or an escape."""
    escaped = words.replace("\\", r"\e").replace("-", r"\-").replace("`", "")
    escaped = "".join(c if c.isascii() else rf"\[u{ord(c):04X}]" for c in escaped)
    lines = [line.strip() for line in escaped.splitlines() if line.strip()]
    return "\n".join(rf"\&{line}" if line[0] in ".'" else line for line in lines)


def bold(words: str) -> str:
    """Words as they are typed."""
    return rf"\fB{text(words)}\fR"


def called(parameter: Any) -> str:
    """An argument or an option with what it takes, at the head of a paragraph."""
    if parameter.param_type_name == "argument":
        return rf"\fI{text(spelled(parameter))}\fR"
    names = ", ".join(bold(name) for name in sorted(parameter.opts, key=len))
    kind = value(parameter)
    return f"{names} " + rf"\fI{text(kind)}\fR" if kind else names


def paragraph(parameter: Any) -> str:
    """One argument or option."""
    said = [parameter.help or ""]
    if parameter.required and parameter.param_type_name == "option":
        said.append("Required.")
    if parameter.default is not None and value(parameter):
        said.append(f"Default: {parameter.default}.")
    meaning = text(" ".join(said)) or r"\&"
    return f".TP\n{called(parameter)}\n{meaning}"


def section(name: str, command: Any) -> str:
    """One command: how it is called, what it does, and what it takes."""
    takes = [each for each in command.params
             if not getattr(each, "hidden", False) and each.name != "help"]  # fmt: skip
    arguments = " ".join(
        rf"\fI{text(spelled(each))}\fR" for each in takes if each.param_type_name == "argument"
    )
    words = " ".join(filter(None, [bold(f"voile {name}"), "[options]", arguments]))
    help_text = re.sub(r"\n\s*\n", "\n", command.help or "")
    return "\n".join([f".SS {words}", text(help_text), *map(paragraph, takes)])


def manual() -> str:
    """The page as it should be."""
    general = [each for each in typer.main.get_command(app).params if each.name != "help"]
    parts = [
        rf'.TH VOILE 1 "" "voile {text(__version__)}" "Voile"',
        ".SH NAME",
        r"voile \- publish tables about people, and count from what was published",
        ".SH SYNOPSIS",
        r"\fBvoile\fR \fIcommand\fR [options] [arguments]",
        ".SH DESCRIPTION",
        text(HEAD),
        "Every command takes \\fB\\-\\-help\\fR; most take \\fB\\-\\-json\\fR.",
        ".SH OPTIONS",
        *map(paragraph, general),
    ]
    known = commands()
    for panel, names in PANELS.items():
        parts.append(f".SH {text(panel.upper())}")
        parts += [section(name, each) for name, each in known.items() if name.split()[0] in names]
    return "\n".join(parts) + TAIL + "\n"


def write() -> None:
    """Bring the page up to date."""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(manual(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write()
