"""The command that answers PostgreSQL's clients from releases."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from voile.cli.common import JsonOpt, commands
from voile.terminal import say, show, show_lines
from voile.terminal.escaping import json_text

LAST = 2.0
"""Seconds that a statement may still take once a signal came."""


@commands.command()
def wire(
    releases: Annotated[
        list[Path],
        typer.Argument(metavar="RELEASE…", help="Releases, or folders of releases: each a table."),
    ],
    port: Annotated[int, typer.Option(help="0 takes any free one.")] = 5433,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="Passwords: tokens, one a line."),
    ] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Ask for no password; on this machine alone.")
    ] = False,
    tls_cert: Annotated[
        Path | None,
        typer.Option("--tls-cert", metavar="FILE", help="The certificate's chain (PEM)."),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="Its private key (PEM).")
    ] = None,
    intervals: Annotated[
        bool,
        typer.Option("--intervals", help="Columns NAME_stderr, NAME_low and NAME_high, too."),
    ] = False,
    confidence: Annotated[float, typer.Option(help="At which the intervals hold.")] = 0.95,
    seconds: Annotated[float, typer.Option(help="What one statement may take.")] = 60.0,
    connections: Annotated[int, typer.Option(help="Clients at a time, at most.")] = 200,
    as_json: JsonOpt = False,
) -> None:
    """Answer psql, Tableau, Excel, R and JDBC: PostgreSQL's protocol over releases."""
    from voile.wire.opening import AnswerOptions, releases_server
    from voile.wire.server import WireOptions, run_until_stopped

    options = WireOptions(
        host.strip("[] "), port, tls_cert, tls_key, seconds=seconds, connections=connections
    )
    answers = AnswerOptions(intervals, confidence)
    with releases_server(
        releases, options, token_file=token_file, trust=trust, answers=answers,
        note=lambda text: say(f"note: {text}"),
    ) as server:  # fmt: skip
        found = server_data(server, trust=trust)
        run_until_stopped(server, lambda: announce(found, server.port, as_json=as_json))
        done = server.finish(LAST)
    say("stopped")
    if not done:  # a thread cannot be ended; what it is at changes nothing
        os._exit(0)


def server_data(server: Any, *, trust: bool) -> dict[str, Any]:
    """Where a server listens and what it has, for programs."""
    return {
        "host": server.options.host,
        "tls": server.options.certificate is not None,
        "password": "none is asked for" if trust else "a token of the file",
        "tables": server.names,
    }


def announce(known: dict[str, Any], port: int, *, as_json: bool) -> None:
    """One line of JSON, for programs that wait for it; else what to type."""
    host = f"[{known['host']}]" if ":" in known["host"] else known["host"]
    found: dict[str, Any] = {"url": f"postgresql://{host}:{port}/voile", "port": port} | known
    if as_json:
        show_lines([json_text(found)])
        return
    from voile.terminal import key_values

    reached = f"-h {found['host']} -p {found['port']}"
    show(
        None,
        lambda: key_values(
            {
                "listening": f"{found['host']}:{found['port']}{', TLS' if found['tls'] else ''}",
                "tables": ", ".join(found["tables"]),
                "ask": f"psql {reached} -d voile",
                "as password": found["password"],
                "to stop": "Ctrl-C",
            }
        ),
    )
