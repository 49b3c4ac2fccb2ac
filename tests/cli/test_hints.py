"""Every command that a message of the product names exists, and takes the options named with it.

Hints of wrong inputs are typed in `test_wrong_inputs.py`, the commands of computed advice in
`tests/kinds/test_choosing.py`. Here all messages of the source are read.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

import voile
from voile.cli import app
from voile.cli.common import flat
from voile.cli.publishing import table_words

SOURCE = Path(voile.__file__).parent
COMMAND = re.compile(
    r"`voile ([^`…]+)|(?:^|[:;,(] |= |by |with |run |let |use |is )voile ([a-z][^`…]*)"
)
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def texts(node: ast.AST) -> Iterator[str]:
    """The string constants below a node, joined as they are written; {…} for what is computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        parts = [v.value if isinstance(v, ast.Constant) else "{}" for v in node.values]
        yield "".join(str(part) for part in parts)
    else:
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


def messages() -> Iterator[tuple[str, str]]:
    """Every text of a hint or a note, with its place."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            part: ast.expr | None = None
            if isinstance(node, ast.keyword) and node.arg in ("hint", "note", "instead"):
                part = node.value
            elif isinstance(node, ast.Raise):
                part = node.exc
            if part is not None:
                for text in texts(part):
                    yield f"{path.relative_to(SOURCE)}:{part.lineno}", text


def named() -> list[tuple[str, str]]:
    """The command lines that messages name."""
    found = dict.fromkeys(
        (place, next(filter(None, match.groups())))
        for place, text in messages()
        for match in COMMAND.finditer(text)
    )
    return list(found)


@cache
def commands() -> dict[str, Any]:
    return flat(typer.main.get_command(app))


def resolved(line: str) -> Any:
    """The command that a line begins with, by as many of its words as can be; or None."""
    words = [word.strip("`,;.:)?") for word in line.split()]
    starts = (" ".join(words[:count]) for count in (3, 2, 1))
    return next((commands()[start] for start in starts if start in commands()), None)


def flags_of(command: Any) -> set[str]:
    return {flag for one in command.params for flag in (*one.opts, *one.secondary_opts)}


def test_messages_name_commands() -> None:
    """So many that what follows is about something."""
    assert len(named()) >= 50


@pytest.mark.parametrize(("place", "line"), named())
def test_a_command_in_a_message_exists_and_takes_its_options(place: str, line: str) -> None:
    command = resolved(line)
    assert command is not None, f"{place}: voile {line}"
    if command.name == "publish":  # its options follow from the method
        return
    unknown = set(FLAG.findall(line)) - flags_of(command)
    assert not unknown, f"{place}: voile {line}: {unknown}"


def test_a_server_in_a_hint_has_the_flags_of_the_table() -> None:
    """How a table is read, and which of its columns, is the same for the server that is advised."""
    typed = ["a b.csv", "--na", "--columns", "x,y z", "--epsilon", "1", "--decimal=,", "--yes"]
    assert table_words(typed, "a b.csv") == "'a b.csv' --na --columns 'x,y z' --decimal=,"
