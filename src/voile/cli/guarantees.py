"""Commands on promises: convert one into another, list what follows from a release."""

from __future__ import annotations

from typing import Annotated

import typer

from voile.cli.common import JsonOpt, ReleaseArg, commands
from voile.terminal import say, show
from voile.terminal.guarantees import consequences_view, conversion_view, statements_view


@commands.command()
def convert(
    guarantee: Annotated[
        str,
        typer.Argument(metavar="GUARANTEE", help="E.g. 'd-gamma(d=4.65e-4, gamma=0.2)'."),
    ],
    to: Annotated[
        str | None,
        typer.Option(help="A kind, with what should be fixed: dp, 'dp(unit=swap)'. Else all."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Say what a promise comes to in other terms, by which theorem, and what does not follow."""
    from voile.privacy import consequences, parse_guarantee, parse_wish
    from voile.privacy import convert as converted

    source = parse_guarantee(guarantee)
    if to is None:
        found = consequences(source)
        show(found.to_dict() if as_json else None, lambda: consequences_view(found))
        return
    conversion = converted(source, parse_wish(to))
    show(conversion.to_dict() if as_json else None, lambda: conversion_view(conversion))


@commands.command()
def guarantees(
    release: ReleaseArg,
    denied: Annotated[
        bool, typer.Option("--not-promised", help="List only what is not promised.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """List all that a release promises, against whom, and what it does not."""
    from voile.kinds.release import Release

    opened = Release.open(release)
    simulated = opened.manifest.simulated
    refused = opened.not_promised()
    kept = [] if denied else opened.promised()
    if simulated and as_json:
        say("note: made from a chosen seed: this release promises nothing")
    show(
        [one.to_dict() for one in (refused if denied else kept)] if as_json else None,
        lambda: statements_view(kept, refused, simulated=simulated),
    )
