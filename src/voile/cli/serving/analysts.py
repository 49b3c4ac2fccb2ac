"""Commands that let analysts in, and out: tokens, groups, budgets."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import JsonOpt
from voile.cli.serving.common import FolderArg, serve
from voile.terminal import say, show, show_lines
from voile.terminal.serving import issued_view


@serve.command()
def token(
    folder: FolderArg,
    analyst: Annotated[str, typer.Option(metavar="NAME", help="Whose token it is.")],
    queries: Annotated[
        int | None, typer.Option(help="The analyst's budget; as it was if not given.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="The group whose budget binds too.")
    ] = None,
    admin: Annotated[
        bool, typer.Option("--admin", help="May manage analysts and budgets too.")
    ] = False,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="Only for this: query, budget or admin; repeatable."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="After 12h, 30d, 52w; never if not given.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write it to a new FILE for your eyes only."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Make a token for an analyst; it is shown once."""
    from voile.serve.steward import beyond, issue_token, issued_data, token_file
    from voile.units import duration

    with nullcontext() if output is None else token_file(output) as file:
        made, identity = issue_token(
            folder,
            analyst,
            queries=queries,
            group=group,
            role="admin" if admin else "analyst",
            scopes=scope or None,
            seconds=None if expires is None else duration(expires),
        )
        if file is not None:
            file.write(f"{made}\n")
    tell(beyond(folder, queries))
    if as_json:
        show(issued_data(made, identity), None)
        return
    say(issued_view(identity, expires, output))
    show_lines([str(output) if output else made])


@serve.command()
def group(
    folder: FolderArg,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The group.")],
    queries: Annotated[int, typer.Option(help="Answers for all of the group together.")],
    as_json: JsonOpt = False,
) -> None:
    """Make a group of analysts with a common budget, or change its budget."""
    from voile.serve.steward import beyond, set_group

    set_group(folder, name, queries)
    tell(beyond(folder, queries))
    if as_json:
        show({"name": name, "queries": queries}, None)
    else:
        say(f"the group {name} may have {queries:,} answers; give tokens with --group {name}")


@serve.command()
def revoke(
    folder: FolderArg,
    analyst: Annotated[
        str | None, typer.Option(metavar="NAME", help="Revoke all tokens of this analyst.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(metavar="ID", help="Revoke one, by what stands before its dot.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Revoke tokens, from now on; a running server knows at once."""
    from voile.serve.steward import revoke as revoke_tokens

    count = revoke_tokens(folder, token=token, analyst=analyst)
    if as_json:
        show({"revoked": count}, None)
    else:
        say(f"revoked {count:,} token{'s' * (count != 1)}")


def tell(note: str) -> None:
    if note:
        say(f"note: {note}")
