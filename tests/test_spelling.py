"""Messages name options as their caller writes them: as flags in a shell, else as keywords."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.paths import ROOT
from voile.errors import in_shell, spelled

SOURCE = ROOT / "src" / "voile"
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
COMMAND = re.compile(r"\bvoile [a-z]+[^;,`]*")
"""A whole command may be named to anyone; its flags are part of it."""


def texts(node: ast.AST) -> Iterator[ast.Constant]:
    """The texts of a statement, but for the flags that `spelled` is given."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.keyword) and child.arg == "flag":
            continue
        if isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child
        yield from texts(child)


def is_message(node: ast.AST) -> bool:
    """Whether it makes what a caller reads of an error."""
    if isinstance(node, ast.Raise | ast.keyword):
        return isinstance(node, ast.Raise) or node.arg == "hint"
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == "hint" for target in targets)


def literal_flags(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        for text in texts(node) if is_message(node) else ():
            if found := FLAG.search(COMMAND.sub("", str(text.value))):
                yield f"{file.relative_to(SOURCE)}:{text.lineno}: {found[0]}"


def test_errors_name_options_by_spelled_and_not_as_flags() -> None:
    files = [file for file in SOURCE.rglob("*.py") if "cli" not in file.parts]
    assert len(files) > 200
    assert sorted({found for file in files for found in literal_flags(file)}) == []


def test_a_literal_flag_is_found() -> None:
    source = (
        'def f(x):\n    raise E("a", hint=f"say --nulls {x}")\n'
        'def g():\n    raise E("`voile plan --local` plans", hint=spelled("id", flag="--id"))\n'
        'def h():\n    return E("a", hint="pass --columns")\n'
    )
    tree = ast.parse(source)
    found = [text.lineno for node in ast.walk(tree) if is_message(node) for text in texts(node)
             if FLAG.search(COMMAND.sub("", str(text.value)))]  # fmt: skip
    assert set(found) == {2, 6}


def test_threads_of_a_command_speak_as_the_command_does() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(spelled, "nulls", "drop").result() == "nulls='drop'"
        with in_shell():
            assert pool.submit(spelled, "nulls", "drop").result() == "--nulls drop"
        assert pool.submit(spelled, "nulls").result() == "nulls="
