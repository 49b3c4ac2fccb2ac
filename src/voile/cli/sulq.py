"""Commands about what noisy answers tell: `voile sulq simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import JsonOpt, commands
from voile.cli.groups import group_of
from voile.terminal import say, show

sulq = group_of("What noisy answers tell about one row.")
commands.add_typer(sulq, name="sulq")


@sulq.callback()
def group() -> None:
    """What noisy answers tell about one row."""


@sulq.command()
def simulate(
    queries: Annotated[int, typer.Option(help="T: answers that are watched.")] = 100,
    delta: Annotated[float, typer.Option(help="δ: how far conf may rise.")] = 1.0,
    eta: Annotated[float, typer.Option(help="η: the chance that it rises by more.")] = 1e-6,
    noise: Annotated[str, typer.Option(help="binomial, gaussian or geometric.")] = "binomial",
    variance: Annotated[
        float | None, typer.Option(help="V of the noise (what δ, T and η need).")
    ] = None,
    prior: Annotated[float, typer.Option(help="What is believed before the first answer.")] = 0.5,
    membership: Annotated[
        str, typer.Option(help="all: the person is in every question; half: in half of them.")
    ] = "all",
    walkers: Annotated[int, typer.Option(help="How many adversaries are sent.")] = 10_000,
    simulate_seed: Annotated[
        int | None, typer.Option(help="Coins from this seed, to repeat a run.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Draw FILE.png, .svg, .pdf or .html.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Watch the confidence of someone who knows every other row, answer by answer."""
    from voile.evaluate.drawing import check_picture, save
    from voile.evaluate.sulq import Setup, simulate
    from voile.terminal.simulations import simulation_view

    setup = Setup(
        queries=queries, delta=delta, eta=eta, noise=noise, variance=variance, prior=prior,
        walkers=walkers, membership=membership,
    )  # fmt: skip
    if output:
        check_picture(output, overwrite=overwrite)
    found = simulate(setup, seed=simulate_seed)
    if output:
        from voile.evaluate.sulq.plot import draw

        save(lambda: draw(found), output, overwrite=overwrite)
        say(f"wrote {output}")
    show(found.to_dict() if as_json else None, lambda: simulation_view(found))
