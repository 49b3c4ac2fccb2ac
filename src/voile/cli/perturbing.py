"""Commands for rows that are perturbed one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from voile.cli.common import (
    PLACES,
    ColumnsOpt,
    JsonOpt,
    NullTextOpt,
    ReleaseArg,
    TableArg,
    check_nulls,
    commands,
    inode,
    split_names,
)
from voile.terminal import say, show
from voile.terminal.perturbing import (
    combination_view,
    exposure_view,
    perturbation_view,
    spec_view,
)
from voile.terminal.progress import progress_bar

RetentionOpt = Annotated[
    list[str],
    typer.Option(
        "--retention",
        help="Chance that a value is kept: 0.3 for all columns, age=0.5 for one. 1, and columns "
        "that nothing is said of, are public.",
    ),
]
ReplaceOpt = Annotated[
    list[str] | None,
    typer.Option(
        "--replace",
        help="Where other values come from: uniform, identity or swap, for all or as age=swap; or "
        "a file of chances (YAML, JSON).",
    ),
]
WholeRowsOpt = Annotated[
    bool,
    typer.Option("--whole-rows", help="One coin for the whole row (FRAPP's γ-diagonal matrix)."),
]
MostEpsilonOpt = Annotated[
    float | None, typer.Option(help="Refuse retentions with a larger local ε for a row.")
]
NameOpt = Annotated[str | None, typer.Option(help="The table's name in SQL.")]
OverwriteOpt = Annotated[bool, typer.Option("--overwrite", help="Replace what has that name.")]


@commands.command()
def perturb(
    table: TableArg,
    retention: RetentionOpt,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The release's folder (NAME.voile if not given)."),
    ] = None,
    replace: ReplaceOpt = None,
    columns: ColumnsOpt = None,
    schema: Annotated[
        Path | None, typer.Option(help="A codebook that declares the domain.")
    ] = None,
    nulls: Annotated[str, typer.Option(help="error, drop or as-value.")] = "error",
    null_text: NullTextOpt = None,
    whole_rows: WholeRowsOpt = False,
    row_key: Annotated[
        str | None,
        typer.Option(help="A column by which this part is joined with others; stays as it is."),
    ] = None,
    suppress_below: Annotated[
        int | None,
        typer.Option(help="With identity or swap: make values NULL that fewer rows have."),
    ] = None,
    most_epsilon: MostEpsilonOpt = None,
    name: NameOpt = None,
    overwrite: OverwriteOpt = False,
    simulate_seed: Annotated[
        int | None,
        typer.Option(help="For simulations: coins from this seed. Protects nobody; is marked."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Perturb every row of a table on its own, so that nobody need be trusted with it."""
    import voile
    from voile.kinds.perturbed.perturbing import perturb_table

    source = voile.read(table, null_text=tuple(null_text or ()))
    target = output or Path(f"{source.name}.voile")
    PLACES.append((target, inode(target)))
    with progress_bar() as progress:
        done = perturb_table(
            source,
            to=target,
            retention=by_column(retention, "--retention", number),
            replace=replacement(replace),
            columns=split_names(columns),
            schema=schema,
            nulls=check_nulls(nulls),
            whole_rows=whole_rows,
            row_key=row_key,
            suppress_below=suppress_below,
            most_epsilon=most_epsilon,
            name=name,
            overwrite=overwrite,
            simulate_seed=simulate_seed,
            progress=progress,
        )
    show(done.to_dict() if as_json else None, lambda: perturbation_view(done))


