"""The command of a collector: take perturbed rows over HTTP, release what has come in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voile.cli.common import (
    PLACES,
    JsonOpt,
    NoRegisterOpt,
    RegisterOpt,
    commands,
    inode,
    key_of,
    register_of,
    signed_data,
)
from voile.terminal import say, show, show_lines
from voile.terminal.escaping import json_text
from voile.terminal.serving import collected_view, collector_data, collector_view

if TYPE_CHECKING:
    from voile.client import Spec
    from voile.collect.server import CollectorOptions, CollectorStatus
    from voile.register import Register


@commands.command()
def collect(
    store: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where rows are kept; made when it is new.")
    ],
    spec: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What clients perturb by; a store keeps its own."),
    ] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="127.0.0.1:8400 if not given.")
    ] = None,
    release: Annotated[
        Path | None,
        typer.Option(metavar="RELEASE", help="Do not listen: release what the store has so far."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="With --release: replace it.")
    ] = False,
    sign: Annotated[
        Path | None,
        typer.Option(metavar="KEY", help="With --release: sign it with this key."),
    ] = None,
    register: RegisterOpt = None,
    no_register: NoRegisterOpt = False,
    rate: Annotated[str, typer.Option(help="Requests of one address: 50/s, 30/min, 1000/h.")] = (
        "50/s"
    ),
    burst: Annotated[int, typer.Option(help="Requests of one address at once.")] = 200,
    most_rows: Annotated[int, typer.Option(help="Rows of one request.")] = 10_000,
    most_bytes: Annotated[str, typer.Option(help="Size of one request.")] = "4MB",
    most_stored: Annotated[
        str | None, typer.Option(help="Size of the store (as much as the disk has).")
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Listen where other machines can reach it.")
    ] = False,
    proxy: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Believe this proxy's X-Forwarded-For."),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A web page whose scripts may send rows; repeatable."),
    ] = None,
    as_json: JsonOpt = False,
) -> None:
    """Collect rows that people perturbed themselves, over HTTP; release what has come in."""
    from voile.errors import UsageError

    if release is not None:
        if listen is not None:
            raise UsageError(
                "--listen and --release exclude each other",
                hint="run the collector, and release its --store with a second command",
            )
        release_store(
            store, release, read_spec(spec), overwrite=overwrite, sign=sign, as_json=as_json,
            registrar=register_of(register, no_register),
        )  # fmt: skip
        return
    if register is not None or no_register:
        raise UsageError(
            "--register and --no-register belong to --release", hint="leave them out here"
        )
    if sign is not None:
        raise UsageError("--sign belongs to --release", hint="leave it out: a store is not signed")
    if overwrite:
        raise UsageError("--overwrite belongs to --release", hint="a store is never overwritten")
    from voile.extras import SERVING, check_installed

    check_installed("a collector", SERVING, "server")
    from voile.collect.server import CollectorOptions, RequestLimits, check_origins
    from voile.units import byte_count
    from voile.web.limits import Rate
    from voile.web.server import Address

    how = CollectorOptions(
        Address.read(listen or "127.0.0.1:8400"),
        Rate.read(rate, burst),
        limits=RequestLimits(rows=most_rows, bytes=byte_count(most_bytes)),
        public=public,
        proxy=proxy,
        origins=check_origins(origin or []),
        most_stored=None if most_stored is None else byte_count(most_stored),
    )
    run(store, read_spec(spec), how, as_json=as_json)


def release_store(
    store: Path,
    target: Path,
    spec: Spec | None,
    *,
    overwrite: bool,
    sign: Path | None,
    as_json: bool,
    registrar: Register | None,
) -> None:
    """Publish what was collected."""
    from voile.collect.releasing import release_collected

    PLACES.append((target, inode(target)))
    key = key_of(sign)
    done = release_collected(
        store, target, spec=spec, overwrite=overwrite, sign=key, register=registrar
    )
    data = signed_data(done.to_dict(), key)
    show(data if as_json else None, lambda: collected_view(done))


def run(store: Path, spec: Spec | None, how: CollectorOptions, *, as_json: bool) -> None:
    """Collect until it is stopped."""
    from voile.collect.server import run_collector
    from voile.units import counted

    def ready(found: CollectorStatus) -> None:
        """One line of JSON, for programs that wait for it."""
        if how.public:
            say("note: without TLS in front, anybody on the way can read and change what is sent")
        if as_json:
            show_lines([json_text(collector_data(found, store))])
        else:
            show(None, lambda: collector_view(found, store))

    rows = run_collector(store, spec, how, ready=ready, note=lambda text: say(f"note: {text}"))
    say(f"stopped; {store} has {counted(rows, 'row')}")


def read_spec(path: Path | None) -> Spec | None:
    """The specification of a file, refused if rows of it cannot be released."""
    from voile.client import Spec
    from voile.kinds.perturbed.specs import check_releasable

    if path is None:
        return None
    spec = Spec.open(path)
    check_releasable(spec)
    return spec
