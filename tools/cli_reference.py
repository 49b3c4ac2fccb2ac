"""Writes the usage and the options in docs/reference/cli/ from the commands' own help.

One page for each panel of `voile --help`, one section for each command. What stands between the
markers is generated; all else is written by hand and kept. A command that has no section yet gets
one at its place. `VOILE_WRITE=1 pytest tests/docs/test_docs.py -k cli` writes, the test compares.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from voile.cli import PANELS, app
from voile.cli.common import flat

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
INDEX = REFERENCE / "cli.md"
FOLDER = REFERENCE / "cli"
VALUES = {"str": "text", "int": "whole number", "float": "number", "Path": "path", "list": "text"}
END = "<!-- end -->"


def commands() -> dict[str, Any]:
    """Every command by the words that call it, in the order of --help."""
    return flat(typer.main.get_command(app))


def panel_commands(panel: str) -> dict[str, Any]:
    """The commands that a panel of --help shows, with those inside of groups."""
    return {name: each for name, each in commands().items() if name.split()[0] in PANELS[panel]}


def page_of(panel: str) -> Path:
    """Where a panel's commands are described."""
    return FOLDER / f"{panel.lower().replace(' ', '-')}.md"


def begin(what: str) -> str:
    """The marker that opens a generated region."""
    return f"<!-- {what}: generated from --help, see tools/cli_reference.py -->"


def region(what: str, body: str) -> str:
    """Generated text between its markers."""
    return f"{begin(what)}\n{body}\n{END}"


def put(text: str, what: str, body: str) -> str:
    """The text with a region written anew; where there is no such region it is put at the end."""
    found = re.compile(rf"{re.escape(begin(what))}\n.*?{re.escape(END)}", re.DOTALL)
    fresh = region(what, body)
    if found.search(text):
        return found.sub(lambda _: fresh, text, count=1)
    return f"{text.rstrip()}\n\n{fresh}\n".lstrip("\n")


def prose(help_text: str) -> str:
    """Help as Markdown: options as code, and nothing that Markdown would take for its own."""
    escaped = re.sub(r"([*|<\\])", r"\\\1", help_text)
    return re.sub(r"(?<![\w`-])(--?[a-z][a-z-]*)", r"`\1`", escaped)


def spelled(parameter: Any) -> str:
    """An argument or an option as one writes it."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(max(parameter.opts, key=len))


def value(parameter: Any) -> str:
    """What kind of value an option takes; nothing for one that is only there or not."""
    if parameter.param_type_name == "option" and parameter.is_flag:
        return ""
    annotation = parameter.type_descriptor.annotation
    return VALUES.get(getattr(annotation, "__name__", ""), "text")


def meaning(parameter: Any) -> str:
    """The help, and what else decides: whether it is required, repeated, set elsewhere."""
    said = [prose(parameter.help or "")]
    if parameter.required and parameter.param_type_name == "option":
        said.append("Required.")
    if parameter.multiple and "repeatable" not in said[0]:
        said.append("May be repeated.")
    if parameter.default is not None and value(parameter):
        said.append(f"Default `{parameter.default}`.")
    if parameter.envvar:
        said.append(f"Else the variable `{parameter.envvar}`.")
    return " ".join(said)


def usage(name: str, command: Any) -> str:
    """How it is called: arguments and required options in full."""
    words = ["voile", name]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            shown = spelled(parameter)
            optional = not parameter.required and not shown.startswith("[")
            words.append(f"[{shown}]" if optional else shown)
        elif parameter.required:
            words.append(f"{spelled(parameter)} {value(parameter).split()[-1].upper()}")
    return f"```text\n{' '.join(words)} [OPTIONS]\n```"


def options(command: Any) -> str:
    """A table of the arguments and options, in the order of --help."""
    lines = ["| argument or option | value | |", "|---|---|---|"]
    for each in command.params:
        if getattr(each, "hidden", False) or each.name == "help":
            continue
        is_argument = each.param_type_name == "argument"
        names = [spelled(each)] if is_argument else sorted(each.opts, key=len)
        shown = ", ".join(f"`{name}`" for name in names)
        lines.append(f"| {shown} | {value(each)} | {meaning(each)} |")
    return "\n".join(lines)


def sections(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the first command, and what stands under each `## voile NAME`."""
    before, *parts = re.split(r"^## voile (.+)\n", text, flags=re.MULTILINE)
    return before, dict(zip(parts[::2], parts[1::2], strict=True))


def page(panel: str, text: str) -> str:
    """A page with its generated parts written anew, its commands in the order of --help."""
    before, written = sections(text)
    there = panel_commands(panel)
    if gone := sorted(set(written) - set(there)):
        raise ValueError(f"{page_of(panel).name} describes {gone}, which {panel!r} does not have")
    out = before.strip() or f"# {panel}"
    for name, command in there.items():
        body = written.get(name, f"\n{region('usage', '')}\n\n{command.help}\n")
        body = put(put(body, "usage", usage(name, command)), "options", options(command))
        out += f"\n\n## voile {name}\n\n{body.strip()}"
    return out + "\n"


def index(text: str) -> str:
    """The first page with its list of commands written anew."""
    lines = list[str]()
    for panel in PANELS:
        lines += [f"**[{panel}](cli/{page_of(panel).name})**", "", "| command | |", "|---|---|"]
        for name, command in panel_commands(panel).items():
            link = f"cli/{page_of(panel).name}#voile-{name.replace(' ', '-')}"
            summary = prose(command.help.partition("\n\n")[0])
            lines.append(f"| [`voile {name}`]({link}) | {summary} |")
        lines.append("")
    pages = "\n".join(f"cli/{page_of(panel).stem}" for panel in PANELS)
    return put(text, "commands", "\n".join(lines) + f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```")


def reference() -> dict[Path, str]:
    """Every page of the reference as it should be."""
    wanted = {INDEX: index(INDEX.read_text(encoding="utf-8"))}
    for panel in PANELS:
        file = page_of(panel)
        wanted[file] = page(panel, file.read_text(encoding="utf-8") if file.exists() else "")
    return wanted


def write() -> None:
    """Bring every page up to date."""
    for file, text in reference().items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