@commands.command()
def spec(
    codebook: Annotated[Path, typer.Argument(metavar="CODEBOOK", help="The public domain.")],
    retention: RetentionOpt,
    output: Annotated[Path, typer.Option("-o", "--output", help="Write the spec to this file.")],
    replace: Annotated[
        list[str] | None,
        typer.Option(
            "--replace", help="Where other values come from: uniform, or a file of chances."
        ),
    ] = None,
    columns: ColumnsOpt = None,
    whole_rows: WholeRowsOpt = False,
    most_epsilon: MostEpsilonOpt = None,
    name: NameOpt = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Write what clients need to perturb their own rows: a survey's public parameters."""
    from voile.files import write_whole
    from voile.kinds.perturbed.specs import make_spec

    found = make_spec(
        codebook,
        retention=by_column(retention, "--retention", number),
        replace=replacement(replace),
        columns=split_names(columns),
        whole_rows=whole_rows,
        most_epsilon=most_epsilon,
        name=name or codebook.stem,
    )
    write_whole(output, found.raw, overwrite=overwrite)
    for note in spec_notes(found):
        say(f"note: {note}")
    say(f"wrote {output}; serve it with voile collect --spec {output}")
    data = {
        "spec": str(output),
        "digest": found.digest,
        "epsilon": found.epsilon(),
        "joint": found.joint,
        "columns": {
            column.name: {"retention": column.retention, "epsilon": told}
            for column, told in zip(found.columns, finite_epsilons(found), strict=True)
        },
    }
    show(data if as_json else None, lambda: spec_view(data))


@commands.command()
def combine(
    parts: Annotated[list[Path], typer.Argument(metavar="PART…", help="Perturbed tables.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The release's folder.")],
    name: NameOpt = None,
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Put together parts that their owners perturbed: more rows, or more columns by a row key."""
    from voile.kinds.perturbed.combining import combine as put_together

    PLACES.append((output, inode(output)))
    done = put_together(parts, output, name=name, overwrite=overwrite)
    show(done.to_dict() if as_json else None, lambda: combination_view(done))


def spec_notes(found: Any) -> list[str]:
    """What those who ask should know before they do."""
    from voile.kinds.perturbed.perturbing import little_promised

    public = ", ".join(found.public)
    told = [f"public, sent as they are: {public}"] if public else []
    return [*little_promised(found.epsilon()), *told]


def finite_epsilons(found: Any) -> list[float | None]:
    import math

    epsilons = found.column_epsilons().values()
    return [epsilon if math.isfinite(epsilon) else None for epsilon in epsilons]


def by_column(given: list[str], option: str, read: Any) -> dict[str | None, Any]:
    """VALUE for all columns, NAME=VALUE for one; None stands for the others."""
    from voile.errors import UsageError

    found: dict[str | None, Any] = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        key = name if equals else None
        if equals and not name:
            raise UsageError(f"{option} {text!r} names no column", hint=f"{option} age=…")
        if key in found:
            raise UsageError(f"{option} is given twice for {key or 'all columns'}", hint="once")
        found[key] = read(option, text, value)
    return found


def number(option: str, text: str, value: str) -> float:
    from voile.errors import UsageError

    try:
        return float(value)
    except ValueError:
        raise UsageError(
            f"{option} {text!r} is not a number", hint=f"{option} 0.3, or {option} age=0.5"
        ) from None


def replacement(given: list[str] | None) -> Any:
    """A word for all, words by column, or one file."""
    if not given:
        return "uniform"
    if len(given) == 1 and Path(given[0]).suffix.lower() in (".yaml", ".yml", ".json"):
        return Path(given[0])
    return by_column(given, "--replace", lambda _option, _text, value: value)


@commands.command()
def exposure(
    release: ReleaseArg,
    breach: Annotated[
        str | None,
        typer.Option(help="ρ₁,ρ₂: is a belief of at most ρ₁ taken above ρ₂? As in 0.1,0.95."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Measure what a seen value tells: beliefs from the distribution that is reconstructed."""
    from voile.evaluate.exposure import exposure as measure
    from voile.evaluate.planning.local_options import parse_breach
    from voile.kinds.perturbed.release import LocalRelease

    found = measure(LocalRelease.open(release), None if breach is None else parse_breach(breach))
    show(found.to_dict() if as_json else None, lambda: exposure_view(found))
