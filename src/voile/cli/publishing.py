"""The command that publishes: its flags are the options of all kinds."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from voile.cli.common import (
    PLACES,
    CsvSafeOpt,
    JsonOpt,
    NoRegisterOpt,
    RegisterOpt,
    SignOpt,
    SparkOpt,
    TableArg,
    commands,
    inode,
    key_of,
    place_of,
    read_table,
    refuse_table,
    register_of,
    signed_data,
)
from voile.cli.flags import AS_IT_IS, Given, with_flags, with_reading
from voile.engines.spark import without_secrets
from voile.errors import UsageError, spelled
from voile.kinds.classes.options import ClassOptions, HierarchyOptions
from voile.kinds.options import AutomaticOptions
from voile.kinds.registry import kinds, load_failures, publishing_kind
from voile.options.reading import ReadingOptions
from voile.terminal import say, show
from voile.terminal.answers import say_formulas
from voile.terminal.progress import progress_bar
from voile.terminal.publications import generalized_view, published_view

AUTO = "auto"
TYPED = "voile.typed"
"""Where the words of the command are kept, for commands that hints name."""
PUBLISHED = [kind for kind in kinds() if kind.command == "publish"]


def known_methods() -> str:
    """Every method, with what it makes."""
    found = [f"{listed(kind.methods)} ({kind.about})" for kind in PUBLISHED]
    found += [f"{method} (cannot be loaded)" for method in load_failures()]
    return "; ".join(found) + "."


def listed(words: Sequence[str]) -> str:
    """Words between commas, the last after 'or'."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


class PublishCommand(TyperCommand):
    """Refuses a method that cannot be used before its flags, which are then not known."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        method = method_of(args)
        if method not in (None, AUTO) and "--help" not in args:
            publishing_kind(method)
        ctx.meta[TYPED] = list(args)
        return super().parse_args(ctx, args)


TABLE_FLAGS = {
    "--columns": True, "--spark": True, "--null-text": True, "--decimal": True,
    "--thousands": True, "--separator": True, "--encoding": True, "--dates": True,
    "--header": True, "--skip": True, "--bad-rows": True, "--na": False, "--no-na": False,
}  # fmt: skip
"""Flags about the table, and whether a word follows each."""


def command_with(typed: Sequence[str], changes: Mapping[str, Any]) -> str:
    """The command as it was typed, with some options changed."""
    flags = {spelled(name).partition(" ")[0] for name in changes}
    kept: list[str] = []
    words = iter(typed)
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag not in flags:
            kept.append(word)
        elif not equals:
            next(words, None)
    more = " ".join(spelled(name, value) for name, value in changes.items())
    return f"voile publish {shlex.join(kept)} {more}"


def table_words(typed: Sequence[str], table: str) -> str:
    """The table with the flags that say how it is read, as other commands take them too."""
    kept, words = [table], list(typed)
    for place, word in enumerate(words):
        flag, equals, _ = word.partition("=")
        if flag not in TABLE_FLAGS:
            continue
        kept.append(word)
        if TABLE_FLAGS[flag] and not equals:
            kept += words[place + 1 : place + 2]
    return shlex.join(kept)


def method_of(args: Sequence[str]) -> str | None:
    """The value of --method, as it was typed; None where it is not given."""
    for place, word in enumerate(args):
        flag, equals, value = word.partition("=")
        if flag == "--method":
            return value if equals else next(iter(args[place + 1 :]), None)
    return None


@commands.command(cls=PublishCommand)
@with_reading
@with_flags(
    AutomaticOptions,
    *(kind.options for kind in PUBLISHED),
    after={
        "reading": "nulls",
        "spark": "reading",
        "overwrite": "name",
        "sign": "overwrite",
        "register": "simulate_seed",
        "no_register": "register",
        "as_json": "no_register",
    },
    last=("name", "simulate_seed"),
)
def publish(
    context: typer.Context,
    given: Given,
    table: TableArg,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", help="The release's folder, or its URL (NAME.voile if not given)."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help=f"auto, the default: what errs least under ε; {known_methods()}"),
    ] = None,
    reading: ReadingOptions = AS_IT_IS,
    spark: SparkOpt = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a release of that name.")
    ] = False,
    sign: SignOpt = None,
    register: RegisterOpt = None,
    no_register: NoRegisterOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Turn a private table into a release that keeps a promise."""
    from voile.publishing import implied_method

    method = method or implied_method(given.values)
    options = AutomaticOptions if method == AUTO else publishing_kind(method).options
    given.check_belong(options, method)
    key = key_of(sign)
    source = read_table(table, reading, spark)
    target = place_of(output, source.name)
    if isinstance(target, Path):
        PLACES.append((target, inode(target)))
    placed: dict[str, Any] = {
        "to": target,
        "overwrite": overwrite,
        "sign": key,
        "register": register_of(register, no_register),
    }
    if method == AUTO:
        typed = [*map(without_secrets, context.meta.get(TYPED, [table]))]
        placed["address"] = table_words(typed, without_secrets(table))
        done = published_best(source, given.values, placed, partial(command_with, typed))
    else:
        with progress_bar() as progress:
            done = publishing_kind(method).publish(
                source, method=method, progress=progress, **placed, **given.values
            )
    data = signed_data(done.to_dict(), key)
    show(data if as_json else None, lambda: published_view(done))
    if method == AUTO and not as_json:
        say_felt(done, source)


