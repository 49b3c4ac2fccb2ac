"""The command line: arguments and errors, no arithmetic.

Results go to standard output, everything else to standard error. Exit codes: 0 done, 1 the
promise or the data says no, 2 wrong usage.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from voile.terminal import (
    complain,
    explanation_view,
    fitting_progress,
    inspection_view,
    progress_bar,
    publication_view,
    refinement_view,
    say,
    show,
    show_answer,
    table_of,
)

app = typer.Typer(
    help="Publish tables about people so that anyone can count and no one can be singled out.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

TableArg = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="CSV, TSV, Parquet, Arrow, DuckDB or SQLite file, folder or glob; FILE::TABLE; "
        "postgresql://…::TABLE; or dataset:NAME.",
    ),
]
ReleaseArg = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release's folder.")]
SqlArg = Annotated[str, typer.Argument(metavar="SQL", help="select count(*) from name where …")]
WithOpt = Annotated[
    list[str] | None,
    typer.Option("--with", help="NAME=TABLE: a table of your own that the SQL may look up in."),
]
MemoryOpt = Annotated[str, typer.Option(help="What counting the domain may use, e.g. 4GB.")]
RefineOpt = Annotated[
    bool,
    typer.Option("--refine", help="Weigh estimates against a model fitted to the same release."),
]
ExactOpt = Annotated[
    bool, typer.Option("--exact", help="Refuse rather than estimate a count of the domain.")
]
JsonOpt = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]
ColumnsOpt = Annotated[
    str | None, typer.Option("--columns", help="Columns to use: a,b,c (quote names with commas).")
]
NullTextOpt = Annotated[
    list[str] | None, typer.Option("--null-text", help="Text that means NULL, e.g. '?'.")
]


def own_tables(given: list[str] | None) -> dict[str, str]:
    """NAME=TABLE options by name."""
    from voile.errors import UsageError

    found: dict[str, str] = {}
    for text in given or []:
        name, equals, source = text.partition("=")
        if not equals or not name or not source:
            raise UsageError(
                f"--with {text!r} is not NAME=TABLE", hint="--with regions=regions.csv"
            )
        if name in found:
            raise UsageError(f"--with names {name!r} twice", hint="give each table its own name")
        found[name] = source
    return found


def check_output(path: Path, release: Path, *, overwrite: bool) -> None:
    """Refuse before any work is done: a release is sealed, and files are not lost by accident."""
    from voile.errors import UsageError

    if path.resolve().is_relative_to(release.resolve()):
        raise UsageError(f"{str(path)!r} is inside the release", hint="write it elsewhere")
    if path.exists() and not overwrite:
        raise UsageError(
            f"{str(path)!r} exists already", hint="choose another name, or pass --overwrite"
        )


def print_version(wanted: bool) -> None:
    if wanted:
        from voile import __version__

        print(f"voile {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=print_version, is_eager=True),
    ] = False,
) -> None:
    """Publish tables about people so that anyone can count and no one can be singled out."""


@app.command()
def inspect(
    table: TableArg,
    columns: ColumnsOpt = None,
    null_text: NullTextOpt = None,
    nulls: Annotated[str, typer.Option(help="as-value counts NULL as a value.")] = "error",
    as_json: JsonOpt = False,
) -> None:
    """Look at a table before publishing it: domain, duplicates, identifiers, what is feasible."""
    import voile
    from voile.inspection import inspect as look

    source = voile.read(table, null_text=tuple(null_text or ()))
    found = look(source, split_names(columns), nulls=check_nulls(nulls))
    show(found.to_dict() if as_json else None, lambda: inspection_view(found))


@app.command()
def schema(
    table: TableArg,
    output: Annotated[Path, typer.Option("-o", "--output", help="The codebook to write.")],
    columns: ColumnsOpt = None,
    null_text: NullTextOpt = None,
    nulls: Annotated[str, typer.Option(help="as-value makes NULL one of the values.")] = "error",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a codebook of that name.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Write an editable codebook of the table's columns: values, ranges, bins."""
    import voile

    source = voile.read(table, null_text=tuple(null_text or ()))
    names = source.check_columns(split_names(columns) or list(source.columns))
    found = source.infer(names, check_nulls(nulls))
    if not str(table).startswith("dataset:") and output.exists() and Path(table).exists():
        refuse_same_file(output, Path(table))
    found.save(output, overwrite=overwrite)
    say(f"wrote {output}; edit it, and pass it to voile publish with --schema")
    show({"schema": str(output), **found.to_dict()} if as_json else None, lambda: found)


