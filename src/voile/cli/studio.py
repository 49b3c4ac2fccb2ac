"""The command that opens the studio, and the one that repeats a project without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from voile.cli.common import JsonOpt, WithDefault, ask_passphrase, commands, group_of
from voile.terminal import say, show, show_lines

studio = group_of("Publish and explore in a browser, on this machine alone.", WithDefault)
commands.add_typer(studio, name="studio")


@studio.command(name=WithDefault.DEFAULT)
def open_studio(
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE|RELEASE|FOLDER]",
            help="What to open: a table, a release, a project file, or a folder to work in.",
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="0 takes any free one.")] = 0,
    host: Annotated[
        str, typer.Option(help="Where to listen; in a container 0.0.0.0.")
    ] = "127.0.0.1",
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            help="Listen where others could reach it; it still answers to 127.0.0.1 alone.",
        ),
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the link and open nothing.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Open the studio: it serves until Ctrl-C, to this machine alone.

    `voile studio run PROJECT` publishes what a project file says, without a browser.
    """
    from voile.extras import SERVING, check_installed

    check_installed("the studio", (*SERVING, "jinja2", "altair"), "studio")
    from voile.studio.server import run_studio

    def ready(url: str) -> None:
        if as_json:
            import json

            show_lines([json.dumps({"url": url})])
        else:
            say("Voile Studio runs until Ctrl-C. Open this link; keep it to yourself:")
            show_lines([url])

    run_studio(path, port=port, browser=not no_browser, ready=ready, host=host, public=public)


@studio.command()
def run(
    project: Annotated[Path, typer.Argument(metavar="PROJECT", help="A file of the studio.")],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="The release's folder, if not the project's own."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a release of that name.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Publish what a project file says, without a browser."""
    from voile.studio.running import run_project
    from voile.terminal.progress import progress_bar

    with progress_bar() as progress:
        done: dict[str, Any] = run_project(
            project, overwrite=overwrite, progress=progress, ask=ask_passphrase(), output=output
        )
    if done["simulated"]:
        say(
            "note: the release is simulated: its noise follows from a seed, and it promises nothing"
        )
    for note in done["notes"]:
        say(f"note: {note}")
    show(done if as_json else None, lambda: f"published {done['release']}")
