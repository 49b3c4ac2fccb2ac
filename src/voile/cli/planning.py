"""Commands before publishing: what can be had, and what is impossible."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from voile.cli.common import JsonOpt, TableArg, commands, read_table
from voile.cli.flags import AS_IT_IS, Given, is_typed, typed_again, with_flags, with_reading
from voile.errors import UsageError, spelled
from voile.kinds.marginals.options import MarginalOptions
from voile.kinds.options import AutomaticOptions, DomainOptions
from voile.kinds.views.options import ViewOptions
from voile.options.planning import LocalPlanOptions
from voile.options.reading import ReadingOptions
from voile.terminal import say, say_notes, show
from voile.terminal.planning import (
    boundary_view,
    comparison_view,
    show_local_plan,
    show_marginal_plan,
    show_plan,
)
from voile.terminal.progress import progress_bar

PictureOpt = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="A report, FILE.html; or its picture, .svg, .png or .pdf."),
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
    typer.Option(
        "-o", "--output", "--plot", help="A report, FILE.html; or its picture, .svg, .png or .pdf."
    ),
]
LOCAL = "Local perturbation"
VIEW = ("prior_factor", "prior", "posterior", "adversary", "retention", "max_view_ratio",
        *DomainOptions.keywords(), "rows", "distinct", "person", "rows_per_person")  # fmt: skip
"""Options of views that a plan knows of."""
NOISY = "Noisy marginals"
MARGINAL = tuple(
    name for name in MarginalOptions.keywords() if name not in ("method", "name", "simulate_seed")
)
"""Options of noisy marginals that a plan knows of."""
FORESEEN = {"table", "on", "max_error", "as_json", "method", *MARGINAL,
            *ReadingOptions.keywords()}  # fmt: skip
"""Parameters that mean something with --method marginals."""
BOTH = {"table", "rows", "output", "overwrite", "as_json", "local",
        *DomainOptions.keywords(), *LocalPlanOptions.keywords(),
        *ReadingOptions.keywords()}  # fmt: skip
"""Parameters that mean something with --local."""


@commands.command()
@with_reading
@with_flags(
    ViewOptions,
    LocalPlanOptions,
    MarginalOptions,
    only=(*VIEW, *LocalPlanOptions.keywords(), *MARGINAL),
    helps={"retention": "Chance that a record is kept (the best one)."},
    panels={LocalPlanOptions: LOCAL, MarginalOptions: NOISY},
    after={
        "on": "max_view_ratio",
        "max_error": "on",
        "rows": "schema",
        "reading": "nulls",
        "output": "reading",
        "overwrite": "output",
        "local": "overwrite",
        "as_json": "share",
    },
)
def plan(
    context: typer.Context,
    given: Given,
    table: MaybeTableArg = None,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", help="SQL whose error matters; repeatable. Else all selections."),
    ] = None,
    max_error: Annotated[
        float | None,
        typer.Option(help="Find the strongest promise whose expected error is at most this."),
    ] = None,
    rows: Annotated[
        str,
        typer.Option(
            help="multiset, or set for tables without repetitions; with --local how many rows."
        ),
    ] = "multiset",
    reading: ReadingOptions = AS_IT_IS,
    output: PlotOpt = None,
    overwrite: OverwriteOpt = False,
    local: Annotated[
        bool,
        typer.Option("--local", help="Plan rows perturbed at the client.", rich_help_panel=LOCAL),
    ] = False,
    method: Annotated[
        str | None,
        typer.Option(help="auto (compare all; the default), alphabeta (a noisy view), marginals."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Foresee a release before publishing: parameters, size, errors, or what an error allows."""
    from voile.evaluate import drawing
    from voile.evaluate.planning import plot
    from voile.evaluate.planning.foresight import plan_table

    if method is None:
        method = "alphabeta" if local or max_error is not None else implied(context, given)
    if method == "auto":
        compare(context, table, output, {**given.values, "on": on or ()}, reading,
                overwrite=overwrite, as_json=as_json)  # fmt: skip
        return
    check_mode(context, local=local, method=method)
    if output:
        drawing.check_picture(output, overwrite=overwrite)
    private = None if table is None else read_table(table, reading)
    if method == "marginals":
        from voile.evaluate.planning.marginals import plan_marginals

        foreseen = plan_marginals(
            private, source=table or "", on=on or (), max_error=max_error,
            **given.values,
        )  # fmt: skip
        if not as_json:
            say_notes(foreseen.notes)
        show_marginal_plan(foreseen, as_json=as_json)
        return
    if local:
        asked = {**given.values, "rows": how_many(rows), "source": table}
        plan_rows_at_clients(private, output, asked, overwrite=overwrite, as_json=as_json)
        return
    found = plan_table(private, source=table, on=on or (), max_error=max_error, **given.values)
    if output:
        from voile.evaluate.pages import write_report
        from voile.evaluate.planning.page import plan_report

        write_report(
            output, lambda: plan_report(found), lambda: plot.draw(found), overwrite=overwrite
        )
        say(f"wrote {output}")
    if not as_json:
        say_notes(found.notes)
    show_plan(found, as_json=as_json)


