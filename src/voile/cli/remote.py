"""The command that asks a server of noisy counts."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voile.cli.common import KEPT, JsonOpt, commands
from voile.terminal import show
from voile.terminal.mining import (
    about_view,
    budget_view,
    cost_view,
    history_view,
    mined_view,
    plan_view,
    say_plan,
    show_reply,
    tested_view,
)
from voile.terminal.progress import fitting_progress

if TYPE_CHECKING:
    from voile.remote.client import Server

UrlArg = Annotated[str, typer.Argument(metavar="URL", help="Of the server, http(s)://HOST:PORT.")]
TokenOpt = Annotated[
    str | None, typer.Option(help="Yours. Others on this machine can see it: prefer a file.")
]
TokenFileOpt = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Holds your token; the variable VOILE_TOKEN if not given."),
]
CaOpt = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The authority that signed its certificate.")
]
InsecureOpt = Annotated[
    bool, typer.Option("--insecure", help="Send the token without TLS, readable on the way.")
]


@commands.command()
def ask(
    url: UrlArg,
    sql: Annotated[
        str | None, typer.Argument(metavar="SQL", help="select count(*) from name where …")
    ] = None,
    token: TokenOpt = None,
    token_file: TokenFileOpt = None,
    subset: Annotated[
        str, typer.Option(help="Which rows: all, half:SEED, or a declared subset's name.")
    ] = "all",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost, and ask nothing.")
    ] = False,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    budget: Annotated[bool, typer.Option("--budget", help="Show what you may still ask.")] = False,
    about: Annotated[
        bool, typer.Option("--about", help="Show the columns and the promise.")
    ] = False,
    history: Annotated[bool, typer.Option("--history", help="Show what you asked.")] = False,
    ca: CaOpt = None,
    insecure: InsecureOpt = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 30.0,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the answer as CSV.")] = False,
    as_json: JsonOpt = False,
) -> None:
    """Ask a server that answers a bounded number of noisy counts."""
    wanted = {"--budget": budget, "--about": about, "--history": history}
    shown = [name for name, given in wanted.items() if given]
    of_questions = {"--dry-run": dry_run, "--csv": as_csv, "--subset": subset != "all"}
    check_one(sql, shown, [name for name, given in of_questions.items() if given])
    check_form(as_csv=as_csv, others={"--json": as_json, "--dry-run": dry_run})
    with server_at(url, token, token_file, ca=ca, insecure=insecure, timeout=timeout) as server:
        if sql is None:
            show_about(server, shown[0], as_json=as_json)
        elif dry_run:
            cost = server.cost(sql, subset)
            show(cost.to_dict() if as_json else None, lambda: cost_view(cost))
        else:
            show_reply(server.ask(sql, subset, confidence), as_csv=as_csv, as_json=as_json)


def check_one(sql: str | None, shown: list[str], of_questions: list[str]) -> None:
    """One thing is asked at a time, and options belong to what they change."""
    from voile.errors import UsageError

    if not shown and not (sql and sql.strip()):
        raise UsageError(
            "there is no question", hint='voile ask URL "select count(*) from name", or --about'
        )
    given = [*(["a question"] if sql is not None else []), *shown]
    given += of_questions if shown else []
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} exclude each other", hint="ask one thing at a time"
        )


def check_form(*, as_csv: bool, others: dict[str, bool]) -> None:
    """CSV is a form of answers, and only one form is printed."""
    from voile.errors import UsageError

    if wrong := [name for name, given in others.items() if as_csv and given]:
        raise UsageError(f"--csv and {wrong[0]} exclude each other", hint="leave one of them out")


def show_about(server: Server, wanted: str, *, as_json: bool) -> None:
    """Show a server's budget, history or description."""
    match wanted:
        case "--budget":
            budget = server.budget()
            show(budget if as_json else None, lambda: budget_view(budget))
        case "--history":
            history = server.history()
            show(history if as_json else None, lambda: history_view(history))
        case _:
            about = server.about()
            show(about if as_json else None, lambda: about_view(about))


def server_at(
    url: str,
    token: str | None,
    token_file: Path | None,
    *,
    ca: Path | None,
    insecure: bool,
    timeout: float,
) -> Server:
    """The server, asked with the token that was given in one of three ways."""
    from voile.remote.client import connect

    known = token if token_file is None else read_token(token_file, token)
    return connect(url, known, ca=ca, insecure=insecure, timeout=timeout)


def read_token(file: Path, token: str | None) -> str:
    """The token in a file."""
    from voile.errors import UsageError

    if token is not None:
        raise UsageError("--token and --token-file exclude each other", hint="prefer the file")
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not plain text"
        raise UsageError(
            f"--token-file {str(file)!r} cannot be read: {reason}",
            hint="a file that holds the token and nothing else",
        ) from None


