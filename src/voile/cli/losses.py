"""The command that measures what a release costs."""

from __future__ import annotations

from typing import Annotated

import typer

from voile.cli.common import JsonOpt, NullTextOpt, ReleaseArg, TableArg, commands, split_names
from voile.terminal import say, show


@commands.command()
def loss(
    table: TableArg,
    release: ReleaseArg,
    sensitive: Annotated[
        str | None, typer.Option(help="The sensitive column (that of the release, if it has one).")
    ] = None,
    qi: Annotated[
        str | None,
        typer.Option(help="Quasi-identifiers: a,b,c (those of the release, or all others)."),
    ] = None,
    min_support: Annotated[
        float, typer.Option(help="Populations of at least this share of the rows are large.")
    ] = 0.05,
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(help="COLUMN=FILE.csv: coarser values of a column, for its populations."),
    ] = None,
    queries: Annotated[int, typer.Option(help="Random counts to ask; 0 leaves them out.")] = 1000,
    dimension: Annotated[
        int | None, typer.Option(help="Quasi-identifiers that a count asks about (4).")
    ] = None,
    selectivity: Annotated[
        float, typer.Option(help="Share of the domain that a count asks for, about.")
    ] = 0.05,
    null_text: NullTextOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Measure privacy and utility lost in a release, from the table it was made of."""
    from voile.evaluate.losses.measure import losses
    from voile.evaluate.planning.foresight import FOR_THE_STEWARD
    from voile.hierarchies import hierarchy_options
    from voile.terminal.evaluation import loss_view

    found = losses(
        table,
        release,
        sensitive=sensitive,
        qi=split_names(qi),
        min_support=min_support,
        hierarchies=hierarchy_options(hierarchy or []),
        queries=queries,
        dimension=dimension,
        selectivity=selectivity,
        null_text=null_text or (),
    )
    say(f"note: {FOR_THE_STEWARD}")
    show(found.to_dict() if as_json else None, lambda: loss_view(found))
