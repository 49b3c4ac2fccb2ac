"""Commands that make models of a release: trees and association rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import ColumnsOpt, JsonOpt, ReleaseArg, commands, split_names
from voile.terminal import say, show
from voile.terminal.mining import rules_view, tree_view
from voile.terminal.progress import fitting_progress


@commands.command()
def tree(
    release: ReleaseArg,
    target: Annotated[str, typer.Option(help="The column whose classes are predicted.")],
    depth: Annotated[int, typer.Option(help="At most so many questions in a row.")] = 3,
    min_support: Annotated[
        float, typer.Option(help="At least so many rows in a leaf, by estimate.")
    ] = 300,
    bins: Annotated[int, typer.Option(help="Equal parts into which numbers are cut.")] = 20,
    method: Annotated[
        str,
        typer.Option(help="stopped: EM ended where it fits as the truth would; em; inversion."),
    ] = "stopped",
    level: Annotated[
        float, typer.Option(help="Chance that nothing is split where no column tells anything.")
    ] = 0.95,
    columns: ColumnsOpt = None,
    test: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Rows to measure the accuracy on.")
    ] = None,
    beside: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="The private table: show its own tree, too."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it: FILE.html, .svg, .png or .pdf.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Grow a decision tree from counts that are reconstructed from perturbed rows."""
    import voile
    from voile.cli.common import check_output
    from voile.evaluate.drawing import check_picture
    from voile.mining import Limits, tree_plot
    from voile.mining.counts import checked_counts
    from voile.mining.report import report

    limits = Limits(depth, min_support, bins, method, level)
    if plot:
        check_output(plot, release, overwrite=overwrite)
        check_picture(plot, overwrite=overwrite)
    counts = checked_counts(voile.open(release), release)
    with fitting_progress() as progress:
        found = report(
            counts,
            target,
            split_names(columns),
            limits,
            release=str(release),
            test=test,
            private=beside,
            progress=progress,
        )
    if plot:
        drawn = tree_plot.write(found.tree, plot, subtitle=found.subtitle, overwrite=overwrite)
        say(f"wrote {drawn}")
    show(found.to_dict() if as_json else None, lambda: tree_view(found))
    if not as_json:
        for note in found.notes:
            say(f"note: {note}")
    if beside:
        say("note: what stands beside is made from the private table, and is not for publication")


@commands.command()
def rules(
    release: ReleaseArg,
    support: Annotated[float, typer.Option(help="Least share of rows that have all items.")] = 0.05,
    confidence: Annotated[
        float, typer.Option(help="Least share of rows with the conditions that have the rest.")
    ] = 0.6,
    columns: ColumnsOpt = None,
    longest: Annotated[int, typer.Option(help="At most so many items, both sides together.")] = 3,
    bins: Annotated[int, typer.Option(help="Equal parts into which numbers are cut.")] = 5,
    method: Annotated[str, typer.Option(help="inversion, em or stopped.")] = "inversion",
    level: Annotated[float, typer.Option(help="Chance that an interval holds.")] = 0.95,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Intervals that hold for all rules at once.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Find association rules, with intervals, in counts reconstructed from perturbed rows."""
    import voile
    from voile.mining import RuleLimits, find_rules
    from voile.mining.counts import checked_counts

    limits = RuleLimits(support, confidence, longest, bins, method, level, simultaneous)
    counts = checked_counts(voile.open(release), release)
    with fitting_progress() as progress:
        found = find_rules(counts, split_names(columns), limits, progress)
    show(found.to_dict() if as_json else None, lambda: rules_view(found))
    if not as_json:
        for note in found.notes:
            say(f"note: {note}")