@app.command()
def publish(
    table: TableArg,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The release's folder (NAME.voile if not given)."),
    ] = None,
    method: Annotated[str, typer.Option(help="How the view is made.")] = "alphabeta",
    prior_factor: Annotated[
        float | None, typer.Option(help="k: protect beliefs up to d = k·n/m (10 if not given).")
    ] = None,
    prior: Annotated[
        float | None, typer.Option(help="d: protect beliefs up to this (instead of a factor).")
    ] = None,
    posterior: Annotated[float, typer.Option(help="γ: no such belief may exceed this.")] = 0.2,
    adversary: Annotated[str, typer.Option(help="independent or exclusive.")] = "independent",
    retention: Annotated[
        float | None,
        typer.Option(help="Chance that a record is kept (the best one; the paper's is 0.5)."),
    ] = None,
    max_view_ratio: Annotated[
        float | None, typer.Option(help="At most this many rows out per row in, on average.")
    ] = None,
    columns: ColumnsOpt = None,
    schema: Annotated[
        Path | None, typer.Option(help="A codebook that declares the domain.")
    ] = None,
    rows: Annotated[str, typer.Option(help="multiset, or set for tables without repetitions.")] = (
        "multiset"
    ),
    distinct: Annotated[
        bool, typer.Option("--distinct", help="With --rows set: drop repeated rows.")
    ] = False,
    nulls: Annotated[str, typer.Option(help="error, drop or as-value.")] = "error",
    null_text: NullTextOpt = None,
    name: Annotated[str | None, typer.Option(help="The table's name in SQL.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a release of that name.")
    ] = False,
    simulate_seed: Annotated[
        int | None,
        typer.Option(help="For simulations: coins from this seed. Protects nobody; is marked."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Turn a private table into a release that keeps a promise."""
    import voile
    from voile.publishing import publish_table

    source = voile.read(table, null_text=tuple(null_text or ()))
    with progress_bar() as progress:
        done = publish_table(
            source,
            to=output or Path(f"{source.name}.voile"),
            method=method,
            prior_factor=prior_factor,
            prior=prior,
            posterior=posterior,
            adversary=adversary,
            retention=retention,
            max_view_ratio=max_view_ratio,
            columns=split_names(columns),
            schema=schema,
            rows=rows,
            distinct=distinct,
            nulls=check_nulls(nulls),
            name=name,
            overwrite=overwrite,
            simulate_seed=simulate_seed,
            progress=progress,
        )
    show(done.to_dict() if as_json else None, lambda: publication_view(done))


@app.command()
def verify(release: ReleaseArg, as_json: JsonOpt = False) -> None:
    """Check every byte of a release, and its promise, again."""
    import voile

    found = voile.verify(release)
    files = len(found.manifest.files) + 1
    result = {"release": str(release), "ok": True, "files": files, "rows": found.manifest.rows}
    show(
        result if as_json else None,
        lambda: f"[green]✓[/green] {files} files, {found.manifest.rows:,} rows, promise kept",
    )


@app.command()
def describe(release: ReleaseArg, as_json: JsonOpt = False) -> None:
    """Explain a release in plain words: the promise, its limits, how to count from it."""
    import voile

    found = voile.open(release)
    show(found.manifest.model_dump(mode="json") if as_json else None, lambda: found)


@app.command()
def query(
    release: ReleaseArg,
    sql: SqlArg,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    tables: WithOpt = None,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Intervals that hold for all groups at once.")
    ] = False,
    refine: RefineOpt = False,
    memory: MemoryOpt = "1GB",
    exact: ExactOpt = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the answer to FILE.csv, .parquet or .json."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Estimate what the SQL would give on the original table."""
    import voile

    found = voile.open(release)
    if output:
        check_output(output, found.path, overwrite=overwrite)
    if refine:
        with fitting_progress() as progress:
            found.refine(progress)
    answer = found.query(
        sql,
        confidence,
        tables=own_tables(tables),
        simultaneous=simultaneous,
        refine=refine,
        memory=memory,
        exact=exact,
    )
    show_answer(answer, output=output, as_csv=as_csv, as_json=as_json)


@app.command()
def refine(release: ReleaseArg, as_json: JsonOpt = False) -> None:
    """Fit the model that --refine weighs estimates against, and keep it beside the release."""
    import voile

    found = voile.open(release)
    with fitting_progress() as progress:
        report = found.refine(progress, replace_broken=True).report
    kept = found.refinement_path.is_file()
    data = {"path": str(found.refinement_path) if kept else None, **report}
    if not kept:
        say(f"note: {found.refinement_path} cannot be written: the model is fitted again next time")
    show(data if as_json else None, lambda: refinement_view(data))


@app.command()
def explain(
    release: ReleaseArg,
    sql: SqlArg,
    tables: WithOpt = None,
    memory: MemoryOpt = "1GB",
    exact: ExactOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Show how an estimate comes about: what is counted, how, and where the error is from."""
    import voile

    found = voile.open(release).explain(sql, tables=own_tables(tables), memory=memory, exact=exact)
    show(found if as_json else None, lambda: explanation_view(found))


@app.command()
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


@app.command()
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for what it makes.")] = (
        Path("demo-output")
    ),
    as_json: JsonOpt = False,
) -> None:
    """Publish the Adult table, ask it questions, and draw how good the answers are."""
    from voile.evaluate.demo import run

    with progress_bar() as progress:
        result = run(output, progress)
    show(result.to_dict() if as_json else None, lambda: result)


@app.command()
def shell(
    release: ReleaseArg,
    command: Annotated[
        list[str] | None, typer.Option("-c", "--command", help="Run this and leave; repeatable.")
    ] = None,
    tables: WithOpt = None,
    as_json: JsonOpt = False,
) -> None:
    """Ask a release one question after the other, at a prompt or from a pipe."""
    from voile.shell import run

    raise typer.Exit(run(release, command or [], tables=own_tables(tables), as_json=as_json))


# ---------------------------------------------------------------------- arguments


def split_names(text: str | None) -> list[str] | None:
    """Names apart at commas; a name with a comma goes in double quotes, as in CSV."""
    if text is None:
        return None
    import csv

    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]


def refuse_same_file(output: Path, table: Path) -> None:
    from voile.errors import UsageError

    if output.samefile(table):
        raise UsageError(f"{output} is the table itself", hint="name another file for the codebook")


def check_nulls(text: str) -> Any:
    from voile.engines.table import NULLS
    from voile.errors import UsageError

    if text not in NULLS:
        raise UsageError(f"--nulls {text!r} is not known", hint=f"use {', '.join(NULLS)}")
    return text


class Interrupted(BaseException):
    """A signal asked us to stop; not an Exception, so that nothing takes it for a failure."""


def stop_on_signals() -> list[int]:
    """Make every polite signal clean up behind itself; returns where they are noted."""
    received: list[int] = []

    def note(number: int, _: object) -> None:
        received.append(number)
        for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)  # cleaning up is not interrupted again
        raise Interrupted

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, note)
    return received


def main() -> None:
    from voile.errors import VoileError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a poor terminal is no reason to fail
    received = stop_on_signals()
    try:
        app()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except (Exception, Interrupted) as error:
        # A library that was interrupted may have made an error of its own of it.
        if received:
            say("interrupted; nothing was left behind")
            sys.exit(128 + received[0])
        if isinstance(error, VoileError):
            complain(error.message, error.hint)
            sys.exit(error.exit_code)
        if isinstance(error, OSError):
            where = f"{error.filename}: " if error.filename else ""
            complain(f"{where}{error.strerror or error}", "nothing was released")
            sys.exit(1)
        raise


if __name__ == "__main__":
    main()
