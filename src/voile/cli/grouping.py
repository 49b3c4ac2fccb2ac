"""Coarser tables, without a release around them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import JsonOpt, NullTextOpt, TableArg, commands
from voile.cli.flags import Given, with_flags
from voile.errors import UsageError
from voile.kinds.classes.options import ClassOptions
from voile.terminal import show
from voile.terminal.grouping import generalized_view
from voile.terminal.progress import progress_bar

APPLIED = ("insensitive", "identifiers", "suppression")
"""Options that a saved recoding leaves open."""


@commands.command()
@with_flags(
    ClassOptions,
    without=("recode", "name", "simulate_seed"),
    after={
        "method": "identifiers",
        "null_text": "nulls",
        "save": "null_text",
        "apply": "save",
        "keep_order": "apply",
        "overwrite": "keep_order",
        "as_json": "overwrite",
    },
)
def generalize(
    given: Given,
    table: TableArg,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The table to write: .csv or .parquet.")
    ],
    method: Annotated[
        str, typer.Option(help="mondrian, fulldomain, suppress or trivial.")
    ] = "mondrian",
    null_text: NullTextOpt = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Keep the recoding in this file, for new rows.")
    ] = None,
    apply: Annotated[
        Path | None, typer.Option("--apply", help="Apply a saved recoding instead.")
    ] = None,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Keep the order of the rows, which may tell.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of that name.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Write a table whose quasi-identifiers are coarse enough for every class to keep a promise."""
    import voile
    from voile.files import write_whole
    from voile.kinds.classes.generalizing import check_file, check_places, generalize

    check_file(output, overwrite=overwrite)
    check_places(table, output, save, overwrite=overwrite)
    source = voile.read(table, null_text=tuple(null_text or ()))
    if apply is not None:
        check_applied(given, save)
    with progress_bar() as progress:
        done = generalize(
            source,
            apply=apply,
            reusable=save is not None,
            keep_order=keep_order,
            progress=progress,
            **given.values,
        )
    if save is not None and done.recoding is not None:
        write_whole(save, done.recoding.content, overwrite=overwrite)
    done.write(output, overwrite=overwrite)
    data = {"table": str(output), "recoding": None if save is None else str(save), **done.to_dict()}
    show(data if as_json else None, lambda: generalized_view(done, str(output)))


def check_applied(given: Given, save: Path | None) -> None:
    """A saved recoding says all the rest itself."""
    typed = [ClassOptions.spelled(name) for name in given.values if name not in APPLIED]
    if other := [*typed, *([] if save is None else ["--save"])]:
        raise UsageError(
            f"{other[0]} does not go with --apply: the saved recoding says it",
            hint="leave it out, or fit a recoding anew",
        )
