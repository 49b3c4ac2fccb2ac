"""Commands on releases: check, read, ask."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from voile.cli.common import (
    CheckOpt,
    CsvSafeOpt,
    ExactOpt,
    JsonOpt,
    MemoryOpt,
    RefineOpt,
    ReleaseArg,
    SqlArg,
    WithOpt,
    check_output,
    commands,
    own_tables,
)
from voile.terminal import say, say_notes, show
from voile.terminal.answers import explanation_view, say_formulas, show_answer
from voile.terminal.guarantees import consequences_view, conversion_view, statements_view
from voile.terminal.progress import fitting_progress
from voile.terminal.publications import refinement_view

PlaceArg = Annotated[
    str, typer.Argument(metavar="RELEASE", help="A release's folder, or its URL: s3a://…")
]
CountedOpt = Annotated[
    str | None,
    typer.Option(
        "--spark",
        metavar="ADDRESS",
        help="Count the rows on a cluster, where they lie: sc://HOST:PORT of a Spark Connect "
        "server, or local for one in this process.",
    ),
]


@commands.command()
def verify(
    release: PlaceArg,
    signer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PUB",
            help="A key that you trust and that must have signed it: a file of public keys, or "
            "SHA256:…; repeatable, any of them will do.",
        ),
    ] = None,
    revoked: Annotated[
        list[str] | None,
        typer.Option(metavar="PUB", help="Keys that are trusted no more; likewise."),
    ] = None,
    spark: CountedOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Check a release's files, what it states, and whether its rows can be what it says."""
    from voile.kinds.verification import examine
    from voile.terminal.publications import verification_view

    found = examine(release, signer=signer, revoked=revoked, engine=spark)
    show(found.to_dict() if as_json else None, lambda: verification_view(found))
    if not found.ok:
        raise found.errors[0]


@commands.command()
def describe(
    release: PlaceArg,
    spark: CountedOpt = None,
    check: CheckOpt = True,
    as_json: JsonOpt = False,
) -> None:
    """Explain a release in plain words: the promise, its limits, how to count from it."""
    found = opened(release, check=check, spark=spark)
    show(found.manifest.model_dump(mode="json") if as_json else None, lambda: found)


def opened(release: str, *, check: bool, spark: str | None) -> Any:
    """The release that a command names; what was fetched for that is said."""
    import voile

    found = voile.open(release, check=check, engine=spark)
    say_notes(found.notes)
    return found


@commands.command()
def query(
    release: PlaceArg,
    sql: SqlArg,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    tables: WithOpt = None,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Intervals that hold for all groups at once.")
    ] = False,
    refine: RefineOpt = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="inversion or em, for rows that were perturbed one by one; uniform or entropy, "
            "for classes."
        ),
    ] = None,
    memory: MemoryOpt = "1GB",
    exact: ExactOpt = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the answer to FILE.csv, .parquet or .json."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    csv_safe: CsvSafeOpt = False,
    spark: CountedOpt = None,
    check: CheckOpt = True,
    as_json: JsonOpt = False,
) -> None:
    """Estimate what the SQL would give on the original table."""
    found = opened(release, check=check, spark=spark)
    if output:
        check_output(output, found.path, overwrite=overwrite)
    if refine and found.refines:
        with fitting_progress() as progress:
            found.refine(progress)
    answer = found.query(
        sql,
        confidence,
        tables=own_tables(tables),
        simultaneous=simultaneous,
        refine=refine,
        method=method,
        memory=memory,
        exact=exact,
    )
    show_answer(answer, output=output, as_csv=as_csv, as_json=as_json, csv_safe=csv_safe)