# ----------------------------------------------------------------------
# the command that mines across servers which hold different columns of the same people


@commands.command()
def mine(
    expression: Annotated[
        str, typer.Argument(metavar="EXPRESSION", help="As A.smoker and not B.cancer.")
    ],
    db: Annotated[
        list[str], typer.Option("--db", metavar="NAME=URL", help="A server, and what it is called.")
    ],
    token: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=TOKEN", help="Others here can see it: prefer a file."),
    ] = None,
    token_file: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FILE",
            help="Holds the token; the variable VOILE_TOKEN_NAME if not given.",
        ),
    ] = None,
    halves: Annotated[
        int | None, typer.Option(help="How many random halves to ask both servers about.")
    ] = None,
    error: Annotated[
        float | None, typer.Option(help="As many halves as this standard error needs.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the interval.")] = 0.95,
    seed: Annotated[
        str | None, typer.Option(help="Public name of the halves (random if not given).")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be asked, and ask nothing.")
    ] = False,
    tester: Annotated[
        bool, typer.Option("--tester", help="Run the tester of implication on one biased half.")
    ] = False,
    bias: Annotated[
        float, typer.Option(help="Of the tester: how biased the half must be, in √n.")
    ] = 1.0,
    threshold: Annotated[
        float, typer.Option(help="Of the tester: the Δ that it decides about.")
    ] = 0.0,
    ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The authority that signed the servers' certificates."),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Send tokens without TLS, readable on the way.")
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for an answer.")] = 30.0,
    as_json: JsonOpt = False,
) -> None:
    """Estimate how often a condition on two servers' columns holds, by asking both."""
    from voile.estimate import checked_confidence
    from voile.remote.across import carried_out
    from voile.remote.client import Server
    from voile.remote.plan import planned
    from voile.remote.testing import planned_tester, run_tester

    checked_confidence(confidence)
    with ExitStack() as open_servers:
        servers = {
            name: open_servers.enter_context(
                Server(url, known, ca=ca, insecure=insecure, timeout=timeout)
            )
            for name, (url, known) in addresses(db, token, token_file).items()
        }
        plan = planned(servers, expression, halves=halves, error=error, seed=seed)
        trial = planned_tester(plan, bias=bias, threshold=threshold) if tester else None
        plan = trial.plan if trial else plan
        if dry_run:
            show(plan.to_dict() if as_json else None, lambda: plan_view(plan))
            return
        plan.check()
        say_plan(plan)
        KEPT.append(f"the servers keep what they answered: go on, free of charge, with "
                    f"--seed {plan.seed} --halves {plan.halves}")  # fmt: skip
        with fitting_progress() as progress:
            if trial is not None:
                tested = run_tester(trial, progress)
                show(tested.to_dict() if as_json else None, lambda: tested_view(tested))
                return
            mined = carried_out(plan, confidence=confidence, progress=progress)
        show(mined.to_dict() if as_json else None, lambda: mined_view(mined, len(plan.notes)))


def addresses(
    db: list[str], token: list[str] | None, token_file: list[str] | None
) -> dict[str, tuple[str, str]]:
    """Each server's address and token by its name."""
    from voile.errors import UsageError, did_you_mean

    urls = named("--db", db, "A=http://127.0.0.1:8420")
    for name in urls:
        if not (name.isascii() and name.isidentifier()):
            raise UsageError(
                f"--db {name!r} is no name that an expression can use", hint="letters: --db A=URL"
            )
    tokens = named("--token", token or [], "A=…")
    files = named("--token-file", token_file or [], "A=FILE")
    for option, given in (("--token", tokens), ("--token-file", files)):
        for name in given:
            if name not in urls:
                raise UsageError(
                    f"{option} is for {name!r}, which is no server",
                    hint=did_you_mean(name, [*urls]),
                )
    return {name: (url, token_of(name, tokens, files)) for name, url in urls.items()}


def named(option: str, given: list[str], example: str) -> dict[str, str]:
    """NAME=VALUE options by name."""
    from voile.errors import UsageError

    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option} {text!r} is not NAME=VALUE", hint=f"{option} {example}")
        if name.lower() in map(str.lower, found):
            raise UsageError(f"{option} names {name!r} twice", hint="give each its own name")
        found[name] = value
    return found


def token_of(name: str, tokens: dict[str, str], files: dict[str, str]) -> str:
    """The token for one server, given in one of three ways."""
    from voile.errors import UsageError

    if name in files:
        return read_token(Path(files[name]), tokens.get(name))
    variable = f"VOILE_TOKEN_{name.upper()}"
    known = tokens.get(name) or os.environ.get(variable, "").strip()
    if not known:
        raise UsageError(
            f"there is no token for {name}",
            hint=f"set {variable}, or give --token-file {name}=FILE",
        )
    return known
