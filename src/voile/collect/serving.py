"""A collector on its address, from the first request to the last commit."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from voile.client import Spec
from voile.collect.app import Limits, make_app
from voile.collect.store import opened
from voile.collect.writer import Writer
from voile.errors import UsageError, VoileError
from voile.kinds.perturbed.specs import check_releasable
from voile.web.address import Address, bound, check_proxy
from voile.web.rate import Buckets, Rate
from voile.web.server import Server, settings


@dataclass(frozen=True)
class Serving:
    """How a collector serves."""

    address: Address
    rate: Rate
    limits: Limits = field(default_factory=Limits)
    public: bool = False
    """Whether it may listen where other machines can reach it."""
    proxy: str | None = None
    """The address of a proxy whose X-Forwarded-For is believed."""
    origins: tuple[str, ...] = ()
    """Web pages (scheme and host) whose scripts may use it."""
    most_stored: int | None = None
    """Bytes that the store may grow to."""

    def __post_init__(self) -> None:
        if self.most_stored is not None and self.most_stored < 2**20:
            raise UsageError(f"--most-stored {self.most_stored} is no room", hint="at least 1MB")


@dataclass(frozen=True)
class Listening:
    """A collector that is ready: where it listens, for which survey, and what it has."""

    url: str
    spec: str
    rows: int


def serve(
    folder: Path,
    spec: Spec | None,
    how: Serving,
    *,
    ready: Callable[[Listening], None],
    note: Callable[[str], None],
) -> int:
    """Collect until a signal comes; returns how many rows the store then has."""
    check_proxy(how.proxy)
    with (
        bound(how.address, public=how.public) as listener,
        opened(folder, spec, most_bytes=how.most_stored) as store,
    ):
        check_store(store.spec, folder)
        writer = Writer(store)
        try:
            app = make_app(
                writer, Buckets(how.rate), limits=how.limits, origins=how.origins, note=note
            )
            address = Address(*listener.getsockname()[:2])
            found = Listening(address.to_url(), store.spec.digest, store.count)
            server = Server(settings(app, how.proxy), lambda: ready(found))
            asyncio.run(server.serve(sockets=[listener]))
        finally:
            writer.close()
        return store.count


def check_store(spec: Spec, folder: Path) -> None:
    """A store may have been begun before such specs were refused."""
    try:
        check_releasable(spec)
    except VoileError as error:
        raise UsageError(
            f"what the store {str(folder)!r} collects could not be released: {error.message}",
            hint=f"begin a new --store with another spec ({error.hint})",
        ) from None


def check_origins(given: Sequence[str]) -> tuple[str, ...]:
    """Origins as browsers write them: a scheme, a host, perhaps a port, and nothing behind."""
    for text in given:
        if not re.fullmatch(r"https?://[^/?#@\s*]+", text):
            raise UsageError(
                f"--origin {text!r} is not a page's origin", hint="such as https://survey.example"
            )
    return tuple(given)
