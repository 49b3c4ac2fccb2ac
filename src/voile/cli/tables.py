"""Commands on private tables: look, declare, publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import (
    PLACES,
    ColumnsOpt,
    JsonOpt,
    NullTextOpt,
    TableArg,
    check_nulls,
    commands,
    inode,
    refuse_table,
    split_names,
)
from voile.cli.counting_options import (
    COUNTING,
    ArityOpt,
    DeltaOpt,
    DirectOpt,
    EtaOpt,
    NoiseOpt,
    RhoOpt,
    SubsetsOpt,
)
from voile.cli.grouping_options import (
    AbsentOpt,
    AlphaOpt,
    COpt,
    CutsOpt,
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
    RecodeOpt,
    RelaxedOpt,
    SemanticOpt,
    SensitiveOpt,
    SuppressedOpt,
    SuppressionOpt,
    TDistanceOpt,
    TOpt,
    check_belong,
    grouping_wish,
)
from voile.terminal import say, show, table_of
from voile.terminal.conjuncts import counted_view
from voile.terminal.grouping import grouped_view
from voile.terminal.progress import progress_bar
from voile.terminal.publications import inspection_view, publication_view


@commands.command()
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


@commands.command()
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
    from voile.kinds.staging import check_outside

    refuse_table(output, table)
    check_outside(output)
    source = voile.read(table, null_text=tuple(null_text or ()))
    names = source.check_columns(split_names(columns) or list(source.columns))
    found = source.infer(names, check_nulls(nulls))
    found.save(output, overwrite=overwrite)
    say(f"wrote {output}; edit it, and pass it to voile publish with --schema")
    show({"schema": str(output), **found.to_dict()} if as_json else None, lambda: found)


@commands.command()
def publish(
    context: typer.Context,
    table: TableArg,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The release's folder (NAME.voile if not given)."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="alphabeta (a noisy view); mondrian, anatomy, fulldomain, suppress, freeshape or "
            "trivial (classes of rows); conjuncts (tables of counts)."
        ),
    ] = "alphabeta",
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
    noise_prior: Annotated[
        str | None,
        typer.Option(
            help="Shape the noise: chances by attribute (YAML, JSON), a public table with the "
            "same columns, or 'product' for the table's own marginals, which are then told."
        ),
    ] = None,
    noise_floor: Annotated[
        float | None, typer.Option(help="Share of shaped noise spread evenly (0.1).")
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
    series: Annotated[
        str | None, typer.Option(help="One of many views of a changing table: the series' name.")
    ] = None,
    views: Annotated[
        int | None, typer.Option(help="With --series: views it may have in all (4 if not given).")
    ] = None,
    changes_at_most: Annotated[
        int | None,
        typer.Option(help="With --series: rows added or removed between views, at most; public."),
    ] = None,
    always_fresh: Annotated[
        bool,
        typer.Option("--always-fresh", help="With --series: a new view of unchanged data too."),
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option(help="With --series: its secret file (NAME.series beside the release)."),
    ] = None,
    qi: QiOpt = None,
    sensitive: SensitiveOpt = None,
    insensitive: InsensitiveOpt = None,
    identifiers: IdentifiersOpt = None,
    recode: RecodeOpt = None,
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
    arity: ArityOpt = 2,
    subsets: SubsetsOpt = None,
    direct: DirectOpt = False,
    delta: DeltaOpt = None,
    eta: EtaOpt = 1e-6,
    rho: RhoOpt = None,
    noise: NoiseOpt = "binomial",
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
    from voile.kinds.classes.grouping import group_table
    from voile.kinds.classes.wish import GROUPINGS
    from voile.kinds.counts.steps import count_table
    from voile.kinds.counts.wish import CONJUNCTS
    from voile.kinds.views.steps import publish_table

    own = check_belong(context, method)
    source = voile.read(table, null_text=tuple(null_text or ()))
    target = output or Path(f"{source.name}.voile")
    PLACES.append((target, inode(target)))
    if method in GROUPINGS:
        wish = grouping_wish(**{option: context.params[option] for option in own})
        with progress_bar() as progress:
            grouped = group_table(
                source,
                to=target,
                method=method,
                schema=schema,
                name=name,
                overwrite=overwrite,
                simulate_seed=simulate_seed,
                progress=progress,
                **wish,
            )
        show(grouped.to_dict() if as_json else None, lambda: grouped_view(grouped))
        return
    if method in CONJUNCTS:
        with progress_bar() as progress:
            counted = count_table(
                source,
                to=target,
                method=method,
                columns=split_names(columns),
                schema=schema,
                nulls=check_nulls(nulls),
                name=name,
                overwrite=overwrite,
                simulate_seed=simulate_seed,
                progress=progress,
                **{option: context.params[option] for option in COUNTING},
            )
        show(counted.to_dict() if as_json else None, lambda: counted_view(counted))
        return
    with progress_bar() as progress:
        done = publish_table(
            source,
            to=target,
            method=method,
            prior_factor=prior_factor,
            prior=prior,
            posterior=posterior,
            adversary=adversary,
            retention=retention,
            max_view_ratio=max_view_ratio,
            noise_prior=noise_prior,
            noise_floor=noise_floor,
            columns=split_names(columns),
            schema=schema,
            rows=rows,
            distinct=distinct,
            nulls=check_nulls(nulls),
            series=series,
            views=views,
            changes_at_most=changes_at_most,
            always_fresh=always_fresh,
            ledger=ledger,
            name=name,
            overwrite=overwrite,
            simulate_seed=simulate_seed,
            progress=progress,
        )
    show(done.to_dict() if as_json else None, lambda: publication_view(done))


@commands.command()
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


@commands.command()
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
