"""A collector on its address, from the first request to the last commit."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from voile.client import Spec
from voile.collect.app import Limits, make_app
from voile.collect.rate import Buckets, Rate
from voile.collect.store import opened
from voile.collect.writer import Writer
from voile.errors import UsageError, VoileError
from voile.publishing.specs import check_releasable

CONNECTIONS = 1000
"""Open at a time; more are turned away with 503."""
GRACE = 10
"""Seconds that requests have to end when the collector stops."""


@dataclass(frozen=True)
class Address:
    """Where a collector listens."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> Address:
        """HOST:PORT, with an IPv6 address in brackets; port 0 takes any free one."""
        host, colon, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if not (colon and bare and port.isascii() and port.isdigit() and len(port) <= 5):
            raise UsageError(
                f"--listen {text!r} is not HOST:PORT", hint="such as 127.0.0.1:8400 or [::1]:8400"
            )
        if int(port) > 65535 or (":" in host and bare == host):
            what = "a port is at most 65535" if int(port) > 65535 else "write [HOST]:PORT for IPv6"
            raise UsageError(f"--listen {text!r} is no address", hint=what)
        return cls(bare, int(port))

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


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
            found = Listening(address.url, store.spec.digest, store.count)
            server = Server(settings(app, how.proxy), lambda: ready(found))
            asyncio.run(server.serve(sockets=[listener]))
        finally:
            writer.close()
        return store.count


def settings(app: object, proxy: str | None) -> uvicorn.Config:
    """No log (it would hold addresses), and no belief in headers that anybody can write."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=GRACE,
    )


class Server(uvicorn.Server):
    """Says when it is ready, and takes a signal for the usual end of its work."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.getsignal(number) for number in asked}
        for number in asked:
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                loop.remove_signal_handler(number)
                signal.signal(number, handler)

    def _stop(self) -> None:
        self.force_exit = self.should_exit  # who asks twice does not want to wait
        self.should_exit = True


@contextmanager
def bound(address: Address, *, public: bool) -> Iterator[socket.socket]:
    """A socket that listens there, and only where other machines cannot come unless `public`."""
    family, place = resolve(address)
    if not (public or ipaddress.ip_address(place).is_loopback):
        raise UsageError(
            f"--listen {address.host}:{address.port} can be reached by other machines, and what "
            "is sent to it by anybody on the way",
            hint="listen on 127.0.0.1 and let a web server with TLS pass requests on; or pass "
            "--public if something else keeps them secret",
        )
    # asyncio turns Nagle's algorithm off (40 ms an answer) only where TCP is named.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
            f"--listen: there is no host {address.host!r}", hint="such as 127.0.0.1:8400"
        ) from None
    family, *_, place = found[0]
    return family, str(place[0])


def check_store(spec: Spec, folder: Path) -> None:
    """A store may have been begun before such specs were refused."""
    try:
        check_releasable(spec)
    except VoileError as error:
        raise UsageError(
            f"what the store {str(folder)!r} collects could not be released: {error.message}",
            hint=f"begin a new --store with another spec ({error.hint})",
        ) from None


def check_proxy(proxy: str | None) -> None:
    if proxy is None:
        return
    try:
        ipaddress.ip_address(proxy)
    except ValueError:
        raise UsageError(
            f"--proxy {proxy!r} is not an IP address",
            hint="the address that the web server's requests come from, such as 127.0.0.1",
        ) from None


def check_origins(given: Sequence[str]) -> tuple[str, ...]:
    """Origins as browsers write them: a scheme, a host, perhaps a port, and nothing behind."""
    for text in given:
        if not re.fullmatch(r"https?://[^/?#@\s*]+", text):
            raise UsageError(
                f"--origin {text!r} is not a page's origin", hint="such as https://survey.example"
            )
    return tuple(given)
