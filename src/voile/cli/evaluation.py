"""The command that measures many releases of a table and says which one to publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import (
    KEPT,
    JsonOpt,
    NullTextOpt,
    ReleaseArg,
    TableArg,
    check_nulls,
    commands,
    split_names,
)
from voile.terminal import say, say_notes, show
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
    from voile.evaluate.frontier.page import check_folder, write_frontier
    from voile.evaluate.frontier.result import find_frontier
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
    say_notes(found.notes)
    show(found.to_dict() if as_json else None, lambda: frontier_view(found))


# ----------------------------------------------------------------------
# the command that measures what a release costs


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


# ----------------------------------------------------------------------
# the command that measures a table's risk as it is


@commands.command()
def risk(
    table: TableArg,
    qi: Annotated[
        str | None, typer.Option("--qi", help="What others may know: a,b,c (else all columns).")
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option("--sensitive", help="What they must not learn: s or s,u.")
    ] = None,
    population: Annotated[
        str | None,
        typer.Option(help="A TABLE of everyone the rows may be about, with the same --qi."),
    ] = None,
    sampling_fraction: Annotated[
        float | None,
        typer.Option(help="Share of the population that is in the table, to estimate uniques."),
    ] = None,
    threshold: Annotated[float, typer.Option(help="A chance above which rows count.")] = 0.2,
    largest: Annotated[int, typer.Option(help="Look at sets of up to so many columns.")] = 3,
    suppressed: Annotated[
        list[str] | None, typer.Option("--suppressed", help="Text of suppressed cells ('*').")
    ] = None,
    suppressed_rows: Annotated[
        str, typer.Option(help="Rows of which all is suppressed: count or leave-out.")
    ] = "count",
    null_text: NullTextOpt = None,
    page: Annotated[Path | None, typer.Option("--page", help="Write a page, FILE.html.")] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw it: FILE.png, .svg, .pdf or .html.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace those files.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Measure how well the rows of any table can be told apart, and what their classes tell."""
    from voile.errors import UsageError
    from voile.evaluate.drawing import check_picture, save
    from voile.evaluate.risk import risk as find_out
    from voile.evaluate.risk.assess import shown_rows
    from voile.files import write_whole
    from voile.terminal.evaluation import risk_view

    if page and page.suffix.lower() != ".html":
        raise UsageError(f"{str(page)!r} is no page", hint="name it .html")
    for path in filter(None, (page, plot)):
        check_picture(path, overwrite=overwrite)
    rows, known, hidden = shown_rows(table, split_names(qi), split_names(sensitive) or ())
    found = find_out(
        rows,
        qi=known,
        sensitive=hidden,
        population=population,
        threshold=threshold,
        sampling_fraction=sampling_fraction,
        largest=largest,
        suppressed=suppressed or ("*",),
        suppressed_rows=suppressed_rows,
        null_text=null_text or (),
    )
    say_notes(found.notes)
    if page:
        from voile.evaluate.risk.page import page as written

        write_whole(page, written(found), overwrite=overwrite)
        say(f"wrote {page}: true counts of the private table stand on it")
    if plot:
        from voile.evaluate.risk.page import draw

        save(lambda: draw(found), plot, overwrite=overwrite)
        say(f"wrote {plot}")
    show(found.to_dict() if as_json else None, lambda: risk_view(found))
