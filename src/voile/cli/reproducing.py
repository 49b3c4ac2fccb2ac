"""The command that makes the papers' figures and tables again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import KEPT, JsonOpt, commands
from voile.terminal import say, show


@commands.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Figures, as --list names them.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="List all figures and tables.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Make all of them.")] = False,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The folder for data, pictures and verdicts.")
    ] = Path("reproduced"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repetitions and points: minutes become seconds.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Where the coins come from.")] = 1,
    jobs: Annotated[
        int | None, typer.Option(help="Processes (as many as there are cores).")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Make the papers' figures and tables again, and compare them with what is printed."""
    from voile.errors import UsageError
    from voile.reproduce import FIGURES, Run, find
    from voile.reproduce import reproduce as run
    from voile.terminal.evaluation import points_bar
    from voile.terminal.reproducing import list_view, reproduced_view

    if listed:
        data = [{"name": f.name, "paper": f.paper, "what": f.what} for f in FIGURES]
        show(data if as_json else None, lambda: list_view(FIGURES))
        return
    if everything == bool(names):
        raise UsageError(
            "say which figures" if not names else "say --all or names, not both",
            hint="voile reproduce NAME, or --all; voile reproduce --list names them",
        )
    wanted = FIGURES if everything else [find(name) for name in dict.fromkeys(names or [])]
    KEPT.append(f"what was done is kept in {output}: run it again to go on")
    with points_bar() as progress:
        found = run(wanted, output, run=Run(quick, seed), jobs=jobs, progress=progress)
    told = [one.to_dict() for one in found]
    several = everything or len(found) > 1
    show((told if several else told[0]) if as_json else None, lambda: reproduced_view(found))
    say(f"wrote {output / 'index.html'}, which shows all that is in {output}")
    if not all(one.sound for one in found):
        raise typer.Exit(1)
