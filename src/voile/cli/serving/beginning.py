"""The command that begins a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from voile.cli.common import ColumnsOpt, JsonOpt, NullTextOpt, split_names
from voile.cli.serving.common import serve
from voile.terminal import show
from voile.terminal.progress import progress_bar
from voile.terminal.serving import begun_view


@serve.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
    table: Annotated[
        str, typer.Option(metavar="TABLE", help="The private table: a file or dataset:NAME.")
    ],
    queries: Annotated[int, typer.Option(help="T: how many answers there will ever be.")],
    delta: Annotated[float, typer.Option(help="δ: how much confidence about anyone may rise.")],
    eta: Annotated[float, typer.Option(help="η: the chance that it rises by more.")] = 1e-6,
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
    null_text: NullTextOpt = None,
    name: Annotated[
        str | None, typer.Option(help="What analysts call the table (its file's name).")
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Begin a server: take a table in, and derive the noise from what is promised."""
    import voile
    from voile.serve.beginning import begin
    from voile.serve.steward import begun_data

    source = voile.read(table, null_text=tuple(null_text or ()))
    with progress_bar() as progress:
        progress.start("taking the table in", len(source))
        setting, notes = begin(
            folder,
            source,
            schema=schema,
            columns=split_names(columns),
            queries=queries,
            delta=delta,
            eta=eta,
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
