"""The command that asks a server of noisy counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voile.cli.common import JsonOpt, commands
from voile.terminal import show
from voile.terminal.asking import about_view, budget_view, cost_view, history_view, show_reply

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
