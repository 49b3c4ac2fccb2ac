"""Commands for rows that are perturbed one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from voile.cli.common import (
    PLACES,
    JsonOpt,
    NoRegisterOpt,
    RegisterOpt,
    ReleaseArg,
    SignOpt,
    SparkOpt,
    TableArg,
    commands,
    inode,
    key_of,
    place_of,
    read_table,
    register_of,
    signed_data,
)
from voile.cli.flags import AS_IT_IS, Given, with_flags, with_reading
from voile.kinds.perturbed.options import PerturbOptions
from voile.options.reading import ReadingOptions
from voile.terminal import say, say_notes, show
from voile.terminal.progress import progress_bar
from voile.terminal.publications import (
    combination_view,
    exposure_view,
    perturbation_view,
    spec_view,
)

NameOpt = Annotated[str | None, typer.Option(help="The table's name in SQL.")]
OverwriteOpt = Annotated[bool, typer.Option("--overwrite", help="Replace what has that name.")]


@commands.command()
@with_reading
@with_flags(
    PerturbOptions,
    after={
        "output": "retention",
        "reading": "nulls",
        "spark": "reading",
        "overwrite": "name",
        "sign": "overwrite",
        "register": "simulate_seed",
        "no_register": "register",
        "as_json": "no_register",
    },
)
def perturb(
    given: Given,
    table: TableArg,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", help="The release's folder, or its URL (NAME.voile if not given)."
        ),
    ] = None,
    reading: ReadingOptions = AS_IT_IS,
    spark: SparkOpt = None,
    overwrite: OverwriteOpt = False,
    sign: SignOpt = None,
    register: RegisterOpt = None,
    no_register: NoRegisterOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Perturb every row of a table on its own, so that nobody need be trusted with it."""
    from voile.kinds.perturbed.publishing import perturb_table

    key = key_of(sign)
    source = read_table(table, reading, spark)
    target = place_of(output, source.name)
    if isinstance(target, Path):
        PLACES.append((target, inode(target)))
    with progress_bar() as progress:
        done = perturb_table(
            source,
            to=target,
            overwrite=overwrite,
            progress=progress,
            sign=key,
            register=register_of(register, no_register),
            **given.values,
        )
    data = signed_data(done.to_dict(), key)
    show(data if as_json else None, lambda: perturbation_view(done))


@commands.command()
@with_flags(
    PerturbOptions,
    only=("retention", "replace", "columns", "whole_rows", "most_epsilon", "name"),
    after={"output": "retention", "overwrite": "name", "as_json": "overwrite"},
    helps={"replace": "Where other values come from: uniform, or a file of chances."},
)
def spec(
    given: Given,
    codebook: Annotated[Path, typer.Argument(metavar="CODEBOOK", help="The public domain.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Write the spec to this file.")],
    overwrite: OverwriteOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Write what clients need to perturb their own rows: a survey's public parameters."""
    from voile.files import write_whole
    from voile.kinds.perturbed.specs import make_spec

    found = make_spec(codebook, **{"name": codebook.stem, **given.values})
    write_whole(output, found.raw, overwrite=overwrite)
    say_notes(spec_notes(found))
    say(f"wrote {output}; serve it with voile collect --spec {output}")
    data = {
        "spec": str(output),
        "digest": found.digest,
        "epsilon": found.epsilon(),
        "joint": found.joint,
        "columns": {
            column.name: {"retention": column.retention, "epsilon": epsilon}
            for column, epsilon in zip(found.columns, finite_epsilons(found), strict=True)
        },
    }
    show(data if as_json else None, lambda: spec_view(data))


@commands.command()
def combine(
    parts: Annotated[list[Path], typer.Argument(metavar="PART…", help="Perturbed tables.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The release's folder.")],
    name: NameOpt = None,
    overwrite: OverwriteOpt = False,
    sign: SignOpt = None,
    register: RegisterOpt = None,
    no_register: NoRegisterOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Put together parts that their owners perturbed: more rows, or more columns by a row key."""
    from voile.kinds.perturbed.combining import combine as put_together

    PLACES.append((output, inode(output)))
    key = key_of(sign)
    done = put_together(
        parts, output, name=name, overwrite=overwrite, sign=key,
        register=register_of(register, no_register),
    )  # fmt: skip
    data = signed_data(done.to_dict(), key)
    show(data if as_json else None, lambda: combination_view(done))


def spec_notes(found: Any) -> list[str]:
    """What those who ask should know before they do."""
    from voile.kinds.perturbed.publishing import little_promised

    public = ", ".join(found.public)
    shown = [f"public, sent as they are: {public}"] if public else []
    return [*little_promised(found.epsilon()), *shown]


def finite_epsilons(found: Any) -> list[float | None]:
    """Each column's ε; None where it is infinite."""
    import math

    epsilons = found.column_epsilons().values()
    return [epsilon if math.isfinite(epsilon) else None for epsilon in epsilons]


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
    from voile.kinds.perturbed.release import LocalRelease
    from voile.options import two_numbers
    from voile.privacy.guarantees import Breach

    asked = None if breach is None else Breach(*two_numbers("--breach", breach))
    found = measure(LocalRelease.open(release), asked)
    show(found.to_dict() if as_json else None, lambda: exposure_view(found))
