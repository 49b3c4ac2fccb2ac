"""Commands of commands: `voile serve run`, and groups that are a command by themselves too."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup


class WithDefault(TyperGroup):
    """A group whose first argument may be left out: then the command called `DEFAULT` is meant."""

    DEFAULT = "default"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = [self.DEFAULT, *args]
        return super().parse_args(ctx, args)


def in_order(names: tuple[str, ...]) -> type[TyperGroup]:
    """A group that lists its commands in this order, in whichever files they are."""

    class Ordered(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return sorted(super().list_commands(ctx), key=names.index)

    return Ordered


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


def group_of(help_text: str, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    """A new group, to be added to the commands by its name."""
    return typer.Typer(
        help=help_text,
        cls=cls,
        no_args_is_help=cls is not WithDefault,
        add_completion=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
