"""The command that builds hierarchies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import JsonOpt, NullTextOpt, TableArg, commands, refuse_table
from voile.cli.flags import Given, with_flags
from voile.kinds.classes.hierarchy_options import HierarchyOptions
from voile.terminal import say, show


@commands.command()
@with_flags(
    HierarchyOptions,
    after={
        "schema": "fanout",
        "null_text": "schema",
        "output": "null_text",
        "overwrite": "output",
        "as_json": "overwrite",
    },
)
def hierarchy(
    given: Given,
    table: TableArg,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="The column it is for.")],
    schema: Annotated[Path | None, typer.Option(help="A codebook with the column.")] = None,
    null_text: NullTextOpt = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write it to FILE.csv, as ARX does.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Show or save the coarser values that a column's values may be replaced by."""
    import shlex

    import voile
    from voile.kinds.classes.column_hierarchy import check_target, column_hierarchy
    from voile.kinds.staging import check_outside
    from voile.terminal.hierarchy import hierarchy_view

    asked = HierarchyOptions(**given.values)
    if output is not None:
        refuse_table(output, table)
        check_outside(output)
        check_target(output, overwrite=overwrite)
    codebook = None if schema is None else voile.Schema.open(schema)
    found = column_hierarchy(
        voile.read(table, null_text=tuple(null_text or ())), column, asked, codebook
    )
    if found.levels.derived:
        say(f"note: computed from the rows of {column!r}: a release that shows it tells about them")
    if output is not None:
        found.save(output, overwrite=overwrite)
        option = shlex.join(["--hierarchy", f"{column}={output}"])
        say(f"wrote {output}; use it with {option}")
    data = {**found.to_dict(), "file": None if output is None else str(output)}
    show(data if as_json else None, lambda: hierarchy_view(found))