@commands.command()
def rows(
    release: ReleaseArg,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The file to write: .parquet or .csv.")
    ],
    number: Annotated[
        int | None, typer.Option("-n", "--number", help="How many (as many as the model counts).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    csv_safe: CsvSafeOpt = False,
    check: CheckOpt = True,
    as_json: JsonOpt = False,
) -> None:
    """Draw synthetic rows from the model of noisy marginals: nobody is among them."""
    from voile.kinds.marginals.release import MarginalRelease

    found = MarginalRelease.open(release, check=check)
    check_output(output, found.path, overwrite=overwrite)
    written = found.write_rows(output, number, overwrite=overwrite, csv_safe=csv_safe)
    if output.suffix.lower() == ".csv" and not csv_safe:
        from voile.kinds.marginals.rows import formulas_in

        say_formulas(formulas_in(output))
    data = {"release": str(release), "rows": written, "path": str(output), "synthetic": True}
    show(data if as_json else None, lambda: f"{output}: {written:,} synthetic rows, nobody's")


@commands.command()
def refine(release: ReleaseArg, check: CheckOpt = True, as_json: JsonOpt = False) -> None:
    """Fit the model that --refine weighs estimates against, and keep it beside the release."""
    from voile.kinds.views.release import ViewRelease

    found = ViewRelease.open(release, check=check)
    with fitting_progress() as progress:
        report = found.refine(progress, replace_broken=True).report
    kept = found.refinement_path.is_file()
    data = {"path": str(found.refinement_path) if kept else None, **report}
    if not kept:
        say(f"note: {found.refinement_path} cannot be written: the model is fitted again next time")
    show(data if as_json else None, lambda: refinement_view(data))


@commands.command()
def explain(
    release: PlaceArg,
    sql: SqlArg,
    tables: WithOpt = None,
    memory: MemoryOpt = "1GB",
    exact: ExactOpt = False,
    spark: CountedOpt = None,
    check: CheckOpt = True,
    as_json: JsonOpt = False,
) -> None:
    """Show how an estimate comes about: what is counted, how, and where the error is from."""
    asked, mine = opened(release, check=check, spark=spark), own_tables(tables)
    found = asked.explanation(sql, tables=mine, memory=memory, exact=exact)
    show(found.to_dict() if as_json else None, lambda: explanation_view(found))


@commands.command()
def shell(
    release: ReleaseArg,
    command: Annotated[
        list[str] | None, typer.Option("-c", "--command", help="Run this and leave; repeatable.")
    ] = None,
    tables: WithOpt = None,
    check: CheckOpt = True,
    as_json: JsonOpt = False,
) -> None:
    """Ask a release one question after the other, at a prompt or from a pipe."""
    from voile.shell import run

    mine = own_tables(tables)
    raise typer.Exit(run(release, command or [], tables=mine, check=check, as_json=as_json))


# ----------------------------------------------------------------------
# commands on promises: convert one into another, list what follows from a release


@commands.command()
def convert(
    guarantee: Annotated[
        str,
        typer.Argument(metavar="GUARANTEE", help="E.g. 'd-gamma(d=4.65e-4, gamma=0.2)'."),
    ],
    to: Annotated[
        str | None,
        typer.Option(help="A kind, with what should be fixed: dp, 'dp(unit=swap)'. Else all."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Say what a promise comes to in other terms, by which theorem, and what does not follow."""
    from voile.privacy import consequences, parse_guarantee, parse_wish
    from voile.privacy import convert as converted

    source = parse_guarantee(guarantee)
    if to is None:
        found = consequences(source)
        show(found.to_dict() if as_json else None, lambda: consequences_view(found))
        return
    conversion = converted(source, parse_wish(to))
    show(conversion.to_dict() if as_json else None, lambda: conversion_view(conversion))


@commands.command()
def guarantees(
    release: PlaceArg,
    denied: Annotated[
        bool, typer.Option("--not-promised", help="List only what is not promised.")
    ] = False,
    check: CheckOpt = True,
    as_json: JsonOpt = False,
) -> None:
    """List all that a release promises, against whom, and what it does not."""
    found = opened(release, check=check, spark=None)
    simulated = found.manifest.simulated
    refused = found.not_promised()
    kept = [] if denied else found.promised()
    if simulated and as_json:
        say("note: made from a chosen seed: this release promises nothing")
    show(
        [one.to_dict() for one in (refused if denied else kept)] if as_json else None,
        lambda: statements_view(kept, refused, simulated=simulated),
    )
