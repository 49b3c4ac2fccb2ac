"""A server of noisy counts on its address, from the first request to the last."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from voile.errors import UsageError
from voile.serve.app import THREADS, WAITING, make_app
from voile.serve.opened import opened
from voile.web.limits import Rate, WorkPool
from voile.web.server import Address, WebServer, bound, check_proxy, settings

WARM = "select count(*) from people"


@dataclass(frozen=True)
class ServerOptions:
    """How a server serves."""

    address: Address
    rate: Rate
    public: bool = False
    """Whether it may listen where other machines can reach it."""
    certificate: Path | None = None
    """With its chain, in PEM; then the server speaks TLS and nothing else."""
    key: Path | None = None
    proxy: str | None = None
    """The address of a proxy whose X-Forwarded-For is believed."""

    @property
    def tls(self) -> bool:
        return self.certificate is not None


@dataclass(frozen=True)
class ServerStatus:
    """A server that is ready: where it listens, about what, and how much is left of its budget."""

    url: str
    name: str
    queries: int
    used: int


def serve(
    folder: Path,
    how: ServerOptions,
    *,
    ready: Callable[[ServerStatus], None],
    note: Callable[[str], None],
) -> int:
    """Answer until a signal comes; returns how many answers there are then."""
    check_proxy(how.proxy)
    check_certificate(how)
    with (
        bound(how.address, public=how.public, tls=how.tls) as listener,
        opened(folder) as service,
    ):
        pool = WorkPool(THREADS, WAITING)
        try:
            app = make_app(service, how.rate, pool, note=note)
            service.cost(
                "", WARM
            )  # so that the first who asks does not wait for what is loaded once
            spare_collections()
            address = Address(*listener.getsockname()[:2])
            used = service.ledger.budgets("").everyone.used
            setting = service.setting
            found = ServerStatus(address.to_url(tls=how.tls), setting.name, setting.queries, used)
            config = settings(app, how.proxy, certificate=how.certificate, key=how.key)
            service.ledger.note("server", "started", url=found.url)
            asyncio.run(WebServer(config, lambda: ready(found)).serve(sockets=[listener]))
        finally:
            pool.close()
            gc.unfreeze()  # or DuckDB takes what is frozen for leaks, and says so at exit
            service.ledger.note("server", "stopped")
        return service.ledger.budgets("").everyone.used


def check_certificate(how: ServerOptions) -> None:
    """Refuse before anything is opened what TLS would fail on later, or ask a passphrase for."""
    if (how.certificate is None) != (how.key is None):
        missing = "--certificate" if how.certificate is None else "--key"
        raise UsageError(f"{missing} is missing", hint="TLS needs --certificate and --key")
    if how.certificate is None or how.key is None:
        return
    for option, file in (("--certificate", how.certificate), ("--key", how.key)):
        if not file.is_file():
            raise UsageError(f"{option} {str(file)!r} is no file", hint="name a file in PEM")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            how.certificate, how.key, password=no_passphrase
        )
    except (OSError, ValueError) as error:
        raise UsageError(
            f"TLS cannot use {str(how.certificate)!r} with {str(how.key)!r}: "
            f"{getattr(error, 'reason', None) or error}",
            hint="a certificate (with its chain) and its key, both in PEM, without a passphrase",
        ) from None


def no_passphrase() -> str:
    raise ValueError("the key is locked by a passphrase")


def spare_collections() -> None:
    """What is there now stays; to look through it for garbage again and again makes people wait."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
