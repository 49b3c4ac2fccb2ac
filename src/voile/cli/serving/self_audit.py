"""The command that looks at what a server has told so far."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import JsonOpt
from voile.cli.serving.common import FolderArg, serve
from voile.terminal import show


@serve.command()
def audit(
    folder: FolderArg,
    ids: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The public ids of its people, one a line.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Bound what the answers so far told about each person, from the questions alone."""
    from voile.serve.self_audit import audit_folder
    from voile.terminal.audits import self_audit_view

    found = audit_folder(folder, ids)
    show(found.to_dict() if as_json else None, lambda: self_audit_view(found))
