"""Commands on private tables: look, declare; and what comes with Voile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import (
    ColumnsOpt,
    JsonOpt,
    SparkOpt,
    TableArg,
    commands,
    names_in,
    read_table,
    refuse_table,
    source_of,
)
from voile.cli.flags import AS_IT_IS, with_reading
from voile.options.reading import ReadingOptions
from voile.terminal import say, say_notes, show, show_lines, table_of
from voile.terminal.progress import progress_bar
from voile.terminal.publications import inspection_view


@commands.command()
@with_reading
def inspect(
    table: TableArg,
    columns: ColumnsOpt = None,
    reading: ReadingOptions = AS_IT_IS,
    spark: SparkOpt = None,
    nulls: Annotated[str, typer.Option(help="as-value counts NULL as a value.")] = "error",
    everything: Annotated[
        bool, typer.Option("--all", help="Show every column and finding, and what is feasible.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Look at a table before publishing it: columns, identifiers, and the command to type next."""
    from voile.engines.table import checked_nulls
    from voile.inspection import inspect_source

    source = source_of(table, spark)
    found = inspect_source(source, names_in(columns), nulls=checked_nulls(nulls), reading=reading)
    if not as_json:
        say_notes(found.notes)
    show(
        found.to_dict() if as_json else None, lambda: inspection_view(found, everything=everything)
    )
    if not as_json and found.next_command:
        show_lines([f"next: {found.next_command}"])


@commands.command()
@with_reading
def schema(
    table: TableArg,
    output: Annotated[Path, typer.Option("-o", "--output", help="The codebook to write.")],
    columns: ColumnsOpt = None,
    reading: ReadingOptions = AS_IT_IS,
    spark: SparkOpt = None,
    nulls: Annotated[str, typer.Option(help="as-value makes NULL one of the values.")] = "error",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a codebook of that name.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Write an editable codebook of the table's columns: values, ranges, bins."""
    from voile.engines.table import checked_nulls
    from voile.kinds.staging import check_outside

    refuse_table(output, table)
    check_outside(output)
    source = read_table(table, reading, spark)
    names = source.check_columns(names_in(columns) or list(source.columns))
    found = source.infer(names, checked_nulls(nulls))
    found.save(output, overwrite=overwrite, labels=source.labels)
    say(f"wrote {output}; edit it, and pass it to voile publish with --schema")
    show({"schema": str(output), **found.to_dict()} if as_json else None, lambda: found)


@commands.command()
def datasets(as_json: JsonOpt = False) -> None:
    """List the tables that come with Voile."""
    from voile.datasets import DATASETS

    listed = [
        {"name": f"dataset:{d.name}", "columns": list(d.columns), "about": d.about}
        for d in DATASETS.values()
    ]
    show(
        listed if as_json else None,
        lambda: table_of(["name", "about"], [[str(d["name"]), str(d["about"])] for d in listed]),
    )


@commands.command()
def demo(
    table: Annotated[
        str, typer.Argument(metavar="[TABLE]", help="A table of yours; else one that is shipped.")
    ] = "dataset:health",
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for what it makes.")] = (
        Path("demo-output")
    ),
    as_json: JsonOpt = False,
) -> None:
    """Publish a table, ask it questions, attack it, and draw how good the answers are."""
    from voile.extras import DRAWING, PUBLISHING, check_installed

    check_installed("the demonstration", (*PUBLISHING, *DRAWING), "publish")
    from voile.evaluate.demo import run

    with progress_bar() as progress:
        result = run(output, progress, table)
    show(result.to_dict() if as_json else None, lambda: result)
