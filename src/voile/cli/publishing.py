"""The command that publishes: its flags are the options of all kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from voile.cli.common import PLACES, JsonOpt, NullTextOpt, TableArg, commands, inode
from voile.cli.flags import Given, with_flags
from voile.kinds.classes.options import ClassOptions
from voile.kinds.counts.options import CountOptions
from voile.kinds.registry import kinds
from voile.kinds.views.options import ViewOptions
from voile.options import Options
from voile.terminal import show
from voile.terminal.conjuncts import counted_view
from voile.terminal.grouping import grouped_view
from voile.terminal.progress import progress_bar
from voile.terminal.publications import publication_view

VIEWS: dict[type[Options], Callable[[Any], Any]] = {
    ViewOptions: publication_view,
    ClassOptions: grouped_view,
    CountOptions: counted_view,
}

PUBLISHED = [kind for kind in kinds() if kind.command == "publish"]


def known_methods() -> str:
    """Every method, with what it makes."""
    return "; ".join(f"{listed(kind.methods)} ({kind.about})" for kind in PUBLISHED) + "."


def listed(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


@commands.command()
@with_flags(
    *(kind.options for kind in PUBLISHED),
    after={"null_text": "nulls", "overwrite": "name", "as_json": "simulate_seed"},
    last=("name", "simulate_seed"),
)
def publish(
    given: Given,
    table: TableArg,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The release's folder (NAME.voile if not given)."),
    ] = None,
    method: Annotated[str, typer.Option(help=known_methods())] = "alphabeta",
    null_text: NullTextOpt = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a release of that name.")
    ] = False,
    as_json: JsonOpt = False,
) -> None:
    """Turn a private table into a release that keeps a promise."""
    import voile
    from voile.publishing import STEPS, options_of

    model = options_of(method)
    given.check_belong(model, method)
    source = voile.read(table, null_text=tuple(null_text or ()))
    target = output or Path(f"{source.name}.voile")
    PLACES.append((target, inode(target)))
    with progress_bar() as progress:
        done = STEPS[model](
            source,
            to=target,
            method=method,
            overwrite=overwrite,
            progress=progress,
            **given.values,
        )
    show(done.to_dict() if as_json else None, lambda: VIEWS[model](done))
