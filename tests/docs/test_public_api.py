"""The public interface: what modules name in `__all__`, explained, and enough for papers and pages.

A module is public if it has `__all__`, but for those in INTERNAL. The papers' modules, which
make their figures again, use the public interface and nothing else: so does any reader's program,
and so do the pages and notebooks that such programs are written after.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import voile
from tests.docs.test_docs import PAGES, blocks, title
from tests.support.paths import ROOT

SOURCE = ROOT / "src"
API = ROOT / "docs" / "reference" / "api"
PAPERS = SOURCE / "voile" / "reproduce"
INTERNAL = (
    "voile.cli", "voile.shell", "voile.engines", "voile.web", "voile.terminal",
    "voile.evaluate.reconstruction.command", "voile.schema.attribute", "voile.system",
)  # fmt: skip
"""Behind the commands and packages: they may name things for each other, and promise nothing."""


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(file): file for file in sorted((SOURCE / "voile").rglob("*.py"))}


@functools.cache
def parsed(module: str) -> ast.Module:
    return ast.parse(FILES[module].read_text(encoding="utf-8"))


def targets(statement: ast.stmt) -> list[str]:
    """The names that a statement of a module assigns."""
    if isinstance(statement, ast.Assign):
        named = [each for target in statement.targets for each in ast.walk(target)]
        return [each.id for each in named if isinstance(each, ast.Name)]
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return [statement.target.id]
    return []


def is_paper(module: str) -> bool:
    """Whether it is a paper's own package, or in one."""
    return any(
        file.is_dir() and f"{module}.".startswith(f"voile.reproduce.{file.name}.")
        for file in PAPERS.iterdir()
    )


@functools.cache
def is_public(module: str) -> bool:
    if module not in FILES or is_paper(module):
        return False
    inside = any(f"{module}.".startswith(f"{package}.") for package in INTERNAL)
    # A pattern and no parser: tests are collected from this, and parsing all files takes seconds.
    text = FILES[module].read_text(encoding="utf-8")
    return not inside and re.search(r"^__all__\b[^=\n]*=", text, re.MULTILINE) is not None


PUBLIC = [module for module in FILES if is_public(module)]


def exported(module: str) -> list[str]:
    return list(importlib.import_module(module).__all__)


def explained(module: str, name: str) -> bool:
    """Whether a string stands below the assignment of a name, in the module where it is made."""
    body = parsed(module).body
    for statement, below in zip(body, [*body[1:], None], strict=True):
        if name in targets(statement):
            return isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    for statement in [*body, *only_for_types(body)]:
        if isinstance(statement, ast.ImportFrom) and statement.module in FILES:
            for alias in statement.names:
                if name == (alias.asname or alias.name):
                    return explained(statement.module, alias.name)
    return False


def only_for_types(body: list[ast.stmt]) -> list[ast.stmt]:
    """What stands under `if TYPE_CHECKING`: names that are loaded on first use."""
    tests = [each for each in body if isinstance(each, ast.If)]
    return [
        line for each in tests if ast.unparse(each.test) == "TYPE_CHECKING" for line in each.body
    ]


def docstring(module: str, name: str) -> bool:
    """Whether a public name says what it is, in its own words."""
    member = getattr(importlib.import_module(module), name)
    if inspect.isclass(member):
        own = vars(member).get("__doc__") or ""
        # A dataclass without words gets its signature.
        return bool(own.strip()) and not own.startswith(f"{member.__name__}(")
    if inspect.isroutine(member) or inspect.ismodule(member) or hasattr(member, "__wrapped__"):
        return bool((member.__doc__ or "").strip())
    return explained(module, name)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_there_and_has_a_docstring(module: str) -> None:
    there = importlib.import_module(module)
    assert there.__doc__, f"{module} has no docstring"
    missing = [name for name in exported(module) if not hasattr(there, name)]
    assert not missing, f"{module}.__all__ names {missing}, which it does not have"
    silent = [name for name in exported(module) if not docstring(module, name)]
    assert not silent, f"{module}: {silent} have no docstring"


def methods(member: type) -> Iterator[tuple[str, object]]:
    """The methods and properties that a class defines, but for those behind an underscore."""
    for name, found in vars(member).items():
        if name.startswith("_"):
            continue
        function = found.fget if isinstance(found, property) else inspect.unwrap(found)
        function = getattr(function, "__func__", getattr(function, "func", function))
        if inspect.isfunction(function):
            yield name, function


@pytest.mark.parametrize("name", [name for name in voile.__all__ if name[0].isupper()])
def test_every_method_at_the_front_door_has_a_docstring(name: str) -> None:
    silent = [method for method, found in methods(getattr(voile, name)) if not found.__doc__]
    assert not silent, f"voile.{name}: {silent} have no docstring"


