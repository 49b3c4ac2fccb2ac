"""The command that takes what a release shows to other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import CheckOpt, CsvSafeOpt, JsonOpt, commands
from voile.cli.releases import CountedOpt, PlaceArg, opened
from voile.terminal import say_notes, show


@commands.command(name="export")
def export_command(
    release: PlaceArg,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="The file to write: .csv, .parquet, .sql, .dta; croissant.json, datapackage.json "
            "or ddi.xml describe the release's files.",
        ),
    ],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="csv, parquet, sql, dta, croissant, datapackage or ddi, where the name of the "
            "file does not say it.",
        ),
    ] = None,
    dialect: Annotated[str, typer.Option(help="Of SQL: standard, duckdb or sqlite.")] = "standard",
    tables: Annotated[
        bool,
        typer.Option(
            "--tables", help="Of noisy marginals: the tables with their errors, no synthetic rows."
        ),
    ] = False,
    noisy_rows: Annotated[
        bool,
        typer.Option(
            "--noisy-rows", help="Of a noisy view: its rows, most of which are noise; marked so."
        ),
    ] = False,
    number: Annotated[
        int | None,
        typer.Option("-n", "--number", help="Synthetic rows (as many as the model counts)."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    csv_safe: CsvSafeOpt = False,
    spark: CountedOpt = None,
    check: CheckOpt = True,
    as_json: JsonOpt = False,
) -> None:
    """Write what a release shows to a file of another program, with the promise beside it."""
    from voile.export import export
    from voile.terminal.answers import say_formulas

    found = export(
        opened(release, check=check, spark=spark),
        output,
        format_,
        dialect=dialect,
        tables=tables,
        noisy_rows=noisy_rows,
        number=number,
        csv_safe=csv_safe,
        overwrite=overwrite,
    )
    say_notes(found.notes)
    say_formulas(found.formulas)
    show(found.to_dict() if as_json else None, found.in_words)