def say_felt(done: Any, source: Any) -> None:
    """What counts of this release are off by, on a terminal: for the steward, and kept nowhere."""
    import sys

    if not sys.stdout.isatty() or done.people is not None or not source.at_hand:
        return
    from voile.evaluate.felt import felt_error
    from voile.kinds.choosing import in_per_cent

    with progress_bar() as progress:
        progress.start("comparing with the table", 1)
        manifest = done.release.manifest
        found = felt_error(done.release, source, drop_nulls=manifest.nulls == "drop")
    if found.both is not None:
        say(
            f"for you only, from the private table: counts of 1 % of the rows or more are off by "
            f"{in_per_cent(found.both)} in the middle of {found.counts:,}"
        )


def published_best(
    source: Any, options: Mapping[str, Any], placed: Mapping[str, Any], spelling: Any
) -> Any:
    """Publish by the best method; on a terminal, ask about what is of little use."""
    import sys

    from voile.kinds.automatic import UselessError, publish_best

    try:
        with progress_bar() as progress:
            return publish_best(source, progress=progress, spelling=spelling, **placed, **options)
    except UselessError as error:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise
        say(str(error))
        if not typer.confirm("Publish it all the same?", default=False):
            raise
    with progress_bar() as progress:
        return publish_best(source, progress=progress, **placed, **{**options, "yes": True})


# ----------------------------------------------------------------------
# coarser tables, without a release around them


APPLIED = ("insensitive", "identifiers", "suppression")
"""Options that a saved recoding leaves open."""


@commands.command()
@with_reading
@with_flags(
    ClassOptions,
    without=("recode", "name", "simulate_seed", "error_model"),
    after={
        "method": "identifiers",
        "reading": "nulls",
        "save": "reading",
        "apply": "save",
        "keep_order": "apply",
        "overwrite": "keep_order",
        "csv_safe": "overwrite",
        "register": "csv_safe",
        "no_register": "register",
        "as_json": "no_register",
    },
)
def generalize(
    given: Given,
    table: TableArg,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The table to write: .csv or .parquet.")
    ],
    method: Annotated[
        str, typer.Option(help="mondrian, fulldomain, suppress or trivial.")
    ] = "mondrian",
    reading: ReadingOptions = AS_IT_IS,
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
    csv_safe: CsvSafeOpt = False,
    register: RegisterOpt = None,
    no_register: NoRegisterOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Write a table whose quasi-identifiers are coarse enough for every class to keep a promise."""
    from voile.files import write_whole
    from voile.kinds.classes.generalizing import check_places, generalize
    from voile.kinds.table_files import check_file

    check_file(output, overwrite=overwrite)
    check_places(table, output, save, overwrite=overwrite)
    source = read_table(table, reading)
    if apply is not None:
        check_applied(given, save)
    with progress_bar() as progress:
        done = generalize(
            source,
            apply=apply,
            reusable=save is not None,
            keep_order=keep_order,
            progress=progress,
            register=register_of(register, no_register),
            **given.values,
        )
    # The register may refuse it.
    done.write(output, overwrite=overwrite, csv_safe=csv_safe)
    if save is not None and done.recoding is not None:
        write_whole(save, done.recoding.content, overwrite=overwrite)
    if output.suffix.lower() == ".csv" and not csv_safe:
        say_formulas(done.formulas)
    data = {"table": str(output), "recoding": None if save is None else str(save), **done.to_dict()}
    show(data if as_json else None, lambda: generalized_view(done, str(output)))


def check_applied(given: Given, save: Path | None) -> None:
    """A saved recoding says all the rest itself."""
    typed = [ClassOptions.spelled(name) for name in given.values if name not in APPLIED]
    if other := [*typed, *([] if save is None else ["--save"])]:
        raise UsageError(
            f"{other[0]} does not go with --apply: the saved recoding says it",
            hint="leave it out, or fit a recoding anew",
        )


# ----------------------------------------------------------------------
# the command that builds hierarchies


@commands.command()
@with_reading
@with_flags(
    HierarchyOptions,
    after={
        "schema": "fanout",
        "reading": "schema",
        "output": "reading",
        "overwrite": "output",
        "as_json": "overwrite",
    },
)
def hierarchy(
    given: Given,
    table: TableArg,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="The column it is for.")],
    schema: Annotated[Path | None, typer.Option(help="A codebook with the column.")] = None,
    reading: ReadingOptions = AS_IT_IS,
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
    from voile.terminal.publications import hierarchy_view

    asked = HierarchyOptions(**given.values)
    if output is not None:
        refuse_table(output, table)
        check_outside(output)
        check_target(output, overwrite=overwrite)
    codebook = None if schema is None else voile.Schema.open(schema)
    found = column_hierarchy(read_table(table, reading), column, asked, codebook)
    if found.levels.derived:
        say(f"note: computed from the rows of {column!r}: a release that shows it tells about them")
    if output is not None:
        found.save(output, overwrite=overwrite)
        option = shlex.join(["--hierarchy", f"{column}={output}"])
        say(f"wrote {output}; use it with {option}")
    data = {**found.to_dict(), "file": None if output is None else str(output)}
    show(data if as_json else None, lambda: hierarchy_view(found))
