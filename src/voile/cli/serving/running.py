"""The command that answers until it is stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voile.cli.common import JsonOpt
from voile.cli.serving.common import FolderArg, serve
from voile.terminal import say, show, show_lines
from voile.terminal.serving import listening_data, listening_view

if TYPE_CHECKING:
    from voile.serve.serving import ServerOptions, ServerStatus


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
    as_json: JsonOpt = False,
) -> None:
    """Answer questions until Ctrl-C."""
    from voile.cli.collecting import check_installed

    check_installed("a server")
    from voile.serve.serving import ServerOptions
    from voile.web.address import Address
    from voile.web.rate import Rate

    how = ServerOptions(
        Address.of(host, port),
        Rate.read(rate, burst),
        public=public,
        certificate=certificate,
        key=key,
        proxy=proxy,
    )
    answer_until_stopped(folder, how, as_json=as_json)


def answer_until_stopped(folder: Path, how: ServerOptions, *, as_json: bool) -> None:
    from voile.serve.serving import serve as answer

    def ready(found: ServerStatus) -> None:
        """One line of JSON, for programs that wait for it."""
        if how.public and not how.tls:
            say("note: without TLS in front, anybody on the way can read tokens and answers")
        if as_json:
            show_lines([json.dumps(listening_data(found, folder), ensure_ascii=False)])
        else:
            show(None, lambda: listening_view(found, folder))

    used = answer(folder, how, ready=ready, note=lambda text: say(f"note: {text}"))
    say(f"stopped; answers in the ledger of {folder}: {used:,}")
