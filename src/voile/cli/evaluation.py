"""The command that measures many releases of a table and says which one to publish."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voile.cli.common import (
    KEPT,
    JsonOpt,
    ReleaseArg,
    SparkOpt,
    TableArg,
    check_output,
    commands,
    names_in,
    read_table,
)
from voile.cli.flags import AS_IT_IS, Given, typed_again, with_flags, with_reading
from voile.evaluate.options import FrontierOptions, LossOptions
from voile.options.reading import ReadingOptions
from voile.terminal import say, say_notes, show
from voile.terminal.evaluation import frontier_view, points_bar

if TYPE_CHECKING:
    from voile.evaluate.risk import Risk


ReportOpt = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="A report, FILE.html; or its picture, .svg, .png or .pdf."),
]


@commands.command()
@with_reading
@with_flags(
    FrontierOptions,
    without=("also", "null_text"),
    helps={"hierarchies": "COLUMN=FILE.csv: coarser values of a column."},
    after={
        "output": "qi",
        "methods": "output",
        "grid": "methods",
        "k": "hierarchies",
        "l": "k",
        "t": "l",
        "most_p_loss": "t",
    },
    last=("reading", "overwrite", "as_json"),
)
def frontier(
    given: Given,
    table: TableArg,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The folder for points, pictures and the page.")
    ],
    k: Annotated[int | None, typer.Option("--k", help="Every release has this k, besides.")] = None,
    l: Annotated[  # noqa: E741  (the requirement's name)
        float | None, typer.Option("--l", help="Every release has this ℓ, besides.")
    ] = None,
    t: Annotated[
        float | None, typer.Option("--t", help="Every release has this t, besides.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start anew in a folder that has points.")
    ] = False,
    reading: ReadingOptions = AS_IT_IS,
    as_json: JsonOpt = False,
) -> None:
    """Measure many releases, find the efficient ones, and recommend which to publish."""
    from voile.evaluate.frontier.page import check_folder, write_frontier
    from voile.evaluate.frontier.result import find_frontier
    from voile.evaluate.planning.foresight import FOR_THE_STEWARD

    check_folder(output, overwrite=overwrite)
    KEPT.append(f"what was measured is kept in {output}: run it again to go on")
    asked = {"k": k, "l": l, "t": t}
    with points_bar() as progress:
        found = find_frontier(
            read_table(table, reading),
            source=table,
            folder=output,
            overwrite=overwrite,
            progress=progress,
            also={name: value for name, value in asked.items() if value is not None},
            **given.values,
        )
    for path in write_frontier(found, output):
        say(f"wrote {path}")
    say(f"note: {FOR_THE_STEWARD}")
    say_notes(found.notes)
    show(found.to_dict() if as_json else None, lambda: frontier_view(found))


# ----------------------------------------------------------------------
# the command that measures what a release costs


@commands.command()
@with_reading
@with_flags(
    LossOptions,
    helps={"hierarchies": "COLUMN=FILE.csv: coarser values of a column, for its populations."},
    without=("null_text",),
    last=("reading", "output", "overwrite", "as_json"),
)
def loss(
    context: typer.Context,
    given: Given,
    table: TableArg,
    release: ReleaseArg,
    reading: ReadingOptions = AS_IT_IS,
    output: ReportOpt = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Measure privacy and utility lost in a release, from the table it was made of."""
    from voile.evaluate.drawing import check_picture
    from voile.evaluate.losses.measure import losses
    from voile.evaluate.planning.foresight import FOR_THE_STEWARD
    from voile.terminal.evaluation import loss_view

    if output:
        check_picture(output, overwrite=overwrite)
        check_output(output, release, overwrite=overwrite)
    found = losses(read_table(table, reading), release, **given.values)
    if output:
        from voile.evaluate.losses.page import draw, report
        from voile.evaluate.pages import write_report

        command = frontier_command(context, found.qi, found.sensitive)
        write_report(
            output, lambda: report(found, str(release), command), lambda: draw(found),
            overwrite=overwrite,
        )  # fmt: skip
        say(f"wrote {output}")
    say(f"note: {FOR_THE_STEWARD}")
    show(found.to_dict() if as_json else None, lambda: loss_view(found))


def frontier_command(context: typer.Context, qi: Sequence[str], sensitive: str) -> str:
    """The line that measures many releases of the same table, read the same way."""
    import shlex

    from voile.kinds.domain import columns_option

    takes, names = {"table", *ReadingOptions.keywords()}, shlex.split(columns_option(qi))
    return typed_again(
        context, "frontier", takes, "--qi", *names, "--sensitive", sensitive,
        "-o", "frontier",
    )  # fmt: skip


# ----------------------------------------------------------------------
# the command that measures a table's risk as it is


@commands.command()
@with_reading
def risk(
    context: typer.Context,
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
    reading: ReadingOptions = AS_IT_IS,
    spark: SparkOpt = None,
    output: ReportOpt = None,
    page: Annotated[
        Path | None, typer.Option("--page", help="As -o, for a report alone: FILE.html.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="As -o, to have another file besides.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace those files.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Measure how well the rows of any table can be told apart, and what their classes tell."""
    from voile.errors import UsageError
    from voile.evaluate.drawing import check_picture
    from voile.evaluate.risk import risk as find_out
    from voile.evaluate.risk.assess import shown_rows
    from voile.terminal.evaluation import risk_view

    if page and page.suffix.lower() != ".html":
        raise UsageError(f"{str(page)!r} is no page", hint="name it .html")
    written = [path for path in (output, page, plot) if path is not None]
    for path in written:
        check_picture(path, overwrite=overwrite)
    if spark is None:
        rows, known, hidden = shown_rows(table, names_in(qi), names_in(sensitive) or ())
    else:
        rows, known, hidden = table, names_in(qi), names_in(sensitive) or ()
    rows = read_table(rows, reading, spark) if isinstance(rows, str) else rows
    found = find_out(
        rows,
        qi=known,
        sensitive=hidden,
        population=population and read_table(population, reading),
        threshold=threshold,
        sampling_fraction=sampling_fraction,
        largest=largest,
        suppressed=suppressed or ("*",),
        suppressed_rows=suppressed_rows,
    )
    say_notes(found.notes)
    for path in written:
        write_risk(context, found, path, overwrite=overwrite)
    show(found.to_dict() if as_json else None, lambda: risk_view(found))


def write_risk(context: typer.Context, found: Risk, path: Path, *, overwrite: bool) -> None:
    """A report, or its picture."""
    from voile.evaluate.pages import write_report
    from voile.evaluate.risk.page import draw, report

    if found.sensitive:
        command = frontier_command(context, found.qi, found.sensitive[0])
    else:
        command = typed_again(context, "plan", {"table", *ReadingOptions.keywords()})
    write_report(path, lambda: report(found, command), lambda: draw(found), overwrite=overwrite)
    say(f"wrote {path}: true counts of the private table stand on it")
