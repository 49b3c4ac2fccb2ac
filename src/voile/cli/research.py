"""Commands that make models of a release: trees and association rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import KEPT, ColumnsOpt, JsonOpt, ReleaseArg, commands, group_of, names_in
from voile.terminal import say, say_notes, show
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
        Path | None,
        typer.Option(
            "-o",
            "--output",
            "--plot",
            help="A report, FILE.html; or its picture, .svg, .png or .pdf.",
        ),
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
            names_in(columns),
            limits,
            release=str(release),
            test=test,
            private=beside,
            progress=progress,
        )
    if plot:
        tree_plot.write(found, plot, overwrite=overwrite)
        say(f"wrote {plot}")
    show(found.to_dict() if as_json else None, lambda: tree_view(found))
    if not as_json:
        say_notes(found.notes)
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
        found = find_rules(counts, names_in(columns), limits, progress)
    show(found.to_dict() if as_json else None, lambda: rules_view(found))
    if not as_json:
        say_notes(found.notes)


# ----------------------------------------------------------------------
# the command that makes the papers' figures and tables again


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
        bool, typer.Option("--quick", help="Fewer repetitions and points, not judged.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Where the random numbers come from.")] = 1,
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
    from voile.terminal.simulations import list_view, reproduced_view

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
    data = [one.to_dict() for one in found]
    several = everything or len(found) > 1
    show((data if several else data[0]) if as_json else None, lambda: reproduced_view(found))
    say(f"wrote {output / 'index.html'}, which shows all that is in {output}")
    if any(one.sound is False for one in found):
        raise typer.Exit(1)


# ----------------------------------------------------------------------
# commands about what noisy answers tell: `voile sulq simulate`


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
        int | None, typer.Option(help="Random numbers from this seed, to repeat a run.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="A report, FILE.html; or its picture, .svg, .png or .pdf."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Watch the confidence of someone who knows every other row, answer by answer."""
    from voile.evaluate.drawing import check_picture
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
        from voile.evaluate.pages import write_report
        from voile.evaluate.sulq.plot import draw, report

        write_report(output, lambda: report(found), lambda: draw(found), overwrite=overwrite)
        say(f"wrote {output}")
    show(found.to_dict() if as_json else None, lambda: simulation_view(found))
