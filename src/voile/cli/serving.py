"""Commands of a server of noisy counts: begin it, let people in, run it, look after it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voile.cli.common import (
    ColumnsOpt,
    JsonOpt,
    NoRegisterOpt,
    RegisterOpt,
    commands,
    group_of,
    in_order,
    names_in,
    read_table,
    register_of,
)
from voile.cli.flags import AS_IT_IS, with_reading
from voile.options.reading import ReadingOptions
from voile.terminal import say, show, show_lines
from voile.terminal.escaping import json_text
from voile.terminal.progress import progress_bar
from voile.terminal.serving import (
    begun_view,
    issued_view,
    listening_data,
    listening_view,
    log_view,
    recovered_lines,
    status_view,
)

if TYPE_CHECKING:
    from voile.serve.server import ServerStatus
    from voile.web.server import WebOptions

serve = group_of(
    "Serve noisy counts of a table: so many answers, and never one more.",
    in_order(
        ("init", "token", "group", "revoke", "run", "status", "log", "recover", "audit"),
    ),
)
commands.add_typer(serve, name="serve")

FolderArg = Annotated[Path, typer.Argument(metavar="DIR", help="The server's folder.")]


# ---------------------------------------------------------------------- beginning
# The command that begins a server.


@serve.command()
@with_reading
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
    table: Annotated[
        str, typer.Option(metavar="TABLE", help="The private table: a file or dataset:NAME.")
    ],
    queries: Annotated[int, typer.Option(help="T: how many answers there will ever be.")],
    delta: Annotated[
        float | None, typer.Option(help="δ: how much confidence about anyone may rise.")
    ] = None,
    eta: Annotated[float, typer.Option(help="η: the chance that it rises by more.")] = 1e-6,
    epsilon: Annotated[
        float | None,
        typer.Option(help="ε of differential privacy, to promise in place of --delta."),
    ] = None,
    epsilon_delta: Annotated[
        float | None, typer.Option(help="δ of differential privacy (1e-9).")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A codebook: the declared domain.")
    ] = None,
    columns: ColumnsOpt = None,
    noise: Annotated[str, typer.Option(help="binomial, gaussian or geometric.")] = "binomial",
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Says whose a row is; not asked about.")
    ] = None,
    per_person: Annotated[
        int | None, typer.Option(help="Rows of one person that are kept, at most (1).")
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="Public ids that halves are drawn by."),
    ] = None,
    subset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=SQL", help="A public condition to ask within; repeatable."),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="URL", help="Keep the ledger in this PostgreSQL.")
    ] = None,
    counter: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where it is noticed that an old copy was put back."),
    ] = None,
    anytime: Annotated[
        bool, typer.Option("--anytime", help="η, not 2η, bounds every moment before the end.")
    ] = False,
    clamp: Annotated[
        bool, typer.Option("--clamp", help="Move numbers outside of the domain to its ends.")
    ] = False,
    reading: ReadingOptions = AS_IT_IS,
    name: Annotated[
        str | None, typer.Option(help="What analysts call the table (its file's name).")
    ] = None,
    register: RegisterOpt = None,
    no_register: NoRegisterOpt = False,
    as_json: JsonOpt = False,
) -> None:
    """Begin a server: take a table in, and derive the noise from what is promised."""
    from voile.extras import check_server

    check_server(noise, ledger)
    from voile.serve.creation import begin
    from voile.serve.steward import begun_data

    source = read_table(table, reading)
    with progress_bar() as progress:
        progress.start("taking the table in", len(source))
        setting, notes = begin(
            folder,
            source,
            schema=schema,
            columns=names_in(columns),
            queries=queries,
            delta=delta,
            eta=eta,
            epsilon=epsilon,
            epsilon_delta=epsilon_delta,
            noise=noise,
            anytime=anytime,
            name=name,
            person=person,
            per_person=per_person,
            id_column=id_column,
            subsets=named(subset or []),
            ledger=ledger,
            counter=counter,
            clamp=clamp,
            progress=progress,
            register=register_of(register, no_register) or False,
        )
    found = begun_data(folder, setting, notes)
    show(found if as_json else None, lambda: begun_view(found))


def named(given: list[str]) -> dict[str, str]:
    """NAME=SQL options by name."""
    from voile.errors import UsageError

    found: dict[str, str] = {}
    for text in given:
        name, equals, sql = text.partition("=")
        if not equals or not name.strip() or not sql.strip():
            raise UsageError(
                f"--subset {text!r} is not NAME=SQL", hint="--subset adults='age >= 18'"
            )
        if name.strip() in found:
            raise UsageError(f"--subset names {name.strip()!r} twice", hint="one name for each")
        found[name.strip()] = sql.strip()
    return found


# ---------------------------------------------------------------------- analysts
# Commands that let analysts in, and out: tokens, groups, budgets.


@serve.command()
def token(
    folder: FolderArg,
    analyst: Annotated[str, typer.Option(metavar="NAME", help="Whose token it is.")],
    queries: Annotated[
        int | None, typer.Option(help="The analyst's budget; as it was if not given.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="The group whose budget binds too.")
    ] = None,
    admin: Annotated[
        bool, typer.Option("--admin", help="May manage analysts and budgets too.")
    ] = False,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="Only for this: query, budget or admin; repeatable."),
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="After 12h, 30d, 52w; never if not given.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write it to a new FILE for your eyes only."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Make a token for an analyst; it is shown once."""
    from voile.serve.steward import beyond, issue_token, issued_data, token_file
    from voile.units import duration

    with nullcontext() if output is None else token_file(output) as file:
        made, identity = issue_token(
            folder,
            analyst,
            queries=queries,
            group=group,
            role="admin" if admin else "analyst",
            scopes=scope or None,
            seconds=None if expires is None else duration(expires),
        )
        if file is not None:
            file.write(f"{made}\n")
    say_note(beyond(folder, queries))
    if as_json:
        show(issued_data(made, identity), None)
        return
    say(issued_view(identity, expires, output))
    show_lines([str(output) if output else made])


