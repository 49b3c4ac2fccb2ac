"""A server of PostgreSQL's protocol: where it listens, whom it lets wait, and who works when.

One loop reads and writes for all clients; what takes long runs in a few threads, which clients take
in turn. A client that says nothing costs a socket until its time is up, and is the first to go
where there are too many.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
import ssl
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from voile.errors import UsageError, VoileError, spelled
from voile.system import here as system
from voile.web.limits import Rate, RateLimiter, WorkPool, party
from voile.wire import messages
from voile.wire.admission import HINT, NO_TOKEN, WireGuard
from voile.wire.connection import ADMISSION_SECONDS, Client, Gone, Line
from voile.wire.conversation import CatalogueLike, Conversation, SessionLike, WireCaller
from voile.wire.messages import WireError, violation
from voile.wire.settings import Settings

Result = TypeVar("Result")

CONNECTIONS, PER_ADDRESS = 200, 100
"""Open at a time, of all and of one address."""
THREADS, WAITING = 4, 400
SECONDS = 60.0
"""What a statement may take."""
GUESSES = Rate(0.5, 20)
"""Wrong tokens of one address: each further one has to wait."""


@dataclass(frozen=True)
class WireOptions:
    """Where to listen, and what a client may take."""

    host: str = "127.0.0.1"
    port: int = 5433
    certificate: Path | None = None
    """With its chain, in PEM; then clients may speak TLS, and those of other machines must."""
    key: Path | None = None
    seconds: float = SECONDS
    connections: int = CONNECTIONS
    each: int = PER_ADDRESS
    admission_seconds: float = ADMISSION_SECONDS

    def checked(self, *, asks: bool) -> WireOptions:
        """These, if nobody on the way can read tokens or answers, and only who may asks."""
        if not 0 <= self.port <= 65535:
            raise UsageError(f"{spelled('port', self.port)} is no port",
                             hint="0 to 65535; 0 takes any free one")  # fmt: skip
        if not 0 < self.seconds <= 86_400:
            raise UsageError(f"{spelled('seconds', self.seconds)} is no time for a statement",
                             hint="such as 60")  # fmt: skip
        if not 1 <= self.connections <= 10_000:
            raise UsageError(f"{spelled('connections', self.connections)} is out of range",
                             hint="1 to 10,000; such as 200")  # fmt: skip
        if (self.certificate is None) != (self.key is None):
            missing = spelled("tls_cert" if self.certificate is None else "tls_key")
            both = f"{spelled('tls_cert')} and {spelled('tls_key')}"
            raise UsageError(f"{missing} is missing", hint=f"TLS needs {both}")
        if not is_local(self.host):
            self._check_open_to_others(asks=asks)
        return self

    def _check_open_to_others(self, *, asks: bool) -> None:
        named = spelled("host", self.host)
        if not asks:
            raise UsageError(
                f"{named} can be reached by other machines, and anybody is let in",
                hint=f"give {spelled('token_file')}; or listen on 127.0.0.1",
            )
        if self.certificate is None:
            raise UsageError(
                f"{named} can be reached by other machines, and without TLS anybody on the way "
                "can read what is sent",
                hint=f"give {spelled('tls_cert')} and {spelled('tls_key')}; or listen on 127.0.0.1",
            )


def is_local(host: str) -> bool:
    """Whether only this machine reaches the address."""
    return ipaddress.ip_address(resolved(host)[1]).is_loopback


def resolved(host: str) -> tuple[socket.AddressFamily, str]:
    """The first IP address that a host's name stands for."""
    try:
        if not host.strip("[] "):
            raise OSError
        family, *_, place = socket.getaddrinfo(host.strip("[] "), 0, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise UsageError(
            f"there is no host {host!r} to listen on", hint="such as 127.0.0.1"
        ) from None
    return family, str(place[0])


def tls_context(options: WireOptions) -> ssl.SSLContext | None:
    """What TLS is spoken with."""
    if options.certificate is None or options.key is None:
        return None
    for name, file in (("tls_cert", options.certificate), ("tls_key", options.key)):
        if not file.is_file():
            raise UsageError(f"{spelled(name, str(file))} is no file", hint="name a file in PEM")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.certificate, options.key, password=no_passphrase)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise UsageError(
            f"{str(options.certificate)!r} and {str(options.key)!r} are no certificate and its key",
            hint=f"both in PEM, the key without a passphrase ({getattr(error, 'reason', error)})",
        ) from None
    return context


def no_passphrase() -> str:
    """A server cannot ask for one."""
    raise ValueError("the key has a passphrase")


# ---------------------------------------------------------------------- server


