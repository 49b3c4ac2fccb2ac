"""Commands that attack: what an adversary learns, and whether a mechanism keeps its word."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voile.cli.common import (
    JsonOpt,
    ReleaseArg,
    WithDefault,
    check_output,
    commands,
    group_of,
    read_table,
)
from voile.cli.flags import AS_IT_IS, with_reading
from voile.cli.remote import CaOpt, InsecureOpt, TokenFileOpt, TokenOpt, server_at
from voile.options.reading import ReadingOptions
from voile.terminal import say, show
from voile.terminal.progress import fitting_progress

if TYPE_CHECKING:
    from voile.kinds.beliefs import BeliefBounds

attacks = group_of("Attack what was released or answered.", WithDefault)
commands.add_typer(attacks, name="attack")


@attacks.command(WithDefault.DEFAULT)
def attack(
    release: ReleaseArg,
    targets: Annotated[
        Path | None,
        typer.Option(help="Who is looked for: a CSV with attributes; unknown ones are empty."),
    ] = None,
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
        Path | None,
        typer.Option(
            "-o", "--output", help="A report, FILE.html; or its picture, .svg, .png or .pdf."
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace that file.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Show what someone who is after certain people learns from a release, exactly."""
    from voile.errors import UsageError
    from voile.evaluate.attack.carry_out import attack as carry_out
    from voile.evaluate.attack.page import draw, report
    from voile.evaluate.attack.priors import is_release
    from voile.evaluate.drawing import check_picture
    from voile.evaluate.pages import write_report
    from voile.kinds.release import Release
    from voile.kinds.views.release import ViewRelease
    from voile.terminal.evaluation import attack_view, belief_view

    any_kind = Release.open(release)
    if (limits := any_kind.belief_bounds()) is not None:
        if targets is not None:
            raise UsageError(
                f"{any_kind.name!r} is {any_kind.kind}: what is said holds for everybody",
                hint="leave out --targets",
            )
        if output:
            write_beliefs(limits, any_kind.path, output, overwrite=overwrite)
        show(limits.to_dict() if as_json else None, lambda: belief_view(limits))
        return
    opened = ViewRelease.open(release)
    if targets is None:
        raise UsageError("nobody is named", hint="--targets FILE.csv says who is looked for")
    if output:
        check_picture(output, overwrite=overwrite)
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
        write_report(
            output, lambda: report(found, str(targets)), lambda: draw(found), overwrite=overwrite
        )
        say(f"wrote {output}")
    show(found.to_dict() if as_json else None, lambda: attack_view(found, rows))


def write_beliefs(limits: BeliefBounds, release: Path, output: Path, *, overwrite: bool) -> None:
    """What is said for everybody, as a report: it has no picture."""
    from voile.errors import UsageError
    from voile.evaluate.attack.page import beliefs_report
    from voile.files import write_whole

    if output.suffix.lower() != ".html":
        raise UsageError(
            f"{str(output)!r} is no page, and there is no picture", hint="name it .html"
        )
    check_output(output, release, overwrite=overwrite)
    write_whole(output, beliefs_report(limits, str(release)).page(), overwrite=overwrite)
    say(f"wrote {output}")


