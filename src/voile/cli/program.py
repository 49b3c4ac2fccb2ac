"""The program: it knows every command by name, and imports and builds only the one it is asked for.

Building all of them takes longer than most commands take to answer.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, TyperInfo

from voile.cli.common import commands, flat
from voile.errors import in_shell

# ----------------------------------------------------------------------
# which commands there are, under which heading of --help, and where each lives
# Nothing is imported to list them: what they say of themselves is in summaries.json, which a test
# writes from their help (VOILE_WRITE=1 pytest tests/test_options.py -k summaries) and compares.


SUMMARIES = Path(__file__).with_name("summaries.json")
PANELS: dict[str, dict[str, str]] = {
    "Studio": {
        "studio": "studio",
    },
    "Before publishing": {
        "inspect": "tables",
        "schema": "tables",
        "hierarchy": "publishing",
        "plan": "planning",
        "boundary": "planning",
        "frontier": "evaluation",
    },
    "Releases": {
        "publish": "publishing",
        "sign": "signing",
        "keygen": "signing",
        "verify": "releases",
        "describe": "releases",
        "generalize": "publishing",
        "register": "registering",
    },
    "Local perturbation": {
        "perturb": "perturbing",
        "spec": "perturbing",
        "collect": "collecting",
        "combine": "perturbing",
    },
    "Questions": {
        "query": "releases",
        "explain": "releases",
        "refine": "releases",
        "rows": "releases",
        "export": "exporting",
        "shell": "releases",
        "wire": "wire",
    },
    "Interactive answers": {
        "serve": "serving",
        "ask": "remote",
        "mine": "remote",
        "sulq": "research",
    },
    "Mining": {
        "tree": "research",
        "rules": "research",
    },
    "Privacy": {
        "guarantees": "releases",
        "convert": "releases",
        "risk": "evaluation",
        "exposure": "perturbing",
        "attack": "attacks",
        "audit": "attacks",
        "loss": "evaluation",
    },
    "To begin with": {
        "datasets": "tables",
        "demo": "tables",
        "reproduce": "research",
    },
}
"""The module of this folder that has a command, by panel and name."""
FIRST: dict[str, dict[str, str]] = {
    "Look": {
        "inspect": "a table's columns, and the command to type next",
        "plan": "what a release would cost in error, before it is made",
        "risk": "how well the rows of a table can be told apart",
    },
    "Publish": {
        "studio": "all of it in a browser, on this machine alone",
        "publish": "a table as a release that keeps a promise",
        "generalize": "a table as a coarser one, for k, ℓ and t",
        "perturb": "each row by itself, so that nobody need be trusted",
        "register": "what has left of each data set, and limits on it",
    },
    "Ask": {
        "query": "a release in SQL; answers have error bars",
        "shell": "the same at a prompt",
        "export": "CSV, Parquet, SQL, Stata, Croissant, DDI",
        "rows": "synthetic rows, nobody's",
        "wire": "psql, Tableau, Excel, R and JDBC ask releases",
        "ask": "a server",
    },
    "Check": {
        "verify": "a release's files, terms, rows and signatures",
        "describe": "the promise, its limits, and how to count, in words",
        "guarantees": "all that is promised, against whom, and what is not",
        "attack": "what somebody who knows something would learn",
    },
    "Serve": {
        "serve": "so many noisy answers of a table that stays here",
        "collect": "a survey whose answers are perturbed before they come",
    },
    "Research": {
        "frontier": "privacy and utility of many releases of a table",
        "audit": "whether a mechanism keeps its promise",
        "reproduce": "the papers' figures, made again and judged",
    },
    "Begin": {
        "demo": "see it work",
        "datasets": "tables to practise on",
    },
}
"""What --help shows, by what people do; all other commands are named in one line."""
ALL = "--help-all"
"""Describes every option of a command, where --help has one screen."""
HOMES = {name: home for panel in PANELS.values() for name, home in panel.items()}
PANEL_OF = {name: title for title, panel in PANELS.items() for name in panel}


@cache
def summaries() -> dict[str, str]:
    """The first words of each command's help, by its name."""
    found: dict[str, str] = json.loads(SUMMARIES.read_text(encoding="utf-8"))
    return found


# ----------------------------------------------------------------------
# the program: it knows every command by name, and imports and builds only the one it is asked for
# Building all of them takes longer than most commands take to answer.


class Program(TyperGroup):
    """Lists commands from the listing; what is called is built."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"commands": {}})
        self.commands = Built()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Every command, in the order of --help."""
        return list(HOMES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """A command as --help lists it: without its arguments."""
        return listed(cmd_name) if cmd_name in HOMES else None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """One screen: what people do, then the names of the rest."""
        del formatter  # which would list every command at length
        print_listing(str(self.help), ctx.command_path)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what it says names options as flags."""
        with in_shell():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called, built; --help-all asks for the whole of its help."""
        if ALL in args:
            ctx.meta[ALL] = True
            args = ["--help" if word == ALL else word for word in args]
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and self.commands[str(name)], rest


def print_listing(about: str, program: str) -> None:
    """What --help of the program shows."""
    from rich.console import Console
    from rich.table import Table

    listing = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for style in ("bold", "cyan", ""):
        listing.add_column(style=style, no_wrap=bool(style))
    for title, names in FIRST.items():
        for name, words in names.items():
            listing.add_row(title if name == next(iter(names)) else "", name, words)
    shown = {name for names in FIRST.values() for name in names}
    rest = " ".join(name for name in HOMES if name not in shown)
    console = Console(highlight=False)
    console.print(f"Usage: {program} COMMAND …\n\n{about}\n", markup=False)
    console.print(listing)
    console.print(f"\n[bold]Also[/bold]  {rest}\n")
    console.print(
        f"{program} COMMAND --help says more; --version; --install-completion", markup=False
    )


class Built(Mapping[str, Any]):
    """All commands by name, each built when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return built(name)

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


def listed(name: str) -> TyperCommand:
    """A command with its summary only."""
    return TyperCommand(name, help=summaries().get(name), rich_help_panel=PANEL_OF[name])


@functools.cache
def built(name: str) -> Any:
    """The command with its arguments; its module registers it when it is imported."""
    importlib.import_module(f"voile.cli.{HOMES[name]}")
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.registered_groups = [each for each in commands.registered_groups if each.name == name]
    if alone.registered_groups:
        return folded(name, typer.main.get_group(alone).commands[name])
    alone.registered_commands = [
        each for each in commands.registered_commands if name_of(each) == name
    ]
    return folded(name, typer.main.get_command(alone))


def folded(name: str, command: Any) -> Any:
    """A command whose help, and that of the commands in it, fits a screen."""
    inside = flat(command, f"{name} ") if isinstance(command, TyperGroup) else {name: command}
    for called, each in inside.items():
        each.format_help = functools.partial(print_help, called, each, each.format_help)
    return command


def print_help(name: str, command: Any, whole: Any, ctx: Any, formatter: Any) -> None:
    """One screen, or all that can be said."""
    from voile.cli.screens import SHOWN, print_screen

    if ctx.meta.get(ALL) or name not in SHOWN:
        whole(ctx, formatter)
    else:
        print_screen(name, command)


def name_of(command: CommandInfo | TyperInfo) -> str:
    """The name that a command is called by."""
    return command.name or str(getattr(command.callback, "__name__", ""))
