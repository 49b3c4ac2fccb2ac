"""What the commands of a server share: their group and the server's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import commands
from voile.cli.groups import group_of, in_order

serve = group_of(
    "Serve noisy counts of a table: so many answers, and never one more.",
    in_order(
        ("init", "token", "group", "revoke", "run", "status", "log", "recover", "audit"),
    ),
)
commands.add_typer(serve, name="serve")

FolderArg = Annotated[Path, typer.Argument(metavar="DIR", help="The server's folder.")]
