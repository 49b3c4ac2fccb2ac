"""The command that builds hierarchies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import JsonOpt, NullTextOpt, TableArg, commands, refuse_table, split_names
from voile.terminal import say, show


@commands.command()
def hierarchy(
    table: TableArg,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="The column it is for.")],
    equal_width: Annotated[
        int | None, typer.Option(help="So many ranges that are equally wide, then joined.")
    ] = None,
    equal_depth: Annotated[
        int | None, typer.Option(help="So many ranges with equally many rows, then joined.")
    ] = None,
    multiples: Annotated[
        str | None, typer.Option(help="Ranges that begin at multiples: 5,10,20.")
    ] = None,
    dates: Annotated[bool, typer.Option("--dates", help="day → month → quarter → year.")] = False,
    mask: Annotated[
        str | None, typer.Option(help="Hide one character after the other, from right or left.")
    ] = None,
    prefixes: Annotated[
        str | None, typer.Option(help="Keep the first so many characters: 3,2,1.")
    ] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(help="YAML or JSON: the values of each group, or the group of each value."),
    ] = None,
    suggest_by: Annotated[
        str | None,
        typer.Option(help="Join values whose rows are alike in this sensitive column."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="A hierarchy in ARX's CSV form.")
    ] = None,
    fanout: Annotated[
        int | None, typer.Option(help="How many groups are joined into one (2 if not given).")
    ] = None,
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
    from voile.kinds.classes.column_hierarchy import (
        HierarchyWish,
        check_target,
        column_hierarchy,
    )
    from voile.kinds.staging import check_outside
    from voile.terminal.hierarchy import hierarchy_view

    wish = HierarchyWish(
        equal_width=equal_width,
        equal_depth=equal_depth,
        multiples=numbers("--multiples", multiples, "5,10,20"),
        dates=dates,
        mask=mask,
        prefixes=whole_numbers("--prefixes", prefixes, "3,2,1"),
        mapping=mapping,
        suggest_by=suggest_by,
        file=source,
        fanout=fanout,
    )
    if output is not None:
        refuse_table(output, table)
        check_outside(output)
        check_target(output, overwrite=overwrite)
    codebook = None if schema is None else voile.Schema.open(schema)
    found = column_hierarchy(
        voile.read(table, null_text=tuple(null_text or ())), column, wish, codebook
    )
    if found.levels.derived:
        say(f"note: computed from the rows of {column!r}: a release that shows it tells about them")
    if output is not None:
        found.save(output, overwrite=overwrite)
        option = shlex.join(["--hierarchy", f"{column}={output}"])
        say(f"wrote {output}; use it with {option}")
    data = {**found.to_dict(), "file": None if output is None else str(output)}
    show(data if as_json else None, lambda: hierarchy_view(found))


def numbers(option: str, text: str | None, example: str) -> list[float] | None:
    """Numbers with commas between them."""
    from voile.errors import UsageError

    try:
        return None if text is None else [float(part) for part in split_names(text) or []]
    except ValueError:
        raise UsageError(
            f"{option} {text!r} is not numbers with commas between them",
            hint=f"{option} {example}",
        ) from None


def whole_numbers(option: str, text: str | None, example: str) -> list[int] | None:
    from voile.errors import UsageError

    found = numbers(option, text, example)
    for number in found or []:
        if not number.is_integer():
            raise UsageError(f"{option}: {number:g} is not whole", hint=f"{option} {example}")
    return None if found is None else [int(number) for number in found]