# ---------------------------------------------------------------------- what the papers use


def is_allowed(module: str, name: str) -> bool:
    """Whether a paper may write `from module import name`."""
    if f"{module}.".startswith("voile.reproduce."):
        return True
    if is_public(module) and name in exported(module):
        return True
    return is_public(f"{module}.{name}")


def imports(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Line, module and name of everything of ours that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "voile":
            for alias in node.names:
                yield node.lineno, str(node.module), alias.name
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("voile."):
                    package, _, name = alias.name.rpartition(".")
                    yield node.lineno, package, name


def wrong(tree: ast.Module) -> list[str]:
    """What a paper's module imports that is not public."""
    used = [each for each in imports(tree) if not is_allowed(*each[1:])]
    return [f"line {line}: from {module} import {name}" for line, module, name in used]


@pytest.mark.parametrize("module", [module for module in FILES if is_paper(module)])
def test_papers_import_public_names_only(module: str) -> None:
    assert not wrong(parsed(module)), f"{module} uses what is not public: {wrong(parsed(module))}"


@pytest.mark.parametrize(
    "line",
    [
        "from voile.engines.duckdb.table import DuckTable",
        "from voile.privacy.planner import plan",
        "import voile.noise.kernels",
        "from voile.noise import kernels",
        "from voile.noise import Stranger",
    ],
)
def test_an_import_of_what_is_not_public_is_found(line: str) -> None:
    assert wrong(ast.parse(line))
    assert not wrong(ast.parse("import voile\nfrom voile.noise import Key"))


# ---------------------------------------------------------------------- what the pages use


NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def is_public_name(dotted: str) -> bool:
    """Whether it is a public module, a public name, or what a public name has."""
    if dotted == "voile" or is_public(dotted):
        return True
    module, _, name = dotted.rpartition(".")
    if is_public(module):
        return name in exported(module)
    owner, _, member = module.rpartition(".")
    return is_public(owner) and member in exported(owner) and hasattr(found(owner, member), name)


def found(module: str, name: str) -> object:
    return getattr(importlib.import_module(module), name)


def dotted_uses(tree: ast.Module) -> set[str]:
    """What a program reaches by dots from `voile`, such as `voile.privacy.plan`."""
    written = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    # What is left with a call or an index in it is a use of some object's.
    names = {each for each in written if re.fullmatch(r"voile(\.\w+)+", each)}
    return {each for each in names if not any(other.startswith(f"{each}.") for other in names)}


def not_public(code: str) -> list[str]:
    """What a reader's program takes from us that is not public."""
    tree = ast.parse(code)
    used = [
        f"{module}.{name}" for _, module, name in imports(tree) if not is_exported(module, name)
    ]
    return sorted([*used, *(each for each in dotted_uses(tree) if not is_public_name(each))])


def is_exported(module: str, name: str) -> bool:
    return is_public_name(module) and is_public_name(f"{module}.{name}")


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_pages_use_and_name_only_what_is_public(page: Path) -> None:
    """Blocks in HTML comments too: readers look at how a page was set up."""
    for block in blocks(page):
        if block.language == "python":
            assert not not_public(block.text), f"{title(page)}:{block.start}"
    named = re.findall(
        r"`(voile(?:\.[A-Za-z_]\w*)+)(?:\(.*?\))?`", page.read_text(encoding="utf-8")
    )
    hidden = sorted({name for name in named if not is_public_name(name)})
    assert not hidden, f"{title(page)} names {hidden}, which have no page in the reference"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=title)
def test_notebooks_use_only_what_is_public(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(cells, start=1):
        if cell["cell_type"] == "code":
            lines = [line for line in "".join(cell["source"]).splitlines() if line[:1] not in "!%"]
            assert not not_public("\n".join(lines)), f"{title(notebook)}, cell {number}"


@pytest.mark.parametrize(
    "code",
    [
        "from voile.remote.implication import best_halves",
        "from voile.privacy.local.amplification import row_bound",
        "import voile.cli",
        "import voile\nvoile.privacy.planner.plan(1)",
        "import voile\nvoile.stranger('people.csv')",
    ],
)
def test_what_a_page_must_not_use_is_found(code: str) -> None:
    assert not_public(code)
    assert not not_public("import voile\nvoile.open('a').query('b')\nvoile.Release.open('a')")


# ---------------------------------------------------------------------- what the reference says


def test_every_public_module_is_in_the_reference_once() -> None:
    pages = [file.read_text(encoding="utf-8") for file in sorted(API.glob("*.md"))]
    described = sorted(re.findall(r"^\.\. automodule:: (\S+)", "\n".join(pages), re.MULTILINE))
    assert not set(PUBLIC) - set(described), "add `.. automodule::` of these to a page in api/"
    assert described == sorted(PUBLIC)