@serve.command()
def group(
    folder: FolderArg,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The group.")],
    queries: Annotated[int, typer.Option(help="Answers for all of the group together.")],
    as_json: JsonOpt = False,
) -> None:
    """Make a group of analysts with a common budget, or change its budget."""
    from voile.serve.steward import beyond, set_group

    set_group(folder, name, queries)
    say_note(beyond(folder, queries))
    if as_json:
        show({"name": name, "queries": queries}, None)
    else:
        say(f"the group {name} may have {queries:,} answers; give tokens with --group {name}")


@serve.command()
def revoke(
    folder: FolderArg,
    analyst: Annotated[
        str | None, typer.Option(metavar="NAME", help="Revoke all tokens of this analyst.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(metavar="ID", help="Revoke one, by what stands before its dot.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Revoke tokens, from now on; a running server knows at once."""
    from voile.serve.steward import revoke as revoke_tokens

    count = revoke_tokens(folder, token=token, analyst=analyst)
    if as_json:
        show({"revoked": count}, None)
    else:
        say(f"revoked {count:,} token{'s' * (count != 1)}")


def say_note(note: str) -> None:
    """A note, unless it is empty."""
    if note:
        say(f"note: {note}")


# ---------------------------------------------------------------------- running
# The command that answers until it is stopped.


@serve.command()
def run(
    folder: FolderArg,
    port: Annotated[int, typer.Option(help="0 takes any free one.")] = 8420,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    public: Annotated[
        bool, typer.Option("--public", help="Listen where other machines can reach it.")
    ] = False,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Speak TLS: the certificate's chain (PEM).")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The certificate's private key (PEM).")
    ] = None,
    rate: Annotated[
        str, typer.Option(help="Requests of one address or token: 50/s, 30/min, 1000/h.")
    ] = "50/s",
    burst: Annotated[int, typer.Option(help="Requests of one address or token at once.")] = 200,
    proxy: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Believe this proxy's X-Forwarded-For."),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Processes that make answers, all from one ledger.")
    ] = 1,
    postgres: Annotated[
        int | None,
        typer.Option("--wire", metavar="PORT", help="Answer PostgreSQL's clients there, too."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Answer questions until Ctrl-C."""
    from voile.extras import check_server
    from voile.serve.setting import Setting

    setting = Setting.open(folder)
    check_server(setting.noise, setting.ledger)
    from voile.web.limits import Rate
    from voile.web.server import Address, WebOptions

    how = WebOptions(
        Address.of(host, port),
        Rate.read(rate, burst),
        public=public,
        certificate=certificate,
        key=key,
        proxy=proxy,
    )
    answer_until_stopped(folder, how, postgres, workers=workers, as_json=as_json)


def answer_until_stopped(
    folder: Path, how: WebOptions, postgres: int | None, *, workers: int, as_json: bool
) -> None:
    """Answer until a signal stops the server."""
    from voile.serve.server import serve as answer

    def ready(found: ServerStatus) -> None:
        """One line of JSON, for programs that wait for it."""
        if how.public and not how.tls:
            say("note: without TLS in front, anybody on the way can read tokens and answers")
        if as_json:
            show_lines([json_text(listening_data(found, folder))])
        else:
            show(None, lambda: listening_view(found, folder))

    clients = None
    if postgres is not None:
        from voile.wire.server import WireOptions

        clients = WireOptions(how.address.host, postgres, how.certificate, how.key)
    used = answer(
        folder,
        how,
        ready=ready,
        note=lambda text: say(f"note: {text}"),
        workers=workers,
        clients=clients,
    )
    say(f"stopped; answers in the ledger of {folder}: {used:,}")


# ---------------------------------------------------------------------- ledger
# Commands that look at what a server has answered, and after its ledger.


@serve.command()
def status(folder: FolderArg, as_json: JsonOpt = False) -> None:
    """Show budgets, groups, analysts and their tokens."""
    from voile.serve.steward import status as look

    found = look(folder)
    show(found if as_json else None, lambda: status_view(found))


@serve.command()
def log(
    folder: FolderArg,
    most: Annotated[int, typer.Option("--show", min=1, help="Lines, newest first.")] = 50,
    as_json: JsonOpt = False,
) -> None:
    """Show the audit log: what was answered to whom, refused, issued, revoked."""
    from voile.serve.steward import log as look

    found = look(folder, most)
    show({"log": found} if as_json else None, lambda: log_view(found))


@serve.command()
def recover(
    folder: FolderArg,
    ledger_is_whole: Annotated[
        bool,
        typer.Option("--ledger-is-whole", help="Only the counter was lost: charge nothing."),
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Go on with a ledger that was put back: what it may have lost is charged."""
    from voile.serve.steward import recovered

    done = recovered(folder, ledger_is_whole=ledger_is_whole)
    if as_json:
        show({"lost": done.lost, "revoked": done.revoked}, None)
        return
    for line in recovered_lines(done, folder):
        say(line)


# ---------------------------------------------------------------------- self audit
# The command that looks at what a server has disclosed so far.


@serve.command()
def audit(
    folder: FolderArg,
    ids: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The public ids of its people, one a line.")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Bound what the answers so far disclose about each person, from the questions alone."""
    from voile.serve.self_audit import audit_folder
    from voile.terminal.serving import self_audit_view

    found = audit_folder(folder, ids)
    show(found.to_dict() if as_json else None, lambda: self_audit_view(found))
