"""Coarser tables, without a release around them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import JsonOpt, NullTextOpt, TableArg, commands, split_names
from voile.cli.grouping_options import (
    GROUPING,
    AbsentOpt,
    AlphaOpt,
    COpt,
    CutsOpt,
    GroupNullsOpt,
    GroupSchemaOpt,
    HierarchyOpt,
    IdentifiersOpt,
    InsensitiveOpt,
    KOpt,
    LMeasureOpt,
    LOpt,
    LossOpt,
    PopulationOpt,
    PresenceOpt,
    QiOpt,
    RelaxedOpt,
    SemanticOpt,
    SensitiveOpt,
    SuppressedOpt,
    SuppressionOpt,
    TDistanceOpt,
    TOpt,
    check_applied,
    grouping_wish,
)
from voile.terminal import show
from voile.terminal.grouping import generalized_view
from voile.terminal.progress import progress_bar


@commands.command()
def generalize(
    context: typer.Context,
    table: TableArg,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The table to write: .csv or .parquet.")
    ],
    qi: QiOpt = None,
    sensitive: SensitiveOpt = None,
    insensitive: InsensitiveOpt = None,
    identifiers: IdentifiersOpt = None,
    method: Annotated[
        str, typer.Option(help="mondrian, fulldomain, suppress or trivial.")
    ] = "mondrian",
    k: KOpt = None,
    l: LOpt = None,  # noqa: E741  (the requirement's name)
    l_measure: LMeasureOpt = "frequency",
    c: COpt = None,
    t: TOpt = None,
    t_distance: TDistanceOpt = "js",
    semantic: SemanticOpt = None,
    absent: AbsentOpt = "forbidden",
    alpha: AlphaOpt = None,
    presence: PresenceOpt = None,
    population: PopulationOpt = None,
    cuts: CutsOpt = None,
    relaxed: RelaxedOpt = False,
    suppression: SuppressionOpt = 0.0,
    suppressed: SuppressedOpt = None,
    loss: LossOpt = None,
    hierarchy: HierarchyOpt = None,
    schema: GroupSchemaOpt = None,
    nulls: GroupNullsOpt = "error",
    null_text: NullTextOpt = None,
    save: Annotated[
        Path | None, typer.Option("--save", help="Keep the recoding in this file, for new rows.")
    ] = None,
    apply: Annotated[
        Path | None, typer.Option("--apply", help="Apply a saved recoding instead.")
    ] = None,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Keep the order of the rows, which may tell.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of that name.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Write a table whose quasi-identifiers are coarse enough for every class to keep a promise."""
    import voile
    from voile.files import write_whole
    from voile.kinds.classes.generalizing import check_file, check_places, generalize

    check_file(output, overwrite=overwrite)
    check_places(table, output, save, overwrite=overwrite)
    source = voile.read(table, null_text=tuple(null_text or ()))
    if apply is not None:
        check_applied(context)
        done = generalize(
            source,
            apply=apply,
            insensitive=split_names(insensitive),
            identifiers=split_names(identifiers),
            suppression=suppression,
            keep_order=keep_order,
        )
    else:
        names = [name for name in GROUPING if name != "recode"]
        wish = grouping_wish(**{name: context.params[name] for name in names})
        with progress_bar() as progress:
            done = generalize(
                source,
                method=method,
                schema=schema,
                reusable=save is not None,
                keep_order=keep_order,
                progress=progress,
                **wish,
            )
    if save is not None and done.recoding is not None:
        write_whole(save, done.recoding.content, overwrite=overwrite)
    done.write(output, overwrite=overwrite)
    data = {"table": str(output), "recoding": None if save is None else str(save), **done.to_dict()}
    show(data if as_json else None, lambda: generalized_view(done, str(output)))
