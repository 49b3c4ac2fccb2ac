"""Commands that attack: what an adversary learns, and whether a mechanism keeps its word."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import JsonOpt, ReleaseArg, app, check_output
from voile.cli.groups import WithDefault, group_of
from voile.terminal import fitting_progress, say, show

attacks = group_of("Attack what was released or answered.", default=True)
app.add_typer(attacks, name="attack")


@attacks.command(WithDefault.DEFAULT)
def attack(
    release: ReleaseArg,
    targets: Annotated[
        Path, typer.Option(help="Who is looked for: a CSV with attributes; unknown ones are empty.")
    ],
    prior: Annotated[
        str, typer.Option(help="uniform, promise, product, tree, a number, or a CSV of priors.")
    ] = "uniform",
    model: Annotated[
        str | None,
        typer.Option(help="For product and tree: a TABLE of other people, or a release."),
    ] = None,
    bounded: Annotated[
        bool, typer.Option("--bounded", help="Cut priors at the promise's d.")
    ] = False,
    adversary: Annotated[
        str | None,
        typer.Option(help="independent, exclusive or correlated (by what is known, if not given)."),
    ] = None,
    joint: Annotated[
        Path | None, typer.Option(help="Beliefs about people together, as YAML or JSON.")
    ] = None,
    others: Annotated[int, typer.Option(help="Further records known to have the same values.")] = 0,
    since: Annotated[
        int | None,
        typer.Option(help="Of a series: the view from which on the record has been there (1)."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The column of the targets that names them.")
    ] = None,
    rows: Annotated[int, typer.Option("--show", min=1, help="Rows to print.")] = 20,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write a page to FILE.html.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Show what someone who is after certain people learns from a release, exactly."""
    from voile.errors import UsageError
    from voile.evaluate.attack.carry_out import attack as carry_out
    from voile.evaluate.attack.page import page
    from voile.evaluate.attack.population_fit import is_release
    from voile.files import write_whole
    from voile.release import ViewRelease
    from voile.terminal.attacks import attack_view

    opened = ViewRelease.open(release)
    if output:
        if output.suffix.lower() != ".html":
            raise UsageError(f"{str(output)!r} is no page", hint="name it .html")
        check_output(output, opened.path, overwrite=overwrite)
    if model and is_release(model):  # fitted here, where progress can be seen, and kept beside it
        with fitting_progress() as progress:
            ViewRelease.open(model).refine(progress)
    with fitting_progress() as progress:
        found = carry_out(
            opened,
            targets,
            prior=prior,
            model=model,
            adversary=adversary,
            joint=joint,
            name=name,
            others=others,
            bounded=bounded,
            since=since,
            progress=progress,
        )
    if not found.publishable:
        say(f"note: {model} shaped these numbers: if it is private, do not publish them")
    if output:
        write_whole(output, page(found), overwrite=overwrite)
        say(f"wrote {output}")
    show(found.to_dict() if as_json else None, lambda: attack_view(found, rows))


@app.command()
def audit(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="alphabeta, shaped or series.")],
    rows: Annotated[str, typer.Option(help="multiset or set.")] = "multiset",
    prior: Annotated[float | None, typer.Option(help="d of the promise (0.01).")] = None,
    posterior: Annotated[float | None, typer.Option(help="γ of the promise (0.2).")] = None,
    retention: Annotated[
        float | None, typer.Option(help="Chance that a record is kept (the best one).")
    ] = None,
    noise: Annotated[
        float | None, typer.Option(help="The noise itself, held to what it states.")
    ] = None,
    adversary: Annotated[str, typer.Option(help="independent or exclusive.")] = "independent",
    others: Annotated[
        int, typer.Option(help="Other records with the same values in both tables.")
    ] = 0,
    views: Annotated[int | None, typer.Option(help="For series: how many views (3).")] = None,
    weaken: Annotated[
        float, typer.Option(help="Draw only this share of the noise, to see it caught.")
    ] = 1.0,
    runs: Annotated[int, typer.Option(help="Runs on each of the two tables.")] = 50_000,
    failure: Annotated[
        float, typer.Option(help="Chance to call a sound mechanism broken, at most.")
    ] = 1e-3,
    simulate_seed: Annotated[
        int | None, typer.Option(help="Coins from this seed, to repeat a run.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Run a mechanism many times on neighbouring tables and see whether it keeps its promise."""
    from typing import cast

    from voile.evaluate.audit.method import audit_method
    from voile.privacy import Form
    from voile.terminal.attacks import audit_view

    found = audit_method(
        method,
        rows=cast(Form, rows),
        prior=prior,
        posterior=posterior,
        retention=retention,
        noise=noise,
        adversary=adversary,
        others=others,
        views=views,
        weaken=weaken,
        runs=runs,
        failure=failure,
        simulate_seed=simulate_seed,
    )
    show(found.to_dict() if as_json else None, lambda: audit_view(found))
    if found.found.broken:
        raise typer.Exit(1)
