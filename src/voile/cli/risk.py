"""The command that measures a table's risk as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import JsonOpt, NullTextOpt, TableArg, commands, split_names
from voile.terminal import say, show


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
    for note in found.notes:
        say(f"note: {note}")
    if page:
        from voile.evaluate.risk.page import page as written

        write_whole(page, written(found), overwrite=overwrite)
        say(f"wrote {page}: true counts of the private table stand on it")
    if plot:
        from voile.evaluate.risk.page import draw

        save(lambda: draw(found), plot, overwrite=overwrite)
        say(f"wrote {plot}")
    show(found.to_dict() if as_json else None, lambda: risk_view(found))
