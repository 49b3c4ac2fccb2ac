"""Commands before publishing: what can be had, and what is impossible."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from voile.cli.common import (
    ColumnsOpt,
    JsonOpt,
    NullTextOpt,
    TableArg,
    check_nulls,
    commands,
    split_names,
)
from voile.terminal import say, show
from voile.terminal.planning import boundary_view, show_local_plan, show_plan

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
MaybeTableArg = Annotated[
    str | None,
    typer.Argument(
        metavar="TABLE", help="As for publish; with --local, --schema and --rows do as well."
    ),
]
PlotOpt = Annotated[
    Path | None,
    typer.Option("-o", "--output", "--plot", help="Draw it: FILE.html, .svg, .png or .pdf."),
]
LOCAL = "Local perturbation"
GENERAL = [
    "table", "columns", "schema", "rows", "retention", "nulls", "null_text", "output", "overwrite",
    "as_json", "local",
]  # fmt: skip
"""Parameters of a plan with --local and without."""
ONLY_LOCAL = ["epsilon", "epsilon_column", "breach", "relative", "error", "confidence", "share"]


@commands.command()
def plan(
    context: typer.Context,
    table: MaybeTableArg = None,
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
    rows: Annotated[
        str,
        typer.Option(
            help="multiset, or set for tables without repetitions; with --local how many rows."
        ),
    ] = "multiset",
    distinct: Annotated[
        bool, typer.Option("--distinct", help="With --rows set: drop repeated rows.")
    ] = False,
    nulls: NullsOpt = "error",
    null_text: NullTextOpt = None,
    output: PlotOpt = None,
    overwrite: OverwriteOpt = False,
    local: Annotated[
        bool,
        typer.Option("--local", help="Plan rows perturbed at the client.", rich_help_panel=LOCAL),
    ] = False,
    epsilon: Annotated[
        float | None, typer.Option(help="ε of a whole row.", rich_help_panel=LOCAL)
    ] = None,
    epsilon_column: Annotated[
        float | None, typer.Option(help="ε of each column.", rich_help_panel=LOCAL)
    ] = None,
    breach: Annotated[
        str | None,
        typer.Option(help="ρ₁,ρ₂: no belief of ρ₁ may exceed ρ₂.", rich_help_panel=LOCAL),
    ] = None,
    relative: Annotated[
        float | None,
        typer.Option(
            help="With --breach: s, of sets less than s times as likely as by replacement.",
            rich_help_panel=LOCAL,
        ),
    ] = None,
    error: Annotated[
        float | None,
        typer.Option(
            help="How far a fraction may be off, of rows that meet a condition on one column.",
            rich_help_panel=LOCAL,
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="The chance that it is not farther off.", rich_help_panel=LOCAL)
    ] = 0.95,
    share: Annotated[
        str,
        typer.Option(
            help="Columns share a row's ε with equal epsilon, or with equal retention.",
            rich_help_panel=LOCAL,
        ),
    ] = "epsilon",
    as_json: JsonOpt = False,
) -> None:
    """Foresee a release before publishing: parameters, size, errors, or what an error allows."""
    from voile.evaluate import drawing
    from voile.evaluate.planning import plot
    from voile.evaluate.planning.foresight import plan_table

    check_mode(context, local=local)
    if output:
        drawing.check_picture(output, overwrite=overwrite)
    if local:
        plan_rows_at_clients(
            table,
            output,
            overwrite=overwrite,
            as_json=as_json,
            rows=rows,
            breach=breach,
            epsilon=epsilon,
            epsilon_column=epsilon_column,
            relative=relative,
            retention=retention,
            error=error,
            confidence=confidence,
            share=share,
            columns=split_names(columns),
            schema=schema,
            nulls=check_nulls(nulls),
            null_text=tuple(null_text or ()),
        )
        return
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


def check_mode(context: typer.Context, *, local: bool) -> None:
    """Refuse options that say nothing in this mode, rather than ignore them."""
    from voile.errors import UsageError

    given = [
        name
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    for name in given:
        spelt = f"--{name.replace('_', '-')}"
        if local and name not in (*GENERAL, *ONLY_LOCAL):
            raise UsageError(
                f"{spelt} means nothing with --local: no record is hidden among others",
                hint="wish with --epsilon, --epsilon-column, --breach, --retention or --error",
            )
        if not local and name in ONLY_LOCAL:
            raise UsageError(f"{spelt} is about local perturbation", hint="add --local")
    if not local and context.params["table"] is None:
        raise UsageError("no table is named", hint="voile plan TABLE, or voile plan --local")


def plan_rows_at_clients(
    table: str | None,
    output: Path | None,
    *,
    overwrite: bool,
    as_json: bool,
    rows: str,
    breach: str | None,
    **wish: Any,
) -> None:
    """The plan of rows that are perturbed before they are sent."""
    from voile.evaluate.planning import local_plot
    from voile.evaluate.planning.local import plan_local
    from voile.evaluate.planning.local_options import parse_breach

    found = plan_local(
        table,
        rows=how_many(rows),
        breach=None if breach is None else parse_breach(breach),
        **wish,
    )
    if output:
        say(f"wrote {local_plot.write(found, output, overwrite=overwrite)}")
    if not as_json:
        tell(found.notes)
    show_local_plan(found, as_json=as_json)


def how_many(rows: str) -> int | None:
    """--rows with --local; its default is a word that means something else."""
    from voile.errors import UsageError

    if rows == "multiset":
        return None
    try:
        return int(rows.replace(",", "").replace("_", ""))
    except ValueError:
        raise UsageError(
            f"--rows {rows!r} is not a number", hint="with --local: how many rows, e.g. 10000"
        ) from None


@commands.command()
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
    from voile.evaluate import drawing
    from voile.evaluate.planning.boundary import boundary_of, write

    if output:
        drawing.check_picture(output, overwrite=overwrite)
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
        say(f"wrote {write(found, output, overwrite=overwrite)}")
    if not as_json:
        tell(found.notes)
    show(found.to_dict() if as_json else None, lambda: boundary_view(found))


def tell(notes: tuple[str, ...]) -> None:
    for note in notes:
        say(f"note: {note}")
