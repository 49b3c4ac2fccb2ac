"""Commands of commands: `voile serve run`, and groups that are a command by themselves too."""

from __future__ import annotations

from typing import Any, ClassVar

import typer
from typer.core import TyperGroup


class Ordered(TyperGroup):
    """Lists its commands in the order of `order`, whatever kind they are."""

    order: ClassVar[list[str]] = []

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return [name for name in self.order if name in self.commands]


class WithDefault(TyperGroup):
    """A group whose first argument may be left out: then the command called `DEFAULT` is meant."""

    DEFAULT = "default"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = [self.DEFAULT, *args]
        return super().parse_args(ctx, args)


def flat(group: Any, prefix: str = "") -> dict[str, Any]:
    """Every command by the words that call it, in the order of --help."""
    found: dict[str, Any] = {}
    for name in group.list_commands(None):
        command = group.commands[name]
        called = prefix.strip() if name == WithDefault.DEFAULT else f"{prefix}{name}"
        if isinstance(command, TyperGroup):
            found |= flat(command, f"{called} ")
        else:
            found[called] = command
    return found


def group_of(help_text: str, *, default: bool = False) -> typer.Typer:
    """A new group, to be added to the program by its name."""
    return typer.Typer(
        help=help_text,
        cls=WithDefault if default else TyperGroup,
        no_args_is_help=not default,
        add_completion=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