@dataclass
class WireServer:
    """Answers clients until it is closed. Everything here runs in one loop."""

    options: WireOptions
    guard: WireGuard
    sessions: Callable[[str], SessionLike]
    """A session for whoever has a token; may take as long as opening one does."""
    catalogue: CatalogueLike
    note: Callable[[str], None] = lambda _: None
    port: int = 0
    _clients: OrderedDict[int, tuple[Client | None, asyncio.Task[None], str, socket.socket]] = (
        field(default_factory=OrderedDict)
    )
    _numbers: int = 0
    _working: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _guesses: RateLimiter = field(default_factory=lambda: RateLimiter(GUESSES))
    _notes: RateLimiter = field(default_factory=lambda: RateLimiter(Rate(1 / 60, 3)))

    def __post_init__(self) -> None:
        self.options.checked(asks=self.guard.asks)
        self._context = tls_context(self.options)

    @property
    def names(self) -> list[str]:
        """The tables that clients may ask about."""
        return self.catalogue.names

    async def run(self, stop: asyncio.Event, ready: Callable[[], None]) -> None:
        """Listen until `stop` is set; `ready` is called when clients may come."""
        self._pool = WorkPool(THREADS, WAITING)
        with self._bound() as listener:
            self.port = listener.getsockname()[1]
            accepting = asyncio.ensure_future(self._accept(listener))
            ready()
            try:
                await stop.wait()
            finally:
                accepting.cancel()
                await self._end()

    @contextmanager
    def _bound(self) -> Iterator[socket.socket]:
        family, place = resolved(self.options.host)
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            system.claim_port(listener)
            try:
                listener.bind((place, self.options.port))
            except OSError as error:
                raise UsageError(
                    f"cannot listen on {self.options.host}:{self.options.port}: {error.strerror}",
                    hint="choose another port, or 0 for any free one",
                ) from None
            listener.listen(128)
            listener.setblocking(False)
            yield listener

    async def _end(self) -> None:
        tasks = [task for _, task, _, _ in self._clients.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._pool.give_up()

    # ------------------------------------------------------------------ who comes

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listener)
            except OSError:  # too many files are open, or the client is gone already
                await asyncio.sleep(0.05)
                continue
            address = party(str(peer[0]))
            if not self._has_room(address):
                turn_away(accepted)
                continue
            self._numbers += 1
            number = self._numbers
            task = asyncio.ensure_future(self._serve(accepted, str(peer[0]), number))
            self._clients[number] = (None, task, address, accepted)
            task.add_done_callback(partial(self._forget, number, accepted))

    def _forget(self, number: int, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._clients.pop(number, None)
        accepted.close()  # of who was dropped before it was served, too
        if not task.cancelled():
            task.exception()

    def _has_room(self, address: str) -> bool:
        """Whether one more may come; who has not been let in for longest leaves for it."""
        own = [n for n, (_, _, whose, _) in self._clients.items() if whose == address]
        if len(own) >= self.options.each:
            return self._drop(own)
        return len(self._clients) < self.options.connections or self._drop(list(self._clients))

    def _drop(self, numbers: list[int]) -> bool:
        for number in numbers:
            client, task, _, _ = self._clients[number]
            if client is None or not client.admitted:
                del self._clients[number]
                task.cancel()
                return True
        return False

    async def _serve(self, accepted: socket.socket, peer: str, number: int) -> None:
        """One client, from its first byte to its last."""
        line: Line | None = None
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            async with asyncio.timeout(self.options.admission_seconds):
                line, encrypted, code, body = await self._first(accepted)
            if code == messages.CANCEL:
                self._cancel(body)
                return
            client = Client(self, line, peer, encrypted, number)
            if number in self._clients:
                self._clients[number] = (client, *self._clients[number][1:])
            await client.serve(code, body)
        except (Gone, TimeoutError, OSError, ssl.SSLError, WireError):
            pass
        except Exception as error:  # one client's must not end the others
            self._fault(error)
        finally:
            if line is not None:
                await line.close()
            accepted.close()

    def _fault(self, error: Exception) -> None:
        if not self._notes.wait("fault"):
            self.note(f"a connection ended by a fault of ours: {type(error).__name__}: {error}")

    async def _first(self, accepted: socket.socket) -> tuple[Line, bool, int, bytes]:
        """What a client begins with, after it asked for encryption or not."""
        loop = asyncio.get_running_loop()
        receive = partial(received, accepted)
        for _ in range(3):
            size, code = struct.unpack("!ii", await receive(8))
            if code == messages.TLS and size == 8 and self._context is not None:
                # Byte for byte: nothing that came before TLS is taken for what came within it.
                await loop.sock_sendall(accepted, b"S")
                line = await streams(accepted, self._context)
                size, code = struct.unpack("!ii", await line.exactly(8, ADMISSION_SECONDS))
                body = await line.exactly(rest_of(size), ADMISSION_SECONDS)
                return line, True, code, body
            if code in (messages.TLS, messages.GSS) and size == 8:
                await loop.sock_sendall(accepted, b"N")
                continue
            body = await receive(rest_of(size))
            return await streams(accepted, None), False, code, body
        raise violation("the client asks for encryption again and again")

    def _cancel(self, body: bytes) -> None:
        """Give a statement up, for whoever knows the secret of its connection."""
        if len(body) != 8:
            return
        process, secret = struct.unpack("!iI", body)
        client = self._clients.get(process, (None,))[0]
        if client is not None and secrets.compare_digest(
            client.secret.to_bytes(4), secret.to_bytes(4)
        ):
            client.cancel()

    # ------------------------------------------------------------------ for clients

    def check_encrypted(self, client: Client) -> None:
        """Refuse who sends in clear from another machine."""
        if not client.encrypted and not ipaddress.ip_address(client.address).is_loopback:
            raise WireError("28000", "the connection is not encrypted", hint="sslmode=require")

    def check_guesses(self, address: str) -> None:
        """Refuse who sent too many wrong tokens."""
        if self._guesses.wait(address, take=False):
            raise WireError("28P01", "too many wrong tokens came from this address",
                            hint="wait a minute")  # fmt: skip

    def wrong_token(self, address: str) -> WireError:
        """The refusal of a token, which is counted."""
        self._guesses.wait(address)
        return WireError("28P01", NO_TOKEN, hint=HINT)

    async def conversation(
        self, user: str, database: str, token: str, process: int
    ) -> Conversation:
        """What one client asks."""
        session = await self.work(partial(self.sessions, token), str(process))
        return Conversation(session, self.catalogue, WireCaller(user, database, process))

    async def work(self, work: Callable[[], Result], who: str) -> Result:
        """What work in a thread gives; an unknown error is a fault of ours, without its words."""
        try:
            return await self._pool.run(partial(self._counted, work), who)
        except (VoileError, asyncio.CancelledError):
            raise
        except Exception as error:
            self._fault(error)
            raise WireError("XX000", "the statement failed by a fault of this server",
                            hint="report it with the statement") from error  # fmt: skip

    def _counted(self, work: Callable[[], Result]) -> Result:
        with self._changed:
            self._working += 1
        try:
            return work()
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    def finish(self, seconds: float) -> bool:
        """Wait for what threads are at; whether all of it ended in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._working, seconds)

    def seconds_for(self, settings: Settings) -> float:
        """What a statement may take: what the client allows, within what the server does."""
        wanted = settings.milliseconds / 1000
        return min(wanted, self.options.seconds) if wanted else self.options.seconds


def rest_of(size: int) -> int:
    """How many bytes of a first packet are to come."""
    if not 8 <= size <= messages.STARTUP_BYTES:
        raise violation(f"the first packet announces {size:,} bytes")
    return size - 8


async def received(accepted: socket.socket, count: int) -> bytes:
    """So many bytes of a socket, and none beyond."""
    loop, found = asyncio.get_running_loop(), b""
    while len(found) < count:
        more = await loop.sock_recv(accepted, count - len(found))
        if not more:
            raise Gone
        found += more
    return found


async def streams(accepted: socket.socket, context: ssl.SSLContext | None) -> Line:
    """The connection for reading and writing, within TLS or not."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    timeout = None if context is None else ADMISSION_SECONDS
    transport, _ = await loop.connect_accepted_socket(
        lambda: protocol, accepted, ssl=context, ssl_handshake_timeout=timeout
    )
    return Line(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


def turn_away(accepted: socket.socket) -> None:
    """Say that there are too many, where that can be said at once, and close."""
    refusal = WireError("53300", "there are too many connections", hint="try again", fatal=True)
    with suppress(OSError):
        accepted.setblocking(False)
        accepted.send(messages.error(refusal))
    accepted.close()


# ---------------------------------------------------------------------- running


def run_until_stopped(server: WireServer, ready: Callable[[], None]) -> None:
    """Answer until a signal comes."""

    async def main() -> None:
        stop = asyncio.Event()
        with system.handling_endings(asyncio.get_running_loop(), stop.set):
            await server.run(stop, ready)

    asyncio.run(main())


@contextmanager
def running(server: WireServer) -> Iterator[WireServer]:
    """The server, answering in a thread of its own while the block runs."""
    ready, failed = threading.Event(), []
    stops: list[Callable[[], object]] = []

    async def main() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        stops.append(lambda: loop.call_soon_threadsafe(stop.set))
        await server.run(stop, ready.set)

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # raised where the server was started
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work, name="wire", daemon=True)
    thread.start()
    ready.wait()
    if failed:
        raise failed[0]
    try:
        yield server
    finally:
        stops[0]()
        thread.join()