def implied(context: typer.Context, given: Given) -> str:
    """The method that the flags mean: a comparison of all, unless they belong to one."""
    from voile.publishing import implied_method

    own = {"rows", "local", "max_error"} & {n for n in context.params if is_typed(context, n)}
    if own or any(is_typed(context, n) for n in LocalPlanOptions.keywords() if n != "epsilon"):
        return "alphabeta"
    return implied_method(given.values)


def compare(
    context: typer.Context,
    table: str | None,
    output: Path | None,
    options: dict[str, Any],
    reading: ReadingOptions,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """All methods under one promise."""
    from voile.evaluate import drawing
    from voile.evaluate.planning import comparison_plot
    from voile.evaluate.planning.comparison import compare_methods

    if table is None:
        raise UsageError("no table is named", hint="voile plan TABLE, or voile plan --local")
    if output:
        drawing.check_picture(output, overwrite=overwrite)
    with progress_bar() as progress:
        found = compare_methods(read_table(table, reading), progress=progress, **options)
    if output:
        from voile.evaluate.pages import write_report
        from voile.evaluate.planning.page import comparison_report

        takes = {"table", "null_text", *AutomaticOptions.keywords(), *ReadingOptions.keywords()}
        command = typed_again(context, "publish", takes)
        write_report(
            output, lambda: comparison_report(found, command),
            lambda: comparison_plot.draw(found), overwrite=overwrite,
        )  # fmt: skip
        say(f"wrote {output}")
    if not as_json:
        say_notes(found.notes)
    show(found.to_dict() if as_json else None, lambda: comparison_view(found))


def check_mode(context: typer.Context, *, local: bool, method: str) -> None:
    """Refuse options that say nothing in this mode, rather than ignore them."""
    if method not in ("alphabeta", "marginals"):
        raise UsageError(
            f"{spelled('method', method)} is not planned", hint="use alphabeta or marginals"
        )
    for name in context.params:
        if not is_typed(context, name):
            continue
        if method == "marginals":
            if name not in FORESEEN:
                raise UsageError(
                    f"{spelled(name)} means nothing with {spelled('method', method)}",
                    hint="leave it out",
                )
            continue
        if name in MARGINAL and name not in (*VIEW, *LocalPlanOptions.keywords()):
            raise UsageError(
                f"{spelled(name)} is about noisy marginals",
                hint=f"add {spelled('method', 'marginals')}",
            )
        if local and name not in BOTH:
            raise UsageError(
                f"{spelled(name)} means nothing with --local: no record is hidden among others",
                hint="ask for --epsilon, --epsilon-column, --breach, --retention or --error",
            )
        if not local and name in LocalPlanOptions.keywords() and name not in VIEW:
            raise UsageError(f"{spelled(name)} is about local perturbation", hint="add --local")
    if not local and context.params["table"] is None:
        raise UsageError("no table is named", hint="voile plan TABLE, or voile plan --local")


def plan_rows_at_clients(
    table: Any,
    output: Path | None,
    asked: dict[str, Any],
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """The plan of rows that are perturbed before they are sent."""
    from voile.evaluate.pages import write_report
    from voile.evaluate.planning import local_plot
    from voile.evaluate.planning.local import plan_local

    found = plan_local(table, **asked)
    if output:
        from voile.evaluate.planning.page import local_report

        write_report(
            output, lambda: local_report(found), lambda: local_plot.draw(found),
            overwrite=overwrite,
        )  # fmt: skip
        say(f"wrote {output}")
    if not as_json:
        say_notes(found.notes)
    show_local_plan(found, as_json=as_json)


def how_many(rows: str) -> int | None:
    """--rows with --local; its default is a word that means something else."""

    if rows == "multiset":
        return None
    try:
        return int(rows.replace(",", "").replace("_", ""))
    except ValueError:
        raise UsageError(
            f"--rows {rows!r} is not a number", hint="with --local: how many rows, e.g. 10000"
        ) from None


@commands.command()
@with_reading
@with_flags(
    ViewOptions,
    only=("prior_factor", "prior", "posterior", *DomainOptions.keywords()),
    after={
        "reading": "nulls",
        "output": "reading",
        "overwrite": "output",
        "as_json": "overwrite",
    },
)
def boundary(
    context: typer.Context,
    given: Given,
    table: TableArg,
    reading: ReadingOptions = AS_IT_IS,
    output: PictureOpt = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Show which promises are possible, impossible or open for a table of this size."""
    from voile.evaluate import drawing
    from voile.evaluate.planning.boundary import boundary_of, draw

    if output:
        drawing.check_picture(output, overwrite=overwrite)
    found = boundary_of(read_table(table, reading), **given.values)
    if output:
        from voile.evaluate.pages import write_report
        from voile.evaluate.planning.page import boundary_report

        takes = {"table", *ReadingOptions.keywords(), *DomainOptions.keywords(),
                 "prior", "prior_factor", "posterior"}  # fmt: skip
        command = typed_again(context, "plan", takes, "--method", "alphabeta")
        write_report(
            output, lambda: boundary_report(found, command), lambda: draw(found),
            overwrite=overwrite,
        )  # fmt: skip
        say(f"wrote {output}")
    if not as_json:
        say_notes(found.notes)
    show(found.to_dict() if as_json else None, lambda: boundary_view(found))
