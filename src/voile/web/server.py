"""Where a server listens, and how it runs from the first request to the last."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from voile.errors import UsageError, spelled
from voile.system import here as system
from voile.web.connections import (
    CONNECTIONS,
    ConnectionLimits,
    Listener,
    OpenConnections,
    allow_files,
    guarded,
)
from voile.web.limits import Rate


@dataclass(frozen=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> Address:
        """HOST:PORT, with an IPv6 address in brackets; port 0 takes any free one."""
        host, colon, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not (colon and bare and port.isascii() and port.isdigit() and len(port) <= 5):
            raise UsageError(
                f"{spelled('address', text, flag='--listen')} is not HOST:PORT",
                hint="such as 127.0.0.1:8400 or [::1]:8400",
            )
        if int(port) > 65535 or (":" in host and bare == host):
            what = "a port is at most 65535" if int(port) > 65535 else "write [HOST]:PORT for IPv6"
            raise UsageError(
                f"{spelled('address', text, flag='--listen')} is no address", hint=what
            )
        return cls(bare, int(port))

    @classmethod
    def of(cls, host: str, port: int) -> Address:
        """A host and a port as they were given apart."""
        if not 0 <= port <= 65535:
            raise UsageError(
                f"{spelled('port', port)} is no port", hint="0 to 65535; 0 takes any free one"
            )
        if not host.strip("[] "):
            raise UsageError(f"{spelled('host', host)} is no host", hint="such as 127.0.0.1")
        return cls(host.strip("[] "), port)

    def to_url(self, *, tls: bool = False) -> str:
        """The address with http:// or https://."""
        return f"{'https' if tls else 'http'}://{self}"

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@contextmanager
def bound(address: Address, *, public: bool, tls: bool = False) -> Iterator[Listener]:
    """A socket bound to the address, which other machines can reach only if `public`."""
    family, place = resolve(address)
    if not (public or ipaddress.ip_address(place).is_loopback):
        if tls:
            raise UsageError(
                f"{address} can be reached by other machines",
                hint=f"pass {spelled('public', True)} if that is meant",
            )
        raise UsageError(
            f"{address} can be reached by other machines, and without TLS what is sent to it can "
            "be read by anybody on the way",
            hint="listen on 127.0.0.1 and let a web server with TLS pass requests on; or pass "
            f"{spelled('public', True)} if something else keeps them secret",
        )
    # asyncio turns Nagle's algorithm off (40 ms an answer) only where TCP is named.
    with Listener(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        system.claim_port(listener)
        try:
            listener.bind((place, address.port))
        except OSError as error:
            raise UsageError(
                f"cannot listen on {address.host}:{address.port}: {error.strerror}",
                hint="choose another port, or 0 for any free one",
            ) from None
        yield listener


def resolve(address: Address) -> tuple[socket.AddressFamily, str]:
    """The first IP address that the host's name stands for."""
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise UsageError(
            f"there is no host {address.host!r} to listen on", hint="such as 127.0.0.1"
        ) from None
    family, *_, place = found[0]
    return family, str(place[0])


def check_proxy(proxy: str | None) -> None:
    """Refuse a proxy that is not an IP address."""
    if proxy is None:
        return
    try:
        ipaddress.ip_address(proxy)
    except ValueError:
        raise UsageError(
            f"{spelled('proxy', proxy)} is not an IP address",
            hint="the address that the web server's requests come from, such as 127.0.0.1",
        ) from None


# ---------------------------------------------------------------------- server
# A web server around an application, from the first request to the last.


GRACE = 2
"""Seconds that requests have to end when a server stops."""
LAST = 2.7
"""Seconds after which it ends whatever is running: what was acknowledged is on disk."""
ENDED = 1
"""What a process that had to be ended so returns."""
FILES = 4 * CONNECTIONS
"""Files that may be open."""


@dataclass(frozen=True)
class WebOptions:
    """How a server serves."""

    address: Address
    rate: Rate
    public: bool = False
    """Whether it may listen where other machines can reach it."""
    proxy: str | None = None
    """The address of a proxy whose X-Forwarded-For is trusted."""
    certificate: Path | None = None
    """With its chain, in PEM; then the server speaks TLS and nothing else."""
    key: Path | None = None

    @property
    def tls(self) -> bool:
        """Whether what is sent is encrypted."""
        return self.certificate is not None


@contextmanager
def listening(options: WebOptions) -> Iterator[Listener]:
    """A socket at the address of the options, once these are checked.

    What is done with it is done when the block ends: from a signal on that has `LAST` seconds.
    """
    check_proxy(options.proxy)
    with bound(options.address, public=options.public, tls=options.tls) as listener:
        try:
            yield listener
        finally:
            if listener.last is not None:
                listener.last.cancel()


def url_of(listener: socket.socket, options: WebOptions) -> str:
    """Where a server can be reached: the port may have been chosen by the system."""
    return Address(*listener.getsockname()[:2]).to_url(tls=options.tls)


def run_server(
    app: object,
    options: WebOptions,
    listener: Listener,
    ready: Callable[[], None],
    *,
    stopping: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until a signal comes; `ready` is called when the first may come.

    `stopping` is called at the signal: what cannot be ended gently is ended there.
    """
    allow_files(FILES)
    listener.connections = OpenConnections(ConnectionLimits(proxy=options.proxy))
    config = settings(app, options, listener.connections)

    def stop() -> None:
        listener.last = end_for_certain()
        stopping()

    asyncio.run(WebServer(config, ready, stop).serve(sockets=[listener]))


def settings(app: object, options: WebOptions, connections: OpenConnections) -> uvicorn.Config:
    """uvicorn's settings: no log (it would hold addresses), and a proxy's headers only."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=guarded(connections),
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        proxy_headers=options.proxy is not None,
        forwarded_allow_ips=options.proxy,
        timeout_graceful_shutdown=GRACE,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
    )


class WebServer(uvicorn.Server):
    """Calls `ready` when requests may come, and ends normally on a signal."""

    def __init__(
        self, config: uvicorn.Config, ready: Callable[[], None], stopping: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._ready, self._stopping = ready, stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, then say that requests may come."""
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End gracefully on a signal; a second one ends at once."""
        loop = asyncio.get_running_loop()
        with system.handling_endings(loop, self._stop):
            yield

    def _stop(self) -> None:
        self.force_exit = self.should_exit  # a second signal does not wait for open requests
        if not self.should_exit:
            self._stopping()
        self.should_exit = True


def end_for_certain() -> threading.Timer:
    """End this process soon, also where a thread is at work that nothing can interrupt.

    Nothing is lost by that: a charge and its answer, or a row, are on disk before they are
    acknowledged.
    """
    last = threading.Timer(LAST, os._exit, [ENDED])
    last.daemon = True
    last.start()
    return last
