"""What only some systems have is named in `voile.system` alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support.paths import ROOT
from voile.system import here

SOURCE = ROOT / "src" / "voile"
MODULES = {"fcntl", "msvcrt", "resource", "pwd", "grp", "termios", "winreg", "_winapi"}
NAMES = re.compile(
    r"^(SIG(HUP|PIPE|KILL|PROF|ALRM|QUIT|USR1|USR2|BREAK|CHLD)|setitimer|ITIMER_\w+|alarm|"
    r"add_signal_handler|get(e?uid|e?gid|pgid)|st_uid|fchmod|fork|killpg|setsid|pread|pwrite|link|"
    r"mkfifo|setpriority|sched_getaffinity|sysconf|O_(NOFOLLOW|NONBLOCK|NOCTTY|CLOEXEC|DIRECTORY|"
    r"BINARY|NOINHERIT)|SO_(REUSEADDR|REUSEPORT|EXCLUSIVEADDRUSE)|AF_UNIX|pass_fds|start_new_session|creationflags|flock|lockf|renameat2|windll)$"
)
HOMES = {"os", "signal", "loop", "socket"}
PLATFORM = {("sys", "platform"), ("os", "name"), ("platform", "system")}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] != "system":
            yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def named(tree: ast.Module) -> Iterator[str]:
    """What a module names that not every system has."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (one.name for one in names if one.name in MODULES)
            case ast.ImportFrom(module=module) if module in MODULES:
                yield str(module)
            case ast.Attribute(value=ast.Name(id=of), attr=attr):
                if (of in HOMES and NAMES.match(attr)) or (of, attr) in PLATFORM:
                    yield f"{of}.{attr}"
                elif attr == "st_uid":
                    yield attr
            case ast.keyword(arg=str(arg)) if NAMES.match(arg):
                yield arg


def test_nobody_else_names_what_only_some_systems_have() -> None:
    found = {path: list(named(tree)) for path, tree in modules()}
    assert len(found) > 500
    assert {path: names for path, names in found.items() if names} == {}


def test_the_search_finds_what_it_looks_for() -> None:
    assert {"fcntl", "signal.SIGHUP", "os.getuid", "sys.platform", "pass_fds"} <= set(
        named(of_system("posix"))
    )


def of_system(name: str) -> ast.Module:
    """A module for some systems, which others cannot load."""
    return ast.parse((SOURCE / "system" / f"{name}.py").read_text(encoding="utf-8"))


def test_bytes_of_files_do_not_depend_on_the_system() -> None:
    """Text that is written to a place has its line ends told; a handle of the system its kind."""
    wrong = []
    for path, tree in modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            keywords = {one.arg for one in node.keywords}
            mode = [a.value for a in node.args if isinstance(a, ast.Constant)][:1]
            written = node.func.attr == "open" and mode and re.fullmatch("[wax]t?", str(mode[0]))
            if (written or node.func.attr == "write_text") and "newline" not in keywords:
                wrong.append(f"{path}:{node.lineno}")
            if node.func.attr == "open" and getattr(node.func.value, "id", "") == "os":
                assert "devnull" in ast.unparse(node), f"{path}:{node.lineno}"
    assert wrong == []


def test_both_have_the_same_functions() -> None:
    wanted = set(here.__all__) - {"BROKEN_PIPE"}
    for name in ("posix", "windows"):
        assert wanted <= set(defined(of_system(name))), name


def defined(tree: ast.Module) -> Iterator[str]:
    """The names that a module gives its importers."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.ImportFrom(names=names):
                yield from (one.asname or one.name for one in names)
