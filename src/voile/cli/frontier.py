"""The command that measures many releases of a table and says which one to publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import (
    KEPT,
    JsonOpt,
    NullTextOpt,
    TableArg,
    check_nulls,
    commands,
    split_names,
)
from voile.terminal import say, show
from voile.terminal.evaluation import frontier_view, points_bar


@commands.command()
def frontier(
    table: TableArg,
    sensitive: Annotated[str, typer.Option(help="The sensitive column.")],
    qi: Annotated[
        str, typer.Option(help="Quasi-identifiers, what others may know of a person: a,b,c.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The folder for points, pictures and the page.")
    ],
    methods: Annotated[
        str | None,
        typer.Option(
            help="Of mondrian, information, anatomy, fulldomain, trivial (these if none is named), "
            "freeshape (takes minutes), alphabeta, retention."
        ),
    ] = None,
    grid: Annotated[
        str, typer.Option(help="paper, quick, fine, or values: 'k=10,50;t=0.1,0.2'.")
    ] = "paper",
    min_support: Annotated[
        float, typer.Option(help="Populations of at least this share of the rows are large.")
    ] = 0.05,
    hierarchy: Annotated[
        list[str] | None, typer.Option(help="COLUMN=FILE.csv: coarser values of a column.")
    ] = None,
    k: Annotated[int | None, typer.Option("--k", help="Every release has this k, besides.")] = None,
    l: Annotated[  # noqa: E741  (the requirement's name)
        float | None, typer.Option("--l", help="Every release has this ℓ, besides.")
    ] = None,
    t: Annotated[
        float | None, typer.Option("--t", help="Every release has this t, besides.")
    ] = None,
    most_p_loss: Annotated[
        float | None, typer.Option(help="Recommend nothing with a larger P_loss.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="A codebook that declares the domain.")
    ] = None,
    nulls: Annotated[str, typer.Option(help="error, drop or as-value.")] = "error",
    null_text: NullTextOpt = None,
    jobs: Annotated[int | None, typer.Option(help="Threads (as many as there are cores).")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start anew in a folder that has points.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Measure many releases, find the efficient ones, and recommend which to publish."""
    from voile.evaluate.frontier.files import check_folder, write_frontier
    from voile.evaluate.frontier.finding import find_frontier
    from voile.evaluate.planning.foresight import FOR_THE_STEWARD
    from voile.hierarchies import hierarchy_options

    check_folder(output, overwrite=overwrite)
    KEPT.append(f"what was measured is kept in {output}: run it again to go on")
    asked = {"k": k, "l": l, "t": t}
    with points_bar() as progress:
        found = find_frontier(
            table,
            source=table,
            sensitive=sensitive,
            qi=split_names(qi) or [],
            methods=split_names(methods),
            grid=grid,
            min_support=min_support,
            hierarchies=hierarchy_options(hierarchy or []),
            schema=schema,
            nulls=check_nulls(nulls),
            null_text=null_text or (),
            also={name: value for name, value in asked.items() if value is not None},
            most_p_loss=most_p_loss,
            folder=output,
            overwrite=overwrite,
            jobs=jobs,
            progress=progress,
        )
    for path in write_frontier(found, output):
        say(f"wrote {path}")
    say(f"note: {FOR_THE_STEWARD}")
    for note in found.notes:
        say(f"note: {note}")
    show(found.to_dict() if as_json else None, lambda: frontier_view(found))
