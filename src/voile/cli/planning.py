"""Commands before publishing: what can be had, and what is impossible."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import (
    ColumnsOpt,
    JsonOpt,
    NullTextOpt,
    TableArg,
    app,
    check_nulls,
    split_names,
)
from voile.terminal import say, show
from voile.terminal.planning import boundary_view, show_plan

FactorOpt = Annotated[
    float | None, typer.Option(help="k: protect beliefs up to d = k·n/m (10 if not given).")
]
PriorOpt = Annotated[
    float | None, typer.Option(help="d: protect beliefs up to this (instead of a factor).")
]
PosteriorOpt = Annotated[float, typer.Option(help="γ: no such belief may exceed this.")]
SchemaOpt = Annotated[Path | None, typer.Option(help="A codebook that declares the domain.")]
NullsOpt = Annotated[str, typer.Option(help="error, drop or as-value.")]
PictureOpt = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Draw it: FILE.html, .svg, .png or .pdf."),
]
OverwriteOpt = Annotated[bool, typer.Option("--overwrite", help="Replace that file.")]


@app.command()
def plan(
    table: TableArg,
    prior_factor: FactorOpt = None,
    prior: PriorOpt = None,
    posterior: PosteriorOpt = 0.2,
    adversary: Annotated[str, typer.Option(help="independent or exclusive.")] = "independent",
    retention: Annotated[
        float | None, typer.Option(help="Chance that a record is kept (the best one).")
    ] = None,
    max_view_ratio: Annotated[
        float | None, typer.Option(help="At most this many rows out per row in, on average.")
    ] = None,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", help="SQL whose error matters; repeatable. Else all selections."),
    ] = None,
    max_error: Annotated[
        float | None,
        typer.Option(help="Find the strongest promise whose expected error is at most this."),
    ] = None,
    columns: ColumnsOpt = None,
    schema: SchemaOpt = None,
    rows: Annotated[str, typer.Option(help="multiset, or set for tables without repetitions.")] = (
        "multiset"
    ),
    distinct: Annotated[
        bool, typer.Option("--distinct", help="With --rows set: drop repeated rows.")
    ] = False,
    nulls: NullsOpt = "error",
    null_text: NullTextOpt = None,
    output: PictureOpt = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Foresee a release before publishing: parameters, size, errors, or what an error allows."""
    from voile.evaluate.planning import pictures, plot
    from voile.evaluate.planning.foresight import plan_table

    if output:
        pictures.check_picture(output, overwrite=overwrite)
    found = plan_table(
        table,
        source=table,
        on=on or (),
        max_error=max_error,
        prior_factor=prior_factor,
        prior=prior,
        posterior=posterior,
        adversary=adversary,
        retention=retention,
        max_view_ratio=max_view_ratio,
        columns=split_names(columns),
        schema=schema,
        rows=rows,
        distinct=distinct,
        nulls=check_nulls(nulls),
        null_text=tuple(null_text or ()),
    )
    if output:
        say(f"wrote {plot.write(found, output, overwrite=overwrite)}")
    if not as_json:
        tell(found.notes)
    show_plan(found, as_json=as_json)


@app.command()
def boundary(
    table: TableArg,
    prior_factor: FactorOpt = None,
    prior: PriorOpt = None,
    posterior: PosteriorOpt = 0.2,
    columns: ColumnsOpt = None,
    schema: SchemaOpt = None,
    nulls: NullsOpt = "error",
    null_text: NullTextOpt = None,
    output: PictureOpt = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Show which promises are possible, impossible or open for a table of this size."""
    from voile.evaluate.planning import boundary_plot, pictures
    from voile.evaluate.planning.boundary import boundary_of

    if output:
        pictures.check_picture(output, overwrite=overwrite)
    found = boundary_of(
        table,
        prior_factor=prior_factor,
        prior=prior,
        posterior=posterior,
        columns=split_names(columns),
        schema=schema,
        nulls=check_nulls(nulls),
        null_text=tuple(null_text or ()),
    )
    if output:
        say(f"wrote {boundary_plot.write(found, output, overwrite=overwrite)}")
    if not as_json:
        tell(found.notes)
    show(found.to_dict() if as_json else None, lambda: boundary_view(found))


def tell(notes: tuple[str, ...]) -> None:
    for note in notes:
        say(f"note: {note}")
