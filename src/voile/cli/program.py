"""The program: it knows every command by name, and imports and builds only the one it is asked for.

Building all of them takes longer than most commands take to answer.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, TyperInfo

from voile.cli.common import commands
from voile.cli.listing import HOMES, PANEL_OF, summaries
from voile.errors import in_shell


class Program(TyperGroup):
    """Lists commands from the listing; what is called is built."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"commands": {}})
        self.commands = Built()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(HOMES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """A command as --help lists it: without its arguments."""
        return listed(cmd_name) if cmd_name in HOMES else None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what it says names options as flags."""
        with in_shell():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and self.commands[str(name)], rest


class Built(Mapping[str, Any]):
    """All commands by name, each built when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        return built(name)

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)


def listed(name: str) -> TyperCommand:
    return TyperCommand(name, help=summaries().get(name), rich_help_panel=PANEL_OF[name])


@functools.cache
def built(name: str) -> Any:
    """The command with its arguments; its module registers it when it is imported."""
    importlib.import_module(f"voile.cli.{HOMES[name]}")
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.registered_groups = [each for each in commands.registered_groups if each.name == name]
    if alone.registered_groups:
        return typer.main.get_group(alone).commands[name]
    alone.registered_commands = [
        each for each in commands.registered_commands if name_of(each) == name
    ]
    return typer.main.get_command(alone)


def name_of(command: CommandInfo | TyperInfo) -> str:
    return command.name or str(getattr(command.callback, "__name__", ""))
