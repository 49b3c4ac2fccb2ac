"""Commands that look at what a server has answered, and after its ledger."""

from __future__ import annotations

from typing import Annotated

import typer

from voile.cli.common import JsonOpt
from voile.cli.serving.common import FolderArg, serve
from voile.terminal import say, show
from voile.terminal.serving import log_view, recovered_lines, status_view


@serve.command()
def status(folder: FolderArg, as_json: JsonOpt = False) -> None:
    """Show budgets, groups, analysts and their tokens."""
    from voile.serve.steward import status as look

    found = look(folder)
    show(found if as_json else None, lambda: status_view(found))


@serve.command()
def log(
    folder: FolderArg,
    most: Annotated[int, typer.Option("--show", min=1, help="Lines, newest first.")] = 50,
    as_json: JsonOpt = False,
) -> None:
    """Show the audit log: what was answered to whom, refused, issued, revoked."""
    from voile.serve.steward import log as look

    found = look(folder, most)
    show({"log": found} if as_json else None, lambda: log_view(found))


@serve.command()
def recover(
    folder: FolderArg,
    ledger_is_whole: Annotated[
        bool,
        typer.Option("--ledger-is-whole", help="Only the counter was lost: charge nothing."),
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Go on with a ledger that was put back: what it may have lost is charged."""
    from voile.serve.steward import recovered

    done = recovered(folder, ledger_is_whole=ledger_is_whole)
    if as_json:
        show({"lost": done.lost, "revoked": done.revoked}, None)
        return
    for line in recovered_lines(done, folder):
        say(line)