@attacks.command()
@with_reading
def reconstruct(
    rows: Annotated[int | None, typer.Option(help="Of the secret column (1000).")] = None,
    questions: Annotated[
        str | None,
        typer.Option(help="How many: one or more numbers (4 × rows); of a server one, or all."),
    ] = None,
    noise: Annotated[
        str | None, typer.Option(help="Its size in √n, one or more: 0.25,0.5,1,2.")
    ] = None,
    variance: Annotated[
        str | None, typer.Option(help="Its variance, one or more; T is the number of questions.")
    ] = None,
    setting: Annotated[
        str | None, typer.Option(help="δ,η: what a server adds that answers so many questions.")
    ] = None,
    law: Annotated[
        str | None, typer.Option(help="Of the noise: normal or uniform (normal).")
    ] = None,
    method: Annotated[str, typer.Option(help="lsq or lp.")] = "lsq",
    share: Annotated[
        float | None, typer.Option(help="Of the rows that have the value 1 (0.5).")
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Columns that are attacked (5).")] = None,
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
    url: Annotated[str | None, typer.Option(help="Attack a server instead: http(s)://…")] = None,
    column: Annotated[
        str | None, typer.Option(help="Of a server: the condition to find, \"income = '>50K'\".")
    ] = None,
    truth: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Its table, to count what was found.")
    ] = None,
    ids: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The ids of its rows, one a line.")
    ] = None,
    reading: ReadingOptions = AS_IT_IS,
    token: TokenOpt = None,
    token_file: TokenFileOpt = None,
    ca: CaOpt = None,
    insecure: InsecureOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Rebuild a secret column from noisy counts of random subsets: Dinur and Nissim's attack."""
    from voile.evaluate.reconstruction import command
    from voile.evaluate.reconstruction.simulating import simulate
    from voile.terminal.simulations import guesses_view, reconstruction_view

    check_belongs(
        simulation={"--rows": rows, "--noise": noise, "--variance": variance,
                    "--setting": setting, "--law": law, "--share": share, "--runs": runs,
                    "--simulate-seed": simulate_seed, "-o": output, "--overwrite": overwrite},
        server={"--column": column, "--truth": truth, "--ids": ids,
                "--null-text": reading.given_keywords() or None,
                "--token": token, "--token-file": token_file, "--ca": ca, "--insecure": insecure},
        url=url, questions=questions,
    )  # fmt: skip
    if url is not None:
        with (
            server_at(url, token, token_file, ca=ca, insecure=insecure, timeout=30.0) as server,
            fitting_progress() as bar,
        ):
            guesses = command.attack(
                server, column or "", questions or command.ALL, method=method,
                table=truth and read_table(truth, reading), ids=ids,
                progress=bar,
            )  # fmt: skip
        show(guesses.to_dict() if as_json else None, lambda: guesses_view(guesses))
        return
    if output:
        command.check_picture(output, overwrite=overwrite)
    rows = command.ROWS if rows is None else rows
    found = simulate(
        rows, command.read_questions(questions, rows),
        command.read_noises(noise, variance, setting), law=law or "normal", method=method,
        share=0.5 if share is None else share, runs=5 if runs is None else runs,
        seed=simulate_seed,
    )  # fmt: skip
    if output:
        command.draw(found, output, overwrite=overwrite)
        say(f"wrote {output}")
    show(found.to_dict() if as_json else None, lambda: reconstruction_view(found))


def check_belongs(
    *,
    simulation: Mapping[str, Any],
    server: Mapping[str, Any],
    url: str | None,
    questions: str | None,
) -> None:
    """An attack is simulated, or on a server: options of the one say nothing to the other.

    Of a server it must be said how many answers may be spent: they are gone for ever.
    """
    from voile.errors import UsageError

    wrong = simulation if url is not None else server
    given = [name for name, value in wrong.items() if value is not None and value is not False]
    if given and url is not None:
        raise UsageError(
            f"{given[0]} is for simulations, and --url for a server",
            hint="a server has its own rows and noise; leave one of them out",
        )
    if given:
        raise UsageError(f"{given[0]} is for the attack on a server", hint="name it with --url")
    if url is not None and not server["--column"]:
        raise UsageError(
            "nobody said what to find", hint="name a condition: --column \"income = '>50K'\""
        )
    if url is not None and questions is None:
        raise UsageError(
            "nobody said how many answers the attack may spend",
            hint="--questions 100, or --questions all for all that the budget allows",
        )


@commands.command()
def audit(
    method: Annotated[
        str, typer.Argument(metavar="METHOD", help="alphabeta, shaped, series or answers.")
    ],
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
    law: Annotated[
        str | None, typer.Option(help="For answers: binomial (default), gaussian or geometric.")
    ] = None,
    queries: Annotated[
        int | None, typer.Option(help="For answers: T, how many are promised (10).")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="For answers: δ of the server (4).")] = None,
    eta: Annotated[float | None, typer.Option(help="For answers: η of the server (1e-6).")] = None,
    at: Annotated[
        float | None,
        typer.Option(help="For answers: the δ of (ε, δ) at which ε is held to (0.01)."),
    ] = None,
    weaken: Annotated[
        float, typer.Option(help="Draw only this share of the noise, to see it caught.")
    ] = 1.0,
    runs: Annotated[int, typer.Option(help="Runs on each of the two tables.")] = 50_000,
    failure: Annotated[
        float, typer.Option(help="Chance to call a sound mechanism broken, at most.")
    ] = 1e-3,
    simulate_seed: Annotated[
        int | None, typer.Option(help="Random numbers from this seed, to repeat a run.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Run a mechanism many times on neighbouring tables and see whether it keeps its promise."""
    from voile.evaluate.audit.method import audited
    from voile.terminal.evaluation import audit_view

    found = audited(
        method,
        {"rows": None if rows == "multiset" else rows, "prior": prior, "posterior": posterior,
         "retention": retention, "noise": noise, "views": views, "others": others or None,
         "adversary": None if adversary == "independent" else adversary},
        {"law": law, "queries": queries, "delta": delta, "eta": eta, "at": at},
        weaken=weaken, runs=runs, failure=failure, simulate_seed=simulate_seed,
    )  # fmt: skip
    show(found.to_dict() if as_json else None, lambda: audit_view(found))
    if found.broken:
        raise typer.Exit(1)
